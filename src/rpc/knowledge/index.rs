//! `knowledge.index`, `knowledge.insert`, `knowledge.cancel`, `knowledge.subscribe`

use std::sync::Arc;

use super::{change, convert, workspace};
use crate::context::RpcContext;
use crate::convert::invalid_param;
use crate::params::Caller;
use api::params::SubscriptionId;
use api::params::{
    KnowledgeCancelParams, KnowledgeCancelReply, KnowledgeIndexParams, KnowledgeInsertParams,
    KnowledgeInsertReply, KnowledgeWorkParams,
};
use api::{Fault, KNOWLEDGE_EVENT};
use knowledge::registry::LogFollower;
use transport::SubscriptionSink;
use types::knowledge::StartedIndexJob;

/// Maximum number of paths of one job.
const MAX_PATHS: usize = 1_000;

pub(crate) async fn index(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeIndexParams,
) -> Result<StartedIndexJob, Fault> {
    change(&ctx, "knowledge.index", p, async |folder, p| {
        let budget = convert::budget(p.budget)?;
        let paths = p.paths.unwrap_or_default();
        if paths.len() > MAX_PATHS {
            return Err(invalid_param("paths", &format!("expected at most {MAX_PATHS}")));
        }
        let leads_out = |path: &String| path.starts_with('/') || path.split('/').any(|part| part == "..");
        if let Some(index) = paths.iter().position(leads_out) {
            let why = "expected a path below the workspace, relative to it";
            return Err(invalid_param(&format!("paths[{index}]"), why));
        }
        ctx.indexes.index(&folder, paths, p.level, budget, p.dry_run).await.map_err(convert::fault)
    })
    .await
}

pub(crate) async fn insert(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeInsertParams,
) -> Result<KnowledgeInsertReply, Fault> {
    change(&ctx, "knowledge.insert", p, async |folder, p| {
        let documents = ctx.indexes.insert(&folder, p.documents).await.map_err(convert::fault)?;
        Ok(KnowledgeInsertReply { documents })
    })
    .await
}

/// The id of a job or a query.
enum WorkId {
    Job(String),
    Query(String),
}

fn work_id(job_id: Option<String>, query_id: Option<String>) -> Result<WorkId, Fault> {
    match (job_id, query_id) {
        (Some(id), None) => Ok(WorkId::Job(id)),
        (None, Some(id)) => Ok(WorkId::Query(id)),
        _ => Err(invalid_param("job_id", "name exactly one of job_id and query_id")),
    }
}

pub(crate) async fn cancel(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeCancelParams,
) -> Result<KnowledgeCancelReply, Fault> {
    change(&ctx, "knowledge.cancel", p, async |folder, p| {
        let cancelled = match work_id(p.job_id, p.query_id)? {
            WorkId::Job(id) => ctx.indexes.cancel_job(&folder, &id).await,
            WorkId::Query(id) => ctx.indexes.cancel_query(&folder, &id),
        };
        Ok(KnowledgeCancelReply { cancelled: cancelled.map_err(convert::fault)? })
    })
    .await
}

pub(crate) async fn subscribe(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: KnowledgeWorkParams,
) -> Result<SubscriptionId, Fault> {
    let folder = workspace(&ctx, &p.workspace).await?;
    let follower = match work_id(p.job_id, p.query_id)? {
        WorkId::Job(id) => ctx.indexes.follow_job(&folder, &id),
        WorkId::Query(id) => ctx.indexes.follow_query(&folder, &id),
    };
    let follower = follower.map_err(convert::fault)?;
    crate::convert::subscription(caller.connection.subscribe(move |sink| pump(follower, sink)))
}

/// Reads further events only after the client has received the earlier ones.
async fn pump(mut follower: LogFollower, sink: SubscriptionSink) {
    while let Some(events) = follower.next().await {
        let bytes = events.iter().map(|event| event.len()).sum();
        let Ok(room) = sink.reserve(bytes).await else { return };
        if room.publish(KNOWLEDGE_EVENT, events).is_err() {
            return;
        }
    }
}
