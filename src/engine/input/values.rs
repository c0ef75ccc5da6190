//! Values of inputs, and the reasons why the engine refuses an input.

use crate::state::Engine;
use types::blob::Blob;
use types::event::{Origin, Purpose};
use types::history::RewoundFile;
use types::ids::{CallId, ItemId, Mint, PermissionId, Seed, Seq, TurnId};
use types::message::InputBlock;
use types::permission::Verdict;
use types::permission_request::PermissionAnswer;
use types::question::WrongAnswer;
use types::queue::WhenBusy;
use types::slash_command::SlashCommand;
use types::time::Timestamp;
use types::tool::{PreparedCall, ToolOutcome};
use types::turn_options::TurnOptions;
use types::usage::{ModelSnapshot, Usage};

/// Time and randomness of one decision. `decide` takes both as an argument and computes ids from them,
/// so it is a pure function.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Time of the decision; its events carry it.
    pub at: Timestamp,
    /// Seed of the ids and random values of the decision.
    pub seed: Seed,
}

impl Now {
    pub(crate) fn mint(&self) -> Mint {
        Mint::new(self.at.0, self.seed)
    }
}

/// A request to work on an input.
#[derive(Clone, Debug)]
pub struct SubmitRequest {
    /// Text, pictures and documents; must not be empty.
    pub input: Vec<InputBlock>,
    /// Contents of the pictures and documents of `input`.
    pub blobs: Vec<Blob>,
    /// Action if a turn is running. By default the input is queued, but if a question is open, it is settled by
    /// continuing.
    pub when_busy: Option<WhenBusy>,
    /// Refuse unless this is the current turn.
    pub expected_turn: Option<TurnId>,
    pub options: TurnOptions,
    /// The client that submits.
    pub origin: Option<Origin>,
}

/// A slash command or a note that the daemon answers without a model.
#[derive(Clone, Debug)]
pub struct AnsweredCommand {
    /// The command; its name is `#` for a note.
    pub command: SlashCommand,
    /// The answer for users.
    pub text: String,
    /// The change of the session that the command requests.
    pub change: Option<Box<SessionUpdate>>,
    /// With [`WhenBusy::Reject`], refuse the command while a turn runs. With any other policy, answer it at once.
    pub when_busy: Option<WhenBusy>,
    /// Refuse unless this is the current turn.
    pub expected_turn: Option<TurnId>,
    /// The client that submits.
    pub origin: Option<Origin>,
}

/// A prepared call with its verdict, or the reason why it cannot run.
#[derive(Clone, Debug)]
pub struct JudgedCall {
    pub call_id: CallId,
    /// Arguments of a hook that replace the model's. The call was prepared with these arguments.
    pub updated_input: Option<serde_json::Value>,
    /// The prepared call and its verdict, or the result of a call that cannot run.
    pub result: Result<(PreparedCall, Verdict), ToolOutcome>,
}

/// A user's answer to a permission request, with what belongs to it.
#[derive(Clone, Debug)]
pub struct RequestAnswer {
    pub answer: PermissionAnswer,
    /// Arguments that replace the model's, prepared and judged before. Never present with a denial.
    pub edited: Option<EditedCall>,
    /// The client that answered.
    pub origin: Option<Origin>,
}

/// Arguments of a user that replace the model's.
#[derive(Clone, Debug)]
pub struct EditedCall {
    /// The new arguments.
    pub input: serde_json::Value,
    /// The call as prepared with the new arguments.
    pub prepared: PreparedCall,
}

/// Changes of a session. An absent value stays unchanged.
#[derive(Clone, Debug, Default)]
pub struct SessionUpdate {
    /// Short name of the session.
    pub title: Option<String>,
    /// Options of later turns. Mode, safe mode and folders also apply to the running turn.
    pub options: TurnOptions,
    /// Pending requests that the new mode allows, each with the reason.
    pub covered: Vec<(PermissionId, String)>,
    /// The client that requests the change.
    pub origin: Option<Origin>,
}

/// The usage of a model call that the daemon made outside the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct OutsideUsage {
    /// What the call was for.
    pub purpose: Purpose,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Tokens of the call.
    pub usage: Usage,
    /// Cost of the call in millionths of a dollar; `None` if the price is unknown.
    pub cost_usd_micros: Option<u64>,
    /// Limits and price of the model.
    pub model_snapshot: ModelSnapshot,
    /// Whether the call failed although the provider may charge for it.
    pub is_lost: bool,
}

/// A rewind of the conversation.
#[derive(Clone, Debug)]
pub struct Rewind {
    /// The item that becomes the last one.
    pub item_id: ItemId,
    /// Seq of the event that opened the item.
    pub last_item_seq: Seq,
    pub removed_items: Vec<ItemId>,
    /// The engine's state at that item: a replayed copy of the journal up to it, after [`Input::Forked`].
    pub target: Box<Engine>,
    pub files: Vec<RewoundFile>,
    /// The client that requests the rewind.
    pub origin: Option<Origin>,
}

/// A change of the queue.
#[derive(Clone, Debug)]
pub enum QueueEdit {
    /// Remove all queued turns.
    Clear,
    /// Remove one queued turn.
    Remove {
        /// The queued turn.
        turn_id: TurnId,
    },
    /// Replace the input of a queued turn.
    Update {
        /// The queued turn.
        turn_id: TurnId,
        /// The new input; must not be empty.
        input: Vec<InputBlock>,
        /// Contents of the pictures and documents of `input`.
        blobs: Vec<Blob>,
    },
    /// Move a queued turn.
    Move {
        /// The queued turn.
        turn_id: TurnId,
        /// The queued turn that follows it afterwards; `None` moves it to the end.
        before: Option<TurnId>,
    },
}

/// The reason why an input is refused. A refused input adds no event. `Display` tells the caller how to correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("input: there is no text in it")]
    EmptyInput,
    /// A turn runs and the caller does not want to wait.
    #[error("a turn is running: wait, abort it, or submit with when_busy queue")]
    Busy { turn_id: TurnId },
    /// The named turn is not the current one.
    #[error("that turn is not the current one")]
    StaleTurn { current: Option<TurnId> },
    #[error("the request is not pending any more")]
    NotPending,
    /// The answer does not match the question.
    #[error("{}: {}", .0.path, .0.why)]
    WrongAnswer(WrongAnswer),
    #[error("mode: goes with decision allow of a request of kind plan only")]
    ModeOfOtherAnswer,
    /// The approval of a plan has a scope other than `once`, or continues plan mode.
    #[error("mode: a plan is approved once, with a mode other than plan; deny it to stay in plan mode")]
    PlanNeedsOtherMode,
    #[error("item_id: the request does not offer this answer; choose one of its item_ids")]
    NoSuchAnswer,
    /// The client has no user to ask, and the request stays pending.
    #[error("no_approver: on_timeout = \"pause\" holds: the request waits until a user answers it")]
    Paused,
    #[error("the running turn has no such tool call")]
    NoSuchCall,
    #[error("the session was killed and takes no more input; create a new one")]
    Ended,
    /// The session has used up the limits that the submit names.
    #[error("budgets: {0}; name a higher limit")]
    Budget(String),
    #[error(
        "the session is archived and takes no input; restore it with session.archive {{archived: false}} \
         (agentctl archive --undo)"
    )]
    Archived,
    #[error(
        "commands of the session run in the background: stop them (session.abort with their call_id), or wait"
    )]
    CommandsRun,
    #[error(
        "that turn is not queued: it has started, was removed, or never existed; session.queue.list names the \
         queued turns"
    )]
    NotQueued { turn_id: TurnId },
    /// The answer asks for a grant, but none can be derived from the request.
    #[error("grant: no grant can be derived from this request; name one, or allow it once")]
    NoGrant,
    #[error("digest: the request that is pending is not the one that was seen; look at it again")]
    OtherRequest,
    #[error("mode: this input joins the running turn, whose mode session.update changes")]
    ModeOfSteer,
    #[error("model: this input joins the running turn, which has its model; let it wait (when_busy: queue)")]
    ModelOfSteer,
    #[error(
        "thinking: this input joins the running turn, where it never changes; session.update sets it for the turns \
         to come"
    )]
    ThinkingOfSteer,
    #[error("tools: this input joins the running turn, which has its tools; let it wait (when_busy: queue)")]
    ToolsOfSteer,
    #[error(
        "temperature, top_p: this input joins the running turn, where they never change; session.update sets them \
         for the turns to come"
    )]
    SamplingOfSteer,
    #[error("input: a slash command starts a turn of its own; let it wait (when_busy: queue)")]
    CommandOfSteer,
    /// The value is the name of the option.
    #[error("{0}: this input joins the running turn, which has its options; let it wait (when_busy: queue)")]
    OptionOfSteer(&'static str),
    #[error("there is no such rule there; permission.rules lists them")]
    NoSuchRule,
    /// The edited call runs a command again outside the sandbox.
    #[error(
        "this request is about running the same command again outside the sandbox: it takes deny, or allow once or \
         for the session, with the arguments as they are and no other grant than the suggested one"
    )]
    RetryMustBeUnchanged,
}

impl Refusal {
    /// The parameter that is wrong.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        Some(match self {
            Refusal::EmptyInput | Refusal::CommandOfSteer => "input",
            Refusal::WrongAnswer(answer) => &answer.path,
            Refusal::ModeOfOtherAnswer | Refusal::PlanNeedsOtherMode | Refusal::ModeOfSteer => "mode",
            Refusal::NoSuchAnswer => "item_id",
            Refusal::Paused => "no_approver",
            Refusal::Budget(_) => "budgets",
            Refusal::NoGrant => "grant",
            Refusal::OtherRequest => "digest",
            Refusal::ModelOfSteer => "model",
            Refusal::ThinkingOfSteer => "thinking",
            Refusal::ToolsOfSteer => "tools",
            Refusal::SamplingOfSteer => "temperature",
            Refusal::OptionOfSteer(name) => name,
            Refusal::RetryMustBeUnchanged => "scope",
            Refusal::Busy { .. }
            | Refusal::StaleTurn { .. }
            | Refusal::NotPending
            | Refusal::NoSuchCall
            | Refusal::Ended
            | Refusal::Archived
            | Refusal::CommandsRun
            | Refusal::NotQueued { .. }
            | Refusal::NoSuchRule => return None,
        })
    }
}
