//! Decodes the chunks of Chat Completions.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::{AnswerCalls, CallFragment};
use super::think_tags::{ContentPart, ThinkTags};
use crate::request::count::{count, group};
use crate::stream::assembly::{Assembly, CallIds};
use crate::stream::decode::{Decode, EventError};
use crate::stream::fault::{
    WireError, error_event, full_window, invalid_answer, second_answer, unparsable_body,
};
use crate::stream::text::{TolerantText, read_json};
use types::model::{Delta, ModelFault, ModelReply, StopReason};
use types::usage::{ServiceTier, Usage};

/// The reason of Z.ai for an answer that ended because the window is full.
const FULL_WINDOW: &str = "model_context_window_exceeded";

/// A chunk of a stream, or a complete answer: they differ only in `delta` and `message`.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: TolerantText<'a>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default, deserialize_with = "group")]
    usage: Option<UsageCounts>,
    #[serde(borrow, default)]
    service_tier: TolerantText<'a>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<ChoiceDelta<'a>>,
    #[serde(borrow)]
    message: Option<ChoiceDelta<'a>>,
    #[serde(borrow, default)]
    finish_reason: TolerantText<'a>,
}

#[derive(Deserialize)]
struct ChoiceDelta<'a> {
    #[serde(borrow, default)]
    role: TolerantText<'a>,
    #[serde(borrow, default)]
    content: TolerantText<'a>,
    /// Field of DeepSeek, vLLM, llama.cpp and others.
    #[serde(borrow, default)]
    reasoning_content: TolerantText<'a>,
    /// Field of OpenRouter, Ollama and others.
    #[serde(borrow, default)]
    reasoning: TolerantText<'a>,
    #[serde(borrow, default)]
    refusal: TolerantText<'a>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallPart<'a>>>,
}

#[derive(Deserialize)]
struct CallPart<'a> {
    index: Option<u64>,
    #[serde(borrow, default)]
    id: TolerantText<'a>,
    #[serde(borrow)]
    function: Option<FunctionPart<'a>>,
}

#[derive(Deserialize)]
struct FunctionPart<'a> {
    #[serde(borrow, default)]
    name: TolerantText<'a>,
    /// A text with JSON; some servers send the JSON itself.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct UsageCounts {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "group")]
    prompt_tokens_details: Option<PromptCounts>,
    #[serde(default, deserialize_with = "group")]
    completion_tokens_details: Option<CompletionCounts>,
    /// OpenRouter.
    #[serde(default, deserialize_with = "group")]
    server_tool_use: Option<ServerTools>,
    /// Perplexity.
    #[serde(default, deserialize_with = "count")]
    num_search_queries: Option<u64>,
}

#[derive(Deserialize)]
struct ServerTools {
    #[serde(default, deserialize_with = "count")]
    web_search_requests: Option<u64>,
}

#[derive(Deserialize)]
struct PromptCounts {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionCounts {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

impl From<UsageCounts> for Usage {
    fn from(counts: UsageCounts) -> Self {
        let cached = counts.prompt_tokens_details.and_then(|d| d.cached_tokens).unwrap_or(0);
        Usage {
            // The API counts cached tokens as part of the input.
            input_tokens: counts.prompt_tokens.unwrap_or(0).saturating_sub(cached),
            output_tokens: counts.completion_tokens.unwrap_or(0),
            cache_read_tokens: cached,
            reasoning_tokens: counts.completion_tokens_details.and_then(|d| d.reasoning_tokens).unwrap_or(0),
            web_search_requests: (counts.server_tool_use.and_then(|d| d.web_search_requests))
                .or(counts.num_search_queries)
                .unwrap_or(0),
            ..Usage::default()
        }
    }
}

/// Reads the chunks of one answer.
pub(in super::super) struct Decoder {
    answer: Assembly,
    calls: AnswerCalls,
    tags: ThinkTags,
    /// Reasoning and text that arrived while a call was incomplete; they follow after the calls.
    late: (String, String),
    usage: Usage,
    response_id: Option<String>,
    finish_reason: Option<String>,
    has_refused: bool,
    is_done: bool,
}

impl Decoder {
    pub(in super::super) fn new(ids: CallIds) -> Self {
        Self {
            answer: Assembly::new(ids),
            calls: AnswerCalls::default(),
            tags: ThinkTags::default(),
            late: (String::new(), String::new()),
            usage: Usage::default(),
            response_id: None,
            finish_reason: None,
            has_refused: false,
            is_done: false,
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<Delta>) -> Result<(), EventError> {
        if let Some(error) = chunk.error {
            return Err(error.in_stream().into());
        }
        self.require_same(&chunk)?;
        if self.response_id.is_none() && !chunk.id.is_empty() {
            self.response_id = Some(chunk.id.to_string());
        }
        let tier = ServiceTier::from_provider(&chunk.service_tier).or(self.usage.service_tier);
        if let Some(counts) = chunk.usage {
            self.usage = counts.into();
        }
        self.usage.service_tier = tier;
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(piece) = choice.delta.as_ref().or(choice.message.as_ref()) {
                self.read_delta(piece, out)?;
            }
            if &*choice.finish_reason == FULL_WINDOW && !self.answer.has_begun() {
                return Err(full_window().into());
            }
            if !choice.finish_reason.is_empty() {
                self.finish_reason = Some(choice.finish_reason.to_string());
            }
        }
        Ok(())
    }

    /// The chunks of an answer have one id, and the first one names the role. Some servers number their chunks,
    /// and some repeat the role: only both together mean that another answer started.
    fn require_same(&self, chunk: &Chunk<'_>) -> Result<(), ModelFault> {
        let is_other = self.response_id.as_ref().is_some_and(|id| !chunk.id.is_empty() && *id != *chunk.id);
        let names_role =
            |choice: &Choice<'_>| choice.delta.as_ref().is_some_and(|piece| !piece.role.is_empty());
        let begins = is_other && chunk.choices.iter().flatten().any(names_role);
        let has_begun = self.answer.has_begun() || !self.calls.is_idle();
        if begins && has_begun { Err(second_answer()) } else { Ok(()) }
    }

    fn read_delta(&mut self, piece: &ChoiceDelta<'_>, out: &mut Vec<Delta>) -> Result<(), EventError> {
        let reasoning =
            if piece.reasoning_content.is_empty() { &piece.reasoning } else { &piece.reasoning_content };
        if !reasoning.is_empty() {
            if self.may_add_text(out) {
                self.answer.thinking(reasoning, out);
            } else {
                self.late.0.push_str(reasoning);
            }
        }
        self.has_refused |= !piece.refusal.is_empty();
        if !piece.content.is_empty() {
            for part in self.tags.split(&piece.content) {
                self.add_part(part, out);
            }
        }
        let has_calls = piece.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty());
        if (has_calls || !piece.refusal.is_empty())
            && let Some(part) = self.tags.finish()
        {
            self.add_part(part, out);
        }
        if !piece.refusal.is_empty() {
            self.add_part(ContentPart::Answer((&*piece.refusal).into()), out);
        }
        for part in piece.tool_calls.iter().flatten() {
            let function = part.function.as_ref();
            let json = function.and_then(|f| f.arguments).map_or(Ok(Cow::Borrowed("")), arguments)?;
            let fragment = CallFragment {
                index: part.index,
                id: &part.id,
                tool: function.map_or("", |f| &*f.name),
                json: &json,
            };
            self.calls.add(&fragment, &mut self.answer, out);
        }
        Ok(())
    }

    fn add_part(&mut self, part: ContentPart<'_>, out: &mut Vec<Delta>) {
        let is_ready = self.may_add_text(out);
        match part {
            ContentPart::Thinking(text) if is_ready => self.answer.thinking(&text, out),
            ContentPart::Thinking(text) => self.late.0.push_str(&text),
            ContentPart::Answer(text) if is_ready => self.answer.text(&text, out),
            ContentPart::Answer(text) => self.late.1.push_str(&text),
            ContentPart::WasThinking => self.answer.mark_text_as_thinking(out),
        }
    }

    /// Whether text may follow now: only if no call is incomplete.
    fn may_add_text(&mut self, out: &mut Vec<Delta>) -> bool {
        if self.calls.is_idle() {
            return true;
        }
        if !self.calls.are_whole() {
            return false;
        }
        self.calls.finish(&mut self.answer, out);
        true
    }

    fn stop(&mut self) -> StopReason {
        let calls = self.answer.has_calls();
        match self.finish_reason.take().as_deref() {
            _ if self.has_refused => StopReason::Refusal,
            // Many servers say "stop" after calls too.
            None | Some("stop") if calls => StopReason::ToolUse,
            None | Some("stop" | "eos") => StopReason::EndTurn,
            Some("tool_calls" | "function_call") => StopReason::ToolUse,
            Some("length" | "max_tokens" | FULL_WINDOW) => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            Some(other) => {
                self.answer.notice(format!("the answer ended for the unknown reason {other:?}"));
                StopReason::EndTurn
            }
        }
    }
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), EventError> {
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let mut mended = String::new();
        let chunk: Chunk<'_> = read_json(data, &mut mended)?;
        if chunk.choices.is_none()
            && chunk.usage.is_none()
            && let Some(fault) = error_event(data)
        {
            return Err(fault.into());
        }
        self.chunk(chunk, out)
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn may_end(&self) -> bool {
        self.is_done || self.finish_reason.is_some()
    }

    fn may_be_cut(&self) -> bool {
        self.finish_reason.is_none() && (self.answer.has_calls() || !self.calls.is_idle())
    }

    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), ModelFault> {
        let mut mended = String::new();
        let chunk: Chunk<'_> = read_json(body, &mut mended).map_err(|error| unparsable_body(&error))?;
        if chunk.error.is_none()
            && chunk.choices.is_none()
            && let Some(fault) = error_event(body)
        {
            return Err(fault);
        }
        if chunk.error.is_none() && chunk.choices.as_ref().is_none_or(Vec::is_empty) {
            return Err(invalid_answer("the body holds no choices"));
        }
        self.chunk(chunk, out).map_err(|error| error.into_fault(false))?;
        self.is_done = true;
        Ok(())
    }

    fn reply(mut self: Box<Self>, out: &mut Vec<Delta>) -> ModelReply {
        if let Some(part) = self.tags.finish() {
            self.add_part(part, out);
        }
        self.calls.finish(&mut self.answer, out);
        let (reasoning, text) = std::mem::take(&mut self.late);
        for (late, is_text) in [(reasoning, false), (text, true)] {
            match (late.trim().is_empty(), is_text) {
                (true, _) => {}
                (false, true) => self.answer.text(&late, out),
                (false, false) => self.answer.thinking(&late, out),
            }
        }
        let stop = self.stop();
        self.answer.reply(stop, self.usage, self.response_id, out)
    }
}

/// The text of arguments, in either form.
fn arguments(raw: &RawValue) -> Result<Cow<'_, str>, serde_json::Error> {
    let json = raw.get();
    if json == "null" {
        return Ok(Cow::Borrowed(""));
    }
    if !json.starts_with('"') {
        return Ok(Cow::Borrowed(json));
    }
    let mut mended = String::new();
    serde_json::from_str::<TolerantText<'_>>(json)
        .map(TolerantText::into_inner)
        .or_else(|_| read_json::<String>(json, &mut mended).map(Cow::Owned))
}
