//! A tokenizer of the kind WordPiece, as BERT models use it.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Maximum characters of a word; longer ones are unknown.
const MAX_WORD_CHARS: usize = 100;

/// Splits texts into the words of a vocabulary.
#[derive(Debug)]
pub(super) struct WordPiece {
    vocab: HashMap<String, u32>,
    prefix: String,
    max_word_chars: usize,
    is_lowercasing: bool,
    is_stripping_accents: bool,
    is_splitting_cjk: bool,
}

#[derive(Deserialize)]
struct WordPieceModel {
    vocab: HashMap<String, u32>,
    #[serde(default = "two_hashes")]
    continuing_subword_prefix: String,
    #[serde(default)]
    max_input_chars_per_word: Option<usize>,
}

fn two_hashes() -> String {
    "##".into()
}

impl WordPiece {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// The file is damaged or of another kind; the text is for users.
    pub(super) fn from_json(text: &[u8]) -> Result<Self, String> {
        let all: Value = serde_json::from_slice(text).map_err(|_| "tokenizer.json is not JSON".to_owned())?;
        let kind = all["model"]["type"].as_str().unwrap_or("WordPiece");
        if kind != "WordPiece" || !all["model"]["vocab"].is_object() {
            return Err(format!("its tokenizer is of the kind {kind}; only WordPiece is supported"));
        }
        let model = WordPieceModel::deserialize(&all["model"])
            .map_err(|error| format!("tokenizer.json is damaged: {error}"))?;
        let normalizer = &all["normalizer"];
        let is_lowercasing = normalizer["lowercase"].as_bool().unwrap_or(true);
        Ok(Self {
            vocab: model.vocab,
            prefix: model.continuing_subword_prefix,
            max_word_chars: model.max_input_chars_per_word.unwrap_or(MAX_WORD_CHARS),
            is_lowercasing,
            // By default, accents are removed if letters are lower-cased.
            is_stripping_accents: normalizer["strip_accents"].as_bool().unwrap_or(is_lowercasing),
            is_splitting_cjk: normalizer["handle_chinese_chars"].as_bool().unwrap_or(true),
        })
    }

    /// The known pieces of a text, at most `limit`. Unknown words are left out.
    pub(super) fn tokens(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut word = String::new();
        for c in text.chars() {
            let is_alone = is_punctuation(c) || (self.is_splitting_cjk && is_cjk(c));
            if c.is_whitespace() || is_alone || is_dropped(c) {
                if !is_dropped(c) || c.is_whitespace() {
                    self.push_word(&mut word, &mut tokens);
                }
                if is_alone {
                    word.push(c);
                    self.push_word(&mut word, &mut tokens);
                }
            } else {
                word.push(c);
            }
            if tokens.len() >= limit {
                break;
            }
        }
        self.push_word(&mut word, &mut tokens);
        tokens.truncate(limit);
        tokens
    }

    fn push_word(&self, word: &mut String, tokens: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let normal = self.normalize(word);
        word.clear();
        if normal.chars().nth(self.max_word_chars).is_some() {
            return;
        }
        let before = tokens.len();
        let mut start = 0;
        let mut piece = String::new();
        while start < normal.len() {
            let ends = normal[start..].char_indices().map(|(at, c)| start + at + c.len_utf8());
            let ends: Vec<usize> = ends.collect();
            let found = ends.into_iter().rev().find_map(|end| {
                piece.clear();
                if start > 0 {
                    piece.push_str(&self.prefix);
                }
                piece.push_str(&normal[start..end]);
                self.vocab.get(&piece).map(|token| (end, *token))
            });
            match found {
                Some((end, token)) => {
                    tokens.push(token);
                    start = end;
                }
                // One unknown piece makes the whole word unknown.
                None => {
                    tokens.truncate(before);
                    return;
                }
            }
        }
    }

    fn normalize(&self, word: &str) -> String {
        let stripped: String = if self.is_stripping_accents && !word.is_ascii() {
            word.nfd().filter(|c| !is_combining_mark(*c)).collect()
        } else {
            word.to_owned()
        };
        if self.is_lowercasing { stripped.to_lowercase() } else { stripped }
    }
}

fn is_dropped(c: char) -> bool {
    c == '\0' || c == '\u{fffd}' || (c.is_control() && !c.is_whitespace())
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    // The blocks with punctuation that texts use.
    matches!(c, '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}')
        || matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}')
        || matches!(c, '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{ff01}'..='\u{ff0f}')
        || matches!(c, '\u{ff1a}'..='\u{ff20}' | '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff65}')
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_split_into_longest_known_pieces() {
        let vocab = json!({
            "[UNK]": 0, "un": 1, "##know": 2, "##n": 3, "cafe": 4, ",": 5, "日": 6, "a": 7, "##b": 8, "unknow": 9
        });
        let file = json!({
            "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null},
            "model": {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]"}
        });
        let tokenizer = WordPiece::from_json(file.to_string().as_bytes()).expect("a tokenizer");
        for (text, expected) in [
            ("unknown", vec![9, 3]),
            ("Café,UN", vec![4, 5, 1]),
            ("日日a", vec![6, 6, 7]),
            ("xyz ab", vec![7, 8]),
            ("a\u{0}b", vec![7, 8]),
            ("abx a", vec![7]),
            ("", vec![]),
        ] {
            assert_eq!(tokenizer.tokens(text, 100), expected, "{text}");
        }
        assert_eq!(tokenizer.tokens("a a a a", 2), [7, 7]);
        assert!(tokenizer.tokens(&"a".repeat(101), 10).is_empty(), "too long for a word");
    }

    #[test]
    fn other_kinds_of_tokenizers_are_refused() {
        for text in
            ["", "[]", r#"{"model": {"type": "Unigram", "vocab": []}}"#, r#"{"model": {"vocab": {"a": -1}}}"#]
        {
            assert!(WordPiece::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }
}
