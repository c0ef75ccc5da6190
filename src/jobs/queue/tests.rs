//! The queue gives the answers of a look at all jobs.

use proptest::prelude::*;

use super::*;
use types::ids::{Mint, Seed};

type JobFacts<'k> = (JobState, i32, i64, &'k str, u64);

fn entries(jobs: &[JobFacts<'_>]) -> Vec<QueueEntry> {
    let mut mint = Mint::new(1, Seed(1));
    let entry = |(state, priority, run_at, key, reserve): &JobFacts<'_>| QueueEntry {
        job_id: mint.job(),
        state: *state,
        priority: *priority,
        run_at: Timestamp(*run_at),
        start_before: None,
        model: None,
        key: Arc::from(*key),
        limit: 1,
        reserve_usd_micros: *reserve,
    };
    jobs.iter().map(entry).collect()
}

fn queue_of(entries: &[QueueEntry]) -> JobQueue {
    let mut queue = JobQueue::default();
    entries.iter().for_each(|entry| queue.set(entry.clone()));
    queue
}

const FREE: QueueLimits = QueueLimits { concurrent: 2, is_paused: false, day_usd_micros_left: None };

#[test]
fn order_is_priority_with_ageing_then_due_time_then_creation() {
    use JobState::Queued;
    let now = Timestamp(100 * AGEING_MS);
    let check = |jobs: &[JobFacts<'_>], expected: usize| {
        let all = entries(jobs);
        assert_eq!(queue_of(&all).next_to_start(FREE, now), Some(all[expected].job_id));
    };
    check(&[(Queued, 0, now.0, "a", 0), (Queued, 1, now.0, "b", 0)], 1);
    check(&[(Queued, 0, now.0 - 2 * AGEING_MS, "a", 0), (Queued, 1, now.0, "b", 0)], 0);
    check(&[(Queued, 0, now.0, "a", 0), (Queued, 0, now.0 - 1, "b", 0)], 1);
    check(&[(Queued, 0, now.0, "a", 0), (Queued, 0, now.0, "b", 0)], 0);
    check(&[(Queued, 0, now.0, "a", 0), (Queued, 0, i64::MIN, "b", 0)], 1);
    // The clock was set back after they became due.
    check(&[(Queued, 0, now.0 + AGEING_MS, "a", 0), (Queued, 0, now.0 + 1, "b", 0)], 1);
}

#[test]
fn reason_names_what_keeps_a_job_from_starting() {
    use JobState::{Queued, Retrying, Running, Scheduled, Waiting};
    let now = Timestamp(1_000);
    let of = |jobs: &[JobFacts<'_>], limits: QueueLimits| {
        let all = entries(jobs);
        let queue = queue_of(&all);
        let last = all.last().expect("a job");
        let reason = queue.find_reason(last.job_id, limits);
        let starts = queue.next_to_start(limits, now) == Some(last.job_id);
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

/// The answers of a look at all jobs.
struct AllJobs(BTreeMap<JobId, QueueEntry>);

impl AllJobs {
    fn reason(&self, entry: &QueueEntry, limits: QueueLimits) -> Option<QueueReason> {
        let living = || self.0.values().filter(|other| other.state.has_attempt());
        let left = self.unreserved_usd_micros(limits);
        let with_key = living().filter(|other| other.key == entry.key).count();
        let slots = living().filter(|other| other.state == JobState::Running).count();
        match () {
            () if entry.state != JobState::Queued => Some(QueueReason::NotDue),
            () if limits.is_paused => Some(QueueReason::Paused),
            () if left.is_some_and(|left| left == 0 || entry.reserve_usd_micros > left) => {
                Some(QueueReason::Budget)
            }
            () if with_key >= entry.limit as usize => Some(QueueReason::Concurrency),
            () if slots >= limits.concurrent as usize => Some(QueueReason::Slots),
            () => None,
        }
    }

    fn unreserved_usd_micros(&self, limits: QueueLimits) -> Option<u64> {
        let reserves = |entry: &&QueueEntry| {
            matches!(entry.state, JobState::Running | JobState::Waiting | JobState::Retrying)
        };
        let reserved: u64 = self.0.values().filter(reserves).map(|entry| entry.reserve_usd_micros).sum();
        limits.day_usd_micros_left.map(|left| left.saturating_sub(reserved))
    }

    fn next_to_start(&self, limits: QueueLimits, now: Timestamp) -> Option<JobId> {
        let can_start = self.0.values().filter(|entry| self.reason(entry, limits).is_none());
        can_start.min_by_key(|entry| entry.rank(now)).map(|entry| entry.job_id)
    }

    fn at_or_before(&self, at: impl Fn(&QueueEntry) -> Option<Timestamp>, now: Timestamp) -> BTreeSet<JobId> {
        let reached = self.0.values().filter(|entry| at(entry).is_some_and(|at| at <= now));
        reached.map(|entry| entry.job_id).collect()
    }
}

#[test]
fn job_waits_while_the_rate_of_its_model_is_limited_and_others_start() {
    let now = Timestamp(100);
    let mut all = entries(&[(JobState::Queued, 5, 0, "a", 0), (JobState::Queued, 0, 0, "b", 0)]);
    all[0].model = Some(Arc::from("p/busy"));
    all[1].model = Some(Arc::from("p/other"));
    let mut queue = queue_of(&all);
    queue.set_paused_models([("p/busy".to_owned(), Timestamp(900))].into());
    assert_eq!(queue.next_to_start(FREE, now), Some(all[1].job_id));
    assert_eq!(queue.find_reason(all[0].job_id, FREE), Some(QueueReason::RateLimited));
    assert_eq!(queue.next_time(), Some(Timestamp(900)), "it may start then");
    queue.set_paused_models(HashMap::new());
    assert_eq!(queue.next_to_start(FREE, now), Some(all[0].job_id));
    assert_eq!((queue.find_reason(all[0].job_id, FREE), queue.next_time()), (None, None));
}

const STATES: [JobState; 6] = [
    JobState::Queued,
    JobState::Scheduled,
    JobState::Running,
    JobState::Waiting,
    JobState::Retrying,
    JobState::Succeeded,
];

/// A new state of one of eight jobs.
fn change() -> impl Strategy<Value = (usize, QueueEntry)> {
    let times = (-3_i64..3, 0_i64..4, prop::option::of(0_i64..4));
    let facts = (0..STATES.len(), -1_i32..2, 0..3_usize, 1_u32..3, 0_u64..4);
    (0..8_usize, times, facts).prop_map(
        |(job, (ages, ms, expiry), (state, priority, key, limit, reserve))| {
            let entry = QueueEntry {
                job_id: JobId::MIN,
                state: STATES[state],
                priority,
                run_at: Timestamp(ages * AGEING_MS + ms),
                start_before: expiry.map(Timestamp),
                model: None,
                key: Arc::from(["a", "b", "c"][key]),
                limit,
                reserve_usd_micros: reserve,
            };
            (job, entry)
        },
    )
}

proptest! {
    #[test]
    fn queue_answers_as_a_look_at_all_jobs_does(
        changes in prop::collection::vec(change(), 1..40),
        concurrent in 1_u32..4,
        left in prop::option::of(0_u64..6),
        now in -2 * AGEING_MS..2 * AGEING_MS,
    ) {
        let mut mint = Mint::new(1, Seed(1));
        let ids: Vec<JobId> = (0..8).map(|_| mint.job()).collect();
        let (mut queue, mut all) = (JobQueue::default(), AllJobs(BTreeMap::new()));
        let now = Timestamp(now);
        for (job, entry) in changes {
            let entry = QueueEntry { job_id: ids[job], ..entry };
            queue.set(entry.clone());
            match entry.state.is_final() {
                true => _ = all.0.remove(&entry.job_id),
                false => _ = all.0.insert(entry.job_id, entry),
            }
            for (is_paused, left) in [(false, left), (false, None), (true, None)] {
                let limits = QueueLimits { concurrent, is_paused, day_usd_micros_left: left };
                prop_assert_eq!(queue.next_to_start(limits, now), all.next_to_start(limits, now));
                prop_assert_eq!(queue.unreserved_usd_micros(limits), all.unreserved_usd_micros(limits));
                for id in &ids {
                    let entry = all.0.get(id).filter(|entry| !entry.state.has_attempt());
                    let expected = entry.and_then(|entry| all.reason(entry, limits));
                    prop_assert_eq!(queue.find_reason(*id, limits), expected);
                }
            }
            let set = |ids: Vec<JobId>| ids.into_iter().collect::<BTreeSet<_>>();
            prop_assert_eq!(set(queue.due(now)), all.at_or_before(QueueEntry::due_at, now));
            prop_assert_eq!(set(queue.expired(now)), all.at_or_before(QueueEntry::expires_at, now));
            let times = all.0.values().flat_map(|entry| [entry.due_at(), entry.expires_at()]).flatten();
            prop_assert_eq!(queue.next_time(), times.min());
            let waiting = all.0.values().filter(|entry| !entry.state.has_attempt()).count();
            prop_assert_eq!((queue.waiting(), queue.living().count()), (waiting, all.0.len() - waiting));
            prop_assert_eq!(queue.has_queued(), all.0.values().any(|entry| entry.state == JobState::Queued));
        }
    }
}
