//! The daemon's tools by the names that files of agents use, also those of other programs.

use serde_json::Value;

use super::Reader;
use super::values::texts;
use crate::extensions::agent_keys::{TOOL_ALIASES, TOOL_SETS, VSCODE_SETS, is_of_others};
use crate::extensions::front_matter::normalized;
use types::mcp_names::check_written_rule;
use types::tool::MCP_PREFIX;

/// What a name with a slash means.
#[derive(Debug)]
pub(super) enum Slashed {
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
    /// What a name with a slash means; `None` for one without.
    pub(super) fn slashed(&self, name: &str, has_pattern: bool) -> Option<Slashed> {
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
    pub(super) fn names_only_tools(&self, value: &Value) -> bool {
        let Ok(names) = texts("", value) else { return false };
        !names.is_empty() && names.iter().all(|name| !self.tools_of(name).is_empty())
    }

    /// The daemon's names of the tools that one name stands for, here or in another program.
    pub(super) fn tools_of(&self, name: &str) -> Vec<String> {
        self.canonical(name).map_or_else(|| self.tool_set(name), |name| vec![name])
    }

    /// The daemon's name of a tool.
    pub(super) fn canonical(&self, name: &str) -> Option<String> {
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
    pub(super) fn tool_set(&self, name: &str) -> Vec<String> {
        let name = normalized(name);
        let tools = TOOL_SETS.iter().find(|(set, _)| *set == name).map_or(&[][..], |(_, tools)| *tools);
        tools.iter().filter_map(|tool| self.canonical(tool)).collect()
    }
}
