//! Aborts: the reply arrives when no process of the work is left, and the session continues as before.

use serde_json::json;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use super::bash;
use crate::support::daemon::{MESSAGE_APIS, TestDaemon};
use crate::support::model_server::{Gate, Step};

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

#[tokio::test]
async fn aborted_message_is_kept_and_not_sent_to_model() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder().api(api).start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        let gate = Gate::new();
        daemon.models.push(Step::text("half a sentence").hold_after(1, &gate));
        let turn = session.submit("tell me").await;
        seen.text_of(1).await;

        let reply = session.call("abort", json!({})).await;
        assert_eq!(reply, json!({"stopped": [turn], "survivors": []}));
        let answer = seen.next_answer().await;
        assert_eq!(
            (&answer["item"]["status"], &answer["item"]["text"]),
            (&json!("interrupted"), &json!("half "))
        );
        seen.turn_ends("aborted").await;
        seen.state_is("idle").await;
        assert!(seen.events_of("error").is_empty(), "an abort is no error");
        daemon.models.wait_for_hangups(1).await;

        daemon.models.push(Step::text("Yes?"));
        session.submit("again").await;
        seen.turn_ends("success").await;
        let request = daemon.models.requests()[1].body.to_string();
        assert!(request.contains("tell me") && request.contains("again") && !request.contains("half "));
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn abort_kills_whole_process_tree_of_command() {
    let trees = [
        "sleep 1000 & sleep 1000",
        "setsid sleep 1000 & (sleep 1000 & sleep 1000)",
        "trap '' TERM; sleep 1000 & wait; sleep 1000",
    ];
    for command in trees {
        let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::calls([bash(command)]));
        let turn = session.submit("sleep").await;
        let started = seen.wait_for("tool.started").await;
        daemon.tool_processes_reach(|alive| alive >= 2).await;

        let reply = session.call("abort", json!({"turn_id": turn})).await;
        assert_eq!(daemon.tool_processes(), [], "no process of {command:?} is left after the reply");
        assert_eq!(reply, json!({"stopped": [turn, started["call_id"]], "survivors": []}));
        let done = seen.wait_for_call("tool.completed", &started["call_id"]).await;
        assert_eq!(done["status"], "cancelled");
        seen.turn_ends("aborted").await;
        assert!(seen.events_of("error").is_empty());

        daemon.models.push(Step::text("Good morning."));
        session.submit("awake?").await;
        seen.turn_ends("success").await;
        daemon.models.assert_no_breach();
    }
}

/// A process limit does not apply to root, so the command first switches to another user.
#[tokio::test]
async fn abort_kills_fork_bomb_under_process_limit() {
    const LIMIT: usize = 40;
    const FORKS: &str = "exec setpriv --reuid=61234 --regid=61234 --clear-groups \
                         bash -c 'while :; do setsid sleep 1000 & sleep 1000 & done' 2>/dev/null";
    let is_there = std::process::Command::new("setpriv").arg("--version").output().is_ok();
    if !nix::unistd::geteuid().is_root() || !is_there {
        return base::skip_test!("becoming another user takes root and setpriv");
    }
    // Without a cgroup, only the limit and the process markers bound the command.
    let limits = format!("\n[tools]\ncgroup = \"off\"\nprocesses = {LIMIT}");
    let daemon = TestDaemon::builder().config(&format!("{BASH_ALLOWED}{limits}")).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash(FORKS)]));
    let turn = session.submit("fork").await;
    let started = seen.wait_for("tool.started").await;
    daemon.tool_processes_reach(|alive| alive >= LIMIT - 5).await;
    let alive = daemon.tool_processes().len();
    assert!(alive <= LIMIT + 1, "the process limit is enforced: {alive}");

    let reply = session.call("abort", json!({"turn_id": turn})).await;
    assert_eq!(daemon.tool_processes(), [], "no process is left after the reply");
    assert_eq!(reply, json!({"stopped": [turn, started["call_id"]], "survivors": []}));
    let done = seen.wait_for_call("tool.completed", &started["call_id"]).await;
    assert_eq!(done["status"], "cancelled");
    seen.turn_ends("aborted").await;
}

#[tokio::test]
async fn abort_withdraws_pending_permission_requests() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch one"), bash("touch two")]));
    let turn = session.submit("go").await;
    let one = seen.wait_for("permission.requested").await;
    let two = seen.wait_for("permission.requested").await;

    let bob = daemon.client("bob").await;
    let reply = bob.join(&session).call("abort", json!({})).await;
    assert_eq!(reply["stopped"], json!([turn, one["call_id"], two["call_id"]]));
    for question in [&one, &two] {
        let settled = seen.wait_for("permission.resolved").await;
        assert_eq!((&settled["request_id"], &settled["by"]), (&question["request_id"], &json!("abort")));
    }
    let aborting = &seen.events_of("turn.aborting")[0];
    assert_eq!(aborting["origin"]["client"], "bob");
    assert!(session.pending().await.is_empty());
    let late = session.answer_refused(&one, json!({"decision": "allow"})).await;
    assert_eq!(late.code, -32014);

    daemon.models.push(Step::text("Fine."));
    session.submit("never mind").await;
    seen.turn_ends("aborted").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.models.requests()[1].tool_results().len(), 2, "every call has a result");
    assert!(!daemon.workspace().join("one").exists());
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn abort_of_one_call_continues_turn() {
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo begun; sleep 1000"), bash("echo next")]));
    daemon.models.push(Step::text("The first was stopped."));
    session.submit("go").await;
    let started = seen.wait_for("tool.started").await;
    seen.wait_for("tool.progress").await;

    let reply = session.call("abort", json!({"call_id": started["call_id"]})).await;
    assert_eq!(reply, json!({"stopped": [started["call_id"]], "survivors": []}));
    assert_eq!(daemon.processes_of(&started["call_id"]), []);
    seen.turn_ends("success").await;
    let completed = seen.events_of("tool.completed");
    assert_eq!(
        (&completed[0]["status"], &completed[1]["status"]),
        (&json!("cancelled"), &json!("completed"))
    );
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[1].1.contains("next"), "{results:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn abort_of_pending_call_withdraws_its_request() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch one"), bash("touch two")]));
    daemon.models.push(Step::text("One of two."));
    session.submit("go").await;
    let one = seen.wait_for("permission.requested").await;
    let two = seen.wait_for("permission.requested").await;
    session.call("abort", json!({"call_id": one["call_id"]})).await;
    session.allow(&two).await;
    seen.turn_ends("success").await;
    assert!(!daemon.workspace().join("one").exists() && daemon.workspace().join("two").exists());
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn abort_without_running_turn_stops_nothing() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let nothing = json!({"stopped": [], "survivors": []});
    assert_eq!(session.call("abort", json!({})).await, nothing);
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    let turn = session.submit("hello").await;
    seen.turn_ends("success").await;
    assert_eq!(session.call("abort", json!({})).await, nothing);
    assert_eq!(session.call("abort", json!({"turn_id": turn})).await, nothing);
    assert!(seen.events_of("turn.aborting").is_empty());
}

#[tokio::test]
async fn queued_input_starts_after_aborted_turn_completes() {
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("sleep 1000")]));
    daemon.models.push(Step::text("Second."));
    session.submit("first").await;
    seen.wait_for("tool.started").await;
    let queued = session.submit_with(json!({"input": "second"})).await;
    let id = session.send("abort", json!({})).await;
    let again = session.send("abort", json!({})).await;
    let ended = seen.wait_for("turn.completed").await;
    assert_eq!(ended["result"]["subtype"], "aborted");
    let started = seen.wait_for("turn.started").await;
    assert_eq!(started["turn_id"], queued["turn_id"]);
    assert_eq!(seen.turn_ends("success").await["text"], "Second.");
    assert_eq!(session.client.reply(id).await, session.client.reply(again).await, "the same reply");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn abort_during_retry_backoff_ends_turn_immediately() {
    let daemon = TestDaemon::builder().config("[retry]\nbase_ms = 600000\nmax_ms = 600000").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::error(529, "overloaded_error", "busy"));
    session.submit("go").await;
    seen.wait_for("retry").await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
}

/// Another connection holds the database's write lock, so that no commit can end.
#[tokio::test]
async fn abort_kills_commands_before_its_commit_completes() {
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("sleep 1000")]));
    session.submit("sleep").await;
    seen.wait_for("tool.started").await;
    daemon.tool_processes_reach(|alive| alive >= 1).await;

    let options = SqliteConnectOptions::new().filename(daemon.path("data/agentd/agentd.db"));
    let mut lock = options.connect().await.expect("the database");
    sqlx::query("begin immediate").execute(&mut lock).await.expect("locked");
    let abort = session.send("abort", json!({})).await;
    daemon.tool_processes_reach(|alive| alive == 0).await;
    assert!(session.events().await.iter().all(|event| event["type"] != "turn.aborting"), "not written yet");
    sqlx::query("rollback").execute(&mut lock).await.expect("unlocked");
    session.client.reply(abort).await.expect("aborted");
    seen.turn_ends("aborted").await;
}
