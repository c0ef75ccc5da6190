//! `permission.list`, `permission.explain`, `permission.subscribe`, `permission.rules`, `permission.add_rule`,
//! `permission.remove_rule`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::SubscriptionId;
use api::params::{
    ExplainReply, NoParams, PermissionListParams, PermissionListReply, RuleReply, RulesParams, RulesReply,
};
use api::{Fault, PERMISSION_EVENT};
use session::PendingFollower;
use transport::SubscriptionSink;
use types::permission::{ExplainParams, RuleParams, RuleScope};

pub(super) async fn list(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: PermissionListParams,
) -> Result<PermissionListReply, Fault> {
    let after = convert::cursor(p.cursor.as_deref())?;
    let limit = convert::limit(p.limit, 100, 500);
    let (requests, next) = ctx.registry.pending(p.session_id, after, limit).await.map_err(convert::fault)?;
    Ok(PermissionListReply { requests, next_cursor: next.map(|id| id.to_string()) })
}

pub(super) async fn subscribe(
    ctx: Arc<RpcContext>,
    caller: Caller,
    _: NoParams,
) -> Result<SubscriptionId, Fault> {
    let follower = ctx.registry.follow_pending();
    convert::subscription(caller.connection.subscribe(move |sink| pump(follower, sink)))
}

/// Upper estimate of the bytes that a notification adds to an event.
const FRAME_BYTES: usize = 256;

/// Reads further events only after the client has received the earlier ones.
async fn pump(mut follower: PendingFollower, sink: SubscriptionSink) {
    loop {
        match follower.next().await {
            Ok(Some(events)) => {
                let bytes = events.iter().map(|event| event.len() + FRAME_BYTES).sum();
                let Ok(room) = sink.reserve(bytes).await else { return };
                if room.publish(PERMISSION_EVENT, events).is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "ended a subscription: could not read the pending requests");
                return;
            }
        }
    }
}

pub(super) async fn rules(ctx: Arc<RpcContext>, _: Caller, p: RulesParams) -> Result<RulesReply, Fault> {
    let after: usize = convert::cursor(p.cursor.as_deref())?.unwrap_or(0);
    let limit = convert::limit(p.limit, 500, 500) as usize;
    let (known, problems) =
        ctx.registry.rules(p.session_id, p.workspace.as_deref()).await.map_err(convert::fault)?;
    let next_cursor = (known.len() > after.saturating_add(limit)).then(|| (after + limit).to_string());
    let rules = known.into_iter().skip(after).take(limit).collect();
    Ok(RulesReply { rules, problems, next_cursor })
}

pub(super) async fn add_rule(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: RuleParams,
) -> Result<RuleReply, Fault> {
    change_rule(&ctx, &caller, p, "permission.add_rule").await
}

pub(super) async fn remove_rule(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: RuleParams,
) -> Result<RuleReply, Fault> {
    change_rule(&ctx, &caller, p, "permission.remove_rule").await
}

async fn change_rule(
    ctx: &RpcContext,
    caller: &Caller,
    mut p: RuleParams,
    method: &'static str,
) -> Result<RuleReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let session = p.session_id.filter(|_| p.scope == RuleScope::Session);
    let kept = p.rule.parse::<session::Rule>().ok().map(|rule| rule.to_string());
    let rule = kept.filter(|kept| method == "permission.add_rule" && kept != p.rule.trim());
    let work = async {
        let changed = match method {
            "permission.add_rule" => ctx.registry.add_rule(p, caller.origin()).await,
            _ => ctx.registry.remove_rule(p, caller.origin()).await,
        };
        Ok(RuleReply { changed: changed.map_err(convert::fault)?, rule })
    };
    ctx.registry.once(method, session, keyed, convert::fault, work).await
}

pub(super) async fn explain(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: ExplainParams,
) -> Result<ExplainReply, Fault> {
    let home = ctx.registry.shared().components().settings.home.clone();
    // Run this on a blocking thread, because it reads the disk and judging a long command takes time.
    let judged = tokio::task::spawn_blocking(move || session::explain(&p, &home)).await;
    let verdict = judged.unwrap_or(Err(session::SessionError::Crashed)).map_err(convert::fault)?;
    Ok(ExplainReply {
        verdict: verdict.verdict,
        rule: verdict.rule,
        reason: verdict.reason,
        suggestions: verdict.suggestions,
        parts: verdict.parts,
    })
}
