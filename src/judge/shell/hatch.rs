//! Escape hatches: arguments with which a program does more than its name says.
//!
//! A grant of `sort` is meant for sorting. `sort -o FILE` writes, `sort --compress-program X` runs
//! X. The table of [`super::programs`] says for each program which arguments these are; this file
//! knows the ways in which they can be spelled: `-o f`, `-of`, `-uof`, `--output f`, `--output=f`,
//! and `--outp=f`, since most programs take any unambiguous beginning.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::programs::PROGRAMS;
use super::word::{Marks, Word};

/// What a program does with the files it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads them; its arguments do nothing else but what the table says.
    Reads,
    /// Writes, changes or removes them.
    Writes,
    /// Reads all but the last, which it writes.
    Copies,
    /// Anything: arguments that look like a hatch ask even if the table does not name them.
    Tool,
}

/// A check beyond options: gets the words and the number of granted ones.
pub(super) type Also = fn(&Call<'_>) -> Option<String>;

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// `name` or `name verb`, several separated by `|`.
    pub(super) names: &'static str,
    /// Arguments that ask, separated by blanks. `-x`: a letter, also within a cluster. `--word`:
    /// also abbreviated and with `=`. `-word`: a long option with one dash. `word`: an operand.
    /// `word=`: the beginning of an operand. With a final `@`, only if its value lies outside the
    /// workspace; `@` alone: any operand outside. `*`: every argument; `**`: also none; `***`: the
    /// same, but what follows code that the grant spells is the code's.
    pub(super) ask: &'static str,
    /// Options whose value is the next word.
    pub(super) value: &'static str,
    /// Exceptions from `ask` and from the general suspicion.
    pub(super) fine: &'static str,
    pub(super) kind: Kind,
    pub(super) also: Option<Also>,
}

impl Program {
    pub(super) const fn new(names: &'static str, ask: &'static str) -> Self {
        Self { names, ask, value: "", fine: "", kind: Kind::Tool, also: None }
    }

    pub(super) const fn value(mut self, value: &'static str) -> Self {
        self.value = value;
        self
    }

    pub(super) const fn fine(mut self, fine: &'static str) -> Self {
        self.fine = fine;
        self
    }

    pub(super) const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    pub(super) const fn also(mut self, also: Also) -> Self {
        self.also = Some(also);
        self
    }
}

/// The row of a name, or of a name and a verb with a blank between.
fn row(name: &str) -> Option<&'static Program> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Program>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index = HashMap::new();
        for row in PROGRAMS.iter().flat_map(|table| table.iter()) {
            for name in row.names.split('|') {
                index.entry(name).or_insert(row);
            }
        }
        index
    });
    index.get(name).copied()
}

/// One command under judgement.
pub(super) struct Call<'a> {
    /// All its words, the name first.
    pub(super) words: &'a [Word],
    /// How many of them a grant spells.
    pub(super) granted: usize,
    /// Whether a text names something outside the workspace.
    pub(super) outside: &'a dyn Fn(&str) -> bool,
}

impl<'a> Call<'a> {
    /// The words that no grant spells, with their places.
    pub(super) fn free(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.words.iter().enumerate().skip(self.granted.max(1)).map(|(at, word)| (at, word.text.as_str()))
    }
}

/// The rows that speak of a command: one for the program, one for its verb.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    program: Option<&'static Program>,
    verb: Option<&'static Program>,
}

/// Looks a command up. Versions are left out of the name: `python3.11` is `python`.
pub(super) fn rows(words: &[Word]) -> Rows {
    let Some(first) = words.first() else { return Rows { program: None, verb: None } };
    let name = stem(&first.text);
    let program = row(name);
    let verb = verb(words, program).and_then(|at| row(&format!("{name} {}", words[at].text)));
    Rows { program, verb }
}

/// The name without folder and version.
pub(super) fn stem(text: &str) -> &str {
    let name = text.rsplit('/').next().unwrap_or(text);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let stem = stem.strip_suffix('-').filter(|_| stem.len() < name.len()).unwrap_or(stem);
    // `7z`, `[`, `md5sum` keep their digits; only those in the table lose them.
    if !stem.is_empty() && stem.len() < name.len() && row(name).is_none() { stem } else { name }
}

/// Where the verb stands: the first word that is neither an option nor the value of one.
pub(super) fn verb(words: &[Word], program: Option<&Program>) -> Option<usize> {
    let values: Vec<&str> = program.map(|row| row.value.split_whitespace().collect()).unwrap_or_default();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if !word.text.starts_with('-') && !word.text.starts_with('+') {
            return Some(at);
        }
        at += if values.contains(&word.text.as_str()) { 2 } else { 1 };
    }
    None
}

/// The same, by the program's own row.
pub(super) fn own_verb(words: &[Word]) -> Option<usize> {
    verb(words, words.first().and_then(|first| row(stem(&first.text))))
}

/// Whether what a command runs is known: its program is in the table, and not only as one that asks for
/// everything.
pub(super) fn is_understood(words: &[Word]) -> bool {
    let odd = |row: &Program| row.ask.split_whitespace().any(|item| matches!(item, "**" | "***"));
    let program = words.first().and_then(|first| row(stem(&first.text)));
    program.is_some_and(|row| !odd(row)) || words.len() > 1 && rows(words).verb.is_some()
}

impl Rows {
    pub(super) fn is_known(self) -> bool {
        self.program.is_some() || self.verb.is_some()
    }

    pub(super) fn kind(self) -> Kind {
        self.verb.or(self.program).map_or(Kind::Tool, |row| row.kind)
    }

    /// Whether some argument of the program asks, or might.
    pub(super) fn has_hatches(self) -> bool {
        let harmless = |row: &Program| row.kind != Kind::Tool && row.ask.is_empty() && row.also.is_none();
        match (self.program, self.verb) {
            (Some(program), None) => !harmless(program),
            _ => true,
        }
    }

    /// Why the arguments beyond the granted words ask, if they do.
    pub(super) fn asks(self, call: &Call<'_>) -> Option<String> {
        if call.words.len() <= 1 {
            return self
                .program
                .filter(|row| row.ask.split_whitespace().any(|item| matches!(item, "**" | "***")))
                .map(|_| format!("{} runs what it reads", call.words.first().map_or("it", |w| &w.text)));
        }
        let one = |row: &'static Program| {
            if let Some(reason) = scan(row, call) {
                return Some(reason);
            }
            row.also.and_then(|also| also(call))
        };
        let by_table = self.program.and_then(one).or_else(|| self.verb.and_then(one));
        if by_table.is_some() {
            return by_table;
        }
        if self.kind() == Kind::Tool { self.suspicion(call) } else { None }
    }

    /// What the general rule says of options that the table does not know.
    fn suspicion(self, call: &Call<'_>) -> Option<String> {
        let fine: Vec<&str> = [self.program, self.verb]
            .into_iter()
            .flatten()
            .flat_map(|row| row.fine.split_whitespace())
            .collect();
        for (_, text) in call.free() {
            if text == "--" {
                break;
            }
            let Some(whole) = text.strip_prefix('-') else { continue };
            let whole = whole.strip_prefix('-').unwrap_or(whole);
            let name = whole.split('=').next().unwrap_or_default();
            if fine.iter().map(|own| own.trim_start_matches('-')).any(|own| own == name || own == whole) {
                continue;
            }
            if is_suspicious(name) {
                return Some(format!("{text} may run a program, load code or settings, or write a file"));
            }
        }
        None
    }
}

/// Words that name a hatch in programs nobody has looked at.
const SUSPICIOUS: &[&str] = &[
    "exec",
    "execute",
    "command",
    "cmd",
    "shell",
    "config",
    "conf",
    "cfg",
    "configuration",
    "settings",
    "rc",
    "rcfile",
    "plugin",
    "plugins",
    "preload",
    "require",
    "loader",
    "eval",
    "script",
    "hook",
    "hooks",
    "pager",
    "editor",
    "browser",
    "preprocessor",
    "postprocessor",
    "program",
    "interpreter",
    "rsh",
    "proxycommand",
    "library",
    "module",
    "extension",
    "output",
    "outfile",
    "out",
    "upload",
    "init",
    "python",
    "compiler",
    "linker",
    "wrapper",
    "runner",
];

fn is_suspicious(name: &str) -> bool {
    name.len() > 2
        && !name.starts_with("no-")
        && name
            .split(['-', '_', '.'])
            .map(str::to_ascii_lowercase)
            .any(|part| SUSPICIOUS.contains(&part.as_str()))
        && !name.ends_with("format")
        && !name.ends_with("color")
}

fn said(text: &str) -> Option<String> {
    Some(format!("{text} makes the program do more than its grant says"))
}

/// Whether an option that names a file to write names none.
fn goes_nowhere(row: &Program, option: &str, value: &str) -> bool {
    match row.names {
        "curl" => matches!(option, "-o" | "--output") && matches!(value, "/dev/null" | "-"),
        "wget|wget2" => matches!(option, "-O" | "--output-document") && matches!(value, "/dev/null" | "-"),
        _ => false,
    }
}

/// One row against the words of a call.
fn scan(row: &Program, call: &Call<'_>) -> Option<String> {
    let asks: Vec<&str> = row.ask.split_whitespace().collect();
    let values: Vec<&str> = row.value.split_whitespace().collect();
    let fine: Vec<&str> = row.fine.split_whitespace().collect();
    // Code that a grant spells takes whatever arguments it likes.
    let spelled = call.granted > 1
        && asks.contains(&"***")
        && call.words.get(call.granted - 1).is_some_and(|last| !last.text.starts_with('-'));
    if spelled {
        return None;
    }
    let everything = asks.iter().any(|item| matches!(*item, "*" | "**" | "***"));
    if asks.is_empty() {
        return None;
    }
    let letters = asks.iter().any(|item| item.len() == 2 && item.starts_with('-'))
        || asks.iter().any(|item| item.len() == 3 && item.starts_with('-') && item.ends_with('@'));
    let words = call.words;
    let is_free = |at: usize| at >= call.granted;
    let mut ended = false;
    // Whether the word before takes this one, as the table says. Many options take a value only
    // when it touches them, and many tables are wrong: what begins with `-` is judged all the same.
    let mut taken = false;
    for (here, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let next = words.get(here + 1).map(|word| word.text.as_str());
        let is_value = std::mem::take(&mut taken);
        if is_value && !(text.starts_with('-') && text.len() > 1) {
            if asks.contains(&"@") && is_free(here) && (call.outside)(text) {
                return said(text);
            }
            continue;
        }
        if text == "--" && !ended {
            // As the value of an option it ends nothing.
            ended = !is_value;
            continue;
        }
        if everything && is_free(here) && !fine.contains(&text) {
            return said(text);
        }
        if ended || !text.starts_with('-') || text == "-" {
            let hit = asks.iter().any(|item| match item.strip_suffix('=') {
                Some(_) => text.starts_with(item),
                None if *item == "@" => (call.outside)(text),
                None => *item == text && !item.starts_with('-'),
            });
            if hit && is_free(here) {
                return said(text);
            }
            continue;
        }
        let (option, joined) = match text.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (text, None),
        };
        taken = values.contains(&option) && joined.is_none();
        if fine.contains(&option) || fine.contains(&text) {
            continue;
        }
        // Long options, with two dashes or with one.
        for item in &asks {
            let (name, only_outside) = match item.strip_suffix('@') {
                Some(name) => (name, true),
                None => (*item, false),
            };
            // An option that exists is no beginning of a longer one.
            let exists = values.contains(&option);
            let long = match (name.strip_prefix("--"), option.strip_prefix("--")) {
                (Some(name), Some(option)) if exists => name == option,
                (Some(name), Some(option)) => !option.is_empty() && name.starts_with(option),
                _ if name.len() > 2 && name.starts_with('-') => {
                    name.trim_start_matches('-') == option.trim_start_matches('-')
                }
                _ => false,
            };
            if long {
                let value = joined.or(next).unwrap_or_default();
                taken |= only_outside && joined.is_none();
                let value_is_free = is_free(here) || (joined.is_none() && is_free(here + 1));
                if only_outside && value_is_free && (call.outside)(value) {
                    return said(&format!("{option} {value}"));
                }
                if !only_outside && is_free(here) && !goes_nowhere(row, option, value) {
                    return said(option);
                }
            }
        }
        // A word of its own with one dash: `-pl`.
        if option.len() > 2 && values.contains(&option) {
            continue;
        }
        if option.starts_with("--") || !letters && !values.iter().any(|v| v.len() == 2) {
            continue;
        }
        // A cluster of letters.
        for (place, letter) in text.char_indices().skip(1) {
            let rest = &text[place + letter.len_utf8()..];
            let is = |item: &str| {
                item.strip_prefix('-').is_some_and(|l| l.strip_prefix(letter).is_some_and(str::is_empty))
            };
            if asks.iter().any(|item| is(item)) && is_free(here) {
                let value = if rest.is_empty() { next.unwrap_or_default() } else { rest };
                if goes_nowhere(row, &format!("-{letter}"), value) {
                    break;
                }
                return said(&format!("-{letter}"));
            }
            if asks.iter().any(|item| item.strip_suffix('@').is_some_and(is)) {
                let value = if rest.is_empty() { next.unwrap_or_default() } else { rest };
                let value = value.strip_prefix('=').unwrap_or(value);
                let place_of_value = if rest.is_empty() { here + 1 } else { here };
                taken |= rest.is_empty();
                if (is_free(place_of_value)) && (call.outside)(value) {
                    return said(&format!("-{letter} {value}"));
                }
                break;
            }
            if values.iter().any(|item| is(item)) {
                taken |= rest.is_empty();
                break;
            }
        }
    }
    None
}

/// The operands of a call: words that are neither options nor their values.
pub(super) fn operands<'w>(words: &'w [Word], values: &str) -> Vec<(usize, &'w Word)> {
    let values: Vec<&str> = values.split_whitespace().collect();
    let mut found = Vec::new();
    let mut ended = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if !ended && word.text == "--" {
            ended = true;
        } else if ended || !word.text.starts_with('-') || word.text == "-" {
            found.push((at, word));
        } else if values.contains(&word.text.as_str()) {
            at += 1;
        }
        at += 1;
    }
    found
}

/// Whether a word might turn into an option of a program that has hatches (R10).
pub(super) fn may_become_an_option(word: &Word) -> bool {
    word.marks.has(Marks::GLOB_FIRST)
}
