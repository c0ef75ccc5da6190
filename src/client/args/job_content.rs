//! Arguments of `jobs add` and `jobs schedule add`: what a job is asked to do.

use std::path::PathBuf;

use clap::Args;

use super::values::{duration, label, mode, usd_micros};
use types::permission::Mode;

/// What a job is asked to do; also for jobs of a schedule.
#[derive(Clone, Debug, Default, Args)]
pub struct JobContentArgs {
    /// The prompt; `-` reads it from standard input
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// A template, and its parameters as NAME=VALUE
    #[arg(long, value_names = ["NAME", "KEY=VALUE"], num_args = 1.., conflicts_with = "prompt")]
    pub template: Vec<String>,
    /// The folder of the job; this one by default
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// Work in a git worktree of its own, on this branch or on agentd/ID
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub worktree: Option<String>,
    /// Short name
    #[arg(long)]
    pub title: Option<String>,
    /// PROVIDER/MODEL, or a pointer of [models] like `reasoning`
    #[arg(long)]
    pub model: Option<String>,
    /// default, accept_edits, plan, dont_ask or bypass
    #[arg(short, long, alias = "mode", value_name = "MODE", value_parser = mode)]
    pub approval_mode: Option<Mode>,
    /// The agent as which it works
    #[arg(long)]
    pub agent: Option<String>,
    /// Offer only these tools, separated by commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,
    /// Limit of money over all attempts
    #[arg(long, value_name = "DOLLARS", value_parser = usd_micros)]
    pub max_usd: Option<u64>,
    /// Limit of model calls over all attempts
    #[arg(long, value_name = "CALLS")]
    pub max_turns: Option<u64>,
    /// Limit of time over all attempts, without waits for a person (90s, 15m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_time: Option<u64>,
    /// A file with a JSON Schema that the final answer must satisfy
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// From -100 to 100; higher ones start first
    #[arg(long, allow_hyphen_values = true)]
    pub priority: Option<i32>,
    /// Attempts in all, if the model or its server fails
    #[arg(long, value_name = "N")]
    pub attempts: Option<u32>,
    /// Jobs with the same key run one at a time, or LIMIT at a time
    #[arg(long, value_name = "KEY[=LIMIT]")]
    pub concurrency: Option<String>,
    /// Give up if the job has not started within this time (6h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub start_within: Option<u64>,
    /// Tell the webhook [jobs.notify.NAME] of the end, or the command of that name; may be given several times
    #[arg(long, value_name = "NAME|command:NAME")]
    pub notify: Vec<String>,
    /// Keep files that match this glob with the result; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub artifact: Vec<String>,
    /// A label; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,
}
