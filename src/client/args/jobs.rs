//! Arguments of `jobs`.

use clap::{Args, Subcommand};

use super::job_content::JobContentArgs;
use super::schedules::ScheduleCommand;
use super::values::{duration, usd_micros};

/// Arguments of `jobs`.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// What to do; without it, list the jobs
    #[command(subcommand)]
    pub command: Option<JobsCommand>,
    /// How the jobs are listed.
    #[command(flatten)]
    pub list: JobListArgs,
}

/// How `jobs` lists.
#[derive(Debug, Default, Args)]
pub struct JobListArgs {
    /// Only the newest N jobs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
    /// Only jobs in these states, separated by commas (queued, running, failed, …)
    #[arg(long, value_name = "STATES", value_delimiter = ',', value_parser = job_state)]
    pub state: Vec<types::job::JobState>,
    /// Only jobs with this label
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub label: Option<String>,
    /// Stay, and show changes at once
    #[arg(short, long, conflicts_with = "json")]
    pub watch: bool,
    /// As JSON, with full ids
    #[arg(long)]
    pub json: bool,
}

fn job_state(text: &str) -> Result<types::job::JobState, String> {
    let state = types::job::JobState::ALL.into_iter().find(|state| state.name() == text);
    state.ok_or_else(|| {
        let names: Vec<&str> = types::job::JobState::ALL.iter().map(|state| state.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// The commands of `jobs`.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Create a job
    Add(Box<JobAddArgs>),
    /// Print all that is known about a job
    Show {
        /// Job id, or a unique start of it, or its title
        job: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a job changed in its worktree
    Diff {
        /// Job id, or a unique start of it, or its title
        job: String,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Only the files and their numbers of lines
        #[arg(long, conflicts_with = "json")]
        stat: bool,
    },
    /// Wait until a job is over, and print its answer; the exit code is that of the job
    Wait {
        /// Job id, or a unique start of it, or its title
        job: String,
        /// Stop waiting after this time (90s, 15m, 2h)
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        timeout: Option<u64>,
        /// The job as JSON
        #[arg(long)]
        json: bool,
    },
    /// Cancel jobs, and wait until their work has stopped
    Cancel {
        /// Job ids, unique starts of them, or titles
        #[arg(required = true)]
        jobs: Vec<String>,
        /// Why, for the log
        #[arg(long)]
        reason: Option<String>,
    },
    /// Give a job that failed, was cancelled or expired one more attempt
    Retry {
        /// Job id, or a unique start of it, or its title
        job: String,
        /// Go on in the session of the last attempt
        #[arg(long)]
        r#continue: bool,
    },
    /// Print the conversation of an attempt
    Logs {
        /// Job id, or a unique start of it, or its title
        job: String,
        /// Number of the attempt; the newest by default
        #[arg(long, value_name = "N")]
        attempt: Option<u32>,
        /// Wait for more
        #[arg(short, long)]
        follow: bool,
        /// Each event as JSON
        #[arg(long)]
        json: bool,
    },
    /// Follow the newest attempt, answer its requests, steer it
    Attach {
        /// Job id, or a unique start of it, or its title
        job: String,
    },
    /// Change a job that has not started, or raise its limits
    Update {
        /// Job id, or a unique start of it, or its title
        job: String,
        /// From -100 to 100
        #[arg(long, allow_hyphen_values = true)]
        priority: Option<i32>,
        /// Start after this time from now (2h)
        #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
        r#in: Option<u64>,
        /// Start at this local time: 23:30, or "2026-12-01 02:00"
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// A higher limit on money
        #[arg(long, value_name = "DOLLARS", value_parser = usd_micros)]
        max_usd: Option<u64>,
    },
    /// Create jobs at given times
    Schedule {
        /// What to do
        #[command(subcommand)]
        command: ScheduleCommand,
    },
    /// Start no further jobs, also after a restart
    Pause,
    /// Start jobs again
    Resume,
    /// Show the templates of this folder and of yours
    Templates {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `jobs add`.
#[derive(Debug, Default, Args)]
pub struct JobAddArgs {
    /// What the job is asked to do.
    #[command(flatten)]
    pub content: JobContentArgs,
    /// Start after this time from now (2h)
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    pub r#in: Option<u64>,
    /// Start at this local time: 23:30, or "2026-12-01 02:00"
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// No second job with this key as long as this one is not over
    #[arg(long, value_name = "KEY")]
    pub unique: Option<String>,
    /// Wait until the job is over, and print its answer
    #[arg(long)]
    pub wait: bool,
    /// Print the schedule that a line of a crontab would become; `-` reads a whole crontab from standard input
    #[arg(long, value_name = "LINE", conflicts_with_all = ["prompt", "template", "wait", "json"])]
    pub from_crontab: Option<String>,
    /// With --from-crontab, create the schedules
    #[arg(long, requires = "from_crontab")]
    pub yes: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}
