//! Finding, ending and deleting sessions.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

async fn titles(client: &Client, params: Value) -> Vec<String> {
    let list = client.call("session.list", params).await;
    let sessions = list["sessions"].as_array().expect("a list").iter();
    sessions.map(|session| session["title"].as_str().expect("a title").to_owned()).collect()
}

#[tokio::test]
async fn session_list_is_paged_newest_first() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    assert!(titles(&alice, json!({})).await.is_empty());
    for n in 0..7 {
        alice.create_with(&daemon, json!({"title": format!("session {n}")})).await;
    }
    let mut found = Vec::new();
    let mut page = json!({"limit": 3});
    loop {
        let list = alice.call("session.list", page.clone()).await;
        let sessions = list["sessions"].as_array().expect("a list");
        assert!(sessions.len() <= 3);
        found.extend(sessions.iter().map(|session| session["title"].clone()));
        match list.get("next_cursor") {
            Some(cursor) => page["cursor"] = cursor.clone(),
            None => break,
        }
    }
    let expected: Vec<Value> = (0..7).rev().map(|n| json!(format!("session {n}"))).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn session_list_filters_by_state_folder_and_text() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    daemon.write("inner/x", "");
    let inner = daemon.workspace().join("inner");
    alice.create_with(&daemon, json!({"title": "apple pie"})).await;
    alice.create_with(&daemon, json!({"title": "plum cake", "cwd": inner})).await;
    let waiting = alice.create_with(&daemon, json!({"title": "pear tart"})).await;
    let mut seen = waiting.follow().await;
    daemon.models.push(Step::calls([bash("touch x")]));
    waiting.submit("bake").await;
    seen.wait_for("permission.requested").await;
    seen.state_is("requires_action").await;

    assert_eq!(titles(&alice, json!({"search": "cake"})).await, ["plum cake"]);
    assert_eq!(titles(&alice, json!({"cwd": inner})).await, ["plum cake"]);
    assert_eq!(titles(&alice, json!({"states": ["requires_action"]})).await, ["pear tart"]);
    assert_eq!(titles(&alice, json!({"states": ["idle", "requires_action"]})).await.len(), 3);
    assert!(titles(&alice, json!({"search": "quiche"})).await.is_empty());
    // Characters with a meaning in SQL patterns are ordinary characters in a search.
    assert!(titles(&alice, json!({"search": "%"})).await.is_empty());
    let status = alice.call("daemon.status", json!({})).await;
    assert_eq!((&status["sessions"], &status["active_sessions"]), (&json!(3), &json!(1)));
}

#[tokio::test]
async fn session_without_title_uses_first_input_words() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    session.submit("\n  explain this repository\nin detail").await;
    seen.turn_ends("success").await;
    let view = session.view().await;
    assert_eq!((&view["title"], &view["last_line"]), (&json!("explain this repository"), &json!("Hello.")));
    assert_eq!(view["last_seq"], json!(session.events().await.last().expect("events")["seq"]));
}

#[tokio::test]
async fn session_items_returns_conversation_in_order() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo hi"), bash("exit 3")]).say("I try."));
    daemon.models.push(Step::text("One worked."));
    session.submit("try two").await;
    seen.turn_ends("success").await;
    let items = session.items().await;
    let kinds: Vec<_> = items.iter().map(|item| item["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["user_message", "assistant_message", "tool_call", "tool_call", "assistant_message"]);
    assert_eq!(items[0]["text"], "try two");
    assert_eq!(
        (&items[2]["call"]["status"], &items[3]["call"]["status"]),
        (&json!("completed"), &json!("failed"))
    );
    assert!(items[2]["text"].as_str().expect("text").contains("hi"));
    assert_eq!(items[4]["text"], "One worked.");
}

#[tokio::test]
async fn killed_session_stays_readable_and_refuses_input() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("sleep 1000")]));
    let turn = session.submit("sleep").await;
    seen.wait_for("tool.started").await;
    session.submit("this waits in vain").await;
    let reply = session.call("kill", json!({})).await;
    assert_eq!((&reply["stopped"][0], &reply["survivors"]), (&json!(turn), &json!([])));
    assert_eq!(daemon.tool_processes(), []);
    seen.turn_ends("aborted").await;
    seen.wait_for("session.ended").await;
    assert_eq!(session.view().await["state"], "ended");
    assert_eq!(session.items().await[0]["text"], "sleep");
    let refusal = session.refused("submit", json!({"input": "hello?"})).await;
    assert_eq!((refusal.code, &refusal.data["state"]), (-32002, &json!("ended")));
    assert_eq!(session.call("kill", json!({})).await["stopped"], json!([]), "a second kill stops nothing");
    assert_eq!(daemon.models.requests().len(), 1, "queued input does not start");
}

#[tokio::test]
async fn deleted_session_is_removed_with_its_journal() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let kept = alice.create(&daemon).await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("a secret plan").hold_after(2, &gate));
    session.submit("think").await;
    seen.text_of(1).await;
    session.call("delete", json!({})).await;
    seen.turn_ends("aborted").await;
    seen.wait_for("session.ended").await;
    for verb in ["get", "events", "items", "subscribe", "abort", "delete"] {
        let refusal = session.refused(verb, json!({})).await;
        assert_eq!((verb, refusal.code), (verb, -32002));
    }
    daemon.crash_and_restart().await;
    let alice = daemon.client("alice").await;
    let list = alice.call("session.list", json!({})).await;
    assert_eq!(list["sessions"].as_array().expect("a list").len(), 1);
    assert_eq!(list["sessions"][0]["session_id"], json!(kept.id));
}

#[tokio::test]
async fn concurrent_sessions_do_not_affect_each_other() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    daemon.models.set_fallback(|request| {
        let words = request.messages()[0]["content"][0]["text"].as_str().unwrap_or("?").to_owned();
        Step::text(&format!("you said {words}"))
    });
    let mut all: Vec<(Session, _)> = Vec::new();
    for _ in 0..20 {
        let session = alice.create(&daemon).await;
        let seen = session.follow().await;
        all.push((session, seen));
    }
    for (n, (session, _)) in all.iter().enumerate() {
        session.submit(&format!("number {n}.")).await;
    }
    for (n, (session, seen)) in all.iter_mut().enumerate() {
        assert_eq!(seen.turn_ends("success").await["text"], format!("you said number {n}."));
        assert!(seen.events().iter().all(|event| event["session_id"] == json!(session.id)));
    }
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn tool_list_contains_schema_and_properties() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let page = alice.call("tool.list", json!({"limit": 4})).await;
    let rest = alice.call("tool.list", json!({"cursor": page["next_cursor"]})).await;
    assert!(rest["next_cursor"].is_null());
    let tools: Vec<&Value> =
        [&page, &rest].iter().flat_map(|page| page["tools"].as_array().expect("tools")).collect();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.is_sorted() && names.contains(&"Bash") && names.contains(&"ApplyPatch"), "{names:?}");
    for (name, permission, timeout_ms, max_output_chars) in [
        ("Read", "outside_workspace", json!(null), json!(null)),
        ("Edit", "always", json!(null), json!(null)),
        ("Bash", "always", json!(120_000), json!(30_000)),
        ("KillBash", "never", json!(null), json!(null)),
        ("WebFetch", "always", json!(60_000), json!(100_000)),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("listed");
        assert_eq!(tool["permission"], permission, "{name}");
        assert_eq!(
            (&tool["timeout_ms"], &tool["max_output_chars"]),
            (&timeout_ms, &max_output_chars),
            "{name}"
        );
        assert_eq!(tool["max_output_bytes"], 128 * 1024, "{name}");
    }
    for (name, read_only, parallel) in
        [("Read", true, true), ("Edit", false, false), ("Bash", false, false), ("WebFetch", false, true)]
    {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("listed");
        assert_eq!(
            (&tool["read_only"], &tool["concurrency_safe"]),
            (&json!(read_only), &json!(parallel)),
            "{name}"
        );
        assert_eq!(tool["input_schema"]["type"], "object", "{name}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{name}");
    }
}
