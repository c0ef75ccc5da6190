//! One peer as the methods see it: its identity, whether it is still connected, its subscriptions.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::outbox::Outbox;
use crate::call_order::{CallOrder, Ticket};
use crate::peer_origin::PeerOrigin;
use crate::subscription_sink::SubscriptionSink;
use base::sync::lock;

/// The connection on which a call arrived. A method handler finds it in jsonrpsee's `Extensions` and
/// may keep it for any time.
#[derive(Clone, Debug)]
pub struct Connection {
    shared: Arc<ConnectionState>,
    call: Arc<CallScope>,
}

/// The reason why a subscription was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The connection has the maximum number of subscriptions.
    #[error("this connection already has {limit} subscriptions; end one first")]
    TooMany {
        /// The maximum number of subscriptions of one connection.
        limit: usize,
    },
    /// Notifications cannot reach this caller. It used HTTP POST, or it sent a notification and so
    /// would never learn the subscription's id.
    #[error(
        "a subscription needs a connection that stays open and a call with an id: use newline-delimited JSON, \
             Content-Length framing or WebSocket"
    )]
    CannotNotify,
    /// The connection is closed, or the call was already answered with an error.
    #[error("the connection is closed")]
    Closed,
}

impl Connection {
    /// Number of the connection, unique while the daemon runs.
    pub fn id(&self) -> u64 {
        self.shared.peer.id
    }

    /// User id of the peer, as reported by the kernel.
    pub fn uid(&self) -> u32 {
        self.shared.peer.uid
    }

    /// Process id of the peer when it connected. For display only: do not base a decision on it.
    pub fn pid(&self) -> Option<i32> {
        self.shared.peer.pid
    }

    /// The program that the peer ran when it connected, if the kernel reports it. For display only.
    pub fn exe(&self) -> Option<&Path> {
        self.shared.peer.origin.exe.as_deref()
    }

    /// The reason why the peer counts as a process that a tool has started; `None` if it does not. Determined once,
    /// when the peer connected. Methods must not let such a peer answer permission requests or questions.
    pub fn tool(&self) -> Option<&str> {
        self.shared.peer.origin.tool.as_deref()
    }

    /// Name of the peer: `client-N` until it is given a name.
    pub fn name(&self) -> String {
        lock(&self.shared.name).clone()
    }

    /// Gives the peer a name.
    pub fn set_name(&self, name: String) {
        *lock(&self.shared.name) = name;
    }

    /// Sets whether the peer is an observer. Methods must check this themselves.
    pub fn set_read_only(&self, read_only: bool) {
        self.shared.read_only.store(read_only, Ordering::Relaxed);
    }

    /// Whether the peer is an observer, which may not change anything.
    pub fn is_read_only(&self) -> bool {
        self.shared.read_only.load(Ordering::Relaxed)
    }

    /// Resolves when the connection is closed. A handler with a long wait must stop waiting then: calls
    /// are never cancelled, and a running one keeps the connection's slot.
    pub fn closed(&self) -> WaitForCancellationFutureOwned {
        self.shared.closed.clone().cancelled_owned()
    }

    /// Whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// Opens a subscription and returns its id, unique in the daemon. `pump` is called once the reply
    /// to the running call is queued, so that the client knows the id before the first notification. If
    /// the call fails, `pump` is never called. The future of `pump` runs until it ends by itself, is
    /// unsubscribed, or the connection closes. In the last two cases it is dropped at its current
    /// await.
    ///
    /// # Errors
    /// [`SubscribeError`] says why there can be no further subscription.
    pub fn subscribe<P, F>(&self, pump: P) -> Result<String, SubscribeError>
    where
        P: FnOnce(SubscriptionSink) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        if !self.call.may_subscribe {
            self.call.refused.store(true, Ordering::Relaxed);
            return Err(SubscribeError::CannotNotify);
        }
        let id = format!("sub_{}", uuid::Uuid::now_v7().simple());
        let ended = self.shared.register(&id)?;
        let staged =
            PendingSubscription { id: id.as_str().into(), ended, pump: Box::new(|sink| pump(sink).boxed()) };
        let start_now = {
            let mut state = lock(&self.call.state);
            match &mut *state {
                CallState::Running(waiting) => {
                    waiting.push(staged);
                    None
                }
                CallState::Answered => Some(Some(staged)),
                CallState::Failed => Some(None),
            }
        };
        match start_now {
            None => {}
            Some(Some(staged)) => self.shared.start(staged),
            Some(None) => {
                self.shared.unregister(&id);
                return Err(SubscribeError::Closed);
            }
        }
        Ok(id)
    }

    /// Ends a subscription of this connection. Returns false if this id does not exist.
    pub fn unsubscribe(&self, id: &str) -> bool {
        self.shared.unregister(id)
    }

    /// Resolves when every earlier call of this connection is answered or has let this one pass.
    /// Cancel-safe. Use a timeout, because an earlier call may take long.
    pub async fn wait_turn(&self) {
        self.call.ticket.wait_turn().await;
    }

    /// Lets later calls pass before this one is answered.
    pub fn let_pass(&self) {
        self.call.ticket.let_pass();
    }

    /// The view of one call.
    pub(super) fn for_call(shared: &Arc<ConnectionState>, may_subscribe: bool) -> Self {
        let call = CallScope {
            may_subscribe,
            refused: AtomicBool::new(false),
            ticket: shared.call_order.ticket(),
            state: Mutex::new(CallState::Running(Vec::new())),
        };
        Self { shared: Arc::clone(shared), call: Arc::new(call) }
    }

    /// Called when the call's reply is queued: starts its subscriptions, or discards them if the call
    /// failed.
    pub(super) fn finish_call(&self, succeeded: bool) {
        self.let_pass();
        let next = if succeeded { CallState::Answered } else { CallState::Failed };
        let before = std::mem::replace(&mut *lock(&self.call.state), next);
        let CallState::Running(waiting) = before else { return };
        for staged in waiting {
            if succeeded {
                self.shared.start(staged);
            } else {
                self.shared.unregister(&staged.id);
            }
        }
    }

    /// Whether the call requested a subscription that was refused.
    pub(super) fn was_refused_a_subscription(&self) -> bool {
        self.call.refused.load(Ordering::Relaxed)
    }
}

/// State of one running call.
struct CallScope {
    may_subscribe: bool,
    refused: AtomicBool,
    ticket: Ticket,
    state: Mutex<CallState>,
}

impl fmt::Debug for CallScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallScope").field("may_subscribe", &self.may_subscribe).finish_non_exhaustive()
    }
}

enum CallState {
    Running(Vec<PendingSubscription>),
    Answered,
    Failed,
}

/// A subscription that waits for its call's reply.
struct PendingSubscription {
    id: Arc<str>,
    ended: CancellationToken,
    pump: Box<dyn FnOnce(SubscriptionSink) -> BoxFuture<'static, ()> + Send>,
}

/// Identity of the peer.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub id: u64,
    pub uid: u32,
    pub pid: Option<i32>,
    pub origin: PeerOrigin,
}

/// State that all tasks of one connection share.
#[derive(Debug)]
pub(super) struct ConnectionState {
    pub peer: Peer,
    pub outbox: Arc<Outbox>,
    /// Cancelled when the peer has disconnected.
    pub closed: CancellationToken,
    /// Notified when a subscription ends.
    pub subscription_ended: Notify,
    name: Mutex<String>,
    read_only: AtomicBool,
    call_order: Arc<CallOrder>,
    subscriptions: Mutex<Subscriptions>,
    /// Has its own lock: spawning can drop a task immediately (when the runtime stops), and a dropped
    /// task removes itself from `subscriptions`.
    pumps: Mutex<JoinSet<()>>,
    max_subscriptions: usize,
}

#[derive(Debug, Default)]
struct Subscriptions {
    live: HashMap<Arc<str>, CancellationToken>,
    /// The connection is ending: no further subscriptions.
    is_ending: bool,
}

impl ConnectionState {
    pub(super) fn new(peer: Peer, outbox_bytes: usize, max_subscriptions: usize) -> Self {
        let name = format!("client-{}", peer.id);
        Self {
            peer,
            outbox: Arc::new(Outbox::new(outbox_bytes)),
            closed: CancellationToken::new(),
            subscription_ended: Notify::new(),
            name: Mutex::new(name),
            read_only: AtomicBool::new(false),
            call_order: CallOrder::new(),
            subscriptions: Mutex::default(),
            pumps: Mutex::default(),
            max_subscriptions,
        }
    }

    pub(super) fn has_subscriptions(&self) -> bool {
        !lock(&self.subscriptions).live.is_empty()
    }

    /// Ends all subscriptions and refuses further ones.
    pub(super) fn end_subscriptions(&self) {
        let mut all = lock(&self.subscriptions);
        all.is_ending = true;
        let live = std::mem::take(&mut all.live);
        drop(all);
        for ended in live.into_values() {
            ended.cancel();
        }
        self.subscription_ended.notify_one();
    }

    /// The peer has disconnected: stops writing, ends the subscriptions and wakes every task that waits
    /// for it.
    pub(super) fn close(&self) {
        self.outbox.close();
        self.closed.cancel();
        self.end_subscriptions();
    }

    fn register(&self, id: &str) -> Result<CancellationToken, SubscribeError> {
        let mut all = lock(&self.subscriptions);
        if all.is_ending {
            return Err(SubscribeError::Closed);
        }
        if all.live.len() >= self.max_subscriptions {
            return Err(SubscribeError::TooMany { limit: self.max_subscriptions });
        }
        let ended = self.closed.child_token();
        all.live.insert(id.into(), ended.clone());
        Ok(ended)
    }

    fn unregister(&self, id: &str) -> bool {
        let ended = lock(&self.subscriptions).live.remove(id);
        if let Some(ended) = &ended {
            ended.cancel();
            self.subscription_ended.notify_one();
        }
        ended.is_some()
    }

    fn start(self: &Arc<Self>, staged: PendingSubscription) {
        let PendingSubscription { id, ended, pump } = staged;
        // A subscription that was ended in the meantime has a cancelled token: its pump never runs.
        if ended.is_cancelled() {
            return;
        }
        let sink =
            SubscriptionSink { outbox: Arc::clone(&self.outbox), id: Arc::clone(&id), ended: ended.clone() };
        let registered = RegistrationGuard { shared: Arc::clone(self), id };
        let mut pumps = lock(&self.pumps);
        while pumps.try_join_next().is_some() {}
        pumps.spawn(async move {
            let _registered = registered;
            ended.run_until_cancelled(pump(sink)).await;
        });
    }
}

/// Removes a subscription from the register when its task ends, also after a panic.
struct RegistrationGuard {
    shared: Arc<ConnectionState>,
    id: Arc<str>,
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        self.shared.unregister(&self.id);
    }
}
