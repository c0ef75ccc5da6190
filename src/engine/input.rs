//! Everything that can happen to a session.

use crate::types::background::Over;
use crate::types::blob::Blob;
use crate::types::event::{Origin, SettledBy};
use crate::types::ids::{CallId, Mint, PermissionId, QuestionId, Seed, Seq, TurnId};
use crate::types::message::InputBlock;
use crate::types::model::{Delta, ModelFault, ModelReply};
use crate::types::permission::{Decision, Mode, RuleKind, Scope, Verdict};
use crate::types::question::Choice;
use crate::types::sampling::Sampling;
use crate::types::session::Untrusted;
use crate::types::thinking::Thinking;
use crate::types::time::Timestamp;
use crate::types::tool::{Inspection, PreparedCall, Progress, ToolChoice, ToolOutcome};
use crate::types::usage::{Budgets, ModelSnapshot};

/// Time and randomness of one decision.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time.
    pub at: Timestamp,
    /// The randomness.
    pub seed: Seed,
}

impl Now {
    pub(super) fn mint(&self) -> Mint {
        Mint::new(self.at.0, self.seed)
    }
}

/// A submit.
#[derive(Clone, Debug)]
pub struct Submit {
    /// What to do.
    pub input: Vec<InputBlock>,
    /// Contents of the pictures and documents of `input`.
    pub blobs: Vec<Blob>,
    /// What to do with it while a turn runs.
    pub when_busy: Busy,
    /// Refuse unless this is the current turn.
    pub expected_turn: Option<TurnId>,
    /// Limits of the turn, if not the session's.
    pub budgets: Option<Budgets>,
    /// Approval mode of the turn, if not the session's.
    pub mode: Option<Mode>,
    /// Model of the turn, if not the session's.
    pub model: Option<String>,
    /// How much the model may think in this turn, if not as the session says.
    pub thinking: Option<Thinking>,
    /// Which tools the turn offers, if not the session's.
    pub tools: Option<ToolChoice>,
    /// How freely it chooses its words in this turn; where it says nothing, as the session says.
    pub sampling: Sampling,
    /// Who submits.
    pub origin: Option<Origin>,
}

/// What a submit does while a turn runs (Q6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Busy {
    /// The caller did not say: wait, but if a question is open, answer it by going on (S7).
    #[default]
    Unspecified,
    /// Wait.
    Queue,
    /// Join the running turn.
    Steer,
    /// Abort the running turn first.
    Interrupt,
    /// Refuse.
    Reject,
}

/// A prepared call and what the rules say of it; or why it cannot run at all.
#[derive(Clone, Debug)]
pub struct JudgedCall {
    /// The call.
    pub call_id: CallId,
    /// What it would do and whether it may.
    pub result: Result<(PreparedCall, Verdict), ToolOutcome>,
}

/// A person's answer to a permission request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The request.
    pub request_id: PermissionId,
    /// Allow or deny.
    pub decision: Decision,
    /// For how long.
    pub scope: Scope,
    /// The grant to remember, with scopes `session` and `project`.
    pub grant: Option<String>,
    /// Words for the model.
    pub feedback: Option<String>,
    /// Whether the turn ends with this denial.
    pub stop: bool,
    /// Whether this denial says that there is nobody to ask: what `on_timeout` says holds at once.
    pub nobody: bool,
    /// Other arguments than the model's, looked at and judged before: not denied.
    pub edited: Option<EditedCall>,
    /// What the person saw: refused if the request is another one.
    pub digest: Option<String>,
    /// Who answered.
    pub origin: Option<Origin>,
}

/// Arguments that a person put in the place of the model's.
#[derive(Clone, Debug)]
pub struct EditedCall {
    /// The arguments.
    pub input: serde_json::Value,
    /// What the call would do with them.
    pub prepared: PreparedCall,
}

/// What of a session is to change. What is absent stays.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// Short name.
    pub title: Option<String>,
    /// Approval mode, of the running turn as well.
    pub mode: Option<Mode>,
    /// Limits of turns to come.
    pub budgets: Option<Budgets>,
    /// Model of turns to come.
    pub model: Option<String>,
    /// Tools of turns to come.
    pub tools: Option<ToolChoice>,
    /// All further folders that count as workspace.
    pub additional_dirs: Option<Vec<String>>,
    /// How much models may think in turns to come.
    pub thinking: Option<Thinking>,
    /// How freely models choose their words in turns to come.
    pub sampling: Sampling,
    /// Pending requests that the new mode lets pass, with the reason.
    pub covered: Vec<(PermissionId, String)>,
    /// Who wants it.
    pub origin: Option<Origin>,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// Somebody wants something done.
    Submit(Submit),
    /// The system prompt is put together.
    ContextReady {
        /// The whole of it.
        system: String,
        /// Where its parts came from.
        sources: Vec<String>,
        /// What of the workspace waits for trust, if anything does.
        untrusted: Option<Untrusted>,
    },
    /// A look at the workspace found what waits for trust.
    Untrusted(Untrusted),
    /// The model said more. `token` is the one of the effect that asked it.
    Deltas {
        /// Of [`super::Effect::CallModel`].
        token: Seq,
        /// In order.
        deltas: Vec<Delta>,
    },
    /// The model's answer is whole.
    ModelDone {
        /// Of [`super::Effect::CallModel`].
        token: Seq,
        /// The answer.
        reply: Box<ModelReply>,
        /// What it cost, if the price is known.
        cost_usd_micros: Option<u64>,
        /// What is known of the model.
        terms: ModelSnapshot,
        /// How long it took.
        duration_ms: u64,
    },
    /// The model call failed.
    ModelFailed {
        /// Of [`super::Effect::CallModel`].
        token: Seq,
        /// Why.
        fault: ModelFault,
        /// What is known of the model.
        terms: ModelSnapshot,
        /// How long it took.
        duration_ms: u64,
    },
    /// A helper's call came to its end.
    HelperDone {
        /// Of [`super::Effect::AskHelper`].
        token: Seq,
        /// The answer, or why there is none.
        outcome: Box<Result<ModelReply, ModelFault>>,
        /// Whether an answer began: it may be charged for.
        began: bool,
        /// How long it took.
        duration_ms: u64,
    },
    /// A wait is over.
    TimerFired {
        /// Of [`super::Effect::Sleep`].
        token: Seq,
    },
    /// All calls of a message were looked at and judged.
    Prepared {
        /// The turn.
        turn_id: TurnId,
        /// The mode that they were judged in.
        mode: Mode,
        /// In call order.
        calls: Vec<JudgedCall>,
    },
    /// A running tool said something.
    Progress {
        /// The call.
        call_id: CallId,
        /// What.
        progress: Progress,
    },
    /// A tool ended.
    ToolDone {
        /// The call.
        call_id: CallId,
        /// How.
        outcome: Box<ToolOutcome>,
        /// How long it took.
        duration_ms: u64,
    },
    /// A background command is over.
    CommandOver {
        /// The call that started it.
        call_id: CallId,
        /// How.
        over: Box<Over>,
    },
    /// A person answered a permission request.
    Answer(Box<Answer>),
    /// Rules let a pending request pass.
    AllowedByRule {
        /// The request.
        request_id: PermissionId,
        /// What changed: [`SettledBy::Rule`] or [`SettledBy::Mode`].
        by: SettledBy,
        /// The rule or the reason.
        rule: String,
    },
    /// Title, mode or limits are to change.
    Update(Box<Update>),
    /// A rule of this session is added or taken back.
    Rule {
        /// Added, or taken back.
        add: bool,
        /// What it says.
        kind: RuleKind,
        /// The rule.
        rule: String,
        /// Who wants it.
        origin: Option<Origin>,
    },
    /// The deadline of a request may have passed.
    DeadlineReached,
    /// Something that people should know.
    Notice {
        /// A stable word.
        kind: String,
        /// The text.
        text: String,
    },
    /// A person answered a question.
    AnswerQuestion {
        /// The question.
        request_id: QuestionId,
        /// What is to be done.
        choice: Choice,
        /// Who answered.
        origin: Option<Origin>,
    },
    /// The file that an interrupted call was to change was looked at.
    Inspected {
        /// The call.
        call_id: CallId,
        /// What the file says.
        inspection: Inspection,
    },
    /// Stop the turn, or one call of it.
    Abort {
        /// Only if this is the current turn.
        turn_id: Option<TurnId>,
        /// Only this call.
        call_id: Option<CallId>,
        /// Who wants it.
        origin: Option<Origin>,
    },
    /// Stop the turn and end the session.
    Kill {
        /// Who wants it.
        origin: Option<Origin>,
    },
    /// After an abort: nothing of the turn runs any more.
    Stopped {
        /// What is known of the turn's model.
        terms: ModelSnapshot,
    },
    /// A client attached; `clients` are there now.
    Attached {
        /// How many.
        clients: u32,
        /// Who.
        origin: Option<Origin>,
    },
    /// A client detached; `clients` are there now.
    Detached {
        /// How many.
        clients: u32,
        /// Who.
        origin: Option<Origin>,
    },
    /// The configuration was read again.
    Reloaded {
        /// Keys that count from now on.
        changed: Vec<String>,
        /// Keys that count after a restart.
        needs_restart: Vec<String>,
    },
    /// The daemon stops in good order; nothing of the session runs any more.
    Parked {
        /// A helper's call was under way and was dropped.
        helped: bool,
    },
    /// The session was loaded after a restart; nothing of it runs.
    Recovered(Recovery),
}

/// What recovery has to know beside the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recovery {
    /// What is known of the turn's model.
    pub terms: ModelSnapshot,
}

/// Why an input is refused; it leaves no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is nothing in the input.
    EmptyInput,
    /// A turn runs and the caller does not want to wait.
    Busy {
        /// The turn.
        turn_id: TurnId,
    },
    /// Another turn is current, or none.
    StaleTurn {
        /// The current one.
        current: Option<TurnId>,
    },
    /// The request is not pending.
    NotPending,
    /// There is nobody to ask, and `on_timeout = "pause"`: the request waits on.
    Paused,
    /// There is no such unfinished call.
    NoSuchCall,
    /// The session was killed.
    Ended,
    /// A grant was wanted, and none can be derived from the request.
    NoGrant,
    /// The caller saw another request than the one that is pending.
    OtherRequest,
    /// A mode was named for an input that joins the running turn.
    ModeOfSteer,
    /// A model was named for an input that joins the running turn.
    ModelOfSteer,
    /// Thinking was named for an input that joins the running turn, where it never changes.
    ThinkingOfSteer,
    /// Tools were named for an input that joins the running turn, which has its own.
    ToolsOfSteer,
    /// A temperature or a share was named for an input that joins the running turn.
    SamplingOfSteer,
    /// There is no such rule in this session.
    NoSuchRule,
    /// A command that the sandbox stopped may run again outside as it was, once or under its own grant of
    /// the session; something else was wanted.
    RetryMustBeUnchanged,
}
