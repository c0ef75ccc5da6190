//! A raw connection: the test writes exact bytes and reads whole lines. It never reads ahead.
#![allow(dead_code, reason = "a tool box: not every test needs every tool")]

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::wait::with_deadline;

/// A connection whose bytes the test writes itself.
pub struct RawConnection {
    stream: BufReader<UnixStream>,
}

impl RawConnection {
    pub(super) fn from_stream(stream: UnixStream) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let write = self.stream.get_mut().write_all(bytes.as_ref());
        with_deadline("the daemon to take the bytes", String::new, write)
            .await
            .expect("the connection is open");
    }

    /// Writes to a peer that may have closed the connection.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.get_mut().write_all(bytes.as_ref()).await;
    }

    /// Sends one line.
    pub async fn line(&mut self, text: impl std::fmt::Display) {
        self.send(format!("{text}\n")).await;
    }

    /// The next line as received; `None` when the daemon closed the connection.
    pub async fn next_text(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = with_deadline("a line", String::new, self.stream.read_line(&mut line)).await;
        matches!(read, Ok(1..)).then_some(line)
    }

    /// The next line as JSON; `None` when the daemon closed the connection.
    pub async fn next(&mut self) -> Option<Value> {
        let line = self.next_text().await?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}")))
    }

    /// Reads exactly this many bytes.
    pub async fn read_bytes(&mut self, bytes: usize) -> Vec<u8> {
        let mut taken = vec![0; bytes];
        let read = with_deadline("more bytes", String::new, self.stream.read_exact(&mut taken)).await;
        read.expect("the connection is open");
        taken
    }

    /// Sends one line and returns the next received line.
    pub async fn send_and_receive(&mut self, text: impl std::fmt::Display) -> Value {
        self.line(text).await;
        self.next().await.expect("an answer")
    }

    /// Reads everything until the daemon closes the connection.
    pub async fn read_rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = with_deadline("the end", String::new, self.stream.read_to_end(&mut bytes)).await;
        read.expect("it can be read");
        bytes
    }

    /// The stream itself, for another framing.
    pub fn into_stream(self) -> UnixStream {
        self.stream.into_inner()
    }
}
