//! The signature of a message, as the Standard Webhooks specification 1.0 has it
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// The form of a secret that is the base64 text of its bytes.
const ENCODED_PREFIX: &str = "whsec_";

/// The secret of a receiver. It has no `Debug`.
pub(super) struct Secret(hmac::Key);

impl Secret {
    /// A secret from its text: `whsec_` and base64, or any other text, whose bytes are the secret.
    ///
    /// # Errors
    /// The text cannot be one. The error does not quote it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let bytes = match text.strip_prefix(ENCODED_PREFIX) {
            Some(encoded) => STANDARD
                .decode(encoded)
                .map_err(|_| format!("the text after {ENCODED_PREFIX} is not base64"))?,
            None => text.as_bytes().to_owned(),
        };
        match bytes.is_empty() {
            true => Err("the secret is empty".into()),
            false => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes))),
        }
    }

    /// The value of `webhook-signature`. `seconds` is the time of the try since the Unix epoch.
    pub(super) fn sign(&self, message_id: &str, seconds: i64, body: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{message_id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values with which the libraries of the specification test themselves.
    #[test]
    fn signature_equals_published_test_vector() {
        let (id, seconds, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        let secret =
            Secret::parse(" whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(secret.sign(id, seconds, body), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let raw = Secret::parse("plain text").unwrap_or_else(|why| panic!("{why}"));
        assert_ne!(raw.sign(id, seconds, body), secret.sign(id, seconds, body));
    }

    #[test]
    fn unusable_secret_is_refused_without_being_quoted() {
        for text in ["", " \n", "whsec_", "whsec_geheim!"] {
            let why = Secret::parse(text).err().expect("refused");
            assert!(!why.contains("geheim"), "{why}");
        }
    }
}
