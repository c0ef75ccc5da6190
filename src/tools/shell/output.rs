//! The output of a command: read as it comes, collected for the model, sent as progress.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

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
    /// Standard output and error in one pipe, which keeps the order of writes; `None` at its end.
    pipe: Option<ChildStdout>,
    text: Utf8Decoder,
    bytes: u64,
    capture: Arc<Mutex<Capture>>,
    spool: Spool,
    pub(super) progress: mpsc::Sender<ToolProgress>,
    /// Bytes of progress that may still be sent.
    budget: usize,
    /// Bytes read since the last pause, and the end of the current pause.
    burst: u64,
    rests_until: Option<Instant>,
}

impl CommandOutput {
    pub(super) fn new(
        pipe: ChildStdout,
        settings: &Settings,
        progress: mpsc::Sender<ToolProgress>,
        spool: Spool,
    ) -> Self {
        Self {
            pipe: Some(pipe),
            text: Utf8Decoder::default(),
            bytes: 0,
            capture: Arc::default(),
            spool,
            progress,
            budget: settings.max_progress_bytes,
            burst: 0,
            rests_until: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads one piece of output or the end of a stream. Cancel-safe: a piece is either not read yet or added
    /// completely.
    pub(super) async fn pump(&mut self) {
        self.spool.settle().await;
        if let Some(until) = self.rests_until {
            sleep_until(until).await;
            self.rests_until = None;
        }
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let mut piece = [0; 16 << 10];
        // A broken pipe ends the output.
        let n = pipe.read(&mut piece).await.unwrap_or(0);
        self.bytes += n as u64;
        self.burst += n as u64;
        if self.burst >= BURST_BYTES {
            self.burst = 0;
            let is_flood = self.bytes > UNTHROTTLED_BYTES;
            self.rests_until =
                (is_flood && ActiveModelCall::is_any()).then(|| Instant::now() + BURST_INTERVAL);
        }
        let text = if n > 0 {
            self.text.push(&piece[..n])
        } else {
            self.pipe = None;
            self.text.finish()
        };
        self.add_text(text);
    }

    fn add_text(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        lock(&self.capture).push(&text);
        self.spool.push(&text);
        if text.len() <= self.budget {
            self.budget -= text.len();
            // A full channel means a slow reader: drop progress, but not output.
            let _ = self.progress.try_send(ToolProgress { stream: "stdout", text });
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
        let text = self.text.finish();
        self.add_text(text);
    }

    /// The spool with the full output.
    pub(super) fn into_spool(self) -> Spool {
        self.spool
    }

    pub(super) async fn finish(mut self, cap: usize) -> OutputExcerpt {
        self.close();
        let (part, is_redrawn) = lock(&self.capture).output_since(0).shown();
        let (text, truncated) = part.shorten(cap);
        let spooled = self.spool.finish(!truncated && !is_redrawn).await;
        OutputExcerpt { text, truncated, bytes: self.bytes, spooled }
    }
}

/// The output of a command for the model.
pub(super) struct OutputExcerpt {
    pub(super) text: String,
    /// Whether `text` contains only its head and tail.
    pub(super) truncated: bool,
    pub(super) bytes: u64,
    /// The full output.
    pub(super) spooled: Option<SpoolResult>,
}
