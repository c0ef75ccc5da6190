use super::*;

fn check(status: u16, body: &str, kind: FaultKind, expected_text: &str) {
    let fault = from_status("x", status, None, body.as_bytes());
    assert_eq!(fault.kind, kind, "{status} {body}");
    assert!(fault.message.contains(expected_text), "{:?} lacks {expected_text:?}", fault.message);
}

#[test]
fn http_status_maps_to_fault_kind_with_message() {
    let anthropic = r#"{"type":"error","error":{"type":"not_found_error","message":"model: foo"}}"#;
    check(404, anthropic, FaultKind::NotFound, "model: foo; check the model's name");
    check(
        401,
        r#"{"error":{"message":"bad key"}}"#,
        FaultKind::Unauthorized,
        "bad key; check the key of [providers.x]",
    );
    check(403, r#"{"error":"no"}"#, FaultKind::Forbidden, "x answered 403: no");
    check(429, r#"{"message":"slow down"}"#, FaultKind::RateLimited, "slow down");
    let empty = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    check(429, empty, FaultKind::Forbidden, "check what the key of [providers.x] may use");
    let empty = r#"{"error":{"message":"none left","type":"insufficient_quota","code":"429"}}"#;
    check(429, empty, FaultKind::Forbidden, "none left");
    check(503, empty, FaultKind::Forbidden, "none left");
    check(422, r#"{"detail":"missing field"}"#, FaultKind::BadRequest, "missing field");
    check(413, "", FaultKind::BadRequest, "an empty body");
    check(502, "<html><body>Bad gateway</body></html>", FaultKind::Server, "a web page");
    check(503, "plain\u{7}words", FaultKind::Server, "plain words");
    check(529, "{}", FaultKind::Overloaded, "{}");
    check(408, "", FaultKind::Server, "408");
    check(409, "", FaultKind::Server, "409");
    check(307, "", FaultKind::BadRequest, "redirects are not followed");
    // Proxies use one status for all of these errors.
    let unknown =
        r#"{"error":{"message":"/chat/completions: Invalid model name passed in model=foo","code":"400"}}"#;
    check(400, unknown, FaultKind::NotFound, "check the model's name");
    check(400, r#"{"error":"foo is not a valid model ID"}"#, FaultKind::NotFound, "a valid model ID");
    let full = r#"{"error":{"message":"litellm.ContextWindowExceededError: too long","code":"400"}}"#;
    let fault = from_status("x", 400, None, full.as_bytes());
    assert_eq!((fault.kind, fault.word.as_deref()), (FaultKind::BadRequest, Some(overflow::OVERFLOW_WORD)));
    let overload = r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    check(500, overload, FaultKind::Overloaded, "Overloaded");
}

#[test]
fn overflow_is_recognised_in_every_form_of_body() {
    let overflow = |status: u16, body: &str| {
        let fault = from_status("x", status, None, body.as_bytes());
        (fault.word.as_deref() == Some(overflow::OVERFLOW_WORD), fault.overflow.map(|o| (o.limit, o.input)))
    };
    for (status, body, limits) in [
        // Ollama, LM Studio: a text under `error`
        (400, r#"{"error":"prompt too long; exceeded max context length by 12 tokens"}"#, None),
        (500, r#"{"error":{"message":"Context size has been exceeded.","code":500}}"#, None),
        // a code at the top of the body
        (400, r#"{"code":"context_length_exceeded","message":"no"}"#, None),
        (400, r#"{"error":"no","code":"context_length_exceeded"}"#, None),
        (
            413,
            r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}"#,
            Some((8000, 8000)),
        ),
        // xAI
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            Some((131_072, 537_812)),
        ),
        // Gemini
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1189009) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]"#,
            Some((1_048_575, 1_189_009)),
        ),
        // Mistral, whose message may be an object
        (
            400,
            r#"{"object":"error","message":{"detail":"Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length"},"code":3051}"#,
            Some((32_768, 65_673)),
        ),
        // Bedrock
        (400, r#"{"__type":"ValidationException","message":"Input is too long for requested model."}"#, None),
        // MiniMax
        (
            400,
            r#"{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}"#,
            None,
        ),
        // OpenRouter: the error of the provider behind it
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"detail\":\"prompt is too long: 9 tokens > 8 maximum\"}"}}}"#,
            Some((8, 9)),
        ),
        // llama.cpp
        (
            400,
            r#"{"error":{"code":400,"message":"too many","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
            Some((4096, 5000)),
        ),
        // TGI
        (
            422,
            r#"{"error":"Input validation error: `inputs` must have less than 1024 tokens. Given: 1500","error_type":"validation"}"#,
            Some((1024, 1500)),
        ),
        (400, "prompt is too long", None),
    ] {
        assert_eq!(overflow(status, body), (true, limits), "{status} {body}");
    }
    for (status, body) in [
        (429, r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#),
        (401, r#"{"error":{"message":"context_length_exceeded"}}"#),
        (
            413,
            r#"{"error":{"message":"Request too large for model on tokens per minute (TPM): Limit 6000, Requested 7000","code":"rate_limit_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"max_tokens is too large: 100000. This model supports at most 16384 completion tokens"}}"#,
        ),
    ] {
        assert_eq!(overflow(status, body), (false, None), "{status} {body}");
    }
}

#[test]
fn unknown_refusal_may_be_overflow() {
    let may_be = |status: u16, body: &str| from_status("x", status, None, body.as_bytes()).may_be_overflow;
    for (status, body) in [
        (400, r#"{"error":"Context full"}"#),
        (413, ""),
        (400, ""),
        (422, r#"{"detail":"the text is too long"}"#),
        (500, r#"{"error":"9000 tokens exceed what fits"}"#),
    ] {
        assert!(may_be(status, body), "{status} {body}");
    }
    for (status, body) in [
        (400, r#"{"error":"no such field"}"#),
        (500, ""),
        (502, r#"{"error":"Context full"}"#),
        (401, r#"{"error":"Context full"}"#),
        (404, r#"{"error":"Context full"}"#),
        (429, r#"{"error":"Context full"}"#),
        (500, r#"{"error":"context deadline exceeded"}"#),
        (400, r#"{"error":"max_tokens is too large"}"#),
        (400, r#"{"error":"prompt is too long"}"#),
    ] {
        assert!(!may_be(status, body), "{status} {body}");
    }
}

#[test]
fn overflow_inside_stream_is_recognised() {
    for data in [
        r#"{"error":{"message":"Context size has been exceeded.","code":500}}"#,
        r#"{"error":"prompt too long; exceeded max context length by 12 tokens"}"#,
        r#"{"object":"error","message":"no","code":"context_length_exceeded"}"#,
        r#"{"type":"error","message":"prompt is too long"}"#,
        r#"{"message":"Input is too long for requested model."}"#,
    ] {
        let fault = error_event(data).expect("an error");
        assert_eq!(fault.word.as_deref(), Some(overflow::OVERFLOW_WORD), "{data}");
    }
    assert_eq!(error_event(r#"{"id":"a","choices":[]}"#), None);
    let fault = error_event(r#"{"error":{"message":"prompt is too long","code":429}}"#).expect("an error");
    assert_eq!((fault.kind, fault.overflow, fault.may_be_overflow), (FaultKind::RateLimited, None, false));
}

#[test]
fn long_fault_message_is_truncated() {
    let fault = from_status("x", 400, None, "é".repeat(5000).as_bytes());
    assert!(fault.message.chars().count() < 600, "{}", fault.message.len());
}

#[test]
fn stream_errors_map_to_fault_kinds() {
    let kind = |text: &str| serde_json::from_str::<WireError>(text).unwrap().in_stream().kind;
    assert_eq!(kind(r#"{"type":"overloaded_error","message":"m"}"#), FaultKind::Overloaded);
    assert_eq!(kind(r#"{"type":"rate_limit_error"}"#), FaultKind::RateLimited);
    assert_eq!(kind(r#"{"message":"m","code":429}"#), FaultKind::RateLimited);
    assert_eq!(kind(r#"{"message":"m","code":"rate_limit_exceeded"}"#), FaultKind::RateLimited);
    assert_eq!(kind(r#"{"message":"m"}"#), FaultKind::Server);
    assert_eq!(kind(r#""text""#), FaultKind::Server);
    for empty in [
        r#"{"type":"insufficient_quota","message":"m"}"#,
        r#"{"message":"m","code":"insufficient_quota"}"#,
        r#"{"type":"rate_limit_error","message":"m","code":"insufficient_quota"}"#,
        r#"{"type":"insufficient_quota","message":"m","code":"429"}"#,
    ] {
        assert_eq!(kind(empty), FaultKind::Forbidden, "{empty}");
    }
}
