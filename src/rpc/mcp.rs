//! `mcp.list`, `mcp.tools`, `mcp.resources`, `mcp.test`, `mcp.logs`, `mcp.add`, `mcp.remove`

use std::sync::Arc;

use super::params::Caller;
use crate::context::RpcContext;
use crate::convert::{self, invalid_param};
use api::Fault;
use api::params::{
    McpAddParams, McpChangeReply, McpListParams, McpListReply, McpLogsReply, McpRemoveParams, McpScope,
    McpServerParams, McpTestParams, McpToolView, McpToolsReply,
};
use session::McpOwner;
use types::ids::SessionId;
use types::mcp::{McpResourceList, McpTest};

pub(super) async fn list(ctx: Arc<RpcContext>, _: Caller, p: McpListParams) -> Result<McpListReply, Fault> {
    let servers = ctx.registry.mcp_servers(&mcp_place(p.cwd, p.session_id)).await.map_err(convert::fault)?;
    Ok(McpListReply { servers })
}

pub(super) async fn tools(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: McpServerParams,
) -> Result<McpToolsReply, Fault> {
    let tools =
        ctx.registry.mcp_tools(&p.name, &mcp_place(p.cwd, p.session_id)).await.map_err(convert::fault)?;
    let tools = tools.into_iter().map(|tool| McpToolView {
        name: tool.name,
        tool: tool.tool,
        description: tool.description,
        input_schema: tool.input_schema,
    });
    Ok(McpToolsReply { tools: tools.collect() })
}

pub(super) async fn resources(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: McpServerParams,
) -> Result<McpResourceList, Fault> {
    ctx.registry.mcp_resources(&p.name, &mcp_place(p.cwd, p.session_id)).await.map_err(convert::fault)
}

fn mcp_place(cwd: Option<String>, session_id: Option<SessionId>) -> McpOwner {
    McpOwner { cwd, session_id }
}

pub(super) async fn test(ctx: Arc<RpcContext>, _: Caller, mut p: McpTestParams) -> Result<McpTest, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let McpTestParams { name, config, cwd, session_id, .. } = p;
    let owner = mcp_place(cwd, session_id);
    let test = async { ctx.registry.mcp_test(name.as_deref(), config, &owner).await.map_err(convert::fault) };
    ctx.registry.once("mcp.test", None, keyed, convert::fault, test).await
}

pub(super) async fn logs(ctx: Arc<RpcContext>, _: Caller, p: McpServerParams) -> Result<McpLogsReply, Fault> {
    let lines =
        ctx.registry.mcp_logs(&p.name, &mcp_place(p.cwd, p.session_id)).await.map_err(convert::fault)?;
    Ok(McpLogsReply { lines })
}

pub(super) async fn add(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: McpAddParams,
) -> Result<McpChangeReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let McpAddParams { name, config, scope, cwd, .. } = p;
    let project = project_folder(scope, cwd)?;
    let add = async {
        ctx.registry.mcp_add(&name, config, project.as_deref()).await.map_err(convert::fault)?;
        Ok(McpChangeReply { name: name.clone() })
    };
    ctx.registry.once("mcp.add", None, keyed, convert::fault, add).await
}

pub(super) async fn remove(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: McpRemoveParams,
) -> Result<McpChangeReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let McpRemoveParams { name, scope, cwd, .. } = p;
    let project = project_folder(scope, cwd)?;
    let remove = async {
        ctx.registry.mcp_remove(&name, project.as_deref()).await.map_err(convert::fault)?;
        Ok(McpChangeReply { name: name.clone() })
    };
    ctx.registry.once("mcp.remove", None, keyed, convert::fault, remove).await
}

/// The project's folder for a scope.
fn project_folder(scope: McpScope, cwd: Option<String>) -> Result<Option<String>, Fault> {
    match (scope, cwd) {
        (McpScope::User, _) => Ok(None),
        (McpScope::Project, Some(cwd)) => Ok(Some(cwd)),
        (McpScope::Project, None) => Err(invalid_param("cwd", "name the project's folder")),
    }
}
