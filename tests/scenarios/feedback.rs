//! Binary feedback: the model answers twice, a client chooses, and the turn continues with the chosen answer.

use serde_json::{Value, json};

use super::bash;
use super::export::{exported, imported};
use crate::support::daemon::{ALL_APIS, TestDaemon};
use crate::support::model_server::Step;

/// The last request as text.
fn last_request(daemon: &TestDaemon) -> String {
    daemon.models.requests().last().expect("a request").body.to_string()
}

#[tokio::test]
async fn chosen_answer_continues_and_other_one_is_never_sent() {
    for api in ALL_APIS {
        let mut daemon = TestDaemon::builder().api(api).start().await;
        let session =
            daemon.client("alice").await.create_with(&daemon, json!({"binary_feedback": true})).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::text("It is blue."));
        daemon.models.push(Step::text("It is green.").usage(70, 7));
        session.submit("which colour?").await;
        let asked = seen.wait_for("feedback.request").await;
        let items = asked["item_ids"].as_array().expect("ids").clone();
        assert_eq!(items.len(), 2, "{api:?}");
        let (one, two) = (&daemon.models.requests()[0].body, &daemon.models.requests()[1].body);
        assert_eq!(one, two, "{api:?}: the same request is sent twice");
        let view = session.call("get", json!({})).await["session"].clone();
        assert_eq!((&view["state"], &view["requires"]), (&json!("requires_action"), &json!("question")));
        assert_eq!(view["binary_feedback"], true);

        // The request survives a crash; an unknown item is refused.
        daemon.crash_and_restart().await;
        let session = daemon.client("bob").await.join(&session);
        let mut seen = session.follow_after(seen.last_seq()).await;
        let choose = |item: &Value| json!({"request_id": asked["request_id"], "item_id": item});
        let bob = daemon.client("bob").await;
        let wrong = json!("item_0190f2a4-0000-7000-8000-000000000001");
        let refused = bob.refused("session.feedback", choose(&wrong)).await;
        assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!("item_id")));
        bob.call("session.feedback", choose(&items[1])).await;
        let result = seen.turn_ends("success").await;
        assert_eq!(result["text"], "It is green.", "{api:?}");
        assert_eq!(
            (&result["model_calls"], &result["usage"]["output_tokens"]),
            (&json!(2), &json!(12)),
            "{api:?}"
        );
        let late = bob.refused("session.feedback", choose(&items[0])).await;
        assert_eq!(late.kind, "not_pending");
        let dropped = seen.events_of("message.tombstone");
        assert_eq!((&dropped[0]["item_id"], &dropped[0]["reason"]), (&items[0], &json!("not_chosen")));
        assert_eq!((&dropped[1]["item_id"], &dropped[1]["reason"]), (&items[1], &json!("chosen")));

        let candidate = session.refused("fork", json!({"item_id": items[1]})).await;
        assert_eq!((candidate.kind.as_str(), &candidate.data["path"]), ("invalid_params", &json!("item_id")));
        let page = session.call("export", json!({"format": "markdown"})).await["data"].to_string();
        assert!(page.matches("It is green.").count() == 1 && !page.contains("It is blue."), "{page}");

        // Both answers are kept; only the chosen one is sent.
        let kept = session.call("items", json!({})).await["items"].to_string();
        assert!(kept.contains("It is blue.") && kept.contains("It is green."), "{kept}");
        daemon.models.push(Step::text("Yes."));
        daemon.models.push(Step::text("Yes. "));
        session.submit("sure?").await;
        assert_eq!(seen.turn_ends("success").await["text"], "Yes.");
        assert_eq!(seen.events_of("feedback.completed").last().expect("one")["by"], "equal", "{api:?}");
        let sent = last_request(&daemon);
        assert!(sent.contains("It is green.") && !sent.contains("It is blue."), "{api:?}: {sent}");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn calls_of_chosen_answer_need_permission_and_run_once() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"binary_feedback": true})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo one >> log.txt")]));
    daemon.models.push(Step::calls([bash("echo two >> log.txt")]));
    session.submit("write").await;
    let asked = seen.wait_for("feedback.request").await;
    assert!(seen.events_of("tool.requested").is_empty(), "no call is requested before the choice");
    let item = &asked["item_ids"][0];
    let alice = daemon.client("alice").await;
    alice.call("session.feedback", json!({"request_id": asked["request_id"], "item_id": item})).await;
    let request = seen.wait_for("permission.requested").await;
    assert_eq!(request["input"]["command"], "echo one >> log.txt");
    daemon.models.push(Step::text("Done."));
    daemon.models.push(Step::text("Done."));
    session.answer(&request, json!({"decision": "allow"})).await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "one\n");
    // A forged size of the request affects only the estimate. The imported session requests one answer only.
    let lines = exported(&session, "jsonl").await;
    let largest = format!("\"context_tokens\":{}", u64::MAX);
    let at = lines.find("\"context_tokens\":").expect("a choice");
    let end = at + lines[at..].find(['}', ',']).expect("an end");
    let forged = format!("{}{largest}{}", &lines[..at], &lines[end..]);
    let copy = imported(&alice, &forged).await;
    let last_seq = copy.view().await["last_seq"].as_u64().expect("a seq");
    let mut seen_copy = copy.follow_after(last_seq).await;
    daemon.models.push(Step::text("Still here."));
    copy.submit("are you?").await;
    assert_eq!(seen_copy.turn_ends("success").await["text"], "Still here.");

    // A fork contains only the chosen answers.
    let fork = session.call("fork", json!({})).await["session"]["session_id"].clone();
    let items = alice.call("session.items", json!({"session_id": fork})).await["items"].to_string();
    assert!(items.contains("echo one") && !items.contains("echo two"), "{items}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn failed_second_answer_leaves_first_and_abort_withdraws_request() {
    let daemon = TestDaemon::builder().config("[session]\nbinary_feedback = true\n").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("The first."));
    daemon.models.push(Step::error(400, "invalid_request_error", "no"));
    session.submit("one").await;
    assert_eq!(seen.turn_ends("success").await["text"], "The first.");
    assert_eq!(seen.events_of("feedback.completed")[0]["by"], "single");

    // With a budget of one call there is no second answer.
    daemon.models.push(Step::text("The only one."));
    session.submit_with(json!({"input": "two", "budgets": {"model_calls": 1}})).await;
    assert_eq!(seen.turn_ends("success").await["text"], "The only one.");

    daemon.models.push(Step::text("Left."));
    daemon.models.push(Step::text("Right."));
    session.submit("three").await;
    let asked = seen.wait_for("feedback.request").await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    assert_eq!(seen.events_of("feedback.completed").last().expect("one")["by"], "abort");
    let choose = json!({"request_id": asked["request_id"], "item_id": asked["item_ids"][0]});
    let refused = daemon.client("bob").await.refused("session.feedback", choose).await;
    assert_eq!(refused.kind, "not_pending");

    // A limit that is reached during the second answer keeps the first one.
    daemon.models.push(Step::text("The cheap one.").usage(10, 30));
    daemon.models.push(Step::text(&"too long ".repeat(3_000)));
    session.submit_with(json!({"input": "four", "budgets": {"output_tokens": 1_000}})).await;
    assert_eq!(seen.turn_ends("error_max_tokens").await["text"], "The cheap one.");
    assert_eq!(seen.events_of("feedback.completed").last().expect("one")["by"], "single");

    // No user can choose in an unattended session.
    daemon.models.push(Step::text("Alone."));
    let night = daemon.client("carol").await.create_with(&daemon, json!({"background": true})).await;
    let mut seen = night.follow().await;
    night.submit("four").await;
    assert_eq!(seen.turn_ends("success").await["text"], "Alone.");
    let params = json!({"cwd": daemon.workspace(), "background": true, "binary_feedback": true});
    let refused = daemon.client("bob").await.refused("session.create", params).await;
    assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!("binary_feedback")));
}
