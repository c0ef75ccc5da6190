//! Options of a provider: the field of the output limit, the query and the headers of its requests.

use super::*;
use agentd::model::MaxTokensField;

const UNSUPPORTED: &str = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                           'max_completion_tokens' instead.";

fn limited() -> ModelRequest {
    ModelRequest { max_output_tokens: Some(50), ..hello() }
}

/// The field with the output limit of each request so far.
fn sent_fields(server: &ModelServer) -> Vec<&'static str> {
    let field = |body: &serde_json::Value| {
        ["max_tokens", "max_completion_tokens"].into_iter().find(|name| body.get(name).is_some())
    };
    server.requests().iter().map(|request| field(&request.body).unwrap_or("none")).collect()
}

#[tokio::test]
async fn refused_output_limit_field_is_replaced_and_remembered() {
    let server = ModelServer::start().await;
    let models = models(ProviderKind::OpenAiChat, &server);
    server.push(Step::error(400, "invalid_request_error", UNSUPPORTED));
    server.push(Step::text("one"));
    server.push(Step::text("two"));
    for _ in 0..2 {
        assert!(call(&models, &limited()).await.1.is_ok());
    }
    assert_eq!(sent_fields(&server), ["max_tokens", "max_completion_tokens", "max_completion_tokens"]);
    // Another model of the provider begins with the usual field.
    server.push(Step::text("three"));
    let other = ModelRequest { model: "test/other".parse().expect("a model"), ..limited() };
    assert!(call(&models, &other).await.1.is_ok());
    assert_eq!(sent_fields(&server).last(), Some(&"max_tokens"));
    server.assert_no_breach();
}

#[tokio::test]
async fn refused_output_limit_value_is_not_retried() {
    let server = ModelServer::start().await;
    let models = models(ProviderKind::OpenAiChat, &server);
    server.push(Step::error(400, "invalid_request_error", "max_tokens is too large: 50"));
    assert_eq!(fault(&models, &limited()).await.kind, FaultKind::BadRequest);
    // If both fields are refused, the first error is reported.
    server.push(Step::error(400, "invalid_request_error", UNSUPPORTED));
    server.push(Step::error(400, "invalid_request_error", "Unrecognized argument: max_completion_tokens"));
    assert!(fault(&models, &limited()).await.message.contains("Use 'max_completion_tokens' instead"));
    assert_eq!(sent_fields(&server), ["max_tokens", "max_tokens", "max_completion_tokens"]);
}

#[tokio::test]
async fn configured_output_limit_field_is_sent_as_it_is() {
    let server = ModelServer::start().await;
    let max_tokens_field = Some(MaxTokensField::MaxCompletionTokens);
    let provider = Provider { max_tokens_field, ..provider(ProviderKind::OpenAiChat, &server) };
    let models = models_with(provider, |_| {});
    server.push(Step::text("one"));
    assert!(call(&models, &limited()).await.1.is_ok());
    server.push(Step::error(400, "invalid_request_error", "Unrecognized argument: max_completion_tokens"));
    assert_eq!(fault(&models, &limited()).await.kind, FaultKind::BadRequest);
    assert_eq!(sent_fields(&server), ["max_completion_tokens", "max_completion_tokens"]);
}

#[tokio::test]
async fn refused_stream_options_are_left_out_and_remembered() {
    let server = ModelServer::start().await;
    let models = models(ProviderKind::OpenAiChat, &server);
    server.push(Step::error(400, "invalid_request_error", "Unrecognized request argument: stream_options"));
    server.push(Step::text("one"));
    server.push(Step::text("two"));
    for _ in 0..2 {
        assert!(call(&models, &hello()).await.1.is_ok());
    }
    let sent: Vec<bool> =
        server.requests().iter().map(|request| request.body.get("stream_options").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
    // An error about something else is not retried.
    server.push(Step::error(400, "invalid_request_error", "Unrecognized request argument: messages"));
    assert_eq!(fault(&models, &hello()).await.kind, FaultKind::BadRequest);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn query_and_headers_are_sent_with_every_request() {
    for kind in ALL {
        let server = ModelServer::start().await;
        let mut provider = provider(kind, &server);
        provider.base_url = provider.base_url.map(|url| format!("{url}?api-version=2026-01-01"));
        provider.query =
            [("code".to_owned(), "a b".to_owned()), ("api_key".to_owned(), "hush-hush".to_owned())].into();
        provider.headers = [("x-team".to_owned(), "night".to_owned())].into();
        let models = models_with(provider, |_| {});
        server.push(Step::text("one"));
        assert!(call(&models, &hello()).await.1.is_ok(), "{kind:?}");
        let sent = server.requests().pop().expect("a request");
        assert_eq!(sent.query, "api-version=2026-01-01&api_key=hush-hush&code=a+b");
        assert_eq!(sent.header("x-team"), Some("night"));
        server.push(Step::error(400, "invalid_request_error", "bad key hush-hush"));
        assert!(!fault(&models, &hello()).await.message.contains("hush"), "{kind:?}");
        server.assert_no_breach();
    }
}
