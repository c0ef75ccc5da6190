//! `agentctl prune`: deletes ended and empty sessions with their history, after a question.

use crate::args::PruneArgs;
use crate::commands::abort::reply_name;
use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::confirm::confirm;
use crate::terminal::escape;
use crate::terminal::format::{age, now};
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use crate::ui::session_state::state;
use api::methods;
use api::params::{Done, EndParams, ListParams};
use types::session::{SessionState, SessionView};

pub(crate) async fn prune(
    reach: &Connector,
    args: &PruneArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let cwd = match args.all_folders {
        true => None,
        false => Some(paths::current_folder()?.display().to_string()),
    };
    let mut sessions =
        resolve_id::all_sessions(&client, &ListParams { cwd, ..ListParams::default() }).await?;
    sessions.retain(|session| is_pruned(session, args, now()));
    if sessions.is_empty() {
        return Ok(out.note("nothing to delete")?);
    }
    let mut table = Table::new([
        column("#").right(),
        column("TITLE").between(12, 48),
        column("STATE"),
        column("AGE").right(),
    ]);
    for session in &sessions {
        let (tone, state) = state(session);
        table.push([
            (Tone::Bold, session.number.to_string()),
            (Tone::Plain, escape::line(&session.summary.title).into_owned()),
            (tone, state),
            (Tone::Dim, age(now().since(session.summary.updated_at_ms))),
        ]);
    }
    if args.dry_run {
        table.print(out)?;
        return Ok(out.note(&format!("{} would be deleted with their history", sessions.len()))?);
    }
    if !args.force {
        table.print(out)?;
        let count = sessions.len();
        let what = if count == 1 {
            "this session with its".into()
        } else {
            format!("these {count} sessions with their")
        };
        confirm(&format!("Delete {what} history?"), "-f")?;
    }
    for session in &sessions {
        let params = EndParams { session_id: session.session_id, idempotency_key: None };
        let Done {} = client.call::<methods::session::Delete>(&params).await?;
        out.say(&reply_name(session, out))?;
    }
    Ok(out.note(&format!("{} deleted", sessions.len()))?)
}

/// Whether to delete a session: it has ended, or it is idle and never had a turn. Archived sessions are
/// deleted only on request, because a user kept them on purpose.
fn is_pruned(session: &SessionView, args: &PruneArgs, now: types::time::Timestamp) -> bool {
    let is_empty = session.summary.state == SessionState::Idle
        && session.summary.last_turn.is_none()
        && session.summary.last_line.is_empty()
        && session.summary.usage.all_tokens() == 0
        && session.clients == 0;
    let is_chosen = session.summary.state == SessionState::Ended
        || session.summary.state == SessionState::Archived && args.archived
        || is_empty;
    is_chosen && args.older_than.is_none_or(|age| now.since(session.summary.updated_at_ms) >= age)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resolve_id::sample;
    use types::time::Timestamp;

    #[test]
    fn prune_keeps_archived_and_used_sessions() {
        let check = |changes: serde_json::Value, args: &PruneArgs, expected: bool| {
            let mut session = sample("ses_0190f2a4-0000-7000-8000-000000000001", "t");
            session.as_object_mut().expect("an object").extend(changes.as_object().expect("fields").clone());
            let session = serde_json::from_value(session).expect("a session");
            assert_eq!(is_pruned(&session, args, Timestamp(10_000)), expected, "{changes}");
        };
        let plain = PruneArgs::default();
        check(json!({"state": "ended"}), &plain, true);
        check(json!({"state": "archived"}), &plain, false);
        check(json!({"state": "archived"}), &PruneArgs { archived: true, ..PruneArgs::default() }, true);
        check(json!({}), &plain, false);
        check(json!({"usage": {}, "last_line": ""}), &plain, true);
        check(json!({"usage": {}, "last_line": "", "clients": 1}), &plain, false);
        check(
            json!({"state": "ended"}),
            &PruneArgs { older_than: Some(60_000), ..PruneArgs::default() },
            false,
        );
    }
}
