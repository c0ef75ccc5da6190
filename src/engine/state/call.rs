//! One tool call and its stage.

use std::sync::Arc;

use crate::state::output_excerpt::OutputExcerpt;
use types::blob::{Attachment, BlobRef};
use types::ids::{ItemId, PermissionId, QuestionId, Seq};
use types::message::ToolCall;
use types::permission::OnTimeout;
use types::question::UserQuestion;
use types::time::Timestamp;
use types::tool::{Blocked, PreparedCall, ToolStatus};

/// The tool that reads the output of background commands.
const BASH_OUTPUT: &str = "BashOutput";

/// One tool call of the current message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallState {
    pub call: Arc<ToolCall>,
    pub item_id: ItemId,
    pub first_seq: Seq,
    /// Arguments of a user that replace the model's.
    pub edited: Option<serde_json::Value>,
    /// The result of the call's first run, if the sandbox blocked that run and a second run was requested.
    pub blocked_run: Option<Arc<FirstRun>>,
    pub stage: CallStage,
}

/// The result of a run that the sandbox blocked. It is the call's result unless a second run replaces it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FirstRun {
    pub blocked: Blocked,
    pub status: ToolStatus,
    pub output: String,
    pub output_blob: Option<BlobRef>,
    pub code: Option<String>,
    pub detail: Option<serde_json::Value>,
    pub duration_ms: u64,
    pub cwd: Option<String>,
}

/// The time at which a request expires, and the action at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub at: Timestamp,
    pub on_timeout: OnTimeout,
}

/// Questions of a call that wait for the user's answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenQuestion {
    pub request_id: QuestionId,
    pub questions: Arc<Vec<UserQuestion>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallStage {
    /// The model requested the call, and the call is not prepared yet.
    Requested,
    /// The call waits for a user's answer to its permission request.
    Awaiting {
        request_id: PermissionId,
        prepared: Arc<PreparedCall>,
        suggestions: Vec<String>,
        deadline: Option<Deadline>,
        /// The deadline of the request has passed, and the request stays pending.
        expired: bool,
        /// The folder and the digest of the request; both are empty in old journals.
        folder: String,
        digest: String,
        /// Whether the call is a command whose parts are all read-only.
        read_only_command: bool,
    },
    /// The call may run once the calls before it are done. `bound` holds the folder and the digest that
    /// the user allowed. `answered` tells whether a user allowed this very call.
    Ready { prepared: Arc<PreparedCall>, allowed_by: String, bound: Option<(String, String)>, answered: bool },
    /// The call runs. `started_seq` identifies its progress rows, and `output` holds an excerpt of its
    /// output. `question` is set while the tool asks the user.
    Running {
        prepared: Arc<PreparedCall>,
        started_seq: Seq,
        output: OutputExcerpt,
        question: Option<OpenQuestion>,
    },
    /// The daemon died while the call ran, and a user decides what to do.
    Unknown { request_id: QuestionId, started_seq: Seq, output: String },
    /// The call's questions wait for the user's answers.
    Asking(OpenQuestion),
    /// The call has its result.
    Done { output: Arc<str>, is_error: bool, attachments: Vec<Attachment>, code: Option<String> },
}

/// Calls in a row that were identical and had identical results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RepeatedCall {
    /// The newest of them.
    pub call: Arc<ToolCall>,
    pub output: Arc<str>,
    pub is_error: bool,
    /// How many they are.
    pub count: u32,
    /// Whether the model was reminded of them.
    pub is_reminded: bool,
}

impl RepeatedCall {
    /// The row of calls after one more call has its result: a longer row, or a new one.
    fn after(before: Option<Self>, call: &Arc<ToolCall>, output: &Arc<str>, is_error: bool) -> Self {
        let is_same = |it: &Self| {
            (&it.call.tool, &it.call.input, &it.call.input_error)
                == (&call.tool, &call.input, &call.input_error)
                && (it.is_error, &it.output) == (is_error, output)
        };
        let before = before.filter(is_same);
        Self {
            call: Arc::clone(call),
            output: Arc::clone(output),
            is_error,
            count: before.as_ref().map_or(0, |it| it.count).saturating_add(1),
            is_reminded: before.is_some_and(|it| it.is_reminded),
        }
    }

    /// The row of calls after the calls of one more message have their results. Waiting for a background command
    /// repeats a call by intention, so it ends the row.
    pub fn after_message(mut row: Option<Self>, calls: &[CallState]) -> Option<Self> {
        for call in calls {
            row = match &call.stage {
                CallStage::Done { output, is_error, .. } if call.call.tool != BASH_OUTPUT => {
                    Some(Self::after(row, &call.call, output, *is_error))
                }
                _ => None,
            };
        }
        row
    }
}

impl CallState {
    /// Whether the run that gives the call its result has started. A run that the sandbox blocked does not count.
    pub fn has_begun(&self) -> bool {
        matches!(self.stage, CallStage::Running { .. } | CallStage::Unknown { .. })
    }

    /// The call's questions that wait for the user's answers.
    pub fn open_question(&self) -> Option<&OpenQuestion> {
        match &self.stage {
            CallStage::Asking(question) | CallStage::Running { question: Some(question), .. } => {
                Some(question)
            }
            _ => None,
        }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, CallStage::Done { .. })
    }

    /// The call with the arguments that run: the user's arguments, if the user changed them.
    pub fn effective_call(&self) -> Arc<ToolCall> {
        match &self.edited {
            Some(input) => {
                Arc::new(ToolCall { input: input.clone(), input_error: None, ..(*self.call).clone() })
            }
            None => Arc::clone(&self.call),
        }
    }
}
