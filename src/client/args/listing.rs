//! Arguments of the commands that list and show.

use clap::Args;

use super::values::{Since, duration, since, template};
use crate::terminal::template::Template;

/// Arguments of `ps`.
#[derive(Debug, Default, Args)]
pub struct PsArgs {
    /// Also ended and archived sessions
    #[arg(short, long)]
    pub all: bool,
    /// The sessions of all folders, not only of this one
    #[arg(short = 'A', long)]
    pub all_folders: bool,
    /// As JSON, with full ids
    #[arg(long)]
    pub json: bool,
    /// A line for each session: a template such as '{{.Number}} {{.Title}} {{.Status}}', or json
    #[arg(long, value_name = "TEMPLATE", value_parser = template, conflicts_with = "json")]
    pub format: Option<Template>,
    /// Only full ids
    #[arg(short, long, conflicts_with_all = ["json", "format", "watch"])]
    pub quiet: bool,
    /// Of the sessions that neither work nor wait for you, only the newest N; on a terminal 200 by default
    #[arg(short = 'n', long, value_name = "N", conflicts_with_all = ["watch", "tree"])]
    pub limit: Option<u32>,
    /// Stay, and show changes at once
    #[arg(short, long, conflicts_with = "format")]
    pub watch: bool,
    /// With the sub-agents below the sessions that started them
    #[arg(short, long)]
    pub tree: bool,
    /// Only sessions with this text in title, folder or last line, or with these words in a message
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
}

/// Arguments of `inspect`.
#[derive(Debug, Default, Args)]
pub struct InspectArgs {
    /// Sessions (number, id, title, `.`) or requests (12.1, perm_…)
    #[arg(value_name = "SESSION|REQUEST", default_value = ".")]
    pub names: Vec<String>,
    /// A line for each: a template such as '{{.Usage.InputTokens}}', or json
    #[arg(long, value_name = "TEMPLATE", value_parser = template)]
    pub format: Option<Template>,
}

/// Arguments of `stats`.
#[derive(Debug, Default, Args)]
pub struct StatsArgs {
    /// Models and folders: only calls of this last period (2h, 7d)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<u64>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `prune`.
#[derive(Debug, Default, Args)]
pub struct PruneArgs {
    /// The sessions of all folders, not only of this one
    #[arg(short = 'A', long)]
    pub all_folders: bool,
    /// Also archived sessions
    #[arg(long)]
    pub archived: bool,
    /// Only sessions without a change for this time (7d)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub older_than: Option<u64>,
    /// Only show what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub force: bool,
}

/// Arguments of `cost`.
#[derive(Debug, Default, Args)]
pub struct CostArgs {
    /// Session id, unique start of it, title, or `.` for the newest of this folder; without it, all sessions
    pub session: Option<String>,
    /// Also list deleted sessions one by one; the total includes them in any case
    #[arg(short, long)]
    pub all: bool,
    /// Only calls of this last period (2h, 7d)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<u64>,
    /// As JSON, with full ids
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `logs`.
#[derive(Debug, Default, Args)]
pub struct LogsArgs {
    /// Session number, id or unique start of it, title, or `.` for the newest of this folder
    #[arg(default_value = ".")]
    pub session: String,
    /// Wait for more
    #[arg(short, long)]
    pub follow: bool,
    /// The events, one line for each, instead of the conversation
    #[arg(long)]
    pub events: bool,
    /// Only newer events: within a duration (15m, 2h), or after the seq of the last known event
    #[arg(long, value_name = "DURATION|SEQ", value_parser = since)]
    pub since: Option<Since>,
    /// Only this number of lines from the end
    #[arg(short = 'n', long, value_name = "LINES")]
    pub tail: Option<usize>,
    /// The events, one per line, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `events`.
#[derive(Debug, Default, Args)]
pub struct EventsArgs {
    /// Session number, id or unique start of it, title, or `.`; without one, changes of all sessions are followed
    pub session: Option<String>,
    /// Wait for more events
    #[arg(short, long)]
    pub follow: bool,
    /// Only newer events: a duration (15m, 2h), or the seq of the last known event
    #[arg(long, value_name = "DURATION|SEQ", value_parser = since, requires = "session")]
    pub since: Option<Since>,
    /// One event per line, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `models`.
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Try the address and the key of each provider, without spending tokens
    #[arg(long)]
    pub check: bool,
    /// Also all models that the providers offer
    #[arg(short, long, conflicts_with = "check")]
    pub all: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}
