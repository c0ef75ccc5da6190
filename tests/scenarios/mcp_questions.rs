//! Requests of MCP servers during a call: questions to the user (elicitation) and model calls (sampling).

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::mcp::{bypass, daemon_with, turn};
use crate::support::mcp_server::tools_with;
use crate::support::model_server::{Gate, Step};

const MAY_ASK: &str = "elicitation = true";

fn question() -> Value {
    json!({"mode": "form", "message": "How shall it look?", "requestedSchema": {
        "type": "object", "required": ["colour", "size"],
        "properties": {
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "name": {"type": "string"},
        },
    }})
}

fn behaviour(revision: &str) -> Value {
    json!({"tools": tools_with(&["ask", "sample"]), "question": question(), "revision": revision})
}

#[tokio::test]
async fn question_of_server_is_answered_by_user() {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let (daemon, _script) = daemon_with(behaviour(revision), MAY_ASK).await;
        let (session, mut seen) = bypass(&daemon).await;
        daemon.models.push(Step::calls([("mcp__fake__ask", json!({}))]));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let asked = seen.wait_for("question.requested").await;
        assert_eq!((&asked["kind"], &asked["tool"]), (&json!("question"), &json!("mcp__fake__ask")));
        assert!(
            asked["text"]
                .as_str()
                .expect("words")
                .starts_with("The MCP server fake asks: How shall it look?")
        );
        let questions = asked["questions"].as_array().expect("a list");
        let headers: Vec<&Value> = questions.iter().map(|question| &question["header"]).collect();
        assert_eq!(headers.len(), 3, "{asked}");
        let view = session.view().await;
        assert_eq!((&view["state"], &view["requires"]), (&json!("requires_action"), &json!("question")));
        let answers = |size: &str| -> Vec<Value> {
            let one = |header: &&Value| match header.as_str().expect("a name") {
                "colour" => json!({"choices": ["blue"]}),
                "size" => json!({"text": size}),
                _ => json!({"text": "-"}),
            };
            headers.iter().map(one).collect()
        };
        let client = daemon.client("bob").await;
        // After an invalid value, the daemon asks the question again.
        client
            .call("session.answer", json!({"request_id": asked["request_id"], "answers": answers("100")}))
            .await;
        let again = seen.wait_for("question.requested").await;
        assert!(again["text"].as_str().expect("words").starts_with("size: 100 is greater than"), "{again}");
        let right = json!({"request_id": again["request_id"], "answers": answers("3")});
        let wrong = client
            .refused("session.answer", json!({"request_id": again["request_id"], "choice": "blue"}))
            .await;
        assert!(wrong.message.contains("`answers`"), "{wrong:?}");
        client.call("session.answer", right).await;
        seen.turn_ends("success").await;
        let done = &seen.events_of("tool.completed")[0];
        let output = done["output"].as_str().expect("words");
        assert!(
            output.contains(r#""action":"accept""#) && output.contains(r#"{"colour":"blue","size":3}"#),
            "{output}"
        );
        assert_eq!(output.contains("remembered"), revision == "2026-07-28", "{output}");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn declined_question_reaches_server_as_declined() {
    let (daemon, _script) = daemon_with(behaviour("2025-11-25"), MAY_ASK).await;
    let (session, mut seen) = bypass(&daemon).await;
    daemon.models.push(Step::calls([("mcp__fake__ask", json!({}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("question.requested").await;
    let id = asked["request_id"].as_str().expect("an id");
    assert!(
        ctl(&daemon, &["answer", id, "decline to answer", "decline", "-"])
            .await
            .stdout()
            .contains("answered")
    );
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("tool.completed")[0]["output"], r#"{"action":"decline"}"#);
}

#[tokio::test]
async fn question_of_server_is_declined_without_configuration_or_user() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let (daemon, script) = daemon_with(behaviour(revision), "").await;
        let (session, mut seen) = bypass(&daemon).await;
        let done = turn(&daemon, &session, &mut seen, "mcp__fake__ask", json!({})).await;
        assert!(done["output"].as_str().expect("words").contains(r#""action":"decline""#), "{done}");
        assert!(seen.events_of("question.requested").is_empty());
        let offered = script.lines().iter().any(|line| line.contains("elicitation"));
        assert!(!offered, "the server is not told that it may ask: {:?}", script.lines());
        let logs = daemon.client("bob").await.call("mcp.logs", json!({"name": "fake"})).await;
        assert!(logs["lines"].to_string().contains("elicitation = true"), "{logs}");
    }
    let (daemon, _script) = daemon_with(behaviour("2025-11-25"), MAY_ASK).await;
    let client = daemon.client("alice").await;
    let session = client.create_with(&daemon, json!({"background": true})).await;
    let rule = json!({"session_id": session.id, "kind": "allow", "rule": "mcp__fake", "scope": "session"});
    client.call("permission.add_rule", rule).await;
    let mut seen = session.follow().await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__ask", json!({})).await;
    assert_eq!(done["output"], r#"{"action":"decline"}"#, "an unattended session has no user");
}

#[tokio::test]
async fn open_question_of_server_is_withdrawn_by_abort_and_crash() {
    let (mut daemon, _script) = daemon_with(behaviour("2025-11-25"), MAY_ASK).await;
    let (session, mut seen) = bypass(&daemon).await;
    daemon.models.push(Step::calls([("mcp__fake__ask", json!({}))]));
    session.submit("go").await;
    let asked = seen.wait_for("question.requested").await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    let resolved = &seen.events_of("question.resolved")[0];
    assert_eq!((&resolved["request_id"], &resolved["by"]), (&asked["request_id"], &json!("abort")));

    daemon.models.push(Step::calls([("mcp__fake__ask", json!({}))]));
    session.submit("again").await;
    let asked = seen.wait_for("question.requested").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    let unknown = seen.wait_for("question.requested").await;
    assert_eq!(unknown["kind"], "unknown_outcome");
    let resolved = &seen.events_of("question.resolved")[0];
    assert_eq!(resolved["request_id"], asked["request_id"]);
    daemon.models.push(Step::text("Done."));
    let answer = json!({"request_id": unknown["request_id"], "choice": "continue"});
    daemon.client("carol").await.call("session.answer", answer).await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn model_call_for_server_needs_configuration_and_user() {
    for (revision, place) in
        [("2025-11-25", "only with `sampling = true`"), ("2026-07-28", "asked for a model call")]
    {
        let (daemon, _script) = daemon_with(behaviour(revision), MAY_ASK).await;
        let (session, mut seen) = bypass(&daemon).await;
        let done = turn(&daemon, &session, &mut seen, "mcp__fake__sample", json!({})).await;
        assert!(done["output"].as_str().expect("words").contains(place), "{done}");
        assert_eq!(daemon.models.requests().len(), 2, "no model was called for it");
    }
}

#[tokio::test]
async fn model_call_for_server_is_made_and_booked_after_the_user_allowed_it() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let (daemon, script) = daemon_with(behaviour(revision), "sampling = true").await;
        let (session, mut seen) = bypass(&daemon).await;
        daemon.models.push(Step::calls([("mcp__fake__sample", json!({}))]));
        daemon.models.push(Step::text("Forty-two."));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let asked = seen.wait_for("question.requested").await;
        let text = asked["text"].as_str().expect("words");
        assert!(text.starts_with("The MCP server fake asks for a call of the model "), "{text}");
        assert!(text.ends_with("user: hi\n(at most 5 tokens)"), "{text}");
        assert!(daemon.models.requests().len() == 1, "nothing is sent before the answer");
        let id = asked["request_id"].as_str().expect("an id");
        ctl(&daemon, &["answer", id, "allow"]).await.stdout();
        seen.turn_ends("success").await;
        let requests = daemon.models.requests();
        let sampled = &requests[1].body;
        assert_eq!((&sampled["max_tokens"], sampled["tools"].as_array()), (&json!(5), None), "{sampled}");
        assert!(
            sampled["messages"].to_string().contains("hi") && !sampled.to_string().contains("go"),
            "{sampled}"
        );
        let usage = seen.events_of("usage");
        assert!(
            usage.iter().any(|usage| usage["purpose"] == "mcp" && usage["estimated"] != true),
            "{usage:?}"
        );
        let done = &seen.events_of("tool.completed")[0];
        assert!(done["output"].as_str().expect("words").contains("Forty-two."), "{done}");
        let is_offered = script.lines().iter().any(|line| line.contains("sampling"));
        assert!(is_offered || revision == "2026-07-28", "{:?}", script.lines());
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn declined_model_call_reaches_server_as_declined() {
    let (daemon, _script) = daemon_with(behaviour("2025-11-25"), "sampling = true").await;
    let (session, mut seen) = bypass(&daemon).await;
    daemon.models.push(Step::calls([("mcp__fake__sample", json!({}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("question.requested").await;
    ctl(&daemon, &["answer", asked["request_id"].as_str().expect("an id"), "decline"]).await.stdout();
    seen.turn_ends("success").await;
    let done = &seen.events_of("tool.completed")[0];
    assert!(done["output"].as_str().expect("words").contains("the user declined"), "{done}");
    assert_eq!(daemon.models.requests().len(), 2, "no model was called for the server");
}

#[tokio::test]
async fn model_call_for_server_is_booked_if_an_abort_ends_it() {
    let (daemon, _script) = daemon_with(behaviour("2025-11-25"), "sampling = true").await;
    let (session, mut seen) = bypass(&daemon).await;
    daemon.models.push(Step::calls([("mcp__fake__sample", json!({}))]));
    let gate = Gate::new();
    daemon.models.push(Step::text("never").hold(&gate));
    session.submit("go").await;
    let asked = seen.wait_for("question.requested").await;
    ctl(&daemon, &["answer", asked["request_id"].as_str().expect("an id"), "allow"]).await.stdout();
    daemon.models.wait_for_requests(2).await;
    session.call("abort", json!({})).await;
    let booked = seen.wait_for("usage").await;
    assert_eq!((&booked["purpose"], &booked["estimated"]), (&json!("mcp"), &json!(true)), "{booked}");
}
