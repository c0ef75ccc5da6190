//! Names of tools and ids of calls as they are sent back to a provider.

use std::borrow::Cow;

use crate::types::CallId;

/// Maximum length that vendors accept (Anthropic 128, OpenAI 64: their API references, 2026-03).
const LONGEST: usize = 64;

/// The name of a called tool in the form that every vendor accepts: letters, digits, `_` and `-`. A model may
/// invent a name; sent back unchanged, every later request would be refused.
pub(in crate::model) fn called(tool: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if tool.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if tool.len() <= LONGEST && tool.chars().all(is_plain) {
        return Cow::Borrowed(tool);
    }
    Cow::Owned(tool.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect())
}

/// Maximum length of a call id for Anthropic and OpenAI Responses, in characters.
pub(in crate::model) const MAX_CALL_ID_CHARS: usize = 64;
/// Maximum length of a call id for OpenAI Chat Completions: "Expected a string with maximum length 40".
pub(in crate::model) const MAX_CHAT_CALL_ID_CHARS: usize = 40;

/// The id for a call and its result: the provider's, or the daemon's if that is missing or does not `fit`. The
/// daemon's id has 41 characters, is unique and never changes, so the same transcript gives the same bytes.
pub(in crate::model) fn wire_call_id<'a>(
    provider_id: &'a str,
    call_id: &CallId,
    fits: impl Fn(&str) -> bool,
) -> Cow<'a, str> {
    if !provider_id.is_empty() && fits(provider_id) {
        return Cow::Borrowed(provider_id);
    }
    Cow::Owned(call_id.to_string())
}

#[cfg(test)]
mod tests {
    use crate::model::catalog::called::*;
    use crate::types::ids::{Mint, Seed};

    #[test]
    fn overlong_call_id_becomes_short_and_unique() {
        let mut mint = Mint::new(1, Seed(1));
        let (first, second) = (mint.call(), mint.call());
        let fits = |id: &str| id.chars().count() <= MAX_CALL_ID_CHARS;
        let long = "call_".repeat(20);
        assert_eq!(wire_call_id("call_1", &first, fits), "call_1");
        assert_eq!(wire_call_id(&long, &first, fits), wire_call_id(&long, &first, fits));
        assert_ne!(wire_call_id(&long, &first, fits), wire_call_id(&long, &second, fits));
        for given in [long.as_str(), ""] {
            let id = wire_call_id(given, &first, fits);
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
            assert_eq!(called(name), expected, "{name}");
        }
    }
}
