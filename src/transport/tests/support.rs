//! A served socket with a few methods, and a minimal client.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jsonrpsee::types::{ErrorObject, ErrorObjectOwned};
use jsonrpsee::{Extensions, RpcModule};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::ndjson::{DecodedLine, LineReader};
use super::super::{Connection, Limits, RunningServer, SubscriptionSink, bind, serve};

/// The deadline of every wait.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Waits with a deadline.
pub async fn with_deadline<F: Future>(what: &str, future: F) -> F::Output {
    match timeout(WAIT_TIMEOUT, future).await {
        Ok(output) => output,
        Err(_) => panic!("waited too long for {what}"),
    }
}

/// Waits until a condition is true.
pub async fn until(what: &str, fact: impl Fn() -> bool) {
    with_deadline(what, async {
        while !fact() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Counters and gates that the methods share with the tests.
#[derive(Default)]
pub struct Record {
    /// Number of started calls of `wait`.
    pub started_calls: AtomicUsize,
    /// Number of ended calls of `wait`.
    pub ended: AtomicUsize,
    /// Number of notifications that `flood`s have queued.
    pub sent: AtomicUsize,
    /// Number of living pumps.
    pub pumps: AtomicUsize,
    /// `wait` continues once for each permit.
    pub gate: Gate,
}

pub struct Gate(pub Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

pub struct ServerFixture {
    pub record: Arc<Record>,
    pub path: PathBuf,
    pub stop: CancellationToken,
    pub serving: RunningServer,
    _folder: tempfile::TempDir,
}

impl ServerFixture {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/agentd.sock");
        let stop = CancellationToken::new();
        let record = Arc::new(Record::default());
        let methods = methods(Arc::clone(&record));
        let serving = serve(bind(&path).unwrap(), methods, limits, stop.clone());
        Self { record, path, stop, serving, _folder: folder }
    }

    pub async fn connect(&self) -> Client {
        Client::new(self.raw().await)
    }

    pub async fn raw(&self) -> UnixStream {
        with_deadline("a connection", UnixStream::connect(&self.path)).await.unwrap()
    }

    /// Sends bytes, closes the writing side, and reads everything that comes back.
    pub async fn exchange(&self, bytes: &[u8]) -> String {
        let mut socket = self.raw().await;
        with_deadline("sending", socket.write_all(bytes)).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut answer = vec![];
        with_deadline("the answer and its end", socket.read_to_end(&mut answer)).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// Same as `exchange`, with the answer as lines of JSON.
    pub async fn lines(&self, bytes: impl AsRef<[u8]>) -> Vec<Value> {
        let answer = self.exchange(bytes.as_ref()).await;
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A client with newline-delimited JSON.
pub struct Client {
    pub read: LineReader<OwnedReadHalf>,
    pub write: OwnedWriteHalf,
}

impl Client {
    pub fn new(socket: UnixStream) -> Self {
        let (read, write) = socket.into_split();
        Self { read: LineReader::new(read, 64 << 20), write }
    }

    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        with_deadline("sending", self.write.write_all(text.as_ref())).await.unwrap();
    }

    /// The next line; `Null` at the end.
    pub async fn next(&mut self) -> Value {
        match with_deadline("a line", self.read.next()).await.unwrap() {
            Some(DecodedLine::Whole(line)) => serde_json::from_slice(&line).unwrap(),
            Some(DecodedLine::TooLong) => panic!("a line over the client's own limit"),
            None => Value::Null,
        }
    }

    /// Sends one call without waiting for its reply.
    pub async fn begin(&mut self, id: u32, method: &str, params: Value) {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(format!("{call}\n")).await;
    }

    /// Sends one call and returns the next line as its reply.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.begin(1, method, params).await;
        self.next().await
    }
}

fn peer(extensions: &Extensions) -> Connection {
    extensions.get::<Connection>().unwrap().clone()
}

/// Counts living pumps.
struct PumpGuard(Arc<Record>);

impl PumpGuard {
    fn new(record: &Arc<Record>) -> Self {
        record.pumps.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(record))
    }
}

impl Drop for PumpGuard {
    fn drop(&mut self) {
        self.0.pumps.fetch_sub(1, Ordering::SeqCst);
    }
}

fn refused(e: impl std::fmt::Display) -> ErrorObjectOwned {
    ErrorObject::owned(-32001, e.to_string(), None::<()>)
}

fn methods(record: Arc<Record>) -> RpcModule<Record> {
    type Answer = Result<Value, ErrorObjectOwned>;
    let mut module = RpcModule::from_arc(record);
    module
        .register_method("echo", |params, _, _| -> Answer {
            Ok(params.as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap()))
        })
        .unwrap();
    module
        .register_async_method("wait", |params, record, _| async move {
            record.started_calls.fetch_add(1, Ordering::SeqCst);
            record.gate.0.acquire().await.unwrap().forget();
            record.ended.fetch_add(1, Ordering::SeqCst);
            Answer::Ok(params.as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap()))
        })
        .unwrap();
    module
        .register_async_method("until_closed", |_, record, extensions| async move {
            record.started_calls.fetch_add(1, Ordering::SeqCst);
            peer(&extensions).closed().await;
            record.ended.fetch_add(1, Ordering::SeqCst);
            true
        })
        .unwrap();
    module
        .register_async_method("later", |params, _, _| async move {
            tokio::task::yield_now().await;
            params.parse::<Value>()
        })
        .unwrap();
    module.register_method("panic", |_, _, _| -> Answer { panic!("on purpose") }).unwrap();
    module
        .register_async_method("panic_later", |_, _, _| async {
            tokio::task::yield_now().await;
            if true {
                panic!("on purpose");
            }
        })
        .unwrap();
    module
        .register_method("typed", |params, _, _| -> Result<u32, ErrorObjectOwned> { params.one::<u32>() })
        .unwrap();
    module
        .register_method("settled", |_, _, _| -> Answer {
            let data = json!({"kind": "not_pending", "retryable": false, "by": "client-1"});
            Err(ErrorObject::owned(-32014, "already answered", Some(data)))
        })
        .unwrap();
    module
        .register_method("big", |params, _, _| -> Result<String, ErrorObjectOwned> {
            Ok("x".repeat(params.one::<usize>()?))
        })
        .unwrap();
    module
        .register_method("who", |_, _, extensions| -> Answer {
            let peer = peer(extensions);
            Ok(json!({"id": peer.id(), "uid": peer.uid(), "pid": peer.pid(), "name": peer.name()}))
        })
        .unwrap();
    module
        .register_method("name", |params, _, extensions| -> Result<(), ErrorObjectOwned> {
            peer(extensions).set_name(params.one()?);
            Ok(())
        })
        .unwrap();
    subscriptions(&mut module);
    module
}

fn subscriptions(module: &mut RpcModule<Record>) {
    type Answer = Result<String, ErrorObjectOwned>;
    // `count` with `[COUNT]` sends this many events, one at a time.
    module
        .register_async_method("count", |params, record, extensions| async move {
            let count: usize = params.one()?;
            let pump = move |sink: SubscriptionSink| async move {
                let _alive = PumpGuard::new(&record);
                for n in 0..count {
                    let Ok(room) = sink.reserve(64).await else { return };
                    if room.publish("event", vec![n.to_string()]).is_err() {
                        return;
                    }
                }
            };
            peer(&extensions).subscribe(pump).map_err(refused) as Answer
        })
        .unwrap();
    // `flood` with `[BYTES]` sends notifications of this many bytes without end.
    module
        .register_async_method("flood", |params, record, extensions| async move {
            let filler: Arc<str> = format!(r#"{{"filler":"{}"}}"#, "x".repeat(params.one()?)).into();
            let pump = move |sink: SubscriptionSink| async move {
                let _alive = PumpGuard::new(&record);
                while sink.send(vec![Arc::clone(&filler); 8]).await.is_ok() {
                    record.sent.fetch_add(8, Ordering::SeqCst);
                }
            };
            peer(&extensions).subscribe(pump).map_err(refused) as Answer
        })
        .unwrap();
    module
        .register_method("count_then_fail", |_, _, extensions| -> Answer {
            peer(extensions)
                .subscribe(|sink| async move {
                    let _ = sink.send(vec!["\"must not be seen\"".to_owned()]).await;
                })
                .map_err(refused)?;
            Err(refused("on second thoughts"))
        })
        .unwrap();
    module
        .register_method("panicking_pump", |_, _, extensions| -> Answer {
            peer(extensions).subscribe(|_| async { panic!("on purpose") }).map_err(refused)
        })
        .unwrap();
    module
        .register_method("unsubscribe", |params, _, extensions| -> Result<bool, ErrorObjectOwned> {
            Ok(peer(extensions).unsubscribe(&params.one::<String>()?))
        })
        .unwrap();
}
