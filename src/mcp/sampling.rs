//! Model calls that a server asks for while one of its calls runs (sampling). The owner of the call asks the user and
//! makes them.

#![expect(deprecated, reason = "servers of the revisions until 2026-07-28 use sampling")]

use rmcp::model::SamplingMessageContentBlock;
use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, Role as SenderRole, SamplingMessage};
use tokio::sync::oneshot;

use types::message::Role;
use types::sampling::{Sampling, Temperature};

/// Maximum bytes of a request, so that a user can look at it.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// A model call that a server asks for. It has text only and no tools.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingRequest {
    /// The system prompt; empty if the server sends none.
    pub system: String,
    /// The conversation.
    pub messages: Vec<(Role, String)>,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
    /// Temperature, if the server sets one.
    pub sampling: Sampling,
    /// Texts that end the answer.
    pub stop: Vec<String>,
}

/// The model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingAnswer {
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// The text of the answer.
    pub text: String,
    /// Whether the answer was cut at `max_tokens`.
    pub is_cut: bool,
}

/// A server's request for a model call, and the place for its answer. Without an answer it counts as declined.
pub struct ServerModelCall {
    /// The request.
    pub request: SamplingRequest,
    pub(super) reply: oneshot::Sender<Result<SamplingAnswer, String>>,
}

impl ServerModelCall {
    /// Gives the answer, or the reason why there is none, to the server.
    pub fn answer(self, answer: Result<SamplingAnswer, String>) {
        // Fails if the server has withdrawn the request.
        let _ = self.reply.send(answer);
    }

    /// Resolves when the server no longer waits for an answer.
    pub async fn wait_withdrawn(&mut self) {
        self.reply.closed().await;
    }
}

impl SamplingRequest {
    /// Reads a server's request.
    ///
    /// # Errors
    /// It has tools or other content than text, is empty, or is too long.
    pub(super) fn parse(params: CreateMessageRequestParams) -> Result<Self, String> {
        if params.tools.is_some_and(|tools| !tools.is_empty()) {
            return Err("tools in a model call for a server are not supported".into());
        }
        let messages = params.messages.into_iter().map(read_message).collect::<Result<Vec<_>, _>>()?;
        let system = params.system_prompt.unwrap_or_default();
        let bytes = system.len() + messages.iter().map(|(_, text)| text.len()).sum::<usize>();
        if messages.is_empty() {
            return Err("the model call has no messages".into());
        }
        if bytes > MAX_REQUEST_BYTES {
            return Err(format!("the model call has {bytes} bytes, {MAX_REQUEST_BYTES} at most"));
        }
        let temperature =
            params.temperature.and_then(|value| serde_json::from_value::<Temperature>(value.into()).ok());
        Ok(Self {
            system,
            messages,
            max_tokens: params.max_tokens.max(1),
            sampling: Sampling { temperature, top_p: None },
            stop: params.stop_sequences.unwrap_or_default(),
        })
    }

    /// The whole request as text, for the user who decides about it.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut text = String::new();
        if !self.system.is_empty() {
            text.push_str(&format!("system: {}\n", self.system));
        }
        for (role, content) in &self.messages {
            let role = if *role == Role::User { "user" } else { "assistant" };
            text.push_str(&format!("{role}: {content}\n"));
        }
        text.push_str(&format!("(at most {} tokens)", self.max_tokens));
        text
    }
}

impl From<SamplingAnswer> for CreateMessageResult {
    fn from(answer: SamplingAnswer) -> Self {
        let message =
            SamplingMessage::new(SenderRole::Assistant, SamplingMessageContentBlock::text(answer.text));
        let mut result = Self::new(message, answer.model);
        let reason = if answer.is_cut { Self::STOP_REASON_END_MAX_TOKEN } else { Self::STOP_REASON_END_TURN };
        result.stop_reason = Some(reason.to_owned());
        result
    }
}

fn read_message(message: SamplingMessage) -> Result<(Role, String), String> {
    let role = if message.role == SenderRole::User { Role::User } else { Role::Assistant };
    let mut text = String::new();
    for block in message.content.into_vec() {
        match block {
            SamplingMessageContentBlock::Text(part) => text.push_str(&part.text),
            _ => return Err("only text is supported in a model call for a server".into()),
        }
    }
    Ok((role, text))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(params: Value) -> Result<SamplingRequest, String> {
        SamplingRequest::parse(serde_json::from_value(params).expect("params"))
    }

    fn text(role: &str, text: &str) -> Value {
        json!({"role": role, "content": {"type": "text", "text": text}})
    }

    #[test]
    fn request_is_read_and_shown_whole() {
        let request = parse(json!({
            "messages": [text("user", "hi"), text("assistant", "hello"), text("user", "and?")],
            "systemPrompt": "Be short.", "maxTokens": 7, "temperature": 0.5, "stopSequences": ["END"],
            "includeContext": "allServers", "modelPreferences": {"hints": [{"name": "x"}]},
        }))
        .expect("a request");
        assert_eq!(
            request.shown(),
            "system: Be short.\nuser: hi\nassistant: hello\nuser: and?\n(at most 7 tokens)"
        );
        assert_eq!((request.max_tokens, request.stop.as_slice()), (7, &["END".to_owned()][..]));
        assert!(request.sampling.temperature.is_some());
    }

    #[test]
    fn request_that_no_user_can_judge_is_refused() {
        let image =
            json!({"role": "user", "content": {"type": "image", "data": "", "mimeType": "image/png"}});
        let tool = json!({"name": "x", "inputSchema": {"type": "object"}});
        for (params, why) in [
            (json!({"messages": [], "maxTokens": 5}), "no messages"),
            (json!({"messages": [image], "maxTokens": 5}), "only text"),
            (json!({"messages": [text("user", "x")], "maxTokens": 5, "tools": [tool]}), "tools"),
            (json!({"messages": [text("user", &"x".repeat(70_000))], "maxTokens": 5}), "65536 at most"),
        ] {
            assert!(parse(params).is_err_and(|error| error.contains(why)), "{why}");
        }
    }
}
