//! Converts the bytes of a file to text, or returns the reason why it is not indexed.

use base::charset;
use types::secret_names;

use super::notebook::{self, Notebook};

/// Size of the largest file that is indexed.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// A file with more than one invalid character in this many bytes is binary.
const BYTES_PER_INVALID_CHAR: usize = 50;

/// The reason why a readable file is not indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnsuitableReason {
    /// The file is not text.
    Binary,
    /// The file holds a private key or a token.
    Secret,
}

/// The text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceText {
    /// A text as it is in the file.
    Plain(String),
    /// The cells of a notebook.
    Notebook(Notebook),
}

impl SourceText {
    /// The text that is split and searched.
    pub fn as_str(&self) -> &str {
        match self {
            SourceText::Plain(text) => text,
            SourceText::Notebook(notebook) => &notebook.text,
        }
    }
}

/// Whether a path looks like a secret, by the same names as the file tools.
pub(super) fn is_secret_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    secret_names::is_secret(&parts, None)
}

/// Size of the largest file at this path that is indexed.
pub(super) fn max_bytes(path: &str) -> u64 {
    if notebook::is_notebook(path) { notebook::MAX_NOTEBOOK_BYTES } else { MAX_FILE_BYTES }
}

/// The text of a file, in any encoding that Read detects.
pub(super) fn decode(path: &str, bytes: &[u8]) -> Result<SourceText, UnsuitableReason> {
    if charset::binary_kind(bytes).is_some() {
        return Err(UnsuitableReason::Binary);
    }
    let text = charset::decode_lossy(bytes);
    let invalid = text.matches(char::REPLACEMENT_CHARACTER).count();
    if invalid * BYTES_PER_INVALID_CHAR > bytes.len() {
        return Err(UnsuitableReason::Binary);
    }
    let cells = if notebook::is_notebook(path) { notebook::read(&text) } else { None };
    let text = cells.map_or_else(|| SourceText::Plain(text.into_owned()), SourceText::Notebook);
    match has_secret(text.as_str()) {
        true => Err(UnsuitableReason::Secret),
        // A notebook that could not be read may be larger than any other text.
        false if text.as_str().len() as u64 > 2 * MAX_FILE_BYTES => Err(UnsuitableReason::Binary),
        false => Ok(text),
    }
}

/// Beginnings of tokens and keys, and the number of token characters that must follow.
const TOKEN_PATTERNS: &[(&str, usize)] = &[
    ("AKIA", 16),
    ("ghp_", 36),
    ("gho_", 36),
    ("ghs_", 36),
    ("github_pat_", 40),
    ("glpat-", 20),
    ("xoxb-", 24),
    ("xoxp-", 24),
    ("sk-ant-", 40),
    ("sk_live_", 24),
    ("AIza", 35),
];

/// Bytes of a token that are read: a text may repeat the beginning of one without end.
const MAX_TOKEN_BYTES: usize = 256;

/// Whether a text holds a private key or a token of a well-known form. Made-up ones, such as `AKIAIOSFODNN7EXAMPLE`
/// or `ghp_xxxxxxxx`, do not count.
fn has_secret(text: &str) -> bool {
    if text.contains("PRIVATE KEY-----") && text.lines().any(is_key_begin) {
        return true;
    }
    TOKEN_PATTERNS.iter().any(|(prefix, length)| {
        text.match_indices(prefix).any(|(at, _)| {
            let is_inside_word = text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            if is_inside_word {
                return false;
            }
            let rest = &text.as_bytes()[at + prefix.len()..];
            let token: Vec<u8> = rest
                .iter()
                .copied()
                .take(MAX_TOKEN_BYTES)
                .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
                .collect();
            token.len() >= *length && looks_random(&token)
        })
    })
}

/// Whether a line begins a PEM block of a private key. A line of code that mentions the mark has more text.
fn is_key_begin(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----")
}

/// Whether a token has enough different characters, and no word that marks an example.
fn looks_random(token: &[u8]) -> bool {
    let mut seen = [false; 256];
    for byte in token {
        seen[usize::from(*byte)] = true;
    }
    let different = seen.iter().filter(|seen| **seen).count();
    let text = String::from_utf8_lossy(token).to_lowercase();
    different >= 10
        && !["example", "xxxx", "1234567", "abcdef", "test", "fake"].iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<String, UnsuitableReason> {
        decode("a.txt", bytes).map(|text| text.as_str().to_owned())
    }

    #[test]
    fn texts_are_decoded_from_all_encodings_and_binaries_are_refused() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let russian = "\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}, \u{44d}\u{442}\u{43e} \u{442}\u{435}\u{43a}\u{441}\u{442} \u{444}\u{430}\u{439}\u{43b}\u{430}.\n";
        let chinese = "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c}\u{3002}\u{8fd9}\u{662f}\u{4e00}\u{4e2a}\u{6d4b}\u{8bd5}\u{6587}\u{4ef6}\u{3002}\n";
        let japanese = "\u{3053}\u{308c}\u{306f}\u{30c6}\u{30b9}\u{30c8}\u{3067}\u{3059}\u{3002}\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{6587}\u{66f8}\u{3002}\n";
        let encoded =
            |encoding: &'static encoding_rs::Encoding, text: &str| encoding.encode(text).0.into_owned();
        for (bytes, text) in [
            (Vec::new(), ""),
            ("plain\n".into(), "plain\n"),
            (b"\xEF\xBB\xBFmarked\n".to_vec(), "marked\n"),
            ([b"\xFF\xFE".to_vec(), utf16("h\u{e9}llo\n")].concat(), "h\u{e9}llo\n"),
            (utf16("no mark here\n"), "no mark here\n"),
            (
                b"caf\xe9 cr\xe8me na\xefve fa\xe7ade\n".to_vec(),
                "caf\u{e9} cr\u{e8}me na\u{ef}ve fa\u{e7}ade\n",
            ),
            (encoded(encoding_rs::WINDOWS_1251, russian), russian),
            (encoded(encoding_rs::GBK, chinese), chinese),
            (encoded(encoding_rs::SHIFT_JIS, japanese), japanese),
        ] {
            assert_eq!(decoded(&bytes).as_deref(), Ok(text), "{bytes:?}");
        }
        for binary in [&b"a\0b"[..], b"\x89PNG\r\n\x1a\n", b"%PDF-1.7 x", &[1, 2, 3, 4, 5, 6, b'a']] {
            assert_eq!(decoded(binary), Err(UnsuitableReason::Binary), "{binary:?}");
        }
    }

    #[test]
    fn files_with_keys_and_tokens_are_refused() {
        let key = format!("-----BEGIN RSA {} KEY-----\nMIIE\n", "PRIVATE");
        assert_eq!(decoded(key.as_bytes()), Err(UnsuitableReason::Secret));
        let token = format!("token = {}{}", "ghp_", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6u");
        assert_eq!(decoded(token.as_bytes()), Err(UnsuitableReason::Secret));
        for harmless in ["AKIAIOSFODNN7EXAMPLE", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "MAKIA1234"] {
            assert!(decoded(harmless.as_bytes()).is_ok(), "{harmless}");
        }
        let cells = format!(
            r#"{{"cells": [{{"cell_type": "code", "source": ["-----BEGIN {} KEY-----\n"]}}]}}"#,
            "PRIVATE"
        );
        assert_eq!(decode("a.ipynb", cells.as_bytes()), Err(UnsuitableReason::Secret));
        assert!(
            is_secret_path("a/.ssh/id_rsa") && is_secret_path(".netrc") && !is_secret_path("src/main.rs")
        );
    }
}
