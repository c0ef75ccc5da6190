//! The input line: its text, what becomes of the text, and what the next key does.

use crate::terminal::style::StyledLine;
use crate::ui::attach::app::completion::Menu;
use crate::ui::attach::app::{Effect, OlderInputs, Submission};
use crate::ui::editor::Editor;
use crate::ui::request_list::ListEntry;
use types::ids::PermissionId;
use types::slash_command::CommandView;

#[derive(Default)]
pub(in crate::ui::attach) struct InputLine {
    pub(in crate::ui::attach) editor: Editor,
    pub(in crate::ui::attach) content: LineContent,
    pub(super) next_key: NextKey,
    /// The draft, while the user answers a question or request.
    pub(super) set_aside: String,
    pub(super) menu: Option<Menu>,
    /// The slash commands of the session, once they are known.
    pub(super) commands: Option<Vec<CommandView>>,
    /// The files of the session's folder, once they are known.
    pub(super) files: Option<Vec<String>>,
    pub(super) older_inputs: OlderInputs,
}

/// What the text of the line becomes when it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ui::attach) enum LineContent {
    /// An input for the session, or the answer to a question.
    #[default]
    Input,
    /// Words that are sent with this answer to a request.
    Words(PermissionId, ListEntry),
    /// The arguments of this request.
    Arguments(PermissionId),
}

impl LineContent {
    /// The request that the text belongs to.
    pub(super) fn request(self) -> Option<PermissionId> {
        match self {
            Self::Input => None,
            Self::Words(id, _) | Self::Arguments(id) => Some(id),
        }
    }
}

/// What the next key does, because of what happened before it.
#[derive(Debug, Default)]
pub(super) enum NextKey {
    /// It acts as usual.
    #[default]
    Usual,
    /// After Ctrl-B: `d` detaches.
    Detaches,
    /// After Esc on an empty line: Esc offers earlier inputs to rewind to.
    Rewinds,
    /// After Ctrl-C on an empty line, or while a turn stops: Ctrl-C leaves.
    Leaves,
    /// After a stop, while an input has no answer: Enter on the empty line asks for it.
    AsksForAnswer,
    /// Enter confirms the answer to a question.
    Confirms(UnconfirmedAnswer),
    /// It chooses the place of this note.
    PlacesNote(String),
    /// It decides whether the likely secrets that this input mentions are sent.
    DecidesSecrets(Submission),
    /// The line is a single key that was typed before the request accepted keys. If no other key
    /// follows, the key was meant as an answer and is dropped.
    FollowsEarlyKey,
}

/// An answer that waits for its confirmation.
#[derive(Debug)]
pub(super) struct UnconfirmedAnswer {
    pub(super) key: char,
    pub(super) effect: Effect,
    /// The line that is shown instead of the keys.
    pub(super) line: StyledLine,
}

impl InputLine {
    /// Sets the draft aside, because the line is needed for something else.
    pub(super) fn set_draft_aside(&mut self) {
        self.set_aside.push_str(&self.editor.take_draft());
    }

    /// Brings back the draft that was set aside.
    pub(super) fn restore_draft(&mut self) {
        self.editor.clear();
        self.editor.insert(&std::mem::take(&mut self.set_aside));
    }

    /// Goes back to what the key does as usual, if it would confirm an answer.
    pub(super) fn drop_confirmation(&mut self) {
        if matches!(self.next_key, NextKey::Confirms(_)) {
            self.next_key = NextKey::Usual;
        }
    }

    /// Whether typed text belongs to a request.
    pub(super) fn is_for_request(&self) -> bool {
        self.content != LineContent::Input
    }
}
