//! The values of a project's file, apart from its rules.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use serde::{Deserialize, Deserializer};
use toml::de::DeTable;

use super::keys::{KeyUse, key_use};
use types::compaction::percent;
use types::config_values::{ConfigDuration, ConfigSize, part};
use types::permission::Mode;
use types::project_settings::{CompactionOverrides, ProjectSettings};
use types::thinking::Thinking;
use types::typed_toml;
use types::usage::{BudgetSettings, Budgets};

/// Characters of a value that is shown.
const MAX_SHOWN_CHARS: usize = 100;

/// The values that a project's file sets for the sessions in its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectValues {
    /// `models.main`
    pub main_model: Option<String>,
    /// `models.fallback`
    pub fallback_model: Option<String>,
    /// `session.mode`
    pub mode: Option<Mode>,
    /// `session.thinking`
    pub thinking: Option<Thinking>,
    /// `session.simple`
    pub simple: Option<bool>,
    /// `session.safe_mode`
    pub safe_mode: Option<bool>,
    /// `session.ablation`
    pub ablation: BTreeMap<String, bool>,
    /// `session.budgets`
    pub budgets: Budgets,
    /// The values that the engine and the tools use.
    pub settings: ProjectSettings,
    /// Every key that the file sets, rules included, in the order of the file.
    pub keys: Vec<SetKey>,
}

/// A key that a project's file sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetKey {
    /// Dotted name of the key.
    pub key: String,
    /// Line of the key in the file, from 1.
    pub line: usize,
    pub value: serde_json::Value,
}

impl ProjectValues {
    /// The values that need trust, as text for users.
    pub(super) fn describe(&self) -> impl Iterator<Item = String> + '_ {
        let settings = self.keys.iter().filter(|set| !set.key.starts_with("permissions."));
        settings.map(|SetKey { key, value, .. }| {
            let value = value.to_string();
            let end = value.char_indices().nth(MAX_SHOWN_CHARS).map_or(value.len(), |(at, _)| at);
            format!("{key} = {}", &value[..end])
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    models: Models,
    session: Session,
    pub(super) permissions: Permissions,
    compaction: Compaction,
    tools: Tools,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Models {
    main: Option<String>,
    fallback: Option<String>,
    backup: Option<String>,
    large_context: Option<String>,
    vision: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Session {
    #[serde(deserialize_with = "project_mode")]
    mode: Option<Mode>,
    thinking: Option<Thinking>,
    simple: Option<bool>,
    safe_mode: Option<bool>,
    output_tokens: Option<NonZeroU32>,
    ablation: BTreeMap<String, bool>,
    budgets: BudgetSettings,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Permissions {
    pub(super) allow: Vec<String>,
    pub(super) ask: Vec<String>,
    pub(super) deny: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Compaction {
    auto: Option<bool>,
    #[serde(deserialize_with = "threshold")]
    threshold: Option<f64>,
    tool_results: Option<bool>,
    snip: Option<bool>,
    microcompact: Option<bool>,
    collapse: Option<bool>,
    keep_recent_tokens: Option<u64>,
    max_failures: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tools {
    bash_timeout: Option<ConfigDuration>,
    parallel: Option<NonZeroUsize>,
    background_commands: Option<u32>,
    max_result_size: Option<ConfigSize>,
    max_results_total: Option<ConfigSize>,
}

fn threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    part(deserializer).map(Some)
}

/// A mode that allows no more than `default` does.
fn project_mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Mode>, D::Error> {
    let mode = Mode::deserialize(deserializer)?;
    match mode {
        Mode::Default | Mode::Plan | Mode::DontAsk => Ok(Some(mode)),
        Mode::AcceptEdits | Mode::Bypass => Err(serde::de::Error::custom(format!(
            "a project may not set `{}`, only `default`, `plan` or `dont_ask`; a user may set it for a session",
            mode.name()
        ))),
    }
}

/// Parses the file. Only permitted keys are accepted.
///
/// # Errors
/// The first mistake with its line.
pub(super) fn parse(text: &str) -> Result<(ProjectValues, Permissions), String> {
    let table = DeTable::parse(text).map_err(|error| problem_at(text, error.span(), error.message()))?;
    let mut keys = Vec::new();
    list_keys(text, "", table.get_ref(), &mut keys)?;
    let file: File = typed_toml::from_str(text).map_err(|error| {
        let span = error.start.map(|start| start..start);
        problem_at(text, span, &format!("{}: {}", error.path, error.why))
    })?;
    keys.sort_by_key(|set: &SetKey| set.line);
    let File { models, session, permissions, compaction, tools } = file;
    let values = ProjectValues {
        main_model: models.main,
        fallback_model: models.fallback,
        mode: session.mode,
        thinking: session.thinking,
        simple: session.simple,
        safe_mode: session.safe_mode,
        ablation: session.ablation,
        budgets: session.budgets.into(),
        settings: ProjectSettings {
            backup_model: models.backup,
            large_context_model: models.large_context,
            vision_model: models.vision,
            output_tokens: session.output_tokens.map(NonZeroU32::get),
            compaction: CompactionOverrides {
                auto: compaction.auto,
                threshold_percent: compaction.threshold.map(percent),
                tool_results: compaction.tool_results,
                snip: compaction.snip,
                microcompact: compaction.microcompact,
                collapse: compaction.collapse,
                keep_recent_tokens: compaction.keep_recent_tokens,
                max_failures: compaction.max_failures,
            },
            bash_timeout_ms: tools.bash_timeout.map(ConfigDuration::millis),
            parallel_tools: tools.parallel.map(|most| most.get() as u64),
            background_commands: tools.background_commands.map(u64::from),
            max_result_bytes: tools.max_result_size.map(|size| size.0),
            max_results_total_bytes: tools.max_results_total.map(|size| size.0),
        },
        keys,
    };
    Ok((values, permissions))
}

/// Lists the keys of a table, and refuses the first one in the file that a project may not set.
fn list_keys(text: &str, above: &str, table: &DeTable<'_>, keys: &mut Vec<SetKey>) -> Result<(), String> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    for (name, value) in entries {
        let key = match above {
            "" => name.get_ref().to_string(),
            above => format!("{above}.{}", name.get_ref()),
        };
        let wrong = |why: String| Err(problem_at(text, Some(name.span()), &why));
        if name.get_ref().contains('.') {
            // The quoted name "a.b" is a different key than the key b of the table a.
            let key = shorten(&key);
            return wrong(format!("unknown field `{key}`; write the name without quotes"));
        }
        match (key_use(&key), value.get_ref().as_table()) {
            (KeyUse::Table, Some(inner)) => list_keys(text, &key, inner, keys)?,
            // The value has a wrong type. The parser reports it.
            (KeyUse::Table, None) => {}
            (KeyUse::Permitted(_), _) => {
                let line = line_number(text, name.span().start);
                let value = json_value(text, value.span());
                keys.push(SetKey { key, line, value });
            }
            (KeyUse::UserOnly, _) => {
                return wrong(format!(
                    "`{key}` cannot be set by a project; set it in ~/.config/agentd/config.toml"
                ));
            }
            (KeyUse::Unknown(nearest), _) => {
                let suggestion = nearest.map_or_else(String::new, |it| format!("; did you mean `{it}`?"));
                return wrong(format!("unknown field `{}`{suggestion}", shorten(&key)));
            }
        }
    }
    Ok(())
}

/// The beginning of a key, which may be of any length.
fn shorten(key: &str) -> String {
    match key.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &key[..at]),
        None => key.to_owned(),
    }
}

/// The value in this part of the text.
fn json_value(text: &str, span: std::ops::Range<usize>) -> serde_json::Value {
    let source = text.get(span).unwrap_or_default();
    let parsed = format!("value = {source}").parse::<toml::Table>().ok();
    let value = parsed.and_then(|mut table| serde_json::to_value(table.remove("value")?).ok());
    value.unwrap_or_else(|| source.into())
}

fn problem_at(text: &str, span: Option<std::ops::Range<usize>>, why: &str) -> String {
    match span {
        Some(span) => format!("line {}: {}", line_number(text, span.start), why.trim()),
        None => why.trim().to_owned(),
    }
}

/// The line of a byte offset in a text, from 1.
pub(super) fn line_number(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::super::keys::{PROJECT_KEYS, Precedence};
    use super::*;

    fn parse_problem(text: &str) -> String {
        parse(text).err().unwrap_or_else(|| panic!("{text} was accepted"))
    }

    #[test]
    fn every_permitted_key_is_read_into_a_value() {
        for (key, precedence) in PROJECT_KEYS {
            let value = match key.rsplit('.').next().unwrap_or_default() {
                "main" | "fallback" | "backup" | "large_context" | "vision" => "\"x/y\"",
                "mode" => "\"plan\"",
                "threshold" => "0.5",
                "wall_time" | "session_wall_time" | "bash_timeout" => "\"5s\"",
                "allow" | "ask" | "deny" => "[\"Read\"]",
                name if name.starts_with("max_r") => "\"5KiB\"",
                name => match key.starts_with("session.ablation.") {
                    true => "true",
                    false
                        if [
                            "simple",
                            "safe_mode",
                            "auto",
                            "tool_results",
                            "snip",
                            "microcompact",
                            "collapse",
                        ]
                        .contains(&name) =>
                    {
                        "true"
                    }
                    false if name == "thinking" => "\"low\"",
                    false => "5",
                },
            };
            let (values, permissions) =
                parse(&format!("\n{key} = {value}\n")).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!((values.keys.len(), values.keys[0].line, &*values.keys[0].key), (1, 2, *key));
            let has_rules = permissions.allow.len() + permissions.ask.len() + permissions.deny.len() > 0;
            assert_eq!(has_rules, *precedence == Precedence::Added, "{key}");
            let unset = ProjectValues { keys: values.keys.clone(), ..ProjectValues::default() };
            assert!(has_rules || values != unset, "{key} is not read");
        }
    }

    #[test]
    fn project_file_mistake_names_line_and_remedy() {
        for (text, expected) in [
            ("[session]\nmdoe = \"plan\"\n", "line 2: unknown field `session.mdoe`; did you mean `mode`?"),
            ("\n[sesion]\n", "line 2: unknown field `sesion`; did you mean `session`?"),
            (
                "[models]\nmain = \"a/b\"\n[providers.evil]\nbase_url = \"http://evil\"\n",
                "line 3: `providers` cannot be set by a project; set it in ~/.config/agentd/config.toml",
            ),
            ("[permissions]\nallow_bypass = true\n", "line 2: `permissions.allow_bypass` cannot be set"),
            ("[session]\nmode = \"yolo\"\n", "line 2: session.mode: a project may not set `bypass`"),
            ("[session.budgets]\nwall_time = 5\n", "line 2: session.budgets.wall_time: "),
            ("[compaction]\nthreshold = 2.0\n", "line 2: compaction.threshold: "),
            ("models = 5\n", "line 1: models: "),
            ("[session\n", "line 1: "),
        ] {
            let problem = parse_problem(text);
            assert!(problem.starts_with(expected), "{text}: {problem}");
        }
    }
}
