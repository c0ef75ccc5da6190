//! Bash rules, first form: without a parser of the shell's language.
//!
//! A *plain* command consists only of characters that the shell does not act on, so its words
//! are what they look like. Only plain commands are matched by prefix. Any other text is allowed
//! by nothing but an exact rule of the same text, and deny rules look for their words anywhere
//! in it.

/// The pattern of a Bash rule.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum CommandPattern {
    /// `npm run test`: these words and no others, or this very text.
    Exact(String),
    /// `npm run:*`: any command that begins with these words.
    Prefix(Vec<String>),
}

/// What a rule that forbids (or asks) finds in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The command is there.
    Yes,
    /// It cannot be excluded: something may only become the command when the shell runs.
    Perhaps,
    /// It is not there.
    No,
}

/// Programs that run the command they are given, so a later word may be a program as well.
const RUNNERS: &[&str] = &[
    "sudo",
    "doas",
    "su",
    "env",
    "nice",
    "ionice",
    "timeout",
    "time",
    "nohup",
    "setsid",
    "stdbuf",
    "command",
    "exec",
    "builtin",
    "xargs",
    "parallel",
    "find",
    "watch",
    "script",
    "strace",
    "ltrace",
    "gdb",
    "chroot",
    "unshare",
    "nsenter",
    "flock",
    "ssh",
    "eval",
    "source",
    ".",
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "busybox",
    "chrt",
    "taskset",
    "numactl",
    "systemd-run",
    "bwrap",
    "firejail",
    "unbuffer",
    "expect",
    "runuser",
    "setpriv",
    "catchsegv",
    "caffeinate",
    "entr",
    "make",
    "npx",
    "bunx",
    "uvx",
    "pipx",
];

/// Of these, programs whose first words say nothing: a grant of the name alone covers the bare
/// name, not the command behind it.
const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "su",
    "env",
    "nice",
    "ionice",
    "timeout",
    "time",
    "nohup",
    "setsid",
    "stdbuf",
    "command",
    "exec",
    "builtin",
    "eval",
    "xargs",
    "parallel",
    "watch",
    "chroot",
    "unshare",
    "nsenter",
    "flock",
    "systemd-run",
    "runuser",
    "setpriv",
];

/// git's own options before its sub-command that take a value as the next word.
const GIT_VALUE_OPTIONS: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"];

pub(super) fn is_plain(command: &str) -> bool {
    command.chars().all(is_plain_char)
}

fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '.' | '/' | ':' | '=' | '@' | ',' | '+' | '-')
}

pub(super) fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

/// The part after the last `/`: programs are denied by it.
fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether the shell would take the word before a command as an assignment.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

impl CommandPattern {
    /// Parses what stands between the parentheses; not empty. The error is a fragment.
    pub(super) fn parse(inner: &str) -> Result<Self, &'static str> {
        if inner.contains('\0') {
            return Err("a command cannot hold a NUL");
        }
        match inner.strip_suffix(":*") {
            Some(prefix) if prefix.trim().is_empty() => Err("write Bash alone for every command"),
            Some(prefix) if !is_plain(prefix) => {
                Err("the prefix before `:*` must be plain words (letters, digits and _ . / : = @ , + -)")
            }
            Some(prefix) => Ok(Self::Prefix(words(prefix).into_iter().map(str::to_owned).collect())),
            None if inner.trim() == "*" => Err("write Bash alone for every command"),
            None if inner.trim().is_empty() => Err("the pattern is blank; write Bash for every command"),
            None => Ok(Self::Exact(inner.trim().to_owned())),
        }
    }

    /// Whether a grant of this pattern covers the command.
    pub(super) fn grants(&self, command: &str) -> bool {
        match self {
            Self::Exact(text) => {
                text == command.trim()
                    || (is_plain(command) && is_plain(text) && words(text) == words(command))
            }
            Self::Prefix(prefix) => {
                let words = words(command);
                let only_wrapper =
                    prefix.len() == 1 && WRAPPERS.contains(&name(&prefix[0])) && words.len() > 1;
                is_plain(command) && !only_wrapper && starts_with(&words, prefix.iter().map(String::as_str))
            }
        }
    }

    /// Looks for the command of a deny or ask rule. Errs on the side of finding it.
    pub(super) fn finds(&self, command: &str) -> Found {
        let pattern: Vec<&str> = match self {
            Self::Exact(text) if text == command.trim() => return Found::Yes,
            Self::Exact(text) => words(text),
            Self::Prefix(prefix) => prefix.iter().map(String::as_str).collect(),
        };
        let exact = matches!(self, Self::Exact(_));
        if is_plain(command) {
            return find_in_plain(&words(command), &pattern, exact);
        }
        // All words of the rule in their order: that is close enough to forbid.
        let mut pieces = pieces(command);
        let program = name(pattern[0]);
        if pieces.any(|piece| name(piece) == program || piece.rsplit('=').next().map(name) == Some(program)) {
            let rest = pattern[1..].iter().filter(|word| is_plain(word));
            return if rest.clone().all(|word| pieces.any(|piece| piece == *word)) {
                Found::Yes
            } else {
                Found::Perhaps
            };
        }
        if may_hide_a_program(command) { Found::Perhaps } else { Found::No }
    }
}

/// Whether the text may answer the daemon's own questions: a call must not approve itself.
pub(super) fn approves_itself(command: &str) -> bool {
    let mut pieces = pieces(command);
    pieces.any(|piece| name(piece) == "agentctl") && pieces.any(|piece| matches!(piece, "approve" | "grant"))
}

/// Everything in a text that could be a word once quotes and operators are taken away.
fn pieces(command: &str) -> impl Iterator<Item = &str> {
    command.split(|c: char| !is_plain_char(c) || c == ' ').filter(|piece| !piece.is_empty())
}

fn starts_with<'a>(words: &[&str], mut prefix: impl Iterator<Item = &'a str>) -> bool {
    let mut words = words.iter();
    prefix.all(|wanted| words.next().is_some_and(|word| *word == wanted))
}

fn find_in_plain(words: &[&str], pattern: &[&str], exact: bool) -> Found {
    let starts = words.iter().position(|word| !is_assignment(word)).unwrap_or(words.len());
    let words = &words[starts..];
    if is_it(words, pattern, exact) {
        return Found::Yes;
    }
    // `sudo nice rm x`: behind a program that runs programs every word may be one.
    let behind_runner = words.first().is_some_and(|first| RUNNERS.contains(&name(first)));
    if behind_runner && (1..words.len()).any(|at| is_it(&words[at..], pattern, exact)) {
        return Found::Yes;
    }
    Found::No
}

/// Whether the command that `words` begin with is the one of the pattern.
fn is_it(words: &[&str], pattern: &[&str], exact: bool) -> bool {
    let (Some((program, mut arguments)), Some((wanted, rest))) = (words.split_first(), pattern.split_first())
    else {
        return false;
    };
    if name(program) != name(wanted) {
        return false;
    }
    if name(program) == "git" && rest.first().is_some_and(|word| !word.starts_with('-')) {
        arguments = skip_git_options(arguments);
    }
    if exact { arguments == rest } else { starts_with(arguments, rest.iter().copied()) }
}

fn skip_git_options<'w, 's>(mut words: &'w [&'s str]) -> &'w [&'s str] {
    while let Some((first, rest)) = words.split_first() {
        if !first.starts_with('-') {
            break;
        }
        let takes_value = GIT_VALUE_OPTIONS.contains(first);
        words = if takes_value { rest.get(1..).unwrap_or(&[]) } else { rest };
    }
    words
}

/// Whether the text could become a program's name that is not spelled in it: by an expansion, a
/// backslash, a glob, or quotes inside a word. Words between whitespace and operators, and
/// quoted text that stands alone as a word and holds nothing special, hide nothing.
fn may_hide_a_program(command: &str) -> bool {
    let is_edge = |c: Option<char>| {
        c.is_none_or(|c| {
            c.is_ascii_whitespace() || matches!(c, '&' | '|' | ';' | '(' | ')' | '<' | '>' | '=')
        })
    };
    let mut before: Option<char> = None;
    let mut letters = command.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' | '\'' => {
                if !is_edge(before) {
                    return true;
                }
                loop {
                    match letters.next() {
                        Some(inner) if inner == c => break,
                        Some(inner) if is_plain_char(inner) || is_harmless_in_quotes(inner) => {}
                        _ => return true,
                    }
                }
                if !is_edge(letters.peek().copied()) {
                    return true;
                }
            }
            '&' | '|' | ';' | '(' | ')' | '<' | '>' | '\n' | '\t' => {}
            c if is_plain_char(c) => {}
            _ => return true,
        }
        before = Some(c);
    }
    false
}

fn is_harmless_in_quotes(c: char) -> bool {
    matches!(c, '\n' | '\t' | '!' | ';' | '(' | ')' | '&' | '|' | '<' | '>' | '#' | '%')
        || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> CommandPattern {
        CommandPattern::parse(text).unwrap()
    }

    fn check_grant(rule: &str, command: &str, expected: bool) {
        assert_eq!(pattern(rule).grants(command), expected, "{rule} on {command:?}");
    }

    #[test]
    fn a_grant_covers_plain_commands_by_words() {
        for (rule, command, expected) in [
            ("npm run test", "npm run test", true),
            ("npm run test", "  npm   run\ttest ", false), // a tab is not a plain character
            ("npm run test", "npm   run  test", true),
            ("npm run test", "npm run test -- x", false),
            ("npm:*", "npm", true),
            ("npm:*", "npm install", true),
            ("npm:*", "npmx install", false),
            ("npm:*", "/usr/bin/npm install", false),
            ("npm:*", "A=b npm install", false),
            ("npm run:*", "npm  run  test", true),
            ("npm run:*", "npm install", false),
            ("npm:*", "npm install; rm x", false),
            ("npm:*", "npm install\nrm x", false),
            ("npm:*", "npm $(rm x)", false),
            ("npm:*", "npm ünstall", false),
            ("env:*", "env", true),
            ("env:*", "env rm -rf src", false),
            ("timeout:*", "timeout 5 rm x", false),
            ("sudo apt:*", "sudo apt update", true),
            ("a $x | b", " a $x | b\n", true),
            ("a $x | b", "a  $x | b", false),
        ] {
            check_grant(rule, command, expected);
        }
    }

    #[test]
    fn a_deny_rule_finds_its_command_or_says_that_it_may_hide() {
        use Found::{No, Perhaps, Yes};
        for (rule, command, expected) in [
            ("rm:*", "rm -rf x", Yes),
            ("rm:*", "/bin/rm x", Yes),
            ("rm:*", "A=b rm x", Yes),
            ("rm:*", "sudo -n rm x", Yes),
            ("rm:*", "xargs rm", Yes),
            ("rm:*", "ls rm", No),
            ("rm:*", "rmdir x", No),
            ("rm:*", "ls; rm x", Yes),
            ("rm:*", "ls `rm x`", Yes),
            ("rm:*", "bash -c 'rm x'", Yes),
            ("rm:*", "ls && cargo build | wc -l", No),
            ("rm:*", "git commit -m 'a good day'", No),
            ("rm:*", "r\\m x", Perhaps),
            ("rm:*", "r''m x", Perhaps),
            ("rm:*", "$x y", Perhaps),
            ("rm:*", "/bin/r? y", Perhaps),
            ("rm:*", "{r,}m y", Perhaps),
            ("git push:*", "git push origin", Yes),
            ("git push:*", "git -C x --no-pager push", Yes),
            ("git push:*", "git status", No),
            ("git push:*", "cd x && git push", Yes),
            ("git push:*", "cd x && git status", Perhaps),
            ("git push", "git push --dry-run", No),
            ("rm -rf /", "rm  -rf /", Yes),
        ] {
            assert_eq!(pattern(rule).finds(command), expected, "{rule} on {command:?}");
        }
    }
}
