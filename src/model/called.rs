//! Names of tools as they go back to a provider.

use std::borrow::Cow;

/// What vendors take at most (Anthropic 128, OpenAI 64: their API references, 2026-03).
const LONGEST: usize = 64;

/// The name of a tool that a model called, as every vendor takes it back: letters, digits, `_` and `-`. A
/// model may make a name up; sent back as it was, it would be refused with every later request.
pub(super) fn called(tool: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if tool.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if tool.len() <= LONGEST && tool.chars().all(is_plain) {
        return Cow::Borrowed(tool);
    }
    Cow::Owned(tool.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_made_up_goes_back_as_vendors_take_it() {
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
