//! The newest lines that a server wrote to its standard error or sent as log messages, and notes of the daemon.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use base::sync::lock;

/// Maximum size of a log in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Maximum length of one line in bytes. The rest of the line is left out.
const MAX_LINE_BYTES: usize = 2 << 10;

/// Maximum length in bytes of the part that an error repeats.
const MAX_TAIL_BYTES: usize = 400;

/// A bounded log.
#[derive(Default)]
pub(super) struct ServerLog {
    lines: Mutex<LogLines>,
}

#[derive(Default)]
struct LogLines {
    lines: VecDeque<LogLine>,
    bytes: usize,
}

struct LogLine {
    text: String,
    origin: LineOrigin,
}

/// The writer of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineOrigin {
    Server,
    Daemon,
}

impl ServerLog {
    /// Adds a line of the server.
    pub fn add(&self, line: &str) {
        self.push(line, LineOrigin::Server);
    }

    /// Adds a note of the daemon. Errors of the server do not repeat it.
    pub fn note(&self, line: &str) {
        self.push(&format!("[agentd] {line}"), LineOrigin::Daemon);
    }

    fn push(&self, line: &str, origin: LineOrigin) {
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        let cut = line.floor_char_boundary(MAX_LINE_BYTES);
        let mut log = lock(&self.lines);
        log.bytes += cut;
        log.lines.push_back(LogLine { text: line[..cut].to_owned(), origin });
        while log.bytes > MAX_BYTES {
            let Some(oldest) = log.lines.pop_front() else { break };
            log.bytes -= oldest.text.len();
        }
    }

    /// The lines, the oldest first.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.lines).lines.iter().map(|line| line.text.clone()).collect()
    }

    /// The newest lines of the server in one line, for an error.
    pub fn tail(&self) -> Option<String> {
        let log = lock(&self.lines);
        let of_server = log.lines.iter().rev().filter(|line| line.origin == LineOrigin::Server);
        let mut newest: Vec<&str> = of_server.take(3).map(|line| line.text.as_str()).collect();
        newest.reverse();
        let text = newest.join(" | ");
        let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_TAIL_BYTES));
        (!text.is_empty()).then(|| text[from..].to_owned())
    }

    /// Reads a stream to its end. The memory is bounded for any stream.
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

    #[test]
    fn tail_of_log_repeats_no_notes_of_daemon() {
        let log = ServerLog::default();
        log.note("next try in 1 s");
        assert_eq!(log.tail(), None);
        log.add("no licence");
        log.note("next try in 2 s");
        assert_eq!(log.tail().as_deref(), Some("no licence"));
        assert_eq!(log.lines()[2], "[agentd] next try in 2 s");
    }
}
