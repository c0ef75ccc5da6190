//! The restrictions in an agent's front matter: its tools, mode and number of steps.
//!
//! A list of allowed tools is read piece by piece, because each piece that is left out only takes a tool away. Anything
//! else that could forbid something is understood, or the agent is refused.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::agent_keys::{
    ALSO_DENIED, DOCUMENTED, MODES_OF_OTHERS, Meaning, READ_ONLY_TOOLS, SENTENCE_WORDS, TOOL_ALIASES,
    TOOL_SETS, VSCODE_SETS, as_flag, informs, is_about_execution, is_all_access, is_capability, is_denial,
    is_empty, is_of_others, is_suspicious, meaning, mode, permits,
};
use super::front_matter::{Entry, FrontMatter, normalized, split_list};
use judge::Rule;
use types::mcp::TOOL_SEARCH;
use types::mcp_names::check_written_rule;
use types::permission::Mode;
use types::subagent::AgentRestrictions;
use types::tool::{MCP_PREFIX, ToolChoice};

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
        let mut reader = Reader { known, found: Self::default(), lists: Vec::new() };
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
    found: AgentTools,
    /// The lists of allowed tools. Only tools of each list are allowed.
    lists: Vec<Vec<Listed>>,
}

/// A tool of a list, with the rule to which it is restricted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    rule: Option<String>,
}

/// What a name with a slash means.
#[derive(Debug)]
enum Slashed {
    /// Tools of the daemon, by a name of VS Code.
    Tools(Vec<String>),
    /// A tool of VS Code without counterpart.
    OfOthers,
    /// A rule for a server: `server/tool` is `mcp__server__tool`.
    Server(String),
    /// It is not understood; the text says why.
    Unknown(String),
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
            Meaning::Turns => {
                let number = match value {
                    Value::Null => return Ok(()),
                    Value::Number(number) => number.as_u64(),
                    Value::String(text) => text.trim().parse().ok(),
                    _ => None,
                };
                let Some(number) = number.filter(|number| *number > 0) else {
                    return wrong("expected a number above zero");
                };
                self.found.max_turns = Some(self.found.max_turns.map_or(number, |known| known.min(number)));
                Ok(())
            }
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
            Meaning::Write => {
                match (as_flag(value), value) {
                    (Some(true), _) => {}
                    (_, Value::String(text)) if is_all_access(text) => {}
                    (_, Value::String(text)) if matches!(normalized(text).as_str(), "none" | "never") => {
                        self.only_reads();
                    }
                    (_, Value::Null) => {}
                    (_, Value::Array(list)) if list.is_empty() => self.only_reads(),
                    (Some(false), _) => self.only_reads(),
                    (None, value) => self.only_paths(key, path_rules(key, value, &["Edit"])?),
                }
                Ok(())
            }
            Meaning::Access => match value {
                Value::Null | Value::Bool(true) => Ok(()),
                Value::String(text) if text.trim().is_empty() || is_all_access(text) => Ok(()),
                Value::String(text)
                    if matches!(
                        normalized(text).as_str(),
                        "read" | "readonly" | "ro" | "onlyread" | "view"
                    ) =>
                {
                    self.only_reads();
                    Ok(())
                }
                _ => wrong("expected read-only or full"),
            },
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
                self.found.restrictions.deny.extend(rules);
                Ok(())
            }
            Meaning::Permission => self.permission(key, value),
            Meaning::Hooks => {
                let guards = |hooks: &Map<String, Value>| {
                    hooks.iter().any(|(event, list)| normalized(event) == "pretooluse" && !is_empty(list))
                };
                match value {
                    Value::Object(hooks) if !guards(hooks) => {}
                    other if is_empty(other) => return Ok(()),
                    _ => {
                        return wrong(
                            "hooks in the file of an agent are not supported; put them into a settings file",
                        );
                    }
                }
                self.note("hooks in the file of an agent are not used".into());
                Ok(())
            }
            Meaning::Grant => {
                self.note(format!("{key} is not used: the file of an agent allows nothing"));
                Ok(())
            }
        }
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
    /// Limits the agent to some files.
    fn only_paths(&mut self, key: &str, rules: Vec<String>) {
        if rules.is_empty() {
            return;
        }
        self.found.restrictions.only.push(rules);
        // The files that a command writes are not all known before it runs.
        let commands = "Bash".to_owned();
        if !self.found.restrictions.ask.contains(&commands) {
            self.found.restrictions.ask.push(commands);
        }
        self.note(format!("because of {key}, each Bash command needs a request"));
    }

    /// The tools of a list of allowed tools; `None` for all.
    fn allow_list(&mut self, key: &str, value: &Value) -> Result<Option<Vec<Listed>>, String> {
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
            let named = self.found.notes.iter().chain(&self.found.of_others);
            let named = named.map(String::as_str).collect::<Vec<_>>().join("; ");
            return Err(format!("the agent has no usable tool: {named}"));
        }
        Ok(Some(list))
    }

    /// The tools that one text of an allow list names. What is not understood is left out.
    fn listed(&mut self, key: &str, text: &str) -> Vec<Listed> {
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
                    self.found.of_others.push(base.to_owned());
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
                self.found.of_others.push(base.to_owned());
            } else {
                self.note(format!("{key}: there is no tool {base:?}"));
            }
            return Vec::new();
        };
        let Some(pattern) = pattern.filter(|pattern| !matches!(pattern.trim(), "*" | ":*" | "**")) else {
            return vec![Listed { name, rule: None }];
        };
        let mut found = Vec::new();
        for pattern in patterns(&name, pattern) {
            match Rule::from_str(&format!("{name}({pattern})")) {
                Ok(rule) => found.push(Listed { name: name.clone(), rule: Some(rule.to_string()) }),
                Err(error) => self.note(format!("{key}: {text} is left out: {}", error.problem)),
            }
        }
        found
    }

    /// Tools with `true` or `false`. Those that are not named are allowed, unless `*` is `false`.
    fn switches(&mut self, key: &str, map: &Map<String, Value>) -> Result<Option<Vec<Listed>>, String> {
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
    fn deny(&mut self, key: &str, value: &Value) -> Result<(), String> {
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

    fn deny_text(&mut self, key: &str, text: &str) -> Result<(), String> {
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
            self.found.restrictions.deny.push(rule.to_string());
        }
        Ok(())
    }

    fn deny_tool(&mut self, name: &str) {
        let also = ALSO_DENIED.iter().filter(|(tool, _)| *tool == name).flat_map(|(_, also)| *also);
        for name in std::iter::once(&name).chain(also) {
            if !self.found.denied.iter().any(|known| known == name) {
                self.found.denied.push((*name).to_owned());
            }
        }
    }

    /// `permission` of other programs: modes, lists, or a decision for each tool.
    fn permission(&mut self, key: &str, value: &Value) -> Result<(), String> {
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
                        ("ask", Some(tool)) => self.found.restrictions.ask.push(tool),
                        _ => return unclear(name),
                    }
                }
                _ => return unclear(name),
            }
        }
        Ok(())
    }

    fn only_reads(&mut self) {
        let tools = READ_ONLY_TOOLS.iter().filter(|tool| self.known.iter().any(|known| known == *tool));
        self.lists.push(tools.map(|tool| Listed { name: (*tool).to_owned(), rule: None }).collect());
    }

    fn narrow(&mut self, mode: Mode) {
        self.found.mode = Some(self.found.mode.map_or(mode, |known| known.narrowed_to(mode)));
        if !self.found.restrictions.modes.contains(&mode) {
            self.found.restrictions.modes.push(mode);
        }
    }

    /// What a name with a slash means; `None` for one without.
    fn slashed(&self, name: &str, has_pattern: bool) -> Option<Slashed> {
        let (set, tool) = name.rsplit_once('/')?;
        let unknown = |why: &str| Some(Slashed::Unknown(why.to_owned()));
        if has_pattern {
            return unknown("such a name has no pattern");
        }
        let lower = set.to_lowercase();
        if let Some((set, members)) = VSCODE_SETS.iter().find(|(set, _)| *set == lower) {
            let member = match (*set, tool) {
                ("edit", "*") => "editfiles".to_owned(),
                (set, "*") => set.to_owned(),
                (_, tool) => normalized(tool),
            };
            if tool != "*" && !members.contains(&member.as_str()) {
                return unknown("VS Code's set has no such tool; a tool of a server is mcp__SERVER__TOOL");
            }
            let tools = self.tools_of(&member);
            if !tools.is_empty() {
                return Some(Slashed::Tools(tools));
            }
            if tool == "*" {
                return unknown("there are no tools like those of this set");
            }
            return Some(Slashed::OfOthers);
        }
        let is_tool = |name: &str| self.canonical(name).is_some() || is_of_others(name);
        if is_tool(set) && is_tool(tool) {
            return unknown("names of tools have commas between them");
        }
        if set.contains("__") {
            return unknown("write mcp__SERVER__TOOL");
        }
        let rule = match tool {
            "*" => format!("{MCP_PREFIX}{set}"),
            tool => format!("{MCP_PREFIX}{set}__{tool}"),
        };
        Some(match check_written_rule(&rule) {
            Ok(()) => Slashed::Server(rule),
            Err(why) => Slashed::Unknown(why),
        })
    }

    /// Whether a list or a text has names, and all of them are names of tools.
    fn names_only_tools(&self, value: &Value) -> bool {
        let Ok(names) = texts("", value) else { return false };
        !names.is_empty() && names.iter().all(|name| !self.tools_of(name).is_empty())
    }

    /// The daemon's names of the tools that one name stands for, here or in another program.
    fn tools_of(&self, name: &str) -> Vec<String> {
        self.canonical(name).map_or_else(|| self.tool_set(name), |name| vec![name])
    }

    /// The daemon's name of a tool.
    fn canonical(&self, name: &str) -> Option<String> {
        // `multi/edit` is a tool of the server `multi`.
        if name.contains('/') {
            return None;
        }
        let name = normalized(name);
        let alias = TOOL_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, tool)| normalized(tool));
        let name = alias.unwrap_or(name);
        self.known.iter().find(|known| normalized(known) == name).cloned()
    }

    /// The daemon's names of the tools that another program has under one name.
    fn tool_set(&self, name: &str) -> Vec<String> {
        let name = normalized(name);
        let tools = TOOL_SETS.iter().find(|(set, _)| *set == name).map_or(&[][..], |(_, tools)| *tools);
        tools.iter().filter_map(|tool| self.canonical(tool)).collect()
    }

    fn note(&mut self, text: String) {
        if !self.found.notes.contains(&text) {
            self.found.notes.push(text);
        }
    }

    fn finish(mut self) -> Result<AgentTools, String> {
        let restrictions = &mut self.found.restrictions;
        for list in &self.lists {
            let is_free = |name: &str| list.iter().any(|it| it.name == name && it.rule.is_none());
            let rules = list.iter().filter(|it| !is_free(&it.name)).filter_map(|it| it.rule.clone());
            let rules: Vec<String> = rules.collect();
            if !rules.is_empty() {
                restrictions.only.push(rules);
            }
            restrictions.tools.push(ToolChoice { allow: Some(names(list)), deny: Vec::new() });
        }
        if !self.found.denied.is_empty() {
            restrictions.tools.push(ToolChoice { allow: None, deny: self.found.denied.clone() });
        }
        // Whether a server has a tool is not known yet.
        let is_usable = |name: &str| {
            let offers = |choice: &ToolChoice| match choice.allow {
                Some(_) if name.starts_with(MCP_PREFIX) => true,
                _ => choice.offers(name),
            };
            self.found.restrictions.tools.iter().all(offers)
        };
        let is_left = match self.lists.first() {
            Some(first) => {
                let usable = first.iter().filter(|it| is_usable(&it.name));
                let written = usable.map(|it| it.rule.clone().unwrap_or_else(|| it.name.clone()));
                self.found.tools = Some(written.collect());
                // An agent without tools is possible, but only if its file says so.
                self.lists.iter().any(Vec::is_empty)
                    || self.found.tools.as_ref().is_some_and(|it| !it.is_empty())
            }
            None => self.known.iter().any(|name| is_usable(name)),
        };
        if is_left {
            Ok(self.found)
        } else {
            Err("the agent has no usable tool: its lists leave none".into())
        }
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

/// The patterns in parentheses. Names of agents have commas between them.
fn patterns<'p>(tool: &str, pattern: &'p str) -> Vec<&'p str> {
    match tool {
        "Task" => pattern.split(',').map(str::trim).collect(),
        _ => vec![pattern.trim()],
    }
}

/// The texts of a value: a list, or one text.
fn texts(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("{key}: expected names of tools");
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(split_list(text)),
        Value::Array(list) => {
            let text = |value: &Value| match value {
                Value::String(text) => Ok(split_list(text)),
                Value::Number(number) => Ok(vec![number.to_string()]),
                _ => Err(wrong()),
            };
            Ok(list.iter().map(text).collect::<Result<Vec<_>, _>>()?.concat())
        }
        _ => Err(wrong()),
    }
}

/// The names of modes in a value: one text, or a list.
fn mode_names(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let text = |value: &Value| match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.trim().to_owned()),
        _ => Err(format!("{key}: expected the name of a mode")),
    };
    let names = match value {
        Value::Array(list) => list.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        value => vec![text(value)?],
    };
    Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
}

fn no_mode(text: &str) -> String {
    format!("there is no mode {text:?}; use default, acceptEdits, plan, dontAsk or bypassPermissions")
}

/// The tools whose rules cover the reading and the changing of files.
const READ_AND_EDIT: [&str; 2] = ["Read", "Edit"];

/// Rules of these tools for each path of a list.
fn path_rules(key: &str, value: &Value, tools: &[&str]) -> Result<Vec<String>, String> {
    let wrong = |why: &str| format!("{key}: {why}");
    let paths: Vec<&str> = match value {
        Value::Null => Vec::new(),
        Value::String(path) => vec![path],
        Value::Array(list) => {
            if !list.iter().all(Value::is_string) {
                return Err(wrong("expected paths"));
            }
            list.iter().filter_map(Value::as_str).collect()
        }
        _ => return Err(wrong("expected paths")),
    };
    let mut rules = Vec::new();
    for path in paths {
        let path = path.trim().trim_start_matches("./");
        for tool in tools {
            let rule = Rule::from_str(&format!("{tool}({path})")).map_err(|error| wrong(&error.problem))?;
            rules.push(rule.to_string());
        }
    }
    Ok(rules)
}
