//! Lists of allowed and of denied tools.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::tool_names::Slashed;
use super::values::texts;
use super::{Listed, Reader};
use crate::extensions::agent_keys::{ALSO_DENIED, SENTENCE_WORDS, as_flag, is_empty, is_of_others, mode};
use crate::extensions::front_matter::normalized;
use judge::Rule;
use types::mcp_names::check_written_rule;
use types::tool::MCP_PREFIX;

impl Reader<'_> {
    /// The tools of a list of allowed tools; `None` for all.
    pub(super) fn allow_list(&mut self, key: &str, value: &Value) -> Result<Option<Vec<Listed>>, String> {
        let texts = match value {
            Value::Object(map) => return self.switches(key, map),
            value => texts(key, value)?,
        };
        match texts.join(" ").to_lowercase().as_str() {
            "" | "none" => return Ok(Some(Vec::new())),
            "*" | "all" | "all tools" | "inherit" => return Ok(None),
            _ => {}
        }
        let turns = |text: &&String| {
            text.starts_with(['!', '-']) || SENTENCE_WORDS.contains(&text.to_lowercase().as_str())
        };
        if let Some(text) = texts.iter().find(turns) {
            return Err(format!("{key}: {text:?} cannot exclude tools; write them into disallowedTools"));
        }
        if texts.iter().any(|text| text == "*") {
            return Ok(None);
        }
        let mut list: Vec<Listed> = Vec::new();
        for text in texts {
            for listed in self.listed(key, &text) {
                if !list.contains(&listed) {
                    list.push(listed);
                }
            }
        }
        if list.is_empty() {
            let named = self.read.notes.iter().chain(&self.read.of_others);
            let named = named.map(String::as_str).collect::<Vec<_>>().join("; ");
            return Err(format!("the agent has no usable tool: {named}"));
        }
        Ok(Some(list))
    }

    /// The tools that one text of an allow list names. What is not understood is left out.
    pub(super) fn listed(&mut self, key: &str, text: &str) -> Vec<Listed> {
        if text.starts_with(MCP_PREFIX) {
            return match check_written_rule(text) {
                Ok(()) => vec![Listed { name: text.to_owned(), rule: None }],
                Err(why) => {
                    self.note(format!("{key}: {text} is left out: {why}"));
                    Vec::new()
                }
            };
        }
        let (base, pattern) = match text.split_once('(') {
            Some((base, rest)) => (base, Some(rest.strip_suffix(')').unwrap_or(rest))),
            None => (text, None),
        };
        if let Some(slashed) = self.slashed(base, pattern.is_some()) {
            let names = match slashed {
                Slashed::Tools(names) => names,
                Slashed::Server(rule) => vec![rule],
                Slashed::OfOthers => {
                    self.read.of_others.push(base.to_owned());
                    Vec::new()
                }
                Slashed::Unknown(why) => {
                    self.note(format!("{key}: {text} is left out: {why}"));
                    Vec::new()
                }
            };
            return names.into_iter().map(|name| Listed { name, rule: None }).collect();
        }
        let Some(name) = self.canonical(base) else {
            let set = self.tool_set(base);
            if !set.is_empty() && pattern.is_none() {
                return set.into_iter().map(|name| Listed { name, rule: None }).collect();
            }
            if is_of_others(base) {
                self.read.of_others.push(base.to_owned());
            } else {
                self.note(format!("{key}: there is no tool {base:?}"));
            }
            return Vec::new();
        };
        let Some(pattern) = pattern.filter(|pattern| !matches!(pattern.trim(), "*" | ":*" | "**")) else {
            return vec![Listed { name, rule: None }];
        };
        let mut rules = Vec::new();
        for pattern in patterns(&name, pattern) {
            match Rule::from_str(&format!("{name}({pattern})")) {
                Ok(rule) => rules.push(Listed { name: name.clone(), rule: Some(rule.to_string()) }),
                Err(error) => self.note(format!("{key}: {text} is left out: {}", error.problem)),
            }
        }
        rules
    }

    /// Tools with `true` or `false`. Those that are not named are allowed, unless `*` is `false`.
    pub(super) fn switches(
        &mut self,
        key: &str,
        map: &Map<String, Value>,
    ) -> Result<Option<Vec<Listed>>, String> {
        let is_off = |value: &Value| match value {
            Value::Bool(is_on) => Ok(!is_on),
            _ => Err(format!("{key}: expected true or false for each tool")),
        };
        let (mut on, mut off, mut all_off) = (Vec::new(), Vec::new(), false);
        for (name, value) in map {
            match (is_off(value)?, name.as_str()) {
                (is_off, "*") => all_off = is_off,
                (true, name) => off.push(Value::from(name)),
                (false, name) => on.extend(self.listed(key, name)),
            }
        }
        self.deny(key, &Value::Array(off))?;
        Ok(all_off.then_some(on))
    }

    /// A list of denied tools.
    pub(super) fn deny(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let texts = match value {
            Value::Object(map) => {
                let mut names = Vec::new();
                for (name, value) in map {
                    match as_flag(value) {
                        Some(true) => names.push(name.clone()),
                        Some(false) => {}
                        None => return Err(format!("{key}: expected true or false for each tool")),
                    }
                }
                names
            }
            value => texts(key, value)?,
        };
        for text in texts {
            self.deny_text(key, &text)?;
        }
        Ok(())
    }

    pub(super) fn deny_text(&mut self, key: &str, text: &str) -> Result<(), String> {
        if matches!(text, "*" | "all") {
            return Err(format!(
                "{key}: {text} leaves no tool; write `tools: []` for an agent without tools"
            ));
        }
        if text.starts_with(MCP_PREFIX) {
            check_written_rule(text).map_err(|why| format!("{key}: {text}: {why}"))?;
            self.deny_tool(text);
            return Ok(());
        }
        let (base, pattern) = match text.split_once('(') {
            Some((base, rest)) => match rest.strip_suffix(')') {
                Some(pattern) => (base, Some(pattern)),
                None => return Err(format!("{key}: {text}: the closing `)` is missing")),
            },
            None => (text, None),
        };
        match self.slashed(base, pattern.is_some()) {
            Some(Slashed::Tools(names)) => {
                names.iter().for_each(|name| self.deny_tool(name));
                return Ok(());
            }
            Some(Slashed::Server(rule)) => {
                self.deny_tool(&rule);
                return Ok(());
            }
            Some(Slashed::OfOthers) => return Ok(()),
            Some(Slashed::Unknown(why)) => return Err(format!("{key}: {text}: {why}")),
            None => {}
        }
        let Some(name) = self.canonical(base) else {
            let set = self.tool_set(base);
            if !set.is_empty() && pattern.is_none() {
                set.iter().for_each(|name| self.deny_tool(name));
                return Ok(());
            }
            if is_of_others(base) {
                return Ok(());
            }
            return Err(format!("{key}: there is no tool {base:?}, so it is not known what it denies"));
        };
        let Some(pattern) = pattern.filter(|pattern| !matches!(pattern.trim(), "*" | ":*" | "**")) else {
            self.deny_tool(&name);
            return Ok(());
        };
        // A rule for one of the tools that change files would not hold for the others.
        let family = match name.as_str() {
            "Write" | "MultiEdit" | "ApplyPatch" | "NotebookEdit" => "Edit",
            "Glob" | "Grep" | "LS" => "Read",
            name => name,
        };
        for pattern in patterns(family, pattern) {
            let rule = Rule::from_str(&format!("{family}({pattern})"));
            let rule = rule.map_err(|error| format!("{key}: {text}: {}", error.problem))?;
            self.read.restrictions.deny.push(rule.to_string());
        }
        Ok(())
    }

    pub(super) fn deny_tool(&mut self, name: &str) {
        let also = ALSO_DENIED.iter().filter(|(tool, _)| *tool == name).flat_map(|(_, also)| *also);
        for name in std::iter::once(&name).chain(also) {
            if !self.read.denied.iter().any(|known| known == name) {
                self.read.denied.push((*name).to_owned());
            }
        }
    }

    /// `permission` of other programs: modes, lists, or a decision for each tool.
    pub(super) fn permission(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let unclear =
            |what: &str| Err(format!("{key}: {what} is not understood; write tools or disallowedTools"));
        let map = match value {
            value if is_empty(value) => return Ok(()),
            Value::Object(map) => map,
            Value::String(text) => {
                return match mode(text) {
                    Some(mode) => {
                        self.narrow(mode);
                        Ok(())
                    }
                    None => unclear(text),
                };
            }
            _ => return unclear("the value"),
        };
        for (name, value) in map {
            match (normalized(name).as_str(), value) {
                ("allow" | "allowed", _) => {
                    self.note(format!("{key}.{name} is not used: the file of an agent allows nothing"))
                }
                ("deny" | "denied" | "disallow", value) => self.deny(&format!("{key}.{name}"), value)?,
                ("defaultmode" | "mode", value) => self.key("permissionMode", value)?,
                (_, value) if is_empty(value) => {}
                (_, Value::String(decision)) => {
                    match (decision.to_lowercase().as_str(), self.canonical(name)) {
                        ("allow", _) => {}
                        ("deny", Some(tool)) => self.deny_tool(&tool),
                        ("ask", Some(tool)) => self.read.restrictions.ask.push(tool),
                        _ => return unclear(name),
                    }
                }
                _ => return unclear(name),
            }
        }
        Ok(())
    }
}

/// The patterns in parentheses. Names of agents have commas between them.
fn patterns<'p>(tool: &str, pattern: &'p str) -> Vec<&'p str> {
    match tool {
        "Task" => pattern.split(',').map(str::trim).collect(),
        _ => vec![pattern.trim()],
    }
}
