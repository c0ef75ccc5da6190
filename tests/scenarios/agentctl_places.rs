//! How `agentctl` finds the daemon, its configuration and the folder it works in, and what it says where they are missing.

use serde_json::json;
use tokio::process::Command;

use super::agentctl::{Said, command, ctl, ended};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// Without the variable that says where the daemon listens, as in cron jobs.
async fn without_runtime_dir(house: &TestDaemon, args: &[&str]) -> Said {
    let mut command = command(house, args);
    command.env_remove("XDG_RUNTIME_DIR");
    ended(house, command.spawn().expect("agentctl starts")).await
}

#[tokio::test]
async fn client_without_runtime_dir_finds_the_daemon_by_its_lock_file() {
    let mut house = TestDaemon::start().await;
    house.models.push(Step::text("Done."));
    let made = ctl(&house, &["run", "--output", "json", "go"]).await.json();
    for args in [&["--no-start", "ps", "--json"][..], &["ps", "--json"]] {
        let listed = without_runtime_dir(&house, args).await.json();
        assert_eq!(listed[0]["session_id"], made["session_id"], "{args:?}");
    }
    let doctor = without_runtime_dir(&house, &["doctor"]).await;
    assert!(!doctor.out.contains("kill -TERM") && doctor.out.contains(" answers, process "), "{doctor:?}");
    assert!(without_runtime_dir(&house, &["daemon", "stop"]).await.fine().contains("stopped"));
    assert!(house.ended().await.success());
}

#[tokio::test]
async fn named_socket_without_daemon_tells_where_the_running_one_listens() {
    let house = TestDaemon::start().await;
    let other = house.path("other.sock").display().to_string();
    let socket = house.socket().display().to_string();
    for args in [&["--no-start", "ps"][..], &["ps"], &["daemon", "stop"]] {
        let args: Vec<&str> = ["--socket", &other].iter().chain(args).copied().collect();
        let said = ctl(&house, &args).await;
        assert_eq!((said.code, said.out.as_str()), (69, ""), "{args:?}: {said:?}");
        assert!(said.err.contains(&format!("use --socket {socket}")), "{said:?}");
        assert!(!said.err.contains("kill") && !said.err.contains("gone"), "{said:?}");
    }
    let doctor = ctl(&house, &["--socket", &other, "doctor"]).await;
    assert!(!doctor.out.contains("kill -TERM"), "{doctor:?}");
    assert_eq!(ctl(&house, &["--no-start", "ps", "--json"]).await.json(), json!([]), "it runs on");
}

#[tokio::test]
async fn removed_socket_of_a_running_daemon_is_told_and_older_lock_files_are_read() {
    let house = TestDaemon::start().await;
    let pid = house.pid();
    std::fs::remove_file(house.socket()).expect("removed");
    let said = ctl(&house, &["--no-start", "ps"]).await;
    let advice = format!("is gone: kill -TERM {pid}, then start it");
    assert!(said.code == 69 && said.err.contains(&advice), "{said:?}");
    // The lock file of a version that did not write its socket into it.
    std::fs::write(house.path("data/agentd/agentd.lock"), format!("{pid}\n")).expect("written");
    let said = ctl(&house, &["--no-start", "ps"]).await;
    assert!(said.code == 69 && said.err.contains(&format!("agentd (process {pid})")), "{said:?}");
    assert!(!said.err.contains("kill"), "{said:?}");
    assert!(ctl(&house, &["daemon", "stop"]).await.fine().contains("stopped"), "it is stopped by a signal");
}

#[tokio::test]
async fn refused_first_task_leaves_no_session() {
    let house = TestDaemon::start().await;
    for args in
        [&["run", "--image", "/no/such.png", "look"][..], &["run", "--background", "--file", "/no/such", "x"]]
    {
        let said = ctl(&house, args).await;
        assert!(said.code == 4 && said.err.contains("/no/such"), "{said:?}");
        assert_eq!(ctl(&house, &["ps", "-a", "--json"]).await.json(), json!([]), "{args:?}");
    }
    let said = ctl(&house, &["run", "--model", "nowhere/model", "x"]).await;
    assert!(said.code != 0 && said.err.contains("nowhere"), "{said:?}");
    assert_eq!(ctl(&house, &["ps", "-a", "--json"]).await.json(), json!([]));
}

#[tokio::test]
async fn missing_config_file_is_refused_while_a_daemon_runs() {
    let house = TestDaemon::start().await;
    let missing = house.path("no/such.toml").display().to_string();
    for args in [&["ps"][..], &["run", "hi"], &["daemon", "status"]] {
        let args: Vec<&str> = ["--config", &missing].iter().chain(args).copied().collect();
        let said = ctl(&house, &args).await;
        assert_eq!((said.code, said.out.as_str()), (64, ""), "{args:?}: {said:?}");
        assert!(said.err.contains(&missing), "{said:?}");
    }
}

#[tokio::test]
async fn removed_current_folder_is_named_as_such() {
    let house = TestDaemon::start().await;
    for args in [&["run", "hi"][..], &["attach"], &["rules"], &["trust"], &["cost", "."]] {
        let folder = house.path("gone");
        std::fs::create_dir(&folder).expect("made");
        let prepared = command(&house, args);
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
        let said = ended(&house, shell.spawn().expect("sh starts")).await;
        assert_eq!((said.code, said.out.as_str()), (64, ""), "{args:?}: {said:?}");
        assert!(said.err.contains("the current folder no longer exists"), "{args:?}: {said:?}");
    }
}
