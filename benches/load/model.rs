//! A model server that costs next to nothing: Anthropic's stream from bytes that were made before.
//! It runs on a thread of its own, so that times at both ends come from one clock.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, interval_at};

use super::Outcome;
use super::wire::{Chunks, HEAD, LAST_CHUNK, answer, chunk, delta, ending, opening, stamped};

/// How long anybody waits for anything.
const SOON: Duration = Duration::from_secs(30);

/// What the next request is answered with.
#[derive(Clone)]
pub enum Script {
    /// These bytes, as fast as they are read.
    AtOnce(Arc<[u8]>),
    /// These bytes, after a while.
    Later(Duration, Arc<[u8]>),
    /// So many times the first, then the second.
    Rounds { left: Arc<AtomicU32>, again: Arc<[u8]>, last: Arc<[u8]> },
    /// The first request gets these pieces, each after a pause; later requests get `last`.
    Pieces { left: Arc<AtomicU32>, pieces: Arc<[Arc<[u8]>]>, pause: Duration, last: Arc<[u8]> },
    /// So many deltas, one at each tick, each in a chunk of its own; when each was sent is noted.
    Paced { deltas: usize, every: Duration },
    /// The same for many answers at once: each delta says itself when it was sent.
    Stamped { deltas: usize, every: Duration, padding: usize },
    /// Nothing at all, until the other side leaves.
    Hang,
}

struct Shared {
    script: Mutex<Script>,
    /// Scripts of the models that have one of their own, by name.
    named: Mutex<HashMap<String, Script>>,
    /// Stamped answers begun so far: they must not all tick at once.
    begun: AtomicU32,
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
        let shared = Arc::new(Shared {
            script,
            named: Mutex::default(),
            begun: AtomicU32::new(0),
            sent: Mutex::default(),
        });
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

    /// Chooses what this model answers, whatever the others do.
    pub fn play_for(&self, name: &str, script: Script) {
        lock(&self.shared.named).insert(name.to_owned(), script);
    }

    /// When the oldest request not asked for yet had arrived whole.
    pub fn arrival(&self) -> Outcome<Instant> {
        Ok(self.arrivals.recv_timeout(SOON)?)
    }

    /// Lets time pass.
    pub fn pause(&self, time: Duration) {
        std::thread::park_timeout(time);
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
        let named = model_in(&buffer[..whole]).and_then(|name| lock(&shared.named).get(name).cloned());
        let script = named.unwrap_or_else(|| lock(&shared.script).clone());
        buffer.drain(..whole);
        let _ = arrived.send(now);
        match script {
            Script::AtOnce(bytes) => socket.write_all(&bytes).await?,
            Script::Later(after, bytes) => {
                tokio::time::sleep(after).await;
                socket.write_all(&bytes).await?;
            }
            Script::Rounds { left, again, last } => {
                let more = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                socket.write_all(if more.is_ok() { &again } else { &last }).await?;
            }
            Script::Pieces { left, pieces, pause, last } => {
                if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err()
                {
                    socket.write_all(&last).await?;
                    continue;
                }
                for piece in pieces.iter() {
                    tokio::time::sleep(pause).await;
                    socket.write_all(piece).await?;
                }
            }
            Script::Paced { deltas, every } => paced(&mut socket, &shared, deltas, every).await?,
            Script::Stamped { deltas, every, padding } => {
                stream(&mut socket, &shared, deltas, every, padding).await?;
            }
            Script::Hang => {
                while socket.read_buf(&mut buffer).await? > 0 {
                    buffer.clear();
                }
                return Ok(());
            }
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

/// The model that a request names.
fn model_in(request: &[u8]) -> Option<&str> {
    const MARK: &[u8] = b"\"model\":\"";
    let at = request.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let length = request[at..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&request[at..at + length]).ok()
}

async fn stream(
    socket: &mut TcpStream,
    shared: &Shared,
    deltas: usize,
    every: Duration,
    padding: usize,
) -> io::Result<()> {
    let mut bytes = HEAD.to_vec();
    chunk(&mut bytes, &opening());
    socket.write_all(&bytes).await?;
    // A prime step spreads the answers over the time between two ticks.
    let begun = shared.begun.fetch_add(7_919, Ordering::Relaxed);
    let offset = begun % u32::try_from(every.as_micros()).unwrap_or(u32::MAX).max(1);
    let first = tokio::time::Instant::now() + Duration::from_micros(offset.into());
    let mut tick = interval_at(first, every);
    // Late ticks come at once: so many deltas a second are promised.
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for _ in 0..deltas {
        tick.tick().await;
        bytes.clear();
        chunk(&mut bytes, stamped(padding).as_bytes());
        socket.write_all(&bytes).await?;
    }
    tick.tick().await;
    bytes.clear();
    chunk(&mut bytes, ending().as_bytes());
    bytes.extend_from_slice(LAST_CHUNK);
    socket.write_all(&bytes).await
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
    chunk(&mut end, ending().as_bytes());
    end.extend_from_slice(LAST_CHUNK);
    socket.write_all(&end).await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
