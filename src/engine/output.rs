//! The output of the engine: a decision with its events in order, the effects to run once the events are on
//! disk, and the reply to the caller.

use std::sync::Arc;

use crate::state::Engine;
use types::background::KilledBy;
use types::blob::Blob;
use types::event::Envelope;
use types::ids::{CallId, RequestId, Seq, SessionId, TurnId};
use types::message::ToolCall;
use types::model::ModelRequest;
use types::outcome::{AnswerOutcome, SubmitOutcome};
use types::question::UserAnswer;
use types::session::{ItemKind, ItemStatus};
use types::tool::PreparedCall;
use types::usage::Budgets;

/// The result of one input. The decision has no effect before the session commits it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The events to write and the effects to run.
    pub plan: Plan,
    /// The engine after the events of the plan.
    pub next: Engine,
    /// The reply to the caller, once the plan is committed.
    pub reply: Reply,
}

/// The reply to the caller of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reply {
    /// The input was accepted; there is nothing else to report.
    #[default]
    Accepted,
    /// To [`super::Input::Submit`].
    Submitted(SubmitOutcome),
    /// To [`super::Input::Answer`].
    Answered(AnswerOutcome),
    /// To [`super::Input::AnswerQuestion`]: seq of the event that recorded the answer.
    QuestionAnswered(Seq),
}

/// One event with the data that the journal needs about it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedEvent {
    /// The event with its seq.
    pub envelope: Envelope,
    /// For deltas: seq of the event that opened their item; the delta is pruned when the item completes.
    pub delta_of: Option<Seq>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemChange {
    /// Seq of the event that opened the item.
    pub first_seq: Seq,
    /// Seq of the item's newest permanent event.
    pub last_seq: Seq,
    pub kind: ItemKind,
    /// Status after this change.
    pub status: ItemStatus,
}

/// A change of a permission request or a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestChange {
    /// Id of the permission request or question.
    pub request_id: RequestId,
    /// Seq of the event that changed it.
    pub seq: Seq,
    /// `false` when raised, `true` when settled.
    pub settled: bool,
}

/// Work that the engine requests from the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Build the system prompt; answer with `ContextReady`.
    GatherContext,
    /// Compare read files and project instructions with the disk; answer with `ContextChecked`.
    CheckContext {
        /// The turn that waits for the check. The answer returns this id.
        turn_id: TurnId,
    },
    /// Call the model; answer with `Deltas`, then `ModelDone` or `ModelFailed`.
    CallModel {
        /// Identifies the call. Each answer returns the token.
        token: Seq,
        /// The messages and settings to send to the model.
        request: Box<ModelRequest>,
    },
    /// Call a model outside the turn; answer with `HelperDone`. No turn waits for it, and only the end of the
    /// session or of the daemon stops it.
    AskHelper {
        /// Identifies the call. The answer returns the token.
        token: Seq,
        /// The messages and settings to send to the model.
        request: Box<ModelRequest>,
    },
    /// Wait, then answer with `TimerFired`.
    Sleep {
        /// Identifies the wait. The answer returns the token.
        token: Seq,
        /// Duration, in milliseconds.
        delay_ms: u64,
    },
    /// Prepare the calls without running them, judge them, answer with `Prepared`.
    Prepare {
        /// The turn that made the calls.
        turn_id: TurnId,
        /// The calls, in call order.
        calls: Vec<Arc<ToolCall>>,
    },
    /// Judge calls again that waited after their verdict; answer with `RulesChecked`.
    CheckRules {
        /// The turn that made the calls.
        turn_id: TurnId,
        /// The calls with the arguments that would run, and the prepared calls that were judged.
        calls: Vec<(Arc<ToolCall>, Arc<PreparedCall>)>,
    },
    /// Run a call; answer with `Progress` and `ToolDone`.
    RunTool {
        /// The call, with a user's arguments if the user changed them.
        call: Arc<ToolCall>,
        /// The prepared call that was judged.
        prepared: Arc<PreparedCall>,
    },
    /// Create the session of a sub-agent if it does not exist, submit the prompt of the call, and
    /// follow the session. Answer with `Progress`, `SubagentEvent` and `SubagentDone`.
    RunSubagent {
        /// The `Task` call.
        call: Arc<ToolCall>,
        /// The prepared call that was judged.
        prepared: Arc<PreparedCall>,
        /// Id of the sub-agent's session.
        child_session_id: SessionId,
        /// Name of the agent.
        agent: String,
        /// Limits of the sub-agent's session.
        budgets: Budgets,
    },
    /// Give the user's answers to a running tool that asked for them.
    AnswerTool {
        call_id: CallId,
        /// One answer for each question; `None` if no user can answer.
        answers: Option<Vec<UserAnswer>>,
    },
    /// Follow a sub-agent that exists, after a restart; answer with `SubagentEvent` and `SubagentDone`.
    FollowSubagent {
        /// Id of the `Task` call.
        call_id: CallId,
        /// Id of the sub-agent's session.
        child_session_id: SessionId,
    },
    /// Kill all sub-agents; each `SubagentDone` is the answer.
    StopSubagents,
    /// Check the file that an interrupted call was to change, and remove its temporary files; answer with
    /// `Inspected`.
    Inspect {
        /// The interrupted call.
        call: Arc<ToolCall>,
        /// The prepared call that was judged.
        prepared: Arc<PreparedCall>,
    },
    /// Stop all effects of the turn; answer with `Stopped` when none runs.
    StopAll,
    /// Stop one running call; its `ToolDone` is the answer.
    StopCall(CallId),
    /// Stop background commands, each identified by the call that started it. Answer with one
    /// `CommandOver` for each.
    StopCommands {
        /// Calls that started the commands.
        calls: Vec<CallId>,
        /// The reason of the stop.
        by: KilledBy,
    },
}

impl Effect {
    /// Whether the effect starts work. All other effects stop work.
    #[must_use]
    pub fn does_work(&self) -> bool {
        !matches!(
            self,
            Effect::StopAll | Effect::StopCall(_) | Effect::StopCommands { .. } | Effect::StopSubagents
        )
    }
}

/// The events and effects of a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Events, in order.
    pub events: Vec<PlannedEvent>,
    /// Seqs of opening events whose deltas are pruned.
    pub prune_deltas_of: Vec<Seq>,
    /// Item changes.
    pub items: Vec<ItemChange>,
    /// Changes of permission requests and questions, for the summaries of the journal.
    pub requests: Vec<RequestChange>,
    /// Contents that the events refer to.
    pub blobs: Vec<Blob>,
    /// Effects, in order.
    pub effects: Vec<Effect>,
}

impl Plan {
    /// Whether the plan only continues streamed text or output. Such a plan settles nothing: it has no
    /// effects, and its events need no disk sync.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let streams = |entry: &PlannedEvent| entry.delta_of.is_some();
        self.effects.is_empty() && !self.events.is_empty() && self.events.iter().all(streams)
    }
}
