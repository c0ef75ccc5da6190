//! Escape options: arguments with which a program does more than its name says.
//!
//! A grant of `sort` is meant for sorting. `sort -o FILE` writes, and `sort --compress-program X` runs
//! X. The table of [`crate::shell::programs::records`] lists these arguments for each program.
//! This file knows the ways in which they can be written: `-o f`, `-of`, `-uof`, `--output f`,
//! `--output=f`, and `--outp=f`, because most programs accept any unambiguous abbreviation.

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::call::WorkBudget;
use crate::shell::programs::escape_exceptions::{
    abbreviates, belongs_to_other_program, has_no_effect, is_behind_names, is_no_path, is_read_only,
    is_short_for, is_suspicious,
};
use crate::shell::programs::lookup::{ProgramRows, row, rows, stem, verb};
use crate::shell::programs::table::{FileEffect, Row};

impl Row {
    /// Whether the command begins with a verb after which the other words are names.
    fn names_follow(&self, call: &CommandCall<'_>) -> bool {
        // The word after the verb of the row.
        let first = if self.names.contains(' ') { 2 } else { 1 };
        !self.read_only_verbs.is_empty()
            && call.words.get(first).is_some_and(|word| self.read_only_verbs.contains(&word.text.as_str()))
            && call.words[first + 1..]
                .iter()
                .all(|word| word.is_literal() && !word.text.starts_with('-') && !word.text.contains('/'))
    }

    /// Whether the grant contains the code that runs. Such code may take any arguments.
    fn spells_code(&self, call: &CommandCall<'_>) -> bool {
        call.granted > 1
            && self.code
            && call.words.get(call.granted - 1).is_some_and(|last| !last.text.starts_with('-'))
            && !more_options_count(call)
    }
}

/// `go run ./cmd/x`, where the grant contains the program: the following words are the program's
/// arguments.
fn runs_granted_code(call: &CommandCall<'_>) -> bool {
    let is = |at: usize, wanted: &str| call.words.get(at).is_some_and(|word| word.text == wanted);
    let last = call.granted.checked_sub(1).and_then(|at| call.words.get(at));
    let names = |text: &str| text == "." || text.starts_with("./") || text.ends_with(".go");
    call.granted == 3 && is(0, "go") && is(1, "run") && last.is_some_and(|word| names(&word.text))
}

/// Whether an option after code on the command line still belongs to the interpreter: `perl -ne CODE
/// -i`.
fn more_options_count(call: &CommandCall<'_>) -> bool {
    let before = call.granted.checked_sub(2).and_then(|at| call.words.get(at)).map_or("", |word| &word.text);
    let gives_code = before.starts_with('-')
        && (before.ends_with(['e', 'E', 'p']) || before == "--eval" || before == "--print");
    let goes_on = matches!(
        stem(&call.words[0].text),
        "perl" | "ruby" | "node" | "nodejs" | "lua" | "luajit" | "bun" | "Rscript" | "raku"
    );
    let next = call.words.get(call.granted).map_or("", |word| word.text.as_str());
    gives_code && goes_on && next.starts_with('-') && !matches!(next, "-" | "--")
}

/// Whether the table tells which programs a command runs. Its program has a row, and the row does not
/// require a request for every call.
pub(crate) fn is_understood(words: &[Word]) -> bool {
    let program = words.first().and_then(|first| row(stem(&first.text)));
    program.is_some_and(|row| !row.alone) || words.len() > 1 && rows(words).verb.is_some()
}

impl ProgramRows {
    pub(crate) fn is_known(self) -> bool {
        self.program.is_some() || self.verb.is_some()
    }

    pub(crate) fn kind(self) -> FileEffect {
        self.verb.or(self.program).map_or(FileEffect::Tool, |row| row.kind)
    }

    /// Whether some argument of the program needs a request, or may need one.
    pub(crate) fn has_escape_options(self) -> bool {
        let harmless = |row: &Row| row.kind != FileEffect::Tool && row.asks.is_empty() && row.also.is_none();
        match (self.program, self.verb) {
            (Some(program), None) => !harmless(program),
            _ => true,
        }
    }

    /// Why the arguments beyond the granted words need a request, if they do.
    pub(crate) fn request_reason(self, call: &CommandCall<'_>) -> Option<String> {
        // A `--` without anything after it has no effect.
        if call.words.iter().filter(|word| word.text != "--").count() <= 1 {
            return self
                .program
                .filter(|row| row.alone || row.runs_input)
                .map(|_| format!("{} runs what it reads", call.words.first().map_or("it", |w| &w.text)));
        }
        if runs_granted_code(call) {
            return None;
        }
        let row_reason = |row: &'static Row| {
            if let Some(reason) = scan(row, call) {
                return Some(reason);
            }
            if row.also.is_some() && !call.work_budget.spend(6 * call.words.len()) {
                return Some(TOO_COMPLEX.to_owned());
            }
            row.also.and_then(|also| also(call))
        };
        let by_table = self.program.and_then(row_reason).or_else(|| self.verb.and_then(row_reason));
        if by_table.is_some() {
            return by_table;
        }
        if let Some(reason) = self.outside_path_reason(call) {
            return Some(reason);
        }
        if self.kind() == FileEffect::Tool { self.suspicious_option_reason(call) } else { None }
    }

    /// Whether the words of a grant contain an option that makes an otherwise read-only program write
    /// files, or apply to other files.
    pub(crate) fn writes_as_granted(self, granted_words: &[Word], work_budget: &WorkBudget) -> bool {
        let Some(row) = self.program.or(self.verb).filter(|row| row.local) else { return false };
        let none = |_: &str| false;
        let is_option = granted_words.iter().skip(1).any(|word| word.text.starts_with('-'));
        is_option
            && !row.alone
            && scan(row, &CommandCall { words: granted_words, granted: 0, outside: &none, work_budget })
                .is_some()
    }

    /// A path outside the workspace, given to a program that works on a project.
    fn outside_path_reason(self, call: &CommandCall<'_>) -> Option<String> {
        let row = self.program.or(self.verb).filter(|row| row.projects && !row.spells_code(call))?;
        let hands_on = row.passes_words_on();
        let compiles = row.names.starts_with("gcc|");
        // The granted words may contain the `--`. All words after it are for another program.
        if hands_on && call.words.iter().take(call.granted).any(|word| word.text == "--") {
            return None;
        }
        for (at, text) in call.ungranted_words() {
            if text == "--" && hands_on {
                return None;
            }
            if !text.contains(['/', '~']) && !text.contains("..") {
                continue;
            }
            if !call.work_budget.spend(12 + text.len() / 4) {
                return Some(TOO_COMPLEX.to_owned());
            }
            let (name, value) = if text.starts_with('-') {
                let Some(parts) = text.split_once(['=', ':']) else { continue };
                parts
            } else {
                let before = call.words[at - 1].text.as_str();
                let is_option = before.starts_with('-') && !before.contains('=');
                if is_option && row.values.contains(&before) {
                    continue;
                }
                (if is_option { before } else { "" }, text)
            };
            let searches =
                compiles && ["-I", "-L", "-D", "-U", "-i", "-F", "-W"].iter().any(|o| name.starts_with(o));
            if searches || is_no_path(name) {
                continue;
            }
            let leaves = |piece: &str| {
                let path = piece.starts_with("~/") || piece.starts_with('/') && !piece.starts_with("//");
                (path || piece.split('/').any(|part| part == "..")) && (call.outside)(piece)
            };
            if value.split(['=', ':', ',']).any(leaves) {
                return escape_reason(text);
            }
        }
        None
    }

    /// The general rule for options that are not in the table.
    fn suspicious_option_reason(self, call: &CommandCall<'_>) -> Option<String> {
        if self.program.is_some_and(|row| row.spells_code(call)) {
            return None;
        }
        let fine: Vec<&str> = [self.program, self.verb]
            .into_iter()
            .flatten()
            .flat_map(|row| row.fine.iter().copied())
            .collect();
        for (at, text) in call.ungranted_words() {
            // A `--` does not end the options if it is an option's value, or in find.
            let ends = || {
                let before = call.words[at - 1].text.as_str();
                let hands_on = self.program.is_some_and(Row::passes_words_on);
                hands_on
                    || !before.starts_with('-')
                        && crate::shell::programs::call::program_name(&call.words[0].text) != "find"
            };
            if text == "--" && ends() {
                break;
            }
            let Some(whole) = text.strip_prefix('-') else { continue };
            if !call.work_budget.spend(8 + fine.len() / 2 + text.len() / 2) {
                return Some(TOO_COMPLEX.to_owned());
            }
            let whole = whole.strip_prefix('-').unwrap_or(whole);
            let name = whole.split('=').next().unwrap_or_default();
            if fine.iter().map(|own| own.trim_start_matches('-')).any(|own| own == name || own == whole) {
                continue;
            }
            // This option needs a request only for a value outside the workspace, and the value was
            // checked before.
            let judged = |row: &Row| {
                row.options
                    .iter()
                    .any(|(own, only_outside)| *only_outside && own.trim_start_matches('-') == name)
            };
            if self.program.is_some_and(judged) || self.verb.is_some_and(judged) {
                continue;
            }
            let after = call.words.get(at + 1).map_or("", |word| word.text.as_str());
            let (option, value) = text.split_once('=').unwrap_or((text, after));
            if [self.program, self.verb]
                .into_iter()
                .flatten()
                .any(|row| has_no_effect(row.names, option, value))
            {
                continue;
            }
            if is_suspicious(name) {
                return Some(format!("{text} may run a program, load code or settings, or write a file"));
            }
        }
        None
    }
}

/// Reason for a command with too many arguments to inspect.
pub(crate) const TOO_COMPLEX: &str = "there is too much in this line to be judged";

fn escape_reason(text: &str) -> Option<String> {
    Some(format!("{text} makes the program do more than its grant says"))
}

/// `npm run publish`: the words after the verb are the name of a project script and its arguments.
pub(crate) fn names_a_script(words: &[Word]) -> bool {
    let npm = |word: &Word| matches!(stem(&word.text), "npm" | "pnpm" | "yarn");
    let run = |word: &Word| word.is_literal() && matches!(word.text.as_str(), "run" | "run-script" | "test");
    words.first().is_some_and(npm) && words.get(1).is_some_and(run)
}

/// Whether two long options are equal except for case and dashes.
fn is_alike(one: &str, other: &str) -> bool {
    let letters = |text| {
        let letters = str::bytes(str::trim_start_matches(text, '-')).filter(|c| *c != b'-');
        letters.map(|c| c.to_ascii_lowercase())
    };
    one.starts_with('-') && other.starts_with("--") && letters(one).eq(letters(other))
}

/// Compares one row with the words of a call.
fn scan(row: &Row, call: &CommandCall<'_>) -> Option<String> {
    let Row { values, fine, everything, .. } = row;
    if row.spells_code(call) || row.asks.is_empty() || row.names_follow(call) {
        return None;
    }
    let letters = !row.letters.is_empty() || !row.outside_letters.is_empty() || !row.value_letters.is_empty();
    let words = call.words;
    let is_free = |at: usize| at >= call.granted;
    // These programs pass on the words after `--`, and never treat it as a value. In all other programs
    // it may be a value, and find ignores it: a word that looks like an option is judged as one.
    let hands_on = row.passes_words_on();
    let mut ended = false;
    let mut behind = false;
    // Whether the word before takes this one as its value, by the table. Many options take a value only
    // directly attached, and tables may be wrong: a word with a leading `-` is always judged.
    let mut taken = false;
    let scripts = names_a_script(words);
    let commands = words.first().and_then(|first| abbreviates(stem(&first.text)));
    let verb_at = commands.and_then(|_| verb(words, Some(row))).unwrap_or(0);
    for (here, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let next = words.get(here + 1).map(|word| word.text.as_str());
        let is_value = std::mem::take(&mut taken);
        if is_value && !(text.starts_with('-') && text.len() > 1) {
            // A pattern that selects tests is not a path.
            let chooses = matches!(words[here - 1].text.as_str(), "-k" | "-m");
            if row.outside && is_free(here) && !chooses && (call.outside)(text) {
                return escape_reason(text);
            }
            continue;
        }
        if text == "--" && !ended {
            // A `--` that is an option's value does not end the options.
            ended = !is_value && hands_on;
            behind |= !is_value;
            continue;
        }
        let items = if text.starts_with('-') { row.options.len() } else { row.operands.len() };
        if !call.work_budget.spend(4 + items + text.len() / 8) {
            return Some(TOO_COMPLEX.to_owned());
        }
        if *everything && is_free(here) && !fine.contains(&text) {
            return escape_reason(text);
        }
        let is_option = text.starts_with('-') && text != "-";
        if ended || behind || !is_option {
            let hit = || {
                let is_known_read_only = || is_read_only(words, here) || is_behind_names(words, here);
                row.operands.contains(&text) && !scripts && !is_known_read_only()
                    || commands
                        .is_some_and(|known| here == verb_at && is_short_for(text, known, &row.operands))
                        && !is_known_read_only()
                    || row.beginnings.iter().any(|begin| text.starts_with(begin))
                    || row.outside && (call.outside)(text)
            };
            if is_free(here) && hit() {
                return escape_reason(text);
            }
            if ended || !is_option {
                continue;
            }
        }
        let (option, joined) = match text.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (text, None),
        };
        taken = values.contains(&option) && joined.is_none();
        if fine.contains(&option) || fine.contains(&text) || belongs_to_other_program(call, text) {
            continue;
        }
        // Long options, with two dashes or with one.
        for (name, only_outside) in row.options.iter().copied() {
            // An existing option is not an abbreviation of a longer one.
            let exists = values.contains(&option);
            let long = match (name.strip_prefix("--"), option.strip_prefix("--")) {
                (Some(name), Some(option)) if exists => name == option,
                (Some(name), Some(option)) => !option.is_empty() && name.starts_with(option),
                _ => name.trim_start_matches('-') == option.trim_start_matches('-'),
            } || row.loose && !exists && is_alike(name, option);
            if long {
                let value = joined.or(next).unwrap_or_default();
                taken |= only_outside && joined.is_none();
                let value_is_free = is_free(here) || (joined.is_none() && is_free(here + 1));
                if only_outside && value_is_free && (call.outside)(value) {
                    return escape_reason(&format!("{option} {value}"));
                }
                if !only_outside && is_free(here) && !has_no_effect(row.names, option, value) {
                    return escape_reason(option);
                }
            }
        }
        // A separate word with one dash: `-pl`.
        if option.len() > 2 && values.contains(&option) {
            continue;
        }
        if option.starts_with("--") || !letters {
            continue;
        }
        // A cluster of letters.
        for (place, letter) in text.char_indices().skip(1) {
            let rest = &text[place + letter.len_utf8()..];
            if row.letters.has(letter) && is_free(here) {
                let value = if rest.is_empty() { next.unwrap_or_default() } else { rest };
                if has_no_effect(row.names, &format!("-{letter}"), value) {
                    break;
                }
                return escape_reason(&format!("-{letter}"));
            }
            if row.outside_letters.has(letter) {
                let value = if rest.is_empty() { next.unwrap_or_default() } else { rest };
                let value = value.strip_prefix('=').unwrap_or(value);
                let place_of_value = if rest.is_empty() { here + 1 } else { here };
                taken |= rest.is_empty();
                if (is_free(place_of_value)) && (call.outside)(value) {
                    return escape_reason(&format!("-{letter} {value}"));
                }
                break;
            }
            if row.value_letters.has(letter) {
                taken |= rest.is_empty();
                break;
            }
        }
    }
    None
}

/// The operands of a call: words that are neither options nor their values.
pub(crate) fn operands<'w>(words: &'w [Word], values: &str) -> Vec<(usize, &'w Word)> {
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

/// Whether a word may expand to an option of a program that has escape options.
pub(crate) fn may_become_an_option(word: &Word) -> bool {
    // A file may have a name that makes the word an option; the text after `=` is its value.
    let is_a_choice = || word.text.split('=').next().is_some_and(|name| name.contains(['*', '?', '[']));
    word.marks.has(Marks::GLOB_FIRST)
        || word.marks.has(Marks::GLOB) && word.text.starts_with('-') && is_a_choice()
}
