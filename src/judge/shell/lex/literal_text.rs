//! `"$(cat <<'EOF' … )"`: a substitution whose value is the text of its here-document.
//!
//! The lexer opens such a substitution as a list of commands with a [`LiteralText`]. At its end it appends the text of
//! the here-document to the word, if the commands are only that `cat`.

use super::{Frame, HereDocument, Lexer, ListKind, LiteralText};
use crate::shell::lex::syntax::{RedirKind, SimpleCommand, UnsupportedSyntax};
use crate::shell::lex::word::{Marks, Quoting};

/// Maximum bytes before the `<<` of a substitution that yields a literal text.
const MAX_LITERAL_HEAD_BYTES: usize = 32;

impl Lexer<'_> {
    /// Whether a `$(` between quotes may be `$(cat <<'EOF' … )`. `after` is the position after the bracket.
    pub(super) fn begins_literal_text(&mut self, after: usize) -> bool {
        let skip_blanks =
            |text: &'_ [u8]| text.iter().position(|c| !matches!(c, b' ' | b'\t')).unwrap_or(text.len());
        let text = &self.text[after..self.text.len().min(after + MAX_LITERAL_HEAD_BYTES)];
        let text = &text[skip_blanks(text)..];
        let is_here = text.strip_prefix(b"cat").is_some_and(|rest| {
            let sign = rest[skip_blanks(rest)..].strip_prefix(b"<<");
            sign.is_some_and(|after| !after.starts_with(b"<"))
        });
        is_here && matches!(self.frames.last(), Some(Frame::Quote)) && self.list().expansions == 0
    }

    /// Opens such a substitution at its `$`. `after` is the position after the bracket.
    pub(super) fn open_literal_text(&mut self, after: usize) {
        let literal = LiteralText {
            dollar: self.position,
            commands: self.script.commands.len(),
            body: None,
            bodies: 0,
        };
        self.position = after;
        self.open_list(ListKind::Substitution);
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
        let cat = match &mut self.script.commands[literal.commands..] {
            [command] if is_cat(command) && literal.bodies == 1 => Some(command),
            _ => None,
        };
        match (cat, literal.body) {
            (Some(command), Some(mut body)) => {
                command.yields_text = true;
                while body.last() == Some(&b'\n') {
                    body.pop();
                }
                self.push_bytes(&body, Quoting::Quoted);
            }
            _ => {
                // The syntax is noted at the position of the `$`.
                let end = std::mem::replace(&mut self.position, literal.dollar);
                self.note(UnsupportedSyntax::Substitution);
                self.position = end;
                self.mark(Marks::EXPANDS);
            }
        }
    }
}
