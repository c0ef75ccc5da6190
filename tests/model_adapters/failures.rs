//! Refused requests, missing keys and unreachable servers.

use super::*;

#[tokio::test]
async fn server_refusals_become_typed_faults() {
    let page = || Step::raw(502, "text/html", "<html>Bad gateway</html>");
    let cases: Vec<(Step, FaultKind, &str, Option<u64>)> = vec![
        (
            Step::error(429, "rate_limit_error", "slow down").header("retry-after", "2"),
            FaultKind::RateLimited,
            "slow down",
            Some(2_000),
        ),
        (Step::error(529, "overloaded_error", "Overloaded"), FaultKind::Overloaded, "Overloaded", None),
        (Step::error(500, "api_error", "oops"), FaultKind::Server, "oops", None),
        (page(), FaultKind::Server, "a web page", None),
        (
            Step::error(401, "authentication_error", "bad key"),
            FaultKind::Unauthorized,
            "[providers.test]",
            None,
        ),
        (Step::error(403, "permission_error", "no"), FaultKind::Forbidden, "no", None),
        (Step::error(404, "not_found_error", "model: x"), FaultKind::NotFound, "model: x", None),
        (Step::error(413, "request_too_large", "big"), FaultKind::BadRequest, "big", None),
        (
            Step::raw(307, "text/plain", "").header("location", "http://127.0.0.1:1/"),
            FaultKind::BadRequest,
            "redirects are not followed",
            None,
        ),
        (Step::raw(204, "text/event-stream", ""), FaultKind::Garbage, "204", None),
        (Step::raw(204, "application/json", "{}"), FaultKind::Garbage, "not an answer", None),
        (Step::raw(205, "text/plain", ""), FaultKind::Garbage, "205", None),
        (Step::raw(200, "text/html", "<html>log in</html>"), FaultKind::Garbage, "a web page", None),
        (Step::raw(200, "application/json", "{\"a\":"), FaultKind::Interrupted, "ended before", None),
        (Step::raw(200, "application/json", "{\"a\"]"), FaultKind::Garbage, "JSON", None),
        (Step::raw(200, "text/event-stream", "data: {\n\n"), FaultKind::Garbage, "JSON", None),
        (Step::raw(200, "text/event-stream", ""), FaultKind::Interrupted, "ended before", None),
        (
            Step::text("some words").break_off("overloaded_error", "sorry"),
            FaultKind::Overloaded,
            "sorry",
            None,
        ),
        (Step::text("some words here").cut_after(350), FaultKind::Interrupted, "broke", None),
    ];
    for kind in ALL {
        let server = ModelServer::start().await;
        let models = models(kind, &server);
        for (step, expected, words, retry_after_ms) in &cases {
            server.push(step.clone());
            let fault = fault(&models, &hello()).await;
            assert_eq!(fault.kind, *expected, "{kind:?} {fault:?}");
            assert!(fault.message.contains(words), "{kind:?} {fault:?} lacks {words:?}");
            assert_eq!(fault.retry_after_ms, *retry_after_ms);
        }
        server.assert_no_breach();
    }
}

#[tokio::test]
async fn http_status_maps_to_fault_kind() {
    let kinds = |status| match status {
        401 => FaultKind::Unauthorized,
        403 => FaultKind::Forbidden,
        404 => FaultKind::NotFound,
        429 => FaultKind::RateLimited,
        529 => FaultKind::Overloaded,
        408 | 409 | 500.. => FaultKind::Server,
        _ => FaultKind::BadRequest,
    };
    for kind in ALL {
        let server = ModelServer::start().await;
        let models = models(kind, &server);
        // Bytes after the head of a 204 or 304 response belong to no response.
        let asked = ModelRequest { fresh_connection: true, ..hello() };
        for status in 201..600 {
            server.push(Step::raw(status, "text/plain", ""));
            let fault = fault(&models, &asked).await;
            if status < 300 {
                assert!(
                    matches!(fault.kind, FaultKind::Interrupted | FaultKind::Garbage),
                    "{status}: {fault:?}"
                );
                continue;
            }
            assert_eq!(fault.kind, kinds(status), "{kind:?}: {fault:?}");
            assert!(
                fault.message.contains(&format!("answered {status}: an empty body")),
                "{kind:?}: {fault:?}"
            );
        }
    }
}

#[tokio::test]
async fn api_key_echoed_by_server_is_redacted() {
    for kind in ALL {
        let server = ModelServer::start().await;
        server.push(Step::error(401, "authentication_error", &format!("bad key {KEY}")));
        let fault = fault(&models(kind, &server), &hello()).await;
        assert!(fault.message.contains("bad key ***"), "{fault:?}");
    }
}

#[tokio::test]
async fn unreachable_server_fault_gives_advice() {
    let server = ModelServer::start().await;
    let mut provider = provider(ProviderKind::OpenAiChat, &server);
    // This port was free a moment ago, so no server listens on it.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    provider.base_url = Some(format!("http://{}/v1", free.local_addr().unwrap()));
    drop(free);
    let fault = fault(&models_with(provider, |_| {}), &hello()).await;
    assert_eq!(fault.kind, FaultKind::Unreachable);
    for words in ["could not reach http://127.0.0.1:", "connection refused", "base_url of [providers.test]"] {
        assert!(fault.message.contains(words), "{fault:?} lacks {words:?}");
    }
}

#[tokio::test]
async fn unknown_host_fault_is_distinguished_from_refused_connection() {
    let server = ModelServer::start().await;
    let mut provider = provider(ProviderKind::OpenAiChat, &server);
    provider.base_url = Some("http://no-such-host.invalid/v1".into());
    let fault = fault(&models_with(provider, |_| {}), &hello()).await;
    assert_eq!(fault.kind, FaultKind::Unreachable);
    // Without a name server, the lookup itself fails.
    let word = fault.word.as_deref().unwrap_or_default();
    assert!(["unknown_host", "lookup_failed"].contains(&word), "{fault:?}");
}

#[tokio::test]
async fn missing_api_key_fails_before_sending() {
    let vendor = models_with(Provider::new(ProviderKind::Anthropic), |_| {});
    let fault_ = fault(&vendor, &hello()).await;
    assert_eq!(fault_.kind, FaultKind::NoKey);
    assert!(fault_.message.contains("set ANTHROPIC_API_KEY"), "{fault_:?}");

    let server = ModelServer::start().await;
    let mut provider = provider(ProviderKind::OpenAiChat, &server);
    provider.api_key_env = Some("AGENTD_NO_SUCH_KEY".into());
    let fault_ = fault(&models_with(provider.clone(), |_| {}), &hello()).await;
    assert_eq!(fault_.kind, FaultKind::NoKey);
    assert_eq!(server.requests().len(), 0);

    // A local server needs no key.
    provider.api_key_env = None;
    server.push(Step::text("hi"));
    assert!(call(&models_with(provider, |_| {}), &hello()).await.1.is_ok());
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn changed_api_key_is_reread_and_retried_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    // The command prints a new key at each run.
    let command = format!("echo >> {0}; printf 'key-%s' $(wc -l < {0})", count.display());
    for (kind, refusal) in ALL.into_iter().flat_map(|kind| [(kind, 401), (kind, 403)]) {
        let _ = std::fs::remove_file(&count);
        let server = ModelServer::start().await;
        let api_key_command = Some(command.clone());
        let models =
            models_with(Provider { api_key_env: None, api_key_command, ..provider(kind, &server) }, |_| {});
        server.push(Step::text("first"));
        server.push(Step::error(refusal, "authentication_error", "expired"));
        server.push(Step::text("second"));
        call(&models, &hello()).await.1.unwrap();
        let reply = call(&models, &hello()).await.1.unwrap();
        assert_eq!(reply.content, [ReplyBlock::Text("second".into())]);
        let keys: Vec<String> = server
            .requests()
            .iter()
            .map(|request| {
                let name = if kind == ProviderKind::Anthropic { "x-api-key" } else { "authorization" };
                request.header(name).expect("a key").trim_start_matches("Bearer ").to_owned()
            })
            .collect();
        assert_eq!(keys, ["key-1", "key-1", "key-2"], "{kind:?}");
        // If the server refuses the second key, the error is clear and there is no third attempt.
        server.push(Step::error(401, "authentication_error", "no"));
        server.push(Step::error(401, "authentication_error", "no"));
        assert_eq!(fault(&models, &hello()).await.kind, FaultKind::Unauthorized);
        assert_eq!(server.requests().len(), 5);
    }
}

#[tokio::test]
async fn unchanged_api_key_is_not_retried() {
    let server = ModelServer::start().await;
    server.push(Step::error(401, "authentication_error", "no"));
    assert_eq!(
        fault(&models(ProviderKind::Anthropic, &server), &hello()).await.kind,
        FaultKind::Unauthorized
    );
    assert_eq!(server.requests().len(), 1);
}
