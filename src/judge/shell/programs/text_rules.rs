//! Words that need a request by their text: [`TextRule`].

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::exceptions::GENERAL;
use crate::shell::programs::lookup::{find_own_verb, stem};
use crate::shell::programs::record::Record;
use crate::shell::programs::record::rules::{OutsideText, RuleWords, TextRule};

/// Why a word needs a request by a rule, if one does.
pub(crate) fn text_rule_reason(rule: &TextRule, record: &Record, call: &CommandCall<'_>) -> Option<String> {
    let applies = (record.is_verb || rule.only_for.is_empty_or_has(stem(&call.words[0].text)))
        && rule.with_word.as_ref().is_none_or(|wanted| call.words.iter().any(|word| word.text == *wanted));
    if !applies {
        return None;
    }
    let dashes = match rule.words {
        RuleWords::AfterDashes | RuleWords::OperandsAfterDashes => {
            call.words.iter().position(|word| word.text == "--")?
        }
        _ => 0,
    };
    let verb = if rule.words == RuleWords::Verb { find_own_verb(call.words) } else { None };
    let is_meant = |index: usize, text: &str| match rule.words {
        RuleWords::All => true,
        RuleWords::Options => text.starts_with('-'),
        RuleWords::Operands => !text.starts_with('-'),
        RuleWords::Verb => Some(index) == verb,
        RuleWords::AfterDashes => index > dashes,
        RuleWords::OperandsAfterDashes => index > dashes && !text.starts_with('-'),
        RuleWords::Variables => is_unknown_variable(text),
    };
    call.ungranted_words()
        .find(|(index, text)| is_meant(*index, text) && rule.matches(text, call))
        .map(|(_, text)| format!("{text}: {}", rule.why))
}

impl TextRule {
    /// Whether the rule applies to a text of the words that it is about.
    fn matches(&self, text: &str, call: &CommandCall<'_>) -> bool {
        let lower;
        let compared = match self.ignore_case {
            true => {
                lower = text.to_ascii_lowercase();
                lower.as_str()
            }
            false => text,
        };
        let begin = compared.trim_start();
        let is_listed = self.any
            || self.words == RuleWords::Variables
            || self.is.iter().any(|listed| compared == listed)
            || self.begins.iter().any(|listed| begin.starts_with(listed.as_str()))
            || self.ends.iter().any(|listed| compared.ends_with(listed.as_str()))
            || self.contains.iter().any(|listed| compared.contains(listed.as_str()))
            || match self.outside {
                Some(OutsideText::Any) => call.is_outside(text),
                Some(OutsideText::Path) => is_outside_path(text, call),
                None => false,
            };
        is_listed
            && self.and_contains.as_ref().is_none_or(|listed| compared.contains(listed.as_str()))
            && !self.unless_contains.as_ref().is_some_and(|listed| compared.contains(listed.as_str()))
    }
}

/// Whether a text is a path outside the workspace: an absolute one, one in a home folder, or one with
/// `..`.
pub(crate) fn is_outside_path(text: &str, call: &CommandCall<'_>) -> bool {
    (text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..")) && call.is_outside(text)
}

/// Whether a word assigns a variable that may name a program.
fn is_unknown_variable(text: &str) -> bool {
    let Some((name, value)) = text.split_once('=').filter(|_| !text.starts_with('-')) else { return false };
    let name = name.trim_end_matches([':', '+', '?', '!']);
    let is_plain = value.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-'));
    !(GENERAL.harmless_variables.has(name) && is_plain)
}
