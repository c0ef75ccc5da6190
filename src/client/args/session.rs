//! Arguments of the commands that change a session, its queue or its history.

use clap::{Args, Subcommand};
use types::queue::WhenBusy;

/// How a running turn receives a submitted input.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(multiple = false)]
pub struct BusyArgs {
    /// Give it to the running turn, with the next tool results
    #[arg(long)]
    pub steer: bool,
    /// Wait for the running turn to end (the default, unless a question is open)
    #[arg(long)]
    pub queue: bool,
    /// Abort the running turn first
    #[arg(long)]
    pub interrupt: bool,
    /// Fail while a turn runs
    #[arg(long)]
    pub reject: bool,
}

impl BusyArgs {
    /// The chosen policy.
    pub fn when_busy(self) -> Option<WhenBusy> {
        let choices = [
            (self.steer, WhenBusy::Steer),
            (self.queue, WhenBusy::Queue),
            (self.interrupt, WhenBusy::Interrupt),
            (self.reject, WhenBusy::Reject),
        ];
        choices.into_iter().find_map(|(is_chosen, policy)| is_chosen.then_some(policy))
    }
}

/// Subcommands of `queue`. A turn is named by its id, a unique start of it, or its place in the list (1, 2 …).
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List the queued inputs
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove all queued inputs
    Clear,
    /// Remove one queued input
    #[command(visible_alias = "rm")]
    Remove {
        /// The queued turn
        turn: String,
    },
    /// Move a queued input; without --before to the end
    Move {
        /// The queued turn
        turn: String,
        /// The queued turn that follows it afterwards
        #[arg(long, value_name = "TURN")]
        before: Option<String>,
    },
    /// Replace the text of a queued input
    Edit {
        /// The queued turn
        turn: String,
        /// The new text; `-` for standard input
        text: String,
    },
}

/// Commands of `worktrees`.
#[derive(Debug, Subcommand)]
pub enum WorktreesCommand {
    /// List the worktrees
    Ls,
    /// Remove worktrees that no session and no job uses; a branch with commits stays
    Rm {
        /// Sessions or jobs
        #[arg(required = true)]
        owners: Vec<String>,
        /// Also with changes that are not committed, which are lost
        #[arg(short, long)]
        force: bool,
    },
}
