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

use crate::transport::connection::{Peer, Shared};
use crate::transport::dispatch::Caller;
use crate::transport::envelope::NO_ID;
use crate::transport::framing;
use crate::transport::framing::{Decoder, Frame, Framing, Opening, content_length, http, ndjson, websocket};
use crate::transport::peer_origin;
use crate::transport::reply::{Fault, Kind, too_long};
use crate::transport::server_state::ServerState;
use crate::transport::socket::Page;
use crate::transport::writer::write_out;

/// Minimum free bytes for one read, and the maximum buffer of an idle connection.
const READ: usize = 8 << 10;
/// Maximum bytes of one read.
const LARGEST_READ: usize = 256 << 10;

/// Serves one peer. Returns when the peer has disconnected and its calls have ended. Dropping the
/// future ends the connection and its calls at once.
pub(super) async fn serve_connection(socket: UnixStream, id: u64, server: Arc<ServerState>) {
    let Ok(who) = socket.peer_cred() else { return };
    if !admits(server.uid, who.uid(), server.limits.allow_root) {
        tracing::warn!(uid = who.uid(), pid = who.pid(), "refused a connection of another user");
        return;
    }
    let open = server.count();
    let descent = peer_origin::of_peer(&socket, who.pid(), server.mark.clone()).await;
    let (mut read, mut write) = socket.into_split();
    let mut buffer = BytesMut::new();
    let Some(way) = detect_framing(&mut read, &mut write, &mut buffer, &server, descent.tool.is_none()).await
    else {
        return;
    };

    let peer = Peer { id, uid: who.uid(), pid: who.pid(), descent };
    let limits = &server.limits;
    let shared = Arc::new(Shared::new(peer, limits.outbox_bytes, limits.max_subscriptions));
    let ending = Ending(Arc::clone(&shared));
    let framing = way.framing();
    let mut writer = JoinSet::new();
    writer.spawn(write_out(Arc::clone(&shared), write, framing));
    let caller = Caller::new(Arc::clone(&server), Arc::clone(&shared), framing != Framing::Http);
    let mut exchange = Exchange { server, shared, read, buffer, caller, framing };
    exchange.run(way).await;

    exchange.shared.outbox.end();
    writer.join_next().await;
    drop(ending);
    drop(open);
    // Running calls are completed; only then is the peer's slot free.
    while exchange.caller.is_busy() {
        exchange.caller.one_done().await;
    }
}

/// Whether a daemon of user `us` accepts a peer of user `them`.
fn admits(us: u32, them: u32, allow_root: bool) -> bool {
    them == us || (them == 0 && allow_root)
}

/// Closes the connection, however its task ends.
struct Ending(Arc<Shared>);

impl Drop for Ending {
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
    let longest = server.limits.max_message_bytes;
    let mut deadline = Instant::now() + server.limits.first_byte_timeout;
    let mut ended = false;
    loop {
        let opening = match framing::recognise(buffer) {
            // Nothing, or an incomplete first message.
            Opening::Unclear if ended && buffer.is_empty() => return None,
            Opening::Unclear if ended => Opening::Ndjson,
            opening => opening,
        };
        match opening {
            Opening::Ndjson => {
                let lines = ndjson::Lines::new(longest);
                return Some(Protocol::Open(Decoder::Ndjson(lines), Framing::Ndjson));
            }
            Opening::ContentLength => {
                let blocks = content_length::Blocks::new(longest);
                return Some(Protocol::Open(Decoder::ContentLength(blocks), Framing::ContentLength));
            }
            Opening::Http => return handle_http(read, write, buffer, server, may_look).await,
            Opening::Unclear => {}
        }
        let first = buffer.is_empty();
        match fill(read, buffer, server, deadline).await {
            Fill::More if first => deadline = Instant::now() + server.limits.half_frame_timeout,
            Fill::More => {}
            Fill::End => ended = true,
            Fill::Late | Fill::Stop | Fill::Gone => return None,
        }
    }
}

/// Reads an HTTP request and answers it, unless it leads on to JSON-RPC.
async fn handle_http(
    read: &mut OwnedReadHalf,
    write: &mut OwnedWriteHalf,
    buffer: &mut BytesMut,
    server: &ServerState,
    may_look: bool,
) -> Option<Protocol> {
    let longest = server.limits.max_message_bytes;
    let deadline = Instant::now() + server.limits.half_frame_timeout;
    let request = loop {
        if let Some(request) = http::head(buffer, longest) {
            break request;
        }
        match fill(read, buffer, server, deadline).await {
            Fill::More => {}
            Fill::Late => break http::Request::Answer(http::timed_out()),
            Fill::End | Fill::Stop | Fill::Gone => return None,
        }
    };
    match request {
        http::Request::Answer(answer) => {
            say(write, &answer, server).await;
            None
        }
        http::Request::Metrics => {
            let text = server.page.as_ref().filter(|_| may_look).map(Page::text);
            say(write, &http::metrics(text.as_deref()), server).await;
            None
        }
        http::Request::WebSocket(accepted) => {
            say(write, &accepted, server).await;
            let frames = websocket::Frames::new(longest);
            Some(Protocol::Open(Decoder::WebSocket(frames), Framing::WebSocket))
        }
        http::Request::Post { length, wait } => {
            if wait && buffer.len() < length {
                say(write, http::CONTINUE, server).await;
            }
            while buffer.len() < length {
                match fill(read, buffer, server, deadline).await {
                    Fill::More => {}
                    Fill::Late => {
                        say(write, &http::timed_out(), server).await;
                        return None;
                    }
                    Fill::End | Fill::Stop | Fill::Gone => return None,
                }
            }
            Some(Protocol::Post(buffer.split_to(length).freeze()))
        }
    }
}

/// Writes a short answer before the writer exists. A peer that does not read it gets no answer.
async fn say(write: &mut OwnedWriteHalf, answer: &[u8], server: &ServerState) {
    let _ = tokio::time::timeout(server.limits.half_frame_timeout, write.write_all(answer)).await;
}

/// Result of a read.
enum Fill {
    More,
    /// The peer will send nothing more.
    End,
    Late,
    Stop,
    /// The peer has disconnected.
    Gone,
}

/// Reads the available bytes; waits at most until `deadline`. Cancel-safe.
async fn fill(
    read: &mut OwnedReadHalf,
    buffer: &mut BytesMut,
    server: &ServerState,
    deadline: Instant,
) -> Fill {
    buffer.reserve(buffer.len().clamp(READ, LARGEST_READ));
    tokio::select! {
        biased;
        result = read.read_buf(buffer) => filled(&result),
        () = server.stop.cancelled() => Fill::Stop,
        () = sleep_until(deadline) => Fill::Late,
    }
}

fn filled(result: &io::Result<usize>) -> Fill {
    match result {
        Ok(0) => Fill::End,
        Ok(_) => Fill::More,
        Err(_) => Fill::Gone,
    }
}

/// Why reading ended.
enum End {
    /// The peer sends nothing more, but may still read.
    Finished,
    /// The framing cannot be followed; the peer has received an error.
    Broken,
    /// WebSocket's close: nothing may follow the daemon's own close frame.
    Goodbye,
    Stop,
    Gone,
}

struct Exchange {
    server: Arc<ServerState>,
    shared: Arc<Shared>,
    read: OwnedReadHalf,
    buffer: BytesMut,
    caller: Caller,
    framing: Framing,
}

impl Exchange {
    async fn run(&mut self, way: Protocol) {
        let end = match way {
            Protocol::Open(mut decoder, _) => self.listen(&mut decoder).await,
            Protocol::Post(body) => self.take_in(body).await.unwrap_or(End::Finished),
        };
        match end {
            End::Finished => {
                // `echo … | nc` waits for its replies, and for the daemon to close the connection.
                self.serve_on().await;
                if self.framing == Framing::Http && !self.shared.outbox.was_used() {
                    self.shared.outbox.raw(http::no_content());
                }
            }
            End::Broken | End::Stop => {
                self.shared.end_subscriptions();
                self.serve_on().await;
                if self.framing == Framing::WebSocket {
                    self.shared.outbox.raw(websocket::going_away());
                }
            }
            End::Goodbye => self.shared.end_subscriptions(),
            End::Gone => self.shared.close(),
        }
    }

    /// Reads, decodes and accepts messages until there is a reason to stop.
    async fn listen(&mut self, decoder: &mut Decoder) -> End {
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
                    return End::Stop;
                }
            }
            if self.buffer.is_empty() {
                began = None;
                // After a long message, or while its calls still run: a quiet connection holds little
                // memory.
                if self.buffer.capacity() > LARGEST_READ {
                    self.buffer = BytesMut::new();
                }
            } else {
                began.get_or_insert_with(Instant::now);
            }
            let deadline = began.map(|began| began + self.server.limits.half_frame_timeout);
            match self.more(deadline).await {
                Fill::More => {}
                Fill::End => {
                    return match decoder.last(&mut self.buffer) {
                        Some(frame) => self.handle_frame(frame).await.unwrap_or(End::Finished),
                        None => End::Finished,
                    };
                }
                Fill::Late => {
                    return self.protocol_error("a message was begun and not finished in time");
                }
                Fill::Stop => return End::Stop,
                Fill::Gone => return End::Gone,
            }
        }
    }

    async fn more(&mut self, deadline: Option<Instant>) -> Fill {
        self.buffer.reserve(self.buffer.len().clamp(READ, LARGEST_READ));
        let late = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = self.read.read_buf(&mut self.buffer) => filled(&result),
            () = self.server.stop.cancelled() => Fill::Stop,
            () = self.shared.closed.cancelled() => Fill::Gone,
            () = late => Fill::Late,
        }
    }

    /// Handles one frame. Returns a reason to stop, if there is one.
    async fn handle_frame(&mut self, frame: Frame) -> Option<End> {
        match frame {
            Frame::Message(message) => return self.take_in(message).await,
            Frame::TooLong => {
                if let Some(end) = self.room_for_replies().await {
                    return Some(end);
                }
                self.shared.outbox.reply(too_long(self.server.limits.max_message_bytes).reply(NO_ID));
            }
            Frame::Answer(bytes) => {
                if let Some(end) = self.room_for_replies().await {
                    return Some(end);
                }
                self.shared.outbox.raw(bytes);
            }
            Frame::Goodbye(bytes) => {
                self.shared.outbox.raw(bytes);
                return Some(End::Goodbye);
            }
        }
        None
    }

    /// Accepts a message once its calls and their replies are within the limits. Returns a reason to
    /// stop if one comes up meanwhile; then none of the message's calls has started.
    async fn take_in(&mut self, message: Bytes) -> Option<End> {
        tokio::select! {
            biased;
            () = async {
                self.shared.outbox.room_for_replies().await;
                let slot = self.caller.room(message.len()).await;
                self.caller.take_in(&message, slot).await;
            } => None,
            () = self.server.stop.cancelled() => Some(End::Stop),
            () = gone(&self.read, &self.shared) => Some(End::Gone),
        }
    }

    async fn room_for_replies(&self) -> Option<End> {
        tokio::select! {
            biased;
            () = self.shared.outbox.room_for_replies() => None,
            () = self.server.stop.cancelled() => Some(End::Stop),
            () = gone(&self.read, &self.shared) => Some(End::Gone),
        }
    }

    /// Sends an error in the peer's own framing.
    fn protocol_error(&self, why: &str) -> End {
        if self.framing == Framing::WebSocket {
            self.shared.outbox.raw(websocket::protocol_error());
            return End::Goodbye;
        }
        self.shared.outbox.reply(Fault::new(Kind::ParseError, why).reply(NO_ID));
        End::Broken
    }

    /// Stops reading, but answers running calls and serves subscriptions until both have ended.
    async fn serve_on(&mut self) {
        while self.caller.is_busy() || self.shared.has_subscriptions() {
            tokio::select! {
                () = self.caller.one_done(), if self.caller.is_busy() => {}
                () = self.shared.fewer.notified() => {}
                () = self.server.stop.cancelled(), if self.shared.has_subscriptions() => {
                    self.shared.end_subscriptions();
                }
                () = gone(&self.read, &self.shared) => return self.shared.close(),
            }
        }
    }
}

/// Waits until the peer has disconnected: the writer finds it, or the kernel reports both directions as
/// closed. Needed wherever the task does not read, because then nothing else reports it.
async fn gone(read: &OwnedReadHalf, shared: &Shared) {
    tokio::select! {
        () = shared.closed.cancelled() => {}
        () = hung_up(read.as_ref()) => {}
    }
}

async fn hung_up(socket: &UnixStream) {
    const AGAIN: Duration = Duration::from_secs(1);
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
        sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use crate::transport::connection_task::*;

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
