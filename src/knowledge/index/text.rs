//! Converts the bytes of a file to text, or returns the reason why it is not indexed.

use types::secret_names;

/// Size of the largest file that is indexed.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Number of bytes at the beginning that must not contain NUL.
const BINARY_PROBE_BYTES: usize = 8 * 1024;
/// A file with more than one invalid byte in this many is binary.
const BYTES_PER_INVALID_BYTE: usize = 50;

/// The reason why a readable file is not indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnsuitableReason {
    /// The file is not text.
    Binary,
    /// The file holds a private key or a token.
    Secret,
}

/// Whether a path looks like a secret, by the same names as the file tools.
pub(super) fn is_secret_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    secret_names::is_secret(&parts, None)
}

/// The text of a file. Single invalid bytes, for example of an old encoding, become replacement characters.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, UnsuitableReason> {
    if bytes[..bytes.len().min(BINARY_PROBE_BYTES)].contains(&0) {
        return Err(UnsuitableReason::Binary);
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let bytes = error.as_bytes();
            let text = String::from_utf8_lossy(bytes);
            let invalid = text.matches(char::REPLACEMENT_CHARACTER).count();
            if invalid * BYTES_PER_INVALID_BYTE > bytes.len() {
                return Err(UnsuitableReason::Binary);
            }
            text.into_owned()
        }
    };
    if has_secret(&text) { Err(UnsuitableReason::Secret) } else { Ok(text) }
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

/// Whether a text holds a private key or a token of a well-known form. Made-up ones, such as `AKIAIOSFODNN7EXAMPLE`
/// or `ghp_xxxxxxxx`, do not count.
fn has_secret(text: &str) -> bool {
    if text.contains("PRIVATE KEY-----") && text.lines().any(is_key_begin) {
        return true;
    }
    TOKEN_PATTERNS.iter().any(|(prefix, length)| {
        text.match_indices(prefix).any(|(at, _)| {
            let is_inside_word = text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let rest = &text.as_bytes()[at + prefix.len()..];
            let token: Vec<u8> = rest
                .iter()
                .copied()
                .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
                .collect();
            !is_inside_word && token.len() >= *length && looks_random(&token)
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

    #[test]
    fn binary_and_broken_text_is_told_apart() {
        assert_eq!(decode(b"a\0b".to_vec()), Err(UnsuitableReason::Binary));
        assert_eq!(decode(vec![0xff; 100]), Err(UnsuitableReason::Binary));
        let mut latin = b"caf\xe9 ".to_vec();
        latin.extend(b"x".repeat(200));
        assert!(decode(latin).unwrap().starts_with("caf\u{fffd} "));
        assert_eq!(decode(Vec::new()).unwrap(), "");
    }

    #[test]
    fn files_with_keys_and_tokens_are_refused() {
        let key = format!("-----BEGIN RSA {} KEY-----\nMIIE\n", "PRIVATE");
        assert_eq!(decode(key.into_bytes()), Err(UnsuitableReason::Secret));
        let token = format!("token = {}{}", "ghp_", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6u");
        assert_eq!(decode(token.into_bytes()), Err(UnsuitableReason::Secret));
        for harmless in ["AKIAIOSFODNN7EXAMPLE", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "MAKIA1234"] {
            assert!(decode(harmless.into()).is_ok(), "{harmless}");
        }
        assert!(
            is_secret_path("a/.ssh/id_rsa") && is_secret_path(".netrc") && !is_secret_path("src/main.rs")
        );
    }
}
