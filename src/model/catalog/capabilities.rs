//! Requirements of providers: names and ids of tool calls, thinking as reasoning effort, and encrypted reasoning.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::settings::ModelSettings;
use types::CallId;
use types::thinking::Thinking;

/// Maximum length that vendors accept (Anthropic 128, OpenAI 64: their API references, 2026-03).
const MAX_NAME_CHARS: usize = 64;

/// The name of a called tool in the form that every vendor accepts: letters, digits, `_` and `-`. A model may
/// invent a name; sent back unchanged, every later request would be refused.
pub(crate) fn wire_tool_name(tool: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if tool.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if tool.len() <= MAX_NAME_CHARS && tool.chars().all(is_plain) {
        return Cow::Borrowed(tool);
    }
    Cow::Owned(tool.chars().take(MAX_NAME_CHARS).map(|c| if is_plain(c) { c } else { '_' }).collect())
}

/// Maximum length of a call id for Anthropic and OpenAI Responses, in characters.
pub(crate) const MAX_CALL_ID_CHARS: usize = 64;
/// Maximum length of a call id for OpenAI Chat Completions: "Expected a string with maximum length 40".
pub(crate) const MAX_CHAT_CALL_ID_CHARS: usize = 40;

/// The id for a call and its result: the provider's, or the daemon's if that is missing or does not `fit`. The
/// daemon's id has 41 characters, is unique and never changes, so the same transcript gives the same bytes.
pub(crate) fn wire_call_id<'a>(
    provider_id: &'a str,
    call_id: &CallId,
    fits: impl Fn(&str) -> bool,
) -> Cow<'a, str> {
    if !provider_id.is_empty() && fits(provider_id) {
        return Cow::Borrowed(provider_id);
    }
    Cow::Owned(call_id.to_string())
}

/// Largest budget in tokens that maps to low effort, and to medium effort.
const MAX_LOW_EFFORT_TOKENS: u32 = 4_096;
const MAX_MEDIUM_EFFORT_TOKENS: u32 = 16_384;

/// The effort to send; `None` leaves it to the model.
pub(crate) fn effort(thinking: Option<Thinking>, settings: &ModelSettings) -> Option<&str> {
    if !settings.thinking {
        return None;
    }
    match thinking? {
        Thinking::Off => settings.min_effort.as_deref(),
        Thinking::Auto => None,
        named => Some(effort_word(named)),
    }
}

/// The effort for thinking that is on, as a word that all vendors accept.
pub(crate) const fn effort_word(thinking: Thinking) -> &'static str {
    match thinking {
        Thinking::Off | Thinking::Low | Thinking::Tokens(..=MAX_LOW_EFFORT_TOKENS) => "low",
        Thinking::Auto | Thinking::Medium | Thinking::Tokens(..=MAX_MEDIUM_EFFORT_TOKENS) => "medium",
        Thinking::High | Thinking::Tokens(_) => "high",
    }
}

/// Encrypted reasoning of OpenAI Responses is stored in the place of other providers' signatures. This prefix
/// distinguishes the two, so that no provider receives the data of another one.
const SEAL_PREFIX: &str = "openai_responses:";

/// A reasoning item in the form that the API expects back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SealedReasoning {
    /// The item's id.
    pub id: String,
    /// Opaque data of the provider.
    pub encrypted_content: String,
}

/// Encodes the item as a signature.
pub(crate) fn seal(sealed: &SealedReasoning) -> String {
    // Writing two strings as JSON cannot fail.
    format!("{SEAL_PREFIX}{}", serde_json::to_string(sealed).unwrap_or_default())
}

/// Decodes a signature; `None` for another provider's.
pub(crate) fn unseal(signature: &str) -> Option<SealedReasoning> {
    serde_json::from_str(signature.strip_prefix(SEAL_PREFIX)?).ok()
}

/// Whether the signature is an encoded reasoning item.
pub(crate) fn is_sealed(signature: &str) -> bool {
    signature.starts_with(SEAL_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::{Mint, Seed};

    #[test]
    fn overlong_call_id_becomes_short_and_unique() {
        let mut mint = Mint::new(1, Seed(1));
        let (first, second) = (mint.call(), mint.call());
        let fits = |id: &str| id.chars().count() <= MAX_CALL_ID_CHARS;
        let long = "call_".repeat(20);
        assert_eq!(wire_call_id("call_1", &first, fits), "call_1");
        assert_eq!(wire_call_id(&long, &first, fits), wire_call_id(&long, &first, fits));
        assert_ne!(wire_call_id(&long, &first, fits), wire_call_id(&long, &second, fits));
        for provider_id in [long.as_str(), ""] {
            let id = wire_call_id(provider_id, &first, fits);
            assert!(
                fits(&id) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
                "{id}"
            );
        }
    }

    #[test]
    fn invented_tool_name_is_sanitised_for_vendors() {
        let long = "x".repeat(1_000);
        for (name, expected) in [
            ("Bash", "Bash"),
            ("mcp__a-b__c", "mcp__a-b__c"),
            ("", "unnamed"),
            ("a b.c/d", "a_b_c_d"),
            ("Bash\0", "Bash_"),
            ("größe", "gr__e"),
            (long.as_str(), &long[..64]),
        ] {
            assert_eq!(wire_tool_name(name), expected, "{name}");
        }
    }

    #[test]
    fn thinking_budget_maps_to_effort_for_thinking_models() {
        let thinks = ModelSettings { thinking: true, ..ModelSettings::default() };
        let least = ModelSettings { min_effort: Some("minimal".into()), ..thinks.clone() };
        for (thinking, expected) in [
            (None, None),
            (Some(Thinking::Auto), None),
            (Some(Thinking::Off), None),
            (Some(Thinking::Low), Some("low")),
            (Some(Thinking::Medium), Some("medium")),
            (Some(Thinking::High), Some("high")),
            (Some(Thinking::Tokens(4_096)), Some("low")),
            (Some(Thinking::Tokens(4_097)), Some("medium")),
            (Some(Thinking::Tokens(60_000)), Some("high")),
        ] {
            assert_eq!(effort(thinking, &thinks), expected, "{thinking:?}");
            assert_eq!(effort(thinking, &ModelSettings::default()), None, "{thinking:?}");
        }
        assert_eq!(effort(Some(Thinking::Off), &least), Some("minimal"));
    }

    #[test]
    fn only_encoded_reasoning_signatures_are_decoded() {
        let sealed = SealedReasoning { id: "rs_1".into(), encrypted_content: "gAAA\"".into() };
        let text = seal(&sealed);
        assert!(is_sealed(&text));
        assert_eq!(unseal(&text), Some(sealed));
        assert_eq!(unseal("EqQBCgIYAhIM"), None);
        assert_eq!(unseal("openai_responses:{"), None);
    }
}
