//! Removes secrets from faults, because an error of a provider may repeat a key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Url;

use types::model::ModelFault;

/// Whether a header with this name probably contains a secret.
pub(crate) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "key", "token", "secret", "cookie", "password"].iter().any(|word| name.contains(word))
}

/// Texts that must not leave this layer.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Minimum length of a secret: replacing shorter texts would only garble messages.
    const MIN_SECRET_BYTES: usize = 4;

    /// Adds a secret.
    pub(crate) fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= Self::MIN_SECRET_BYTES {
            self.0.push(secret.to_owned());
        }
    }

    /// Adds the password of a URL in the forms that a server may return: as written there, decoded, and as the
    /// header that is built from it (RFC 7617).
    pub(crate) fn add_password(&mut self, url: &Url) {
        let Some(password) = url.password() else { return };
        let (user, decoded) = (decode(url.username()), decode(password));
        self.add(&BASE64.encode(format!("{user}:{decoded}")));
        self.add(&decoded);
        self.add(password);
    }

    /// The text with every secret in it replaced.
    pub(crate) fn scrub(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            let text =
                if text.contains(secret.as_str()) { text.replace(secret.as_str(), "***") } else { text };
            scrub_cut(text, secret)
        })
    }

    /// The fault with every secret in its message replaced.
    pub(crate) fn scrub_fault(&self, mut fault: ModelFault) -> ModelFault {
        fault.message = self.scrub(fault.message);
        fault.word = fault.word.map(|word| self.scrub(word));
        fault.causes = fault.causes.into_iter().map(|cause| self.scrub(cause)).collect();
        fault
    }
}

/// A part of a URL with percent escapes decoded (RFC 3986, section 2.1).
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex.filter(|_| *byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Removes the beginning of a secret where a text was cut inside of it (see [`clean_text`]).
fn scrub_cut(text: String, secret: &str) -> String {
    let parts: Vec<&str> = text.split('…').collect();
    let Some((last, cut)) = parts.split_last().filter(|(_, cut)| !cut.is_empty()) else { return text };
    let mut out = String::with_capacity(text.len());
    for part in cut {
        let text_before = (Secrets::MIN_SECRET_BYTES..secret.len())
            .rev()
            .find_map(|len| part.strip_suffix(secret.get(..len)?));
        match text_before {
            Some(before) => out.extend([before, "***…"]),
            None => out.extend([*part, "…"]),
        }
    }
    out.push_str(last);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::fault::from_status;
    use types::model::FaultKind;

    #[test]
    fn truncated_secret_in_fault_is_redacted() {
        let mut secrets = Secrets::default();
        secrets.add("sk-ant-canary-0123456789");
        for before in [440, 470, 480, 495, 499, 600] {
            let body = format!("{}sk-ant-canary-0123456789 and more{}", "x".repeat(before), "y".repeat(90));
            let fault = secrets.scrub_fault(from_status("x", 400, None, body.as_bytes()));
            assert!(!fault.message.contains("sk-a"), "{before}: {}", fault.message);
        }
        secrets.add_password(&"http://u:p4ss%2Fw0rd@h/".parse().unwrap());
        let text = secrets.scrub("p4ss%2Fw0rd, p4ss/w0rd, Basic dTpwNHNzL3cwcmQ=".into());
        assert_eq!(text, "***, ***, Basic ***");
        let text = secrets.scrub("cut… twice sk-ant-can… and sk-ant-canary-0123456789".into());
        assert_eq!(text, "cut… twice ***… and ***");
    }

    #[test]
    fn secrets_in_fault_are_redacted() {
        let mut secrets = Secrets::default();
        secrets.add("sk-very-secret\n");
        secrets.add("a");
        let fault = ModelFault::new(FaultKind::BadRequest, "key sk-very-secret is bad");
        assert_eq!(secrets.scrub_fault(fault).message, "key *** is bad");
    }
}
