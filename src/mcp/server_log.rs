//! The newest lines that a server wrote to its standard error or sent as log messages, and what the daemon notes.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::sync::lock;

/// Maximum size in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Maximum length of one line in bytes. The rest of it is left out.
const MAX_LINE_BYTES: usize = 2 << 10;

/// Maximum length in bytes of the part that an error repeats.
const MAX_TAIL_BYTES: usize = 400;

/// A bounded log.
#[derive(Default)]
pub(super) struct ServerLog {
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl ServerLog {
    /// Adds a line.
    pub fn add(&self, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        let cut = line.floor_char_boundary(MAX_LINE_BYTES);
        let mut log = lock(&self.lines);
        log.bytes += cut;
        log.lines.push_back(line[..cut].to_owned());
        while log.bytes > MAX_BYTES {
            let Some(oldest) = log.lines.pop_front() else { break };
            log.bytes -= oldest.len();
        }
    }

    /// The lines, the oldest first.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.lines).lines.iter().cloned().collect()
    }

    /// The newest lines in one line, for an error.
    pub fn tail(&self) -> Option<String> {
        let log = lock(&self.lines);
        let mut newest: Vec<&str> = log.lines.iter().rev().take(3).map(String::as_str).collect();
        newest.reverse();
        let text = newest.join(" | ");
        let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_TAIL_BYTES));
        (!text.is_empty()).then(|| text[from..].to_owned())
    }

    /// Reads a stream to its end. The memory is bounded, whatever the stream contains.
    pub async fn read(&self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 4 << 10];
        let mut line: Vec<u8> = Vec::new();
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                let room = MAX_LINE_BYTES.saturating_sub(line.len());
                line.extend_from_slice(&part[..part.len().min(room)]);
                if part.ends_with(b"\n") {
                    self.add(&String::from_utf8_lossy(&line));
                    line.clear();
                }
            }
        }
        self.add(&String::from_utf8_lossy(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn server_log_keeps_newest_lines_within_limit() {
        let log = ServerLog::default();
        let flood = format!("{}\n", "x".repeat(100_000)).repeat(50) + "last\n";
        log.read(flood.as_bytes()).await;
        let lines = log.lines();
        assert_eq!(lines.last().map(String::as_str), Some("last"));
        assert!(lines.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        assert!(log.tail().expect("lines").ends_with("last"));
    }
}
