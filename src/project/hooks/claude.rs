//! The hooks of a `.claude/settings.json`, as people write them. An entry that is not understood concerns itself
//! alone.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use super::condition::Condition;
use super::config::{CallFilter, Entry, FileReader, HookFile, HookForm, find_event};
use super::matcher::Matcher;
use types::config_values::ConfigDuration;
use types::hook::HookEvent;
use types::jsonc::{Node, plain_json};

/// Kinds of hooks that Claude Code has and the daemon does not run.
const OTHER_KINDS: [&str; 4] = ["prompt", "agent", "http", "mcp_tool"];

/// The keys of a hook that decide what runs, and when.
const DECIDING_KEYS: [&str; 5] = ["type", "command", "args", "if", "async"];

pub(super) fn read(file: &Path, text: &str) -> HookFile {
    if text.trim().is_empty() {
        return HookFile::default();
    }
    let plain = plain_json(text);
    let settings = match Node::parse(&plain) {
        Ok(settings) => settings,
        Err(error) => return HookFile::unreadable(file, format!("it is not JSON: {error}")),
    };
    let Some(settings) = settings.fields() else {
        return HookFile::unreadable(file, "it is not a JSON object");
    };
    let mut reader = ClaudeReader { files: FileReader::new(file, HookForm::Claude) };
    let mut is_disabled = false;
    for (name, node) in settings {
        let name = if name.eq_ignore_ascii_case("hooks") { "hooks" } else { name.as_str() };
        match name {
            "disableAllHooks" => match node.value() {
                Ok(Value::Bool(value)) => is_disabled = value,
                _ => reader.files.show(node.line(), "disableAllHooks is not true or false; the hooks run"),
            },
            "hooks" if node.is_null() => {}
            "hooks" => match (node.fields(), node.items()) {
                (Some(events), _) => {
                    events.into_iter().for_each(|(event, node)| reader.read_event(&event, node));
                }
                (None, Some(items)) if items.is_empty() => {}
                _ => {
                    let reason = format!("line {}: hooks is not an object with events", node.line());
                    return HookFile::unreadable(file, reason);
                }
            },
            "permissions" => reader.show_rules(node),
            _ => {}
        }
    }
    if is_disabled { HookFile::default() } else { reader.files.finish() }
}

struct ClaudeReader<'f> {
    files: FileReader<'f>,
}

impl ClaudeReader<'_> {
    /// The daemon does not read the rules of this file. A user who wrote a rule that restricts has to know that.
    fn show_rules(&mut self, permissions: Node<'_>) {
        for (kind, rules) in permissions.fields().unwrap_or_default() {
            let option = match kind.to_ascii_lowercase().as_str() {
                "deny" => "--deny",
                "ask" => "--ask",
                _ => continue,
            };
            if rules.is_null() || rules.items().is_some_and(|rules| rules.is_empty()) {
                continue;
            }
            let reason = format!(
                "permissions.{kind}: the daemon does not read the rules of this file; `agentctl rules add {option} RULE` adds one"
            );
            self.files.show(rules.line(), reason);
        }
    }

    fn read_event(&mut self, name: &str, node: Node<'_>) {
        let Some(event) = find_event(name) else {
            let reason = format!("hooks.{name} is not an event that this daemon has; its hooks do not run");
            self.files.show(node.line(), reason);
            return;
        };
        match node.items() {
            Some(groups) => {
                // A full file makes every call ask, so the rest of it changes nothing.
                let mut groups = groups.into_iter();
                while !self.files.is_full()
                    && let Some(group) = groups.next()
                {
                    self.read_group(event, group);
                }
            }
            None => self.read_group(event, node),
        }
    }

    /// Reads one entry of an event: a matcher with its hooks, or a single hook.
    fn read_group(&mut self, event: HookEvent, node: Node<'_>) {
        let line = node.line();
        let Some(fields) = node.fields() else {
            if !node.is_null() {
                let reason = format!("an object with hooks is expected, not {}", node.shown());
                self.files.refuse(event, line, CallFilter::all(), reason);
            }
            return;
        };
        let mut matcher = Ok(Matcher::all());
        let mut lists = Vec::new();
        for (name, node) in &fields {
            match name.as_str() {
                "matcher" => matcher = node.value().and_then(|value| read_matcher(&value)),
                "hooks" => lists.push(*node),
                _ => {}
            }
        }
        let matcher = match matcher {
            Ok(matcher) => matcher,
            Err(error) => {
                let reason = format!("the matcher cannot be read: {error}");
                self.files.refuse(event, line, CallFilter::all(), reason);
                return;
            }
        };
        if lists.is_empty() {
            // A hook without the object around it.
            self.read_hook(event, &matcher, node);
        }
        for list in lists {
            match list.items() {
                Some(hooks) => {
                    let mut hooks = hooks.into_iter();
                    while !self.files.is_full()
                        && let Some(hook) = hooks.next()
                    {
                        self.read_hook(event, &matcher, hook);
                    }
                }
                None => self.read_hook(event, &matcher, list),
            }
        }
    }

    fn read_hook(&mut self, event: HookEvent, matcher: &Matcher, node: Node<'_>) {
        let line = node.line();
        let mut filter = CallFilter { matcher: matcher.clone(), condition: None };
        if node.is_null() {
            return;
        }
        let Some(fields) = node.fields() else {
            let reason = format!("a hook is an object with a command, not {}", node.shown());
            self.files.refuse(event, line, filter, reason);
            return;
        };
        let mut value = Map::new();
        for (name, node) in fields {
            match node.value() {
                Ok(part) => _ = value.insert(name, part),
                Err(error) if DECIDING_KEYS.contains(&name.as_str()) => {
                    self.files.refuse(event, line, filter, format!("{name} cannot be read: {error}"));
                    return;
                }
                Err(error) => self.files.show(line, format!("{name} cannot be read: {error}")),
            }
        }
        let value = Value::Object(value);
        match &value["if"] {
            Value::Null => {}
            Value::String(text) => match Condition::parse(text) {
                Ok(condition) => filter.condition = condition,
                Err(error) => {
                    self.files
                        .show(line, format!("`if` cannot be read, so the hook runs for every call: {error}"));
                }
            },
            _ => self.files.show(line, "`if` is not a text, so the hook runs for every call"),
        }
        let kind = match &value["type"] {
            Value::Null => "command",
            Value::String(kind) => kind.trim(),
            other => {
                let reason = format!("the type of a hook is a text, not {other}");
                self.files.refuse(event, line, filter, reason);
                return;
            }
        };
        if !kind.eq_ignore_ascii_case("command") {
            let is_known = OTHER_KINDS.iter().any(|other| kind.eq_ignore_ascii_case(other));
            let reason = format!("hooks of the type {kind:?} are not built; it does not run");
            match is_known {
                true => self.files.skip(event, line, filter, reason),
                false => self.files.refuse(event, line, filter, reason),
            }
            return;
        }
        let command = match (&value["command"], &value["args"]) {
            (Value::String(command), Value::Null) => command.clone(),
            (Value::String(program), Value::Array(args)) if args.iter().all(Value::is_string) => {
                let words = args.iter().filter_map(Value::as_str);
                std::iter::once(program.as_str()).chain(words).map(quoted).collect::<Vec<_>>().join(" ")
            }
            (Value::Null, _) => {
                self.files.refuse(event, line, filter, "the hook has no command");
                return;
            }
            (command, _) => {
                let reason = format!("the command of a hook is a text, not {command}");
                self.files.refuse(event, line, filter, reason);
                return;
            }
        };
        let timeout = match read_timeout(&value["timeout"]) {
            Ok(timeout) => timeout,
            Err(shown) => {
                self.files.show(
                    line,
                    format!("timeout = {shown} is not a number of seconds; the usual limit holds"),
                );
                None
            }
        };
        let is_async = ["async", "asyncRewake"].iter().any(|name| is_set(&value[*name]));
        self.files.add_hook(Entry { event, filter, command, timeout, is_async, line });
    }
}

fn read_matcher(value: &Value) -> Result<Matcher, String> {
    match value {
        Value::Null => Ok(Matcher::all()),
        Value::String(text) => Matcher::parse(text),
        Value::Array(names) if names.iter().all(Value::is_string) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            // A list of names and one of patterns both work as alternatives.
            Matcher::parse(&names.join("|"))
        }
        other => Err(format!("it is not a text but {other}")),
    }
}

/// Seconds, as a number or as a text.
fn read_timeout(value: &Value) -> Result<Option<Duration>, String> {
    let seconds = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.trim().parse() {
            Ok(seconds) => Some(seconds),
            Err(_) => {
                let span = serde_json::from_value::<ConfigDuration>(Value::from(text.trim()));
                return span.map(|span| Some(span.0)).map_err(|_| value.to_string());
            }
        },
        _ => None,
    };
    let span = seconds.filter(|seconds| *seconds > 0.0).and_then(|it| Duration::try_from_secs_f64(it).ok());
    span.map(Some).ok_or_else(|| value.to_string())
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::String(text) => text.trim().eq_ignore_ascii_case("true"),
        _ => false,
    }
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
