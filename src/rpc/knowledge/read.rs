//! `knowledge.status`, `knowledge.documents.list`, `knowledge.documents.get`, `knowledge.graph`

use std::sync::Arc;

use super::{convert, workspace};
use crate::context::RpcContext;
use crate::convert::{invalid_param, limit};
use crate::params::Caller;
use api::Fault;
use api::params::{
    GraphFormatParam, KnowledgeDocumentParams, KnowledgeDocumentReply, KnowledgeDocumentsParams,
    KnowledgeDocumentsReply, KnowledgeGraphParams, KnowledgeGraphReply, KnowledgeStatusParams,
};
use knowledge::export::{SubGraph, dot, graphml, html_page, mermaid};
use types::knowledge::{DocumentStatus, IndexStatus};

/// Maximum number of steps from the start entity of a graph.
const MAX_DEPTH: u32 = 8;
const DEFAULT_DEPTH: u32 = 2;
/// Maximum number of entities in a graph.
const MAX_NODES: u32 = 1_000;
const DEFAULT_NODES: u32 = 200;

pub(crate) async fn status(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeStatusParams,
) -> Result<IndexStatus, Fault> {
    let folder = workspace(&ctx, &p.workspace).await?;
    ctx.indexes.status(&folder).await.map_err(convert::fault)
}

pub(crate) async fn documents(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeDocumentsParams,
) -> Result<KnowledgeDocumentsReply, Fault> {
    let folder = workspace(&ctx, &p.workspace).await?;
    let status = match p.status {
        None => None,
        Some(name) => Some(DocumentStatus::from_name(&name).ok_or_else(|| {
            let names: Vec<&str> = DocumentStatus::ALL.iter().map(|status| status.as_str()).collect();
            invalid_param("status", &format!("expected one of {}", names.join(", ")))
        })?),
    };
    let limit = limit(p.limit, 100, 500);
    let mut documents =
        ctx.indexes.documents(&folder, status, p.cursor, limit + 1).await.map_err(convert::fault)?;
    let has_more = documents.len() > limit as usize;
    documents.truncate(limit as usize);
    let next_cursor = documents.last().filter(|_| has_more).map(|document| document.id.clone());
    Ok(KnowledgeDocumentsReply { documents, next_cursor })
}

pub(crate) async fn get_document(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeDocumentParams,
) -> Result<KnowledgeDocumentReply, Fault> {
    let folder = workspace(&ctx, &p.workspace).await?;
    let (document, chunks) = ctx.indexes.document(&folder, p.id).await.map_err(convert::fault)?;
    let chunks = chunks.into_iter().map(convert::chunk).collect();
    Ok(KnowledgeDocumentReply { document, chunks })
}

pub(crate) async fn graph(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeGraphParams,
) -> Result<KnowledgeGraphReply, Fault> {
    let folder = workspace(&ctx, &p.workspace).await?;
    let in_range = |name: &str, given: Option<u32>, default: u32, most: u32| match given {
        None => Ok(default),
        Some(given) if (1..=most).contains(&given) => Ok(given),
        Some(_) => Err(invalid_param(name, &format!("expected 1 to {most}"))),
    };
    let depth = in_range("depth", p.depth, DEFAULT_DEPTH, MAX_DEPTH)?;
    let max_nodes = in_range("max_nodes", p.max_nodes, DEFAULT_NODES, MAX_NODES)?;
    let graph =
        ctx.indexes.graph(&folder, p.name, depth, max_nodes as usize).await.map_err(convert::fault)?;
    let text = |write: fn(&SubGraph) -> String| Some(write(&graph));
    let data = match p.format {
        GraphFormatParam::Json => None,
        GraphFormatParam::Mermaid => text(mermaid),
        GraphFormatParam::Dot => text(dot),
        GraphFormatParam::Graphml => text(graphml),
        GraphFormatParam::Html => text(html_page),
    };
    if data.is_some() {
        return Ok(KnowledgeGraphReply {
            data,
            truncated: graph.truncated,
            ..KnowledgeGraphReply::default()
        });
    }
    Ok(KnowledgeGraphReply {
        nodes: graph.nodes.into_iter().map(convert::node).collect(),
        edges: graph.edges,
        truncated: graph.truncated,
        data: None,
    })
}
