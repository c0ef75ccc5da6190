//! Collects and sends spans and metrics. The queue is bounded; events that do not fit are dropped and counted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::json;
use super::spans::{Span, SpanEvent, Spans};
use types::event::Envelope;
use types::time::Clock;

/// Capacity of the queue, in events.
const QUEUE_CAPACITY: usize = 4_096;
/// Spans per request. A full batch is sent at once.
const BATCH_SPANS: usize = 512;
/// Interval between requests.
const EXPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Time limit of a request.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Receiver and identity of the exporter.
#[derive(Clone, Default)]
pub struct Settings {
    /// The receiver's address, without `/v1/traces`.
    pub endpoint: String,
    /// Headers of every request; values may be secrets.
    pub headers: BTreeMap<String, String>,
    /// The `service.name` of this daemon.
    pub service_name: String,
}

impl fmt::Debug for Settings {
    /// Hides the values of headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("Settings")
            .field("endpoint", &self.endpoint)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// Receives committed events. Cheap to clone; never blocks.
#[derive(Clone, Debug)]
pub struct EventReceiver {
    events: mpsc::Sender<SpanEvent>,
    left_out: Arc<AtomicU64>,
}

impl EventReceiver {
    /// Queues a committed event if it is relevant and the queue has space.
    pub fn queue_event(&self, envelope: &Envelope) {
        if let Some(event) = SpanEvent::from_envelope(envelope)
            && self.events.try_send(event).is_err()
        {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The task that sends. Dropping it stops it immediately.
#[derive(Debug)]
pub struct Exporter {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Exporter {
    /// Checks whether these settings are usable.
    ///
    /// # Errors
    /// The description of the mistake, without values that may be secret.
    pub fn check(settings: &Settings) -> Result<(), String> {
        addresses(&settings.endpoint)?;
        headers(&settings.headers).map(|_| ())
    }

    /// Starts sending. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// As [`Exporter::check`].
    pub fn start(settings: &Settings, clock: Arc<dyn Clock>) -> Result<(EventReceiver, Exporter), String> {
        let (traces, metrics) = addresses(&settings.endpoint)?;
        let (events, inbox) = mpsc::channel(QUEUE_CAPACITY);
        let left_out = Arc::new(AtomicU64::new(0));
        let work = ExportTask {
            traces,
            metrics,
            headers: headers(&settings.headers)?,
            service: settings.service_name.clone(),
            client: None,
            is_failing: false,
            left_out: Arc::clone(&left_out),
            clock,
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(work.run(inbox, stop.clone()));
        Ok((EventReceiver { events, left_out }, Exporter { task, stop }))
    }

    /// Sends the queued data, waiting at most `within`, and stops.
    pub async fn finish_within(mut self, within: Duration) {
        self.stop.cancel();
        let _ = tokio::time::timeout(within, &mut self.task).await;
    }

    /// Waits until all data is sent, once no watcher is left.
    pub async fn wait_finished(mut self) {
        let _ = (&mut self.task).await;
    }
}

fn addresses(endpoint: &str) -> Result<(Url, Url), String> {
    let base = endpoint.trim_end_matches('/');
    let parse = |path: &str| -> Result<Url, String> {
        let url = Url::parse(&format!("{base}{path}")).map_err(|error| error.to_string())?;
        let is_usable = matches!(url.scheme(), "http" | "https") && url.has_host();
        is_usable.then_some(url).ok_or_else(|| "write it like http://localhost:4318".to_owned())
    };
    let endpoint_error = |why| format!("endpoint is not usable ({why})");
    Ok((parse("/v1/traces").map_err(endpoint_error)?, parse("/v1/metrics").map_err(endpoint_error)?))
}

fn headers(configured: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in configured {
        let bad = || format!("header {name:?} cannot be sent: is its value one line of visible characters?");
        let key: HeaderName = name.parse().map_err(|_| bad())?;
        let mut value: HeaderValue = value.parse().map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

struct ExportTask {
    traces: Url,
    metrics: Url,
    headers: HeaderMap,
    service: String,
    client: Option<Client>,
    /// Whether the last request failed, so that a failure is logged once.
    is_failing: bool,
    left_out: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
}

impl ExportTask {
    async fn run(mut self, mut inbox: mpsc::Receiver<SpanEvent>, stop: CancellationToken) {
        let began = self.clock.now();
        let mut spans = Spans::new();
        let mut batch: Vec<Span> = Vec::new();
        let mut tick = tokio::time::interval(EXPORT_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tick.tick().await;
        loop {
            let is_over = tokio::select! {
                event = inbox.recv() => match event {
                    Some(event) => {
                        batch.extend(spans.handle_event(event));
                        if batch.len() < BATCH_SPANS {
                            continue;
                        }
                        false
                    }
                    None => true,
                },
                _ = tick.tick() => false,
                () = stop.cancelled() => {
                    while let Ok(event) = inbox.try_recv() {
                        batch.extend(spans.handle_event(event));
                    }
                    true
                }
            };
            if !batch.is_empty() {
                let body = json::traces(&self.service, &std::mem::take(&mut batch));
                self.send(self.traces.clone(), &body).await;
                if !spans.tokens.is_empty() || !spans.durations.is_empty() {
                    let now = self.clock.now();
                    let body = json::metrics(&self.service, &[&spans.tokens, &spans.durations], began, now);
                    self.send(self.metrics.clone(), &body).await;
                }
            }
            let left_out = self.left_out.swap(0, Ordering::Relaxed);
            if left_out > 0 {
                tracing::warn!(left_out, "the telemetry receiver is too slow; dropped events");
            }
            if is_over {
                return;
            }
        }
    }

    /// Sends a body once. Data that the receiver refuses is dropped, so that nothing accumulates.
    async fn send(&mut self, url: Url, body: &Value) {
        let sent = match self.client().await {
            Ok(client) => {
                let request =
                    client.post(url).headers(self.headers.clone()).header(CONTENT_TYPE, "application/json");
                match request.body(body.to_string()).send().await {
                    Ok(response) if response.status().is_success() => Ok(()),
                    Ok(response) => Err(format!("it answered {}", response.status().as_u16())),
                    // Without the address, which may contain a password.
                    Err(error) => Err(error.without_url().to_string()),
                }
            }
            Err(why) => Err(why),
        };
        match (&sent, self.is_failing) {
            (Ok(()), true) => tracing::info!("telemetry is sent again"),
            (Err(why), false) => {
                tracing::warn!(why, "could not send telemetry; it is dropped, sessions are not affected");
            }
            (Ok(()), false) | (Err(_), true) => {}
        }
        self.is_failing = sent.is_err();
    }

    async fn client(&mut self) -> Result<Client, String> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        // Loading the system's certificates is slow.
        let build = || {
            // Other code may have installed a provider already, which is sufficient.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let redirects = reqwest::redirect::Policy::none();
            Client::builder().timeout(EXPORT_TIMEOUT).redirect(redirects).build()
        };
        let built = tokio::task::spawn_blocking(build).await.map_err(|error| error.to_string())?;
        let client = built.map_err(|error| error.without_url().to_string())?;
        Ok(self.client.insert(client).clone())
    }
}
