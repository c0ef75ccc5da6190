//! A typed client over the socket, for `agentctl`, editors written in Rust, and tests.
//!
//! Calls share one connection and may be made from many tasks at once. Each subscription has its own
//! connection, which is read only when the caller asks for the next event. So a slow reader delays only its
//! own subscription, and never delays a reply to a call. The daemon keeps a cursor, and neither side buffers
//! events without bound.

use api::methods;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::connection::events::Events;
use crate::connection::knowledge_events::KnowledgeEvents;
use crate::connection::versions;
pub use crate::connection::wire::CallError;
use crate::connection::wire::{Carrier, DaemonAddress, DaemonStream, Lines, Message, dial, parse, request};
use api::fault::WireFault;
use api::params::{ClientRole, HelloParams, HelloReply, Include, KnowledgeWorkParams};
use api::{ApiMethod, PROTOCOL_VERSION};
use base::sync::lock;
use types::ids::{Seq, SessionId};

type CallOutcome = Result<Box<RawValue>, WireFault>;
type ReplySenders = HashMap<u64, oneshot::Sender<CallOutcome>>;

/// Calls that wait for a reply, by their ids; `None` once the connection has ended.
type PendingCalls = Arc<Mutex<Option<ReplySenders>>>;

/// Removes a pending call whose caller has stopped waiting.
struct PendingGuard<'a> {
    pending: &'a PendingCalls,
    id: u64,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        if let Some(calls) = lock(self.pending).as_mut() {
            calls.remove(&self.id);
        }
    }
}

struct ClientInner {
    /// The address for further connections.
    address: DaemonAddress,
    /// A connection that is being made for the next subscription, if one is expected.
    prepared: Mutex<Option<DaemonStream>>,
    greeting: HelloParams,
    hello: HelloReply,
    line: CallChannel,
    _carrier: Carrier,
    /// Tasks of the reader and the writer. They end with the last handle.
    _tasks: JoinSet<()>,
}

struct CallChannel {
    pending: PendingCalls,
    out: mpsc::Sender<String>,
    next_id: AtomicU64,
}

/// A connection for calls. Clones share it; it closes when the last clone is dropped.
#[derive(Clone)]
pub struct Client(Arc<ClientInner>);

impl Client {
    /// Connects to the daemon behind the socket `path` and sends `daemon.hello` with `name`.
    ///
    /// # Errors
    /// No daemon listens there, or it refuses the protocol version.
    pub async fn connect(path: impl AsRef<Path>, name: &str) -> Result<Self, CallError> {
        Self::connect_as(path, name, ClientRole::Controller).await
    }

    /// Connects in another role.
    ///
    /// # Errors
    /// As [`Client::connect`]; also if the client may not have the role.
    pub async fn connect_as(path: impl AsRef<Path>, name: &str, role: ClientRole) -> Result<Self, CallError> {
        Self::connect_to(&DaemonAddress::Socket(path.as_ref().to_path_buf()), name, role).await
    }

    /// Connects to a daemon on any machine.
    ///
    /// # Errors
    /// As [`Client::connect_as`].
    pub(crate) async fn connect_to(
        address: &DaemonAddress,
        name: &str,
        role: ClientRole,
    ) -> Result<Self, CallError> {
        let DaemonStream { read, write, mut carrier } = dial(address).await?;
        let pending = Arc::new(Mutex::new(Some(HashMap::new())));
        let (out, requests) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        tasks.spawn(write_all(write, requests));
        tasks.spawn(read_replies(read, pending.clone()));
        let line = CallChannel { pending, out, next_id: AtomicU64::new(1) };
        let greeting = greeting(name, role);
        let hello = line.call::<HelloReply>(methods::daemon::Hello::METHOD.name, &greeting);
        let hello = carrier.greet(hello).await?;
        let (address, prepared) = (address.again(), Mutex::default());
        Ok(Self(Arc::new(ClientInner {
            address,
            prepared,
            greeting,
            hello,
            line,
            _carrier: carrier,
            _tasks: tasks,
        })))
    }

    /// The daemon's reply to `daemon.hello`.
    #[must_use]
    pub fn hello(&self) -> &HelloReply {
        &self.0.hello
    }

    /// Path of the connection's socket; `None` for a daemon on another machine.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match &self.0.address {
            DaemonAddress::Socket(path) => Some(path),
            DaemonAddress::Ssh(_) => None,
        }
    }

    /// Begins to connect for a subscription that follows, if that takes time. The connection is made while this client
    /// makes other calls.
    pub(crate) fn prepare_subscription(&self) {
        let DaemonAddress::Ssh(route) = &self.0.address else { return };
        // If this fails, the subscription tries again and reports the reason.
        let stream = DaemonStream::over_ssh(route).ok();
        *lock(&self.0.prepared) = stream;
    }

    /// A connection for a subscription.
    pub(crate) async fn subscription_stream(&self) -> Result<DaemonStream, CallError> {
        let prepared = lock(&self.0.prepared).take();
        match prepared {
            Some(stream) => Ok(stream),
            None => dial(&self.0.address).await,
        }
    }

    /// The `daemon.hello` of the connection.
    pub(crate) fn greeting(&self) -> &HelloParams {
        &self.0.greeting
    }

    /// Whether the connection has ended; every further call then fails with [`CallError::Closed`].
    #[must_use]
    pub fn is_closed(&self) -> bool {
        lock(&self.0.line.pending).is_none()
    }

    /// Calls a method and waits for its reply, without a deadline. Dropping the future discards the
    /// reply, but does not undo the call.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn call<M: ApiMethod>(&self, params: &M::Params) -> Result<M::Reply, CallError> {
        self.call_as::<M, M::Reply>(params).await
    }

    /// Calls a method, but writes the parameters or reads the reply as another type with the same serialised form, for
    /// example as JSON that is passed on.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn call_as<M: ApiMethod, Reply: DeserializeOwned>(
        &self,
        params: &impl Serialize,
    ) -> Result<Reply, CallError> {
        let error = match self.0.line.call(M::METHOD.name, params).await {
            Err(error) => error,
            reply => return reply,
        };
        let daemon_version = &self.0.hello.version;
        Err(match error {
            CallError::Fault(mut fault) => {
                versions::note_version(&mut fault, daemon_version);
                CallError::Fault(fault)
            }
            CallError::Unreadable(text) => {
                CallError::Unreadable(format!("{text}; {}", versions::which_to_update(daemon_version)))
            }
            other => other,
        })
    }

    /// Calls a method by its name, with JSON that the caller wrote.
    ///
    /// # Errors
    /// See [`CallError`].
    pub(crate) async fn call_named(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.0.line.call(method, params).await
    }

    /// Subscribes to a session's events after `after_seq` (0: from its beginning), on a separate
    /// connection.
    ///
    /// # Errors
    /// See [`CallError`]; the daemon refuses unknown sessions and cursors ahead of the journal.
    pub async fn subscribe(&self, session: SessionId, after_seq: Seq) -> Result<Events, CallError> {
        self.subscribe_to(session, after_seq, Include::default()).await
    }

    /// Subscribes to a part of the events.
    ///
    /// # Errors
    /// See [`Client::subscribe`].
    pub async fn subscribe_to(
        &self,
        session: SessionId,
        after_seq: Seq,
        include: Include,
    ) -> Result<Events, CallError> {
        let stream = self.subscription_stream().await?;
        Events::open(stream, &self.0.greeting, session, after_seq, include).await
    }

    /// Follows an index job or a query on a separate connection.
    ///
    /// # Errors
    /// See [`CallError`]; the daemon refuses unknown jobs and queries.
    pub(crate) async fn follow_knowledge(
        &self,
        work: &KnowledgeWorkParams,
    ) -> Result<KnowledgeEvents, CallError> {
        let stream = self.subscription_stream().await?;
        KnowledgeEvents::open(stream, &self.0.greeting, work).await
    }
}

impl CallChannel {
    async fn call<Reply: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Reply, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let request = request(id, method, params)?;
        let (reply_sender, reply) = oneshot::channel();
        match lock(&self.pending).as_mut() {
            Some(calls) => calls.insert(id, reply_sender),
            None => return Err(CallError::Closed),
        };
        let _waiting = PendingGuard { pending: &self.pending, id };
        self.out.send(request).await.map_err(|_| CallError::Closed)?;
        let outcome = reply.await.map_err(|_| CallError::Closed)?;
        let raw = outcome.map_err(CallError::Fault)?;
        serde_json::from_str(raw.get())
            .map_err(|error| CallError::Unreadable(format!("could not read the reply of {method} ({error})")))
    }
}

fn greeting(name: &str, role: ClientRole) -> HelloParams {
    HelloParams { protocol_version: Some(PROTOCOL_VERSION), name: Some(name.into()), role: Some(role) }
}

async fn write_all(mut socket: OwnedWriteHalf, mut requests: mpsc::Receiver<String>) {
    while let Some(request) = requests.recv().await {
        if socket.write_all(request.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_replies(socket: OwnedReadHalf, pending: PendingCalls) {
    let mut lines = Lines::new(socket);
    while let Ok(Some(line)) = lines.next().await {
        let Some(Message::Reply { id: Some(id), outcome }) = parse(&line) else { continue };
        let caller = lock(&pending).as_mut().and_then(|calls| calls.remove(&id));
        if let Some(caller) = caller {
            // The caller may have stopped waiting meanwhile.
            let _ = caller.send(outcome);
        }
    }
    // Dropping the senders wakes every waiting caller.
    lock(&pending).take();
}

#[cfg(test)]
mod tests;
