//! `agentctl ps`: sessions as a table, as JSON, or by a template. [`view`] lays out.

mod view;

use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use serde_json::Value;

use crate::api::params::{ListParams, ListReply};
use crate::client::args::PsArgs;
use crate::client::commands::ps::view::{Shown, screen};
use crate::client::connection::client::Client;
use crate::client::connection::connector::Connector;
use crate::client::connection::paths;
use crate::client::connection::session_feed::SessionFeed;
use crate::client::failure::Failure;
use crate::client::resolve_id::{self, OPEN_STATES};
use crate::client::terminal::format::{age, all_tokens, cost, now, tokens};
use crate::client::terminal::out::{Out, terminal_columns, terminal_rows};
use crate::client::ui::session_state;
use crate::types::session::{SessionState, SessionView};

/// How often ages are drawn again while nothing changes.
const TICK: Duration = Duration::from_secs(10);

pub(in crate::client) async fn ps(reach: &Connector, args: &PsArgs, out: &mut Out) -> Result<(), Failure> {
    let reach = &reach.observing();
    let folder = match args.all_folders {
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
    let listed = resolve_id::all_sessions(&client, &filter).await?;
    let sessions = chosen(listed.iter().collect(), args, folder.as_deref());
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
    let shown = Shown { sessions, folder: folder.as_deref(), elsewhere, is_searched: args.search.is_some() };
    print(&shown, args, None, out)
}

/// The sessions that the arguments ask for, in their order.
fn chosen<'s>(sessions: Vec<&'s SessionView>, args: &PsArgs, folder: Option<&str>) -> Vec<&'s SessionView> {
    let is_shown = |session: &&SessionView| {
        (args.all || OPEN_STATES.contains(&session.state))
            && (args.tree || session.parent_session_id.is_none())
            && folder.is_none_or(|folder| session.cwd == folder)
    };
    let sessions: Vec<&SessionView> = sessions.into_iter().filter(is_shown).collect();
    if args.tree { view::tree(sessions) } else { view::ordered(sessions) }
}

/// Number of sessions in other folders that wait for the user.
async fn waiting_elsewhere(client: &Client, here: &[&SessionView]) -> Result<usize, Failure> {
    let filter = ListParams {
        states: Some(vec![SessionState::RequiresAction, SessionState::Paused]),
        limit: Some(500),
        ..ListParams::default()
    };
    let waiting: ListReply = client.call("session.list", &filter).await?;
    let is_here = |session: &SessionView| here.iter().any(|one| one.session_id == session.session_id);
    let waits = |session: &&SessionView| view::waits(session) && !is_here(session);
    Ok(waiting.sessions.iter().filter(waits).count())
}

async fn watch(reach: &Connector, args: &PsArgs, folder: Option<&str>, out: &mut Out) -> Result<(), Failure> {
    let mut feed = SessionFeed::start(reach).await?;
    loop {
        let all = feed.sessions();
        let elsewhere =
            all.iter().filter(|it| folder.is_some_and(|folder| it.cwd != folder) && view::waits(it)).count();
        let mut sessions = chosen(all, args, folder);
        if let Some(search) = &args.search {
            let search = search.to_lowercase();
            sessions.retain(|it| {
                format!("{}\n{}\n{}", it.title, it.cwd, it.last_line).to_lowercase().contains(&search)
            });
        }
        if args.json {
            out.json(&sessions)?;
        } else {
            let rows = stdout().is_terminal().then(terminal_rows);
            if rows.is_some() {
                // Overwrite instead of clearing first: a cleared screen flickers.
                out.stream("\x1b[?2026h\x1b[H")?;
            }
            let shown = Shown { sessions, folder, elsewhere, is_searched: args.search.is_some() };
            print(&shown, args, rows, out)?;
            if rows.is_some() {
                out.stream("\x1b[J\x1b[?2026l")?;
            }
        }
        if let Ok(changed) = tokio::time::timeout(TICK, feed.changed()).await {
            changed?;
        }
    }
}

fn print(shown: &Shown<'_>, args: &PsArgs, rows: Option<usize>, out: &mut Out) -> Result<(), Failure> {
    let columns = stdout().is_terminal().then(terminal_columns);
    let home = std::env::var("HOME").ok();
    let mut lines = screen(shown, now(), home.as_deref(), columns);
    if let Some(rows) = rows {
        // The footer stays visible, and the cursor's row stays free.
        let footer = lines.pop();
        lines.truncate(rows.saturating_sub(2));
        lines.extend(footer);
    }
    let is_table = columns.is_some() || !shown.sessions.is_empty();
    let footer = lines.pop();
    if is_table {
        for line in lines {
            match rows {
                Some(_) => out.line(&line.and(crate::client::terminal::style::Tone::Plain, "\x1b[K"))?,
                None => out.line(&line)?,
            }
        }
    }
    match footer {
        Some(footer) if rows.is_some() => {
            Ok(out.line(&footer.and(crate::client::terminal::style::Tone::Plain, "\x1b[K"))?)
        }
        // Below a table in a pipe it would look like a row.
        Some(footer) if columns.is_some() || shown.sessions.is_empty() && !args.all => {
            Ok(out.aside(&footer)?)
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
            ("cost", cost(session.cost_usd_micros, session.cost_at_least_usd_micros)),
            ("tokens", tokens(all_tokens(&session.usage))),
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
    use crate::client::fake::Fake;
    use crate::client::resolve_id::sample;
    use crate::client::terminal::out::testing::papers;
    use crate::client::terminal::template::Template;

    fn two() -> [Value; 2] {
        let mut ended = sample("ses_0190f2a4-0001-7000-8000-000000000002", "old");
        ended["state"] = json!("ended");
        [sample("ses_0190f2a4-0000-7000-8000-000000000001", "fix it"), ended]
    }

    async fn listed(args: PsArgs) -> String {
        let fake = Fake::start(|_, _, params| {
            let [first, second] = two();
            Ok(match params["cursor"].as_str() {
                None => json!({"sessions": [first], "next_cursor": "more"}),
                Some(_) => json!({"sessions": [second]}),
            })
        });
        let (mut out, text, _) = papers();
        ps(&fake.reach(), &PsArgs { all_folders: true, ..args }, &mut out).await.expect("listed");
        text.text()
    }

    #[tokio::test]
    async fn list_json_has_all_pages_with_full_ids() {
        for (all, expected) in [(true, 2), (false, 1)] {
            let text = listed(PsArgs { all, json: true, ..PsArgs::default() }).await;
            let sessions: Value = serde_json::from_str(&text).expect("json");
            assert_eq!(sessions.as_array().expect("an array").len(), expected);
            let expected: SessionView = serde_json::from_value(two()[0].clone()).expect("a session");
            assert_eq!(sessions[0], json!(expected));
        }
    }

    #[tokio::test]
    async fn list_prints_ids_or_template_fields() {
        let quiet = listed(PsArgs { quiet: true, all: true, ..PsArgs::default() }).await;
        assert_eq!(
            quiet,
            "ses_0190f2a4-0000-7000-8000-000000000001\nses_0190f2a4-0001-7000-8000-000000000002\n"
        );
        let template = Template::parse("{{.Title}}: {{.Status}} {{.Cost}}").expect("a template");
        let text = listed(PsArgs { format: Some(template), ..PsArgs::default() }).await;
        assert_eq!(text, "fix it: idle ?\n");
    }
}
