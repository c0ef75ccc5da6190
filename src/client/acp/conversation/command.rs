//! What the server passes on to a conversation.

use crate::acp::prompt::PromptInput;
use crate::acp::wire::Responder;

/// What the editor wants from a conversation.
pub(in crate::acp) enum Command {
    Prompt {
        responder: Responder,
        input: PromptInput,
        /// The client's idempotency key.
        key: Option<String>,
    },
    Steer {
        responder: Responder,
        input: PromptInput,
        needs_running_turn: bool,
    },
    Cancel,
    /// Cancels the prompt with this id, as the client wrote it.
    CancelPrompt(String),
    /// Cancels the tool call with this id.
    CancelCall {
        responder: Responder,
        call: String,
    },
    /// Cancels the work and ends the conversation.
    Close {
        responder: Responder,
    },
    /// `notes` are for the user.
    Load {
        responder: Responder,
        show: ShowHistory,
        notes: Vec<String>,
    },
    SetMode {
        responder: Responder,
        mode: String,
    },
    SetOption {
        responder: Responder,
        id: String,
        value: String,
    },
}

impl Command {
    /// The duty to reply, if the command has one.
    pub(in crate::acp) fn into_responder(self) -> Option<Responder> {
        match self {
            Self::Prompt { responder, .. }
            | Self::Steer { responder, .. }
            | Self::Load { responder, .. }
            | Self::SetMode { responder, .. }
            | Self::SetOption { responder, .. }
            | Self::CancelCall { responder, .. }
            | Self::Close { responder } => Some(responder),
            Self::Cancel | Self::CancelPrompt(_) => None,
        }
    }
}

/// Whether the history is sent to the editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::acp) enum ShowHistory {
    /// `session/load`, and `session/resume` with `replayFrom`
    Yes,
    /// `session/resume`
    No,
}

/// How a conversation begins.
pub(in crate::acp) enum Opening {
    /// A session that was just created. `notes` are for the user.
    New {
        responder: Responder,
        notes: Vec<String>,
    },
    Existing {
        responder: Responder,
        show: ShowHistory,
        notes: Vec<String>,
    },
}
