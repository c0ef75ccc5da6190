//! Events of tool calls.

use std::path::PathBuf;
use std::sync::Arc;

use crate::state::output_excerpt::OutputExcerpt;
use crate::state::{Activity, CallStage, CallState, FirstRun, RepeatedCall, State, Turn};
use types::blob::Attachment;
use types::event::{Envelope, Event};
use types::ids::CallId;
use types::mcp::TOOL_SEARCH;
use types::message::{Block, Message, Role, ToolCall};
use types::session::Denial;
use types::tool::{ToolProgress, ToolStatus};

impl State {
    /// Adds the tool definitions that a completed tool search loaded.
    pub(super) fn apply_tool_search(&mut self, event: &Event) {
        if let Event::ToolCompleted { tool, status: ToolStatus::Completed, detail: Some(detail), .. } = event
            && tool == TOOL_SEARCH
        {
            self.mcp = Arc::new(self.mcp.with_loaded(detail));
        }
    }

    pub(super) fn apply_tool_event(&mut self, envelope: &Envelope) {
        if let Event::ToolProgress { call_id, text, stream } = &envelope.event
            && stream != ToolProgress::NOTE
        {
            self.record_command_output(*call_id, text);
        }
        let Some(turn) = &mut self.turn else { return };
        match &envelope.event {
            Event::ToolRequested { call_id, tool, input, provider_id, .. } => {
                let call = match provider_id {
                    // The call comes from a streaming answer, whose message is not in the transcript yet.
                    Some(provider_id) => Some(ToolCall {
                        call_id: *call_id,
                        provider_id: provider_id.clone(),
                        tool: tool.clone(),
                        input: input.clone(),
                        input_error: None,
                    }),
                    None => self.transcript.last().and_then(|message| call_of(message, *call_id)),
                };
                let (Some(call), Some(item_id)) = (call, envelope.item_id) else { return };
                let call = CallState {
                    call: Arc::new(call),
                    item_id,
                    first_seq: envelope.seq,
                    edited: None,
                    blocked_run: None,
                    stage: CallStage::Requested,
                };
                turn.forget_settled_calls();
                turn.totals.tool_calls += 1;
                turn.calls.push(call);
                if turn.activity == Activity::Tools
                    && let Some(message) = self.transcript.last()
                {
                    // A call that could not start early may come before calls that started early, so
                    // restore the call order.
                    let order = calls_of(message);
                    let place = |call: &CallState| order.iter().position(|id| *id == call.call.call_id);
                    turn.calls.sort_by_key(place);
                }
            }
            Event::ToolStatus { call_id, prepared, allowed_by, updated_input } => {
                if let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == *call_id)
                    && updated_input.is_some()
                {
                    call.edited.clone_from(updated_input);
                }
                let (prepared, allowed_by) = (Arc::new(prepared.clone()), allowed_by.clone());
                let stage = CallStage::Ready { prepared, allowed_by, bound: None, answered: false };
                set_stage(turn, *call_id, stage);
            }
            Event::ToolStarted { call_id, .. } => {
                if let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == *call_id)
                    && let CallStage::Ready { prepared, .. } = &call.stage
                {
                    let (prepared, output) = (Arc::clone(prepared), OutputExcerpt::default());
                    call.stage =
                        CallStage::Running { prepared, started_seq: envelope.seq, output, question: None };
                }
            }
            Event::ToolBlocked {
                call_id,
                blocked,
                status,
                output,
                output_blob,
                code,
                detail,
                duration_ms,
                cwd,
                ..
            } => {
                turn.totals.tools_ms += duration_ms;
                if let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == *call_id) {
                    call.blocked_run = Some(Arc::new(FirstRun {
                        blocked: blocked.clone(),
                        status: *status,
                        output: output.clone(),
                        output_blob: output_blob.clone(),
                        code: code.clone(),
                        detail: detail.clone(),
                        duration_ms: *duration_ms,
                        cwd: cwd.clone(),
                    }));
                }
            }
            Event::ToolProgress { stream, .. } if stream == ToolProgress::NOTE => {}
            Event::ToolProgress { call_id, text, .. } => {
                if let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == *call_id)
                    && let CallStage::Running { output, .. } = &mut call.stage
                {
                    output.push(text);
                }
            }
            Event::ToolCompleted {
                call_id,
                status,
                output,
                attachments,
                code,
                duration_ms,
                reads,
                cwd,
                background_read,
                ..
            } => {
                // If the sandbox blocked the first run, its duration is already counted.
                if turn.calls.iter().any(|call| {
                    call.call.call_id == *call_id && (call.blocked_run.is_none() || call.has_begun())
                }) {
                    turn.totals.tools_ms += duration_ms;
                }
                if let Some(cwd) = cwd {
                    self.cwd = PathBuf::from(cwd);
                }
                if !reads.is_empty() {
                    let known = Arc::make_mut(&mut self.reads);
                    for read in reads {
                        let read = read.merged_with(known.get(&read.path));
                        known.insert(read.path.clone(), read);
                    }
                }
                if let Some(read) = background_read {
                    self.record_background_read(*read);
                }
                self.tool_completed(*call_id, *status, output, attachments, code.as_ref());
            }
            _ => {}
        }
    }

    fn tool_completed(
        &mut self,
        call_id: CallId,
        status: ToolStatus,
        output: &str,
        attachments: &[Attachment],
        code: Option<&String>,
    ) {
        let Some(turn) = &mut self.turn else { return };
        let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == call_id) else { return };
        call.stage = CallStage::Done {
            output: Arc::from(output),
            is_error: status != ToolStatus::Completed,
            attachments: attachments.to_vec(),
            code: code.cloned(),
        };
        if status == ToolStatus::Denied {
            Arc::make_mut(&mut turn.outcome.denials).push(Denial {
                tool: call.call.tool.clone(),
                call_id,
                input: call.call.input.clone(),
            });
        }
        self.settle_results();
    }

    /// Adds the message with the results once the answer is complete and every call has its result: exactly one
    /// result per call, in call order, directly after the assistant's message.
    pub(super) fn settle_results(&mut self) {
        let Some(turn) =
            self.turn.as_ref().filter(|turn| turn.activity == Activity::Tools && !turn.has_results)
        else {
            return;
        };
        let requested_calls = self.transcript.last().map(|message| calls_of(message)).unwrap_or_default();
        if requested_calls.is_empty()
            || turn.calls.len() != requested_calls.len()
            || !turn.calls.iter().all(CallState::is_done)
        {
            return;
        }
        let results = turn.calls.iter().filter_map(|call| match &call.stage {
            CallStage::Done { output, is_error, attachments, .. } => Some(Block::ToolResult {
                call_id: call.call.call_id,
                provider_id: call.call.provider_id.clone(),
                content: output.to_string(),
                is_error: *is_error,
                attachments: attachments.clone(),
            }),
            _ => None,
        });
        let message = Message::new(Role::User, results.collect());
        self.transcript.push(message);
        if let Some(turn) = &mut self.turn {
            turn.has_results = true;
            turn.repeated = RepeatedCall::after_message(turn.repeated.take(), &turn.calls);
            turn.steps_since_todo += 1;
        }
    }
}

/// The ids of the calls of an answer, in order.
fn calls_of(message: &Message) -> Vec<CallId> {
    let calls = message.content.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call.call_id),
        _ => None,
    });
    calls.collect()
}

fn call_of(message: &Message, call_id: CallId) -> Option<ToolCall> {
    message.content.iter().find_map(|block| match block {
        Block::ToolCall(call) if call.call_id == call_id => Some(call.clone()),
        _ => None,
    })
}

pub(super) fn set_stage(turn: &mut Turn, call_id: CallId, stage: CallStage) {
    if let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == call_id) {
        call.stage = stage;
    }
}
