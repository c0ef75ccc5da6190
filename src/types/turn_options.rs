//! The options of a turn, and of the turns of a session.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compaction::CompactRequest;
use crate::permission::Mode;
use crate::sampling::Sampling;
use crate::session::SessionSpec;
use crate::slash_command::SlashCommand;
use crate::thinking::Thinking;
use crate::tool::ToolChoice;
use crate::usage::Budgets;

/// Options that a turn takes from its input, and a session from its settings. An absent option means the
/// session's value. An empty value (`""`, `[]`, `{}`) means the default of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnOptions {
    /// Limits of a turn.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub budgets: Option<Budgets>,
    /// Approval mode.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<Mode>,
    /// `PROVIDER/MODEL`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// How much the model may think; constant during a turn.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thinking: Option<Thinking>,
    /// Tools on offer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tools: Option<ToolChoice>,
    /// Sampling settings; constant during a turn.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// Whether tools run one at a time and every call needs a request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub safe_mode: Option<bool>,
    /// Replaces the default system prompt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub system_prompt: Option<String>,
    /// Appended to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub append_system_prompt: Option<String>,
    /// The complete list of additional folders of the workspace, absolute and free of links.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub additional_dirs: Option<Vec<String>>,
    /// `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fallback_model: Option<String>,
    /// Texts at which the model stops its answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop: Option<Vec<String>>,
    /// Labels that the provider receives with each model request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metadata: Option<BTreeMap<String, String>>,
    /// The slash command whose expansion is the input; never a setting of a session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<SlashCommand>,
    /// The turn has no input and only compacts the conversation; never a setting of a session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compact: Option<CompactRequest>,
    /// JSON Schema that the result must satisfy; `{}` for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_schema: Option<serde_json::Value>,
}

impl TurnOptions {
    /// Whether the options change the beginning of the model's requests, so that a turn needs its own system prompt.
    #[must_use]
    pub fn change_system_prompt(&self) -> bool {
        self.system_prompt.is_some() || self.append_system_prompt.is_some() || self.additional_dirs.is_some()
    }

    /// The options without those that equal the values of `spec`.
    #[must_use]
    pub fn changes_of(self, spec: &SessionSpec) -> Self {
        let no_schema = serde_json::json!({});
        let text = |new: Option<String>, known: &Option<String>| {
            new.filter(|new| new != known.as_deref().unwrap_or_default())
        };
        Self {
            budgets: self.budgets.filter(|new| *new != spec.budgets),
            mode: self.mode.filter(|new| *new != spec.mode),
            model: self.model.filter(|new| *new != spec.model),
            thinking: self.thinking.filter(|new| Some(*new) != spec.thinking),
            tools: self.tools.filter(|new| *new != spec.tools),
            sampling: Sampling {
                temperature: self.sampling.temperature.filter(|new| Some(*new) != spec.sampling.temperature),
                top_p: self.sampling.top_p.filter(|new| Some(*new) != spec.sampling.top_p),
            },
            safe_mode: self.safe_mode.filter(|new| *new != spec.safe_mode),
            system_prompt: text(self.system_prompt, &spec.system_prompt),
            append_system_prompt: text(self.append_system_prompt, &spec.append_system_prompt),
            additional_dirs: self.additional_dirs.filter(|new| *new != spec.additional_dirs),
            fallback_model: text(self.fallback_model, &spec.fallback_model),
            stop: self.stop.filter(|new| *new != spec.stop),
            metadata: self.metadata.filter(|new| *new != spec.metadata),
            command: None,
            compact: None,
            output_schema: self
                .output_schema
                .filter(|new| new != spec.output_schema.as_ref().unwrap_or(&no_schema)),
        }
    }
}

impl SessionSpec {
    /// Takes over the options that are present. An empty text removes the session's value.
    pub fn set(&mut self, options: &TurnOptions) {
        fn set<T: Clone>(known: &mut T, new: &Option<T>) {
            if let Some(new) = new {
                known.clone_from(new);
            }
        }
        fn set_text(known: &mut Option<String>, new: &Option<String>) {
            if let Some(new) = new {
                *known = Some(new.clone()).filter(|new| !new.is_empty());
            }
        }
        set(&mut self.budgets, &options.budgets);
        set(&mut self.mode, &options.mode);
        set(&mut self.model, &options.model);
        self.thinking = options.thinking.or(self.thinking);
        set(&mut self.tools, &options.tools);
        self.sampling = options.sampling.or(self.sampling);
        set(&mut self.safe_mode, &options.safe_mode);
        set_text(&mut self.system_prompt, &options.system_prompt);
        set_text(&mut self.append_system_prompt, &options.append_system_prompt);
        set(&mut self.additional_dirs, &options.additional_dirs);
        set_text(&mut self.fallback_model, &options.fallback_model);
        set(&mut self.stop, &options.stop);
        set(&mut self.metadata, &options.metadata);
        if let Some(schema) = &options.output_schema {
            self.output_schema = Some(schema.clone()).filter(|schema| *schema != serde_json::json!({}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_option_removes_value_of_session() {
        let mut spec = SessionSpec { system_prompt: Some("be brief".into()), ..SessionSpec::default() };
        let none = TurnOptions { system_prompt: Some(String::new()), ..TurnOptions::default() };
        assert_eq!(none.clone().changes_of(&spec), none);
        spec.set(&none);
        assert_eq!(spec.system_prompt, None);
        assert_eq!(none.changes_of(&spec), TurnOptions::default(), "a second time it is no change");
    }

    #[test]
    fn options_that_session_has_are_no_change() {
        let options = TurnOptions {
            safe_mode: Some(true),
            stop: Some(vec!["END".into()]),
            fallback_model: Some("p/m".into()),
            additional_dirs: Some(vec!["/a".into()]),
            ..TurnOptions::default()
        };
        let mut spec = SessionSpec::default();
        assert_eq!(options.clone().changes_of(&spec), options);
        spec.set(&options);
        assert_eq!(options.changes_of(&spec), TurnOptions::default());
    }
}
