//! The arguments of a call that a grant does not contain: which of them make the program do more than
//! its name says.
//!
//! A grant of `sort` is meant for sorting. `sort -o FILE` writes, and `sort --compress-program X` runs
//! X. The records list these arguments.

use crate::shell::lex::word::Word;
use crate::shell::programs::call::{CommandCall, TOO_COMPLEX, WorkBudget, program_name};
use crate::shell::programs::exceptions::{has_no_effect, is_no_path, is_suspicious};
use crate::shell::programs::listed_arguments::{listed_argument_reason, more_than_granted};
use crate::shell::programs::lookup::{CommandRecords, argument_record, find_records, stem};
use crate::shell::programs::record::{FileEffect, Record};
use crate::shell::programs::special;
use crate::shell::programs::text_rules::text_rule_reason;

/// `go run ./cmd/x`, where the grant contains the program: the following words are the program's
/// arguments.
fn runs_granted_code(call: &CommandCall<'_>) -> bool {
    let is_word = |index: usize, wanted: &str| call.words.get(index).is_some_and(|word| word.text == wanted);
    let last = call.granted_count.checked_sub(1).and_then(|index| call.words.get(index));
    let is_code = |text: &str| text == "." || text.starts_with("./") || text.ends_with(".go");
    call.granted_count == 3
        && is_word(0, "go")
        && is_word(1, "run")
        && last.is_some_and(|word| is_code(&word.text))
}

/// Whether the records tell which programs a command runs: its program has a record that does not ask
/// for every call.
pub(crate) fn is_understood(words: &[Word]) -> bool {
    let program = words.first().and_then(|first| argument_record(stem(&first.text)));
    program.is_some_and(|record| !record.asks_alone())
        || words.len() > 1 && find_records(words).verb.is_some()
}

impl CommandRecords {
    /// Whether there is a record of the program or of its verb.
    pub(crate) fn is_known(self) -> bool {
        self.program.is_some() || self.verb.is_some()
    }

    /// What the command does with its operands as files.
    pub(crate) fn effect(self) -> FileEffect {
        self.verb.or(self.program).and_then(|record| record.effect).unwrap_or(FileEffect::Any)
    }

    /// The record of the program and the record of the verb, if there are any.
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
        let call = CommandCall { words: granted_words, granted_count: 0, outside: &outside, work_budget };
        has_option && !record.asks_alone() && listed_argument_reason(record, &call).is_some()
    }

    /// A path outside the workspace, given to a program that works on a project.
    fn outside_path_reason(self, call: &CommandCall<'_>) -> Option<String> {
        let record =
            self.program.or(self.verb).filter(|record| record.in_project && !record.is_code_granted(call))?;
        // The granted words may contain the `--`. All words after it are for another program.
        if record.passes_words_on && call.words.iter().take(call.granted_count).any(|word| word.text == "--")
        {
            return None;
        }
        for (index, text) in call.ungranted_words() {
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
                let before = call.words[index - 1].text.as_str();
                let is_option = before.starts_with('-') && !before.contains('=');
                if is_option && record.takes_value.has(before) {
                    continue;
                }
                (if is_option { before } else { "" }, text)
            };
            if record.search_paths.has_prefix_of(name) || is_no_path(name) {
                continue;
            }
            let leaves_workspace = |piece: &str| {
                let is_path = piece.starts_with("~/") || piece.starts_with('/') && !piece.starts_with("//");
                (is_path || piece.split('/').any(|part| part == "..")) && call.is_outside(piece)
            };
            if value.split(['=', ':', ',']).any(leaves_workspace) {
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
        for (index, text) in call.ungranted_words() {
            // A `--` does not end the options if it is an option's value, or in find.
            let ends_options = || {
                let before = call.words[index - 1].text.as_str();
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
            let is_name = |listed: &str| listed.trim_start_matches('-') == name;
            if harmless.iter().any(|listed| is_name(listed) || listed.trim_start_matches('-') == whole) {
                continue;
            }
            // This option needs a request only for a value outside the workspace, and the value was
            // checked before.
            if self
                .both()
                .any(|record| record.asks_outside.iter().any(|listed| listed.len() > 2 && is_name(listed)))
            {
                continue;
            }
            let after = call.words.get(index + 1).map_or("", |word| word.text.as_str());
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
