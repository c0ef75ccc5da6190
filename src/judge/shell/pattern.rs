//! Bash rules: what they grant, and where they are found.

use std::collections::HashSet;

use super::collect::Collected;
use super::lex::lex;
use super::word::{Marks, Word};

/// The pattern of a Bash rule.
#[derive(Clone, Debug)]
pub(in crate::judge) enum CommandPattern {
    /// `npm run test`: these words and no others, or this very text.
    Exact {
        /// The text, without blanks around it.
        text: String,
        /// Its words, if it is one simple command.
        words: Option<Vec<Word>>,
    },
    /// `npm run:*`: any command that begins with these words.
    Prefix(Vec<String>),
}

/// What a rule that forbids (or asks) finds in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::judge) enum Found {
    /// It is not there.
    No,
    /// It cannot be excluded: something may only become the command when the shell runs.
    Perhaps,
    /// The command is there.
    Yes,
}

/// The words of a text that is one simple command and nothing else.
fn simple(text: &str) -> Option<Vec<Word>> {
    let mut script = lex(text);
    if !script.beyond.is_empty() || script.commands.len() != 1 || script.scopes.len() > 1 {
        return None;
    }
    let command = script.commands.pop()?;
    let plain = command.assigns.is_empty() && command.redirs.is_empty() && command.timed.is_none();
    // `! x`, `{ x; }` and comments are more than their words.
    let whole = command.start == 0 && command.end == text.len();
    (plain && whole && !command.words.is_empty()).then_some(command.words)
}

impl CommandPattern {
    /// Parses what stands between the parentheses; not empty. The error is a fragment.
    pub(in crate::judge) fn parse(inner: &str) -> Result<Self, &'static str> {
        if inner.contains('\0') {
            return Err("a command cannot hold a NUL");
        }
        match inner.strip_suffix(":*") {
            Some(prefix) if prefix.trim().is_empty() => Err("write Bash alone for every command"),
            Some(prefix) => match simple(prefix.trim()) {
                Some(words) if words.iter().all(|w| w.is_literal() && !w.marks.has(Marks::DOLLAR_QUOTE)) => {
                    Ok(Self::Prefix(words.into_iter().map(|word| word.text).collect()))
                }
                // A reserved word stands for itself here: nothing grants what it begins.
                None if prefix
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.')) =>
                {
                    Ok(Self::Prefix(prefix.split_whitespace().map(str::to_owned).collect()))
                }
                _ => {
                    Err("the prefix before `:*` must be plain words, without operators, expansions and globs")
                }
            },
            None if inner.trim() == "*" => Err("write Bash alone for every command"),
            None if inner.trim().is_empty() => Err("the pattern is blank; write Bash for every command"),
            None => {
                let text = inner.trim().to_owned();
                Ok(Self::Exact { words: simple(&text), text })
            }
        }
    }

    /// Whether this is an exact rule of the whole text (R18).
    pub(in crate::judge) fn is_text(&self, command: &str) -> bool {
        matches!(self, Self::Exact { text, .. } if text == command.trim())
    }

    /// Whether a grant covers a simple command by its words; then how many of them it spells. An
    /// exact rule spells all.
    pub(super) fn covers(&self, words: &[Word]) -> Option<usize> {
        match self {
            Self::Exact { words: Some(own), .. } => {
                let same = own.len() == words.len()
                    && own.iter().zip(words).all(|(a, b)| {
                        a.text == b.text
                            && (a.is_literal() && b.is_literal()
                                || a.marks == b.marks && a.end - a.start == b.end - b.start)
                    });
                same.then_some(words.len())
            }
            Self::Exact { .. } => None,
            Self::Prefix(own) => {
                let same = own.len() <= words.len()
                    && own.iter().zip(words).all(|(a, b)| b.is_literal() && *a == b.text);
                same.then_some(own.len())
            }
        }
    }

    /// Looks for the command of a deny or ask rule among all that a line runs.
    pub(super) fn finds(&self, text: &str, all: &Collected, programs: &Programs) -> Found {
        if self.is_text(text) {
            return Found::Yes;
        }
        let (own, exact): (Vec<&str>, bool) = match self {
            Self::Exact { words: None, .. } => return if all.hidden { Found::Perhaps } else { Found::No },
            Self::Exact { words: Some(words), .. } => (words.iter().map(|w| w.text.as_str()).collect(), true),
            Self::Prefix(words) => (words.iter().map(String::as_str).collect(), false),
        };
        // Where there is too much to look at, the first words have to do.
        let exact = exact && !all.over;
        let mut found = if all.hidden { Found::Perhaps } else { Found::No };
        if own.first().is_some_and(|wanted| !programs.may_hold(wanted)) {
            return found;
        }
        for view in &all.views {
            found = found.max(is_it(all.words(*view), &own, exact, view.open));
            if found == Found::Yes {
                break;
            }
        }
        found
    }
}

/// The programs that a line names: with many rules, most ask for one that is not there.
#[derive(Debug)]
pub(super) struct Programs {
    spelled: HashSet<String>,
    /// One of them is only known when it runs.
    unknown: bool,
}

impl Programs {
    pub(super) fn of(all: &Collected) -> Self {
        let firsts = || all.views.iter().filter_map(|view| all.words(*view).first());
        Self {
            spelled: firsts().filter(|word| word.is_literal()).map(|w| name(&w.text).to_owned()).collect(),
            unknown: firsts().any(|word| !word.is_literal()),
        }
    }

    fn may_hold(&self, program: &str) -> bool {
        self.unknown || self.spelled.contains(name(program))
    }
}

/// The part after the last `/`: programs are denied by it.
pub(super) fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// git's own options before its sub-command that take a value as the next word.
const GIT_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--super-prefix",
    "--attr-source",
];

/// Whether the command that `words` begin with is the one of the pattern.
fn is_it(words: &[Word], pattern: &[&str], exact: bool, open: bool) -> Found {
    let (Some((program, arguments)), Some((wanted, rest))) = (words.split_first(), pattern.split_first())
    else {
        return Found::No;
    };
    if !can_equal(program, wanted, true) {
        return Found::No;
    }
    let here = compare(arguments, rest, exact, open);
    let mut found = here;
    if found < Found::Yes && rest.first().is_some_and(|word| !word.starts_with('-')) {
        let is_git = name(wanted) == "git";
        let mut at = 0;
        // Options in front of the sub-command, with their values where that is known or possible.
        while let Some(word) = arguments.get(at) {
            if !word.text.starts_with('-') && !word.text.starts_with('+') {
                break;
            }
            let known = is_git && GIT_VALUES.contains(&word.text.as_str());
            if !is_git && at + 2 <= arguments.len() {
                found = found.max(compare(&arguments[at + 2..], rest, exact, open));
            }
            at += if known { 2 } else { 1 };
            let behind = arguments.get(at..).unwrap_or(&[]);
            found = found.max(compare(behind, rest, exact, open));
            if at > 64 {
                found = found.max(Found::Perhaps);
                break;
            }
        }
    }
    if program.is_literal() { found } else { found.min(Found::Perhaps) }
}

fn compare(words: &[Word], pattern: &[&str], exact: bool, open: bool) -> Found {
    if exact && words.len() > pattern.len() && !words.iter().any(|word| !word.is_literal()) {
        return Found::No;
    }
    let mut found = Found::Yes;
    for (at, wanted) in pattern.iter().enumerate() {
        match words.get(at) {
            // A word that is not literal may be any number of words.
            Some(word) if !word.is_literal() => {
                return if can_equal(word, wanted, false) { Found::Perhaps } else { Found::No };
            }
            Some(word) if word.text == *wanted => {}
            Some(_) => return Found::No,
            None if open => return Found::Perhaps,
            None => return Found::No,
        }
    }
    if exact && words.len() > pattern.len() {
        found = Found::Perhaps;
    }
    if exact && open {
        found = Found::Perhaps;
    }
    found
}

/// Whether the shell may make `wanted` of a word.
fn can_equal(word: &Word, wanted: &str, program: bool) -> bool {
    if word.is_literal() {
        return if program { name(&word.text) == name(wanted) } else { word.text == wanted };
    }
    if word.marks.has(Marks::EXPANDS) || word.marks.has(Marks::BRACE) || word.marks.has(Marks::TILDE) {
        return true;
    }
    if word.marks.has(Marks::GLOB) {
        let text = if program { name(&word.text) } else { &word.text };
        let special = |c: char| matches!(c, '*' | '?' | '[');
        let (Some(first), Some(last)) = (text.find(special), text.rfind([']', '*', '?', '['])) else {
            return true;
        };
        let wanted = if program { name(wanted) } else { wanted };
        return wanted.starts_with(&text[..first]) && wanted.ends_with(&text[last + 1..]);
    }
    if word.marks.has(Marks::HOME) { program && name(&word.text) == name(wanted) } else { false }
}
