//! Posts JSON to an address of the user: messages of `[jobs.notify.NAME] url`, and the pending requests of
//! `[permissions.unattended] notify_url`.
//!
//! The address may contain a key, so logs and errors show only its host. The daemon reads only the status of
//! the answer.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url, redirect};
use tokio::sync::OnceCell;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of one post.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The address to post to.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook(Url);

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.public_address())
    }
}

/// The client for all posts, created on first use. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Poster(Arc<OnceCell<Client>>);

impl Webhook {
    /// Parses an address.
    ///
    /// # Errors
    /// The reason, without the address itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = "expected an address like https://example.org/hook";
        let url = Url::parse(text.trim()).map_err(|error| format!("{error}: {wrong}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong.to_owned());
        }
        Ok(Self(url))
    }

    /// The part of the address that is not secret.
    #[must_use]
    pub fn public_address(&self) -> String {
        format!("{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())
    }
}

/// Why a post was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostError {
    /// The reason, without the address.
    pub message: String,
    /// The status of the answer; `None` if there was none.
    pub status: Option<u16>,
}

impl PostError {
    /// Whether the same post may be accepted soon.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self.status.map(StatusCode::from_u16) {
            Some(Ok(status)) => {
                status.is_server_error()
                    || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
            }
            _ => true,
        }
    }
}

impl Poster {
    /// Posts the JSON once, for at most 10 s, and follows no redirect. Cancel-safe: dropping the future does not
    /// revoke a post that was sent.
    ///
    /// # Errors
    /// The address gave no answer, or one without success.
    pub async fn post(
        &self,
        hook: &Webhook,
        headers: &[(&str, String)],
        json: String,
    ) -> Result<(), PostError> {
        let client = self.0.get_or_try_init(build).await?;
        let mut request = client.post(hook.0.clone()).header(CONTENT_TYPE, "application/json").body(json);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let no_answer = |error| PostError { message: innermost_cause(error), status: None };
        let status = request.send().await.map_err(no_answer)?.status();
        match status.is_success() {
            true => Ok(()),
            false => {
                let status = status.as_u16();
                Err(PostError { message: format!("it answered {status}"), status: Some(status) })
            }
        }
    }
}

async fn build() -> Result<Client, PostError> {
    // Build the client on a blocking thread, because reading the system's certificates takes long.
    let build = || {
        // If another provider is already installed, the client uses that provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder()
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            // The text contains model output, so it may be sent only to the configured address.
            .redirect(redirect::Policy::none())
            .referer(false)
            .build()
    };
    let built = tokio::task::spawn_blocking(build).await;
    let could_not = |why: String| PostError {
        message: format!("the HTTP client could not be set up: {why}"),
        status: None,
    };
    built
        .map_err(|error| could_not(error.to_string()))?
        .map_err(|error| could_not(error.without_url().to_string()))
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
    use crate::notify::http::*;

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
