//! Checks the content of a new job and makes its first state.

use std::collections::BTreeMap;

use crate::error::JobsError;
use crate::record::{Creator, JobRecord, Spent, UniqueKey};
use crate::settings::JobSettings;
use session::{NewSessionRequest, Registry};
use types::event::Origin;
use types::ids::{JobId, Mint, ScheduleId, Seed};
use types::job::{Job, JobState};
use types::job_request::{Concurrency, JobRequest, RetryMode, RetryPolicy, Unique, UniqueScope};
use types::time::Timestamp;
use types::turn_options::TurnOptions;
use types::usage::{Budgets, Usage};

/// Maximum bytes of a job's content.
const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Largest number of attempts.
const MAX_ATTEMPTS: u32 = 20;
/// Maximum number of labels.
const MAX_LABELS: usize = 32;
/// Maximum characters of a label's name, and of its value.
const MAX_LABEL_CHARS: (usize, usize) = (64, 256);
/// Maximum characters of a reason.
const MAX_REASON_CHARS: usize = 1_000;
/// Maximum bytes of a key for concurrency or uniqueness.
const MAX_KEY_BYTES: usize = 256;
/// Maximum number of patterns for artifacts.
const MAX_ARTIFACT_PATTERNS: usize = 32;
/// Maximum characters of a title that is made from the prompt.
const TITLE_CHARS: usize = 60;

/// The slot of a schedule that creates a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiredSlot {
    pub schedule_id: ScheduleId,
    /// The slot; absent if a client had the schedule make a job.
    pub slot_ms: Option<Timestamp>,
    /// Earlier slots that were missed and get no job.
    pub missed_slots: u64,
}

/// A job that was checked and can be stored.
#[derive(Clone, Debug)]
pub struct CheckedJob {
    pub(crate) record: JobRecord,
    pub(crate) request: JobRequest,
}

/// The session of an attempt of this job, without id and folder of a worktree.
pub(crate) fn session_request(request: &JobRequest, origin: Option<Origin>) -> NewSessionRequest {
    NewSessionRequest {
        worktree: None,
        cwd: request.cwd.clone(),
        title: request.title.clone(),
        background: true,
        options: TurnOptions {
            model: request.model.clone(),
            mode: request.mode,
            tools: request.tools.clone(),
            system_prompt: request.system_prompt.clone(),
            budgets: request.budgets,
            output_schema: request.output_schema.clone(),
            ..TurnOptions::default()
        },
        agent: request.agent.clone(),
        origin,
        ..NewSessionRequest::default()
    }
}

/// Checks a job's content against the configuration and the machine, and completes it: the text of its template, the
/// real folder, names of models, limits.
pub(crate) async fn check(
    registry: &Registry,
    settings: &JobSettings,
    mut request: JobRequest,
    origin: &Origin,
    slot: Option<FiredSlot>,
    job_id: Option<JobId>,
) -> Result<CheckedJob, JobsError> {
    request.idempotency_key = None;
    let mut request = crate::template::expand(registry, request).await?;
    let bytes = serde_json::to_vec(&request).map_or(0, |text| text.len());
    if bytes > MAX_CONTENT_BYTES {
        return Err(JobsError::bad(
            "prompt",
            format!("the job has {bytes} bytes, at most {MAX_CONTENT_BYTES}"),
        ));
    }
    let now = registry.shared().clock.now();
    check_plain_fields(&request, settings, now)?;
    check_budgets(registry, settings, request.budgets)?;
    request.title.get_or_insert_with(|| title_of(request.prompt.as_deref().unwrap_or_default()));
    let spec = registry.check_new_session(&session_request(&request, None)).await?;
    request.cwd.clone_from(&spec.cwd);
    request.model = Some(spec.model.clone()).filter(|model| !model.is_empty());
    request.mode = Some(spec.mode);
    request.budgets = Some(spec.budgets);
    // Git may hang in a broken repository, and a slot must fire in time. The start of the job finds the same errors.
    if let Some(choice) = request.worktree.as_ref().filter(|_| slot.is_none()) {
        crate::worktree::check(&spec.cwd, choice).await?;
    }
    let job_id = job_id.unwrap_or_else(|| Mint::new(now.0, Seed::random()).job());
    let record = new_record(job_id, &request, spec.budgets, origin, slot, now);
    Ok(CheckedJob { record, request })
}

fn new_record(
    job_id: JobId,
    request: &JobRequest,
    budgets: Budgets,
    origin: &Origin,
    slot: Option<FiredSlot>,
    now: Timestamp,
) -> JobRecord {
    let run_at = match request.delay {
        Some(delay) => now.plus(delay.millis()),
        None => request.run_at_ms.unwrap_or(now),
    };
    let retry = request.retry.clone().unwrap_or_default();
    let own_folder = || Concurrency {
        // A worktree is a folder of the job alone.
        key: if request.worktree.is_some() {
            format!("job:{job_id}")
        } else {
            format!("folder:{}", request.cwd)
        },
        limit: 1,
    };
    let concurrency = request.concurrency.clone().unwrap_or_else(own_folder);
    let state = if run_at <= now { JobState::Queued } else { JobState::Scheduled };
    let job = Job {
        job_id,
        state,
        reason: None,
        title: request.title.clone().unwrap_or_default(),
        template: request.template.clone(),
        schedule_id: slot.map(|slot| slot.schedule_id),
        slot_ms: slot.and_then(|slot| slot.slot_ms),
        missed_slots: slot.map(|slot| slot.missed_slots).filter(|missed| *missed > 0),
        cwd: request.cwd.clone(),
        labels: request.labels.clone(),
        priority: request.priority.unwrap_or(0),
        attempt: 0,
        attempts_max: retry.attempts,
        session_id: None,
        node: None,
        created_at_ms: now,
        run_at_ms: run_at,
        started_at_ms: None,
        ended_at_ms: None,
        cost_usd_micros: Some(0),
        usage: Usage::default(),
        seq: 0,
        activity: None,
        waiting_for: None,
        result: None,
        error: None,
        deliveries: Vec::new(),
    };
    JobRecord {
        job,
        creator: Creator::from(origin),
        attempts: Vec::new(),
        model: request.model.clone(),
        concurrency,
        start_before_ms: request.start_deadline.map(|deadline| run_at.plus(deadline.millis())),
        unique_key: request.unique.as_ref().map(|unique| unique_key(unique, now)),
        retry,
        budgets,
        spent: Spent::default(),
        cancelling: None,
        next_mode: RetryMode::Fresh,
        worktree: request.worktree.clone(),
        worktree_base: None,
        worktree_place: None,
    }
}

fn unique_key(unique: &Unique, now: Timestamp) -> UniqueKey {
    let key = &unique.key;
    match unique.scope {
        UniqueScope::Active => UniqueKey { text: format!("active:{key}"), stays: false },
        UniqueScope::Day => UniqueKey { text: format!("day:{}:{key}", now.date()), stays: true },
        UniqueScope::Forever => UniqueKey { text: format!("forever:{key}"), stays: true },
    }
}

/// The first line of a prompt, shortened.
fn title_of(prompt: &str) -> String {
    let line = prompt.trim().lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

fn check_plain_fields(request: &JobRequest, settings: &JobSettings, now: Timestamp) -> Result<(), JobsError> {
    let bad = |path: &str, why: &str| Err(JobsError::bad(path, why));
    match &request.prompt {
        None => return bad("prompt", "name a prompt, or a template"),
        Some(prompt) if prompt.trim().is_empty() => return bad("prompt", "there is no text in it"),
        Some(_) => {}
    }
    for (path, text) in [("prompt", &request.prompt), ("title", &request.title)] {
        check_text(path, text.as_deref())?;
    }
    if let Some(choice) = &request.worktree {
        check_text("worktree.branch", choice.branch.as_deref())?;
        check_text("worktree.base", choice.base.as_deref())?;
        for (index, path) in choice.include.iter().enumerate() {
            check_text(&format!("worktree.include[{index}]"), Some(path))?;
        }
    }
    check_priority(request.priority)?;
    if request.delay.is_some() && request.run_at_ms.is_some() {
        return bad("delay", "it cannot stand next to run_at_ms; leave one of them out");
    }
    check_time("run_at_ms", request.run_at_ms)?;
    check_time("delay", request.delay.map(|delay| now.plus(delay.millis())))?;
    if let Some(deadline) = request.start_deadline {
        let due = request.run_at_ms.unwrap_or(now);
        if due.plus(deadline.millis()) <= now {
            return bad("start_deadline", "it is over already");
        }
        let due = request.delay.map_or(due, |delay| now.plus(delay.millis()));
        check_time("start_deadline", Some(due.plus(deadline.millis())))?;
    }
    if let Some(retry) = &request.retry {
        check_retry(retry)?;
        check_time("retry.max_backoff", Some(now.plus(retry.max_backoff.millis())))?;
    }
    if let Some(Concurrency { key, limit }) = &request.concurrency {
        check_key("concurrency.key", key)?;
        if *limit == 0 {
            return bad("concurrency.limit", "expected at least 1");
        }
    }
    if let Some(unique) = &request.unique {
        check_key("unique.key", &unique.key)?;
    }
    check_labels(&request.labels)?;
    if request.artifacts.len() > MAX_ARTIFACT_PATTERNS {
        return bad("artifacts", &format!("at most {MAX_ARTIFACT_PATTERNS} patterns"));
    }
    for (index, pattern) in request.artifacts.iter().enumerate() {
        if let Err(why) = crate::artifacts::check_pattern(pattern) {
            return bad(&format!("artifacts[{index}]"), &why);
        }
    }
    for (index, target) in request.on_complete.iter().enumerate() {
        check_target(index, target, settings)?;
    }
    Ok(())
}

pub(crate) fn check_priority(priority: Option<i32>) -> Result<(), JobsError> {
    if !(-100..=100).contains(&priority.unwrap_or(0)) {
        return Err(JobsError::bad("priority", "expected a number from -100 to 100"));
    }
    Ok(())
}

/// Checks that a time is from 1970 to the end of the year 9999.
pub(crate) fn check_time(path: &str, at: Option<Timestamp>) -> Result<(), JobsError> {
    match at.filter(|at| !at.is_in_calendar()) {
        Some(_) => Err(JobsError::bad(path, "expected a time from 1970 to the end of the year 9999")),
        None => Ok(()),
    }
}

pub(crate) fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), JobsError> {
    if labels.len() > MAX_LABELS {
        return Err(JobsError::bad("labels", format!("at most {MAX_LABELS} labels")));
    }
    let (name_chars, value_chars) = MAX_LABEL_CHARS;
    let is_text =
        |text: &str, most: usize| text.chars().nth(most).is_none() && !text.contains(char::is_control);
    let is_name = |name: &str| !name.is_empty() && !name.contains('=') && is_text(name, name_chars);
    match labels.iter().find(|(name, value)| !is_name(name) || !is_text(value, value_chars)) {
        Some((name, _)) => {
            let start: String = name.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
            let why = format!(
                "names have no = and 1 to {name_chars} characters, values at most {value_chars}; control characters \
                 are not allowed"
            );
            Err(JobsError::bad(format!("labels.{start}"), why))
        }
        None => Ok(()),
    }
}

/// Checks why a job is cancelled.
pub(crate) fn check_reason(reason: Option<&str>) -> Result<(), JobsError> {
    if reason.is_some_and(|reason| reason.chars().nth(MAX_REASON_CHARS).is_some()) {
        return Err(JobsError::bad("reason", format!("at most {MAX_REASON_CHARS} characters")));
    }
    check_text("reason", reason)
}

/// Checks a text that becomes an argument of a program, where a zero byte would end it.
fn check_text(path: &str, text: Option<&str>) -> Result<(), JobsError> {
    match text.filter(|text| text.contains('\0')) {
        Some(_) => Err(JobsError::bad(path, "it contains a zero byte")),
        None => Ok(()),
    }
}

fn check_retry(retry: &RetryPolicy) -> Result<(), JobsError> {
    if !(1..=MAX_ATTEMPTS).contains(&retry.attempts) {
        return Err(JobsError::bad("retry.attempts", format!("expected a number from 1 to {MAX_ATTEMPTS}")));
    }
    if retry.max_backoff.0 < retry.backoff.0 {
        return Err(JobsError::bad("retry.max_backoff", "expected at least retry.backoff"));
    }
    Ok(())
}

fn check_key(path: &str, key: &str) -> Result<(), JobsError> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(JobsError::bad(path, format!("expected 1 to {MAX_KEY_BYTES} bytes")));
    }
    Ok(())
}

fn check_target(
    index: usize,
    target: &types::job_request::OnComplete,
    settings: &JobSettings,
) -> Result<(), JobsError> {
    let path = |field: &str| format!("on_complete[{index}]{field}");
    let (field, name, is_webhook) = match (&target.webhook, &target.command) {
        (Some(name), None) => (".webhook", name, true),
        (None, Some(name)) => (".command", name, false),
        _ => return Err(JobsError::bad(path(""), "name exactly one of webhook and command")),
    };
    if target.on.as_ref().is_some_and(Vec::is_empty) {
        return Err(JobsError::bad(path(".on"), "name at least one state, or leave it out"));
    }
    match settings.notify.get(name) {
        Some(known) if known.url.is_some() == is_webhook => Ok(()),
        Some(_) => {
            let wanted = if is_webhook { "url" } else { "command" };
            Err(JobsError::bad(path(field), format!("[jobs.notify.{name}] has no {wanted}")))
        }
        None => {
            let names: Vec<&str> = settings.notify.keys().map(String::as_str).collect();
            let known = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
            let why = format!("there is no table [jobs.notify.{name}] in the configuration; known: {known}");
            Err(JobsError::bad(path(field), why))
        }
    }
}

/// Checks limits that a client names: none of them is 0, and money is not above what the user's configuration allows.
pub(crate) fn check_budgets(
    registry: &Registry,
    settings: &JobSettings,
    budgets: Option<Budgets>,
) -> Result<(), JobsError> {
    let Some(budgets) = budgets else { return Ok(()) };
    let limits = [
        ("usd_micros", budgets.usd_micros),
        ("model_calls", budgets.model_calls),
        ("output_tokens", budgets.output_tokens),
        ("wall_time_ms", budgets.wall_time_ms),
        ("session_usd_micros", budgets.session_usd_micros),
        ("session_model_calls", budgets.session_model_calls),
        ("session_output_tokens", budgets.session_output_tokens),
        ("session_wall_time_ms", budgets.session_wall_time_ms),
    ];
    for (name, limit) in limits {
        if limit == Some(0) {
            return Err(JobsError::bad(format!("budgets.{name}"), "0 leaves nothing to work with"));
        }
        if limit.is_some() && name.starts_with("session_") {
            let why = "the limits of a job hold for the whole job; use the name without session_";
            return Err(JobsError::bad(format!("budgets.{name}"), why));
        }
    }
    let unattended = registry.shared().components().settings.engine.unattended.clone();
    let own =
        unattended.usd.map(types::config_values::micros).map(|most| ("[permissions.unattended] usd", most));
    let day = settings.micros_per_day().map(|most| ("[jobs] usd_per_day", most));
    for (key, most) in own.into_iter().chain(day) {
        if budgets.usd_micros.is_some_and(|usd| usd > most) {
            let why = format!("it is above {key}, which is {most} micro-dollars");
            return Err(JobsError::bad("budgets.usd_micros", why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_is_the_shortened_first_line() {
        assert_eq!(title_of("  Fix the tests\nand more"), "Fix the tests");
        assert_eq!(title_of(&"ä".repeat(70)), format!("{}…", "ä".repeat(TITLE_CHARS)));
        assert_eq!(title_of(""), "");
    }
}
