//! Arguments that a record lists as ones that need a request, in each way in which they can be written: `-o f`,
//! `-of`, `-uof`, `--output f`, `--output=f`, and `--outp=f`, because most programs accept any unambiguous
//! abbreviation.

use crate::shell::programs::call::{CommandCall, TOO_COMPLEX};
use crate::shell::programs::exceptions::{
    has_no_effect, is_read_only_verb, is_short_for, names_follow, passes_in_this_program, short_verbs,
};
use crate::shell::programs::lookup::{find_verb, stem};
use crate::shell::programs::operands::names_a_script;
use crate::shell::programs::record::{Arguments, Record};

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
    pub(crate) fn is_code_granted(&self, call: &CommandCall<'_>) -> bool {
        call.granted_count > 1
            && self.arguments == Arguments::Code
            && call.words.get(call.granted_count - 1).is_some_and(|last| !last.text.starts_with('-'))
            && !self.has_options_after_code(call)
    }

    /// Whether an option after code on the command line still belongs to the interpreter: `perl -ne CODE
    /// -i`.
    fn has_options_after_code(&self, call: &CommandCall<'_>) -> bool {
        let word_before_last = call.granted_count.checked_sub(2).and_then(|index| call.words.get(index));
        let option = word_before_last.map_or("", |word| &word.text);
        let gives_code = option.starts_with('-')
            && (option.ends_with(['e', 'E', 'p']) || option == "--eval" || option == "--print");
        let next = call.words.get(call.granted_count).map_or("", |word| word.text.as_str());
        gives_code
            && self.options_after_code.has(stem(&call.words[0].text))
            && next.starts_with('-')
            && !matches!(next, "-" | "--")
    }
}

/// The reason for an argument that a record lists.
pub(crate) fn more_than_granted(text: &str) -> Option<String> {
    Some(format!("{text} makes the program do more than its grant says"))
}

/// Why an argument that the record lists needs a request, if the call has one.
pub(crate) fn listed_argument_reason(record: &Record, call: &CommandCall<'_>) -> Option<String> {
    if !record.lists_arguments() || record.is_code_granted(call) || record.looks_up(call) {
        return None;
    }
    let words = call.words;
    // Such a program passes on the words after `--`, and never treats it as a value. In all other
    // programs it may be a value, and find ignores it: a word that looks like an option is judged as one.
    let mut passed_on = false;
    let mut after_dashes = false;
    // Whether the word before takes this one as its value, by the record. Many options take a value only
    // directly attached, and records may be wrong: a word with a leading `-` is always judged.
    let mut is_next_value = false;
    let is_script = names_a_script(words);
    let short_verbs = words.first().and_then(|first| short_verbs(stem(&first.text)));
    let verb_index = short_verbs.and_then(|_| find_verb(words, Some(record))).unwrap_or(0);
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let next = words.get(index + 1).map(|word| word.text.as_str());
        let is_value = std::mem::take(&mut is_next_value);
        if is_value && !(text.starts_with('-') && text.len() > 1) {
            // A pattern that selects tests is not a path.
            let is_pattern = matches!(words[index - 1].text.as_str(), "-k" | "-m");
            if record.operands_inside && call.is_ungranted(index) && !is_pattern && call.is_outside(text) {
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
        let listed_words = match text.starts_with('-') {
            true => record.asks.len() + record.asks_outside.len(),
            false => record.asks_for.len(),
        };
        if !call.work_budget.spend(4 + listed_words + text.len() / 8) {
            return Some(TOO_COMPLEX.to_owned());
        }
        if record.arguments != Arguments::Listed && call.is_ungranted(index) && !record.harmless.has(text) {
            return more_than_granted(text);
        }
        let looks_like_option = text.starts_with('-') && text != "-";
        if after_dashes || !looks_like_option {
            let needs_request = || {
                let is_listed = record.asks_for.has(text) && !is_script
                    || short_verbs.is_some_and(|full_verbs| {
                        index == verb_index && is_short_for(text, full_verbs, &record.asks_for)
                    });
                is_listed && !is_read_only_verb(words, index) && !names_follow(words, index)
                    || record.operands_inside && call.is_outside(text)
            };
            if call.is_ungranted(index) && needs_request() {
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
        let is_long = |recorded_option: &&&str| {
            recorded_option.len() > 2 && is_recorded_option(record, recorded_option, option, takes_value)
        };
        if call.is_ungranted(index)
            && !has_no_effect(record, option, value)
            && record.asks.iter().any(|recorded_option| is_long(&recorded_option))
        {
            return more_than_granted(option);
        }
        if record.asks_outside.iter().any(|recorded_option| is_long(&recorded_option)) {
            is_next_value |= joined.is_none();
            let is_value_ungranted =
                call.is_ungranted(index) || joined.is_none() && call.is_ungranted(index + 1);
            if is_value_ungranted && call.is_outside(value) {
                return more_than_granted(&format!("{option} {value}"));
            }
        }
        // A separate word with one dash: `-pl`.
        if option.len() > 2 && takes_value || option.starts_with("--") || record.letters.is_empty() {
            continue;
        }
        let (reason, takes_next) = cluster_reason(record, call, index);
        if reason.is_some() {
            return reason;
        }
        is_next_value |= takes_next;
    }
    None
}

/// Why a letter of the word at this index needs a request, if the word is a cluster of letters. Also returns whether the
/// last letter takes the next word as its value.
fn cluster_reason(record: &Record, call: &CommandCall<'_>, index: usize) -> (Option<String>, bool) {
    let text = call.words[index].text.as_str();
    let next = call.words.get(index + 1).map_or("", |word| word.text.as_str());
    for (offset, letter) in text.char_indices().skip(1) {
        let rest = &text[offset + letter.len_utf8()..];
        let (value, value_index) = if rest.is_empty() { (next, index + 1) } else { (rest, index) };
        if record.letters.asks.has(letter) && call.is_ungranted(index) {
            let has_effect = !has_no_effect(record, &format!("-{letter}"), value);
            return (has_effect.then(|| more_than_granted(&format!("-{letter}"))).flatten(), false);
        }
        if record.letters.asks_outside.has(letter) {
            let value = value.strip_prefix('=').unwrap_or(value);
            if call.is_ungranted(value_index) && call.is_outside(value) {
                return (more_than_granted(&format!("-{letter} {value}")), false);
            }
            return (None, rest.is_empty());
        }
        if record.letters.takes_value.has(letter) {
            return (None, rest.is_empty());
        }
    }
    (None, false)
}

/// Whether an option of a call is this one of a record, perhaps abbreviated. An option that takes a
/// value by the record is no abbreviation of a longer one.
fn is_recorded_option(record: &Record, recorded: &str, given: &str, takes_value: bool) -> bool {
    let is_same = match (recorded.strip_prefix("--"), given.strip_prefix("--")) {
        (Some(recorded), Some(given)) if takes_value => recorded == given,
        (Some(recorded), Some(given)) => !given.is_empty() && recorded.starts_with(given),
        _ => recorded.trim_start_matches('-') == given.trim_start_matches('-'),
    };
    is_same || record.options_ignore_case && !takes_value && is_alike(recorded, given)
}

/// Whether two long options are equal except for case and dashes.
fn is_alike(one: &str, other: &str) -> bool {
    let letters = |text| {
        let letters = str::bytes(str::trim_start_matches(text, '-')).filter(|c| *c != b'-');
        letters.map(|c| c.to_ascii_lowercase())
    };
    one.starts_with('-') && other.starts_with("--") && letters(one).eq(letters(other))
}
