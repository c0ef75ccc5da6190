//! Tool calls: one beginning, progress, and exactly one end for each, also if the daemon restarts meanwhile.

use serde_json::{Value, json};

use super::Mapper;
use super::calls::{fenced, kind, locations, requested_call};
use super::diff::diff_parts;
use crate::acp::schema::{CallContent, CallState, SessionUpdate, TerminalMeta, ToolCall, ToolKind, Version};
use types::background::BackgroundEnd;
use types::call_summary::call_title;
use types::event::{Envelope, Event};
use types::ids::CallId;
use types::permission::Decision;
use types::tool::{ProposedPlan, ToolStatus};

/// Bytes of a running command's output that are shown: the end of it, because each update replaces the last one.
const PROGRESS_BYTES: usize = 8 << 10;

/// Bytes of a result that are shown.
const RESULT_BYTES: usize = 64 << 10;

/// A call without a result.
#[derive(Default)]
pub(super) struct OpenCall {
    kind: Option<ToolKind>,
    /// The end of its output so far.
    output: String,
    has_output: bool,
    /// Whether the client shows a terminal for it.
    has_terminal: bool,
    /// Whether its command continues after it.
    is_background: bool,
    changes: Vec<CallContent>,
}

impl Mapper {
    pub(super) fn map_tool(&mut self, envelope: &Envelope) -> Vec<SessionUpdate> {
        match &envelope.event {
            Event::ToolRequested { call_id, tool, input, .. } => {
                let kind = kind(tool);
                self.calls.insert(*call_id, OpenCall { kind: Some(kind), ..OpenCall::default() });
                // The user reads a plan before the answer.
                let content =
                    (tool == ProposedPlan::TOOL).then(|| vec![CallContent::text(ProposedPlan::text(input))]);
                vec![SessionUpdate::ToolCall(ToolCall {
                    title: Some(call_title(tool, input, self.cwd().as_ref())),
                    name: Some(tool.clone()),
                    kind: Some(kind),
                    status: Some(CallState::Pending),
                    content,
                    locations: Some(locations(input, self.cwd())).filter(|locations| !locations.is_empty()),
                    raw_input: Some(input.clone()),
                    ..ToolCall::for_call(*call_id)
                })]
            }
            Event::ToolStatus { call_id, updated_input: Some(input), .. } => {
                changed(ToolCall { raw_input: Some(input.clone()), ..ToolCall::for_call(*call_id) })
            }
            Event::ToolStarted { call_id, attempt, .. } => self.start_call(*call_id, *attempt),
            Event::ToolProgress { call_id, text, .. } => self.add_output(*call_id, text),
            Event::ToolBackground { call_id, end, .. } => self.map_background(*call_id, end.as_ref()),
            Event::ToolBlocked { call_id, output, .. } => {
                let Some(call) = self.calls.get_mut(call_id).filter(|call| !call.has_terminal) else {
                    return Vec::new();
                };
                call.output.clear();
                let text = format!("{}\n\nThe sandbox probably blocked this command.", fenced(output));
                changed(ToolCall {
                    content: Some(vec![CallContent::text(text)]),
                    ..ToolCall::for_call(*call_id)
                })
            }
            Event::FileChanged { call_id, change } => {
                let parts = diff_parts(&change.diff, Some(&change.path), self.cwd());
                if let Some(call) = self.calls.get_mut(call_id) {
                    call.changes.extend(parts.content);
                }
                changed(ToolCall {
                    locations: Some(parts.locations).filter(|locations| !locations.is_empty()),
                    content: self.calls.get(call_id).map(|call| call.changes.clone()),
                    ..ToolCall::for_call(*call_id)
                })
            }
            Event::ToolCompleted { call_id, status, output, detail, .. } => {
                let call = self.calls.remove(call_id).unwrap_or_default();
                if call.has_terminal && call.is_background {
                    self.background.insert(*call_id);
                }
                changed(ended(*call_id, call, *status, output, detail.as_ref()))
            }
            Event::SubagentStarted { call_id, agent, description, .. } if !description.is_empty() => {
                changed(ToolCall {
                    title: Some(format!("{agent}: {description}")),
                    ..ToolCall::for_call(*call_id)
                })
            }
            Event::PermissionRequested { .. } | Event::PermissionResolved { .. } => {
                map_subagent_request(&envelope.event)
            }
            _ => Vec::new(),
        }
    }

    fn start_call(&mut self, call_id: CallId, attempt: u8) -> Vec<SessionUpdate> {
        let has_terminals = self.features.terminal_output;
        let cwd = self.cwd.clone();
        let mut update = ToolCall { status: Some(CallState::InProgress), ..ToolCall::for_call(call_id) };
        let Some(call) = self.calls.get_mut(&call_id) else { return Vec::new() };
        if has_terminals && call.kind == Some(ToolKind::Execute) && attempt == 1 {
            call.has_terminal = true;
            let id = call_id.to_string();
            update.content = Some(vec![CallContent::Terminal { terminal_id: id.clone() }]);
            let terminal_info = Some(json!({"terminal_id": id, "cwd": cwd}));
            update.meta = Some(TerminalMeta { terminal_info, ..TerminalMeta::default() });
        }
        changed(update)
    }

    /// A background command continues after its call. Version 1 has no place for that part.
    fn map_background(&mut self, call_id: CallId, end: Option<&BackgroundEnd>) -> Vec<SessionUpdate> {
        if self.features.version == Version::V1 {
            return Vec::new();
        }
        let Some(end) = end else {
            if let Some(call) = self.calls.get_mut(&call_id) {
                call.is_background = true;
            }
            return Vec::new();
        };
        if !self.background.remove(&call_id) {
            return Vec::new();
        }
        let exit = terminal_exit(call_id, json!(end.exit_code), end.signal.map(|signal| signal.to_string()));
        let meta = TerminalMeta { terminal_exit: Some(exit), ..TerminalMeta::default() };
        changed(ToolCall { meta: Some(meta), ..ToolCall::for_call(call_id) })
    }

    pub(in crate::acp) fn is_open(&self, call_id: CallId) -> bool {
        self.calls.contains_key(&call_id)
    }

    /// Output of a call.
    fn add_output(&mut self, call_id: CallId, text: &str) -> Vec<SessionUpdate> {
        if self.background.contains(&call_id) {
            let meta = Some(terminal_output(call_id, text));
            return changed(ToolCall { meta, ..ToolCall::for_call(call_id) });
        }
        let Some(call) = self.calls.get_mut(&call_id) else { return Vec::new() };
        call.has_output = true;
        let mut update = ToolCall::for_call(call_id);
        if call.has_terminal {
            update.meta = Some(terminal_output(call_id, text));
        } else {
            call.output.push_str(text);
            let surplus = call.output.len().saturating_sub(PROGRESS_BYTES);
            call.output.drain(..call.output.ceil_char_boundary(surplus));
            update.content = Some(vec![CallContent::text(fenced(&call.output))]);
        }
        changed(update)
    }

    /// Ends the calls that have no result at the end of their turn.
    pub(super) fn end_open_calls(&mut self) -> Vec<SessionUpdate> {
        let mut open: Vec<CallId> = self.calls.drain().map(|(call_id, _)| call_id).collect();
        open.sort_unstable();
        let end = |call_id| {
            let content = Some(vec![CallContent::text("The turn ended without a result of this call.")]);
            SessionUpdate::ToolCallUpdate(ToolCall {
                status: Some(CallState::Cancelled),
                content,
                ..ToolCall::for_call(call_id)
            })
        };
        open.into_iter().map(end).collect()
    }
}

/// A sub-agent's call is not part of this session, so that its request is shown as a call of its own.
fn map_subagent_request(event: &Event) -> Vec<SessionUpdate> {
    match event {
        Event::PermissionRequested { request, .. } if request.child_session_id.is_some() => {
            vec![SessionUpdate::ToolCall(requested_call(request))]
        }
        Event::PermissionResolved { request_id, decision, child_session_id: Some(_), .. } => {
            let (status, text) = match decision {
                Decision::Allow => {
                    (CallState::Completed, "Allowed. The sub-agent's own session shows the result.")
                }
                Decision::Deny => (CallState::Failed, "Denied."),
            };
            changed(ToolCall {
                tool_call_id: request_id.to_string(),
                status: Some(status),
                content: Some(vec![CallContent::text(text)]),
                ..ToolCall::default()
            })
        }
        _ => Vec::new(),
    }
}

/// The update of a call that the editor shows already.
fn changed(call: ToolCall) -> Vec<SessionUpdate> {
    vec![SessionUpdate::ToolCallUpdate(call)]
}

fn terminal_output(call_id: CallId, text: &str) -> TerminalMeta {
    let output = json!({"terminal_id": call_id.to_string(), "data": text});
    TerminalMeta { terminal_output: Some(output), ..TerminalMeta::default() }
}

fn terminal_exit(call_id: CallId, code: Value, signal: Option<String>) -> Value {
    json!({"terminal_id": call_id.to_string(), "exit_code": code, "signal": signal})
}

fn ended(
    call_id: CallId,
    call: OpenCall,
    status: ToolStatus,
    output: &str,
    detail: Option<&Value>,
) -> ToolCall {
    let reason = match status {
        ToolStatus::Completed | ToolStatus::Failed => None,
        ToolStatus::Denied => Some("Denied."),
        ToolStatus::Cancelled => Some("Stopped."),
        ToolStatus::Unknown => {
            Some("The daemon stopped while this call may have been running: its outcome is unknown.")
        }
    };
    let state = match status {
        ToolStatus::Completed => CallState::Completed,
        ToolStatus::Cancelled => CallState::Cancelled,
        ToolStatus::Failed | ToolStatus::Denied | ToolStatus::Unknown => CallState::Failed,
    };
    let mut content = call.changes;
    let mut meta = None;
    if call.has_terminal {
        let id = call_id.to_string();
        content.insert(0, CallContent::Terminal { terminal_id: id.clone() });
        // The progress of a stored call was pruned.
        let mut terminal =
            if call.has_output { TerminalMeta::default() } else { terminal_output(call_id, output) };
        if !call.is_background {
            let code = detail.and_then(|detail| detail.get("exit_code")).cloned().unwrap_or(Value::Null);
            let signal = detail.and_then(|detail| detail.get("signal")).map(Value::to_string);
            terminal.terminal_exit = Some(terminal_exit(call_id, code, signal));
        }
        meta = Some(terminal);
    } else if !output.trim().is_empty() && (content.is_empty() || state != CallState::Completed) {
        let cut = output.floor_char_boundary(RESULT_BYTES);
        let more = if cut < output.len() { "\n(The beginning of it.)" } else { "" };
        let shown = &output[..cut];
        let text = if call.kind == Some(ToolKind::Execute) { fenced(shown) } else { shown.to_owned() };
        content.push(CallContent::text(format!("{text}{more}")));
    }
    content.extend(reason.map(CallContent::text));
    ToolCall {
        status: Some(state),
        content: Some(content),
        raw_output: detail.cloned(),
        meta,
        ..ToolCall::for_call(call_id)
    }
}
