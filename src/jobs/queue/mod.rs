//! The jobs that are not over: which one starts next, when something is due, and why a job does not start. Pure.
//!
//! Every question is answered without looking at all jobs, because the runner asks them after each input and thousands
//! of jobs may wait. Only a limit on the day's money and a pause of a model may need a look at all of them.

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use types::ids::JobId;
use types::job::{JobState, QueueReason};
use types::time::Timestamp;

/// Waiting time after which a job's priority rises by one point.
const AGEING_MS: i64 = 10 * 60 * 1_000;

/// What the queue knows of a job that is not over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueueEntry {
    pub job_id: JobId,
    pub state: JobState,
    pub priority: i32,
    /// When it was due, or was created if that was later: waiting counts from here.
    pub run_at: Timestamp,
    /// When it expires if it has not started.
    pub start_before: Option<Timestamp>,
    /// The model that its first request goes to, as `PROVIDER/MODEL`; `None` if it is not known.
    pub model: Option<Arc<str>>,
    /// Jobs with the same key run at most `limit` at a time.
    pub key: Arc<str>,
    pub limit: u32,
    /// What is left of the job's limit on money after the attempts that are over; 0 without a limit.
    pub reserve_usd_micros: u64,
}

impl QueueEntry {
    /// When it becomes due, if its state waits for that.
    fn due_at(&self) -> Option<Timestamp> {
        matches!(self.state, JobState::Scheduled | JobState::Retrying).then_some(self.run_at)
    }

    fn expires_at(&self) -> Option<Timestamp> {
        self.start_before.filter(|_| !self.state.has_attempt())
    }

    /// The part of the day's money that the job keeps from others: its attempt lives or follows soon.
    fn reserved_usd_micros(&self) -> u64 {
        match self.state.has_attempt() || self.state == JobState::Retrying {
            true => self.reserve_usd_micros,
            false => 0,
        }
    }

    /// Smaller starts first: the highest priority, with one point more per ten minutes of waiting; then the earlier due
    /// time; then the earlier creation.
    fn rank(&self, now: Timestamp) -> (Reverse<i64>, Timestamp, JobId) {
        rank(self.priority, self.run_at, self.job_id, now)
    }
}

fn rank(priority: i32, run_at: Timestamp, id: JobId, now: Timestamp) -> (Reverse<i64>, Timestamp, JobId) {
    let aged = i64::from(priority) + now.0.saturating_sub(run_at.0).max(0) / AGEING_MS;
    (Reverse(aged), run_at, id)
}

/// What limits the start of jobs now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    pub concurrent: u32,
    pub is_paused: bool,
    /// Money that is left of the day, see [`day_usd_micros_left`]; `None` without a limit. What jobs have reserved is
    /// still part of it.
    pub day_usd_micros_left: Option<u64>,
}

/// Money of a living attempt in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttemptMoney {
    /// What was left for it at its start: the reserve of its queue entry.
    pub reserve: u64,
    /// What it has spent since then.
    pub spent: u64,
}

/// What is left of a day's limit for all reserves. `spent_today` is the money of all attempts, so it includes that of
/// living ones, which their reserves include too.
pub(crate) fn day_usd_micros_left(
    limit: u64,
    spent_today: u64,
    living: impl Iterator<Item = AttemptMoney>,
) -> u64 {
    let counted_twice = living.fold(0_u64, |sum, it| sum.saturating_add(it.spent.min(it.reserve)));
    limit.saturating_add(counted_twice).saturating_sub(spent_today)
}

/// The place of a queued job: its key and limit, its priority, its due time.
type Place = (Arc<str>, u32, i32, Timestamp, JobId);

/// All jobs that are not over.
#[derive(Debug, Default)]
pub(crate) struct JobQueue {
    entries: BTreeMap<JobId, QueueEntry>,
    /// All queued jobs. Among jobs with the same key, limit and priority, the first one starts first at any time.
    queued: BTreeSet<Place>,
    /// By priority, the first job of each such group whose key has room. Waiting raises all jobs of a priority alike, so
    /// the first of each priority come into question.
    startable: BTreeMap<i32, BTreeSet<(Timestamp, JobId)>>,
    /// When scheduled and retrying jobs become due.
    due: BTreeSet<(Timestamp, JobId)>,
    /// When jobs expire that have not started.
    expiries: BTreeSet<(Timestamp, JobId)>,
    /// Jobs with a living attempt, and how many of them have each key.
    attempts: BTreeSet<JobId>,
    used_keys: HashMap<Arc<str>, u32>,
    /// A job that waits for a person uses no processor, so it holds no slot. It still holds its key, because its work in
    /// the folder is not done. When it is answered it goes on at once, so more jobs than `concurrent` may run then; no
    /// other job starts until fewer run.
    used_slots: u32,
    /// The money that jobs with a living attempt, and those that retry, keep from others.
    reserved_usd_micros: u128,
    /// Models whose provider limits the rate of requests, with the end of the pause that it asked for.
    paused_models: HashMap<String, Timestamp>,
}

impl JobQueue {
    /// Adds a job, or takes over its new state. A job that is over is removed.
    pub fn set(&mut self, entry: QueueEntry) {
        self.remove(entry.job_id);
        if entry.state.is_final() {
            return;
        }
        self.change_key(&entry, Self::count);
        self.entries.insert(entry.job_id, entry);
    }

    pub fn remove(&mut self, id: JobId) {
        if let Some(entry) = self.entries.remove(&id) {
            self.change_key(&entry, Self::discount);
        }
    }

    pub fn get(&self, id: JobId) -> Option<&QueueEntry> {
        self.entries.get(&id)
    }

    /// Number of jobs without a living attempt.
    pub fn waiting(&self) -> usize {
        self.entries.len() - self.attempts.len()
    }

    /// The jobs with a living attempt.
    pub fn living(&self) -> impl Iterator<Item = JobId> + '_ {
        self.attempts.iter().copied()
    }

    /// The jobs whose time has come.
    pub fn due(&self, now: Timestamp) -> Vec<JobId> {
        up_to(&self.due, now)
    }

    /// The jobs that have not started in time.
    pub fn expired(&self, now: Timestamp) -> Vec<JobId> {
        up_to(&self.expiries, now)
    }

    /// The next time at which a job is due or expires, or a pause of a model ends that a job may wait for.
    pub fn next_time(&self) -> Option<Timestamp> {
        let first = |times: &BTreeSet<(Timestamp, JobId)>| times.first().map(|(at, _)| *at);
        let pauses = self.paused_models.values().copied().filter(|_| self.has_queued());
        first(&self.due).into_iter().chain(first(&self.expiries)).chain(pauses).min()
    }

    /// Replaces the models that no job may begin with, each with the end of its pause.
    pub fn set_paused_models(&mut self, paused: HashMap<String, Timestamp>) {
        self.paused_models = paused;
    }

    /// Whether a job is queued.
    pub fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// The job that starts now; `None` if none can.
    pub fn next_to_start(&self, limits: QueueLimits, now: Timestamp) -> Option<JobId> {
        if limits.is_paused || self.used_slots >= limits.concurrent {
            return None;
        }
        if limits.day_usd_micros_left.is_some() || !self.paused_models.is_empty() {
            // A job with a lower limit or another model may start before those that wait for money or for their model.
            let entries = self.queued.iter().filter_map(|(.., id)| self.entries.get(id));
            let can_start = entries.filter(|entry| self.reason(entry, limits).is_none());
            return can_start.min_by_key(|entry| entry.rank(now)).map(|entry| entry.job_id);
        }
        let firsts = self.startable.iter().filter_map(|(priority, jobs)| Some((*priority, jobs.first()?)));
        firsts.map(|(priority, (run_at, id))| rank(priority, *run_at, *id, now)).min().map(|(.., id)| id)
    }

    /// Why this job does not start now; `None` if it is about to start, runs, or is unknown.
    pub fn find_reason(&self, id: JobId, limits: QueueLimits) -> Option<QueueReason> {
        let entry = self.entries.get(&id).filter(|entry| !entry.state.has_attempt())?;
        self.reason(entry, limits)
    }

    /// The day's money that no job has reserved; `None` without a limit.
    pub fn unreserved_usd_micros(&self, limits: QueueLimits) -> Option<u64> {
        let reserved = u64::try_from(self.reserved_usd_micros).unwrap_or(u64::MAX);
        limits.day_usd_micros_left.map(|left| left.saturating_sub(reserved))
    }

    fn reason(&self, entry: &QueueEntry, limits: QueueLimits) -> Option<QueueReason> {
        let left = self.unreserved_usd_micros(limits);
        // A queued job was due once. It stays so if the clock is set back.
        if entry.state != JobState::Queued {
            Some(QueueReason::NotDue)
        } else if limits.is_paused {
            Some(QueueReason::Paused)
        } else if left.is_some_and(|left| left == 0 || entry.reserve_usd_micros > left) {
            Some(QueueReason::Budget)
        } else if entry.model.as_ref().is_some_and(|model| self.paused_models.contains_key(&**model)) {
            Some(QueueReason::RateLimited)
        } else if self.used_key(&entry.key) >= entry.limit {
            Some(QueueReason::Concurrency)
        } else if self.used_slots >= limits.concurrent {
            Some(QueueReason::Slots)
        } else {
            None
        }
    }

    fn used_key(&self, key: &str) -> u32 {
        self.used_keys.get(key).copied().unwrap_or(0)
    }

    /// Makes a change that concerns the entry's key only.
    fn change_key(&mut self, entry: &QueueEntry, change: impl FnOnce(&mut Self, &QueueEntry)) {
        for (priority, run_at, id) in self.startable_of(&entry.key) {
            if let Some(jobs) = self.startable.get_mut(&priority) {
                jobs.remove(&(run_at, id));
                if jobs.is_empty() {
                    self.startable.remove(&priority);
                }
            }
        }
        change(self, entry);
        for (priority, run_at, id) in self.startable_of(&entry.key) {
            self.startable.entry(priority).or_default().insert((run_at, id));
        }
    }

    /// The first job of each limit and priority of a key that has room.
    fn startable_of(&self, key: &Arc<str>) -> Vec<(i32, Timestamp, JobId)> {
        let used = self.used_key(key);
        let mut found = Vec::new();
        // Only with limits above the number in use.
        let mut from: Place =
            (Arc::clone(key), used.saturating_add(1), i32::MIN, Timestamp(i64::MIN), JobId::MIN);
        while let Some((of, limit, priority, run_at, id)) = self.queued.range(&from..).next() {
            if of != key {
                break;
            }
            found.push((*priority, *run_at, *id));
            from = match priority.checked_add(1) {
                Some(next) => (Arc::clone(key), *limit, next, Timestamp(i64::MIN), JobId::MIN),
                None => (Arc::clone(key), limit.saturating_add(1), i32::MIN, Timestamp(i64::MIN), JobId::MIN),
            };
        }
        found
    }

    fn count(&mut self, entry: &QueueEntry) {
        let id = entry.job_id;
        if entry.state == JobState::Queued {
            self.queued.insert(place(entry));
        }
        self.due.extend(entry.due_at().map(|at| (at, id)));
        self.expiries.extend(entry.expires_at().map(|at| (at, id)));
        self.reserved_usd_micros += u128::from(entry.reserved_usd_micros());
        if entry.state.has_attempt() {
            self.attempts.insert(id);
            *self.used_keys.entry(Arc::clone(&entry.key)).or_default() += 1;
            self.used_slots += u32::from(entry.state == JobState::Running);
        }
    }

    fn discount(&mut self, entry: &QueueEntry) {
        let id = entry.job_id;
        if entry.state == JobState::Queued {
            self.queued.remove(&place(entry));
        }
        if let Some(at) = entry.due_at() {
            self.due.remove(&(at, id));
        }
        if let Some(at) = entry.expires_at() {
            self.expiries.remove(&(at, id));
        }
        self.reserved_usd_micros -= u128::from(entry.reserved_usd_micros());
        if entry.state.has_attempt() {
            self.attempts.remove(&id);
            if let Some(count) = self.used_keys.get_mut(&entry.key) {
                *count -= 1;
                if *count == 0 {
                    self.used_keys.remove(&entry.key);
                }
            }
            self.used_slots -= u32::from(entry.state == JobState::Running);
        }
    }
}

fn place(entry: &QueueEntry) -> Place {
    (Arc::clone(&entry.key), entry.limit, entry.priority, entry.run_at, entry.job_id)
}

fn up_to(times: &BTreeSet<(Timestamp, JobId)>, now: Timestamp) -> Vec<JobId> {
    times.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect()
}
