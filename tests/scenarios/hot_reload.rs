//! Changes of commands, skills, agents and instructions are noticed while sessions are loaded.

use serde_json::{Value, json};

use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

#[tokio::test]
async fn changed_files_of_workspace_are_announced_and_used_at_once() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let mut tries = 1;
    // The folder appears while the session is loaded.
    let home = daemon.path("home");
    let put = |name: &str, text: &str| {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    let changed = |event: Value| event["changed"].clone();
    // The watch begins a moment after the session is loaded, so write until the daemon reports the change.
    let event = loop {
        put(".claude/commands/hello.md", &format!("Say hello.{}", "\n".repeat(tries)));
        tries += 1;
        let wait = tokio::time::timeout(std::time::Duration::from_secs(2), seen.wait_for("config.reloaded"));
        match wait.await {
            Ok(event) => break event,
            Err(_) => assert!(tries < 10, "no change was announced"),
        }
    };
    assert_eq!((changed(event.clone()), event["needs_restart"].clone()), (json!(["commands"]), json!([])));
    daemon.models.push(Step::text("Hello."));
    session.call("submit", json!({"input": "/hello"})).await;
    seen.turn_ends("success").await;
    put(".claude/skills/report/SKILL.md", "Report.");
    assert_eq!(changed(seen.wait_for("config.reloaded").await), json!(["skills"]));
    put(".claude/agents/tester.md", "---\nname: tester\ndescription: Tests\n---\nTest.");
    assert_eq!(changed(seen.wait_for("config.reloaded").await), json!(["agents"]));
    daemon.write("AGENTS.md", "Use tabs.");
    assert_eq!(changed(seen.wait_for("config.reloaded").await), json!(["instructions"]));
    daemon.models.push(Step::text("Tabs."));
    session.submit("which?").await;
    seen.turn_ends("success").await;
    let sent = daemon.models.requests().last().expect("one").body.to_string();
    assert!(sent.contains("The project instructions changed"), "the next turn knows");
    std::fs::remove_dir_all(home.join(".claude/commands")).expect("removed");
    assert_eq!(changed(seen.wait_for("config.reloaded").await), json!(["commands"]));
    let refused = session.refused("submit", json!({"input": "/hello"})).await;
    assert_eq!(refused.kind, "invalid_params");
    daemon.models.assert_no_breach();
}
