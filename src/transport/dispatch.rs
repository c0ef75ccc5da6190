//! From messages to methods: runs the calls of one connection concurrently and queues their replies.
//!
//! A running call is never cut off, even if its peer disconnects or cancels it (`$/cancelRequest`), because a
//! call must not leave its work half done. The reply of such a call is discarded.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use jsonrpsee::types::{Id, Params};
use jsonrpsee::{ConnectionId, Extensions, MethodCallback, MethodResponse};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, ConnectionState, SubscribeError};
use super::envelope::{self, Call, Element, InvalidCall, Message};
use super::reply::{self, Fault, Kind};
use super::server_state::ServerState;
use base::sync::lock;

/// The notification that cancels a running call, as editors send it.
const CANCEL: &str = "$/cancelRequest";

/// Parameters of [`CANCEL`].
#[derive(serde::Deserialize)]
struct CancelParams<'a> {
    /// The id of the call, as it was sent.
    #[serde(borrow)]
    id: &'a serde_json::value::RawValue,
}

/// Unit in which the bytes of running calls are counted.
const WEIGHT_UNIT: usize = 1 << 10;

/// The calls of one connection.
pub(super) struct CallDispatcher {
    server: Arc<ServerState>,
    shared: Arc<ConnectionState>,
    /// Whether notifications can reach the peer.
    may_subscribe: bool,
    running: JoinSet<()>,
    /// Running calls by their id as received, for `$/cancelRequest`.
    cancels: Arc<Mutex<HashMap<Box<str>, CancellationToken>>>,
    slots: Arc<Semaphore>,
    weight: Arc<Semaphore>,
    heaviest: u32,
}

/// The right to run one message's calls.
pub(super) struct CallSlot {
    _weight: OwnedSemaphorePermit,
    _slots: OwnedSemaphorePermit,
    _more: Option<OwnedSemaphorePermit>,
}

/// Result of a call.
struct CallAnswer {
    /// `None` for a notification, which is never answered.
    reply: Option<(Box<str>, Vec<u8>)>,
    /// The call's own view of the connection, if a method ran.
    connection: Option<Connection>,
    succeeded: bool,
}

impl CallAnswer {
    fn refusal(id: Option<&str>, fault: &Fault) -> Self {
        let reply = id.map(|id| (id.into(), fault.reply(id)));
        Self { reply, connection: None, succeeded: false }
    }
}

enum StartedCall {
    Answered(CallAnswer),
    Running(BoxFuture<'static, CallAnswer>),
}

impl CallDispatcher {
    pub(super) fn new(server: Arc<ServerState>, shared: Arc<ConnectionState>, may_subscribe: bool) -> Self {
        let units = server.limits.max_in_flight_bytes.div_ceil(WEIGHT_UNIT);
        let heaviest = units.clamp(1, (u32::MAX >> 3) as usize) as u32;
        let slots = server.limits.max_in_flight.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            server,
            shared,
            may_subscribe,
            running: JoinSet::new(),
            cancels: Arc::default(),
            slots: Arc::new(Semaphore::new(slots)),
            weight: Arc::new(Semaphore::new(heaviest as usize)),
            heaviest,
        }
    }

    /// Waits until a message of `bytes` may be accepted. Cancel-safe.
    pub(super) async fn reserve_slot(&self, bytes: usize) -> CallSlot {
        let units = u32::try_from(bytes / WEIGHT_UNIT + 1).unwrap_or(u32::MAX).min(self.heaviest);
        let slots = Arc::clone(&self.slots).acquire_owned().await;
        let weight = Arc::clone(&self.weight).acquire_many_owned(units).await;
        match (slots, weight) {
            (Ok(slots), Ok(weight)) => CallSlot { _weight: weight, _slots: slots, _more: None },
            // These semaphores are never closed. If one were, no further call may run.
            _ => std::future::pending().await,
        }
    }

    /// Accepts a message: starts its calls and queues their replies. If the future is dropped while it
    /// waits, no call has started.
    pub(super) async fn accept_message(&mut self, message: &[u8], mut slot: CallSlot) {
        while self.running.try_join_next().is_some() {}
        let limits = &self.server.limits;
        match envelope::read(message, limits.max_batch, limits.max_depth) {
            Message::One(Ok(call)) if call.method == CANCEL => self.cancel(&call),
            Message::One(element) => {
                let id: Option<Box<str>> = element.as_ref().ok().and_then(|call| call.id).map(Into::into);
                match self.begin(element) {
                    StartedCall::Answered(answer) => queue_answer(&self.shared, answer),
                    StartedCall::Running(call) => {
                        let shared = Arc::clone(&self.shared);
                        let cancels = Arc::clone(&self.cancels);
                        let token = CancellationToken::new();
                        // Register the token now, because a cancellation may arrive before the call's task
                        // runs.
                        if let Some(id) = &id {
                            lock(&cancels).insert(id.clone(), token.clone());
                        }
                        self.running.spawn(async move {
                            match id {
                                Some(id) => run_cancellable(&shared, &cancels, (id, token), call).await,
                                None => queue_answer(&shared, call.await),
                            }
                            drop(slot);
                        });
                    }
                }
            }
            Message::Batch(elements) => {
                let most = limits.max_in_flight.max(1);
                let more = elements.len().min(most) - 1;
                if more > 0 {
                    // Only this reader acquires slots, and running calls release theirs.
                    let more = u32::try_from(more).unwrap_or(u32::MAX);
                    slot._more = Arc::clone(&self.slots).acquire_many_owned(more).await.ok();
                }
                let started_calls = elements.into_iter().enumerate().map(|(at, element)| {
                    self.begin(if at < most {
                        element
                    } else {
                        element.and_then(|call| refuse_excess(call, most))
                    })
                });
                self.batch(started_calls.collect(), slot);
            }
        }
    }

    /// Answers a running call as cancelled. The call may still take effect. A call that has been answered, or
    /// is part of a batch, is not cancelled.
    fn cancel(&self, call: &Call<'_>) {
        let params = call.params.and_then(|params| serde_json::from_str::<CancelParams<'_>>(params).ok());
        let fault = match params {
            Some(CancelParams { id }) => {
                if let Some(token) = lock(&self.cancels).get(id.get()) {
                    token.cancel();
                }
                None
            }
            None => Some(Fault::new(Kind::InvalidParams, "id: the id of the call to cancel is missing")),
        };
        // `$/cancelRequest` is a notification. A client that sends it with an id expects a reply, and gets
        // one.
        if let Some(id) = call.id {
            self.shared.outbox.queue_reply(match fault {
                Some(fault) => fault.reply(id),
                None => reply::null_reply(id),
            });
        }
    }

    /// Whether calls are running.
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Waits for the next call to end. Cancel-safe.
    pub(super) async fn wait_next_end(&mut self) {
        self.running.join_next().await;
    }

    fn batch(&mut self, started_calls: Vec<StartedCall>, slot: CallSlot) {
        let shared = Arc::clone(&self.shared);
        let max_response = self.server.limits.max_response_bytes;
        if started_calls.iter().all(|started_call| matches!(started_call, StartedCall::Answered(_))) {
            let answers = started_calls.into_iter().filter_map(|started_call| match started_call {
                StartedCall::Answered(answer) => Some(answer),
                StartedCall::Running(_) => None,
            });
            queue_batch_answer(&shared, answers.collect(), max_response);
            return;
        }
        self.running.spawn(async move {
            let calls = started_calls.into_iter().map(|started_call| async {
                match started_call {
                    StartedCall::Answered(answer) => answer,
                    StartedCall::Running(call) => call.await,
                }
            });
            queue_batch_answer(&shared, join_all(calls).await, max_response);
            drop(slot);
        });
    }

    /// Runs a synchronous method immediately; returns a future for any other.
    fn begin(&self, element: Element<'_>) -> StartedCall {
        let call = match element {
            Ok(call) => call,
            Err(InvalidCall { id, fault }) => {
                return StartedCall::Answered(CallAnswer::refusal(Some(id), &fault));
            }
        };
        let refuse =
            |kind, text: String| StartedCall::Answered(CallAnswer::refusal(call.id, &Fault::new(kind, text)));
        let max_response = self.server.limits.max_response_bytes;
        let connection = Connection::for_call(&self.shared, self.may_subscribe && call.id.is_some());
        let mut extensions = Extensions::new();
        extensions.insert(connection.clone());
        let id: Option<Box<str>> = call.id.map(Into::into);
        match self.server.methods.method(&call.method) {
            Some(MethodCallback::Sync(method)) => {
                let params = Params::new(call.params);
                let run = || method(Id::Null, params, max_response, extensions);
                let response = catch_unwind(AssertUnwindSafe(run)).ok();
                StartedCall::Answered(finish(id, response, connection, max_response))
            }
            Some(MethodCallback::Async(method)) => {
                let method = Arc::clone(method);
                let params = Params::new(call.params).into_owned();
                let number = ConnectionId(usize::try_from(self.shared.peer.id).unwrap_or(usize::MAX));
                StartedCall::Running(Box::pin(async move {
                    let run = async { method(Id::Null, params, number, max_response, extensions).await };
                    let response = AssertUnwindSafe(run).catch_unwind().await.ok();
                    finish(id, response, connection, max_response)
                }))
            }
            Some(MethodCallback::Subscription(_) | MethodCallback::Unsubscription(_)) => refuse(
                Kind::Internal,
                format!(
                    "{} is registered in a way that this daemon does not serve",
                    shorten_name(&call.method)
                ),
            ),
            None => {
                refuse(Kind::MethodNotFound, format!("there is no method {}", shorten_name(&call.method)))
            }
        }
    }
}

/// Runs a call. If the peer cancels it first, it is answered as cancelled, and its own reply is discarded.
async fn run_cancellable(
    shared: &ConnectionState,
    cancels: &Mutex<HashMap<Box<str>, CancellationToken>>,
    (id, token): (Box<str>, CancellationToken),
    mut call: BoxFuture<'static, CallAnswer>,
) {
    let answer = tokio::select! {
        answer = &mut call => answer,
        () = token.cancelled() => {
            let fault = Fault::new(Kind::Cancelled, "the client cancelled this call; it may have taken effect");
            shared.outbox.queue_reply(fault.reply(&id));
            CallAnswer { reply: None, ..call.await }
        }
    };
    lock(cancels).remove(&id);
    queue_answer(shared, answer);
}

/// A batch may have more calls than may run at once; the excess calls get an error.
fn refuse_excess<'a>(call: Call<'a>, most: usize) -> Element<'a> {
    match call.id {
        Some(id) => Err(InvalidCall {
            id,
            fault: Fault::new(
                Kind::Overloaded,
                format!("more than {most} calls at once on this connection; send it again"),
            ),
        }),
        None => Ok(call),
    }
}

fn finish(
    id: Option<Box<str>>,
    response: Option<MethodResponse>,
    connection: Connection,
    max_response: usize,
) -> CallAnswer {
    let succeeded = response.as_ref().is_some_and(MethodResponse::is_success);
    let reply = id.map(|id| {
        let reply = match &response {
            Some(_) if connection.was_refused_a_subscription() => {
                Fault::new(Kind::InvalidRequest, SubscribeError::CannotNotify.to_string()).reply(&id)
            }
            Some(response) => reply::from_method(&id, response, max_response),
            None => Fault::new(Kind::Internal, "the method failed unexpectedly").reply(&id),
        };
        (id, reply)
    });
    if let Some((_, Some(notifier), _)) = response.map(MethodResponse::into_parts) {
        notifier.notify(succeeded);
    }
    CallAnswer { reply, connection: Some(connection), succeeded }
}

/// Queues a reply; only then may the call's subscriptions start.
fn queue_answer(shared: &ConnectionState, answer: CallAnswer) {
    if let Some((_, reply)) = answer.reply {
        shared.outbox.queue_reply(reply);
    }
    if let Some(connection) = answer.connection {
        connection.finish_call(answer.succeeded);
    }
}

fn queue_batch_answer(shared: &ConnectionState, mut answers: Vec<CallAnswer>, max_response: usize) {
    let replies = answers.iter_mut().filter_map(|answer| answer.reply.take());
    if let Some(reply) = reply::batch(replies, max_response) {
        shared.outbox.queue_reply(reply);
    }
    for answer in answers {
        queue_answer(shared, answer);
    }
}

/// A name from outside, shortened for an error text.
fn shorten_name(name: &str) -> String {
    const MAX_NAME_CHARS: usize = 100;
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("{:?}…", &name[..end]),
        None => format!("{name:?}"),
    }
}
