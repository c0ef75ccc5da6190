//! Templates of jobs: named prompts with parameters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A template of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobTemplate {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Its parameters by name.
    pub parameters: BTreeMap<String, TemplateParameter>,
    /// `user` or `project`.
    pub source: String,
    /// Its file.
    pub path: String,
}

/// A parameter of a template.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateParameter {
    /// `string`, `integer`, `number` or `boolean`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its value if none is given.
    pub default: Option<Value>,
    /// The only possible values.
    #[serde(rename = "enum", default)]
    pub choices: Option<Vec<Value>>,
    /// A regular expression that the whole value matches.
    pub pattern: Option<String>,
    /// Whether a value must be given.
    #[serde(default)]
    pub required: bool,
}

/// A file that is not used as a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateDiagnostic {
    /// The file.
    pub path: String,
    /// Why it is not used.
    pub message: String,
}
