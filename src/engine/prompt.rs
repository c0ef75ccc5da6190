//! State → request (Q13): roles alternate, every call has its result directly after it, nothing is
//! empty, and what was sent before stays byte-identical.

use std::collections::HashMap;
use std::sync::Arc;

use super::plan::Draft;
use crate::types::message::{Block, Message, Role};
use crate::types::model::ModelRequest;

/// Stands for a result that has no text, since providers refuse empty content.
const NO_OUTPUT: &str = "(no output)";

/// Stands for what a person said at the beginning if that has no text: providers want a person first.
const NO_TEXT: &str = "(no text)";

impl Draft<'_> {
    /// The request for the next model call.
    pub fn request(&self) -> Result<ModelRequest, &'static str> {
        let model = self.turn_model();
        if model.is_empty() {
            return Err("no model is configured: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or [models] main \
                        in the configuration, or name one with --model PROVIDER/MODEL");
        }
        Ok(ModelRequest {
            model: model.parse()?,
            system: self.system(),
            messages: normalize(&self.state.transcript),
            tools: Arc::clone(&self.engine.settings.tools),
            max_output_tokens: self.output_limit(),
            media: HashMap::new(),
            previous_response_id: self.continues(&model),
            fresh_connection: self.state.turn.as_ref().is_some_and(|turn| turn.is_fresh),
        })
    }
}

impl Draft<'_> {
    /// The provider's id of the newest answer, if `model` gave it.
    fn continues(&self, model: &str) -> Option<String> {
        let (by, response_id) = self.state.continues.as_ref()?;
        (by == model).then(|| response_id.clone())
    }
}

/// Merges neighbours of the same role and repairs what providers refuse. Whole messages are shared,
/// not copied, where nothing is to be done.
#[must_use]
pub fn normalize(transcript: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(transcript.len());
    for message in transcript {
        let message = repair(message);
        if message.content.is_empty() {
            continue;
        }
        if out.is_empty() && message.role == Role::Assistant {
            out.push(Arc::new(Message::user(NO_TEXT)));
        }
        match out.last_mut() {
            Some(last) if last.role == message.role => {
                Arc::make_mut(last).content.extend(message.content.iter().cloned());
            }
            _ => out.push(message),
        }
    }
    out
}

fn repair(message: &Arc<Message>) -> Arc<Message> {
    let faulty = |block: &Block| match block {
        Block::Text { text } => text.trim().is_empty(),
        Block::ToolResult { content, .. } => content.trim().is_empty(),
        Block::Image(_)
        | Block::Document(_)
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolCall(_) => false,
    };
    // Thinking is never last (a provider's rule): without something after it, it is left out.
    let ends_in_thinking = message.role == Role::Assistant
        && matches!(message.content.last(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. }));
    if !ends_in_thinking && !message.content.iter().any(faulty) {
        return Arc::clone(message);
    }
    let mut repaired = (**message).clone();
    repaired.content.retain(|block| !matches!(block, Block::Text { text } if text.trim().is_empty()));
    for block in &mut repaired.content {
        if let Block::ToolResult { content, .. } = block
            && content.trim().is_empty()
        {
            *content = NO_OUTPUT.into();
        }
    }
    while matches!(repaired.content.last(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. }))
        && repaired.role == Role::Assistant
    {
        repaired.content.pop();
    }
    Arc::new(repaired)
}
