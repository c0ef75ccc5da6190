//! Keys of cached keywords and answers.

use crate::types::hash128;

/// Rises when prompts or stages change, so that answers of an older daemon are not used.
const POLICY_VERSION: u32 = 2;

#[must_use]
pub fn keywords_key(query: &str, language: Option<&str>, model: &str) -> String {
    let version = POLICY_VERSION.to_le_bytes();
    hash128(&[
        &version,
        b"keywords",
        query.as_bytes(),
        language.unwrap_or_default().as_bytes(),
        model.as_bytes(),
    ])
}

/// The key of an answer: the prompt itself, because whatever the prompt depends on may change, such as vectors that
/// failed once, weights, and a reranker. So an answer never comes with other references than those that it cites. A
/// changed index has another generation.
#[must_use]
pub fn answer_key(system: &str, query: &str, model: &str, generation: u64) -> String {
    let (version, generation) = (POLICY_VERSION.to_le_bytes(), generation.to_le_bytes());
    hash128(&[&version, b"query", system.as_bytes(), query.as_bytes(), model.as_bytes(), &generation])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_keys_differ_in_each_field() {
        let keys = [
            answer_key("s", "ab", "m", 1),
            answer_key("s", "ab", "m", 2),
            answer_key("s", "ab", "n", 1),
            answer_key("s", "a", "bm", 1),
            answer_key("sa", "b", "m", 1),
            answer_key("t", "ab", "m", 1),
        ];
        let unique: std::collections::HashSet<&String> = keys.iter().collect();
        assert_eq!(unique.len(), keys.len());
        assert_eq!(keys[0], answer_key("s", "ab", "m", 1));
        assert_ne!(keywords_key("q", None, "m"), keywords_key("qm", None, ""));
    }
}
