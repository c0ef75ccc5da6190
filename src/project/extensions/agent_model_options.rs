//! What an agent's file says about how its model answers. Absent values are those of the session that starts it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::front_matter::{FrontMatter, normalized};
use types::sampling::Sampling;
use types::thinking::Thinking;

/// How the model of an agent answers, as far as its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentModelOptions {
    /// How much it thinks.
    pub thinking: Option<Thinking>,
    /// Its temperature and `top_p`.
    pub sampling: Sampling,
    /// The model, a pointer of `[models]` or one of its aliases, that replaces an overloaded or missing model.
    pub fallback_model: Option<String>,
}

impl AgentModelOptions {
    /// Reads the values, with a note for each that cannot be used.
    pub(super) fn read(front: &FrontMatter) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let options = Self {
            // Other programs call it effort.
            thinking: value(front, "thinking", &mut notes).or_else(|| value(front, "effort", &mut notes)),
            sampling: Sampling {
                temperature: value(front, "temperature", &mut notes),
                top_p: value(front, "top_p", &mut notes),
            },
            fallback_model: front.text("fallbackmodel"),
        };
        (options, notes)
    }
}

fn value<T: DeserializeOwned>(front: &FrontMatter, key: &str, notes: &mut Vec<String>) -> Option<T> {
    // As it is written, because YAML may read `off` as a boolean.
    let text = front.written(&normalized(key))?.trim().to_owned();
    if text.is_empty() {
        return None;
    }
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    match serde_json::from_value(value) {
        Ok(value) => Some(value),
        Err(error) => {
            notes.push(format!("{key}: {error}; the value of the session is used"));
            None
        }
    }
}
