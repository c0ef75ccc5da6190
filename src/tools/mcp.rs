//! Tools of MCP servers. The servers themselves are reached through the session.

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::coerce::coerce;
use crate::context::{SessionContext, ToolContext, escape_name};
use crate::error::{ToolError, cancelled};
use crate::files::input_files::{self, IngestedFile, InputFile, InputSource};
use crate::mcp_context::McpServers;
use mcp::{
    CallChannels, CallError, FormAnswer, ResultMedia, ServerModelCall, ServerQuestion, ServerRequest,
    ToolAnswer, argument_mistakes, server_validator,
};
use types::blob::{Attachment, AttachmentKind};
use types::ids::CallId;
use types::mcp::{MCP_PREFIX, McpCatalog, McpTool};
use types::message::{InputBlock, ToolCall};
use types::permission::Mode;
use types::question::{QuestionOption, UserQuestion};
use types::tool::{McpToolName, PreparedCall, Subject, ToolOutcome, ToolProgress};

/// Maximum characters of a call's summary.
const MAX_SUMMARY_CHARS: usize = 160;
/// Maximum number of mistakes in one error for the model.
const MAX_MISTAKES: usize = 5;
/// Capacity of the queue of progress messages of a call.
const PROGRESS_CAPACITY: usize = 32;
/// The options of a question about a model call.
const ALLOW: &str = "allow";
const DECLINE: &str = "decline";
/// How often a user may answer one question of a server with values that do not fit.
const MAX_ATTEMPTS: usize = 5;

/// Whether a name is that of a server's tool.
pub(super) fn is_mcp(tool: &str) -> bool {
    tool.starts_with(MCP_PREFIX)
}

/// A parsed call.
pub(super) struct McpCall {
    call_id: CallId,
    tool: McpTool,
    arguments: Map<String, Value>,
}

/// Finds the tool and checks the arguments against its schema.
pub(super) fn parse(call: &ToolCall, context: &SessionContext) -> Result<McpCall, ToolError> {
    if let Some(problem) = &call.input_error {
        let text =
            format!("the arguments of {} are not valid JSON: {problem}. Send one JSON object.", call.tool);
        return Err(ToolError::new("invalid_json", text));
    }
    let catalog = &context.mcp.catalog;
    let Some(tool) = catalog.find(&call.tool) else {
        let names: Vec<&str> = catalog.tools.iter().map(|tool| tool.name.as_str()).take(100).collect();
        let text = format!(
            "there is no tool {:?} in this turn. The tools of MCP servers are: {}",
            call.tool,
            names.join(", ")
        );
        return Err(ToolError::new("unknown_tool", text).with(json!({ "tool": call.tool, "tools": names })));
    };
    let mut arguments = match coerce_outer(&call.input) {
        Value::Object(arguments) => arguments,
        Value::Null => Map::new(),
        _ => {
            return Err(ToolError::new(
                "invalid_input",
                format!("the arguments of {} must be an object", call.tool),
            ));
        }
    };
    // The server checks its arguments itself, so a schema that cannot be used is no obstacle.
    if let Some(validator) = server_validator(&tool.input_schema) {
        let mut input = Value::Object(arguments.clone());
        if !validator.is_valid(&input) {
            let fitted = coerce(input.clone(), &tool.input_schema);
            if validator.is_valid(&fitted)
                && let Value::Object(fields) = &fitted
            {
                arguments = fields.clone();
                input = fitted;
            }
        }
        let mistakes: Vec<String> = argument_mistakes(&validator, &input).take(MAX_MISTAKES).collect();
        if !mistakes.is_empty() {
            let text = format!("the arguments of {} are wrong: {}", call.tool, mistakes.join("; "));
            return Err(ToolError::new("invalid_input", text).with(json!({ "problems": mistakes })));
        }
    }
    Ok(McpCall { call_id: call.call_id, tool: tool.clone(), arguments })
}

/// The arguments in a text that holds them, as some models write them.
fn coerce_outer(input: &Value) -> Value {
    coerce(input.clone(), &json!({ "type": "object", "properties": {} }))
}

/// Blocks on the disk at the first call.
pub(super) fn prepare(context: &ToolContext, call: &McpCall) -> PreparedCall {
    let McpCall { tool, arguments, .. } = call;
    let session_context = &context.session_context;
    let is_changed = session_context.mcp.servers.as_ref().is_some_and(|servers| {
        servers.approvals().has_changed(&session_context.workspace, &tool.name, &tool.digest)
    });
    let shown = escape_name(&format!("{}:{} {}", tool.server, tool.tool, Value::Object(arguments.clone())));
    let short: String = shown.chars().take(MAX_SUMMARY_CHARS).collect();
    let summary = if short.len() < shown.len() { format!("{short} …") } else { short };
    PreparedCall::new(subject(tool, &session_context.mcp.catalog, is_changed), summary)
}

fn subject(tool: &McpTool, catalog: &McpCatalog, is_changed: bool) -> Subject {
    let is_confusable = |other: &&McpTool| tool.names().may_be_confused_with(&other.names());
    let name = |other: &McpTool| McpToolName {
        name: other.name.clone(),
        server: other.server.clone(),
        tool: other.tool.clone(),
    };
    Subject::Mcp {
        name: tool.name.clone(),
        server: tool.server.clone(),
        tool: tool.tool.clone(),
        digest: tool.digest.clone(),
        is_changed,
        confusable: catalog.tools.iter().filter(is_confusable).map(name).collect(),
    }
}

pub(super) async fn run(
    context: &ToolContext,
    call: McpCall,
    prepared: &PreparedCall,
    progress: mpsc::Sender<ToolProgress>,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let McpCall { call_id, tool, arguments } = call;
    let is_judged = matches!(&prepared.subject, Subject::Mcp { name, digest, .. }
        if *name == tool.name && *digest == tool.digest);
    if !is_judged {
        return Err(ToolError::new(
            "target_changed",
            "the tool's definition has changed; look at it again and retry",
        ));
    }
    let Some(servers) = &context.session_context.mcp.servers else {
        return Err(ToolError::new("mcp_unavailable", "this session has no MCP servers"));
    };
    let unavailable = |why: String| {
        let text = format!("{why}. The call was not sent. Try another way, or later.");
        ToolError::new("mcp_unavailable", text).with(json!({ "server": tool.server }))
    };
    let lease = tokio::select! {
        () = stop.cancelled() => return Ok(cancelled()),
        lease = servers.lease(&tool.server) => lease.map_err(&unavailable)?,
    };
    // Call a tool only if an up-to-date server still has it, because a user approved this definition.
    let view = lease.wait_settled(lease.start_limit()).await;
    let now = view.tools.iter().find(|other| other.name == tool.name);
    if now.is_some_and(|now| now.digest != tool.digest) {
        let text = "the server changed the definition of this tool during the turn; the call was not sent. The next \
                    turn has the new definition.";
        return Err(
            ToolError::new("tool_changed", text).with(json!({ "server": tool.server, "tool": tool.tool }))
        );
    }
    record_definition(context, &tool, prepared).await;
    let (messages, mut received_messages) = mpsc::channel(PROGRESS_CAPACITY);
    let (requests, mut received_requests) = mpsc::channel(1);
    let work = lease.call(&tool.tool, arguments, CallChannels { progress: messages, requests }, stop);
    tokio::pin!(work);
    // One question after the other: a call has at most one open question.
    let ask = async {
        while let Some(request) = received_requests.recv().await {
            match request {
                ServerRequest::Question(question) => {
                    ask_user(servers.as_ref(), call_id, &tool.server, question).await;
                }
                ServerRequest::ModelCall(call) => {
                    let model = &context.session_context.mcp.model;
                    call_model(servers.as_ref(), (call_id, &tool.server, model), call).await;
                }
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::pin!(ask);
    let result = loop {
        tokio::select! {
            result = &mut work => break result,
            () = &mut ask => {}
            Some(text) = received_messages.recv() => {
                // Progress is dropped if the session's queue is full.
                let _ = progress.try_send(ToolProgress { stream: "stdout", text });
            }
        }
    };
    match result {
        Ok(answer) => Ok(build_outcome(context, &tool, answer).await),
        Err(CallError::Stopped) => Ok(cancelled()),
        Err(CallError::Unavailable(why)) => Err(unavailable(why)),
        Err(CallError::Refused(why)) => {
            let text = format!("the MCP server {} answered with an error: {why}", tool.server);
            Err(ToolError::new("mcp_error", text).with(json!({ "server": tool.server })))
        }
        Err(CallError::Unclear(why)) => {
            let text = format!(
                "the MCP server {} answered the call of {}, but {why}. The tool has probably run: look at its effect \
                 instead of its result.",
                tool.server, tool.tool
            );
            Err(ToolError::new("outcome_unknown", text).with(json!({ "server": tool.server })))
        }
        Err(CallError::TimedOut(limit)) => {
            let text = format!(
                "{}:{} did not answer within {} s; the call was cancelled. Whether it had an effect is unknown.",
                tool.server,
                tool.tool,
                limit.as_secs_f32()
            );
            Err(ToolError::new("timed_out", text).with(json!({ "server": tool.server })))
        }
        Err(CallError::Lost(why)) => {
            let text = format!(
                "the call of {}:{} was interrupted: {why}. Whether it had an effect is unknown: check that before you \
                 repeat it.",
                tool.server, tool.tool
            );
            Err(ToolError::new("outcome_unknown", text).with(json!({ "server": tool.server })))
        }
    }
}

/// Asks the user a question of a server, and repeats it while the values do not fit.
async fn ask_user(servers: &dyn McpServers, call_id: CallId, server: &str, mut question: ServerQuestion) {
    let mut mistake = None;
    for _ in 0..MAX_ATTEMPTS {
        let questions = question.form.questions(server, mistake.as_deref());
        let answers = tokio::select! {
            answers = servers.ask(call_id, questions) => answers,
            () = question.wait_withdrawn() => return servers.withdraw(call_id).await,
        };
        let Some(answers) = answers else { return question.answer(FormAnswer::Declined) };
        match question.form.read(&answers) {
            Ok(answer) => return question.answer(answer),
            Err(why) => mistake = Some(why),
        }
    }
}

/// Asks the user about a model call for a server, and makes it.
async fn call_model(
    servers: &dyn McpServers,
    (call_id, server, model): (CallId, &str, &str),
    mut call: ServerModelCall,
) {
    let asks = format!(
        "The MCP server {server} asks for a call of the model {model} and gets the answer:\n{}",
        call.request.shown()
    );
    let option = |label: &str| QuestionOption { label: label.to_owned(), description: None };
    let options = vec![option(ALLOW), option(DECLINE)];
    let question = UserQuestion { question: asks, header: None, options, multi_select: false };
    let answers = tokio::select! {
        answers = servers.ask(call_id, vec![question]) => answers,
        () = call.wait_withdrawn() => return servers.withdraw(call_id).await,
    };
    let is_allowed = answers.is_some_and(|answers| answers.iter().any(|answer| answer.choices == [ALLOW]));
    if !is_allowed {
        return call.answer(Err("the user declined the model call".into()));
    }
    let request = call.request.clone();
    let answer = tokio::select! {
        answer = servers.call_model(model, request) => answer,
        () = call.wait_withdrawn() => return,
    };
    call.answer(answer);
}

/// Records the definition that runs. A changed definition is not recorded if no user was asked about it, so
/// that the next call in a mode with requests asks.
async fn record_definition(context: &ToolContext, tool: &McpTool, prepared: &PreparedCall) {
    let is_unasked = matches!(prepared.subject, Subject::Mcp { is_changed: true, .. })
        && context.session_context.mode == Mode::Bypass;
    let Some(servers) = context.session_context.mcp.servers.clone().filter(|_| !is_unasked) else { return };
    let (workspace, name, digest) =
        (context.session_context.workspace.clone(), tool.name.clone(), tool.digest.clone());
    let recorded =
        tokio::task::spawn_blocking(move || servers.approvals().record(&workspace, &name, &digest)).await;
    if let Ok(Err(error)) = recorded {
        tracing::warn!(%error, tool = tool.name, "could not record the approved definition of an MCP tool");
    }
}

/// The outcome of a call with its pictures.
async fn build_outcome(context: &ToolContext, tool: &McpTool, answer: ToolAnswer) -> ToolOutcome {
    let mut text = answer.text;
    let (mut attachments, mut blobs) = (Vec::new(), Vec::new());
    for (number, media) in answer.media.into_iter().enumerate() {
        match load_picture(context, media, number + 1).await {
            Ok(IngestedFile { block: InputBlock::Image(picture), blob }) => {
                attachments.push(Attachment {
                    kind: AttachmentKind::Image,
                    blob: picture.blob,
                    name: picture.name,
                    in_text: false,
                });
                blobs.push(blob);
            }
            Ok(_) => text.push_str("\n[an invalid picture is left out]"),
            Err(refusal) => text.push_str(&format!("\n[a picture is left out: {}]", refusal.text)),
        }
    }
    if text.is_empty() && !attachments.is_empty() {
        text = format!("[{} picture(s)]", attachments.len());
    }
    let mut detail = json!({ "server": tool.server, "tool": tool.tool });
    if let Some(structured) = answer.structured {
        detail["structured"] = structured;
    }
    let outcome =
        if answer.is_error { ToolOutcome::failed("tool_failed", text) } else { ToolOutcome::completed(text) };
    ToolOutcome { detail: Some(detail), attachments, blobs, ..outcome }
}

async fn load_picture(
    context: &ToolContext,
    media: ResultMedia,
    number: usize,
) -> Result<IngestedFile, ToolError> {
    let name = Some(format!("picture {number}"));
    let file = InputFile { source: InputSource::Bytes(media.bytes), name, picture: true };
    input_files::ingest(&context.settings, file).await
}
