//! What version 2 writes otherwise than version 1. Pure.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use nix::sys::signal::Signal;
use serde_json::{Map, Value, json};

use super::{
    AvailableCommand, CallContent, CallState, Chunk, ConfigOption, FileChange, PermissionParams,
    SessionUpdate, TerminalMeta, ToolCall,
};

/// A session has one list of tasks.
const PLAN_ID: &str = "todos";

/// The updates for one of version 1.
pub(in crate::acp) fn updates(update: &SessionUpdate) -> Vec<Value> {
    let written = match update {
        SessionUpdate::UserMessageChunk(Chunk { content, message_id }) => {
            json!({"sessionUpdate": "user_message", "messageId": message_id, "content": [content]})
        }
        SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => return call_updates(call),
        SessionUpdate::Plan { entries } => {
            let plan = json!({"type": "items", "planId": PLAN_ID, "entries": entries});
            json!({"sessionUpdate": "plan_update", "plan": plan})
        }
        // The mode is one of the options.
        SessionUpdate::CurrentModeUpdate { .. } => return Vec::new(),
        SessionUpdate::ConfigOptionUpdate { config_options } => {
            let options = config_options.iter().map(config_option);
            json!({"sessionUpdate": "config_option_update", "configOptions": options.collect::<Value>()})
        }
        SessionUpdate::AvailableCommandsUpdate { available_commands } => {
            let commands = available_commands.iter().map(command).collect::<Value>();
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
        }
        SessionUpdate::AgentMessageChunk(_)
        | SessionUpdate::AgentThoughtChunk(_)
        | SessionUpdate::SessionInfoUpdate { .. }
        | SessionUpdate::UsageUpdate { .. }
        | SessionUpdate::Notice { .. }
        | SessionUpdate::CompactionUpdate { .. }
        | SessionUpdate::AgentMessage { .. }
        | SessionUpdate::StateUpdate(_)
        | SessionUpdate::ReplayComplete => json!(update),
    };
    vec![written]
}

/// The reply to methods that open a session or change an option.
pub(in crate::acp) fn settings(options: &[ConfigOption]) -> Value {
    json!({ "configOptions": options.iter().map(config_option).collect::<Value>() })
}

fn config_option(option: &ConfigOption) -> Value {
    json!({"configId": option.id, "name": option.name, "category": option.category, "type": option.kind,
        "currentValue": option.current_value, "options": option.options})
}

fn command(command: &AvailableCommand) -> Value {
    let mut written = json!(command);
    written["type"] = "command".into();
    if let Some(input) = &command.input {
        written["input"] = json!({"type": "text", "hint": input.hint});
    }
    written
}

/// The parameters of `session/request_permission`. A question that is not about a call has no subject.
pub(in crate::acp) fn permission(params: &PermissionParams) -> Value {
    let call = &params.tool_call;
    let mut written = json!({"sessionId": params.session_id, "title": call.title, "options": params.options});
    let mut description: Vec<&str> = params.reason.as_deref().into_iter().collect();
    if params.is_about_call {
        written["subject"] = json!({"type": "tool_call", "toolCall": tool_call(call)});
    } else {
        description.extend(call.content.iter().flatten().filter_map(|content| match content {
            CallContent::Content { content } => Some(content.text.as_str()),
            CallContent::Diff { .. } | CallContent::Terminal { .. } => None,
        }));
    }
    if !description.is_empty() {
        written["description"] = description.join("\n").into();
    }
    written
}

/// A terminal is updated apart from the call that shows it.
fn call_updates(call: &ToolCall) -> Vec<Value> {
    let mut updates = call.meta.as_ref().map(terminal_updates).unwrap_or_default();
    let mut written = tool_call(call);
    if written.len() > 1 {
        written.insert("sessionUpdate".into(), "tool_call_update".into());
        updates.push(written.into());
    }
    updates
}

fn tool_call(call: &ToolCall) -> Map<String, Value> {
    let Value::Object(mut written) = json!(call) else { return Map::new() };
    written.remove("_meta");
    if let Some(content) = &call.content {
        written.insert("content".into(), content.iter().filter_map(call_content).collect());
    }
    match call.status {
        Some(CallState::InProgress) => _ = written.insert("capabilities".into(), json!({"cancel": {}})),
        Some(state @ (CallState::Completed | CallState::Failed | CallState::Cancelled)) => {
            written.insert("capabilities".into(), Value::Null);
            if state == CallState::Cancelled {
                written.insert("status".into(), "cancelled".into());
            }
        }
        Some(CallState::Pending) | None => {}
    }
    written
}

/// `None` for the further parts of a file, which the first one contains.
fn call_content(content: &CallContent) -> Option<Value> {
    let CallContent::Diff { path, change, .. } = content else { return Some(json!(content)) };
    let FileChange { operation, patch } = change.as_ref()?;
    let changes = json!([{"operation": operation, "path": path, "fileType": "text"}]);
    let mut diff = json!({"type": "diff", "changes": changes});
    if let Some(text) = patch {
        diff["patch"] = json!({"format": "git_patch", "text": text});
    }
    Some(diff)
}

fn terminal_updates(meta: &TerminalMeta) -> Vec<Value> {
    let mut updates = Vec::new();
    if let Some(info) = &meta.terminal_info {
        let cwd = &info["cwd"];
        updates
            .push(json!({"sessionUpdate": "terminal_update", "terminalId": info["terminal_id"], "cwd": cwd}));
    }
    if let Some(output) = &meta.terminal_output {
        let data = BASE64_STANDARD.encode(output["data"].as_str().unwrap_or_default());
        let id = &output["terminal_id"];
        updates.push(json!({"sessionUpdate": "terminal_output_chunk", "terminalId": id, "data": data}));
    }
    if let Some(exit) = &meta.terminal_exit {
        let number = exit["signal"].as_str().and_then(|number| number.parse::<i32>().ok());
        let signal = number.and_then(|number| Some(Signal::try_from(number).ok()?.as_str()));
        let status = json!({"exitCode": exit["exit_code"], "signal": signal});
        let id = &exit["terminal_id"];
        updates.push(json!({"sessionUpdate": "terminal_update", "terminalId": id, "exitStatus": status}));
    }
    updates
}
