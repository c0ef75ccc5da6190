//! `agentctl stats`: sessions, tokens and money of all folders, by period, model and folder.

use api::methods;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::json;

use crate::args::StatsArgs;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::{cost, now, tokens};
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::terminal::table::{Table, column};
use crate::ui::session_state::has_failed;
use api::params::{ListParams, ModelUsageParams, ModelUsageReply};
use types::ids::{JobId, SessionId};
use types::ledger::{LedgerRow, ModelUsage};
use types::session::{SessionState, SessionView};
use types::time::Timestamp;

/// Rows per request.
const PAGE_ROWS: u32 = 500;
const JOBS: &str = "jobs";
const DAY_MS: u64 = 24 * 3_600 * 1_000;

pub(crate) async fn stats(
    reach: &Connector,
    args: &StatsArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let everything = ListParams { include_children: true, ..ListParams::default() };
    let sessions = resolve_id::all_sessions(&client, &everything).await?;
    let since = args.since.map(|ms| now().before(ms));
    let midnight = Timestamp(now().day() * DAY_MS as i64);
    let mut periods = Vec::new();
    for (name, since) in
        [("today", Some(midnight)), ("7 days", Some(now().before(7 * DAY_MS))), ("all", None)]
    {
        periods.push((name, usage(&client, since, 1).await?.total));
    }
    let rows = all_rows(&client, since).await?;
    let models = group_usage(&rows, |row| row.model.clone());
    let by_id: HashMap<SessionId, &SessionView> =
        sessions.iter().map(|session| (session.session_id, session)).collect();
    let folders = group_usage(&rows, |row| {
        let session = by_id.get(&row.session_id);
        session.map_or_else(|| "(deleted sessions)".into(), |session| session.cwd.clone())
    });
    let work = group_usage(&rows, |row| kind_of_work(&by_id, row.session_id).to_owned());
    if args.json {
        let periods: BTreeMap<&str, &ModelUsage> =
            periods.iter().map(|(name, spent)| (*name, spent)).collect();
        return Ok(out.json(
            &json!({"sessions": counts(&sessions), "periods": periods, "models": models, "folders": folders,
                "work": work}),
        )?);
    }
    out.line(&summary(&sessions))?;
    out.say("")?;
    let mut table = Table::new(figures("PERIOD"));
    periods.iter().for_each(|(name, spent)| table.push(cells((*name).to_owned(), spent)));
    table.print(out)?;
    let home = std::env::var("HOME").ok();
    // Without jobs, all of it is sessions.
    let work = if work.contains_key(JOBS) { work } else { BTreeMap::new() };
    for (head, groups) in [("MODEL", models), ("FOLDER", folders), ("WORK", work)] {
        if groups.is_empty() {
            continue;
        }
        out.say("")?;
        let mut groups: Vec<(String, ModelUsage)> = groups.into_iter().collect();
        groups.sort_by_key(|(_, spent)| {
            std::cmp::Reverse((spent.cost_at_least_usd_micros, spent.usage.all_tokens()))
        });
        let mut table = Table::new(figures(head));
        for (name, spent) in &groups {
            table.push(cells(escape::line(&paths::short(name, home.as_deref())).into_owned(), spent));
        }
        table.print(out)?;
    }
    Ok(())
}

/// Whose work the calls of a session are. Sub-agents work for the session that started them.
fn kind_of_work(sessions: &HashMap<SessionId, &SessionView>, mut id: SessionId) -> &'static str {
    // A circle of parents would be a damaged list.
    for _ in 0..sessions.len() {
        let Some(session) = sessions.get(&id) else { break };
        match (session.job_id, session.parent_session_id) {
            (Some(_), _) => return JOBS,
            (None, Some(parent)) => id = parent,
            (None, None) => return "sessions",
        }
    }
    "(deleted sessions)"
}

fn figures(head: &'static str) -> [crate::terminal::table::Column; 6] {
    [
        column(head).between(12, 48).keep_end(),
        column("CALLS").right(),
        column("INPUT").right().rank(2),
        column("OUTPUT").right().rank(2),
        column("CACHED").right().rank(3),
        column("COST").right(),
    ]
}

fn cells(name: String, spent: &ModelUsage) -> [(Tone, String); 6] {
    // The note below the table explains this mark.
    let about = if spent.estimated_calls > 0 { "*" } else { "" };
    [
        (Tone::Bold, name),
        (Tone::Plain, spent.calls.to_string()),
        (Tone::Plain, tokens(spent.usage.input_tokens)),
        (Tone::Plain, tokens(spent.usage.output_tokens)),
        (Tone::Dim, tokens(spent.usage.cache_read_tokens)),
        (Tone::Plain, format!("{}{about}", cost(spent.cost_usd_micros, spent.cost_at_least_usd_micros))),
    ]
}

/// Number of sessions in each kind of activity.
fn counts(sessions: &[SessionView]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::from([("all", sessions.len())]);
    for session in sessions {
        let what = match session.summary.state {
            SessionState::Running => "working",
            SessionState::RequiresAction | SessionState::Paused => "waiting",
            SessionState::Ended => "ended",
            SessionState::Archived => "archived",
            _ if has_failed(session) => "failed",
            _ => "idle",
        };
        *counts.entry(what).or_default() += 1;
    }
    counts
}

fn summary(sessions: &[SessionView]) -> StyledLine {
    let counts = counts(sessions);
    let mut line = StyledLine::new(Tone::Bold, format!("{} sessions", sessions.len()));
    let jobs: BTreeSet<JobId> = sessions.iter().filter_map(|session| session.job_id).collect();
    if !jobs.is_empty() {
        line = line.and(Tone::Dim, format!(" · {} jobs", jobs.len()));
    }
    let labels = [
        ("waiting", Tone::Warn, "wait for you"),
        ("working", Tone::Good, "work"),
        ("failed", Tone::Bad, "failed"),
        ("idle", Tone::Dim, "idle"),
        ("ended", Tone::Dim, "ended"),
        ("archived", Tone::Dim, "archived"),
    ];
    for (key, tone, label) in labels {
        if let Some(count) = counts.get(key) {
            line = line.and(Tone::Dim, " · ").and(tone, format!("{count} {label}"));
        }
    }
    line
}

async fn usage(client: &Client, since_ms: Option<Timestamp>, limit: u32) -> Result<ModelUsageReply, Failure> {
    let params = ModelUsageParams { since_ms, limit: Some(limit), ..Default::default() };
    Ok(client.call::<methods::model::Usage>(&params).await?)
}

async fn all_rows(client: &Client, since_ms: Option<Timestamp>) -> Result<Vec<LedgerRow>, Failure> {
    let params = ModelUsageParams { since_ms, limit: Some(PAGE_ROWS), ..Default::default() };
    Ok(client.all_rows::<methods::model::Usage>(params).await?)
}

fn group_usage(rows: &[LedgerRow], key: impl Fn(&LedgerRow) -> String) -> BTreeMap<String, ModelUsage> {
    let mut groups: BTreeMap<String, ModelUsage> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().add(&row.spent);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::{FakeDaemon, SESSION};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;

    #[tokio::test]
    async fn stats_group_usage_by_model_folder_and_work() {
        const OTHER: &str = "ses_0193abcd-ef01-7000-8000-000000000001";
        const CHILD: &str = "ses_0193abcd-ef01-7000-8000-000000000002";
        let fake = FakeDaemon::start(|_, method, _| {
            let usage = json!({
                "session_id": CHILD, "model": "p/m", "first_at_ms": 1, "last_at_ms": 2, "input_tokens": 1_500,
                "output_tokens": 20, "cache_read_tokens": 7, "cache_write_tokens": 0, "cache_write_1h_tokens": 0,
                "reasoning_tokens": 0, "web_search_requests": 0, "calls": 3, "lost_attempts": 0, "estimated_calls": 0,
                "cost_usd_micros": 1_500_000, "cost_at_least_usd_micros": 1_500_000, "unpriced_calls": 0});
            Ok(match method {
                "session.list" => {
                    let (mut of_job, mut child) = (sample(OTHER, "two"), sample(CHILD, "three"));
                    of_job["job_id"] = json!("job_0193abcd-ef01-7000-8000-000000000000");
                    child["parent_session_id"] = json!(OTHER);
                    json!({"sessions": [sample(SESSION, "one"), of_job, child]})
                }
                _ => json!({"rows": [usage], "total": usage}),
            })
        });
        let (mut out, text, _) = captured_output();
        stats(&fake.connector(), &StatsArgs::default(), &mut out).await.expect("shown");
        let text = text.text();
        assert!(text.starts_with("3 sessions · 1 jobs · 3 idle\n"), "{text}");
        // The work of a job's sub-agent is work of the job.
        for row in ["today       3   1.5k      20       7  $1.50", "p/m", "/w", "jobs      3   1.5k"] {
            assert!(text.contains(row), "{text}");
        }
    }
}
