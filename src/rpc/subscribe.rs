//! `session.subscribe`, `session.unsubscribe`

use std::sync::Arc;

use super::convert;
use super::office::Office;
use super::params::Caller;
use crate::api::params::{SubscribeParams, UnsubscribeParams};
use crate::api::{Code, Fault, SESSION_EVENT};
use crate::crash;
use crate::session::{Attachment, Follower};
use crate::transport::{Outlet, Overloaded};

pub(super) async fn subscribe(
    office: Arc<Office>,
    caller: Caller,
    p: SubscribeParams,
) -> Result<String, Fault> {
    let session = office.registry.open(p.session_id).await.map_err(convert::fault)?;
    let (follower, attachment) =
        session.attach(p.after_seq, caller.origin()).await.map_err(convert::fault)?;
    caller.connection.subscribe(move |outlet| pump(follower, attachment, outlet)).map_err(|why| match why {
        // Somebody who can still read this is being said goodbye to.
        Overloaded::Closed => Fault::new(Code::ShuttingDown, "the daemon is stopping"),
        why => Fault::new(Code::Overloaded, why.to_string()),
    })
}

pub(super) async fn unsubscribe(_: Arc<Office>, caller: Caller, p: UnsubscribeParams) -> Result<bool, Fault> {
    Ok(caller.connection.unsubscribe(&p.subscription))
}

/// Reads on when the client does. Being attached ends with the pump, however it ends.
async fn pump(mut follower: Follower, _attachment: Attachment, outlet: Outlet) {
    loop {
        match follower.next().await {
            Ok(Some(events)) => {
                crash::point("C22.fanout");
                if outlet.publish(SESSION_EVENT, events).await.is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "a subscription ends: the journal could not be read");
                return;
            }
        }
    }
}
