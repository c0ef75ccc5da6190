//! Starting and stopping the daemon.

use serde_json::{Value, json};

use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;
use crate::support::wait::with_deadline;

/// Runs agentd with this configuration; it must refuse to start, and the error must contain these
/// words.
async fn refuses(config: &str, words: &[&str]) {
    let daemon = TestDaemon::builder().build().await;
    std::fs::write(daemon.path("config.toml"), config).expect("written");
    let output = daemon.run_until_exit().await;
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
    refuses("\n[models]\nmain = \"missing/model\"\n", &["config.toml:3: ", "missing", "[models] main"]).await;
    let provider = "[providers.x]\nkind = \"anthropic\"\n";
    refuses(&format!("{provider}base_url = \"host:80\"\n"), &["config.toml:3: ", "[providers.x]"]).await;
    refuses(&format!("{provider}cassette = \"c\"\n"), &["config.toml:3: ", "cassette"]).await;
    refuses("\n[providers.x]\nkind = \"replay\"\n", &["config.toml:2: ", "cassette"]).await;
    refuses("[daemon]\nlog = \"loud\"\n", &["config.toml:2", "daemon.log", "loud"]).await;
    refuses("[limits]\nbatch = 0\n", &["config.toml:2", "limits.batch"]).await;
    refuses("[permissions]\nallow = [\"Bash(\"]\n", &["config.toml:2", "permissions.allow", "Bash("]).await;
}

#[tokio::test]
async fn missing_configuration_file_is_named_in_error() {
    let daemon = TestDaemon::builder().build().await;
    std::fs::remove_file(daemon.path("config.toml")).expect("removed");
    let output = daemon.run_until_exit().await;
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && told.contains("config.toml"), "{told}");
}

#[tokio::test]
async fn second_daemon_on_same_data_exits_and_first_continues() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let output = daemon.run_until_exit().await;
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{told}");
    assert!(told.contains(&daemon.pid().to_string()), "the error names the running daemon: {told}");
    assert_eq!(session.view().await["state"], "idle");
    daemon.client("bob").await.join(&session).view().await;
}

#[tokio::test]
async fn socket_and_its_folder_are_private_to_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let daemon = TestDaemon::start().await;
    let mode = |path: &std::path::Path| path.metadata().expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(&daemon.socket()), 0o600);
    assert_eq!(mode(&daemon.path("data/agentd/agentd.db")), 0o600);
    assert_eq!(mode(daemon.socket().parent().expect("a folder")), 0o700);
    assert_eq!(mode(&daemon.path("data/agentd")), 0o700);
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
        assert!(!daemon.socket().exists(), "no other socket is created");
        alice.call("daemon.shutdown", json!({})).await;
        let status = with_deadline("the daemon to end", || daemon.log(), process.wait()).await.expect("exit");
        assert!(status.success(), "{}", daemon.log());
        assert!(socket.exists(), "its file is not the daemon's");
    }
}

/// systemd keeps a socket while the daemon stops. A connection to it would start the next daemon.
#[tokio::test]
async fn agentctl_stops_daemon_with_passed_socket_and_does_not_start_the_next() {
    let daemon = TestDaemon::builder().build().await;
    let folder = daemon.socket().parent().expect("a folder").to_owned();
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("changed");
    let listener = std::os::unix::net::UnixListener::bind(daemon.socket()).expect("bound");
    let handed = std::os::fd::OwnedFd::from(listener.try_clone().expect("another descriptor"));
    let log = std::fs::File::create(daemon.path("log")).expect("a log");
    let mut process = activated(&daemon, 1, handed).stderr(log).spawn().expect("bash starts");
    daemon.client("alice").await.call("daemon.status", json!({})).await;
    let said = super::agentctl::ctl(&daemon, &["daemon", "stop"]).await;
    assert!(said.code == 0 && said.out.contains("stopped"), "{said:?}");
    let status = with_deadline("the daemon to end", || daemon.log(), process.wait()).await.expect("exit");
    assert!(status.success(), "{}", daemon.log());
    listener.set_nonblocking(true).expect("changed");
    let next = listener.accept().expect_err("no client waits for a daemon");
    assert_eq!(next.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn service_manager_hears_readiness_beats_and_stop() {
    let daemon = TestDaemon::builder().build().await;
    let manager = tokio::net::UnixDatagram::bind(daemon.path("notify")).expect("bound");
    let log = std::fs::File::create(daemon.path("log")).expect("a log");
    let mut command = daemon.command();
    command.env("NOTIFY_SOCKET", daemon.path("notify")).env("WATCHDOG_USEC", "200000");
    let mut process = command.stderr(log).spawn().expect("agentd starts");
    let message = async || {
        let mut text = [0; 64];
        let length =
            with_deadline("a message", || daemon.log(), manager.recv(&mut text)).await.expect("read");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    assert_eq!(message().await, "READY=1");
    for _ in 0..3 {
        assert_eq!(message().await, "WATCHDOG=1");
    }
    daemon.client("alice").await.call("daemon.shutdown", json!({})).await;
    loop {
        match message().await.as_str() {
            "WATCHDOG=1" => {}
            last => break assert_eq!(last, "STOPPING=1"),
        }
    }
    let status = with_deadline("the daemon to end", || daemon.log(), process.wait()).await.expect("exit");
    assert!(status.success(), "{}", daemon.log());
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
        let output =
            with_deadline("agentd to end", || daemon.log(), command.output()).await.expect("bash starts");
        let told = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success() && told.contains("socket activation: "), "{told}");
        assert!(told.contains(word), "{told}");
        assert!(!daemon.socket().exists());
    }
}

#[tokio::test]
async fn unusable_session_settings_are_refused_by_start_and_doctor() {
    use super::agentctl::ctl;
    for (config, words) in [
        ("\n[session]\nmode = \"bypass\"\n", ["config.toml:3: ", "allow_bypass"]),
        ("[models]\nmain = \"missing/model\"\n", ["config.toml:2: ", "missing"]),
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
        assert!(!daemon.path("data").exists(), "the check creates no folder");
    }
    let daemon = TestDaemon::builder().build().await;
    let said = ctl(&daemon, &["doctor"]).await.stdout();
    assert!(said.contains("the configuration is right"), "{said}");
}

#[tokio::test]
async fn stale_socket_does_not_block_start() {
    let mut daemon = TestDaemon::start().await;
    daemon.kill().await;
    assert!(daemon.socket().exists(), "it could not be removed");
    daemon.launch().await;
    daemon.client("alice").await.call("daemon.status", json!({})).await;
}

#[tokio::test]
async fn status_answers_before_sandbox_levels_are_tested() {
    // The test of the levels waits in this program for a file, and then runs the real one.
    let folder = tempfile::tempdir().expect("a folder");
    let (program, may_end) = (folder.path().join("bwrap"), folder.path().join("may-end"));
    let path = std::env::var("PATH").expect("a path");
    let script = format!(
        "#!/bin/sh\nwhile [ ! -e '{}' ]; do sleep 0.05; done\nPATH='{path}' exec bwrap \"$@\"\n",
        may_end.display()
    );
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("changed");
    let path = format!("{}:{path}", folder.path().display());
    let daemon = TestDaemon::builder().environment("PATH", &path).start().await;
    let client = daemon.client("alice").await;
    let first = client.call("daemon.status", json!({})).await["sandbox"].clone();
    std::fs::write(may_end, "").expect("written");
    assert_eq!(first["tested"], false, "{first}");
    let says_untested = |sandbox: &Value| {
        let texts = [&sandbox["attended"]["text"], &sandbox["bubblewrap"], &sandbox["landlock"]];
        texts.map(|text| text.as_str().expect("a text").contains("not tested yet"))
    };
    assert_eq!(says_untested(&first), [true; 3], "{first}");
    assert!(first["attended"]["level"].is_null(), "an untested level is not claimed: {first}");
    let tested = client.sandbox().await;
    assert_eq!(says_untested(&tested), [false; 3], "{tested}");
    assert!(tested["attended"]["level"].is_u64(), "{tested}");
}
