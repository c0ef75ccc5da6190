//! The output of a command: read as it comes, collected for the model, sent as progress.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::process::RunningShell;
use super::spool::{Spool, SpoolResult};
use crate::active_model_calls::ActiveModelCall;
use crate::capture::{Capture, Utf8Decoder};
use crate::settings::Settings;
use base::sync::lock;
use types::tool::ToolProgress;

/// Bytes that are read without delay. After these bytes, while any session waits for a model, output is read
/// in bursts with a pause after each, about 3 MB a second. The writer waits meanwhile, and other sessions get
/// the processor and the disk.
const UNTHROTTLED_BYTES: u64 = 4 << 20;
const BURST_BYTES: u64 = 64 << 10;
const BURST_INTERVAL: Duration = Duration::from_millis(20);

/// Reads the output, collects it for the model and sends it as progress.
pub(super) struct CommandOutput {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    texts: [Utf8Decoder; 2],
    bytes: [u64; 2],
    capture: Arc<Mutex<Capture>>,
    spool: Spool,
    pub(super) progress: mpsc::Sender<ToolProgress>,
    /// Bytes of progress that may still be sent.
    budget: usize,
    /// Bytes read since the last pause, and the end of the current pause.
    burst: u64,
    rests_until: Option<Instant>,
}

const STREAMS: [&str; 2] = ["stdout", "stderr"];

impl CommandOutput {
    pub(super) fn new(
        shell: &mut RunningShell,
        settings: &Settings,
        progress: mpsc::Sender<ToolProgress>,
        spool: Spool,
    ) -> Self {
        let (stdout, stderr) = shell.child.streams();
        Self {
            stdout,
            stderr,
            texts: [Utf8Decoder::default(), Utf8Decoder::default()],
            bytes: [0, 0],
            capture: Arc::default(),
            spool,
            progress,
            budget: settings.max_progress_bytes,
            burst: 0,
            rests_until: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Reads one piece of output or the end of a stream. Cancel-safe: a piece is either not read yet or added
    /// completely.
    pub(super) async fn pump(&mut self) {
        async fn next<S: tokio::io::AsyncRead + Unpin>(stream: &mut Option<S>, piece: &mut [u8]) -> usize {
            match stream {
                // A broken pipe ends the stream.
                Some(stream) => stream.read(piece).await.unwrap_or(0),
                None => std::future::pending().await,
            }
        }
        self.spool.settle().await;
        if let Some(until) = self.rests_until {
            sleep_until(until).await;
            self.rests_until = None;
        }
        let (mut out, mut err) = ([0; 8192], [0; 8192]);
        let (which, n) = tokio::select! {
            n = next(&mut self.stdout, &mut out) => (0, n),
            n = next(&mut self.stderr, &mut err) => (1, n),
        };
        let piece = if which == 0 { &out[..n] } else { &err[..n] };
        self.bytes[which] += n as u64;
        self.burst += n as u64;
        if self.burst >= BURST_BYTES {
            self.burst = 0;
            let is_flood = self.bytes.iter().sum::<u64>() > UNTHROTTLED_BYTES;
            self.rests_until =
                (is_flood && ActiveModelCall::is_any()).then(|| Instant::now() + BURST_INTERVAL);
        }
        let text = if n > 0 { self.texts[which].push(piece) } else { self.texts[which].finish() };
        match (n, which) {
            (0, 0) => self.stdout = None,
            (0, _) => self.stderr = None,
            _ => {}
        }
        self.add_text(which, text);
    }

    fn add_text(&mut self, which: usize, text: String) {
        if text.is_empty() {
            return;
        }
        lock(&self.capture).push(&text);
        self.spool.push(&text);
        if text.len() <= self.budget {
            self.budget -= text.len();
            // A full channel means a slow reader: drop progress, but not output.
            let _ = self.progress.try_send(ToolProgress { stream: STREAMS[which], text });
        } else {
            self.budget = 0;
        }
    }

    /// Reads the remaining output.
    pub(super) async fn drain(&mut self) {
        while self.is_open() {
            self.pump().await;
        }
    }

    /// The collected output, shared while the command runs.
    pub(super) fn capture(&self) -> Arc<Mutex<Capture>> {
        Arc::clone(&self.capture)
    }

    /// Adds the last incomplete character. Afterwards, the spool has the full output.
    pub(super) fn close(&mut self) {
        for which in [0, 1] {
            let text = self.texts[which].finish();
            self.add_text(which, text);
        }
    }

    /// The spool with the full output.
    pub(super) fn into_spool(self) -> Spool {
        self.spool
    }

    pub(super) async fn finish(mut self, cap: usize) -> OutputExcerpt {
        self.close();
        let (text, truncated) = std::mem::take(&mut *lock(&self.capture)).render(cap);
        OutputExcerpt { text, truncated, bytes: self.bytes, spooled: self.spool.finish(!truncated).await }
    }
}

/// The output of a command for the model.
pub(super) struct OutputExcerpt {
    pub(super) text: String,
    /// Whether `text` contains only its head and tail.
    pub(super) truncated: bool,
    /// Bytes of each stream.
    pub(super) bytes: [u64; 2],
    /// The full output.
    pub(super) spooled: Option<SpoolResult>,
}
