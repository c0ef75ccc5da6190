//! Summaries of long lists of descriptions: map-reduce.

use super::calls::SemanticRun;
use super::prompt::{SUMMARY_POLICY, summary_system, summary_user};
use crate::store::{CachedAnswer, MAX_JOINED_DESCRIPTIONS, MAX_JOINED_TOKENS};
use crate::tokens;
use crate::traits::{CallPurpose, ModelCall};
use crate::types::{KnowledgeError, hash128};
use types::knowledge::{CacheKind, ChatMessage};

/// Tokens of the descriptions in one call.
const MAX_CALL_TOKENS: usize = 12_000;

/// Joins the descriptions into one.
///
/// # Errors
/// A call failed, the budget is used up, or the job was cancelled.
pub(super) async fn summarize(
    run: &SemanticRun<'_>,
    name: &str,
    descriptions: &[String],
) -> Result<String, KnowledgeError> {
    let mut current: Vec<String> = descriptions.to_vec();
    loop {
        let groups = groups(&current);
        if let [only] = groups.as_slice() {
            return match only.as_slice() {
                [single] => Ok(single.clone()),
                several => summarize_group(run, name, several).await,
            };
        }
        let calls = groups.iter().map(|group| async move {
            match group.as_slice() {
                [single] => Ok(single.clone()),
                several => summarize_group(run, name, several).await,
            }
        });
        current = futures_util::future::try_join_all(calls).await?;
        let joined = current.join("\n");
        if current.len() < MAX_JOINED_DESCRIPTIONS && tokens::fits_tokens(&joined, MAX_JOINED_TOKENS - 1) {
            return Ok(joined);
        }
    }
}

/// Groups of at most [`MAX_CALL_TOKENS`], each with at least two descriptions except perhaps the last one. So every
/// round halves the number of descriptions.
fn groups(descriptions: &[String]) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut used = 0;
    for description in descriptions {
        let tokens = tokens::count(description) + 10;
        match groups.last_mut() {
            Some(group) if group.len() < 2 || used + tokens <= MAX_CALL_TOKENS => {
                group.push(description.clone());
                used += tokens;
            }
            _ => {
                groups.push(vec![description.clone()]);
                used = tokens;
            }
        }
    }
    groups
}

async fn summarize_group(
    run: &SemanticRun<'_>,
    name: &str,
    descriptions: &[String],
) -> Result<String, KnowledgeError> {
    let system = summary_system(run.settings);
    let user = summary_user(name, descriptions);
    let identity = run.model.identity();
    let key = hash128(&[
        SUMMARY_POLICY.as_bytes(),
        b"call",
        system.as_bytes(),
        user.as_bytes(),
        identity.as_bytes(),
    ]);
    let cache_key = key.clone();
    if let Some(summary) = run.store.read(move |reader| reader.cached(CacheKind::Summary, &cache_key)).await?
    {
        return Ok(summary);
    }
    let call = ModelCall { purpose: CallPurpose::Summary, system, messages: vec![ChatMessage::user(user)] };
    let completion = run.call(call).await?;
    let summary = completion.text.trim().to_owned();
    if !completion.truncated && !summary.is_empty() {
        let answer = CachedAnswer { kind: CacheKind::Summary, key, value: summary.clone(), chunk: None };
        let now_ms = run.clock.now().0;
        run.store.write(move |writer| writer.put_answers(&[answer], now_ms)).await?;
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_two_or_more_descriptions_within_the_limit() {
        let long = "word ".repeat(7000);
        assert_eq!(
            groups(&[long.clone(), long.clone(), long.clone()]).iter().map(Vec::len).collect::<Vec<_>>(),
            [2, 1]
        );
        let short: Vec<String> = (0..20).map(|n| format!("fact {n}")).collect();
        assert_eq!(groups(&short).len(), 1);
    }
}
