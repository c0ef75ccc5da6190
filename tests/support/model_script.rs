//! The script of the test's model server: one step per answer, and gates that hold back an answer.
#![allow(dead_code, reason = "a tool box: not every test needs every tool")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

/// Timeout of every wait in this module.
const DEADLINE: Duration = Duration::from_secs(20);

/// One answer of the script.
#[derive(Clone, Default)]
pub struct Step {
    pub(super) thinking: Vec<String>,
    pub(super) text: Vec<String>,
    pub(super) calls: Vec<(String, Value)>,
    pub(super) stop: Option<String>,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) cache_read: u64,
    pub(super) break_off: Option<(String, String)>,
    pub(super) error: Option<(u16, String, String)>,
    pub(super) raw: Option<(u16, String, Vec<u8>)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) before: Option<Gate>,
    pub(super) holds: Vec<(usize, Gate)>,
    pub(super) cut_after: Option<usize>,
    pub(super) write_size: Option<usize>,
    pub(super) cut_call: Option<usize>,
    pub(super) keep_alive: Option<(usize, Vec<u8>)>,
}

impl Step {
    /// Answers with this text, one delta per word.
    pub fn text(text: &str) -> Self {
        Self::default().say(text)
    }

    /// Answers with exactly these deltas.
    pub fn pieces<S: Into<String>>(pieces: impl IntoIterator<Item = S>) -> Self {
        Self { text: pieces.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Calls tools; their ids are unique for this server.
    pub fn calls<S: Into<String>>(calls: impl IntoIterator<Item = (S, Value)>) -> Self {
        Self {
            calls: calls.into_iter().map(|(tool, input)| (tool.into(), input)).collect(),
            ..Self::default()
        }
    }

    /// Fails with an HTTP status and an error in the API's format.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        Self { error: Some((status, kind.into(), message.into())), ..Self::default() }
    }

    /// Answers with exactly this status, content type and body.
    pub fn raw(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { raw: Some((status, content_type.into(), body.into())), ..Self::default() }
    }

    /// Adds this text before the calls.
    pub fn say(mut self, text: &str) -> Self {
        self.text.extend(text.split_inclusive(' ').map(str::to_owned));
        self
    }

    /// Adds thinking before everything else.
    pub fn thinking(mut self, text: &str) -> Self {
        self.thinking.extend(text.split_inclusive(' ').map(str::to_owned));
        self
    }

    /// Ends with this stop reason, in the API's words.
    pub fn stop(mut self, reason: &str) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// Reported tokens (default 10 in, 5 out).
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some((input, output));
        self
    }

    /// Input tokens read from the prompt cache (Anthropic API; default 0).
    pub fn cache_read(mut self, tokens: u64) -> Self {
        self.cache_read = tokens;
        self
    }

    /// Sends an error inside the stream after the content, instead of the end.
    pub fn break_off(mut self, kind: &str, message: &str) -> Self {
        self.break_off = Some((kind.into(), message.into()));
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends nothing until the gate is opened.
    pub fn hold(mut self, gate: &Gate) -> Self {
        self.before = Some(gate.clone());
        self
    }

    /// Stops after this many deltas until the gate is opened. A gate that stays closed simulates a
    /// hang.
    pub fn hold_after(mut self, deltas: usize, gate: &Gate) -> Self {
        self.holds.push((deltas, gate.clone()));
        self
    }

    /// Breaks the connection after this many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Sends only this many bytes of the last call's arguments, as at an output limit.
    pub fn cut_last_call(mut self, bytes: usize) -> Self {
        self.cut_call = Some(bytes);
        self
    }

    /// After this many deltas, sends only `bytes` again and again until the client disconnects.
    pub fn keep_alive_after(mut self, deltas: usize, bytes: &str) -> Self {
        self.keep_alive = Some((deltas, bytes.into()));
        self
    }

    /// Writes this many bytes at a time.
    pub fn drip(mut self, bytes: usize) -> Self {
        self.write_size = Some(bytes.max(1));
        self
    }
}

/// Holds a stream until a test opens it.
#[derive(Clone)]
pub struct Gate(Arc<(watch::Sender<bool>, watch::Sender<bool>)>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self(Arc::new((watch::Sender::new(false), watch::Sender::new(false))))
    }

    /// Waits until a stream has reached the gate.
    pub async fn wait_reached(&self) {
        expect_within("a stream to reach the gate", wait_true(&self.0.0)).await;
    }

    /// Lets all streams through from now on.
    pub fn open(&self) {
        self.0.1.send_replace(true);
    }

    pub(super) async fn wait_open(&self) {
        self.0.0.send_replace(true);
        wait_true(&self.0.1).await;
    }
}

async fn wait_true(flag: &watch::Sender<bool>) {
    let _ = flag.subscribe().wait_for(|is_true| *is_true).await;
}

/// Waits until the count is at least `n`.
pub(super) async fn wait_count(count: &watch::Sender<usize>, n: usize) {
    let _ = count.subscribe().wait_for(|count| *count >= n).await;
}

/// Waits for the work; panics after the timeout.
pub(super) async fn expect_within(what: &str, work: impl Future<Output = ()>) {
    assert!(tokio::time::timeout(DEADLINE, work).await.is_ok(), "waited in vain for {what}");
}
