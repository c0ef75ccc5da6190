//! `permission.list`, `permission.explain`

use std::sync::Arc;

use super::convert;
use super::office::Office;
use super::params::Caller;
use crate::api::Fault;
use crate::api::params::{
    ExplainParams, ExplainReply, PendingRequest, PermissionListParams, PermissionListReply,
};
use crate::session;

pub(super) async fn list(
    office: Arc<Office>,
    _: Caller,
    p: PermissionListParams,
) -> Result<PermissionListReply, Fault> {
    let after = convert::cursor(p.cursor.as_deref())?;
    let limit = convert::limit(p.limit, 100, 500);
    let (requests, next) =
        office.registry.pending(p.session_id, after, limit).await.map_err(convert::fault)?;
    let requests = requests
        .into_iter()
        .map(|(session_id, at_ms, request)| PendingRequest { session_id, at_ms, request })
        .collect();
    Ok(PermissionListReply { requests, next_cursor: next.map(|id| id.to_string()) })
}

pub(super) async fn explain(office: Arc<Office>, _: Caller, p: ExplainParams) -> Result<ExplainReply, Fault> {
    let home = p.home.unwrap_or_else(|| office.registry.house().setup().settings.home.clone());
    let question = session::Question {
        workspace: p.workspace,
        home,
        mode: p.mode.unwrap_or_default(),
        safe_commands: p.safe_commands.unwrap_or(true),
        allow: p.allow,
        ask: p.ask,
        deny: p.deny,
        tool: p.tool,
        input: p.input,
    };
    // It looks at paths, and a long command takes a while.
    let judged = tokio::task::spawn_blocking(move || session::explain(&question)).await;
    let verdict = judged.unwrap_or(Err(session::SessionError::Crashed)).map_err(convert::fault)?;
    Ok(ExplainReply {
        verdict: verdict.verdict,
        rule: verdict.rule,
        reason: verdict.reason,
        suggestions: verdict.suggestions,
        parts: verdict.parts,
    })
}
