//! The whole state of one schedule, as it is stored, and the checks of its content.

use serde::{Deserialize, Serialize};

use super::decide::{FiringRules, Progress};
use super::pattern::CronPattern;
use super::timing::{Timing, Zone};
use crate::create::check_time;
use crate::error::JobsError;
use crate::record::Creator;
use store::ScheduleWrite;
use types::config_values::ConfigDuration;
use types::ids::{JobId, ScheduleId};
use types::job_request::{Concurrency, JobRequest};
use types::schedule::{NewSchedule, Schedule, ScheduleUpdate};
use types::time::Timestamp;

/// Longest name in bytes.
const MAX_NAME_BYTES: usize = 200;
/// Shortest interval.
const MIN_INTERVAL: ConfigDuration = ConfigDuration::from_secs(60);
/// Longest interval, and longest `catch_up_window`.
const MAX_DAYS: (u64, u64) = (1_461, 31);
const DEFAULT_WINDOW: ConfigDuration = ConfigDuration::from_secs(24 * 3_600);
const DEFAULT_MAX_FAILURES: u32 = 5;
/// Largest `max_failures`.
const MAX_FAILURES_IN_ROW: u32 = 1_000;
/// Slots among which the shortest pause is found.
const COMPARED_SLOTS: usize = 100;

/// The state of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// The schedule as clients see it; `next_fire_ms` and `failures` are computed for each reply.
    pub schedule: Schedule,
    /// Who created it. Its jobs are created in this client's name.
    pub creator: Creator,
    /// Slots of an interval are whole intervals after this time.
    pub start_ms: Timestamp,
    /// When it was enabled. Earlier failures do not count.
    pub enabled_at_ms: Timestamp,
    /// All slots up to this moment were handled.
    pub handled_until_ms: Timestamp,
    /// Missed slots that no job has told of.
    #[serde(default)]
    pub missed: u64,
    /// Slots in a row that could make no job.
    #[serde(default)]
    pub refusals: u32,
}

impl ScheduleRecord {
    /// A new schedule. Its job is checked elsewhere.
    pub fn new(
        id: ScheduleId,
        new: NewSchedule,
        creator: Creator,
        system_zone: &Zone,
        now: Timestamp,
    ) -> Result<Self, JobsError> {
        if new.timezone.is_some() && new.every.is_some() {
            return Err(JobsError::bad("timezone", "an interval has no time zone; leave it out"));
        }
        let schedule = Schedule {
            schedule_id: id,
            name: new.name,
            job: new.job,
            cron: new.cron,
            every: new.every,
            timezone: new.timezone.unwrap_or_else(|| system_zone.name().to_owned()),
            jitter: new.jitter.unwrap_or(ConfigDuration::from_secs(0)),
            overlap: new.overlap,
            catch_up: new.catch_up,
            catch_up_window: new.catch_up_window.unwrap_or(DEFAULT_WINDOW),
            until_ms: new.until_ms,
            max_failures: new.max_failures.unwrap_or(DEFAULT_MAX_FAILURES),
            enabled: new.enabled,
            created_at_ms: now,
            next_fire_ms: None,
            last_slot_ms: None,
            last_job_id: None,
            failures: 0,
            error: None,
        };
        let mut record = Self {
            schedule,
            creator,
            start_ms: now,
            enabled_at_ms: now,
            handled_until_ms: now,
            missed: 0,
            refusals: 0,
        };
        record.check(now)?;
        record.check_end(now)?;
        Ok(record)
    }

    /// The schedule with the changes of a client.
    pub fn updated(&self, update: ScheduleUpdate, now: Timestamp) -> Result<Self, JobsError> {
        let ScheduleUpdate { schedule_id: _, idempotency_key: _, name, job, cron, every, timezone, .. } =
            update;
        let ScheduleUpdate {
            jitter,
            overlap,
            catch_up,
            catch_up_window,
            until_ms,
            max_failures,
            enabled,
            ..
        } = update;
        let mut next = self.clone();
        let schedule = &mut next.schedule;
        let is_other_time = cron.is_some() || every.is_some() || timezone.is_some();
        if cron.is_some() || every.is_some() {
            (schedule.cron, schedule.every) = (cron, every);
        }
        set(&mut schedule.name, name);
        set(&mut schedule.job, job);
        set(&mut schedule.timezone, timezone);
        set(&mut schedule.jitter, jitter);
        set(&mut schedule.overlap, overlap);
        set(&mut schedule.catch_up, catch_up);
        set(&mut schedule.catch_up_window, catch_up_window);
        set(&mut schedule.max_failures, max_failures);
        if let Some(until) = until_ms {
            schedule.until_ms = Some(until).filter(|until| until.0 != 0);
        }
        let is_enabled_now = enabled == Some(true) && !schedule.enabled;
        set(&mut schedule.enabled, enabled);
        if is_other_time && schedule.every.is_some() {
            next.start_ms = schedule.last_slot_ms.unwrap_or(schedule.created_at_ms);
        }
        if is_enabled_now {
            (next.enabled_at_ms, next.refusals, next.missed) = (now, 0, 0);
            next.schedule.error = None;
        }
        if is_enabled_now || is_other_time {
            // What was due before is not missed.
            next.handled_until_ms = now;
        }
        next.check(now)?;
        if until_ms.is_some() || is_enabled_now {
            next.check_end(now)?;
        }
        Ok(next)
    }

    /// Checks all fields except the job, and completes the name of the zone.
    fn check(&mut self, now: Timestamp) -> Result<(), JobsError> {
        let schedule = &mut self.schedule;
        let bad = |path: &str, why: &str| Err(JobsError::bad(path, why));
        if schedule.name.trim().is_empty() || schedule.name.len() > MAX_NAME_BYTES {
            return bad("name", &format!("expected 1 to {MAX_NAME_BYTES} bytes"));
        }
        if schedule.name.chars().any(char::is_control) {
            return bad("name", "expected a text without control characters");
        }
        if schedule.job.run_at_ms.is_some() {
            return bad(
                "job.run_at_ms",
                "the schedule tells when a job is due; use job.delay to start later",
            );
        }
        if schedule.job.idempotency_key.is_some() {
            return bad("job.idempotency_key", "it belongs next to job, not into it");
        }
        let day = |days: u64| ConfigDuration::from_secs(days * 86_400);
        let (most_interval, most_window) = (day(MAX_DAYS.0), day(MAX_DAYS.1));
        if schedule.every.is_some_and(|every| every.0 < MIN_INTERVAL.0 || every.0 > most_interval.0) {
            return bad("every", &format!("expected 1m to {}d", MAX_DAYS.0));
        }
        if schedule.catch_up_window.0 > most_window.0 {
            return bad("catch_up_window", &format!("expected at most {}d", MAX_DAYS.1));
        }
        if schedule.max_failures > MAX_FAILURES_IN_ROW {
            return bad("max_failures", &format!("expected at most {MAX_FAILURES_IN_ROW}, or 0 for never"));
        }
        let Some(zone) = Zone::find(&schedule.timezone) else {
            return bad("timezone", "expected an IANA name like Europe/Berlin or UTC");
        };
        zone.name().clone_into(&mut schedule.timezone);
        let timing = self.timing()?;
        self.check_jitter(&timing, now)
    }

    fn check_jitter(&self, timing: &Timing, now: Timestamp) -> Result<(), JobsError> {
        let slots: Vec<Timestamp> = timing.slots_after(now).take(COMPARED_SLOTS).collect();
        if slots.is_empty() {
            return Err(JobsError::bad("cron", "the pattern has no time within four years"));
        }
        let shortest = slots.windows(2).map(|pair| pair[1].since(pair[0])).min();
        match shortest.filter(|shortest| self.schedule.jitter.millis() > *shortest) {
            Some(shortest) => {
                let pause = serde_json::to_value(ConfigDuration::from_millis(shortest)).unwrap_or_default();
                let why = format!(
                    "it is longer than the pause between two slots, {}",
                    pause.as_str().unwrap_or("")
                );
                Err(JobsError::bad("jitter", why))
            }
            None => Ok(()),
        }
    }

    fn check_end(&self, now: Timestamp) -> Result<(), JobsError> {
        check_time("until_ms", self.schedule.until_ms)?;
        match self.schedule.until_ms.filter(|until| *until <= now) {
            Some(_) => Err(JobsError::bad("until_ms", "it is over already")),
            None => Ok(()),
        }
    }

    /// When its jobs are due.
    ///
    /// # Errors
    /// The pattern or the zone cannot be read, or there is not exactly one of pattern and interval.
    pub fn timing(&self) -> Result<Timing, JobsError> {
        match (&self.schedule.cron, self.schedule.every) {
            (Some(cron), None) => timing_of_pattern(cron, &self.schedule.timezone),
            (None, Some(every)) => Ok(Timing::Every { start: self.start_ms, interval_ms: every.millis() }),
            (None, None) => Err(JobsError::bad("cron", "name a pattern in cron, or an interval in every")),
            (Some(_), Some(_)) => {
                Err(JobsError::bad("every", "it cannot stand next to cron; leave one of them out"))
            }
        }
    }

    /// What it does with its slots.
    #[must_use]
    pub fn rules(&self) -> FiringRules {
        FiringRules {
            overlap: self.schedule.overlap,
            catch_up: self.schedule.catch_up,
            catch_up_window_ms: self.schedule.catch_up_window.millis(),
            jitter_ms: self.schedule.jitter.millis(),
            until: self.schedule.until_ms,
        }
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { handled_until: self.handled_until_ms, missed: self.missed }
    }

    /// The state after a slot was handled.
    #[must_use]
    pub fn with_progress(&self, progress: Progress) -> Self {
        Self { handled_until_ms: progress.handled_until, missed: progress.missed, ..self.clone() }
    }

    /// The state after a job was created, for a slot or because a client asked for it.
    #[must_use]
    pub fn with_job(&self, job_id: JobId, slot: Option<Timestamp>) -> Self {
        let mut next = self.clone();
        next.schedule.last_job_id = Some(job_id);
        if let Some(slot) = slot {
            next.schedule.last_slot_ms = Some(slot);
            (next.handled_until_ms, next.missed, next.refusals) = (slot, 0, 0);
            next.schedule.error = None;
        }
        next
    }

    /// The content of the next job. Jobs of one schedule run one at a time, unless the schedule says otherwise.
    #[must_use]
    pub fn request(&self) -> JobRequest {
        let mut request = JobRequest::clone(&self.schedule.job);
        if request.worktree.is_some() && request.concurrency.is_none() {
            let key = format!("schedule:{}", self.schedule.schedule_id);
            request.concurrency = Some(Concurrency { key, limit: 1 });
        }
        request
    }

    /// The write that stores this state.
    #[must_use]
    pub fn update_write(&self) -> ScheduleWrite {
        ScheduleWrite::Update(self.schedule.schedule_id, self.to_json())
    }

    /// The stored text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// The times of a pattern in a zone.
///
/// # Errors
/// The pattern or the zone is invalid; the error has the path of the field.
pub fn timing_of_pattern(cron: &str, zone: &str) -> Result<Timing, JobsError> {
    let pattern = CronPattern::parse(cron).map_err(|error| JobsError::bad("cron", error.to_string()))?;
    let Some(zone) = Zone::find(zone) else {
        return Err(JobsError::bad("timezone", "expected an IANA name like Europe/Berlin or UTC"));
    };
    Ok(Timing::Cron { pattern, zone })
}
