//! Output of the lexer: simple commands with their words and redirections, and all unsupported syntax.

use crate::judge::shell::lex::word::Word;

/// The operator after a simple command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::judge) enum Connector {
    /// `&&`
    And,
    /// `||`, `;`, newline, `|`, a closing sign, the end.
    Other,
}

/// A redirection operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::judge) enum RedirKind {
    /// `<`
    Input,
    /// `>`, `>>`, `>|`, `&>`, `&>>`, and `>&` with a file.
    Output,
    /// `<>`
    Both,
    /// `>&` or `<&` with a descriptor or `-`.
    Duplicate,
    /// `<<` or `<<-`.
    Here,
    /// `<<<`
    HereString,
}

/// One redirection.
#[derive(Clone, Debug)]
pub(in crate::judge) struct Redirection {
    pub(in crate::judge) kind: RedirKind,
    /// The file, the descriptor, the text or the end mark.
    pub(in crate::judge) target: Word,
    /// `{name}>`: bash stores the descriptor in a variable.
    pub(in crate::judge) named: bool,
}

/// One simple command.
#[derive(Clone, Debug, Default)]
pub(in crate::judge) struct SimpleCommand {
    pub(in crate::judge) assigns: Vec<Word>,
    pub(in crate::judge) words: Vec<Word>,
    pub(in crate::judge) redirs: Vec<Redirection>,
    /// Its position in the text; empty for commands of another text (see [`SimpleCommand::derived`]).
    pub(in crate::judge) start: usize,
    pub(in crate::judge) end: usize,
    /// Its subshell, an index of [`Script::scopes`].
    pub(in crate::judge) scope: usize,
    /// Whether `&&` follows.
    pub(in crate::judge) then: Option<Connector>,
    /// Number of its run, a sequence of commands that are joined only by `&&`. Each runs only if all
    /// earlier ones of the run have succeeded. A subshell or substitution within a run belongs to the
    /// same run.
    pub(in crate::judge) run: usize,
    /// `||`, `|` or `!` precedes it in its list: a command after `&&` may run without it.
    pub(in crate::judge) joined: bool,
    /// It is part of a nested text: backquotes, the body of a here-document.
    pub(in crate::judge) derived: bool,
    /// It is inside a substitution.
    pub(in crate::judge) substituted: bool,
    /// Position of a `time` before it.
    pub(in crate::judge) timed: Option<usize>,
}

/// Syntax outside the plain grammar. Each kind needs a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::judge) enum UnsupportedSyntax {
    Substitution,
    Parameter,
    Arithmetic,
    ProcessSubstitution,
    DollarQuote,
    ControlFlow,
    Function,
    Conditional,
    Coproc,
    Background,
    Array,
    HereBody,
    Syntax,
    Unsure,
}

impl UnsupportedSyntax {
    /// The reason of the request, a sentence for users.
    pub(in crate::judge) fn reason(self) -> &'static str {
        match self {
            UnsupportedSyntax::Substitution => "a command substitution runs another command",
            UnsupportedSyntax::Parameter => "the value of a parameter is not known",
            UnsupportedSyntax::Arithmetic => "arithmetic can run commands",
            UnsupportedSyntax::ProcessSubstitution => "a process substitution runs another command",
            UnsupportedSyntax::DollarQuote => "text in $'…' or $\"…\" is decoded by the shell",
            UnsupportedSyntax::ControlFlow => "control flow (if, for, while, case, select)",
            UnsupportedSyntax::Function => "a function is defined",
            UnsupportedSyntax::Conditional => "[[ … ]] and (( … )) can run commands",
            UnsupportedSyntax::Coproc => "coproc runs a command in parallel",
            UnsupportedSyntax::Background => "& leaves a command running",
            UnsupportedSyntax::Array => "an array is assigned",
            UnsupportedSyntax::HereBody => "the here-document is expanded by the shell",
            UnsupportedSyntax::Syntax => "this is not a complete command line",
            UnsupportedSyntax::Unsure => "the text is too complex to be parsed with certainty",
        }
    }
}

/// A whole command line.
#[derive(Debug, Default)]
pub(in crate::judge) struct Script {
    /// Every simple command at any position, in the order in which they end.
    pub(in crate::judge) commands: Vec<SimpleCommand>,
    /// The parent of each subshell; the first is the line itself.
    pub(in crate::judge) scopes: Vec<usize>,
    /// Unsupported syntax, each kind once, with its first position.
    pub(in crate::judge) beyond: Vec<(UnsupportedSyntax, usize)>,
    /// Number of runs that have ended ([`SimpleCommand::run`]).
    pub(in crate::judge::shell) runs: usize,
    /// Nesting depth of the line.
    pub(in crate::judge) depth: usize,
    /// Ranges of the text that do not affect which commands run: here-documents with their bodies, `!`
    /// and `time` before a command. The second parser fails on some of them.
    pub(in crate::judge) aside: Vec<(usize, usize)>,
}

impl Script {
    pub(in crate::judge::shell) fn note(&mut self, what: UnsupportedSyntax, at: usize) {
        if !self.beyond.iter().any(|(seen, _)| *seen == what) {
            self.beyond.push((what, at));
        }
    }

    /// The text without the ranges of `aside`; `None` if there are none.
    pub(in crate::judge) fn eased(&self, text: &str) -> Option<String> {
        if self.aside.is_empty() {
            return None;
        }
        let mut bytes = text.as_bytes().to_vec();
        for (start, end) in &self.aside {
            bytes.get_mut(*start..*end)?.fill(b' ');
        }
        String::from_utf8(bytes).ok()
    }

    pub(in crate::judge) fn has(&self, what: UnsupportedSyntax) -> bool {
        self.beyond.iter().any(|(seen, _)| *seen == what)
    }
}
