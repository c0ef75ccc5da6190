//! Checks that any text gives no reply or valid replies, exactly as JSON-RPC 2.0 and the specification
//! require.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use jsonrpsee::types::{ErrorObject, ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, Methods, RpcModule};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::connection::{Connection, ConnectionState, Peer};
use super::super::dispatch::CallDispatcher;
use super::super::limits::Limits;
use super::super::outbox::OutboxItem;
use super::super::server_state::ServerState;
use super::calls::{ExpectedReplies, Outcome, Reply, expected_replies};

/// The error codes and kinds of the specification.
const KINDS: &[(i64, &str)] = &[
    (-32700, "parse_error"),
    (-32600, "invalid_request"),
    (-32601, "method_not_found"),
    (-32602, "invalid_params"),
    (-32603, "internal"),
    (-32001, "overloaded"),
    (-32014, "not_pending"),
    // JSON-RPC 2.0 does not assign this code.
    (-32099, "internal"),
];

/// Upper bound of the bytes of an error and its frame, without the id and the method's name.
const MAX_FRAME_BYTES: usize = 1000;

/// Dispatches the bytes as one message and compares the replies with the required ones.
///
/// # Panics
/// If a property is violated.
pub fn dispatch(message: &[u8]) {
    let limits = limits();
    let replies = replies(message, limits.clone());
    let due = expected_replies(message, &limits);
    match (&due, &replies[..]) {
        (ExpectedReplies::Nothing, []) => {}
        (ExpectedReplies::One(due), [reply]) => check(due, reply, 0, limits.max_response_bytes),
        (ExpectedReplies::Batch(due), [batch]) => {
            let replies: Vec<&RawValue> = serde_json::from_str(batch).expect("a batch is an array");
            assert_eq!(due.len(), replies.len(), "{due:?} was due, {batch} came");
            let mut before = 0;
            for (due, reply) in due.iter().zip(replies) {
                check(due, reply.get(), before, limits.max_response_bytes);
                before += reply.get().len() + 1;
            }
        }
        _ => panic!("{due:?} was due, {replies:?} came"),
    }
}

fn limits() -> Limits {
    Limits {
        max_response_bytes: 2048,
        max_batch: 6,
        max_in_flight: 4,
        max_depth: 5,
        max_subscriptions: 2,
        ..Limits::default()
    }
}

/// Everything that is queued for the peer when the message's calls have ended.
fn replies(message: &[u8], limits: Limits) -> Vec<String> {
    thread_local! {
        static RUNTIME: OnceCell<(tokio::runtime::Runtime, Methods)> = const { OnceCell::new() };
    }
    RUNTIME.with(|cell| {
        let (runtime, methods) = cell.get_or_init(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            (runtime, methods())
        });
        runtime.block_on(async {
            let shared = Arc::new(ConnectionState::new(
                Peer { id: 1, uid: 0, pid: None, origin: Default::default() },
                limits.outbox_bytes,
                limits.max_subscriptions,
            ));
            let server = Arc::new(ServerState::without_socket(methods.clone(), limits));
            let mut caller = CallDispatcher::new(server, Arc::clone(&shared), true);
            let slot = caller.reserve_slot(message.len()).await;
            caller.accept_message(message, slot).await;
            while caller.is_busy() {
                caller.wait_next_end().await;
            }
            shared.end_subscriptions();
            shared.outbox.end();
            let (mut batch, mut replies) = (Vec::new(), Vec::new());
            while shared.outbox.next_batch(&mut batch).await {
                replies.extend(batch.drain(..).map(|out| match out {
                    OutboxItem::Reply(reply) => String::from_utf8(reply).expect("a reply is text"),
                    other => panic!("{other:?} is no reply"),
                }));
            }
            shared.close();
            replies
        })
    })
}

#[derive(Deserialize)]
struct Fault {
    code: i64,
    #[serde(rename = "message")]
    _message: String,
    data: HashMap<String, Value>,
}

/// Checks one reply. `before` is the number of bytes of the batch before it.
fn check(due: &Reply, reply: &str, before: usize, max_response: usize) {
    let members: HashMap<String, &RawValue> = serde_json::from_str(reply).expect("a reply is an object");
    let raw = |name: &str| members.get(name).map(|raw| raw.get());
    assert_eq!(members.len(), 3, "{reply}");
    assert_eq!(raw("jsonrpc"), Some("\"2.0\""), "{reply}");
    assert_eq!(raw("id"), Some(due.id.as_str()), "{reply}");
    let fault = raw("error").map(|error| serde_json::from_str::<Fault>(error).expect("an error as R3 says"));
    if let Some(fault) = &fault {
        let kind = fault.data["kind"].as_str().expect("a kind");
        assert!(KINDS.contains(&(fault.code, kind)), "{reply}");
        assert_eq!(fault.data["retryable"], json!(fault.code == -32001), "{reply}");
    }
    // A reply over the limit becomes an error that says so.
    let room = max_response.saturating_sub(before);
    let size = match &due.outcome {
        Outcome::Result(result) => result.len(),
        Outcome::Error(_) | Outcome::Subscription => 0,
    };
    if fault.as_ref().is_some_and(|fault| fault.code == -32603)
        && size + due.id.len() + MAX_FRAME_BYTES > room
    {
        return;
    }
    assert!(size <= room, "{} bytes where there was room for {room}", reply.len());
    match (&due.outcome, fault) {
        (Outcome::Result(result), None) => assert_eq!(raw("result"), Some(result.as_str()), "{reply}"),
        (Outcome::Subscription, None) => assert!(raw("result").is_some_and(|id| id.starts_with("\"sub_"))),
        (Outcome::Subscription, Some(fault)) => assert_eq!(fault.code, -32001, "{reply}"),
        (Outcome::Error(code), Some(fault)) => assert_eq!(fault.code, *code, "{reply}"),
        _ => panic!("{due:?} was due, {reply} came"),
    }
}

/// One method for every way to reply.
fn methods() -> Methods {
    type Answer<T> = Result<T, ErrorObjectOwned>;
    fn echo(params: &Params<'_>) -> Box<RawValue> {
        let text = params.as_str().unwrap_or("null").to_owned();
        RawValue::from_string(text).expect("params are JSON")
    }
    fn register(module: &mut RpcModule<()>) -> Result<(), jsonrpsee::core::RegisterMethodError> {
        module.register_method("echo", |params, (), _| Answer::Ok(echo(&params)))?;
        module.register_async_method("later", |params, _, _| async move {
            tokio::task::yield_now().await;
            Answer::Ok(echo(&params))
        })?;
        module.register_method("settled", |_, (), _| -> Answer<()> {
            let data = json!({"kind": "not_pending", "retryable": false, "by": "client-1"});
            Err(ErrorObject::owned(-32014, "already answered", Some(data)))
        })?;
        module.register_method("strange", |_, (), _| -> Answer<()> {
            Err(ErrorObject::owned(-32099, "\u{1b}\"\n", Some(["text"])))
        })?;
        module.register_method("typed", |params, (), _| -> Answer<u8> {
            let [number] = params.parse::<[u8; 1]>()?;
            Ok(number)
        })?;
        module.register_method("follow", |_, (), extensions: &Extensions| -> Answer<String> {
            let peer = extensions.get::<Connection>().expect("a connection");
            peer.subscribe(|_| std::future::pending())
                .map_err(|full| ErrorObject::owned(-32001, full.to_string(), None::<()>))
        })?;
        Ok(())
    }
    let mut module = RpcModule::new(());
    register(&mut module).expect("every method has a name of its own");
    module.into()
}
