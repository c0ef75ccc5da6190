//! `agentctl ps`: sessions as a table, as JSON, or by a template. [`view`] lays out the table.

mod view;

use api::methods;
use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use serde_json::Value;

use crate::args::PsArgs;
use crate::commands::ps::view::{SessionListing, screen};
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::connection::remote::Machine;
use crate::connection::session_feed::SessionFeed;
use crate::failure::Failure;
use crate::resolve_id::{self, OPEN_STATES};
use crate::terminal::format::{age, all_tokens, cost, now, tokens};
use crate::terminal::out::{OutputStreams, terminal_columns, terminal_rows};
use crate::ui::session_state;
use api::params::{ListParams, ListReply};
use types::session::{SessionState, SessionView};

/// How often ages are drawn again while nothing changes.
const TICK: Duration = Duration::from_secs(10);
/// Maximum number of sessions that neither work nor wait, on a terminal.
const SCREEN_LIMIT: u32 = 200;
/// Sessions per request.
const MAX_PAGE: u32 = 500;

pub(crate) async fn ps(reach: &Connector, args: &PsArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let reach = &reach.as_observer();
    // The folders of another machine need not exist here, so list all of them.
    let folder = match args.all_folders || reach.machine() == Machine::Other {
        true => None,
        false => Some(paths::current_folder()?.display().to_string()),
    };
    if args.watch {
        return watch(reach, args, folder.as_deref(), out).await;
    }
    let client = reach.connect_or_start().await?;
    let filter = ListParams {
        states: (!args.all).then(|| OPEN_STATES.to_vec()),
        cwd: folder.clone(),
        search: args.search.clone(),
        include_children: args.tree,
        ..ListParams::default()
    };
    let is_screen =
        stdout().is_terminal() && !args.json && !args.quiet && args.format.is_none() && !args.tree;
    let limit = args.limit.or(is_screen.then_some(SCREEN_LIMIT));
    let (listed, has_more) = match limit {
        Some(limit) => newest_sessions(&client, &filter, limit).await?,
        None => (resolve_id::all_sessions(&client, &filter).await?, false),
    };
    let sessions = select_sessions(listed.iter().collect(), args, folder.as_deref());
    if args.json {
        return Ok(out.json(&sessions)?);
    }
    if args.quiet {
        return sessions.iter().try_for_each(|session| Ok(out.say(&session.session_id.to_string())?));
    }
    if let Some(template) = &args.format {
        let rows: Vec<Value> = sessions.iter().map(|session| row(session)).collect();
        return template.print(&rows, out);
    }
    let elsewhere = match folder {
        Some(_) => waiting_elsewhere(&client, &sessions).await?,
        None => 0,
    };
    let folder = folder.as_deref();
    let shown = SessionListing { sessions, folder, elsewhere, is_searched: args.search.is_some(), has_more };
    print(&shown, args, None, out)
}

/// Returns all sessions that work or wait for the user, and the newest of the other sessions. Also returns
/// whether there are more of those. The number is limited, because reading ten thousand sessions takes time
/// and no screen shows that many rows.
async fn newest_sessions(
    client: &Client,
    filter: &ListParams,
    limit: u32,
) -> Result<(Vec<SessionView>, bool), Failure> {
    const BUSY: [SessionState; 3] =
        [SessionState::RequiresAction, SessionState::Paused, SessionState::Running];
    const QUIET: [SessionState; 4] =
        [SessionState::Idle, SessionState::Failed, SessionState::Ended, SessionState::Archived];
    let of = |states: &[SessionState]| {
        let wanted = |state: &&SessionState| filter.states.as_ref().is_none_or(|all| all.contains(state));
        ListParams { states: Some(states.iter().filter(wanted).copied().collect()), ..filter.clone() }
    };
    let mut sessions = resolve_id::all_sessions(client, &of(&BUSY)).await?;
    let mut params = of(&QUIET);
    let mut missing = limit;
    while missing > 0 {
        params.limit = Some(missing.min(MAX_PAGE));
        let page = client.call::<methods::session::List>(&params).await?;
        missing = missing.saturating_sub(u32::try_from(page.sessions.len()).unwrap_or(u32::MAX));
        sessions.extend(page.sessions);
        params.cursor = page.next_cursor;
        if params.cursor.is_none() {
            return Ok((sessions, false));
        }
    }
    Ok((sessions, true))
}

/// The sessions that the arguments ask for, in their order.
fn select_sessions<'s>(
    sessions: Vec<&'s SessionView>,
    args: &PsArgs,
    folder: Option<&str>,
) -> Vec<&'s SessionView> {
    let is_shown = |session: &&SessionView| {
        (args.all || OPEN_STATES.contains(&session.summary.state))
            && (args.tree || session.parent_session_id.is_none())
            && folder.is_none_or(|folder| session.cwd == folder)
    };
    let sessions: Vec<&SessionView> = sessions.into_iter().filter(is_shown).collect();
    if args.tree { view::tree(sessions) } else { view::sort_by_state(sessions) }
}

/// Number of sessions in other folders that wait for the user.
async fn waiting_elsewhere(client: &Client, here: &[&SessionView]) -> Result<usize, Failure> {
    let filter = ListParams {
        states: Some(vec![SessionState::RequiresAction, SessionState::Paused]),
        limit: Some(500),
        ..ListParams::default()
    };
    let waiting: ListReply = client.call::<methods::session::List>(&filter).await?;
    let is_here = |session: &SessionView| here.iter().any(|one| one.session_id == session.session_id);
    let waits = |session: &&SessionView| view::is_waiting(session) && !is_here(session);
    Ok(waiting.sessions.iter().filter(waits).count())
}

async fn watch(
    reach: &Connector,
    args: &PsArgs,
    folder: Option<&str>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let mut feed = SessionFeed::start(reach).await?;
    loop {
        let all = feed.sessions();
        let elsewhere = all
            .iter()
            .filter(|it| folder.is_some_and(|folder| it.cwd != folder) && view::is_waiting(it))
            .count();
        let mut sessions = select_sessions(all, args, folder);
        if let Some(search) = &args.search {
            let search = search.to_lowercase();
            sessions.retain(|it| {
                format!("{}\n{}\n{}", it.summary.title, it.cwd, it.summary.last_line)
                    .to_lowercase()
                    .contains(&search)
            });
        }
        if args.json {
            out.json(&sessions)?;
        } else {
            let rows = stdout().is_terminal().then(terminal_rows);
            if rows.is_some() {
                // Overwrite the last frame instead of clearing first, because a cleared screen flickers.
                out.stream("\x1b[?2026h\x1b[H")?;
            }
            let shown = SessionListing {
                sessions,
                folder,
                elsewhere,
                is_searched: args.search.is_some(),
                has_more: false,
            };
            print(&shown, args, rows, out)?;
            if rows.is_some() {
                out.stream("\x1b[J\x1b[?2026l")?;
            }
        }
        if let Ok(changed) = tokio::time::timeout(TICK, feed.wait_change()).await {
            changed?;
        }
    }
}

fn print(
    shown: &SessionListing<'_>,
    args: &PsArgs,
    rows: Option<usize>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let columns = stdout().is_terminal().then(terminal_columns);
    let home = std::env::var("HOME").ok();
    let mut lines = screen(shown, now(), home.as_deref(), columns);
    if let Some(rows) = rows {
        // Keep the footer visible, and leave the cursor's row free.
        let footer = lines.pop();
        lines.truncate(rows.saturating_sub(2));
        lines.extend(footer);
    }
    let is_table = columns.is_some() || !shown.sessions.is_empty();
    let footer = lines.pop();
    if is_table {
        for line in lines {
            match rows {
                Some(_) => out.line(&line.and(crate::terminal::style::Tone::Plain, "\x1b[K"))?,
                None => out.line(&line)?,
            }
        }
    }
    match footer {
        Some(footer) if rows.is_some() => {
            Ok(out.line(&footer.and(crate::terminal::style::Tone::Plain, "\x1b[K"))?)
        }
        // In a pipe, this line below the table would look like a row.
        Some(footer) if columns.is_some() || shown.sessions.is_empty() && !args.all => {
            Ok(out.print_error_line(&footer)?)
        }
        _ => Ok(()),
    }
}

/// The session's JSON with the texts of the table.
fn row(session: &SessionView) -> Value {
    let mut row = serde_json::to_value(session).unwrap_or_default();
    if let Some(fields) = row.as_object_mut() {
        let (_, status) = session_state::state(session);
        let texts = [
            ("id", session.session_id.to_string()),
            ("status", status),
            ("age", age(now().since(session.created_at_ms))),
            ("cost", cost(session.summary.cost_usd_micros, session.summary.cost_at_least_usd_micros)),
            ("tokens", tokens(all_tokens(&session.summary.usage))),
            ("folder", session.cwd.clone()),
        ];
        fields.extend(texts.map(|(name, text)| (name.to_owned(), text.into())));
    }
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;
    use crate::terminal::template::Template;

    fn two() -> [Value; 2] {
        let mut ended = sample("ses_0190f2a4-0001-7000-8000-000000000002", "old");
        ended["state"] = json!("ended");
        [sample("ses_0190f2a4-0000-7000-8000-000000000001", "fix it"), ended]
    }

    async fn list_with(args: PsArgs) -> String {
        let fake = FakeDaemon::start(|_, _, params| {
            let [first, second] = two();
            Ok(match params["cursor"].as_str() {
                None => json!({"sessions": [first], "next_cursor": "more"}),
                Some(_) => json!({"sessions": [second]}),
            })
        });
        let (mut out, text, _) = captured_output();
        ps(&fake.connector(), &PsArgs { all_folders: true, ..args }, &mut out).await.expect("listed");
        text.text()
    }

    #[tokio::test]
    async fn list_json_has_all_pages_with_full_ids() {
        for (all, expected) in [(true, 2), (false, 1)] {
            let text = list_with(PsArgs { all, json: true, ..PsArgs::default() }).await;
            let sessions: Value = serde_json::from_str(&text).expect("json");
            assert_eq!(sessions.as_array().expect("an array").len(), expected);
            let expected: SessionView = serde_json::from_value(two()[0].clone()).expect("a session");
            assert_eq!(sessions[0], json!(expected));
        }
    }

    #[tokio::test]
    async fn limited_list_reads_one_page_of_quiet_sessions() {
        let fake = FakeDaemon::start(|_, method, params| {
            assert_eq!(method, "session.list");
            let [first, mut second] = two();
            second["state"] = json!("running");
            let states = params["states"].as_array().expect("states");
            Ok(match states.contains(&json!("running")) {
                true => json!({"sessions": [second]}),
                false => json!({"sessions": [first], "next_cursor": "more"}),
            })
        });
        let (mut out, text, _) = captured_output();
        let args = PsArgs { all_folders: true, quiet: true, limit: Some(1), ..PsArgs::default() };
        ps(&fake.connector(), &args, &mut out).await.expect("listed");
        assert_eq!(text.text().lines().count(), 2, "{}", text.text());
        assert_eq!(fake.calls().len(), 2, "the cursor is not followed");
        assert_eq!(fake.calls()[1].1["states"], json!(["idle", "failed"]));
    }

    #[tokio::test]
    async fn list_prints_ids_or_template_fields() {
        let quiet = list_with(PsArgs { quiet: true, all: true, ..PsArgs::default() }).await;
        assert_eq!(
            quiet,
            "ses_0190f2a4-0000-7000-8000-000000000001\nses_0190f2a4-0001-7000-8000-000000000002\n"
        );
        let template = Template::parse("{{.Title}}: {{.Status}} {{.Cost}}").expect("a template");
        let text = list_with(PsArgs { format: Some(template), ..PsArgs::default() }).await;
        assert_eq!(text, "fix it: idle ?\n");
    }
}
