//! The restrictions in an agent's front matter: its tools, mode and number of steps.
//!
//! A list of allowed tools is read piece by piece, because each piece that is left out only takes a tool away. Anything
//! else that could forbid something is understood, or the agent is refused.

mod lists;
mod tool_names;
mod values;

use serde_json::{Map, Value};

use super::agent_keys::{
    DOCUMENTED, MODES_OF_OTHERS, Meaning, READ_ONLY_TOOLS, as_flag, informs, is_about_execution,
    is_all_access, is_capability, is_denial, is_empty, is_suspicious, meaning, mode, permits,
};
use super::front_matter::{Entry, FrontMatter, normalized};
use types::mcp::TOOL_SEARCH;
use types::permission::Mode;
use types::subagent::AgentRestrictions;
use types::tool::{MCP_PREFIX, ToolChoice};
use values::{READ_AND_EDIT, mode_names, no_mode, path_rules, texts};

/// What a front matter says about tools, mode and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AgentTools {
    /// The tools as they are written, those that exist; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Names of tools that the agent does not have.
    pub denied: Vec<String>,
    /// What is forbidden.
    pub restrictions: AgentRestrictions,
    /// The mode that it has at most.
    pub mode: Option<Mode>,
    /// How many model calls a task may take.
    pub max_turns: Option<u64>,
    /// What is left out, for users.
    pub notes: Vec<String>,
    /// Tools of other programs that it names.
    pub of_others: Vec<String>,
}

impl AgentTools {
    /// Reads the keys of a front matter. `known` are the names of the daemon's tools.
    ///
    /// # Errors
    /// Something that may restrict the agent is not understood, or no usable tool is left. The text is for users.
    pub fn read(front: &FrontMatter, known: &[String]) -> Result<Self, String> {
        let mut reader = Reader { known, read: Self::default(), lists: Vec::new() };
        for Entry { key, value, .. } in front.entries() {
            // A key that informs and is no YAML has no value.
            if let Some(value) = value {
                reader.key(key, value)?;
            }
        }
        reader.finish()
    }
}

struct Reader<'k> {
    known: &'k [String],
    read: AgentTools,
    /// The lists of allowed tools. Only tools of each list are allowed.
    lists: Vec<Vec<Listed>>,
}

/// A tool of a list, with the rule to which it is restricted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    rule: Option<String>,
}

impl Reader<'_> {
    fn key(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let name = normalized(key);
        let Some(meaning) = meaning(&name) else { return self.unknown(key, &name, value) };
        if !DOCUMENTED.contains(&key) && !matches!(meaning, Meaning::Grant | Meaning::Hooks) {
            self.note(format!("the key {key:?} is no key of agents; it is read as a restriction"));
        }
        let wrong = |why: &str| Err(format!("{key}: {why}"));
        match meaning {
            Meaning::Allow => {
                if let Some(list) = self.allow_list(key, value)? {
                    self.lists.push(list);
                }
                Ok(())
            }
            Meaning::Deny => self.deny(key, value),
            Meaning::ReadOnly => match as_flag(value) {
                Some(true) => {
                    self.only_reads();
                    Ok(())
                }
                Some(false) => Ok(()),
                None => wrong("expected true or false"),
            },
            Meaning::Mode => {
                for text in mode_names(key, value)? {
                    match mode(&text) {
                        _ if normalized(&text) == "inherit" => {}
                        Some(mode) => self.narrow(mode),
                        None => return wrong(&no_mode(&text)),
                    }
                }
                Ok(())
            }
            Meaning::Turns => self.max_turns(key, value),
            Meaning::AllowPaths => {
                self.only_paths(key, path_rules(key, value, &READ_AND_EDIT)?);
                Ok(())
            }
            Meaning::AllowTypes => {
                let globs = texts(key, value)?
                    .into_iter()
                    .map(|ending| Value::from(format!("**/*.{}", ending.trim_start_matches(['*', '.']))));
                self.only_paths(key, path_rules(key, &globs.collect(), &READ_AND_EDIT)?);
                Ok(())
            }
            Meaning::Write => self.write_access(key, value),
            Meaning::Access => self.access(key, value),
            Meaning::Confirm => {
                // What needs the confirmation is often a sentence, so no mode may answer in the user's place.
                if as_flag(value) != Some(false) && !is_empty(value) {
                    self.note(format!("{key} is read as permissionMode: default"));
                    self.narrow(Mode::Default);
                }
                Ok(())
            }
            Meaning::DenyPaths => {
                let rules = path_rules(key, value, &READ_AND_EDIT)?;
                self.read.restrictions.deny.extend(rules);
                Ok(())
            }
            Meaning::Permission => self.permission(key, value),
            Meaning::Hooks => self.hooks(value).map_err(|why| format!("{key}: {why}")),
            Meaning::Grant => {
                self.note(format!("{key} is not used: the file of an agent allows nothing"));
                Ok(())
            }
        }
    }

    fn max_turns(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let number = match value {
            Value::Null => return Ok(()),
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| *number > 0);
        let number = number.ok_or_else(|| format!("{key}: expected a number above zero"))?;
        let most = &mut self.read.max_turns;
        *most = Some(most.map_or(number, |most| most.min(number)));
        Ok(())
    }

    /// Whether the agent may write: all, nothing, or these paths.
    fn write_access(&mut self, key: &str, value: &Value) -> Result<(), String> {
        match (as_flag(value), value) {
            (Some(true), _) | (_, Value::Null) => {}
            (_, Value::String(text)) if is_all_access(text) => {}
            (_, Value::String(text)) if matches!(normalized(text).as_str(), "none" | "never") => {
                self.only_reads();
            }
            (_, Value::Array(list)) if list.is_empty() => self.only_reads(),
            (Some(false), _) => self.only_reads(),
            (None, value) => self.only_paths(key, path_rules(key, value, &["Edit"])?),
        }
        Ok(())
    }

    fn access(&mut self, key: &str, value: &Value) -> Result<(), String> {
        const READS: [&str; 5] = ["read", "readonly", "ro", "onlyread", "view"];
        match value {
            Value::Null | Value::Bool(true) => {}
            Value::String(text) if text.trim().is_empty() || is_all_access(text) => {}
            Value::String(text) if READS.contains(&normalized(text).as_str()) => self.only_reads(),
            _ => return Err(format!("{key}: expected read-only or full")),
        }
        Ok(())
    }

    /// Hooks are not used. One that guards tools is a restriction, so it is refused.
    fn hooks(&mut self, value: &Value) -> Result<(), &'static str> {
        let guards = |hooks: &Map<String, Value>| {
            hooks.iter().any(|(event, list)| normalized(event) == "pretooluse" && !is_empty(list))
        };
        match value {
            Value::Object(hooks) if !guards(hooks) => {}
            other if is_empty(other) => return Ok(()),
            _ => {
                return Err("hooks in the file of an agent are not supported; put them into a settings file");
            }
        }
        self.note("hooks in the file of an agent are not used".into());
        Ok(())
    }

    /// A key without known meaning.
    fn unknown(&mut self, key: &str, name: &str, value: &Value) -> Result<(), String> {
        if name == "mode" {
            return self.mode_of_others(key, value);
        }
        // `claude.maxTurns`
        if let Some((_, last)) = key.rsplit_once('.')
            && meaning(&normalized(last)).is_some()
        {
            return self.key(last, value);
        }
        // `write: false`
        let last = key.rsplit('.').next().unwrap_or(key);
        let tools = self.tools_of(last);
        if !tools.is_empty() && (value.is_boolean() || is_denial(value)) {
            if is_denial(value) {
                self.note(format!("the key {key:?} is no key of agents; it is read as a restriction"));
                tools.iter().for_each(|tool| self.deny_tool(tool));
            }
            return Ok(());
        }
        let unclear = || {
            Err(format!(
                "the key {key:?} may restrict the agent, and its meaning is not known; write tools, disallowedTools, \
                 permissionMode or maxTurns, or remove it"
            ))
        };
        if is_capability(last) && (is_denial(value) || self.names_only_tools(value)) {
            return unclear();
        }
        if let Value::Object(map) = value
            && (!is_suspicious(name) || is_about_execution(name))
            && !informs(name)
        {
            // Keys of other programs have restrictions one level deeper.
            return map.iter().try_for_each(|(inner, value)| self.inner_key(key, inner, value));
        }
        let permits = permits(name);
        let is_harmless = match value {
            Value::Bool(is_on) => *is_on == permits,
            Value::Array(list) => list.is_empty() && !permits,
            Value::Object(map) => map.is_empty() && !permits,
            Value::String(text) if name.contains("access") => text.trim().is_empty() || is_all_access(text),
            // An ability that is given, or how it is used.
            Value::String(text) if permits && !name.contains("allow") => {
                let text = normalized(text);
                let gives = ["", "true", "yes", "on", "enabled", "all", "any", "full", "unrestricted"];
                let ways = ["parallel", "sequential", "serial", "concurrent", "async", "sync", "batch"];
                gives.contains(&text.as_str()) || (is_about_execution(name) && ways.contains(&text.as_str()))
            }
            Value::String(text) => {
                matches!(normalized(text).as_str(), "" | "none" | "off" | "false") && !permits
            }
            Value::Null => true,
            Value::Number(_) => is_about_execution(name) && name.contains("time"),
        };
        if !is_suspicious(name) || is_harmless {
            return Ok(());
        }
        unclear()
    }

    /// A key below a key without known meaning.
    fn inner_key(&mut self, above: &str, key: &str, value: &Value) -> Result<(), String> {
        let full = format!("{above}.{key}");
        match meaning(&normalized(key)) {
            Some(Meaning::Allow) if normalized(key) == "tools" => {
                self.note(format!("{full} is not used; write tools"));
                Ok(())
            }
            Some(_) => self.key(key, value).map_err(|why| format!("{above}.{why}")),
            None if normalized(key) == "mode" => {
                // Often the mode of something else, such as `output.mode: verbose`.
                if self.mode_of_others(&full, value).is_err() {
                    self.note(format!("{full} is not used"));
                }
                Ok(())
            }
            None => self.unknown(&full, &normalized(key), value),
        }
    }

    /// `mode` of another program: an approval mode, or a kind of agent, such as `subagent`.
    fn mode_of_others(&mut self, key: &str, value: &Value) -> Result<(), String> {
        for text in mode_names(key, value)? {
            match normalized(&text).as_str() {
                "readonly" | "read" => {
                    self.note("mode: readonly is read as readonly: true".into());
                    self.only_reads();
                }
                kind if MODES_OF_OTHERS.contains(&kind) => {}
                _ => {
                    let mode = mode(&text).ok_or_else(|| format!("{key}: {}", no_mode(&text)))?;
                    self.note(format!("the key {key:?} is read as permissionMode"));
                    self.narrow(mode);
                }
            }
        }
        Ok(())
    }

    /// Only what one of these rules covers is allowed. Without rules, nothing is restricted.
    fn only_paths(&mut self, key: &str, rules: Vec<String>) {
        if rules.is_empty() {
            return;
        }
        self.read.restrictions.only.push(rules);
        // The files that a command writes are not all known before it runs.
        let commands = "Bash".to_owned();
        if !self.read.restrictions.ask.contains(&commands) {
            self.read.restrictions.ask.push(commands);
        }
        self.note(format!("because of {key}, each Bash command needs a request"));
    }

    fn only_reads(&mut self) {
        let tools = READ_ONLY_TOOLS.iter().filter(|tool| self.known.iter().any(|known| known == *tool));
        self.lists.push(tools.map(|tool| Listed { name: (*tool).to_owned(), rule: None }).collect());
    }

    fn narrow(&mut self, mode: Mode) {
        self.read.mode = Some(self.read.mode.map_or(mode, |known| known.narrowed_to(mode)));
        if !self.read.restrictions.modes.contains(&mode) {
            self.read.restrictions.modes.push(mode);
        }
    }

    fn note(&mut self, text: String) {
        if !self.read.notes.contains(&text) {
            self.read.notes.push(text);
        }
    }

    fn finish(mut self) -> Result<AgentTools, String> {
        let restrictions = &mut self.read.restrictions;
        for list in &self.lists {
            let is_free = |name: &str| list.iter().any(|it| it.name == name && it.rule.is_none());
            let rules = list.iter().filter(|it| !is_free(&it.name)).filter_map(|it| it.rule.clone());
            let rules: Vec<String> = rules.collect();
            if !rules.is_empty() {
                restrictions.only.push(rules);
            }
            restrictions.tools.push(ToolChoice { allow: Some(names(list)), deny: Vec::new() });
        }
        if !self.read.denied.is_empty() {
            restrictions.tools.push(ToolChoice { allow: None, deny: self.read.denied.clone() });
        }
        // Whether a server has a tool is not known yet.
        let is_usable = |name: &str| {
            let offers = |choice: &ToolChoice| match choice.allow {
                Some(_) if name.starts_with(MCP_PREFIX) => true,
                _ => choice.offers(name),
            };
            self.read.restrictions.tools.iter().all(offers)
        };
        let is_left = match self.lists.first() {
            Some(first) => {
                let usable = first.iter().filter(|it| is_usable(&it.name));
                let written = usable.map(|it| it.rule.clone().unwrap_or_else(|| it.name.clone()));
                self.read.tools = Some(written.collect());
                // An agent without tools is possible, but only if its file says so.
                self.lists.iter().any(Vec::is_empty)
                    || self.read.tools.as_ref().is_some_and(|it| !it.is_empty())
            }
            None => self.known.iter().any(|name| is_usable(name)),
        };
        if is_left { Ok(self.read) } else { Err("the agent has no usable tool: its lists leave none".into()) }
    }
}

/// The names of listed tools. With a tool of a server, the search for such tools is among them.
fn names(list: &[Listed]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for it in list {
        if !names.contains(&it.name) {
            names.push(it.name.clone());
        }
    }
    if names.iter().any(|name| name.starts_with(MCP_PREFIX)) && !names.iter().any(|name| name == TOOL_SEARCH)
    {
        names.push(TOOL_SEARCH.to_owned());
    }
    names
}
