//! Lists the values of the configuration with their origins. Values that may be secret are masked.

use serde_json::Value;

use super::Config;
use api::params::ConfigValue;

/// Origin of a value that is set nowhere.
const DEFAULT: &str = "default";
/// Replaces a value that may be a secret.
const MASK: &str = "***";
/// Tables with settings of other programs. Their texts may contain secrets.
const FOREIGN_TABLES: [&str; 2] = ["hooks", "mcp"];
/// Tables in which unset keys are not listed, because there are many of them for each entry.
const ENTRY_TABLES: [&str; 2] = ["providers", "model"];
const RULES: [&str; 3] = ["allow", "ask", "deny"];

/// A value that did not come from a file.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    pub key: &'static str,
    pub value: String,
    /// Origin of the value; `None` if a file or the default set it.
    pub origin: Option<String>,
}

/// The origin of a value from an environment variable.
pub(crate) fn variable_origin(name: &str) -> String {
    format!("environment ({name})")
}

/// Lists every key with its value, in the order of the names.
pub(crate) fn list(config: &Config, overrides: &[Override]) -> Vec<ConfigValue> {
    let mut listing = Listing { config, overrides, rows: Vec::new() };
    // Serialising cannot fail: a test lists the defaults.
    let tables = serde_json::to_value(config).unwrap_or_default();
    for (name, value) in tables.as_object().into_iter().flatten() {
        listing.add(&mut vec![name], value);
    }
    listing.rows
}

struct Listing<'a> {
    config: &'a Config,
    overrides: &'a [Override],
    rows: Vec<ConfigValue>,
}

impl Listing<'_> {
    fn add<'v>(&mut self, path: &mut Vec<&'v str>, value: &'v Value) {
        match value {
            Value::Object(table) => {
                for (name, value) in table {
                    path.push(name);
                    self.add(path, value);
                    path.pop();
                }
            }
            Value::Null if ENTRY_TABLES.contains(&path[0]) || path.starts_with(&["jobs", "notify"]) => {}
            _ if path.len() == 2 && path[0] == "permissions" && RULES.contains(&path[1]) => {
                self.add_rules(path);
            }
            value => {
                let key = path.join(".");
                let value_override = self.overrides.iter().find(|it| it.key == key);
                let (mut origin, mut line) = self.origin(path);
                if let Some(other) = value_override.and_then(|it| it.origin.clone()) {
                    (origin, line) = (other, None);
                }
                let value = value_override.map_or_else(|| value.clone(), |it| it.value.clone().into());
                self.rows.push(ConfigValue {
                    key: dotted_key(path),
                    value: mask_value(path, value),
                    origin,
                    line,
                });
            }
        }
    }

    /// Adds the rules, one row for each file, because the rules of all files apply together.
    fn add_rules(&mut self, path: &[&str]) {
        let before = self.rows.len();
        for source in &self.config.sources {
            let Some((depth, line)) = source.find(path) else { continue };
            if depth < path.len() {
                continue;
            }
            let of_kind = |(file, kind, _): &(&std::path::Path, types::permission::RuleKind, _)| {
                *file == source.file && kind.name() == path[1]
            };
            let rules = self.config.rules().into_iter().filter(of_kind).map(|(_, _, rule)| Value::from(rule));
            self.rows.push(ConfigValue {
                key: dotted_key(path),
                value: rules.collect(),
                origin: source.file.display().to_string(),
                line: Some(line),
            });
        }
        if self.rows.len() == before {
            let value = Value::Array(Vec::new());
            self.rows.push(ConfigValue { key: dotted_key(path), value, origin: DEFAULT.into(), line: None });
        }
    }

    /// The origin of a value and its line: the environment variable that sets the key, else the last file, else the
    /// default.
    fn origin(&self, path: &[&str]) -> (String, Option<usize>) {
        let found = self.config.sources.iter().rev().find_map(|source| {
            let (depth, line) = source.find(path)?;
            (depth == path.len()).then(|| (source.file.display().to_string(), Some(line)))
        });
        let by_variable = || {
            let names = (1..=path.len()).rev().map(|depth| path[..depth].join("."));
            let mut variables = names.filter_map(|name| self.config.from_environment.get(&name));
            variables.next().map(|variable| (variable_origin(variable), None))
        };
        by_variable().or(found).unwrap_or_else(|| (DEFAULT.into(), None))
    }
}

/// The key as it is written in a file.
fn dotted_key(path: &[&str]) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let quoted = |name: &&str| match !name.is_empty() && name.chars().all(is_bare) {
        true => (*name).to_owned(),
        false => toml::Value::String((*name).to_owned()).to_string(),
    };
    path.iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// Masks the parts of a value that may be secret.
fn mask_value(path: &[&str], value: Value) -> Value {
    let name = *path.last().unwrap_or(&"");
    match path {
        [table, ..] if FOREIGN_TABLES.contains(table) => mask_texts(value),
        ["providers", _, "headers" | "query", _] | ["telemetry", "headers", _] => MASK.into(),
        ["providers", _, "api_key_command"] => MASK.into(),
        ["providers", _, "api_key_env"]
        | ["telemetry", "headers_env", _]
        | ["jobs", "notify", _, "secret_env"] => variable_name(value),
        ["tools", "env"] => match value {
            Value::Array(names) => names.into_iter().map(variable_name).collect(),
            other => variable_name(other),
        },
        ["permissions", "unattended", "notify_command"] | ["jobs", "notify", _, "command"] => match value {
            // The arguments of a command may contain a token.
            Value::Array(arguments) => arguments
                .into_iter()
                .enumerate()
                .map(|(at, word)| if at == 0 { word } else { MASK.into() })
                .collect(),
            other => other,
        },
        _ => match value {
            // The path of a webhook is often its secret.
            Value::String(text) if name == "notify_url" || matches!(path, ["jobs", "notify", _, "url"]) => {
                mask_url(&text, PathSecrecy::Secret).into()
            }
            Value::String(text) if text.contains("://") || name == "web_proxy" => {
                mask_url(&text, PathSecrecy::Public).into()
            }
            other => other,
        },
    }
}

/// Shows the name of an environment variable. A key that a user wrote in place of the name is masked.
fn variable_name(value: Value) -> Value {
    let is_name = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    match value {
        Value::String(text) if !is_name(&text) => MASK.into(),
        other => other,
    }
}

fn mask_texts(value: Value) -> Value {
    match value {
        Value::Bool(_) | Value::Null => value,
        Value::Array(values) => values.into_iter().map(mask_texts).collect(),
        Value::Object(table) => table.into_iter().map(|(name, value)| (name, mask_texts(value))).collect(),
        Value::String(_) | Value::Number(_) => MASK.into(),
    }
}

/// Whether the path of an address is a secret, as in the addresses of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathSecrecy {
    Public,
    Secret,
}

/// Removes user, password, query and fragment from an address, and also its path if that is secret.
fn mask_url(text: &str, path_secrecy: PathSecrecy) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let separator = if scheme.is_empty() { "" } else { "://" };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{MASK}@{host}"),
        None => authority.to_owned(),
    };
    let path_end = tail.find(['?', '#']).unwrap_or(tail.len());
    let path = match path_secrecy == PathSecrecy::Secret && path_end > 1 {
        true => format!("/{MASK}"),
        false => tail[..path_end].to_owned(),
    };
    let query = if path_end < tail.len() { format!("?{MASK}") } else { String::new() };
    format!("{scheme}{separator}{authority}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::workspace::{KeyUse, key_use};

    fn load(text: &str, env: &dyn Fn(&str) -> Option<String>) -> (tempfile::TempDir, Config) {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).expect("written");
        let config = Config::load(env, Some(file)).expect("right");
        (dir, config)
    }

    fn row<'a>(rows: &'a [ConfigValue], key: &str) -> &'a ConfigValue {
        rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("{key} is missing"))
    }

    #[test]
    fn every_listed_key_is_permitted_or_refused_for_projects() {
        let (_dir, config) =
            load("[providers.x]\nkind = \"anthropic\"\n[model.\"x/y\"]\ntools = true\n", &|_| None);
        for row in list(&config, &[]) {
            let known = key_use(&row.key);
            assert!(matches!(known, KeyUse::Permitted(_) | KeyUse::UserOnly), "{}: {known:?}", row.key);
        }
    }

    #[test]
    fn values_are_listed_with_file_line_and_variable() {
        let text = "[daemon]\nlog = \"debug\"\n[permissions]\ndeny = [\"Read(.env)\"]\n[tools]\nbash_timeout = \"90s\"\n";
        let (dir, config) = load(text, &|name| (name == "ANTHROPIC_API_KEY").then(|| "k".into()));
        let socket = Override {
            key: "daemon.socket",
            value: "/s".into(),
            origin: Some(variable_origin("AGENTD_SOCKET")),
        };
        let rows = list(&config, &[socket]);
        let file = dir.path().join("config.toml").display().to_string();
        for (key, value, origin, line) in [
            ("daemon.log", Value::from("debug"), file.as_str(), Some(2)),
            ("daemon.backups", 3.into(), "default", None),
            ("daemon.socket", "/s".into(), "environment (AGENTD_SOCKET)", None),
            ("permissions.deny", vec!["Read(.env)"].into(), &file, Some(4)),
            ("permissions.allow", Value::Array(Vec::new()), "default", None),
            ("tools.bash_timeout", "90s".into(), &file, Some(6)),
            ("tools.max_result_size", "128KiB".into(), "default", None),
            ("models.main", "anthropic/claude-sonnet-5-5".into(), "environment (ANTHROPIC_API_KEY)", None),
            ("models.quick", Value::Null, "default", None),
            ("providers.anthropic.kind", "anthropic".into(), "environment (ANTHROPIC_API_KEY)", None),
        ] {
            let row = row(&rows, key);
            assert_eq!((&row.value, row.origin.as_str(), row.line), (&value, origin, line), "{key}");
        }
    }

    #[test]
    fn variable_for_bare_loop_replaces_value_of_file() {
        let simple = |value: &str| {
            let env = |name: &str| (name == "AGENTD_SIMPLE").then(|| value.to_owned());
            let dir = tempfile::tempdir().expect("a folder");
            let file = dir.path().join("config.toml");
            std::fs::write(&file, "[session]\nsimple = false\n").expect("written");
            Config::load(&env, Some(file)).map_err(|error| error.to_string())
        };
        for on in ["1", "true", " 1 "] {
            let config = simple(on).expect("right");
            let rows = list(&config, &[]);
            let row = row(&rows, "session.simple");
            assert_eq!(
                (&row.value, row.origin.as_str()),
                (&true.into(), "environment (AGENTD_SIMPLE)"),
                "{on}"
            );
            assert!(config.session.simple && config.is_set_by_variable("session.simple"), "{on}");
        }
        for off in ["", "0", "false"] {
            let config = simple(off).expect("right");
            assert!(!config.session.simple && !config.is_set_by_variable("session.simple"), "{off}");
        }
        let refused = simple("perhaps").expect_err("neither");
        assert!(refused.contains("AGENTD_SIMPLE") && refused.contains("perhaps"), "{refused}");
    }

    #[test]
    fn listed_values_contain_no_secret() {
        let text = r#"
[providers.x]
kind = "openai_chat"
base_url = "https://me:canary-1@h:1/v1?key=canary-16"
query = { key = "canary-17" }
api_key_command = "echo canary-2"
headers = { "x-team" = "canary-3" }
[providers.y]
kind = "anthropic"
api_key_env = "sk-canary-4"
[permissions.unattended]
notify_command = ["sh", "-c", "curl canary-5"]
notify_url = "https://hooks.example/services/canary-6?x=canary-7"
[telemetry]
endpoint = "http://u:canary-8@h/v1?key=canary-9"
headers = { a = "canary-10" }
headers_env = { b = "canary-11" }
[tools]
web_proxy = "http://u:canary-12@proxy:3128"
[mcp.a]
command = "canary-13"
env = { TOKEN = "canary-14" }
enabled = true
[hooks]
x = [{ command = "canary-15" }]
[jobs.notify.a]
url = "https://u:canary-18@hooks.example/canary-19"
secret_env = "canary-20"
[jobs.notify.b]
command = ["curl", "canary-21"]
"#;
        let (_dir, config) = load(text, &|_| None);
        let rows = list(&config, &[]);
        let all = serde_json::to_string(&rows).expect("JSON");
        assert!(!all.contains("canary"), "{all}");
        for (key, value) in [
            ("providers.x.base_url", "https://***@h:1/v1?***"),
            ("providers.x.query.key", "***"),
            ("providers.x.headers.x-team", "***"),
            ("permissions.unattended.notify_url", "https://hooks.example/***?***"),
            ("jobs.notify.a.url", "https://***@hooks.example/***"),
            ("telemetry.endpoint", "http://***@h/v1?***"),
            ("tools.web_proxy", "http://***@proxy:3128"),
        ] {
            assert_eq!(row(&rows, key).value, value, "{key}");
        }
        assert_eq!(row(&rows, "mcp.a.enabled").value, true);
    }
}
