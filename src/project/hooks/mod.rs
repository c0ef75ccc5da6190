//! Hooks. They are commands of the user that run on events of a session, with JSON on standard input and
//! output.
//!
//! - `config`: the daemon's own tables `[[hooks.EVENT]]`, and the hooks of `.claude/settings.json`.
//! - `input`, `output`: the JSON in both forms.
//! - `run`: the process, with its time limit.
//!
//! This folder decides nothing: the session combines the decisions with the rules.

mod config;
mod input;
mod output;
mod run;

pub use config::{Hook, HookForm, claude_hooks, own_hooks};
pub use input::HookInput;
pub use output::{HookAnswer, HookAnswers};
pub use run::{HookEnvironment, run_hooks};
