//! Lines of standard input with a limit.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Maximum bytes of a line, as of a message to the daemon.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    Complete(Vec<u8>),
    /// The line was over the limit and is not kept.
    TooLong,
}

/// Reads lines. A line over the limit is skipped while it arrives, so that it takes no memory.
pub(super) struct LineReader<R> {
    reader: BufReader<R>,
    partial: Vec<u8>,
    is_skipping: bool,
    limit: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        let reader = BufReader::with_capacity(64 << 10, reader);
        Self { reader, partial: Vec::new(), is_skipping: false, limit }
    }

    /// The next line, `None` at the end of the input. A last line may lack its line break. Cancel-safe.
    pub(super) async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                let is_line = self.is_skipping || !self.partial.is_empty();
                return Ok(is_line.then(|| self.end_line()));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.partial.len() + part.len() > self.limit {
                self.is_skipping = true;
                self.partial = Vec::new();
            }
            if !self.is_skipping {
                self.partial.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.end_line()));
            }
        }
    }

    fn end_line(&mut self) -> InputLine {
        let line = std::mem::take(&mut self.partial);
        if std::mem::take(&mut self.is_skipping) { InputLine::TooLong } else { InputLine::Complete(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<InputLine> {
        let mut reader = LineReader::new(input, limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.expect("readable") {
            lines.push(line);
        }
        lines
    }

    fn complete(text: &str) -> InputLine {
        InputLine::Complete(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn line_over_limit_is_skipped_and_next_one_is_read() {
        assert_eq!(
            lines(b"1234\n12345\n\nend", 4).await,
            [complete("1234"), InputLine::TooLong, complete(""), complete("end")]
        );
        let mut long = vec![b'x'; 300_000];
        long.extend_from_slice(b"\nok\n");
        assert_eq!(lines(&long, 100_000).await, [InputLine::TooLong, complete("ok")]);
        assert_eq!(lines(&[b'x'; 9], 8).await, [InputLine::TooLong], "also without a line break");
        assert_eq!(lines(b"", 8).await, []);
    }
}
