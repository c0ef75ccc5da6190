//! Single signs: line feeds, redirections, operators between commands, brackets.

use crate::shell::lex::syntax::{RedirKind, UnsupportedSyntax};
use crate::shell::lex::word::{Marks, WordBuilder};
use crate::shell::lex::{Frame, Head, Lexer, ListKind, OpenRedirection, Operator};

impl Lexer<'_> {
    /// Reads a line feed, and the bodies of here-documents that begin after it.
    pub(super) fn newline(&mut self) {
        self.end_word();
        let kind = self.list().kind;
        if matches!(kind, ListKind::Array | ListKind::Conditional) {
            if self.pending_heres.last().is_some_and(|row| !row.is_empty()) {
                self.note(UnsupportedSyntax::Unsure);
            }
            self.position += 1;
            return;
        }
        if self.has_loop_words() {
            self.list().head = Head::None;
        } else if !self.list().needs_command || self.list().is_started {
            self.end_command(Some(Operator::Newline));
        }
        self.position += 1;
        self.read_here_documents();
    }

    /// Reads a `<` or `>`: a redirection, or the beginning of a process substitution.
    pub(super) fn redirection(&mut self) {
        let sign = self.text[self.position];
        let Some((next, after)) = self.peek_from(self.position + 1) else {
            self.end_word();
            self.note(UnsupportedSyntax::Syntax);
            self.position += 1;
            return;
        };
        if next == b'(' {
            self.note(UnsupportedSyntax::ProcessSubstitution);
            self.mark(Marks::EXPANDS);
            self.position = after;
            self.open_list(ListKind::Substitution);
            return;
        }
        if matches!(self.list().kind, ListKind::Array | ListKind::Conditional) {
            self.end_word();
            if matches!(self.list().kind, ListKind::Array | ListKind::Conditional) {
                self.position += 1;
                return;
            }
        }
        // A number or `{name}` directly before the sign belongs to it.
        let mut named = false;
        let sign_start = self.position;
        let list = self.list();
        let mut start = sign_start;
        match &list.draft {
            Some(draft) if draft.is_number() => {
                start = draft.start();
                list.draft = None;
            }
            Some(draft) if draft.is_braced_name() => {
                list.draft = None;
                named = true;
            }
            _ => self.end_word(),
        }
        if named {
            start = sign_start.saturating_sub(1);
        }
        let (kind, after, strips_tabs) = match (sign, next) {
            (b'<', b'<') => match self.peek_from(after) {
                Some((b'<', after)) => (RedirKind::HereString, after, false),
                Some((b'-', after)) => (RedirKind::Here, after, true),
                _ => (RedirKind::Here, after, false),
            },
            (_, b'&') => (RedirKind::Duplicate, after, false),
            (b'<', b'>') => (RedirKind::Both, after, false),
            (b'>', b'>' | b'|') => (RedirKind::Output, after, false),
            (b'<', _) => (RedirKind::Input, self.position + 1, false),
            _ => (RedirKind::Output, self.position + 1, false),
        };
        // `>&file` is output to a file; the target decides.
        let redir = OpenRedirection { kind, named, strips_tabs, is_output: sign == b'>' };
        self.begin_redirection(redir, start);
        self.position = after;
    }

    /// Begins a redirection at the byte `start`. Its target is the next word.
    fn begin_redirection(&mut self, redir: OpenRedirection, start: usize) {
        if self.list().redir.is_some() || self.list().head != Head::None && self.list().head != Head::Time {
            self.note(UnsupportedSyntax::Syntax);
        }
        let list = self.list();
        list.redir = Some(redir);
        list.redir_start = start;
        if !list.is_started && !list.is_after_compound {
            list.is_started = true;
            // The file name may be missing.
            (list.command.start, list.command.end) = (start, start);
        }
    }

    /// Reads a `&`, `;` or pipe sign: an operator between commands, or the redirection `&>`.
    pub(super) fn operator(&mut self) {
        self.end_word();
        let first = self.text[self.position];
        let next = self.peek_from(self.position + 1);
        if matches!(self.list().kind, ListKind::Array | ListKind::Conditional) {
            if self.list().kind == ListKind::Array {
                self.note(UnsupportedSyntax::Syntax);
            }
            self.position += 1;
            return;
        }
        if first == b'&'
            && let Some((b'>', after)) = next
        {
            let after = match self.peek_from(after) {
                Some((b'>', after)) => after,
                _ => after,
            };
            let start = self.position;
            let kind = RedirKind::Output;
            let redir = OpenRedirection { kind, named: false, strips_tabs: false, is_output: true };
            self.begin_redirection(redir, start);
            self.position = after;
            return;
        }
        let (operator, after) = match (first, next) {
            (b'&', Some((b'&', after))) => (Operator::And, after),
            (b'&', _) => (Operator::Background, self.position + 1),
            (b'|', Some((b'|' | b'&', after))) => (Operator::Joins, after),
            (b'|', _) => (Operator::Joins, self.position + 1),
            (b';', Some((b';', after))) => match self.peek_from(after) {
                Some((b'&', after)) => (Operator::EndsCase, after),
                _ => (Operator::EndsCase, after),
            },
            (b';', Some((b'&', after))) => (Operator::EndsCase, after),
            _ => (Operator::Semicolon, self.position + 1),
        };
        if self.list().head == Head::CasePattern && operator == Operator::Joins {
            self.position = after;
            return;
        }
        if operator == Operator::Background {
            self.note(UnsupportedSyntax::Background);
        }
        self.end_command(Some(operator));
        let is_pipe = first == b'|' && operator == Operator::Joins && !matches!(next, Some((b'|' | b'&', _)));
        let list = self.list();
        list.feeds_next = list.last_command.filter(|_| is_pipe);
        self.list().is_after_pipe =
            first == b'|' && operator == Operator::Joins && !matches!(next, Some((b'|', _)));
        self.position = after;
    }

    /// Reads a `(`: an array, arithmetic, the brackets of a function, or a subshell.
    pub(super) fn bracket(&mut self) {
        let first = self.position;
        let kind = self.list().kind;
        if kind == ListKind::Conditional {
            self.end_word();
            self.position += 1;
            return;
        }
        if kind == ListKind::Array {
            self.end_word();
            self.note(UnsupportedSyntax::Syntax);
            self.position += 1;
            return;
        }
        if self.list().head == Head::CasePattern {
            self.end_word();
            self.position += 1;
            return;
        }
        if self.list().expansions == 0 && self.list().draft.as_ref().is_some_and(WordBuilder::awaits_array) {
            self.note(UnsupportedSyntax::Array);
            self.mark(Marks::EXPANDS);
            self.position += 1;
            self.open_list(ListKind::Array);
            return;
        }
        self.end_word();
        if self.list().head == Head::LoopName {
            // `for ((…))`
            self.note(UnsupportedSyntax::Arithmetic);
            self.list().head = Head::None;
            if let Some((b'(', inner)) = self.peek_from(first + 1) {
                self.open(Frame::Arithmetic { opened: first, square: false, depth: 0, command: true });
                self.position = inner;
                return;
            }
        }
        if self.list().is_started {
            // `name ()` defines a function; anything else is invalid.
            let mut position = first + 1;
            while let Some((b' ' | b'\t', after)) = self.peek_from(position) {
                position = after;
            }
            if let Some((b')', after)) = self.peek_from(position)
                && self.list().command.words.len() == 1
                && self.list().command.redirs.is_empty()
            {
                self.note(UnsupportedSyntax::Function);
                self.position = after;
                self.reset_command();
                self.list().needs_command = true;
                return;
            }
            self.note(UnsupportedSyntax::Syntax);
            self.end_command(Some(Operator::Semicolon));
        } else if self.list().is_after_compound && !self.list().needs_command {
            self.note(UnsupportedSyntax::Syntax);
        }
        let double = matches!(self.peek_from(first + 1), Some((b'(', _)));
        if double && !self.plain_brackets.contains(&first) && *self.reparse_budget > 0 {
            self.note(UnsupportedSyntax::Conditional);
            let inner = self.peek_from(first + 1).map_or(first + 1, |(_, position)| position);
            self.list().needs_command = false;
            self.open(Frame::Arithmetic { opened: first, square: false, depth: 0, command: true });
            self.position = inner;
            return;
        }
        if double {
            self.note(UnsupportedSyntax::Unsure);
        }
        self.list().needs_command = false;
        self.list().is_after_compound = false;
        self.position += 1;
        self.open_list(ListKind::Subshell);
    }

    /// Reads a `)`: the end of a list, or of the pattern of a `case`.
    pub(super) fn closing_bracket(&mut self) {
        self.end_word();
        if self.list().head == Head::CasePattern {
            let list = self.list();
            list.head = Head::None;
            list.needs_command = false;
            self.position += 1;
            return;
        }
        match self.list().kind {
            ListKind::Whole => {
                self.note(UnsupportedSyntax::Syntax);
                self.end_command(Some(Operator::Semicolon));
                self.position += 1;
            }
            ListKind::Conditional => self.position += 1,
            ListKind::Subshell | ListKind::Substitution | ListKind::Array => {
                self.position += 1;
                self.close_list();
            }
        }
    }

    /// Reads the bodies that begin on this line.
    pub(super) fn read_here_documents(&mut self) {
        let rows = self.pending_heres.len();
        let row = std::mem::take(&mut self.pending_heres[rows - 1]);
        for here in row {
            let body = self.position;
            let end = loop {
                if self.position >= self.text.len() {
                    self.note(UnsupportedSyntax::Syntax);
                    break self.position;
                }
                let start = self.position;
                let rest = &self.text[start..];
                let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                self.position = (start + length + 1).min(self.text.len());
                let mut line = &rest[..length];
                if here.strips_tabs {
                    while let Some(shorter) = line.strip_prefix(b"\t") {
                        line = shorter;
                    }
                }
                if line == here.end.as_bytes() {
                    break start;
                }
            };
            let ends_line = self.position > body && self.text[self.position - 1] == b'\n';
            self.note_ignorable(body, self.position - usize::from(ends_line));
            let text = &self.text[body..end];
            self.keep_literal_body(text, &here);
            let text = &self.text[body..end];
            if !here.quoted && text.iter().any(|byte| matches!(byte, b'$' | b'`' | b'\\')) {
                self.script.note(UnsupportedSyntax::HereBody, if self.derived { 0 } else { body });
                let text = text.to_vec();
                self.defer_text(text, true);
            }
        }
    }
}
