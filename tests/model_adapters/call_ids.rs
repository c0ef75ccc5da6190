//! Call ids that are longer than the next provider accepts.

use super::*;

/// An answer with two calls whose ids have 100 characters, as a proxy may send them, and their results.
fn with_long_ids() -> ModelRequest {
    let mut asked = hello();
    let mut mint = Mint::new(1, Seed(7));
    let (mut said, mut results) = (Vec::new(), Vec::new());
    for n in 0..2 {
        let (call_id, provider_id) = (mint.call(), format!("call_{}_{n}", "x".repeat(93)));
        assert_eq!(provider_id.len(), 100);
        said.push(Block::ToolCall(ToolCall {
            call_id,
            provider_id: provider_id.clone(),
            tool: "Read".into(),
            input: json!({"file_path": "a"}),
            input_error: None,
        }));
        results.push(Block::ToolResult {
            call_id,
            provider_id,
            content: format!("result {n}"),
            is_error: false,
            attachments: Vec::new(),
        });
    }
    asked.messages.push(Arc::new(Message::new(Role::Assistant, said)));
    asked.messages.push(Arc::new(Message::new(Role::User, results)));
    asked
}

#[tokio::test]
async fn long_call_ids_are_shortened_alike_in_call_and_result() {
    for kind in [ProviderKind::Anthropic, ProviderKind::OpenAiResponses] {
        let server = ModelServer::start().await;
        server.set_fallback(|_| Step::text("Done."));
        let models = models(kind, &server);
        let asked = with_long_ids();
        let reply = call(&models, &asked).await.1.expect("an answer");
        call(&models, &continue_request(asked, &reply)).await.1.expect("an answer");
        server.assert_no_breach();
        let requests = server.requests();
        let ids: Vec<String> = requests[0].tool_results().into_iter().map(|(id, _)| id).collect();
        assert!(ids.len() == 2 && ids[0] != ids[1], "{kind:?}: {ids:?}");
        let name = if kind == ProviderKind::Anthropic { "messages" } else { "input" };
        let list = |n: usize| requests[n].body[name].as_array().expect("a list").clone();
        let (first, second) = (list(0), list(1));
        let without_marks = |list: &[serde_json::Value]| {
            json!(list)
                .to_string()
                .replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
                .replace("\"cache_control\":{\"type\":\"ephemeral\"},", "")
        };
        assert_eq!(without_marks(&first), without_marks(&second[..first.len()]), "{kind:?}");
    }
}

#[tokio::test]
async fn long_call_ids_are_returned_unchanged_to_issuing_proxy() {
    let server = ModelServer::start().await;
    server.push(Step::text("Done."));
    call(&models(ProviderKind::OpenAiChat, &server), &with_long_ids()).await.1.expect("an answer");
    assert!(server.requests()[0].tool_results().iter().all(|(id, _)| id.len() == 100));
}

#[tokio::test]
async fn long_call_ids_are_unchanged_for_stateful_server() {
    let server = ModelServer::start().await;
    server.push(Step::raw(200, "application/json", "{}"));
    let models =
        models_with(Provider { store: true, ..provider(ProviderKind::OpenAiResponses, &server) }, |_| {});
    let asked = ModelRequest { previous_response_id: Some("resp_0".into()), ..with_long_ids() };
    // The server has lost the answer. It then receives the whole conversation with short ids.
    server.push(Step::text("Done."));
    let _ = call(&models, &asked).await;
    let lengths: Vec<Vec<usize>> = server
        .requests()
        .iter()
        .map(|request| request.tool_results().iter().map(|(id, _)| id.len()).collect())
        .collect();
    assert_eq!(lengths, [vec![100, 100], vec![41, 41]]);
}
