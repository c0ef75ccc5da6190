//! Encrypted reasoning of OpenAI Responses, stored in the place of other providers' signatures. A prefix
//! distinguishes the two, so that neither is ever sent to the other.

use serde::{Deserialize, Serialize};

const MARK: &str = "openai_responses:";

/// A reasoning item in the form that the API expects back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::model) struct Sealed {
    /// The item's id.
    pub id: String,
    /// Opaque data of the provider.
    pub encrypted_content: String,
}

/// Encodes the item as a signature.
pub(in crate::model) fn seal(sealed: &Sealed) -> String {
    // Writing two strings as JSON cannot fail.
    format!("{MARK}{}", serde_json::to_string(sealed).unwrap_or_default())
}

/// Decodes a signature; `None` for another provider's.
pub(in crate::model) fn open(signature: &str) -> Option<Sealed> {
    serde_json::from_str(signature.strip_prefix(MARK)?).ok()
}

/// Whether the signature is an encoded reasoning item.
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
