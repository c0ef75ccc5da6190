//! Turns errors into a [`ModelFault`] that says what happened and what to check, without secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use crate::stream::overflow::{self, OverflowReport};
use crate::stream::split_chars::join_marks;
use crate::stream::sse::{EventTooLong, MAX_EVENT_BYTES};
use types::model::{FaultKind, ModelFault};

/// Maximum characters of a text from a provider.
const MAX_TEXT_CHARS: usize = 500;

/// The providers' error code for an account without remaining credit.
pub(crate) const OUT_OF_QUOTA: &str = "insufficient_quota";

/// The kind of failure for an HTTP status. Only for statuses that are not a success.
pub(crate) fn kind_of_status(status: u16) -> FaultKind {
    match status {
        401 => FaultKind::Unauthorized,
        403 => FaultKind::Forbidden,
        404 => FaultKind::NotFound,
        408 | 409 => FaultKind::Server,
        429 => FaultKind::RateLimited,
        529 => FaultKind::Overloaded,
        500..=599 => FaultKind::Server,
        _ => FaultKind::BadRequest,
    }
}

/// The kind of failure for the provider's own error code.
fn kind_of_word(word: &str) -> Option<FaultKind> {
    Some(match word {
        "overloaded_error" | "overloaded" | "engine_overloaded" => FaultKind::Overloaded,
        "rate_limit_error" | "rate_limit_exceeded" | "rate_limited" => FaultKind::RateLimited,
        "api_error" | "server_error" | "internal_server_error" | "timeout_error" => FaultKind::Server,
        "authentication_error" | "invalid_api_key" => FaultKind::Unauthorized,
        "permission_error" | "billing_error" => FaultKind::Forbidden,
        "not_found_error" | "model_not_found" => FaultKind::NotFound,
        "invalid_request_error" | "request_too_large" | "context_length_exceeded" => FaultKind::BadRequest,
        _ => return None,
    })
}

/// An error as providers write it. Most put it under `error`, which may be a plain text; some write its fields at the
/// top of the body.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum WireError {
    /// A text only.
    Text(String),
    /// The usual object form.
    Full(Box<ErrorFields>),
}

/// The fields of an error. Each may have any type, because one with another type must not hide the rest.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorFields {
    /// Text for users; some servers write a list or an object.
    message: Value,
    /// The same in other APIs: FastAPI, MiniMax, Baidu.
    detail: Value,
    status_msg: Value,
    error_msg: Value,
    /// Error codes; `code` may be a status.
    #[serde(rename = "type")]
    kind: Value,
    code: Value,
    error_code: Value,
    error_type: Value,
    status_code: Value,
    #[serde(rename = "__type")]
    amazon_type: Value,
    /// OpenRouter: the error of the provider behind it.
    metadata: Value,
    /// llama.cpp: tokens of the request and of the window.
    n_prompt_tokens: Value,
    n_ctx: Value,
}

impl ErrorFields {
    /// The error codes, the most specific first.
    fn codes(&self) -> Vec<String> {
        let fields = [
            &self.code,
            &self.error_code,
            &self.status_code,
            &self.kind,
            &self.error_type,
            &self.amazon_type,
        ];
        let code = |field: &Value| match field {
            Value::String(text) => Some(clean_text(text)),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        fields.into_iter().filter_map(code).filter(|code| !code.is_empty()).collect()
    }

    /// The provider's text, not shortened.
    fn text(&self) -> Option<String> {
        let fields = [&self.message, &self.detail, &self.status_msg, &self.error_msg];
        let text = fields.into_iter().find_map(plain_text)?;
        Some(match plain_text(&self.metadata["raw"]) {
            Some(raw) => format!("{text}: {raw}"),
            None => text,
        })
    }
}

/// The text of a value; a list or an object is shown as JSON.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

impl WireError {
    /// An error of these parts.
    pub(crate) fn new(message: &str, code: &str) -> Self {
        let text = |text: &str| if text.is_empty() { Value::Null } else { Value::String(text.to_owned()) };
        WireError::Full(Box::new(ErrorFields {
            message: text(message),
            code: text(code),
            ..ErrorFields::default()
        }))
    }

    fn fields(&self) -> Option<&ErrorFields> {
        match self {
            WireError::Text(_) => None,
            WireError::Full(fields) => Some(fields),
        }
    }

    /// The provider's text, not shortened.
    fn text(&self) -> Option<String> {
        match self {
            WireError::Text(text) => Some(text.clone()),
            WireError::Full(fields) => fields.text().or_else(|| self.word()),
        }
    }

    /// The provider's own error code: the most specific one that is a text.
    fn word(&self) -> Option<String> {
        let codes = self.fields()?.codes();
        codes.into_iter().find(|code| code.parse::<f64>().is_err())
    }

    /// Whether the account has no credit, according to any code: waiting does not help.
    fn is_out_of_quota(&self) -> bool {
        self.fields().is_some_and(|fields| fields.codes().iter().any(|code| code == OUT_OF_QUOTA))
    }

    /// The report of a request that does not fit the context window.
    fn overflow(&self) -> Option<OverflowReport> {
        let text = self.text().unwrap_or_default();
        let Some(fields) = self.fields() else { return overflow::read_overflow(&text, []) };
        let codes = fields.codes();
        let report = overflow::read_overflow(&text, codes.iter().map(String::as_str))?;
        let sizes = overflow::plausible_limits(fields.n_ctx.as_u64(), fields.n_prompt_tokens.as_u64());
        Some(OverflowReport { limits: report.limits.or(sizes) })
    }

    /// The kind of failure that the error itself names.
    fn kind(&self) -> Option<FaultKind> {
        let fields = self.fields()?;
        let kind = fields.kind.as_str().and_then(kind_of_word);
        let status = || {
            let statuses = [&fields.code, &fields.status_code];
            let status = statuses.into_iter().find_map(|code| code.as_u64())?;
            (400..600).contains(&status).then(|| kind_of_status(status as u16))
        };
        kind.or_else(|| fields.codes().iter().find_map(|code| kind_of_word(code))).or_else(status)
    }

    /// The fault for an error inside an answer that started successfully.
    pub(crate) fn in_stream(&self) -> ModelFault {
        let whole = self.text().unwrap_or_else(|| "no reason given".into());
        let text = clean_text(&whole);
        if self.is_out_of_quota() {
            let message = format!(
                "the provider broke the answer off: {text}; the account has no quota left: add credit, or use \
                 another model"
            );
            let fault = ModelFault::new(FaultKind::Forbidden, message);
            return ModelFault { word: Some(OUT_OF_QUOTA.into()), ..fault };
        }
        let kind = self.kind().unwrap_or(FaultKind::Server);
        let fault = ModelFault::new(kind, format!("the provider broke the answer off: {text}"));
        let fault = ModelFault { word: self.word(), ..fault };
        match self.overflow().filter(|_| may_concern_request(kind)) {
            Some(report) => with_overflow(fault, report),
            None => ModelFault {
                may_be_overflow: may_concern_request(kind) && overflow::is_suspect(&whole),
                ..fault
            },
        }
    }
}

/// Whether a fault of this kind may be caused by the length of the request.
fn may_concern_request(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::BadRequest | FaultKind::Server)
}

/// The fault of a request that does not fit the context window.
fn with_overflow(fault: ModelFault, report: OverflowReport) -> ModelFault {
    ModelFault { word: Some(overflow::OVERFLOW_WORD.into()), overflow: report.limits, ..fault }
}

/// The fault of an answer that the provider ended before any content, because the request fills the window.
pub(crate) fn full_window() -> ModelFault {
    let text = "the request fills the model's context window, so that no answer fits";
    with_overflow(ModelFault::new(FaultKind::BadRequest, text), OverflowReport { limits: None })
}

/// The fault for an answer with an error status. `body` may be truncated.
pub(crate) fn from_status(
    provider: &str,
    status: u16,
    retry_after_ms: Option<u64>,
    body: &[u8],
) -> ModelFault {
    let error = read_error_body(body);
    let (named, word) = (error.kind(), error.word());
    let whole = error.text().unwrap_or_else(|| describe(body));
    let text = clean_text(&whole);
    let is_out_of_quota = error.is_out_of_quota();
    let kind = match (kind_of_status(status), named) {
        // Waiting does not fill an empty account.
        (kind, _) if is_out_of_quota && kind.is_retryable() => FaultKind::Forbidden,
        // An overload counts with any status; otherwise the status decides.
        (_, Some(FaultKind::Overloaded)) => FaultKind::Overloaded,
        (FaultKind::BadRequest, _) if is_unknown_model(&text) => FaultKind::NotFound,
        (kind, _) => kind,
    };
    let report = error.overflow().filter(|_| may_concern_request(kind) && !is_out_of_quota);
    let check = match kind {
        _ if report.is_some() => String::new(),
        FaultKind::Unauthorized => format!("; check the key of [providers.{provider}]"),
        FaultKind::Forbidden => format!("; check what the key of [providers.{provider}] may use"),
        FaultKind::NotFound => {
            format!("; check the model's name and base_url of [providers.{provider}]")
        }
        FaultKind::BadRequest if (300..400).contains(&status) => {
            format!("; redirects are not followed, correct base_url of [providers.{provider}]")
        }
        FaultKind::BadRequest if status == 413 => {
            "; the request is too large: a new session begins with less, and large files can be read in parts"
                .into()
        }
        FaultKind::RateLimited => "; the limit of the account is reached: wait, or use another model".into(),
        FaultKind::Overloaded => "; the provider has too much to do: wait, or use another model".into(),
        FaultKind::Server => {
            format!("; the provider failed, or the server at base_url of [providers.{provider}]")
        }
        _ => String::new(),
    };
    let message = format!("{provider} answered {status}: {text}{check}");
    let word = if is_out_of_quota { Some(OUT_OF_QUOTA.into()) } else { word };
    let fault = ModelFault { retry_after_ms, word, ..ModelFault::new(kind, message) };
    match report {
        Some(report) => with_overflow(fault, report),
        None => {
            let has_text = !body.trim_ascii().is_empty();
            // Some servers refuse a long request without a text (Cerebras: 400 and 413 with an empty body).
            let is_silent = matches!(status, 400 | 413) && !has_text;
            let may_be_overflow = matches!(status, 400 | 413 | 422 | 500)
                && may_concern_request(kind)
                && (status == 413 || is_silent || overflow::is_suspect(&whole));
            ModelFault { may_be_overflow, ..fault }
        }
    }
}

/// Whether a request was refused because the model does not exist: proxies use status 400 for it (LiteLLM:
/// "Invalid model name passed in model=…"; OpenRouter: "… is not a valid model ID").
fn is_unknown_model(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["invalid model name", "not a valid model", "unknown model"].iter().any(|phrase| text.contains(phrase))
}

/// The fault that an event reports outside the form of its API; `None` if it reports none.
pub(crate) fn error_event(data: &str) -> Option<ModelFault> {
    let value: Value = serde_json::from_str(data).ok()?;
    let is_error = value["type"] == "error"
        || value["object"] == "error"
        || !value["error"].is_null()
        || (value["message"].is_string() && value["choices"].is_null() && value["type"].is_null());
    is_error.then(|| read_error_body(data.as_bytes()).in_stream())
}

/// The error in a body: under `error` or `base_resp`, or at its top. Gemini puts the body into a list.
fn read_error_body(body: &[u8]) -> WireError {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return WireError::Text(describe(body)) };
    if let Value::Array(list) = &mut value {
        value = list.first_mut().map(Value::take).unwrap_or_default();
    }
    let inner = ["error", "base_resp"].into_iter().find_map(|name| value.get_mut(name).map(Value::take));
    let read = |value: Value| serde_json::from_value::<WireError>(value).ok();
    let top = read(value);
    match inner.filter(|inner| !inner.is_null()).and_then(read) {
        // The codes at the top say more than a plain text (xAI).
        Some(WireError::Text(text)) => match top {
            Some(WireError::Full(fields)) => {
                WireError::Full(Box::new(ErrorFields { message: Value::String(text), ..*fields }))
            }
            _ => WireError::Text(text),
        },
        Some(inner) if inner.text().is_some() => inner,
        _ => match top {
            Some(top) if top.text().is_some() => top,
            _ => WireError::Text(describe(body)),
        },
    }
}

/// A short description of an unexpected body.
pub(crate) fn describe(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_TEXT_CHARS)]);
    let text = text.trim();
    if text.is_empty() {
        return "an empty body".into();
    }
    if text.starts_with('<') {
        return "a web page instead of an answer".into();
    }
    clean_text(text)
}

/// One line of at most [`MAX_TEXT_CHARS`] characters without control characters.
pub(crate) fn clean_text(text: &str) -> String {
    let mut line = String::new();
    for (count, c) in join_marks(text).trim().chars().enumerate() {
        if count == MAX_TEXT_CHARS {
            line.push('…');
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    line
}

/// The fault for an answer that violates the API.
pub(crate) fn invalid_answer(why: impl std::fmt::Display) -> ModelFault {
    ModelFault::new(FaultKind::Garbage, format!("the provider's answer could not be understood: {why}"))
}

/// The fault for an event that violates the API. Before the first valid event, the address may be wrong;
/// afterwards the stream was damaged in transit, which is handled like a broken connection.
pub(crate) fn unreadable_event(error: &serde_json::Error, has_begun: bool) -> ModelFault {
    if has_begun {
        let text = format!("the stream was damaged before the answer was complete ({error})");
        return ModelFault::new(FaultKind::Interrupted, text);
    }
    invalid_answer(format_args!("an event is not the JSON it should be ({error})"))
}

/// The fault for a stream that ended before the answer did.
pub(crate) fn interrupted_stream() -> ModelFault {
    ModelFault::new(FaultKind::Interrupted, "the stream ended before the answer was complete")
}

/// The fault for a stream that ended properly, but without a stop reason.
pub(crate) fn missing_stop_reason() -> ModelFault {
    let text = "the stream ended without saying why, with tool calls that may be incomplete";
    ModelFault::new(FaultKind::Interrupted, text)
}

/// The fault for a body in one piece that cannot be parsed. A truncated one was cut by a server or a proxy, and
/// may be complete the next time.
pub(crate) fn unparsable_body(error: &serde_json::Error) -> ModelFault {
    if error.is_eof() {
        let text = "the answer ended before it was complete";
        return ModelFault::new(FaultKind::Interrupted, text);
    }
    invalid_answer(format_args!("the body is not the JSON it should be ({error})"))
}

/// The fault for another answer that started inside this one.
pub(crate) fn second_answer() -> ModelFault {
    ModelFault::new(
        FaultKind::Interrupted,
        "the stream broke off and an answer began again inside it; is there a proxy in between that connects again?",
    )
}

impl From<EventTooLong> for ModelFault {
    fn from(_: EventTooLong) -> Self {
        invalid_answer(format_args!("an event of more than {} MiB", MAX_EVENT_BYTES >> 20))
    }
}

/// Whether a header with this name probably contains a secret.
pub(crate) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "key", "token", "secret", "cookie", "password"].iter().any(|word| name.contains(word))
}

/// Texts that must not leave this layer.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Minimum length of a secret: replacing shorter texts would only garble messages.
    const MIN_SECRET_BYTES: usize = 4;

    /// Adds a secret.
    pub(crate) fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= Self::MIN_SECRET_BYTES {
            self.0.push(secret.to_owned());
        }
    }

    /// Adds the password of a URL in the forms that a server may return: as written there, decoded, and as the
    /// header that is built from it (RFC 7617).
    pub(crate) fn add_password(&mut self, url: &Url) {
        let Some(password) = url.password() else { return };
        let (user, decoded) = (decode(url.username()), decode(password));
        self.add(&BASE64.encode(format!("{user}:{decoded}")));
        self.add(&decoded);
        self.add(password);
    }

    /// The text with every secret in it replaced.
    pub(crate) fn scrub(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            let text =
                if text.contains(secret.as_str()) { text.replace(secret.as_str(), "***") } else { text };
            scrub_cut(text, secret)
        })
    }

    /// The fault with every secret in its message replaced.
    pub(crate) fn scrub_fault(&self, mut fault: ModelFault) -> ModelFault {
        fault.message = self.scrub(fault.message);
        fault.word = fault.word.map(|word| self.scrub(word));
        fault.causes = fault.causes.into_iter().map(|cause| self.scrub(cause)).collect();
        fault
    }
}

/// A part of a URL with percent escapes decoded (RFC 3986, section 2.1).
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex.filter(|_| *byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Removes the beginning of a secret where a text was cut inside of it (see [`clean_text`]).
fn scrub_cut(text: String, secret: &str) -> String {
    let parts: Vec<&str> = text.split('…').collect();
    let Some((last, cut)) = parts.split_last().filter(|(_, cut)| !cut.is_empty()) else { return text };
    let mut out = String::with_capacity(text.len());
    for part in cut {
        let text_before = (Secrets::MIN_SECRET_BYTES..secret.len())
            .rev()
            .find_map(|len| part.strip_suffix(secret.get(..len)?));
        match text_before {
            Some(before) => out.extend([before, "***…"]),
            None => out.extend([*part, "…"]),
        }
    }
    out.push_str(last);
    out
}

#[cfg(test)]
mod tests {
    use crate::stream::fault::*;

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
        let unknown = r#"{"error":{"message":"/chat/completions: Invalid model name passed in model=foo","code":"400"}}"#;
        check(400, unknown, FaultKind::NotFound, "check the model's name");
        check(400, r#"{"error":"foo is not a valid model ID"}"#, FaultKind::NotFound, "a valid model ID");
        let full = r#"{"error":{"message":"litellm.ContextWindowExceededError: too long","code":"400"}}"#;
        let fault = from_status("x", 400, None, full.as_bytes());
        assert_eq!(
            (fault.kind, fault.word.as_deref()),
            (FaultKind::BadRequest, Some(overflow::OVERFLOW_WORD))
        );
        let overload = r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        check(500, overload, FaultKind::Overloaded, "Overloaded");
    }

    #[test]
    fn overflow_is_recognised_in_every_form_of_body() {
        let overflow = |status: u16, body: &str| {
            let fault = from_status("x", status, None, body.as_bytes());
            (
                fault.word.as_deref() == Some(overflow::OVERFLOW_WORD),
                fault.overflow.map(|o| (o.limit, o.input)),
            )
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
            (
                400,
                r#"{"__type":"ValidationException","message":"Input is too long for requested model."}"#,
                None,
            ),
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
        let may_be =
            |status: u16, body: &str| from_status("x", status, None, body.as_bytes()).may_be_overflow;
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
        let fault =
            error_event(r#"{"error":{"message":"prompt is too long","code":429}}"#).expect("an error");
        assert_eq!(
            (fault.kind, fault.overflow, fault.may_be_overflow),
            (FaultKind::RateLimited, None, false)
        );
    }

    #[test]
    fn truncated_secret_in_fault_is_redacted() {
        let mut secrets = Secrets::default();
        secrets.add("sk-ant-canary-0123456789");
        for before in [440, 470, 480, 495, 499, 600] {
            let body = format!("{}sk-ant-canary-0123456789 and more{}", "x".repeat(before), "y".repeat(90));
            let fault = secrets.scrub_fault(from_status("x", 400, None, body.as_bytes()));
            assert!(!fault.message.contains("sk-a"), "{before}: {}", fault.message);
        }
        secrets.add_password(&"http://u:p4ss%2Fw0rd@h/".parse().unwrap());
        let text = secrets.scrub("p4ss%2Fw0rd, p4ss/w0rd, Basic dTpwNHNzL3cwcmQ=".into());
        assert_eq!(text, "***, ***, Basic ***");
        let text = secrets.scrub("cut… twice sk-ant-can… and sk-ant-canary-0123456789".into());
        assert_eq!(text, "cut… twice ***… and ***");
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

    #[test]
    fn secrets_in_fault_are_redacted() {
        let mut secrets = Secrets::default();
        secrets.add("sk-very-secret\n");
        secrets.add("a");
        let fault = ModelFault::new(FaultKind::BadRequest, "key sk-very-secret is bad");
        assert_eq!(secrets.scrub_fault(fault).message, "key *** is bad");
    }
}
