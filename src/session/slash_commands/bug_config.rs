//! The part of a configuration file that `/bug` includes: the names of the keys that are set, and harmless values.

use toml::{Table, Value};

/// Tables whose numbers and booleans are harmless.
const HARMLESS_TABLES: [&str; 11] = [
    "daemon",
    "providers",
    "models",
    "model",
    "session",
    "permissions",
    "sandbox",
    "retry",
    "tools",
    "limits",
    "compaction",
];
/// Keys whose texts are harmless. `*` matches any name.
const HARMLESS_TEXTS: [&[&str]; 28] = [
    &["daemon", "log"],
    &["daemon", "log_format"],
    &["daemon", "on_restart"],
    &["models", "*"],
    &["model", "*", "min_effort"],
    &["model", "*", "replay_reasoning"],
    &["session", "mode"],
    &["session", "thinking"],
    &["session", "budgets", "*"],
    &["permissions", "unattended", "deadline"],
    &["permissions", "unattended", "on_timeout"],
    &["permissions", "unattended", "wall_time"],
    &["sandbox", "level"],
    &["sandbox", "network"],
    &["retry", "on_rate_limit"],
    &["retry", "max_retry_after"],
    &["retry", "heartbeat"],
    &["retry", "idle_warn"],
    &["retry", "idle_timeout"],
    &["retry", "content_timeout"],
    &["retry", "attempt_timeout"],
    &["tools", "bash_timeout"],
    &["tools", "bash_timeout_max"],
    &["tools", "max_result_size"],
    &["tools", "max_results_total"],
    &["limits", "idle_unload"],
    &["limits", "journal_size"],
    &["limits", "delete_ended_after"],
];

/// One line per key that is set: `name = value` if the value is harmless, else `name`. `None` if the text is not
/// TOML.
pub(super) fn summary(text: &str) -> Option<Vec<String>> {
    let table: Table = text.parse().ok()?;
    let mut lines = Vec::new();
    add(&table, &mut Vec::new(), &mut lines);
    Some(lines)
}

fn add<'a>(table: &'a Table, path: &mut Vec<&'a str>, lines: &mut Vec<String>) {
    for (name, value) in table {
        path.push(name);
        match value {
            Value::Table(inner) => add(inner, path, lines),
            value => {
                let shown = if is_harmless(path, value) { format!(" = {value}") } else { String::new() };
                lines.push(path.join(".") + &shown);
            }
        }
        path.pop();
    }
}

fn is_harmless(path: &[&str], value: &Value) -> bool {
    match value {
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
            path.first().is_some_and(|table| HARMLESS_TABLES.contains(table)) && !path.contains(&"headers")
        }
        Value::String(_) => HARMLESS_TEXTS.iter().any(|known| {
            known.len() == path.len()
                && known.iter().zip(path).all(|(known, name)| *known == "*" || known == name)
        }),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_told_by_names_and_harmless_values_only() {
        let config = r#"
[providers.x]
kind = "secret-0"
base_url = "http://me:secret-1@h"
store = true
api_key_command = """
echo \
secret-2
echo secret-3 = secret-4"""
[providers.x.headers]
x-team = "secret-5"
[models]
main = "x/y"
[model."x/y"]
context_window = 1000
[permissions]
allow = ["Bash(secret-6)"]
[permissions.unattended]
notify_command = ["sh", "secret-7"]
notify_url = "https://hooks.example/services/secret-8"
[hooks]
a = 4711
b = "secret-9"
"#;
        let lines = summary(config).unwrap();
        let text = lines.join("\n");
        assert!(!text.contains("secret-") && !text.contains("4711"), "{text}");
        for line in [
            "providers.x.api_key_command",
            "providers.x.headers.x-team",
            "providers.x.store = true",
            "models.main = \"x/y\"",
            "model.x/y.context_window = 1000",
            "permissions.unattended.notify_url",
        ] {
            assert!(lines.iter().any(|known| known == line), "{line}: {text}");
        }
        assert_eq!(summary("[providers\nkey = \"secret\""), None);
    }
}
