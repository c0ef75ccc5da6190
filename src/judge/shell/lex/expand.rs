//! Quotes and expansions.

use super::{Frame, Head, Lexer, ListKind, TextJob, is_name_byte};
use crate::shell::lex::loops::VariableForm;
use crate::shell::lex::syntax::UnsupportedSyntax;
use crate::shell::lex::word::{Marks, Quoting};

impl Lexer<'_> {
    /// Reads a `'…'`.
    pub(super) fn single_quote(&mut self) {
        let inner = self.position + 1;
        let end = self.text[inner..].iter().position(|byte| *byte == b'\'');
        let text = self.text[inner..end.map_or(self.text.len(), |end| inner + end)].to_vec();
        if end.is_none() {
            self.note(UnsupportedSyntax::Syntax);
        }
        self.push_bytes(&text, Quoting::Quoted);
        self.mark(Marks::QUOTED);
        self.position = inner + text.len() + usize::from(end.is_some());
    }

    /// Inside `"…"`, and inside the body of a here-document, where `"` is literal.
    pub(super) fn in_quote(&mut self) {
        match self.text[self.position] {
            b'"' if !matches!(self.frames.last(), Some(Frame::Body)) => {
                self.close();
                self.position += 1;
            }
            b'\\' => match self.text.get(self.position + 1) {
                Some(b'\n') => self.position += 2,
                Some(next @ (b'$' | b'`' | b'"' | b'\\')) => {
                    let next = *next;
                    self.push_bytes(&[next], Quoting::Quoted);
                    self.position += 2;
                }
                _ => {
                    self.push_bytes(b"\\", Quoting::Quoted);
                    self.position += 1;
                }
            },
            b'$' => self.dollar(Quoting::Quoted),
            b'`' => self.backquote(Quoting::Quoted),
            _ => {
                let rest = &self.text[self.position..];
                let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'$' | b'`'));
                let run = rest[..length.unwrap_or(rest.len()).max(1)].to_vec();
                self.push_bytes(&run, Quoting::Quoted);
                self.position += run.len();
            }
        }
    }

    /// Reads the next sign inside `${…}`.
    pub(super) fn in_parameter(&mut self) {
        match self.text[self.position] {
            b'}' => {
                self.close();
                self.position += 1;
            }
            b'"' => {
                self.open(Frame::Quote);
                self.position += 1;
            }
            b'\'' => {
                if self.list().quotes > 0 || self.is_body {
                    // The operator of the expansion decides whether this `'` quotes, and the lexer does
                    // not parse it.
                    self.note(UnsupportedSyntax::Unsure);
                    self.position += 1;
                } else {
                    self.skip_single_quote();
                }
            }
            _ => self.in_expansion(),
        }
    }

    /// Skips a `'…'` that belongs to no word.
    pub(super) fn skip_single_quote(&mut self) {
        let inner = self.position + 1;
        match self.text[inner..].iter().position(|byte| *byte == b'\'') {
            Some(end) => self.position = inner + end + 1,
            None => self.position = self.text.len(),
        }
    }

    /// Reads the next sign inside an expansion, whose text belongs to no word but may contain commands.
    pub(super) fn in_expansion(&mut self) {
        match self.text[self.position] {
            b'\\' => self.position = (self.position + 2).min(self.text.len()),
            b'$' => self.dollar(Quoting::Quoted),
            b'`' => self.backquote(Quoting::Quoted),
            b'<' | b'>' if self.text.get(self.position + 1) == Some(&b'(') => {
                self.note(UnsupportedSyntax::ProcessSubstitution);
                self.position += 2;
                self.open_list(ListKind::Substitution);
            }
            _ => self.position += 1,
        }
    }

    /// Reads the next sign inside `((…))`, `$((…))` or `$[…]`.
    pub(super) fn in_arithmetic(&mut self) {
        let byte = self.text[self.position];
        let Some(Frame::Arithmetic { opened, square, depth, command }) = self.frames.last_mut() else {
            return;
        };
        let (opened, square, command) = (*opened, *square, *command);
        match byte {
            b'(' if !square => {
                *depth += 1;
                self.position += 1;
            }
            b'[' if square => {
                *depth += 1;
                self.position += 1;
            }
            b')' if !square && *depth > 0 => {
                *depth -= 1;
                self.position += 1;
            }
            b']' if square && *depth > 0 => {
                *depth -= 1;
                self.position += 1;
            }
            b']' if square => {
                self.close();
                self.position += 1;
            }
            b')' if !square => match self.peek_from(self.position + 1) {
                Some((b')', after)) => {
                    self.close();
                    self.position = after;
                    if command && self.list().head == Head::None {
                        let list = self.list();
                        list.is_after_compound = true;
                        list.commands += 1;
                    }
                }
                _ => {
                    // Not arithmetic: `( (…) …)`. Parse it again as commands.
                    self.close();
                    let length = self.position - opened;
                    self.plain_brackets.insert(opened);
                    if *self.reparse_budget < length {
                        self.note(UnsupportedSyntax::Unsure);
                        *self.reparse_budget = 0;
                    } else {
                        *self.reparse_budget -= length;
                    }
                    self.position = opened + 1;
                    self.open_list(if command { ListKind::Subshell } else { ListKind::Substitution });
                }
            },
            b'"' => {
                self.open(Frame::Quote);
                self.position += 1;
            }
            b'\'' => self.skip_single_quote(),
            _ => self.in_expansion(),
        }
    }

    /// At a `$`. Inside quotes `$'` and `$"` have no special meaning.
    pub(super) fn dollar(&mut self, quoting: Quoting) {
        let dollar = self.position;
        let is_quoted = quoting == Quoting::Quoted;
        match self.peek_from(self.position + 1) {
            Some((b'(', after)) if is_quoted && self.begins_literal_text(after) => {
                self.open_literal_text(after);
            }
            Some((b'(', after)) => {
                self.mark(Marks::EXPANDS);
                let first = after - 1;
                let double = matches!(self.peek_from(after), Some((b'(', _)));
                if double && !self.plain_brackets.contains(&first) && *self.reparse_budget > 0 {
                    let inner = self.peek_from(after).map_or(after, |(_, position)| position);
                    self.note(UnsupportedSyntax::Arithmetic);
                    self.open(Frame::Arithmetic { opened: first, square: false, depth: 0, command: false });
                    self.position = inner;
                } else {
                    if double {
                        self.note(UnsupportedSyntax::Unsure);
                    }
                    self.note(UnsupportedSyntax::Substitution);
                    self.position = after;
                    self.open_list(ListKind::Substitution);
                }
            }
            Some((b'{', after)) if self.push_loop_variable(after, VariableForm::Braced, quoting) => {}
            Some((c, after))
                if c.is_ascii_alphabetic()
                    && self.push_loop_variable(after - 1, VariableForm::Plain, quoting) => {}
            Some((b'{', after)) => {
                self.note(UnsupportedSyntax::Parameter);
                let name = &self.text[after..];
                let length = name.iter().position(|c| !is_name_byte(*c)).unwrap_or(name.len());
                // `${HOME}/x` is stored as `$HOME/x`.
                let mut raw = b"$".to_vec();
                raw.extend_from_slice(&name[..length]);
                if name.get(length) != Some(&b'}') {
                    raw.push(b'?');
                }
                self.push_bytes(&raw, Quoting::Quoted);
                self.mark(Marks::EXPANDS);
                self.open(Frame::Parameter);
                self.position = after + length;
            }
            Some((b'[', after)) => {
                self.note(UnsupportedSyntax::Arithmetic);
                self.mark(Marks::EXPANDS);
                self.open(Frame::Arithmetic { opened: dollar, square: true, depth: 0, command: false });
                self.position = after;
            }
            Some((b'\'', after)) if !is_quoted => {
                self.note(UnsupportedSyntax::DollarQuote);
                self.mark(Marks::DOLLAR_QUOTE);
                let (text, length, is_closed) = decode_dollar_quote(&self.text[after..]);
                if !is_closed {
                    self.note(UnsupportedSyntax::Syntax);
                }
                self.push_bytes(&text, Quoting::Quoted);
                self.mark(Marks::QUOTED);
                self.position = after + length;
            }
            Some((b'"', _)) if !is_quoted => {
                self.note(UnsupportedSyntax::DollarQuote);
                self.mark(Marks::DOLLAR_QUOTE);
                self.position = dollar + 1;
            }
            Some((c @ (b'?' | b'#' | b'!' | b'$'), after)) => {
                self.push_bytes(&[b'$', c], Quoting::Quoted);
                self.mark(Marks::NUMBER);
                self.position = after;
            }
            Some((c, after)) if is_name_byte(c) || matches!(c, b'*' | b'@' | b'-') => {
                self.note(UnsupportedSyntax::Parameter);
                let mut raw = vec![b'$', c];
                let mut position = after;
                if c.is_ascii_alphabetic() || c == b'_' {
                    while let Some((c, after)) = self.peek_from(position).filter(|(c, _)| is_name_byte(*c)) {
                        raw.push(c);
                        position = after;
                    }
                }
                self.push_bytes(&raw, Quoting::Quoted);
                self.mark(Marks::EXPANDS);
                self.position = position;
            }
            _ => {
                // The sign is literal.
                self.push_bytes(b"$", Quoting::Quoted);
                self.position = dollar + 1;
            }
        }
    }

    /// Reads a text between backquotes. Its commands are parsed later.
    pub(super) fn backquote(&mut self, quoting: Quoting) {
        self.note(UnsupportedSyntax::Substitution);
        self.mark(Marks::EXPANDS);
        let mut inner = Vec::new();
        let mut position = self.position + 1;
        loop {
            match self.text.get(position) {
                None => {
                    self.note(UnsupportedSyntax::Syntax);
                    break;
                }
                Some(b'`') => {
                    position += 1;
                    break;
                }
                Some(b'\\') => match self.text.get(position + 1) {
                    Some(next @ (b'`' | b'\\' | b'$')) => {
                        inner.push(*next);
                        position += 2;
                    }
                    Some(b'"') if quoting == Quoting::Quoted => {
                        inner.push(b'"');
                        position += 2;
                    }
                    _ => {
                        inner.push(b'\\');
                        position += 1;
                    }
                },
                Some(byte) => {
                    inner.push(*byte);
                    position += 1;
                }
            }
        }
        self.position = position;
        self.defer_text(inner, false);
    }

    /// Stores a nested text for later.
    pub(super) fn defer_text(&mut self, text: Vec<u8>, is_body: bool) {
        if text.len() > *self.reparse_budget {
            self.note(UnsupportedSyntax::Unsure);
            return;
        }
        *self.reparse_budget -= text.len();
        let depth = self.base + self.frames.len() + self.blocks;
        self.jobs.push(TextJob { text, is_body, depth });
    }
}

/// Decodes the inside of `$'…'`: the bytes, the length including the closing sign, and whether it is
/// closed.
fn decode_dollar_quote(text: &[u8]) -> (Vec<u8>, usize, bool) {
    let mut out = Vec::new();
    let mut position = 0;
    let mut has_ended = false;
    let digits = |from: usize, base: u32, max_digits: usize| -> (u32, usize) {
        let digit_count = text[from.min(text.len())..]
            .iter()
            .take(max_digits)
            .take_while(|c| char::from(**c).is_digit(base))
            .count();
        let value = text[from.min(text.len())..][..digit_count]
            .iter()
            .fold(0u32, |sum, c| sum * base + char::from(*c).to_digit(base).unwrap_or(0));
        (value, digit_count)
    };
    while let Some(&byte) = text.get(position) {
        if byte == b'\'' {
            return (out, position + 1, true);
        }
        if byte != b'\\' {
            if !has_ended {
                out.push(byte);
            }
            position += 1;
            continue;
        }
        let Some(&kind) = text.get(position + 1) else { break };
        let mut push = |bytes: &[u8]| {
            if !has_ended {
                out.extend_from_slice(bytes);
            }
        };
        position += 2;
        match kind {
            b'a' => push(b"\x07"),
            b'b' => push(b"\x08"),
            b'e' | b'E' => push(b"\x1b"),
            b'f' => push(b"\x0c"),
            b'n' => push(b"\n"),
            b'r' => push(b"\r"),
            b't' => push(b"\t"),
            b'v' => push(b"\x0b"),
            b'\\' | b'\'' | b'"' | b'?' => push(&[kind]),
            b'0'..=b'7' => {
                let (value, digit_count) = digits(position - 1, 8, 3);
                position += digit_count - 1;
                // A NUL ends the text.
                if value & 0xff == 0 {
                    has_ended = true;
                } else {
                    push(&[(value & 0xff) as u8]);
                }
            }
            b'x' => match digits(position, 16, 2) {
                (_, 0) => push(b"\\x"),
                (0, _) => has_ended = true,
                (value, digit_count) => {
                    push(&[(value & 0xff) as u8]);
                    position += digit_count;
                }
            },
            b'u' | b'U' => match digits(position, 16, if kind == b'u' { 4 } else { 8 }) {
                (_, 0) => push(&[b'\\', kind]),
                (0, _) => has_ended = true,
                (value, digit_count) => {
                    position += digit_count;
                    if let Some(c) = char::from_u32(value) {
                        push(c.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
            },
            b'c' => {
                if let Some(c) = text.get(position) {
                    push(&[c & 0x1f]);
                    position += 1;
                }
            }
            other => push(&[b'\\', other]),
        }
    }
    (out, text.len(), false)
}
