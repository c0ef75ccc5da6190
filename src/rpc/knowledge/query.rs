//! `knowledge.query`

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{change, convert};
use crate::context::RpcContext;
use crate::convert::invalid_param;
use crate::params::Caller;
use api::Fault;
use api::params::KnowledgeQueryReply;
use knowledge::query::Progress;
use types::knowledge::QueryParams;

pub(crate) async fn query(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: QueryParams,
) -> Result<KnowledgeQueryReply, Fault> {
    change(&ctx, "knowledge.query", p, async |folder, p| {
        let params = p.with_defaults(&ctx.indexes.settings().map_err(convert::fault)?.query);
        params.check().map_err(|bad| invalid_param(&bad.path, &bad.why))?;
        if params.stream {
            let query_id = ctx.indexes.start_query(&folder, params).await.map_err(convert::fault)?;
            return Ok(KnowledgeQueryReply::Started { query_id });
        }
        let (cancel, progress) = (CancellationToken::new(), Progress::disabled());
        let query = ctx.indexes.query(&folder, params, &progress, cancel.clone());
        tokio::pin!(query);
        // Calls of a closed connection usually continue. Stop this query, because it costs money and no
        // client would receive the answer.
        let result = tokio::select! {
            result = &mut query => result,
            () = caller.connection.closed() => {
                cancel.cancel();
                query.await
            }
        };
        Ok(KnowledgeQueryReply::Result(Box::new(result.map_err(convert::fault)?)))
    })
    .await
}
