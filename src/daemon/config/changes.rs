//! The differences between two configurations by key, and when each difference takes effect.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::Config;

/// Keys that are read only at the start.
const START_ONLY_KEYS: [&str; 5] =
    ["daemon.socket", "daemon.data_dir", "daemon.log_format", "daemon.backups", "telemetry"];

/// Keys that differ, in dotted form and sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changes with immediate effect.
    pub at_once: Vec<String>,
    /// Changes that take effect after a restart.
    pub after_restart: Vec<String>,
}

impl Changes {
    /// The changes in `new` compared with the active configuration. The active configuration is `old`,
    /// except for the keys that only the start reads: for these keys it is `at_start`.
    pub fn between(at_start: &Config, old: &Config, new: &Config) -> Self {
        let at_once = changed_keys(&old.table, &new.table)
            .into_iter()
            .filter(|key| !is_any(key, &START_ONLY_KEYS))
            .collect();
        let after_restart = changed_keys(&at_start.table, &new.table)
            .into_iter()
            .filter(|key| is_any(key, &START_ONLY_KEYS))
            .collect();
        Self { at_once, after_restart }
    }
}

/// Whether the key with this dotted name is read only at the start.
pub fn is_read_at_start(key: &str) -> bool {
    is_any(key, &START_ONLY_KEYS)
}

/// Whether a key is one of these or in one of these tables.
fn is_any(key: &str, of: &[&str]) -> bool {
    of.iter().any(|name| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

fn changed_keys(old: &Table, new: &Table) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect_changed_keys("", old, new, &mut found);
    found
}

fn collect_changed_keys(above: &str, old: &Table, new: &Table, found: &mut BTreeSet<String>) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let none = Table::new();
    for name in names {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match (old.get(name), new.get(name)) {
            (Some(Value::Table(old)), Some(Value::Table(new))) => {
                collect_changed_keys(&path, old, new, found)
            }
            (Some(Value::Table(old)), None) => collect_changed_keys(&path, old, &none, found),
            (None, Some(Value::Table(new))) => collect_changed_keys(&path, &none, new, found),
            (old, new) if old == new => {}
            _ => {
                found.insert(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config { table: text.parse().expect("toml"), ..Config::default() }
    }

    fn check(at_start: &str, old: &str, new: &str, at_once: &[&str], after_restart: &[&str]) {
        let changes = Changes::between(&config(at_start), &config(old), &config(new));
        assert_eq!(changes.at_once, at_once, "{old} -> {new}");
        assert_eq!(changes.after_restart, after_restart, "{at_start} -> {new}");
    }

    #[test]
    fn changed_configuration_keys_are_named_individually() {
        check("", "", "", &[], &[]);
        check("", "[retry]\nattempts = 3", "[retry]\nattempts = 3", &[], &[]);
        check(
            "",
            "[retry]\nattempts = 3",
            "[retry]\nattempts = 4\nbase_ms = 1",
            &["retry.attempts", "retry.base_ms"],
            &[],
        );
        check("", "[retry]\nattempts = 3", "", &["retry.attempts"], &[]);
        check("", "", "[providers.x]\nkind = \"replay\"", &["providers.x.kind"], &[]);
        check("", "[model.\"a/b\"]\nvision = true", "", &["model.a/b.vision"], &[]);
        check(
            "",
            "[permissions]\nallow = [\"Read\"]",
            "[permissions]\nallow = []",
            &["permissions.allow"],
            &[],
        );
        check(
            "",
            "",
            "[sandbox]\nlevel = \"off\"\n[knowledge]\ntop_k = 3",
            &["knowledge.top_k", "sandbox.level"],
            &[],
        );
    }

    #[test]
    fn start_only_keys_are_compared_with_start_configuration() {
        let (a, b) = ("[daemon]\nsocket = \"/a\"", "[daemon]\nsocket = \"/b\"");
        check(a, a, b, &[], &["daemon.socket"]);
        check(a, b, b, &[], &["daemon.socket"]);
        check(a, b, a, &[], &[]);
        check(
            "",
            "",
            "[daemon]\nlog = \"debug\"\nlog_format = \"json\"",
            &["daemon.log"],
            &["daemon.log_format"],
        );
    }
}
