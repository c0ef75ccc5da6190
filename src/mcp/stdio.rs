//! The messages of a stdio server: one JSON text per line, with limits on length and rate.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use crate::message_rate::MessageRate;

/// Maximum bytes of one message.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// A server's output. It ends with an error if the server exceeds a limit, so that the connection ends.
pub(super) struct LimitedOutput<R> {
    inner: R,
    /// Bytes since the last line break.
    line: usize,
    rate: MessageRate,
    /// The reason why the output was ended.
    breach: Arc<OnceLock<String>>,
}

impl<R> LimitedOutput<R> {
    pub fn new(inner: R, breach: Arc<OnceLock<String>>) -> Self {
        Self { inner, line: 0, rate: MessageRate::new(Instant::now()), breach }
    }

    /// Counts new bytes; the error names the limit that they exceed.
    fn count(&mut self, bytes: &[u8], now: Instant) -> Result<(), String> {
        let breaks = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.line = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => bytes.len() - last - 1,
            None => self.line.saturating_add(bytes.len()),
        };
        if self.line > MAX_MESSAGE_BYTES {
            return Err(format!("it sent a message of more than {} MiB", MAX_MESSAGE_BYTES >> 20));
        }
        self.rate.count(breaks, bytes.len(), now)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedOutput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if matches!(read, Poll::Ready(Ok(()))) {
            let new = buffer.filled()[before..].to_vec();
            if let Err(why) = self.count(&new, Instant::now()) {
                let _ = self.breach.set(why.clone());
                return Poll::Ready(Err(io::Error::other(why)));
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::message_rate::MAX_MESSAGES;

    async fn check(output: Vec<u8>, expected: Option<&str>) {
        let breach = Arc::new(OnceLock::new());
        let mut limited = LimitedOutput::new(output.as_slice(), Arc::clone(&breach));
        let mut buffer = vec![0; 1 << 20];
        let result = loop {
            match limited.read(&mut buffer).await {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        assert_eq!(result.is_err(), expected.is_some());
        let why = breach.get().map_or("", String::as_str);
        assert!(why.contains(expected.unwrap_or("")), "{why}");
    }

    #[tokio::test]
    async fn output_beyond_limits_ends_with_error() {
        check(b"{}\n{}\n".to_vec(), None).await;
        check(vec![b'x'; MAX_MESSAGE_BYTES + 2], Some("16 MiB")).await;
        check(b"{}\n".repeat(MAX_MESSAGES as usize + 1), Some("20000 messages")).await;
        let mut lines = vec![b'x'; 1 << 20];
        lines.push(b'\n');
        check(lines.repeat(66), Some("64 MiB")).await;
    }
}
