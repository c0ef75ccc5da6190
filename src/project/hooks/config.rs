//! The configured hooks.

use std::path::PathBuf;
use std::time::Duration;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use serde::Deserialize;
use serde_json::Value;

use types::config_values::ConfigDuration;
use types::hook::HookEvent;

/// Time limit of a hook that sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time limit of a hook.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum number of hooks in one file.
const MAX_HOOKS: usize = 100;

/// The form of a hook's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookForm {
    /// The daemon's own.
    Own,
    /// The field names that Claude Code uses.
    Claude,
}

/// A configured hook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The event on which it runs.
    pub event: HookEvent,
    /// The tools whose calls it is for; `None` for all.
    matcher: Option<RegexMatcher>,
    /// The shell command.
    pub command: String,
    /// Its time limit.
    pub timeout: Duration,
    /// The form of its JSON.
    pub form: HookForm,
    /// The folder that its environment names as the project's; `None` for the root of the project.
    pub project_dir: Option<PathBuf>,
}

/// The error in a file of hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFileError(pub String);

impl Hook {
    fn new(
        event: HookEvent,
        matcher: Option<&str>,
        command: &str,
        timeout: Option<Duration>,
        form: HookForm,
    ) -> Result<Self, HookFileError> {
        let wrong = |why: String| HookFileError(format!("hooks.{}: {why}", event.name()));
        if command.trim().is_empty() {
            return Err(wrong("the command is empty".into()));
        }
        let pattern = matcher.map(str::trim).filter(|text| !text.is_empty() && *text != "*");
        let matcher = pattern
            .map(|text| RegexMatcherBuilder::new().build(&format!("^(?:{text})$")))
            .transpose()
            .map_err(|error| wrong(format!("matcher: {error}")))?;
        let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT).clamp(Duration::from_millis(1), MAX_TIMEOUT);
        Ok(Self { event, matcher, command: command.to_owned(), timeout, form, project_dir: None })
    }

    /// Whether the hook is for this event and this tool, if the event has one.
    #[must_use]
    pub fn is_for(&self, event: HookEvent, tool: Option<&str>) -> bool {
        let is_match =
            |matcher: &RegexMatcher, tool: &str| matcher.is_match(tool.as_bytes()).unwrap_or(false);
        let fits = |matcher: &RegexMatcher| {
            tool.is_none_or(|tool| {
                // Claude Code has no ApplyPatch: its hooks on edits mean every change of a file.
                let is_edit = self.form == HookForm::Claude && tool == "ApplyPatch";
                is_match(matcher, tool)
                    || is_edit && ["Edit", "MultiEdit", "Write"].iter().any(|edit| is_match(matcher, edit))
            })
        };
        self.event == event && self.matcher.as_ref().is_none_or(fits)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnHook {
    matcher: Option<String>,
    command: String,
    timeout: Option<ConfigDuration>,
}

/// The hooks of the tables `[[hooks.EVENT]]`.
///
/// # Errors
/// An event or a key is unknown, or a value is wrong.
pub fn own_hooks(table: &toml::Table) -> Result<Vec<Hook>, HookFileError> {
    let mut hooks = Vec::new();
    for (name, list) in table {
        let Some(event) = HookEvent::ALL.into_iter().find(|event| event.name() == name) else {
            let names: Vec<&str> = HookEvent::ALL.iter().map(|event| event.name()).collect();
            let why = format!("there is no event hooks.{name}; the events are {}", names.join(", "));
            return Err(HookFileError(why));
        };
        let parsed: Vec<OwnHook> = list
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| HookFileError(format!("hooks.{name}: {}", error.message())))?;
        for OwnHook { matcher, command, timeout } in parsed {
            let timeout = timeout.map(|span| span.0);
            hooks.push(Hook::new(event, matcher.as_deref(), &command, timeout, HookForm::Own)?);
        }
    }
    check_number(hooks)
}

#[derive(Deserialize)]
struct ClaudeGroup {
    #[serde(default)]
    matcher: Option<String>,
    #[serde(default)]
    hooks: Vec<ClaudeHook>,
}

#[derive(Deserialize)]
struct ClaudeHook {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    /// Seconds.
    #[serde(default)]
    timeout: Option<f64>,
}

/// The hooks of a `.claude/settings.json`. Unknown events and kinds of hooks are left out, because newer versions of
/// Claude Code have more.
///
/// # Errors
/// The text is no JSON object, or a known part has another form.
pub fn claude_hooks(text: &str) -> Result<Vec<Hook>, HookFileError> {
    let settings: Value = serde_json::from_str(text).map_err(|error| HookFileError(error.to_string()))?;
    let mut hooks = Vec::new();
    if settings["disableAllHooks"] == true {
        return Ok(hooks);
    }
    for event in HookEvent::ALL {
        let listed = &settings["hooks"][event.claude_name()];
        if listed.is_null() {
            continue;
        }
        let wrong =
            |error: serde_json::Error| HookFileError(format!("hooks.{}: {error}", event.claude_name()));
        let groups: Vec<ClaudeGroup> = serde_json::from_value(listed.clone()).map_err(wrong)?;
        for group in groups {
            for hook in group.hooks {
                let is_command = hook.kind.as_deref().is_none_or(|kind| kind == "command");
                let Some(command) = hook.command.filter(|_| is_command) else { continue };
                let timeout = hook.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let matcher = group.matcher.as_deref();
                hooks.push(Hook::new(event, matcher, &command, timeout, HookForm::Claude)?);
            }
        }
    }
    check_number(hooks)
}

fn check_number(hooks: Vec<Hook>) -> Result<Vec<Hook>, HookFileError> {
    if hooks.len() > MAX_HOOKS {
        let why = format!("{} hooks are too many; at most {MAX_HOOKS} are possible", hooks.len());
        return Err(HookFileError(why));
    }
    Ok(hooks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_own_hooks(text: &str) -> Result<Vec<Hook>, HookFileError> {
        own_hooks(&toml::from_str(text).expect("TOML"))
    }

    #[test]
    fn own_tables_give_hooks_with_matcher_and_timeout() {
        let hooks = parse_own_hooks(
            "[[pre_tool_use]]\nmatcher = \"Edit|Write\"\ncommand = \"./check\"\ntimeout = \"5s\"\n\
                         [[stop]]\ncommand = \"true\"",
        )
        .expect("right");
        assert_eq!(hooks.len(), 2);
        let of_tool = hooks.iter().find(|hook| hook.event == HookEvent::PreToolUse).expect("there");
        assert!(of_tool.is_for(HookEvent::PreToolUse, Some("Edit")));
        assert!(!of_tool.is_for(HookEvent::PreToolUse, Some("MultiEdit")), "the whole name must match");
        assert!(!of_tool.is_for(HookEvent::PostToolUse, Some("Edit")));
        assert_eq!(of_tool.timeout, Duration::from_secs(5));
    }

    #[test]
    fn wrong_own_tables_name_the_problem() {
        for (text, part) in [
            ("[[before_tool]]\ncommand = \"x\"", "there is no event"),
            ("[[stop]]\ncommand = \" \"", "empty"),
            ("[[stop]]\ncommand = \"x\"\nfoo = 1", "unknown field"),
            ("[[pre_tool_use]]\ncommand = \"x\"\nmatcher = \"(\"", "matcher"),
        ] {
            let error = parse_own_hooks(text).expect_err(text);
            assert!(error.0.contains(part), "{text}: {}", error.0);
        }
    }

    #[test]
    fn claude_settings_give_hooks_of_known_kinds() {
        let text = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
                {"type": "command", "command": "x", "timeout": 2.5}, {"type": "prompt", "prompt": "y"}]}],
            "SomethingNew": [{"hooks": 1}], "Stop": [{"hooks": [{"type": "command", "command": "z"}]}]}}"#;
        let hooks = claude_hooks(text).expect("right");
        assert_eq!(hooks.len(), 2);
        assert_eq!((hooks[0].timeout, hooks[0].form), (Duration::from_millis(2_500), HookForm::Claude));
        assert!(claude_hooks("{").is_err() && claude_hooks(r#"{"hooks": {"Stop": 1}}"#).is_err());
        assert!(claude_hooks("{}").expect("right").is_empty());
    }
}
