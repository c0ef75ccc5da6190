//! `agent.list`

use std::sync::Arc;

use super::params::Caller;
use crate::command::diagnostic;
use crate::context::RpcContext;
use crate::convert;
use api::Fault;
use api::params::{AgentListParams, AgentListReply, AgentView};
use session::Agent;

pub(super) async fn list(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: AgentListParams,
) -> Result<AgentListReply, Fault> {
    let found = ctx.registry.agents(&p.cwd).await.map_err(convert::fault)?;
    let agents = found.agents.into_iter().map(agent).collect();
    Ok(AgentListReply { agents, diagnostics: found.diagnostics.into_iter().map(diagnostic).collect() })
}

fn agent(found: Agent) -> AgentView {
    AgentView {
        name: found.name,
        slug: found.slug,
        description: found.description,
        tools: found.tools.unwrap_or_else(|| vec!["*".into()]),
        denied_tools: found.denied_tools,
        mode: found.mode,
        max_turns: found.max_turns,
        model_name: found.model_name,
        color: found.color,
        source: found.source,
        path: found.path.map(|path| path.display().to_string()),
    }
}
