//! Jobs as a table, as one line, and in detail: pure.

use std::collections::BTreeMap;

use crate::connection::paths;
use crate::terminal::escape;
use crate::terminal::format::{age, cost, format_ms};
use crate::terminal::style::{StyledLine, Tone};
use crate::terminal::table::{Table, column};
use crate::ui::summary::one_line;
use api::params::JobGetReply;
use types::ids::ScheduleId;
use types::job::{Job, JobState};
use types::time::Timestamp;
use types::worktree::GitResult;

/// Characters of an id that tell jobs apart: the milliseconds of their creation.
const SHORT_ID: std::ops::Range<usize> = 4..17;

pub(super) fn short_id(job: &Job) -> String {
    let full = job.job_id.to_string();
    full.get(SHORT_ID).unwrap_or(&full).to_owned()
}

fn tone(state: JobState) -> Tone {
    match state {
        JobState::Succeeded => Tone::Good,
        JobState::Failed | JobState::Expired => Tone::Bad,
        JobState::Waiting | JobState::Retrying => Tone::Warn,
        JobState::Running => Tone::Bold,
        JobState::Scheduled | JobState::Queued | JobState::Cancelled | JobState::Skipped => Tone::Dim,
    }
}

/// Why the job is where it is, in a few words.
fn reason(job: &Job) -> String {
    let text = match (&job.reason, job.waiting_for, &job.error, &job.activity) {
        (Some(reason), ..) => reason.name().replace('_', " "),
        (_, Some(waiting_for), ..) => serde_json::to_value(waiting_for)
            .ok()
            .and_then(|name| name.as_str().map(|name| name.replace('_', " ")))
            .unwrap_or_default(),
        (_, _, Some(error), _) => error.message.clone(),
        (_, _, _, Some(activity)) => activity.clone(),
        _ => String::new(),
    };
    one_line(&text, 200)
}

fn name(job: &Job) -> &str {
    match &job.template {
        Some(template) if job.title.is_empty() => template,
        _ => &job.title,
    }
}

pub(super) type ScheduleNames = BTreeMap<ScheduleId, String>;

/// The name of the schedule that created a job; its id if the schedule was deleted.
fn schedule(job: &Job, names: &ScheduleNames) -> Option<String> {
    let id = job.schedule_id?;
    let short = || id.to_string().get(6..19).unwrap_or_default().to_owned();
    Some(names.get(&id).map_or_else(short, |name| one_line(name, 200)))
}

/// The list of jobs. It fits 80 columns: less important columns go first.
pub(super) fn table(jobs: &[Job], names: &ScheduleNames, now: Timestamp, home: Option<&str>) -> Table {
    let mut table = Table::new([
        column("JOB").between(SHORT_ID.end - SHORT_ID.start, SHORT_ID.end - SHORT_ID.start),
        column("STATE"),
        column("AGE").right(),
        column("TITLE").between(12, 40),
        column("SCHEDULE").between(8, 16).rank(2),
        column("TRY").right().rank(3),
        column("COST").right().rank(1),
        column("FOLDER").between(8, 28).rank(4).keep_end(),
        column("REASON").between(11, 60),
    ]);
    for job in jobs {
        table.push([
            (Tone::Bold, short_id(job)),
            (tone(job.state), job.state.name().to_owned()),
            (Tone::Dim, age(now.since(job.created_at_ms))),
            (Tone::Plain, one_line(name(job), 200)),
            (Tone::Dim, schedule(job, names).unwrap_or_default()),
            (Tone::Dim, format!("{}/{}", job.attempt, job.attempts_max)),
            (Tone::Plain, cost(job.cost_usd_micros, 0)),
            (Tone::Dim, escape::line(&paths::short(&job.cwd, home)).into_owned()),
            (Tone::Dim, reason(job)),
        ]);
    }
    table
}

pub(super) fn line(job: &Job) -> String {
    let reason = reason(job);
    let reason = if reason.is_empty() { reason } else { format!(" ({reason})") };
    format!("{}  {}  {}{reason}", job.job_id, job.state.name(), one_line(name(job), 80))
}

/// All that is known about a job.
pub(super) fn details(reply: &JobGetReply, names: &ScheduleNames, now: Timestamp) -> Vec<StyledLine> {
    let job = &reply.job;
    let mut lines = Vec::new();
    let mut row = |label: &str, tone: Tone, text: String| {
        let label = StyledLine::new(Tone::Dim, format!("{label:<12}"));
        lines.push(label.and(tone, escape::line(&text).into_owned()));
    };
    row("job", Tone::Bold, job.job_id.to_string());
    let reason = reason(job);
    let state = if reason.is_empty() {
        job.state.name().to_owned()
    } else {
        format!("{}: {reason}", job.state.name())
    };
    row("state", tone(job.state), state);
    row("title", Tone::Plain, name(job).to_owned());
    row("folder", Tone::Plain, job.cwd.clone());
    row("created", Tone::Plain, moment(job.created_at_ms, now));
    if job.started_at_ms.is_none() || job.state == JobState::Retrying {
        row("due", Tone::Plain, moment(job.run_at_ms, now));
    }
    if let (Some(started), Some(ended)) = (job.started_at_ms, job.ended_at_ms) {
        row("took", Tone::Plain, format_ms(ended.since(started)));
    }
    row("cost", Tone::Plain, cost(job.cost_usd_micros, 0));
    row("priority", Tone::Plain, job.priority.to_string());
    if let Some(schedule) = schedule(job, names) {
        row("schedule", Tone::Plain, schedule);
    }
    for (label, value) in &job.labels {
        row("label", Tone::Plain, format!("{label}={value}"));
    }
    if let Some(prompt) = &reply.request.prompt {
        row("prompt", Tone::Plain, one_line(prompt, 200));
    }
    if let Some(session) = job.session_id.filter(|_| job.result.is_none()) {
        row("attempt", Tone::Plain, format!("{} of {}  {session}", job.attempt, job.attempts_max));
    }
    if job.waiting_for.is_some() {
        row("answer", Tone::Plain, format!("agentctl jobs attach {}", short_id(job)));
    }
    let Some(result) = &job.result else { return lines };
    for attempt in &result.attempts {
        let subtype = attempt.subtype.map_or("no result", |subtype| subtype.name());
        row("attempt", Tone::Plain, format!("{}  {}  {subtype}", attempt.attempt, attempt.session_id));
    }
    if let Some(git) = &result.git {
        row("branch", Tone::Plain, git.branch.clone());
        row("changes", Tone::Plain, changes(git));
    }
    for artifact in &result.artifacts {
        row("artifact", Tone::Plain, format!("{}  {} bytes", artifact.path, artifact.bytes));
    }
    for delivery in &job.deliveries {
        let status = delivery.status.name();
        let error = delivery.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        let tries = match delivery.tries {
            1 => "1 try".to_owned(),
            tries => format!("{tries} tries"),
        };
        let text = format!("{}  {status} after {tries}{error}", delivery.target);
        row("told", Tone::Plain, text);
    }
    if let Some(turn) = result.turn.as_ref().filter(|turn| !turn.text.trim().is_empty()) {
        lines.push(StyledLine::new(Tone::Plain, String::new()));
        lines.extend(
            turn.text.lines().map(|line| StyledLine::new(Tone::Plain, escape::line(line).into_owned())),
        );
    }
    lines
}

/// What a job changed in its branch, in one line.
fn changes(git: &GitResult) -> String {
    let Some(commit) = &git.commit else { return "none".into() };
    let plural = if git.files_changed == 1 { "" } else { "s" };
    let commit = commit.get(..10).unwrap_or(commit);
    format!("{commit}  {} file{plural}, +{} -{}", git.files_changed, git.insertions, git.deletions)
}

fn moment(time: Timestamp, now: Timestamp) -> String {
    match time > now {
        true => format!("{} (in {})", time.minute(), age(time.since(now))),
        false => format!("{} ({} ago)", time.minute(), age(now.since(time))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(number: u8, more: Value) -> Job {
        let mut job = json!({
            "job_id": format!("job_0193abcd-ef{number:02}-7000-8000-000000000000"), "state": "queued",
            "title": "", "cwd": "/home/me/src/app", "labels": {}, "priority": 0, "attempt": 0, "attempts_max": 1,
            "created_at_ms": 0, "run_at_ms": 0, "cost_usd_micros": 0, "seq": 1,
            "usage": types::usage::Usage::default(),
        });
        job.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
        serde_json::from_value(job).expect("a job")
    }

    fn jobs() -> (Vec<Job>, ScheduleNames) {
        let (nightly, gone) =
            ("sched_0193abcd-ef01-7000-8000-000000000000", "sched_0193abcd-ef02-7000-8000-000000000000");
        let jobs = vec![
            job(
                1,
                json!({"title": "Update the dependencies and commit what passes the tests", "state": "running",
                "schedule_id": nightly, "attempt": 1, "cost_usd_micros": 12_340_000, "activity": "Bash cargo test"}),
            ),
            job(
                2,
                json!({"title": "deploy the site", "state": "waiting", "waiting_for": "permission", "attempt": 1}),
            ),
            job(3, json!({"template": "triage", "schedule_id": gone, "reason": "concurrency"})),
            job(
                4,
                json!({"title": "fix", "state": "failed", "attempt": 3, "attempts_max": 3, "cwd": "/srv/x",
                "error": {"kind": "llm_error", "message": "local answered 400: model is on holiday"}}),
            ),
        ];
        (jobs, [(nightly.parse().expect("an id"), "nightly".to_owned())].into())
    }

    fn lines(columns: Option<usize>) -> Vec<String> {
        let (jobs, names) = jobs();
        let table = table(&jobs, &names, Timestamp(90_000), Some("/home/me"));
        table.lines(columns).iter().map(|line| line.plain().trim_end().to_owned()).collect()
    }

    #[test]
    fn list_shows_names_of_schedules_and_whole_ids_in_80_columns() {
        let shown = lines(Some(80));
        assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:#?}");
        for (line, words) in shown.iter().zip([
            &["JOB", "STATE", "AGE", "TITLE", "SCHEDULE", "COST", "REASON"][..],
            &["0193abcd-ef01", "running", "nightly", "$12.34", "Bash cargo"],
            &["0193abcd-ef02", "waiting", "deploy the", "permission"],
            &["0193abcd-ef03", "queued", "triage", "concurrency"],
            &["0193abcd-ef04", "failed", "fix", "local answ"],
        ]) {
            assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {shown:#?}");
        }
    }

    #[test]
    fn list_without_a_terminal_is_whole() {
        let shown = lines(None);
        for word in ["TRY", "FOLDER", "~/src/app", "3/3", "model is on holiday", "nightly"] {
            assert!(shown.iter().any(|line| line.contains(word)), "{word}: {shown:#?}");
        }
    }
}
