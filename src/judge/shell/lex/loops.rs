//! Text that the shell replaces by values which the line itself shows: variables of `for` loops over
//! literal words and patterns, and `"$(cat <<'EOF' … )"`.

use super::{Block, Frame, Head, HereDocument, Kind, Lexer, LiteralText, is_name_byte};
use crate::shell::lex::syntax::{ForLoop, RedirKind, Script, SimpleCommand, UnsupportedSyntax};
use crate::shell::lex::word::{Marks, Quoting, Word};

/// Maximum number of commands that the values of loop variables may yield for one command.
const MAX_CHOICES: usize = 64;

/// Maximum bytes before the `<<` of a substitution that yields a literal text.
const MAX_LITERAL_HEAD_BYTES: usize = 32;

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
    /// The innermost block, if it is a `for` loop.
    pub(super) fn for_loop(&mut self) -> Option<usize> {
        match self.list().blocks.last() {
            Some(Block::For(of)) => Some(*of),
            _ => None,
        }
    }

    pub(super) fn is_in_loop(&self) -> bool {
        self.lists.iter().flat_map(|list| &list.blocks).any(|block| matches!(block, Block::For(_)))
    }

    pub(super) fn open_loop(&mut self) {
        self.note(UnsupportedSyntax::ForLoop);
        let of = self.script.loops.len();
        self.script.loops.push(ForLoop::default());
        self.open_block(Block::For(of));
        self.need_command();
        self.list().head = Head::LoopName;
    }

    /// Stores the variable of a loop. A loop that assigns the variable of an enclosing loop would change
    /// its value for the rest of that loop.
    pub(super) fn name_loop(&mut self, word: &Word) {
        let Some(of) = self.for_loop() else { return };
        let name = word.text.as_str();
        if !word.is_bare() || !is_loop_variable(name) || self.variable_of_loop(name.as_bytes()).is_some() {
            self.note(UnsupportedSyntax::ControlFlow);
            return;
        }
        self.script.loops[of].variable = name.to_owned();
    }

    pub(super) fn add_loop_word(&mut self, word: &Word) {
        let Some(of) = self.for_loop() else { return };
        let own = &mut self.script.loops[of];
        let is_unknown =
            [Marks::EXPANDS, Marks::NUMBER, Marks::DOLLAR_QUOTE, Marks::BRACE, Marks::HOME, Marks::TILDE]
                .iter()
                .any(|mark| word.marks.has(*mark));
        let ends_head = word.is_bare() && word.text == "do";
        if !own.has_in {
            own.has_in = true;
            if word.is_bare() && word.text == "in" {
                return;
            }
        } else if !is_unknown && !ends_head {
            own.words.push(word.clone());
            return;
        }
        // `for x do`, or words that only the shell knows.
        self.note(UnsupportedSyntax::ControlFlow);
    }

    /// Whether the head of a loop has words, so that a line feed ends it.
    pub(super) fn has_loop_words(&mut self) -> bool {
        let is_head = self.list().head == Head::LoopWords;
        self.for_loop().is_some_and(|of| is_head && !self.script.loops[of].words.is_empty())
    }

    pub(super) fn end_loop_words(&mut self) {
        let Some(of) = self.for_loop() else { return };
        if self.script.loops[of].words.is_empty() {
            self.note(UnsupportedSyntax::ControlFlow);
        }
    }

    /// The enclosing loop with this variable.
    fn variable_of_loop(&self, name: &[u8]) -> Option<usize> {
        let blocks = self.lists.iter().rev().flat_map(|list| list.blocks.iter().rev());
        blocks
            .filter_map(|block| if let Block::For(of) = block { Some(*of) } else { None })
            .find(|of| self.script.loops[*of].variable.as_bytes() == name)
    }

    /// Parses `$name` or `${name}` if it is the variable of an enclosing loop. `at` is the position of
    /// the name.
    pub(super) fn push_loop_variable(&mut self, at: usize, form: VariableForm, quoting: Quoting) -> bool {
        let braces = form == VariableForm::Braced;
        let in_word = matches!(self.frames.last(), Some(Frame::List | Frame::Quote));
        let kind = self.list().kind;
        if !in_word || self.list().expansions > 0 || matches!(kind, Kind::Array | Kind::Conditional) {
            return false;
        }
        let rest = &self.text[at..];
        let length = rest.iter().position(|c| !is_name_byte(*c)).unwrap_or(rest.len());
        // A continued line may continue the name.
        let end = if braces { b'}' } else { b'\\' };
        let is_whole = (rest.get(length) == Some(&end)) == braces;
        let name = &rest[..length];
        let Some(of) = self.variable_of_loop(name).filter(|_| is_whole) else { return false };
        let raw = [b"$", name].concat();
        self.push_bytes(b"", Quoting::Bare);
        if let Some(draft) = &mut self.list().draft {
            draft.push_variable(&raw, of, quoting);
        }
        self.at = at + length + usize::from(braces);
        true
    }

    /// Whether a `$(` between quotes may be `$(cat <<'EOF' … )`. `at` is the position after the bracket.
    pub(super) fn begins_literal_text(&mut self, at: usize) -> bool {
        let skip_blanks =
            |text: &'_ [u8]| text.iter().position(|c| !matches!(c, b' ' | b'\t')).unwrap_or(text.len());
        let text = &self.text[at..self.text.len().min(at + MAX_LITERAL_HEAD_BYTES)];
        let text = &text[skip_blanks(text)..];
        let is_here = text.strip_prefix(b"cat").is_some_and(|rest| {
            let sign = rest[skip_blanks(rest)..].strip_prefix(b"<<");
            sign.is_some_and(|after| !after.starts_with(b"<"))
        });
        is_here && matches!(self.frames.last(), Some(Frame::Quote)) && self.list().expansions == 0
    }

    pub(super) fn open_literal_text(&mut self, at: usize) {
        let literal =
            LiteralText { dollar: self.at, commands: self.script.commands.len(), body: None, bodies: 0 };
        self.at = at;
        self.open_list(Kind::Substitution);
        self.list().literal = Some(literal);
    }

    /// Keeps the body of a here-document that belongs to a literal text.
    pub(super) fn keep_literal_body(&mut self, body: &[u8], here: &HereDocument) {
        let is_data = here.quoted || !body.iter().any(|byte| matches!(byte, b'$' | b'`' | b'\\'));
        let mut text = body.to_vec();
        if here.strips_tabs {
            let lines = body.split_inclusive(|byte| *byte == b'\n');
            text = lines.flat_map(|line| line.iter().skip_while(|byte| **byte == b'\t')).copied().collect();
        }
        if let Some(literal) = &mut self.list().literal {
            literal.bodies += 1;
            literal.body = Some(text).filter(|_| is_data);
        }
    }

    /// At the end of the substitution: its text if it is literal, otherwise an unknown value.
    pub(super) fn end_literal_text(&mut self, literal: LiteralText) {
        let is_cat = |command: &SimpleCommand| {
            command.words.len() == 1
                && command.words[0].is_bare()
                && command.words[0].text == "cat"
                && command.assigns.is_empty()
                && command.redirs.len() == 1
                && command.redirs[0].kind == RedirKind::Here
                && command.timed.is_none()
        };
        let single = match &mut self.script.commands[literal.commands..] {
            [command] if is_cat(command) && literal.bodies == 1 => Some(command),
            _ => None,
        };
        match (single, literal.body) {
            (Some(command), Some(mut body)) => {
                command.yields_text = true;
                while body.last() == Some(&b'\n') {
                    body.pop();
                }
                self.push_bytes(&body, Quoting::Quoted);
            }
            _ => {
                let (end, at) = (self.at, literal.dollar);
                self.at = at;
                self.note(UnsupportedSyntax::Substitution);
                self.at = end;
                self.mark(Marks::EXPANDS);
            }
        }
    }
}

impl Script {
    /// The command with each combination of values of its loop variables; `None` if there are too many,
    /// or if the shell may split a value.
    pub(crate) fn loop_choices(&self, command: &SimpleCommand) -> Option<Vec<SimpleCommand>> {
        let words = || command.words.iter().chain(command.redirs.iter().map(|redir| &redir.target));
        let mut used: Vec<usize> =
            words().flat_map(|word| &word.variables).map(|variable| variable.of).collect();
        used.sort_unstable();
        used.dedup();
        let mut choices = vec![command.clone()];
        for of in used {
            let values = &self.loops.get(of)?.words;
            if values.is_empty() || choices.len() * values.len() > MAX_CHOICES {
                return None;
            }
            let mut next = Vec::with_capacity(choices.len() * values.len());
            for choice in &choices {
                for value in values {
                    let mut choice = choice.clone();
                    for word in &mut choice.words {
                        *word = with_value(word, of, value)?;
                    }
                    for redir in &mut choice.redirs {
                        redir.target = with_value(&redir.target, of, value)?;
                    }
                    next.push(choice);
                }
            }
            choices = next;
        }
        Some(choices)
    }
}

/// The word with the value of one loop variable.
fn with_value(word: &Word, of: usize, value: &Word) -> Option<Word> {
    if !word.variables.iter().any(|variable| variable.of == of) {
        return Some(word.clone());
    }
    let mut filled = Word { text: String::new(), variables: Vec::new(), equals: None, ..word.clone() };
    let is_pattern = value.marks.has(Marks::GLOB);
    let mut from = 0;
    for variable in &word.variables {
        filled.text.push_str(word.text.get(from..variable.start)?);
        from = variable.end;
        let start = filled.text.len();
        if variable.of == of {
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
    if filled.marks.has(Marks::GLOB) && filled.text.starts_with(['*', '?', '[']) {
        filled.marks.add(Marks::GLOB_FIRST);
    }
    if filled.variables.is_empty() && !word.has_other_expansions() {
        filled.marks.remove(Marks::EXPANDS);
    }
    Some(filled)
}
