//! Streamable HTTP: the client with its headers and limits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::http_client::{LimitedClient, Redirects, StreamLimit};
use crate::stdio::MAX_MESSAGE_BYTES;

/// Time limit of a TCP and TLS connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of an error page.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// The transport to an address. The URL and the headers may hold secrets: no error repeats them.
pub(super) async fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    limit: Arc<StreamLimit>,
) -> Result<StreamableHttpClientTransport<LimitedClient>, String> {
    let redirects: Arc<Redirects> = Arc::default();
    let seen = Arc::clone(&redirects);
    let client = tokio::task::spawn_blocking(move || {
        // Another part of the program may have installed a provider already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would send the headers to another address, and change a request with a body.
            .redirect(reqwest::redirect::Policy::custom(move |attempt| {
                seen.note(attempt.url());
                attempt.stop()
            }))
            .referer(false)
            .build()
    });
    let client = client.await.map_err(|error| error.to_string()).and_then(|built| {
        built.map_err(|error| {
            format!("could not set up the HTTP client: {}; are CA certificates installed?", deepest(&error))
        })
    })?;
    if reqwest::Url::parse(url).is_err() {
        return Err("`url` is not a valid address".into());
    }
    let mut parsed = HashMap::new();
    for (name, value) in headers {
        let key = HeaderName::try_from(name.as_str())
            .map_err(|_| format!("the header name {name:?} is not valid"))?;
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| format!("the value of the header {name} is not one line of text"))?;
        value.set_sensitive(true);
        parsed.insert(key, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url.to_owned())
        .custom_headers(parsed)
        .max_sse_event_size(MAX_MESSAGE_BYTES)
        .max_json_response_size(MAX_MESSAGE_BYTES)
        .max_error_response_size(MAX_ERROR_BYTES);
    Ok(StreamableHttpClientTransport::with_client(LimitedClient { client, limit, redirects }, config))
}

/// The deepest cause of an error, which names no address.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// More headers from the output of `headers_command`.
pub(super) fn parse_headers(output: &[u8]) -> Result<BTreeMap<String, String>, String> {
    serde_json::from_slice(output)
        .map_err(|_| "`headers_command` must print a JSON object of header names and texts".into())
}
