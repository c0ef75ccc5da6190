//! `session.subscribe`, `session.unsubscribe`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use crate::redact_thinking::redact;
use api::params::SubscriptionId;
use api::params::{Include, SubscribeParams, UnsubscribeParams};
use api::{Fault, SESSION_EVENT};
use base::crash;
use session::{AttachReply, Follower};
use transport::SubscriptionSink;

pub(super) async fn subscribe(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: SubscribeParams,
) -> Result<SubscriptionId, Fault> {
    let include = p.include;
    let session = ctx.registry.open_soon(p.session_id).await.map_err(convert::fault)?;
    let role = caller.role().name();
    let attached = session.attach(p.after_seq, caller.origin(), role).await;
    let (follower, attached) = attached.map_err(convert::fault)?;
    convert::subscription(caller.connection.subscribe(move |sink| pump(follower, attached, include, sink)))
}

pub(super) async fn unsubscribe(
    _: Arc<RpcContext>,
    caller: Caller,
    p: UnsubscribeParams,
) -> Result<bool, Fault> {
    Ok(caller.connection.unsubscribe(&p.subscription))
}

/// Maximum bytes of events per read.
const READ_BYTES: usize = 96 * 1024;
/// Bytes to reserve in the send queue for one read. The value is larger than `READ_BYTES`, because the
/// last event may exceed that limit and each event is wrapped in a notification.
const RESERVED_BYTES: usize = 256 * 1024;

/// Reads further events only after it has reserved space in the client's send queue. Dropping
/// `_attached` detaches the client when this future ends for any reason.
async fn pump(mut follower: Follower, _attached: AttachReply, include: Include, sink: SubscriptionSink) {
    while follower.wait_ready().await {
        let Ok(room) = sink.reserve(RESERVED_BYTES).await else { return };
        match follower.next_events(READ_BYTES).await {
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
                tracing::warn!(%error, "ended a subscription: could not read the journal");
                return;
            }
        }
    }
}
