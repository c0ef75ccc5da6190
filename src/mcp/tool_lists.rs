//! The lists of tools that a configuration uses or leaves out, compared with the tools that a server has. An entry that
//! leaves tools out is read widely, so that it never restricts less than its author meant; an entry that lets tools in is
//! read exactly.

use crate::names::tool_name;
use types::mcp::MCP_PREFIX;
use types::mcp_names::{self, ToolNames, plain, server_part};

/// Maximum number of tools that a note names.
const MAX_NAMED: usize = 5;
/// Maximum number of notes about one configuration.
const MAX_NOTES: usize = 50;
/// Signs that are in no name of a tool: separators and quotes.
const SEPARATORS: &str = ",;\"'`<>=";
/// Signs of patterns of other programs.
const PATTERN_SIGNS: &str = "?[]{}()^$|\\+";

/// Whether an entry names a tool: by its name on the server or its name for models, with `*` for any characters.
fn names_tool(entry: &str, server: &str, tool: &str) -> bool {
    let part = server_part(server).unwrap_or_default();
    matches(entry, tool)
        || matches(entry, &plain(tool))
        || entry.starts_with(MCP_PREFIX) && {
            let offered = tool_name(&part, tool);
            ToolNames { offered: &offered, server, tool }.may_be_named_by(entry)
        }
}

/// Whether an entry of a list that leaves tools out may mean a tool. Beyond the names themselves: in any case of letters,
/// with the server's name in front, as one of several names in one text, and as a pattern of another program.
fn may_name_tool(entry: &str, server: &str, tool: &str) -> bool {
    if names_tool(entry, server, tool) || means_server(entry, server) {
        return true;
    }
    let own = [folded(tool), folded(server) + &folded(tool)];
    let is_same = |text: &str| !folded(text).is_empty() && own.contains(&folded(text));
    if is_same(entry) {
        return true;
    }
    let (lower_server, lower_tool) = (server.to_lowercase(), tool.to_lowercase());
    let words = words(entry, server);
    let names = |word: &&str| {
        let word = word.to_lowercase();
        is_same(&word) || names_tool(&word, &lower_server, &lower_tool)
    };
    if words.iter().any(|word| names(&word.as_str())) {
        return true;
    }
    if !entry.contains(|c| PATTERN_SIGNS.contains(c)) && !is_expression(entry) {
        return false;
    }
    // A pattern of another program: its letters occur in the names that it means.
    let mut letters = words.iter().map(|word| folded(word)).filter(|word| !word.is_empty()).peekable();
    letters.peek().is_none() || letters.any(|word| own[0].contains(&word))
}

/// Whether an entry is the name of the server, alone or with `*` after it.
fn means_server(entry: &str, server: &str) -> bool {
    let rest = entry.trim().trim_end_matches(['*', '.', ':', '/']);
    let rest = rest
        .get(..MCP_PREFIX.len())
        .filter(|begin| begin.eq_ignore_ascii_case(MCP_PREFIX))
        .map_or(rest, |_| &rest[MCP_PREFIX.len()..]);
    !folded(rest).is_empty() && folded(rest) == folded(server)
}

/// Whether a text looks like a regular expression although it has no other sign of a pattern.
fn is_expression(entry: &str) -> bool {
    entry.contains(".*")
}

/// Letters and digits of a text in lower case: spellings of one name differ in the rest.
fn folded(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The texts of an entry that may be names: it is split at everything that no name has, and at blanks, `:` and `/`. The
/// server's name in front of them does not count.
fn words(entry: &str, server: &str) -> Vec<String> {
    let is_end = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || ":/".contains(c)
            || SEPARATORS.contains(c)
            || PATTERN_SIGNS.contains(c)
    };
    let mut words: Vec<String> =
        entry.split(is_end).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if words.len() > 1 {
        words.retain(|word| folded(word) != folded(server));
    }
    words
}

/// Whether a text fits a pattern in which `*` stands for any characters.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// The lists of a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolLists<'c> {
    /// The tools that are let in; `None` for all.
    pub allowed: Option<&'c [String]>,
    /// The tools that are left out.
    pub denied: &'c [String],
}

impl<'c> ToolLists<'c> {
    /// Whether a tool is used.
    pub fn use_tool(self, server: &str, tool: &str) -> bool {
        self.allowed.is_none_or(|allowed| allowed.iter().any(|entry| names_tool(entry, server, tool)))
            && !self.denied.iter().any(|entry| may_name_tool(entry, server, tool))
    }

    /// Each entry with the name of its list.
    fn entries(self) -> impl Iterator<Item = (&'static str, &'c String)> {
        let allowed = self.allowed.into_iter().flatten().map(|entry| ("allow_tools", entry));
        allowed.chain(self.denied.iter().map(|entry| ("deny_tools", entry)))
    }
}

/// The first entry that cannot be the name of a tool of this server, for a configuration that is written now.
pub(super) fn written_problem(lists: ToolLists<'_>, server: &str) -> Option<String> {
    lists.entries().find_map(|(list, entry)| Some(format!("{list}: {}", entry_problem(entry, server)?)))
}

/// Notes about entries that cannot be names of tools, without knowing the server's tools.
pub(super) fn odd_entries(lists: ToolLists<'_>, server: &str) -> Vec<String> {
    let note = |(list, entry): (&str, &String)| {
        let why = entry_problem(entry, server)?;
        let effect = match list {
            "deny_tools" => "tools that it may mean are not used",
            _ => "it lets no tool in",
        };
        Some(format!("{list}: {why}; {effect}"))
    };
    lists.entries().filter_map(note).take(MAX_NOTES).collect()
}

fn entry_problem(entry: &str, server: &str) -> Option<String> {
    if entry.trim().is_empty() {
        return Some("an empty entry names no tool".into());
    }
    if entry.starts_with(MCP_PREFIX) {
        return mcp_names::check_written_rule(entry).err().map(|why| format!("{entry:?}: {why}"));
    }
    let signs = |c: char| c.is_control() || SEPARATORS.contains(c) || PATTERN_SIGNS.contains(c);
    if entry.contains(signs) || entry.trim() != entry || is_expression(entry) {
        return Some(format!(
            "{entry:?} is not the name of a tool; write each name as an entry of its own, with `*` for any characters"
        ));
    }
    let begin = entry.get(..server.len()).filter(|begin| begin.eq_ignore_ascii_case(server));
    let rest = begin.map(|begin| &entry[begin.len()..]).filter(|rest| rest.starts_with([':', '/']))?;
    Some(format!("{entry:?} has the server's name in front; write {:?}", rest.trim_start_matches([':', '/'])))
}

/// Notes about entries that name none of the server's tools.
pub(super) fn unmatched_entries<'t>(
    lists: ToolLists<'_>,
    server: &str,
    tools: impl Iterator<Item = &'t str> + Clone,
) -> Vec<String> {
    let mut notes = Vec::new();
    for (list, entry) in lists.entries() {
        if notes.len() == MAX_NOTES || tools.clone().any(|tool| names_tool(entry, server, tool)) {
            continue;
        }
        let nearest: Vec<String> = tools
            .clone()
            .filter(|tool| may_name_tool(entry, server, tool))
            .take(MAX_NAMED)
            .map(|tool| format!("{tool:?}"))
            .collect();
        let nearest = nearest.join(", ");
        notes.push(match (list, nearest.as_str()) {
            (_, "") => format!("{list}: {entry:?} names no tool of this server"),
            ("deny_tools", nearest) => {
                format!("{list}: {entry:?} names no tool of this server; it may mean {nearest}, not used for that reason")
            }
            (_, nearest) => {
                format!("{list}: {entry:?} names no tool of this server and lets none in; did you mean {nearest}?")
            }
        });
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_names_tool_by_own_and_offered_name() {
        for (entry, tool, expected) in [
            ("read", "read", true),
            ("read", "read_file", false),
            ("Read", "read", false),
            ("read*", "read_file", true),
            ("*_file", "read_file", true),
            ("r*d*e", "read_file", true),
            ("r*x*e", "read_file", false),
            ("a*a", "a", false),
            ("*", "获取天气", true),
            ("获取*", "获取天气", true),
            ("a_b", "a.b", true),
            ("mcp__my_server__read", "read", true),
            ("mcp__my.server__*", "read", true),
            ("mcp__other__*", "read", false),
        ] {
            assert_eq!(names_tool(entry, "my.server", tool), expected, "{entry} {tool}");
        }
    }

    #[test]
    fn odd_deny_entry_denies_tools_that_it_may_mean() {
        let tools = ["danger", "deleteFile", "read_file", "获取天气"];
        for (entry, denied) in [
            ("danger", &["danger"][..]),
            ("DANGER", &["danger"]),
            (" danger ", &["danger"]),
            ("wx:danger", &["danger"]),
            ("wx::danger", &["danger"]),
            ("WX/Danger", &["danger"]),
            ("wx.danger", &["danger"]),
            ("wx__danger", &["danger"]),
            ("mcp__WX__danger", &["danger"]),
            ("mcp__wx__danger, mcp__wx__read_file", &["danger", "read_file"]),
            ("danger,read_file", &["danger", "read_file"]),
            ("danger; deleteFile", &["danger", "deleteFile"]),
            ("danger read_file", &["danger", "read_file"]),
            ("\"danger\"", &["danger"]),
            ("delete-file", &["deleteFile"]),
            ("delete_file", &["deleteFile"]),
            ("DELETE*", &["deleteFile"]),
            ("^del.*$", &["deleteFile"]),
            ("{danger,read_file}", &["danger", "read_file"]),
            ("danger|deleteFile", &["danger", "deleteFile"]),
            ("read?file", &["deleteFile", "read_file"]),
            ("获取天气,danger", &["danger", "获取天气"]),
            (".*", &tools),
            ("wx", &tools),
            ("wx:*", &tools),
            ("mcp__WX__*", &tools),
            ("?*", &tools),
            ("", &[]),
            ("  ", &[]),
            ("dangerous", &[]),
            ("other:tool", &[]),
        ] {
            let found: Vec<&str> =
                tools.into_iter().filter(|tool| may_name_tool(entry, "wx", tool)).collect();
            assert_eq!(found, denied, "{entry:?}");
        }
    }

    #[test]
    fn entries_that_name_no_tool_are_noted_with_nearest() {
        let allowed = ["Read", "read", "*"].map(str::to_owned);
        let denied = ["wx:danger", "gone", "danger"].map(str::to_owned);
        let lists = ToolLists { allowed: Some(&allowed), denied: &denied };
        let notes = unmatched_entries(lists, "wx", ["read", "danger"].into_iter());
        assert_eq!(notes.len(), 3, "{notes:?}");
        for (note, parts) in notes.iter().zip([
            ["allow_tools", "\"Read\"", "did you mean \"read\""],
            ["deny_tools", "\"wx:danger\"", "may mean \"danger\""],
            ["deny_tools", "\"gone\"", "names no tool"],
        ]) {
            assert!(parts.iter().all(|part| note.contains(part)), "{note}");
        }
    }

    #[test]
    fn written_entry_that_is_no_name_is_refused() {
        for (entry, part) in [
            ("a, b", "entry of its own"),
            ("^a$", "entry of its own"),
            (" a", "entry of its own"),
            ("a.*", "entry of its own"),
            ("wx:danger", "write \"danger\""),
            ("WX/danger", "write \"danger\""),
            ("", "empty"),
            ("mcp__wx:danger", "mcp__wx__danger"),
        ] {
            let list = [entry.to_owned()];
            let denied = ToolLists { allowed: None, denied: &list };
            let why = written_problem(denied, "wx").expect(entry);
            assert!(why.contains(part), "{entry}: {why}");
            assert_eq!(odd_entries(denied, "wx").len(), 1);
            let allowed = ToolLists { allowed: Some(&list), denied: &[] };
            assert!(written_problem(allowed, "wx").is_some(), "{entry}");
        }
        for entry in ["a", "a*", "get_*_x", "a.b", "a/b:c", "my tool", "获取", "mcp__wx__a", "mcp__wx__*"] {
            let list = [entry.to_owned()];
            let denied = ToolLists { allowed: None, denied: &list };
            assert_eq!(written_problem(denied, "wx"), None, "{entry}");
        }
    }
}
