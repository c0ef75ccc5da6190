//! Words of the full-text index: split identifiers, stop words, and the query of a search text. Only [`super::cjk`]
//! splits texts without spaces between words, so that the index and its queries agree.

use std::borrow::Cow;
use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::cjk::{self, WordPart};
use crate::types::SearchText;

/// Maximum number of terms of one full-text query. More terms cost time and find the same results.
pub const MAX_SEARCH_TERMS: usize = 12;
/// Maximum number of keywords that are searched. Words of the question only fill up to [`MAX_SEARCH_TERMS`].
const MAX_KEYWORD_TERMS: usize = 32;
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

/// A text whose accents are parts of their letters. Some systems write them apart, for example in names of files.
fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

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

/// Letters that are no base letter with an accent, and how they are written without them.
const LETTERS: &[(char, &str)] = &[
    ('ß', "ss"),
    ('æ', "ae"),
    ('œ', "oe"),
    ('ø', "o"),
    ('đ', "d"),
    ('ð', "d"),
    ('ł', "l"),
    ('þ', "th"),
    ('ħ', "h"),
    ('ı', "i"),
];

/// A word as it is written without accents, in lower case: `Größe` → `grosse`. `None` if that is the word itself, or if
/// its script has other letters. The full-text index removes single accents, but not these letters.
fn folded(word: &str) -> Option<String> {
    if word.is_ascii() {
        return None;
    }
    let mut folded = String::with_capacity(word.len());
    for c in word.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        match LETTERS.iter().find(|(letter, _)| *letter == c) {
            Some((_, plain)) => folded.push_str(plain),
            None if c.is_ascii() => folded.push(c),
            None => return None,
        }
    }
    Some(folded)
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
    let texts: Vec<Cow<'_, str>> = texts.into_iter().map(composed).collect();
    for word in texts.iter().flat_map(|text| words(text)) {
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
                    folded(word).iter().for_each(|word| push(word));
                    if parts.len() > 1 {
                        for part in parts.iter().filter(|part| part.len() > 1) {
                            push(part);
                            folded(part).iter().for_each(|part| push(part));
                        }
                    }
                }
            }
        }
    }
    out
}

/// The full-text query of a search text, or `None` if no term is left: quoted terms, any of which may match. The words of
/// keywords are first, because the caller chose them. Then come terms that look like identifiers, then long ones, because
/// rare terms decide the order of the results.
#[must_use]
pub fn match_query(text: &SearchText) -> Option<String> {
    let mut terms = SearchTerms::default();
    let mut runs: Vec<String> = Vec::new();
    let mut stop = Vec::new();
    let mut rest = MAX_SEARCH_BYTES;
    let keywords = text.keywords.iter().map(|keyword| (true, keyword));
    for (is_keyword, text) in keywords.chain([(false, &text.question)]) {
        let mut end = text.len().min(rest);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        rest -= end;
        for word in words(&composed(&text[..end])) {
            for piece in cjk::pieces(word) {
                match piece {
                    WordPart::Word(word) => terms.add_word(word, is_keyword, &mut stop),
                    WordPart::Run(run) => runs.push(run.to_owned()),
                }
            }
        }
    }
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let pairs = cjk::search_terms(&runs);
    let mut words = terms.into_words();
    if words.is_empty() && pairs.is_empty() {
        // A question of stop words alone must still find something.
        stop.dedup();
        stop.truncate(MAX_SEARCH_TERMS);
        words = stop;
    }
    let quoted = words.into_iter().map(|term| format!("\"{term}\""));
    let quoted: Vec<String> = quoted.chain(pairs).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// The words of a search text, each once.
#[derive(Default)]
struct SearchTerms {
    seen: HashSet<String>,
    /// Whole words of keywords, in the given order.
    keywords: Vec<String>,
    /// Other terms, and whether each is an identifier with several parts.
    others: Vec<(bool, String)>,
}

impl SearchTerms {
    /// Adds a word and its parts. Adds it to `stop` instead if it is in most texts.
    fn add_word(&mut self, word: &str, is_keyword: bool, stop: &mut Vec<String>) {
        if word.len() > MAX_WORD_BYTES {
            return;
        }
        let whole = word.to_lowercase();
        if whole.chars().all(|c| c == '_') {
            return;
        }
        if STOP_WORDS.binary_search(&whole.as_str()).is_ok() {
            stop.push(whole);
            return;
        }
        let parts = word_parts(word);
        let is_compound = parts.len() > 1;
        for term in [folded(word), Some(whole)].into_iter().flatten() {
            if !self.seen.insert(term.clone()) {
                continue;
            }
            match is_keyword && self.keywords.len() < MAX_KEYWORD_TERMS {
                true => self.keywords.push(term),
                false => self.others.push((is_compound, term)),
            }
        }
        for part in parts.iter().filter(|part| is_compound && part.chars().count() > 1) {
            for term in [folded(part), Some(part.clone())].into_iter().flatten() {
                if STOP_WORDS.binary_search(&term.as_str()).is_err() && self.seen.insert(term.clone()) {
                    self.others.push((false, term));
                }
            }
        }
    }

    /// The terms that are searched: all keywords, then others up to the limit.
    fn into_words(self) -> Vec<String> {
        let Self { mut keywords, mut others, .. } = self;
        let room = MAX_SEARCH_TERMS.saturating_sub(keywords.len());
        if others.len() > room {
            others.sort_by_key(|(compound, term)| (!*compound, std::cmp::Reverse(term.chars().count())));
            others.truncate(room);
        }
        keywords.extend(others.into_iter().map(|(_, term)| term));
        keywords
    }
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
            match_query(&"How does the readFile work?".into()).unwrap(),
            "\"readfile\" OR \"read\" OR \"file\" OR \"work\""
        );
        assert_eq!(match_query(&"\"NEAR(\" OR *: -x ^".into()).unwrap(), "\"near\" OR \"x\"");
        assert_eq!(match_query(&"what is it".into()).unwrap(), "\"what\" OR \"is\" OR \"it\"");
        assert_eq!(match_query(&" \u{0} …".into()), None);
    }

    #[test]
    fn texts_without_spaces_are_indexed_and_searched_in_pairs() {
        assert_eq!(split_words(["agentd的会话 plain"]), "agentd 的会 会话 话");
        assert_eq!(match_query(&"agentd的会话".into()).unwrap(), "\"agentd\" OR \"会话\"");
        assert_eq!(match_query(&"会".into()).unwrap(), "\"会\" *");
        let long = "语".repeat(200);
        assert!(split_words([long.as_str()]).starts_with("语语 语语"), "a sentence is no overlong word");
    }

    #[test]
    fn keywords_are_searched_however_long_the_question_is() {
        let question = (0..40).map(|n| format!("call_number_{n} extraordinary{n} ")).collect::<String>();
        let given = |keywords: &[&str]| SearchText {
            keywords: keywords.iter().map(|word| (*word).into()).collect(),
            question: question.clone(),
        };
        for keywords in
            [&["lease"][..], &["db", "x"], &["go", "node lease", "Ärger"], &["readFile", "is", "tx"]]
        {
            let query = match_query(&given(keywords)).unwrap();
            for word in keywords.iter().flat_map(|keyword| keyword.split(' ')).filter(|word| *word != "is") {
                assert!(query.contains(&format!("\"{}\"", word.to_lowercase())), "{word} in {query}");
            }
            assert_eq!(query.matches(" OR ").count() + 1, MAX_SEARCH_TERMS, "{query}");
        }
        let many: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
        let query = match_query(&SearchText { keywords: many, question }).unwrap();
        assert!(query.starts_with("\"k0\" OR \"k1\"") && query.ends_with("\"k19\""), "{query}");
    }

    #[test]
    fn words_are_found_without_their_accents() {
        for (word, plain) in [
            ("große", "grosse"),
            ("GRÖẞE", "grosse"),
            ("naïve", "naive"),
            ("Ærøskøbing", "aeroskobing"),
            ("Łódź", "lodz"),
            ("tiếng", "tieng"),
            ("Œuvre", "oeuvre"),
            ("gro\u{308}\u{df}e", "grosse"),
        ] {
            assert!(
                split_words([word]).split(' ').any(|term| term == plain),
                "{word}: {}",
                split_words([word])
            );
            let query = match_query(&word.into()).unwrap();
            assert!(query.contains(&format!("\"{plain}\"")), "{word}: {query}");
        }
        assert_eq!(split_words(["привет"]), "", "a script with other letters");
    }

    #[test]
    fn long_search_text_keeps_identifiers_and_long_terms() {
        let text: String =
            (0..200).map(|n| format!("w{} ", "x".repeat(n % 20))).collect::<String>() + "call_next_tool";
        let query = match_query(&text.as_str().into()).unwrap();
        assert_eq!(query.matches(" OR ").count() + 1, MAX_SEARCH_TERMS);
        assert!(query.starts_with("\"call_next_tool\""), "{query}");
    }
}
