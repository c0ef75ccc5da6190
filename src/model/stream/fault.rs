//! Turns errors into a [`ModelFault`] that says what happened and what to check, without secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use crate::stream::overflow;
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

/// An error as providers write it. All of them put it under `error`, which may be a plain text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum WireError {
    /// A text only.
    Text(String),
    /// The usual object form.
    Full {
        /// Text for users.
        #[serde(default)]
        message: Option<String>,
        /// An error code.
        #[serde(default, rename = "type")]
        kind: Option<String>,
        /// A status or another error code.
        #[serde(default)]
        code: Option<Value>,
    },
}

impl WireError {
    /// The provider's text, cleaned and shortened.
    fn text(&self) -> Option<String> {
        match self {
            WireError::Text(text) => Some(clean_text(text)),
            WireError::Full { message, kind, .. } => {
                message.as_deref().or(kind.as_deref()).filter(|text| !text.is_empty()).map(clean_text)
            }
        }
    }

    /// The provider's own error code: the more specific of the two fields.
    fn word(&self) -> Option<String> {
        let WireError::Full { kind, code, .. } = self else { return None };
        let code = code.as_ref().and_then(Value::as_str).map(clean_text);
        code.or_else(|| kind.as_deref().map(clean_text)).filter(|word| !word.is_empty())
    }

    /// Whether the account has no credit, according to either field: waiting does not help.
    fn is_out_of_quota(&self) -> bool {
        let WireError::Full { kind, code, .. } = self else { return false };
        let code = code.as_ref().and_then(Value::as_str);
        [kind.as_deref(), code].contains(&Some(OUT_OF_QUOTA))
    }

    /// The kind of failure that the error itself names.
    fn kind(&self) -> Option<FaultKind> {
        let WireError::Full { kind, code, .. } = self else { return None };
        let by_code = || match code.as_ref()? {
            Value::String(word) => kind_of_word(word),
            Value::Number(number) => {
                number.as_u64().filter(|n| (400..600).contains(n)).map(|n| kind_of_status(n as u16))
            }
            _ => None,
        };
        kind.as_deref().and_then(kind_of_word).or_else(by_code)
    }

    /// The fault for an error inside an answer that started successfully.
    pub(crate) fn in_stream(&self) -> ModelFault {
        let text = self.text().unwrap_or_else(|| "no reason given".into());
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
        let overflow = overflow::read_limits(&text);
        ModelFault { word: self.word(), overflow, ..fault }
    }
}

/// The fault for an answer with an error status. `body` may be truncated.
pub(crate) fn from_status(
    provider: &str,
    status: u16,
    retry_after_ms: Option<u64>,
    body: &[u8],
) -> ModelFault {
    let ErrorBody { kind, word, text } = read_error_body(body);
    let is_out_of_quota = word.as_deref() == Some(OUT_OF_QUOTA);
    let kind = match (kind_of_status(status), kind) {
        // Waiting does not fill an empty account.
        (kind, _) if is_out_of_quota && kind.is_retryable() => FaultKind::Forbidden,
        // An overload counts with any status; otherwise the status decides.
        (_, Some(FaultKind::Overloaded)) => FaultKind::Overloaded,
        (FaultKind::BadRequest, _) if is_unknown_model(&text) => FaultKind::NotFound,
        (kind, _) => kind,
    };
    let check = match kind {
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
    let overflow = overflow::read_limits(&text);
    let word = if overflow::names_overflow(&text) { Some(overflow::OVERFLOW_WORD.into()) } else { word };
    ModelFault { retry_after_ms, word, overflow, ..ModelFault::new(kind, message) }
}

/// Whether a request was refused because the model does not exist: proxies use status 400 for it (LiteLLM:
/// "Invalid model name passed in model=…"; OpenRouter: "… is not a valid model ID").
fn is_unknown_model(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["invalid model name", "not a valid model", "unknown model"].iter().any(|phrase| text.contains(phrase))
}

/// The content of an error's body.
struct ErrorBody {
    /// The kind of failure that it names, if any.
    kind: Option<FaultKind>,
    /// The provider's error code.
    word: Option<String>,
    text: String,
}

fn read_error_body(body: &[u8]) -> ErrorBody {
    #[derive(Deserialize)]
    struct Body {
        error: Option<WireError>,
        message: Option<String>,
        detail: Option<Value>,
    }
    if let Ok(body) = serde_json::from_slice::<Body>(body) {
        let kind = body.error.as_ref().and_then(WireError::kind);
        let is_out_of_quota = body.error.as_ref().is_some_and(WireError::is_out_of_quota);
        let word = match is_out_of_quota {
            true => Some(OUT_OF_QUOTA.into()),
            false => body.error.as_ref().and_then(WireError::word),
        };
        let text = body
            .error
            .as_ref()
            .and_then(WireError::text)
            .or_else(|| body.message.as_deref().map(clean_text))
            .or_else(|| body.detail.as_ref().map(|d| clean_text(d.as_str().unwrap_or(&d.to_string()))));
        if let Some(text) = text {
            return ErrorBody { kind, word, text };
        }
    }
    ErrorBody { kind: None, word: None, text: describe(body) }
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
    for (count, c) in text.trim().chars().enumerate() {
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
