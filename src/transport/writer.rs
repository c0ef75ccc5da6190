//! The only task that writes to a peer. It takes all queued data and writes it in large blocks.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;

use super::connection::ConnectionState;
use super::framing::Framing;
use super::outbox::OutboxItem;

/// Bytes gathered before a write; a message of at least this size is written without copying.
const WRITE_BATCH_BYTES: usize = 64 << 10;

/// Writes until the outbox has ended and is empty, then closes the writing side. If the peer has disconnected, the
/// connection is closed.
pub(super) async fn write_out(shared: Arc<ConnectionState>, mut socket: OwnedWriteHalf, framing: Framing) {
    let mut writer =
        Writer { shared: &shared, socket: &mut socket, framing, gathered: Vec::new(), done: (0, 0) };
    let result = writer.run().await;
    if result.is_err() {
        shared.close();
    }
    let _ = socket.shutdown().await;
}

struct Writer<'a> {
    shared: &'a ConnectionState,
    socket: &'a mut OwnedWriteHalf,
    framing: Framing,
    gathered: Vec<u8>,
    /// Reply bytes and credit of the data in `gathered`. They count as written once that data is written.
    done: (usize, usize),
}

impl Writer<'_> {
    async fn run(&mut self) -> io::Result<()> {
        let mut batch = Vec::new();
        while self.shared.outbox.next_batch(&mut batch).await {
            for out in batch.drain(..) {
                self.write_item(out).await?;
            }
            self.flush().await?;
            // An idle connection holds no memory.
            if self.gathered.capacity() > WRITE_BATCH_BYTES {
                self.gathered = Vec::new();
            }
            if batch.capacity() > 1024 {
                batch = Vec::new();
            }
        }
        Ok(())
    }

    async fn write_item(&mut self, out: OutboxItem) -> io::Result<()> {
        match out {
            OutboxItem::Reply(reply) => {
                self.message(&[&one_line(&reply)]).await?;
                self.done.0 += reply.len();
            }
            OutboxItem::Notifications { messages, credit } => {
                for message in &messages {
                    self.message(&[&one_line(message.as_bytes())]).await?;
                }
                self.done.1 += credit;
            }
            OutboxItem::Events { start, end, events, credit } => {
                for event in &events {
                    self.message(&[start.as_bytes(), &one_line(event.as_bytes()), end.as_bytes()]).await?;
                }
                self.done.1 += credit;
            }
            OutboxItem::Raw(bytes) => {
                self.gathered.extend_from_slice(&bytes);
                self.done.0 += bytes.len();
            }
        }
        Ok(())
    }

    /// One message, given in parts.
    async fn message(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let length = parts.iter().map(|part| part.len()).sum();
        self.framing.write_head(length, &mut self.gathered);
        for part in parts {
            if part.len() < WRITE_BATCH_BYTES {
                self.gathered.extend_from_slice(part);
            } else {
                self.flush().await?;
                self.socket.write_all(part).await?;
            }
        }
        self.framing.write_tail(&mut self.gathered);
        if self.gathered.len() >= WRITE_BATCH_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.gathered).await?;
        self.gathered.clear();
        let (replies, credit) = std::mem::take(&mut self.done);
        self.shared.outbox.record_written(replies, credit);
        Ok(())
    }
}

/// In valid JSON a newline can only be white space between tokens; in a line it would end the message.
fn one_line(json: &[u8]) -> Cow<'_, [u8]> {
    if !json.contains(&b'\n') {
        return Cow::Borrowed(json);
    }
    Cow::Owned(json.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }).collect())
}
