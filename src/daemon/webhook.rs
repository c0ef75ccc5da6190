//! The webhook of `[permissions.unattended] notify_url`: what waits, posted as JSON.
//!
//! The address is the user's and may hold a key: no log and no error shows more of it than its host. Nothing
//! of the answer is read but its status.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url, redirect};
use tokio::sync::OnceCell;

const CONNECT: Duration = Duration::from_secs(5);
/// One attempt gets this long.
const WITHIN: Duration = Duration::from_secs(10);
/// Waits between attempts; after the last there is no more.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Where to post.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Webhook(Url);

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

/// The client of all posts, built at the first. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Poster(Arc<OnceCell<Client>>);

impl Webhook {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it, without the address itself.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = "expected an address like https://example.org/hook";
        let url = Url::parse(text.trim()).map_err(|error| format!("{error}: {wrong}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong.to_owned());
        }
        Ok(Self(url))
    }

    /// Its beginning, which is no secret.
    pub(super) fn shown(&self) -> String {
        format!("{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())
    }
}

/// Why an attempt failed, and whether another may do better.
struct PostError {
    why: String,
    is_passing: bool,
}

impl Poster {
    /// Posts the text; tries again a little later what may pass by then. The error says what the last attempt came
    /// to. Takes 36 s at most. Cancel-safe: what was sent was sent.
    pub(super) async fn tell(&self, hook: &Webhook, text: &str) -> Result<(), String> {
        let client = self.0.get_or_try_init(build).await?;
        let mut waits = WAITS.iter();
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
    // Reading the system's certificates takes long.
    let build = || {
        // Somebody else may have chosen one already; theirs will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder()
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .timeout(WITHIN)
            // What a model wrote goes where the user said, and nowhere else.
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
    let answer = sent.map_err(|error| PostError { why: deepest(error), is_passing: true })?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let is_passing = status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    Err(PostError { why: format!("it answered {}", status.as_u16()), is_passing })
}

/// What is behind an error: the part that says something, without the address.
fn deepest(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time".into();
    }
    let error = error.without_url();
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use crate::daemon::webhook::*;

    #[test]
    fn webhook_url_is_parsed_and_shown_without_secret() {
        let hook =
            Webhook::parse(" https://u:geheim@hooks.example.org/services/T0/geheim?k=geheim ").expect("one");
        for shown in [hook.shown(), format!("{hook:?}")] {
            assert_eq!(shown, "https://hooks.example.org");
        }
        for wrong in ["geheim", "ftp://geheim/x", "https://", "file:///geheim"] {
            let why = Webhook::parse(wrong).expect_err(wrong);
            assert!(why.contains("expected an address") && !why.contains("geheim"), "{wrong}: {why}");
        }
    }
}
