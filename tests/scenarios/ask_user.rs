//! Questions of the model to the user: raised once, answered once, kept over a crash.

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::client::Session;
use crate::support::daemon::{ALL_APIS, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::Step;

fn two_questions() -> Value {
    json!([
        {"question": "Which colour?", "header": "Colour",
            "options": [{"label": "red"}, {"label": "blue", "description": "like the sky"}]},
        {"question": "Which sizes?", "options": [{"label": "S"}, {"label": "L"}], "multi_select": true},
    ])
}

async fn ask_questions(daemon: &TestDaemon, questions: Value) -> (Session, Log, Value) {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("AskUser", json!({ "questions": questions }))]));
    session.submit("paint it").await;
    let question = seen.wait_for("question.requested").await;
    (session, seen, question)
}

#[tokio::test]
async fn answers_of_user_reach_model_after_crash_with_same_request() {
    for api in ALL_APIS {
        let mut daemon = TestDaemon::builder().api(api).start().await;
        let (session, seen, question) = ask_questions(&daemon, two_questions()).await;
        assert_eq!((&question["kind"], &question["text"]), (&json!("question"), &json!("Which colour?")));
        assert_eq!((&question["options"], &question["questions"]), (&json!([]), &two_questions()));
        let view = session.view().await;
        assert_eq!((&view["state"], &view["requires"]), (&json!("requires_action"), &json!("question")));
        assert!(seen.events_of("permission.requested").is_empty(), "a question needs no permission");

        daemon.crash_and_restart().await;
        let session = daemon.client("bob").await.join(&session);
        let view = session.view().await;
        assert_eq!((&view["state"], &view["requires"]), (&json!("requires_action"), &json!("question")));
        let mut seen = session.follow_after(seen.last_seq()).await;
        daemon.models.push(Step::text("Painted."));
        let answers = json!([{"choices": ["blue"]}, {"choices": ["S", "L"], "text": "and M"}]);
        let params = json!({"request_id": question["request_id"], "answers": answers});
        let bob = daemon.client("bob").await;
        bob.call("session.answer", params.clone()).await;
        seen.turn_ends("success").await;
        let resolved = &seen.events_of("question.resolved")[0];
        assert_eq!((&resolved["answers"], &resolved["by"]), (&answers, &json!("answer")));
        assert_eq!(resolved.get("choice"), None);
        let results = daemon.models.requests().last().expect("one").tool_results();
        let text = &results.last().expect("a result").1;
        assert!(text.contains("Question: Which colour?\nAnswer: blue"), "{api:?}: {text}");
        assert!(text.contains("Answer: S; L; and M"), "{api:?}: {text}");
        assert_eq!(bob.refused("session.answer", params).await.kind, "not_pending");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn wrong_answers_are_refused_with_their_place_and_question_stays_open() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, question) = ask_questions(&daemon, two_questions()).await;
    let id = question["request_id"].clone();
    let alice = daemon.client("alice").await;
    let fine = json!({"choices": ["S"]});
    for (params, path) in [
        (json!({}), "answers"),
        (json!({"choice": "continue"}), "choice"),
        (json!({"choice": "perhaps"}), "choice"),
        (json!({"choice": "continue", "answers": [fine, fine]}), "answers"),
        (json!({"answers": []}), "answers"),
        (json!({"answers": [{"choices": ["red"]}]}), "answers"),
        (json!({"answers": [{"choices": ["green"]}, fine]}), "answers[0].choices"),
        (json!({"answers": [{"choices": ["red", "blue"]}, fine]}), "answers[0].choices"),
        (json!({"answers": [{"choices": ["red"]}, {"choices": ["S", "S"]}]}), "answers[1].choices"),
        (json!({"answers": [{"text": " "}, fine]}), "answers[0]"),
        (json!({"answers": [{"text": "x".repeat(20_000)}, fine]}), "answers[0].text"),
        (json!({"answers": [{"chosen": "red"}, fine]}), "answers[0].chosen"),
    ] {
        let mut params = params.clone();
        params["request_id"] = id.clone();
        let refused = alice.refused("session.answer", params.clone()).await;
        assert_eq!(refused.kind, "invalid_params", "{params}");
        assert_eq!(refused.data["path"], path, "{params}");
    }
    assert_eq!(session.view().await["requires"], "question");
    daemon.models.push(Step::text("Painted."));
    let answers = json!([{"text": "green"}, {"choices": ["S"]}]);
    alice.call("session.answer", json!({"request_id": id, "answers": answers})).await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn abort_withdraws_question_and_conversation_stays_valid() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, question) = ask_questions(&daemon, two_questions()).await;
    // Further input is queued and does not answer the question.
    session.submit("and hurry").await;
    daemon.models.push(Step::text("Hello again."));
    session.call("abort", json!({"turn_id": question["turn_id"]})).await;
    let resolved = seen.wait_for("question.resolved").await;
    assert_eq!((&resolved["by"], resolved.get("answers")), (&json!("abort"), None));
    seen.turn_ends("aborted").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn unattended_session_gets_no_answer_at_once() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"background": true})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("AskUser", json!({ "questions": two_questions() }))]));
    daemon.models.push(Step::text("Blue then."));
    session.submit("paint it").await;
    seen.turn_ends("success").await;
    let done = &seen.events_of("tool.completed")[0];
    assert_eq!((&done["status"], &done["code"]), (&json!("failed"), &json!("no_answer")));
    assert!(done["output"].to_string().contains("No answer"), "{done}");
    assert!(seen.events_of("question.requested").is_empty());
}

#[tokio::test]
async fn question_with_wrong_arguments_goes_back_to_model() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("AskUser", json!({"questions": []}))]));
    daemon.models.push(Step::text("Never mind."));
    session.submit("ask me").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("tool.completed")[0]["code"], "invalid_input");
}

#[tokio::test]
async fn agentctl_answers_questions_by_number_and_words() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, question) = ask_questions(&daemon, two_questions()).await;
    let listed = ctl(&daemon, &["approvals"]).await;
    assert!(listed.out.contains("Which colour?") && listed.err.contains("ANSWER"), "{listed:?}");
    let short = ctl(&daemon, &["answer", &session.id, "2"]).await;
    assert!(short.code != 0 && short.err.contains("2 questions need as many answers"), "{short:?}");
    let wrong = ctl(&daemon, &["answer", &session.id, "7", "1"]).await;
    assert!(wrong.code != 0 && wrong.err.contains("1 to 2"), "{wrong:?}");
    daemon.models.push(Step::text("Painted."));
    let id = question["request_id"].as_str().expect("an id");
    ctl(&daemon, &["answer", id, "2", "1,2"]).await.stdout();
    seen.turn_ends("success").await;
    let answers = seen.events_of("question.resolved")[0]["answers"].clone();
    assert_eq!(answers, json!([{"choices": ["blue"]}, {"choices": ["S", "L"]}]));
}
