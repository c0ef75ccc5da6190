//! Answers beyond allow and deny: grants for a project, edited arguments, batches, ending the turn.
//! Also a change of the approval mode during a turn.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};

/// A session whose model makes these calls in one message and then answers "done".
async fn calls<const N: usize>(daemon: &TestDaemon, commands: [&str; N]) -> (Session, Log) {
    let session = daemon.client("alice").await.create(daemon).await;
    let seen = session.follow().await;
    daemon.models.push(Step::calls(commands.map(bash)));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    (session, seen)
}

/// The result that the model received for each call.
fn tool_results(daemon: &TestDaemon) -> Vec<String> {
    let last = daemon.models.requests().pop().expect("a request");
    last.tool_results().into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn denial_with_stop_ends_turn_as_permission_denied() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen) = calls(&daemon, ["touch one", "touch two"]).await;
    let one = seen.wait_for("permission.requested").await;
    let two = seen.wait_for("permission.requested").await;
    session.answer(&one, json!({"decision": "deny", "feedback": "not today", "stop": true})).await;
    let aborting = seen.wait_for("turn.aborting").await;
    assert_eq!(aborting["subtype"], "permission_denied");
    let result = seen.turn_ends("permission_denied").await;
    assert_eq!(result["permission_denials"][0]["call_id"], one["call_id"]);
    let withdrawn = seen.events_of("permission.resolved").pop().expect("the other request");
    assert_eq!((&withdrawn["request_id"], &withdrawn["by"]), (&two["request_id"], &json!("abort")));
    assert_eq!(withdrawn["origin"]["client"], "alice", "the event names the client that aborted");
    assert!(!daemon.workspace().join("one").exists() && !daemon.workspace().join("two").exists());
    assert_eq!(daemon.models.requests().len(), 1, "the model is not asked again");

    daemon.models.push(Step::text("As you like."));
    session.submit("and now?").await;
    seen.turn_ends("success").await;
    assert!(tool_results(&daemon)[0].contains("not today"), "{:?}", tool_results(&daemon));
    daemon.models.assert_no_breach();
}

/// Nested lists.
fn nested_lists(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[tokio::test]
async fn edited_call_runs_and_is_reported_to_model() {
    let daemon = TestDaemon::builder().config("[permissions]\ndeny = [\"Bash(rm:*)\"]").start().await;
    let (session, mut seen) = calls(&daemon, ["touch wrong"]).await;
    let asked = seen.wait_for("permission.requested").await;
    let edit = |input: Value| json!({"decision": "allow", "updated_input": input});
    // Invalid arguments and denied calls are both rejected; the request stays pending.
    for (input, word) in [
        (json!({"command": 5}), "command"),
        (json!({}), "command"),
        (json!("touch right"), "object"),
        (json!({"command": "touch right", "x": nested_lists(97)}), "levels"),
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
    assert!(daemon.workspace().join("right").exists() && !daemon.workspace().join("wrong").exists());
    let last = daemon.models.requests().pop().expect("a request");
    assert!(last.body.to_string().contains("touch wrong"), "the history keeps the model's own words");
    let told = tool_results(&daemon);
    assert!(told[0].contains("changed the input") && told[0].contains("touch right"), "{told:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn approve_list_handles_each_answer_independently() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen) = calls(&daemon, ["touch one", "touch two", "touch three"]).await;
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
    let made = ["one", "two", "three"].map(|name| daemon.workspace().join(name).exists());
    assert_eq!(made, [true, false, true]);
    let both = json!({"request_id": id(0), "decision": "allow", "answers": []});
    assert_eq!(session.client.refused("session.approve", both).await.data["path"], "answers");
}

#[tokio::test]
async fn answer_is_bound_to_request_digest_and_folder() {
    let daemon = TestDaemon::start().await;
    std::fs::create_dir(daemon.workspace().join("sub")).expect("made");
    let (session, mut seen) = calls(&daemon, ["cd \"$PWD/sub\"", "touch here"]).await;
    let first = seen.wait_for("permission.requested").await;
    let second = seen.wait_for("permission.requested").await;
    assert_eq!(first["cwd"], json!(daemon.workspace()));
    assert_eq!(first["digest"].as_str().map(str::len), Some(64));
    let stale = json!({"decision": "allow", "digest": second["digest"]});
    assert_eq!(session.answer_refused(&first, stale).await.code, -32011);
    session.answer(&first, json!({"decision": "allow", "digest": first["digest"]})).await;
    session.answer(&second, json!({"decision": "allow", "digest": second["digest"]})).await;
    seen.turn_ends("success").await;
    let ended = seen.events_of("tool.completed").pop().expect("the second");
    assert_eq!((&ended["status"], &ended["code"]), (&json!("failed"), &json!("folder_changed")));
    for folder in ["", "sub"] {
        assert!(
            !daemon.workspace().join(folder).join("here").exists(),
            "the call ran in a folder that the user did not see"
        );
    }
    assert!(tool_results(&daemon)[1].contains("sub"), "{:?}", tool_results(&daemon));
}

#[tokio::test]
async fn approval_mode_change_applies_during_turn() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let write = |name: &str| ("Write", json!({"file_path": name, "content": "x"}));
    daemon.models.push(Step::calls([write("one"), bash("touch two")]));
    daemon.models.push(Step::calls([write("three")]));
    daemon.models.push(Step::text("Done."));
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

    // While "one" runs, an allowed call after it would wait and be judged again.
    if seen.events_of("tool.completed").is_empty() {
        seen.wait_for("tool.completed").await;
    }
    // A stricter mode does not revoke what was allowed. It applies to the next call.
    session.call("update", json!({"mode": "plan"})).await;
    session.allow(&two).await;
    seen.turn_ends("success").await;
    let made = ["one", "two", "three"].map(|name| daemon.workspace().join(name).exists());
    assert_eq!(made, [true, true, false]);
    let denied = seen.events_of("tool.completed").pop().expect("the last");
    assert_eq!((&denied["status"], &denied["code"]), (&json!("denied"), &json!("denied_by_rule")));
    let again = session.refused("update", json!({"mode": "bypass"})).await;
    assert_eq!((again.code, &again.data["path"]), (-32602, &json!("mode")));
}

#[tokio::test]
async fn new_deny_rule_overrides_answer_to_pending_request() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch made")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    let rule = json!({"rule": "Bash(touch:*)", "kind": "deny", "scope": "session", "session_id": session.id});
    session.client.call("permission.add_rule", rule).await;
    let why = session.answer_refused(&asked, json!({"decision": "allow"})).await;
    assert!(why.code == -32602 && why.message.contains("denied by the rule Bash(touch:*)"), "{why:?}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(!daemon.workspace().join("made").exists());
}

#[tokio::test]
async fn approval_mode_of_submit_applies_to_one_turn() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let write = || Step::calls([("Write", json!({"file_path": "new", "content": "x"}))]);
    for (mode, subtype) in [("plan", "denied"), ("accept_edits", "completed")] {
        daemon.models.push(write());
        daemon.models.push(Step::text("Done."));
        session.submit_with(json!({"input": "go", "mode": mode})).await;
        assert_eq!(seen.wait_for("turn.started").await["mode"], mode);
        seen.turn_ends("success").await;
        let ended = seen.events_of("tool.completed").pop().expect("a result");
        assert_eq!(ended["status"], subtype, "{mode}");
    }
    assert_eq!(session.view().await["mode"], "default");
    let requests = daemon.models.requests();
    let says_plan = |at: usize| requests[at].body.to_string().matches("Plan mode is on").count();
    assert_eq!((says_plan(0), says_plan(2)), (1, 1), "the model is told of plan mode, in its own turn");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn late_answer_error_names_client_that_aborted() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen) = calls(&daemon, ["touch never"]).await;
    let asked = seen.wait_for("permission.requested").await;
    let bob = daemon.client("bob").await.join(&session);
    bob.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    let late = session.answer_refused(&asked, json!({"decision": "allow"})).await;
    assert_eq!((late.code, &late.data["answered_by"]["client"]), (-32014, &json!("bob")), "{late:?}");
    assert!(late.message.contains("bob"), "{late:?}");
}

#[tokio::test]
async fn pending_requests_of_all_sessions_are_followed() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|request| match request.tool_results().is_empty() {
        true => Step::calls([bash("touch it")]),
        false => Step::text("Done."),
    });
    let alice = daemon.client("alice").await;
    let one = alice.create(&daemon).await;
    let mut seen = one.follow().await;
    one.submit("go").await;
    let first = seen.wait_for("permission.requested").await;
    let watcher = daemon.client("watcher").await;
    let subscription = watcher.call("permission.subscribe", json!({})).await;
    let subscription = subscription.as_str().expect("an id").to_owned();
    let mut all = Log::new(watcher.clone(), subscription);
    assert_eq!(all.wait_for("permission.requested").await, first, "pending requests come first");
    let two = alice.create(&daemon).await;
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
async fn queued_input_does_not_answer_pending_request() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"on_restart": "pause"})).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("never heard").hold_after(2, &gate));
    session.submit("begin").await;
    daemon.models.wait_for_requests(1).await;
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    let asked = seen.wait_for("question.requested").await;
    let queued = session.submit_with(json!({"input": "later", "when_busy": "queue"})).await;
    assert_eq!(queued["state"], "queued");
    assert_eq!(session.view().await["state"], "paused", "the question is still pending");
    daemon.models.push(Step::text("Going on."));
    daemon.models.push(Step::text("And later."));
    let answer = json!({"request_id": asked["request_id"], "choice": "continue"});
    session.client.call("session.answer", answer).await;
    seen.turn_ends("success").await;
    seen.turn_ends("success").await;
}
