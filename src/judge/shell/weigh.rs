//! The judgement of a command line: what is denied whatever is granted, and what grants allow.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use super::collect::{Collected, View, collect};
use super::follow::{MOST_FOLDERS, changes_folder, folder, follow};
use super::hatch::{Call, Kind, Rows, may_become_an_option, rows, stem};
use super::pattern::{CommandPattern, Found, Programs, name};
use super::places::{self, Care, Folders};
use super::safe;
use super::script::{Beyond, Redir, RedirKind, Simple};
use super::second;
use super::sight::{approves, odd_character};
use super::through::{Through, through};
use super::word::{Marks, Word};
use super::wrappers::inside;

/// A longer line is never allowed (R14).
const LONGEST: usize = 64 * 1024;
/// Deeper nesting is never allowed (R14).
const DEEPEST: usize = 50;
/// More words than this are not judged one by one.
const MOST_WORDS: usize = 4_000;

/// So often a line may name the daemon's own programs for each to be looked at.
const MOST_OURS: usize = 64;

/// An allow rule over commands: its pattern, and a mark for the caller.
#[derive(Clone, Copy)]
pub(in crate::judge) struct Grant<'r, R> {
    pub(in crate::judge) pattern: &'r CommandPattern,
    pub(in crate::judge) rule: R,
}

/// What became of a part.
#[derive(Clone, Debug)]
pub(in crate::judge) struct Outcome<'t, R> {
    /// Of commands within commands each holds the others: a copy of each would be a lot.
    pub(in crate::judge) command: Cow<'t, str>,
    pub(in crate::judge) words: Vec<String>,
    pub(in crate::judge) allowed: bool,
    /// The grant that allows it.
    pub(in crate::judge) rule: Option<R>,
    pub(in crate::judge) reason: String,
}

/// A command line that was read, with the folders it is about.
pub(in crate::judge) struct Reading<'a> {
    text: &'a str,
    folders: Folders<'a>,
    all: Collected,
    /// The folders in which each command of each text may run.
    cwds: Vec<Vec<Arc<[String]>>>,
    /// Of each command of each text: behind its last word that can have to do with a protected place.
    matters: Vec<Vec<usize>>,
    /// Why it is denied whatever is granted; looked up once.
    forbidden: OnceCell<Option<String>>,
    /// Where the second parser sees commands; looked up once.
    second: OnceCell<Option<Vec<usize>>>,
    /// The programs it names; looked up once.
    programs: OnceCell<Programs>,
}

impl<'a> Reading<'a> {
    pub(in crate::judge) fn new(text: &'a str, workspace: &'a str, home: &'a str) -> Self {
        let folders = Folders { workspace, home };
        let all = collect(text);
        let cwds = all.scripts().iter().map(|script| follow(script, folders)).collect();
        let last = |command: &Simple| command.words.iter().rposition(|word| may_matter(&word.text));
        let behind = |command: &Simple| last(command).map_or(0, |at| at + 1);
        let matters =
            all.scripts().iter().map(|script| script.commands.iter().map(behind).collect()).collect();
        let (forbidden, second, programs) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { text, folders, all, cwds, matters, forbidden, second, programs }
    }

    /// Whether the line has so many words that no rule for a command may allow it.
    pub(in crate::judge) fn is_excessive(&self) -> bool {
        let words = self.all.main().commands.iter().map(|command| command.words.len());
        self.text.len() > LONGEST || words.sum::<usize>() > MOST_WORDS
    }

    fn second(&self) -> Option<&[usize]> {
        self.second.get_or_init(|| second::commands(self.text)).as_deref()
    }

    /// Looks for the command of a rule.
    pub(in crate::judge) fn finds(&self, pattern: &CommandPattern) -> Found {
        pattern.finds(self.text, &self.all, self.programs.get_or_init(|| Programs::of(&self.all)))
    }

    /// Whether the line was understood so far that commands not found are not there.
    pub(in crate::judge) fn is_understood(&self) -> bool {
        self.text.len() <= LONGEST
            && self.all.main().depth <= DEEPEST
            && !self.all.hidden
            && self.all.scripts().iter().all(|script| !script.has(Beyond::Syntax))
            && self.second().is_some_and(|found| second::adds_nothing(found, &self.all))
    }

    /// Why the line is denied whatever is granted (R12).
    pub(in crate::judge) fn forbidden(&self) -> Option<&str> {
        self.forbidden.get_or_init(|| self.find_forbidden()).as_deref()
    }

    fn find_forbidden(&self) -> Option<String> {
        for (at, script) in self.all.scripts().iter().enumerate() {
            for (command, cwds) in script.commands.iter().zip(&self.cwds[at]) {
                for redir in &command.redirs {
                    if matches!(redir.kind, RedirKind::Output | RedirKind::Both)
                        && self.care(&redir.target, cwds) == Care::Protected
                    {
                        return Some(format!(
                            "{} is protected: nothing allows writing there",
                            redir.target.text
                        ));
                    }
                }
            }
        }
        if self.all.over {
            return self.roughly_forbidden();
        }
        let guessed = self.all.maybe.iter().map(|view| self.all.words(*view));
        let ours = |words: &&[Word]| matches!(name(&words[0].text), "agentctl" | "agentd");
        if guessed.filter(ours).take(MOST_OURS).any(approves) {
            return Some("a command may not answer the daemon's own questions".to_owned());
        }
        self.all.views.iter().find_map(|view| {
            let words = self.all.words(*view);
            approves(words).then(|| "a command may not answer the daemon's own questions".to_owned()).or_else(
                || {
                    self.writes_protected(*view, words)
                        .map(|text| format!("{text} is protected: nothing allows writing there"))
                },
            )
        })
    }

    /// The same for a line with too much in it to look at each command: every word counts.
    fn roughly_forbidden(&self) -> Option<String> {
        for (at, script) in self.all.scripts().iter().enumerate() {
            for (nth, command) in script.commands.iter().enumerate() {
                let (words, cwds) = (&command.words, &self.cwds[at][nth]);
                let ours = |word: &&Word| matches!(name(&word.text), "agentctl" | "agentd");
                if words.iter().any(|word| ours(&word)) {
                    return Some("too much stands around a command for the daemon itself".to_owned());
                }
                let special = cwds.iter().any(|cwd| may_matter(cwd));
                let found = words.iter().find(|word| {
                    (special || may_matter(&word.text))
                        && self.care_within(word, cwds, true) == Care::Protected
                });
                if let Some(word) = found {
                    return Some(format!(
                        "{} is protected, and too much stands around it to judge",
                        word.text
                    ));
                }
            }
        }
        None
    }

    fn writes_protected<'w>(&self, view: View, words: &'w [Word]) -> Option<&'w str> {
        let cwds = &self.cwds[view.script()][view.command()];
        let special = cwds.iter().any(|cwd| may_matter(cwd));
        if !special && self.matters[view.script()][view.command()] <= view.from() {
            return None;
        }
        let plain = name(&words[0].text);
        let found = inside(words);
        if found.runs && !matches!(plain, "find" | "fd" | "fdfind" | "git")
            || matches!(plain, "cd" | "pushd" | "exec")
        {
            return None;
        }
        let rows = rows(words);
        let none = |_: &str| false;
        let hatch = rows.asks(&Call { words, granted: 0, outside: &none }).is_some();
        words.iter().enumerate().skip(1).find_map(|(at, word)| {
            let written = || {
                hatch
                    || places::is_written(rows, at, words)
                    || rows.has_hatches() && places::is_output(&word.text)
            };
            if !(special || may_matter(&word.text)) || !written() {
                return None;
            }
            (self.care_within(word, cwds, hatch) == Care::Protected).then_some(word.text.as_str())
        })
    }

    /// The care for a word as a path.
    fn care(&self, word: &Word, cwds: &[String]) -> Care {
        self.care_of(&word.text, word.marks.has(Marks::HOME), word, cwds)
    }

    /// The care for a word and for the paths within it.
    fn care_within(&self, word: &Word, cwds: &[String], texts: bool) -> Care {
        places::candidates(word, texts)
            .into_iter()
            .map(|(text, home)| self.care_of(text, home, word, cwds))
            .max()
            .unwrap_or(Care::Ordinary)
    }

    fn care_of(&self, text: &str, home: bool, word: &Word, cwds: &[String]) -> Care {
        let wild = word.marks.has(Marks::GLOB) || word.marks.has(Marks::BRACE);
        cwds.iter()
            .map(|cwd| places::care(&places::resolve(text, home, cwd, self.folders), wild, self.folders))
            .max()
            .unwrap_or(Care::Ordinary)
    }

    /// Why nothing but a rule for the whole text may allow the line, if so.
    pub(in crate::judge) fn beyond(&self) -> Option<&'static str> {
        if self.text.len() > LONGEST {
            return Some("the line is longer than 64 KiB");
        }
        if self.all.main().depth > DEEPEST {
            return Some("the line is nested deeper than 50");
        }
        if let Some(reason) = odd_character(self.text) {
            return Some(reason);
        }
        self.all.main().beyond.first().map(|(what, _)| what.reason())
    }

    /// Whether the text holds characters that must not pass unseen, or is over the limits (R14).
    pub(in crate::judge) fn is_unseemly(&self) -> Option<&'static str> {
        if self.text.len() > LONGEST || self.all.main().depth > DEEPEST {
            return Some("the line is too long or too deeply nested to be judged");
        }
        odd_character(self.text)
    }

    /// Whether the second parser sees what the lexer sees.
    pub(in crate::judge) fn is_confirmed(&self) -> bool {
        self.second().is_some_and(|found| second::agrees(found, self.all.main()))
    }

    /// Judges each simple command under the grants; with `safe`, commands that only look pass.
    pub(in crate::judge) fn parts<R: Copy>(
        &self,
        grants: &[Grant<'_, R>],
        safe: bool,
    ) -> Vec<Outcome<'_, R>> {
        let script = self.all.main();
        let words: usize = script.commands.iter().map(|command| command.words.len()).sum();
        let mut moved = false;
        let mut ordered: Vec<usize> = (0..script.commands.len()).collect();
        ordered.sort_by_key(|at| (script.commands[*at].derived, script.commands[*at].start));
        let mut parts = Vec::new();
        for at in ordered.into_iter().take(MOST_WORDS) {
            let command = &script.commands[at];
            let cwds = &self.cwds[0][at];
            let judged = if words > MOST_WORDS {
                Err("the line has too many words to be judged".to_owned())
            } else {
                self.part(command, cwds, moved, grants, safe)
            };
            moved |= changes_folder(&command.words);
            let text = if command.derived { None } else { self.text.get(command.start..command.end) };
            let (allowed, rule, reason) = match judged {
                Ok((rule, reason)) => (true, rule, reason),
                Err(reason) => (false, None, reason),
            };
            let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
            parts.push(Outcome {
                command: text.map_or_else(|| Cow::Owned(words.join(" ")), Cow::Borrowed),
                words,
                allowed,
                rule,
                reason,
            });
        }
        parts
    }

    /// One simple command: the grant that allows it (none for what is free), or why it asks.
    fn part<R: Copy>(
        &self,
        command: &Simple,
        cwds: &[String],
        moved: bool,
        grants: &[Grant<'_, R>],
        safe: bool,
    ) -> Result<(Option<R>, String), String> {
        for assign in &command.assigns {
            assignment(assign, command.words.is_empty())?;
        }
        for redir in &command.redirs {
            self.redirection(redir, cwds)?;
        }
        let words = command.words.as_slice();
        let secret = command
            .redirs
            .iter()
            .find(|redir| redir.kind == RedirKind::Input && places::is_secret(&redir.target.text));
        let Some(first) = words.first() else {
            return if command.redirs.is_empty() {
                Err("nothing runs here".into())
            } else if let Some(redir) = secret.filter(|_| safe) {
                // What stands within may only look, and show it.
                Err(format!("{} may hold a secret", redir.target.text))
            } else {
                // What comes behind `( … )` or `{ … }`.
                Ok((None, "only redirections that are free".into()))
            };
        };
        shape(words)?;
        if let Some(reason) = self.free(words, cwds)? {
            return Ok((None, reason));
        }
        if CHANGES_SHELL.contains(&first.text.as_str()) {
            return Err(format!("{} changes the shell or runs what it is given", first.text));
        }
        let (inner, fed) = unwrap(words)?;
        let from = words.len() - inner.len();
        if from > 0 {
            shape(inner)?;
            if !fed && let Some(reason) = self.free(inner, cwds)? {
                return Ok((None, reason));
            }
            if CHANGES_SHELL.contains(&inner[0].text.as_str()) {
                return Err(format!("{} changes the shell or runs what it is given", inner[0].text));
            }
        }
        let found = inside(inner);
        let plain = name(&inner[0].text);
        let by_hatch = matches!(plain, "find" | "fd" | "fdfind" | "git");
        let script_of_shell =
            found.hidden && found.texts.is_empty() && found.at.is_empty() && rows(inner).is_known();
        if found.runs && !by_hatch && !script_of_shell && inner.len() > 1 {
            return Err(format!("{plain} runs the command it is given"));
        }
        let mut refused = None;
        for grant in grants {
            let Some((spelled, exact)) = grant.pattern.spells(words, from) else { continue };
            if moved && inner[0].text.contains('/') && !inner[0].text.starts_with('/') {
                refused = Some("after cd the relative name is another file".to_owned());
                continue;
            }
            let judged =
                if exact { self.removal(inner, cwds) } else { self.arguments(inner, spelled, fed, cwds) };
            match judged {
                Ok(()) => return Ok((Some(grant.rule), "granted".to_owned())),
                Err(reason) => refused = Some(reason),
            }
        }
        if let Some(reason) = refused {
            return Err(reason);
        }
        if safe
            && !fed
            && from == 0
            && secret.is_none()
            && command.assigns.is_empty()
            && !safe::refuses(inner, cwds, self.folders)
        {
            return Ok((None, "only looks, inside the workspace".to_owned()));
        }
        Err(format!("no rule allows {}", inner[0].text))
    }

    /// Commands that are free for everybody (R1).
    fn free(&self, words: &[Word], cwds: &[String]) -> Result<Option<String>, String> {
        match words[0].text.as_str() {
            "pwd" | "true" | "false" | ":" => Ok(Some("does nothing but say so".into())),
            "cd" => {
                let target = folder(words).ok_or("cd to a folder that is not spelled out")?;
                let inside = cwds.iter().all(|cwd| {
                    places::is_in(&places::resolve(target, false, cwd, self.folders), self.folders.workspace)
                });
                if inside && cwds.len() < MOST_FOLDERS {
                    Ok(Some("stays in the workspace".into()))
                } else {
                    Err("cd to a folder outside the workspace".into())
                }
            }
            _ => Ok(None),
        }
    }

    fn redirection(&self, redir: &Redir, cwds: &[String]) -> Result<(), String> {
        let target = &redir.target;
        if redir.named {
            return Err("a redirection keeps its descriptor in a variable".into());
        }
        let literal = target.is_literal() && !target.marks.has(Marks::DOLLAR_QUOTE);
        let fine = match redir.kind {
            RedirKind::Duplicate | RedirKind::Here => true,
            RedirKind::HereString => {
                !target.marks.has(Marks::EXPANDS)
                    && !target.marks.has(Marks::NUMBER)
                    && !target.marks.has(Marks::TILDE)
            }
            RedirKind::Input => {
                literal
                    && (target.text == "/dev/null"
                        || !target.text.is_empty() && !safe::is_outside(&target.text, cwds, self.folders))
            }
            RedirKind::Output => {
                literal && matches!(target.text.as_str(), "/dev/null" | "/dev/stderr" | "/dev/stdout")
            }
            RedirKind::Both => false,
        };
        if fine { Ok(()) } else { Err(format!("a redirection to or from {}", target.text)) }
    }

    /// Arguments that a prefix does not cover (R9, R10, R17), and files that ask for themselves.
    fn arguments(&self, words: &[Word], spelled: usize, fed: bool, cwds: &[String]) -> Result<(), String> {
        self.removal(words, cwds)?;
        let rows = rows(words);
        let outside = |text: &str| safe::is_outside(text, cwds, self.folders);
        if let Some(reason) = rows.asks(&Call { words, granted: spelled, outside: &outside }) {
            return Err(reason);
        }
        // `python -m pytest`: what pytest may do counts.
        if words.len() > 3
            && spelled >= 3
            && words[1].text == "-m"
            && stem(&words[0].text) == "python"
            && let Some(reason) = super::hatch::rows(&words[2..]).asks(&Call {
                words: &words[2..],
                granted: spelled - 2,
                outside: &outside,
            })
        {
            return Err(reason);
        }
        if rows.has_hatches()
            && let Some(word) = words.iter().skip(spelled.max(1)).find(|word| may_become_an_option(word))
        {
            return Err(format!("{} may become an option of {}", word.text, words[0].text));
        }
        if fed && (rows.has_hatches() || rows.kind() != Kind::Reads) {
            return Err(format!("{} gets arguments that are not in the text", words[0].text));
        }
        for (at, word) in words.iter().enumerate().skip(spelled.max(1)) {
            self.file(rows, words, at, word, cwds)?;
        }
        Ok(())
    }

    /// A word as a file: what must not be read or written unasked.
    fn file(
        &self,
        rows: Rows,
        words: &[Word],
        at: usize,
        word: &Word,
        cwds: &[String],
    ) -> Result<(), String> {
        let written = places::is_written(rows, at, words);
        let worth = word.text.contains(['/', '~', '$', '*', '?', '[', '{'])
            || word.text.contains('.')
            || !word.text.is_ascii();
        let special = cwds.iter().any(|cwd| may_matter(cwd));
        if !worth && !special {
            return Ok(());
        }
        for (text, home) in places::candidates(word, false) {
            for cwd in cwds {
                let path = places::resolve(text, home, cwd, self.folders);
                if places::is_private(&path, self.folders) {
                    return Err(format!("{} is not shown to commands unasked", word.text));
                }
            }
            // A pattern of what is left out is not written.
            let left_out = word.text.starts_with("--exclude");
            let careful = written && !left_out && self.care_of(text, home, word, cwds) > Care::Ordinary;
            if careful {
                return Err(format!("{} needs a person's consent", word.text));
            }
        }
        if matches!(rows.kind(), Kind::Writes | Kind::Copies) && written {
            let value = word.text.split_once('=').map_or(word.text.as_str(), |(_, value)| value);
            // `cp -at/x a`
            let joined = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            let target = joined.and_then(|rest| rest.split_once('t')).map_or("", |(_, target)| target);
            let target = if rows.kind() == Kind::Copies { target } else { "" };
            for text in [word.text.as_str(), value, target] {
                let home = text == word.text && word.marks.has(Marks::HOME) || text.starts_with("~/");
                let leaves = cwds.iter().any(|cwd| {
                    let path = places::resolve(text, home, cwd, self.folders);
                    !["/tmp", "/var/tmp", self.folders.workspace]
                        .iter()
                        .any(|folder| places::is_in(&path, folder))
                        && !matches!(path.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr")
                });
                if leaves && !text.starts_with('-') {
                    return Err(format!("{} lies outside the workspace", word.text));
                }
            }
        }
        Ok(())
    }

    /// Recursive removal of what must never go by accident (R17).
    fn removal(&self, words: &[Word], cwds: &[String]) -> Result<(), String> {
        if name(&words[0].text) != "rm" {
            return Ok(());
        }
        let ends = words.iter().position(|word| word.text == "--").unwrap_or(words.len());
        let recursive = words[..ends].iter().skip(1).any(|word| {
            let text = word.text.as_str();
            text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R'])
                || text.len() > 2 && "--recursive".starts_with(text)
                || may_become_an_option(word) && !word.is_literal()
        });
        if !recursive {
            return Ok(());
        }
        for (at, word) in words.iter().enumerate().skip(1) {
            let text = word.text.as_str();
            if at < ends && text.starts_with('-') {
                continue;
            }
            let bare = matches!(
                text.trim_start_matches("./").trim_end_matches('/'),
                "*" | ".*" | "." | ".." | "" | "**" | "{*,.*}" | ".[!.]*" | "?*"
            ) && !text.is_empty();
            let last = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let everything = word.marks.has(Marks::GLOB) && is_any_name(last);
            if word.marks.has(Marks::BRACE) && !has_plain_braces(text) {
                return Err(format!("{text} may name what must not be removed unasked"));
            }
            for cwd in cwds {
                let path = places::resolve(text, word.marks.has(Marks::HOME), cwd, self.folders);
                let folder = if everything {
                    path.rsplit_once('/')
                        .map_or("/", |(folder, _)| if folder.is_empty() { "/" } else { folder })
                        .to_owned()
                } else {
                    path.clone()
                };
                let above = places::is_in(self.folders.workspace, &folder)
                    || places::is_in(self.folders.home, &folder)
                    || folder == "/";
                let lower = path.to_ascii_lowercase();
                let git = lower.rsplit('/').next() == Some(".git");
                let wild = word.marks.has(Marks::GLOB)
                    && last.starts_with('.')
                    && ".git".starts_with(last.split(['*', '?', '[', '{']).next().unwrap_or_default());
                if bare || above || git || wild {
                    return Err(format!("{text} must not be removed unasked"));
                }
            }
        }
        Ok(())
    }
}

impl CommandPattern {
    /// How many of the inner command's words the grant spells, and whether it is exact. `from`
    /// says where the inner command begins behind wrappers.
    fn spells(&self, words: &[Word], from: usize) -> Option<(usize, bool)> {
        let exact = matches!(self, Self::Exact { .. });
        if let Some(spelled) = self.covers(&words[from..]) {
            return Some((spelled, exact));
        }
        // The wrapper and more is spelled.
        self.covers(words)
            .filter(|spelled| from > 0 && *spelled > from)
            .map(|spelled| (spelled - from, exact))
    }
}

/// Builtins that change the shell, or run code from their arguments (R7).
const CHANGES_SHELL: &[&str] = &[
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

/// Names that cannot change what runs (R7).
fn assignment(word: &Word, bare: bool) -> Result<(), String> {
    const FREE: &[&str] = &[
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
        return Err(format!("{name} is assigned for all that follows"));
    }
    let free = FREE.contains(&name)
        || name
            .strip_prefix("LC_")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_uppercase()));
    if !free {
        return Err(format!("{name} may change what runs"));
    }
    let unknown = [Marks::EXPANDS, Marks::NUMBER, Marks::DOLLAR_QUOTE, Marks::TILDE];
    if unknown.iter().any(|mark| word.marks.has(*mark))
        || value.contains('~') && !word.marks.has(Marks::QUOTED)
    {
        return Err(format!("the value of {name} is not literal"));
    }
    Ok(())
}

/// What must hold for the words of any command (R4, R10, R11).
fn shape(words: &[Word]) -> Result<(), String> {
    let Some(first) = words.first() else { return Ok(()) };
    if !first.is_literal() || first.marks.has(Marks::DOLLAR_QUOTE) || first.text.is_empty() {
        return Err("the name of the command is not spelled out".into());
    }
    for word in &words[1..] {
        let unknown = [Marks::EXPANDS, Marks::DOLLAR_QUOTE, Marks::TILDE];
        if unknown.iter().any(|mark| word.marks.has(*mark)) {
            return Err(format!("{} is only known when it runs", word.text));
        }
        if word.marks.has(Marks::BRACE_DASH) {
            return Err(format!("{} may become an option", word.text));
        }
    }
    Ok(())
}

/// The command behind wrappers that are see-through (R8), and whether it gets more words.
fn unwrap(words: &[Word]) -> Result<(&[Word], bool), String> {
    let mut rest = words;
    let mut fed = false;
    loop {
        match through(rest) {
            Through::No => return Ok((rest, fed)),
            Through::At(from) => rest = &rest[from..],
            Through::Fed(from) => {
                fed = true;
                rest = &rest[from..];
            }
            Through::Odd => return Err(format!("what {} is told is not understood", rest[0].text)),
        }
    }
}

/// Whether a name is nothing but wildcards: `*`, `?*`, `[a-z]*`, `.*`.
fn is_any_name(name: &str) -> bool {
    let mut rest = name.strip_prefix('.').unwrap_or(name);
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '*' | '?' => &rest[1..],
            '[' => match rest.get(2..).and_then(|more| more.find(']')) {
                Some(end) => &rest[end + 3..],
                None => return false,
            },
            _ => return false,
        };
    }
    !name.is_empty() && name != "."
}

/// Whether the braces of a word only choose between plain names below the folder: no alternative is
/// empty or holds more than letters, digits, `_` and `-`, and no part of the path begins with a dot.
fn has_plain_braces(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut before = '/';
    for c in text.chars() {
        let empty = matches!(before, '{' | ',');
        match c {
            '{' => depth += 1,
            '}' if depth == 0 || empty => return false,
            '}' => depth -= 1,
            ',' if depth > 0 && empty => return false,
            '.' if before == '/' => return false,
            '/' if before == '/' => return false,
            _ if depth > 0 && !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ',')) => return false,
            _ => {}
        }
        before = c;
    }
    depth == 0 && !text.starts_with('~')
}

/// Whether a text can have to do with a protected place at all.
fn may_matter(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(at, c)| match c {
        b'*' | b'?' | b'[' | b'{' | 0x80.. => true,
        b'a' | b'A' => begins(&bytes[at..], b"agent"),
        b'.' => [&b".git"[..], b".config", b".local"].iter().any(|name| begins(&bytes[at..], name)),
        _ => false,
    })
}

fn begins(bytes: &[u8], name: &[u8]) -> bool {
    bytes.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
}
