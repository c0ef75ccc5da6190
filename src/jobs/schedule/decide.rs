//! Which slots of a schedule fire now. Pure: the time, the state and the unfinished jobs are inputs.

use std::collections::VecDeque;

use sha2::{Digest as _, Sha256};

use types::ids::ScheduleId;
use types::schedule::{CatchUp, Overlap};
use types::time::Timestamp;

use super::timing::Timing;

/// A slot that is handled within this time is not missed. The next slot of a schedule comes after it.
pub const ON_TIME_MS: u64 = 60_000;
/// Most slots that one wake-up catches up.
pub const MAX_CAUGHT_UP: usize = 10;
/// Most missed slots that are counted. A longer pause counts as this many.
const MAX_MISSED: u64 = 100_000;

/// What a schedule does with its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiringRules {
    /// What happens while a job of the schedule is not over.
    pub overlap: Overlap,
    /// What happens to missed slots.
    pub catch_up: CatchUp,
    /// Missed slots that are older do not fire.
    pub catch_up_window_ms: u64,
    /// Longest random delay of a slot.
    pub jitter_ms: u64,
    /// Later slots do not exist.
    pub until: Option<Timestamp>,
}

/// How far a schedule is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// All slots up to this moment were handled. It never goes back, so no slot fires twice.
    pub handled_until: Timestamp,
    /// Missed slots that no job has told of.
    pub missed: u64,
}

/// Jobs of a schedule that are not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnfinishedJobs {
    /// Those that have not started.
    pub waiting: usize,
    /// Those that have.
    pub started: usize,
}

/// What happens at a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotAction {
    /// A job is created.
    Create,
    /// The unfinished jobs are cancelled, then a job is created.
    Replace,
    /// A job in the state `skipped` tells of the slot.
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firing {
    /// The slot, without the random delay: the key of the firing.
    pub slot: Timestamp,
    /// What happens.
    pub action: SlotAction,
    /// Missed slots that this job tells of.
    pub missed: u64,
}

/// The result of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The slots that fire now, in order.
    pub firings: Vec<Firing>,
    /// Progress once the last firing is written.
    pub progress: Progress,
    /// When to decide again; `None` if the schedule has no further slot.
    pub next: Option<Timestamp>,
}

/// Decides what fires at `now`.
///
/// The rule of overlap is about jobs of earlier decisions. Slots that are caught up together do not skip one another;
/// their jobs run one after another.
#[must_use]
pub fn decide(
    id: ScheduleId,
    timing: &Timing,
    rules: &FiringRules,
    progress: Progress,
    unfinished: UnfinishedJobs,
    now: Timestamp,
) -> Due {
    let due_time = |slot: Timestamp| slot.plus(jitter(id, slot, rules.jitter_ms));
    let is_before_end = |slot: &Timestamp| rules.until.is_none_or(|until| *slot <= until);
    let mut slots = timing.slots_after(progress.handled_until).take_while(is_before_end).peekable();
    let mut newest = VecDeque::with_capacity(MAX_CAUGHT_UP);
    let mut passed = 0_u64;
    while let Some(slot) = slots.next_if(|slot| due_time(*slot) <= now) {
        if newest.len() == MAX_CAUGHT_UP {
            newest.pop_front();
        }
        newest.push_back(slot);
        passed += 1;
        if passed == MAX_MISSED {
            // Slots after so many are found from now backwards, so that a long pause costs no more than this.
            let recent =
                Progress { handled_until: recent_start(now, rules), missed: progress.missed + passed };
            if recent.handled_until > slot {
                return decide(id, timing, rules, recent, unfinished, now);
            }
        }
    }
    let next = slots.peek().map(|slot| due_time(*slot));
    let Some(last) = newest.back().copied() else {
        return Due { firings: Vec::new(), progress, next };
    };
    let is_on_time = |slot: Timestamp| now.since(due_time(slot)) <= ON_TIME_MS;
    let is_in_window = |slot: Timestamp| now.since(slot) <= rules.catch_up_window_ms;
    let fires = |slot: &Timestamp| match rules.catch_up {
        CatchUp::None => *slot == last && is_on_time(*slot),
        CatchUp::Last => *slot == last && (is_on_time(*slot) || is_in_window(*slot)),
        CatchUp::All => is_on_time(*slot) || is_in_window(*slot),
    };
    let firing: Vec<Timestamp> = newest.into_iter().filter(fires).collect();
    let mut missed = progress.missed + passed - firing.len() as u64;
    let mut unfinished = unfinished;
    let firings: Vec<Firing> = firing
        .into_iter()
        .map(|slot| {
            let action = action(rules.overlap, unfinished);
            if action == SlotAction::Replace {
                unfinished = UnfinishedJobs::default();
            }
            Firing { slot, action, missed: std::mem::take(&mut missed) }
        })
        .collect();
    Due { firings, progress: Progress { handled_until: last, missed }, next }
}

/// The start of the time in which missed slots matter one by one.
fn recent_start(now: Timestamp, rules: &FiringRules) -> Timestamp {
    now.before(rules.catch_up_window_ms.max(ON_TIME_MS).saturating_add(rules.jitter_ms))
}

fn action(overlap: Overlap, unfinished: UnfinishedJobs) -> SlotAction {
    let is_one_unfinished = unfinished.waiting + unfinished.started > 0;
    match overlap {
        Overlap::Skip if is_one_unfinished => SlotAction::Skip,
        Overlap::Queue if unfinished.waiting > 0 => SlotAction::Skip,
        Overlap::Cancel if is_one_unfinished => SlotAction::Replace,
        Overlap::Skip | Overlap::Queue | Overlap::Cancel => SlotAction::Create,
    }
}

/// The delay of a slot in milliseconds, below `max_ms`: the same whenever it is computed, and different for schedules
/// with the same pattern, so that they do not start all at once.
fn jitter(id: ScheduleId, slot: Timestamp, max_ms: u64) -> u64 {
    if max_ms == 0 {
        return 0;
    }
    let digest = Sha256::digest(format!("{id} {}", slot.0));
    let random = digest.iter().take(8).fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    random % max_ms
}
