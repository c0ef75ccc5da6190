//! The answers of slash commands that only show data, such as `/status`: names and values in two columns. Pure.

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone, pad, width};

/// Commands whose answers are facts.
const COMMANDS: &[&str] = &["status", "context", "cost"];
/// Maximum columns of a name. A line with a longer one is a sentence.
const MAX_NAME_COLUMNS: usize = 32;

pub(super) fn answer_lines(command: &str, text: &str) -> Vec<StyledLine> {
    let rows: Vec<(Option<&str>, &str)> = text
        .lines()
        .map(|line| match line.split_once(": ").filter(|_| COMMANDS.contains(&command)) {
            // The id belongs to the value.
            Some((name, _)) if name.starts_with("Session ses_") => {
                (Some("Session"), line.trim_start_matches("Session "))
            }
            Some((name, value)) if width(name) <= MAX_NAME_COLUMNS => (Some(name), value),
            _ => (None, line),
        })
        .collect();
    let widest = rows.iter().filter_map(|(name, _)| *name).map(width).max().unwrap_or(0);
    let line = |(name, value): &(Option<&str>, &str)| {
        let value = escape::line(value).into_owned();
        match name {
            Some(name) => StyledLine::new(Tone::Dim, format!("  {}  ", pad(&escape::line(name), widest)))
                .and(Tone::Plain, value),
            None => StyledLine::new(Tone::Plain, format!("  {value}")),
        }
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_aligned_and_sentences_stay() {
        let shown = |command: &str, text: &str| -> Vec<String> {
            answer_lines(command, text).iter().map(StyledLine::plain).collect()
        };
        assert_eq!(
            shown("status", "Session ses_1: fix it\nState: idle\nTokens: 5"),
            ["  Session  ses_1: fix it", "  State    idle", "  Tokens   5"]
        );
        assert_eq!(
            shown("context", "Context of demo/large: 5 of 10 tokens.\nsystem_prompt: 3"),
            ["  Context of demo/large  5 of 10 tokens.", "  system_prompt          3"]
        );
        assert_eq!(shown("help", "Commands:\n  /mode: x"), ["  Commands:", "    /mode: x"]);
    }
}
