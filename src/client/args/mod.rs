//! The command line of `agentctl`: commands, options and help texts.

mod commands;
mod daemon;
mod help;
mod host;
mod job_content;
mod jobs;
mod knowledge;
mod listing;
mod mcp;
mod rules;
mod run;
mod schedules;
mod session;
mod turn_args;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::connection::environment::EnvironmentArgs;
pub use commands::Command;
pub use daemon::{ConfigCommand, ConfigShowArgs, DaemonCommand, MemoryCommand};
pub use help::command;
pub use host::{AcpArgs, HostCommand};
pub use job_content::JobContentArgs;
pub use jobs::{JobAddArgs, JobListArgs, JobsArgs, JobsCommand};
pub use knowledge::{GraphArgs, GraphChange, GraphEdit, IndexArgs, KnowledgeCommand, QueryArgs};
pub use listing::{CostArgs, EventsArgs, InspectArgs, LogsArgs, PruneArgs, PsArgs, StatsArgs};
pub use mcp::{McpAddArgs, McpCommand, McpScopeArg};
pub use rules::{ApproveArgs, AuditCommand, ExplainArgs, PermissionsCommand, RuleArgs, RulesCommand};
pub use run::RunArgs;
pub use schedules::{ScheduleAddArgs, ScheduleCommand};
pub use session::{BusyArgs, QueueCommand, WorktreesCommand};
pub(crate) use turn_args::json_file;
pub use turn_args::{TurnArgs, folder};
pub use values::{Output, Since, Thinking};

/// The daemon that a command uses.
#[derive(Clone, Debug, Args)]
pub struct ConnectionArgs {
    /// The daemon to use: ssh://[USER@]HOST[:PORT], or a name of `agentctl host` [env: AGENTD_HOST]
    #[arg(short = 'H', long, global = true, value_name = "HOST")]
    pub host: Option<String>,
    /// The daemon's socket [env: AGENTD_SOCKET]
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The configuration file, also for a daemon that this command starts [env: AGENTD_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Fail instead of starting a daemon
    #[arg(long, global = true)]
    pub no_start: bool,
}

/// `agentctl acp` alone. An editor starts it once for each of its windows, and the tree of all commands with their
/// help texts would be most of the memory that the bridge touches.
#[derive(Debug, Parser)]
#[command(name = "agentctl")]
pub struct BridgeCli {
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(subcommand)]
    pub command: BridgeCommand,
}

/// The only command of [`BridgeCli`].
#[derive(Debug, Subcommand)]
pub enum BridgeCommand {
    /// As [`Command::Acp`].
    Acp(AcpArgs),
}

impl BridgeCli {
    /// Reads a command line of the bridge. Everything else, also `--help` and mistakes, is for [`Cli`].
    pub fn parse_line(args: &[OsString]) -> Option<Self> {
        let may_be_bridge = args.iter().any(|arg| arg == "acp");
        may_be_bridge.then(|| Self::try_parse_from(args).ok()).flatten()
    }
}

/// Run coding-agent sessions in the background and manage them.
///
/// Sessions live in a daemon (agentd) and continue when this program ends. Exit codes: 0 success, 1
/// permission denied, 2 model error, 3 aborted, 4 internal or execution error, 5 a budget or turn
/// limit, 6 output limit, 64 wrong use, 69 no daemon.
#[derive(Debug, Parser)]
#[command(name = "agentctl", version, propagate_version = true)]
pub struct Cli {
    /// The daemon, and how it is reached.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Lines with words instead of a screen with signs, for screen readers and logs [env: AGENTCTL_PLAIN]
    #[arg(long, global = true)]
    pub plain: bool,
    /// Continue the newest session of this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub continued: bool,
    /// Choose a session to continue
    #[arg(short, long)]
    pub resume: bool,
    /// The folder to work in, instead of this one
    #[arg(short, long, value_name = "DIR", conflicts_with_all = ["continued", "resume"])]
    pub work_dir: Option<PathBuf>,
    /// Variables of the session's commands.
    #[command(flatten)]
    pub variables: EnvironmentArgs,
    /// The command to run; without one, a conversation in this folder begins
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[cfg(test)]
mod tests;
