//! The lexer: from the text of a command line to its simple commands, in linear time and without
//! recursion.
//!
//! It knows bash's grammar well enough to find every command at any position. It parses the *plain*
//! part of the grammar (lists, pipelines, groups, words, redirections, here-documents) exactly. Other
//! syntax is recorded as unsupported and is never allowed by a rule for a part of a line.
//!
//! Nested texts (backquotes, bodies of here-documents that the shell expands) are parsed again
//! separately. The amount of such text is bounded, and exceeding the bound is recorded.

mod commands;
mod expand;
mod literal_text;
pub(super) mod loops;
mod operators;
pub(super) mod syntax;
pub(super) mod word;

use syntax::{RedirKind, Script, SimpleCommand, UnsupportedSyntax};
use word::{Marks, Quoting, WordBuilder};

/// Maximum bytes of nested texts that may be parsed again, for a text of this length.
pub(super) fn max_reparsed_bytes(length: usize) -> usize {
    length + 64 * 1024
}

/// An open construct.
#[derive(Debug)]
enum Frame {
    /// Commands; belongs to the last of `lists`.
    List,
    /// `"…"`
    Quote,
    /// `${…}`
    Parameter,
    /// `((…))`, `$((…))`, `$[…]`: the position of the first sign, the kind of bracket, open brackets,
    /// and whether it is in command position.
    Arithmetic { opened: usize, square: bool, depth: usize, command: bool },
    /// The body of a here-document.
    Body,
}

/// What a list of commands is part of, which decides the sign that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListKind {
    /// The whole text.
    Whole,
    /// `( … )`
    Subshell,
    /// `$( … )`, `<( … )`
    Substitution,
    /// `name=( … )`
    Array,
    /// `[[ … ]]`
    Conditional,
}

/// A compound command whose end has not been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Brace,
    If,
    Loop,
    /// A `for` loop, an index of [`Script::loops`].
    For(usize),
    Case,
}

/// Words of a compound command's head.
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

/// A redirection without its target.
#[derive(Clone, Copy, Debug)]
struct OpenRedirection {
    kind: RedirKind,
    /// See [`syntax::Redirection::named`].
    named: bool,
    /// `<<-`: leading tabs of the here-document's lines are removed.
    strips_tabs: bool,
    /// Whether its sign is `>`: then `>&` with a file is output.
    is_output: bool,
}

/// An open list of commands.
#[derive(Debug)]
struct List {
    kind: ListKind,
    /// Its subshell, an index of [`Script::scopes`].
    scope: usize,
    /// The open blocks, the innermost last.
    blocks: Vec<Block>,
    /// The part of a compound command's head that comes next.
    head: Head,
    /// The current word.
    draft: Option<WordBuilder>,
    /// The current command.
    command: SimpleCommand,
    /// Whether the current command has a word or a redirection.
    is_started: bool,
    /// The redirection whose target is the next word.
    redir: Option<OpenRedirection>,
    /// Start of the redirection, including the descriptor before it.
    redir_start: usize,
    /// A `|` needs its right side, which may not begin with `!`.
    is_after_pipe: bool,
    /// A compound command has just ended.
    is_after_compound: bool,
    /// An operator or a reserved word needs the command that follows it.
    needs_command: bool,
    /// See [`SimpleCommand::run`] and [`SimpleCommand::joined`].
    run: usize,
    joined: bool,
    /// Number of commands that have ended.
    commands: usize,
    /// Number of open `${`, `((` and `$[` around the next byte.
    expansions: usize,
    /// Number of open `"`.
    quotes: usize,
    /// The last simple command; `None` after a compound one.
    last_command: Option<usize>,
    /// The command whose output the next one reads.
    feeds_next: Option<usize>,
    /// For a substitution between quotes: what is known of it as a literal text.
    literal: Option<LiteralText>,
}

/// A substitution that may be `$(cat <<'EOF' … )`.
#[derive(Debug)]
struct LiteralText {
    /// Position of the `$`.
    dollar: usize,
    /// Number of commands before it.
    commands: usize,
    /// The text of its here-document, unless there are several or the shell expands it.
    body: Option<Vec<u8>>,
    /// Number of its here-documents.
    bodies: usize,
}

impl List {
    /// An empty list.
    fn new(kind: ListKind, scope: usize, run: usize) -> Self {
        Self {
            kind,
            scope,
            run,
            joined: false,
            blocks: Vec::new(),
            head: Head::None,
            draft: None,
            command: SimpleCommand::default(),
            is_started: false,
            redir: None,
            redir_start: 0,
            is_after_pipe: false,
            is_after_compound: false,
            needs_command: false,
            commands: 0,
            expansions: 0,
            quotes: 0,
            last_command: None,
            feeds_next: None,
            literal: None,
        }
    }

    /// Whether the current command has no word and no redirection.
    fn is_fresh(&self) -> bool {
        !self.is_started && self.redir.is_none()
    }
}

/// A here-document whose body follows on a later line.
#[derive(Debug)]
struct HereDocument {
    /// The line that ends it.
    end: String,
    strips_tabs: bool,
    /// Whether its end mark is quoted, so that the shell expands nothing in it.
    quoted: bool,
}

/// A nested text that is parsed later.
#[derive(Debug)]
struct TextJob {
    text: Vec<u8>,
    /// Whether it is the body of a here-document.
    is_body: bool,
    /// Its nesting.
    depth: usize,
}

/// Parses a command line. Total: any text has a result.
pub(crate) fn lex(text: &str) -> Script {
    lex_within(text, &mut max_reparsed_bytes(text.len()))
}

/// Parses one of several texts that share a limit for repeated parsing: the remaining bytes.
pub(super) fn lex_within(text: &str, reparse_budget: &mut usize) -> Script {
    let mut script = Script { scopes: vec![0], ..Script::default() };
    let mut jobs = Vec::new();
    lex_text(text.as_bytes(), false, 0, false, &mut script, &mut jobs, reparse_budget);
    while let Some(job) = jobs.pop() {
        lex_text(&job.text, job.is_body, job.depth, true, &mut script, &mut jobs, reparse_budget);
    }
    script
}

/// Parses one text. Adds its commands to `script`, and the texts nested in it to `jobs`.
fn lex_text(
    text: &[u8],
    is_body: bool,
    depth: usize,
    derived: bool,
    script: &mut Script,
    jobs: &mut Vec<TextJob>,
    reparse_budget: &mut usize,
) {
    script.runs += 1;
    let run = script.runs;
    let mut lexer = Lexer {
        text,
        position: 0,
        frames: vec![if is_body { Frame::Body } else { Frame::List }],
        lists: vec![List::new(ListKind::Whole, 0, run)],
        pending_heres: vec![Vec::new()],
        plain_brackets: std::collections::HashSet::new(),
        base: depth,
        blocks: 0,
        derived,
        is_body,
        script,
        jobs,
        reparse_budget,
    };
    lexer.run();
}

/// The state while one text is parsed.
struct Lexer<'a> {
    text: &'a [u8],
    /// The next byte.
    position: usize,
    /// The open constructs, the innermost last.
    frames: Vec<Frame>,
    /// The open lists: one for each [`Frame::List`].
    lists: Vec<List>,
    /// Pending here-documents: one row for the line and for each open substitution.
    pending_heres: Vec<Vec<HereDocument>>,
    /// Positions of `((` that turned out to be two brackets.
    plain_brackets: std::collections::HashSet<usize>,
    /// Nesting of the text in other texts.
    base: usize,
    /// Number of open blocks in all lists.
    blocks: usize,
    /// Whether the text is nested in another one.
    derived: bool,
    /// Whether the text is the body of a here-document.
    is_body: bool,
    script: &'a mut Script,
    /// Nested texts that are parsed later.
    jobs: &'a mut Vec<TextJob>,
    /// Remaining bytes of texts that may be parsed again.
    reparse_budget: &'a mut usize,
}

impl Lexer<'_> {
    /// Parses the whole text.
    fn run(&mut self) {
        while self.position < self.text.len() {
            let depth = self.base + self.frames.len() + self.blocks;
            self.script.depth = self.script.depth.max(depth);
            match self.frames.last() {
                Some(Frame::List) => self.in_list(),
                Some(Frame::Quote | Frame::Body) => self.in_quote(),
                Some(Frame::Parameter) => self.in_parameter(),
                Some(Frame::Arithmetic { .. }) => self.in_arithmetic(),
                None => break,
            }
        }
        self.finish();
    }

    /// At the end of the text closes all open constructs, so that their commands are found.
    fn finish(&mut self) {
        if matches!(self.frames.last(), Some(Frame::List)) {
            // This may be the end of a `[[ … ]]`.
            self.end_word();
        }
        if self.frames.len() > 1 {
            self.note(UnsupportedSyntax::Syntax);
        }
        while let Some(frame) = self.frames.pop() {
            if !matches!(frame, Frame::List) {
                continue;
            }
            self.end_word();
            self.end_command(None);
            let list = self.list();
            if list.needs_command || !list.blocks.is_empty() || list.head != Head::None {
                self.note(UnsupportedSyntax::Syntax);
            }
            if self.lists.len() > 1 {
                self.lists.pop();
            }
        }
        if self.pending_heres.iter().any(|row| !row.is_empty()) {
            self.note(UnsupportedSyntax::Syntax);
        }
    }

    /// Records syntax that is not understood at the current position. Nested texts count as position 0.
    fn note(&mut self, what: UnsupportedSyntax) {
        self.script.note(what, if self.derived { 0 } else { self.position });
    }

    /// Records a range of the text that does not affect which commands run.
    fn note_ignorable(&mut self, start: usize, end: usize) {
        if !self.derived {
            self.script.ignorable.push((start, end));
        }
    }

    /// The byte at `at`, with continued lines joined, and the position after it.
    fn peek_from(&self, mut position: usize) -> Option<(u8, usize)> {
        while self.text[position.min(self.text.len())..].starts_with(b"\\\n") {
            position += 2;
        }
        self.text.get(position).map(|byte| (*byte, position + 1))
    }

    /// The innermost open list.
    fn list(&mut self) -> &mut List {
        let last = self.lists.len() - 1;
        &mut self.lists[last]
    }

    /// Appends to the current word. Text inside an expansion belongs to no word.
    fn push_bytes(&mut self, bytes: &[u8], quoting: Quoting) {
        let position = self.position;
        let list = self.list();
        if list.expansions == 0 {
            list.draft.get_or_insert_with(|| WordBuilder::new(position)).push(bytes, quoting);
        }
    }

    /// Adds a mark to the current word, and begins a word if there is none.
    fn mark(&mut self, mark: Marks) {
        self.push_bytes(b"", Quoting::Bare);
        if let Some(draft) = &mut self.list().draft {
            draft.mark(mark);
        }
    }

    /// Opens a construct.
    fn open(&mut self, frame: Frame) {
        let list = self.list();
        match frame {
            Frame::Quote => list.quotes += 1,
            Frame::Parameter | Frame::Arithmetic { .. } => list.expansions += 1,
            Frame::List | Frame::Body => {}
        }
        self.frames.push(frame);
    }

    /// Closes the innermost construct, which is not a list.
    fn close(&mut self) {
        let frame = self.frames.pop();
        let list = self.list();
        match frame {
            Some(Frame::Quote) => list.quotes -= 1,
            Some(Frame::Parameter | Frame::Arithmetic { .. }) => list.expansions -= 1,
            Some(Frame::List | Frame::Body) | None => {}
        }
    }

    /// Opens a list of commands.
    fn open_list(&mut self, kind: ListKind) {
        let scope = match kind {
            ListKind::Array | ListKind::Conditional => self.list().scope,
            _ => {
                let parent = self.list().scope;
                self.script.scopes.push(parent);
                self.script.scopes.len() - 1
            }
        };
        let run = self.list().run;
        if matches!(kind, ListKind::Subshell | ListKind::Conditional) {
            self.list().feeds_next = None;
        }
        self.lists.push(List::new(kind, scope, run));
        self.frames.push(Frame::List);
        if kind == ListKind::Substitution {
            self.pending_heres.push(Vec::new());
        }
    }

    /// Closes the innermost list, with its last word and command.
    fn close_list(&mut self) {
        self.end_word();
        self.end_command(None);
        let Some(list) = self.lists.pop() else { return };
        self.blocks -= list.blocks.len();
        self.frames.pop();
        if list.needs_command || !list.blocks.is_empty() || list.head != Head::None {
            self.note(UnsupportedSyntax::Syntax);
        }
        match list.kind {
            ListKind::Substitution => {
                // If a body is not inside the substitution, it follows after it.
                if let Some(row) = self.pending_heres.pop()
                    && !row.is_empty()
                {
                    self.note(UnsupportedSyntax::Unsure);
                    if let Some(outer) = self.pending_heres.last_mut() {
                        outer.extend(row);
                    }
                }
                if let Some(literal) = list.literal {
                    self.end_literal_text(literal);
                }
            }
            ListKind::Subshell => {
                if list.commands == 0 {
                    self.note(UnsupportedSyntax::Syntax);
                }
                let end = self.position;
                let list = self.list();
                list.is_after_compound = true;
                list.last_command = None;
                list.commands += 1;
                list.command = SimpleCommand { start: end, end, ..SimpleCommand::default() };
            }
            ListKind::Conditional => {
                let list = self.list();
                list.is_after_compound = true;
                list.commands += 1;
            }
            ListKind::Array | ListKind::Whole => {}
        }
    }

    /// Reads the next sign where commands and words stand.
    fn in_list(&mut self) {
        let byte = self.text[self.position];
        if byte == b'\\' {
            match self.text.get(self.position + 1) {
                Some(b'\n') => self.position += 2,
                Some(_) => {
                    let text = self.text;
                    let length = first_char_bytes(&text[self.position + 1..]);
                    self.push_bytes(&text[self.position + 1..self.position + 1 + length], Quoting::Quoted);
                    self.position += 1 + length;
                }
                None => {
                    self.note(UnsupportedSyntax::Syntax);
                    self.push_bytes(b"\\", Quoting::Quoted);
                    self.position += 1;
                }
            }
            return;
        }
        match byte {
            b' ' | b'\t' => {
                self.end_word();
                self.position += 1;
            }
            b'\n' => self.newline(),
            b'#' if self.list().draft.is_none() => {
                while self.position < self.text.len() && self.text[self.position] != b'\n' {
                    self.position += 1;
                }
            }
            b'\'' => self.single_quote(),
            b'"' => {
                self.push_bytes(b"", Quoting::Quoted);
                self.mark(Marks::QUOTED);
                self.open(Frame::Quote);
                self.position += 1;
            }
            b'$' => self.dollar(Quoting::Bare),
            b'`' => self.backquote(Quoting::Bare),
            b'<' | b'>' => self.redirection(),
            b'&' | b'|' | b';' => self.operator(),
            b'(' => self.bracket(),
            b')' => self.closing_bracket(),
            _ => {
                let text = self.text;
                let mut end = self.position + 1;
                while end < text.len() && !ENDS_RUN[usize::from(text[end])] {
                    end += 1;
                }
                self.push_bytes(&text[self.position..end], Quoting::Bare);
                self.position = end;
            }
        }
    }
}

/// The sign between two commands.
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

/// Whether a byte ends a run of ordinary characters.
const ENDS_RUN: [bool; 256] = {
    let mut ends = [false; 256];
    let bytes = b" \t\n\\'\"$`<>&|;()#";
    let mut position = 0;
    while position < bytes.len() {
        ends[bytes[position] as usize] = true;
        position += 1;
    }
    ends
};

/// Whether a byte may be part of a variable's name.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Number of bytes of the first character.
fn first_char_bytes(text: &[u8]) -> usize {
    let wide = match text.first() {
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(0xc0..) => 2,
        _ => 1,
    };
    wide.min(text.len())
}
