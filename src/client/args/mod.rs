//! The command line of `agentctl`: what can be said, and its help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::api::params::{Include, ThinkingShown};
use crate::client::connection::input_files::GivenArgs;
use crate::types::audit::AuditHead;
use crate::types::permission::{Mode, Scope};
use crate::types::thinking::Thinking as HowMuch;

/// Run coding-agent sessions in the background and look after them.
///
/// Sessions live in a daemon (agentd) and go on when this program ends. Exit codes: 0 success,
/// 1 permission denied, 2 model error, 3 aborted, 4 internal or execution error, 5 a budget or
/// turn limit, 6 output limit, 64 wrong use, 69 no daemon.
#[derive(Debug, Parser)]
#[command(name = "agentctl", version, propagate_version = true, subcommand_required = true)]
#[command(arg_required_else_help = true)]
pub struct Cli {
    /// The daemon's socket [env: AGENTD_SOCKET]
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The configuration file, also for a daemon that is started [env: AGENTD_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Fail instead of starting a daemon
    #[arg(long, global = true)]
    pub no_start: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give a new session a task and watch it
    Run(RunArgs),
    /// List sessions
    Ps(PsArgs),
    /// Watch a session, talk to it, answer its requests
    Attach {
        /// Session id, unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// Whether to show what the model thinks
        #[arg(long, value_enum, default_value_t)]
        thinking: Thinking,
    },
    /// Print what happened in a session
    Logs(LogsArgs),
    /// Show tokens and money by session and model
    Cost(CostArgs),
    /// List models with what is known of them
    Models {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a session something to do; it queues while a turn runs
    Submit {
        /// Session id, unique start of it, or title
        session: String,
        /// What to do; `-` for standard input
        text: String,
        /// For this turn: PROVIDER/MODEL, or a pointer of [models] like `reasoning`
        #[arg(long)]
        model: Option<String>,
        /// What goes along.
        #[command(flatten)]
        given: GivenArgs,
    },
    /// Stop the running turn of a session, or one tool call
    Abort {
        /// Session id, unique start of it, or title
        session: String,
        /// Only this call; the turn goes on
        #[arg(long, value_name = "CALL")]
        call: Option<String>,
    },
    /// Show what a session changed in files, from before its first change to after its last
    Diff {
        /// Session id, a unique start of it, or its title
        session: String,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Only the files and how many lines
        #[arg(long, conflicts_with = "json")]
        stat: bool,
    },
    /// Stop and end sessions; their history stays readable
    Kill {
        /// Session ids, unique starts, or titles
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        sessions: Vec<String>,
        /// All that are not ended
        #[arg(long)]
        all: bool,
    },
    /// Remove sessions with their history
    Rm {
        /// Session ids, unique starts, or titles
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Also those that are working
        #[arg(short, long)]
        force: bool,
    },
    /// Allow what sessions ask for
    Approve(ApproveArgs),
    /// Refuse what sessions ask for
    Deny {
        /// Request ids (perm_…) or unique starts of them
        #[arg(required = true)]
        requests: Vec<String>,
        /// Words for the model
        #[arg(long, value_name = "TEXT")]
        feedback: Option<String>,
        /// End the turn with it
        #[arg(long)]
        stop: bool,
    },
    /// List, add and take back permission rules
    #[command(args_conflicts_with_subcommands = true)]
    Rules {
        /// What to do; without it, the rules of this folder are listed
        #[command(subcommand)]
        what: Option<RulesCommand>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Change how much a session may do without asking, also while it works
    Mode {
        /// Session id, unique start of it, title, or `.` for the newest of this folder
        session: String,
        /// default, accept_edits, plan, dont_ask or bypass
        #[arg(value_parser = mode)]
        mode: Mode,
    },
    /// Give a session another title
    Rename {
        /// Session id, unique start of it, or title
        session: String,
        /// The title
        title: String,
    },
    /// Say what becomes of a call whose outcome is unknown, or of a paused turn
    Answer {
        /// Question id (ask_…), a unique start of it, or a session with one open question
        request: String,
        /// continue or abort
        choice: String,
    },
    /// List what waits for an answer, or show all of what a request would do
    Approvals {
        /// Request ids (perm_…), or unique starts of them: show these whole
        #[arg(value_name = "REQUEST")]
        requests: Vec<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a folder would have active, and trust it as it is now
    Trust {
        /// The folder; the one you stand in if it is left out
        dir: Option<PathBuf>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Take the trust in a folder back
    Untrust {
        /// The folder; the one you stand in if it is left out
        dir: Option<PathBuf>,
    },
    /// Show who decided what, and by which rule
    #[command(args_conflicts_with_subcommands = true)]
    Audit {
        /// Only about this session: id, unique start of it, or title; the whole id if it is gone
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// Only what is newer: a duration (15m, 2h) or after this row's number
        #[arg(long, value_name = "DURATION|ROW", value_parser = since)]
        since: Option<Since>,
        /// One row a line, as JSON
        #[arg(long)]
        json: bool,
        /// What else to do.
        #[command(subcommand)]
        what: Option<AuditCommand>,
    },
    /// Ask what permission rules would say
    Permissions {
        /// What to ask.
        #[command(subcommand)]
        what: PermissionsCommand,
    },
    /// Start, stop and look at the daemon
    Daemon {
        /// What to do.
        #[command(subcommand)]
        what: DaemonCommand,
    },
    /// Copy everything that is kept to a new file, while it is in use
    Backup {
        /// The file; it must not exist
        file: PathBuf,
    },
    /// Check the set-up and the database, and say how to mend them
    Doctor,
    /// Call a method of the daemon and print its result
    Rpc {
        /// The method, for example session.list
        method: String,
        /// Its parameters as JSON; `-` for standard input
        params: Option<String>,
    },
    /// Print a completion script
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// See it work, without a key and without a network
    Demo {
        /// Answer the permission requests by itself
        #[arg(long)]
        yes: bool,
        /// Leave daemon and folder for a look around
        #[arg(long)]
        keep: bool,
    },
}

/// What `approve` takes.
#[derive(Debug, Default, Args)]
pub struct ApproveArgs {
    /// Request ids (perm_…) or unique starts of them
    #[arg(required = true)]
    pub requests: Vec<String>,
    /// Allow it for the rest of the session
    #[arg(long, conflicts_with = "scope")]
    pub session: bool,
    /// Allow it in this folder, until it is taken back
    #[arg(long, conflicts_with_all = ["scope", "session"])]
    pub project: bool,
    /// once, session or project
    #[arg(long, value_parser = scope)]
    pub scope: Option<Scope>,
    /// The rule to grant, for example `Bash(npm:*)`; implies --session
    #[arg(long, value_name = "RULE")]
    pub grant: Option<String>,
    /// Run it with these arguments instead of the model's
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
}

/// What to do with rules.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Print them with where they come from
    List {
        /// Those of this session and its folder, instead of those of this folder
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Add one; it counts at once
    Add(RuleArgs),
    /// Take one back; that counts at once
    #[command(visible_alias = "revoke")]
    Rm(RuleArgs),
}

/// What `rules add` and `rules rm` take.
#[derive(Debug, Args)]
pub struct RuleArgs {
    /// The rule, for example `Bash(npm run:*)`
    pub rule: String,
    /// A rule that asks
    #[arg(long)]
    pub ask: bool,
    /// A rule that denies
    #[arg(long, conflicts_with = "ask")]
    pub deny: bool,
    /// For this session, instead of for this folder
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// In every folder
    #[arg(long, conflicts_with = "session")]
    pub user: bool,
}

/// What `run` takes.
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// What to do; without it, or with `-`, standard input is read
    pub prompt: Option<String>,
    /// What goes along.
    #[command(flatten)]
    pub given: GivenArgs,
    /// default, accept_edits, plan, dont_ask or bypass
    #[arg(short, long, value_name = "MODE", value_parser = mode)]
    pub approval_mode: Option<Mode>,
    /// The folder to work in
    #[arg(short, long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// A further folder that counts as workspace; may be given several times
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,
    /// PROVIDER/MODEL, or a pointer of [models] like `reasoning`
    #[arg(long)]
    pub model: Option<String>,
    /// Stop a turn that costs more
    #[arg(long, value_name = "DOLLARS", value_parser = usd_micros)]
    pub max_usd: Option<u64>,
    /// Stop a turn after this many model calls
    #[arg(long, value_name = "CALLS")]
    pub max_turns: Option<u64>,
    /// A name for the session
    #[arg(long)]
    pub title: Option<String>,
    /// How much the model may think: off, auto, low, medium, high, or a number of tokens
    #[arg(long, value_name = "HOW MUCH", value_parser = str::parse::<HowMuch>)]
    pub think: Option<HowMuch>,
    /// Whether to show what the model thinks; by default stream-json does
    #[arg(long, value_enum)]
    pub thinking: Option<Thinking>,
    /// Print the session's id and return
    #[arg(long)]
    pub background: bool,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// Work in a git worktree of its own (not built yet)
    #[arg(long, hide = true)]
    pub worktree: bool,
    /// Trust the folder as it is now; what becomes active is told
    #[arg(long)]
    pub trust: bool,
}

/// Whether thinking is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Thinking {
    /// It is.
    Show,
    /// It is not.
    #[default]
    Hide,
}

impl Thinking {
    /// What is asked of the daemon.
    #[must_use]
    pub const fn include(self) -> Include {
        Include {
            thinking: match self {
                Thinking::Show => ThinkingShown::Full,
                Thinking::Hide => ThinkingShown::None,
            },
        }
    }
}

/// What `run` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The answer as it comes.
    #[default]
    Text,
    /// The result as one JSON object.
    Json,
    /// Every event as one line of JSON.
    StreamJson,
}

/// What `ps` takes.
#[derive(Debug, Default, Args)]
pub struct PsArgs {
    /// Also those that are ended or put away
    #[arg(short, long)]
    pub all: bool,
    /// As JSON, with full ids
    #[arg(long)]
    pub json: bool,
    /// Again every second
    #[arg(short, long)]
    pub watch: bool,
}

/// What `cost` takes.
#[derive(Debug, Default, Args)]
pub struct CostArgs {
    /// Session id, unique start of it, title, or `.` for the newest of this folder; without it, all sessions
    pub session: Option<String>,
    /// Also sessions that were deleted, one by one; the total has them in any case
    #[arg(short, long)]
    pub all: bool,
    /// Only calls of this last while (2h, 7d)
    #[arg(long, value_name = "DURATION", value_parser = crate::client::commands::cost::since)]
    pub since: Option<u64>,
    /// As JSON, with full ids
    #[arg(long)]
    pub json: bool,
}

/// What `logs` takes.
#[derive(Debug, Default, Args)]
pub struct LogsArgs {
    /// Session id, unique start of it, or title
    pub session: String,
    /// Wait for more
    #[arg(short, long)]
    pub follow: bool,
    /// Only what is newer: a duration (15m, 2h) or after this event number
    #[arg(long, value_name = "DURATION|SEQ", value_parser = since)]
    pub since: Option<Since>,
    /// One event a line, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Where `logs` begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// After this event.
    Seq(u64),
    /// This long ago, in milliseconds.
    Ago(u64),
}

/// What to do with the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Read the whole log to see whether a row was changed, left out, put in or moved
    Verify {
        /// A row that must still be there, as an earlier run printed it
        #[arg(long, value_name = "ROW:HASH", value_parser = crate::client::commands::audit::head)]
        known: Option<AuditHead>,
    },
}

/// What to ask about permissions.
#[derive(Debug, Subcommand)]
pub enum PermissionsCommand {
    /// Judge a command, or a path for a file tool, by just the rules given; nothing runs
    Explain(ExplainArgs),
}

/// `agentctl permissions explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The command line; for a file tool the path
    pub text: String,
    /// Bash, Read, Write, Edit, Delete or LS
    #[arg(long, default_value = "Bash")]
    pub tool: String,
    /// A rule that allows, for example "Bash(git status:*)"; may be given several times
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// A rule that asks
    #[arg(long, value_name = "RULE")]
    pub ask: Vec<String>,
    /// A rule that denies
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    /// The session's folder; this one by default
    #[arg(short, long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// default, accept_edits, plan, dont_ask or bypass
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Without the table of commands that only look
    #[arg(long)]
    pub no_safe_commands: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// What to do with the daemon.
#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Start it, if none runs
    Start,
    /// Stop it; sessions are kept
    Stop {
        /// Do not wait for running tools
        #[arg(long)]
        now: bool,
    },
    /// Stop it and start it again; sessions go on where they stood
    Restart {
        /// Do not wait for running tools
        #[arg(long)]
        now: bool,
    },
    /// Read the configuration again without a restart
    Reload,
    /// Say whether it runs, and how
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the end of its log
    Logs,
}

fn mode(text: &str) -> Result<Mode, String> {
    serde_json::from_value(serde_json::Value::from(text))
        .map_err(|_| "one of default, accept_edits, plan, dont_ask, bypass".to_string())
}

fn scope(text: &str) -> Result<Scope, String> {
    serde_json::from_value(serde_json::Value::from(text))
        .map_err(|_| "one of once, session, project".to_string())
}

fn usd_micros(text: &str) -> Result<u64, String> {
    let dollars: f64 =
        text.trim_start_matches('$').parse().map_err(|_| "a number of dollars, for example 0.50")?;
    if !(dollars.is_finite() && (0.0..=1e9).contains(&dollars)) {
        return Err("a number of dollars from 0 to 1000000000".into());
    }
    Ok((dollars * 1e6).round() as u64)
}

fn since(text: &str) -> Result<Since, String> {
    if let Ok(seq) = text.parse() {
        return Ok(Since::Seq(seq));
    }
    crate::client::ui::format::parse_duration(text)
        .map(Since::Ago)
        .ok_or_else(|| "a duration with its unit (90s, 15m, 2h, 1d) or an event number".into())
}

#[cfg(test)]
mod tests;
