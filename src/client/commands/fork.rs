//! `agentctl fork`: creates a session with the conversation of another one.

use crate::commands::abort::reply_name;
use crate::connection::connector::Connector;
use crate::connection::session_calls;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{ForkParams, SessionReply};
use types::ids::ItemId;

pub(crate) async fn fork(
    reach: &Connector,
    name: &str,
    item_id: Option<ItemId>,
    title: Option<String>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let original = resolve_id::session(&client, name).await?;
    let session_id = original.session_id;
    let idempotency_key = Some(session_calls::idempotency_key());
    let params = ForkParams { session_id, item_id, title, idempotency_key };
    let SessionReply { session } = client.call::<methods::session::Fork>(&params).await?;
    let worktree = session.details.as_ref().and_then(|details| details.worktree.as_ref());
    if let Some(worktree) = worktree
        && let Some(other) = worktree.shared_with
    {
        let path = escape::line(&worktree.path);
        let other = if other == session_id { reply_name(&original, out) } else { other.to_string() };
        out.note(&format!("it shares the worktree {path} with {other}, which stays until both have ended"))?;
    }
    Ok(out.say(&reply_name(&session, out))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::{FakeDaemon, SESSION};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::{captured_output, captured_pipe};
    use serde_json::json;

    #[tokio::test]
    async fn fork_prints_number_on_terminal_and_id_in_pipe() {
        const NEW: &str = "ses_0190f2a4-0000-7000-8000-000000000009";
        let fake = FakeDaemon::start(|_, method, _| {
            let (id, number) = if method == "session.fork" { (NEW, 13) } else { (SESSION, 12) };
            let mut session = sample(id, "one");
            session["number"] = json!(number);
            Ok(json!({ "session": session }))
        });
        for ((mut out, text, _), expected) in
            [(captured_output(), "#13\n"), (captured_pipe(), &format!("{NEW}\n"))]
        {
            fork(&fake.connector(), "12", None, None, &mut out).await.expect("forked");
            assert_eq!(text.text(), expected);
        }
    }
}
