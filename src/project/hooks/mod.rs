//! Hooks. They are commands of the user that run on events of a session, with JSON on standard input and
//! output.
//!
//! - `files`: reads the files; `text` decodes them.
//! - `own`, `claude`: the daemon's own tables `[[hooks.EVENT]]`, and the hooks of `.claude/settings.json`.
//! - `config`: a hook, and an entry that cannot be used. An entry of `pre_tool_use` that is not understood makes
//!   its calls ask.
//! - `matcher`, `condition`: the calls that an entry is for.
//! - `input`, `output`: the JSON in both forms.
//! - `run`: the process, with its time limit.
//!
//! This folder decides nothing: the session combines the decisions with the rules.

mod answers;
mod claude;
mod condition;
mod config;
mod files;
mod input;
mod matcher;
mod output;
mod own;
mod run;
mod text;

pub use answers::HookAnswers;
pub use condition::CallTarget;
pub use config::{Hook, HookFile, HookForm, HookProblem, OnFailure, ProblemEffect};
pub use files::{HookSource, read_hook_file, read_hook_files};
pub use input::{CallInput, CallOutput, HookInput};
pub use output::HookAnswer;
pub use own::{ConfiguredHooks, configured_hooks};
pub use run::{HookEnvironment, HookRunInput, run_hooks};
