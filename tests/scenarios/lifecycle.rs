//! Starting and stopping the daemon.

use nix::sys::signal::Signal;
use serde_json::json;

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{until, within};

/// Runs agentd with this configuration; it must refuse to start, and the error must contain these
/// words.
async fn refuses(config: &str, words: &[&str]) {
    let daemon = TestDaemon::builder().build().await;
    std::fs::write(daemon.path("config.toml"), config).expect("written");
    let output = daemon.run_to_its_end().await;
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{config} was accepted: {told}");
    for word in words {
        assert!(told.contains(word), "{word:?} is missing in {told:?}");
    }
    assert!(!told.contains("panicked"), "{told}");
    assert!(!daemon.socket().exists());
}

#[tokio::test]
async fn invalid_configuration_is_refused_with_file_line_and_key() {
    refuses("[daemon]\nlog = \"info\"\n\n[retry]\natempts = 3\n", &["config.toml:5", "atempts", "attempts"])
        .await;
    refuses("[daemon]\nlog = 5\n", &["config.toml:2", "daemon.log"]).await;
    refuses("[daemon\n", &["config.toml:1"]).await;
    refuses("[sesion]\nmode = \"default\"\n", &["config.toml:1", "sesion", "session"]).await;
    refuses("[session]\nmode = \"reckless\"\n", &["config.toml:2", "session.mode", "reckless"]).await;
    refuses(
        "[tools]\nbash_timeout = \"ten minutes\"\n",
        &["config.toml:2", "tools.bash_timeout", "ten minutes"],
    )
    .await;
    refuses("[providers.x]\nkind = \"telepathy\"\n", &["config.toml:2", "providers.x.kind", "telepathy"])
        .await;
    refuses("\n[models]\nmain = \"nobody/model\"\n", &["config.toml:3: ", "nobody", "[models] main"]).await;
    let provider = "[providers.x]\nkind = \"anthropic\"\n";
    refuses(&format!("{provider}base_url = \"host:80\"\n"), &["config.toml:3: ", "[providers.x]"]).await;
    refuses(&format!("{provider}cassette = \"c\"\n"), &["config.toml:3: ", "cassette"]).await;
    refuses("\n[providers.x]\nkind = \"replay\"\n", &["config.toml:2: ", "cassette"]).await;
    refuses("[daemon]\nlog = \"loud\"\n", &["config.toml:2", "daemon.log", "loud"]).await;
    refuses("[limits]\nbatch = 0\n", &["config.toml:2", "limits.batch"]).await;
    refuses("[permissions]\nallow = [\"Bash(\"]\n", &["config.toml:2", "permissions.allow", "Bash("]).await;
}

#[tokio::test]
async fn ineffective_keys_are_named_by_start_and_check_config() {
    let config = "[session]\nsimple = true\n[session.budgets]\nusd = 1.0\n";
    let daemon = TestDaemon::builder().config(config).start().await;
    let line = daemon.log().lines().find(|line| line.contains("without effect")).expect("said").to_owned();
    assert!(line.contains("WARN") && line.contains("session.simple"), "{line}");
    assert!(!line.contains("budgets.usd"), "{line}");
    let looked = within("the look", || daemon.log(), daemon.command().arg("--check-config").output()).await;
    let looked = looked.expect("it runs");
    let told = String::from_utf8_lossy(&looked.stdout).into_owned();
    let expected = "without effect yet: session.simple\n";
    assert!(looked.status.success() && told.ends_with(expected), "{told}");
}

#[tokio::test]
async fn missing_configuration_file_is_named_in_error() {
    let daemon = TestDaemon::builder().build().await;
    std::fs::remove_file(daemon.path("config.toml")).expect("removed");
    let output = daemon.run_to_its_end().await;
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && told.contains("config.toml"), "{told}");
}

#[tokio::test]
async fn second_daemon_on_same_data_exits_and_first_continues() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let output = daemon.run_to_its_end().await;
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{told}");
    assert!(told.contains(&daemon.pid().to_string()), "it names the one that runs: {told}");
    assert_eq!(session.view().await["state"], "idle");
    daemon.client("bob").await.join(&session).view().await;
}

#[tokio::test]
async fn socket_and_its_folder_are_private_to_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let daemon = TestDaemon::start().await;
    let mode = |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&daemon.socket()), 0o600);
    assert_eq!(mode(&daemon.path("data/agentd/agentd.db")), 0o600);
    assert_eq!(mode(daemon.socket().parent().expect("a folder")), 0o700);
    assert_eq!(mode(&daemon.path("data/agentd")), 0o700);
}

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
    assert!(daemon.ended().await.success());
    assert_eq!(daemon.read("log.txt"), "done\n");

    daemon.launch().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.wait_for("tool.completed").await["status"], "completed");
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "done\n", "it is not run again");
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
    until("the daemon to begin to stop", || daemon.log(), || daemon.log().contains("stopping").then_some(()))
        .await;
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.ended().await.success());
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
async fn environment_selects_model_without_configuration_file() {
    let plan = TestDaemon::builder().build().await;
    let models = plan.models.openai_url();
    let mut daemon = TestDaemon::builder()
        .environment("OPENAI_API_KEY", "none-needed")
        .environment("OPENAI_BASE_URL", &models)
        .build()
        .await;
    std::fs::write(daemon.path("config.toml"), "").expect("written");
    daemon.launch().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    plan.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    let request = &plan.models.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer none-needed"));
    plan.models.assert_no_breach();
}

#[tokio::test]
async fn configured_paths_are_used_and_shown_by_status() {
    for by_flag in [true, false] {
        let daemon = TestDaemon::builder().build().await;
        let (socket, data) = (daemon.path("elsewhere/s.sock"), daemon.path("other-data"));
        let mut command = daemon.command();
        command.env("AGENTD_DATA_DIR", &data);
        match by_flag {
            true => command.arg("--socket").arg(&socket),
            false => command.env("AGENTD_SOCKET", &socket),
        };
        let log = std::fs::File::create(daemon.path("log")).expect("a log");
        let _daemon = command.stderr(log).spawn().expect("agentd starts");
        let status = daemon.client_at(&socket).await.call("daemon.status", json!({})).await;
        assert_eq!((&status["socket"], &status["data_dir"]), (&json!(socket), &json!(data)));
        assert_eq!(status["config_files"], json!([daemon.path("config.toml")]));
        assert_eq!(status["main_model"], "scripted/model");
        assert!(data.join("agentd.db").exists());
    }
}

/// The program as a service manager starts it: `stdin` becomes descriptor 3.
pub(super) fn activated(
    daemon: &TestDaemon,
    count: u32,
    stdin: impl Into<std::process::Stdio>,
) -> tokio::process::Command {
    let agentd = daemon.command();
    let agentd = agentd.as_std();
    let mut shell = tokio::process::Command::new("bash");
    shell.env_clear().envs(agentd.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let script = format!("exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS={count}; exec \"$@\"");
    shell.arg("-c").arg(script).arg("bash").arg(agentd.get_program()).args(agentd.get_args());
    shell.current_dir(daemon.path("")).stdin(stdin).kill_on_drop(true);
    shell
}

#[tokio::test]
async fn passed_socket_is_served_and_not_removed() {
    let daemon = TestDaemon::builder().build().await;
    let socket = daemon.path("handed.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    // Twice: a socket that was passed once can be passed again.
    for _ in 0..2 {
        let handed = std::os::fd::OwnedFd::from(listener.try_clone().expect("another descriptor"));
        let log = std::fs::File::create(daemon.path("log")).expect("a log");
        let mut process = activated(&daemon, 1, handed).stderr(log).spawn().expect("bash starts");
        let alice = daemon.client_at(&socket).await;
        let status = alice.call("daemon.status", json!({})).await;
        assert_eq!(status["socket"], json!(socket));
        assert!(!daemon.socket().exists(), "no other is made");
        alice.call("daemon.shutdown", json!({})).await;
        let status = within("the daemon to end", || daemon.log(), process.wait()).await.expect("ours");
        assert!(status.success(), "{}", daemon.log());
        assert!(socket.exists(), "its file is not the daemon's");
    }
}

#[tokio::test]
async fn invalid_socket_activation_descriptor_is_refused() {
    let daemon = TestDaemon::builder().build().await;
    let listener = || std::os::unix::net::UnixListener::bind(daemon.path("s.sock")).expect("bound");
    let file = std::fs::File::open(daemon.path("config.toml")).expect("there");
    for (mut command, word) in [
        (activated(&daemon, 1, file), "no socket"),
        (activated(&daemon, 2, std::os::fd::OwnedFd::from(listener())), "exactly one"),
    ] {
        let output = within("agentd to end", || daemon.log(), command.output()).await.expect("bash starts");
        let told = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success() && told.contains("socket activation: "), "{told}");
        assert!(told.contains(word), "{told}");
        assert!(!daemon.socket().exists());
    }
}

#[tokio::test]
async fn shutdown_request_stops_daemon_and_second_one_forces() {
    for mode in ["drain", "now"] {
        let mut daemon = TestDaemon::start().await;
        let alice = daemon.client("alice").await;
        alice.call("daemon.shutdown", json!({"mode": mode})).await;
        assert!(daemon.ended().await.success());
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
    until("the daemon to begin to stop", || daemon.log(), || daemon.log().contains("stopping").then_some(()))
        .await;
    bob.call("daemon.shutdown", json!({"mode": "now"})).await;
    assert!(daemon.ended().await.success());
    assert!(daemon.log().contains("asked to hurry"), "{}", daemon.log());
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
    until("the daemon to begin to stop", || daemon.log(), || daemon.log().contains("stopping").then_some(()))
        .await;
    let socket = daemon.socket();
    let look = || std::os::unix::net::UnixStream::connect(&socket).is_err().then_some(());
    until("connections to be refused", || daemon.log(), look).await;
    let refusal = alice.refused("session.create", json!({"cwd": daemon.workspace()})).await;
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32017, "shutting_down"));
    assert_eq!(idle.refused("submit", json!({"input": "hello"})).await.kind, "shutting_down");
    assert_eq!(alice.refused("daemon.reload", json!({})).await.kind, "shutting_down");
    daemon.write("go", "");
    assert!(daemon.ended().await.success());
}

/// Maximum duration of a stop.
const END_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

#[tokio::test]
async fn sigterm_with_ten_running_turns_parks_all_in_time() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let write = ("Write", json!({"file_path": daemon.workspace().join("asked"), "content": "no"}));
    daemon.models.otherwise(move |request| {
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
    assert!(took <= END_WITHIN, "it took {took:?}\n{}", daemon.log());
    assert!(!daemon.socket().exists());
    assert_eq!(daemon.tool_processes(), [], "nothing is left");
    assert_eq!(std::fs::read_to_string(daemon.path("data/agentd/agentd.lock")).expect("there"), "");

    // From now on the model answers at once.
    daemon.models.otherwise(|_| Step::text("Done."));
    daemon.launch().await;
    let bob = daemon.client("bob").await;
    for (what, id, event) in sessions {
        let session = crate::support::client::Session { client: bob.clone(), id };
        let mut seen = session.follow().await;
        match what {
            "stubborn" => {
                let ended = seen.wait_for("tool.completed").await;
                assert_eq!(ended["status"], "cancelled", "what it is, and not unknown");
            }
            "ask" => {
                let pending = session.pending().await;
                assert_eq!(pending[0]["request_id"], event["request_id"], "still pending, the same");
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
        let status = within("the daemon to end", || daemon.log(), child.wait()).await.expect("ours");
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
        until(
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
        until("the socket", || daemon.log(), || daemon.socket().exists().then_some(())).await;
        nix::sys::signal::kill(pid, Signal::SIGTERM).expect("it runs");
        let status = within("the daemon to end", || daemon.log(), child.wait()).await.expect("ours");
        assert!(status.success(), "round {round}: {status} {}", daemon.log());
    }
    eprintln!("{ignored} of 10 were met before they listened");
    daemon.launch().await;
    daemon.client("alice").await.call("daemon.status", json!({})).await;
}

#[tokio::test]
async fn sigterm_during_recovery_loses_no_turn() {
    let mut daemon = TestDaemon::start().await;
    daemon.models.otherwise(|_| Step::text("one two").hold_after(1, &Gate::new()));
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
    daemon.models.otherwise(|_| Step::text("Done."));
    daemon.launch().await;
    let bob = daemon.client("bob").await;
    for id in ids {
        let session = crate::support::client::Session { client: bob.clone(), id };
        session.follow().await.turn_ends("success").await;
    }
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn unusable_session_settings_are_refused_by_start_and_doctor() {
    use super::agentctl::ctl;
    for (config, words) in [
        ("\n[session]\nmode = \"bypass\"\n", ["config.toml:3: ", "allow_bypass"]),
        ("[models]\nmain = \"nobody/x\"\n", ["config.toml:2: ", "nobody"]),
        ("[retry]\natempts = 2\n", ["config.toml:2: ", "attempts"]),
    ] {
        refuses(config, &words).await;
        let daemon = TestDaemon::builder().build().await;
        std::fs::write(daemon.path("config.toml"), config).expect("written");
        let said = ctl(&daemon, &["doctor"]).await;
        assert_eq!(said.code, 4, "{said:?}");
        for word in words {
            assert!(said.out.contains(word), "{word:?} is missing in {}", said.out);
        }
        assert!(!daemon.path("data").exists(), "nothing is made by looking");
    }
    let daemon = TestDaemon::builder().build().await;
    let said = ctl(&daemon, &["doctor"]).await.fine();
    assert!(said.contains("the configuration is right"), "{said}");
}

#[tokio::test]
async fn stale_socket_does_not_block_start() {
    let mut daemon = TestDaemon::start().await;
    daemon.kill().await;
    assert!(daemon.socket().exists(), "nobody could remove it");
    daemon.launch().await;
    daemon.client("alice").await.call("daemon.status", json!({})).await;
}
