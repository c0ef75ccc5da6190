//! Turns errors into a [`ModelFault`] that says what happened and what to check, without secrets.

mod secrets;
#[cfg(test)]
mod tests;
mod wire_error;

use serde_json::Value;

pub(crate) use secrets::{Secrets, is_secret_header};
pub(crate) use wire_error::WireError;

use wire_error::read_error_body;

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
