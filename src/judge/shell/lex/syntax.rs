//! What the lexer finds in a command line: simple commands with their words and redirections, and
//! everything that lies beyond the plain grammar.

use crate::judge::shell::lex::word::Word;

/// How a simple command is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::judge) enum After {
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
pub(in crate::judge) struct Redir {
    pub(in crate::judge) kind: RedirKind,
    /// The file, the descriptor, the text or the end mark.
    pub(in crate::judge) target: Word,
    /// `{name}>`: bash keeps the descriptor in a variable.
    pub(in crate::judge) named: bool,
}

/// One simple command.
#[derive(Clone, Debug, Default)]
pub(in crate::judge) struct Simple {
    pub(in crate::judge) assigns: Vec<Word>,
    pub(in crate::judge) words: Vec<Word>,
    pub(in crate::judge) redirs: Vec<Redir>,
    /// Its place in the text; empty for commands of another text (see [`Simple::derived`]).
    pub(in crate::judge) start: usize,
    pub(in crate::judge) end: usize,
    /// The subshell it stands in, an index of [`Script::scopes`].
    pub(in crate::judge) scope: usize,
    /// Whether `&&` follows.
    pub(in crate::judge) then: Option<After>,
    /// Which run of commands joined by nothing but `&&` it stands in: of these each runs only if those before it did
    /// and succeeded. What stands in a subshell or a substitution within such a run stands in the same one.
    pub(in crate::judge) run: usize,
    /// `||`, `|` or `!` stands before it in its list: what follows it by `&&` may run without it.
    pub(in crate::judge) joined: bool,
    /// It stands in a text within the text: backquotes, the body of a here-document.
    pub(in crate::judge) derived: bool,
    /// It stands inside a substitution.
    pub(in crate::judge) substituted: bool,
    /// Where a `time` in front of it begins.
    pub(in crate::judge) timed: Option<usize>,
}

/// What is beyond the plain grammar. Each asks.
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
    /// Why it asks, a sentence for people.
    pub(in crate::judge) fn reason(self) -> &'static str {
        match self {
            UnsupportedSyntax::Substitution => "a command substitution runs another command",
            UnsupportedSyntax::Parameter => "the value of a parameter is not known",
            UnsupportedSyntax::Arithmetic => "arithmetic can run commands",
            UnsupportedSyntax::ProcessSubstitution => "a process substitution runs another command",
            UnsupportedSyntax::DollarQuote => "text in $'…' or $\"…\" is not what it looks like",
            UnsupportedSyntax::ControlFlow => "control flow (if, for, while, case, select)",
            UnsupportedSyntax::Function => "a function is defined",
            UnsupportedSyntax::Conditional => "[[ … ]] and (( … )) can run commands",
            UnsupportedSyntax::Coproc => "coproc runs a command beside the others",
            UnsupportedSyntax::Background => "& leaves a command running",
            UnsupportedSyntax::Array => "an array is assigned",
            UnsupportedSyntax::HereBody => "the here-document is expanded by the shell",
            UnsupportedSyntax::Syntax => "this is not a complete command line",
            UnsupportedSyntax::Unsure => "the text is too involved to be read with certainty",
        }
    }
}

/// A whole command line.
#[derive(Debug, Default)]
pub(in crate::judge) struct Script {
    /// Every simple command that appears anywhere, in the order in which they end.
    pub(in crate::judge) commands: Vec<Simple>,
    /// The subshell around each subshell; the first is the line itself.
    pub(in crate::judge) scopes: Vec<usize>,
    /// What is beyond the plain grammar, each once, with where it was first seen.
    pub(in crate::judge) beyond: Vec<(UnsupportedSyntax, usize)>,
    /// How many runs have ended ([`Simple::run`]).
    pub(in crate::judge::shell) runs: usize,
    /// How deep it is nested.
    pub(in crate::judge) depth: usize,
    /// Places in the text that say nothing of which commands run: here-documents with their bodies, `!` and `time` in
    /// front of a command. The second parser stumbles over some of them.
    pub(in crate::judge) aside: Vec<(usize, usize)>,
}

impl Script {
    pub(in crate::judge::shell) fn note(&mut self, what: UnsupportedSyntax, at: usize) {
        if !self.beyond.iter().any(|(seen, _)| *seen == what) {
            self.beyond.push((what, at));
        }
    }

    /// The text without what stands aside; nothing if there is nothing of the kind.
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
