//! Counts o200k tokens exactly. The table is loaded at the first use and freed after five idle minutes.
//!
//! `bpe-openai` keeps its own table for ever once loaded. So `build.rs` writes the same table to a file, and this
//! module owns the copy that it loads from there.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bpe_openai::Tokenizer;
use bpe_openai::byte_pair_encoding::BytePairEncoding;

use crate::sync::lock;

/// How long the table stays loaded without a use.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The o200k table, serialised by `build.rs`.
static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.dict"));

/// The pieces into which o200k splits a text before it looks for tokens, and whether the last character of a match
/// only looks ahead. These are part of the encoding's definition.
const PIECES: [(&str, bool); 3] = [
    (
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|\p{N}{1,3}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"|\s*[\r\n]+",
            r"|\s+$",
        ),
        false,
    ),
    (r"\s+\s", true),
    (r"\s+", false),
];

/// The loaded table and the time of its last use.
struct Loaded {
    tokenizer: Arc<Tokenizer>,
    used: Instant,
}

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

/// Number of o200k tokens of a text. Blocks for some 100 ms when the table is not loaded.
#[must_use]
pub fn count(text: &str) -> usize {
    tokenizer().count(text)
}

/// Whether a text has at most `limit` tokens. Cheaper than [`count`] for long texts.
#[must_use]
pub fn fits(text: &str, limit: usize) -> bool {
    // A token has at least one byte.
    if text.len() <= limit {
        return true;
    }
    let tokenizer = tokenizer();
    tokenizer.count_till_limit(&tokenizer.normalize(text), limit).is_some()
}

/// The byte offsets after each token of a text, in order. The last one is the text's length.
#[must_use]
pub fn ends(text: &str) -> Vec<usize> {
    let tokenizer = tokenizer();
    let mut at = 0;
    let mut ends = Vec::with_capacity(text.len() / 3);
    for token in tokenizer.encode(text) {
        at += tokenizer.bpe.token_len(token);
        ends.push(at);
    }
    ends
}

/// Frees the table if it was not used for [`IDLE_TIMEOUT`]. Returns whether it is loaded afterwards.
pub fn release_idle(now: Instant) -> bool {
    let mut loaded = lock(&LOADED);
    if loaded.as_ref().is_some_and(|table| now.saturating_duration_since(table.used) >= IDLE_TIMEOUT) {
        *loaded = None;
    }
    loaded.is_some()
}

fn tokenizer() -> Arc<Tokenizer> {
    let mut loaded = lock(&LOADED);
    let now = Instant::now();
    if let Some(table) = loaded.as_mut() {
        table.used = now;
        return table.tokenizer.clone();
    }
    let tokenizer = Arc::new(load());
    *loaded = Some(Loaded { tokenizer: tokenizer.clone(), used: now });
    tokenizer
}

#[expect(
    clippy::expect_used,
    reason = "the table and the patterns are constants of this build; a test loads them"
)]
fn load() -> Tokenizer {
    let table: BytePairEncoding = rmp_serde::from_slice(TABLE).expect("the table that build.rs wrote");
    Tokenizer::new_lookahead(table, &PIECES, false).expect("the patterns are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_equal_those_of_the_crate() {
        let reference = bpe_openai::o200k_base();
        for text in [
            "",
            "fn main() { println!(\"hello\"); }\n\n\n  let x = 12345;",
            "Größe, naïve café — 日本語のテキスト 🦀🦀",
            "   \n\t\t  trailing  ",
            "HTTPServer2 don't we'll I'VE",
        ] {
            assert_eq!(count(text), reference.count(text), "{text:?}");
            assert_eq!(ends(text).len(), reference.count(text), "{text:?}");
            assert_eq!(ends(text).last().copied().unwrap_or(0), text.len());
            assert!(fits(text, count(text)));
        }
        assert!(!fits("one two three four five six", 3));
    }

    #[test]
    fn idle_token_table_is_freed_and_loads_again() {
        assert_eq!(count("hello world"), 2);
        // Other tests may use the table at the same time, so only the clock far ahead is certain to free it.
        release_idle(Instant::now() + IDLE_TIMEOUT * 2);
        assert_eq!(count("hello world"), 2);
    }
}
