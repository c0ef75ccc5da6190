//! Code blocks, coloured by their language. Their lines are indented and not wrapped, so that a user can copy the
//! code from the terminal.

use std::sync::OnceLock;

use syntect::parsing::{ParseState, ScopeStack, ScopeStackOp, SyntaxSet};

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};

/// Indentation of code.
pub(super) const INDENT: &str = "    ";

/// Longer lines have no colours, and neither have lines after this many in a block. The time that a grammar
/// takes depends on the text.
const MAX_LINE_BYTES: usize = 1_000;
const MAX_COLOURED_LINES: usize = 3_000;

/// The first line of a fenced code block.
pub(super) struct Fence {
    mark: char,
    length: usize,
    language: String,
}

impl Fence {
    /// The fence that a line opens.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest = line.trim_start_matches(' ');
        let mark = rest.chars().next().filter(|c| indent < 4 && matches!(c, '`' | '~'))?;
        let length = rest.chars().take_while(|c| *c == mark).count();
        let info = rest[length..].trim();
        // If backticks follow on the same line, this is a code span.
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        let language = info.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
        is_fence.then_some(Self { mark, length, language })
    }

    pub(super) fn language(&self) -> &str {
        &self.language
    }

    /// Whether a line closes the block.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

fn grammars() -> &'static SyntaxSet {
    static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
    GRAMMARS.get_or_init(SyntaxSet::load_defaults_newlines)
}

/// The name of a similar language with a grammar, for languages without one.
fn grammar_name(language: &str) -> &str {
    match language {
        "ts" | "tsx" | "typescript" | "jsx" | "mjs" | "cjs" => "js",
        "shell" | "console" | "shell-session" | "zsh" | "fish" => "sh",
        "toml" | "ini" | "cfg" | "conf" => "properties",
        "jsonc" | "json5" | "jsonl" => "json",
        "patch" => "diff",
        "kotlin" | "kt" | "swift" => "java",
        "c++" | "cuda" => "cpp",
        "docker" | "dockerfile" => "sh",
        other => other,
    }
}

/// The lines of a code block, in order.
pub(super) struct CodeBlock {
    state: Option<(ParseState, ScopeStack)>,
    lines: usize,
}

impl CodeBlock {
    /// Starts a block in this language. Unknown languages have no colours.
    pub(super) fn new(language: &str) -> Self {
        let name = grammar_name(language);
        let grammar = (!name.is_empty()).then(|| grammars().find_syntax_by_token(name)).flatten();
        Self { state: grammar.map(|grammar| (ParseState::new(grammar), ScopeStack::new())), lines: 0 }
    }

    pub(super) fn line(&mut self, text: &str) -> StyledLine {
        self.lines += 1;
        if text.len() > MAX_LINE_BYTES || self.lines > MAX_COLOURED_LINES {
            self.state = None;
        }
        let coloured = self.state.as_mut().and_then(|(state, stack)| colour_line(state, stack, text));
        if coloured.is_none() {
            self.state = None;
        }
        let pieces =
            coloured.unwrap_or_else(|| vec![(Tone::Plain, escape::escape_decoded(text).into_owned())]);
        StyledLine(pieces).with_lead(Tone::Plain, INDENT)
    }

    /// A line that may still grow.
    pub(super) fn unfinished(&self, text: &str) -> StyledLine {
        StyledLine::new(Tone::Plain, format!("{INDENT}{}", escape::escape_decoded(text)))
    }
}

fn colour_line(state: &mut ParseState, stack: &mut ScopeStack, text: &str) -> Option<Vec<(Tone, String)>> {
    let line = format!("{text}\n");
    let ops: Vec<(usize, ScopeStackOp)> = state.parse_line(&line, grammars()).ok()?;
    let mut pieces: Vec<(Tone, String)> = Vec::new();
    let mut from = 0;
    let mut push = |text: &str, stack: &ScopeStack| {
        let text = text.trim_end_matches('\n');
        if !text.is_empty() {
            let tone = tone(stack);
            match pieces.last_mut() {
                Some((last, piece)) if *last == tone => piece.push_str(&escape::escape_decoded(text)),
                _ => pieces.push((tone, escape::escape_decoded(text).into_owned())),
            }
        }
    };
    for (at, op) in &ops {
        push(line.get(from..*at)?, stack);
        from = *at;
        stack.apply(op).ok()?;
    }
    push(line.get(from..)?, stack);
    Some(pieces)
}

/// The tone of the innermost scope that has one.
fn tone(stack: &ScopeStack) -> Tone {
    let of = |name: &str| {
        let is = |start: &str| name.starts_with(start);
        match () {
            () if is("comment") || is("punctuation.definition.comment") => Some(Tone::Dim),
            () if is("markup.inserted") => Some(Tone::Good),
            () if is("markup.deleted") => Some(Tone::Bad),
            () if is("string") || is("punctuation.definition.string") => Some(Tone::Literal),
            () if is("constant") => Some(Tone::Number),
            () if is("keyword.operator") => Some(Tone::Plain),
            () if is("keyword") || is("storage") => Some(Tone::Keyword),
            () if is("entity.name") || is("support.function") || is("variable.function") => Some(Tone::Name),
            () => None,
        }
    };
    stack.scopes.iter().rev().find_map(|scope| of(&scope.build_string())).unwrap_or(Tone::Plain)
}
