//! Properties of the lexer and the judgement for any text, checked by the fuzz target and its corpus.

use std::path::Path;

use super::lex::lex;
use crate::shell::evaluate::pattern::CommandPattern;
use crate::shell::evaluate::{Grant, ParsedLine};
use crate::shell::paths::resolve::Folders;

/// Checks the properties with the bytes as a command line.
///
/// # Panics
/// If a property is violated.
pub fn command(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let script = lex(&text);
    for command in script.commands.iter().filter(|command| !command.derived) {
        assert!(command.start <= command.end && command.end <= text.len(), "{command:?}");
        assert!(
            text.get(command.start..command.end).is_some(),
            "a part ends inside a character: {command:?}"
        );
        let mut last = command.start;
        for word in &command.words {
            assert!(last <= word.start && word.start <= word.end, "words overlap: {command:?}");
            last = word.end;
        }
    }
    // Each pair of brackets and each block takes at least a byte.
    assert!(script.depth <= text.len() + 2);
    // The amount of text that is parsed again is bounded.
    let words: usize = script.commands.iter().map(|command| command.words.len()).sum();
    assert!(words <= 4 * text.len() + 200_000, "{words} words of {} bytes", text.len());

    let workspace = Path::new("/w/proj");
    let folders = Folders::new(workspace, &[], workspace, Path::new("/home/u"));
    let reading = ParsedLine::new(&text, &folders);
    reading.forbidden();
    let Ok(pattern) = CommandPattern::parse("ls:*") else { return };
    reading.find_command(&pattern);
    let grants = [Grant { pattern: &pattern, rule: () }];
    let parts = reading.parts(&grants, true);
    if reading.unsupported(true).is_none() && !parts.is_empty() && parts.iter().all(|part| part.allowed) {
        // An allowed command contains nothing that the shell replaces by an unknown value.
        assert!(
            !text.contains('`')
                || text.contains('\'')
                || text.contains('\\')
                || text.contains('#')
                || text.contains("<<"),
            "{text:?}"
        );
    }
}
