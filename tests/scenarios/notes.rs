//! Notes: a line that begins with `# ` goes to the project instructions.

use serde_json::json;

use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

#[tokio::test]
async fn note_is_added_to_project_instructions_and_reaches_the_model() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let params = json!({"input": "# use tabs", "idempotency_key": "n1"});
    let reply = session.call("submit", params.clone()).await;
    assert_eq!(reply["state"], "completed");
    assert!(reply["text"].as_str().expect("text").contains("AGENTS.md"), "{reply}");
    let event = seen.wait_for("command.completed").await;
    assert_eq!((&event["name"], &event["arguments"]), (&json!("#"), &json!("use tabs")));
    assert_eq!(event["origin"]["client"], "alice");
    assert_eq!(session.call("submit", params).await, reply, "the same key writes it once");
    session.call("submit", json!({"input": "# and be brief"})).await;
    assert_eq!(daemon.read("AGENTS.md"), "- use tabs\n- and be brief\n");
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.find("the answer", |event| event["result"]["text"] == "Hello.").await;
    assert!(daemon.models.requests()[0].body["system"].to_string().contains("use tabs"));
}

#[tokio::test]
async fn note_prefers_the_only_existing_file_and_never_leaves_the_workspace() {
    let daemon = TestDaemon::start().await;
    daemon.write("CLAUDE.md", "Be kind.\n");
    let session = daemon.client("alice").await.create(&daemon).await;
    session.call("submit", json!({"input": "# one"})).await;
    assert_eq!(daemon.read("CLAUDE.md"), "Be kind.\n- one\n");
    assert_eq!(daemon.read("AGENTS.md"), "");
    std::fs::write(daemon.path("outside.md"), "outside\n").expect("written");
    std::os::unix::fs::symlink(daemon.path("outside.md"), daemon.workspace().join("AGENTS.md"))
        .expect("linked");
    let before = session.events().await.len();
    let refusal = session.refused("submit", json!({"input": "# two"})).await;
    assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &json!("input")));
    assert!(refusal.message.contains("leaves the workspace"), "{}", refusal.message);
    assert_eq!(session.events().await.len(), before, "nothing is written");
    assert_eq!(std::fs::read_to_string(daemon.path("outside.md")).expect("there"), "outside\n");

    session.call("kill", json!({})).await;
    std::fs::remove_file(daemon.workspace().join("AGENTS.md")).expect("removed");
    session.refused("submit", json!({"input": "# three"})).await;
    assert_eq!(daemon.read("CLAUDE.md"), "Be kind.\n- one\n", "an ended session writes no note");
}
