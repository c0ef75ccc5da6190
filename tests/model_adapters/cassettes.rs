//! Recording and playing back cassettes.

use super::*;

#[tokio::test]
async fn recorded_cassette_replays_same_answer() {
    for kind in ALL {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tape.jsonl");
        let server = ModelServer::start().await;
        server.push(Step::calls([("Read", json!({"file_path":"a"}))]).say(&format!("My key is {KEY}.")));
        server.push(Step::error(500, "api_error", "oops"));
        server.push(Step::text("All done."));
        server.push(Step::text("A title."));
        let mut recorded = provider(kind, &server);
        recorded.record = Some(file.clone());
        let live = models_with(recorded, |_| {});

        let asked = hello();
        let (_, first) = call(&live, &asked).await;
        let first = first.unwrap();
        let next = continue_request(asked.clone(), &first);
        assert_eq!(fault(&live, &next).await.kind, FaultKind::Server);
        let (live_deltas, second) = call(&live, &next).await;
        assert_eq!(first.notices, Vec::<String>::new());
        let aside = ModelRequest { is_helper_call: true, ..request(vec![Message::user("A title, please.")]) };
        call(&live, &aside).await.1.unwrap();

        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let tape = std::fs::read_to_string(&file).unwrap();
        assert!(!tape.contains(KEY), "{tape}");
        assert_eq!(tape.lines().count(), 5, "{tape}");

        // Find records by order and by hash, each with a new provider.
        let by_hash = folder.path().join("by_hash.jsonl");
        std::fs::write(&by_hash, tape.replacen("\"order\"", "\"hash\"", 1)).unwrap();
        for cassette in [&file, &by_hash] {
            let player = replay(cassette);
            let (deltas, again) = call(&player, &asked).await;
            assert_eq!(text(&deltas), "My key is ***.");
            assert_eq!(again.unwrap().stop_reason, first.stop_reason);
            // The newest record of this position counts: the failed attempt is not repeated.
            let (deltas, again) = call(&player, &next).await;
            assert_eq!(again, second);
            assert_eq!(text(&deltas), text(&live_deltas));
        }
        // A request outside a conversation is found by its hash alone.
        assert_eq!(fault(&replay(&file), &aside).await.kind, FaultKind::CassetteExhausted);
        let (deltas, title) = call(&replay(&by_hash), &aside).await;
        assert_eq!((text(&deltas), title.unwrap().stop_reason), ("A title.".into(), StopReason::EndTurn));
        let records =
            tape.lines().skip(1).map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        assert_eq!(records.filter(|record| record["at"].is_null()).count(), 1, "{tape}");
    }
}

#[tokio::test]
async fn hand_written_cassette_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.jsonl");
    std::fs::write(
        &file,
        r#"{"cassette":1}
{"thinking":"Hm, well.","say":"I look at it.","calls":[{"tool":"Read","input":{"file_path":"a"}}],"usage":{"output_tokens":9}}
{"say":"Three small words","delay_ms":1,"pace_ms":1}
{"say":"Half a","fail":"overloaded"}
"#,
    )
    .unwrap();
    let models = replay(&file);

    let asked = hello();
    let (deltas, reply) = call(&models, &asked).await;
    let reply = reply.unwrap();
    assert_eq!(text(&deltas), "I look at it.");
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(reply.usage.output_tokens, 9);
    let called = ReplyBlock::ToolCall {
        provider_id: "call_replay_0_2".into(),
        tool: "Read".into(),
        input: Ok(json!({"file_path":"a"})),
    };
    assert_eq!(reply.content[2], called);

    let asked = continue_request(asked, &reply);
    let (deltas, reply) = call(&models, &asked).await;
    let reply = reply.unwrap();
    let pieces = deltas.iter().filter(|delta| matches!(delta, Delta::Text { .. })).count();
    assert_eq!((text(&deltas).as_str(), pieces), ("Three small words", 3));

    let asked = continue_request(asked, &reply);
    let (deltas, outcome) = call(&models, &asked).await;
    assert_eq!(text(&deltas), "Half a");
    assert_eq!(outcome.unwrap_err().kind, FaultKind::Overloaded);

    // No record is left, and the player invents none.
    let asked = continue_request(asked, &reply);
    let fault_ = fault(&models, &asked).await;
    assert_eq!(fault_.kind, FaultKind::CassetteExhausted);
    assert!(fault_.message.contains("no record number 4, it holds 3"), "{fault_:?}");

    // The first record again: the player finds the position from the request alone.
    assert!(call(&models, &hello()).await.1.is_ok());
}

#[tokio::test]
async fn invalid_cassette_error_names_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.jsonl");
    std::fs::write(&file, "{\"say\":\"a\"}\n{\"sya\":\"b\"}\n").unwrap();
    let fault_ = fault(&replay(&file), &hello()).await;
    assert_eq!(fault_.kind, FaultKind::Unconfigured);
    assert!(fault_.message.contains("line 2: unknown field `sya`"), "{fault_:?}");
    let absent = fault(&replay(&folder.path().join("absent")), &hello()).await;
    assert!(absent.message.contains("could not be read"), "{absent:?}");
}

#[tokio::test]
async fn recorded_cassette_contains_no_secret() {
    for kind in ALL {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tape.jsonl");
        let server = ModelServer::start().await;
        let mut recorded = provider(kind, &server);
        recorded.base_url = recorded.base_url.map(|url| url.replacen("://", "://me:hush-password@", 1));
        recorded.headers.insert("X-Gateway-Token".into(), "hush-token".into());
        recorded.headers.insert("X-Title".into(), "agentd".into());
        recorded.record = Some(file.clone());
        let models = models_with(recorded, |_| {});
        server.push(Step::error(400, "invalid_request_error", "hush-token of agentd, hush-password"));
        server.push(Step::text(&format!("You sent hush-token, hush-password, {KEY} and agentd.")));
        let fault = fault(&models, &hello()).await;
        assert!(!fault.message.contains("hush"), "{fault:?}");
        call(&models, &hello()).await.1.unwrap();
        let tape = std::fs::read_to_string(&file).unwrap();
        assert!(!tape.contains("hush") && !tape.contains(KEY), "{kind:?}: {tape}");
        assert!(tape.contains("agentd") && tape.contains("***"), "other values are recorded: {tape}");
    }
}
