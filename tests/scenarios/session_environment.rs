//! The environment of a session's commands: what the creating client sends, kept over restarts, in no event or export.

use serde_json::{Value, json};

use super::agentctl::{command, ctl, ended};
use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

const SHOW: &str = "echo \"[$VIRTUAL_ENV|$MY|$EXTRA|$PATH]\"";

async fn shown(daemon: &TestDaemon, session: &Session, log: &mut Log) -> String {
    daemon.models.push(Step::calls([bash(SHOW)]));
    daemon.models.push(Step::text("Done."));
    let before = log.events_of("turn.completed").len();
    session.submit("go").await;
    while log.events_of("turn.completed").len() == before {
        log.wait_for("turn.completed").await;
    }
    let calls = log.events_of("tool.completed");
    calls.last().expect("a call")["output"].as_str().expect("text").trim().to_owned()
}

fn builder() -> crate::support::daemon::TestDaemonBuilder {
    TestDaemon::builder()
        .config("[permissions]\nallow = [\"Bash\"]\n[tools]\nenv = [\"EXTRA\"]")
        .environment("VIRTUAL_ENV", "/of/daemon")
        .environment("EXTRA", "daemon")
}

#[tokio::test]
async fn commands_get_environment_of_session_over_update_and_restart() {
    let mut daemon = builder().start().await;
    let client = daemon.client("alice").await;
    let plain = client.create(&daemon).await;
    let mut log = plain.follow().await;
    assert!(shown(&daemon, &plain, &mut log).await.starts_with("[/of/daemon||daemon|"));
    assert_eq!(plain.view().await.get("env"), None);

    let env = json!({"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": "/secret-canary-value", "MY": "1"});
    let session = client.create_with(&daemon, json!({ "env": env })).await;
    let mut log = session.follow().await;
    let expected = "[/secret-canary-value|1|daemon|/usr/bin:/bin]";
    assert_eq!(shown(&daemon, &session, &mut log).await, expected);
    let view = client.call("session.get", json!({"session_id": session.id})).await;
    assert_eq!(view["session"]["env"], json!(["MY", "PATH", "VIRTUAL_ENV"]));
    daemon.crash_and_restart().await;
    let client = daemon.client("bob").await;
    let session = client.join(&session);
    let mut log = session.follow().await;
    assert_eq!(shown(&daemon, &session, &mut log).await, expected, "after a restart");
    session.call("update", json!({"env": {"PATH": "/bin", "EXTRA": "client"}})).await;
    assert_eq!(shown(&daemon, &session, &mut log).await, "[||client|/bin]");
    // The output of the commands contains the value, so look at all other events.
    let events = session.events().await;
    let others = events.iter().filter(|event| !event["type"].as_str().expect("a type").starts_with("tool."));
    let text = others.map(Value::to_string).filter(|text| !text.contains("echo")).collect::<String>();
    assert!(!text.contains("secret-canary-value"), "{text}");
    assert!(!daemon.log().contains("secret-canary-value"));
}

#[tokio::test]
async fn hooks_get_environment_of_session_and_deciding_ones_no_programs_of_workspace() {
    let hook = |event: &str| {
        let command = format!("echo \\\"$VIRTUAL_ENV $PATH\\\" > {event}.txt");
        format!("[[hooks.{event}]]\nmatcher = \"*\"\ncommand = \"{command}\"\n")
    };
    let events = ["session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use"];
    let daemon = builder().config(&events.map(hook).concat()).start().await;
    let own = daemon.workspace().join("bin").display().to_string();
    let env = json!({"PATH": format!("{own}:/usr/bin:/bin"), "VIRTUAL_ENV": "/of/client"});
    let session = daemon.client("alice").await.create_with(&daemon, json!({ "env": env })).await;
    let mut log = session.follow().await;
    shown(&daemon, &session, &mut log).await;
    for event in events {
        let path =
            if event == "pre_tool_use" { "/usr/bin:/bin".into() } else { format!("{own}:/usr/bin:/bin") };
        assert_eq!(daemon.read(&format!("{event}.txt")), format!("/of/client {path}\n"), "{event}");
    }
}

#[tokio::test]
async fn refused_variables_are_listed_and_session_is_not_created() {
    let daemon = builder().start().await;
    let client = daemon.client("alice").await;
    let env =
        json!({"PATH": "/bin", "LD_PRELOAD": "x", "BASH_ENV": "x", "MY_TOKEN": "hidden", "GIT_DIR": "x"});
    let params = json!({"cwd": daemon.workspace(), "env": env});
    let refused = client.refused("session.create", params).await;
    assert_eq!(refused.kind, "invalid_params");
    for name in ["LD_PRELOAD", "BASH_ENV", "MY_TOKEN", "GIT_DIR"] {
        assert!(refused.message.contains(name), "{refused:?}");
    }
    assert!(!refused.message.contains("hidden") && !refused.message.contains("PATH ("), "{refused:?}");
    assert_eq!(client.call("session.list", json!({})).await["sessions"], json!([]));
    let session = client.create(&daemon).await;
    session.refused("update", json!({"env": {"NODE_OPTIONS": "--require x"}})).await;
}

#[tokio::test]
async fn safe_command_inside_workspace_asks() {
    let daemon = TestDaemon::start().await;
    daemon.write("bin/ls", "#!/bin/sh\necho mine\n");
    let program = daemon.workspace().join("bin/ls");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("set");
    let client = daemon.client("alice").await;
    let path = format!("{}:/usr/bin:/bin", daemon.workspace().join("bin").display());
    for (env, is_asked) in [(json!({"PATH": path}), true), (json!({"PATH": "/usr/bin:/bin"}), false)] {
        let session = client.create_with(&daemon, json!({ "env": env })).await;
        let mut log = session.follow().await;
        daemon.models.push(Step::calls([bash("cat a; ls")]));
        session.submit("go").await;
        match is_asked {
            true => {
                let asked = log.wait_for("permission.requested").await;
                assert!(asked.to_string().contains("inside the workspace"), "{asked}");
            }
            false => {
                daemon.models.push(Step::text("Done."));
                log.turn_ends("success").await;
                assert!(log.events_of("permission.requested").is_empty());
            }
        }
        session.call("abort", json!({})).await;
    }
}

#[tokio::test]
async fn agentctl_sends_virtual_environment_and_named_variables() {
    let daemon = builder().start().await;
    daemon.models.push(Step::calls([bash(SHOW)]));
    daemon.models.push(Step::text("Done."));
    let mut run = command(&daemon, &["run", "--env", "MY=2", "--output", "stream-json", "go"]);
    run.env("VIRTUAL_ENV", "/of/client").env("SECRET_TOKEN", "canary");
    let said = ended(&daemon, run.spawn().expect("started")).await;
    assert!(said.code == 0 && said.out.contains("[/of/client|2|daemon|"), "{said:?}");
    assert!(!said.out.contains("canary"), "{said:?}");
    // A session that is continued gets the variables too.
    daemon.models.push(Step::calls([bash(SHOW)]));
    daemon.models.push(Step::text("Done."));
    let said = ctl(&daemon, &["run", "-c", "--env", "MY=3", "--output", "stream-json", "go"]).await;
    assert!(said.code == 0 && said.out.contains("|3|daemon|"), "{said:?}");
    let said = ctl(&daemon, &["run", "--env", "LD_PRELOAD=x", "go"]).await;
    assert!(said.code == 64 && said.err.contains("--env: refused: LD_PRELOAD"), "{said:?}");
}
