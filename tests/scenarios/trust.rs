//! A folder says something of itself: its text is read as data, and nothing in it is run.

use serde_json::json;

use crate::support::daemon::{BOTH_APIS, House};
use crate::support::model_server::Step;

#[tokio::test]
async fn what_would_run_is_left_out_and_people_are_told() {
    let house = House::start().await;
    house.write(".mcp.json", r#"{"mcpServers": {"x": {"command": "touch", "args": ["pwned"]}}}"#);
    house.write(".git/HEAD", "ref: refs/heads/main\n");
    house.write(".git/config", "[core]\n\tfsmonitor = touch pwned\n");
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::text("Hello."));
    session.submit("hello").await;
    let required = seen.wait_for("workspace.trust_required").await;
    assert_eq!(required["cwd"], json!(house.workspace()));
    let parts = required["parts"].to_string();
    assert!(parts.contains(".mcp.json") && parts.contains("git"), "{parts}");
    let notice = seen.wait_for("notice").await;
    assert_eq!(notice["kind"], "workspace_untrusted");
    assert!(notice["text"].as_str().expect("words").contains(".mcp.json"));
    seen.turn_ends("success").await;
    assert!(!house.workspace().join("pwned").exists());
    house.models.assert_no_breach();

    house.models.push(Step::text("Hello."));
    session.submit("again").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.seen_of("workspace.trust_required").len(), 1, "it is told once");
}

#[tokio::test]
async fn a_plain_folder_asks_for_no_trust() {
    let house = House::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    assert!(seen.seen_of("workspace.trust_required").is_empty() && seen.seen_of("notice").is_empty());
}

#[tokio::test]
async fn project_instructions_are_told_to_the_model_and_stay_the_same_for_the_session() {
    for api in BOTH_APIS {
        let mut house = House::plan().speaking(api).start().await;
        house.write("AGENTS.md", "Always indent with tabs. See @docs/style.md\n");
        house.write("docs/style.md", "Never use emojis.\n");
        let session = house.client("alice").await.create(&house).await;
        let mut seen = session.follow().await;
        house.models.otherwise(|_| Step::text("Hello."));
        session.submit("hello").await;
        seen.turn_ends("success").await;
        let context = &seen.seen_of("session.context")[0];
        assert!(context["sources"].to_string().contains("AGENTS.md"));

        house.write("AGENTS.md", "Always indent with spaces.\n");
        house.crash_and_restart().await;
        let session = house.client("alice").await.join(&session);
        let mut seen = session.follow_after(seen.last_seq()).await;
        session.submit("again").await;
        seen.turn_ends("success").await;
        let system = |n: usize| {
            let request = &house.models.requests()[n];
            match request.body.get("system") {
                Some(system) => system[0]["text"].clone(),
                None => request.messages()[0]["content"].clone(),
            }
        };
        let first = system(0);
        let text = first.as_str().expect("text");
        assert!(text.contains("Always indent with tabs.") && text.contains("Never use emojis."), "{text}");
        assert_eq!(first, system(1), "byte for byte");
        house.models.assert_no_breach();
    }
}
