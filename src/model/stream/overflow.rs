//! Reads the numbers in a provider's error that a request and its answer do not fit.
//!
//! These texts are undocumented; they were collected from servers (Anthropic, OpenAI, vLLM, llama.cpp). The
//! numbers are used only if they are consistent.

use types::model::Overflow;

/// The providers' error code for a request that does not fit the context window.
pub(crate) const OVERFLOW_WORD: &str = "context_length_exceeded";

/// More tokens than any window or request has: a larger number has another meaning.
const MAX_TOKENS: u64 = 1_000_000_000;

/// Whether the text reports this error without numbers. Proxies put the code into the text and send another
/// code (LiteLLM: `ContextWindowExceededError`).
pub(crate) fn names_overflow(text: &str) -> bool {
    text.contains(OVERFLOW_WORD) || text.contains("ContextWindowExceeded")
}

/// The limits in the text of such an error; `None` for another text, or without numbers.
pub(crate) fn read_limits(text: &str) -> Option<Overflow> {
    let lower = text.to_ascii_lowercase();
    let numbers = numbers(&lower);
    let overflow = if lower.contains("exceed context limit") {
        // "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000 …"
        match numbers.as_slice() {
            [input, _, limit, ..] => Overflow { limit: *limit, input: *input },
            _ => return None,
        }
    } else if lower.contains("prompt is too long") {
        // "prompt is too long: 210000 tokens > 200000 maximum"
        match numbers.as_slice() {
            [input, limit, ..] => Overflow { limit: *limit, input: *input },
            _ => return None,
        }
    } else if lower.contains("maximum context length") {
        // "… maximum context length is 128000 tokens. However, you requested 130000 tokens (120000 in the
        // messages, 10000 in the completion)", or "your messages resulted in 130000 tokens"
        match numbers.as_slice() {
            [limit, _, input, _, ..] | [limit, input, ..] => Overflow { limit: *limit, input: *input },
            _ => return None,
        }
    } else if lower.contains("context size") {
        // "the request exceeds the available context size: 5000 tokens > 4096" and similar texts
        match numbers.as_slice() {
            [input, limit, ..] => Overflow { limit: *limit.min(input), input: *input.max(limit) },
            _ => return None,
        }
    } else {
        return None;
    };
    let is_count = |number: u64| (1..=MAX_TOKENS).contains(&number);
    (is_count(overflow.limit) && is_count(overflow.input)).then_some(overflow)
}

/// The integers in the text, without thousands separators.
fn numbers(text: &str) -> Vec<u64> {
    let mut found = Vec::new();
    let mut digits = String::new();
    let mut chars = text.chars().chain([' ']).peekable();
    while let Some(c) = chars.next() {
        let groups = matches!(c, ',' | '_') && chars.peek().is_some_and(char::is_ascii_digit);
        if c.is_ascii_digit() {
            digits.push(c);
        } else if !groups && !digits.is_empty() {
            found.extend(digits.parse::<u64>());
            digits.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::stream::overflow::*;

    #[test]
    fn overflow_numbers_are_read_from_provider_errors() {
        let check = |text: &str, expected: Option<(u64, u64)>| {
            let got = read_limits(text).map(|overflow| (overflow.limit, overflow.input));
            assert_eq!(got, expected, "{text}");
        };
        check(
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length \
             or `max_tokens` and try again",
            Some((200_000, 190_000)),
        );
        check("prompt is too long: 210,123 tokens > 200,000 maximum", Some((200_000, 210_123)));
        check(
            "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens (120000 \
             in the messages, 10000 in the completion). Please reduce the length.",
            Some((128_000, 120_000)),
        );
        check(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            Some((8_192, 9_000)),
        );
        check("request (5000 tokens) exceeds the available context size (4096 tokens)", Some((4_096, 5_000)));
        check("maximum context length exceeded", None);
        check("prompt is too long", None);
        check("bad key 12345 for 67890", None);
        check("prompt is too long: 99999999999999999999999 > 5", None);
        check("prompt is too long: 18446744073709551615 tokens > 200000 maximum", None);
        check("prompt is too long: 5000000 tokens > 18446744073709551615 maximum", None);
        check("prompt is too long: 0 tokens > 200000 maximum", None);
        check("prompt is too long: 2000000 tokens > 1000000 maximum", Some((1_000_000, 2_000_000)));
        check("input length and `max_tokens` exceed context limit: 1761234567890 + 20000 > 200000", None);
    }
}
