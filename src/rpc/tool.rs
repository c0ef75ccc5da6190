//! `tool.list`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{ToolListParams, ToolListReply, ToolView};

pub(super) async fn list(ctx: Arc<RpcContext>, _: Caller, p: ToolListParams) -> Result<ToolListReply, Fault> {
    let limit = convert::limit(p.limit, 100, 500) as usize;
    let after = p.cursor.unwrap_or_default();
    let mut tools: Vec<ToolView> = ctx
        .registry
        .tools()
        .iter()
        .filter(|card| card.name > after)
        .map(|card| ToolView {
            name: card.name.clone(),
            description: card.description.clone(),
            input_schema: card.input_schema.clone(),
            read_only: card.read_only,
            concurrency_safe: card.is_concurrency_safe(),
            limits: ctx.registry.tool_limits(&card.name),
            max_output_bytes: ctx.registry.max_result_bytes(),
        })
        .collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let more = tools.len() > limit;
    tools.truncate(limit);
    let next_cursor = if more { tools.last().map(|view| view.name.clone()) } else { None };
    Ok(ToolListReply { tools, next_cursor })
}
