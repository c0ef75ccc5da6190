//! Random histories of several jobs under a limit on the day's money.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::decide::properties::{ended_with, new_record};
use crate::decide::{self, AttemptEnd, JobChange, JobInput};
use crate::record::{JobRecord, Spent};
use types::ids::{Mint, Seed};
use types::turn_result::Subtype;
use types::usage::{Budgets, ModelUsage};

const DAY_MS: u64 = 86_400_000;
const LIMIT: u64 = 100;

/// What the daemon knows: the records of the jobs, and the ledger.
struct Model {
    jobs: Vec<JobRecord>,
    queue: JobQueue,
    /// Day, job and cost of each model call.
    ledger: Vec<(i64, usize, u64)>,
    /// Cost of each job's living attempt.
    attempts: HashMap<usize, u64>,
    now: Timestamp,
    mint: Mint,
}

impl Model {
    fn entry(record: &JobRecord) -> QueueEntry {
        QueueEntry {
            job_id: record.job.job_id,
            state: record.job.state,
            priority: record.job.priority,
            run_at: record.job.run_at_ms,
            start_before: None,
            model: None,
            key: Arc::from(record.job.job_id.to_string()),
            limit: 1,
            reserve_usd_micros: record.remaining().usd_micros.unwrap_or(0),
        }
    }

    fn limits(&self) -> QueueLimits {
        let today =
            self.ledger.iter().filter(|(day, ..)| *day == self.now.day()).map(|(.., cost)| cost).sum();
        let money = |(index, spent): (&usize, &u64)| AttemptMoney {
            reserve: Self::entry(&self.jobs[*index]).reserve_usd_micros,
            spent: *spent,
        };
        let left = day_usd_micros_left(LIMIT, today, self.attempts.iter().map(money));
        QueueLimits { concurrent: 3, is_paused: false, day_usd_micros_left: Some(left) }
    }

    /// Whether the job took the input.
    fn step(&mut self, index: usize, input: JobInput) -> bool {
        match decide::decide(&self.jobs[index], input, self.now) {
            Ok(decision) => {
                self.queue.set(Self::entry(&decision.next));
                self.jobs[index] = decision.next;
                true
            }
            Err(_) => false,
        }
    }

    fn index_of(&self, id: JobId) -> usize {
        self.jobs.iter().position(|record| record.job.job_id == id).expect("a job")
    }

    fn start_due(&mut self) {
        for id in self.queue.due(self.now) {
            assert!(self.step(self.index_of(id), JobInput::Due));
        }
        while let Some(id) = self.queue.next_to_start(self.limits(), self.now) {
            let index = self.index_of(id);
            let session_id = self.mint.session();
            assert!(self.step(index, JobInput::Claim { session_id, can_continue: true }));
            self.attempts.insert(index, 0);
        }
    }

    /// The attempt makes a model call that costs a part of what is left for it.
    fn spend(&mut self, index: usize, percent: u64) {
        let left = self.jobs[index].remaining().usd_micros.unwrap_or(0);
        if let Some(spent) = self.attempts.get_mut(&index) {
            let cost = (left - *spent) * percent / 100;
            *spent += cost;
            self.ledger.push((self.now.day(), index, cost));
        }
    }

    fn end(&mut self, index: usize, subtype: Subtype) {
        let cost = self.ledger.iter().filter(|(_, job, _)| *job == index).map(|(.., cost)| cost).sum();
        let models = ModelUsage { cost_at_least_usd_micros: cost, ..ModelUsage::default() };
        let spent = Some(Spent { models, ..Spent::default() });
        let end = AttemptEnd { spent, ..ended_with(subtype) };
        if self.step(index, JobInput::AttemptEnded(Box::new(end))) {
            self.attempts.remove(&index);
        }
    }

    fn apply(&mut self, kind: u8, index: usize, value: u64) {
        match kind {
            0 | 1 => {
                let mut record = new_record(3);
                record.job.job_id = self.mint.job();
                record.job.priority = (value % 7) as i32;
                record.budgets = Budgets { usd_micros: Some(1 + value % LIMIT), ..Budgets::default() };
                self.queue.set(Self::entry(&record));
                self.jobs.push(record);
            }
            2..=4 => self.spend(index, value % 101),
            5 => self.end(index, Subtype::LlmError),
            6 => self.end(index, Subtype::Success),
            7 => _ = self.step(index, JobInput::Retry { mode: None }),
            8 => self.now = self.now.plus(value * 1_000),
            9 => self.now = self.now.plus(DAY_MS * value / 100),
            10 if self.jobs[index].job.state == JobState::Running => {
                _ = self.step(index, JobInput::AttemptWaits(types::job::WaitingFor::Permission));
            }
            10 => _ = self.step(index, JobInput::AttemptRuns),
            // The runner refuses more money for a living attempt than the day has left.
            _ if self.attempts.contains_key(&index) => {
                let left = self.queue.unreserved_usd_micros(self.limits());
                self.raise(index, value.min(left.unwrap_or(u64::MAX)));
            }
            _ => self.raise(index, value),
        }
    }

    fn raise(&mut self, index: usize, more: u64) {
        let usd_micros = self.jobs[index].budgets.usd_micros.map(|usd| (usd + more).min(LIMIT));
        let budgets = Some(Budgets { usd_micros, ..Budgets::default() });
        self.step(index, JobInput::Update(JobChange { budgets, ..JobChange::default() }));
    }
}

proptest! {
    #[test]
    fn no_day_costs_more_than_its_limit(
        script in prop::collection::vec((0..12u8, any::<prop::sample::Index>(), any::<u8>()), 0..150)
    ) {
        let mint = Mint::new(2, Seed(9));
        let (jobs, ledger, now) = (Vec::new(), Vec::new(), Timestamp(10));
        let (queue, attempts) = (JobQueue::default(), HashMap::new());
        let mut model = Model { jobs, queue, ledger, attempts, now, mint };
        model.apply(0, 0, 60);
        for (kind, index, value) in script {
            let index = index.index(model.jobs.len());
            model.apply(kind, index, u64::from(value));
            model.start_due();
            let mut days: HashMap<i64, u64> = HashMap::new();
            for (day, _, cost) in &model.ledger {
                *days.entry(*day).or_default() += cost;
            }
            prop_assert!(days.values().all(|cost| *cost <= LIMIT), "{days:?}");
        }
    }
}
