//! Chooses the job that starts next, and tells why a job does not start. Pure.

use std::collections::HashMap;
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
    /// Jobs with the same key run at most `limit` at a time.
    pub key: Arc<str>,
    pub limit: u32,
    /// What is left of the job's limit on money after the attempts that are over; 0 without a limit.
    pub reserve_usd_micros: u64,
}

impl QueueEntry {
    /// The part of the day's money that the job keeps from others: its attempt lives or follows soon.
    fn reserved_usd_micros(&self) -> u64 {
        match self.state.has_attempt() || self.state == JobState::Retrying {
            true => self.reserve_usd_micros,
            false => 0,
        }
    }
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

/// The use of slots and keys by running jobs.
struct InUse<'e> {
    slots: u32,
    keys: HashMap<&'e str, u32>,
    reserved: u64,
}

impl<'e> InUse<'e> {
    fn count(entries: impl Iterator<Item = &'e QueueEntry>) -> Self {
        let mut used = Self { slots: 0, keys: HashMap::new(), reserved: 0 };
        for entry in entries {
            used.reserved = used.reserved.saturating_add(entry.reserved_usd_micros());
            if !entry.state.has_attempt() {
                continue;
            }
            // A job that waits for a person uses no processor, so it holds no slot. It still holds its key, because
            // its work in the folder is not done. When it is answered it goes on at once, so more jobs than `concurrent`
            // may run then; no other job starts until fewer run.
            used.slots += u32::from(entry.state == JobState::Running);
            *used.keys.entry(&entry.key).or_default() += 1;
        }
        used
    }

    fn reason(&self, entry: &QueueEntry, limits: QueueLimits, now: Timestamp) -> Option<QueueReason> {
        let left = limits.day_usd_micros_left.map(|left| left.saturating_sub(self.reserved));
        if entry.state != JobState::Queued || entry.run_at > now {
            Some(QueueReason::NotDue)
        } else if limits.is_paused {
            Some(QueueReason::Paused)
        } else if left.is_some_and(|left| left == 0 || entry.reserve_usd_micros > left) {
            Some(QueueReason::Budget)
        } else if self.keys.get(&*entry.key).is_some_and(|count| *count >= entry.limit) {
            Some(QueueReason::Concurrency)
        } else if self.slots >= limits.concurrent {
            Some(QueueReason::Slots)
        } else {
            None
        }
    }
}

/// The day's money that no job has reserved; `None` without a limit.
pub(crate) fn unreserved_usd_micros<'e>(
    entries: impl Iterator<Item = &'e QueueEntry>,
    limits: QueueLimits,
) -> Option<u64> {
    let left = limits.day_usd_micros_left?;
    Some(left.saturating_sub(InUse::count(entries).reserved))
}

/// The job that starts now: the highest priority first, with one point more per ten minutes of waiting; then the earlier
/// due time; then the earlier creation. `None` if none can start. Takes time linear in the number of jobs.
pub(crate) fn next_to_start<'e>(
    entries: impl Iterator<Item = &'e QueueEntry> + Clone,
    limits: QueueLimits,
    now: Timestamp,
) -> Option<JobId> {
    let used = InUse::count(entries.clone());
    let rank = |entry: &&QueueEntry| {
        let aged = i64::from(entry.priority) + now.0.saturating_sub(entry.run_at.0).max(0) / AGEING_MS;
        (std::cmp::Reverse(aged), entry.run_at, entry.job_id)
    };
    entries
        .filter(|entry| used.reason(entry, limits, now).is_none())
        .min_by_key(rank)
        .map(|entry| entry.job_id)
}

/// Why jobs do not start at one moment.
pub(crate) struct Reasons<'e> {
    used: InUse<'e>,
    limits: QueueLimits,
    now: Timestamp,
}

impl<'e> Reasons<'e> {
    /// Counts what is in use.
    pub fn new(entries: impl Iterator<Item = &'e QueueEntry>, limits: QueueLimits, now: Timestamp) -> Self {
        Self { used: InUse::count(entries), limits, now }
    }

    /// Why this job does not start now; `None` if it is about to start, or runs.
    pub fn find_reason(&self, entry: &QueueEntry) -> Option<QueueReason> {
        let waits = !entry.state.has_attempt();
        waits.then(|| self.used.reason(entry, self.limits, self.now)).flatten()
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::{Mint, Seed};

    fn entries(jobs: &[(JobState, i32, i64, &str, u64)]) -> Vec<QueueEntry> {
        let mut mint = Mint::new(1, Seed(1));
        let entry = |(state, priority, run_at, key, reserve): &(JobState, i32, i64, &str, u64)| QueueEntry {
            job_id: mint.job(),
            state: *state,
            priority: *priority,
            run_at: Timestamp(*run_at),
            key: Arc::from(*key),
            limit: 1,
            reserve_usd_micros: *reserve,
        };
        jobs.iter().map(entry).collect()
    }

    const FREE: QueueLimits = QueueLimits { concurrent: 2, is_paused: false, day_usd_micros_left: None };

    #[test]
    fn order_is_priority_with_ageing_then_due_time_then_creation() {
        use JobState::Queued;
        let now = Timestamp(100 * AGEING_MS);
        let check = |jobs: &[(JobState, i32, i64, &str, u64)], expected: usize| {
            let all = entries(jobs);
            assert_eq!(next_to_start(all.iter(), FREE, now), Some(all[expected].job_id));
        };
        check(&[(Queued, 0, now.0, "a", 0), (Queued, 1, now.0, "b", 0)], 1);
        check(&[(Queued, 0, now.0 - 2 * AGEING_MS, "a", 0), (Queued, 1, now.0, "b", 0)], 0);
        check(&[(Queued, 0, now.0, "a", 0), (Queued, 0, now.0 - 1, "b", 0)], 1);
        check(&[(Queued, 0, now.0, "a", 0), (Queued, 0, now.0, "b", 0)], 0);
    }

    #[test]
    fn reason_names_what_keeps_a_job_from_starting() {
        use JobState::{Queued, Retrying, Running, Scheduled, Waiting};
        let now = Timestamp(1_000);
        let of = |jobs: &[(JobState, i32, i64, &str, u64)], limits: QueueLimits| {
            let all = entries(jobs);
            let last = all.last().expect("a job");
            let reason = Reasons::new(all.iter(), limits, now).find_reason(last);
            let starts = next_to_start(all.iter(), limits, now) == Some(last.job_id);
            assert_eq!(starts, reason.is_none() && last.state == Queued);
            reason
        };
        let job = (Queued, 0, 0, "a", 5);
        assert_eq!(of(&[job], FREE), None);
        assert_eq!(of(&[(Scheduled, 0, 2_000, "a", 0)], FREE), Some(QueueReason::NotDue));
        assert_eq!(of(&[(Retrying, 0, 2_000, "a", 0)], FREE), Some(QueueReason::NotDue));
        assert_eq!(of(&[job], QueueLimits { is_paused: true, ..FREE }), Some(QueueReason::Paused));
        assert_eq!(of(&[(Running, 0, 0, "a", 0), job], FREE), Some(QueueReason::Concurrency));
        assert_eq!(of(&[(Waiting, 0, 0, "a", 0), job], FREE), Some(QueueReason::Concurrency));
        let busy = [(Running, 0, 0, "b", 0), (Running, 0, 0, "c", 0), job];
        assert_eq!(of(&busy, FREE), Some(QueueReason::Slots));
        // Jobs that were answered go on although others run.
        let answered = [(Running, 0, 0, "b", 0), (Running, 0, 0, "c", 0), (Running, 0, 0, "d", 0), job];
        assert_eq!(of(&answered, FREE), Some(QueueReason::Slots));
        let idle = [(Waiting, 0, 0, "b", 0), (Waiting, 0, 0, "c", 0), job];
        assert_eq!(of(&idle, FREE), None);
        let poor = QueueLimits { day_usd_micros_left: Some(9), ..FREE };
        assert_eq!(of(&[job], poor), None);
        for started in [Running, Waiting, Retrying] {
            assert_eq!(of(&[(started, 0, 0, "b", 5), job], poor), Some(QueueReason::Budget), "{started:?}");
        }
        let spent = QueueLimits { day_usd_micros_left: Some(0), ..FREE };
        assert_eq!(of(&[(Queued, 0, 0, "a", 0)], spent), Some(QueueReason::Budget));
    }
}
