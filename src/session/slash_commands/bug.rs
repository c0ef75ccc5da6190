//! `/bug`: a diagnostic bundle without secrets, for a report to the authors.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::session::error::SessionError;
use crate::session::handle::SessionHandle;
use crate::session::registry::Registry;
use crate::types::ids::SessionId;

/// Number of newest events in the bundle.
const EVENTS: u32 = 200;
/// Maximum bytes of these events.
const EVENT_BYTES: usize = 2 << 20;
/// Maximum bytes of one text in the bundle.
const MAX_TEXT_BYTES: usize = 4_000;
/// Maximum bytes of a configuration file.
const MAX_CONFIG_BYTES: usize = 256 << 10;
const REDACTED: &str = "[redacted]";

/// Parts of a name whose value is a secret.
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
/// Names that contain such a part and hold no secret.
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
/// Beginnings of tokens of well-known services.
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
        let after = view.last_seq.saturating_sub(u64::from(EVENTS));
        let page = shared.store.events_after(handle.key(), after, EVENTS, EVENT_BYTES).await?;
        let events: Vec<Value> =
            page.rows.iter().filter_map(|row| serde_json::from_str(&row.body).ok()).collect();
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
            let secrets = known_secrets();
            redact(&mut bundle, &secrets);
            let read = |path: &PathBuf| {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let text: String = text.chars().take(MAX_CONFIG_BYTES).collect();
                json!({"file": path, "text": redact_config(&text, &secrets)})
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

/// Values of the daemon's environment whose names say that they are secret.
fn known_secrets() -> Vec<String> {
    let is_secret = |(name, value): &(String, String)| is_secret_name(name) && value.len() >= 8;
    std::env::vars().filter(is_secret).map(|(_, value)| value).collect()
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
            for (name, value) in fields {
                match value {
                    // Counts have such names too.
                    Value::String(_) | Value::Object(_) | Value::Array(_) if is_secret_name(name) => {
                        *value = REDACTED.into();
                    }
                    value => redact(value, secrets),
                }
            }
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
            // `name=value`, `name: value`, `Bearer value`.
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
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        kept.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?' | '#'));
        let authority = &after[..end.unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                kept.push_str(REDACTED);
                &after[at..]
            }
            None => after,
        };
    }
    kept + rest
}

/// The lines of a TOML file; a value with a secret name, or in a table with one, is removed.
fn redact_config(text: &str, secrets: &[String]) -> String {
    let mut in_secret_table = false;
    let line = |line: &str| {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            in_secret_table = is_secret_name(trimmed.rsplit('.').next().unwrap_or(trimmed));
            return line.to_owned();
        }
        match line.split_once('=') {
            Some((name, _)) if in_secret_table || is_secret_name(name.trim().trim_matches('"')) => {
                format!("{name}= \"{REDACTED}\"")
            }
            _ => redact_text(line, secrets),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_removed_from_events_and_configuration() {
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
        let config = "[providers.x]\napi_key_env = \"X_KEY\"\napi_key = \"abc\"\nbase_url = \"http://h\"\nproxy = \"http://me:pa55@p:1\"\n\
                      [providers.x.headers]\nx-custom = \"def\"\n[models]\nmain = \"x/y\"";
        let text = redact_config(config, &secrets);
        assert!(text.contains("X_KEY") && text.contains("http://h") && text.contains("x/y"), "{text}");
        assert!(text.contains("http://[redacted]@p:1"), "{text}");
        assert!(!text.contains("abc") && !text.contains("def") && !text.contains("pa55"), "{text}");
    }
}
