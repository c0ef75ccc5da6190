//! Arguments of `jobs schedule`.

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;

use super::job_content::JobContentArgs;
use super::values::duration;
use types::schedule::{CatchUp, Overlap};

/// The commands of `jobs schedule`.
#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// Create a schedule: it creates jobs at given times
    Add(Box<ScheduleAddArgs>),
    /// List the schedules
    #[command(visible_alias = "list")]
    Ls {
        /// As JSON, with full ids
        #[arg(long)]
        json: bool,
    },
    /// Delete schedules; their jobs stay
    Rm {
        /// Schedule ids, unique starts of them, or names
        #[arg(required = true)]
        schedules: Vec<String>,
    },
    /// Let a schedule fire again; its count of failures starts at 0
    Enable {
        /// Schedule ids, unique starts of them, or names
        #[arg(required = true)]
        schedules: Vec<String>,
    },
    /// Keep a schedule from firing
    Disable {
        /// Schedule ids, unique starts of them, or names
        #[arg(required = true)]
        schedules: Vec<String>,
    },
    /// Create a job of a schedule now, and print its id
    Run {
        /// Schedule id, or a unique start of it, or its name
        schedule: String,
    },
    /// Print the next times of a schedule or of a pattern
    Next {
        /// A schedule, or a pattern in quotes: "0 3 * * MON-FRI", @daily
        what: String,
        /// How many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
        count: u32,
        /// Zone of a pattern, like Europe/Berlin; by default that of the daemon
        #[arg(long, value_name = "ZONE")]
        timezone: Option<String>,
        /// As JSON, in milliseconds
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `jobs schedule add`.
#[derive(Clone, Debug, Default, Args)]
pub struct ScheduleAddArgs {
    /// A short name
    pub name: String,
    /// The times: five fields of cron, or @hourly, @daily, @weekly, @monthly
    #[arg(long, value_name = "PATTERN", required_unless_present = "every", conflicts_with = "every")]
    pub cron: Option<String>,
    /// The interval, at least 1m (90m, 6h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub every: Option<u64>,
    /// The zone of the pattern, like Europe/Berlin; by default that of the daemon
    #[arg(long, value_name = "ZONE", conflicts_with = "every")]
    pub timezone: Option<String>,
    /// A random delay of each job, below this time
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub jitter: Option<u64>,
    /// While an earlier job is not over: skip, queue, or cancel the earlier one
    #[arg(long, value_name = "WHAT", value_parser = name::<Overlap>, default_value = "skip")]
    pub overlap: Overlap,
    /// After a pause of the machine: a job for the last missed time, for none, or for all (at most 10)
    #[arg(long, value_name = "WHAT", value_parser = name::<CatchUp>, default_value = "last")]
    pub catch_up: CatchUp,
    /// Missed times that are older get no job; 24h by default
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub catch_up_window: Option<u64>,
    /// No job after this local time: "2026-12-31 18:00"
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Disable the schedule after so many failures in a row; 5 by default, 0 for never
    #[arg(long, value_name = "N")]
    pub max_failures: Option<u32>,
    /// Create it without letting it fire
    #[arg(long)]
    pub disabled: bool,
    /// What each job is asked to do.
    #[command(flatten)]
    pub content: JobContentArgs,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// A name that the wire uses.
fn name<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|error| error.to_string())
}
