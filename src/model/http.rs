//! HTTP requests to a provider: the pooled clients, one exchange, and its faults.
//!
//! Clients are built at their first use: reading the system's certificates takes longer than the rest of a cold
//! start.

use std::error::Error as _;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use tokio::sync::{OnceCell, mpsc};

use crate::api::AnswerReader;
use crate::replay::record::OpenRecording;
use crate::settings::Api;
use crate::stream::fault;
use crate::stream::fault::invalid_answer;
use crate::stream::timeouts::{StreamTimeouts, Watchdog, send_batch};
use base::crash;
use types::model::{Delta, FaultKind, LOOKUP_FAILED, ModelFault, ModelReply, UNKNOWN_HOST};
use types::usage::Usage;

/// Maximum bytes that are read of an error's body.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Maximum bytes of an answer in one piece.
const MAX_BODY_BYTES: usize = 32 << 20;
/// Maximum bytes of one streamed answer: about ten times the longest answers of models.
const MAX_STREAM_BYTES: usize = 128 << 20;
/// Time limit for the body of an error: the status is known already.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that a connection may take to end after the answer, so that it can be reused.
const READ_OUT_TIMEOUT: Duration = Duration::from_millis(50);
/// Maximum bytes of one batch of a stream.
const BATCH_BYTES: usize = 64 << 10;
/// If the next chunk arrives within this time, the batch waits for more; a slower stream would only be delayed.
const NEXT_CHUNK_TIMEOUT: Duration = Duration::from_micros(200);
/// Longest wait that a provider may request, in milliseconds.
const MAX_RETRY_AFTER_MS: f64 = 86_400_000.0;

/// The pooled clients.
#[derive(Debug)]
pub(crate) struct Clients {
    user_agent: String,
    connect_timeout: Duration,
    /// For addresses of this machine: without proxy and certificates.
    direct: OnceCell<Client>,
    /// For all other addresses.
    outside: OnceCell<Client>,
    /// The same two clients, but every request opens a new connection.
    fresh: [OnceCell<Client>; 2],
}

impl Clients {
    pub(crate) fn new(user_agent: String, connect_timeout: Duration) -> Self {
        let (direct, outside, fresh) = Default::default();
        Self { user_agent, connect_timeout, direct, outside, fresh }
    }

    /// The client for an address, built at its first use. A fresh client opens a new connection, for use
    /// after a reused connection broke.
    pub(crate) async fn get(&self, is_direct: bool, is_fresh: bool) -> Result<Client, ModelFault> {
        let cell = match (is_fresh, is_direct) {
            (false, true) => &self.direct,
            (false, false) => &self.outside,
            (true, _) => &self.fresh[usize::from(is_direct)],
        };
        cell.get_or_try_init(|| self.build(is_direct, is_fresh)).await.cloned()
    }

    async fn build(&self, is_direct: bool, is_fresh: bool) -> Result<Client, ModelFault> {
        let (user_agent, connect_timeout) = (self.user_agent.clone(), self.connect_timeout);
        let build = move || {
            // This fails if another part of the program has installed a TLS provider already, which works as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let builder = Client::builder()
                .user_agent(user_agent)
                .connect_timeout(connect_timeout)
                // A redirect would send the key and the conversation to another host.
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
                .tcp_keepalive(Duration::from_secs(30));
            let builder = if is_fresh { builder.pool_max_idle_per_host(0) } else { builder };
            if is_direct { builder.no_proxy().tls_certs_only([]) } else { builder }.build()
        };
        let fault = |why: String| {
            let text = format!(
                "could not set up the HTTP client ({why}): are CA certificates installed, is user_agent one line?"
            );
            ModelFault::new(FaultKind::Unconfigured, text)
        };
        match tokio::task::spawn_blocking(build).await {
            Ok(built) => built.map_err(|error| fault(innermost_cause(&error))),
            Err(error) => Err(fault(error.to_string())),
        }
    }
}

/// One request, ready to be sent.
pub(crate) struct Exchange<'a> {
    pub client: Client,
    pub provider: &'a str,
    pub api: Api,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Time limits of the answer.
    pub timeouts: StreamTimeouts,
    pub connect_timeout: Duration,
    /// Whether the request bypasses proxies.
    pub is_direct: bool,
}

/// Environment variables that name a proxy.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];

impl Exchange<'_> {
    /// Sends the request and delivers the answer in batches. Cancel-safe: dropping it closes the connection.
    /// All bytes read go onto the `tape`, even if a fault follows.
    pub(crate) async fn run(
        self,
        reader: AnswerReader,
        out: &mpsc::Sender<Vec<Delta>>,
        tape: &mut Option<OpenRecording>,
    ) -> Result<ModelReply, ModelFault> {
        let mut reported = Usage::default();
        self.read(reader, out, tape, &mut reported).await.map_err(|fault| {
            let usage = (reported != Usage::default()).then(|| Box::new(reported));
            ModelFault { usage, ..fault }
        })
    }

    /// Sends the request, and returns the response if it has an answer.
    async fn send(
        &mut self,
        dog: &mut Watchdog<'_>,
        tape: &mut Option<OpenRecording>,
    ) -> Result<Response, ModelFault> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(std::mem::take(&mut self.headers))
            .header(CONTENT_TYPE, "application/json")
            .body(std::mem::take(&mut self.body))
            .send();
        let mut response = dog.wait(request).await?.map_err(|error| self.send_fault(&error))?;
        crash::point("C4");
        let status = response.status().as_u16();
        if let Some(tape) = tape {
            tape.begin(self.api, status);
        }
        if !response.status().is_success() {
            let retry_after_ms = retry_after_ms(response.headers());
            let body = error_body(&mut response).await;
            if let Some(tape) = tape {
                tape.write(&body);
            }
            return Err(fault::from_status(self.provider, status, retry_after_ms, &body));
        }
        if matches!(status, 204 | 205) {
            // Bytes that follow are no body of this answer (RFC 9110, 15.3.5).
            let text = "which is not an answer of a model; check the address";
            return Err(invalid_answer(format_args!("{} sent status {status}, {text}", self.provider)));
        }
        Ok(response)
    }

    /// Like [`Exchange::run`]; usage that the provider reported before a fault is left in `reported`.
    async fn read(
        mut self,
        mut reader: AnswerReader,
        out: &mpsc::Sender<Vec<Delta>>,
        tape: &mut Option<OpenRecording>,
        reported: &mut Usage,
    ) -> Result<ModelReply, ModelFault> {
        let mut dog = Watchdog::new(self.timeouts.clone(), self.provider, out);
        let mut response = self.send(&mut dog, tape).await?;
        let mut batch = Vec::new();
        if is_json(response.headers()) {
            let body = json_body(&mut response, &mut dog, tape).await?;
            let outcome = reader.whole(&body, &mut batch);
            send_batch(batch, out).await?;
            return outcome;
        }
        let (mut bytes, mut total) = (0, 0);
        let mut ahead = None;
        let mut is_quick = false;
        while !reader.is_done() {
            let next = match ahead.take() {
                Some(next) => Ok(next),
                None => {
                    let wait_started_at = Instant::now();
                    let next = dog.wait(response.chunk()).await;
                    is_quick = wait_started_at.elapsed() < NEXT_CHUNK_TIMEOUT;
                    next
                }
            };
            let chunk = match next {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                // Some servers never close the stream, or break it, after the complete answer.
                Ok(Err(_)) | Err(ModelFault { kind: FaultKind::Idle, .. }) if reader.may_end() => break,
                Ok(Err(error)) => return Err(connection_fault(&error)),
                Err(fault) => return Err(fault),
            };
            dog.record_bytes();
            if let Some(tape) = tape {
                tape.write(&chunk);
            }
            bytes += chunk.len();
            total += chunk.len();
            if total > MAX_STREAM_BYTES {
                return Err(invalid_answer(format_args!(
                    "an answer of more than {} MiB",
                    MAX_STREAM_BYTES >> 20
                )));
            }
            let outcome = reader.feed(&chunk, &mut batch);
            *reported = reader.usage();
            if is_quick && outcome.is_ok() && !reader.is_done() && bytes < BATCH_BYTES {
                ahead = buffered_chunk(&mut response).await;
            }
            if reader.is_done() && outcome.is_ok() && bytes < BATCH_BYTES {
                // The last deltas are part of the reply, so that one commit writes both.
                break;
            }
            // Deliver the batch before waiting for more bytes.
            if !matches!(ahead, Some(Ok(Some(_)))) {
                if !batch.is_empty() {
                    send_batch(std::mem::take(&mut batch), out).await?;
                    dog.record_content();
                }
                bytes = 0;
            }
            outcome?;
        }
        let is_done = reader.is_done();
        let mut outcome = reader.end(&mut batch);
        let is_over = !is_done || matches!(buffered_chunk(&mut response).await, Some(Ok(None)));
        match &mut outcome {
            Ok(reply) if is_over => reply.last = batch,
            // The receiver must not wait for bytes after the end of the answer.
            _ => send_batch(batch, out).await?,
        }
        if !is_over {
            drain_body(&mut response).await;
        }
        outcome
    }

    pub(crate) fn send_fault(&self, error: &reqwest::Error) -> ModelFault {
        if error.is_builder() {
            let text =
                format!("the request to {} cannot be sent ({})", self.provider, innermost_cause(error));
            return ModelFault::new(FaultKind::Unconfigured, text);
        }
        if !error.is_connect() && !error.is_timeout() {
            return connection_fault(error);
        }
        let why = match io_kind(error) {
            Some(io::ErrorKind::ConnectionRefused) => "connection refused".into(),
            _ if error.is_timeout() => {
                format!("no connection within {} s", self.connect_timeout.as_secs_f32())
            }
            _ => innermost_cause(error),
        };
        let check = self.connection_advice(&why);
        let text = format!("could not reach {} ({why}): {check}", public_address(&self.url));
        // The resolver's words for names that it could not look up now; the C libraries have different ones.
        let is_temporary = ["Temporary failure", "Try again"].iter().any(|words| why.contains(words));
        let word = if is_temporary { LOOKUP_FAILED } else { UNKNOWN_HOST };
        let word = is_lookup(&why).then(|| word.to_owned());
        ModelFault { causes: error_causes(error), word, ..ModelFault::new(FaultKind::Unreachable, text) }
    }

    /// Advice for users if no connection was established.
    fn connection_advice(&self, why: &str) -> String {
        let setting = format!("base_url of [providers.{}]", self.provider);
        let tells = |words: &[&str]| words.iter().any(|word| why.contains(word));
        let advice = if tells(&["certificate", "CertificateRequired", "UnknownCA"]) {
            format!(
                "the server's certificate is not trusted here; SSL_CERT_FILE may name a file with the authority \
                 that signed it, for the daemon's environment. See {setting}"
            )
        } else if is_lookup(why) {
            format!("is the name right, and is there a network? See {setting}")
        } else {
            format!("is the server running? See {setting}")
        };
        // Do not show the value of the variable, because it may contain a password.
        match PROXIES.iter().find(|name| !self.is_direct && std::env::var_os(name).is_some()) {
            Some(name) => {
                format!("{advice}. A proxy is set in the daemon's environment ({name}): is it right?")
            }
            None => advice,
        }
    }
}

/// Whether a connection failed because the host's address is not known.
fn is_lookup(why: &str) -> bool {
    ["lookup", "dns", "resolve"].iter().any(|word| why.contains(word))
}

/// Reads a body with the answer in one piece.
async fn json_body(
    response: &mut Response,
    dog: &mut Watchdog<'_>,
    tape: &mut Option<OpenRecording>,
) -> Result<Vec<u8>, ModelFault> {
    let mut body = Vec::new();
    while let Some(chunk) = dog.wait(response.chunk()).await?.map_err(|error| connection_fault(&error))? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(invalid_answer(format_args!("a body of more than {} MiB", MAX_BODY_BYTES >> 20)));
        }
        dog.record_bytes();
        if let Some(tape) = tape {
            tape.write(&chunk);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The next chunk, if the connection has it already. Many servers send every event as its own chunk, and a
/// batch costs far more than an event.
async fn buffered_chunk(response: &mut Response) -> Option<reqwest::Result<Option<Bytes>>> {
    if let Some(next) = response.chunk().now_or_never() {
        return Some(next);
    }
    // Yield, so that the connection's own task can deliver its data.
    tokio::task::yield_now().await;
    response.chunk().now_or_never()
}

/// Reads the end of the body, which often follows directly after the answer: only then can the connection be
/// reused. The wait is short.
async fn drain_body(response: &mut Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = tokio::time::timeout(READ_OUT_TIMEOUT, rest).await;
}

/// Scheme, host and port of an address, which contain no secrets.
pub(crate) fn public_address(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn connection_fault(error: &reqwest::Error) -> ModelFault {
    let text = format!("the connection broke before the answer was complete ({})", innermost_cause(error));
    ModelFault { causes: error_causes(error), ..ModelFault::new(FaultKind::Interrupted, text) }
}

/// Causes from the outermost to the innermost. The error itself is left out: it contains the URL, which may
/// hold secrets.
fn error_causes(error: &reqwest::Error) -> Box<[String]> {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        causes.push(fault::clean_text(&inner.to_string()));
        cause = inner.source();
    }
    causes.dedup();
    causes.into()
}

/// The innermost cause, which is the most specific. The outer ones contain the URL.
fn innermost_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.source().is_none() { "no further cause".into() } else { fault::clean_text(&cause.to_string()) }
}

fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        cause = inner.source();
    }
    None
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("application/json"))
}

/// Seconds, possibly fractional, milliseconds, or a date (RFC 9110, 10.2.3). A date is compared with the
/// answer's own `Date`, so that the local clock does not matter.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    // Values that Rust parses as infinite or NaN are ignored.
    let number = |name: &str| text(name)?.parse::<f64>().ok().filter(|number| number.is_finite());
    let date = |name: &str| httpdate::parse_http_date(text(name)?).ok();
    let until = || {
        let (then, now) = (date(RETRY_AFTER.as_str())?, date(DATE.as_str())?);
        // A date in the past means no wait.
        Some(then.duration_since(now).unwrap_or_default().as_secs_f64())
    };
    let seconds = || number(RETRY_AFTER.as_str()).or_else(until);
    let ms = number("retry-after-ms").or_else(|| seconds().map(|seconds| seconds * 1000.0))?;
    (ms >= 0.0).then(|| ms.min(MAX_RETRY_AFTER_MS).ceil() as u64)
}

/// The part of the body that arrives in time and fits the limit.
pub(crate) async fn error_body(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
    };
    // On a timeout, use the part that arrived.
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, read).await;
    body
}

#[cfg(test)]
mod tests {
    use crate::http::*;

    #[test]
    fn retry_after_headers_are_read_in_all_forms() {
        let check = |name: &'static str, value: &str, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(retry_after_ms(&headers), expected, "{name}: {value}");
        };
        check("retry-after", "7", Some(7_000));
        check("retry-after", "0.25", Some(250));
        check("retry-after-ms", "1500", Some(1_500));
        check("retry-after", "-3", None);
        check("retry-after", "NaN", None);
        check("retry-after", "1e99", Some(86_400_000));
        check("retry-after", "99999999999999999999", Some(86_400_000));
        for odd in ["inf", "-inf", "Infinity", "1e999", "-0.001", "", "7 s", "0x7"] {
            check("retry-after", odd, None);
            check("retry-after-ms", odd, None);
        }
        check("retry-after", "-0", Some(0));
        check("x-other", "7", None);
    }

    #[test]
    fn retry_after_date_is_relative_to_date_header() {
        let check = |until: &str, date: Option<&str>, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, until.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            assert_eq!(retry_after_ms(&headers), expected, "{until} at {date:?}");
        };
        let now = "Fri, 31 Dec 1999 23:59:00 GMT";
        check("Fri, 31 Dec 1999 23:59:59 GMT", Some(now), Some(59_000));
        check("Friday, 31-Dec-99 23:59:30 GMT", Some(now), Some(30_000));
        check("Fri, 31 Dec 1999 23:58:00 GMT", Some(now), Some(0));
        check("Fri, 31 Dec 1999 23:59:59 GMT", None, None);
        check("tomorrow", Some(now), None);
    }

    #[test]
    fn shown_url_contains_no_password() {
        let url = Url::parse("http://me:hush@host:81/v1").unwrap();
        assert_eq!(public_address(&url), "http://host:81");
    }
}
