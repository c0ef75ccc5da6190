//! `--mcp-config`: MCP servers of one session, from a file in a form that `types::mcp_file` reads.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;
use crate::terminal::escape;
use base::charset;
use types::mcp_file;

/// Maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The servers of a file, by name. The daemon checks their configurations.
pub(crate) fn load_servers(path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    let shown = path.display().to_string();
    let shown = escape::line(&shown);
    let failed = |error: &str| Failure::usage(format!("could not read {shown}: {error}"));
    let size = path.metadata().map_err(|error| failed(&error.to_string()))?.len();
    if size > MAX_FILE_BYTES {
        return Err(failed("it has more than 1 MiB"));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(&error.to_string()))?;
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    parse_servers(&bytes, is_toml).map_err(|error| failed(&error))
}

fn parse_servers(bytes: &[u8], is_toml: bool) -> Result<BTreeMap<String, Value>, String> {
    let (_, text) = charset::text_of(bytes);
    let entries = mcp_file::read_entries(&text.ok_or("it is not text")?, is_toml)?;
    Ok(mcp_file::entries_object(entries)?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_or_without_outer_object_gives_servers() {
        for text in [r#"{"mcpServers": {"a": {"command": "x"}}}"#, r#"{"a": {"command": "x"}}"#] {
            let servers = parse_servers(text.as_bytes(), false).expect("servers");
            assert_eq!(servers["a"]["command"], "x");
        }
        let codex = parse_servers(b"[mcp_servers.a]\ncommand = \"x\"\n", true).expect("servers");
        assert_eq!(codex["a"]["command"], "x");
        assert!(parse_servers(b"[]", false).is_err());
        assert!(parse_servers(br#"{"mcpServers": 1}"#, false).is_err());
    }
}
