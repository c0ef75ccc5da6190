//! Arguments of the commands that answer requests, change rules and read the audit log.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{audit_head, mode, scope};
use types::audit::AuditHead;
use types::permission::{Mode, Scope};

/// Arguments of `approve`.
#[derive(Debug, Default, Args)]
pub struct ApproveArgs {
    /// Requests: numbers (12.1), ids (perm_…) or unique starts of them
    #[arg(required = true)]
    pub requests: Vec<String>,
    /// Allow it for the rest of the session
    #[arg(long, conflicts_with = "scope")]
    pub session: bool,
    /// Allow it in this folder, until the grant is removed
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
    /// For a plan: the mode that follows plan mode (default, accept_edits …)
    #[arg(long, value_parser = mode)]
    pub mode: Option<Mode>,
}

/// Subcommands of `rules`.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Print the rules with their sources
    List {
        /// The rules of this session and its folder, instead of those of the current folder
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a rule; it applies at once
    Add(RuleArgs),
    /// Remove a rule; that applies at once
    #[command(visible_alias = "revoke")]
    Rm(RuleArgs),
}

/// Arguments of `rules add` and `rules rm`.
#[derive(Debug, Args)]
pub struct RuleArgs {
    /// The rule, for example `Bash(npm run:*)`
    pub rule: String,
    /// A rule that requires a permission request
    #[arg(long)]
    pub ask: bool,
    /// A rule that denies
    #[arg(long, conflicts_with = "ask")]
    pub deny: bool,
    /// For this session, instead of for the current folder
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// In every folder
    #[arg(long, conflicts_with = "session")]
    pub user: bool,
}

/// Subcommands of `audit`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Read the whole log and check whether a row was changed, removed, inserted or moved
    Verify {
        /// A row that must still exist, as printed by an earlier run
        #[arg(long, value_name = "ROW:HASH", value_parser = audit_head)]
        known: Option<AuditHead>,
    },
}

/// Subcommands of `permissions`.
#[derive(Debug, Subcommand)]
pub enum PermissionsCommand {
    /// Judge a command, or a path for a file tool, by only the given rules; nothing runs
    Explain(ExplainArgs),
}

/// Arguments of `permissions explain`.
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
    /// A rule that requires a permission request
    #[arg(long, value_name = "RULE")]
    pub ask: Vec<String>,
    /// A rule that denies
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    /// The session's folder; the current folder by default
    #[arg(short, long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// default, accept_edits, plan, dont_ask or bypass
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Without the table of read-only commands
    #[arg(long)]
    pub no_safe_commands: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}
