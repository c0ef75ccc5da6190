//! A model server that costs next to nothing: Anthropic's stream from bytes that were made before.
//! It runs on a thread of its own, so that times at both ends come from one clock.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};

use super::Outcome;

/// Every delta says its number with so many digits: its text is its identity.
pub const DIGITS: usize = 5;
/// Deltas are numbered up to here, then from 0 again.
const NUMBERS: usize = 100_000;
/// How long anybody waits for anything.
const SOON: Duration = Duration::from_secs(30);

/// What the next request is answered with.
#[derive(Clone)]
pub enum Script {
    /// These bytes, as fast as they are read.
    AtOnce(Arc<[u8]>),
    /// So many deltas, one at each tick, each in a chunk of its own; when each was sent is noted.
    Paced { deltas: usize, every: Duration },
}

struct Shared {
    script: Mutex<Script>,
    /// When delta 0, 1, 2 … of the last paced answer was sent.
    sent: Mutex<Vec<Instant>>,
}

/// The server; dropping it stops it.
pub struct Model {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    arrivals: Receiver<Instant>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    pub fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let script = Mutex::new(Script::AtOnce(answer(1, Chunks::Large)));
        let shared = Arc::new(Shared { script, sent: Mutex::default() });
        let (arrived, arrivals) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("model".into()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = stopped => {}
                    result = accept(listener, serving, arrived) => {
                        eprintln!("load: the model server ended: {result:?}");
                    }
                }
            });
        })?;
        Ok(Self { address, shared, arrivals, stop: Some(stop), thread: Some(thread) })
    }

    /// Chooses the answer to the requests that follow.
    pub fn play(&self, script: Script) {
        *lock(&self.shared.script) = script;
    }

    /// When the oldest request not asked for yet had arrived whole.
    pub fn arrival(&self) -> Outcome<Instant> {
        Ok(self.arrivals.recv_timeout(SOON)?)
    }

    /// Forgets arrivals that nobody asked for.
    pub fn forget_arrivals(&self) {
        while self.arrivals.try_recv().is_ok() {}
    }

    /// When each delta of the last paced answer was sent.
    pub fn sent(&self) -> Vec<Instant> {
        lock(&self.shared.sent).clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, arrived: Sender<Instant>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (socket, _) = listener.accept().await?;
        // A client that leaves in the middle is no concern of ours.
        tokio::spawn(serve(socket, Arc::clone(&shared), arrived.clone()));
    }
}

/// Answers the requests of one connection, one after the other.
async fn serve(mut socket: TcpStream, shared: Arc<Shared>, arrived: Sender<Instant>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(64 << 10);
    loop {
        let whole = loop {
            match whole_request(&buffer) {
                Some(length) if buffer.len() >= length => break length,
                _ => {}
            }
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let now = Instant::now();
        buffer.drain(..whole);
        let script = lock(&shared.script).clone();
        let _ = arrived.send(now);
        match script {
            Script::AtOnce(bytes) => socket.write_all(&bytes).await?,
            Script::Paced { deltas, every } => paced(&mut socket, &shared, deltas, every).await?,
        }
    }
}

/// Length of head and body, once the head is there.
fn whole_request(buffer: &[u8]) -> Option<usize> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(head) = request.parse(buffer).ok()? else { return None };
    let length = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"))?;
    Some(head + std::str::from_utf8(length.value).ok()?.parse::<usize>().ok()?)
}

async fn paced(socket: &mut TcpStream, shared: &Shared, deltas: usize, every: Duration) -> io::Result<()> {
    lock(&shared.sent).clear();
    let mut start = HEAD.to_vec();
    chunk(&mut start, &opening());
    socket.write_all(&start).await?;
    let mut tick = interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is now.
    tick.tick().await;
    for number in 0..deltas {
        let mut bytes = Vec::new();
        chunk(&mut bytes, delta(number).as_bytes());
        tick.tick().await;
        lock(&shared.sent).push(Instant::now());
        socket.write_all(&bytes).await?;
    }
    tick.tick().await;
    let mut end = Vec::new();
    chunk(&mut end, ENDING.as_bytes());
    end.extend_from_slice(LAST_CHUNK);
    socket.write_all(&end).await
}

/// How a stream is cut into HTTP chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// 16 KiB, as a fast server or a proxy sends them.
    Large,
    /// One event each, as a server that flushes sends them.
    Single,
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const ENDING: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\
    \"stop_sequence\":null},\"usage\":{\"output_tokens\":5}}\n\n\
    event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
/// Events of an answer that carry no text.
pub const OTHER_EVENTS: usize = 5;

/// A whole answer of so many deltas.
pub fn answer(deltas: usize, chunks: Chunks) -> Arc<[u8]> {
    const LARGE: usize = 16 << 10;
    let mut bytes = HEAD.to_vec();
    chunk(&mut bytes, &opening());
    let mut waiting = Vec::new();
    for number in 0..deltas {
        waiting.extend_from_slice(delta(number).as_bytes());
        if chunks == Chunks::Single || waiting.len() >= LARGE {
            chunk(&mut bytes, &waiting);
            waiting.clear();
        }
    }
    waiting.extend_from_slice(ENDING.as_bytes());
    chunk(&mut bytes, &waiting);
    bytes.extend_from_slice(LAST_CHUNK);
    bytes.into()
}

/// The text of such an answer.
pub fn text(deltas: usize) -> String {
    (0..deltas).map(word).collect()
}

/// The text of one delta.
fn word(number: usize) -> String {
    format!("{:0DIGITS$}", number % NUMBERS)
}

fn delta(number: usize) -> String {
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
         \"delta\":{{\"type\":\"text_delta\",\"text\":\"{}\"}}}}\n\n",
        word(number)
    )
}

fn opening() -> Vec<u8> {
    b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\
      \"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\
      \"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n\
      event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
      \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
        .to_vec()
}

fn chunk(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    into.extend_from_slice(bytes);
    into.extend_from_slice(b"\r\n");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
