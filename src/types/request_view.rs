//! The next request to a model, as `session.request` returns it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::Message;

/// The next request of a session to its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestView {
    /// The system prompt.
    pub system: String,
    /// The tools on offer, in the order of the request.
    pub tools: Vec<RequestedTool>,
    /// The conversation. Pictures and documents are named by their blobs.
    pub messages: Vec<Message>,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Bytes of the body in the form of the provider, with the content of pictures and documents.
    pub bytes: u64,
}

/// A tool as a request offers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedTool {
    /// Its name.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of the input.
    pub input_schema: Value,
}
