//! Background tasks: they belong to the session, not to the turn that started them. The journal records the
//! start and the end of each.

use crate::state::output_excerpt::OutputExcerpt;
use types::background::{BackgroundCommand, BackgroundState};
use types::ids::{ItemId, Seq, TurnId};

/// State of one background task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackgroundTask {
    pub known: BackgroundCommand,
    /// The turn and the item of the call that started it.
    pub turn_id: Option<TurnId>,
    pub item_id: Option<ItemId>,
    /// Seq of the event that started the task. The progress rows of the task belong to that event.
    pub opened: Seq,
    /// Output of the task while it runs.
    pub output: OutputExcerpt,
}

impl BackgroundTask {
    pub fn is_running(&self) -> bool {
        self.known.state == BackgroundState::Running
    }
}
