//! Counts o200k tokens exactly. The table is loaded at the first use and freed after five idle minutes.
//!
//! `bpe-openai` embeds a table of 32 MB that stays in memory once loaded. So `build.rs` takes only the tokens from it, and
//! this module merges them by their rank, which is their number. The library still splits texts into pieces.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use bpe_openai::Tokenizer;
use bpe_openai::byte_pair_encoding::BytePairEncoding;

use crate::sync::lock;
use crate::types::embedded;

/// How long the table stays loaded without a use.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// All tokens in the order of their ranks: length, bytes. Compressed.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.tokens"));
/// The same, not compressed: 1.5 MB that stay after the first use.
static TOKENS: LazyLock<Vec<u8>> = LazyLock::new(|| embedded::decompressed(COMPRESSED));

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

/// Number of o200k tokens of a text.
#[must_use]
pub fn count(text: &str) -> usize {
    table().count(text, usize::MAX)
}

/// Whether a text has at most `limit` tokens. Cheaper than [`count`] for long texts.
#[must_use]
pub fn fits(text: &str, limit: usize) -> bool {
    // A token has at least one byte.
    text.len() <= limit || table().count(text, limit) <= limit
}

/// The byte offsets after each token of a text, in order. The last one is the text's length.
#[must_use]
pub fn ends(text: &str) -> Vec<usize> {
    let table = table();
    let mut ends = Vec::with_capacity(text.len() / 3);
    let mut start = 0;
    for piece in table.pieces.split(text) {
        table.merge(piece.as_bytes(), |end| ends.push(start + end));
        start += piece.len();
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

/// The loaded table and the time of its last use.
struct Loaded {
    table: Arc<Table>,
    used: Instant,
}

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

fn table() -> Arc<Table> {
    let mut loaded = lock(&LOADED);
    let now = Instant::now();
    if let Some(loaded) = loaded.as_mut() {
        loaded.used = now;
        return loaded.table.clone();
    }
    let table = Arc::new(Table::load());
    *loaded = Some(Loaded { table: table.clone(), used: now });
    table
}

struct Table {
    ranks: HashMap<&'static [u8], u32>,
    pieces: Tokenizer,
}

impl Table {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants; every test of this module compiles them"
    )]
    fn load() -> Self {
        let mut ranks = HashMap::with_capacity(200_000);
        let mut rest = TOKENS.as_slice();
        let mut rank = 0;
        while let Some((length, after)) = rest.split_first() {
            let (token, after) = after.split_at(usize::from(*length).min(after.len()));
            ranks.insert(token, rank);
            rank += 1;
            rest = after;
        }
        // The library needs some tokens to split a text, but does not use them for that.
        let bytes = BytePairEncoding::from_dictionary((0..=255).map(|byte| vec![byte]), None);
        let pieces = Tokenizer::new_lookahead(bytes, &PIECES, false).expect("the patterns are valid");
        Self { ranks, pieces }
    }

    /// Number of tokens; stops counting above `limit`.
    fn count(&self, text: &str, limit: usize) -> usize {
        let mut count = 0;
        for piece in self.pieces.split(text) {
            self.merge(piece.as_bytes(), |_| count += 1);
            if count > limit {
                break;
            }
        }
        count
    }

    /// Calls `token` with the end of each token of a piece.
    fn merge(&self, piece: &[u8], mut token: impl FnMut(usize)) {
        if piece.len() == 1 || self.ranks.contains_key(piece) {
            token(piece.len());
            return;
        }
        // Parts of the piece as a list: `next[at]` is the begin of the part after the one at `at`. Of all neighbours that
        // form a token together, the pair with the lowest rank is joined first, of equal ones the first.
        let mut next: Vec<usize> = (1..=piece.len()).collect();
        let mut before: Vec<usize> = (0..piece.len()).map(|at| at.saturating_sub(1)).collect();
        let mut is_begin = vec![true; piece.len()];
        let mut pairs = BinaryHeap::new();
        let rank = |start: usize, end: usize| self.ranks.get(&piece[start..end]).copied();
        for at in 0..piece.len() - 1 {
            pairs.extend(rank(at, at + 2).map(|rank| Reverse((rank, at, at + 2))));
        }
        while let Some(Reverse((_, start, end))) = pairs.pop() {
            let middle = next[start];
            // The pair is old if one of its parts was joined with another one.
            let is_pair = is_begin[start] && middle < piece.len() && next[middle] == end;
            if !is_pair {
                continue;
            }
            is_begin[middle] = false;
            next[start] = end;
            if end < piece.len() {
                before[end] = start;
                pairs.extend(rank(start, next[end]).map(|rank| Reverse((rank, start, next[end]))));
            }
            if start > 0 {
                let left = before[start];
                pairs.extend(rank(left, end).map(|rank| Reverse((rank, left, end))));
            }
        }
        let mut at = 0;
        while at < piece.len() {
            at = next[at];
            token(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn token_counts_equal_those_of_the_library() {
        let library = bpe_openai::o200k_base();
        let code = include_str!("tokens.rs");
        for text in [
            "",
            code,
            "fn main() { println!(\"hello\"); }\n\n\n  let x = 12345;",
            "Größe, naïve café — 日本語のテキスト 🦀🦀",
            "   \n\t\t  trailing  ",
            "HTTPServer2 don't we'll I'VE antidisestablishmentarianism",
            &"a".repeat(3000),
            &"=-".repeat(500),
            &"aAbBxyz".repeat(300),
        ] {
            assert_eq!(count(text), library.count(text), "{text:?}");
            assert_eq!(ends(text).len(), library.count(text), "{text:?}");
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn tokens_of_any_text_equal_those_of_the_library(text in "[a-zA-Z0-9 _\\n\\t.,;:(){}\\u{e9}\\u{4e2d}\\u{1F980}]{0,200}") {
            let library = bpe_openai::o200k_base();
            let lengths: Vec<usize> = library
                .encode(text.as_str())
                .into_iter()
                .scan(0, |at, token| { *at += library.bpe.token_len(token); Some(*at) })
                .collect();
            prop_assert_eq!(ends(&text), lengths);
        }
    }
}
