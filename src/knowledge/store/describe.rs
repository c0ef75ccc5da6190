//! The description of an entity or a relation, made of the statements of its chunks.

use crate::tokens;
use crate::types::hash128;

/// From this number of descriptions on, a model summarises them.
pub const MAX_JOINED_DESCRIPTIONS: usize = 8;
/// From this number of tokens on, a model summarises the descriptions.
pub const MAX_JOINED_TOKENS: usize = 1200;
/// Changes when the prompts or the rules of summaries change.
const SUMMARY_POLICY: &str = "summary-1";

/// Descriptions of one name in their order, exact duplicates dropped.
pub(super) fn distinct_descriptions(descriptions: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    descriptions
        .into_iter()
        .filter(|description| !description.is_empty() && seen.insert(hash128(&[description.as_bytes()])))
        .collect()
}

/// Whether a model must summarise these descriptions.
pub(super) fn needs_summary(descriptions: &[String]) -> bool {
    descriptions.len() > 1
        && (descriptions.len() >= MAX_JOINED_DESCRIPTIONS
            || !tokens::fits_tokens(&descriptions.join("\n"), MAX_JOINED_TOKENS - 1))
}

/// The descriptions joined by newlines: the first ones that fit, and at least one.
pub(super) fn join_descriptions(descriptions: &[String]) -> String {
    let whole = descriptions.join("\n");
    if tokens::fits_tokens(&whole, MAX_JOINED_TOKENS) {
        return whole;
    }
    let mut joined = String::new();
    let mut used = 0;
    for description in descriptions {
        used += tokens::count(description) + 1;
        if used > MAX_JOINED_TOKENS && !joined.is_empty() {
            break;
        }
        if !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(description);
    }
    joined
}

/// The cache key of the summary of these descriptions by this model. `name` is the entity's name, or both ends.
#[must_use]
pub fn summary_key(model: &str, name: &str, descriptions: &[String]) -> String {
    let mut fields: Vec<&[u8]> = vec![SUMMARY_POLICY.as_bytes(), b"final", model.as_bytes(), name.as_bytes()];
    fields.extend(descriptions.iter().map(|description| description.as_bytes()));
    hash128(&fields)
}
