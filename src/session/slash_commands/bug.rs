//! `/bug`: a diagnostic bundle without known secrets, for a report to the authors.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::bug_config;
use crate::error::SessionError;
use crate::handle::SessionHandle;
use crate::registry::Registry;
use types::ids::SessionId;

/// Number of newest events in the bundle.
const MAX_EVENTS: u32 = 200;
/// Maximum bytes of these events.
const MAX_EVENT_BYTES: usize = 2 << 20;
/// Maximum bytes of one text in the bundle.
const MAX_TEXT_BYTES: usize = 4_000;
/// Minimum bytes of a secret. Replacing shorter texts would damage the bundle without protecting anything.
const MIN_SECRET_BYTES: usize = 4;
const REDACTED: &str = "[redacted]";

/// Parts of names whose values are secret.
const SECRET_NAMES: [&str; 11] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "credential",
    "signature",
    "headers",
    "private",
];
/// Names that contain such a part but whose values are not secret.
const HARMLESS_NAMES: [&str; 12] = [
    "api_key_env",
    "api_key_file",
    "idempotency_key",
    "headers_env",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "max_output_tokens",
    "session_output_tokens",
    "keep_recent_tokens",
];
/// Prefixes of tokens of well-known services.
const TOKEN_PREFIXES: [&str; 17] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
];
/// Words before a secret in a line of text.
const SECRET_WORDS: [&str; 4] = ["bearer", "basic", "token", "password"];

impl Registry {
    /// Writes the bundle and returns its path. Only the user can read it.
    pub(super) async fn write_bug_report(
        &self,
        id: SessionId,
        handle: &SessionHandle,
        description: &str,
    ) -> Result<PathBuf, SessionError> {
        let shared = self.shared();
        let settings = shared.components().settings.clone();
        let view = self.view_with_models(id).await?;
        let after = view.last_seq.saturating_sub(u64::from(MAX_EVENTS));
        let page = shared.store.events_after(handle.key(), after, MAX_EVENTS, MAX_EVENT_BYTES).await?;
        let events: Vec<Value> = page
            .rows
            .iter()
            .filter_map(|row| serde_json::from_str(&row.body).ok())
            .map(without_outputs)
            .collect();
        let of_providers = shared.components().models.clone();
        let of_providers = of_providers.secrets().await;
        let now = shared.clock.now();
        let bundle = json!({
            "agentd": env!("CARGO_PKG_VERSION"),
            "platform": [std::env::consts::OS, std::env::consts::ARCH],
            "time": now.minute(),
            "description": description,
            "session": view,
            "events": events,
        });
        let name = format!("bug-{}-{id}.json", now.0);
        let failed =
            |why: String| SessionError::BadParam("input", format!("could not write the bundle: {why}"));
        let written = tokio::task::spawn_blocking(move || {
            let mut bundle = bundle;
            let secrets = known_secrets(of_providers);
            redact(&mut bundle, &secrets);
            let read = |path: &PathBuf| {
                let file = redact_text(&path.display().to_string(), &secrets);
                let (state, keys) = match std::fs::read_to_string(path) {
                    Ok(text) => match bug_config::summary(&text) {
                        Some(keys) => ("read", keys),
                        None => ("is not TOML", Vec::new()),
                    },
                    Err(_) => ("could not be read", Vec::new()),
                };
                let keys: Vec<String> = keys.iter().map(|line| redact_text(line, &secrets)).collect();
                json!({"file": file, "state": state, "keys": keys})
            };
            bundle["config"] = settings.config_files.iter().map(read).collect();
            write(&settings.reports_dir, &name, &bundle)
        });
        written.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }
}

fn write(folder: &Path, name: &str, bundle: &Value) -> std::io::Result<PathBuf> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(name);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    serde_json::to_writer_pretty(&mut file, bundle)?;
    file.write_all(b"\n")?;
    Ok(path)
}

/// Values of environment variables with a secret name, and the keys of the providers. Longer values
/// come first, because they may contain shorter ones.
fn known_secrets(of_providers: Vec<String>) -> Vec<String> {
    let is_secret = |(name, value): &(String, String)| is_secret_name(name) && value.len() >= 8;
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut secrets: Vec<String> = environment.filter(is_secret).map(|(_, value)| value).collect();
    for secret in of_providers {
        // Split a header such as `Bearer KEY`, so that its credentials are found alone.
        secrets.extend(secret.split_whitespace().filter(|word| word.len() >= 8).map(str::to_owned));
        secrets.push(secret);
    }
    secrets.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// Replaces the outputs of tools in an event by their lengths. It also replaces the deltas of an
/// answer, because a key may be spread over several deltas, and texts that quote outputs.
fn without_outputs(mut event: Value) -> Value {
    let kind = event["type"].as_str().unwrap_or_default();
    let fields: &[&str] = match kind {
        "tool.progress" | "message.text_delta" | "message.thinking_delta" | "reminder.added" => &["text"],
        "message.tool_input_delta" => &["json"],
        "tool.completed" | "tool.blocked" => &["output", "detail", "attachments"],
        "compact.completed" => &["edit"],
        _ => &[],
    };
    for field in fields {
        if let Some(value) = event.get_mut(*field) {
            *value = length_value(value);
        }
    }
    without_results(&mut event);
    event
}

/// Removes the contents of tool results inside messages.
fn without_results(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(without_results),
        Value::Object(fields) => {
            if fields.get("type").is_some_and(|kind| kind == "tool_result") {
                for field in ["content", "attachments"] {
                    if let Some(value) = fields.get_mut(field) {
                        *value = length_value(value);
                    }
                }
            }
            fields.values_mut().for_each(without_results);
        }
        _ => {}
    }
}

fn length_value(value: &Value) -> Value {
    let bytes = value.as_str().map_or_else(|| value.to_string().len(), str::len);
    format!("[{bytes} bytes]").into()
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !HARMLESS_NAMES.contains(&name.as_str()) && SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Removes secrets and shortens long texts.
fn redact(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            *text = redact_text(text, secrets);
            if text.len() > MAX_TEXT_BYTES {
                text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
                text.push_str("… [cut]");
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| redact(value, secrets)),
        Value::Object(fields) => {
            let redacted = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                match &mut value {
                    // Counts may also have such names, so numbers stay.
                    Value::String(_) | Value::Object(_) | Value::Array(_) if is_secret_name(&name) => {
                        value = REDACTED.into();
                    }
                    value => redact(value, secrets),
                }
                (redact_text(&name, secrets), value)
            });
            *fields = redacted.collect::<Map<_, _>>();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redact_text(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        text = text.replace(secret.as_str(), REDACTED);
    }
    text = without_userinfo(&text);
    if let Some(at) = text.find("-----BEGIN ") {
        text.truncate(at);
        text.push_str(REDACTED);
    }
    let mut redacted = String::with_capacity(text.len());
    let mut word = String::new();
    let mut follows_secret_word = false;
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/') {
            word.push(c);
            continue;
        }
        let is_token = TOKEN_PREFIXES.iter().any(|prefix| word.starts_with(prefix)) && word.len() >= 16
            || follows_secret_word && word.len() >= 8;
        redacted.push_str(if is_token { REDACTED } else { &word });
        if !word.is_empty() {
            let name = word.to_ascii_lowercase();
            // Matches `name=value`, `name: value` and `Bearer value`.
            follows_secret_word = SECRET_WORDS.contains(&name.as_str()) && matches!(c, ' ' | ':' | '=')
                || is_secret_name(&name) && matches!(c, ':' | '=');
            word.clear();
        }
        redacted.push(c);
    }
    redacted.pop();
    redacted
}

/// Removes `user:password@` from URLs.
fn without_userinfo(text: &str) -> String {
    let (mut redacted, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        redacted.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?' | '#'));
        let authority = &after[..end.unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                redacted.push_str(REDACTED);
                &after[at..]
            }
            None => after,
        };
    }
    redacted + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_removed_from_events() {
        let secrets = vec!["hunter2hunter2".to_owned()];
        let mut value = json!({
            "input": {"command": "curl -H 'Authorization: Bearer abcdefgh12345678' https://x"},
            "text": format!("key sk-ant-{} and hunter2hunter2, password=correcthorse, plain words stay", "x1".repeat(20)),
            "api_key": "abc", "usage": {"input_tokens": 5},
            "more": "-----BEGIN PRIVATE KEY-----\nMIIE",
        });
        redact(&mut value, &secrets);
        let text = value.to_string();
        for secret in ["abcdefgh12345678", "sk-ant", "hunter2", "correcthorse", "\"abc\"", "MIIE"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert!(text.contains("plain words stay") && text.contains("curl") && text.contains("5"), "{text}");
    }

    #[test]
    fn keys_and_headers_of_providers_are_secrets_and_short_values_are_not() {
        let secrets = known_secrets(vec!["plainkey".into(), "Custom plainkeyplus".into(), "1".into()]);
        let text = redact_text("plainkeyplus plainkey 1 é", &secrets);
        assert_eq!(text, "[redacted] [redacted] 1 é");
    }

    #[test]
    fn outputs_of_tools_are_replaced_by_their_length() {
        let events = [
            json!({"type": "tool.progress", "text": "outputs", "stream": "stdout"}),
            json!({"type": "tool.completed", "output": "outputs", "detail": {"x": "outputs"}, "status": "completed"}),
            json!({"type": "tool.blocked", "output": "outputs"}),
            json!({"type": "compact.completed", "edit": {"results": [{"content": "outputs"}]}}),
            json!({"type": "message.text_delta", "text": "outputs"}),
            json!({"type": "x", "message": {"blocks": [{"type": "tool_result", "content": "outputs"}]}}),
        ];
        for event in events {
            let text = without_outputs(event).to_string();
            assert!(!text.contains("outputs") && text.contains(" bytes]"), "{text}");
        }
        let event = json!({"type": "message.completed", "text": "outputs"});
        assert_eq!(without_outputs(event.clone()), event);
    }
}
