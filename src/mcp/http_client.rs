//! The HTTP client of servers, with a limit on the rate of their messages and their redirects.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::{Error as SseError, Sse};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::message_rate::MessageRate;
use base::sync::lock;

type EventStream = BoxStream<'static, Result<Sse, SseError>>;
type HttpError = StreamableHttpError<reqwest::Error>;

/// Counts the messages in all streams of a connection, and ends it above the limit.
pub(super) struct StreamLimit {
    rate: Mutex<MessageRate>,
    /// The reason why the connection was ended.
    breach: Arc<OnceLock<String>>,
    /// Cancelled above the limit.
    exceeded: CancellationToken,
}

impl StreamLimit {
    pub fn new(breach: Arc<OnceLock<String>>, exceeded: CancellationToken) -> Arc<Self> {
        Arc::new(Self { rate: Mutex::new(MessageRate::new(Instant::now())), breach, exceeded })
    }

    /// Counts an event; returns whether the stream continues.
    fn count_event(&self, event: &Result<Sse, SseError>) -> bool {
        let bytes = event.as_ref().ok().and_then(|event| event.data.as_ref()).map_or(0, String::len);
        match lock(&self.rate).count(1, bytes, Instant::now()) {
            Ok(()) => true,
            Err(why) => {
                let _ = self.breach.set(why);
                self.exceeded.cancel();
                false
            }
        }
    }

    fn limit_stream(self: &Arc<Self>, events: EventStream) -> EventStream {
        let limit = Arc::clone(self);
        events.take_while(move |event| ready(limit.count_event(event))).boxed()
    }
}

/// The redirects of a server. Web frameworks redirect `/mcp` to `/mcp/`; other redirects are not followed.
#[derive(Default)]
pub(super) struct Redirects {
    /// The target of the newest one.
    target: Mutex<Option<reqwest::Url>>,
    /// The address with a slash at its end, which replaces the configured one.
    address: OnceLock<Arc<str>>,
}

impl Redirects {
    pub fn note(&self, target: &reqwest::Url) {
        *lock(&self.target) = Some(target.clone());
    }

    /// The address of a request.
    fn current(&self, uri: Arc<str>) -> Arc<str> {
        self.address.get().cloned().unwrap_or(uri)
    }

    /// The address to which a request is sent again after it failed, or the reason why it is not.
    fn follow(&self, uri: &str) -> Option<Result<Arc<str>, String>> {
        let target = lock(&self.target).take()?;
        let from = reqwest::Url::parse(uri).ok()?;
        let is_same_origin = target.origin() == from.origin();
        let is_slash = target.path().strip_suffix('/') == Some(from.path());
        if is_same_origin && is_slash && self.address.get().is_none() {
            let mut address = from;
            address.set_path(target.path());
            return Some(Ok(Arc::clone(self.address.get_or_init(|| String::from(address).into()))));
        }
        // Without its query, which may hold a secret.
        let shown = format!("{}{}", target.origin().ascii_serialization(), target.path());
        Some(Err(format!(
            "it redirects to {shown}, which is not followed; write that address as `url` if it is right"
        )))
    }
}

/// `reqwest` with the limit.
#[derive(Clone)]
pub(super) struct LimitedClient {
    pub client: reqwest::Client,
    pub limit: Arc<StreamLimit>,
    pub redirects: Arc<Redirects>,
}

impl StreamableHttpClient for LimitedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let send = |uri: Arc<str>| {
            self.client.post_message_with_response_limits(
                uri,
                message.clone(),
                session_id.clone(),
                auth_header.clone(),
                custom_headers.clone(),
                limits,
            )
        };
        let uri = self.redirects.current(uri);
        let mut sent = send(Arc::clone(&uri)).await;
        // The server has only redirected the request, so that sending it again is safe.
        if sent.is_err() {
            match self.redirects.follow(&uri) {
                Some(Ok(uri)) => sent = send(uri).await,
                Some(Err(why)) => _ = self.limit.breach.set(why),
                None => {}
            }
        }
        Ok(match sent? {
            StreamableHttpPostResponse::Sse(events, session_id) => {
                StreamableHttpPostResponse::Sse(self.limit.limit_stream(events), session_id)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let uri = self.redirects.current(uri);
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            limits.max_sse_event_size,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<EventStream, HttpError> {
        let opened = self.client.get_stream_with_max_sse_event_size(
            self.redirects.current(uri),
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        Ok(self.limit.limit_stream(opened.await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slash_at_end_of_same_origin_is_followed_once() {
        let follow = |from: &str, to: &str| {
            let redirects = Redirects::default();
            redirects.note(&reqwest::Url::parse(to).expect(to));
            redirects.follow(from).expect("a redirect").map(|address| address.to_string())
        };
        let slash = follow("http://h:1/mcp?key=s", "http://h:1/mcp/");
        assert_eq!(slash, Ok("http://h:1/mcp/?key=s".to_owned()));
        for (to, shown) in [
            ("http://h:2/mcp/", "http://h:2/mcp/,"),
            ("https://h:1/mcp/", "https://h:1/mcp/,"),
            ("http://other:1/mcp/?token=s", "http://other:1/mcp/,"),
            ("http://h:1/login?next=/mcp", "http://h:1/login,"),
            ("http://h:1/mcp//", "http://h:1/mcp//,"),
            ("http://h:1/mcp", "http://h:1/mcp,"),
        ] {
            let why = follow("http://h:1/mcp", to).expect_err(to);
            assert!(why.contains(shown) && !why.contains("token"), "{why}");
        }
        let redirects = Redirects::default();
        for is_followed in [true, false] {
            redirects.note(&reqwest::Url::parse("http://h/mcp/").expect("a URL"));
            assert_eq!(redirects.follow("http://h/mcp").expect("a redirect").is_ok(), is_followed);
        }
        assert!(redirects.follow("http://h/mcp").is_none(), "no redirect");
        assert_eq!(&*redirects.current("http://h/mcp".into()), "http://h/mcp/");
    }
}
