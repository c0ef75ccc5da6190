//! The webhook of `[permissions.unattended] notify_url`. It posts pending requests as JSON.
//!
//! The address may contain a key, so logs and errors show only its host. The daemon reads only the status of
//! the answer.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url, redirect};
use tokio::sync::OnceCell;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of one attempt.
const REQUEST_TIMEOUT_LIMIT: Duration = Duration::from_secs(10);
/// Waits between attempts. The last attempt follows the last wait, so there is one attempt more than waits.
const RETRY_WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// The address to post to.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Webhook(Url);

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.public_address())
    }
}

/// The client for all posts, created on first use. Cloning is cheap.
#[derive(Clone, Default)]
pub(super) struct Poster(Arc<OnceCell<Client>>);

impl Webhook {
    /// Parses an address.
    ///
    /// # Errors
    /// The reason, without the address itself.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = "expected an address like https://example.org/hook";
        let url = Url::parse(text.trim()).map_err(|error| format!("{error}: {wrong}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong.to_owned());
        }
        Ok(Self(url))
    }

    /// The part of the address that is not secret.
    pub(super) fn public_address(&self) -> String {
        format!("{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())
    }
}

/// The reason why an attempt failed, and whether a retry may succeed.
struct PostError {
    why: String,
    is_passing: bool,
}

impl Poster {
    /// Posts the text and retries temporary failures. The error describes the last attempt. This takes
    /// at most 36 s. Cancel-safe: dropping the future does not revoke a post that was sent.
    pub(super) async fn post_text(&self, hook: &Webhook, text: &str) -> Result<(), String> {
        let client = self.0.get_or_try_init(build).await?;
        let mut waits = RETRY_WAITS.iter();
        loop {
            match post(client, hook, text).await {
                Ok(()) => return Ok(()),
                Err(failed) => match waits.next().filter(|_| failed.is_passing) {
                    Some(wait) => tokio::time::sleep(*wait).await,
                    None => return Err(failed.why),
                },
            }
        }
    }
}

async fn build() -> Result<Client, String> {
    // Build the client on a blocking thread, because reading the system's certificates takes long.
    let build = || {
        // If another provider is already installed, the client uses that provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder()
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT_LIMIT)
            // The text contains model output, so it may be sent only to the configured address.
            .redirect(redirect::Policy::none())
            .referer(false)
            .build()
    };
    let built = tokio::task::spawn_blocking(build).await.map_err(|error| error.to_string())?;
    built.map_err(|error| format!("the HTTP client could not be set up: {}", error.without_url()))
}

async fn post(client: &Client, hook: &Webhook, text: &str) -> Result<(), PostError> {
    let request = client.post(hook.0.clone()).header(CONTENT_TYPE, "application/json").body(text.to_owned());
    let sent = request.send().await;
    let answer = sent.map_err(|error| PostError { why: innermost_cause(error), is_passing: true })?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let is_passing = status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    Err(PostError { why: format!("it answered {}", status.as_u16()), is_passing })
}

/// The innermost cause of an error, without the address.
fn innermost_cause(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time".into();
    }
    let error = error.without_url();
    let mut innermost_cause: &dyn std::error::Error = &error;
    while let Some(source) = innermost_cause.source() {
        innermost_cause = source;
    }
    innermost_cause.to_string()
}

#[cfg(test)]
mod tests {
    use crate::webhook::*;

    #[test]
    fn webhook_url_is_parsed_and_shown_without_secret() {
        let hook =
            Webhook::parse(" https://u:geheim@hooks.example.org/services/T0/geheim?k=geheim ").expect("one");
        for shown in [hook.public_address(), format!("{hook:?}")] {
            assert_eq!(shown, "https://hooks.example.org");
        }
        for wrong in ["geheim", "ftp://geheim/x", "https://", "file:///geheim"] {
            let why = Webhook::parse(wrong).expect_err(wrong);
            assert!(why.contains("expected an address") && !why.contains("geheim"), "{wrong}: {why}");
        }
    }
}
