//! `session.subscribe`, `session.unsubscribe`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::api::params::{Include, SubscribeParams, UnsubscribeParams};
use crate::api::{Code, Fault, SESSION_EVENT};
use crate::crash;
use crate::rpc::context::RpcContext;
use crate::rpc::redact_thinking::redact;
use crate::session::{AttachReply, Follower};
use crate::transport::{Overloaded, SubscriptionSink};

pub(super) async fn subscribe(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: SubscribeParams,
) -> Result<String, Fault> {
    let include = p.include;
    let session = ctx.registry.open_soon(p.session_id).await.map_err(convert::fault)?;
    let (follower, attached) = session.attach(p.after_seq, caller.origin()).await.map_err(convert::fault)?;
    caller.connection.subscribe(move |outlet| pump(follower, attached, include, outlet)).map_err(|why| {
        match why {
            // Somebody who can still read this is being said goodbye to.
            Overloaded::Closed => Fault::new(Code::ShuttingDown, "the daemon is stopping"),
            why => Fault::new(Code::Overloaded, why.to_string()),
        }
    })
}

pub(super) async fn unsubscribe(
    _: Arc<RpcContext>,
    caller: Caller,
    p: UnsubscribeParams,
) -> Result<bool, Fault> {
    Ok(caller.connection.unsubscribe(&p.subscription))
}

/// Bytes of events that are read at once.
const READ: usize = 96 * 1024;
/// The room that is taken for them: the last event may be longer than what was left of `READ`, and each
/// is wrapped into a notification.
const ROOM: usize = 256 * 1024;

/// Reads on when the client does, and nothing before: the room comes first. Being attached ends with
/// the pump, however it ends.
async fn pump(mut follower: Follower, _attached: AttachReply, include: Include, outlet: SubscriptionSink) {
    while follower.ready().await {
        let Ok(room) = outlet.room(ROOM).await else { return };
        match follower.take(READ).await {
            Ok(mut events) => {
                if !include.is_all() {
                    events = events.into_iter().filter_map(|event| redact(event, include)).collect();
                }
                crash::point("C22.fanout");
                if room.publish(SESSION_EVENT, events).is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a subscription ends: the journal could not be read");
                return;
            }
        }
    }
}
