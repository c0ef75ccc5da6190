//! How `agentctl` finds the daemon, its configuration and the folder it works in, and what it says where they are missing.

use serde_json::json;
use tokio::process::Command;

use super::agentctl::{command, ctl, ended};
use crate::support::daemon::House;

#[tokio::test]
async fn refused_first_task_leaves_no_session() {
    let house = House::start().await;
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
    let house = House::start().await;
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
    let house = House::start().await;
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
