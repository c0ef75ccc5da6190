//! Serialises a request for OpenAI Responses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::super::settings::ModelSettings;
use crate::catalog::capabilities::effort;
use crate::catalog::capabilities::{
    MAX_CALL_ID_CHARS, SealedReasoning, unseal, wire_call_id, wire_tool_name,
};
use crate::request::media::{AcceptedMedia, MediumContent, file_name};
use crate::request::sampling::sent_sampling;
use crate::settings::Api;
use crate::tool_schema::wire_tools;
use types::CallId;
use types::blob::AttachmentKind;
use types::message::{Block, Message, Role, ToolCall};
use types::model::ModelRequest;
use types::sampling::Sampling;
use types::thinking::Thinking;

/// The smallest accepted `max_output_tokens` (OpenAI's API reference, "Create a model response", 2026-03).
const MIN_OUTPUT_TOKENS: u32 = 16;

const ASSISTANT: &str = "assistant";

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    /// Whether the server keeps the answer, so that it can be continued.
    store: bool,
    previous_response_id: Option<&'a str>,
    instructions: Option<&'a str>,
    max_output_tokens: Option<u32>,
    reasoning: Option<Reasoning<'a>>,
    #[serde(flatten)]
    sampling: Sampling,
    /// Stop sequences. The vendor's own API refuses this parameter; other servers accept it.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    /// Requests encrypted reasoning, so that it can be sent back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    input: Vec<Item<'a>>,
}

/// The reasoning effort, and whether a summary of the reasoning is requested.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Reasoning<'a> {
    effort: Option<&'a str>,
    summary: Option<&'static str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict schemas need every property to be required. The daemon's schemas have optional properties.
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<ContentPart<'a>>,
    },
    Reasoning {
        id: String,
        summary: Vec<ContentPart<'a>>,
        encrypted_content: String,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Cow<'a, str>,
    },
    /// An earlier answer in the short form. The long form requires `id`, `status` and `annotations`, which the
    /// transcript does not contain.
    #[serde(untagged)]
    Answer {
        role: &'static str,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum ContentPart<'a> {
    #[serde(rename = "input_text")]
    Input { text: &'a str },
    #[serde(rename = "summary_text")]
    Summary { text: &'a str },
    #[serde(rename = "input_image")]
    Image { image_url: String, detail: &'static str },
    #[serde(rename = "input_file")]
    File { filename: &'a str, file_data: String },
    /// A text of the daemon that replaces a medium.
    #[serde(rename = "input_text")]
    ReplacementText { text: String },
}

/// The body of a request as JSON. `store`: the server stores the conversation. Its answers up to `previous` are then
/// omitted.
pub(in super::super) fn body(
    request: &ModelRequest,
    settings: &ModelSettings,
    store: bool,
    previous: Option<&str>,
) -> Result<Vec<u8>, serde_json::Error> {
    let thinks = request.thinking != Some(Thinking::Off);
    // No request continues from a call outside the turn.
    let store = store && !request.is_helper_call;
    // The server knows all messages up to its last answer.
    let known = match previous {
        Some(_) => request.messages.iter().rposition(|m| m.role == Role::Assistant).map_or(0, |at| at + 1),
        None => 0,
    };
    let mut input = Vec::with_capacity(request.messages.len() - known);
    let accepts_images = settings.vision.unwrap_or(true);
    let media =
        AcceptedMedia::from_request(request, accepts_images, settings.documents.unwrap_or(accepts_images));
    for message in &request.messages[known..] {
        match message.role {
            Role::User => user(message, previous.is_some(), &media, &mut input),
            Role::Assistant => assistant(message, thinks && !store, &mut input)?,
        }
    }
    let mut instructions = (!request.system.trim().is_empty()).then_some(&*request.system);
    if !settings.system_role
        && let Some(text) = instructions.take()
        && previous.is_none()
    {
        input.insert(0, Item::Message { role: "user", content: vec![ContentPart::Input { text }] });
    }
    let fitted = wire_tools(&request.tools);
    let mut tools = Vec::new();
    if settings.tools {
        tools.extend(fitted.iter().map(|tool| Tool {
            kind: "function",
            name: &tool.definition.name,
            description: &tool.definition.description,
            parameters: &tool.schema,
            strict: false,
        }));
    }
    serde_json::to_vec(&Body {
        model: &request.model.model,
        stream: settings.streaming,
        store,
        previous_response_id: previous,
        instructions,
        max_output_tokens: output_limit(request, settings),
        reasoning: reasoning(request.thinking, settings),
        sampling: sent_sampling(Api::OpenAiResponses, false, request, settings),
        stop: &request.stop,
        metadata: &request.metadata,
        include: if settings.thinking && thinks && !store {
            vec!["reasoning.encrypted_content"]
        } else {
            Vec::new()
        },
        tools,
        input,
    })
}

/// The output limit that a request sends, in tokens.
pub(in super::super) fn output_limit(request: &ModelRequest, settings: &ModelSettings) -> Option<u32> {
    request.max_output_tokens.or(settings.max_output_tokens).map(|most| most.max(MIN_OUTPUT_TOKENS))
}

/// The reasoning parameters of a request. Only organisations that the vendor has verified receive a summary, so it is
/// requested only with thinking.
fn reasoning(thinking: Option<Thinking>, settings: &ModelSettings) -> Option<Reasoning<'_>> {
    let wanted = thinking.is_some_and(|thinking| thinking != Thinking::Off) && settings.thinking;
    let reasoning = Reasoning { effort: effort(thinking, settings), summary: wanted.then_some("auto") };
    (reasoning.effort.is_some() || wanted).then_some(reasoning)
}

/// The id of a call. A server that stores the conversation knows its own ids of any length.
fn wire_id<'a>(provider_id: &'a str, call_id: &CallId, is_kept: bool) -> Cow<'a, str> {
    wire_call_id(provider_id, call_id, |id| is_kept || id.chars().count() <= MAX_CALL_ID_CHARS)
}

/// Serialises a user message. Pictures and documents of results follow the results, like media of the user.
/// `is_kept`: the server stores the calls that the results belong to.
fn user<'a>(message: &'a Message, is_kept: bool, media: &AcceptedMedia<'_>, input: &mut Vec<Item<'a>>) {
    let mut shown = Vec::new();
    let mut user_parts = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult { call_id, provider_id, content, attachments, .. } => {
                let output = media.result_text(content, attachments);
                let call_id = wire_id(provider_id, call_id, is_kept);
                input.push(Item::FunctionCallOutput { call_id, output });
                shown.extend(media.attachment_contents(attachments).into_iter().map(medium_part));
            }
            Block::Text { text } if !text.is_empty() => user_parts.push(ContentPart::Input { text }),
            Block::Image(picture) => user_parts.extend(media.picture(picture).into_iter().map(medium_part)),
            Block::Document(document) => user_parts.push(medium_part(media.document(document))),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolCall(_) => {}
        }
    }
    shown.append(&mut user_parts);
    if !shown.is_empty() {
        input.push(Item::Message { role: "user", content: shown });
    }
}

fn medium_part(shown: MediumContent<'_>) -> ContentPart<'_> {
    match shown {
        MediumContent::ReplacementText(text) => ContentPart::ReplacementText { text },
        MediumContent::Whole { kind, media_type, name, data } => {
            let url = format!("data:{media_type};base64,{data}");
            match kind {
                AttachmentKind::Image => ContentPart::Image { image_url: url, detail: "auto" },
                AttachmentKind::Document => {
                    ContentPart::File { filename: file_name(name, "document.pdf"), file_data: url }
                }
            }
        }
    }
}

fn assistant<'a>(
    message: &'a Message,
    keeps: bool,
    input: &mut Vec<Item<'a>>,
) -> Result<(), serde_json::Error> {
    let before = input.len();
    for (at, block) in message.content.iter().enumerate() {
        match block {
            Block::Text { text } if !text.is_empty() => {
                input.push(Item::Answer { role: ASSISTANT, content: text });
            }
            // The API requires that the content of the same answer follows its reasoning.
            Block::Thinking { text, signature: Some(seal) } if keeps && at + 1 < message.content.len() => {
                if let Some(SealedReasoning { id, encrypted_content }) = unseal(seal) {
                    let summary =
                        if text.is_empty() { Vec::new() } else { vec![ContentPart::Summary { text }] };
                    input.push(Item::Reasoning { id, summary, encrypted_content });
                }
            }
            Block::ToolCall(call) => input.push(Item::FunctionCall {
                call_id: wire_id(&call.provider_id, &call.call_id, false),
                name: wire_tool_name(&call.tool),
                arguments: arguments(call)?,
            }),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Image(_)
            | Block::Document(_)
            | Block::ToolResult { .. } => {}
        }
    }
    if input.len() == before {
        input.push(Item::Answer { role: ASSISTANT, content: "(no content)" });
    }
    Ok(())
}

/// The arguments as the text of an object.
fn arguments(call: &ToolCall) -> Result<String, serde_json::Error> {
    if call.input.is_object() {
        serde_json::to_string(&call.input)
    } else {
        serde_json::to_string(&serde_json::json!({ "unreadable_input": call.input }))
    }
}
