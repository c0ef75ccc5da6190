//! How commands run: with the intended descriptors and limits, with bounded resources, and with a
//! reported reason for their end.

use serde_json::Value;

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

/// The result of one command.
async fn run(daemon: &TestDaemon, command: &str) -> Value {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash(command)]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    seen.events_of("tool.completed").remove(0)
}

#[tokio::test]
async fn command_inherits_daemon_descriptor_limit_only() {
    let daemon = TestDaemon::builder()
        .config(BASH_ALLOWED)
        .with_prelude("ulimit -Sn 700; ulimit -Hn 900")
        .start()
        .await;
    let process = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).expect("it runs");
    let files = process.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let limits: Vec<&str> = files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(limits, ["900", "900"], "the daemon raises its limit to the maximum");
    let done = run(&daemon, "ulimit -Sn; ulimit -Hn; ls /proc/$$/fd").await;
    let said: Vec<i32> = done["output"]
        .as_str()
        .expect("a text")
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert_eq!(said[..2], [700, 900]);
    // The shell itself has one more descriptor at 255; the one above it is where the shell reports its
    // folder.
    let open: Vec<i32> = said[2..].iter().copied().filter(|fd| *fd != 255).collect();
    assert!(open.len() == 4 && open.contains(&0) && open.contains(&1) && open.contains(&2), "{said:?}");
}

#[tokio::test]
async fn command_with_few_descriptors_runs_and_tracks_cwd() {
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).with_prelude("ulimit -n 64").start().await;
    daemon.write("inside/a.txt", "here");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("cd inside; ulimit -n")]));
    daemon.models.push(Step::calls([bash("cat a.txt")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let done = seen.events_of("tool.completed");
    let output = |n: usize| done[n]["output"].as_str().expect("a text");
    assert!(output(0).starts_with("64"), "{done:#?}");
    assert!(output(1).starts_with("here"), "{done:#?}");
}

#[tokio::test]
async fn command_at_resource_limit_is_reported_with_limit() {
    let limits = "\n[tools]\ncgroup = \"off\"\nfile_size = \"1MiB\"\ncpu_time = \"1s\"\nmemory = \"256MiB\"";
    let daemon = TestDaemon::builder().config(&format!("{BASH_ALLOWED}{limits}")).start().await;
    for (command, limit, words) in [
        ("head -c 2M /dev/zero > long", Some("file_size"), "1 MiB at most"),
        // Also if the shell itself exceeds the limit.
        ("exec head -c 2M /dev/zero > long", Some("file_size"), "1 MiB at most"),
        ("while :; do :; done", Some("cpu_time"), "1 s"),
        ("dd if=/dev/zero of=/dev/null bs=400M count=1", None, "at most 256 MiB of data"),
        ("exit 3", None, "Exit code 3"),
    ] {
        let done = run(&daemon, command).await;
        assert_eq!(done["status"], "failed", "{command}: {done}");
        let code = if limit.is_some() { "limit_exceeded" } else { "exit_code" };
        assert_eq!(
            (done["code"].as_str(), done["detail"]["limit"].as_str()),
            (Some(code), limit),
            "{command}: {done}"
        );
        assert!(done["output"].as_str().expect("a text").contains(words), "{command}: {done}");
    }
    let done = run(&daemon, "head -c 500K /dev/zero > short; ulimit -c").await;
    assert_eq!((&done["status"], &done["output"]), (&Value::from("completed"), &Value::from("0\n")));
}

#[tokio::test]
async fn command_output_flood_uses_bounded_daemon_memory() {
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let before = peak(&daemon);
    let flood = run(&daemon, "head -c 150M /dev/zero | tr '\\0' x; echo END");
    let other = async {
        let client = daemon.client("bob").await;
        for _ in 0..100 {
            client.call("daemon.status", serde_json::json!({})).await;
        }
    };
    let (done, ()) = tokio::join!(flood, other);
    assert_eq!(
        (&done["status"], &done["detail"]["truncated"]),
        (&Value::from("completed"), &Value::from(true))
    );
    assert_eq!(done["detail"]["stdout_bytes"], 150 * (1 << 20) + 4);
    let output = done["output"].as_str().expect("a text");
    assert!(
        output.starts_with("xxx") && output.contains("xEND\n") && output.len() < 40_000,
        "{}",
        output.len()
    );
    let more = peak(&daemon) - before;
    assert!(more < 64 << 10, "{more} KiB more at the peak");
}

/// Peak memory of the daemon in KiB.
fn peak(daemon: &TestDaemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test]
async fn child_holding_output_open_does_not_block_call() {
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let done = run(&daemon, "sleep 1000 & (setsid sleep 1000 &); echo said").await;
    assert_eq!(done["status"], "completed");
    let output = done["output"].as_str().expect("a text");
    assert!(output.starts_with("said\n") && output.contains("ended"), "{output}");
    assert_eq!(done["detail"]["survivors"], serde_json::json!([]));
    assert_eq!(daemon.tool_processes(), []);
}

#[tokio::test]
async fn process_without_marker_is_killed_with_its_call() {
    if nix::unistd::geteuid().is_root() {
        base::skip_test!("nothing is closed to root");
        return;
    }
    let daemon =
        TestDaemon::builder().config(&format!("{BASH_ALLOWED}\n[sandbox]\nlevel = \"off\"")).start().await;
    // The kernel does not show details of a process whose program is unreadable, prctl(2).
    let closed = "cp \"$(command -v sleep)\" s; chmod 111 s; (setsid ./s 1000 >/dev/null 2>&1 &); sleep 0.2; echo said";
    let done = run(&daemon, closed).await;
    assert_eq!(done["status"], "completed");
    assert!(done["output"].as_str().is_some_and(|output| output.starts_with("said\n")), "{done}");
    let children =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", daemon.pid())).expect("a list");
    assert_eq!(children.trim(), "");
}
