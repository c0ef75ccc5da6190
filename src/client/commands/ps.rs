//! `agentctl ps`: sessions as a table, or as JSON.

use std::collections::HashMap;
use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use crate::api::params::ListParams;
use crate::client::args::PsArgs;
use crate::client::connection::connector::Connector;
use crate::client::connection::paths;
use crate::client::failure::Failure;
use crate::client::resolve_id;
use crate::client::terminal::escape;
use crate::client::terminal::format::{age, all_tokens, cost, now, tokens};
use crate::client::terminal::out::{Out, terminal_columns};
use crate::client::terminal::style::{Line, Tone, cut, cut_start, pad, width};
use crate::types::ids::SessionId;
use crate::types::session::{Requires, SessionState, SessionView};
use crate::types::time::Timestamp;

pub(in crate::client) async fn ps(reach: &Connector, args: &PsArgs, out: &mut Out) -> Result<(), Failure> {
    let mut client = reach.connect_or_start().await?;
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let home = std::env::var("HOME").ok();
    loop {
        if client.is_closed() {
            client = reach.connect_again().await?;
        }
        // Ids are shortened so that they are unique among all sessions, so a user can type each shown
        // id.
        let with_children = ListParams { include_children: true, ..ListParams::default() };
        let all = resolve_id::all_sessions(&client, &with_children).await?;
        let ids = short_ids(&all);
        let found = match &args.search {
            Some(search) => {
                let filter = ListParams { search: Some(search.clone()), ..with_children };
                Some(resolve_id::all_sessions(&client, &filter).await?)
            }
            None => None,
        };
        let listed = found.as_ref().unwrap_or(&all);
        let shown = listed.iter().filter(|s| args.all || is_alive(s));
        let shown: Vec<&SessionView> = match args.tree {
            true => tree(shown.collect()),
            false => shown.filter(|s| s.parent_session_id.is_none()).collect(),
        };
        if args.watch && stdout().is_terminal() {
            out.stream("\x1b[H\x1b[2J\x1b[3J")?;
        }
        if args.json {
            out.json(&shown)?;
        } else {
            let columns = stdout().is_terminal().then(terminal_columns);
            for (n, line) in table(&shown, &ids, now(), home.as_deref(), columns).into_iter().enumerate() {
                out.line(&line)?;
                // The first line is the head.
                for found in n.checked_sub(1).map_or(&[][..], |n| &shown[n].matches) {
                    let snippet = cut(&escape::line(&found.snippet), LAST_LINE);
                    out.line(&Line::default().and(Tone::Dim, format!("    {}  {snippet}", found.item_id)))?;
                }
            }
            let hidden = listed
                .iter()
                .filter(|s| !is_alive(s) && (args.tree || s.parent_session_id.is_none()))
                .count();
            let hidden = if args.all { 0 } else { hidden };
            if shown.is_empty() && hidden > 0 {
                out.note(&format!("{hidden} ended or archived; -a shows them"))?;
            }
        }
        if !args.watch {
            return Ok(());
        }
        tick.tick().await;
    }
}

fn is_alive(session: &SessionView) -> bool {
    !matches!(session.state, SessionState::Ended | SessionState::Archived)
}

/// The sessions in their order, each followed by its sub-agents, the oldest first.
fn tree(sessions: Vec<&SessionView>) -> Vec<&SessionView> {
    let is_listed = |id: SessionId| sessions.iter().any(|s| s.session_id == id);
    let mut below: HashMap<SessionId, Vec<&SessionView>> = HashMap::new();
    let mut roots = Vec::new();
    for session in &sessions {
        match session.parent_session_id.filter(|id| is_listed(*id)) {
            Some(parent) => below.entry(parent).or_default().push(session),
            None => roots.push(*session),
        }
    }
    let mut ordered = Vec::with_capacity(sessions.len());
    let mut next: Vec<&SessionView> = roots.into_iter().rev().collect();
    while let Some(session) = next.pop() {
        ordered.push(session);
        // The newest comes first in the list, so the oldest is taken first here.
        next.extend(below.remove(&session.session_id).unwrap_or_default());
    }
    ordered
}

/// Number of listed sessions above a session.
fn depth(session: &SessionView, sessions: &[&SessionView]) -> usize {
    let above = |session: &SessionView| {
        let parent = session.parent_session_id?;
        sessions.iter().find(|s| s.session_id == parent).copied()
    };
    // An id never occurs twice above itself, but a list from elsewhere must not end in a loop.
    std::iter::successors(above(session), |session| above(session)).take(sessions.len()).count()
}

/// The shortest unique start of each id, at least eight characters.
pub(in crate::client) fn short_ids(sessions: &[SessionView]) -> HashMap<String, String> {
    let mut ids: Vec<String> = sessions.iter().map(|s| s.session_id.to_string()).collect();
    ids.sort_unstable();
    let shared = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let mut short = HashMap::new();
    for (n, id) in ids.iter().enumerate() {
        let before = n.checked_sub(1).map_or(0, |p| shared(id, &ids[p]));
        let after = ids.get(n + 1).map_or(0, |next| shared(id, next));
        let mut end = (before.max(after) + 1).max("ses_".len() + 8).min(id.len());
        if id[..end].ends_with('-') {
            end += 1;
        }
        short.insert(id.clone(), id["ses_".len()..end].to_string());
    }
    short
}

/// State, with the number of background tasks.
fn state(session: &SessionView) -> (Tone, String) {
    let (tone, text) = turn_state(session);
    match session.background_commands.len() {
        0 => (tone, text),
        count => (if tone == Tone::Dim { Tone::Good } else { tone }, format!("{text} +{count} bg")),
    }
}

fn turn_state(session: &SessionView) -> (Tone, String) {
    match (session.state, session.requires) {
        (SessionState::Running, _) => (Tone::Good, "running".into()),
        (SessionState::RequiresAction, requires) => {
            let what = match requires {
                Some(Requires::Permission) => "permission",
                Some(Requires::Question) => "question",
                Some(Requires::UnknownOutcome) => "unknown outcome",
                None => "you",
            };
            (Tone::Warn, format!("waits: {what}"))
        }
        (SessionState::Paused, _) => (Tone::Warn, "paused: answer".into()),
        (SessionState::Failed, _) => (Tone::Bad, "failed".into()),
        (other, _) => (Tone::Dim, other.name().into()),
    }
}

const HEAD: [&str; 11] =
    ["#", "ID", "TITLE", "STATE", "AGE", "MODEL", "COST", "TOKENS", "CLIENTS", "FOLDER", "LAST LINE"];

/// Maximum columns of title, model and folder, on a wide and on a narrow terminal; the last line gets
/// the rest.
const WIDE: (usize, usize, usize) = (28, 28, 40);
const NARROW: (usize, usize, usize) = (20, 18, 16);

/// Columns from which a terminal is wide.
const ENOUGH: usize = 150;

/// Maximum columns of the last line without a terminal.
const LAST_LINE: usize = 200;

/// The title; that of a sub-agent is indented and names its agent.
fn titled(session: &SessionView, sessions: &[&SessionView]) -> String {
    match depth(session, sessions) {
        0 => session.title.clone(),
        depth => {
            let agent = session.agent.as_deref().unwrap_or("sub-agent");
            format!("{}└ {agent}: {}", "  ".repeat(depth - 1), session.title)
        }
    }
}

fn table(
    sessions: &[&SessionView],
    ids: &HashMap<String, String>,
    now: Timestamp,
    home: Option<&str>,
    columns: Option<usize>,
) -> Vec<Line> {
    let mut rows: Vec<[(Tone, String); 11]> = vec![HEAD.map(|name| (Tone::Bold, name.to_string()))];
    let (title, model, folder) = if columns.is_none_or(|c| c >= ENOUGH) { WIDE } else { NARROW };
    for session in sessions {
        let id = session.session_id.to_string();
        let text = |raw: &str, most: usize| cut(&escape::line(raw), most);
        rows.push([
            (Tone::Bold, session.number.to_string()),
            (Tone::Plain, ids.get(&id).cloned().unwrap_or(id)),
            (Tone::Bold, text(&titled(session, sessions), title)),
            state(session),
            (Tone::Dim, age(now.since(session.created_at_ms))),
            (Tone::Plain, text(&session.model, model)),
            (Tone::Plain, cost(session.cost_usd_micros, session.cost_at_least_usd_micros)),
            (Tone::Plain, tokens(all_tokens(&session.usage))),
            (Tone::Plain, session.clients.to_string()),
            (Tone::Plain, cut_start(&escape::line(&paths::short(&session.cwd, home)), folder)),
            (Tone::Dim, text(session.last_line.trim_end(), LAST_LINE)),
        ]);
    }
    let wide: Vec<usize> =
        (0..HEAD.len()).map(|n| rows.iter().map(|row| width(&row[n].1)).max().unwrap_or(0)).collect();
    rows.iter()
        .map(|row| {
            let mut line = Line::default();
            let mut used = 0;
            for (n, (tone, text)) in row.iter().enumerate() {
                if n + 1 == HEAD.len() {
                    let room = columns.map_or(LAST_LINE, |c| c.saturating_sub(used));
                    line = line.and(*tone, cut(text, room));
                } else {
                    line = line.and(*tone, pad(text, wide[n])).and(Tone::Plain, "  ");
                    used += wide[n] + 2;
                }
            }
            line
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::client::commands::ps::*;
    use crate::client::fake::Fake;
    use crate::client::resolve_id::sample;
    use crate::client::terminal::out::testing::papers;
    use serde_json::{Value, json};

    fn two() -> [Value; 2] {
        let mut busy = sample("ses_0190f2a4-0000-7000-8000-000000000001", "fix\u{1b}[2J it");
        busy["state"] = json!("requires_action");
        busy["requires"] = json!("permission");
        busy["cwd"] = json!("/home/me/src");
        busy["cost_usd_micros"] = json!(1_500_000);
        busy["background_commands"] = json!([{
            "bash_id": "bash_1", "call_id": "call_0190f2a4-0000-7000-8000-000000000003",
            "command": "serve", "state": "running", "started_at_ms": 1,
        }]);
        let mut ended = sample("ses_0190f2a4-0001-7000-8000-000000000002", "old");
        ended["state"] = json!("ended");
        [busy, ended]
    }

    #[test]
    fn session_table_names_pending_request_kind() {
        let sessions: Vec<SessionView> =
            two().into_iter().map(|s| serde_json::from_value(s).expect("a session")).collect();
        let all: Vec<&SessionView> = sessions.iter().collect();
        let lines = table(&all, &short_ids(&sessions), Timestamp(60_001), Some("/home/me"), None);
        let plain: Vec<String> = lines.iter().map(Line::plain).collect();
        assert_eq!(
            plain,
            [
                "#  ID             TITLE           STATE                    AGE  MODEL        COST   TOKENS  CLIENTS  FOLDER  LAST LINE",
                "0  0190f2a4-0000  fix⟦ESC⟧[2J it  waits: permission +1 bg  1m   demo/replay  $1.50  3       0        ~/src   hello",
                "0  0190f2a4-0001  old             ended                    1m   demo/replay  ?      3       0        /w      hello",
            ]
        );
        let narrow = table(&all, &short_ids(&sessions), Timestamp(60_001), None, Some(115));
        assert!(narrow.iter().all(|line| width(&line.plain()) <= 116), "{narrow:?}");
    }

    #[tokio::test]
    async fn list_json_has_all_pages_with_full_ids() {
        for (all, expected) in [(true, 2), (false, 1)] {
            let fake = Fake::start(|_, _, params| {
                let [first, second] = two();
                Ok(match params["cursor"].as_str() {
                    None => json!({"sessions": [first], "next_cursor": "more"}),
                    Some(_) => json!({"sessions": [second]}),
                })
            });
            let (mut out, text, _) = papers();
            let args = PsArgs { all, json: true, ..PsArgs::default() };
            ps(&fake.reach(), &args, &mut out).await.expect("listed");
            let listed: Value = serde_json::from_str(&text.text()).expect("json");
            assert_eq!(listed.as_array().expect("an array").len(), expected);
            let expected: SessionView = serde_json::from_value(two()[0].clone()).expect("a session");
            assert_eq!(listed[0], json!(expected));
        }
    }
}
