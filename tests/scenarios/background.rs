//! Background tasks: they outlive their turn and stream their output. When a client, the model or the
//! daemon stops them, all their processes end.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::bash;
use super::unload::loaded;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

const TOOLS_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

/// A child in its own process session with no living parent, and a command that does not end.
const STAYS: &str = "(setsid -f sleep 1000); echo up; sleep 1000";

fn background_call(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command, "run_in_background": true}))
}

fn output(bash_id: &str) -> (&'static str, Value) {
    ("BashOutput", json!({"bash_id": bash_id}))
}

/// Runs a turn with these calls in one message. Returns their results in the order in which they ended.
async fn turn(
    daemon: &TestDaemon,
    session: &Session,
    seen: &mut Log,
    calls: Vec<(&'static str, Value)>,
) -> Vec<Value> {
    let before = seen.events_of("tool.completed").len();
    daemon.models.push(Step::calls(calls));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    seen.events_of("tool.completed").split_off(before)
}

fn text(result: &Value) -> &str {
    result["output"].as_str().expect("a text")
}

async fn wait_task_end(seen: &mut Log, bash_id: &str) -> Value {
    let is_end = |event: &Value| {
        event["type"] == "tool.background" && event["bash_id"] == bash_id && event["state"] != "running"
    };
    // The event may have arrived before the end of its turn.
    if let Some(known) = seen.events().into_iter().find(|event| is_end(event)) {
        return known;
    }
    seen.find(&format!("the end of {bash_id}"), is_end).await
}

async fn wait_output(seen: &mut Log, word: &str) {
    let is_it = |event: &Value| {
        event["type"] == "tool.progress" && event["text"].as_str().is_some_and(|text| text.contains(word))
    };
    seen.find(&format!("{word:?} in the output"), is_it).await;
}

#[tokio::test]
async fn background_task_outlives_turn_and_returns_new_output_only() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let command = "echo one; until test -e go; do sleep 0.02; done; echo two >&2; exit 3";
    let begun = turn(&daemon, &session, &mut seen, vec![background_call(command)]).await;
    assert_eq!(begun[0]["status"], "completed", "{}", begun[0]);
    assert!(text(&begun[0]).contains("bash_1"), "{}", begun[0]);
    let told = &seen.events_of("tool.background")[0];
    assert_eq!((&told["bash_id"], &told["state"]), (&json!("bash_1"), &json!("running")));
    assert_eq!((&told["call_id"], &told["command"]), (&begun[0]["call_id"], &json!(command)));
    wait_output(&mut session.follow().await, "one").await;
    let view = session.view().await;
    assert_eq!(view["state"], "idle");
    assert_eq!(view["background_commands"][0]["bash_id"], "bash_1", "{view}");

    let first = turn(&daemon, &session, &mut seen, vec![output("bash_1")]).await;
    assert_eq!(text(&first[0]), "bash_1 is running.\nNew output:\none\n");
    let again = turn(&daemon, &session, &mut seen, vec![output("bash_1")]).await;
    assert_eq!(text(&again[0]), "bash_1 is running.\nNo new output.");

    // The task ends while no turn runs.
    daemon.write("go", "");
    let end = wait_task_end(&mut seen, "bash_1").await;
    assert_eq!((&end["state"], &end["exit_code"]), (&json!("exited"), &json!(3)), "{end}");
    assert_eq!((&end["output_bytes"], &end["turn_id"]), (&json!(8), &Value::Null));
    let blob = session.call("blob", json!({"blob_id": end["output_blob"]["blob_id"]})).await;
    assert_eq!(blob["content"], "one\ntwo\n", "{blob}");
    assert!(session.view().await.get("background_commands").is_none());
    assert_eq!(daemon.tool_processes(), []);
    assert!(session.events().await.iter().all(|event| event["type"] != "tool.progress"), "pruned");

    let last = turn(&daemon, &session, &mut seen, vec![output("bash_1")]).await;
    assert!(
        text(&last[0]).starts_with("bash_1 has ended with exit code 3.\nNew output:\ntwo\n"),
        "{}",
        last[0]
    );
    let after = turn(&daemon, &session, &mut seen, vec![output("bash_1")]).await;
    assert!(text(&after[0]).contains("No new output."), "{}", after[0]);
    let none = turn(&daemon, &session, &mut seen, vec![output("bash_2")]).await;
    assert_eq!(none[0]["code"], "unknown_command");
}

#[tokio::test]
async fn bash_output_filter_selects_lines_and_reports_bad_pattern() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    turn(&daemon, &session, &mut seen, vec![background_call("printf 'fine\\nerror 1\\nfine\\nerror 2\\n'")])
        .await;
    wait_task_end(&mut seen, "bash_1").await;
    let wrong = ("BashOutput", json!({"bash_id": "bash_1", "filter": "("}));
    assert_eq!(turn(&daemon, &session, &mut seen, vec![wrong]).await[0]["code"], "invalid_input");
    let filtered = ("BashOutput", json!({"bash_id": "bash_1", "filter": "^error"}));
    let shown = turn(&daemon, &session, &mut seen, vec![filtered]).await;
    assert!(text(&shown[0]).contains("New output:\nerror 1\nerror 2\n"), "{}", shown[0]);
    let after = turn(&daemon, &session, &mut seen, vec![output("bash_1")]).await;
    assert!(text(&after[0]).contains("No new output."), "filtered lines are not shown later: {}", after[0]);
}

#[tokio::test]
async fn kill_bash_kills_background_task_with_its_children() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    turn(
        &daemon,
        &session,
        &mut seen,
        vec![background_call(STAYS), background_call("echo other; sleep 1000")],
    )
    .await;
    daemon.tool_processes_reach(|count| count >= 4).await;
    let kill = ("KillBash", json!({"shell_id": "bash_1"}));
    let killed = turn(&daemon, &session, &mut seen, vec![kill.clone()]).await;
    assert_eq!(killed[0]["status"], "completed", "{}", killed[0]);
    assert!(text(&killed[0]).contains("Still running in the background: bash_2"), "{}", killed[0]);
    let background = seen.events_of("tool.background");
    let end = background.iter().find(|event| event["state"] == "killed").expect("its end");
    assert_eq!((&end["bash_id"], &end["killed_by"]), (&json!("bash_1"), &json!("tool")));
    assert!(end["seq"].as_u64() < killed[0]["seq"].as_u64(), "the task ends before the call");
    let first = &background[0]["call_id"];
    assert_eq!(daemon.processes_of(first), [], "also the process that left its process session");
    assert!(!daemon.tool_processes().is_empty(), "the other task continues");
    let again = turn(&daemon, &session, &mut seen, vec![kill]).await;
    assert_eq!(again[0]["code"], "not_running", "{}", again[0]);
    session.call("kill", json!({})).await;
    assert_eq!(daemon.tool_processes(), []);
}

#[tokio::test]
async fn abort_kills_background_tasks_of_its_turn_only() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let first = turn(&daemon, &session, &mut seen, vec![background_call(STAYS)]).await.remove(0);
    daemon.models.push(Step::calls([background_call(STAYS)]));
    daemon.models.push(Step::calls([bash("echo here; sleep 1000")]));
    session.submit("more").await;
    wait_output(&mut seen, "here").await;
    let aborted = session.call("abort", json!({})).await;
    assert_eq!(aborted["survivors"], json!([]));
    let background = seen.events_of("tool.background");
    let second = background.iter().find(|event| event["bash_id"] == "bash_2").expect("its beginning");
    assert_eq!(daemon.processes_of(&second["call_id"]), []);
    assert!(aborted["stopped"].as_array().expect("a list").contains(&second["call_id"]), "{aborted}");
    assert_eq!(wait_task_end(&mut seen, "bash_2").await["killed_by"], "abort");
    assert!(!daemon.processes_of(&first["call_id"]).is_empty(), "the earlier task continues");
    seen.turn_ends("aborted").await;

    // The id of the call that started the task still identifies it, long after that turn.
    let aborted = session.call("abort", json!({"call_id": first["call_id"]})).await;
    assert_eq!(aborted, json!({"stopped": [first["call_id"]], "survivors": []}));
    assert_eq!(daemon.tool_processes(), []);
    assert_eq!(wait_task_end(&mut seen, "bash_1").await["killed_by"], "abort");
}

#[tokio::test]
async fn kill_of_idle_session_kills_its_background_tasks() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let begun = turn(&daemon, &session, &mut seen, vec![background_call(STAYS)]).await;
    daemon.tool_processes_reach(|count| count >= 3).await;
    let killed = session.call("kill", json!({})).await;
    assert_eq!(killed, json!({"stopped": [begun[0]["call_id"]], "survivors": []}));
    assert_eq!(daemon.tool_processes(), []);
    assert_eq!(wait_task_end(&mut seen, "bash_1").await["killed_by"], "session");
}

#[tokio::test]
async fn daemon_stop_kills_background_tasks_and_keeps_their_output() {
    let mut daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    turn(&daemon, &session, &mut seen, vec![background_call(STAYS)]).await;
    daemon.tool_processes_reach(|count| count >= 3).await;
    wait_output(&mut session.follow().await, "up").await;
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.wait_exit().await.success());
    assert_eq!(daemon.tool_processes(), []);
    daemon.launch().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    // Consume the end of the first turn, so that the next wait is for the second.
    seen.turn_ends("success").await;
    let end = wait_task_end(&mut seen, "bash_1").await;
    assert_eq!((&end["state"], &end["killed_by"]), (&json!("killed"), &json!("shutdown")), "{end}");
    let told = turn(&daemon, &session, &mut seen, vec![output("bash_1")]).await;
    let shown = text(&told[0]);
    assert!(shown.contains("the daemon stopped") && shown.contains("New output:\nup\n"), "{shown}");
}

#[tokio::test]
async fn daemon_crash_kills_background_tasks_and_reports_them_lost() {
    let mut daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    turn(&daemon, &session, &mut seen, vec![background_call(STAYS)]).await;
    daemon.tool_processes_reach(|count| count >= 3).await;
    wait_output(&mut session.follow().await, "up").await;
    daemon.crash_and_restart().await;
    assert_eq!(daemon.tool_processes(), []);
    let bob = daemon.client("bob").await;
    let session = bob.join(&session);
    let mut seen = session.follow().await;
    // Consume the end of the first turn, so that the next wait is for the second.
    seen.turn_ends("success").await;
    let end = wait_task_end(&mut seen, "bash_1").await;
    assert_eq!(end["state"], "lost", "{end}");
    let told = turn(&daemon, &session, &mut seen, vec![output("bash_1"), background_call("true")]).await;
    let shown = text(&told[0]);
    assert!(shown.contains("was lost") && shown.contains("New output:\nup\n"), "{shown}");
    assert!(text(&told[1]).contains("bash_2"), "numbers of tasks are not reused: {}", told[1]);
}

#[tokio::test]
async fn background_tasks_are_limited_in_number_and_time() {
    let config = format!("{TOOLS_ALLOWED}\n[tools]\nbackground_commands = 1");
    let daemon = TestDaemon::builder().config(&config).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let short = ("Bash", json!({"command": "sleep 1000", "run_in_background": true, "timeout_ms": 3000}));
    let results =
        turn(&daemon, &session, &mut seen, vec![short, background_call("echo too many >> log.txt")]).await;
    assert_eq!(results[1]["code"], "too_many_background", "{}", results[1]);
    assert!(text(&results[1]).contains("bash_1"), "{}", results[1]);
    assert_eq!(daemon.read("log.txt"), "", "the second command did not run");
    let end = wait_task_end(&mut seen, "bash_1").await;
    assert_eq!(end["state"], "timed_out", "{end}");
    let room = turn(&daemon, &session, &mut seen, vec![background_call("true")]).await;
    assert_eq!(room[0]["status"], "completed", "a new task is allowed again");
}

#[tokio::test]
async fn background_command_needs_same_permission_as_foreground() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([background_call("make serve")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(asked["subject"], json!({"kind": "bash", "command": "make serve", "background": true}));
    assert!(asked["summary"].as_str().expect("a text").ends_with("(in the background)"), "{asked}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("tool.background"), Vec::<Value>::new());
}

#[tokio::test]
async fn background_output_flood_uses_bounded_memory_and_disk() {
    let config = format!("{TOOLS_ALLOWED}\n[tools]\nmax_spool_size = \"4MiB\"");
    let daemon = TestDaemon::builder().config(&config).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let before = peak_memory_kib(&daemon);
    turn(
        &daemon,
        &session,
        &mut seen,
        vec![background_call("echo BEGIN; yes flood | head -c 60M; echo END")],
    )
    .await;
    let end = wait_task_end(&mut seen, "bash_1").await;
    assert_eq!((&end["state"], &end["exit_code"]), (&json!("exited"), &json!(0)), "{end}");
    assert_eq!(end["output_bytes"], 60 * (1 << 20) + 10);
    let kept = end["output_blob"]["bytes"].as_u64().expect("a length");
    assert!(kept <= 5 << 20, "{kept} bytes on the disk");
    let told = turn(&daemon, &session, &mut seen, vec![output("bash_1")]).await;
    let shown = text(&told[0]);
    assert!(
        shown.contains("BEGIN\n") && shown.contains("END\n") && shown.contains("left out"),
        "{shown:.200}"
    );
    assert!(shown.len() < 40_000, "{}", shown.len());
    let progress: usize =
        seen.events_of("tool.progress").iter().map(|event| event["text"].as_str().map_or(0, str::len)).sum();
    assert!(progress <= 1 << 20, "{progress} bytes of progress");
    let more = peak_memory_kib(&daemon) - before;
    assert!(more < 64 << 10, "{more} KiB more at the peak");
}

/// Peak memory of the daemon in KiB.
fn peak_memory_kib(daemon: &TestDaemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test]
async fn session_with_background_task_is_not_unloaded() {
    let daemon = TestDaemon::builder()
        .config(&format!("{TOOLS_ALLOWED}\n[limits]\nidle_unload = \"20ms\""))
        .start()
        .await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let wait = "until test -e go; do sleep 0.02; done; echo went";
    turn(&daemon, &session, &mut seen, vec![background_call(wait)]).await;
    seen.unsubscribe().await;
    // Another session is unloaded meanwhile; this one stays loaded.
    let other = alice.create(&daemon).await;
    loaded(&alice, 1).await;
    assert_eq!(session.view().await["background_commands"][0]["bash_id"], "bash_1");
    assert!(other.view().await.get("background_commands").is_none());
    daemon.write("go", "");
    loaded(&alice, 0).await;
    let mut seen = session.follow().await;
    assert_eq!(wait_task_end(&mut seen, "bash_1").await["state"], "exited");
    let told = turn(&daemon, &session, &mut seen, vec![output("bash_1")]).await;
    assert!(text(&told[0]).contains("New output:\nwent\n"), "{}", told[0]);
    assert_eq!(daemon.tool_processes(), []);
}
