//! `[jobs.notify.NAME]` of the configuration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::http::Webhook;

/// Maximum length of a name.
const MAX_NAME_BYTES: usize = 64;

/// `[jobs.notify.NAME]`: exactly one of `url` and `command`. `JobSettings::check` checks it, because a later file may
/// add keys to the table of an earlier one.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyTarget {
    /// Address that gets a signed POST.
    pub url: Option<String>,
    /// Name of the environment variable with the secret of the signature.
    pub secret_env: Option<String>,
    /// File with the secret of the signature.
    pub secret_file: Option<PathBuf>,
    /// Program and arguments; it gets the same JSON on its standard input.
    pub command: Vec<String>,
    /// What the message contains in addition: `result`, `prompt`.
    pub include: Vec<IncludedPart>,
}

/// A part of a job that a message contains only if the user wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncludedPart {
    /// The text, the structured value and the error of the result.
    Result,
    /// The prompt, the parameters and the title.
    Prompt,
}

impl std::fmt::Debug for NotifyTarget {
    /// The address and the arguments may contain keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotifyTarget")
            .field("url", &self.url.as_ref().map(|_| "***"))
            .field("program", &self.command.first())
            .field("include", &self.include)
            .finish_non_exhaustive()
    }
}

/// A value of `[jobs]` that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem {
    /// The keys from the top: `jobs`, `notify`, the name, the key.
    pub path: Vec<String>,
    /// What is wrong and how to correct it, without addresses and keys.
    pub message: String,
}

impl SettingsProblem {
    fn of_target(name: &str, key: Option<&str>, message: impl Into<String>) -> Self {
        let path = ["jobs", "notify", name].into_iter().chain(key).map(str::to_owned).collect();
        Self { path, message: message.into() }
    }
}

/// Whether a text can name a table `[jobs.notify.NAME]` or a template.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= MAX_NAME_BYTES
        && text.chars().all(is_part)
}

impl NotifyTarget {
    /// Checks the merged table.
    ///
    /// # Errors
    /// A value cannot work; the message contains neither address nor secret.
    pub(crate) fn check(&self, name: &str) -> Result<(), SettingsProblem> {
        let wrong = |key, message: &str| Err(SettingsProblem::of_target(name, key, message));
        if !is_name(name) {
            return wrong(
                None,
                "a name has letters, digits, `-`, `_` and `.`, begins with a letter or digit and has at most 64 of them",
            );
        }
        match (&self.url, self.command.is_empty()) {
            (Some(_), false) => wrong(Some("command"), "set either url or command, not both"),
            (None, true) => wrong(None, "set url or command"),
            (None, false) if self.command[0].trim().is_empty() => {
                wrong(Some("command"), "the first word names a program and cannot be empty")
            }
            (None, false) if self.command.iter().any(|word| word.contains('\0')) => {
                wrong(Some("command"), "a word contains a zero byte")
            }
            (None, false) => match (&self.secret_env, &self.secret_file) {
                (None, None) => Ok(()),
                (Some(_), _) => wrong(Some("secret_env"), "only a url has a signature; remove it"),
                (None, Some(_)) => wrong(Some("secret_file"), "only a url has a signature; remove it"),
            },
            (Some(url), true) => {
                if let Err(why) = Webhook::parse(url) {
                    return Err(SettingsProblem::of_target(name, Some("url"), why));
                }
                match (&self.secret_env, &self.secret_file) {
                    (Some(_), Some(_)) => {
                        wrong(Some("secret_file"), "set either secret_env or secret_file, not both")
                    }
                    (None, None) => {
                        wrong(None, "a url needs secret_env or secret_file, the secret of its signature")
                    }
                    (Some(variable), None) if !is_variable(variable) => wrong(
                        Some("secret_env"),
                        "expected the name of an environment variable, not the secret: capital letters, digits and `_`",
                    ),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Whether a text looks like the name of an environment variable, and not like a secret.
fn is_variable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}
