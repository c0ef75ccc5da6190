//! The options of a turn, and of the turns of a session.
//!
//! Each option is defined once, in [`with_turn_options`]. The struct below and the parameters of three methods are made
//! of that list, so a new option is one line there, a field of [`SessionSpec`], and its use in the engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compaction::CompactRequest;
use crate::sampling::{Sampling, Temperature, TopP};
use crate::session::SessionSpec;
use crate::slash_command::SlashCommand;
use crate::thinking::Thinking;

/// Calls a macro with its own tokens and the list of options. Each option has a documentation, a name, a type, and the
/// place of its value in [`SessionSpec`].
#[macro_export]
macro_rules! with_turn_options {
    ($callback:ident { $($tokens:tt)* }) => {
        $callback! {
            $($tokens)*
            options {
                /// Limits of a turn. In a session they replace all previous limits.
                budgets: $crate::usage::Budgets => budgets;
                /// Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests
                /// that it allows are settled.
                mode: $crate::permission::Mode => mode;
                /// `PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example
                /// `reasoning`. The system prompt names the model, so another one begins a new prompt cache.
                model: String => model;
                /// How much the model may think. A running turn keeps its setting.
                thinking: $crate::thinking::Thinking => thinking;
                /// The tools on offer; `{}` for all.
                tools: $crate::tool::ToolChoice => tools;
                /// Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps
                /// its setting.
                temperature: $crate::sampling::Temperature => sampling.temperature;
                /// The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set
                /// only one of `temperature` and `top_p`.
                top_p: $crate::sampling::TopP => sampling.top_p;
                /// Whether tools run one at a time and every call needs a permission request.
                safe_mode: bool => safe_mode;
                /// Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt
                /// cache.
                system_prompt: String => system_prompt;
                /// Appended to the system prompt; empty for nothing.
                append_system_prompt: String => append_system_prompt;
                /// The complete list of additional existing folders of the workspace, absolute. Those of a session apply
                /// at once; their AGENTS.md is read when the next turn starts.
                additional_dirs: Vec<String> => additional_dirs;
                /// `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models]
                /// fallback`. Empty for that default.
                fallback_model: String => fallback_model;
                /// Texts at which the model stops its answer: at most 4, of at most 256 bytes each.
                stop: Vec<String> => stop;
                /// Labels that the provider receives with each model request: at most 16, with keys of at most 64 and
                /// values of at most 512 bytes. Anthropic accepts only `user_id`.
                metadata: std::collections::BTreeMap<String, String> => metadata;
                /// JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for
                /// none. References to other documents are refused.
                output_schema: serde_json::Value => output_schema;
            }
        }
    };
}

/// A value of a session that an option replaces.
trait OptionValue<New> {
    /// Takes over a new value. An empty one removes a value that may be absent.
    fn set_option(&mut self, new: &New);
    /// Whether the new value changes nothing.
    fn equals_option(&self, new: &New) -> bool;
}

impl<T: Clone + PartialEq> OptionValue<T> for T {
    fn set_option(&mut self, new: &T) {
        self.clone_from(new);
    }

    fn equals_option(&self, new: &T) -> bool {
        self == new
    }
}

impl OptionValue<String> for Option<String> {
    fn set_option(&mut self, new: &String) {
        *self = Some(new.clone()).filter(|new| !new.is_empty());
    }

    fn equals_option(&self, new: &String) -> bool {
        self.as_deref().unwrap_or_default() == new
    }
}

impl OptionValue<Value> for Option<Value> {
    fn set_option(&mut self, new: &Value) {
        *self = Some(new.clone()).filter(|new| !is_empty_object(new));
    }

    fn equals_option(&self, new: &Value) -> bool {
        self.as_ref().map_or_else(|| is_empty_object(new), |known| known == new)
    }
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

macro_rules! optional_values {
    ($($value:ty),+) => {
        $(
            impl OptionValue<$value> for Option<$value> {
                fn set_option(&mut self, new: &$value) {
                    *self = Some(*new);
                }

                fn equals_option(&self, new: &$value) -> bool {
                    *self == Some(*new)
                }
            }
        )+
    };
}

optional_values!(Thinking, Temperature, TopP);

macro_rules! turn_options {
    (options { $($(#[$doc:meta])* $option:ident: $value:ty => $($place:ident).+;)+ }) => {
        /// Options that a turn takes from its input, and a session from its settings. An absent option means the
        /// session's value. An empty value (`""`, `[]`, `{}`) means the default of the configuration.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct TurnOptions {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none", default)]
                pub $option: Option<$value>,
            )+
            /// The slash command whose expansion is the input; never a setting of a session.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub command: Option<SlashCommand>,
            /// The turn has no input and only compacts the conversation; never a setting of a session.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub compact: Option<CompactRequest>,
        }

        impl TurnOptions {
            /// The options without those that equal the values of `spec`.
            #[must_use]
            pub fn changes_of(self, spec: &SessionSpec) -> Self {
                Self {
                    $($option: self.$option.filter(|new| !spec.$($place).+.equals_option(new)),)+
                    command: None,
                    compact: None,
                }
            }
        }

        impl SessionSpec {
            /// Takes over the options that are present. An empty text removes the session's value.
            pub fn set(&mut self, options: &TurnOptions) {
                $(
                    if let Some(new) = &options.$option {
                        self.$($place).+.set_option(new);
                    }
                )+
            }
        }
    };
}

with_turn_options!(turn_options {});

impl TurnOptions {
    /// Whether the options change the beginning of the model's requests, so that a turn needs its own system prompt.
    #[must_use]
    pub fn change_system_prompt(&self) -> bool {
        self.system_prompt.is_some() || self.append_system_prompt.is_some() || self.additional_dirs.is_some()
    }

    /// The sampling settings.
    #[must_use]
    pub fn sampling(&self) -> Sampling {
        Sampling { temperature: self.temperature, top_p: self.top_p }
    }

    /// These options with other sampling settings.
    #[must_use]
    pub fn with_sampling(self, Sampling { temperature, top_p }: Sampling) -> Self {
        Self { temperature, top_p, ..self }
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
