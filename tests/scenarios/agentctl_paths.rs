//! How `agentctl` finds the daemon, its configuration and the working folder, and its errors if they
//! are missing.

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::process::Command;

use super::agentctl::{CliOutput, command, ctl, ended};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// Runs without the variable that locates the socket, as in cron jobs.
async fn without_runtime_dir(daemon: &TestDaemon, args: &[&str]) -> CliOutput {
    let mut command = command(daemon, args);
    command.env_remove("XDG_RUNTIME_DIR");
    ended(daemon, command.spawn().expect("agentctl starts")).await
}

#[tokio::test]
async fn client_without_runtime_dir_finds_the_daemon_by_its_lock_file() {
    let mut daemon = TestDaemon::start().await;
    daemon.models.push(Step::text("Done."));
    let made = ctl(&daemon, &["run", "--output", "json", "go"]).await.json();
    for args in [&["--no-start", "ps", "--json"][..], &["ps", "--json"]] {
        let listed = without_runtime_dir(&daemon, args).await.json();
        assert_eq!(listed[0]["session_id"], made["session_id"], "{args:?}");
    }
    let doctor = without_runtime_dir(&daemon, &["doctor"]).await;
    assert!(!doctor.out.contains("kill -TERM") && doctor.out.contains(" answers, process "), "{doctor:?}");
    assert!(without_runtime_dir(&daemon, &["daemon", "stop"]).await.stdout().contains("stopped"));
    assert!(daemon.wait_exit().await.success());
}

#[tokio::test]
async fn missing_socket_error_names_socket_of_running_daemon() {
    let daemon = TestDaemon::start().await;
    let other = daemon.path("other.sock").display().to_string();
    let socket = daemon.socket().display().to_string();
    for args in [&["--no-start", "ps"][..], &["ps"], &["daemon", "stop"]] {
        let args: Vec<&str> = ["--socket", &other].iter().chain(args).copied().collect();
        let said = ctl(&daemon, &args).await;
        assert_eq!((said.code, said.out.as_str()), (69, ""), "{args:?}: {said:?}");
        assert!(said.err.contains(&format!("use --socket {socket}")), "{said:?}");
        assert!(!said.err.contains("kill") && !said.err.contains("deleted"), "{said:?}");
    }
    let doctor = ctl(&daemon, &["--socket", &other, "doctor"]).await;
    assert!(!doctor.out.contains("kill -TERM"), "{doctor:?}");
    assert_eq!(ctl(&daemon, &["--no-start", "ps", "--json"]).await.json(), json!([]), "still running");
}

#[tokio::test]
async fn removed_socket_is_made_again_and_stopped_daemon_is_reported() {
    let daemon = TestDaemon::start().await;
    let pid = daemon.pid();
    std::fs::remove_file(daemon.socket()).expect("removed");
    let said = ctl(&daemon, &["--no-start", "ps", "--json"]).await;
    assert!(said.code == 0 && said.out.contains("[]"), "the daemon makes its socket again: {said:?}");
    std::fs::remove_file(daemon.socket()).expect("removed");
    daemon.signal(Signal::SIGSTOP);
    let said = ctl(&daemon, &["--no-start", "ps"]).await;
    let advice = format!("was deleted: kill -TERM {pid}, then start it");
    assert!(said.code == 69 && said.err.contains(&advice), "{said:?}");
    // The lock file of a version that did not write its socket path into it.
    std::fs::write(daemon.path("data/agentd/agentd.lock"), format!("{pid}\n")).expect("written");
    let said = ctl(&daemon, &["--no-start", "ps"]).await;
    assert!(said.code == 69 && said.err.contains(&format!("agentd (process {pid})")), "{said:?}");
    assert!(!said.err.contains("kill"), "{said:?}");
    daemon.signal(Signal::SIGCONT);
    assert!(
        ctl(&daemon, &["daemon", "stop"]).await.stdout().contains("stopped"),
        "the client stops the daemon with a signal"
    );
}

#[tokio::test]
async fn refused_first_task_leaves_no_session() {
    let daemon = TestDaemon::start().await;
    for args in
        [&["run", "--image", "/no/such.png", "look"][..], &["run", "--background", "--file", "/no/such", "x"]]
    {
        let said = ctl(&daemon, args).await;
        assert!(said.code == 64 && said.err.contains("/no/such"), "{said:?}");
        assert_eq!(ctl(&daemon, &["ps", "-a", "--json"]).await.json(), json!([]), "{args:?}");
    }
    let said = ctl(&daemon, &["run", "--model", "nowhere/model", "x"]).await;
    assert!(said.code != 0 && said.err.contains("nowhere"), "{said:?}");
    assert_eq!(ctl(&daemon, &["ps", "-a", "--json"]).await.json(), json!([]));
}

#[tokio::test]
async fn missing_config_file_is_refused_while_a_daemon_runs() {
    let daemon = TestDaemon::start().await;
    let missing = daemon.path("no/such.toml").display().to_string();
    for args in [&["ps"][..], &["run", "hi"], &["daemon", "status"]] {
        let args: Vec<&str> = ["--config", &missing].iter().chain(args).copied().collect();
        let said = ctl(&daemon, &args).await;
        assert_eq!((said.code, said.out.as_str()), (64, ""), "{args:?}: {said:?}");
        assert!(said.err.contains(&missing), "{said:?}");
    }
}

#[tokio::test]
async fn config_file_unread_by_daemon_is_reported() {
    let daemon = TestDaemon::start().await;
    let (read, other) = (daemon.path("config.toml"), daemon.path("other.toml"));
    std::fs::write(&other, "").expect("written");
    let (read, other) = (read.display().to_string(), other.display().to_string());
    let said = ctl(&daemon, &["--config", &read, "ps"]).await;
    assert!(said.code == 0 && !said.err.contains("the running daemon has read"), "{said:?}");
    let said = ctl(&daemon, &["--config", &other, "ps"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let expected =
        format!("the running daemon has read {read}, not {other}; stop it with `agentctl daemon stop`");
    assert!(said.err.contains(&expected), "{said:?}");
}

#[tokio::test]
async fn removed_current_folder_is_named_in_error() {
    let daemon = TestDaemon::start().await;
    for args in [&["run", "hi"][..], &["attach"], &["rules"], &["trust"], &["cost", "."]] {
        let folder = daemon.path("gone");
        std::fs::create_dir(&folder).expect("made");
        let prepared = command(&daemon, args);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "cd \"$0\" && rmdir \"$0\" && exec \"$@\""])
            .arg(&folder)
            .arg(env!("CARGO_BIN_EXE_agentctl"))
            .args(args)
            .env_clear()
            .envs(prepared.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let said = ended(&daemon, shell.spawn().expect("sh starts")).await;
        assert_eq!((said.code, said.out.as_str()), (64, ""), "{args:?}: {said:?}");
        assert!(said.err.contains("the current folder no longer exists"), "{args:?}: {said:?}");
    }
}
