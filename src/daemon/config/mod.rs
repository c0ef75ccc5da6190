//! Reads files and environment into a checked configuration. Errors name file, line and key.

use std::fmt;
use std::path::{Path, PathBuf};

use api::endpoint::{self, Env};
use judge::Rule;
use types::permission::RuleKind;
use types::typed_toml::{self, WrongToml};

pub use knowledge::{EmbedderKind, Knowledge};
pub use tables::{Config, LogFormat, LogLevel};

mod changes;
mod default_providers;
mod knowledge;
mod limits;
mod listing;
mod paths;
mod permission_tables;
mod source;
mod tables;

pub(super) use changes::{Changes, is_read_at_start};
pub(super) use listing::{Override, list, variable_origin};
use source::Source;

/// An error in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub file: Option<PathBuf>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The error and how to correct it.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// The variable that turns every optimisation off, as `[session] simple` does.
const SIMPLE: &str = "AGENTD_SIMPLE";

impl Config {
    /// Reads the files that `config.md` names and adds values from the environment. A later file
    /// overrides an earlier one.
    ///
    /// # Errors
    /// A named file is missing or a file is invalid. The error names file, line and key.
    pub fn load(env: Env<'_>, flag: Option<PathBuf>) -> Result<Self, ConfigError> {
        let files = endpoint::config_files(env, flag).map_err(|error| ConfigError {
            file: None,
            line: None,
            message: error.to_string(),
        })?;
        let mut merged = toml::Table::new();
        let mut sources = Vec::new();
        for (file, must_exist) in files {
            let text = match std::fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => continue,
                Err(error) => {
                    let message = format!("could not be read: {error}");
                    return Err(ConfigError { file: Some(file), line: None, message });
                }
            };
            // Check each file separately first, so that an error names the line in that file.
            Self::parse(&text, &file)?;
            let mut table =
                text.parse::<toml::Table>().map_err(|error| explain_error(&text, &file, error.into()))?;
            let source = Source { file, text };
            paths::resolve(&mut table, &source, env)?;
            keep_rules(&merged, &mut table);
            merge_tables(&mut merged, table);
            sources.push(source);
        }
        let text = toml::to_string(&merged).unwrap_or_default();
        let last = sources.last().map_or(Path::new("config.toml"), |source| source.file.as_path());
        let mut config = Self::parse(&text, last)?;
        config.files = sources.iter().map(|source| source.file.clone()).collect();
        config.sources = sources;
        config.table = merged;
        if config.providers.is_empty() {
            config.fill_from_environment(env);
        }
        config.name_stored_keys(env);
        config.replace_from_environment(env)?;
        Ok(config)
    }

    /// An error about the key at `path`. It names the file and the line of the key. If the key is
    /// missing, it names the line of the table.
    pub(super) fn key_error(&self, path: &[&str], message: String) -> ConfigError {
        source::key_error(&self.sources, path, message)
    }

    /// Whether only the system's file sets the key at `path`.
    pub(super) fn is_set_by_system(&self, path: &[&str]) -> bool {
        let sets = |source: &&source::Source| source.find(path).is_some_and(|(depth, _)| depth == path.len());
        let last = self.sources.iter().rev().find(sets);
        last.is_some_and(|source| source.file == Path::new(api::endpoint::SYSTEM_CONFIG))
    }

    /// The rules of all files as single entries, each with its file.
    pub(super) fn rules(&self) -> Vec<(&Path, RuleKind, String)> {
        let mut rules = Vec::new();
        for source in &self.sources {
            let Ok(table) = source.text.parse::<toml::Table>() else { continue };
            let Some(permissions) = table.get("permissions").and_then(toml::Value::as_table) else {
                continue;
            };
            for (key, kind) in RULES.into_iter().zip([RuleKind::Allow, RuleKind::Ask, RuleKind::Deny]) {
                let list = permissions.get(key).and_then(toml::Value::as_array).into_iter().flatten();
                let texts = list.filter_map(toml::Value::as_str);
                // The text that is kept, as in `permissions`.
                let kept = |rule: &str| {
                    Rule::in_list(kind, rule).map_or_else(|_| rule.trim().to_owned(), |rule| rule.to_string())
                };
                rules.extend(texts.map(|rule| (source.file.as_path(), kind, kept(rule))));
            }
        }
        rules
    }

    fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        typed_toml::from_str(text).map_err(|error| explain_error(text, file, error))
    }

    /// Whether an environment variable sets this key.
    pub(super) fn is_set_by_variable(&self, key: &str) -> bool {
        self.from_environment.contains_key(key)
    }

    /// Applies the variables that replace a value of the files.
    fn replace_from_environment(&mut self, env: Env<'_>) -> Result<(), ConfigError> {
        match env(SIMPLE).as_deref().map(str::trim) {
            None | Some("" | "0" | "false") => Ok(()),
            Some("1" | "true") => {
                self.session.simple = true;
                self.from_environment.insert("session.simple".into(), SIMPLE);
                Ok(())
            }
            Some(other) => {
                let message = format!("{SIMPLE}: expected 1 or 0, got {other:?}; unset it or set it to 1");
                Err(ConfigError { file: None, line: None, message })
            }
        }
    }
}

/// Adds the rules of an earlier file to those of a later one, instead of replacing them. Otherwise a
/// user could allow what the administrator denies for all users.
fn keep_rules(earlier: &toml::Table, later: &mut toml::Table) {
    let Some(known) = earlier.get("permissions").and_then(toml::Value::as_table) else { return };
    let Some(toml::Value::Table(permissions)) = later.get_mut("permissions") else { return };
    for kind in RULES {
        if let (Some(toml::Value::Array(old)), Some(toml::Value::Array(new))) =
            (known.get(kind), permissions.get_mut(kind))
        {
            new.splice(0..0, old.iter().cloned());
        }
    }
}

/// Keys of `[permissions]` that contain rules.
const RULES: [&str; 3] = ["allow", "ask", "deny"];

fn merge_tables(into: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge_tables(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn explain_error(text: &str, file: &Path, error: WrongToml) -> ConfigError {
    let WrongToml { path, why: mut message, start } = error;
    let line = start.map(|start| source::line_at(text, start));
    // The message already names an unknown key, but not the key of an invalid value.
    if path != "." && !message.starts_with("unknown field") {
        message = format!("{path}: {message}");
    }
    if message.starts_with("unknown field `api_key`") {
        message.push_str("; keys are never in this file: name a variable, a file or a command");
    }
    if let Some(nearest) = nearest_known(&message) {
        message.push_str(&format!("; did you mean `{nearest}`?"));
    }
    // Remove the names of Rust types, which mean nothing to a user.
    if let Some(at) = message.find("expected struct ") {
        let name_at = at + "expected struct ".len();
        let end = message[name_at..]
            .find(|c: char| !c.is_alphanumeric())
            .map_or(message.len(), |end| name_at + end);
        message.replace_range(at..end, "expected a table");
    }
    ConfigError { file: Some(file.to_path_buf()), line, message }
}

/// Keys of older versions and their current names.
const RENAMED_KEYS: [(&str, &str); 11] = [
    ("background_time", "background_timeout"),
    ("keep_ended", "delete_ended_after"),
    ("least_effort", "min_effort"),
    ("longest_wait", "max_retry_after"),
    ("offer_outside", "offer_unsandboxed_retry"),
    ("reasoning_back", "replay_reasoning"),
    ("result_size", "max_result_size"),
    ("results_size", "max_results_total"),
    ("spool_size", "max_spool_size"),
    ("spools_size", "max_spool_total"),
    ("web_private", "web_allowed_private"),
];

/// The new name of a renamed key. Otherwise the known name that is most similar to the unknown name in
/// serde's message.
fn nearest_known(message: &str) -> Option<String> {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (unknown, known) = names.split_first()?;
    if !message.contains("unknown field") && !message.contains("unknown variant") {
        return None;
    }
    if let Some((_, new)) = RENAMED_KEYS.iter().find(|(old, new)| old == unknown && known.contains(new)) {
        return Some((*new).to_owned());
    }
    known
        .iter()
        .map(|name| (strsim::jaro_winkler(unknown, name), *name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use types::config_values::ConfigDuration;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn unknown_key_error_names_file_line_and_suggestion() {
        let error = Config::parse("[daemon]\nlog = \"info\"\nsokcet = \"/x\"\n", Path::new("c.toml"))
            .expect_err("a typo");
        assert_eq!(error.line, Some(3));
        assert!(error.to_string().starts_with("c.toml:3: unknown field `sokcet`"), "{error}");
        assert!(error.to_string().ends_with("did you mean `socket`?"), "{error}");
    }

    #[test]
    fn renamed_key_error_names_new_key() {
        for (table, old, new) in [
            ("retry", "longest_wait", "max_retry_after"),
            ("tools", "spools_size", "max_spool_total"),
            ("limits", "keep_ended", "delete_ended_after"),
            ("sandbox", "offer_outside", "offer_unsandboxed_retry"),
        ] {
            let error =
                Config::parse(&format!("[{table}]\n{old} = 1\n"), Path::new("c.toml")).expect_err("renamed");
            assert!(error.to_string().ends_with(&format!("did you mean `{new}`?")), "{error}");
        }
    }

    #[test]
    fn invalid_value_error_names_key_and_line() {
        for (text, expected) in [
            ("[daemon]\nlog = 5", "c.toml:2: daemon.log: "),
            ("[daemon]\nlog = \"loud\"", "c.toml:2: daemon.log: unknown variant `loud`"),
            ("[sandbox]\nlevel = \"strong\"", "c.toml:2: sandbox.level: unknown variant `strong`"),
            ("[sandbox]\nnetwork = true", "c.toml:2: sandbox.network: "),
            ("[session]\nthinking = \"deep\"", "c.toml:2: session.thinking: invalid value: string \"deep\""),
            (
                "[permissions.unattended]\non_timeout = \"wait\"",
                "c.toml:2: permissions.unattended.on_timeout: ",
            ),
            ("[permissions.unattended]\ndeadline = 5", "c.toml:2: permissions.unattended.deadline: "),
            ("[permissions.unattended]\nusdd = 5", "c.toml:2: unknown field `usdd`"),
            ("[limits]\nbatch = 0", "c.toml:2: limits.batch: invalid value: integer `0`"),
            ("[session]\nmode = \"defualt\"", "c.toml:2: session.mode: unknown variant `defualt`"),
            ("[tools]\nparallel = -1", "c.toml:2: tools.parallel: "),
            ("[permissions]\n\ndeny = [\"Bash(\"]", "c.toml:3: permissions.deny: "),
            (
                "[permissions]\nallow = []\ndeny = [\"Bash(git * push)\"]",
                "c.toml:3: permissions.deny: bad permission rule \"Bash(git * push)\": an unquoted `*` has a meaning \
                 only at the end, after a blank or as `:*`; the nearest rule is Bash(git:*)",
            ),
            ("[permissions]\nask = [\"Bash(*rm)\"]", "c.toml:2: permissions.ask: "),
            ("[permissions]\nallow = [\"Bash(ls *.rs)\"]", "c.toml:2: permissions.allow: "),
            ("[permissions]\ndeny = [\"Bsh(rm:*)\"]", "c.toml:2: permissions.deny: "),
            ("[daemon", "c.toml:1: "),
        ] {
            let error = Config::parse(text, Path::new("c.toml")).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn configured_rules_are_kept_in_their_normal_form() {
        let text = "[permissions]\nallow = [\"WebSearch\", \"bash(git log *)\"]\ndeny = [\"Bash(rm *)\", \"Read(.env)\"]";
        let config = Config::parse(text, Path::new("c")).expect("right");
        assert_eq!(config.permissions.allow, ["WebSearch", "Bash(git log:*)"]);
        assert_eq!(config.permissions.deny, ["Bash(rm:*)", "Read(.env)"]);
        let config = Config { sources: vec![Source { file: "/c.toml".into(), text: text.into() }], ..config };
        let listed: Vec<String> = config.rules().into_iter().map(|(.., rule)| rule).collect();
        assert_eq!(listed, ["WebSearch", "Bash(git log:*)", "Bash(rm:*)", "Read(.env)"]);
    }

    #[test]
    fn configured_durations_require_a_unit() {
        let config = Config::parse("[session.budgets]\nwall_time = \"30m\"", Path::new("c")).expect("right");
        assert_eq!(config.session.budgets.wall_time, Some(ConfigDuration(Duration::from_secs(1_800))));
        assert!(Config::parse("[session.budgets]\nwall_time = \"30\"", Path::new("c")).is_err());
        for (table, line) in [
            ("session.budgets", "usd = -1.0"),
            ("session.budgets", "session_usd = nan"),
            ("permissions.unattended", "usd = -0.5"),
            ("permissions.unattended", "wall_time = \"0s\""),
        ] {
            let wrong = Config::parse(&format!("[{table}]\n{line}"), Path::new("c"));
            assert!(wrong.is_err(), "{table}: {line}");
        }
        Config::parse("[permissions.unattended]\nusd = 0\nwall_time = \"1m\"", Path::new("c"))
            .expect("right");
    }

    #[test]
    fn later_configuration_file_overrides_single_keys() {
        let mut merged: toml::Table = "[daemon]\nlog = \"info\"\nsocket = \"/a\"".parse().expect("toml");
        merge_tables(&mut merged, "[daemon]\nlog = \"debug\"".parse().expect("toml"));
        let config: Config = merged.try_into().expect("right");
        assert_eq!(config.daemon.log, LogLevel::Debug);
        assert_eq!(config.daemon.socket, Some("/a".into()));
    }

    #[test]
    fn rules_of_all_files_apply_with_source_file() {
        let files = [
            ("/etc/a.toml", "[permissions]\ndeny = [\"Bash(rm:*)\"]\nallow = [\"Read\"]"),
            ("/home/b.toml", "[permissions]\ndeny = [\"Edit\"]\nask = [\"Bash\"]"),
            ("/home/c.toml", "[daemon]\nlog = \"info\""),
        ];
        let mut merged = toml::Table::new();
        let mut sources = Vec::new();
        for (file, text) in files {
            let mut table: toml::Table = text.parse().expect("toml");
            keep_rules(&merged, &mut table);
            merge_tables(&mut merged, table);
            sources.push(Source { file: file.into(), text: text.into() });
        }
        let config = Config { sources, ..merged.try_into().expect("right") };
        assert_eq!(config.permissions.deny, ["Bash(rm:*)", "Edit"]);
        assert_eq!(config.permissions.allow, ["Read"]);
        let listed_rules: Vec<String> = config
            .rules()
            .iter()
            .map(|(file, kind, rule)| format!("{} {} {rule}", file.display(), kind.name()))
            .collect();
        assert_eq!(
            listed_rules,
            [
                "/etc/a.toml allow Read",
                "/etc/a.toml deny Bash(rm:*)",
                "/home/b.toml ask Bash",
                "/home/b.toml deny Edit"
            ]
        );
    }

    #[test]
    fn relative_paths_resolve_against_their_configuration_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("agentd");
        std::fs::create_dir(&folder).expect("made");
        let text = "[daemon]\nsocket = \"~/s\"\ndata_dir = \"data\"\n[providers.x]\nkind = \"replay\"\n\
                    cassette = \"c.jsonl\"\nrecord = \"/r\"\napi_key_file = \"../key\"\n";
        std::fs::write(folder.join("config.toml"), text).expect("written");
        let base = dir.path().display().to_string();
        let env = |name: &str| match name {
            "HOME" => Some("/h".to_owned()),
            "XDG_CONFIG_HOME" => Some(base.clone()),
            _ => None,
        };
        let config = Config::load(&env, None).expect("right");
        assert_eq!(config.daemon.socket, Some("/h/s".into()));
        assert_eq!(config.daemon.data_dir, Some(folder.join("data")));
        let provider = &config.providers["x"];
        assert_eq!(provider.cassette, Some(folder.join("c.jsonl")));
        assert_eq!(provider.record, Some("/r".into()));
        assert_eq!(provider.api_key_file, Some(folder.join("../key")));
        let error = Config::load(&none, Some(folder.join("config.toml"))).expect_err("no home");
        assert!(error.to_string().contains("config.toml:2: daemon.socket: "), "{error}");
    }

    #[test]
    fn explicit_configuration_file_must_exist() {
        let error = Config::load(&none, Some("/nonexistent/c.toml".into())).expect_err("no file");
        assert!(error.to_string().contains("/nonexistent/c.toml"), "{error}");
    }
}
