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
    /// Options of the turn.
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
    /// Id of the call.
    pub call_id: CallId,
    /// Arguments of a hook that replace the model's. The call was prepared with these arguments.
    pub updated_input: Option<serde_json::Value>,
    /// The prepared call and its verdict, or the result of a call that cannot run.
    pub result: Result<(PreparedCall, Verdict), ToolOutcome>,
}

/// A user's answer to a permission request, with what belongs to it.
#[derive(Clone, Debug)]
pub struct RequestAnswer {
    /// The answer.
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
    /// The items that are removed.
    pub removed_items: Vec<ItemId>,
    /// The engine's state at that item: a replayed copy of the journal up to it, after [`Input::Forked`].
    pub target: Box<Engine>,
    /// The files that were rewound.
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

/// The reason why an input is refused. A refused input adds no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The input is empty.
    EmptyInput,
    /// A turn runs and the caller does not want to wait.
    Busy {
        /// The running turn.
        turn_id: TurnId,
    },
    /// The named turn is not the current one.
    StaleTurn {
        /// The current turn, if one runs.
        current: Option<TurnId>,
    },
    /// The request is not pending.
    NotPending,
    /// The answer does not match the question.
    WrongAnswer(WrongAnswer),
    /// The answer sets a mode but does not approve a plan.
    ModeOfOtherAnswer,
    /// The approval of a plan has a scope other than `once`, or continues plan mode.
    PlanNeedsOtherMode,
    /// The request does not offer this answer.
    NoSuchAnswer,
    /// The client has no user to ask, and `on_timeout = "pause"`: the request stays pending.
    Paused,
    /// There is no unfinished call with this id.
    NoSuchCall,
    /// The session was killed.
    Ended,
    /// The session has used up the limits that the submit names.
    Budget(String),
    /// The session is archived.
    Archived,
    /// The session still has running background commands.
    CommandsRun,
    /// This turn is not queued.
    NotQueued {
        /// Id of the turn.
        turn_id: TurnId,
    },
    /// The answer asks for a grant, but none can be derived from the request.
    NoGrant,
    /// The client saw a different request than the pending one.
    OtherRequest,
    /// Steering input may not set a mode.
    ModeOfSteer,
    /// Steering input may not set a model.
    ModelOfSteer,
    /// Steering input may not set thinking, because it never changes during a turn.
    ThinkingOfSteer,
    /// Steering input may not set tools, because the running turn has its own.
    ToolsOfSteer,
    /// Steering input may not set a temperature or `top_p`.
    SamplingOfSteer,
    /// A slash command starts a turn of its own.
    CommandOfSteer,
    /// Steering input may not set this option, because the running turn has its own.
    OptionOfSteer(&'static str),
    /// This session has no such rule.
    NoSuchRule,
    /// The edited call runs a command again outside the sandbox. Such a command must stay unchanged,
    /// and may be allowed only once or with its own grant for the session.
    RetryMustBeUnchanged,
}
