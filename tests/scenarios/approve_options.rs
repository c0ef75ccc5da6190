//! What an answer can be beyond yes and no: lasting for a folder, changed, in a list, the end of the
//! turn; and what a change of mode does in the middle of a turn.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};

/// A session whose model makes these calls in one message and then says that it is done.
async fn calls<const N: usize>(house: &TestDaemon, commands: [&str; N]) -> (Session, Log) {
    let session = house.client("alice").await.create(house).await;
    let seen = session.follow().await;
    house.models.push(Step::calls(commands.map(bash)));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    (session, seen)
}

/// What the model was told of each call.
fn told(house: &TestDaemon) -> Vec<String> {
    let last = house.models.requests().pop().expect("a request");
    last.tool_results().into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn a_denial_can_end_the_turn_and_is_said_as_what_it_is() {
    let house = TestDaemon::start().await;
    let (session, mut seen) = calls(&house, ["touch one", "touch two"]).await;
    let one = seen.wait_for("permission.requested").await;
    let two = seen.wait_for("permission.requested").await;
    session.answer(&one, json!({"decision": "deny", "feedback": "not today", "stop": true})).await;
    let aborting = seen.wait_for("turn.aborting").await;
    assert_eq!(aborting["subtype"], "permission_denied");
    let result = seen.turn_ends("permission_denied").await;
    assert_eq!(result["permission_denials"][0]["call_id"], one["call_id"]);
    let withdrawn = seen.seen_of("permission.resolved").pop().expect("the other");
    assert_eq!((&withdrawn["request_id"], &withdrawn["by"]), (&two["request_id"], &json!("abort")));
    assert_eq!(withdrawn["origin"]["client"], "alice", "who withdrew it is named");
    assert!(!house.workspace().join("one").exists() && !house.workspace().join("two").exists());
    assert_eq!(house.models.requests().len(), 1, "the model is not asked again");

    house.models.push(Step::text("As you like."));
    session.submit("and now?").await;
    seen.turn_ends("success").await;
    assert!(told(&house)[0].contains("not today"), "{:?}", told(&house));
    house.models.assert_no_breach();
}

/// Lists inside of each other.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[tokio::test]
async fn a_person_changes_a_call_and_the_model_is_told() {
    let house = TestDaemon::builder().config("[permissions]\ndeny = [\"Bash(rm:*)\"]").start().await;
    let (session, mut seen) = calls(&house, ["touch wrong"]).await;
    let asked = seen.wait_for("permission.requested").await;
    let edit = |input: Value| json!({"decision": "allow", "updated_input": input});
    // Neither what the tool does not take nor what is denied passes; the request stays.
    for (input, word) in [
        (json!({"command": 5}), "command"),
        (json!({}), "command"),
        (json!("touch right"), "object"),
        (json!({"command": "touch right", "x": deep(97)}), "levels"),
        (json!({"command": "rm wrong"}), "Bash(rm:*)"),
    ] {
        let refused = session.answer_refused(&asked, edit(input)).await;
        assert_eq!((refused.code, &refused.data["path"]), (-32602, &json!("updated_input")), "{refused:?}");
        assert!(refused.message.contains(word), "{refused:?}");
    }
    let lasting = json!({"decision": "allow", "scope": "session", "updated_input": {"command": "ls"}});
    assert_eq!(session.answer_refused(&asked, lasting).await.data["path"], "updated_input");
    session.answer(&asked, edit(json!({"command": "touch right"}))).await;
    let resolved = seen.wait_for("permission.resolved").await;
    assert_eq!(resolved["updated_input"], json!({"command": "touch right"}));
    seen.turn_ends("success").await;
    assert!(house.workspace().join("right").exists() && !house.workspace().join("wrong").exists());
    let last = house.models.requests().pop().expect("a request");
    assert!(last.body.to_string().contains("touch wrong"), "the history keeps the model's own words");
    let told = told(&house);
    assert!(told[0].contains("changed the input") && told[0].contains("touch right"), "{told:?}");
    house.models.assert_no_breach();
}

#[tokio::test]
async fn answers_come_in_lists_and_each_stands_for_itself() {
    let house = TestDaemon::start().await;
    let (session, mut seen) = calls(&house, ["touch one", "touch two", "touch three"]).await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(seen.wait_for("permission.requested").await);
    }
    let id = |at: usize| &asked[at]["request_id"];
    let answers = json!({"answers": [
        {"request_id": id(0), "decision": "allow"},
        {"request_id": id(0), "decision": "deny"},
        {"request_id": id(1), "decision": "deny", "feedback": "no"},
        {"request_id": id(2), "decision": "allow", "stop": true},
        {"decision": "allow"},
    ]});
    let reply = session.client.call("session.approve", answers).await;
    let results = reply["results"].as_array().expect("results");
    assert_eq!(results[0]["session_id"], session.id);
    assert_eq!(results[1]["error"]["code"], -32014);
    assert_eq!(results[1]["error"]["data"]["answered_by"]["client"], "alice");
    assert!(results[2]["seq"].is_u64() && results[2]["error"].is_null(), "{reply}");
    assert_eq!(
        (&results[3]["error"]["data"]["path"], &results[4]["error"]["data"]["path"]),
        (&json!("stop"), &json!("request_id"))
    );
    session.client.call("permission.respond", json!({"request_id": id(2), "decision": "allow"})).await;
    seen.turn_ends("success").await;
    let made = ["one", "two", "three"].map(|name| house.workspace().join(name).exists());
    assert_eq!(made, [true, false, true]);
    let both = json!({"request_id": id(0), "decision": "allow", "answers": []});
    assert_eq!(session.client.refused("session.approve", both).await.data["path"], "answers");
}

#[tokio::test]
async fn an_answer_is_bound_to_what_was_seen_and_to_its_folder() {
    let house = TestDaemon::start().await;
    std::fs::create_dir(house.workspace().join("sub")).expect("made");
    let (session, mut seen) = calls(&house, ["cd \"$PWD/sub\"", "touch here"]).await;
    let first = seen.wait_for("permission.requested").await;
    let second = seen.wait_for("permission.requested").await;
    assert_eq!(first["cwd"], json!(house.workspace()));
    assert_eq!(first["digest"].as_str().map(str::len), Some(64));
    let stale = json!({"decision": "allow", "digest": second["digest"]});
    assert_eq!(session.answer_refused(&first, stale).await.code, -32011);
    session.answer(&first, json!({"decision": "allow", "digest": first["digest"]})).await;
    session.answer(&second, json!({"decision": "allow", "digest": second["digest"]})).await;
    seen.turn_ends("success").await;
    let ended = seen.seen_of("tool.completed").pop().expect("the second");
    assert_eq!((&ended["status"], &ended["code"]), (&json!("failed"), &json!("folder_changed")));
    for folder in ["", "sub"] {
        assert!(!house.workspace().join(folder).join("here").exists(), "not run where nobody saw it");
    }
    assert!(told(&house)[1].contains("sub"), "{:?}", told(&house));
}

#[tokio::test]
async fn a_mode_is_changed_in_the_middle_of_a_turn() {
    let house = TestDaemon::start().await;
    let alice = house.client("alice").await;
    let session = alice.create(&house).await;
    let mut seen = session.follow().await;
    let write = |name: &str| ("Write", json!({"file_path": name, "content": "x"}));
    house.models.push(Step::calls([write("one"), bash("touch two")]));
    house.models.push(Step::calls([write("three")]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    let one = seen.wait_for("permission.requested").await;
    let two = seen.wait_for("permission.requested").await;
    let updated = session.call("update", json!({"mode": "accept_edits", "title": "a name"})).await;
    assert_eq!(
        (&updated["session"]["mode"], &updated["session"]["title"]),
        (&json!("accept_edits"), &json!("a name"))
    );
    let told = seen
        .find("the change", |event| event["type"] == "session.updated" && event["mode"] == "accept_edits");
    assert_eq!(told.await["origin"]["client"], "alice");
    let settled = seen.wait_for("permission.resolved").await;
    assert_eq!((&settled["request_id"], &settled["by"]), (&one["request_id"], &json!("mode")));
    assert!(settled["rule"].as_str().is_some_and(|why| why.contains("accept_edits")), "{settled}");
    let late = session.answer_refused(&one, json!({"decision": "deny"})).await;
    assert!(late.code == -32014 && late.message.contains("accept_edits"), "{late:?}");

    // A stricter one takes back nothing that was allowed, and counts for the next call.
    session.call("update", json!({"mode": "plan"})).await;
    session.allow(&two).await;
    seen.turn_ends("success").await;
    let made = ["one", "two", "three"].map(|name| house.workspace().join(name).exists());
    assert_eq!(made, [true, true, false]);
    let denied = seen.seen_of("tool.completed").pop().expect("the last");
    assert_eq!((&denied["status"], &denied["code"]), (&json!("denied"), &json!("denied_by_rule")));
    let again = session.refused("update", json!({"mode": "bypass"})).await;
    assert_eq!((again.code, &again.data["path"]), (-32602, &json!("mode")));
}

#[tokio::test]
async fn a_rule_that_denies_by_now_stands_above_the_answer_to_an_older_request() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("touch made")]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    let rule = json!({"rule": "Bash(touch:*)", "kind": "deny", "scope": "session", "session_id": session.id});
    session.client.call("permission.add_rule", rule).await;
    let why = session.answer_refused(&asked, json!({"decision": "allow"})).await;
    assert!(why.code == -32602 && why.message.contains("denied by the rule Bash(touch:*)"), "{why:?}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(!house.workspace().join("made").exists());
}

#[tokio::test]
async fn a_mode_can_be_that_of_one_turn() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    let write = || Step::calls([("Write", json!({"file_path": "new", "content": "x"}))]);
    for (mode, subtype) in [("plan", "denied"), ("accept_edits", "completed")] {
        house.models.push(write());
        house.models.push(Step::text("Done."));
        session.submit_with(json!({"input": "go", "mode": mode})).await;
        assert_eq!(seen.wait_for("turn.started").await["mode"], mode);
        seen.turn_ends("success").await;
        let ended = seen.seen_of("tool.completed").pop().expect("a result");
        assert_eq!(ended["status"], subtype, "{mode}");
    }
    assert_eq!(session.view().await["mode"], "default");
    let requests = house.models.requests();
    let says_plan = |at: usize| requests[at].body.to_string().matches("Plan mode is on").count();
    assert_eq!((says_plan(0), says_plan(2)), (1, 1), "the model is told of plan mode, in its own turn");
    house.models.assert_no_breach();
}

#[tokio::test]
async fn who_stops_a_turn_is_named_as_who_withdrew_its_requests() {
    let house = TestDaemon::start().await;
    let (session, mut seen) = calls(&house, ["touch never"]).await;
    let asked = seen.wait_for("permission.requested").await;
    let bob = house.client("bob").await.join(&session);
    bob.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    let late = session.answer_refused(&asked, json!({"decision": "allow"})).await;
    assert_eq!((late.code, &late.data["answered_by"]["client"]), (-32014, &json!("bob")), "{late:?}");
    assert!(late.message.contains("bob"), "{late:?}");
}

#[tokio::test]
async fn the_requests_of_all_sessions_are_followed_at_once() {
    let house = TestDaemon::start().await;
    house.models.otherwise(|request| match request.tool_results().is_empty() {
        true => Step::calls([bash("touch it")]),
        false => Step::text("Done."),
    });
    let alice = house.client("alice").await;
    let one = alice.create(&house).await;
    let mut seen = one.follow().await;
    one.submit("go").await;
    let first = seen.wait_for("permission.requested").await;
    let watcher = house.client("watcher").await;
    let subscription = watcher.call("permission.subscribe", json!({})).await;
    let subscription = subscription.as_str().expect("an id").to_owned();
    let mut all = Log::new(watcher.clone(), subscription);
    assert_eq!(all.wait_for("permission.requested").await, first, "what waits comes first");
    let two = alice.create(&house).await;
    two.submit("go").await;
    let second = all.wait_for("permission.requested").await;
    assert_eq!(second["session_id"], two.id);
    one.allow(&first).await;
    let settled = all.wait_for("permission.resolved").await;
    assert_eq!((&settled["session_id"], &settled["request_id"]), (&json!(one.id), &first["request_id"]));
    two.call("kill", json!({})).await;
    assert_eq!(all.wait_for("permission.resolved").await["by"], "abort");
}

#[tokio::test]
async fn a_queued_input_answers_no_question() {
    let mut house = TestDaemon::start().await;
    let session = house.client("alice").await.create_with(&house, json!({"on_restart": "pause"})).await;
    let gate = Gate::new();
    house.models.push(Step::text("never heard").hold_after(2, &gate));
    session.submit("begin").await;
    house.models.wait_for_requests(1).await;
    house.crash_and_restart().await;
    let session = house.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    let asked = seen.wait_for("question.requested").await;
    let queued = session.submit_with(json!({"input": "later", "when_busy": "queue"})).await;
    assert_eq!(queued["state"], "queued");
    assert_eq!(session.view().await["state"], "paused", "the question is still open");
    house.models.push(Step::text("Going on."));
    house.models.push(Step::text("And later."));
    let answer = json!({"request_id": asked["request_id"], "choice": "continue"});
    session.client.call("session.answer", answer).await;
    seen.turn_ends("success").await;
    seen.turn_ends("success").await;
}
