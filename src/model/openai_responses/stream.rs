//! Decodes the events of Responses. Each event has its kind in `type`; unknown kinds are ignored, as the API
//! requires.

use serde::Deserialize;

use super::items::{CompleteItem, ItemKind, ItemName, ItemUpdate, Items};
use crate::catalog::capabilities::SealedReasoning;
use crate::request::count::{count, group};
use crate::stream::assembly::{Assembly, CallIds};
use crate::stream::decode::{Decode, EventError};
use crate::stream::fault::{WireError, invalid_answer, second_answer, unparsable_body};
use crate::stream::text::{TolerantText, read_json};
use types::model::{Delta, ModelFault, ModelReply, StopReason};
use types::usage::{ServiceTier, Usage};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: TolerantText<'a>,
    output_index: Option<u64>,
    #[serde(borrow, default)]
    item_id: TolerantText<'a>,
    summary_index: Option<u64>,
    #[serde(borrow, default)]
    delta: TolerantText<'a>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    error: Option<WireError>,
    /// An `error` event contains these fields at its top level.
    #[serde(borrow, default)]
    message: TolerantText<'a>,
    #[serde(borrow, default)]
    code: TolerantText<'a>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    object: TolerantText<'a>,
    #[serde(borrow, default)]
    id: TolerantText<'a>,
    #[serde(borrow, default)]
    status: TolerantText<'a>,
    #[serde(borrow)]
    output: Option<Vec<Item<'a>>>,
    #[serde(borrow)]
    incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(default, deserialize_with = "group")]
    usage: Option<UsageCounts>,
    #[serde(borrow, default)]
    service_tier: TolerantText<'a>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    reason: TolerantText<'a>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: TolerantText<'a>,
    #[serde(borrow, default)]
    id: TolerantText<'a>,
    #[serde(borrow, default)]
    call_id: TolerantText<'a>,
    #[serde(borrow, default)]
    name: TolerantText<'a>,
    #[serde(borrow, default)]
    arguments: TolerantText<'a>,
    #[serde(borrow, default)]
    encrypted_content: TolerantText<'a>,
    #[serde(borrow)]
    content: Option<Vec<ContentPart<'a>>>,
    #[serde(borrow)]
    summary: Option<Vec<ContentPart<'a>>>,
}

#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow, default)]
    text: TolerantText<'a>,
    #[serde(borrow, default)]
    refusal: TolerantText<'a>,
}

#[derive(Deserialize)]
struct UsageCounts {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "group")]
    input_tokens_details: Option<InputCounts>,
    #[serde(default, deserialize_with = "group")]
    output_tokens_details: Option<OutputCounts>,
}

#[derive(Deserialize)]
struct InputCounts {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputCounts {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

impl From<UsageCounts> for Usage {
    fn from(counts: UsageCounts) -> Self {
        let cached = counts.input_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0);
        Usage {
            // The API includes cached tokens in the input.
            input_tokens: counts.input_tokens.unwrap_or(0).saturating_sub(cached),
            output_tokens: counts.output_tokens.unwrap_or(0),
            cache_read_tokens: cached,
            reasoning_tokens: counts.output_tokens_details.and_then(|d| d.reasoning_tokens).unwrap_or(0),
            ..Usage::default()
        }
    }
}

/// Reads the events of one answer.
pub(in super::super) struct Decoder {
    answer: Assembly,
    items: Items,
    usage: Usage,
    response_id: Option<String>,
    incomplete: Option<String>,
    has_refused: bool,
    is_done: bool,
}

impl Decoder {
    pub(in super::super) fn new(ids: CallIds) -> Self {
        Self {
            answer: Assembly::new(ids),
            items: Items::default(),
            usage: Usage::default(),
            response_id: None,
            incomplete: None,
            has_refused: false,
            is_done: false,
        }
    }

    fn name(&mut self, response: &Response<'_>) {
        if !response.id.is_empty() {
            self.response_id = Some(response.id.to_string());
        }
    }

    /// The end of the answer, with the complete answer.
    fn close(&mut self, response: Response<'_>, out: &mut Vec<Delta>) -> Result<(), ModelFault> {
        self.name(&response);
        if let Some(counts) = response.usage {
            self.usage = counts.into();
            self.usage.service_tier = ServiceTier::from_provider(&response.service_tier);
            // Each call of the provider's search tool is an item of the answer.
            let is_search = |item: &&Item<'_>| &*item.kind == "web_search_call";
            let searches = response.output.iter().flatten().filter(is_search).count();
            self.usage.web_search_requests = u64::try_from(searches).unwrap_or(u64::MAX);
        }
        if let Some(error) = response.error {
            return Err(error.in_stream());
        }
        match &*response.status {
            "failed" => return Err(WireError::Text("no reason given".into()).in_stream()),
            "cancelled" => return Err(WireError::Text("the answer was cancelled".into()).in_stream()),
            _ => {}
        }
        if let Some(details) = &response.incomplete_details {
            self.incomplete = Some(details.reason.to_string());
        } else if &*response.status == "incomplete" {
            self.incomplete = Some("no reason given".into());
        }
        let output = response.output.unwrap_or_default();
        let items: Vec<_> = output
            .iter()
            .filter_map(|item| {
                let (kind, whole) = self.read_item(item)?;
                Some((kind, name_of(item, None), whole))
            })
            .collect();
        self.items.take_end(&items, &mut self.answer, out);
        self.items.finish(&mut self.answer, out);
        self.is_done = true;
        Ok(())
    }

    /// The content of an item; `None` for calls of the provider's own tools, because the daemon offers none of them.
    fn read_item(&mut self, item: &Item<'_>) -> Option<(ItemKind, CompleteItem)> {
        let join = |parts: &Option<Vec<ContentPart<'_>>>, gap: &str| {
            let texts: Vec<&str> = parts.iter().flatten().map(|part| &*part.text).collect();
            texts.join(gap)
        };
        let mut whole = CompleteItem { tool: item.name.to_string(), ..CompleteItem::default() };
        let kind = item_kind(item)?;
        match kind {
            ItemKind::Message => {
                for part in item.content.iter().flatten() {
                    self.has_refused |= !part.refusal.is_empty();
                    whole.content.push_str(&part.text);
                    whole.content.push_str(&part.refusal);
                }
            }
            ItemKind::Reasoning => {
                whole.content = join(&item.summary, "\n\n");
                if whole.content.is_empty() {
                    whole.content = join(&item.content, "");
                }
                if !item.encrypted_content.is_empty() {
                    let encrypted_content = item.encrypted_content.to_string();
                    whole.sealed = Some(SealedReasoning { id: item.id.to_string(), encrypted_content });
                }
            }
            ItemKind::Call => whole.content = item.arguments.to_string(),
        }
        Some((kind, whole))
    }

    fn stop(&mut self) -> StopReason {
        match self.incomplete.take().as_deref() {
            _ if self.has_refused => StopReason::Refusal,
            None if self.answer.has_calls() => StopReason::ToolUse,
            None => StopReason::EndTurn,
            Some("max_output_tokens") => StopReason::MaxTokens,
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
        // Some servers of the family end a stream like those of Chat Completions.
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let mut mended = String::new();
        let event: Event<'_> = read_json(data, &mut mended)?;
        let (kind, piece) = match &*event.kind {
            "response.output_text.delta" => (ItemKind::Message, event.delta.to_string()),
            "response.refusal.delta" => {
                self.has_refused = true;
                (ItemKind::Message, event.delta.to_string())
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                (ItemKind::Reasoning, event.delta.to_string())
            }
            // Parts of a summary are paragraphs.
            "response.reasoning_summary_part.added" => {
                if event.summary_index.unwrap_or(0) == 0 {
                    return Ok(());
                }
                (ItemKind::Reasoning, "\n\n".into())
            }
            "response.function_call_arguments.delta" => (ItemKind::Call, event.delta.to_string()),
            "response.output_item.added" => {
                if let Some(item) = &event.item
                    && let Some(kind) = item_kind(item)
                {
                    let name = name_of(item, event.output_index);
                    self.items.handle_item(kind, name, &item.name, ItemUpdate::Begin, &mut self.answer, out);
                }
                return Ok(());
            }
            "response.output_item.done" => {
                if let Some(item) = &event.item
                    && let Some((kind, whole)) = self.read_item(item)
                {
                    let name = name_of(item, event.output_index);
                    self.items.handle_item(
                        kind,
                        name,
                        &item.name,
                        ItemUpdate::Done(whole),
                        &mut self.answer,
                        out,
                    );
                }
                return Ok(());
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                // Ignore its id: GitHub Copilot sends another one with every event.
                if &*event.kind == "response.created" && self.items.has_begun() {
                    return Err(second_answer().into());
                }
                if let Some(response) = &event.response {
                    self.name(response);
                }
                return Ok(());
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let Some(response) = event.response else {
                    return Err(invalid_answer("an answer ended without saying how").into());
                };
                let failed = &*event.kind == "response.failed";
                self.close(response, out)?;
                if failed {
                    return Err(WireError::Text("no reason given".into()).in_stream().into());
                }
                return Ok(());
            }
            "error" => return Err(in_stream(event).into()),
            "" if event.error.is_some() => return Err(in_stream(event).into()),
            _ => return Ok(()),
        };
        let name = ItemName { index: event.output_index, id: &event.item_id, call_id: "" };
        self.items.handle_item(kind, name, "", ItemUpdate::Piece(piece), &mut self.answer, out);
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
        // The end of the stream carries the complete answer, so no call can be truncated.
        false
    }

    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), ModelFault> {
        let mut mended = String::new();
        let response: Response<'_> = read_json(body, &mut mended).map_err(|error| unparsable_body(&error))?;
        if response.error.is_none() && &*response.object != "response" && response.output.is_none() {
            return Err(invalid_answer("the body holds no response"));
        }
        self.close(response, out)
    }

    fn reply(mut self: Box<Self>, out: &mut Vec<Delta>) -> ModelReply {
        let stop = self.stop();
        self.answer.reply(stop, self.usage, self.response_id, out)
    }
}

fn item_kind(item: &Item<'_>) -> Option<ItemKind> {
    match &*item.kind {
        "message" => Some(ItemKind::Message),
        "reasoning" => Some(ItemKind::Reasoning),
        "function_call" => Some(ItemKind::Call),
        _ => None,
    }
}

fn name_of<'i>(item: &'i Item<'_>, index: Option<u64>) -> ItemName<'i> {
    ItemName { index, id: &item.id, call_id: &item.call_id }
}

fn in_stream(event: Event<'_>) -> ModelFault {
    event.error.unwrap_or_else(|| WireError::new(&event.message, &event.code)).in_stream()
}
