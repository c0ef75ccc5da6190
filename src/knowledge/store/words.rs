//! Words of the full-text index: split identifiers, stop words, and the query of a search text. Only [`super::cjk`]
//! splits texts without spaces between words, so that the index and its queries agree.

use std::collections::HashSet;

use super::cjk::{self, WordPart};

/// Maximum number of terms of one full-text query. More terms cost time and find the same results.
pub const MAX_SEARCH_TERMS: usize = 12;
/// Maximum number of bytes of a search text that are read.
const MAX_SEARCH_BYTES: usize = 16 * 1024;
/// Bytes of the longest word that is indexed in parts. Longer ones are data, not names.
const MAX_WORD_BYTES: usize = 128;

/// Words that are in most texts and in most questions.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "before",
    "but", "by", "can", "could", "did", "do", "does", "done", "each", "explain", "find", "for", "from",
    "get", "gets", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "many", "may",
    "me", "more", "most", "must", "my", "no", "not", "of", "on", "one", "only", "or", "other", "our", "out",
    "over", "please", "shall", "should", "show", "so", "some", "such", "tell", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "through", "to", "under", "up", "us",
    "use", "used", "uses", "using", "very", "was", "we", "were", "what", "when", "where", "which", "while",
    "who", "why", "will", "with", "would", "you", "your",
];

/// The words of a text: runs of letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The parts of an identifier in lower case: at underscores, humps and digits. `HTTPServer2_run` → http, server, 2,
/// run. A word without an inner border has one part.
#[must_use]
pub fn word_parts(word: &str) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    let mut parts = Vec::new();
    let mut part = String::new();
    for (at, c) in chars.iter().enumerate() {
        let begins = at > 0 && {
            let before = chars[at - 1];
            let hump = c.is_uppercase()
                && (before.is_lowercase() || chars.get(at + 1).is_some_and(|next| next.is_lowercase()));
            hump || (c.is_numeric() != before.is_numeric())
        };
        if (begins || *c == '_') && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if *c != '_' {
            part.extend(c.to_lowercase());
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// The parts of all compound identifiers of these texts, and the pairs of all Chinese, Japanese and Korean runs,
/// separated by spaces: the shadow column of the index. A word with one part is in the text already.
#[must_use]
pub fn split_words<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    let mut push = |part: &str| {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(part);
    };
    for word in texts.into_iter().flat_map(words) {
        let pieces = cjk::pieces(word);
        let is_mixed = pieces.len() > 1;
        for piece in pieces {
            match piece {
                WordPart::Run(run) => cjk::tokens(run).for_each(&mut push),
                WordPart::Word(word) if word.len() > MAX_WORD_BYTES => {}
                WordPart::Word(word) => {
                    let parts = word_parts(word);
                    if is_mixed {
                        push(word);
                    }
                    if parts.len() > 1 {
                        parts.iter().filter(|part| part.len() > 1).for_each(|part| push(part));
                    }
                }
            }
        }
    }
    out
}

/// The full-text query of a search text, or `None` if no term is left: quoted terms, any of which may match. Terms
/// that look like identifiers are first, then long ones, because rare terms decide the order of the results.
#[must_use]
pub fn match_query(text: &str) -> Option<String> {
    let mut end = text.len().min(MAX_SEARCH_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut seen = HashSet::new();
    let mut terms: Vec<(bool, String)> = Vec::new();
    let mut stop = Vec::new();
    let mut runs = Vec::new();
    let pieces = words(&text[..end]).flat_map(cjk::pieces).filter_map(|piece| match piece {
        WordPart::Word(word) => Some(word),
        WordPart::Run(run) => {
            runs.push(run);
            None
        }
    });
    for word in pieces.filter(|word| word.len() <= MAX_WORD_BYTES) {
        let parts = word_parts(word);
        let is_compound = parts.len() > 1;
        let whole = word.to_lowercase();
        if whole.chars().all(|c| c == '_') {
            continue;
        }
        if STOP_WORDS.binary_search(&whole.as_str()).is_ok() {
            stop.push(whole);
            continue;
        }
        for (compound, term) in std::iter::once((is_compound, whole))
            .chain(parts.into_iter().filter(|_| is_compound).map(|part| (false, part)))
        {
            let is_word = term.chars().count() > 1 || !is_compound;
            if is_word && STOP_WORDS.binary_search(&term.as_str()).is_err() && seen.insert(term.clone()) {
                terms.push((compound, term));
            }
        }
    }
    let pairs = cjk::search_terms(&runs);
    if terms.is_empty() && pairs.is_empty() {
        // A question of stop words alone must still find something.
        stop.dedup();
        terms = stop.into_iter().map(|word| (false, word)).collect();
    }
    if terms.len() > MAX_SEARCH_TERMS {
        terms.sort_by_key(|(compound, term)| (!*compound, std::cmp::Reverse(term.chars().count())));
        terms.truncate(MAX_SEARCH_TERMS);
    }
    let quoted = terms.into_iter().map(|(_, term)| format!("\"{term}\""));
    let quoted: Vec<String> = quoted.chain(pairs).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted_for_binary_search() {
        assert!(STOP_WORDS.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn identifiers_split_at_humps_underscores_and_digits() {
        assert_eq!(word_parts("HTTPServer2_run"), ["http", "server", "2", "run"]);
        assert_eq!(word_parts("readFile"), ["read", "file"]);
        assert_eq!(word_parts("READ_FILE"), ["read", "file"]);
        assert_eq!(word_parts("plain"), ["plain"]);
        assert_eq!(word_parts("__init__"), ["init"]);
        assert_eq!(word_parts("ÄpfelUndÖl"), ["äpfel", "und", "öl"]);
        assert_eq!(split_words(["let readFile = plain;", "x2"]), "read file");
    }

    #[test]
    fn search_text_becomes_quoted_terms_joined_by_or() {
        assert_eq!(
            match_query("How does the readFile work?").unwrap(),
            "\"readfile\" OR \"read\" OR \"file\" OR \"work\""
        );
        assert_eq!(match_query("\"NEAR(\" OR *: -x ^").unwrap(), "\"near\" OR \"x\"");
        assert_eq!(match_query("what is it").unwrap(), "\"what\" OR \"is\" OR \"it\"");
        assert_eq!(match_query(" \u{0} …"), None);
    }

    #[test]
    fn texts_without_spaces_are_indexed_and_searched_in_pairs() {
        assert_eq!(split_words(["agentd的会话 plain"]), "agentd 的会 会话 话");
        assert_eq!(match_query("agentd的会话").unwrap(), "\"agentd\" OR \"会话\"");
        assert_eq!(match_query("会").unwrap(), "\"会\" *");
        let long = "语".repeat(200);
        assert!(split_words([long.as_str()]).starts_with("语语 语语"), "a sentence is no overlong word");
    }

    #[test]
    fn long_search_text_keeps_identifiers_and_long_terms() {
        let text: String =
            (0..200).map(|n| format!("w{} ", "x".repeat(n % 20))).collect::<String>() + "call_next_tool";
        let query = match_query(&text).unwrap();
        assert_eq!(query.matches(" OR ").count() + 1, MAX_SEARCH_TERMS);
        assert!(query.starts_with("\"call_next_tool\""), "{query}");
    }
}
