//! Requests of callers to a session, and the reply to an abort.

use std::collections::BTreeMap;

use crate::idempotency::IdempotencyKey;
use engine::{EditedCall, QueueEdit};
use judge::Rule;
use project::workspace::{Memory, NoteFile};
use types::blob::Blob;
use types::event::Origin;
use types::history::{RewindConflict, RewoundFile};
use types::ids::{CallId, ItemId, QuestionId, TurnId};
use types::message::InputBlock;
use types::permission::Mode;
use types::permission_request::PermissionAnswer;
use types::question::{Choice, UserAnswer};
use types::queue::WhenBusy;
use types::session::SessionSpec;
use types::session_environment::SessionEnvironment;
use types::slash_command::SlashCommand;
use types::turn_options::TurnOptions;

/// The parameters of a submit, except its input.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Policy for a session whose turn is running.
    pub when_busy: Option<WhenBusy>,
    /// Refuse the input unless this turn is the current one.
    pub expected_turn: Option<TurnId>,
    pub options: TurnOptions,
    /// Whether the text goes to the model even if it looks like a command or a note.
    pub raw: bool,
    /// Whether the user's hooks run on the input. They do not run on inputs of the daemon itself.
    pub runs_hooks: bool,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Origin,
}

/// A command or a note whose answer is known.
#[derive(Clone, Debug)]
pub(crate) struct CommandSubmission {
    pub submission: Submission,
    pub command: SlashCommand,
    /// The answer for users.
    pub text: String,
    /// Options of later turns that the command changes.
    pub change: TurnOptions,
    /// A folder to add to the workspace.
    pub add_dir: Option<String>,
    /// Target of a note. The arguments of the command are the note's text.
    pub note: Option<NoteTarget>,
}

/// The target of a note of the user.
#[derive(Clone, Debug)]
pub(crate) enum NoteTarget {
    /// The project instructions.
    Instructions(NoteFile),
    /// The memory of the project, as a note with this name.
    Memory(Memory, String),
}

impl NoteTarget {
    /// Adds the note. Blocks on the disk.
    pub fn add(&self, text: &str) -> Result<(), String> {
        match self {
            NoteTarget::Instructions(file) => file.append(text).map_err(|error| error.to_string()),
            NoteTarget::Memory(memory, name) => {
                memory.write(name, text).map(|_| ()).map_err(|error| error.to_string())
            }
        }
    }
}

impl CommandSubmission {
    /// A command that changes nothing.
    pub fn new(submission: Submission, command: SlashCommand, text: String) -> Self {
        Self { submission, command, text, change: TurnOptions::default(), add_dir: None, note: None }
    }
}

/// Data of a session's task that the session's summary does not contain.
#[derive(Clone, Debug)]
pub(crate) struct SessionFacts {
    /// The current settings.
    pub spec: SessionSpec,
    /// The mode for verdicts.
    pub mode: Mode,
    /// The model of the running turn, or of the next one.
    pub model: String,
}

/// The input of a submit.
#[derive(Clone, Debug)]
pub struct SubmittedInput {
    /// Text, images and documents.
    pub blocks: Vec<InputBlock>,
    /// Content of the images and documents, stored in the transaction of the input.
    pub blobs: Vec<Blob>,
}

/// A call that answers a permission request.
#[derive(Clone, Debug)]
pub struct AnswerRequest {
    pub answer: PermissionAnswer,
    pub grant: Option<Rule>,
    /// Arguments that replace the model's.
    pub updated_input: Option<serde_json::Value>,
    /// The call as prepared with these arguments. The handle prepares it before sending, because
    /// preparing reads files and the session's task must not wait for a file system.
    pub edited: Option<EditedCall>,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Origin,
}

/// Changes of a session. An absent value stays unchanged.
#[derive(Clone, Debug)]
pub struct SettingsUpdate {
    /// Short title.
    pub title: Option<String>,
    /// Options of later turns. Mode, safe mode and folders apply immediately.
    pub options: TurnOptions,
    /// Variables for the commands of the session, in place of all that were sent before.
    pub environment: Option<SessionEnvironment>,
    /// MCP servers of this session alone, in place of those that it has, with the keys of `[mcp.NAME]`. The values may
    /// contain secrets.
    pub mcp_servers: Option<BTreeMap<String, serde_json::Value>>,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Origin,
}

#[derive(Clone, Debug)]
pub struct QueueChange {
    pub edit: QueueEdit,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Origin,
}

/// A rewind of the conversation.
#[derive(Clone, Debug)]
pub struct RewindRequest {
    /// The item that becomes the last one.
    pub item_id: ItemId,
    /// Whether the files that the session changed afterwards are rewound, too.
    pub files: bool,
    /// Whether the request is a dry run, which changes nothing.
    pub dry_run: bool,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Origin,
}

/// The result of a rewind, or of a dry run. With conflicts, a rewind changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RewindOutcome {
    /// The items that were removed, in their order.
    pub removed_items: Vec<ItemId>,
    /// The files that the session changed after the item.
    pub files: Vec<RewoundFile>,
    /// Files that prevent the rewind.
    pub conflicts: Vec<RewindConflict>,
}

/// The answer of a user to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionReply {
    /// One of the question's options.
    Choice(Choice),
    /// The answers to the questions of a model.
    Answers(Vec<UserAnswer>),
    /// The item of the chosen answer, for binary feedback.
    Answer(ItemId),
}

#[derive(Clone, Debug)]
pub struct QuestionAnswer {
    pub request_id: QuestionId,
    /// The user's answer.
    pub reply: QuestionReply,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Origin,
}

/// What changed for loaded sessions: the configuration, or files that extend them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Keys, or kinds of files, that apply from now on.
    pub changed: Vec<String>,
    /// Keys that apply after a restart of the daemon.
    pub needs_restart: Vec<String>,
    /// Paths of the files.
    pub files: Vec<String>,
}

/// How long a shutdown waits for running tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkPatience {
    /// Running tools get a few seconds to finish.
    WaitForTools,
    /// Running tools are stopped at once.
    StopTools,
}

/// The work that an abort stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AbortOutcome {
    /// The turn that was stopped, if any.
    pub turn: Option<TurnId>,
    /// The calls that were stopped.
    pub calls: Vec<CallId>,
    /// Ids of processes that could not be killed.
    pub survivors: Vec<i32>,
}
