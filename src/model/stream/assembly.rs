//! Assembles an answer from the parts that an adapter reads, and produces deltas and the complete reply. All
//! adapters use it, so that the guarantees on deltas are implemented once:
//!
//! - blocks have the indexes 0, 1, 2 … of their position in the reply, and one is open at a time;
//! - a block without content is omitted, and no delta is empty;
//! - the joined text deltas equal the joined text blocks, except for a text that turns out to be reasoning;
//! - no delta has more than [`MAX_DELTA_BYTES`] bytes.

use std::sync::Arc;

use serde_json::Value;

use crate::stream::fault::clean_text;
use crate::stream::split_chars::CharJoiner;
use crate::stream::text::read_settled_json;
use crate::tool_schema::ChangedNames;
use types::depth;
use types::model::{BlockKind, Delta, ModelReply, ReplyBlock, StopReason};
use types::usage::Usage;

/// Maximum bytes of text in one delta.
pub(crate) const MAX_DELTA_BYTES: usize = 32 << 10;

/// How often arguments may be encoded as a text.
const MAX_ENCODINGS: usize = 3;

/// What the calls of an answer need from its request: ids for calls without a provider id, and the names of arguments.
#[derive(Clone, Debug)]
pub(crate) struct CallIds {
    prefix: String,
    changed_names: Arc<ChangedNames>,
}

impl CallIds {
    /// Ids that are unique across answers.
    pub(crate) fn unique() -> Self {
        Self { prefix: format!("call_{}", uuid::Uuid::now_v7().simple()), changed_names: Arc::default() }
    }

    /// Ids that are the same each time record `number` is played.
    pub(crate) fn for_recording(number: usize) -> Self {
        Self { prefix: format!("call_replay_{number}"), changed_names: Arc::default() }
    }

    /// The same for a request in which properties of tools have other names.
    pub(crate) fn with_changed_names(self, changed_names: Arc<ChangedNames>) -> Self {
        Self { changed_names, ..self }
    }

    /// The arguments of a call of a tool.
    fn read_input(&self, tool: &str, json: String) -> Result<Value, (String, String)> {
        let mut input = read_input(json);
        if let Ok(input) = &mut input {
            self.changed_names.restore(tool, input);
        }
        input
    }

    fn nth_id(&self, n: usize) -> String {
        format!("{}_{n}", self.prefix)
    }
}

/// The answer so far.
#[derive(Debug)]
pub(crate) struct Assembly {
    content: Vec<ReplyBlock>,
    open: Option<OpenBlock>,
    ids: CallIds,
    /// Ids that the provider gave to more than one call, with the index of the later call.
    repeated: Vec<(String, usize)>,
    notices: Vec<String>,
    /// Whether streamed text turned out to be reasoning.
    is_restated: bool,
    /// Joins characters that are split over two parts of the open block.
    joiner: CharJoiner,
    /// Whether the end of some call is uncertain. Later calls then do not start before the answer is complete.
    has_uncertain_call: bool,
}

#[derive(Debug)]
enum OpenBlock {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        tool: String,
        json: String,
    },
    /// A call with the id of an earlier call. No delta is sent before it is complete: it may be a repetition.
    Repeated {
        id: String,
        tool: String,
        json: String,
    },
}

impl Assembly {
    pub(crate) fn new(ids: CallIds) -> Self {
        Self {
            content: Vec::new(),
            open: None,
            ids,
            repeated: Vec::new(),
            notices: Vec::new(),
            is_restated: false,
            joiner: CharJoiner::default(),
            has_uncertain_call: false,
        }
    }

    /// Adds text; opens a text block if none is open.
    pub(crate) fn text(&mut self, piece: &str, out: &mut Vec<Delta>) {
        if piece.is_empty() {
            return;
        }
        if !matches!(self.open, Some(OpenBlock::Text(_))) {
            self.open(OpenBlock::Text(String::new()), BlockKind::Text, out);
        }
        let piece = self.joiner.join(piece);
        self.push_piece(&piece, out);
    }

    /// Adds reasoning; opens a reasoning block if none is open.
    pub(crate) fn thinking(&mut self, piece: &str, out: &mut Vec<Delta>) {
        if piece.is_empty() {
            return;
        }
        self.open_thinking(out);
        let piece = self.joiner.join(piece);
        self.push_piece(&piece, out);
    }

    /// Turns the text so far into reasoning, if the answer has nothing else. Its deltas stay those of a text.
    pub(crate) fn mark_text_as_thinking(&mut self, out: &mut Vec<Delta>) {
        if self.content.is_empty()
            && let Some(OpenBlock::Text(_)) = &self.open
        {
            self.close(out);
            if let Some(ReplyBlock::Text(text)) = self.content.pop() {
                self.content.push(ReplyBlock::Thinking { text, signature: None });
            }
            // Calls of a message that is stated again must not start before.
            (self.is_restated, self.has_uncertain_call) = (true, true);
        }
    }

    /// Adds a part of the reasoning's signature.
    pub(crate) fn signature(&mut self, piece: &str, out: &mut Vec<Delta>) {
        if piece.is_empty() {
            return;
        }
        self.open_thinking(out);
        if let Some(OpenBlock::Thinking { signature, .. }) = &mut self.open {
            signature.push_str(piece);
        }
    }

    /// Adds encrypted reasoning, which arrives complete. Clients see that there was some reasoning.
    pub(crate) fn redacted(&mut self, data: &str, out: &mut Vec<Delta>) {
        self.close(out);
        let index = self.index();
        out.push(Delta::BlockStarted { index, kind: BlockKind::Thinking });
        out.push(Delta::ThinkingSealed { index, signature: None, data: Some(data.to_owned()) });
        out.push(Delta::BlockCompleted { index });
        self.content.push(ReplyBlock::RedactedThinking(data.to_owned()));
    }

    /// Starts a tool call. A generated id replaces a missing or duplicate one. If tool and arguments are also
    /// equal to those of the earlier call, the call is a repetition and is omitted.
    pub(crate) fn call(&mut self, id: &str, tool: &str, out: &mut Vec<Delta>) {
        self.close(out);
        let is_taken = !id.is_empty()
            && self
                .content
                .iter()
                .any(|block| matches!(block, ReplyBlock::ToolCall { provider_id, .. } if provider_id == id));
        if is_taken {
            self.open = Some(OpenBlock::Repeated { id: id.into(), tool: tool.into(), json: String::new() });
            return;
        }
        let id = if id.is_empty() { self.ids.nth_id(self.content.len()) } else { id.to_owned() };
        let open = OpenBlock::Call { id, tool: tool.to_owned(), json: String::new() };
        self.open(open, BlockKind::ToolCall { tool: tool.to_owned() }, out);
    }

    /// Adds arguments of the open call.
    pub(crate) fn call_input(&mut self, piece: &str, out: &mut Vec<Delta>) {
        if matches!(self.open, Some(OpenBlock::Call { .. } | OpenBlock::Repeated { .. })) {
            let piece = self.joiner.join(piece);
            self.push_piece(&piece, out);
        }
    }

    /// Adds a part to the open block, whatever its kind.
    fn push_piece(&mut self, piece: &str, out: &mut Vec<Delta>) {
        let index = self.index();
        match &mut self.open {
            Some(OpenBlock::Text(text)) => {
                text.push_str(piece);
                out.extend(pieces(piece).map(|part| Delta::Text { index, text: part.to_owned() }));
            }
            Some(OpenBlock::Thinking { text, .. }) => {
                text.push_str(piece);
                out.extend(pieces(piece).map(|part| Delta::Thinking { index, text: part.to_owned() }));
            }
            Some(OpenBlock::Call { json, .. }) => {
                json.push_str(piece);
                out.extend(pieces(piece).map(|part| Delta::ToolInput { index, json: part.to_owned() }));
            }
            Some(OpenBlock::Repeated { json, .. }) => json.push_str(piece),
            None => {}
        }
    }

    /// Whether the open block is a call without any arguments so far.
    pub(crate) fn has_bare_call(&self) -> bool {
        matches!(&self.open, Some(OpenBlock::Call { json, .. } | OpenBlock::Repeated { json, .. }) if json.is_empty())
    }

    /// Completes the open block, if any.
    pub(crate) fn close(&mut self, out: &mut Vec<Delta>) {
        let rest = self.joiner.finish();
        if !rest.is_empty() {
            self.push_piece(&rest, out);
        }
        let Some(mut open) = self.open.take() else { return };
        if let OpenBlock::Repeated { id, tool, json } = open {
            if self.has_call(&id, &tool, &json) {
                self.notice(format!("the answer repeated the call {id} of {tool}: it is run once"));
                return;
            }
            let index = self.index();
            self.repeated.push((id, self.content.len()));
            out.push(Delta::BlockStarted { index, kind: BlockKind::ToolCall { tool: tool.clone() } });
            out.extend(pieces(&json).map(|part| Delta::ToolInput { index, json: part.to_owned() }));
            open = OpenBlock::Call { id: self.ids.nth_id(self.content.len()), tool, json };
        }
        let index = self.index();
        if let OpenBlock::Thinking { signature, .. } = &open
            && !signature.is_empty()
        {
            out.push(Delta::ThinkingSealed { index, signature: Some(signature.clone()), data: None });
        }
        out.push(Delta::BlockCompleted { index });
        self.content.push(match open {
            OpenBlock::Text(text) => ReplyBlock::Text(text),
            OpenBlock::Thinking { text, signature } => {
                ReplyBlock::Thinking { text, signature: (!signature.is_empty()).then_some(signature) }
            }
            OpenBlock::Call { id, tool, json } | OpenBlock::Repeated { id, tool, json } => {
                let input = self.ids.read_input(&tool, json);
                ReplyBlock::ToolCall { provider_id: id, tool, input }
            }
        });
        self.report_call(index, out);
    }

    /// Reports the newest block as a call that may start. A call without arguments may have been cut off.
    fn report_call(&mut self, index: u32, out: &mut Vec<Delta>) {
        let Some(ReplyBlock::ToolCall { provider_id, tool, input }) = self.content.last() else { return };
        match input {
            Ok(input)
                if !self.has_uncertain_call && input.as_object().is_some_and(|input| !input.is_empty()) =>
            {
                let (provider_id, tool, input) = (provider_id.clone(), tool.clone(), input.clone());
                out.push(Delta::CallCompleted { index, provider_id, tool, input });
            }
            _ => self.has_uncertain_call = true,
        }
    }

    /// Whether the answer contains the same call with the same provider id.
    fn has_call(&self, id: &str, tool: &str, json: &str) -> bool {
        let parsed_input = self.ids.read_input(tool, json.to_owned());
        self.content.iter().enumerate().any(|(at, block)| match block {
            ReplyBlock::ToolCall { provider_id, tool: known, input } => {
                let is_named =
                    || self.repeated.iter().any(|(repeated_id, place)| repeated_id == id && *place == at);
                known == tool && *input == parsed_input && (provider_id == id || is_named())
            }
            _ => false,
        })
    }

    /// Adds a notice for the user.
    pub(crate) fn notice(&mut self, text: String) {
        self.notices.push(clean_text(&text));
    }

    /// Whether the answer has any content.
    pub(crate) fn has_begun(&self) -> bool {
        self.open.is_some() || !self.content.is_empty()
    }

    /// Whether the answer contains a complete tool call.
    pub(crate) fn has_calls(&self) -> bool {
        self.content.iter().any(|block| matches!(block, ReplyBlock::ToolCall { .. }))
    }

    /// The complete answer; closes an open block.
    pub(crate) fn reply(
        mut self,
        stop_reason: StopReason,
        usage: Usage,
        response_id: Option<String>,
        out: &mut Vec<Delta>,
    ) -> ModelReply {
        self.close(out);
        ModelReply {
            content: self.content,
            stop_reason,
            usage,
            nested: Vec::new(),
            is_restated: self.is_restated,
            response_id,
            notices: self.notices,
            cache_hit: false,
            last: Vec::new(),
        }
    }

    fn open_thinking(&mut self, out: &mut Vec<Delta>) {
        if !matches!(self.open, Some(OpenBlock::Thinking { .. })) {
            let open = OpenBlock::Thinking { text: String::new(), signature: String::new() };
            self.open(open, BlockKind::Thinking, out);
        }
    }

    fn open(&mut self, open: OpenBlock, kind: BlockKind, out: &mut Vec<Delta>) {
        self.close(out);
        out.push(Delta::BlockStarted { index: self.index(), kind });
        self.open = Some(open);
    }

    /// Index of the open block, or of the next one.
    fn index(&self) -> u32 {
        u32::try_from(self.content.len()).unwrap_or(u32::MAX)
    }
}

/// The arguments of a call; an empty text means no arguments.
pub(crate) fn read_input(json: String) -> Result<Value, (String, String)> {
    if json.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let parsed =
        read_settled_json(&json).map(|input| if input.is_string() { unwrap_text(input) } else { input });
    match parsed {
        Ok(input) if depth::is_readable(&input) => Ok(input),
        Ok(_) => Err((json, format!("more than {} levels of lists and objects", depth::MAX_DEPTH))),
        Err(error) => Err((json, error.to_string())),
    }
}

/// The arguments in a text that holds them: some models encode them twice.
fn unwrap_text(input: Value) -> Value {
    let mut inner = input.clone();
    for _ in 0..MAX_ENCODINGS {
        inner = match &inner {
            Value::String(text) => match read_settled_json(text) {
                Ok(inner) => inner,
                Err(_) => return input,
            },
            _ => break,
        };
    }
    if inner.is_object() { inner } else { input }
}

/// Parts of the text with at most [`MAX_DELTA_BYTES`] bytes that end between characters.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, later) = rest.split_at(rest.floor_char_boundary(MAX_DELTA_BYTES));
        rest = later;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use crate::stream::assembly::*;
    use crate::testing::assert_deltas_tell_the_reply;

    #[test]
    fn large_delta_is_split_at_character_boundary() {
        let text = format!("a{}", "€".repeat(MAX_DELTA_BYTES));
        let parts: Vec<&str> = pieces(&text).collect();
        assert!(
            parts.len() >= 3 && parts.iter().all(|part| part.len() <= MAX_DELTA_BYTES && !part.is_empty())
        );
        assert_eq!(parts.concat(), text);
        assert_eq!(pieces("").count(), 0);
    }

    #[test]
    fn empty_blocks_are_omitted_without_index_gap() {
        let mut out = Vec::new();
        let mut answer = Assembly::new(CallIds::for_recording(0));
        answer.text("", &mut out);
        answer.thinking("", &mut out);
        answer.close(&mut out);
        assert_eq!(out, []);
        answer.signature("sig", &mut out);
        answer.redacted("opaque", &mut out);
        answer.text("hi", &mut out);
        let reply = answer.reply(StopReason::EndTurn, Usage::default(), None, &mut out);
        let indexes: Vec<u32> = out
            .iter()
            .filter_map(|delta| match delta {
                Delta::BlockStarted { index, .. } => Some(*index),
                _ => None,
            })
            .collect();
        assert_eq!(indexes, [0, 1, 2]);
        assert_eq!(
            reply.content,
            [
                ReplyBlock::Thinking { text: String::new(), signature: Some("sig".into()) },
                ReplyBlock::RedactedThinking("opaque".into()),
                ReplyBlock::Text("hi".into()),
            ]
        );
    }

    #[test]
    fn repeated_call_with_same_id_is_kept_once() {
        let mut out = Vec::new();
        let mut answer = Assembly::new(CallIds::for_recording(3));
        for (id, tool, json) in [
            ("a", "T", "{\"x\":1}"),
            ("a", "T", "{ \"x\": 1 }"),
            ("a", "T", "{\"x\":2}"),
            ("a", "U", "{\"x\":2}"),
            ("a", "T", "{\"x\":2}"),
            ("b", "T", "{\"x\":1}"),
        ] {
            answer.call(id, tool, &mut out);
            answer.call_input(json, &mut out);
        }
        let reply = answer.reply(StopReason::ToolUse, Usage::default(), None, &mut out);
        assert_deltas_tell_the_reply(&out, &reply);
        let seen: Vec<(&str, &str)> = reply
            .content
            .iter()
            .map(|block| match block {
                ReplyBlock::ToolCall { provider_id, tool, .. } => (provider_id.as_str(), tool.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(seen, [("a", "T"), ("call_replay_3_1", "T"), ("call_replay_3_2", "U"), ("b", "T")]);
        assert_eq!(reply.notices.len(), 2, "{:?}", reply.notices);
    }

    #[test]
    fn tool_calls_get_unique_ids_and_parsed_input() {
        let mut out = Vec::new();
        let mut answer = Assembly::new(CallIds::for_recording(3));
        for (id, json) in [("a", "{\"x\":1}"), ("a", ""), ("", "{\"x\":")] {
            answer.call(id, "T", &mut out);
            answer.call_input(json, &mut out);
        }
        let reply = answer.reply(StopReason::ToolUse, Usage::default(), None, &mut out);
        let seen: Vec<(String, bool)> = reply
            .content
            .into_iter()
            .map(|block| match block {
                ReplyBlock::ToolCall { provider_id, input, .. } => (provider_id, input.is_ok()),
                other => panic!("{other:?}"),
            })
            .collect();
        let id = |n: usize| format!("call_replay_3_{n}");
        assert_eq!(seen, [("a".into(), true), (id(1), true), (id(2), false)]);
    }
}
