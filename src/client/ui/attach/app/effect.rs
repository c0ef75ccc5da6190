//! Effects of a key: requests to the daemon or to the terminal.

use crate::ui::editor::Draft;
use api::params::{AnswerParams, ApproveParams, FeedbackParams};
use types::ids::{ItemId, TurnId};
use types::permission::Mode;
use types::queue::WhenBusy;

/// An input for the session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Submission {
    pub(crate) text: String,
    /// How the daemon handles the input while a turn runs.
    pub(crate) when_busy: Option<WhenBusy>,
    /// Shell commands that the user ran before, with their output.
    pub(crate) shell_output: Vec<String>,
    /// The text as it stood in the input line. Its mentions and pictures are attached. Empty if nothing is.
    pub(crate) draft: Draft,
    pub(crate) secrets: SecretFiles,
}

impl Submission {
    /// A text without attachments.
    pub(crate) fn new(text: String, when_busy: Option<WhenBusy>) -> Self {
        Self { text, when_busy, shell_output: Vec::new(), draft: Draft::default(), secrets: SecretFiles::Ask }
    }
}

/// What happens to mentioned files that probably hold secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretFiles {
    /// The user is asked first.
    Ask,
    Send,
    /// Only their names are sent, which are in the text.
    NameOnly,
}

/// An input of the user to which the conversation can be rewound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// The item before the input, which becomes the last one. For the first input, the input's own item.
    pub(crate) item: ItemId,
    /// Whether this is the first input. A rewind to before it removes everything.
    pub(crate) is_first: bool,
    /// The text of the input, which returns to the input line.
    pub(crate) text: String,
}

/// A request to the daemon or to the terminal, or the end of the program.
#[derive(Debug)]
pub(crate) enum Effect {
    Submit(Submission),
    Approve(ApproveParams),
    ApproveAll(Vec<ApproveParams>),
    /// Allow the edit, and set the mode in which edits need no request.
    ApproveAndAcceptEdits(ApproveParams),
    /// Allow the call, and send the model these words with the result.
    ApproveAndSay(ApproveParams, String),
    Answer(AnswerParams),
    Choose(FeedbackParams),
    Abort,
    /// Remove these queued inputs, whose texts are in the input line again, and then stop the turn.
    StopAndDequeue(Vec<TurnId>),
    Detach,
    SetMode(Mode),
    /// Remove a queued input, whose text is in the input line again.
    TakeBack(TurnId),
    /// Run a shell command as the user.
    Shell(String),
    StopShell,
    /// Let the user edit the input line in an editor.
    Edit(String),
    /// Suspend the program, so that the shell has the terminal.
    Suspend,
    LoadFiles,
    /// Read the picture of the clipboard.
    PastePicture,
    /// Read inputs of earlier sessions: the inputs after this cursor, or the newest ones.
    LoadHistory(Option<String>),
    LoadPoints,
    /// Rewind to before an input, perhaps with the files.
    Rewind(Point, bool),
    LoadModels,
    /// Use this model in the session from now on.
    SetModel(String),
    /// Put a text into the clipboard of the terminal.
    Copy(String),
    /// Show all sessions on the alternate screen.
    ShowSessions,
    /// Choose another session to continue.
    PickSession,
    /// Read the omitted part of the conversation.
    LoadEarlier,
}

/// How far the inputs of earlier sessions have been read for the search of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum OlderInputs {
    #[default]
    Unread,
    /// Cursor of older inputs that have not been read yet.
    ReadTo(String),
    Complete,
}
