//! Replies: the daemon's own envelope around a method's result, with the id as received and `data.kind`
//! in every error.

use jsonrpsee::MethodResponse;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Envelope with the id that jsonrpsee gets for a call; the received id replaces it afterwards.
const PLACEHOLDER: &str = r#"{"jsonrpc":"2.0","id":null,"result":"#;

/// jsonrpsee's own code for a result over the limit.
const OVERSIZED: i64 = -32008;

/// The standard errors, also used for a method's error without `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Kind {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    Overloaded,
    Cancelled,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::Overloaded,
        Self::Cancelled,
    ];

    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    pub(super) fn code(self) -> i64 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::Overloaded => -32001,
            Self::Cancelled => -32800,
        }
    }

    fn retryable(self) -> bool {
        self == Self::Overloaded
    }

    fn from_code(code: i64) -> Self {
        Self::ALL.into_iter().find(|kind| kind.code() == code).unwrap_or(Self::Internal)
    }
}

/// An error that this layer replies with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub kind: Kind,
    pub text: String,
}

impl Fault {
    pub(super) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The whole reply.
    pub(super) fn reply(&self, id: &str) -> Vec<u8> {
        let (code, kind, retryable) = (self.kind.code(), self.kind.name(), self.kind.retryable());
        let text = Value::from(self.text.as_str());
        let later = if self.kind == Kind::Overloaded { r#","retry_after_ms":250"# } else { "" };
        let data = format!(r#"{{"kind":"{kind}","retryable":{retryable}{later}}}"#);
        frame(id, "error", &format!(r#"{{"code":{code},"message":{text},"data":{data}}}"#))
    }
}

/// The reply without content.
pub(super) fn null_reply(id: &str) -> Vec<u8> {
    frame(id, "result", "null")
}

/// The error for a message over the limit of `limit` bytes.
pub(super) fn message_too_long(limit: usize) -> Fault {
    Fault::new(
        Kind::InvalidRequest,
        format!("a message may have at most {limit} bytes; this one was skipped"),
    )
}

/// The error that replaces a reply over the limit of `limit` bytes.
pub(super) fn reply_too_big(limit: usize) -> Fault {
    Fault::new(Kind::Internal, format!("the reply would have more than {limit} bytes; ask for less at once"))
}

/// The reply with a method's response for this id.
pub(super) fn from_method(id: &str, response: &MethodResponse, max_response: usize) -> Vec<u8> {
    let text = response.as_ref();
    // Fast path of nearly every reply: no parsing, one copy.
    if let Some(rest) = text.strip_prefix(PLACEHOLDER)
        && let Some(result) = rest.strip_suffix('}')
    {
        return frame(id, "result", result);
    }
    match serde_json::from_str(text) {
        Ok(MethodReply { result: Some(result), error: None }) => frame(id, "result", result.get()),
        Ok(MethodReply { error: Some(error), .. }) => from_error(id, &error, max_response),
        _ => Fault::new(Kind::Internal, "the method gave an answer that cannot be read").reply(id),
    }
}

#[derive(Deserialize)]
struct MethodReply<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<MethodError<'a>>,
}

#[derive(Deserialize)]
struct MethodError<'a> {
    code: i64,
    message: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

fn from_error(id: &str, error: &MethodError<'_>, max_response: usize) -> Vec<u8> {
    if error.code == OVERSIZED {
        return reply_too_big(max_response).reply(id);
    }
    let data = with_kind(error.code, error.data);
    let message = Value::from(error.message.as_str());
    frame(id, "error", &format!(r#"{{"code":{},"message":{message},"data":{data}}}"#, error.code))
}

/// An error's `data`, completed so that `kind` and `retryable` are present.
fn with_kind(code: i64, data: Option<&RawValue>) -> String {
    #[derive(Deserialize)]
    struct CompleteData {
        #[serde(rename = "kind")]
        _kind: String,
        #[serde(rename = "retryable")]
        _retryable: bool,
    }
    if let Some(data) = data
        && serde_json::from_str::<CompleteData>(data.get()).is_ok()
    {
        return data.get().to_owned();
    }
    let mut members = match data.map(|data| serde_json::from_str::<Value>(data.get())) {
        Some(Ok(Value::Object(members))) => members,
        Some(Ok(Value::Null)) | None => Map::new(),
        // jsonrpsee puts the reason of a bad parameter here, as a bare string.
        Some(Ok(detail)) => Map::from_iter([("detail".to_owned(), detail)]),
        Some(Err(_)) => Map::new(),
    };
    let kind = Kind::from_code(code);
    members.entry("kind").or_insert_with(|| kind.name().into());
    members.entry("retryable").or_insert_with(|| kind.retryable().into());
    Value::Object(members).to_string()
}

fn frame(id: &str, member: &str, value: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + id.len() + member.len() + value.len());
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":", value, "}"] {
        out.extend_from_slice(part.as_bytes());
    }
    out
}

/// Joins the replies of a batch; `None` if there are none. A reply that does not fit into
/// `max_response` bytes is replaced by an error.
pub(super) fn batch(
    replies: impl IntoIterator<Item = (Box<str>, Vec<u8>)>,
    max_response: usize,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (id, reply) in replies {
        out.push(if out.is_empty() { b'[' } else { b',' });
        if out.len() + reply.len() < max_response {
            out.extend_from_slice(&reply);
        } else {
            out.extend_from_slice(&reply_too_big(max_response).reply(&id));
        }
    }
    if out.is_empty() {
        return None;
    }
    out.push(b']');
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonrpsee::ResponsePayload;
    use jsonrpsee::types::{ErrorObject, ErrorObjectOwned, Id};
    use serde_json::json;

    fn check(payload: ResponsePayload<'static, Value>, expected: Value) {
        let response = MethodResponse::response(Id::Null, payload, 60);
        let reply: Value = serde_json::from_slice(&from_method("-1.50", &response, 60)).unwrap();
        assert_eq!(reply["jsonrpc"], "2.0");
        assert_eq!(reply["id"], json!(-1.5));
        assert_eq!(reply.get("result").or(reply.get("error")).unwrap(), &expected);
    }

    fn error(code: i32, data: Option<Value>) -> ResponsePayload<'static, Value> {
        let error: ErrorObjectOwned = ErrorObject::owned(code, "told \"so\"", data);
        // The limit of these tests is for results; errors are made without it.
        ResponsePayload::error(error)
    }

    #[test]
    fn results_and_errors_contain_request_id_and_kind() {
        check(ResponsePayload::success(json!({"a": [1, "}"]})), json!({"a": [1, "}"]}));
        check(ResponsePayload::success(Value::Null), Value::Null);
        let big = "x".repeat(100);
        let response = MethodResponse::response(Id::Null, ResponsePayload::success(big), 60);
        let reply: Value = serde_json::from_slice(&from_method("1", &response, 60)).unwrap();
        assert_eq!(reply["error"]["code"], -32603);
        assert_eq!(reply["error"]["data"], json!({"kind": "internal", "retryable": false}));
    }

    #[test]
    fn error_data_is_completed_but_never_replaced() {
        let check = |code, data: Option<Value>, expected: Value| {
            let response = MethodResponse::response(Id::Null, error(code, data), usize::MAX);
            let reply: Value = serde_json::from_slice(&from_method("1", &response, 60)).unwrap();
            assert_eq!(reply["error"], json!({"code": code, "message": "told \"so\"", "data": expected}));
        };
        check(-32602, None, json!({"kind": "invalid_params", "retryable": false}));
        check(
            -32602,
            Some(json!("why")),
            json!({"kind": "invalid_params", "retryable": false, "detail": "why"}),
        );
        check(
            -32001,
            Some(json!({"retry_after_ms": 5})),
            json!({"kind": "overloaded", "retryable": true, "retry_after_ms": 5}),
        );
        check(
            -32014,
            Some(json!({"kind": "not_pending", "retryable": false, "by": "x"})),
            json!({"kind": "not_pending", "retryable": false, "by": "x"}),
        );
        check(
            -32014,
            Some(json!({"kind": "not_pending"})),
            json!({"kind": "not_pending", "retryable": false}),
        );
        check(7, None, json!({"kind": "internal", "retryable": false}));
    }

    #[test]
    fn batch_replies_are_joined_within_limit() {
        let reply = |n: u32, text: &str| {
            (n.to_string().into_boxed_str(), format!("{{\"id\":{n},\"result\":\"{text}\"}}").into_bytes())
        };
        assert_eq!(batch([], 1000), None);
        assert_eq!(
            batch([reply(1, "a"), reply(2, "b")], 1000).unwrap(),
            br#"[{"id":1,"result":"a"},{"id":2,"result":"b"}]"#
        );
        let out = batch([reply(1, &"x".repeat(500)), reply(2, "b")], 400).unwrap();
        let out: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(out[0]["error"]["data"]["kind"], "internal");
        assert_eq!(out[0]["id"], 1);
        assert_eq!(out[1]["result"], "b");
    }
}
