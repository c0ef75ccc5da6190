//! Versions of Anthropic's API, and answers that end at the output limit.

use agentd::types::sampling::{Sampling, Temperature, TopP};

use super::*;

fn sampling_request() -> ModelRequest {
    let sampling = Sampling { temperature: Temperature::new(300), top_p: TopP::new(900) };
    ModelRequest { sampling, ..hello() }
}

#[tokio::test]
async fn api_version_sets_header_and_sampling_parameters() {
    for (api_version, expected, takes_sampling) in [
        (None, "2023-06-01", true),
        (Some("2023-06-01"), "2023-06-01", true),
        (Some("2026-10-21"), "2026-10-21", false),
        (Some("2027-01-01"), "2027-01-01", false),
    ] {
        let server = ModelServer::start().await;
        server.push(Step::text("hi"));
        let api_version = api_version.map(String::from);
        let models =
            models_with(Provider { api_version, ..provider(ProviderKind::Anthropic, &server) }, |_| {});
        let reply = call(&models, &sampling_request()).await.1.expect("an answer");
        server.assert_no_breach();
        let request = &server.requests()[0];
        assert_eq!(request.header("anthropic-version"), Some(expected));
        let is_sent = !request.body["temperature"].is_null();
        assert_eq!(is_sent, takes_sampling, "{expected}");
        let notice = reply.notices.iter().any(|notice| notice.contains("temperature = 0.3 was not sent"));
        assert_eq!(notice, !takes_sampling, "{expected}: {:?}", reply.notices);
    }
}

#[tokio::test]
async fn configured_version_header_decides_sampling_parameters() {
    let server = ModelServer::start().await;
    server.push(Step::text("hi"));
    let mut provider = provider(ProviderKind::Anthropic, &server);
    provider.headers.insert("anthropic-version".into(), "2026-10-21".into());
    call(&models_with(provider, |_| {}), &sampling_request()).await.1.expect("an answer");
    assert!(server.requests()[0].body["temperature"].is_null());
    server.assert_no_breach();
}

#[tokio::test]
async fn catalog_models_refusing_sampling_receive_none() {
    for (model, is_sent) in
        [("claude-opus-4-6", true), ("claude-opus-4-7", false), ("claude-sonnet-5-5", false)]
    {
        let server = ModelServer::start().await;
        server.push(Step::text("hi"));
        let model = format!("test/{model}").parse().expect("a model");
        let asked = ModelRequest { model, ..sampling_request() };
        let reply = call(&models(ProviderKind::Anthropic, &server), &asked).await.1.expect("an answer");
        assert_eq!(!server.requests()[0].body["temperature"].is_null(), is_sent, "{}", asked.model);
        assert_eq!(reply.notices.iter().any(|it| it.contains("temperature = 0.3")), !is_sent, "{reply:?}");
    }
}

#[tokio::test]
async fn reply_using_exact_output_limit_counts_as_truncated() {
    for kind in ALL {
        let server = ModelServer::start().await;
        let asked = ModelRequest { max_output_tokens: Some(20), ..hello() };
        let read = || Step::calls([("Read", json!({"file_path": "a"}))]);
        for (step, expected) in [
            (Step::text("so").usage(10, 20), StopReason::MaxTokens),
            (read().usage(10, 20), StopReason::MaxTokens),
            (Step::text("so").usage(10, 19), StopReason::EndTurn),
            (Step::text("so").usage(10, 21), StopReason::EndTurn),
            (read().usage(10, 19), StopReason::ToolUse),
        ] {
            server.push(step);
            let reply = call(&models(kind, &server), &asked).await.1.expect("an answer");
            assert_eq!(reply.stop_reason, expected, "{kind:?}: {reply:?}");
        }
        // The API requires at least 16 tokens, so that is the limit.
        if kind == ProviderKind::OpenAiResponses {
            let asked = ModelRequest { max_output_tokens: Some(3), ..hello() };
            for (tokens, expected) in [(3, StopReason::EndTurn), (16, StopReason::MaxTokens)] {
                server.push(Step::text("so").usage(10, tokens));
                let reply = call(&models(kind, &server), &asked).await.1.expect("an answer");
                assert_eq!(reply.stop_reason, expected, "{tokens}");
            }
        }
        server.assert_no_breach();
    }
}
