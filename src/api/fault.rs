//! Error codes: number, kind and meaning in one table. Errors on the wire are built here.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

macro_rules! codes {
    ($($name:ident = $number:literal, $kind:literal, $retryable:literal, $meaning:literal;)*) => {
        /// Every error that a client can receive.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// All codes, for the reference.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The JSON-RPC error number.
            #[must_use]
            pub const fn number(self) -> i32 {
                match self { $(Code::$name => $number,)* }
            }

            /// `data.kind`: the stable code.
            #[must_use]
            pub const fn kind(self) -> &'static str {
                match self { $(Code::$name => $kind,)* }
            }

            /// `data.retryable`: whether the same call may succeed later.
            #[must_use]
            pub const fn is_retryable(self) -> bool {
                match self { $(Code::$name => $retryable,)* }
            }

            /// The meaning of the code, as text for the reference.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$name => $meaning,)* }
            }
        }
    };
}

codes! {
    ParseError = -32700, "parse_error", false, "The text is not JSON.";
    InvalidRequest = -32600, "invalid_request", false, "The JSON is not a JSON-RPC 2.0 request, or it is over a limit.";
    MethodNotFound = -32601, "method_not_found", false, "There is no such method.";
    InvalidParams = -32602, "invalid_params", false, "A parameter is missing or wrong; the message names its path.";
    Unsupported = -32602, "unsupported", false, "The parameter or value is known but not built yet.";
    Internal = -32603, "internal", false, "Something failed on our side; details are in the daemon's log.";
    NotAuthorised = -32000, "not_authorised", false, "This client may not do that.";
    Overloaded = -32001, "overloaded", true, "Too much at once; try again shortly.";
    NotFound = -32002, "not_found", false, "There is no such session, turn, call or request.";
    Cancelled = -32800, "cancelled", false, "The call was cancelled.";
    Conflict = -32010, "conflict", false, "The id or idempotency key was used before with other content.";
    StalePrecondition = -32011, "stale_precondition", false, "The turn named in expected_turn_id is not the current one.";
    Busy = -32012, "busy", true, "A turn is running and when_busy is reject.";
    Budget = -32013, "budget", false, "A budget is used up.";
    NotPending = -32014, "not_pending", false, "The request was already settled; data says by whom.";
    CursorAhead = -32015, "cursor_ahead", false, "after_seq is beyond the journal's end.";
    UnsupportedVersion = -32016, "unsupported_version", false, "The protocol version is not served.";
    ShuttingDown = -32017, "shutting_down", true, "The daemon is stopping.";
    StorageReadOnly = -32018, "storage_read_only", true, "The journal cannot be written now; reads still work.";
}

/// An error for a client.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Code of the error.
    pub code: Code,
    /// The error and how to fix it, as text for users.
    pub message: String,
    /// Further members of `data`.
    pub details: Map<String, Value>,
}

impl Fault {
    /// A fault without further details.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Map::new() }
    }

    /// Adds one member to `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.into(), value.into());
        self
    }

    /// The wait before the client should try again, in milliseconds. `None` if waiting alone does not help.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self.code {
            Code::Overloaded => Some(250),
            Code::Busy => Some(1_000),
            // The daemon stops within 10 s.
            Code::ShuttingDown => Some(2_000),
            Code::StorageReadOnly => Some(5_000),
            _ => None,
        }
    }

    /// The `data` member of the error object.
    #[must_use]
    pub fn data(&self) -> Value {
        let mut data = self.details.clone();
        data.insert("kind".into(), json!(self.code.kind()));
        data.insert("retryable".into(), json!(self.code.is_retryable()));
        if let Some(ms) = self.retry_after_ms() {
            data.entry("retry_after_ms").or_insert_with(|| json!(ms));
        }
        Value::Object(data)
    }
}

/// An error object as a client receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WireFault {
    /// The JSON-RPC error number.
    pub code: i32,
    /// The error and how to fix it.
    pub message: String,
    /// `kind`, `retryable` and further members.
    #[serde(default)]
    pub data: Value,
}

impl WireFault {
    /// `data.kind`, or an empty text.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.data.get("kind").and_then(Value::as_str).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_data_contains_kind_retryable_and_details() {
        let fault = Fault::new(Code::Busy, "a turn is running").with("turn_id", "turn_x");
        let data = json!({"kind": "busy", "retryable": true, "retry_after_ms": 1_000, "turn_id": "turn_x"});
        assert_eq!(fault.data(), data);
    }
}
