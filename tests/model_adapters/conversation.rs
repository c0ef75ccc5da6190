//! Requests of the adapters, and how the adapters parse the answers.

use super::*;

#[tokio::test]
async fn tool_conversation_works_with_every_api() {
    for kind in ALL {
        let server = ModelServer::start().await;
        server.push(
            Step::calls([("Read", json!({"file_path":"a"})), ("Read", json!({"file_path":"ß"}))])
                .thinking("Let me see.")
                .say("I read.")
                .usage(100, 20),
        );
        server.push(Step::text("All done."));
        let models = models(kind, &server);

        let asked = hello();
        let (deltas, reply) = call(&models, &asked).await;
        let reply = reply.unwrap();
        assert_eq!(text(&deltas), "I read.");
        assert_eq!(reply.stop_reason, StopReason::ToolUse);
        assert_eq!(reply.usage, Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() });
        assert_eq!(reply.content.len(), 4, "{reply:?}");

        let (deltas, reply) = call(&models, &continue_request(asked, &reply)).await;
        assert_eq!(text(&deltas), "All done.");
        assert_eq!(reply.unwrap().stop_reason, StopReason::EndTurn);

        server.assert_no_breach();
        let requests = server.requests();
        assert_eq!(requests[1].tool_results().len(), 2, "{:?}", requests[1].body);
        assert_eq!(requests[1].tool_results()[0].1, "result of Read");
        let sent = match kind {
            ProviderKind::Anthropic => requests[0].header("x-api-key"),
            _ => requests[0].header("authorization").and_then(|value| value.strip_prefix("Bearer ")),
        };
        assert_eq!(sent, Some(KEY));
        assert_eq!(requests[0].header("anthropic-version").is_some(), kind == ProviderKind::Anthropic);
        assert!(requests[0].header("user-agent").is_some_and(|agent| agent.starts_with("agentd/")));
    }
}

#[tokio::test]
async fn sequential_model_calls_reuse_connection() {
    let server = ModelServer::start().await;
    server.set_fallback(|_| Step::text("hi"));
    let models = models(ProviderKind::Anthropic, &server);
    models.prepare_clients().await;
    for _ in 0..20 {
        call(&models, &hello()).await.1.unwrap();
    }
    assert!(server.connections() < 20, "{} connections for 20 calls", server.connections());
}

#[tokio::test]
async fn unstreamed_reply_equals_streamed_reply() {
    for kind in ALL {
        let server = ModelServer::start().await;
        let step = Step::calls([("Read", json!({"file_path":"a"}))]).say("I read.").usage(7, 3);
        server.push(step.clone());
        server.push(step);
        let plain = ModelFacts { streaming: Some(false), ..ModelFacts::default() };
        let piecewise = models(kind, &server);
        let whole = models_with(provider(kind, &server), |settings| {
            settings.models.insert("test/scripted".into(), plain);
        });
        let (streamed_deltas, streamed) = call(&piecewise, &hello()).await;
        let (deltas, reply) = call(&whole, &hello()).await;
        let (mut streamed, reply) = (streamed.unwrap(), reply.unwrap());
        assert_eq!(text(&deltas), text(&streamed_deltas));
        // Ids contain the number of the request.
        streamed.response_id.clone_from(&reply.response_id);
        if let (
            Some(ReplyBlock::ToolCall { provider_id, .. }),
            Some(ReplyBlock::ToolCall { provider_id: id, .. }),
        ) = (streamed.content.last_mut(), reply.content.last())
        {
            provider_id.clone_from(id);
        }
        assert_eq!(reply, streamed);
        server.assert_no_breach();
    }
}

#[tokio::test]
async fn configured_headers_override_default_headers() {
    let server = ModelServer::start().await;
    server.push(Step::text("hi"));
    let mut provider = provider(ProviderKind::Anthropic, &server);
    provider.headers.insert("anthropic-version".into(), "2099-01-01".into());
    provider.headers.insert("X-Title".into(), "test".into());
    call(&models_with(provider, |_| {}), &hello()).await.1.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.header("anthropic-version"), Some("2099-01-01"));
    assert_eq!(request.header("x-title"), Some("test"));
}

#[tokio::test]
async fn test_server_refuses_requests_like_strict_provider() {
    let server = ModelServer::start().await;
    let twice = request(vec![Message::user("one"), Message::user("two")]);
    let call_id = Mint::new(1, Seed(1)).call();
    let unanswered = Block::ToolCall(ToolCall {
        call_id,
        provider_id: "c1".into(),
        tool: "Read".into(),
        input: json!({}),
        input_error: None,
    });
    let said = Message::new(Role::Assistant, vec![unanswered]);
    let open = request(vec![Message::user("one"), said, Message::user("two")]);
    let mut breaches = 0;
    for kind in ALL {
        let models = models(kind, &server);
        for (asked, words) in [(&open, "c1"), (&hello(), "no step left")] {
            let fault = fault(&models, asked).await;
            assert_eq!(fault.kind, FaultKind::BadRequest);
            assert!(fault.message.contains(words), "{fault:?} lacks {words:?}");
            breaches += 1;
            assert_eq!(server.breaches().len(), breaches);
        }
    }
    let fault = fault(&models(ProviderKind::Anthropic, &server), &twice).await;
    assert!(fault.message.contains("expected role assistant"), "{fault:?}");
}

/// A provider that stores the conversation, and the request of a later call.
fn stateful(server: &ModelServer) -> Models {
    models_with(Provider { store: true, ..provider(ProviderKind::OpenAiResponses, server) }, |_| {})
}

fn next_request(asked: ModelRequest, reply: &ModelReply) -> ModelRequest {
    ModelRequest { previous_response_id: reply.response_id.clone(), ..continue_request(asked, reply) }
}

#[tokio::test]
async fn stored_conversation_sends_new_items_only() {
    let server = ModelServer::start().await;
    server.push(Step::calls([("Read", json!({"file_path":"a"}))]).thinking("Hm.").say("I read."));
    server.push(Step::text("All done."));
    let models = stateful(&server);
    let first = call(&models, &hello()).await.1.unwrap();
    let later = next_request(hello(), &first);
    assert_eq!(call(&models, &later).await.1.unwrap().content, [ReplyBlock::Text("All done.".into())]);
    server.assert_no_breach();
    let requests = server.requests();
    assert_eq!(requests[0].body["store"], true);
    assert_eq!(requests[1].body["previous_response_id"], "resp_0");
    let input = requests[1].body["input"].as_array().expect("a list");
    assert_eq!(input.len(), 1, "only the result: {input:?}");
    assert_eq!(requests[1].tool_results()[0].1, "result of Read");
}

#[tokio::test]
async fn helper_call_is_not_stored_by_provider() {
    let server = ModelServer::start().await;
    server.push(Step::text("A title"));
    let models =
        models_with(Provider { store: true, ..provider(ProviderKind::OpenAiResponses, &server) }, |_| {});
    call(&models, &ModelRequest { is_helper_call: true, ..hello() }).await.1.unwrap();
    assert_eq!(server.requests()[0].body["store"], false);
    server.assert_no_breach();
}

#[tokio::test]
async fn lost_stored_conversation_is_sent_in_full() {
    let server = ModelServer::start().await;
    server.push(Step::calls([("Read", json!({"file_path":"a"}))]).say("I read."));
    server.push(Step::text("All done."));
    let models = stateful(&server);
    let first = call(&models, &hello()).await.1.unwrap();
    server.forget_conversations();
    let reply = call(&models, &next_request(hello(), &first)).await.1.unwrap();
    assert_eq!(reply.content, [ReplyBlock::Text("All done.".into())]);
    assert!(reply.notices[0].contains("lost the conversation"), "{:?}", reply.notices);
    server.assert_no_breach();
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].body.get("previous_response_id").is_none());
    assert_eq!(requests[2].body["input"].as_array().expect("a list").len(), 4);
}

#[tokio::test]
async fn lost_conversation_is_recognised_in_other_error_texts() {
    for (status, body) in [
        (404, r#"{"error":{"message":"Response with id 'resp_0' not found.","code":404}}"#),
        (
            400,
            r#"{"error":{"message":"no such answer","type":"invalid_request_error","code":"previous_response_not_found"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"previous_response_id: it is not here","type":"invalid_request_error"}}"#,
        ),
    ] {
        let server = ModelServer::start().await;
        server.push(Step::calls([("Read", json!({"file_path":"a"}))]).say("I read."));
        server.push(Step::raw(status, "application/json", body));
        server.push(Step::text("All done."));
        let models = stateful(&server);
        let first = call(&models, &hello()).await.1.unwrap();
        let reply = call(&models, &next_request(hello(), &first)).await.1.unwrap();
        assert!(reply.notices[0].contains("lost the conversation"), "{body}: {:?}", reply.notices);
        assert_eq!(server.requests().len(), 3, "{body}");
    }
}

#[tokio::test]
async fn invented_tool_name_is_sanitised_when_sent_back() {
    for kind in ALL {
        let server = ModelServer::start().await;
        server.push(Step::calls([("a b.c/d", json!({}))]));
        server.push(Step::text("All done."));
        let models = models(kind, &server);
        let first = call(&models, &hello()).await.1.unwrap();
        let request = match &first.content[0] {
            ReplyBlock::ToolCall { tool, .. } if tool == "a b.c/d" => continue_request(hello(), &first),
            other => panic!("{other:?}"),
        };
        call(&models, &request).await.1.unwrap();
        let sent = server.requests()[1].body.to_string();
        // The text of the result contains the name as well.
        let has = |name: &str| sent.contains(&format!("\"{name}\""));
        assert!(has("a_b_c_d") && !has("a b.c/d"), "{kind:?}: {sent}");
    }
}

#[tokio::test]
async fn encrypted_reasoning_is_sent_to_its_provider_only() {
    let server = ModelServer::start().await;
    server.push(Step::calls([("Read", json!({"file_path":"a"}))]).thinking("Let me see."));
    server.push(Step::text("All done."));
    server.push(Step::text("And by another."));
    let thinks = |settings: &mut Settings| {
        let model = ModelFacts { thinking: Some(true), ..ModelFacts::default() };
        settings.models.insert("test/scripted".into(), model);
    };
    let models = models_with(provider(ProviderKind::OpenAiResponses, &server), thinks);
    let first = call(&models, &hello()).await.1.unwrap();
    let later = continue_request(hello(), &first);
    call(&models, &later).await.1.unwrap();
    let other = models_with(provider(ProviderKind::Anthropic, &server), thinks);
    call(&other, &later).await.1.unwrap();
    server.assert_no_breach();
    let requests = server.requests();
    let reasoning = &requests[1].body["input"][1];
    assert_eq!(reasoning["encrypted_content"], "sealed_0", "{}", requests[1].body);
    assert_eq!(reasoning["summary"][0]["text"], "Let me see.");
    assert!(!requests[2].body.to_string().contains("sealed_0"), "{}", requests[2].body);
}
