//! `agentctl audit`: the permission decisions, and whether their log is intact.

use api::methods;
use std::collections::HashMap;

use crate::args::Since;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::failure::{Failure, code};
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::now;
use crate::terminal::out::{OutputStreams, harmless_json};
use crate::terminal::style::Tone;
use crate::terminal::table::{Cell, Table, column};
use api::params::{AuditParams, ListParams, VerifyAuditParams, VerifyAuditReply};
use types::audit::{AuditEntry, AuditHead, AuditKind, NO_SANDBOX};
use types::ids::SessionId;
use types::time::Timestamp;

/// Rows per request.
const PAGE_ROWS: u32 = 500;

/// Prints the log, oldest first.
pub(crate) async fn audit(
    reach: &Connector,
    session: Option<&str>,
    since: Option<Since>,
    (json, long): (bool, bool),
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let session_id = match session {
        Some(name) => Some(session_of(&client, name).await?),
        None => None,
    };
    let (cursor, since_ms) = match since {
        None => (None, None),
        Some(Since::Seq(id)) => (Some(id.to_string()), None),
        Some(Since::Ago(ms)) => {
            (None, Some(Timestamp(now().0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))))
        }
    };
    let params = AuditParams { session_id, since_ms, cursor, limit: Some(PAGE_ROWS) };
    let everything = ListParams { include_children: true, ..ListParams::default() };
    let sessions = if json { Vec::new() } else { resolve_id::all_sessions(&client, &everything).await? };
    let numbers: HashMap<SessionId, u64> = sessions.iter().map(|it| (it.session_id, it.number)).collect();
    let mut rows = table(long);
    let mut is_empty = true;
    let mut pages = client.pages::<methods::permission::Audit>(params);
    while let Some(page) = pages.next().await? {
        for entry in &page.entries {
            is_empty = false;
            if json {
                let text = serde_json::to_string(entry).map_err(|e| Failure::internal(e.to_string()))?;
                out.say(&harmless_json(&text))?;
            } else {
                rows.push(row(entry, &numbers, long));
            }
        }
    }
    match (json, is_empty) {
        (true, _) => Ok(()),
        (false, true) => Ok(out.note("nothing was decided yet")?),
        (false, false) => rows.print(out),
    }
}

/// Asks the daemon to check the whole log. `known` is a row that the user stored elsewhere, as `NUMBER:HASH`.
pub(crate) async fn verify(
    reach: &Connector,
    known: Option<AuditHead>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let reply: VerifyAuditReply =
        client.call::<methods::permission::VerifyAudit>(&VerifyAuditParams { known }).await?;
    for fault in &reply.faults {
        out.say(&escape::line(fault))?;
    }
    if !reply.faults.is_empty() {
        let message = format!("the audit log is not as it was written ({} rows read)", reply.rows);
        return Err(Failure::new(code::INTERNAL, message));
    }
    match reply.head {
        Some(head) => {
            out.say(&format!(
                "the audit log is intact: {} rows, the newest is {}:{}",
                reply.rows, head.id, head.hash
            ))?;
        }
        None => out.say("the audit log is empty")?,
    }
    Ok(())
}

/// Finds a session that may be deleted. Only the full id identifies a deleted session.
async fn session_of(client: &Client, name: &str) -> Result<SessionId, Failure> {
    match name.parse() {
        Ok(id) => Ok(id),
        Err(_) => Ok(resolve_id::session(client, name).await?.session_id),
    }
}

/// The rows as a table. `--long` adds the process of the client, and the sandbox.
fn table(is_long: bool) -> Table {
    let mut columns = vec![
        column("ROW").right(),
        column("TIME").between(8, 20).rank(3),
        column("VERDICT").between(7, 12),
        column("KIND").between(6, 12).rank(4),
        column("#").right().rank(2),
        column("TOOL").between(6, 24),
        column("RULE").between(10, 60).rank(5),
        column("REASON").between(16, 100).rank(1),
        column("BY").between(6, 24).rank(6),
    ];
    if is_long {
        columns
            .extend([column("PROCESS").between(10, 200).rank(8), column("SANDBOX").between(8, 100).rank(7)]);
    }
    Table::new(columns)
}

fn row(entry: &AuditEntry, numbers: &HashMap<SessionId, u64>, is_long: bool) -> Vec<Cell> {
    let note = &entry.note;
    let tone = match note.verdict.as_str() {
        "deny" | "refused" | "untrusted" => Tone::Bad,
        "allow" | "trusted" => Tone::Good,
        _ => Tone::Warn,
    };
    let text = |text: Option<&str>| escape::line(text.unwrap_or_default()).into_owned();
    // A session without a number was deleted.
    let session = note.session_id.map(|id| numbers.get(&id).map_or_else(|| "–".into(), ToString::to_string));
    let is_reason_news = note.kind != AuditKind::Rule || note.verdict == "deny";
    let mut cells = vec![
        (Tone::Dim, entry.id.to_string()),
        (Tone::Dim, time(note.at_ms)),
        (tone, text(Some(&note.verdict))),
        (Tone::Plain, note.kind.name().to_owned()),
        (Tone::Bold, session.unwrap_or_default()),
        (Tone::Bold, text(note.tool.as_deref())),
        (Tone::Plain, text(note.rule.as_deref())),
        (Tone::Dim, if is_reason_news { text(Some(&note.reason)) } else { String::new() }),
        (Tone::Plain, text(note.client.as_deref())),
    ];
    if is_long {
        let pid = note.pid.map(|pid| format!("{pid} ")).unwrap_or_default();
        let sandbox = if note.sandbox == NO_SANDBOX { "" } else { note.sandbox.as_str() };
        cells.push((Tone::Dim, format!("{pid}{}", text(note.exe.as_deref()))));
        cells.push((Tone::Dim, text(Some(sandbox))));
    }
    cells
}

/// Date and time to the second, in UTC.
fn time(time: Timestamp) -> String {
    let seconds = time.0.div_euclid(1_000).rem_euclid(86_400);
    format!("{} {:02}:{:02}:{:02}Z", time.date(), seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use crate::commands::audit::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[tokio::test]
    async fn audit_rows_are_paged_and_escaped_for_terminal() {
        let fake = FakeDaemon::start(|_, method, params| {
            if method == "session.list" {
                return Ok(json!({"sessions": []}));
            }
            let id = if params["cursor"].is_null() { 1 } else { 2 };
            let entry = json!({
                "id": id, "at_ms": 0, "kind": "refused", "tool": "session.approve", "verdict": "refused",
                "reason": "a tool", "client": "\u{1b}[2Jx", "uid": 0, "pid": 7, "sandbox": "unknown",
                "prev": "", "hash": "h"
            });
            Ok(if id == 1 {
                json!({"entries": [entry], "next_cursor": "1"})
            } else {
                json!({"entries": [entry]})
            })
        });
        let (mut out, text, _) = captured_output();
        audit(&fake.connector(), None, None, (false, true), &mut out).await.expect("shown");
        let shown = text.text();
        assert_eq!(shown.lines().count(), 3, "{shown}");
        assert!(shown.contains("1970-01-01 00:00:00Z") && shown.contains("session.approve"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }

    #[tokio::test]
    async fn audit_verify_fails_with_named_faults() {
        let fake = FakeDaemon::start(|_, _, _| Ok(json!({"rows": 3, "faults": ["row 2: it was changed"]})));
        let (mut out, text, _) = captured_output();
        let failure = verify(&fake.connector(), None, &mut out).await.expect_err("faults");
        assert_eq!((failure.code, text.text().as_str()), (code::INTERNAL, "row 2: it was changed\n"));
    }
}
