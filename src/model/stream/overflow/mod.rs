//! Recognises errors that say that a request does not fit the model's context window, and reads their numbers.
//!
//! These texts are undocumented; each row names the servers that it was collected from. An error that no row matches
//! may still be one ([`is_suspect`]): the engine then tries a shorter request once.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;

use self::table::{
    OTHER_ERRORS, OTHER_LIMITS, OUTPUT_LIMIT, OVERFLOW_CODES, OVERFLOW_TEXTS, REQUEST_WORDS, SUSPECT_WORDS,
};
use types::model::Overflow;

mod table;
#[cfg(test)]
mod tests;

/// The code of a fault whose request does not fit the context window.
pub(crate) const OVERFLOW_WORD: &str = "context_length_exceeded";

/// More tokens than any window or request has: a larger number has another meaning.
const MAX_TOKENS: u64 = 1_000_000_000;

struct Table {
    rows: Vec<Regex>,
    other_limits: Option<Regex>,
    suspect_words: Option<Regex>,
    other_errors: Option<Regex>,
    output_limit: Option<Regex>,
    request_words: Option<Regex>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table {
    rows: OVERFLOW_TEXTS.iter().filter_map(|row| Regex::new(&with_groups(row)).ok()).collect(),
    other_limits: Regex::new(OTHER_LIMITS).ok(),
    suspect_words: Regex::new(SUSPECT_WORDS).ok(),
    other_errors: Regex::new(OTHER_ERRORS).ok(),
    output_limit: Regex::new(OUTPUT_LIMIT).ok(),
    request_words: Regex::new(REQUEST_WORDS).ok(),
});

/// The regular expression of a row.
fn with_groups(row: &str) -> String {
    const NUMBER: &str = "\\d[\\d,_]*";
    row.replace("{limit}", &format!("(?P<limit>{NUMBER})"))
        .replace("{input}", &format!("(?P<input>{NUMBER})"))
        .replace("{n}", NUMBER)
}

fn has(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.is_match(text))
}

/// An error about the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverflowReport {
    /// The sizes that it names, if they are plausible.
    pub limits: Option<Overflow>,
}

/// Reads an error with this text and these codes; `None` if it is about something else.
pub(crate) fn read_overflow<'c>(
    text: &str,
    codes: impl IntoIterator<Item = &'c str>,
) -> Option<OverflowReport> {
    let text = normalized(text);
    let is_overflow_code = |code: &str| OVERFLOW_CODES.contains(&code.to_ascii_lowercase().as_str());
    let has_code = codes.into_iter().any(is_overflow_code)
        || OVERFLOW_CODES.iter().any(|code| code.len() > 6 && text.contains(code));
    if has(TABLE.other_limits.as_ref(), &text) && !has_code {
        return None;
    }
    for row in &TABLE.rows {
        let mut captures = row.create_captures();
        row.captures(&text, &mut captures);
        if captures.is_match() {
            return Some(OverflowReport { limits: limits(&text, &captures) });
        }
    }
    has_code.then_some(OverflowReport { limits: None })
}

/// Whether an unknown error may be about the context window.
pub(crate) fn is_suspect(text: &str) -> bool {
    let text = normalized(text);
    let is_output_limit =
        has(TABLE.output_limit.as_ref(), &text) && !has(TABLE.request_words.as_ref(), &text);
    let is_other = has(TABLE.other_limits.as_ref(), &text) || has(TABLE.other_errors.as_ref(), &text);
    !is_other && !is_output_limit && has(TABLE.suspect_words.as_ref(), &text)
}

/// The sizes of a request that does not fit. A size without the other one gives no room for an answer.
pub(crate) fn plausible_limits(limit: Option<u64>, input: Option<u64>) -> Option<Overflow> {
    let is_count = |number: &u64| (1..=MAX_TOKENS).contains(number);
    let limit = limit.filter(is_count)?;
    match input {
        Some(input) => Some(Overflow { limit, input }).filter(|_| is_count(&input)),
        None => Some(Overflow { limit, input: limit }),
    }
}

fn limits(text: &str, captures: &Captures) -> Option<Overflow> {
    let group = |name: &str| {
        let span = captures.get_group_by_name(name)?;
        let digits: String = text.get(span.start..span.end)?.chars().filter(char::is_ascii_digit).collect();
        Some(digits.parse::<u64>().unwrap_or(u64::MAX))
    };
    plausible_limits(Some(group("limit")?), group("input"))
}

/// Lower case, with single spaces and plain quotes.
fn normalized(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}
