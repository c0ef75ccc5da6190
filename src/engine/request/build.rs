//! Builds the messages of a request from the state. Roles alternate, every call has its result directly
//! after it, and no message is empty. Messages that were sent before stay byte-identical.

use std::sync::Arc;

use crate::state::transcript::{Transcript, is_blank};
use types::message::{Block, Message, Role};

/// Replaces a result without text, because providers refuse empty content.
const NO_OUTPUT: &str = "(no output)";

/// Replaces a first user message without text, because providers require a user message first.
const NO_TEXT: &str = "(no text)";

/// Merges adjacent messages of the same role and repairs parts that providers refuse. Unchanged messages
/// are shared, not copied. Reasoning stays only if the called model `thinker` produced it, because its
/// signature is invalid for any other model. `thinker` is `None` for a model that must not think.
#[must_use]
pub fn normalize<'a>(
    transcript: impl IntoIterator<Item = &'a Arc<Message>>,
    thinker: Option<&str>,
) -> Vec<Arc<Message>> {
    let transcript = transcript.into_iter();
    let out = Vec::with_capacity(transcript.size_hint().0);
    append_normalized(out, transcript, thinker)
}

/// Normalizes a session's transcript; most of it is already normalized.
pub(crate) fn normalize_transcript(transcript: &Transcript, thinker: Option<&str>) -> Vec<Arc<Message>> {
    let (plain, rest) = transcript.plain();
    let mut out = Vec::with_capacity(transcript.len());
    out.extend_from_slice(plain);
    append_normalized(out, rest, thinker)
}

/// Appends the rest of a transcript to its normalized part.
pub(crate) fn append_normalized<'a>(
    mut out: Vec<Arc<Message>>,
    rest: impl Iterator<Item = &'a Arc<Message>>,
    thinker: Option<&str>,
) -> Vec<Arc<Message>> {
    for message in rest {
        let message = repair(message, thinker);
        if message.content.is_empty() {
            continue;
        }
        if out.is_empty() && message.role == Role::Assistant {
            out.push(Arc::new(Message::user(NO_TEXT)));
        }
        match out.last_mut() {
            Some(last) if last.role == message.role => {
                let last = Arc::make_mut(last);
                last.content.extend(message.content.iter().cloned());
                // The reasoning in this message is valid only for the model that produced it.
                if thinker.is_some() && message.model.as_deref() == thinker {
                    last.model.clone_from(&message.model);
                }
            }
            _ => out.push(message),
        }
    }
    out
}

fn repair(message: &Arc<Message>, thinker: Option<&str>) -> Arc<Message> {
    let is_own = || thinker.is_some() && message.model.as_deref() == thinker;
    let faulty = |block: &Block| match block {
        Block::Text { text } => is_blank(text),
        Block::ToolResult { content, .. } => is_blank(content),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => !is_own(),
        Block::Image(_) | Block::Document(_) | Block::ToolCall(_) => false,
    };
    // Providers refuse reasoning as the last block, so a message that ends in reasoning loses it.
    let ends_in_thinking = message.role == Role::Assistant
        && matches!(message.content.last(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. }));
    if !ends_in_thinking && !message.content.iter().any(faulty) {
        return Arc::clone(message);
    }
    let mut repaired = (**message).clone();
    repaired.content.retain(|block| match block {
        Block::Text { text } => !is_blank(text),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => is_own(),
        Block::Image(_) | Block::Document(_) | Block::ToolCall(_) | Block::ToolResult { .. } => true,
    });
    for block in &mut repaired.content {
        if let Block::ToolResult { content, .. } = block
            && is_blank(content)
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

#[cfg(test)]
mod tests {
    use crate::request::build::*;

    fn assistant_message(model: Option<&str>, content: Vec<Block>) -> Arc<Message> {
        Arc::new(Message { role: Role::Assistant, content, model: model.map(str::to_owned) })
    }

    fn text_block(text: &str) -> Block {
        Block::Text { text: text.into() }
    }

    fn thinking_block(text: &str) -> Block {
        Block::Thinking { text: text.into(), signature: Some("s".into()) }
    }

    /// Returns the reasoning blocks that are sent to this model, and the number of messages.
    fn sent_thinking(transcript: &[Arc<Message>], thinker: Option<&str>) -> (Vec<String>, usize) {
        let messages = normalize(transcript, thinker);
        let thoughts = messages.iter().flat_map(|message| &message.content).filter_map(|block| match block {
            Block::Thinking { text, .. } => Some(text.clone()),
            Block::RedactedThinking { data } => Some(data.clone()),
            _ => None,
        });
        (thoughts.collect(), messages.len())
    }

    #[test]
    fn reasoning_is_sent_to_its_own_model_only() {
        let ask = || Arc::new(Message::user("go"));
        let hidden = Block::RedactedThinking { data: "c".into() };
        let transcript = [
            ask(),
            assistant_message(Some("p/one"), vec![thinking_block("a"), text_block("x")]),
            ask(),
            assistant_message(Some("p/two"), vec![thinking_block("b"), hidden, text_block("y")]),
            ask(),
            // An older journal does not record the model of an answer.
            assistant_message(None, vec![thinking_block("d"), text_block("z")]),
            ask(),
        ];
        let own = |thoughts: &[&str]| (thoughts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>(), 7);
        assert_eq!(sent_thinking(&transcript, Some("p/one")), own(&["a"]));
        assert_eq!(sent_thinking(&transcript, Some("p/two")), own(&["b", "c"]));
        assert_eq!(sent_thinking(&transcript, Some("q/one")), own(&[]));
        assert_eq!(sent_thinking(&transcript, None), own(&[]), "with thinking off there is none");
    }

    #[test]
    fn message_empty_without_reasoning_is_omitted() {
        let only = assistant_message(Some("p/one"), vec![thinking_block("a")]);
        let transcript = [Arc::new(Message::user("go")), only, Arc::new(Message::user("on"))];
        let messages = normalize(&transcript, Some("p/two"));
        assert_eq!(messages.len(), 1, "neighbours are one message then: {messages:?}");
        assert_eq!(messages[0].content, [text_block("go"), text_block("on")]);
    }

    #[test]
    fn adjacent_messages_keep_reasoning_of_requested_model() {
        let transcript = [
            Arc::new(Message::user("go")),
            assistant_message(Some("p/one"), vec![thinking_block("a"), text_block("x")]),
            assistant_message(Some("p/two"), vec![thinking_block("b"), text_block("y")]),
            Arc::new(Message::user("on")),
        ];
        for thinker in ["p/one", "p/two"] {
            let once = normalize(&transcript, Some(thinker));
            assert_eq!(sent_thinking(&once, Some(thinker)).0.len(), 1, "{thinker}");
            assert_eq!(normalize(&once, Some(thinker)), once, "{thinker}: a second time is not the first");
        }
    }
}
