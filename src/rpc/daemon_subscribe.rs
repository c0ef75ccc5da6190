//! `daemon.subscribe`

use std::sync::Arc;
use std::time::Duration;

use super::params::Caller;
use crate::context::RpcContext;
use api::params::NoParams;
use api::params::SubscriptionId;
use api::{DAEMON_EVENT, Fault};
use session::SessionFollower;
use transport::SubscriptionSink;

/// Changes within this time are reported together, because a running turn changes its session many times a second.
const COALESCE: Duration = Duration::from_millis(100);
/// Bytes to reserve in the send queue for one read.
const RESERVED_BYTES: usize = 128 * 1024;

pub(super) async fn subscribe(
    ctx: Arc<RpcContext>,
    caller: Caller,
    _: NoParams,
) -> Result<SubscriptionId, Fault> {
    let follower = ctx.registry.follow_sessions();
    crate::convert::subscription(caller.connection.subscribe(move |sink| pump(follower, sink)))
}

/// Reads sessions only after the client has received the earlier ones. Meanwhile it collects the ids of
/// changed sessions.
async fn pump(mut follower: SessionFollower, sink: SubscriptionSink) {
    loop {
        tokio::select! {
            is_ready = follower.wait_ready() => if !is_ready { return },
            () = sink.wait_ended() => return,
        }
        let _ = tokio::time::timeout(COALESCE, follower.collect()).await;
        let room = tokio::select! {
            room = sink.reserve(RESERVED_BYTES) => room,
            () = follower.collect() => return,
        };
        let Ok(room) = room else { return };
        let changed = match follower.next().await {
            Ok(changed) => changed,
            Err(error) => {
                tracing::warn!(%error, "a subscription ends: the sessions could not be read");
                return;
            }
        };
        let events: Vec<Arc<str>> = changed
            .into_iter()
            .filter_map(|event| serde_json::to_string(&event).ok().map(Arc::from))
            .collect();
        if room.publish(DAEMON_EVENT, events).is_err() {
            return;
        }
    }
}
