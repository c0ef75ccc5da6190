//! `for` loops over words that the line itself shows: literal words, and patterns of files. A command in such a loop
//! can be judged with each value of the loop's variable.

use super::{Block, Frame, Head, Lexer, ListKind, is_name_byte};
use crate::shell::lex::syntax::{ForLoop, Script, SimpleCommand, UnsupportedSyntax};
use crate::shell::lex::word::{Marks, Quoting, Word};

/// Maximum number of commands that the values of loop variables may yield for one command.
const MAX_CHOICES: usize = 64;

/// Names of variables that no program reads, if they are not in lower case.
const HARMLESS_NAMES: &[&str] = &["F", "FILE", "D", "DIR", "I", "N", "X"];

/// How a word names a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableForm {
    /// `$name`.
    Plain,
    /// `${name}`.
    Braced,
}

/// Whether a loop may assign this variable. Programs read many variables, most of them in upper
/// case; an inherited variable stays exported when a loop assigns it.
fn is_loop_variable(name: &str) -> bool {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_');
    // `http_proxy`, `npm_config_prefix`; bash reads the last two.
    let is_read = ["proxy", "config", "npm_", "pip_", "cargo_", "auto_resume", "histchars"];
    HARMLESS_NAMES.contains(&name) || is_plain && !is_read.iter().any(|part| name.contains(part))
}

impl Lexer<'_> {
    /// The index of the innermost block, if it is a `for` loop.
    pub(super) fn innermost_loop(&mut self) -> Option<usize> {
        match self.list().blocks.last() {
            Some(Block::For(loop_index)) => Some(*loop_index),
            _ => None,
        }
    }

    /// Whether the next command is in the body of a `for` loop, at any depth.
    pub(super) fn is_in_loop(&self) -> bool {
        self.lists.iter().flat_map(|list| &list.blocks).any(|block| matches!(block, Block::For(_)))
    }

    /// Opens a loop at its `for`. Its name and its words follow.
    pub(super) fn open_loop(&mut self) {
        self.note(UnsupportedSyntax::ForLoop);
        let loop_index = self.script.loops.len();
        self.script.loops.push(ForLoop::default());
        self.open_block(Block::For(loop_index));
        self.need_command();
        self.list().head = Head::LoopName;
    }

    /// Stores the variable of a loop. A loop that assigns the variable of an enclosing loop would change
    /// its value for the rest of that loop.
    pub(super) fn name_loop(&mut self, word: &Word) {
        let Some(loop_index) = self.innermost_loop() else { return };
        let name = word.text.as_str();
        if !word.is_bare() || !is_loop_variable(name) || self.loop_with_variable(name.as_bytes()).is_some() {
            self.note(UnsupportedSyntax::ControlFlow);
            return;
        }
        self.script.loops[loop_index].variable = name.to_owned();
    }

    /// Adds a word of the loop's head after its name: first the `in`, then a value. Notes what is not understood.
    pub(super) fn add_loop_word(&mut self, word: &Word) {
        let Some(loop_index) = self.innermost_loop() else { return };
        let for_loop = &mut self.script.loops[loop_index];
        let is_unknown =
            [Marks::EXPANDS, Marks::NUMBER, Marks::DOLLAR_QUOTE, Marks::BRACE, Marks::HOME, Marks::TILDE]
                .iter()
                .any(|mark| word.marks.has_any(*mark));
        let ends_head = word.is_bare() && word.text == "do";
        if !for_loop.has_in {
            for_loop.has_in = true;
            if word.is_bare() && word.text == "in" {
                return;
            }
        } else if !is_unknown && !ends_head {
            for_loop.words.push(word.clone());
            return;
        }
        // `for x do`, or words that only the shell knows.
        self.note(UnsupportedSyntax::ControlFlow);
    }

    /// Whether the head of a loop has words, so that a line feed ends it.
    pub(super) fn has_loop_words(&mut self) -> bool {
        let is_head = self.list().head == Head::LoopWords;
        self.innermost_loop()
            .is_some_and(|loop_index| is_head && !self.script.loops[loop_index].words.is_empty())
    }

    /// Ends the head of a loop. A loop without words is not understood.
    pub(super) fn end_loop_words(&mut self) {
        let Some(loop_index) = self.innermost_loop() else { return };
        if self.script.loops[loop_index].words.is_empty() {
            self.note(UnsupportedSyntax::ControlFlow);
        }
    }

    /// The index of the innermost enclosing loop with this variable.
    fn loop_with_variable(&self, name: &[u8]) -> Option<usize> {
        let blocks = self.lists.iter().rev().flat_map(|list| list.blocks.iter().rev());
        blocks
            .filter_map(|block| if let Block::For(loop_index) = block { Some(*loop_index) } else { None })
            .find(|loop_index| self.script.loops[*loop_index].variable.as_bytes() == name)
    }

    /// Parses `$name` or `${name}` if it is the variable of an enclosing loop. `name_start` is the position of the
    /// name. Returns whether it was such a variable.
    pub(super) fn push_loop_variable(
        &mut self,
        name_start: usize,
        form: VariableForm,
        quoting: Quoting,
    ) -> bool {
        let in_word = matches!(self.frames.last(), Some(Frame::List | Frame::Quote));
        let kind = self.list().kind;
        if !in_word || self.list().expansions > 0 || matches!(kind, ListKind::Array | ListKind::Conditional) {
            return false;
        }
        let rest = &self.text[name_start..];
        let length = rest.iter().position(|c| !is_name_byte(*c)).unwrap_or(rest.len());
        let next = rest.get(length);
        let (is_complete, closing_bytes) = match form {
            // `${name:-x}` is more than the variable.
            VariableForm::Braced => (next == Some(&b'}'), 1),
            // A backslash may begin a continued line, which continues the name.
            VariableForm::Plain => (next != Some(&b'\\'), 0),
        };
        let name = &rest[..length];
        let Some(loop_index) = self.loop_with_variable(name).filter(|_| is_complete) else { return false };
        let raw = [b"$", name].concat();
        // Begins a word if there is none.
        self.push_bytes(b"", Quoting::Bare);
        if let Some(draft) = &mut self.list().draft {
            draft.push_variable(&raw, loop_index, quoting);
        }
        self.position = name_start + length + closing_bytes;
        true
    }
}

impl Script {
    /// The command with each combination of values of its loop variables; `None` if there are too many,
    /// or if the shell may split a value.
    pub(crate) fn loop_choices(&self, command: &SimpleCommand) -> Option<Vec<SimpleCommand>> {
        let words = || command.words.iter().chain(command.redirs.iter().map(|redir| &redir.target));
        let mut used: Vec<usize> =
            words().flat_map(|word| &word.variables).map(|variable| variable.loop_index).collect();
        used.sort_unstable();
        used.dedup();
        let mut choices = vec![command.clone()];
        for loop_index in used {
            let values = &self.loops.get(loop_index)?.words;
            if values.is_empty() || choices.len() * values.len() > MAX_CHOICES {
                return None;
            }
            let mut next = Vec::with_capacity(choices.len() * values.len());
            for choice in &choices {
                for value in values {
                    let mut choice = choice.clone();
                    for word in &mut choice.words {
                        *word = with_value(word, loop_index, value)?;
                    }
                    for redir in &mut choice.redirs {
                        redir.target = with_value(&redir.target, loop_index, value)?;
                    }
                    next.push(choice);
                }
            }
            choices = next;
        }
        Some(choices)
    }
}

/// The word with one value of a loop's variable; `None` if the shell may split the value.
fn with_value(word: &Word, loop_index: usize, value: &Word) -> Option<Word> {
    if !word.variables.iter().any(|variable| variable.loop_index == loop_index) {
        return Some(word.clone());
    }
    let mut filled = Word { text: String::new(), variables: Vec::new(), equals: None, ..word.clone() };
    let is_pattern = value.marks.has_any(Marks::GLOB);
    let mut from = 0;
    for variable in &word.variables {
        filled.text.push_str(word.text.get(from..variable.start)?);
        from = variable.end;
        let start = filled.text.len();
        if variable.loop_index == loop_index {
            // Without quotes the shell splits the value at blanks, and expands wildcards in it.
            let is_split =
                value.text.is_empty() || value.text.contains([' ', '\t', '\n', '*', '?', '[', '\\']);
            if !variable.quoted && !is_pattern && is_split {
                return None;
            }
            filled.text.push_str(&value.text);
            if is_pattern {
                filled.marks.add(Marks::GLOB);
                filled.marks.add(if variable.quoted { Marks::LOOPED } else { Marks::SPLIT });
            }
        } else {
            filled.text.push_str(word.text.get(variable.start..variable.end)?);
            filled.variables.push(crate::shell::lex::word::LoopVariable {
                start,
                end: filled.text.len(),
                ..*variable
            });
        }
    }
    filled.text.push_str(word.text.get(from..)?);
    // The value may be empty, so that the text after it begins the word.
    if filled.marks.has_any(Marks::GLOB) && filled.text.starts_with(['*', '?', '[']) {
        filled.marks.add(Marks::GLOB_FIRST);
    }
    if filled.variables.is_empty() && !word.has_other_expansions() {
        filled.marks.remove(Marks::EXPANDS);
    }
    Some(filled)
}
