//! Lines about MCP servers.

use std::collections::HashSet;

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
use types::mcp::{McpState, McpStatus};

/// The servers that a session waited for.
#[derive(Debug, Default)]
pub(super) struct ServerLines {
    starting: HashSet<String>,
}

impl ServerLines {
    /// The lines for a new state. The notice about the folder's trust counts the servers that wait for trust.
    pub fn render(&mut self, status: &McpStatus) -> Vec<StyledLine> {
        let McpStatus { server, state, error, notes } = status;
        let was_starting = self.starting.remove(server);
        let line = |tone, text: String| StyledLine::new(tone, escape::line(&text).into_owned());
        let mut shown = match state {
            McpState::Failed => {
                let reason = error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                vec![line(Tone::Warn, format!("MCP server {server} is not available{reason}"))]
            }
            McpState::Starting => {
                self.starting.insert(server.clone());
                vec![line(
                    Tone::Dim,
                    format!("MCP server {server} still starts; its tools come with a later turn"),
                )]
            }
            McpState::Ready if was_starting => {
                vec![line(Tone::Dim, format!("MCP server {server} is ready; the next turn has its tools"))]
            }
            McpState::Ready | McpState::Disabled | McpState::Untrusted => Vec::new(),
        };
        shown.extend(notes.iter().map(|note| line(Tone::Warn, format!("MCP server {server}: {note}"))));
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_server_and_its_notes_are_shown() {
        let mut lines = ServerLines::default();
        let mut shown = |state, notes: &[&str]| {
            let notes = notes.iter().map(ToString::to_string).collect();
            let status = McpStatus { server: "wx".into(), state, error: None, notes };
            lines.render(&status).iter().map(StyledLine::plain).collect::<Vec<_>>()
        };
        assert_eq!(shown(McpState::Ready, &[]), Vec::<String>::new());
        assert_eq!(
            shown(McpState::Starting, &[]),
            ["MCP server wx still starts; its tools come with a later turn"]
        );
        assert_eq!(
            shown(McpState::Ready, &["the tool \"x\" is left out"]),
            [
                "MCP server wx is ready; the next turn has its tools",
                "MCP server wx: the tool \"x\" is left out"
            ]
        );
        assert_eq!(shown(McpState::Failed, &[]), ["MCP server wx is not available"]);
    }
}
