//! The lexer: from the text of a command line to its simple commands, in linear time and without
//! recursion.
//!
//! It knows all of bash's grammar well enough to find every command that stands anywhere, and the
//! *plain* part of it (lists, pipelines, groups, words, redirections, here-documents) exactly. What
//! goes beyond is noted, and what is noted is never allowed by a rule for a part of a line.
//!
//! Text inside the text (backquotes, bodies of here-documents that the shell expands) is read again
//! as a text of its own; how much is read again is bounded, and noted where the bound is met.

use super::script::{After, Beyond, Redir, RedirKind, Script, Simple};
use super::word::{Draft, Marks, Word};

/// How many bytes may be read again, beside the length of the text itself.
const AGAIN: usize = 64 * 1024;

/// What an open sign waits for.
#[derive(Debug)]
enum Frame {
    /// Commands; belongs to the last of `lists`.
    List,
    /// `"…"`
    Quote,
    /// `${…}`
    Parameter,
    /// `((…))`, `$((…))`, `$[…]`: the place of the first sign, the bracket's kind, open brackets,
    /// and whether it stands where a command stands.
    Arithmetic { opened: usize, square: bool, depth: usize, command: bool },
    /// The body of a here-document.
    Body,
}

/// What closes a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Subshell,
    Substitution,
    Array,
    Conditional,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Brace,
    If,
    Loop,
    Case,
}

/// Words that are not yet those of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Head {
    #[default]
    None,
    LoopName,
    LoopWords,
    CaseWord,
    CasePattern,
    FunctionName,
    Time,
    Coproc,
}

#[derive(Debug)]
struct List {
    kind: Kind,
    scope: usize,
    blocks: Vec<Block>,
    head: Head,
    draft: Option<Draft>,
    command: Simple,
    started: bool,
    redir: Option<(RedirKind, bool, bool)>,
    /// A compound command has just ended.
    compound: bool,
    /// An operator waits for its right side.
    needs: bool,
    commands: usize,
    /// How many `${`, `((` and `$[` are open around the next byte.
    expansions: usize,
    /// How many `"` are.
    quotes: usize,
}

impl List {
    fn new(kind: Kind, scope: usize) -> Self {
        Self {
            kind,
            scope,
            blocks: Vec::new(),
            head: Head::None,
            draft: None,
            command: Simple::default(),
            started: false,
            redir: None,
            compound: false,
            needs: false,
            commands: 0,
            expansions: 0,
            quotes: 0,
        }
    }

    fn is_fresh(&self) -> bool {
        !self.started && self.redir.is_none()
    }
}

/// A here-document whose body is still to come.
#[derive(Debug)]
struct Here {
    end: String,
    strips_tabs: bool,
    quoted: bool,
}

/// A text to read: its bytes, whether it is the body of a here-document, how it is nested.
#[derive(Debug)]
struct Job {
    text: Vec<u8>,
    is_body: bool,
    depth: usize,
}

/// Reads a command line. Total: any text has a result.
pub(in crate::judge) fn lex(text: &str) -> Script {
    let mut script = Script { scopes: vec![0], ..Script::default() };
    let mut jobs = Vec::new();
    let mut again = text.len() + AGAIN;
    read(text.as_bytes(), false, 0, false, &mut script, &mut jobs, &mut again);
    while let Some(job) = jobs.pop() {
        read(&job.text, job.is_body, job.depth, true, &mut script, &mut jobs, &mut again);
    }
    script
}

fn read(
    text: &[u8],
    is_body: bool,
    depth: usize,
    derived: bool,
    script: &mut Script,
    jobs: &mut Vec<Job>,
    again: &mut usize,
) {
    let mut lexer = Lexer {
        text,
        at: 0,
        frames: vec![if is_body { Frame::Body } else { Frame::List }],
        lists: vec![List::new(Kind::Whole, 0)],
        heres: vec![Vec::new()],
        plain_brackets: std::collections::HashSet::new(),
        base: depth,
        blocks: 0,
        derived,
        is_body,
        script,
        jobs,
        again,
    };
    lexer.run();
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    frames: Vec<Frame>,
    lists: Vec<List>,
    /// Here-documents to come: one row for the line and for each open substitution.
    heres: Vec<Vec<Here>>,
    /// Places of `((` that turned out to be two brackets.
    plain_brackets: std::collections::HashSet<usize>,
    base: usize,
    blocks: usize,
    derived: bool,
    is_body: bool,
    script: &'a mut Script,
    jobs: &'a mut Vec<Job>,
    again: &'a mut usize,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while self.at < self.text.len() {
            let depth = self.base + self.frames.len() + self.blocks;
            self.script.depth = self.script.depth.max(depth);
            match self.frames.last() {
                Some(Frame::List) => self.in_list(),
                Some(Frame::Quote) => self.in_quote(false),
                Some(Frame::Body) => self.in_quote(true),
                Some(Frame::Parameter) => self.in_parameter(),
                Some(Frame::Arithmetic { .. }) => self.in_arithmetic(),
                None => break,
            }
        }
        self.finish();
    }

    /// The end of the text: whatever is open is closed, so that its commands are seen.
    fn finish(&mut self) {
        if matches!(self.frames.last(), Some(Frame::List)) {
            // This may be the end of a `[[ … ]]`.
            self.end_word();
        }
        if self.frames.len() > 1 {
            self.note(Beyond::Syntax);
        }
        while let Some(frame) = self.frames.pop() {
            if !matches!(frame, Frame::List) {
                continue;
            }
            self.end_word();
            self.end_command(None);
            let list = self.list();
            if list.needs || !list.blocks.is_empty() || list.head != Head::None {
                self.note(Beyond::Syntax);
            }
            if self.lists.len() > 1 {
                self.lists.pop();
            }
        }
        if self.heres.iter().any(|row| !row.is_empty()) {
            self.note(Beyond::Syntax);
        }
    }

    fn note(&mut self, what: Beyond) {
        self.script.note(what, if self.derived { 0 } else { self.at });
    }

    /// The byte at `at`, lines that a backslash continues joined, and the place behind it.
    fn peek_from(&self, mut at: usize) -> Option<(u8, usize)> {
        while self.text[at.min(self.text.len())..].starts_with(b"\\\n") {
            at += 2;
        }
        self.text.get(at).map(|byte| (*byte, at + 1))
    }

    fn list(&mut self) -> &mut List {
        let last = self.lists.len() - 1;
        &mut self.lists[last]
    }

    /// Adds to the word that is being read. What stands inside an expansion is part of none.
    fn put(&mut self, bytes: &[u8], bare: bool) {
        let at = self.at;
        let list = self.list();
        if list.expansions == 0 {
            list.draft.get_or_insert_with(|| Draft::new(at)).push(bytes, bare);
        }
    }

    fn mark(&mut self, mark: Marks) {
        self.put(b"", true);
        if let Some(draft) = &mut self.list().draft {
            draft.mark(mark);
        }
    }

    fn open(&mut self, frame: Frame) {
        let list = self.list();
        match frame {
            Frame::Quote => list.quotes += 1,
            Frame::Parameter | Frame::Arithmetic { .. } => list.expansions += 1,
            Frame::List | Frame::Body => {}
        }
        self.frames.push(frame);
    }

    fn close(&mut self) {
        let frame = self.frames.pop();
        let list = self.list();
        match frame {
            Some(Frame::Quote) => list.quotes -= 1,
            Some(Frame::Parameter | Frame::Arithmetic { .. }) => list.expansions -= 1,
            Some(Frame::List | Frame::Body) | None => {}
        }
    }

    fn open_list(&mut self, kind: Kind) {
        let scope = match kind {
            Kind::Array | Kind::Conditional => self.list().scope,
            _ => {
                let parent = self.list().scope;
                self.script.scopes.push(parent);
                self.script.scopes.len() - 1
            }
        };
        self.lists.push(List::new(kind, scope));
        self.frames.push(Frame::List);
        if kind == Kind::Substitution {
            self.heres.push(Vec::new());
        }
    }

    fn close_list(&mut self) {
        self.end_word();
        self.end_command(None);
        let Some(list) = self.lists.pop() else { return };
        self.blocks -= list.blocks.len();
        self.frames.pop();
        if list.needs || !list.blocks.is_empty() || list.head != Head::None {
            self.note(Beyond::Syntax);
        }
        match list.kind {
            Kind::Substitution => {
                // A body that did not come inside comes behind.
                if let Some(row) = self.heres.pop()
                    && !row.is_empty()
                {
                    self.note(Beyond::Unsure);
                    if let Some(outer) = self.heres.last_mut() {
                        outer.extend(row);
                    }
                }
            }
            Kind::Subshell => {
                if list.commands == 0 {
                    self.note(Beyond::Syntax);
                }
                let end = self.at;
                let list = self.list();
                list.compound = true;
                list.commands += 1;
                list.command = Simple { start: end, end, ..Simple::default() };
            }
            Kind::Conditional => {
                let list = self.list();
                list.compound = true;
                list.commands += 1;
            }
            Kind::Array | Kind::Whole => {}
        }
    }

    fn in_list(&mut self) {
        let byte = self.text[self.at];
        if byte == b'\\' {
            match self.text.get(self.at + 1) {
                Some(b'\n') => self.at += 2,
                Some(_) => {
                    let length = character(&self.text[self.at + 1..]);
                    let quoted = self.text[self.at + 1..self.at + 1 + length].to_vec();
                    self.put(&quoted, false);
                    self.at += 1 + length;
                }
                None => {
                    self.note(Beyond::Syntax);
                    self.put(b"\\", false);
                    self.at += 1;
                }
            }
            return;
        }
        match byte {
            b' ' | b'\t' => {
                self.end_word();
                self.at += 1;
            }
            b'\n' => self.newline(),
            b'#' if self.list().draft.is_none() => {
                while self.at < self.text.len() && self.text[self.at] != b'\n' {
                    self.at += 1;
                }
            }
            b'\'' => self.single_quote(),
            b'"' => {
                self.put(b"", false);
                self.mark(Marks::QUOTED);
                self.open(Frame::Quote);
                self.at += 1;
            }
            b'$' => self.dollar(false),
            b'`' => self.backquote(false),
            b'<' | b'>' => self.redirection(),
            b'&' | b'|' | b';' => self.operator(),
            b'(' => self.bracket(),
            b')' => self.closing_bracket(),
            _ => {
                let rest = &self.text[self.at..];
                let length = rest.iter().position(|byte| ENDS_RUN.contains(byte)).unwrap_or(rest.len());
                let run = rest[..length.max(1)].to_vec();
                self.put(&run, true);
                self.at += run.len();
            }
        }
    }

    fn newline(&mut self) {
        self.end_word();
        let kind = self.list().kind;
        if matches!(kind, Kind::Array | Kind::Conditional) {
            if self.heres.last().is_some_and(|row| !row.is_empty()) {
                self.note(Beyond::Unsure);
            }
            self.at += 1;
            return;
        }
        if !self.list().needs || self.list().started {
            self.end_command(Some(Operator::Newline));
        }
        self.at += 1;
        self.bodies();
    }

    fn single_quote(&mut self) {
        let inner = self.at + 1;
        let end = self.text[inner..].iter().position(|byte| *byte == b'\'');
        let text = self.text[inner..end.map_or(self.text.len(), |end| inner + end)].to_vec();
        if end.is_none() {
            self.note(Beyond::Syntax);
        }
        self.put(&text, false);
        self.mark(Marks::QUOTED);
        self.at = inner + text.len() + usize::from(end.is_some());
    }

    /// Inside `"…"`, and inside the body of a here-document, where `"` means itself.
    fn in_quote(&mut self, body: bool) {
        match self.text[self.at] {
            b'"' if !body => {
                self.close();
                self.at += 1;
            }
            b'\\' => match self.text.get(self.at + 1) {
                Some(b'\n') => self.at += 2,
                Some(next @ (b'$' | b'`' | b'"' | b'\\')) => {
                    let next = *next;
                    self.put(&[next], false);
                    self.at += 2;
                }
                _ => {
                    self.put(b"\\", false);
                    self.at += 1;
                }
            },
            b'$' => self.dollar(true),
            b'`' => self.backquote(true),
            _ => {
                let rest = &self.text[self.at..];
                let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'$' | b'`'));
                let run = rest[..length.unwrap_or(rest.len()).max(1)].to_vec();
                self.put(&run, false);
                self.at += run.len();
            }
        }
    }

    fn in_parameter(&mut self) {
        match self.text[self.at] {
            b'}' => {
                self.close();
                self.at += 1;
            }
            b'"' => {
                self.open(Frame::Quote);
                self.at += 1;
            }
            b'\'' => {
                if self.list().quotes > 0 || self.is_body {
                    // Whether this quotes depends on the operator before it.
                    self.note(Beyond::Unsure);
                    self.at += 1;
                } else {
                    self.skip_single_quote();
                }
            }
            _ => self.in_expansion(),
        }
    }

    fn skip_single_quote(&mut self) {
        let inner = self.at + 1;
        match self.text[inner..].iter().position(|byte| *byte == b'\'') {
            Some(end) => self.at = inner + end + 1,
            None => self.at = self.text.len(),
        }
    }

    fn in_expansion(&mut self) {
        match self.text[self.at] {
            b'\\' => self.at = (self.at + 2).min(self.text.len()),
            b'$' => self.dollar(true),
            b'`' => self.backquote(true),
            b'<' | b'>' if self.text.get(self.at + 1) == Some(&b'(') => {
                self.note(Beyond::ProcessSubstitution);
                self.at += 2;
                self.open_list(Kind::Substitution);
            }
            _ => self.at += 1,
        }
    }

    fn in_arithmetic(&mut self) {
        let byte = self.text[self.at];
        let Some(Frame::Arithmetic { opened, square, depth, command }) = self.frames.last_mut() else {
            return;
        };
        let (opened, square, command) = (*opened, *square, *command);
        match byte {
            b'(' if !square => {
                *depth += 1;
                self.at += 1;
            }
            b'[' if square => {
                *depth += 1;
                self.at += 1;
            }
            b')' if !square && *depth > 0 => {
                *depth -= 1;
                self.at += 1;
            }
            b']' if square && *depth > 0 => {
                *depth -= 1;
                self.at += 1;
            }
            b']' if square => {
                self.close();
                self.at += 1;
            }
            b')' if !square => match self.peek_from(self.at + 1) {
                Some((b')', behind)) => {
                    self.close();
                    self.at = behind;
                    if command && self.list().head == Head::None {
                        let list = self.list();
                        list.compound = true;
                        list.commands += 1;
                    }
                }
                _ => {
                    // Not arithmetic: `( (…) …)`. Read again as commands.
                    self.close();
                    let length = self.at - opened;
                    self.plain_brackets.insert(opened);
                    if *self.again < length {
                        self.note(Beyond::Unsure);
                        *self.again = 0;
                    } else {
                        *self.again -= length;
                    }
                    self.at = opened + 1;
                    self.open_list(if command { Kind::Subshell } else { Kind::Substitution });
                }
            },
            b'"' => {
                self.open(Frame::Quote);
                self.at += 1;
            }
            b'\'' => self.skip_single_quote(),
            _ => self.in_expansion(),
        }
    }

    /// At a `$`. Inside quotes `$'` and `$"` mean nothing.
    fn dollar(&mut self, quoted: bool) {
        let dollar = self.at;
        match self.peek_from(self.at + 1) {
            Some((b'(', behind)) => {
                self.mark(Marks::EXPANDS);
                let first = behind - 1;
                let double = matches!(self.peek_from(behind), Some((b'(', _)));
                if double && !self.plain_brackets.contains(&first) && *self.again > 0 {
                    let inner = self.peek_from(behind).map_or(behind, |(_, at)| at);
                    self.note(Beyond::Arithmetic);
                    self.open(Frame::Arithmetic { opened: first, square: false, depth: 0, command: false });
                    self.at = inner;
                } else {
                    if double {
                        self.note(Beyond::Unsure);
                    }
                    self.note(Beyond::Substitution);
                    self.at = behind;
                    self.open_list(Kind::Substitution);
                }
            }
            Some((b'{', behind)) => {
                self.note(Beyond::Parameter);
                let name = &self.text[behind..];
                let length = name.iter().position(|c| !is_name_byte(*c)).unwrap_or(name.len());
                // `${HOME}/x` stands as `$HOME/x`.
                let mut raw = b"$".to_vec();
                raw.extend_from_slice(&name[..length]);
                if name.get(length) != Some(&b'}') {
                    raw.push(b'?');
                }
                self.put(&raw, false);
                self.mark(Marks::EXPANDS);
                self.open(Frame::Parameter);
                self.at = behind + length;
            }
            Some((b'[', behind)) => {
                self.note(Beyond::Arithmetic);
                self.mark(Marks::EXPANDS);
                self.open(Frame::Arithmetic { opened: dollar, square: true, depth: 0, command: false });
                self.at = behind;
            }
            Some((b'\'', behind)) if !quoted => {
                self.note(Beyond::DollarQuote);
                self.mark(Marks::DOLLAR_QUOTE);
                let (text, length, closed) = ansi(&self.text[behind..]);
                if !closed {
                    self.note(Beyond::Syntax);
                }
                self.put(&text, false);
                self.mark(Marks::QUOTED);
                self.at = behind + length;
            }
            Some((b'"', _)) if !quoted => {
                self.note(Beyond::DollarQuote);
                self.mark(Marks::DOLLAR_QUOTE);
                self.at = dollar + 1;
            }
            Some((c @ (b'?' | b'#' | b'!' | b'$'), behind)) => {
                self.put(&[b'$', c], false);
                self.mark(Marks::NUMBER);
                self.at = behind;
            }
            Some((c, behind)) if is_name_byte(c) || matches!(c, b'*' | b'@' | b'-') => {
                self.note(Beyond::Parameter);
                let mut raw = vec![b'$', c];
                let mut at = behind;
                if c.is_ascii_alphabetic() || c == b'_' {
                    while let Some((c, behind)) = self.peek_from(at).filter(|(c, _)| is_name_byte(*c)) {
                        raw.push(c);
                        at = behind;
                    }
                }
                self.put(&raw, false);
                self.mark(Marks::EXPANDS);
                self.at = at;
            }
            _ => {
                // It means itself.
                self.put(b"$", false);
                self.at = dollar + 1;
            }
        }
    }

    fn backquote(&mut self, quoted: bool) {
        self.note(Beyond::Substitution);
        self.mark(Marks::EXPANDS);
        let mut inner = Vec::new();
        let mut at = self.at + 1;
        loop {
            match self.text.get(at) {
                None => {
                    self.note(Beyond::Syntax);
                    break;
                }
                Some(b'`') => {
                    at += 1;
                    break;
                }
                Some(b'\\') => match self.text.get(at + 1) {
                    Some(next @ (b'`' | b'\\' | b'$')) => {
                        inner.push(*next);
                        at += 2;
                    }
                    Some(b'"') if quoted => {
                        inner.push(b'"');
                        at += 2;
                    }
                    _ => {
                        inner.push(b'\\');
                        at += 1;
                    }
                },
                Some(byte) => {
                    inner.push(*byte);
                    at += 1;
                }
            }
        }
        self.at = at;
        self.later(inner, false);
    }

    /// Puts a text within the text aside.
    fn later(&mut self, text: Vec<u8>, is_body: bool) {
        if text.len() > *self.again {
            self.note(Beyond::Unsure);
            return;
        }
        *self.again -= text.len();
        let depth = self.base + self.frames.len() + self.blocks;
        self.jobs.push(Job { text, is_body, depth });
    }

    fn redirection(&mut self) {
        let sign = self.text[self.at];
        let Some((next, behind)) = self.peek_from(self.at + 1) else {
            self.end_word();
            self.note(Beyond::Syntax);
            self.at += 1;
            return;
        };
        if next == b'(' {
            self.note(Beyond::ProcessSubstitution);
            self.mark(Marks::EXPANDS);
            self.at = behind;
            self.open_list(Kind::Substitution);
            return;
        }
        if matches!(self.list().kind, Kind::Array | Kind::Conditional) {
            self.end_word();
            if matches!(self.list().kind, Kind::Array | Kind::Conditional) {
                self.at += 1;
                return;
            }
        }
        // A number or `{name}` that touches the sign belongs to it.
        let mut named = false;
        let place = self.at;
        let list = self.list();
        let mut start = place;
        match &list.draft {
            Some(draft) if draft.is_number() => list.draft = None,
            Some(draft) if draft.is_braced_name() => {
                list.draft = None;
                named = true;
            }
            _ => self.end_word(),
        }
        if named {
            start = place.saturating_sub(1);
        }
        let (kind, behind, strips) = match (sign, next) {
            (b'<', b'<') => match self.peek_from(behind) {
                Some((b'<', behind)) => (RedirKind::HereString, behind, false),
                Some((b'-', behind)) => (RedirKind::Here, behind, true),
                _ => (RedirKind::Here, behind, false),
            },
            (_, b'&') => (RedirKind::Duplicate, behind, false),
            (b'<', b'>') => (RedirKind::Both, behind, false),
            (b'>', b'>' | b'|') => (RedirKind::Output, behind, false),
            (b'<', _) => (RedirKind::Input, self.at + 1, false),
            _ => (RedirKind::Output, self.at + 1, false),
        };
        // `>&file` is output to a file; the target tells.
        self.begin_redirection(kind, named, strips || (sign == b'>' && next == b'&'), start);
        self.at = behind;
    }

    fn begin_redirection(&mut self, kind: RedirKind, named: bool, flag: bool, start: usize) {
        if self.list().redir.is_some() || self.list().head != Head::None && self.list().head != Head::Time {
            self.note(Beyond::Syntax);
        }
        let list = self.list();
        list.redir = Some((kind, named, flag));
        if !list.started && !list.compound {
            list.started = true;
            list.command.start = start;
        }
    }

    fn operator(&mut self) {
        self.end_word();
        let first = self.text[self.at];
        let next = self.peek_from(self.at + 1);
        if matches!(self.list().kind, Kind::Array | Kind::Conditional) {
            if self.list().kind == Kind::Array {
                self.note(Beyond::Syntax);
            }
            self.at += 1;
            return;
        }
        if first == b'&'
            && let Some((b'>', behind)) = next
        {
            let behind = match self.peek_from(behind) {
                Some((b'>', behind)) => behind,
                _ => behind,
            };
            let start = self.at;
            self.begin_redirection(RedirKind::Output, false, false, start);
            self.at = behind;
            return;
        }
        let (operator, behind) = match (first, next) {
            (b'&', Some((b'&', behind))) => (Operator::And, behind),
            (b'&', _) => (Operator::Background, self.at + 1),
            (b'|', Some((b'|' | b'&', behind))) => (Operator::Joins, behind),
            (b'|', _) => (Operator::Joins, self.at + 1),
            (b';', Some((b';', behind))) => match self.peek_from(behind) {
                Some((b'&', behind)) => (Operator::EndsCase, behind),
                _ => (Operator::EndsCase, behind),
            },
            (b';', Some((b'&', behind))) => (Operator::EndsCase, behind),
            _ => (Operator::Semicolon, self.at + 1),
        };
        if self.list().head == Head::CasePattern && operator == Operator::Joins {
            self.at = behind;
            return;
        }
        if operator == Operator::Background {
            self.note(Beyond::Background);
        }
        self.end_command(Some(operator));
        self.at = behind;
    }

    fn bracket(&mut self) {
        let first = self.at;
        let kind = self.list().kind;
        if kind == Kind::Conditional {
            self.end_word();
            self.at += 1;
            return;
        }
        if kind == Kind::Array {
            self.end_word();
            self.note(Beyond::Syntax);
            self.at += 1;
            return;
        }
        if self.list().head == Head::CasePattern {
            self.end_word();
            self.at += 1;
            return;
        }
        if self.list().expansions == 0 && self.list().draft.as_ref().is_some_and(Draft::awaits_array) {
            self.note(Beyond::Array);
            self.mark(Marks::EXPANDS);
            self.at += 1;
            self.open_list(Kind::Array);
            return;
        }
        self.end_word();
        if self.list().head == Head::LoopName {
            // `for ((…))`
            self.note(Beyond::Arithmetic);
            self.list().head = Head::None;
            if let Some((b'(', inner)) = self.peek_from(first + 1) {
                self.open(Frame::Arithmetic { opened: first, square: false, depth: 0, command: true });
                self.at = inner;
                return;
            }
        }
        if self.list().started {
            // `name ()` defines a function; anything else is no grammar.
            let mut at = first + 1;
            while let Some((b' ' | b'\t', behind)) = self.peek_from(at) {
                at = behind;
            }
            if let Some((b')', behind)) = self.peek_from(at)
                && self.list().command.words.len() == 1
                && self.list().command.redirs.is_empty()
            {
                self.note(Beyond::Function);
                self.at = behind;
                self.reset_command();
                self.list().needs = true;
                return;
            }
            self.note(Beyond::Syntax);
            self.end_command(Some(Operator::Semicolon));
        } else if self.list().compound && !self.list().needs {
            self.note(Beyond::Syntax);
        }
        let double = matches!(self.peek_from(first + 1), Some((b'(', _)));
        if double && !self.plain_brackets.contains(&first) && *self.again > 0 {
            self.note(Beyond::Conditional);
            let inner = self.peek_from(first + 1).map_or(first + 1, |(_, at)| at);
            self.list().needs = false;
            self.open(Frame::Arithmetic { opened: first, square: false, depth: 0, command: true });
            self.at = inner;
            return;
        }
        if double {
            self.note(Beyond::Unsure);
        }
        self.list().needs = false;
        self.list().compound = false;
        self.at += 1;
        self.open_list(Kind::Subshell);
    }

    fn closing_bracket(&mut self) {
        self.end_word();
        if self.list().head == Head::CasePattern {
            let list = self.list();
            list.head = Head::None;
            list.needs = false;
            self.at += 1;
            return;
        }
        match self.list().kind {
            Kind::Whole => {
                self.note(Beyond::Syntax);
                self.end_command(Some(Operator::Semicolon));
                self.at += 1;
            }
            Kind::Conditional => self.at += 1,
            Kind::Subshell | Kind::Substitution | Kind::Array => {
                self.at += 1;
                self.close_list();
            }
        }
    }

    /// Reads the bodies that begin on this line.
    fn bodies(&mut self) {
        let rows = self.heres.len();
        let row = std::mem::take(&mut self.heres[rows - 1]);
        for here in row {
            let body = self.at;
            let end = loop {
                if self.at >= self.text.len() {
                    self.note(Beyond::Syntax);
                    break self.at;
                }
                let start = self.at;
                let rest = &self.text[start..];
                let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                self.at = (start + length + 1).min(self.text.len());
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
            let text = &self.text[body..end];
            if !here.quoted && text.iter().any(|byte| matches!(byte, b'$' | b'`' | b'\\')) {
                self.script.note(Beyond::HereBody, if self.derived { 0 } else { body });
                let text = text.to_vec();
                self.later(text, true);
            }
        }
    }

    fn end_word(&mut self) {
        let end = self.at;
        let list = self.list();
        let Some(draft) = list.draft.take() else { return };
        let word = draft.finish(end);
        if let Some((kind, named, flag)) = list.redir.take() {
            self.end_redirection(kind, named, flag, word);
            return;
        }
        match list.kind {
            Kind::Array => return,
            Kind::Conditional => {
                if word.is_bare() && word.text == "]]" {
                    self.close_list();
                }
                return;
            }
            _ => {}
        }
        if self.takes_head(&word) {
            return;
        }
        if self.list().is_fresh() && word.is_bare() && self.reserved(&word) {
            return;
        }
        let list = self.list();
        if list.compound && !list.needs && !list.started {
            self.note(Beyond::Syntax);
        }
        let list = self.list();
        list.compound = false;
        if !list.started {
            list.started = true;
            list.command.start = word.start;
        }
        list.command.end = word.end;
        if list.command.words.is_empty() && word.is_assignment() {
            list.command.assigns.push(word);
        } else {
            list.command.words.push(word);
        }
    }

    fn end_redirection(&mut self, kind: RedirKind, named: bool, flag: bool, target: Word) {
        let mut kind = kind;
        if kind == RedirKind::Here {
            let odd = [Marks::EXPANDS, Marks::NUMBER, Marks::DOLLAR_QUOTE];
            if odd.iter().any(|mark| target.marks.has(*mark)) || target.text.contains('\n') {
                // bash takes such an end mark in its own way.
                self.note(Beyond::Unsure);
            }
            let here =
                Here { end: target.text.clone(), strips_tabs: flag, quoted: target.marks.has(Marks::QUOTED) };
            if let Some(row) = self.heres.last_mut() {
                row.push(here);
            }
        }
        let is_descriptor = target.is_bare()
            && (target.text == "-"
                || target.text.trim_end_matches('-').bytes().all(|c| c.is_ascii_digit())
                    && target.text.bytes().filter(|c| *c == b'-').count() <= 1);
        if kind == RedirKind::Duplicate && !is_descriptor {
            kind = if flag { RedirKind::Output } else { RedirKind::Both };
        }
        let end = target.end;
        let list = self.list();
        list.command.end = end;
        list.command.redirs.push(Redir { kind, target, named });
    }

    /// Words of a compound command's head. Whether the word was one.
    fn takes_head(&mut self, word: &Word) -> bool {
        let bare = word.is_bare().then_some(word.text.as_str());
        let list = self.list();
        match list.head {
            Head::None => false,
            Head::LoopName => {
                list.head = Head::LoopWords;
                true
            }
            Head::LoopWords => {
                if bare == Some("do") {
                    list.head = Head::None;
                    list.needs = true;
                }
                true
            }
            Head::CaseWord => {
                if bare == Some("in") {
                    list.head = Head::CasePattern;
                }
                true
            }
            Head::CasePattern => {
                if bare == Some("esac") {
                    list.head = Head::None;
                    self.close_block(Block::Case);
                }
                true
            }
            Head::FunctionName => {
                list.head = Head::None;
                list.needs = true;
                // The brackets are optional.
                let mut at = self.at;
                while let Some((b' ' | b'\t', behind)) = self.peek_from(at) {
                    at = behind;
                }
                if let Some((b'(', inner)) = self.peek_from(at) {
                    let mut at = inner;
                    while let Some((b' ' | b'\t', behind)) = self.peek_from(at) {
                        at = behind;
                    }
                    if let Some((b')', behind)) = self.peek_from(at) {
                        self.at = behind;
                    }
                }
                true
            }
            Head::Time => {
                if matches!(bare, Some("-p" | "--")) {
                    return true;
                }
                list.head = Head::None;
                false
            }
            Head::Coproc => {
                list.head = Head::None;
                // `coproc NAME {`: the name is one only before a compound command.
                let mut at = self.at;
                while let Some((b' ' | b'\t', behind)) = self.peek_from(at) {
                    at = behind;
                }
                matches!(self.peek_from(at), Some((b'{' | b'(', _))) && bare.is_some_and(|name| name != "{")
            }
        }
    }

    /// A reserved word where a command may begin. Whether it was one.
    fn reserved(&mut self, word: &Word) -> bool {
        let text = word.text.as_str();
        match text {
            "{" => self.open_block(Block::Brace),
            "}" => self.close_block(Block::Brace),
            "!" => self.list().needs = true,
            "time" => {
                let start = word.start;
                let list = self.list();
                list.head = Head::Time;
                list.command.timed.get_or_insert(start);
                list.compound = false;
                list.needs = false;
                return true;
            }
            "if" => self.flow(Some(Block::If)),
            "while" | "until" => self.flow(Some(Block::Loop)),
            "then" | "elif" | "else" | "do" => self.flow(None),
            "fi" => self.close_block(Block::If),
            "done" => self.close_block(Block::Loop),
            "esac" => self.close_block(Block::Case),
            "for" | "select" => {
                self.flow(Some(Block::Loop));
                self.list().head = Head::LoopName;
            }
            "case" => {
                self.flow(Some(Block::Case));
                self.list().head = Head::CaseWord;
            }
            "function" => {
                self.note(Beyond::Function);
                self.list().head = Head::FunctionName;
            }
            "coproc" => {
                self.note(Beyond::Coproc);
                self.list().head = Head::Coproc;
            }
            "[[" => {
                self.note(Beyond::Conditional);
                self.list().needs = false;
                self.open_list(Kind::Conditional);
            }
            _ => return false,
        }
        true
    }

    fn flow(&mut self, block: Option<Block>) {
        self.note(Beyond::ControlFlow);
        if let Some(block) = block {
            self.open_block(block);
        }
        let list = self.list();
        list.needs = true;
        list.compound = false;
    }

    fn open_block(&mut self, block: Block) {
        if self.list().compound && !self.list().needs {
            self.note(Beyond::Syntax);
        }
        let list = self.list();
        list.blocks.push(block);
        list.needs = true;
        list.compound = false;
        self.blocks += 1;
    }

    fn close_block(&mut self, block: Block) {
        if block != Block::Brace {
            self.note(Beyond::ControlFlow);
        }
        // `{ }` and `&& }` are no grammar; `case x in esac` is.
        let list = self.list();
        let wrong = list.blocks.last() != Some(&block) || (list.needs && block != Block::Case);
        if list.blocks.last() == Some(&block) {
            list.blocks.pop();
            self.blocks -= 1;
        }
        let list = self.list();
        list.needs = false;
        list.compound = true;
        list.commands += 1;
        if wrong {
            self.note(Beyond::Syntax);
        }
    }

    fn reset_command(&mut self) {
        let list = self.list();
        list.command = Simple::default();
        list.started = false;
    }

    fn end_command(&mut self, operator: Option<Operator>) {
        if self.list().redir.take().is_some() {
            self.note(Beyond::Syntax);
        }
        let derived = self.derived;
        let substituted = derived || self.heres.len() > 1;
        let list = self.list();
        let head = list.head;
        if head == Head::Time {
            list.head = Head::None;
        }
        let had = list.started || list.compound || head == Head::Time;
        let fills = list.started || !list.command.redirs.is_empty();
        if fills {
            let mut command = std::mem::take(&mut list.command);
            command.scope = list.scope;
            command.then = Some(if operator == Some(Operator::And) { After::And } else { After::Other });
            command.derived = derived;
            command.substituted = substituted;
            list.commands += 1;
            self.script.commands.push(command);
        } else {
            list.command = Simple::default();
        }
        let list = self.list();
        list.started = false;
        if had {
            list.compound = false;
            list.needs = false;
        }
        let wrong = match operator {
            // Newlines are free where a command may begin.
            None | Some(Operator::Newline) => false,
            Some(Operator::EndsCase) => {
                let in_case = list.blocks.last() == Some(&Block::Case);
                list.needs = false;
                if in_case {
                    list.head = Head::CasePattern;
                }
                !in_case
            }
            Some(Operator::Semicolon) if list.head == Head::LoopWords => false,
            Some(_) => !had,
        };
        if matches!(operator, Some(Operator::Newline | Operator::Semicolon)) && list.head == Head::LoopWords {
            list.head = Head::None;
        }
        if matches!(operator, Some(Operator::And | Operator::Joins)) {
            list.needs = true;
        }
        if wrong {
            self.note(Beyond::Syntax);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    And,
    /// `||`, `|`, `|&`
    Joins,
    Semicolon,
    Newline,
    Background,
    /// `;;`, `;&`, `;;&`
    EndsCase,
}

/// Bytes that end a run of ordinary characters.
const ENDS_RUN: &[u8] = b" \t\n\\'\"$`<>&|;()#";

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How many bytes the first character has.
fn character(text: &[u8]) -> usize {
    let wide = match text.first() {
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(0xc0..) => 2,
        _ => 1,
    };
    wide.min(text.len())
}

/// Decodes the inside of `$'…'`: the bytes, how far it goes with its closing sign, and whether it
/// is closed.
fn ansi(text: &[u8]) -> (Vec<u8>, usize, bool) {
    let mut out = Vec::new();
    let mut at = 0;
    let mut ended = false;
    let digits = |from: usize, base: u32, most: usize| -> (u32, usize) {
        let taken = text[from.min(text.len())..]
            .iter()
            .take(most)
            .take_while(|c| char::from(**c).is_digit(base))
            .count();
        let value = text[from.min(text.len())..][..taken]
            .iter()
            .fold(0u32, |sum, c| sum * base + char::from(*c).to_digit(base).unwrap_or(0));
        (value, taken)
    };
    while let Some(&byte) = text.get(at) {
        if byte == b'\'' {
            return (out, at + 1, true);
        }
        if byte != b'\\' {
            if !ended {
                out.push(byte);
            }
            at += 1;
            continue;
        }
        let Some(&kind) = text.get(at + 1) else { break };
        let mut push = |bytes: &[u8]| {
            if !ended {
                out.extend_from_slice(bytes);
            }
        };
        at += 2;
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
                let (value, taken) = digits(at - 1, 8, 3);
                at += taken - 1;
                // A NUL ends the text.
                if value & 0xff == 0 {
                    ended = true;
                } else {
                    push(&[(value & 0xff) as u8]);
                }
            }
            b'x' => match digits(at, 16, 2) {
                (_, 0) => push(b"\\x"),
                (0, _) => ended = true,
                (value, taken) => {
                    push(&[(value & 0xff) as u8]);
                    at += taken;
                }
            },
            b'u' | b'U' => match digits(at, 16, if kind == b'u' { 4 } else { 8 }) {
                (_, 0) => push(&[b'\\', kind]),
                (0, _) => ended = true,
                (value, taken) => {
                    at += taken;
                    if let Some(c) = char::from_u32(value) {
                        push(c.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
            },
            b'c' => {
                if let Some(c) = text.get(at) {
                    push(&[c & 0x1f]);
                    at += 1;
                }
            }
            other => push(&[b'\\', other]),
        }
    }
    (out, text.len(), false)
}
