//! The rules, the mode and the trust directly before a call starts decide, not those of the moment when it was judged.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

/// Ends when the file `open` exists. The call after it waits meanwhile.
const WAIT: &str = "sh wait.sh";

/// A turn with two allowed calls: the first runs until [`release`], the second waits to touch `mark`.
async fn two_calls(daemon: &TestDaemon, params: Value) -> (Session, Log) {
    two_calls_of(daemon, params, "go").await
}

/// Starts the two calls by this input.
async fn two_calls_of(daemon: &TestDaemon, params: Value, input: &str) -> (Session, Log) {
    daemon.write("wait.sh", "while [ ! -e open ]; do sleep 0.02; done");
    let session = daemon.client("alice").await.create_with(daemon, params).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash(WAIT), bash("touch mark")]));
    daemon.models.push(Step::text("Done."));
    session.submit(input).await;
    seen.wait_for("tool.started").await;
    (session, seen)
}

fn release(daemon: &TestDaemon) {
    daemon.write("open", "");
}

fn has_run(daemon: &TestDaemon) -> bool {
    daemon.workspace().join("mark").exists()
}

const BOTH: &str = "[permissions]\nallow = [\"Bash(sh wait.sh)\", \"Bash(touch:*)\"]";

#[tokio::test]
async fn deny_rule_added_meanwhile_stops_call_that_waits() {
    for scope in ["session", "project", "user"] {
        let daemon = TestDaemon::builder().config(BOTH).start().await;
        let (session, mut seen) = two_calls(&daemon, json!({})).await;
        let mut rule = json!({"rule": "Bash(touch:*)", "kind": "deny", "scope": scope});
        if scope != "user" {
            rule["session_id"] = json!(session.id);
        }
        session.client.call("permission.add_rule", rule).await;
        release(&daemon);
        seen.turn_ends("success").await;
        let ended = seen.events_of("tool.completed").pop().expect("two results");
        assert_eq!(
            (&ended["code"], &ended["status"]),
            (&json!("denied_by_rule"), &json!("denied")),
            "{scope}"
        );
        assert!(!has_run(&daemon), "{scope}");
    }
}

#[tokio::test]
async fn mode_changed_meanwhile_makes_call_that_waits_ask() {
    let config = "[permissions]\nallow_bypass = true\nallow_bypass_as_root = true";
    let daemon = TestDaemon::builder().config(config).start().await;
    let (session, mut seen) = two_calls(&daemon, json!({"mode": "bypass"})).await;
    session.call("update", json!({"mode": "default"})).await;
    release(&daemon);
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(asked["input"]["command"], "touch mark");
    assert!(!has_run(&daemon));
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(has_run(&daemon));
}

#[tokio::test]
async fn grant_removed_meanwhile_makes_call_that_waits_ask() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash(sh wait.sh)\"]").start().await;
    let alice = daemon.client("alice").await;
    let grant = json!({"rule": "Bash(touch:*)", "scope": "project", "workspace": daemon.workspace()});
    alice.call("permission.add_rule", grant.clone()).await;
    let (session, mut seen) = two_calls(&daemon, json!({})).await;
    assert_eq!(alice.call("permission.remove_rule", grant).await["changed"], true);
    release(&daemon);
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(!has_run(&daemon));
}

#[tokio::test]
async fn trust_lost_meanwhile_makes_call_that_waits_ask() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash(sh wait.sh)\"]").start().await;
    daemon.write(".agentd/config.toml", "[permissions]\nallow = [\"Bash(touch:*)\"]");
    daemon.trust().await;
    let (session, mut seen) = two_calls(&daemon, json!({})).await;
    session.client.call("workspace.untrust", json!({"cwd": daemon.workspace()})).await;
    release(&daemon);
    let asked = seen
        .find("a request for the call", |event| {
            event["type"] == "permission.requested" && event["tool"] == "Bash"
        })
        .await;
    assert!(!has_run(&daemon));
    session.answer(&asked, json!({"decision": "deny"})).await;
}

/// The rules of a project's command end with the trust, also in the middle of its turn.
#[tokio::test]
async fn rules_of_project_command_hold_while_folder_is_trusted() {
    for is_untrusted in [false, true] {
        let config = "[permissions]\nallow = [\"Bash(sh wait.sh)\"]";
        let daemon = TestDaemon::builder().config(config).start().await;
        let command = "---\ndescription: Makes the mark\nallowed-tools: Bash(touch:*)\n---\nMake the mark.\n";
        daemon.write(".agentd/commands/make.md", command);
        daemon.trust().await;
        let (session, mut seen) = two_calls_of(&daemon, json!({}), "/make").await;
        if is_untrusted {
            session.client.call("workspace.untrust", json!({"cwd": daemon.workspace()})).await;
        }
        release(&daemon);
        if is_untrusted {
            let asked = seen.wait_for("permission.requested").await;
            assert_eq!(asked["input"]["command"], "touch mark");
            session.answer(&asked, json!({"decision": "deny"})).await;
        }
        seen.turn_ends("success").await;
        assert_eq!(has_run(&daemon), !is_untrusted);
    }
}

#[tokio::test]
async fn answer_of_user_outlasts_wait_and_later_deny_rule_does_not() {
    for deny in [false, true] {
        let config = "[permissions]\nallow = [\"Bash(sh wait.sh)\"]";
        let daemon = TestDaemon::builder().config(config).start().await;
        daemon.write("wait.sh", "while [ ! -e open ]; do sleep 0.02; done");
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::calls([bash(WAIT), bash("touch mark")]));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let asked = seen.wait_for("permission.requested").await;
        session.allow(&asked).await;
        if deny {
            let rule = json!({"rule": "Bash(touch:*)", "kind": "deny", "scope": "session", "session_id": session.id});
            session.client.call("permission.add_rule", rule).await;
        }
        release(&daemon);
        seen.turn_ends("success").await;
        assert_eq!(has_run(&daemon), !deny);
        assert_eq!(seen.events_of("permission.requested").len(), 1);
    }
}
