//! The screen of `ps`: pure.

use std::collections::HashMap;

use crate::connection::paths;
use crate::terminal::escape;
use crate::terminal::format::{age, all_tokens, cost, tokens};
use crate::terminal::style::{StyledLine, Tone, cut};
use crate::terminal::table::{Table, column};
use crate::ui::session_state::{last_line, state};
use types::ids::SessionId;
use types::session::{SessionState, SessionView};
use types::time::Timestamp;

/// The listed sessions, and data about other sessions for the footer.
pub(super) struct SessionListing<'s> {
    /// The sessions in the order of the list.
    pub(super) sessions: Vec<&'s SessionView>,
    /// The folder whose sessions are listed; `None` for all folders.
    pub(super) folder: Option<&'s str>,
    /// Number of sessions in other folders that wait for the user.
    pub(super) elsewhere: usize,
    /// Whether a search chose the sessions. If so, their matches are shown.
    pub(super) is_searched: bool,
    /// Whether older sessions exist that are not listed.
    pub(super) has_more: bool,
}

/// Whether a session waits for the user.
pub(super) fn is_waiting(session: &SessionView) -> bool {
    matches!(session.summary.state, SessionState::RequiresAction | SessionState::Paused)
}

/// Sorts the sessions: those that wait for the user, those that work, then the rest; each group newest first.
pub(super) fn sort_by_state(mut sessions: Vec<&SessionView>) -> Vec<&SessionView> {
    let rank = |session: &SessionView| match session.summary.state {
        _ if is_waiting(session) => 0,
        SessionState::Running => 1,
        SessionState::Ended | SessionState::Archived => 3,
        _ => 2,
    };
    sessions.sort_by_key(|session| (rank(session), std::cmp::Reverse(session.number)));
    sessions
}

/// The sessions in their order, each followed by its sub-agents, the oldest first.
pub(super) fn tree(sessions: Vec<&SessionView>) -> Vec<&SessionView> {
    let mut below: HashMap<SessionId, Vec<&SessionView>> = HashMap::new();
    let listed: std::collections::HashSet<SessionId> = sessions.iter().map(|it| it.session_id).collect();
    let mut roots = Vec::new();
    for session in &sessions {
        match session.parent_session_id.filter(|id| listed.contains(id)) {
            Some(parent) => below.entry(parent).or_default().push(session),
            None => roots.push(*session),
        }
    }
    let mut in_order = Vec::with_capacity(sessions.len());
    let mut next: Vec<&SessionView> = roots.into_iter().rev().collect();
    while let Some(session) = next.pop() {
        in_order.push(session);
        // The list has the newest first, and `next` is a stack. So the oldest sub-agent is taken first.
        next.extend(below.remove(&session.session_id).unwrap_or_default());
    }
    in_order
}

/// Number of listed sessions above each session.
fn depths(sessions: &[&SessionView]) -> HashMap<SessionId, usize> {
    let mut depths = HashMap::new();
    for session in sessions {
        let above = session.parent_session_id.and_then(|parent| depths.get(&parent));
        depths.insert(session.session_id, above.map_or(0, |depth: &usize| depth + 1));
    }
    depths
}

/// The table with the matches of a search, and the footer as the last line.
pub(super) fn screen(
    shown: &SessionListing<'_>,
    now: Timestamp,
    home: Option<&str>,
    columns: Option<usize>,
) -> Vec<StyledLine> {
    let mut table = Table::new([
        column("#").right(),
        column("TITLE").between(14, 40),
        column("STATE").between(10, 32),
        column("AGE").right(),
        column("MODEL").between(8, 28).rank(3),
        column("COST").right().rank(1),
        column("TOKENS").right().rank(5),
        column("CLIENTS").right().rank(6),
        column("FOLDER").between(10, 32).rank(2).keep_end(),
        column("LAST LINE").between(20, 60).rank(4),
    ]);
    let depths = depths(&shown.sessions);
    for session in &shown.sessions {
        let depth = depths.get(&session.session_id).copied().unwrap_or(0);
        let (tone, line) = last_line(session);
        // Show the name of the model only, because it is the part that differs. `inspect` shows the vendor, too.
        let model =
            session.summary.model.split_once('/').map_or(session.summary.model.as_str(), |(_, model)| model);
        table.push([
            (Tone::Bold, session.number.to_string()),
            (Tone::Bold, title_cell(session, depth)),
            state(session),
            (Tone::Dim, age(now.since(session.created_at_ms))),
            (Tone::Plain, escape::line(model).into_owned()),
            (Tone::Plain, cost(session.summary.cost_usd_micros, session.summary.cost_at_least_usd_micros)),
            (Tone::Dim, tokens(all_tokens(&session.summary.usage))),
            (Tone::Dim, session.clients.to_string()),
            (Tone::Plain, escape::line(&paths::short(&session.cwd, home)).into_owned()),
            (tone, escape::line(line).into_owned()),
        ]);
    }
    let mut lines = table.lines(columns);
    if shown.is_searched || shown.sessions.iter().any(|session| session.summary.notice.is_some()) {
        lines = with_details(lines, &shown.sessions, columns);
    }
    lines.push(StyledLine::new(Tone::Dim, footer(shown)));
    lines
}

/// Adds the notice of each session, and the matches of a search.
fn with_details(
    lines: Vec<StyledLine>,
    sessions: &[&SessionView],
    columns: Option<usize>,
) -> Vec<StyledLine> {
    let mut with = Vec::with_capacity(lines.len() * 2);
    for (n, line) in lines.into_iter().enumerate() {
        with.push(line);
        // The first line is the head of the table, which belongs to no session.
        let Some(session) = n.checked_sub(1).map(|n| sessions[n]) else { continue };
        if let Some(notice) = &session.summary.notice {
            let text = format!("    ! {}", escape::line(notice));
            with.push(StyledLine::new(
                Tone::Warn,
                columns.map_or(text.clone(), |columns| cut(&text, columns)),
            ));
        }
        for result in &session.matches {
            let snippet = escape::line(&result.snippet);
            with.push(StyledLine::new(
                Tone::Dim,
                match columns {
                    Some(columns) => cut(&format!("    {snippet}"), columns),
                    // Print the item's id, because a script may rewind or fork there.
                    None => format!("    {}  {}", result.item_id, cut(&snippet, 160)),
                },
            ));
        }
    }
    with
}

/// The title. The title of a sub-agent is indented and preceded by the name of its agent.
fn title_cell(session: &SessionView, depth: usize) -> String {
    let title = escape::line(session.summary.title.trim());
    let title = if title.is_empty() { "(no input yet)".into() } else { title };
    match depth {
        0 => title.into_owned(),
        depth => {
            let agent = escape::line(session.agent.as_deref().unwrap_or("sub-agent"));
            format!("{}└ {agent}: {title}", "  ".repeat(depth - 1))
        }
    }
}

fn footer(shown: &SessionListing<'_>) -> String {
    let count = shown.sessions.len();
    let waiting = shown.sessions.iter().filter(|session| is_waiting(session)).count();
    let mut parts = match (count, shown.folder) {
        (0, Some(_)) => vec!["no session in this folder".to_owned()],
        (0, None) => vec!["no session".to_owned()],
        (_, Some(_)) => vec![format!("{count} here")],
        (_, None) => vec![format!("{count} in all folders")],
    };
    let verb = |count: usize| if count == 1 { "waits" } else { "wait" };
    if shown.has_more {
        parts[0] = format!("the newest {count}; --limit or a pipe lists more");
    }
    if waiting > 0 {
        parts.push(format!("{waiting} {} for you", verb(waiting)));
    }
    if shown.elsewhere > 0 {
        parts.push(format!("{} {} in other folders", shown.elsewhere, verb(shown.elsewhere)));
    }
    if count == 0 {
        parts.push("-a ended ones".into());
    }
    if shown.folder.is_some() {
        parts.push("-A all folders".into());
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::resolve_id::sample;
    use crate::terminal::style::width;
    use crate::ui::screen_files::check_screen;

    fn session(number: u64, title: &str, changes: Value) -> SessionView {
        let mut session = sample(&format!("ses_0190f2a4-0000-7000-8000-{number:012}"), title);
        let fields = session.as_object_mut().expect("an object");
        fields.extend(changes.as_object().expect("an object").clone());
        fields.insert("number".into(), json!(number));
        fields.insert("cwd".into(), json!("/home/me/shop"));
        fields.insert("model".into(), json!("anthropic/sonnet"));
        serde_json::from_value(session).expect("a session")
    }

    fn sessions() -> Vec<SessionView> {
        let failed = json!({"subtype": "llm_error", "kind": "unauthorized", "message": "mock answered 401", "ended_at_ms": 1});
        vec![
            session(
                14,
                "nightly dependency update of all",
                json!({"state": "running", "activity": "Bash cargo test", "cost_usd_micros": 90_000}),
            ),
            session(
                12,
                "fix\u{1b}[2J login",
                json!({"state": "requires_action", "requires": "permission", "activity": "Edit src/lib.rs", "cost_usd_micros": 40_000}),
            ),
            session(9, "changelog for 0.4", json!({"last_turn": failed, "cost_usd_micros": 0})),
        ]
    }

    fn plain(columns: Option<usize>) -> Vec<String> {
        let sessions = sessions();
        let shown = SessionListing {
            sessions: sort_by_state(sessions.iter().collect()),
            folder: Some("/home/me/shop"),
            elsewhere: 1,
            is_searched: false,
            has_more: false,
        };
        screen(&shown, Timestamp(60_001), Some("/home/me"), columns).iter().map(StyledLine::plain).collect()
    }

    #[test]
    fn session_list_at_80_columns_shows_what_differs() {
        assert_eq!(
            plain(Some(80)),
            [
                " #  TITLE                     STATE                AGE   COST  LAST LINE",
                "12  fix⟦ESC⟧[2J login         waits: Edit           1m  $0.04  hello",
                "14  nightly dependency upda…  Bash cargo test       1m  $0.09  hello",
                " 9  changelog for 0.4         failed: key refused   1m     $0  mock answered 401",
                "3 here · 1 waits for you · 1 waits in other folders · -A all folders",
            ]
        );
    }

    #[test]
    fn session_list_screen_matches_fixture() {
        let mut sessions = sessions();
        let more = (100..140).map(|number| session(number, &format!("task {number}"), json!({})));
        sessions.extend(more.take(12));
        check_screen("ps", |(columns, _)| {
            let shown = SessionListing {
                sessions: sort_by_state(sessions.iter().collect()),
                folder: None,
                elsewhere: 0,
                is_searched: false,
                has_more: true,
            };
            screen(&shown, Timestamp(60_001), Some("/home/me"), Some(columns))
        });
    }

    #[test]
    fn session_list_fits_every_width() {
        for columns in 20..200 {
            let lines = plain(Some(columns));
            let table = &lines[..lines.len() - 1];
            assert!(table.iter().all(|line| width(line) <= columns), "{columns}: {table:?}");
        }
        assert!(plain(Some(140)).iter().any(|line| line.contains("LAST LINE")));
        assert!(plain(None)[3].contains("mock answered 401"));
    }

    #[test]
    fn session_tree_indents_sub_agents_below_parent() {
        let mut sessions = sessions();
        sessions[0].parent_session_id = Some(sessions[2].session_id);
        sessions[0].agent = Some("tester".into());
        let ordered = tree(sessions.iter().collect());
        let numbers: Vec<u64> = ordered.iter().map(|it| it.number).collect();
        assert_eq!(numbers, [12, 9, 14]);
        assert_eq!(
            title_cell(ordered[2], depths(&ordered)[&ordered[2].session_id]),
            "└ tester: nightly dependency update of all"
        );
    }
}
