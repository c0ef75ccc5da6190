//! Output of the lexer: simple commands with their words and redirections, and all unsupported syntax.

use crate::shell::lex::word::Word;

/// The operator after a simple command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connector {
    /// `&&`
    And,
    /// `||`, `;`, newline, `|`, a closing sign, the end.
    Other,
}

/// A redirection operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirKind {
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
pub(crate) struct Redirection {
    pub(crate) kind: RedirKind,
    /// The file, the descriptor, the text or the end mark.
    pub(crate) target: Word,
    /// `{name}>`: bash stores the descriptor in a variable.
    pub(crate) named: bool,
}

/// One simple command.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimpleCommand {
    pub(crate) assigns: Vec<Word>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirs: Vec<Redirection>,
    /// Its position in the text; empty for commands of another text (see [`SimpleCommand::derived`]).
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Its subshell, an index of [`Script::scopes`].
    pub(crate) scope: usize,
    /// Whether `&&` follows.
    pub(crate) then: Option<Connector>,
    /// Number of its run, a sequence of commands that are joined only by `&&`. Each runs only if all
    /// earlier ones of the run have succeeded. A subshell or substitution within a run belongs to the
    /// same run.
    pub(crate) run: usize,
    /// `||`, `|` or `!` precedes it in its list: a command after `&&` may run without it.
    pub(crate) joined: bool,
    /// It is part of a nested text: backquotes, the body of a here-document.
    pub(crate) derived: bool,
    /// It is inside a substitution.
    pub(crate) substituted: bool,
    /// Position of a `time` before it.
    pub(crate) timed: Option<usize>,
    /// Whether it is in the body of a `for` loop that is understood.
    pub(crate) is_looped: bool,
    /// The command before it in its pipeline, an index of [`Script::commands`].
    pub(crate) piped_from: Option<usize>,
    /// It is the `cat` of `"$(cat <<'EOF' … )"`, which yields the text of the here-document.
    pub(crate) yields_text: bool,
}

/// A `for` loop over words that the text shows: literal words and patterns of files.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForLoop {
    pub(crate) variable: String,
    pub(crate) words: Vec<Word>,
    /// Whether its `in` was parsed.
    pub(super) has_in: bool,
}

/// Syntax outside the plain grammar. Each kind needs a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum UnsupportedSyntax {
    Substitution,
    Parameter,
    Arithmetic,
    ProcessSubstitution,
    DollarQuote,
    ControlFlow,
    /// A `for` loop that is understood. No rule allows it, but read-only commands in it may run.
    ForLoop,
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
    pub(crate) fn reason(self) -> &'static str {
        match self {
            UnsupportedSyntax::Substitution => "a command substitution runs another command",
            UnsupportedSyntax::Parameter => "the value of a parameter is not known",
            UnsupportedSyntax::Arithmetic => "arithmetic can run commands",
            UnsupportedSyntax::ProcessSubstitution => "a process substitution runs another command",
            UnsupportedSyntax::DollarQuote => "text in $'…' or $\"…\" is decoded by the shell",
            UnsupportedSyntax::ControlFlow | UnsupportedSyntax::ForLoop => {
                "control flow (if, for, while, case, select)"
            }
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
pub(crate) struct Script {
    /// Every simple command at any position, in the order in which they end.
    pub(crate) commands: Vec<SimpleCommand>,
    /// The parent of each subshell; the first is the line itself.
    pub(crate) scopes: Vec<usize>,
    /// Unsupported syntax, each kind once, with its first position.
    pub(crate) unsupported: Vec<(UnsupportedSyntax, usize)>,
    /// Number of runs that have ended ([`SimpleCommand::run`]).
    pub(crate) runs: usize,
    /// Nesting depth of the line.
    pub(crate) depth: usize,
    /// Ranges of the text that do not affect which commands run: here-documents with their bodies, `!`
    /// and `time` before a command. The second parser fails on some of them.
    pub(crate) ignorable: Vec<(usize, usize)>,
    /// The `for` loops that are understood.
    pub(crate) loops: Vec<ForLoop>,
    /// For commands that were derived from those of another script: the index of each one's original.
    pub(crate) origins: Vec<usize>,
}

impl Script {
    /// Records unsupported syntax, if this kind was not recorded before.
    pub(crate) fn note(&mut self, what: UnsupportedSyntax, position: usize) {
        if !self.unsupported.iter().any(|(seen, _)| *seen == what) {
            self.unsupported.push((what, position));
        }
    }

    /// The text with blanks in place of the ranges of `ignorable`; `None` if there are none.
    pub(crate) fn without_ignorable(&self, text: &str) -> Option<String> {
        if self.ignorable.is_empty() {
            return None;
        }
        let mut bytes = text.as_bytes().to_vec();
        for (start, end) in &self.ignorable {
            bytes.get_mut(*start..*end)?.fill(b' ');
        }
        String::from_utf8(bytes).ok()
    }

    /// Whether the line has unsupported syntax of this kind.
    pub(crate) fn has(&self, what: UnsupportedSyntax) -> bool {
        self.unsupported.iter().any(|(seen, _)| *seen == what)
    }
}
