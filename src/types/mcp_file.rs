//! Files that configure MCP servers, in the forms that programs have for them: an object of servers below one of
//! several keys, as JSON with comments or as TOML.

use serde_json::{Map, Value};

use crate::jsonc::{Node, plain_json};

/// Keys of the servers: Claude Code, Cursor, Windsurf and Gemini; VS Code; Zed; Codex.
pub const SERVER_KEYS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp_servers"];
/// Other keys of such files, which are no servers. VS Code asks users for `inputs`.
const OTHER_KEYS: [&str; 3] = ["$schema", "inputs", "version"];

/// A server's entry.
#[derive(Clone, Debug, PartialEq)]
pub struct McpFileEntry {
    /// The server's name.
    pub name: String,
    /// The entry, or a mistake in it.
    pub value: Result<Value, String>,
    /// The line on which each key of the entry stands, from 1.
    pub lines: Vec<(String, usize)>,
    /// The line of the entry, from 1.
    pub line: usize,
}

impl McpFileEntry {
    /// The line of a key; the line of the entry if it has no such key.
    #[must_use]
    pub fn line_of(&self, key: &str) -> usize {
        self.lines.iter().find(|(name, _)| name == key).map_or(self.line, |(_, line)| *line)
    }
}

/// Reads the entries of a file.
///
/// # Errors
/// The file cannot be read; the text says why, for users.
pub fn read_entries(text: &str, is_toml: bool) -> Result<Vec<McpFileEntry>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut entries = if is_toml { toml_entries(text)? } else { json_entries(text)? };
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    for index in 1..entries.len() {
        if entries[index - 1].name == entries[index].name {
            let why = format!(
                "it is defined twice, on the lines {} and {}",
                entries[index - 1].line,
                entries[index].line
            );
            entries[index - 1].value = Err(why.clone());
            entries[index].value = Err(why);
        }
    }
    entries.dedup_by(|later, first| later.name == first.name);
    Ok(entries)
}

fn json_entries(text: &str) -> Result<Vec<McpFileEntry>, String> {
    let plain = plain_json(text);
    let top = Node::parse(&plain).map_err(|error| format!("could not read it as JSON: {error}"))?;
    let fields = top.fields().ok_or("it must be a JSON object")?;
    // VS Code's settings have the servers one level deeper.
    let inner =
        fields.iter().filter(|(name, _)| name == "mcp").filter_map(|(_, node)| node.fields()).flatten();
    let inner: Vec<_> = inner.filter(|(name, _)| SERVER_KEYS.contains(&name.as_str())).collect();
    let named = fields.iter().filter(|(name, _)| SERVER_KEYS.contains(&name.as_str()));
    let groups: Vec<&(String, Node<'_>)> = named.chain(&inner).collect();
    let limits = ServerLimits::read(&fields);
    let entries = match groups.as_slice() {
        [] => fields.into_iter().filter(|(name, _)| !OTHER_KEYS.contains(&name.as_str())).collect(),
        groups => {
            let mut entries = Vec::new();
            for (key, node) in groups {
                let group = node
                    .fields()
                    .ok_or_else(|| format!("line {}: `{key}` must be an object", node.line()))?;
                entries.extend(group);
            }
            entries
        }
    };
    Ok(entries.into_iter().map(|(name, node)| json_entry(name, node, &limits)).collect())
}

fn json_entry(name: String, node: Node<'_>, limits: &ServerLimits) -> McpFileEntry {
    let fields = node.fields();
    let lines: Vec<(String, usize)> =
        fields.iter().flatten().map(|(key, value)| (key.clone(), value.line())).collect();
    let twice = lines
        .iter()
        .enumerate()
        .find(|(index, (key, _))| lines[..*index].iter().any(|(other, _)| other == key));
    let value = match twice {
        Some((_, (key, line))) => Err(format!("line {line}: the key {key:?} occurs twice")),
        None => node.value().and_then(|value| limits.apply(&name, value)),
    };
    McpFileEntry { name, value, lines, line: node.line() }
}

/// Gemini's lists of the servers that are used: `mcp.allowed`, `mcp.excluded`.
struct ServerLimits {
    allowed: Option<Vec<String>>,
    excluded: Vec<String>,
    /// A list that is not understood.
    problem: Option<String>,
}

impl ServerLimits {
    fn read(fields: &[(String, Node<'_>)]) -> Self {
        let mut limits = Self { allowed: None, excluded: Vec::new(), problem: None };
        let inner =
            fields.iter().filter(|(name, _)| name == "mcp").filter_map(|(_, node)| node.fields()).flatten();
        for (key, node) in fields.iter().cloned().chain(inner) {
            let is_allowed = match key.as_str() {
                "allowed" | "allowMCPServers" => true,
                "excluded" | "excludeMCPServers" => false,
                _ => continue,
            };
            // Without a list, a server may have this name.
            let list = match node.value() {
                Ok(Value::Object(_)) => continue,
                Ok(value) => serde_json::from_value::<Vec<String>>(value).ok(),
                Err(_) => None,
            };
            match (list, is_allowed) {
                (Some(list), true) => {
                    limits.allowed = Some(match limits.allowed.take() {
                        Some(known) => known.into_iter().filter(|name| list.contains(name)).collect(),
                        None => list,
                    });
                }
                (Some(list), false) => limits.excluded.extend(list),
                (None, _) => {
                    let why = format!("line {}: `{key}` must be a list of names of servers", node.line());
                    limits.problem = Some(why);
                }
            }
        }
        limits
    }

    /// Turns a server off that the lists do not let in.
    fn apply(&self, name: &str, mut value: Value) -> Result<Value, String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let is_excluded = self.excluded.iter().any(|other| other.trim().eq_ignore_ascii_case(name));
        let is_allowed =
            self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|other| other == name));
        if (is_excluded || !is_allowed)
            && let Value::Object(entry) = &mut value
        {
            entry.insert("disabled".into(), true.into());
            entry.remove("enabled");
        }
        Ok(value)
    }
}

fn toml_entries(text: &str) -> Result<Vec<McpFileEntry>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line =
            error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        format!("line {line}: could not read it as TOML: {}", error.message())
    })?;
    let mut entries = Vec::new();
    for key in SERVER_KEYS {
        let Some(group) = table.get(key) else { continue };
        let group = group.as_table().ok_or_else(|| format!("`{key}` must be a table"))?;
        for (name, value) in group {
            let line = toml_line(text, 0, |line| {
                line.starts_with('[') && line.contains(key) && line.contains(name.as_str())
            });
            let keys = value.as_table().into_iter().flat_map(toml::Table::keys);
            let lines = keys.map(|key| {
                let is_key = |line: &str| line.trim_start_matches(['"', '\'']).starts_with(key.as_str());
                (key.clone(), toml_line(text, line, is_key))
            });
            entries.push(McpFileEntry {
                name: name.clone(),
                value: serde_json::to_value(value).map_err(|error| error.to_string()),
                lines: lines.collect(),
                line,
            });
        }
    }
    Ok(entries)
}

/// The first line after the line `after` that has this form, from 1; the line `after` if there is none.
fn toml_line(text: &str, after: usize, is_line: impl Fn(&str) -> bool) -> usize {
    let found = text.lines().enumerate().skip(after).find(|(_, line)| is_line(line.trim_start()));
    found.map_or(after.max(1), |(index, _)| index + 1)
}

/// The entries as one object, for a program that sends them on.
///
/// # Errors
/// The first entry with a mistake.
pub fn entries_object(entries: Vec<McpFileEntry>) -> Result<Map<String, Value>, String> {
    let pair = |entry: McpFileEntry| {
        let McpFileEntry { name, value, .. } = entry;
        value.map(|value| (name.clone(), value)).map_err(|why| format!("{name:?}: {why}"))
    };
    entries.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(text: &str) -> Value {
        Value::Object(entries_object(read_entries(text, false).expect(text)).expect(text))
    }

    #[test]
    fn servers_are_found_below_keys_of_all_programs() {
        let expected = json!({"a": {"command": "x"}});
        for text in [
            r#"{"mcpServers": {"a": {"command": "x"}}}"#,
            r#"{"a": {"command": "x"}}"#,
            r#"{"$schema": "s", "a": {"command": "x"}}"#,
            "// VS Code\n{\"inputs\": [{\"id\": \"t\"}], \"servers\": {\"a\": {\"command\": \"x\",}, /* last */ },}",
            r#"{"mcp": {"servers": {"a": {"command": "x"}}}, "editor.fontSize": 12}"#,
            r#"{"theme": "One", "context_servers": {"a": {"command": "x"}}}"#,
        ] {
            assert_eq!(object(text), expected, "{text}");
        }
        let codex = "model = \"o\"\n[mcp_servers.a]\ncommand = \"x\"\n";
        let entries = read_entries(codex, true).expect("TOML");
        assert_eq!((entries[0].line, entries[0].line_of("command")), (2, 3));
        assert_eq!(Value::Object(entries_object(entries).expect("entries")), expected);
        assert_eq!(read_entries(" \n", false), Ok(Vec::new()));
    }

    #[test]
    fn broken_file_names_its_line() {
        for (text, is_toml, part) in [
            ("{\n\"mcpServers\": [],\n}", false, "line 2: `mcpServers` must be an object"),
            ("[]", false, "must be a JSON object"),
            ("{\n,", false, "line 2"),
            ("a = 1\nb =", true, "line 2"),
            ("mcp_servers = 1", true, "must be a table"),
        ] {
            let why = read_entries(text, is_toml).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn repeated_server_or_key_is_error_of_entry() {
        let text = "{\"mcpServers\": {\"a\": {},\n\"a\": {}, \"b\": {\"disabledTools\": [\"x\"],\n\"disabledTools\": []}, \"c\": {}}}";
        let entries = read_entries(text, false).expect("JSON");
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(entries[0].value.as_ref().expect_err("twice").contains("lines 1 and 2"));
        assert!(
            entries[1].value.as_ref().expect_err("twice").contains("the key \"disabledTools\" occurs twice")
        );
        assert_eq!(entries[2].value, Ok(json!({})));
    }

    #[test]
    fn lists_of_servers_turn_others_off() {
        let off = json!({"command": "x", "disabled": true});
        let on = json!({"command": "x"});
        for (lists, a, b) in [
            (r#""mcp": {"allowed": ["a"]}"#, &on, &off),
            (r#""mcp": {"excluded": ["A"]}"#, &off, &on),
            (r#""excludeMCPServers": ["b"]"#, &on, &off),
            (r#""allowMCPServers": []"#, &off, &off),
        ] {
            let text =
                format!(r#"{{{lists}, "mcpServers": {{"a": {{"command": "x"}}, "b": {{"command": "x"}}}}}}"#);
            let found = object(&text);
            assert_eq!((&found["a"], &found["b"]), (a, b), "{lists}");
        }
        let wrong = r#"{"mcp": {"allowed": "a"}, "mcpServers": {"a": {"command": "x"}}}"#;
        let entries = read_entries(wrong, false).expect("JSON");
        assert!(entries[0].value.as_ref().expect_err("refused").contains("`allowed`"));
    }
}
