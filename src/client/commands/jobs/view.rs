//! Jobs as a table, as one line, and in detail: pure.

use crate::connection::paths;
use crate::terminal::escape;
use crate::terminal::format::{age, cost, format_ms};
use crate::terminal::style::{StyledLine, Tone};
use crate::terminal::table::{Table, column};
use crate::ui::summary::one_line;
use api::params::JobGetReply;
use types::job::{DeliveryStatus, Job, JobState};
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
            .and_then(|name| name.as_str().map(|name| format!("needs {}", name.replace('_', " "))))
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

/// The list of jobs. It fits 80 columns: less important columns go first.
pub(super) fn table(jobs: &[Job], now: Timestamp, home: Option<&str>) -> Table {
    let mut table = Table::new([
        column("JOB"),
        column("STATE"),
        column("AGE").right(),
        column("TITLE").between(12, 40),
        column("TRY").right().rank(2),
        column("COST").right().rank(1),
        column("SCHEDULE").between(4, 16).rank(4),
        column("FOLDER").between(8, 28).rank(3).keep_end(),
        column("REASON").between(8, 60),
    ]);
    for job in jobs {
        let schedule = job.schedule_id.map(|id| id.to_string());
        table.push([
            (Tone::Bold, short_id(job)),
            (tone(job.state), job.state.name().to_owned()),
            (Tone::Dim, age(now.since(job.created_at_ms))),
            (Tone::Plain, one_line(name(job), 200)),
            (Tone::Dim, format!("{}/{}", job.attempt, job.attempts_max)),
            (Tone::Plain, cost(job.cost_usd_micros, 0)),
            (Tone::Dim, schedule.map(|id| id.get(6..19).unwrap_or_default().to_owned()).unwrap_or_default()),
            (Tone::Dim, escape::line(&paths::short(&job.cwd, home)).into_owned()),
            (Tone::Dim, reason(job)),
        ]);
    }
    table
}

/// A job in one line.
pub(super) fn line(job: &Job) -> String {
    let reason = reason(job);
    let reason = if reason.is_empty() { reason } else { format!(" ({reason})") };
    format!("{}  {}  {}{reason}", job.job_id, job.state.name(), one_line(name(job), 80))
}

/// All that is known about a job.
pub(super) fn details(found: &JobGetReply, now: Timestamp) -> Vec<StyledLine> {
    let job = &found.job;
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
    if let Some(id) = job.schedule_id {
        row("schedule", Tone::Plain, id.to_string());
    }
    for (label, value) in &job.labels {
        row("label", Tone::Plain, format!("{label}={value}"));
    }
    if let Some(prompt) = &found.request.prompt {
        row("prompt", Tone::Plain, one_line(prompt, 200));
    }
    if let Some(session) = job.session_id.filter(|_| job.result.is_none()) {
        row("attempt", Tone::Plain, format!("{} of {}  {session}", job.attempt, job.attempts_max));
    }
    let Some(result) = &job.result else { return lines };
    for attempt in &result.attempts {
        let subtype = attempt.subtype.map_or("no result", |subtype| subtype.name());
        row("attempt", Tone::Plain, format!("{}  {}  {subtype}", attempt.attempt, attempt.session_id));
    }
    if let Some(git) = &result.git {
        row("branch", Tone::Plain, branch(git));
    }
    for artifact in &result.artifacts {
        row("artifact", Tone::Plain, format!("{}  {} bytes", artifact.path, artifact.bytes));
    }
    for delivery in &job.deliveries {
        let status = match delivery.status {
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Failed => "failed",
        };
        let error = delivery.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        let text = format!("{}  {status} after {} tries{error}", delivery.target, delivery.tries);
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

/// What a job left in its branch, in one line.
fn branch(git: &GitResult) -> String {
    let commit = git.commit.as_deref().map_or("no commit", |commit| commit.get(..10).unwrap_or(commit));
    let files = git.files_changed;
    format!("{}  {commit}  {files} files, +{} -{}", git.branch, git.insertions, git.deletions)
}

fn moment(at: Timestamp, now: Timestamp) -> String {
    match at > now {
        true => format!("{} (in {})", at.minute(), age(at.since(now))),
        false => format!("{} ({} ago)", at.minute(), age(now.since(at))),
    }
}
