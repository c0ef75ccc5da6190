//! A model server that needs little CPU: it sends Anthropic's stream, mostly from bytes that exist before the request.
//! It runs on a thread of this process, so that times at both ends come from one clock.

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
use super::wire::{
    Chunks, LAST_CHUNK, RESPONSE_HEAD, closing_events, create_answer, delta_event, opening_events,
    push_chunk, stamped_delta_event,
};

/// Maximum wait for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The answer to a request.
#[derive(Clone)]
pub enum Script {
    /// These bytes without pauses.
    Immediate(Arc<[u8]>),
    /// These bytes after a delay.
    Delayed(Duration, Arc<[u8]>),
    /// `answer` for the `remaining` requests, then `last`.
    Repeated { remaining: Arc<AtomicU32>, answer: Arc<[u8]>, last: Arc<[u8]> },
    /// These pieces for the `remaining` requests, each piece after a pause; then `last`.
    Pieces { remaining: Arc<AtomicU32>, pieces: Arc<[Arc<[u8]>]>, pause: Duration, last: Arc<[u8]> },
    /// This number of deltas, one at each tick and in a chunk of its own. The server stores when it sent each.
    Paced { deltas: usize, every: Duration },
    /// The same for many answers at the same time: the text of each delta contains the time at which it was sent.
    Stamped { deltas: usize, every: Duration, padding: usize },
    /// Nothing until the other side closes the connection.
    Hang,
}

struct Shared {
    script: Mutex<Script>,
    /// Scripts of the models that have their own, by name.
    named: Mutex<HashMap<String, Script>>,
    /// Number of stamped answers so far, so that they do not all tick at the same time.
    started_answers: AtomicU32,
    /// Times at which the deltas of the last paced answer were sent.
    sent_times: Mutex<Vec<Instant>>,
}

/// The server; dropping it stops it.
pub struct ModelServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    arrivals: Receiver<Instant>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    pub fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let script = Mutex::new(Script::Immediate(create_answer(1, Chunks::Large)));
        let shared = Arc::new(Shared {
            script,
            named: Mutex::default(),
            started_answers: AtomicU32::new(0),
            sent_times: Mutex::default(),
        });
        let (arrived, arrivals) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("model".into()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = stopped => {}
                    result = accept_connections(listener, serving, arrived) => {
                        eprintln!("load: the model server ended: {result:?}");
                    }
                }
            });
        })?;
        Ok(Self { address, shared, arrivals, stop: Some(stop), thread: Some(thread) })
    }

    /// Sets the answer to the following requests.
    pub fn set_script(&self, script: Script) {
        *lock(&self.shared.script) = script;
    }

    /// Sets the answer of this model only.
    pub fn set_script_for(&self, name: &str, script: Script) {
        lock(&self.shared.named).insert(name.to_owned(), script);
    }

    /// Waits for the next request. Returns when it had arrived completely.
    pub fn wait_for_request(&self) -> Outcome<Instant> {
        Ok(self.arrivals.recv_timeout(REQUEST_TIMEOUT)?)
    }

    /// Waits for this time.
    pub fn pause(&self, time: Duration) {
        std::thread::park_timeout(time);
    }

    /// Discards the arrivals of earlier requests.
    pub fn discard_arrivals(&self) {
        while self.arrivals.try_recv().is_ok() {}
    }

    /// Times at which the deltas of the last paced answer were sent.
    pub fn sent_times(&self) -> Vec<Instant> {
        lock(&self.shared.sent_times).clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept_connections(
    listener: TcpListener,
    shared: Arc<Shared>,
    arrived: Sender<Instant>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (socket, _) = listener.accept().await?;
        // Errors are ignored, because the other side may close the connection during an answer.
        tokio::spawn(serve_connection(socket, Arc::clone(&shared), arrived.clone()));
    }
}

/// Answers the requests of one connection in order.
async fn serve_connection(
    mut socket: TcpStream,
    shared: Arc<Shared>,
    arrived: Sender<Instant>,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(64 << 10);
    loop {
        let length = loop {
            match request_length(&buffer) {
                Some(length) if buffer.len() >= length => break length,
                _ => {}
            }
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let now = Instant::now();
        let named =
            requested_model(&buffer[..length]).and_then(|name| lock(&shared.named).get(name).cloned());
        let script = named.unwrap_or_else(|| lock(&shared.script).clone());
        buffer.drain(..length);
        let _ = arrived.send(now);
        match script {
            Script::Immediate(bytes) => socket.write_all(&bytes).await?,
            Script::Delayed(after, bytes) => {
                tokio::time::sleep(after).await;
                socket.write_all(&bytes).await?;
            }
            Script::Repeated { remaining, answer, last } => {
                let more = remaining
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |remaining| remaining.checked_sub(1));
                socket.write_all(if more.is_ok() { &answer } else { &last }).await?;
            }
            Script::Pieces { remaining, pieces, pause, last } => {
                if remaining
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |remaining| remaining.checked_sub(1))
                    .is_err()
                {
                    socket.write_all(&last).await?;
                    continue;
                }
                for piece in pieces.iter() {
                    tokio::time::sleep(pause).await;
                    socket.write_all(piece).await?;
                }
            }
            Script::Paced { deltas, every } => send_paced_answer(&mut socket, &shared, deltas, every).await?,
            Script::Stamped { deltas, every, padding } => {
                send_stamped_answer(&mut socket, &shared, deltas, every, padding).await?;
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

/// Length of head and body, if the head is complete.
fn request_length(buffer: &[u8]) -> Option<usize> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(head) = request.parse(buffer).ok()? else { return None };
    let length = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"))?;
    Some(head + std::str::from_utf8(length.value).ok()?.parse::<usize>().ok()?)
}

/// The model that a request names.
fn requested_model(request: &[u8]) -> Option<&str> {
    const MARK: &[u8] = b"\"model\":\"";
    let at = request.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let length = request[at..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&request[at..at + length]).ok()
}

async fn send_stamped_answer(
    socket: &mut TcpStream,
    shared: &Shared,
    deltas: usize,
    every: Duration,
    padding: usize,
) -> io::Result<()> {
    let mut bytes = RESPONSE_HEAD.to_vec();
    push_chunk(&mut bytes, &opening_events());
    socket.write_all(&bytes).await?;
    // A prime step spreads the answers over the time between two ticks.
    let number = shared.started_answers.fetch_add(7_919, Ordering::Relaxed);
    let offset = number % u32::try_from(every.as_micros()).unwrap_or(u32::MAX).max(1);
    let first = tokio::time::Instant::now() + Duration::from_micros(offset.into());
    let mut tick = interval_at(first, every);
    // Late ticks follow immediately, so that the number of deltas per second is correct.
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for _ in 0..deltas {
        tick.tick().await;
        bytes.clear();
        push_chunk(&mut bytes, stamped_delta_event(padding).as_bytes());
        socket.write_all(&bytes).await?;
    }
    tick.tick().await;
    bytes.clear();
    push_chunk(&mut bytes, closing_events().as_bytes());
    bytes.extend_from_slice(LAST_CHUNK);
    socket.write_all(&bytes).await
}

async fn send_paced_answer(
    socket: &mut TcpStream,
    shared: &Shared,
    deltas: usize,
    every: Duration,
) -> io::Result<()> {
    lock(&shared.sent_times).clear();
    let mut start = RESPONSE_HEAD.to_vec();
    push_chunk(&mut start, &opening_events());
    socket.write_all(&start).await?;
    let mut tick = interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is now.
    tick.tick().await;
    for number in 0..deltas {
        let mut bytes = Vec::new();
        push_chunk(&mut bytes, delta_event(number).as_bytes());
        tick.tick().await;
        lock(&shared.sent_times).push(Instant::now());
        socket.write_all(&bytes).await?;
    }
    tick.tick().await;
    let mut end = Vec::new();
    push_chunk(&mut end, closing_events().as_bytes());
    end.extend_from_slice(LAST_CHUNK);
    socket.write_all(&end).await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
