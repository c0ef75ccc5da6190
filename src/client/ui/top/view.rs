//! The screen of `top`: pure.

use crate::connection::paths;
use crate::terminal::escape;
use crate::terminal::format::{age, all_tokens, cost, format_ms, money, tokens};
use crate::terminal::style::{StyledLine, Tone, pad, width};
use crate::terminal::table::{Table, column};
use crate::ui::render::asked_summary;
use crate::ui::session_state::{last_line, state};
use crate::ui::summary::one_line;
use crate::ui::top::overview::{Dialog, Filter, IGNORE_KEYS_MS, Overview};
use types::job::JobCounts;
use types::session::SessionView;
use types::time::Timestamp;

/// Minimum columns for a sparkline in the header.
const WIDE_COLUMNS: usize = 100;
/// States of jobs that are not over, the most important first.
const JOB_STATES: [&str; 5] = ["running", "waiting", "queued", "retrying", "scheduled"];

/// Lays out the screen: exactly `rows` lines of at most `columns` columns.
pub(super) fn view(
    overview: &Overview,
    now: Timestamp,
    home: Option<&str>,
    (columns, rows): (usize, usize),
) -> Vec<StyledLine> {
    let mut bottom = detail(overview, now, columns);
    bottom.push(keys(overview));
    let mut lines = vec![header(overview, now, columns), filters(overview, columns)];
    let room = rows.saturating_sub(lines.len() + bottom.len());
    lines.extend(table(overview, now, home, columns, room));
    lines.resize(rows.saturating_sub(bottom.len()), StyledLine::default());
    lines.extend(bottom);
    lines.truncate(rows);
    lines.into_iter().map(|line| line.cut(columns)).collect()
}

fn header(overview: &Overview, now: Timestamp, columns: usize) -> StyledLine {
    let facts = &overview.facts;
    let count = |filter: Filter| overview.sessions.iter().filter(|it| filter.accepts(it)).count();
    let plural = if overview.sessions.len() == 1 { "" } else { "s" };
    let is_wide = columns >= WIDE_COLUMNS;
    let jobs = jobs(&facts.jobs, if is_wide { &JOB_STATES } else { &JOB_STATES[..3] });
    let mut line = StyledLine::new(Tone::Bold, "agentd")
        .and(Tone::Plain, format!(" {} · {} MB", format_ms(facts.up_ms), facts.resident_bytes >> 20));
    // The line below counts the sessions too, so jobs take this room on a narrow screen.
    if jobs.is_none() || is_wide {
        line = line
            .and(Tone::Plain, format!(" · {} session{plural}", overview.sessions.len()))
            .and(Tone::Good, format!(" · {} work", count(Filter::Working)))
            .and(Tone::Warn, format!(" · {} wait", count(Filter::NeedsYou)));
    }
    let line = line.and(Tone::Plain, format!(" · today {}", cost(facts.today.0, facts.today.1)));
    let line = match jobs {
        Some(jobs) => line.and(Tone::Plain, format!(" · {jobs}")),
        None => line,
    };
    if !is_wide {
        return line;
    }
    let spark = format!("{} $/min", overview.rates.sparkline(now));
    let gap = columns.saturating_sub(width(&line.plain()) + width(&spark));
    line.and(Tone::Plain, " ".repeat(gap)).and(Tone::Dim, spark)
}

/// The jobs in these states, for example `jobs: 2 running, 5 queued`; `None` if there are none.
fn jobs(counts: &JobCounts, shown: &[&str]) -> Option<String> {
    let count = |state: &&str| counts.open.get(*state).map(|count| format!("{count} {state}"));
    let parts: Vec<String> = shown.iter().filter_map(count).collect();
    let paused = if counts.paused { " (paused)" } else { "" };
    (!parts.is_empty()).then(|| format!("jobs: {}{paused}", parts.join(", ")))
}

fn filters(overview: &Overview, columns: usize) -> StyledLine {
    let mut line = StyledLine::default();
    for filter in Filter::ALL {
        let count = overview.sessions.iter().filter(|it| filter.accepts(it)).count();
        let text = format!("{} {count}", filter.name());
        // The brackets show the chosen filter without colours.
        line = match filter == overview.filter {
            true => line.and(Tone::Bold, format!("[{text}] ")),
            false => line.and(Tone::Dim, format!(" {text}  ")),
        };
    }
    let hint = "Tab other filter";
    let gap = columns.saturating_sub(width(&line.plain()) + width(hint));
    line.and(Tone::Plain, " ".repeat(gap)).and(Tone::Dim, hint)
}

fn table(
    overview: &Overview,
    now: Timestamp,
    home: Option<&str>,
    columns: usize,
    room: usize,
) -> Vec<StyledLine> {
    let listed = overview.listed_sessions();
    if listed.is_empty() {
        let text = if overview.sessions.is_empty() { "no open session · n begins one" } else { "none" };
        return vec![StyledLine::default(), StyledLine::new(Tone::Dim, format!("  {text}"))];
    }
    // The head takes one row. Scroll so that the selected session stays visible.
    let visible = room.saturating_sub(1).max(1);
    let selected = listed.iter().position(|it| Some(it.session_id) == overview.selected).unwrap_or(0);
    let first = (selected + 1).saturating_sub(visible);
    let mut table = Table::new([
        column("").between(1, 1),
        column("#").right(),
        column("TITLE").between(14, 40),
        column("NOW").between(12, 40),
        column("FOR").right(),
        column("CTX").right().rank(3),
        column("$/h").right().rank(2),
        column("COST").right().rank(1),
        column("TOKENS").right().rank(5),
        column("MODEL").between(8, 24).rank(6),
        column("FOLDER").between(10, 28).rank(4).keep_end(),
        column("LAST LINE").between(20, 60).rank(7),
    ]);
    for session in listed.into_iter().skip(first).take(visible) {
        table.push(row(overview, session, now, home));
    }
    table.lines(Some(columns))
}

fn row(
    overview: &Overview,
    session: &SessionView,
    now: Timestamp,
    home: Option<&str>,
) -> [(Tone, String); 12] {
    let is_selected = Some(session.session_id) == overview.selected;
    let title = match session.summary.title.trim() {
        "" => "(no input yet)".to_owned(),
        title => escape::line(title).into_owned(),
    };
    let rate = overview.rates.per_hour(session.session_id, now);
    let model =
        session.summary.model.split_once('/').map_or(session.summary.model.as_str(), |(_, model)| model);
    let (last_tone, last) = last_line(session);
    let strong = if is_selected { Tone::Bold } else { Tone::Plain };
    [
        (Tone::User, if is_selected { "›".into() } else { String::new() }),
        (Tone::Bold, session.number.to_string()),
        (strong, title),
        state(session),
        (Tone::Dim, age(overview.state_ms(session, now))),
        context(overview, session),
        (Tone::Plain, rate.map_or_else(|| "–".into(), |micros| money(Some(micros)))),
        (Tone::Plain, cost(session.summary.cost_usd_micros, session.summary.cost_at_least_usd_micros)),
        (Tone::Dim, tokens(all_tokens(&session.summary.usage))),
        (Tone::Dim, escape::line(model).into_owned()),
        (Tone::Plain, escape::line(&paths::short(&session.cwd, home)).into_owned()),
        (last_tone, escape::line(last).into_owned()),
    ]
}

/// The used part of the context window in percent. From 80 percent on it is shown as a warning.
fn context(overview: &Overview, session: &SessionView) -> (Tone, String) {
    let window = overview.facts.windows.get(&session.summary.model).copied().filter(|window| *window > 0);
    match (session.summary.context_tokens, window) {
        (Some(used), Some(window)) => {
            let percent = used.saturating_mul(100) / window;
            (if percent >= 80 { Tone::Warn } else { Tone::Dim }, format!("{percent}%"))
        }
        (Some(used), None) => (Tone::Dim, tokens(used)),
        (None, _) => (Tone::Dim, "–".into()),
    }
}

/// The lines at the bottom: the request or the last line of the selected session, or the text of a dialog.
fn detail(overview: &Overview, now: Timestamp, columns: usize) -> Vec<StyledLine> {
    let mut lines = vec![StyledLine::default()];
    let Some(session) = overview.current() else { return lines };
    let request = overview.request_of(session.session_id);
    match request {
        Some(pending) => {
            let number =
                if pending.number.is_empty() { session.number.to_string() } else { pending.number.clone() };
            let call = one_line(&asked_summary(&pending.request), columns);
            let reason = format!(" · asks because {}", one_line(&pending.request.reason, columns));
            lines.push(
                StyledLine::new(Tone::Warn, format!("▌ {number}  "))
                    .and(Tone::Bold, call)
                    .and(Tone::Dim, reason),
            );
        }
        None => {
            let (tone, text) = last_line(session);
            let text = one_line(text, columns);
            lines.push(StyledLine::new(Tone::Dim, format!("  {}  ", session.number)).and(tone, text));
        }
    }
    let ready = |since: Timestamp| if now.since(since) < IGNORE_KEYS_MS { Tone::Dim } else { Tone::Plain };
    match &overview.dialog {
        Dialog::None => {}
        Dialog::Answer { since, .. } => {
            lines.push(StyledLine::new(ready(*since), "▌ 1  Yes, once"));
            lines.push(StyledLine::new(ready(*since), "▌ 4  No, and go on without it"));
        }
        Dialog::End { since, .. } => {
            let text = format!(
                "▌ End #{}? It takes no further input; `agentctl fork` continues it. y/n",
                session.number
            );
            lines.push(StyledLine::new(ready(*since), text));
        }
        Dialog::Message { text, .. } => {
            let text = escape::line(text);
            let room = columns.saturating_sub(3);
            let shown = crate::terminal::style::cut_start(&text, room);
            lines.push(StyledLine::new(Tone::User, "› ").and(Tone::Plain, pad(&shown, 0)));
        }
    }
    if let Some(notice) = &overview.notice {
        lines.push(StyledLine::new(Tone::Dim, escape::line(notice).into_owned()));
    }
    lines
}

fn keys(overview: &Overview) -> StyledLine {
    let text = match overview.dialog {
        Dialog::None => "Enter open · a answer here · n new · m message · x stop turn · K end · q leave",
        Dialog::Answer { .. } => "1 yes, once · 4 no · Esc back · Enter on the session shows all of it",
        Dialog::End { .. } => "y end it · any other key back",
        Dialog::Message { .. } => "Enter send · Esc back",
    };
    StyledLine::new(Tone::Dim, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::screen_files::check_screen;
    use crate::ui::top::overview::tests::{overview, session};

    fn plain(overview: &Overview, size: (usize, usize)) -> Vec<String> {
        let lines = view(overview, Timestamp(100_000), Some("/home/me"), size);
        assert_eq!(lines.len(), size.1);
        lines.iter().map(|line| line.plain().trim_end().to_owned()).collect()
    }

    #[test]
    fn jobs_take_the_place_of_session_counts_on_a_narrow_screen() {
        let mut overview = overview();
        let open =
            [("running", 1), ("waiting", 1), ("queued", 12)].map(|(name, count)| (name.to_owned(), count));
        overview.facts.jobs = JobCounts { paused: true, open: open.into(), ..JobCounts::default() };
        let jobs = "today $1.20 · jobs: 1 running, 1 waiting, 12 queued (paused)";
        assert_eq!(plain(&overview, (88, 24))[0], format!("agentd 3 h 12 min · 42 MB · {jobs}"));
        let wide = plain(&overview, (120, 24)).remove(0);
        assert!(wide.contains(&format!("4 sessions · 1 work · 1 wait · {jobs}")), "{wide}");
    }

    #[test]
    fn top_at_80_by_24_shows_states_and_request() {
        let screen = plain(&overview(), (80, 24));
        assert_eq!(
            screen[..7],
            [
                "agentd 3 h 12 min · 42 MB · 4 sessions · 1 work · 1 wait · today $1.20",
                "[All 4]  Needs you 1   Working 1   Idle 1   Failed 1            Tab other filter",
                "    #  TITLE                   NOW                  FOR  CTX  $/h   COST  FOLDER",
                "›  12  fix login               waits: Edit           4s   6%    –  $0.04  ~/shop",
                "   14  nightly dependency up…  Bash cargo test      12s  11%    –  $0.09  ~/shop",
                "   11  loader without unwrap   idle                  1m    –    –      ?  ~/shop",
                "    9  changelog for 0.4       failed: key refused   1m    –    –     $0  ~/shop",
            ]
        );
        assert_eq!(
            screen[21..],
            [
                "",
                "▌ 12.1  Bash make · asks because no rule allows it",
                "Enter open · a answer here · n new · m message · x stop turn · K end · q leave",
            ]
        );
    }

    #[test]
    fn top_screen_matches_fixture() {
        let mut overview = overview();
        let mut sessions = overview.sessions.clone();
        sessions[0].summary.cost_at_least_usd_micros += 30_000;
        overview.update(sessions, Timestamp(100_000));
        check_screen("top", |size| view(&overview, Timestamp(100_000), Some("/home/me"), size));
    }

    #[test]
    fn top_at_120_by_40_adds_columns_and_sparkline() {
        let mut overview = overview();
        let mut sessions = overview.sessions.clone();
        sessions[0].summary.cost_at_least_usd_micros += 30_000;
        overview.update(sessions, Timestamp(100_000));
        let screen = plain(&overview, (120, 40));
        assert!(screen[0].ends_with("█ $/min"), "{}", screen[0]);
        for head in ["TITLE", "NOW", "CTX", "COST", "FOLDER", "TOKENS"] {
            assert!(screen[2].contains(head), "{}", screen[2]);
        }
        assert!(screen[3].contains("~/shop"), "{}", screen[3]);
    }

    #[test]
    fn top_fits_any_size_with_any_text() {
        let mut overview = overview();
        let many = (100..160).map(|number| session(number, "世界\u{1b}[2J\u{202e}", serde_json::json!({})));
        overview.update(many.collect(), Timestamp(100_000));
        for size in [(20, 5), (33, 10), (80, 24), (200, 60)] {
            for _ in 0..80 {
                let lines = view(&overview, Timestamp(100_000), None, size);
                assert!(lines.iter().all(|line| width(&line.plain()) <= size.0), "{size:?}");
                assert!(!lines.iter().any(|line| line.plain().contains('\u{1b}')));
            }
        }
    }
}
