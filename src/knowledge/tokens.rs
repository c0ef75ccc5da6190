//! Counts o200k tokens exactly. The table is loaded at the first use and freed after five idle minutes.
//!
//! `bpe-openai` embeds a table of 32 MB that stays in memory once loaded. So `build.rs` takes only the tokens from
//! it, and this module merges them by their rank, which is their number. Tests compare it with the library.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use regex_automata::meta::{Cache, Regex};
use regex_automata::{Anchored, Input};
use rustc_hash::FxHashMap;

use base::sync::lock;
use types::embedded;

/// How long the table stays loaded without a use.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// All tokens in the order of their ranks: length, bytes. Compressed.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.tokens"));
/// The decompressed tokens: 1.5 MB that stay in memory after the first use.
static TOKENS: LazyLock<Vec<u8>> = LazyLock::new(|| embedded::decompressed(COMPRESSED));

/// The pieces into which o200k splits a text before it looks for tokens, and whether the last character of a match
/// only looks ahead. These are part of the encoding's definition.
const PIECE_PATTERNS: [(&str, bool); 3] = [
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
pub fn fits_tokens(text: &str, limit: usize) -> bool {
    // A token has at least one byte.
    text.len() <= limit || table().count(text, limit) <= limit
}

/// The byte offsets after each token of a text, in order. The last one is the text's length.
#[must_use]
pub fn token_ends(text: &str) -> Vec<usize> {
    let table = table();
    let mut ends = Vec::with_capacity(text.len() / 3);
    table.split(text, |start, piece| {
        table.merge(piece, |end| ends.push(start + end));
        true
    });
    ends
}

/// Frees the table if it was not used for [`IDLE_TIMEOUT`]. Returns whether it is loaded afterwards.
pub fn release_idle(now: Instant) -> bool {
    let mut loaded = lock(&LOADED_TABLE);
    if loaded.as_ref().is_some_and(|table| now.saturating_duration_since(table.used) >= IDLE_TIMEOUT) {
        *loaded = None;
    }
    loaded.is_some()
}

/// The loaded table and the time of its last use.
struct LoadedTable {
    table: Arc<TokenTable>,
    used: Instant,
}

static LOADED_TABLE: Mutex<Option<LoadedTable>> = Mutex::new(None);

fn table() -> Arc<TokenTable> {
    let mut loaded = lock(&LOADED_TABLE);
    let now = Instant::now();
    if let Some(loaded) = loaded.as_mut() {
        loaded.used = now;
        return loaded.table.clone();
    }
    let table = Arc::new(TokenTable::load());
    *loaded = Some(LoadedTable { table: table.clone(), used: now });
    table
}

struct TokenTable {
    /// The tokens are fixed, so no text can make this map slow.
    ranks: FxHashMap<&'static [u8], u32>,
    pieces: Regex,
    /// Scratch memory of `pieces`, one for each thread that counts at the same time. The expression's own pool would
    /// be locked for each piece.
    caches: Mutex<Vec<Cache>>,
}

impl TokenTable {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants; every test of this module compiles them"
    )]
    fn load() -> Self {
        let mut ranks = FxHashMap::with_capacity_and_hasher(200_000, Default::default());
        let mut rest = TOKENS.as_slice();
        let mut rank = 0;
        while let Some((length, after)) = rest.split_first() {
            let (token, after) = after.split_at(usize::from(*length).min(after.len()));
            ranks.insert(token, rank);
            rank += 1;
            rest = after;
        }
        let pieces =
            Regex::new_many(&PIECE_PATTERNS.map(|(pattern, _)| pattern)).expect("the patterns are valid");
        Self { ranks, pieces, caches: Mutex::default() }
    }

    /// Calls `piece` with the beginning and the bytes of each piece of a text, until it returns false.
    fn split(&self, text: &str, mut piece: impl FnMut(usize, &[u8]) -> bool) {
        let cache = lock(&self.caches).pop();
        let mut cache = cache.unwrap_or_else(|| self.pieces.create_cache());
        let mut start = 0;
        while start < text.len() {
            let input = Input::new(&text[start..]).anchored(Anchored::Yes);
            // The patterns match any text.
            let Some(found) = self.pieces.search_half_with(&mut cache, &input) else { break };
            let mut end = start + found.offset();
            if PIECE_PATTERNS[found.pattern().as_usize()].1 {
                end -= text[..end].chars().next_back().map_or(0, char::len_utf8);
            }
            if !piece(start, &text.as_bytes()[start..end]) {
                break;
            }
            start = end;
        }
        lock(&self.caches).push(cache);
    }

    /// Number of tokens; stops counting above `limit`.
    fn count(&self, text: &str, limit: usize) -> usize {
        let mut count = 0;
        self.split(text, |_, piece| {
            self.merge(piece, |_| count += 1);
            count <= limit
        });
        count
    }

    /// Calls `token` with the end of each token of a piece.
    fn merge(&self, piece: &[u8], mut token: impl FnMut(usize)) {
        if piece.len() == 1 || self.ranks.contains_key(piece) {
            token(piece.len());
            return;
        }
        // Parts of the piece as a list: `next[at]` is the beginning of the part after the one at `at`. If several
        // pairs of neighbours form a token, the pair with the lowest rank is joined first; if ranks are equal, the
        // first pair.
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
            assert_eq!(token_ends(text).len(), library.count(text), "{text:?}");
            assert_eq!(token_ends(text).last().copied().unwrap_or(0), text.len());
            assert!(fits_tokens(text, count(text)));
        }
        assert!(!fits_tokens("one two three four five six", 3));
    }

    #[test]
    fn idle_token_table_is_freed_and_loads_again() {
        assert_eq!(count("hello world"), 2);
        // Other tests may use the table at the same time, so only a time far in the future is certain to free it.
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
            prop_assert_eq!(token_ends(&text), lengths);
        }
    }
}
