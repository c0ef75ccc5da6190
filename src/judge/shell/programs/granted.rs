//! The arguments of a call that a grant does not contain: which of them make the program do more than
//! its name says.
//!
//! A grant of `sort` is meant for sorting. `sort -o FILE` writes, and `sort --compress-program X` runs
//! X. The records list these arguments. This file knows the ways in which they can be written: `-o f`,
//! `-of`, `-uof`, `--output f`, `--output=f`, and `--outp=f`, because most programs accept any
//! unambiguous abbreviation.

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::call::{CommandCall, WorkBudget, program_name};
use crate::shell::programs::exceptions::{
    has_no_effect, is_no_path, is_read_only_verb, is_short_for, is_suspicious, names_follow,
    passes_in_this_program, short_verbs,
};
use crate::shell::programs::lookup::{CommandRecords, arguments, records, stem, verb};
use crate::shell::programs::record::{Arguments, FileEffect, Record};
use crate::shell::programs::special;
use crate::shell::programs::text_rules::text_rule_reason;

/// Reason for a command with too many arguments to inspect.
pub(crate) const TOO_COMPLEX: &str = "there is too much in this line to be judged";

impl Record {
    /// Whether the command begins with a verb after which all other words are plain names.
    fn looks_up(&self, call: &CommandCall<'_>) -> bool {
        let first = if self.is_verb { 2 } else { 1 };
        call.words.get(first).is_some_and(|word| self.lookups.has(&word.text))
            && call.words[first + 1..]
                .iter()
                .all(|word| word.is_literal() && !word.text.starts_with('-') && !word.text.contains('/'))
    }

    /// Whether the grant contains the code that runs. Such code may take any arguments.
    fn is_code_granted(&self, call: &CommandCall<'_>) -> bool {
        call.granted > 1
            && self.arguments == Arguments::Code
            && call.words.get(call.granted - 1).is_some_and(|last| !last.text.starts_with('-'))
            && !self.has_options_after_code(call)
    }

    /// Whether an option after code on the command line still belongs to the interpreter: `perl -ne CODE
    /// -i`.
    fn has_options_after_code(&self, call: &CommandCall<'_>) -> bool {
        let word_before_last = call.granted.checked_sub(2).and_then(|at| call.words.get(at));
        let option = word_before_last.map_or("", |word| &word.text);
        let gives_code = option.starts_with('-')
            && (option.ends_with(['e', 'E', 'p']) || option == "--eval" || option == "--print");
        let next = call.words.get(call.granted).map_or("", |word| word.text.as_str());
        gives_code
            && self.options_after_code.has(stem(&call.words[0].text))
            && next.starts_with('-')
            && !matches!(next, "-" | "--")
    }
}

/// `go run ./cmd/x`, where the grant contains the program: the following words are the program's
/// arguments.
fn runs_granted_code(call: &CommandCall<'_>) -> bool {
    let is_word = |at: usize, wanted: &str| call.words.get(at).is_some_and(|word| word.text == wanted);
    let last = call.granted.checked_sub(1).and_then(|at| call.words.get(at));
    let is_code = |text: &str| text == "." || text.starts_with("./") || text.ends_with(".go");
    call.granted == 3 && is_word(0, "go") && is_word(1, "run") && last.is_some_and(|word| is_code(&word.text))
}

/// Whether the records tell which programs a command runs: its program has a record that does not ask
/// for every call.
pub(crate) fn is_understood(words: &[Word]) -> bool {
    let program = words.first().and_then(|first| arguments(stem(&first.text)));
    program.is_some_and(|record| !record.asks_alone()) || words.len() > 1 && records(words).verb.is_some()
}

impl CommandRecords {
    pub(crate) fn is_known(self) -> bool {
        self.program.is_some() || self.verb.is_some()
    }

    pub(crate) fn effect(self) -> FileEffect {
        self.verb.or(self.program).and_then(|record| record.effect).unwrap_or(FileEffect::Any)
    }

    fn both(self) -> impl Iterator<Item = &'static Record> {
        self.program.into_iter().chain(self.verb)
    }

    /// Whether some argument of the program needs a request, or may need one.
    pub(crate) fn may_need_request(self) -> bool {
        let is_harmless = |record: &Record| {
            record.effect != Some(FileEffect::Any) && !record.lists_arguments() && !record.has_more_checks()
        };
        match (self.program, self.verb) {
            (Some(program), None) => !is_harmless(program),
            _ => true,
        }
    }

    /// Why the arguments beyond the granted words need a request, if they do.
    pub(crate) fn request_reason(self, call: &CommandCall<'_>) -> Option<String> {
        // A `--` without anything after it has no effect.
        if call.words.iter().filter(|word| word.text != "--").count() <= 1 {
            return self
                .program
                .filter(|record| record.asks_alone() || record.runs_input)
                .map(|_| format!("{} runs what it reads", call.words.first().map_or("it", |w| &w.text)));
        }
        if runs_granted_code(call) {
            return None;
        }
        let by_record = self.both().find_map(|record| record_reason(record, call));
        if by_record.is_some() {
            return by_record;
        }
        if let Some(reason) = self.outside_path_reason(call) {
            return Some(reason);
        }
        if self.effect() == FileEffect::Any { self.suspicious_option_reason(call) } else { None }
    }

    /// Whether the words of a grant contain an option that makes an otherwise read-only program write
    /// files, or apply to other files.
    pub(crate) fn writes_as_granted(self, granted_words: &[Word], work_budget: &WorkBudget) -> bool {
        let Some(record) = self.program.or(self.verb).filter(|record| record.is_local) else { return false };
        let outside = |_: &str| false;
        let has_option = granted_words.iter().skip(1).any(|word| word.text.starts_with('-'));
        let call = CommandCall { words: granted_words, granted: 0, outside: &outside, work_budget };
        has_option && !record.asks_alone() && listed_argument_reason(record, &call).is_some()
    }

    /// A path outside the workspace, given to a program that works on a project.
    fn outside_path_reason(self, call: &CommandCall<'_>) -> Option<String> {
        let record =
            self.program.or(self.verb).filter(|record| record.in_project && !record.is_code_granted(call))?;
        // The granted words may contain the `--`. All words after it are for another program.
        if record.passes_words_on && call.words.iter().take(call.granted).any(|word| word.text == "--") {
            return None;
        }
        for (at, text) in call.ungranted_words() {
            if text == "--" && record.passes_words_on {
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
                if is_option && record.takes_value.has(before) {
                    continue;
                }
                (if is_option { before } else { "" }, text)
            };
            if record.search_paths.any_begins(name) || is_no_path(name) {
                continue;
            }
            let leaves = |piece: &str| {
                let is_path = piece.starts_with("~/") || piece.starts_with('/') && !piece.starts_with("//");
                (is_path || piece.split('/').any(|part| part == "..")) && (call.outside)(piece)
            };
            if value.split(['=', ':', ',']).any(leaves) {
                return more_than_granted(text);
            }
        }
        None
    }

    /// The general rule for options that no record lists.
    fn suspicious_option_reason(self, call: &CommandCall<'_>) -> Option<String> {
        if self.program.is_some_and(|record| record.is_code_granted(call)) {
            return None;
        }
        let harmless: Vec<&str> = self.both().flat_map(|record| record.harmless.iter().copied()).collect();
        for (at, text) in call.ungranted_words() {
            // A `--` does not end the options if it is an option's value, or in find.
            let ends_options = || {
                let before = call.words[at - 1].text.as_str();
                self.program.is_some_and(|record| record.passes_words_on)
                    || !before.starts_with('-') && program_name(&call.words[0].text) != "find"
            };
            if text == "--" && ends_options() {
                break;
            }
            let Some(whole) = text.strip_prefix('-') else { continue };
            if !call.work_budget.spend(8 + harmless.len() / 2 + text.len() / 2) {
                return Some(TOO_COMPLEX.to_owned());
            }
            let whole = whole.strip_prefix('-').unwrap_or(whole);
            let name = whole.split('=').next().unwrap_or_default();
            let is_name = |own: &str| own.trim_start_matches('-') == name;
            if harmless.iter().any(|own| is_name(own) || own.trim_start_matches('-') == whole) {
                continue;
            }
            // This option needs a request only for a value outside the workspace, and the value was
            // checked before.
            if self.both().any(|record| record.asks_outside.iter().any(|own| own.len() > 2 && is_name(own))) {
                continue;
            }
            let after = call.words.get(at + 1).map_or("", |word| word.text.as_str());
            let (option, value) = text.split_once('=').unwrap_or((text, after));
            if self.both().any(|record| has_no_effect(record, option, value)) {
                continue;
            }
            if is_suspicious(name) {
                return Some(format!("{text} may run a program, load code or settings, or write a file"));
            }
        }
        None
    }
}

/// Why an argument needs a request by one record.
fn record_reason(record: &Record, call: &CommandCall<'_>) -> Option<String> {
    if let Some(reason) = listed_argument_reason(record, call) {
        return Some(reason);
    }
    if record.has_more_checks() && !call.work_budget.spend(6 * call.words.len()) {
        return Some(TOO_COMPLEX.to_owned());
    }
    special::unknown_verb_reason(record, call)
        .or_else(|| record.asks_if.iter().find_map(|rule| text_rule_reason(rule, record, call)))
        .or_else(|| special::second_operand_reason(record, call))
        .or_else(|| record.check.and_then(|check| check.reason(call)))
}

fn more_than_granted(text: &str) -> Option<String> {
    Some(format!("{text} makes the program do more than its grant says"))
}

/// `npm run publish`: the words after the verb are the name of a project script and its arguments.
pub(crate) fn names_a_script(words: &[Word]) -> bool {
    let is_npm = |word: &Word| matches!(stem(&word.text), "npm" | "pnpm" | "yarn");
    let runs = |word: &Word| word.is_literal() && matches!(word.text.as_str(), "run" | "run-script" | "test");
    words.first().is_some_and(is_npm) && words.get(1).is_some_and(runs)
}

/// Whether two long options are equal except for case and dashes.
fn is_alike(one: &str, other: &str) -> bool {
    let letters = |text| {
        let letters = str::bytes(str::trim_start_matches(text, '-')).filter(|c| *c != b'-');
        letters.map(|c| c.to_ascii_lowercase())
    };
    one.starts_with('-') && other.starts_with("--") && letters(one).eq(letters(other))
}

/// Whether an option of a call is this one of a record, perhaps abbreviated. An option that takes a
/// value by the record is no abbreviation of a longer one.
fn is_option(record: &Record, recorded: &str, given: &str, takes_value: bool) -> bool {
    let is_same = match (recorded.strip_prefix("--"), given.strip_prefix("--")) {
        (Some(recorded), Some(given)) if takes_value => recorded == given,
        (Some(recorded), Some(given)) => !given.is_empty() && recorded.starts_with(given),
        _ => recorded.trim_start_matches('-') == given.trim_start_matches('-'),
    };
    is_same || record.options_ignore_case && !takes_value && is_alike(recorded, given)
}

/// Why an argument that the record lists needs a request, if the call has one.
fn listed_argument_reason(record: &Record, call: &CommandCall<'_>) -> Option<String> {
    if !record.lists_arguments() || record.is_code_granted(call) || record.looks_up(call) {
        return None;
    }
    let words = call.words;
    let is_free = |at: usize| at >= call.granted;
    // Such a program passes on the words after `--`, and never treats it as a value. In all other
    // programs it may be a value, and find ignores it: a word that looks like an option is judged as one.
    let mut passed_on = false;
    let mut after_dashes = false;
    // Whether the word before takes this one as its value, by the record. Many options take a value only
    // directly attached, and records may be wrong: a word with a leading `-` is always judged.
    let mut is_next_value = false;
    let is_script = names_a_script(words);
    let short_verbs = words.first().and_then(|first| short_verbs(stem(&first.text)));
    let verb_at = short_verbs.and_then(|_| verb(words, Some(record))).unwrap_or(0);
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let next = words.get(at + 1).map(|word| word.text.as_str());
        let is_value = std::mem::take(&mut is_next_value);
        if is_value && !(text.starts_with('-') && text.len() > 1) {
            // A pattern that selects tests is not a path.
            let is_pattern = matches!(words[at - 1].text.as_str(), "-k" | "-m");
            if record.operands_inside && is_free(at) && !is_pattern && (call.outside)(text) {
                return more_than_granted(text);
            }
            continue;
        }
        if text == "--" && !passed_on {
            // A `--` that is an option's value does not end the options.
            passed_on = !is_value && record.passes_words_on;
            after_dashes |= !is_value;
            continue;
        }
        let compared = match text.starts_with('-') {
            true => record.asks.len() + record.asks_outside.len(),
            false => record.asks_for.len(),
        };
        if !call.work_budget.spend(4 + compared + text.len() / 8) {
            return Some(TOO_COMPLEX.to_owned());
        }
        if record.arguments != Arguments::Listed && is_free(at) && !record.harmless.has(text) {
            return more_than_granted(text);
        }
        let looks_like_option = text.starts_with('-') && text != "-";
        if after_dashes || !looks_like_option {
            let needs_request = || {
                let is_listed = record.asks_for.has(text) && !is_script
                    || short_verbs
                        .is_some_and(|known| at == verb_at && is_short_for(text, known, &record.asks_for));
                is_listed && !is_read_only_verb(words, at) && !names_follow(words, at)
                    || record.operands_inside && (call.outside)(text)
            };
            if is_free(at) && needs_request() {
                return more_than_granted(text);
            }
            if passed_on || !looks_like_option {
                continue;
            }
        }
        let (option, joined) = match text.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (text, None),
        };
        let takes_value = record.takes_value.has(option);
        is_next_value = takes_value && joined.is_none();
        if record.harmless.has(option)
            || record.harmless.has(text)
            || passes_in_this_program(record, call, text)
        {
            continue;
        }
        // Long options, with two dashes or with one.
        let value = joined.or(next).unwrap_or_default();
        let is_long = |own: &&&str| own.len() > 2 && is_option(record, own, option, takes_value);
        if is_free(at) && !has_no_effect(record, option, value) && record.asks.iter().any(|own| is_long(&own))
        {
            return more_than_granted(option);
        }
        if record.asks_outside.iter().any(|own| is_long(&own)) {
            is_next_value |= joined.is_none();
            let is_value_free = is_free(at) || joined.is_none() && is_free(at + 1);
            if is_value_free && (call.outside)(value) {
                return more_than_granted(&format!("{option} {value}"));
            }
        }
        // A separate word with one dash: `-pl`.
        if option.len() > 2 && takes_value || option.starts_with("--") || record.letters.is_empty() {
            continue;
        }
        // A cluster of letters.
        for (place, letter) in text.char_indices().skip(1) {
            let rest = &text[place + letter.len_utf8()..];
            let value = if rest.is_empty() { next.unwrap_or_default() } else { rest };
            if record.letters.asks.has(letter) && is_free(at) {
                if has_no_effect(record, &format!("-{letter}"), value) {
                    break;
                }
                return more_than_granted(&format!("-{letter}"));
            }
            if record.letters.asks_outside.has(letter) {
                let value = value.strip_prefix('=').unwrap_or(value);
                is_next_value |= rest.is_empty();
                if is_free(if rest.is_empty() { at + 1 } else { at }) && (call.outside)(value) {
                    return more_than_granted(&format!("-{letter} {value}"));
                }
                break;
            }
            if record.letters.takes_value.has(letter) {
                is_next_value |= rest.is_empty();
                break;
            }
        }
    }
    None
}

/// The operands of a call: words that are neither options nor their values. `takes_value` lists the options
/// whose value is the next word, separated by blanks.
pub(crate) fn operands<'w>(words: &'w [Word], takes_value: &str) -> Vec<(usize, &'w Word)> {
    operands_by(words, |option| has_word(takes_value, option))
}

/// Whether a list of words with blanks between them has this one.
pub(crate) fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|own| own == word)
}

/// Same as [`operands`], for options of which `takes_value` holds.
pub(crate) fn operands_by(words: &[Word], takes_value: impl Fn(&str) -> bool) -> Vec<(usize, &Word)> {
    let mut operands = Vec::new();
    let mut ended = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if !ended && word.text == "--" {
            ended = true;
        } else if ended || !word.text.starts_with('-') || word.text == "-" {
            operands.push((at, word));
        } else if takes_value(&word.text) {
            at += 1;
        }
        at += 1;
    }
    operands
}

/// Whether a word may expand to an option of a program.
pub(crate) fn may_become_an_option(word: &Word) -> bool {
    // A file may have a name that makes the word an option; the text after `=` is its value.
    let is_pattern = || word.text.split('=').next().is_some_and(|name| name.contains(['*', '?', '[']));
    word.marks.has(Marks::GLOB_FIRST)
        || word.marks.has(Marks::GLOB) && word.text.starts_with('-') && is_pattern()
}
