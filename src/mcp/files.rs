//! Files with servers: `.mcp.json` and `.mcprc` of projects, and those that the daemon keeps itself.

use serde_json::Value;

use crate::config::{MAX_SERVERS, ScopedServer, ServerSource};
use crate::entry::read_entry;
use base::charset;
use types::mcp_file::{self, McpFileEntry};

/// The content of a file with servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFile {
    /// The servers in the order of their names.
    pub servers: Vec<ScopedServer>,
    /// A mistake in the file; then it has no servers.
    pub problem: Option<String>,
}

/// Reads a file with servers, in any form that [`types::mcp_file`] knows. A mistake in one entry is that server's error.
#[must_use]
pub fn parse_file(name: &str, bytes: &[u8]) -> ProjectFile {
    let wrong = |why: String| ProjectFile { servers: Vec::new(), problem: Some(format!("{name}: {why}")) };
    let (_, Some(text)) = charset::text_of(bytes) else { return wrong("it is not text".into()) };
    let entries = match mcp_file::read_entries(&text, name.ends_with(".toml")) {
        Ok(entries) => entries,
        Err(why) => return wrong(why),
    };
    if entries.len() > MAX_SERVERS {
        return wrong(format!("it has more than {MAX_SERVERS} servers"));
    }
    ProjectFile { servers: entries.into_iter().map(|entry| server(name, entry)).collect(), problem: None }
}

fn server(file: &str, entry: McpFileEntry) -> ScopedServer {
    let place = |line: usize| format!("{file}:{line}");
    let name = entry.name.clone();
    let asked = asked_input(&entry);
    let line = entry.line;
    let read = match (entry.value.clone(), asked) {
        (Ok(_), Some((line, input))) => Err(format!(
            "{}: {input} is asked of the user by another program; write ${{NAME}} for a variable of the environment",
            place(line)
        )),
        (value, _) => value
            .and_then(read_entry)
            .map_err(|why| format!("could not read its configuration ({}): {why}", place(line))),
    };
    let (config, notes) = match read {
        Ok(read) => {
            let note =
                |key: &String| format!("{}: the key {key:?} is not supported", place(entry.line_of(key)));
            (Ok(read.config), read.unsupported.iter().map(note).collect())
        }
        Err(why) => (Err(why), Vec::new()),
    };
    ScopedServer { name, source: ServerSource::Project, config, notes }
}

/// A value that another program asks its user for, with the line of its key.
fn asked_input(entry: &McpFileEntry) -> Option<(usize, String)> {
    let Ok(Value::Object(fields)) = &entry.value else { return None };
    fields.iter().find_map(|(key, value)| {
        let text = value.to_string();
        let begin = ["${input:", "${promptString:", "${command:"].iter().find_map(|word| text.find(word))?;
        let end = text[begin..].find('}')?;
        Some((entry.line_of(key), text[begin..=begin + end].to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ServerConfig, TransportKind, merge};
    use types::config_values::ConfigDuration;
    use types::typed_toml;

    #[test]
    fn project_file_gives_servers_and_errors_per_entry() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "${A}"}, "alwaysAllow": ["y"]},
            "web": {"type": "http", "url": "http://h/mcp", "headers": {"Authorization": "Bearer ${T}"}, "timeout": 1500},
            "old": {"type": "sse", "url": "http://h/sse"},
            "off": {"command": "x", "disabled": true},
            "bad": {"command": 1}
        }}"#;
        let file = parse_file(".mcp.json", text.as_bytes());
        assert_eq!(file.problem, None);
        let merged = merge(file.servers, true);
        let config = |name: &str| merged[name].config.clone();
        let files = config("files").expect("right");
        assert_eq!((files.command.as_deref(), files.args.len()), (Some("npx"), 2));
        let web = config("web").expect("right");
        assert_eq!(web.transport(), Ok(TransportKind::Http));
        assert_eq!(web.timeout.map(ConfigDuration::millis), Some(1500));
        assert!(!config("off").expect("right").enabled);
        assert!(config("old").expect_err("refused").contains("sse"));
        assert!(config("bad").expect_err("refused").contains("command"));
    }

    #[test]
    fn restrictions_of_other_programs_hold_in_both_forms() {
        let text = r#"{"mcpServers": {
            "cline": {"command": "x", "disabledTools": ["rm"], "alwaysAllow": ["rm", "ls"]},
            "gemini": {"command": "x", "includeTools": ["ls", "rm"], "excludeTools": ["rm"]},
            "wrong": {"command": "x", "disabledTools": "rm"},
            "unclear": {"command": "x", "readOnly": true},
            "off": {"command": "x", "disabled": "yes"}
        }}"#;
        let merged = merge(parse_file(".mcp.json", text.as_bytes()).servers, true);
        for name in ["cline", "gemini"] {
            let config = merged[name].config.clone().expect("right");
            assert!(config.uses_tool(name, "ls") && !config.uses_tool(name, "rm"), "{name}");
            assert_eq!(config.notes().len(), usize::from(name == "cline"));
        }
        for (name, word) in [("wrong", "disabledTools"), ("unclear", "readOnly"), ("off", "disabled")] {
            assert!(merged[name].config.clone().expect_err("refused").contains(word), "{name}");
        }
        let table = |text: &str| typed_toml::from_str::<ServerConfig>(text);
        for key in ["deny_tools", "disabledTools", "excludeTools", "disallowed_tools"] {
            let config =
                table(&format!("command = \"x\"\n{key} = [\"rm\"]\nautoApprove = [\"rm\"]")).expect(key);
            assert!(
                config.uses_tool("s", "ls") && !config.uses_tool("s", "rm") && !config.notes().is_empty()
            );
        }
        for key in ["allow_tools", "includeTools", "allowedTools", "enabled_tools"] {
            let config = table(&format!("command = \"x\"\n{key} = [\"ls\"]")).expect(key);
            assert!(config.uses_tool("s", "ls") && !config.uses_tool("s", "rm"));
        }
        assert!(!table("command = \"x\"\ndisabled = true").expect("right").is_enabled());
        for wrong in ["disabledTools = \"rm\"", "readOnly = true", "deny_tools = []\ndisabledTools = []"] {
            assert!(table(&format!("command = \"x\"\n{wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn broken_project_file_has_no_servers() {
        for text in ["{", "[]", r#"{"mcpServers": []}"#] {
            let file = parse_file(".mcprc", text.as_bytes());
            assert!(file.servers.is_empty() && file.problem.is_some(), "{text}");
        }
        assert_eq!(parse_file(".mcprc", b" \n"), ProjectFile::default());
        let plain = parse_file(".mcprc", br#"{"a": {"command": "x"}}"#);
        assert_eq!(plain.servers.len(), 1, "without `mcpServers`");
    }

    #[test]
    fn files_of_all_encodings_and_forms_are_read() {
        let text = "\u{feff}{\n  // servers\n  \"servers\": {\"prüfer\": {\"command\": \"x\",},},\n}";
        let wide = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        for bytes in [text.as_bytes().to_vec(), wide(u16::to_le_bytes), wide(u16::to_be_bytes)] {
            let file = parse_file(".mcp.json", &bytes);
            assert_eq!((file.problem, file.servers.len()), (None, 1));
            assert_eq!(file.servers[0].name, "prüfer");
        }
        let codex = b"[mcp_servers.a]\ncommand = \"x\"\nstartup_timeout_sec = 20\n";
        let file = parse_file("config.toml", codex);
        let config = file.servers[0].config.clone().expect("right");
        assert_eq!(config.startup_timeout.map(ConfigDuration::millis), Some(20_000));
    }

    #[test]
    fn unsupported_parts_are_named_with_file_and_line() {
        let text = "{\"servers\": {\n\"a\": {\n\"command\": \"x\",\n\"envFile\": \".env\"},\n\"b\": {\"command\": \"x\",\n\"env\": {\"T\": \"${input:token}\"}}}}";
        let file = parse_file(".mcp.json", text.as_bytes());
        assert_eq!(file.servers[0].notes, [".mcp.json:4: the key \"envFile\" is not supported"]);
        assert!(file.servers[0].config.is_ok());
        let why = file.servers[1].config.clone().expect_err("refused");
        assert!(why.contains(".mcp.json:6") && why.contains("${input:token}"), "{why}");
    }

    #[test]
    fn restriction_that_is_no_name_is_noted_and_denies_widely() {
        let text = r#"{"mcpServers": {"wx": {"command": "x", "disabledTools": ["wx:danger", "a, b"]}}}"#;
        let file = parse_file(".mcp.json", text.as_bytes());
        let config = file.servers[0].config.clone().expect("right");
        for tool in ["danger", "Danger", "a", "b"] {
            assert!(!config.uses_tool("wx", tool), "{tool}");
        }
        assert!(config.uses_tool("wx", "weather"));
        let notes = config.odd_entries("wx");
        assert!(notes.len() == 2 && notes[0].contains("wx:danger") && notes[1].contains("a, b"), "{notes:?}");
    }
}
