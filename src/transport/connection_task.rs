//! One connection from its first byte to its last.
//!
//! ```text
//! check peer ─► detect framing ─► read, decode, accept ─┬─ it stops sending ─► answer, keep serving
//!                                                       ├─ it breaks the framing ─► send an error, end
//!                                                       ├─ the daemon stops ─► answer running calls, end
//!                                                       └─ it disconnects ─► let calls end, discard replies
//! ```

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::connection::{ConnectionState, Peer};
use crate::dispatch::CallDispatcher;
use crate::envelope::NO_ID;
use crate::framing;
use crate::framing::{Decoder, Frame, Framing, Opening, content_length, http, ndjson, websocket};
use crate::peer_origin;
use crate::reply::{Fault, Kind, message_too_long};
use crate::server_state::ServerState;
use crate::socket::PageSource;
use crate::writer::write_out;

/// Minimum free bytes for one read, and the maximum buffer of an idle connection.
const MIN_READ_BYTES: usize = 8 << 10;
/// Maximum bytes of one read.
const MAX_READ_BYTES: usize = 256 << 10;

/// Serves one peer. Returns when the peer has disconnected and its calls have ended. Dropping the
/// future ends the connection and its calls at once.
pub(super) async fn serve_connection(socket: UnixStream, id: u64, server: Arc<ServerState>) {
    let Ok(who) = socket.peer_cred() else { return };
    if !admits(server.uid, who.uid(), server.limits.allow_root) {
        tracing::warn!(uid = who.uid(), pid = who.pid(), "refused a connection of another user");
        return;
    }
    let open = server.count();
    let origin = peer_origin::inspect_peer(&socket, who.pid(), server.mark.clone()).await;
    let (mut read, mut write) = socket.into_split();
    let mut buffer = BytesMut::new();
    let Some(way) = detect_framing(&mut read, &mut write, &mut buffer, &server, origin.tool.is_none()).await
    else {
        return;
    };

    let peer = Peer { id, uid: who.uid(), pid: who.pid(), origin };
    let limits = &server.limits;
    let shared = Arc::new(ConnectionState::new(peer, limits.outbox_bytes, limits.max_subscriptions));
    let ending = CloseGuard(Arc::clone(&shared));
    let framing = way.framing();
    let mut writer = JoinSet::new();
    writer.spawn(write_out(Arc::clone(&shared), write, framing));
    let dispatcher = CallDispatcher::new(Arc::clone(&server), Arc::clone(&shared), framing != Framing::Http);
    let mut reader = ConnectionReader { server, shared, read, buffer, dispatcher, framing };
    reader.run(way).await;

    reader.shared.outbox.end();
    writer.join_next().await;
    drop(ending);
    drop(open);
    // Running calls are completed; only then is the peer's slot free.
    while reader.dispatcher.is_busy() {
        reader.dispatcher.wait_next_end().await;
    }
}

/// Whether a daemon of user `us` accepts a peer of user `them`.
fn admits(us: u32, them: u32, allow_root: bool) -> bool {
    them == us || (them == 0 && allow_root)
}

/// Closes the connection, however its task ends.
struct CloseGuard(Arc<ConnectionState>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The protocol that a peer uses.
enum Protocol {
    Open(Decoder, Framing),
    Post(Bytes),
}

impl Protocol {
    fn framing(&self) -> Framing {
        match self {
            Self::Open(_, framing) => *framing,
            Self::Post(_) => Framing::Http,
        }
    }
}

/// Reads until the protocol is known. Returns `None` if the connection needs no further service.
async fn detect_framing(
    read: &mut OwnedReadHalf,
    write: &mut OwnedWriteHalf,
    buffer: &mut BytesMut,
    server: &ServerState,
    may_look: bool,
) -> Option<Protocol> {
    let max_bytes = server.limits.max_message_bytes;
    let mut deadline = Instant::now() + server.limits.first_byte_timeout;
    let mut ended = false;
    loop {
        let opening = match framing::detect_opening(buffer) {
            // The peer has sent nothing, or an incomplete first message.
            Opening::Unclear if ended && buffer.is_empty() => return None,
            Opening::Unclear if ended => Opening::Ndjson,
            opening => opening,
        };
        match opening {
            Opening::Ndjson => {
                let lines = ndjson::LineDecoder::new(max_bytes);
                return Some(Protocol::Open(Decoder::Ndjson(lines), Framing::Ndjson));
            }
            Opening::ContentLength => {
                let blocks = content_length::BlockDecoder::new(max_bytes);
                return Some(Protocol::Open(Decoder::ContentLength(blocks), Framing::ContentLength));
            }
            Opening::Http => return handle_http(read, write, buffer, server, may_look).await,
            Opening::Unclear => {}
        }
        let first = buffer.is_empty();
        match read_available(read, buffer, server, deadline).await {
            ReadOutcome::More if first => deadline = Instant::now() + server.limits.half_frame_timeout,
            ReadOutcome::More => {}
            ReadOutcome::End => ended = true,
            ReadOutcome::Late | ReadOutcome::Stop | ReadOutcome::Gone => return None,
        }
    }
}

/// Reads an HTTP request and answers it, unless the connection continues with JSON-RPC.
async fn handle_http(
    read: &mut OwnedReadHalf,
    write: &mut OwnedWriteHalf,
    buffer: &mut BytesMut,
    server: &ServerState,
    may_look: bool,
) -> Option<Protocol> {
    let max_bytes = server.limits.max_message_bytes;
    let deadline = Instant::now() + server.limits.half_frame_timeout;
    let request = loop {
        if let Some(request) = http::head(buffer, max_bytes) {
            break request;
        }
        match read_available(read, buffer, server, deadline).await {
            ReadOutcome::More => {}
            ReadOutcome::Late => break http::HttpRequest::Answer(http::timed_out()),
            ReadOutcome::End | ReadOutcome::Stop | ReadOutcome::Gone => return None,
        }
    };
    match request {
        http::HttpRequest::Answer(answer) => {
            write_answer(write, &answer, server).await;
            None
        }
        http::HttpRequest::Metrics => {
            let text = server.page.as_ref().filter(|_| may_look).map(PageSource::text);
            write_answer(write, &http::metrics(text.as_deref()), server).await;
            None
        }
        http::HttpRequest::WebSocket(accepted) => {
            write_answer(write, &accepted, server).await;
            let frames = websocket::FrameDecoder::new(max_bytes);
            Some(Protocol::Open(Decoder::WebSocket(frames), Framing::WebSocket))
        }
        http::HttpRequest::Post { length, wait } => {
            if wait && buffer.len() < length {
                write_answer(write, http::CONTINUE, server).await;
            }
            while buffer.len() < length {
                match read_available(read, buffer, server, deadline).await {
                    ReadOutcome::More => {}
                    ReadOutcome::Late => {
                        write_answer(write, &http::timed_out(), server).await;
                        return None;
                    }
                    ReadOutcome::End | ReadOutcome::Stop | ReadOutcome::Gone => return None,
                }
            }
            Some(Protocol::Post(buffer.split_to(length).freeze()))
        }
    }
}

/// Writes a short answer before the writer exists. A peer that does not read it gets no answer.
async fn write_answer(write: &mut OwnedWriteHalf, answer: &[u8], server: &ServerState) {
    let _ = tokio::time::timeout(server.limits.half_frame_timeout, write.write_all(answer)).await;
}

/// Result of a read.
enum ReadOutcome {
    More,
    /// The peer will send nothing more.
    End,
    Late,
    Stop,
    /// The peer has disconnected.
    Gone,
}

/// Reads the available bytes; waits at most until `deadline`. Cancel-safe.
async fn read_available(
    read: &mut OwnedReadHalf,
    buffer: &mut BytesMut,
    server: &ServerState,
    deadline: Instant,
) -> ReadOutcome {
    buffer.reserve(buffer.len().clamp(MIN_READ_BYTES, MAX_READ_BYTES));
    tokio::select! {
        biased;
        result = read.read_buf(buffer) => read_outcome(&result),
        () = server.stop.cancelled() => ReadOutcome::Stop,
        () = sleep_until(deadline) => ReadOutcome::Late,
    }
}

fn read_outcome(result: &io::Result<usize>) -> ReadOutcome {
    match result {
        Ok(0) => ReadOutcome::End,
        Ok(_) => ReadOutcome::More,
        Err(_) => ReadOutcome::Gone,
    }
}

/// The reason why reading ended.
enum EndReason {
    /// The peer sends nothing more, but may still read.
    Finished,
    /// The framing cannot be followed; the peer has received an error.
    Broken,
    /// WebSocket's close: nothing may follow the daemon's own close frame.
    Goodbye,
    Stop,
    Gone,
}

struct ConnectionReader {
    server: Arc<ServerState>,
    shared: Arc<ConnectionState>,
    read: OwnedReadHalf,
    buffer: BytesMut,
    dispatcher: CallDispatcher,
    framing: Framing,
}

impl ConnectionReader {
    async fn run(&mut self, way: Protocol) {
        let end = match way {
            Protocol::Open(mut decoder, _) => self.read_messages(&mut decoder).await,
            Protocol::Post(body) => self.accept_message(body).await.unwrap_or(EndReason::Finished),
        };
        match end {
            EndReason::Finished => {
                // `echo … | nc` waits for its replies, and for the daemon to close the connection.
                self.serve_on().await;
                if self.framing == Framing::Http && !self.shared.outbox.was_used() {
                    self.shared.outbox.queue_raw(http::no_content());
                }
            }
            EndReason::Broken | EndReason::Stop => {
                self.shared.end_subscriptions();
                self.serve_on().await;
                if self.framing == Framing::WebSocket {
                    self.shared.outbox.queue_raw(websocket::going_away());
                }
            }
            EndReason::Goodbye => self.shared.end_subscriptions(),
            EndReason::Gone => self.shared.close(),
        }
    }

    /// Reads, decodes and accepts messages until there is a reason to stop.
    async fn read_messages(&mut self, decoder: &mut Decoder) -> EndReason {
        let mut began: Option<Instant> = None;
        loop {
            loop {
                let frame = match decoder.next(&mut self.buffer) {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(broken) => return self.protocol_error(broken.why),
                };
                began = None;
                if let Some(end) = self.handle_frame(frame).await {
                    return end;
                }
                if self.server.stop.is_cancelled() {
                    return EndReason::Stop;
                }
            }
            if self.buffer.is_empty() {
                began = None;
                // Release the large buffer of a long message, even while its calls still run, so that a quiet
                // connection holds little memory.
                if self.buffer.capacity() > MAX_READ_BYTES {
                    self.buffer = BytesMut::new();
                }
            } else {
                began.get_or_insert_with(Instant::now);
            }
            let deadline = began.map(|began| began + self.server.limits.half_frame_timeout);
            match self.read_more(deadline).await {
                ReadOutcome::More => {}
                ReadOutcome::End => {
                    return match decoder.last(&mut self.buffer) {
                        Some(frame) => self.handle_frame(frame).await.unwrap_or(EndReason::Finished),
                        None => EndReason::Finished,
                    };
                }
                ReadOutcome::Late => {
                    return self.protocol_error("a message was begun and not finished in time");
                }
                ReadOutcome::Stop => return EndReason::Stop,
                ReadOutcome::Gone => return EndReason::Gone,
            }
        }
    }

    async fn read_more(&mut self, deadline: Option<Instant>) -> ReadOutcome {
        self.buffer.reserve(self.buffer.len().clamp(MIN_READ_BYTES, MAX_READ_BYTES));
        let late = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = self.read.read_buf(&mut self.buffer) => read_outcome(&result),
            () = self.server.stop.cancelled() => ReadOutcome::Stop,
            () = self.shared.closed.cancelled() => ReadOutcome::Gone,
            () = late => ReadOutcome::Late,
        }
    }

    /// Handles one frame. Returns a reason to stop reading, if there is one.
    async fn handle_frame(&mut self, frame: Frame) -> Option<EndReason> {
        match frame {
            Frame::Message(message) => return self.accept_message(message).await,
            Frame::TooLong => {
                if let Some(end) = self.wait_reply_space().await {
                    return Some(end);
                }
                self.shared
                    .outbox
                    .queue_reply(message_too_long(self.server.limits.max_message_bytes).reply(NO_ID));
            }
            Frame::Answer(bytes) => {
                if let Some(end) = self.wait_reply_space().await {
                    return Some(end);
                }
                self.shared.outbox.queue_raw(bytes);
            }
            Frame::Goodbye(bytes) => {
                self.shared.outbox.queue_raw(bytes);
                return Some(EndReason::Goodbye);
            }
        }
        None
    }

    /// Accepts a message once its calls and their replies are within the limits. If a reason to stop comes up
    /// meanwhile, returns that reason, and none of the message's calls has started.
    async fn accept_message(&mut self, message: Bytes) -> Option<EndReason> {
        tokio::select! {
            biased;
            () = async {
                self.shared.outbox.wait_reply_space().await;
                let slot = self.dispatcher.reserve_slot(message.len()).await;
                self.dispatcher.accept_message(&message, slot).await;
            } => None,
            () = self.server.stop.cancelled() => Some(EndReason::Stop),
            () = wait_disconnected(&self.read, &self.shared) => Some(EndReason::Gone),
        }
    }

    async fn wait_reply_space(&self) -> Option<EndReason> {
        tokio::select! {
            biased;
            () = self.shared.outbox.wait_reply_space() => None,
            () = self.server.stop.cancelled() => Some(EndReason::Stop),
            () = wait_disconnected(&self.read, &self.shared) => Some(EndReason::Gone),
        }
    }

    /// Sends an error in the peer's own framing.
    fn protocol_error(&self, why: &str) -> EndReason {
        if self.framing == Framing::WebSocket {
            self.shared.outbox.queue_raw(websocket::protocol_error());
            return EndReason::Goodbye;
        }
        self.shared.outbox.queue_reply(Fault::new(Kind::ParseError, why).reply(NO_ID));
        EndReason::Broken
    }

    /// Stops reading, but answers running calls and serves subscriptions until both have ended.
    async fn serve_on(&mut self) {
        while self.dispatcher.is_busy() || self.shared.has_subscriptions() {
            tokio::select! {
                () = self.dispatcher.wait_next_end(), if self.dispatcher.is_busy() => {}
                () = self.shared.subscription_ended.notified() => {}
                () = self.server.stop.cancelled(), if self.shared.has_subscriptions() => {
                    self.shared.end_subscriptions();
                }
                () = wait_disconnected(&self.read, &self.shared) => return self.shared.close(),
            }
        }
    }
}

/// Waits until the peer has disconnected: the writer notices this, or the kernel reports both directions as
/// closed. Needed wherever the task does not read, because then nothing else reports a disconnect.
async fn wait_disconnected(read: &OwnedReadHalf, shared: &ConnectionState) {
    tokio::select! {
        () = shared.closed.cancelled() => {}
        () = wait_hangup(read.as_ref()) => {}
    }
}

async fn wait_hangup(socket: &UnixStream) {
    const POLL_INTERVAL: Duration = Duration::from_secs(1);
    loop {
        let copy = socket.as_fd().try_clone_to_owned().map(StdStream::from).and_then(UnixStream::from_std);
        if let Ok(copy) = copy {
            // The copy has its own readiness, which may be cleared here without touching the writer's.
            // "Writable" is signalled again whenever the peer has read. "Closed for writing" is
            // signalled only when the peer has disconnected, because a peer that merely stops sending
            // continues to read.
            while let Ok(ready) = copy.ready(Interest::WRITABLE).await {
                if ready.is_write_closed() {
                    return;
                }
                let _ = copy.try_io(Interest::WRITABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
            }
        }
        // No descriptor is free at the moment.
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use crate::connection_task::*;

    #[test]
    fn connections_are_admitted_for_owner_and_allowed_root() {
        let check = |us, them, allow_root, expected| assert_eq!(admits(us, them, allow_root), expected);
        check(1000, 1000, false, true);
        check(1000, 1001, true, false);
        check(1000, 0, false, false);
        check(1000, 0, true, true);
        check(0, 0, false, true);
        check(0, 1000, true, false);
    }
}
