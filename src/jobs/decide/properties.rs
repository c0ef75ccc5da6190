//! Random histories of one job, and what holds in each of them.

use proptest::prelude::*;

use super::*;
use crate::record::{Creator, Spent};
use types::ids::{Mint, Seed};
use types::job::{Job, JobError};
use types::job_request::{Concurrency, RetryPolicy};
use types::turn_result::{Subtype, TurnError, TurnResult};
use types::usage::{ModelUsage, Usage};

/// A new job that is queued.
pub(crate) fn new_record(attempts: u32) -> JobRecord {
    let mut mint = Mint::new(1, Seed(7));
    let retry = RetryPolicy { attempts, ..RetryPolicy::default() };
    JobRecord {
        job: Job {
            job_id: mint.job(),
            state: JobState::Queued,
            reason: None,
            title: "a job".into(),
            template: None,
            schedule_id: None,
            slot_ms: None,
            missed_slots: None,
            cwd: "/w".into(),
            labels: Default::default(),
            priority: 0,
            attempt: 0,
            attempts_max: attempts,
            session_id: None,
            node: None,
            created_at_ms: Timestamp(1),
            run_at_ms: Timestamp(1),
            started_at_ms: None,
            ended_at_ms: None,
            cost_usd_micros: Some(0),
            usage: Usage::default(),
            seq: 1,
            activity: None,
            waiting_for: None,
            result: None,
            error: None,
            deliveries: Vec::new(),
        },
        creator: Creator::default(),
        attempts: Vec::new(),
        model: None,
        concurrency: Concurrency { key: "/w".into(), limit: 1 },
        start_before_ms: None,
        unique_key: None,
        retry,
        budgets: Budgets { model_calls: Some(100), ..Budgets::default() },
        spent: Spent::default(),
        cancelling: None,
        next_mode: RetryMode::Fresh,
        worktree: None,
        worktree_base: None,
        worktree_place: None,
    }
}

pub(crate) fn ended_with(subtype: Subtype) -> AttemptEnd {
    let mut result = TurnResult::unknown(subtype, TurnError::new("x", "it failed"));
    if subtype == Subtype::Success {
        result.errors.clear();
    }
    AttemptEnd { result: Some(result), ..AttemptEnd::default() }
}

fn inputs() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((0..12u8, any::<u8>()), 0..60)
}

fn input(kind: u8, value: u8, mint: &mut Mint) -> JobInput {
    const SUBTYPES: [Subtype; 6] = [
        Subtype::Success,
        Subtype::LlmError,
        Subtype::ErrorDuringExecution,
        Subtype::Aborted,
        Subtype::PermissionDenied,
        Subtype::ErrorMaxBudgetUsd,
    ];
    let subtype = SUBTYPES[usize::from(value) % SUBTYPES.len()];
    match kind {
        0 => JobInput::Due,
        1 => JobInput::Expired,
        2..=4 => JobInput::Claim { session_id: mint.session(), can_continue: value > 64 },
        5 => JobInput::AttemptWaits(WaitingFor::Permission),
        6 => JobInput::AttemptRuns,
        7 | 8 => {
            let calls = u64::from(value);
            let models = ModelUsage { calls, ..ModelUsage::default() };
            let spent = Some(Spent { models, wall_time_ms: calls, turn_calls: calls });
            JobInput::AttemptEnded(Box::new(AttemptEnd { spent, ..ended_with(subtype) }))
        }
        9 => {
            let unknown_outcome = (value > 127).then(|| JobError::new("unknown_outcome", "?"));
            let error = (value < 64).then(|| JobError::new("session", "gone"));
            JobInput::AttemptEnded(Box::new(AttemptEnd { unknown_outcome, error, ..ended_with(subtype) }))
        }
        10 => JobInput::Cancel { reason: None },
        11 if value < 128 => JobInput::Retry { mode: (value < 64).then_some(RetryMode::Continue) },
        _ => {
            JobInput::Update(JobChange { run_at_ms: Some(Timestamp(i64::from(value))), ..Default::default() })
        }
    }
}

proptest! {
    #[test]
    fn any_history_keeps_the_promises_of_a_job(attempts in 1..4u32, script in inputs()) {
        let mut mint = Mint::new(2, Seed(9));
        let mut record = new_record(attempts);
        let mut now = Timestamp(10);
        let mut seq = record.job.seq;
        for (kind, value) in script {
            now = now.plus(u64::from(value));
            let input = input(kind, value, &mut mint);
            let before = record.clone();
            let Ok(decision) = decide(&record, input.clone(), now) else { continue };
            record = decision.next;
            seq += decision.events.len() as u64;
            prop_assert_eq!(record.job.seq, seq, "events are numbered without gaps");
            prop_assert!(!decision.events.is_empty(), "each change has an event");
            let living = record.attempts.iter().filter(|attempt| attempt.ended_at_ms.is_none()).count();
            prop_assert_eq!(living, usize::from(record.job.state.has_attempt()), "at most one attempt lives");
            prop_assert_eq!(record.attempts.len() as u32, record.job.attempt);
            prop_assert!(record.job.attempt <= record.job.attempts_max);
            prop_assert_eq!(record.job.ended_at_ms.is_some(), record.job.state.is_final());
            prop_assert_eq!(record.job.waiting_for.is_some(), record.job.state == JobState::Waiting);
            if before.job.state.is_final() {
                prop_assert!(matches!(input, JobInput::Retry { .. }), "only a retry leaves a final state");
                prop_assert_ne!(before.job.state, JobState::Succeeded);
            }
            if before.cancelling.is_some() && matches!(input, JobInput::AttemptEnded(_)) {
                prop_assert_eq!(record.job.state, JobState::Cancelled, "a committed cancel wins");
            }
            if record.job.state == JobState::Retrying && before.job.state != JobState::Retrying {
                prop_assert!(record.has_budget_left(), "no attempt follows without budget");
                prop_assert!(before.cancelling.is_none());
            }
            prop_assert_eq!(decision.work == NextWork::Start, matches!(input, JobInput::Claim { .. }));
            let stored = serde_json::to_string(&record).expect("JSON");
            prop_assert_eq!(&serde_json::from_str::<JobRecord>(&stored).expect("a record"), &record);
        }
    }
}

#[test]
fn failed_attempts_wait_twice_as_long_each_time() {
    let mut record = new_record(4);
    let mut mint = Mint::new(2, Seed(9));
    let mut waits = Vec::new();
    for _ in 0..3 {
        let session_id = mint.session();
        record = decide(&record, JobInput::Claim { session_id, can_continue: true }, Timestamp(1_000))
            .expect("claimed")
            .next;
        let end = JobInput::AttemptEnded(Box::new(ended_with(Subtype::LlmError)));
        record = decide(&record, end, Timestamp(1_000)).expect("ended").next;
        waits.push(record.job.run_at_ms.0 - 1_000);
        record = decide(&record, JobInput::Due, Timestamp(1_000_000)).expect("due").next;
    }
    assert_eq!(waits, [30_000, 60_000, 120_000]);
}

#[test]
fn results_of_people_and_limits_are_never_repeated() {
    let mut mint = Mint::new(2, Seed(9));
    for subtype in [Subtype::Aborted, Subtype::PermissionDenied, Subtype::ErrorMaxTurns] {
        let mut record = new_record(5);
        record.retry.on = vec![subtype];
        let session_id = mint.session();
        record = decide(&record, JobInput::Claim { session_id, can_continue: true }, Timestamp(2))
            .expect("claimed")
            .next;
        let end = JobInput::AttemptEnded(Box::new(ended_with(subtype)));
        let ended = decide(&record, end, Timestamp(3)).expect("ended").next;
        assert_eq!(ended.job.state, JobState::Failed, "{subtype:?}");
    }
}

#[test]
fn unknown_outcome_stops_retries_and_names_the_call() {
    let mut mint = Mint::new(2, Seed(9));
    let call_id = mint.call();
    for (after_unknown, expected) in [(false, JobState::Failed), (true, JobState::Retrying)] {
        let mut record = new_record(5);
        record.retry.after_unknown = after_unknown;
        let session_id = mint.session();
        record = decide(&record, JobInput::Claim { session_id, can_continue: true }, Timestamp(2))
            .expect("claimed")
            .next;
        let unknown = JobError { call_id: Some(call_id), ..JobError::new("unknown_outcome", "?") };
        let end = AttemptEnd { unknown_outcome: Some(unknown), ..ended_with(Subtype::LlmError) };
        let ended = decide(&record, JobInput::AttemptEnded(Box::new(end)), Timestamp(3)).expect("ended").next;
        assert_eq!(ended.job.state, expected);
        let named = ended.job.error.and_then(|error| error.call_id);
        assert_eq!(named, (!after_unknown).then_some(call_id));
    }
}
