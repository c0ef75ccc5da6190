//! Keys of cached keywords and answers.

use super::context::RELATED_CHUNKS;
use crate::types::hash128;
use types::knowledge::{ChunkPick, EntityOrder, Keywords, QueryParams};

/// Rises when prompts or stages change, so that answers of an older daemon are not used.
const POLICY_VERSION: u32 = 1;

/// The key of the keywords of a query.
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

/// The key of an answer. It contains all inputs of the prompt, so that two different prompts never share a key. A
/// changed index has another generation.
#[must_use]
pub fn answer_key(
    params: &QueryParams,
    keywords: &Keywords,
    model: &str,
    embedder: &str,
    generation: u64,
) -> String {
    let numbers = [
        params.top_k(),
        params.chunk_limit(),
        params.max_entity_tokens(),
        params.max_relation_tokens(),
        params.max_total_tokens(),
        RELATED_CHUNKS,
        usize::from(params.enable_rerank()),
        usize::from(params.local_relations == Some(true)),
        usize::from(params.relation_chunks == Some(true)),
        usize::from(params.entity_order == Some(EntityOrder::Similarity)),
        usize::from(params.chunk_pick == Some(ChunkPick::Weight)),
    ];
    let numbers: Vec<u8> = numbers.iter().flat_map(|number| (*number as u64).to_le_bytes()).collect();
    let (version, generation) = (POLICY_VERSION.to_le_bytes(), generation.to_le_bytes());
    let score = params.min_rerank_score().to_le_bytes();
    let (high, low) = (keywords.high_level.len().to_le_bytes(), keywords.low_level.len().to_le_bytes());
    let mut fields: Vec<&[u8]> = vec![
        &version,
        b"query",
        params.mode().name().as_bytes(),
        params.query.as_bytes(),
        params.response_type().as_bytes(),
        params.user_prompt().as_bytes(),
        params.language.as_deref().unwrap_or_default().as_bytes(),
        model.as_bytes(),
        embedder.as_bytes(),
        &generation,
        &score,
        &numbers,
        &high,
        &low,
    ];
    fields.extend(keywords.high_level.iter().chain(&keywords.low_level).map(|word| word.as_bytes()));
    hash128(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_keys_differ_in_each_field() {
        let base =
            QueryParams { query: "ab".into(), user_prompt: Some("c".into()), ..QueryParams::default() };
        let words = |high: &[&str], low: &[&str]| Keywords {
            high_level: high.iter().map(|word| (*word).into()).collect(),
            low_level: low.iter().map(|word| (*word).into()).collect(),
        };
        let none = Keywords::default();
        let keys = [
            answer_key(&base, &none, "m", "", 1),
            answer_key(&base, &none, "m", "", 2),
            answer_key(&base, &none, "n", "", 1),
            answer_key(&base, &none, "m", "e", 1),
            answer_key(&base, &words(&["x"], &["y"]), "m", "", 1),
            answer_key(&base, &words(&["x", "y"], &[]), "m", "", 1),
            answer_key(&base, &words(&["xy"], &[]), "m", "", 1),
            answer_key(
                &QueryParams { query: "a".into(), user_prompt: Some("bc".into()), ..base.clone() },
                &none,
                "m",
                "",
                1,
            ),
            answer_key(&QueryParams { top_k: Some(41), ..base.clone() }, &none, "m", "", 1),
            answer_key(&QueryParams { min_rerank_score: Some(0.5), ..base.clone() }, &none, "m", "", 1),
            answer_key(
                &QueryParams { mode: Some(types::knowledge::QueryMode::Mix), ..base.clone() },
                &none,
                "m",
                "",
                1,
            ),
        ];
        let unique: std::collections::HashSet<&String> = keys.iter().collect();
        assert_eq!(unique.len(), keys.len());
        assert_eq!(keys[0], answer_key(&base, &none, "m", "", 1));
        assert_ne!(keywords_key("q", None, "m"), keywords_key("qm", None, ""));
    }
}
