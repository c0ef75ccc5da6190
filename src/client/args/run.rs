//! Arguments of `run`.

use std::path::PathBuf;

use clap::Args;

use super::turn_args::TurnArgs;
use super::values::{Output, Thinking};
use crate::connection::environment::EnvironmentArgs;
use crate::connection::input_files::InputFileArgs;

/// Arguments of `run`.
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// The task; without it, or with `-`, standard input is read. One that begins with - comes after `--`
    pub prompt: Option<String>,
    /// Files that are sent with the task.
    #[command(flatten)]
    pub given: InputFileArgs,
    /// Variables of the session's commands.
    #[command(flatten)]
    pub variables: EnvironmentArgs,
    /// Options of the session's turns.
    #[command(flatten)]
    pub turn: TurnArgs,
    /// The folder to work in
    #[arg(short, long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// The title of the session
    #[arg(long)]
    pub title: Option<String>,
    /// Turn every optimisation off, to measure the bare loop
    #[arg(long)]
    pub simple: bool,
    /// The model answers twice; `agentctl feedback` chooses the answer to continue with
    #[arg(long, conflicts_with = "background")]
    pub binary_feedback: bool,
    /// Only plan, and hand the work to sub-agents
    #[arg(long, conflicts_with = "agent")]
    pub coordinator: bool,
    /// Work as this agent (see `agentctl agents`)
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// MCP servers for this session alone, in the form of .mcp.json
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// Whether to show the model's thinking; by default stream-json does
    #[arg(long, value_enum)]
    pub thinking: Option<Thinking>,
    /// Print the session's id and return
    #[arg(short = 'd', long, visible_alias = "detach")]
    pub background: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    /// Print the answer alone: no calls, no notices, no end of the turn
    #[arg(short, long, conflicts_with = "background")]
    pub quiet: bool,
    /// Work in a git worktree of its own, on this branch or on agentd/ID
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub worktree: Option<String>,
    /// Trust the folder's current content and print what trust activates
    #[arg(long)]
    pub trust: bool,
    /// Send the task to the model even if it looks like a slash command or a note, and print the answer's Markdown
    /// as it was written
    #[arg(long)]
    pub raw: bool,
    /// Give the task to the newest session of this folder instead of a new one
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["background", "title", "agent", "coordinator", "simple", "work_dir", "binary_feedback", "worktree"])]
    pub continued: bool,
}
