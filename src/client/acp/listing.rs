//! `session/list`.

use serde::Serialize;
use serde_json::{Value, json};

use super::conversation::Shared;
use super::mapper::iso_time;
use super::schema::ListSessionsParams;
use super::wire::{AcpError, params};
use api::methods;
use api::params::ListParams;
use types::session::{SessionState, SessionView};

/// Sessions per page.
const PAGE_SIZE: u32 = 50;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionInfo {
    session_id: String,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    updated_at: String,
    #[serde(rename = "_meta")]
    meta: Value,
}

/// Lists the sessions that are neither archived nor ended, of one folder or of all.
pub(super) async fn list(shared: &Shared, work_dir: Option<&str>, input: Value) -> Result<Value, AcpError> {
    let ListSessionsParams { cwd, cursor } = params(input)?;
    let cwd = cwd.map(|cwd| work_dir.map_or(cwd, str::to_owned));
    // The daemon knows folders without links.
    let cwd = cwd.map(|cwd| match std::fs::canonicalize(&cwd) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => cwd,
    });
    let states = vec![
        SessionState::Idle,
        SessionState::Running,
        SessionState::RequiresAction,
        SessionState::Paused,
        SessionState::Failed,
    ];
    let params =
        ListParams { cursor, limit: Some(PAGE_SIZE), states: Some(states), cwd, ..ListParams::default() };
    let reply = shared.daemon.call::<methods::session::List>(&params).await?;
    let info = |view: SessionView| SessionInfo {
        session_id: view.session_id.to_string(),
        title: Some(view.summary.title).filter(|title| !title.is_empty()),
        updated_at: iso_time(view.summary.updated_at_ms),
        meta: json!({"_agentd": {"state": view.summary.state.name(), "clients": view.clients,
            "costUsdMicros": view.summary.cost_usd_micros}}),
        cwd: view.cwd,
    };
    let sessions: Vec<SessionInfo> = reply.sessions.into_iter().map(info).collect();
    let mut listed = json!({ "sessions": sessions });
    if let Some(cursor) = reply.next_cursor {
        listed["nextCursor"] = cursor.into();
    }
    Ok(listed)
}
