//! The options of a turn.

use crate::types::permission::Mode;
use crate::types::sampling::Sampling;
use crate::types::slash_command::SlashCommand;
use crate::types::thinking::Thinking;
use crate::types::tool::ToolChoice;
use crate::types::usage::Budgets;

/// Options that a turn takes from its input, and a session from its settings. An absent option means the
/// session's value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnOptions {
    /// Limits.
    pub budgets: Option<Budgets>,
    /// Approval mode.
    pub mode: Option<Mode>,
    /// `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// How much the model may think.
    pub thinking: Option<Thinking>,
    /// Tools on offer.
    pub tools: Option<ToolChoice>,
    /// Temperature and `top_p`.
    pub sampling: Sampling,
    /// The slash command that the input is the expansion of.
    pub command: Option<SlashCommand>,
    /// JSON Schema of the result.
    pub output_schema: Option<serde_json::Value>,
}
