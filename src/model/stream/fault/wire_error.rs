//! Errors as providers write them.

use serde::Deserialize;
use serde_json::Value;

use super::{OUT_OF_QUOTA, clean_text, describe, kind_of_status, may_concern_request, with_overflow};
use crate::stream::overflow::{self, OverflowReport};
use types::model::{FaultKind, ModelFault};

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
    pub(super) fn text(&self) -> Option<String> {
        match self {
            WireError::Text(text) => Some(text.clone()),
            WireError::Full(fields) => fields.text().or_else(|| self.word()),
        }
    }

    /// The provider's own error code: the most specific one that is a text.
    pub(super) fn word(&self) -> Option<String> {
        let codes = self.fields()?.codes();
        codes.into_iter().find(|code| code.parse::<f64>().is_err())
    }

    /// Whether the account has no credit, according to any code: waiting does not help.
    pub(super) fn is_out_of_quota(&self) -> bool {
        self.fields().is_some_and(|fields| fields.codes().iter().any(|code| code == OUT_OF_QUOTA))
    }

    /// The report of a request that does not fit the context window.
    pub(super) fn overflow(&self) -> Option<OverflowReport> {
        let text = self.text().unwrap_or_default();
        let Some(fields) = self.fields() else { return overflow::read_overflow(&text, []) };
        let codes = fields.codes();
        let report = overflow::read_overflow(&text, codes.iter().map(String::as_str))?;
        let sizes = overflow::plausible_limits(fields.n_ctx.as_u64(), fields.n_prompt_tokens.as_u64());
        Some(OverflowReport { limits: report.limits.or(sizes) })
    }

    /// The kind of failure that the error itself names.
    pub(super) fn kind(&self) -> Option<FaultKind> {
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

/// The error in a body: under `error` or `base_resp`, or at its top. Gemini puts the body into a list.
pub(super) fn read_error_body(body: &[u8]) -> WireError {
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
