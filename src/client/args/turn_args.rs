//! Options of turns on the command line: of `run`, `submit` and `update`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::values::{duration, label, mode, share, temperature, usd_micros};
use crate::connection::remote::Machine;
use crate::failure::Failure;
use crate::terminal::escape;
use types::permission::Mode;
use types::sampling::{Temperature, TopP};
use types::thinking::Thinking as HowMuch;
use types::tool::ToolChoice;
use types::turn_options::TurnOptions;
use types::usage::Budgets;

/// Options of a turn, or of the turns of a session.
#[derive(Debug, Default, Args)]
pub struct TurnArgs {
    /// default, accept_edits, plan, dont_ask or bypass
    #[arg(short, long, alias = "mode", value_name = "MODE", value_parser = mode)]
    pub approval_mode: Option<Mode>,
    /// An additional workspace folder; may be given several times
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,
    /// PROVIDER/MODEL, or a pointer of [models] like `reasoning`
    #[arg(short, long)]
    pub model: Option<String>,
    /// The model that replaces an overloaded or missing one; empty for that of the configuration
    #[arg(long, value_name = "MODEL")]
    pub fallback_model: Option<String>,
    /// Abort a turn that costs more
    #[arg(long, value_name = "DOLLARS", value_parser = usd_micros)]
    pub max_usd: Option<u64>,
    /// Abort a turn after this many model calls
    #[arg(long, value_name = "CALLS")]
    pub max_turns: Option<u64>,
    /// Abort a turn after this many output tokens
    #[arg(long, value_name = "TOKENS")]
    pub max_tokens: Option<u64>,
    /// Abort a turn that runs longer (90s, 15m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_time: Option<u64>,
    /// How much the model may think: off, auto, low, medium, high, or a number of tokens
    #[arg(long, value_name = "HOW MUCH", value_parser = str::parse::<HowMuch>)]
    pub think: Option<HowMuch>,
    /// Offer only these tools, separated by commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,
    /// Do not offer these tools, separated by commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub without_tools: Vec<String>,
    /// Run tools one at a time and ask before every call; `--safe-mode=false` turns it off
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub safe_mode: Option<bool>,
    /// Replaces the default system prompt; empty for the default
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// Appended to the system prompt; empty for nothing
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,
    /// From 0 (nearly always the most likely token) to 2
    #[arg(long, value_name = "NUMBER", value_parser = temperature)]
    pub temperature: Option<Temperature>,
    /// The probability mass of the tokens to choose from, from 0 to 1
    #[arg(long, value_name = "NUMBER", value_parser = share)]
    pub top_p: Option<TopP>,
    /// A text at which the model stops its answer; may be given four times
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// A label for the provider, such as user_id=NAME; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub metadata: Vec<(String, String)>,
    /// A file with a JSON Schema that the final answer must satisfy; `{}` in it for none
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
}

impl TurnArgs {
    /// The options that were given.
    pub fn options(&self, machine: Machine) -> Result<TurnOptions, Failure> {
        let dirs = self.add_dir.iter().map(|dir| folder(dir, machine)).collect::<Result<Vec<_>, _>>()?;
        let budgets = Budgets {
            usd_micros: self.max_usd,
            model_calls: self.max_turns,
            output_tokens: self.max_tokens,
            wall_time_ms: self.max_time,
            ..Budgets::default()
        };
        let tools = ToolChoice { allow: self.tools.clone(), deny: self.without_tools.clone() };
        Ok(TurnOptions {
            budgets: (budgets != Budgets::default()).then_some(budgets),
            mode: self.approval_mode,
            model: self.model.clone(),
            thinking: self.think,
            tools: (!tools.is_all()).then_some(tools),
            temperature: self.temperature,
            top_p: self.top_p,
            safe_mode: self.safe_mode,
            system_prompt: self.system_prompt.clone(),
            append_system_prompt: self.append_system_prompt.clone(),
            additional_dirs: (!dirs.is_empty()).then_some(dirs),
            fallback_model: self.fallback_model.clone(),
            stop: (!self.stop.is_empty()).then(|| self.stop.clone()),
            metadata: (!self.metadata.is_empty()).then(|| self.metadata.iter().cloned().collect()),
            output_schema: self.output_schema.as_deref().map(json_file).transpose()?,
            command: None,
            compact: None,
        })
    }
}

/// The JSON value of a file.
pub(crate) fn json_file(file: &Path) -> Result<serde_json::Value, Failure> {
    let shown = file.display().to_string();
    let wrong = |error: String| Failure::usage(format!("{}: {error}", escape::line(&shown)));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(format!("no JSON: {error}")))
}

/// A folder as an absolute path for the daemon. One of another machine is not looked up.
pub fn folder(folder_path: &Path, machine: Machine) -> Result<String, Failure> {
    if machine == Machine::Other {
        let path = std::path::absolute(folder_path)?;
        return path
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| Failure::usage("the folder's name is not UTF-8"));
    }
    match std::fs::canonicalize(folder_path).ok().filter(|path| path.is_dir()) {
        Some(folder) => match folder.to_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(Failure::usage("the folder's name is not UTF-8")),
        },
        None => {
            let shown = folder_path.display().to_string();
            Err(Failure::usage(format!("{} is not a folder", escape::line(&shown))))
        }
    }
}
