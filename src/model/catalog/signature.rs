//! Reasoning that OpenAI Responses gave encrypted, kept where other providers keep their signature.
//! A mark in front tells the two apart, so that neither is ever sent to the other.

use serde::{Deserialize, Serialize};

const MARK: &str = "openai_responses:";

/// An item of reasoning as the API wants it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::model) struct Sealed {
    /// The item's id.
    pub id: String,
    /// Opaque.
    pub encrypted_content: String,
}

/// As a signature.
pub(in crate::model) fn seal(sealed: &Sealed) -> String {
    // Two strings: this cannot fail.
    format!("{MARK}{}", serde_json::to_string(sealed).unwrap_or_default())
}

/// Out of a signature; `None` for another provider's.
pub(in crate::model) fn open(signature: &str) -> Option<Sealed> {
    serde_json::from_str(signature.strip_prefix(MARK)?).ok()
}

/// Whether the signature is one of these.
pub(in crate::model) fn is_sealed(signature: &str) -> bool {
    signature.starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use crate::model::catalog::signature::*;

    #[test]
    fn only_encoded_reasoning_signatures_are_decoded() {
        let sealed = Sealed { id: "rs_1".into(), encrypted_content: "gAAA\"".into() };
        let text = seal(&sealed);
        assert!(is_sealed(&text));
        assert_eq!(open(&text), Some(sealed));
        assert_eq!(open("EqQBCgIYAhIM"), None);
        assert_eq!(open("openai_responses:{"), None);
    }
}
