//! Starting and stopping the daemon itself.

use nix::sys::signal::Signal;
use serde_json::json;

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{until, within};

/// Runs agentd with this configuration; it must refuse to start and say these words.
async fn refuses(config: &str, words: &[&str]) {
    let house = TestDaemon::builder().build().await;
    std::fs::write(house.path("config.toml"), config).expect("written");
    let output = house.run_to_its_end().await;
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{config} was accepted: {told}");
    for word in words {
        assert!(told.contains(word), "{word:?} is missing in {told:?}");
    }
    assert!(!told.contains("panicked"), "{told}");
    assert!(!house.socket().exists());
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_with_file_line_and_key() {
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
async fn keys_without_effect_are_named_at_the_start_and_by_the_look() {
    let config = "[session]\nsimple = true\n[session.budgets]\nusd = 1.0\n";
    let house = TestDaemon::builder().config(config).start().await;
    let line = house.log().lines().find(|line| line.contains("without effect")).expect("said").to_owned();
    assert!(line.contains("WARN") && line.contains("session.simple"), "{line}");
    assert!(!line.contains("budgets.usd"), "{line}");
    let looked = within("the look", || house.log(), house.command().arg("--check-config").output()).await;
    let looked = looked.expect("it runs");
    let told = String::from_utf8_lossy(&looked.stdout).into_owned();
    let expected = "without effect yet: session.simple\n";
    assert!(looked.status.success() && told.ends_with(expected), "{told}");
}

#[tokio::test]
async fn a_configuration_file_that_is_not_there_is_named() {
    let house = TestDaemon::builder().build().await;
    std::fs::remove_file(house.path("config.toml")).expect("removed");
    let output = house.run_to_its_end().await;
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && told.contains("config.toml"), "{told}");
}

#[tokio::test]
async fn a_second_daemon_on_the_same_data_gives_way_and_the_first_goes_on() {
    let house = TestDaemon::start().await;
    let alice = house.client("alice").await;
    let session = alice.create(&house).await;
    let output = house.run_to_its_end().await;
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{told}");
    assert!(told.contains(&house.pid().to_string()), "it names the one that runs: {told}");
    assert_eq!(session.view().await["state"], "idle");
    house.client("bob").await.join(&session).view().await;
}

#[tokio::test]
async fn the_socket_and_its_folder_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = TestDaemon::start().await;
    let mode = |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&house.socket()), 0o600);
    assert_eq!(mode(&house.path("data/agentd/agentd.db")), 0o600);
    assert_eq!(mode(house.socket().parent().expect("a folder")), 0o700);
    assert_eq!(mode(&house.path("data/agentd")), 0o700);
}

#[tokio::test]
async fn sigterm_stops_it_cleanly_and_an_open_turn_goes_on_after_the_next_start() {
    let mut house = TestDaemon::start().await;
    let alice = house.client("alice").await;
    let session = alice.create(&house).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    house.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("count").await;
    seen.text_of(1).await;
    let status = house.stop().await;
    assert!(status.success(), "{status}: {}", house.log());
    assert!(!house.socket().exists(), "the socket is removed");
    alice.hung_up().await;

    house.models.push(Step::text("one two three"));
    house.launch().await;
    let session = house.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.turn_ends("success").await["text"], "one two three");
    house.models.assert_no_breach();
}

#[tokio::test]
async fn a_stop_waits_a_while_for_a_running_command_and_keeps_its_result() {
    let mut house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    let command = "echo begun; until [ -e go ]; do sleep 0.01; done; echo done >> log.txt";
    house.models.push(Step::calls([bash(command)]));
    house.models.push(Step::text("It is done."));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    house.signal(Signal::SIGTERM);
    house.write("go", "");
    assert!(house.ended().await.success());
    assert_eq!(house.read("log.txt"), "done\n");

    house.launch().await;
    let session = house.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.wait_for("tool.completed").await["status"], "completed");
    seen.turn_ends("success").await;
    assert_eq!(house.read("log.txt"), "done\n", "it is not run again");
    house.models.assert_no_breach();
}

#[tokio::test]
async fn a_second_sigterm_does_not_wait_and_leaves_nothing_behind() {
    let mut house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("echo begun; sleep 1000 & sleep 1000")]));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    house.signal(Signal::SIGTERM);
    until("the daemon to begin to stop", || house.log(), || house.log().contains("stopping").then_some(()))
        .await;
    house.signal(Signal::SIGTERM);
    assert!(house.ended().await.success());
    assert_eq!(house.tool_processes(), []);

    // The call was told to stop and its end was written: nothing is unknown, and the turn goes on.
    house.models.push(Step::text("Good morning."));
    house.launch().await;
    let session = house.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.wait_for("tool.completed").await["status"], "cancelled");
    seen.turn_ends("success").await;
    house.models.assert_no_breach();
}

#[tokio::test]
async fn without_a_configuration_the_environment_says_where_the_model_is() {
    let plan = TestDaemon::builder().build().await;
    let models = plan.models.openai_url();
    let mut house = TestDaemon::builder()
        .environment("OPENAI_API_KEY", "none-needed")
        .environment("OPENAI_BASE_URL", &models)
        .build()
        .await;
    std::fs::write(house.path("config.toml"), "").expect("written");
    house.launch().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    plan.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    let request = &plan.models.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer none-needed"));
    plan.models.assert_no_breach();
}

#[tokio::test]
async fn places_can_be_chosen_and_status_tells_them() {
    for by_flag in [true, false] {
        let house = TestDaemon::builder().build().await;
        let (socket, data) = (house.path("elsewhere/s.sock"), house.path("other-data"));
        let mut command = house.command();
        command.env("AGENTD_DATA_DIR", &data);
        match by_flag {
            true => command.arg("--socket").arg(&socket),
            false => command.env("AGENTD_SOCKET", &socket),
        };
        let log = std::fs::File::create(house.path("log")).expect("a log");
        let _daemon = command.stderr(log).spawn().expect("agentd starts");
        let status = house.client_at(&socket).await.call("daemon.status", json!({})).await;
        assert_eq!((&status["socket"], &status["data_dir"]), (&json!(socket), &json!(data)));
        assert_eq!(status["config_files"], json!([house.path("config.toml")]));
        assert_eq!(status["main_model"], "scripted/model");
        assert!(data.join("agentd.db").exists());
    }
}

/// The program as a service manager starts it: `stdin` becomes descriptor 3.
pub(super) fn activated(
    house: &TestDaemon,
    count: u32,
    stdin: impl Into<std::process::Stdio>,
) -> tokio::process::Command {
    let agentd = house.command();
    let agentd = agentd.as_std();
    let mut shell = tokio::process::Command::new("bash");
    shell.env_clear().envs(agentd.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let script = format!("exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS={count}; exec \"$@\"");
    shell.arg("-c").arg(script).arg("bash").arg(agentd.get_program()).args(agentd.get_args());
    shell.current_dir(house.path("")).stdin(stdin).kill_on_drop(true);
    shell
}

#[tokio::test]
async fn a_socket_that_is_handed_over_is_served_and_stays() {
    let house = TestDaemon::builder().build().await;
    let socket = house.path("handed.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    // Twice: what was handed over once can be handed over again.
    for _ in 0..2 {
        let handed = std::os::fd::OwnedFd::from(listener.try_clone().expect("another descriptor"));
        let log = std::fs::File::create(house.path("log")).expect("a log");
        let mut daemon = activated(&house, 1, handed).stderr(log).spawn().expect("bash starts");
        let alice = house.client_at(&socket).await;
        let status = alice.call("daemon.status", json!({})).await;
        assert_eq!(status["socket"], json!(socket));
        assert!(!house.socket().exists(), "no other is made");
        alice.call("daemon.shutdown", json!({})).await;
        let status = within("the daemon to end", || house.log(), daemon.wait()).await.expect("ours");
        assert!(status.success(), "{}", house.log());
        assert!(socket.exists(), "its file is not the daemon's");
    }
}

#[tokio::test]
async fn something_else_that_is_handed_over_is_refused() {
    let house = TestDaemon::builder().build().await;
    let listener = || std::os::unix::net::UnixListener::bind(house.path("s.sock")).expect("bound");
    let file = std::fs::File::open(house.path("config.toml")).expect("there");
    for (mut command, word) in [
        (activated(&house, 1, file), "no socket"),
        (activated(&house, 2, std::os::fd::OwnedFd::from(listener())), "exactly one"),
    ] {
        let output = within("agentd to end", || house.log(), command.output()).await.expect("bash starts");
        let told = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success() && told.contains("socket activation: "), "{told}");
        assert!(told.contains(word), "{told}");
        assert!(!house.socket().exists());
    }
}

#[tokio::test]
async fn a_client_may_ask_it_to_stop_and_another_to_hurry() {
    for mode in ["drain", "now"] {
        let mut house = TestDaemon::start().await;
        let alice = house.client("alice").await;
        alice.call("daemon.shutdown", json!({"mode": mode})).await;
        assert!(house.ended().await.success());
        assert!(!house.socket().exists());
    }
    let mut house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let (alice, bob) = (house.client("alice").await, house.client("bob").await);
    let refusal = alice.refused("daemon.shutdown", json!({"mode": "soon"})).await;
    assert_eq!(refusal.kind, "invalid_params");
    let session = alice.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("echo begun; until [ -e go ]; do sleep 0.01; done; sleep 1000")]));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    alice.call("daemon.shutdown", json!({"mode": "drain"})).await;
    until("the daemon to begin to stop", || house.log(), || house.log().contains("stopping").then_some(()))
        .await;
    bob.call("daemon.shutdown", json!({"mode": "now"})).await;
    assert!(house.ended().await.success());
    assert!(house.log().contains("asked to hurry"), "{}", house.log());
    assert_eq!(house.tool_processes(), []);
}

#[tokio::test]
async fn while_it_stops_nobody_new_gets_in_and_nothing_new_begins() {
    let mut house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let alice = house.client("alice").await;
    let (session, idle) = (alice.create(&house).await, alice.create(&house).await);
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("echo begun; until [ -e go ]; do sleep 0.01; done")]));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    house.signal(Signal::SIGTERM);
    until("the daemon to begin to stop", || house.log(), || house.log().contains("stopping").then_some(()))
        .await;
    let socket = house.socket();
    let look = || std::os::unix::net::UnixStream::connect(&socket).is_err().then_some(());
    until("connections to be refused", || house.log(), look).await;
    let refusal = alice.refused("session.create", json!({"cwd": house.workspace()})).await;
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32017, "shutting_down"));
    assert_eq!(idle.refused("submit", json!({"input": "hello"})).await.kind, "shutting_down");
    assert_eq!(alice.refused("daemon.reload", json!({})).await.kind, "shutting_down");
    house.write("go", "");
    assert!(house.ended().await.success());
}

/// The longest that a stop may take, S12.
const END_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

#[tokio::test]
async fn sigterm_with_ten_running_turns_ends_in_time_and_all_can_go_on() {
    let mut house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let write = ("Write", json!({"file_path": house.workspace().join("asked"), "content": "no"}));
    house.models.otherwise(move |request| {
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
    let alice = house.client("alice").await;
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
        let session = alice.create(&house).await;
        let mut seen = session.follow().await;
        session.submit(what).await;
        let event = seen.wait_for(ready).await;
        sessions.push((what, session.id.clone(), event));
    }
    // One client takes nothing in, another says half a word.
    let mut stuck = house.raw().await;
    for n in 0..32 {
        stuck.line(json!({"jsonrpc": "2.0", "id": n, "method": "rpc.discover"})).await;
    }
    let mut half = house.raw().await;
    half.send("{\"jsonrpc\": ").await;

    let began = std::time::Instant::now();
    let status = house.stop().await;
    let took = began.elapsed();
    assert!(status.success(), "{status}: {}", house.log());
    assert!(took <= END_WITHIN, "it took {took:?}\n{}", house.log());
    assert!(!house.socket().exists());
    assert_eq!(house.tool_processes(), [], "nothing is left");
    assert_eq!(std::fs::read_to_string(house.path("data/agentd/agentd.lock")).expect("there"), "");

    // From now on the model answers at once.
    house.models.otherwise(|_| Step::text("Done."));
    house.launch().await;
    let bob = house.client("bob").await;
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
    assert_eq!(house.read("asked"), "");
    house.models.assert_no_breach();
}

#[tokio::test]
async fn sigterm_during_the_start_leaves_nothing_in_the_way() {
    use std::os::unix::process::ExitStatusExt as _;
    let mut house = TestDaemon::builder().build().await;
    let mut clean = 0;
    for round in 0..30u32 {
        let log = std::fs::File::options().create(true).append(true).open(house.path("log")).expect("a log");
        let mut child =
            house.command().stdout(std::process::Stdio::null()).stderr(log).spawn().expect("starts");
        // Somewhere between its first instruction and its being ready; any moment is a right one.
        tokio::time::sleep(std::time::Duration::from_millis(u64::from(round) * 3)).await;
        let pid = i32::try_from(child.id().expect("it runs")).expect("a process id");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGTERM).expect("it runs");
        let status = within("the daemon to end", || house.log(), child.wait()).await.expect("ours");
        if status.success() {
            clean += 1;
            assert!(!house.socket().exists(), "round {round}: {}", house.log());
            let lock = std::fs::read_to_string(house.path("data/agentd/agentd.lock")).unwrap_or_default();
            assert_eq!(lock, "", "round {round}");
        } else {
            // Before it listened to signals it had made nothing.
            assert_eq!(status.signal(), Some(15), "round {round}: {status} {}", house.log());
        }
    }
    eprintln!("{clean} of 30 ended by themselves");
    house.launch().await;
    house.client("alice").await.call("daemon.status", json!({})).await;
}

#[tokio::test]
async fn a_hangup_during_the_start_does_not_end_it() {
    let mut house = TestDaemon::builder().build().await;
    let mut ignored = 0;
    for round in 0..10u32 {
        let log = std::fs::File::options().create(true).append(true).open(house.path("log")).expect("a log");
        let mut child =
            house.command().stdout(std::process::Stdio::null()).stderr(log).spawn().expect("starts");
        let pid = child.id().expect("it runs");
        // From the first moment on that it could have said what hangups are to do.
        until(
            "it ignores or hears hangups",
            || house.log(),
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
        until("the socket", || house.log(), || house.socket().exists().then_some(())).await;
        nix::sys::signal::kill(pid, Signal::SIGTERM).expect("it runs");
        let status = within("the daemon to end", || house.log(), child.wait()).await.expect("ours");
        assert!(status.success(), "round {round}: {status} {}", house.log());
    }
    eprintln!("{ignored} of 10 were met before they listened");
    house.launch().await;
    house.client("alice").await.call("daemon.status", json!({})).await;
}

#[tokio::test]
async fn sigterm_during_the_recovery_loses_nothing() {
    let mut house = TestDaemon::start().await;
    house.models.otherwise(|_| Step::text("one two").hold_after(1, &Gate::new()));
    let alice = house.client("alice").await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let session = alice.create(&house).await;
        session.submit("count").await;
        ids.push(session.id.clone());
    }
    house.models.wait_for_requests(20).await;
    house.kill().await;
    for _ in 0..2 {
        house.launch().await;
        assert!(house.stop().await.success(), "{}", house.log());
    }
    house.models.otherwise(|_| Step::text("Done."));
    house.launch().await;
    let bob = house.client("bob").await;
    for id in ids {
        let session = crate::support::client::Session { client: bob.clone(), id };
        session.follow().await.turn_ends("success").await;
    }
    house.models.assert_no_breach();
}

#[tokio::test]
async fn what_sessions_would_be_refused_with_is_refused_at_the_start_and_by_the_doctor() {
    use super::agentctl::ctl;
    for (config, words) in [
        ("\n[session]\nmode = \"bypass\"\n", ["config.toml:3: ", "allow_bypass"]),
        ("[models]\nmain = \"nobody/x\"\n", ["config.toml:2: ", "nobody"]),
        ("[retry]\natempts = 2\n", ["config.toml:2: ", "attempts"]),
    ] {
        refuses(config, &words).await;
        let house = TestDaemon::builder().build().await;
        std::fs::write(house.path("config.toml"), config).expect("written");
        let said = ctl(&house, &["doctor"]).await;
        assert_eq!(said.code, 4, "{said:?}");
        for word in words {
            assert!(said.out.contains(word), "{word:?} is missing in {}", said.out);
        }
        assert!(!house.path("data").exists(), "nothing is made by looking");
    }
    let house = TestDaemon::builder().build().await;
    let said = ctl(&house, &["doctor"]).await.fine();
    assert!(said.contains("the configuration is right"), "{said}");
}

#[tokio::test]
async fn a_socket_left_over_by_kill_9_does_not_block_the_start() {
    let mut house = TestDaemon::start().await;
    house.kill().await;
    assert!(house.socket().exists(), "nobody could remove it");
    house.launch().await;
    house.client("alice").await.call("daemon.status", json!({})).await;
}
