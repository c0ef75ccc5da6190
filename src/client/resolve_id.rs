//! Resolves the name of a session or request: a full id, a unique start of one, a number, or a title.

use crate::connection::client::{CallError, Client};
use crate::connection::paths;
pub use crate::connection::session_calls::all_sessions;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::format::short_id;
use crate::terminal::style::cut;
use api::methods;
use api::params::{ListParams, ListReply, PermissionListParams, SessionParams, SessionReply};
use types::ids::{PermissionId, SessionId};
use types::permission_request::PendingRequest;
use types::session::{SessionState, SessionView};

/// Minimum characters of a short id; shorter names are not treated as ids.
const SHORT_ID: usize = 8;

/// The session that `name` identifies: its id or a unique start of it, its number, its title, or `.` for the newest
/// session of this folder.
pub async fn session(client: &Client, name: &str) -> Result<SessionView, Failure> {
    if name == "." {
        return newest_here(client).await;
    }
    let name = name.strip_prefix('#').unwrap_or(name);
    let session = match name.parse::<SessionId>() {
        Ok(session_id) => Some(client.call::<methods::session::Get>(&SessionParams { session_id }).await),
        Err(_) => match number(name) {
            Some(number) => Some(
                client
                    .call_as::<methods::session::Get, SessionReply>(
                        &serde_json::json!({"session_id": number}),
                    )
                    .await,
            ),
            None => None,
        },
    };
    match session {
        Some(Err(CallError::Fault(fault))) if fault.kind() == "not_found" && number(name).is_none() => {
            return Err(no_session(name));
        }
        // The number matches no session, but a title or the start of an id may look like a number.
        Some(Err(CallError::Fault(fault))) if fault.kind() == "not_found" => {}
        Some(reply) => return Ok(reply?.session),
        None => {}
    }
    let sessions =
        all_sessions(client, &ListParams { include_children: true, ..ListParams::default() }).await?;
    pick_session(sessions, name)
}

fn number(name: &str) -> Option<u64> {
    name.parse::<u64>().ok().filter(|_| name.len() < SHORT_ID)
}

/// States of sessions that are neither ended nor archived.
pub const OPEN_STATES: [SessionState; 5] = [
    SessionState::Idle,
    SessionState::Running,
    SessionState::RequiresAction,
    SessionState::Paused,
    SessionState::Failed,
];

/// The newest session of this folder, preferably one that accepts input.
pub(crate) async fn newest_here(client: &Client) -> Result<SessionView, Failure> {
    let here = paths::current_folder()?;
    let shown = here.display().to_string();
    let filter = ListParams { cwd: Some(shown.clone()), limit: Some(1), ..ListParams::default() };
    let is_open = |session: &SessionView| OPEN_STATES.contains(&session.summary.state);
    let open = ListParams { states: Some(OPEN_STATES.to_vec()), ..filter.clone() };
    let page: ListReply = client.call::<methods::session::List>(&open).await?;
    let newest = match page.sessions.into_iter().find(is_open) {
        Some(session) => Some(session),
        None => client.call::<methods::session::List>(&filter).await?.sessions.into_iter().next(),
    };
    newest.ok_or_else(|| {
        Failure::usage(format!(
            "no session works in {}; `agentctl ps` lists all, `agentctl run` makes one",
            escape::line(&shown)
        ))
    })
}

fn pick_session(sessions: Vec<SessionView>, name: &str) -> Result<SessionView, Failure> {
    if let Some(numbered) = number(name).and_then(|number| sessions.iter().find(|s| s.number == number)) {
        return Ok(numbered.clone());
    }
    let start = name.strip_prefix("ses_").unwrap_or(name).to_ascii_lowercase();
    let titled: Vec<&SessionView> = sessions.iter().filter(|s| s.summary.title == name).collect();
    let prefix_matches: Vec<&SessionView> = sessions
        .iter()
        .filter(|s| !start.is_empty() && s.session_id.to_string()[4..].starts_with(&start))
        .collect();
    // A start that is as long as an id in `agentctl ps` counts as an id, even if a session has the same
    // title.
    let is_id = start.len() >= SHORT_ID && start.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let fitting =
        if titled.is_empty() || is_id && !prefix_matches.is_empty() { prefix_matches } else { titled };
    match fitting.as_slice() {
        [] => Err(no_session(name)),
        [one] => Ok((*one).clone()),
        several => {
            let mut message = format!("{} could be any of these; say more of the id:", escape::line(name));
            for one in several.iter().take(20) {
                let title = cut(&escape::line(&one.summary.title), 60);
                message.push_str(&format!("\n  {}  {title}", short_id(one.session_id)));
            }
            Err(Failure::usage(message))
        }
    }
}

/// All pending requests, oldest first.
pub async fn all_requests(client: &Client) -> Result<Vec<PendingRequest>, Failure> {
    let params = PermissionListParams { limit: Some(500), ..PermissionListParams::default() };
    Ok(client.all_rows::<methods::permission::List>(params).await?)
}

/// The pending request that `name` identifies.
pub async fn request(client: &Client, name: &str) -> Result<PermissionId, Failure> {
    // Send a full id to the daemon unchanged. If the request is no longer pending, the daemon knows which
    // client answered it.
    if let Ok(id) = name.parse::<PermissionId>() {
        return Ok(id);
    }
    let requests = all_requests(client).await?;
    if let Some(numbered) = requests.iter().find(|r| r.number == name) {
        return Ok(numbered.request.request_id);
    }
    pick_request(requests.into_iter().map(|r| r.request.request_id).collect(), name)
}

fn pick_request(ids: Vec<PermissionId>, name: &str) -> Result<PermissionId, Failure> {
    let start = name.strip_prefix("perm_").unwrap_or(name).to_ascii_lowercase();
    let fits = |id: &PermissionId| !start.is_empty() && id.to_string()["perm_".len()..].starts_with(&start);
    let fitting: Vec<PermissionId> = ids.into_iter().filter(fits).collect();
    match fitting.as_slice() {
        [] => Err(no_request(name)),
        [one] => Ok(*one),
        several => {
            let list: Vec<String> = several.iter().map(|id| format!("\n  {id}")).collect();
            Err(Failure::usage(format!("{} could be any of these:{}", escape::line(name), list.concat())))
        }
    }
}

fn no_session(name: &str) -> Failure {
    Failure::usage(format!("no session is called {}; `agentctl ps -a` lists them", escape::line(name)))
}

/// The error when no pending request matches `name`.
pub(super) fn no_request(name: &str) -> Failure {
    Failure::usage(format!(
        "no request {} waits for an answer; `agentctl approvals` lists them",
        escape::line(name)
    ))
}

/// A session for tests.
#[cfg(test)]
pub(super) fn sample(id: &str, title: &str) -> serde_json::Value {
    serde_json::json!({
        "session_id": id, "title": title, "state": "idle", "cwd": "/w", "model": "demo/replay",
        "mode": "default", "background": false, "created_at_ms": 1, "updated_at_ms": 2, "last_seq": 3,
        "usage": {"input_tokens": 1, "output_tokens": 2}, "cost_usd_micros": null, "clients": 0,
        "last_line": "hello"})
}

#[cfg(test)]
mod tests {
    use crate::resolve_id::*;

    #[test]
    fn session_name_resolves_to_one_or_explains() {
        let sessions: Vec<SessionView> = [
            ("ses_0190f2a4-0000-7000-8000-000000000001", "fix it"),
            ("ses_0190f2a4-1111-7000-8000-000000000002", "0190f2a4-0000"),
            ("ses_0190ffff-0000-7000-8000-000000000003", "fix it"),
        ]
        .into_iter()
        .zip(10..)
        .map(|((id, title), number)| {
            let view: SessionView = serde_json::from_value(sample(id, title)).expect("a session");
            SessionView { number, ..view }
        })
        .collect();
        let check = |name: &str, expected: Result<usize, u8>| {
            let found = pick_session(sessions.clone(), name).map(|s| s.session_id).map_err(|f| f.code);
            assert_eq!(found, expected.map(|n| sessions[n].session_id), "{name}");
        };
        check("ses_0190f2a4-1", Ok(1));
        check("0190FFFF", Ok(2));
        check("0190f2a4-0000", Ok(0)); // an id before a title
        check("0190f2a4", Err(64));
        check("fix it", Err(64));
        check("nothing", Err(64));
        check("", Err(64));
        check("12", Ok(2)); // a number before the start of an id
        let failure = pick_session(sessions.clone(), "fix it").expect_err("ambiguous");
        assert!(failure.message.contains("0190f2a4-0000") && failure.message.contains("0190ffff-0000"));
    }

    #[test]
    fn request_id_prefix_resolves_to_request() {
        let ids: Vec<PermissionId> =
            ["0190f2a4-0000-7000-8000-000000000001", "0190f2a5-0000-7000-8000-000000000001"]
                .iter()
                .map(|id| format!("perm_{id}").parse().expect("an id"))
                .collect();
        let check = |name, expected: Result<usize, u8>| {
            assert_eq!(
                pick_request(ids.clone(), name).map_err(|f| f.code),
                expected.map(|n| ids[n]),
                "{name}"
            );
        };
        check("perm_0190f2a5", Ok(1));
        check("0190f2a4", Ok(0));
        check("0190", Err(64));
        check("zz", Err(64));
    }
}
