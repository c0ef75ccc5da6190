//! Conditions for the words and redirections of every command.

use crate::shell::lex::syntax::{RedirKind, Redirection};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::resolve::Folders;
use crate::shell::read_only;

/// Builtins that change the shell, or run code from their arguments.
pub(crate) const CHANGES_SHELL: &[&str] = &[
    "set",
    "shopt",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "alias",
    "unalias",
    "trap",
    "enable",
    "hash",
    "bind",
    "exec",
    "eval",
    "source",
    ".",
    "pushd",
    "popd",
    "umask",
    "ulimit",
    "getopts",
    "read",
    "mapfile",
    "readarray",
    "let",
    "shift",
    "history",
    "fc",
    "complete",
    "compopt",
    "compgen",
    "suspend",
    "logout",
    "disown",
    "builtin",
    "coproc",
    "return",
    "break",
    "continue",
    "dirs",
    "times",
    "caller",
    "function",
    "select",
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "for",
    "while",
    "until",
    "do",
    "done",
    "case",
    "esac",
    "in",
];

/// Whether a redirection reads or writes nothing that needs a request.
pub(crate) fn check_redirection(
    redir: &Redirection,
    cwds: &[String],
    folders: &Folders,
) -> Result<(), String> {
    let target = &redir.target;
    if redir.named {
        return Err("a redirection keeps its descriptor in a variable".into());
    }
    let literal = target.is_literal() && !target.marks.has_any(Marks::DOLLAR_QUOTE);
    let is_harmless = match redir.kind {
        RedirKind::Duplicate | RedirKind::Here => true,
        RedirKind::HereString => {
            !target.marks.has_any(Marks::EXPANDS)
                && !target.marks.has_any(Marks::NUMBER)
                && !target.marks.has_any(Marks::TILDE)
        }
        RedirKind::Input => {
            literal
                && (target.text == "/dev/null"
                    || !target.text.is_empty()
                        && !target.text.starts_with("/dev/")
                        && !read_only::is_outside(&target.text, cwds, folders))
        }
        RedirKind::Output => literal && target.text == "/dev/null",
        RedirKind::Both => false,
    };
    if is_harmless {
        return Ok(());
    }
    let verb = match redir.kind {
        RedirKind::Input | RedirKind::Here | RedirKind::HereString => "reads",
        RedirKind::Output => "writes to",
        RedirKind::Both | RedirKind::Duplicate => "reads and writes",
    };
    Err(format!("{verb} {}", target.text))
}

/// Whether an assignment cannot change which program runs.
pub(crate) fn assignment(word: &Word, bare: bool) -> Result<(), String> {
    const HARMLESS_VARIABLES: &[&str] = &[
        "CI",
        "NODE_ENV",
        "RUST_LOG",
        "RUST_BACKTRACE",
        "CARGO_TERM_COLOR",
        "NO_COLOR",
        "FORCE_COLOR",
        "TERM",
        "TZ",
        "LANG",
        "PYTHONUNBUFFERED",
        "DEBUG",
    ];
    let (name, value) = word.assignment();
    if bare {
        return Err(format!("{name} is assigned for all later commands"));
    }
    let is_harmless = HARMLESS_VARIABLES.contains(&name)
        || name
            .strip_prefix("LC_")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_uppercase()));
    if !is_harmless {
        return Err(format!("{name} may change what runs"));
    }
    let unknown = [Marks::EXPANDS, Marks::NUMBER, Marks::DOLLAR_QUOTE, Marks::TILDE];
    if unknown.iter().any(|mark| word.marks.has_any(*mark))
        || value.contains('~') && !word.marks.has_any(Marks::QUOTED)
    {
        return Err(format!("the value of {name} is not literal"));
    }
    Ok(())
}

/// Checks the conditions for the words of every command.
pub(crate) fn check_words(words: &[Word]) -> Result<(), String> {
    let Some(first) = words.first() else { return Ok(()) };
    if !first.is_literal() || first.marks.has_any(Marks::DOLLAR_QUOTE) || first.text.is_empty() {
        return Err("the name of the command is not spelled out".into());
    }
    for word in &words[1..] {
        let unknown = [Marks::EXPANDS, Marks::DOLLAR_QUOTE, Marks::TILDE];
        if unknown.iter().any(|mark| word.marks.has_any(*mark)) {
            let text = if word.text.trim().is_empty() { "a word" } else { word.text.trim() };
            return Err(format!("{text} is known only at run time"));
        }
        if word.marks.has_any(Marks::BRACE_QUOTED) {
            return Err(format!("what the braces of {} choose is not certain", word.text));
        }
        if word.marks.has_any(Marks::BRACE_DASH) {
            return Err(format!("{} may become an option", word.text));
        }
    }
    // The word may be empty, and then the next one takes its position.
    let may_be_nothing = |word: &Word| word.marks.has_any(Marks::NUMBER) && word.text == "$!";
    let mut rest = words.iter().skip_while(|word| !may_be_nothing(word));
    if first.text != "echo" && rest.any(|word| !may_be_nothing(word)) {
        return Err("$! may be empty, and then the next word takes its place".into());
    }
    Ok(())
}
