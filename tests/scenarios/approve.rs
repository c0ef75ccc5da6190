//! Permission requests and answers: which clients receive a request, the effect of an answer, and calls
//! that never need a second request.

use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

#[tokio::test]
async fn session_grant_covers_pending_and_later_calls_after_crash() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch one"), bash("touch two")]));
    daemon.models.push(Step::calls([bash("touch three")]));
    daemon.models.push(Step::text("Made."));
    session.submit("make three files").await;

    let one = seen.wait_for("permission.requested").await;
    let two = seen.wait_for("permission.requested").await;
    let suggestions = one["suggestions"].as_array().expect("suggestions");
    assert_eq!(suggestions[0], "Bash(touch one)", "the narrowest rule comes first");
    assert!(suggestions.contains(&json!("Bash(touch:*)")), "{suggestions:?}");
    let grant = json!({"decision": "allow", "scope": "session", "grant": "Bash(touch:*)"});
    assert_eq!(session.answer(&one, grant).await["grant"], "Bash(touch:*)");

    let settled = seen.find("the second request to be settled", |event| {
        event["type"] == "permission.resolved" && event["request_id"] == two["request_id"]
    });
    assert_eq!(settled.await["decision"], "allow");
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("permission.requested").len(), 2, "the third command needs no request");
    for name in ["one", "two", "three"] {
        assert!(daemon.workspace().join(name).exists(), "{name}");
    }

    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    daemon.models.push(Step::calls([bash("touch four")]));
    daemon.models.push(Step::text("Made."));
    session.submit("and a fourth").await;
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("four").exists());
    assert!(seen.events_of("permission.requested").is_empty());
}

#[tokio::test]
async fn session_grant_does_not_apply_to_other_sessions() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    daemon.models.set_fallback(|request| match request.tool_results().is_empty() {
        true => Step::calls([bash("touch mark")]),
        false => Step::text("Done."),
    });
    let first = alice.create(&daemon).await;
    let mut seen = first.follow().await;
    first.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    first.answer(&asked, json!({"decision": "allow", "scope": "session"})).await;
    seen.turn_ends("success").await;

    let second = alice.create(&daemon).await;
    let mut seen = second.follow().await;
    second.submit("go").await;
    seen.wait_for("permission.requested").await;
}

#[tokio::test]
async fn denied_call_is_not_run_and_reported_to_model() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch never"), bash("touch always")]));
    daemon.models.push(Step::text("As you like."));
    session.submit("make two files").await;

    let never = seen.wait_for("permission.requested").await;
    let always = seen.wait_for("permission.requested").await;
    session.answer(&never, json!({"decision": "deny"})).await;
    session.allow(&always).await;

    let denied = seen.wait_for_call("tool.completed", &never["call_id"]).await;
    assert_eq!(denied["status"], "denied");
    let result = seen.turn_ends("success").await;
    assert_eq!(result["permission_denials"][0]["call_id"], never["call_id"]);
    assert!(!daemon.workspace().join("never").exists());
    assert!(daemon.workspace().join("always").exists(), "a denial does not stop other calls");
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[0].1.contains("denied"), "{results:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn denial_feedback_is_sent_to_model() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("rm -r build")]));
    daemon.models.push(Step::text("I shall keep it."));
    session.submit("clean up").await;
    let asked = seen.wait_for("permission.requested").await;
    let answer = json!({"decision": "deny", "feedback": "keep build, delete only dist"});
    session.answer(&asked, answer).await;
    seen.turn_ends("success").await;
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[0].1.contains("keep build, delete only dist"), "{results:?}");
}

#[tokio::test]
async fn read_only_calls_run_without_request_while_another_call_waits() {
    let daemon = TestDaemon::start().await;
    daemon.write("a.txt", "alpha\n");
    daemon.write("b.txt", "beta\n");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let read = |name: &str| ("Read", json!({"file_path": daemon.workspace().join(name)}));
    daemon.models.push(Step::calls([read("a.txt"), read("b.txt"), bash("touch c.txt"), read("a.txt")]));
    daemon.models.push(Step::text("Read."));
    session.submit("read them").await;

    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(asked["tool"], "Bash");
    // The reads start while the answer is streamed, so they may end before the request.
    while seen.events_of("tool.completed").len() < 2 {
        seen.wait_for("tool.completed").await;
    }
    assert!(seen.events_of("tool.completed").iter().all(|done| done["tool"] == "Read"));
    let so_far = seen.events();
    let started = so_far.iter().filter(|event| event["type"] == "tool.started").count();
    assert_eq!(started, 2, "the read after the command waits for it");

    session.allow(&asked).await;
    seen.turn_ends("success").await;
    let results = daemon.models.requests()[1].tool_results();
    let texts: Vec<bool> = results.iter().map(|(_, text)| text.contains("alpha")).collect();
    assert_eq!(texts, [true, false, false, true], "results come in the order of the calls: {results:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn attended_session_without_clients_waits_for_answer() {
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::calls([bash("touch done")]));
    daemon.models.push(Step::text("Done."));
    let session = {
        let alice = daemon.client("alice").await;
        let session = alice.create(&daemon).await;
        session.submit("do it").await;
        session.id.clone()
    };
    daemon.models.wait_for_requests(1).await;

    let bob = daemon.client("bob").await;
    let session = bob.join(&crate::support::client::Session { client: bob.clone(), id: session });
    let mut seen = session.follow().await;
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(session.pending().await[0]["request_id"], asked["request_id"]);
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("done").exists());
    assert!(session.pending().await.is_empty());
}

#[tokio::test]
async fn one_of_many_concurrent_answers_takes_effect() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo once >> log.txt")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    let mut sent = Vec::new();
    for n in 0..10 {
        let client = daemon.client(&format!("client {n}")).await;
        let answer = json!({"request_id": asked["request_id"], "decision": "allow"});
        let id = client.send("session.approve", answer).await;
        sent.push((client, id));
    }
    let mut winners = Vec::new();
    let mut named = Vec::new();
    for (n, (client, id)) in sent.iter().enumerate() {
        match client.reply(*id).await {
            Ok(_) => winners.push(json!(format!("client {n}"))),
            Err(refusal) => {
                assert_eq!(refusal.code, -32014);
                named.push(refusal.data["answered_by"]["client"].clone());
            }
        }
    }
    assert_eq!((winners.len(), named.len()), (1, 9));
    assert!(named.iter().all(|name| *name == winners[0]), "{named:?} instead of {winners:?}");
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "once\n");
}

#[tokio::test]
async fn answer_to_unknown_request_is_refused() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let unknown = json!({"request_id": "perm_0190f2a4-0000-7000-8000-000000000000"});
    let refusal = alice.refused("session.approve", {
        let mut params = unknown.clone();
        params["decision"] = json!("allow");
        params
    });
    assert_eq!(refusal.await.code, -32002);
    let malformed = json!({"request_id": "perm_x", "decision": "allow"});
    assert_eq!(alice.refused("session.approve", malformed).await.code, -32602);
}

#[tokio::test]
async fn grant_not_covering_call_is_refused_as_invalid_params() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch mark")]));
    daemon.models.push(Step::text("Made."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    for (answer, path) in [
        (json!({"decision": "allow", "scope": "session", "grant": "Edit(**)"}), "grant"),
        (json!({"decision": "allow", "scope": "session", "grant": "Bash(rm:*)"}), "grant"),
        (json!({"decision": "allow", "grant": "Bash(touch mark)"}), "grant"),
        (json!({"decision": "deny", "scope": "session"}), "scope"),
    ] {
        let refused = session.answer_refused(&asked, answer).await;
        assert_eq!((refused.code, refused.kind.as_str()), (-32602, "invalid_params"), "{refused:?}");
        assert_eq!(refused.data["path"], path, "{refused:?}");
    }
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("mark").exists());
}

/// In one message a later call may need the result of an earlier one.
#[tokio::test]
async fn call_depending_on_earlier_calls_is_prepared_again() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\", \"Edit\"]").start().await;
    daemon.write("old.txt", "one\n");
    let edit = |file: &str, old: &str, new: &str| {
        ("Edit", json!({"file_path": file, "old_string": old, "new_string": new}))
    };
    let read = |file: &str| ("Read", json!({"file_path": file}));
    daemon.models.push(Step::calls([
        bash("echo made > made.txt; mkdir folder"),
        read("made.txt"),
        ("LS", json!({"path": "folder"})),
        read("old.txt"),
        edit("old.txt", "one", "two"),
        edit("old.txt", "two", "three"),
        ("Write", json!({"file_path": "new.txt", "content": "a\n"})),
        edit("new.txt", "a", "b"),
        edit("new.txt", "a", "c"),
        read("never.txt"),
    ]));
    daemon.models.push(Step::text("Done."));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    session.submit("go").await;
    seen.turn_ends("success").await;
    let codes: Vec<String> =
        daemon.models.requests()[1].tool_results().iter().map(|it| it.1.clone()).collect();
    assert_eq!(
        (daemon.read("old.txt").as_str(), daemon.read("new.txt").as_str()),
        ("three\n", "b\n"),
        "{codes:?}"
    );
    let failed: Vec<Value> = seen
        .events_of("tool.completed")
        .into_iter()
        .map(|done| done["code"].clone())
        .filter(|code| !code.is_null())
        .collect();
    assert_eq!(failed, ["string_not_found", "file_not_found"], "{codes:?}");
}

#[tokio::test]
async fn read_only_commands_run_in_parallel_and_others_sequentially() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    daemon.write("a.txt", "b\na\n");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let calls = ["pwd", "cat a.txt | sort", "cd . && ls", "touch c.txt", "ls"];
    daemon.models.push(Step::calls(calls.map(bash)));
    daemon.models.push(Step::text("Done."));
    session.submit("look").await;
    seen.turn_ends("success").await;
    let ran: Vec<(&str, Value)> = seen
        .events()
        .iter()
        .filter_map(|event| match event["type"].as_str() {
            Some("tool.started") => Some(("started", event["read_only"].clone())),
            Some("tool.completed") => Some(("completed", Value::Null)),
            _ => None,
        })
        .collect();
    let (read, write, done) =
        (("started", json!(true)), ("started", json!(false)), ("completed", Value::Null));
    // The first two calls start together. A command that changes the folder or a file runs alone.
    let expected = [&read, &read, &done, &done, &write, &done, &write, &done, &read, &done];
    assert_eq!(ran, expected.map(Clone::clone));
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[1].1.contains("a\nb"), "{results:?}");
}
