//! Values of arguments, and how they are parsed.

use clap::ValueEnum;

use crate::terminal::template::Template;
use api::params::{Include, ThinkingShown};
use types::audit::AuditHead;
use types::history::ExportFormat;
use types::permission::{Mode, Scope};
use types::sampling::{Temperature, TopP};
use types::session::SessionState;

/// Whether the model's thinking is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Thinking {
    /// Show it.
    Show,
    /// Hide it.
    #[default]
    Hide,
}

impl Thinking {
    /// The `include` parameter of the subscription.
    pub const fn include(self) -> Include {
        Include {
            thinking: match self {
                Thinking::Show => ThinkingShown::Full,
                Thinking::Hide => ThinkingShown::None,
            },
        }
    }
}

/// Output formats of `run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The answer as it is streamed.
    #[default]
    Text,
    /// The result as one JSON object.
    Json,
    /// Every event as one line of JSON.
    StreamJson,
}

/// Where `logs` begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// After the event with this seq.
    Seq(u64),
    /// This long ago, in milliseconds.
    Ago(u64),
}

pub(super) fn mode(text: &str) -> Result<Mode, String> {
    // Also accept the forms of other programs: acceptEdits, accept-edits.
    let mut name = String::with_capacity(text.len() + 2);
    for c in text.chars() {
        match c {
            '-' => name.push('_'),
            c if c.is_ascii_uppercase() && !name.is_empty() => name.extend(['_', c.to_ascii_lowercase()]),
            c => name.push(c),
        }
    }
    [text, name.as_str()]
        .into_iter()
        .find_map(|name| serde_json::from_value(serde_json::Value::from(name)).ok())
        .ok_or_else(|| "one of default, accept_edits, plan, dont_ask, bypass".to_string())
}

pub(super) fn template(text: &str) -> Result<Template, String> {
    Template::parse(text)
}

pub(super) fn export_format(text: &str) -> Result<ExportFormat, String> {
    serde_json::from_value(serde_json::Value::from(text))
        .map_err(|_| "one of jsonl, markdown, html".to_string())
}

pub(super) fn state(text: &str) -> Result<SessionState, String> {
    serde_json::from_value(serde_json::Value::from(text))
        .map_err(|_| "one of idle, running, requires_action, paused, failed, ended, archived".to_string())
}

pub(super) fn scope(text: &str) -> Result<Scope, String> {
    serde_json::from_value(serde_json::Value::from(text))
        .map_err(|_| "one of once, session, project".to_string())
}

pub(super) fn usd_micros(text: &str) -> Result<u64, String> {
    let dollars: f64 =
        text.trim_start_matches('$').parse().map_err(|_| "a number of dollars, for example 0.50")?;
    if !(dollars.is_finite() && (0.0..=1e9).contains(&dollars)) {
        return Err("a number of dollars from 0 to 1000000000".into());
    }
    Ok((dollars * 1e6).round() as u64)
}

pub(super) fn since(text: &str) -> Result<Since, String> {
    if let Ok(seq) = text.parse() {
        return Ok(Since::Seq(seq));
    }
    crate::terminal::format::parse_duration(text)
        .map(Since::Ago)
        .ok_or_else(|| "a duration with its unit (90s, 15m, 2h, 1d) or an event number".into())
}

/// Parses `NUMBER:HASH`, as `audit verify` prints it.
pub(super) fn audit_head(text: &str) -> Result<AuditHead, String> {
    let wrong = || "NUMBER:HASH, as `agentctl audit verify` prints it".to_owned();
    let (id, hash) = text.split_once(':').ok_or_else(wrong)?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    match id.parse() {
        Ok(id) if is_hash => Ok(AuditHead { id, hash: hash.to_ascii_lowercase() }),
        _ => Err(wrong()),
    }
}

/// Parses `KEY=VALUE`.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "KEY=VALUE, for example user_id=me".to_owned())?;
    Ok((key.to_owned(), value.to_owned()))
}

pub(super) fn temperature(text: &str) -> Result<Temperature, String> {
    serde_json::from_str(text).map_err(|_| "a number from 0 to 2".to_owned())
}

pub(super) fn share(text: &str) -> Result<TopP, String> {
    serde_json::from_str(text).map_err(|_| "a number from 0 to 1".to_owned())
}

/// Parses a duration for `--since`, such as `90s`, `2h` or `7d`.
pub(super) fn duration(text: &str) -> Result<u64, String> {
    crate::terminal::format::parse_duration(text)
        .ok_or_else(|| "a duration with its unit, for example 2h or 7d".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_head_argument_is_number_and_hash() {
        let hash = "a".repeat(64);
        assert_eq!(audit_head(&format!("3:{hash}")), Ok(AuditHead { id: 3, hash: hash.clone() }));
        for wrong in ["", "3", &hash, "x:y", &format!("3:{}", &hash[1..])] {
            assert!(audit_head(wrong).is_err(), "{wrong}");
        }
    }
}
