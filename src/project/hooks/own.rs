//! The daemon's own hooks: the tables `[[hooks.EVENT]]` of the configuration, and `.agentd/hooks/hooks.toml`.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::config::{CallFilter, Entry, FileReader, Hook, HookFile, HookForm, OnFailure, find_event};
use super::matcher::Matcher;
use types::config_values::ConfigDuration;
use types::hook::HookEvent;
use types::{typed_json, typed_toml};

/// The key of `[hooks]` that is no event.
const ON_FAILURE: &str = "on_failure";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnHook {
    /// Read before the other fields, because it says which calls a mistake in them concerns.
    #[serde(default, rename = "matcher")]
    _matcher: Option<String>,
    command: String,
    #[serde(default)]
    timeout: Option<ConfigDuration>,
}

/// The table `[hooks]` of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredHooks {
    pub hooks: Vec<Hook>,
    /// What follows if a hook of `pre_tool_use` fails to run.
    pub on_failure: OnFailure,
}

/// Reads the table `[hooks]` of the configuration. A mistake is refused, because the daemon then keeps its last
/// configuration or does not start.
///
/// # Errors
/// An event or a key is unknown, or a value is wrong.
pub fn configured_hooks(table: &toml::Table) -> Result<ConfiguredHooks, String> {
    let mut reader = FileReader::new(Path::new(""), HookForm::Own);
    let mut on_failure = OnFailure::default();
    for (name, value) in table {
        let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
        if name == ON_FAILURE {
            on_failure =
                serde_json::from_value(value).map_err(|_| format!("{ON_FAILURE} is \"ask\" or \"allow\""))?;
            continue;
        }
        let entries = match value {
            Value::Array(entries) => entries,
            entry => vec![entry],
        };
        for entry in entries {
            read_entry(&mut reader, name, entry, 0);
        }
    }
    let HookFile { hooks, problems } = reader.finish();
    match problems.into_iter().next() {
        Some(problem) => Err(problem.reason),
        None => Ok(ConfiguredHooks { hooks, on_failure }),
    }
}

/// Reads a project's own file. Its tables may be in a table `hooks`, as in the configuration. An entry that is not
/// understood concerns itself alone.
pub(super) fn read(file: &Path, text: &str) -> HookFile {
    let whole = match DeTable::parse(text) {
        Ok(whole) => whole,
        Err(error) => {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            return HookFile::unreadable(file, format!("line {line}: it is not TOML: {}", error.message()));
        }
    };
    let mut reader = FileReader::new(file, HookForm::Own);
    for (name, value) in whole.get_ref() {
        let name = name.get_ref().as_ref();
        match value.get_ref() {
            DeValue::Table(events) if name == "hooks" => {
                for (event, entries) in events {
                    read_event(&mut reader, text, event.get_ref().as_ref(), entries);
                }
            }
            _ => read_event(&mut reader, text, name, value),
        }
    }
    reader.finish()
}

fn read_event(reader: &mut FileReader<'_>, text: &str, name: &str, value: &Spanned<DeValue<'_>>) {
    let line = line_of(text, value.span().start);
    if name == ON_FAILURE {
        reader.show(line, "on_failure counts in your own configuration only");
        return;
    }
    match value.get_ref() {
        DeValue::Array(entries) => {
            for entry in entries {
                let line = line_of(text, entry.span().start);
                read_entry(reader, name, typed_toml::to_json(entry), line);
            }
        }
        _ => read_entry(reader, name, typed_toml::to_json(value), line),
    }
}

fn read_entry(reader: &mut FileReader<'_>, name: &str, entry: Value, line: usize) {
    let Some(event) = find_event(name) else {
        let names: Vec<&str> = HookEvent::ALL.iter().map(|event| event.name()).collect();
        reader.show(line, format!("there is no event hooks.{name}; the events are {}", names.join(", ")));
        return;
    };
    // The calls that the entry is for, as far as they are known.
    let matcher = match &entry["matcher"] {
        Value::Null => Ok(Matcher::all()),
        Value::String(text) => Matcher::parse(text),
        other => Err(format!("it is not a text but {other}")),
    };
    let filter = match matcher {
        Ok(matcher) => CallFilter { matcher, condition: None },
        Err(error) => {
            reader.refuse(event, line, CallFilter::all(), format!("the matcher cannot be read: {error}"));
            return;
        }
    };
    match typed_json::from_value::<OwnHook>(entry) {
        Ok(OwnHook { command, timeout, .. }) => {
            let (timeout, is_async) = (timeout.map(|span| span.0), false);
            reader.add_hook(Entry { event, filter, command, timeout, is_async, line });
        }
        Err(error) => reader.refuse(event, line, filter, error.why),
    }
}

/// The line of a byte, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn parse(text: &str) -> Result<ConfiguredHooks, String> {
        configured_hooks(&toml::from_str(text).expect("TOML"))
    }

    #[test]
    fn own_tables_give_hooks_with_matcher_and_timeout() {
        let hooks = parse(
            "[[pre_tool_use]]\nmatcher = \"Edit|Write\"\ncommand = \"./check\"\ntimeout = \"5s\"\n\
                         [[stop]]\ncommand = \"true\"",
        )
        .expect("right")
        .hooks;
        assert_eq!(hooks.len(), 2);
        let of_tool = hooks.iter().find(|hook| hook.event == HookEvent::PreToolUse).expect("there");
        assert!(of_tool.is_for(HookEvent::PreToolUse, Some("Edit"), None));
        assert!(!of_tool.is_for(HookEvent::PreToolUse, Some("MultiEdit"), None), "the whole name must match");
        assert!(!of_tool.is_for(HookEvent::PostToolUse, Some("Edit"), None));
        assert_eq!(of_tool.timeout, Duration::from_secs(5));
    }

    #[test]
    fn wrong_tables_of_the_configuration_are_refused_with_the_problem() {
        for (text, part) in [
            ("[[before_tool]]\ncommand = \"x\"", "there is no event"),
            ("[[stop]]\ncommand = \" \"", "empty"),
            ("[[stop]]\ncommand = \"x\"\nfoo = 1", "unknown field"),
            ("[[pre_tool_use]]\ncommand = \"x\"\nmatcher = \"(\"", "matcher"),
            ("on_failure = \"deny\"", "on_failure"),
            ("[[pre_tool_use]]\nmatcher = \"Bash\"", "command"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(parse("on_failure = \"allow\"").expect("right").on_failure, OnFailure::Allow);
        assert_eq!(parse("").expect("right").on_failure, OnFailure::Ask);
    }

    #[test]
    fn wrong_entry_of_a_file_concerns_itself_alone() {
        let text = "on_failure = 'allow'\n[[pre_tool_use]]\nmatcher = 'Bash'\ncommand = 'x'\n\n\
            [[pre_tool_use]]\nmatcher = 'Write'\ncomand = 'y'\n[[pre_tool_use]]\nmatcher = '('\ncommand = 'z'\n\
            [stop]\ncommand = 'w'\n";
        let HookFile { hooks, problems } = read(Path::new("h.toml"), text);
        assert_eq!(hooks.iter().map(|hook| hook.command.as_str()).collect::<Vec<_>>(), ["x", "w"]);
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [1, 6, 9], "{shown:?}");
        let asks = |at: usize, tool: &str| problems[at].asks(OnFailure::Ask, tool, None);
        assert!(!asks(0, "Bash") && asks(1, "Write") && !asks(1, "Bash") && asks(2, "Read"), "{shown:?}");
        let broken = read(Path::new("h.toml"), "[[stop]\n");
        assert!(broken.problems[0].asks(OnFailure::Allow, "Read", None), "{:?}", broken.problems);
    }
}
