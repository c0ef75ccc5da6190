//! The second parser: the tree-sitter grammar of bash. It never allows a line; if it finds other
//! commands than the lexer, no rule allows the line.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use rustc_hash::FxHashSet;
use tree_sitter::{Language, ParseOptions, Parser};

use crate::shell::evaluate::collect::CollectedCommands;
use crate::shell::lex::syntax::Script;

/// Maximum number of progress reports before the parser is stopped; about a hundred steps each.
const MAX_PROGRESS_REPORTS: usize = 400;

/// The parser reads the text in pieces of this many bytes. It counts as stuck after it has read the
/// whole text a number of times. If it does not understand a text, it scans to the end from each
/// position, without a progress report.
const READ_BYTES: usize = 512;
const MAX_READS: usize = 6;
const READ_AHEAD_BYTES: usize = 32 * 1024;

/// The text that the grammar has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextForm {
    Whole,
    /// Without here-documents and prefixes.
    WithoutIgnorable,
}

/// Whether the grammar finds exactly these commands, at these positions.
pub(crate) fn agrees(positions: &[usize], script: &Script, form: TextForm) -> bool {
    let mut positions = positions.to_vec();
    let mut lexed: Vec<usize> = script
        .commands
        .iter()
        .filter(|command| !command.derived && !command.words.is_empty())
        .map(|command| command.timed.filter(|_| form == TextForm::Whole).unwrap_or(command.words[0].start))
        .collect();
    lexed.sort_unstable();
    positions.sort_unstable();
    positions.dedup();
    lexed == positions
}

/// Whether the grammar finds no command that the lexer has not found.
pub(crate) fn adds_nothing(positions: &[usize], all: &CollectedCommands) -> bool {
    let lexed: FxHashSet<usize> = all
        .main()
        .commands
        .iter()
        .filter(|command| !command.derived)
        .flat_map(|command| command.words.first().map(|word| word.start).into_iter().chain(command.timed))
        .collect();
    // Commands between backquotes have positions in another text.
    let derived = all.main().commands.iter().filter(|command| command.derived).count();
    positions.iter().filter(|position| !lexed.contains(position)).count() <= derived
}

/// Positions at which commands begin, or `None` if the text is not understood within the limits.
pub(crate) fn commands(text: &str) -> Option<Vec<usize>> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let bytes = text.as_bytes();
    let remaining_bytes = Cell::new(MAX_READS * bytes.len() + READ_AHEAD_BYTES);
    let mut steps = 0usize;
    let mut progress = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > MAX_PROGRESS_REPORTS || remaining_bytes.get() == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let tree = parser.parse_with_options(
        &mut |index, _| {
            let rest = bytes.get(index..).unwrap_or_default();
            let piece = &rest[..rest.len().min(READ_BYTES)];
            match remaining_bytes.get().checked_sub(piece.len()) {
                Some(fewer_bytes) => {
                    remaining_bytes.set(fewer_bytes);
                    piece
                }
                // Simulate the end of the text: this ends the scan, and the parser stops at its next
                // step.
                None => {
                    remaining_bytes.set(0);
                    &[]
                }
            }
        },
        None,
        Some(ParseOptions::new().progress_callback(&mut progress)),
    )?;
    if remaining_bytes.get() == 0 {
        return None;
    }
    let root = tree.root_node();
    if root.has_error() {
        return None;
    }
    let mut positions = Vec::new();
    let command_kinds = COMMAND_KINDS.as_slice();
    let mut cursor = root.walk();
    'nodes: loop {
        let node = cursor.node();
        if command_kinds.contains(&node.kind_id()) {
            positions.push(node.start_byte());
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'nodes;
            }
        }
    }
    Some(positions)
}

/// The grammar's numbers of the nodes that begin a command. Comparing names takes longer for a line
/// with many nodes.
static COMMAND_KINDS: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_bash::LANGUAGE);
    let kinds = 0..u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
    let begins_command = |kind: &u16| {
        let name = language.node_kind_for_id(*kind).unwrap_or_default();
        matches!(name, "command_name" | "test_command" | "declaration_command" | "unset_command")
    };
    kinds.filter(begins_command).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar_has_all_kinds_that_begin_a_command() {
        let language = Language::from(tree_sitter_bash::LANGUAGE);
        let mut names: Vec<_> =
            COMMAND_KINDS.iter().filter_map(|kind| language.node_kind_for_id(*kind)).collect();
        names.sort_unstable();
        assert_eq!(names, ["command_name", "declaration_command", "test_command", "unset_command"]);
    }
}
