//! `--mcp-config`: MCP servers of one session, from a file in the form of `.mcp.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;
use crate::terminal::escape;

/// Maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The servers of a file, by name. The daemon checks their configurations.
pub(crate) fn load_servers(path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    let shown = path.display().to_string();
    let shown = escape::line(&shown);
    let failed = |why: &str| Failure::usage(format!("could not read {shown}: {why}"));
    let size = path.metadata().map_err(|error| failed(&error.to_string()))?.len();
    if size > MAX_FILE_BYTES {
        return Err(failed("it has more than 1 MiB"));
    }
    let text = std::fs::read(path).map_err(|error| failed(&error.to_string()))?;
    parse_servers(&text).map_err(|why| failed(&why))
}

fn parse_servers(text: &[u8]) -> Result<BTreeMap<String, Value>, String> {
    let mut top: BTreeMap<String, Value> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match top.remove("mcpServers") {
        Some(Value::Object(servers)) => Ok(servers.into_iter().collect()),
        Some(_) => Err("`mcpServers` must be an object".into()),
        None => Ok(top),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_or_without_outer_object_gives_servers() {
        for text in [r#"{"mcpServers": {"a": {"command": "x"}}}"#, r#"{"a": {"command": "x"}}"#] {
            let servers = parse_servers(text.as_bytes()).expect("servers");
            assert_eq!(servers["a"]["command"], "x");
        }
        assert!(parse_servers(b"[]").is_err());
        assert!(parse_servers(br#"{"mcpServers": 1}"#).is_err());
    }
}
