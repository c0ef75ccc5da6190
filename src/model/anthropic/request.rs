//! Serialises a request for Anthropic Messages.
//!
//! The request is serialised directly from the shared transcript, without copies. The same transcript gives
//! the same bytes, apart from the cache breakpoints, which the provider does not hash.
//!
//! Breakpoints (docs.anthropic.com, "Prompt caching", 2026-03: four at most, in the order tools, system,
//! messages. A prefix shorter than 1,024 to 4,096 tokens, by model, is not cached, without an error. A
//! breakpoint finds cache entries up to 20 blocks before it; thinking blocks accept none):
//! - the last tool: sessions of other folders have the same tools and another system prompt;
//! - the system prompt: the sessions of this folder;
//! - the newest message, which the next request reads;
//! - the user's message before it, which the last request wrote: an answer with many calls is longer
//!   than those 20 blocks.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::super::settings::ModelSettings;
use super::thinking::{OutputConfig, ThinkingParameter, asks_to_think, is_own_thinking, plan};
use crate::catalog::capabilities::{MAX_CALL_ID_CHARS, wire_call_id, wire_tool_name};
use crate::request::media::{AcceptedMedia, MediumContent};
use crate::request::request_cache::{CacheKey, PlainForm, RequestCache};
use crate::request::sampling::sent_sampling;
use crate::settings::Api;
use crate::tool_schema::wire_tools;
use types::blob::{Attachment, AttachmentKind};
use types::message::{Block, Message, Role, ToolCall};
use types::model::ModelRequest;
use types::sampling::Sampling;

/// A request without its messages, which follow.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    thinking: Option<ThinkingParameter>,
    output_config: Option<OutputConfig>,
    #[serde(flatten)]
    sampling: Sampling,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    metadata: Option<Metadata<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<ContentPart<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

/// The only label that the API takes.
#[derive(Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Breakpoint>,
}

#[derive(Serialize)]
struct ConversationMessage<'a> {
    role: &'static str,
    content: Vec<ContentPart<'a>>,
}

#[derive(Serialize)]
struct ContentPart<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Breakpoint>,
}

/// The provider keeps everything up to this point in its prompt cache.
#[derive(Clone, Copy, Serialize)]
struct Breakpoint {
    #[serde(rename = "type")]
    kind: &'static str,
}

const USER: &str = "user";

const BREAKPOINT: Breakpoint = Breakpoint { kind: "ephemeral" };

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Value>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    /// A text of the daemon that replaces a block.
    #[serde(rename = "text")]
    ReplacementText {
        text: String,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: ToolResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The content of a tool result: text alone, or text with attachments.
#[derive(Serialize)]
#[serde(untagged)]
enum ToolResultContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Content<'a>>),
}

/// Content in the request itself.
#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: String,
}

/// The body of a request as JSON.
pub(in super::super) fn body(
    request: &ModelRequest,
    settings: &ModelSettings,
    written: &RequestCache,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut system = Vec::new();
    if !request.system.trim().is_empty() {
        system.push(ContentPart::from(Content::Text { text: &request.system }).with_breakpoint());
    }
    let fitted = wire_tools(&request.tools);
    let mut tools: Vec<Tool> = Vec::new();
    if settings.tools {
        tools.extend(fitted.iter().map(|tool| Tool {
            name: &tool.definition.name,
            description: &tool.definition.description,
            input_schema: &tool.schema,
            cache_control: None,
        }));
    }
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(BREAKPOINT);
    }
    let plan = plan(request, settings);
    let keeps = plan.keeps;
    let mut body = serde_json::to_vec(&Body {
        model: &request.model.model,
        max_tokens: plan.max_tokens,
        stream: settings.streaming,
        thinking: plan.thinking,
        output_config: plan.output_config,
        sampling: sent_sampling(Api::Anthropic, asks_to_think(request, settings), request, settings),
        stop_sequences: &request.stop,
        metadata: request.metadata.get("user_id").map(|user_id| Metadata { user_id }),
        system,
        tools,
    })?;
    body.pop();
    body.extend_from_slice(b",\"messages\":[");
    let accepts_images = settings.vision.unwrap_or(true);
    let media =
        AcceptedMedia::from_request(request, accepts_images, settings.documents.unwrap_or(accepts_images));
    let newest = request.messages.len().checked_sub(1);
    let earlier = newest.and_then(|at| request.messages[..at].iter().rposition(|it| it.role == Role::User));
    let is_marked = |at: usize| newest == Some(at) || earlier == Some(at);
    let write = |at: usize, plainly: PlainForm, out: &mut Vec<u8>| {
        let mut turn = wire_message(&request.messages[at], keeps, &media);
        if plainly == PlainForm(false) && is_marked(at) {
            turn.add_breakpoint();
        }
        serde_json::to_writer(&mut *out, &turn)?;
        out.push(b',');
        Ok::<(), serde_json::Error>(())
    };
    written.write(CacheKey { api: Api::Anthropic, keeps }, &request.messages, is_marked, write, &mut body)?;
    if !request.messages.is_empty() {
        body.pop();
    }
    body.extend_from_slice(b"]}");
    Ok(body)
}

impl<'a> From<Content<'a>> for ContentPart<'a> {
    fn from(content: Content<'a>) -> Self {
        Self { content, cache_control: None }
    }
}

impl ContentPart<'_> {
    fn with_breakpoint(mut self) -> Self {
        self.cache_control = Some(BREAKPOINT);
        self
    }
}

impl ConversationMessage<'_> {
    /// Sets a breakpoint at the end.
    fn add_breakpoint(&mut self) {
        let takes_one = |part: &&mut ContentPart| {
            !matches!(part.content, Content::Thinking { .. } | Content::RedactedThinking { .. })
        };
        if let Some(part) = self.content.iter_mut().rev().find(takes_one) {
            part.cache_control = Some(BREAKPOINT);
        }
    }
}

fn wire_message<'a>(message: &'a Message, keeps: bool, media: &AcceptedMedia<'_>) -> ConversationMessage<'a> {
    let mut content: Vec<ContentPart> = Vec::with_capacity(message.content.len());
    // The provider requires results before other blocks in a message.
    let is_result = |block: &&Block| matches!(block, Block::ToolResult { .. });
    content.extend(message.content.iter().filter(is_result).flat_map(|block| parts(block, media)));
    let is_wanted = |block: &&Block| !is_result(block) && (keeps || !is_own_thinking(block));
    let others = message.content.iter().filter(is_wanted);
    content.extend(others.flat_map(|block| parts(block, media)));
    if content.is_empty() {
        // The message contained reasoning only; it must stay, because roles must alternate.
        content.push(Content::Text { text: "(no content)" }.into());
    }
    let role = match message.role {
        Role::User => USER,
        Role::Assistant => "assistant",
    };
    ConversationMessage { role, content }
}

/// The parts of a block: one, several for a named medium, or none if the provider would refuse it.
fn parts<'a>(block: &'a Block, media: &AcceptedMedia<'_>) -> Vec<ContentPart<'a>> {
    match block {
        Block::Image(picture) => {
            media.picture(picture).into_iter().map(|shown| medium_part(shown).into()).collect()
        }
        Block::Document(document) => vec![medium_part(media.document(document)).into()],
        block => part(block, media).into_iter().collect(),
    }
}

fn part<'a>(block: &'a Block, media: &AcceptedMedia<'_>) -> Option<ContentPart<'a>> {
    let content = match block {
        Block::Text { text } if text.trim().is_empty() => return None,
        Block::Text { text } => Content::Text { text },
        Block::Thinking { text, signature: Some(signature) } if is_own_thinking(block) => {
            Content::Thinking { thinking: text, signature }
        }
        // Reasoning of another provider has no signature that this one accepts.
        Block::Thinking { .. } => return None,
        Block::Image(_) | Block::Document(_) => return None,
        Block::RedactedThinking { data } => Content::RedactedThinking { data },
        Block::ToolCall(call) => Content::ToolUse {
            id: wire_id(&call.provider_id, &call.call_id),
            name: wire_tool_name(&call.tool),
            input: wire_input(call),
        },
        Block::ToolResult { call_id, provider_id, content, is_error, attachments } => Content::ToolResult {
            tool_use_id: wire_id(provider_id, call_id),
            content: result_content(content, attachments, media),
            is_error: *is_error,
        },
    };
    Some(content.into())
}

fn result_content<'a>(
    content: &'a str,
    attachments: &'a [Attachment],
    media: &AcceptedMedia<'_>,
) -> ToolResultContent<'a> {
    let text = media.result_text(content, attachments);
    let shown = media.attachment_contents(attachments);
    if shown.is_empty() {
        return ToolResultContent::Text(text);
    }
    let text = Content::ReplacementText { text: text.into_owned() };
    ToolResultContent::Parts([text].into_iter().chain(shown.into_iter().map(medium_part)).collect())
}

fn medium_part(shown: MediumContent<'_>) -> Content<'_> {
    match shown {
        MediumContent::ReplacementText(text) => Content::ReplacementText { text },
        MediumContent::Whole { kind, media_type, name, data } => {
            let source = Source { kind: "base64", media_type, data };
            match kind {
                AttachmentKind::Image => Content::Image { source },
                AttachmentKind::Document => Content::Document { source, title: name },
            }
        }
    }
}

/// The provider's id of a call. If this provider would refuse it, for example an id of another provider, the
/// daemon's id is used.
fn wire_id<'a>(provider_id: &'a str, call_id: &types::CallId) -> Cow<'a, str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    wire_call_id(provider_id, call_id, |id| id.len() <= MAX_CALL_ID_CHARS && id.bytes().all(is_plain))
}

/// The arguments; the provider accepts objects only.
fn wire_input(call: &ToolCall) -> Cow<'_, Value> {
    if call.input.is_object() {
        Cow::Borrowed(&call.input)
    } else {
        Cow::Owned(serde_json::json!({ "unreadable_input": call.input }))
    }
}
