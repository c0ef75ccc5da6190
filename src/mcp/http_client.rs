//! The HTTP client of servers, with a limit on the rate of their messages.

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

/// `reqwest` with the limit.
#[derive(Clone)]
pub(super) struct LimitedClient {
    pub client: reqwest::Client,
    pub limit: Arc<StreamLimit>,
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
        let sent = self.client.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        );
        Ok(match sent.await? {
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
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        Ok(self.limit.limit_stream(opened.await?))
    }
}
