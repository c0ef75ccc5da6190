//! The MCP servers that an editor passes on, in the daemon's form. Their environment and headers may be secrets and
//! are never printed. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The servers for the daemon, and what the user should know about those that are left out.
#[derive(Debug, Default, PartialEq)]
pub(super) struct EditorServers {
    pub(super) servers: BTreeMap<String, Value>,
    pub(super) notes: Vec<String>,
}

/// Converts the servers. A server that cannot be used does not prevent the session.
pub(super) fn editor_servers(given: &[Value]) -> EditorServers {
    let mut result = EditorServers::default();
    for (index, server) in given.iter().enumerate() {
        let shown = server["name"].as_str().unwrap_or("without a name");
        let name = server_name(server["name"].as_str().unwrap_or_default(), index);
        match converted(server) {
            Ok(config) if !result.servers.contains_key(&name) => _ = result.servers.insert(name, config),
            Ok(_) => result.notes.push(format!("MCP server {shown}: another server has this name")),
            Err(error) => result.notes.push(format!("MCP server {shown}: {error}")),
        }
    }
    result
}

/// A name that the daemon accepts. Editors name servers freely.
fn server_name(name: &str, index: usize) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    if name.is_empty() { format!("server-{}", index + 1) } else { name }
}

fn converted(server: &Value) -> Result<Value, String> {
    match server.get("type").and_then(Value::as_str) {
        None | Some("stdio") => {
            let command = server["command"].as_str().ok_or("it has no command")?;
            Ok(json!({"command": command, "args": texts(&server["args"])?, "env": pairs(&server["env"])?}))
        }
        Some("http") => {
            let url = server["url"].as_str().ok_or("it has no url")?;
            Ok(json!({"url": url, "headers": pairs(&server["headers"])?}))
        }
        Some(other) => Err(format!("the transport {other} is not supported; use stdio or http")),
    }
}

fn texts(list: &Value) -> Result<Vec<&str>, String> {
    let Some(list) = list.as_array() else { return Ok(Vec::new()) };
    list.iter().map(|text| text.as_str().ok_or_else(|| "args: expected texts".to_owned())).collect()
}

/// `[{name, value}]` as an object.
fn pairs(list: &Value) -> Result<Map<String, Value>, String> {
    let pair = |pair: &Value| Some((pair["name"].as_str()?.to_owned(), pair["value"].as_str()?.into()));
    let Some(list) = list.as_array() else { return Ok(Map::new()) };
    list.iter().map(|it| pair(it).ok_or_else(|| "expected names and values".to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_converted_and_unusable_ones_are_named() {
        let given = [
            json!({"name": "my files", "command": "/bin/f", "args": ["-x"], "env": [{"name": "K", "value": "secret"}]}),
            json!({"type": "http", "name": "web", "url": "https://h/", "headers": [{"name": "A", "value": "secret"}]}),
            json!({"type": "sse", "name": "old", "url": "https://h/", "headers": []}),
            json!({"type": "acp", "name": "inner", "id": "1"}),
            json!({"name": "none", "args": []}),
            json!({"name": "bad", "command": "c", "env": [{"name": "secret"}]}),
            json!({"name": "web", "command": "c"}),
            json!("text"),
        ];
        let found = editor_servers(&given);
        assert_eq!(
            found.servers,
            BTreeMap::from([
                ("my-files".to_owned(), json!({"command": "/bin/f", "args": ["-x"], "env": {"K": "secret"}})),
                ("web".to_owned(), json!({"url": "https://h/", "headers": {"A": "secret"}})),
            ])
        );
        assert_eq!(found.notes.len(), 6, "{:?}", found.notes);
        assert!(!found.notes.concat().contains("secret"));
        assert_eq!(editor_servers(&[]), EditorServers::default());
    }
}
