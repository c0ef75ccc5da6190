//! The commands of `agentctl` with their arguments.

use std::path::PathBuf;

use clap::Subcommand;

use crate::args::listing::{
    CostArgs, EventsArgs, InspectArgs, LogsArgs, ModelsArgs, PruneArgs, PsArgs, StatsArgs,
};
use crate::args::values::{Since, Thinking, duration, export_format, mode, since, state};
use crate::args::{
    AcpArgs, ApproveArgs, AuditCommand, BusyArgs, ConfigCommand, DaemonCommand, HostCommand, JobsArgs,
    KnowledgeCommand, McpCommand, MemoryCommand, PermissionsCommand, QueueCommand, RulesCommand, RunArgs,
    TurnArgs, WorktreesCommand,
};
use crate::connection::environment::EnvironmentArgs;
use crate::connection::input_files::InputFileArgs;
use types::history::ExportFormat;
use types::ids::ItemId;
use types::permission::Mode;
use types::session::SessionState;

/// The commands of `agentctl`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a session, give it a task and follow it
    Run(RunArgs),
    /// List the sessions of this folder
    Ps(PsArgs),
    /// Follow a session, send it input, answer its requests
    Attach {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// Whether to show the model's thinking
        #[arg(long, value_enum, default_value_t)]
        thinking: Thinking,
        /// Show Markdown as it was written
        #[arg(long)]
        raw: bool,
    },
    /// Show all sessions on one live screen: what needs you, what works
    Top,
    /// Unattended work: create, list, wait for and cancel jobs
    Jobs(JobsArgs),
    /// Print the conversation of a session, or its events
    Logs(LogsArgs),
    /// Print the events of a session, or follow all sessions
    Events(EventsArgs),
    /// Print the last answer of a session
    Result {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// The whole result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print all that is known about sessions or requests, as JSON
    Inspect(InspectArgs),
    /// Show tokens and money by period, model and folder
    Stats(StatsArgs),
    /// Show tokens and costs by session and model
    Cost(CostArgs),
    /// List models and their properties, or try their providers
    Models(ModelsArgs),
    /// Send input to a session; by default it queues while a turn runs
    Submit {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        session: String,
        /// The input; `-` for standard input. One that begins with - comes after `--`
        text: String,
        /// How a running turn receives the input.
        #[command(flatten)]
        busy: BusyArgs,
        /// Options of this turn only.
        #[command(flatten)]
        turn: TurnArgs,
        /// Send the text to the model even if it looks like a slash command or a note
        #[arg(long)]
        raw: bool,
        /// Files that are sent with the input.
        #[command(flatten)]
        given: InputFileArgs,
    },
    /// List and change the inputs that wait for the running turn
    Queue {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// The subcommand; without it, the queue is listed
        #[command(subcommand)]
        what: Option<QueueCommand>,
    },
    /// Wait until a session is idle, waits for you, or has ended
    Wait {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// Wait for one of these states instead: idle, running, requires_action, paused, failed, ended, archived
        #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state)]
        until: Vec<SessionState>,
        /// Fail after this time (30s, 15m, 2h)
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        timeout: Option<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a session that starts with another one's conversation
    Fork {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// The last item to copy (item_…); without it, everything is copied
        #[arg(long, value_name = "ITEM")]
        at: Option<ItemId>,
        /// The title of the new session
        #[arg(long)]
        title: Option<String>,
    },
    /// Make an earlier item the last one of a conversation
    Rewind {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        session: String,
        /// The item (item_…), as `agentctl logs --json` and `session.items` name it
        item: ItemId,
        /// Also restore the files that the session's file tools changed since; all of them, or none
        #[arg(long)]
        files: bool,
        /// Only show what would happen
        #[arg(long)]
        dry_run: bool,
    },
    /// Write a session as JSON Lines, Markdown, or one HTML page
    Export {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// jsonl (can be imported), markdown, or html
        #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = export_format)]
        format: ExportFormat,
        /// The file, readable for its owner alone; by default standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Create a session from an export as JSON Lines
    Import {
        /// The file; `-` for standard input
        file: PathBuf,
    },
    /// Keep sessions, but hide them from `ps` and take no input
    Archive {
        /// Session numbers, ids or unique starts of them, titles, or `.` for the newest of this folder
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Restore them instead
        #[arg(long)]
        undo: bool,
    },
    /// Show what fills the context window of a session
    Context {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// Print the system prompt instead
        #[arg(long, conflicts_with = "request")]
        prompt: bool,
        /// Print the next request to the model instead, as JSON
        #[arg(long)]
        request: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Summarise a conversation, so that it fills less of the window
    Compact {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        session: String,
        /// Instructions for the summary, such as facts to keep
        instructions: Vec<String>,
    },
    /// List the agents of this folder, for sub-agents and `run --agent`
    Agents {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show and change the notes about the project in this folder
    Memory {
        /// The action; by default list
        #[command(subcommand)]
        what: Option<MemoryCommand>,
    },
    /// Index a folder and ask questions about it
    Knowledge {
        /// The folder; by default the current one
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
        /// The action
        #[command(subcommand)]
        what: KnowledgeCommand,
    },
    /// List the slash commands of a folder or a session
    Commands {
        /// Session id, unique start of it, or title; by default the current folder
        session: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the options of a session's turns, also during a turn
    Update {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        session: String,
        /// The new options.
        #[command(flatten)]
        turn: TurnArgs,
        /// With `--env`: the allowed variables of this shell and these replace those of the session's commands.
        #[command(flatten)]
        variables: EnvironmentArgs,
    },
    /// Stop the running turn, a queued one, or one tool call
    Abort {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// Only if this is the running turn, or a queued one
        #[arg(long, value_name = "TURN", conflicts_with = "call")]
        turn: Option<String>,
        /// Only this call; the turn continues
        #[arg(long, value_name = "CALL")]
        call: Option<String>,
    },
    /// Merge the branch of a session's or job's worktree into the branch of its repository's folder
    Merge {
        /// Session or job
        #[arg(default_value = ".")]
        owner: String,
        /// With a merge commit, if a fast-forward is not possible
        #[arg(long)]
        commit: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List or remove the git worktrees of sessions and jobs
    Worktrees {
        /// What to do; by default, list them
        #[command(subcommand)]
        what: Option<WorktreesCommand>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a session changed in files
    Diff {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        #[arg(default_value = ".")]
        session: String,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Only the files and their numbers of lines
        #[arg(long, conflicts_with = "json")]
        stat: bool,
    },
    /// Stop and end sessions; their history stays readable
    Kill {
        /// Session numbers, ids or unique starts of them, titles, or `.` for the newest of this folder
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        sessions: Vec<String>,
        /// All sessions of all folders that are not ended; asks first
        #[arg(long)]
        all: bool,
        /// With --all: do not ask
        #[arg(short, long)]
        force: bool,
    },
    /// Delete sessions with their history
    Rm {
        /// Session numbers, ids or unique starts of them, titles, or `.` for the newest of this folder
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Also sessions with a running turn
        #[arg(short, long)]
        force: bool,
    },
    /// Delete ended and unused sessions with their history; asks first
    Prune(PruneArgs),
    /// Allow permission requests
    Approve(ApproveArgs),
    /// Deny permission requests
    Deny {
        /// Requests: numbers (12.1), ids (perm_…) or unique starts of them
        #[arg(required = true)]
        requests: Vec<String>,
        /// Text for the model
        #[arg(long, value_name = "TEXT")]
        feedback: Option<String>,
        /// Also end the turn
        #[arg(long)]
        stop: bool,
    },
    /// List, add and remove permission rules
    #[command(args_conflicts_with_subcommands = true)]
    Rules {
        /// The subcommand; without it, the rules of this folder are listed
        #[command(subcommand)]
        what: Option<RulesCommand>,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Also the file of each rule
        #[arg(short, long, conflicts_with = "json")]
        long: bool,
    },
    /// Change how much a session may do without asking
    Mode {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        session: String,
        /// default, accept_edits, plan, dont_ask or bypass
        #[arg(value_parser = mode)]
        mode: Mode,
    },
    /// Give a session another title
    Rename {
        /// Session number, id or unique start of it, title, or `.` for the newest of this folder
        session: String,
        /// The title
        title: String,
    },
    /// Answer a question of the model or of the daemon
    Answer {
        /// Question id (ask_…), a unique start of it, or a session with one open question
        request: String,
        /// Numbers of options (1 or 1,3) or own words, one for each question; otherwise continue or abort
        #[arg(required = true)]
        answers: Vec<String>,
    },
    /// Choose one of two answers of the model (binary feedback)
    Feedback {
        /// Request id (ask_…), or a session that waits for the choice
        request: String,
        /// 1, 2, or the item id of the answer
        answer: String,
    },
    /// List pending permission requests, or show all details of some
    Approvals {
        /// Numbers (12.1) or ids (perm_…) of requests: show these in full
        #[arg(value_name = "REQUEST")]
        requests: Vec<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust a folder's executable files, after showing them
    Trust {
        /// The folder; the current folder by default
        dir: Option<PathBuf>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Revoke the trust in a folder
    Untrust {
        /// The folder; the current folder by default
        dir: Option<PathBuf>,
    },
    /// Be an agent for an editor: the Agent Client Protocol on standard input and output
    ///
    /// The editor starts this command. Sessions live in the daemon: they continue when the editor ends, and they can be
    /// followed in a terminal at the same time. docs/editors.md shows the settings of several editors.
    Acp(AcpArgs),
    /// List, add, remove and test MCP servers
    Mcp {
        /// The action
        #[command(subcommand)]
        what: McpCommand,
    },
    /// Show the permission decisions, who made them, and by which rule
    #[command(args_conflicts_with_subcommands = true)]
    Audit {
        /// Only about this session: id, unique start of it, or title; the full id if it was deleted
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// Only newer rows: a duration (15m, 2h), or the number of the last known row
        #[arg(long, value_name = "DURATION|ROW", value_parser = since)]
        since: Option<Since>,
        /// One row per line, as JSON
        #[arg(long)]
        json: bool,
        /// Also the process of the client, and the sandbox
        #[arg(short, long, conflicts_with = "json")]
        long: bool,
        /// The subcommand; without it, the log is printed.
        #[command(subcommand)]
        what: Option<AuditCommand>,
    },
    /// Show the verdict of permission rules
    Permissions {
        /// The subcommand.
        #[command(subcommand)]
        what: PermissionsCommand,
    },
    /// Start, stop and inspect the daemon
    Daemon {
        /// The subcommand.
        #[command(subcommand)]
        what: DaemonCommand,
    },
    /// Name the daemons of other machines, and choose one
    Host {
        /// The subcommand.
        #[command(subcommand)]
        what: HostCommand,
    },
    /// Copy the whole database to a new file, while it is in use
    Backup {
        /// The file; it must not exist
        file: PathBuf,
    },
    /// Show the configuration
    Config {
        /// The subcommand.
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Store the key of a model provider for the daemon, and try it
    Login {
        /// The provider, for example anthropic or openai. The key is asked for, or read from standard input
        provider: String,
    },
    /// Check keys, providers, sandbox, disk; say how to fix problems
    Doctor {
        /// Only whether the daemon answers and can write, for health checks
        #[arg(long)]
        quick: bool,
    },
    /// Name what agentd keeps on this machine for you; delete it
    Uninstall {
        /// Stop the daemon and delete sessions, settings and keys, after a question
        #[arg(long)]
        purge: bool,
        /// Do not ask
        #[arg(long, requires = "purge")]
        yes: bool,
    },
    /// Call a method of the daemon and print its result
    Rpc {
        /// The method, for example session.list
        method: String,
        /// Its parameters as JSON; `-` for standard input
        params: Option<String>,
    },
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man {
        /// The folder; it must exist
        dir: PathBuf,
    },
    /// Run a demonstration, without a key and without a network
    Demo {
        /// Answer the permission requests automatically
        #[arg(long)]
        yes: bool,
        /// Keep the daemon and the folder for inspection
        #[arg(long)]
        keep: bool,
    },
}
