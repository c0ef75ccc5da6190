//! Serialises a request for Chat Completions.
//!
//! The request uses only parameters that every server of the family accepts. Reasoning is omitted, unless the
//! model is known to require it back: the family has no common field for it, and most servers refuse or drop
//! it. Servers that accept it use `reasoning_content`, the field in which it arrived. DeepSeek's first
//! reasoning model refused this field (api-docs.deepseek.com, "Reasoning Model", 2026-03). Its later models,
//! and others that think between calls, require it inside the tool loop and ignore older reasoning
//! (api-docs.deepseek.com, "Thinking Mode", 2026-03).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::super::settings::{MaxTokensField, ModelSettings, ReplayReasoning};
use crate::api_row::RequestTarget;
use crate::catalog::capabilities::effort;
use crate::catalog::capabilities::{MAX_CHAT_CALL_ID_CHARS, wire_call_id, wire_tool_name};
use crate::request::media::{AcceptedMedia, MediumContent, file_name};
use crate::request::sampling::sent_sampling;
use crate::settings::Api;
use crate::tool_schema::wire_tools;
use types::CallId;
use types::blob::AttachmentKind;
use types::message::{Block, Message, Role, ToolCall};
use types::model::ModelRequest;
use types::sampling::Sampling;

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: Option<StreamOptions>,
    /// The output limit for all servers except the API's vendor, which renamed this parameter.
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    reasoning_effort: Option<&'a str>,
    #[serde(flatten)]
    sampling: Sampling,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<ChatMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum ChatMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: MessageContent<'a>,
    },
    Assistant {
        /// Null in a message with calls only, as the API requires.
        content: Option<String>,
        /// The reasoning before it, for servers that require it back.
        #[serde(skip_serializing_if = "String::is_empty")]
        reasoning_content: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<FunctionCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

/// The content of a user message: text alone, or with media of a tool or of the user.
#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Text(String),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
    File { file: File<'a> },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

/// The body of a request as JSON.
pub(in super::super) fn body(
    request: &ModelRequest,
    settings: &ModelSettings,
    target: RequestTarget<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let is_vendor = target.is_vendor;
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    let mut preface = None;
    if !request.system.trim().is_empty() {
        if settings.system_role {
            messages.push(ChatMessage::System { content: &request.system });
        } else {
            preface = Some(&*request.system);
        }
    }
    // Only the vendor's own models accept documents.
    let media = AcceptedMedia::from_request(
        request,
        settings.vision.unwrap_or(is_vendor),
        settings.documents.unwrap_or(is_vendor),
    );
    // Index of the first message whose reasoning the server requires back.
    let reasoning_start = match settings.replay_reasoning {
        ReplayReasoning::None => usize::MAX,
        ReplayReasoning::Tools => tool_loop_start(&request.messages),
        ReplayReasoning::All => 0,
    };
    for (index, message) in request.messages.iter().enumerate() {
        match message.role {
            Role::User => push_user_message(message, &mut preface, is_vendor, &media, &mut messages),
            Role::Assistant => {
                messages.push(assistant_message(message, index >= reasoning_start, is_vendor)?);
            }
        }
    }
    let wire_tools = wire_tools(&request.tools);
    let mut tools = Vec::new();
    if settings.tools {
        tools.extend(wire_tools.iter().map(|tool| Tool {
            kind: "function",
            function: Function {
                name: &tool.definition.name,
                description: &tool.definition.description,
                parameters: &tool.schema,
            },
        }));
    }
    let limit = output_limit(request, settings);
    let is_limit_renamed =
        target.max_tokens_field.map_or(is_vendor, |field| field == MaxTokensField::MaxCompletionTokens);
    serde_json::to_vec(&Body {
        model: &request.model.model,
        stream: settings.streaming,
        stream_options: (settings.streaming && !target.refuses_stream_options)
            .then_some(StreamOptions { include_usage: true }),
        max_tokens: limit.filter(|_| !is_limit_renamed),
        max_completion_tokens: limit.filter(|_| is_limit_renamed),
        reasoning_effort: effort(request.thinking, settings),
        sampling: sent_sampling(Api::OpenAiChat, false, request, settings),
        stop: &request.stop,
        metadata: &request.metadata,
        tools,
        messages,
    })
}

/// The output limit that a request sends, in tokens.
pub(in super::super) fn output_limit(request: &ModelRequest, settings: &ModelSettings) -> Option<u32> {
    request.max_output_tokens.or(settings.max_output_tokens)
}

/// Adds the messages for one message of the user. Each tool result becomes its own message, which can hold text only.
/// The media of the results and the user's text and media follow in one more message. `preface` precedes the first
/// text of the user in the request.
fn push_user_message<'a>(
    message: &'a Message,
    preface: &mut Option<&'a str>,
    is_vendor: bool,
    media: &AcceptedMedia<'_>,
    messages: &mut Vec<ChatMessage<'a>>,
) {
    let mut result_parts = Vec::new();
    let mut user_parts = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult { call_id, provider_id, content, attachments, .. } => {
                let content = media.result_text(content, attachments);
                let tool_call_id = wire_id(provider_id, call_id, is_vendor);
                messages.push(ChatMessage::Tool { tool_call_id, content });
                result_parts.extend(media.attachment_contents(attachments).into_iter().map(medium_part));
            }
            Block::Text { text } if !text.is_empty() => {
                user_parts.push(ContentPart::Text { text: text.clone() })
            }
            Block::Image(picture) => user_parts.extend(media.picture(picture).into_iter().map(medium_part)),
            Block::Document(document) => user_parts.push(medium_part(media.document(document))),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolCall(_) => {}
        }
    }
    if !user_parts.is_empty() {
        result_parts.extend(preface.take().map(|text| ContentPart::Text { text: text.into() }));
    }
    let mut parts: Vec<ContentPart> = Vec::with_capacity(result_parts.len() + user_parts.len());
    for part in result_parts.into_iter().chain(user_parts) {
        match (parts.last_mut(), part) {
            (Some(ContentPart::Text { text: before }), ContentPart::Text { text }) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            (_, part) => parts.push(part),
        }
    }
    match parts.as_mut_slice() {
        [] => {}
        [ContentPart::Text { text }] => {
            messages.push(ChatMessage::User { content: MessageContent::Text(std::mem::take(text)) })
        }
        _ => messages.push(ChatMessage::User { content: MessageContent::Parts(parts) }),
    }
}

/// A picture or document as part of a message, or the text that replaces it.
fn medium_part(medium: MediumContent<'_>) -> ContentPart<'_> {
    match medium {
        MediumContent::ReplacementText(text) => ContentPart::Text { text },
        MediumContent::Whole { kind, media_type, name, data } => {
            let url = format!("data:{media_type};base64,{data}");
            match kind {
                AttachmentKind::Image => ContentPart::ImageUrl { image_url: ImageUrl { url } },
                AttachmentKind::Document => ContentPart::File {
                    file: File { filename: file_name(name, "document.pdf"), file_data: url },
                },
            }
        }
    }
}

/// Index of the first message of the current tool loop: after the last message with content of the user.
fn tool_loop_start<M: AsRef<Message>>(messages: &[M]) -> usize {
    let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
    let has_user_content =
        |message: &Message| message.role == Role::User && !message.content.iter().any(is_result);
    messages.iter().rposition(|message| has_user_content(message.as_ref())).map_or(0, |index| index + 1)
}

/// The id of a call. Only the vendor is known to limit its length; some proxies store data for the next request
/// in an id of several hundred characters.
fn wire_id<'a>(provider_id: &'a str, call_id: &CallId, is_vendor: bool) -> Cow<'a, str> {
    match wire_call_id(provider_id, call_id, |id| !is_vendor || id.chars().count() <= MAX_CHAT_CALL_ID_CHARS)
    {
        // Remove the hyphens, because the daemon's id has 37 characters without them.
        Cow::Owned(ours) => Cow::Owned(ours.replace('-', "")),
        id => id,
    }
}

/// A message of the model. `keeps_reasoning` says whether the server requires its reasoning back.
fn assistant_message(
    message: &Message,
    keeps_reasoning: bool,
    is_vendor: bool,
) -> Result<ChatMessage<'_>, serde_json::Error> {
    let mut text = String::new();
    let mut reasoning_content = String::new();
    let mut tool_calls = Vec::new();
    for block in &message.content {
        match block {
            Block::Text { text: more } => text.push_str(more),
            Block::ToolCall(call) => tool_calls.push(FunctionCall {
                id: wire_id(&call.provider_id, &call.call_id, is_vendor),
                kind: "function",
                function: CalledFunction { name: wire_tool_name(&call.tool), arguments: arguments(call)? },
            }),
            // Reasoning with a signature comes from another API.
            Block::Thinking { text, signature: None } if keeps_reasoning => reasoning_content.push_str(text),
            Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Image(_)
            | Block::Document(_)
            | Block::ToolResult { .. } => {}
        }
    }
    let content = match (text.is_empty(), tool_calls.is_empty()) {
        (false, _) => Some(text),
        (true, false) => None,
        (true, true) => Some("(no content)".into()),
    };
    Ok(ChatMessage::Assistant { content, reasoning_content, tool_calls })
}

/// The arguments as text. Many servers parse it and accept only an object.
fn arguments(call: &ToolCall) -> Result<String, serde_json::Error> {
    if call.input.is_object() {
        serde_json::to_string(&call.input)
    } else {
        serde_json::to_string(&serde_json::json!({ "unreadable_input": call.input }))
    }
}
