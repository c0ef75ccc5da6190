//! Stopping the daemon: signals, requests, and what stays of running turns.

use nix::sys::signal::Signal;
use serde_json::json;

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{poll_until, with_deadline};

#[tokio::test]
async fn sigterm_parks_open_turn_until_next_start() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("count").await;
    seen.text_of(1).await;
    let status = daemon.stop().await;
    assert!(status.success(), "{status}: {}", daemon.log());
    assert!(!daemon.socket().exists(), "the socket is removed");
    alice.hung_up().await;

    daemon.models.push(Step::text("one two three"));
    daemon.launch().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.turn_ends("success").await["text"], "one two three");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn stop_waits_for_running_command_and_keeps_result() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let command = "echo begun; until [ -e go ]; do sleep 0.01; done; echo done >> log.txt";
    daemon.models.push(Step::calls([bash(command)]));
    daemon.models.push(Step::text("It is done."));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    daemon.signal(Signal::SIGTERM);
    daemon.write("go", "");
    assert!(daemon.wait_exit().await.success());
    assert_eq!(daemon.read("log.txt"), "done\n");

    daemon.launch().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.wait_for("tool.completed").await["status"], "completed");
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "done\n", "the command does not run again");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn second_sigterm_stops_immediately_without_leftovers() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo begun; sleep 1000 & sleep 1000")]));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    daemon.signal(Signal::SIGTERM);
    poll_until(
        "the daemon to begin to stop",
        || daemon.log(),
        || daemon.log().contains("stopping").then_some(()),
    )
    .await;
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.wait_exit().await.success());
    assert_eq!(daemon.tool_processes(), []);

    // The call was stopped and its end was written: no outcome is unknown, and the turn continues.
    daemon.models.push(Step::text("Good morning."));
    daemon.launch().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.wait_for("tool.completed").await["status"], "cancelled");
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn shutdown_request_stops_daemon_and_second_one_forces() {
    for mode in ["drain", "now"] {
        let mut daemon = TestDaemon::start().await;
        let alice = daemon.client("alice").await;
        alice.call("daemon.shutdown", json!({"mode": mode})).await;
        assert!(daemon.wait_exit().await.success());
        assert!(!daemon.socket().exists());
    }
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let (alice, bob) = (daemon.client("alice").await, daemon.client("bob").await);
    let refusal = alice.refused("daemon.shutdown", json!({"mode": "soon"})).await;
    assert_eq!(refusal.kind, "invalid_params");
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo begun; until [ -e go ]; do sleep 0.01; done; sleep 1000")]));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    alice.call("daemon.shutdown", json!({"mode": "drain"})).await;
    poll_until(
        "the daemon to begin to stop",
        || daemon.log(),
        || daemon.log().contains("stopping").then_some(()),
    )
    .await;
    bob.call("daemon.shutdown", json!({"mode": "now"})).await;
    assert!(daemon.wait_exit().await.success());
    assert!(daemon.log().contains("fast shutdown requested"), "{}", daemon.log());
    assert_eq!(daemon.tool_processes(), []);
}

#[tokio::test]
async fn stopping_daemon_refuses_new_connections_and_work() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let alice = daemon.client("alice").await;
    let (session, idle) = (alice.create(&daemon).await, alice.create(&daemon).await);
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo begun; until [ -e go ]; do sleep 0.01; done")]));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    daemon.signal(Signal::SIGTERM);
    poll_until(
        "the daemon to begin to stop",
        || daemon.log(),
        || daemon.log().contains("stopping").then_some(()),
    )
    .await;
    let socket = daemon.socket();
    let look = || std::os::unix::net::UnixStream::connect(&socket).is_err().then_some(());
    poll_until("connections to be refused", || daemon.log(), look).await;
    // The indexes are closed before the sessions, so a session may still be created for a moment. It is kept.
    let create = async {
        loop {
            let created = alice.try_call("session.create", json!({"cwd": daemon.workspace()})).await;
            if let Err(refusal) = created {
                return refusal;
            }
        }
    };
    let refusal = with_deadline("new work to be refused", || daemon.log(), create).await;
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32017, "shutting_down"));
    assert_eq!(idle.refused("submit", json!({"input": "hello"})).await.kind, "shutting_down");
    assert_eq!(alice.refused("daemon.reload", json!({})).await.kind, "shutting_down");
    daemon.write("go", "");
    assert!(daemon.wait_exit().await.success());
}

/// Maximum duration of a stop.
const STOP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

#[tokio::test]
async fn sigterm_with_ten_running_turns_parks_all_in_time() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let write = ("Write", json!({"file_path": daemon.workspace().join("asked"), "content": "no"}));
    daemon.models.set_fallback(move |request| {
        let said = request.body["messages"].to_string();
        let has_result = !request.tool_results().is_empty();
        match () {
            () if said.contains("hang") && !said.contains("again") => {
                Step::text("a b c").hold_after(1, &Gate::new())
            }
            () if said.contains("silent") => Step::text("at last").hold(&Gate::new()),
            () if said.contains("stubborn") && !has_result => {
                Step::calls([bash("trap '' TERM INT HUP; echo begun; while :; do sleep 0.2; done")])
            }
            () if said.contains("ask") && !has_result => Step::calls([write.clone()]),
            () => Step::text("Done."),
        }
    });
    let alice = daemon.client("alice").await;
    let mut sessions = Vec::new();
    for (what, ready) in [
        ("hang", "message.text_delta"),
        ("hang", "message.text_delta"),
        ("hang", "message.text_delta"),
        ("silent", "turn.phase"),
        ("stubborn", "tool.progress"),
        ("stubborn", "tool.progress"),
        ("stubborn", "tool.progress"),
        ("ask", "permission.requested"),
        ("ask", "permission.requested"),
        ("ask", "permission.requested"),
    ] {
        let session = alice.create(&daemon).await;
        let mut seen = session.follow().await;
        session.submit(what).await;
        let event = seen.wait_for(ready).await;
        sessions.push((what, session.id.clone(), event));
    }
    // One client reads nothing, and another sends half a message.
    let mut stuck = daemon.raw().await;
    for n in 0..32 {
        stuck.line(json!({"jsonrpc": "2.0", "id": n, "method": "rpc.discover"})).await;
    }
    let mut half = daemon.raw().await;
    half.send("{\"jsonrpc\": ").await;

    let began = std::time::Instant::now();
    let status = daemon.stop().await;
    let took = began.elapsed();
    assert!(status.success(), "{status}: {}", daemon.log());
    assert!(took <= STOP_TIMEOUT, "it took {took:?}\n{}", daemon.log());
    assert!(!daemon.socket().exists());
    assert_eq!(daemon.tool_processes(), [], "nothing is left");
    assert_eq!(std::fs::read_to_string(daemon.path("data/agentd/agentd.lock")).expect("there"), "");

    // From now on the model answers at once.
    daemon.models.set_fallback(|_| Step::text("Done."));
    daemon.launch().await;
    let bob = daemon.client("bob").await;
    for (what, id, event) in sessions {
        let session = crate::support::client::Session { client: bob.clone(), id };
        let mut seen = session.follow().await;
        match what {
            "stubborn" => {
                let ended = seen.wait_for("tool.completed").await;
                assert_eq!(ended["status"], "cancelled", "the outcome is known");
            }
            "ask" => {
                let pending = session.pending().await;
                assert_eq!(pending[0]["request_id"], event["request_id"], "the same request is pending");
                session.answer(&event, json!({"decision": "deny"})).await;
            }
            _ => {}
        }
        seen.turn_ends("success").await;
    }
    assert_eq!(daemon.read("asked"), "");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn sigterm_during_start_leaves_no_socket_or_lock() {
    use std::os::unix::process::ExitStatusExt as _;
    let mut daemon = TestDaemon::builder().build().await;
    let mut clean = 0;
    for round in 0..30u32 {
        let log = std::fs::File::options().create(true).append(true).open(daemon.path("log")).expect("a log");
        let mut child =
            daemon.command().stdout(std::process::Stdio::null()).stderr(log).spawn().expect("starts");
        // At any moment between the first instruction and readiness.
        tokio::time::sleep(std::time::Duration::from_millis(u64::from(round) * 3)).await;
        let pid = i32::try_from(child.id().expect("it runs")).expect("a process id");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGTERM).expect("it runs");
        let status = with_deadline("the daemon to end", || daemon.log(), child.wait()).await.expect("waited");
        if status.success() {
            clean += 1;
            assert!(!daemon.socket().exists(), "round {round}: {}", daemon.log());
            let lock = std::fs::read_to_string(daemon.path("data/agentd/agentd.lock")).unwrap_or_default();
            assert_eq!(lock, "", "round {round}");
        } else {
            // Before it handled signals it had created no files.
            assert_eq!(status.signal(), Some(15), "round {round}: {status} {}", daemon.log());
        }
    }
    eprintln!("{clean} of 30 ended by themselves");
    daemon.launch().await;
    daemon.client("alice").await.call("daemon.status", json!({})).await;
}

#[tokio::test]
async fn sighup_during_start_does_not_stop_daemon() {
    let mut daemon = TestDaemon::builder().build().await;
    let mut ignored = 0;
    for round in 0..10u32 {
        let log = std::fs::File::options().create(true).append(true).open(daemon.path("log")).expect("a log");
        let mut child =
            daemon.command().stdout(std::process::Stdio::null()).stderr(log).spawn().expect("starts");
        let pid = child.id().expect("it runs");
        // Wait for the earliest moment at which it could have configured SIGHUP.
        poll_until(
            "it ignores or hears hangups",
            || daemon.log(),
            || {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let has = |field: &str| {
                    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0");
                    u64::from_str_radix(line.trim(), 16).unwrap_or(0) & 1 == 1
                };
                ignored += u32::from(has("SigIgn:"));
                (has("SigIgn:") || has("SigCgt:")).then_some(())
            },
        )
        .await;
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).expect("a process id"));
        for _ in 0..=round {
            nix::sys::signal::kill(pid, Signal::SIGHUP).expect("it runs");
        }
        poll_until("the socket", || daemon.log(), || daemon.socket().exists().then_some(())).await;
        nix::sys::signal::kill(pid, Signal::SIGTERM).expect("it runs");
        let status = with_deadline("the daemon to end", || daemon.log(), child.wait()).await.expect("waited");
        assert!(status.success(), "round {round}: {status} {}", daemon.log());
    }
    eprintln!("{ignored} of 10 were met before they listened");
    daemon.launch().await;
    daemon.client("alice").await.call("daemon.status", json!({})).await;
}

#[tokio::test]
async fn sigterm_during_recovery_loses_no_turn() {
    let mut daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("one two").hold_after(1, &Gate::new()));
    let alice = daemon.client("alice").await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let session = alice.create(&daemon).await;
        session.submit("count").await;
        ids.push(session.id.clone());
    }
    daemon.models.wait_for_requests(20).await;
    daemon.kill().await;
    for _ in 0..2 {
        daemon.launch().await;
        assert!(daemon.stop().await.success(), "{}", daemon.log());
    }
    daemon.models.set_fallback(|_| Step::text("Done."));
    daemon.launch().await;
    let bob = daemon.client("bob").await;
    for id in ids {
        let session = crate::support::client::Session { client: bob.clone(), id };
        session.follow().await.turn_ends("success").await;
    }
    daemon.models.assert_no_breach();
}
