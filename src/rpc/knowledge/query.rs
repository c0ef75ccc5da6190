//! `knowledge.query`

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{convert, workspace};
use crate::context::RpcContext;
use crate::convert::invalid_param;
use crate::params::Caller;
use api::Fault;
use api::params::{KnowledgeQueryParams, KnowledgeQueryReply};
use knowledge::query::{Progress, QueryParams};

pub(crate) async fn query(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: KnowledgeQueryParams,
) -> Result<KnowledgeQueryReply, Fault> {
    let folder = workspace(&ctx, &p.workspace).await?;
    let defaults = ctx.indexes.settings().map_err(convert::fault)?.query.clone();
    let stream = p.stream;
    let params = query_params(p, defaults);
    params.check().map_err(|bad| invalid_param(&bad.path, &bad.why))?;
    if stream {
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
}

fn query_params(p: KnowledgeQueryParams, defaults: QueryParams) -> QueryParams {
    let size = |given: Option<u32>, default: usize| given.map_or(default, |given| given as usize);
    QueryParams {
        query: p.query,
        mode: p.mode.unwrap_or(defaults.mode),
        hl_keywords: p.hl_keywords.unwrap_or_default(),
        ll_keywords: p.ll_keywords.unwrap_or_default(),
        only_need_context: p.only_need_context.unwrap_or(false) || p.only_need_prompt.unwrap_or(false),
        top_k: size(p.top_k, defaults.top_k),
        chunk_top_k: p.chunk_top_k.map_or(defaults.chunk_top_k, |given| given.map(|given| given as usize)),
        max_entity_tokens: size(p.max_entity_tokens, defaults.max_entity_tokens),
        max_relation_tokens: size(p.max_relation_tokens, defaults.max_relation_tokens),
        max_total_tokens: size(p.max_total_tokens, defaults.max_total_tokens),
        response_type: p.response_type.unwrap_or(defaults.response_type),
        user_prompt: p.user_prompt.unwrap_or_default(),
        language: p.language.or(defaults.language),
        history: p.conversation_history.unwrap_or_default(),
        enable_rerank: p.enable_rerank.unwrap_or(defaults.enable_rerank),
        min_rerank_score: p.min_rerank_score.unwrap_or(defaults.min_rerank_score),
        local_relations: p.local_relations.unwrap_or(defaults.local_relations),
        relation_chunks: p.relation_chunks.unwrap_or(defaults.relation_chunks),
        entity_order: p.entity_order.unwrap_or(defaults.entity_order),
        chunk_pick: p.chunk_pick.unwrap_or(defaults.chunk_pick),
        related_chunks: defaults.related_chunks,
    }
}
