//! Decodes the events of Anthropic Messages.
//!
//! The `type` inside the data repeats the name of the event. So only the data is read, into one flat struct
//! that borrows from the chunk.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::request::count::{count, group};
use crate::stream::assembly::{Assembly, CallIds};
use crate::stream::decode::{Decode, EventError};
use crate::stream::fault::{WireError, error_event, invalid_answer, second_answer, unparsable_body};
use crate::stream::text::{EventTemplate, TolerantText, read_json};
use types::model::{Delta, ModelFault, ModelReply, StopReason};
use types::usage::{ModelSnapshot, NestedUsage, ServiceTier, Usage};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: TolerantText<'a>,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<BlockDelta<'a>>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(default, deserialize_with = "group")]
    usage: Option<UsageCounts>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: TolerantText<'a>,
    #[serde(borrow, default)]
    text: TolerantText<'a>,
    #[serde(borrow, default)]
    thinking: TolerantText<'a>,
    #[serde(borrow, default)]
    signature: TolerantText<'a>,
    #[serde(borrow, default)]
    partial_json: TolerantText<'a>,
    #[serde(borrow, default)]
    stop_reason: TolerantText<'a>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: TolerantText<'a>,
    #[serde(borrow, default)]
    text: TolerantText<'a>,
    #[serde(borrow, default)]
    thinking: TolerantText<'a>,
    #[serde(borrow, default)]
    signature: TolerantText<'a>,
    #[serde(borrow, default)]
    data: TolerantText<'a>,
    #[serde(borrow, default)]
    id: TolerantText<'a>,
    #[serde(borrow, default)]
    name: TolerantText<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: TolerantText<'a>,
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(borrow, default)]
    stop_reason: TolerantText<'a>,
    #[serde(default, deserialize_with = "group")]
    usage: Option<UsageCounts>,
}

/// Running totals; a later event may repeat only some of them.
#[derive(Clone, Deserialize)]
struct UsageCounts {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "group")]
    cache_creation: Option<CacheCreation>,
    #[serde(default, deserialize_with = "group")]
    output_tokens_details: Option<OutputCounts>,
    #[serde(default, deserialize_with = "group")]
    server_tool_use: Option<ServerTools>,
    #[serde(default, deserialize_with = "group")]
    service_tier: Option<String>,
    /// The parts of the answer. Only the messages of the called model are in the totals.
    #[serde(default, deserialize_with = "group")]
    iterations: Option<Vec<Iteration>>,
}

/// One part of an answer, for example the message of an advisor model.
#[derive(Clone, Deserialize)]
struct Iteration {
    #[serde(default, deserialize_with = "group", rename = "type")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "group")]
    model: Option<String>,
    #[serde(flatten)]
    counts: IterationCounts,
}

#[derive(Clone, Copy, Deserialize)]
struct IterationCounts {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
}

impl From<IterationCounts> for Usage {
    fn from(counts: IterationCounts) -> Self {
        Usage {
            input_tokens: counts.input_tokens.unwrap_or(0),
            output_tokens: counts.output_tokens.unwrap_or(0),
            cache_read_tokens: counts.cache_read_input_tokens.unwrap_or(0),
            cache_write_tokens: counts.cache_creation_input_tokens.unwrap_or(0),
            ..Usage::default()
        }
    }
}

/// Cache writes by their lifetime.
#[derive(Clone, Copy, Deserialize)]
struct CacheCreation {
    #[serde(default, deserialize_with = "count")]
    ephemeral_5m_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
struct OutputCounts {
    #[serde(default, deserialize_with = "count")]
    thinking_tokens: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
struct ServerTools {
    #[serde(default, deserialize_with = "count")]
    web_search_requests: Option<u64>,
}

/// Reads the events of one answer.
pub(in super::super) struct Decoder {
    answer: Assembly,
    usage: Usage,
    /// Use outside the totals, with the name of the model; empty for the called one.
    nested: Vec<(String, Usage)>,
    response_id: Option<String>,
    stop_reason: Option<String>,
    /// The input that the call's start event contained, used if no fragment follows.
    ready_input: Option<String>,
    /// The index of the open block, until its end event.
    open: Option<u64>,
    /// Whether the open block is of an unknown kind, so that its deltas are ignored.
    skipping: bool,
    /// Form of the last event, which a next event with other text matches. Set while events add text without
    /// escapes.
    template: Option<EventTemplate>,
    is_done: bool,
}

impl Decoder {
    pub(in super::super) fn new(ids: CallIds) -> Self {
        Self {
            answer: Assembly::new(ids),
            usage: Usage::default(),
            nested: Vec::new(),
            response_id: None,
            stop_reason: None,
            ready_input: None,
            open: None,
            skipping: false,
            template: None,
            is_done: false,
        }
    }

    fn add_counts(&mut self, counts: Option<UsageCounts>) {
        let Some(counts) = counts else { return };
        let set = |total: &mut u64, count: Option<u64>| *total = count.unwrap_or(*total);
        set(&mut self.usage.input_tokens, counts.input_tokens);
        set(&mut self.usage.output_tokens, counts.output_tokens);
        set(&mut self.usage.cache_read_tokens, counts.cache_read_input_tokens);
        let created = counts.cache_creation.as_ref();
        let hour = created.and_then(|created| created.ephemeral_1h_input_tokens);
        let minutes = created.and_then(|created| created.ephemeral_5m_input_tokens).unwrap_or(0);
        let both = minutes.saturating_add(hour.unwrap_or(0));
        let written = counts.cache_creation_input_tokens.or((both > 0).then_some(both));
        set(&mut self.usage.cache_write_tokens, written);
        set(&mut self.usage.cache_write_1h_tokens, hour);
        set(&mut self.usage.reasoning_tokens, counts.output_tokens_details.and_then(|d| d.thinking_tokens));
        set(&mut self.usage.web_search_requests, counts.server_tool_use.and_then(|d| d.web_search_requests));
        let tier = counts.service_tier.as_deref().and_then(ServiceTier::from_provider);
        self.usage.service_tier = tier.or(self.usage.service_tier);
        if let Some(iterations) = counts.iterations {
            // Server tools and compaction use the called model, others name theirs.
            let others = iterations.into_iter().filter(|it| it.kind.as_deref() != Some("message"));
            self.nested = others.map(|it| (it.model.unwrap_or_default(), it.counts.into())).collect();
        }
    }

    fn begin(&mut self, message: &Message<'_>) {
        self.add_counts(message.usage.clone());
        if !message.id.is_empty() {
            self.response_id = Some(message.id.to_string());
        }
        if !message.stop_reason.is_empty() {
            self.stop_reason = Some(message.stop_reason.to_string());
        }
    }

    fn open_block(&mut self, block: &Block<'_>, out: &mut Vec<Delta>) {
        self.close_block(out);
        match &*block.kind {
            "text" => self.answer.text(&block.text, out),
            "thinking" => {
                self.answer.thinking(&block.thinking, out);
                self.answer.signature(&block.signature, out);
            }
            "redacted_thinking" => self.answer.redacted(&block.data, out),
            "tool_use" => {
                self.answer.call(&block.id, &block.name, out);
                self.ready_input = block.input.map(|input| input.get().to_owned());
            }
            other => {
                self.skipping = true;
                self.answer.notice(format!("a block of the unknown kind {other:?} was left out"));
            }
        }
    }

    fn close_block(&mut self, out: &mut Vec<Delta>) {
        self.skipping = false;
        if let Some(input) = self.ready_input.take()
            && self.answer.has_bare_call()
            && !matches!(input.as_str(), "{}" | "null" | "\"\"")
        {
            self.answer.call_input(&input, out);
        }
        self.answer.close(out);
    }

    fn read_delta(&mut self, piece: &BlockDelta<'_>, out: &mut Vec<Delta>) {
        if self.skipping {
            return;
        }
        match &*piece.kind {
            "text_delta" => self.answer.text(&piece.text, out),
            "thinking_delta" => self.answer.thinking(&piece.thinking, out),
            "signature_delta" => self.answer.signature(&piece.signature, out),
            "input_json_delta" => self.answer.call_input(&piece.partial_json, out),
            // Citations and future delta types.
            _ => {}
        }
    }

    /// Blocks arrive one after the other (docs.anthropic.com, "Streaming messages", 2026-03). A delta of
    /// another block must not be added to the open one: it may be a call's arguments.
    fn require_open(&self, index: Option<u64>) -> Result<(), ModelFault> {
        match (self.open, index) {
            (Some(open), Some(index)) if open != index => {
                Err(invalid_answer(format_args!("a part of block {index} came inside block {open}")))
            }
            _ => Ok(()),
        }
    }

    fn stop(&mut self) -> StopReason {
        match self.stop_reason.take().as_deref() {
            None if self.answer.has_calls() => StopReason::ToolUse,
            None | Some("end_turn") => StopReason::EndTurn,
            Some("tool_use") => StopReason::ToolUse,
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("stop_sequence") => StopReason::StopSequence,
            Some("refusal") => StopReason::Refusal,
            Some("pause_turn") => StopReason::Pause,
            Some(other) => {
                let notice = format!("the answer ended for the unknown reason {other:?}");
                self.answer.notice(notice);
                StopReason::EndTurn
            }
        }
    }
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), EventError> {
        if let Some(text) = self.template.as_ref().and_then(|template| template.text_of(data)) {
            self.answer.text(text, out);
            return Ok(());
        }
        self.template = None;
        let mut mended = String::new();
        let event: Event<'_> = read_json(data, &mut mended)?;
        match &*event.kind {
            "content_block_delta" => {
                self.require_open(event.index)?;
                if let Some(piece) = &event.delta {
                    self.read_delta(piece, out);
                    if !self.skipping && &*piece.kind == "text_delta" {
                        self.template = EventTemplate::new(data, &piece.text);
                    }
                }
            }
            "content_block_start" => {
                // A repeated start event does not open a second block.
                let is_repeated = event.index.is_some() && self.open == event.index;
                if let Some(block) = event.content_block.as_ref().filter(|_| !is_repeated) {
                    self.open_block(block, out);
                    self.open = event.index;
                }
            }
            "content_block_stop" => {
                self.require_open(event.index)?;
                self.close_block(out);
                self.open = None;
            }
            "message_start" => {
                if let Some(message) = &event.message {
                    let is_other = |known: &String| !message.id.is_empty() && *known != *message.id;
                    if self.response_id.as_ref().is_some_and(is_other) || self.answer.has_begun() {
                        return Err(second_answer().into());
                    }
                    self.begin(message);
                }
            }
            "message_delta" => {
                self.add_counts(event.usage);
                if let Some(piece) = event.delta.filter(|piece| !piece.stop_reason.is_empty()) {
                    self.stop_reason = Some(piece.stop_reason.to_string());
                }
            }
            "message_stop" => {
                self.close_block(out);
                self.is_done = true;
            }
            "error" if event.error.is_none() => {
                let fault = error_event(data).unwrap_or_else(|| stream_fault(None));
                return Err(fault.into());
            }
            "error" => return Err(stream_fault(event.error).into()),
            "" if event.error.is_some() => return Err(stream_fault(event.error).into()),
            // `ping` and future event types.
            _ => {}
        }
        Ok(())
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn may_end(&self) -> bool {
        self.is_done
    }

    fn may_be_cut(&self) -> bool {
        self.stop_reason.is_none() && self.answer.has_calls()
    }

    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), ModelFault> {
        let mut mended = (String::new(), String::new());
        let probe: Event<'_> = read_json(body, &mut mended.0).map_err(|error| unparsable_body(&error))?;
        match &*probe.kind {
            "error" => return Err(stream_fault(probe.error)),
            "message" => {}
            other => return Err(invalid_answer(format_args!("expected a message, got type {other:?}"))),
        }
        let message: Message<'_> = read_json(body, &mut mended.1)
            .map_err(|error| invalid_answer(format_args!("the message is not as it should be ({error})")))?;
        self.begin(&message);
        for block in &message.content {
            self.open_block(block, out);
        }
        self.close_block(out);
        self.is_done = true;
        Ok(())
    }

    fn reply(mut self: Box<Self>, out: &mut Vec<Delta>) -> ModelReply {
        let stop = self.stop();
        let nested = self.nested.into_iter().map(|(model, usage)| NestedUsage {
            model,
            usage,
            model_snapshot: ModelSnapshot::default(),
        });
        ModelReply { nested: nested.collect(), ..self.answer.reply(stop, self.usage, self.response_id, out) }
    }
}

fn stream_fault(error: Option<WireError>) -> ModelFault {
    error.unwrap_or(WireError::Text("no reason given".into())).in_stream()
}
