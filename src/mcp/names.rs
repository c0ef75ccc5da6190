//! Names of tools for the model: `mcp__SERVER__TOOL`, with letters, digits, `_` and `-`, at most 64 characters.

use sha2::{Digest as _, Sha256};

use types::hex;
use types::mcp::MCP_PREFIX;
use types::mcp_names::plain;

/// Providers refuse longer names.
const MAX_NAME_CHARS: usize = 64;
/// Characters of the digest at the end of a name that was cut.
const DIGEST_CHARS: usize = 6;

/// Whether this is the name of a tool of some MCP server.
#[must_use]
pub fn is_tool_name(name: &str) -> bool {
    name.strip_prefix(MCP_PREFIX).is_some_and(|rest| rest.contains("__"))
}

/// The name of a server's tool for the model. `server` is a [`types::mcp_names::server_part`].
#[must_use]
pub fn tool_name(server: &str, tool: &str) -> String {
    let name = format!("{MCP_PREFIX}{server}__{}", plain(tool));
    let name = if tool.is_empty() { format!("{name}unnamed") } else { name };
    if name.len() <= MAX_NAME_CHARS && !name.ends_with("__") {
        return name;
    }
    let digest = hex::encode(&Sha256::digest(format!("{server}\0{tool}")));
    let room = MAX_NAME_CHARS - DIGEST_CHARS - 1;
    format!("{}_{}", name[..name.len().min(room)].trim_end_matches('_'), &digest[..DIGEST_CHARS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_fit_rules_and_providers() {
        assert_eq!(tool_name("files", "read_file"), "mcp__files__read_file");
        assert_eq!(tool_name("a", "x.y/z"), "mcp__a__x_y_z");
        let long = "t".repeat(100);
        for (server, tool) in [("a", long.as_str()), (&long[..60], "x"), ("a", ""), ("a", "x__")] {
            let name = tool_name(server, tool);
            assert!(name.len() <= 64, "{name}");
            assert!(is_tool_name(&name) || server.len() > 50, "{name}");
            assert!(!name.ends_with("__"), "{name}");
        }
        assert_ne!(tool_name("a", &format!("{long}1")), tool_name("a", &format!("{long}2")));
    }
}
