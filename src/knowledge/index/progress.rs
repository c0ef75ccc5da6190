//! The budget of a job, its usage, and its progress: at most ten reports a second, and always the last of a stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::traits::JobSink;
use crate::types::{JobEvent, ModelUsage};
use types::knowledge::{IndexProgress, IndexStage};

/// Shortest time between two reports of one stage.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// The budget of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens, input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money in micro-dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
}

impl Budget {
    /// Whether the budget limits anything.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.tokens.is_some() || self.usd_micros.is_some()
    }
}

/// The usage of a job so far. Parallel model calls share it.
#[derive(Debug, Default)]
pub(crate) struct UsedBudget {
    tokens: AtomicU64,
    cost_usd_micros: AtomicU64,
    /// Estimates of running calls: after a crash they count as used.
    running_tokens: AtomicU64,
    running_cost_usd_micros: AtomicU64,
}

impl UsedBudget {
    pub fn add(&self, usage: ModelUsage) {
        self.tokens.fetch_add(usage.input_tokens + usage.output_tokens, Ordering::Relaxed);
        self.cost_usd_micros.fetch_add(usage.cost_usd_micros, Ordering::Relaxed);
    }

    /// Records the beginning of a call that will use about `estimate`.
    pub fn begin_call(&self, estimate: ModelUsage) {
        self.running_tokens.fetch_add(estimate.input_tokens + estimate.output_tokens, Ordering::Relaxed);
        self.running_cost_usd_micros.fetch_add(estimate.cost_usd_micros, Ordering::Relaxed);
    }

    /// Records the end of the call with this estimate, which used `usage`.
    pub fn end_call(&self, estimate: ModelUsage, usage: ModelUsage) {
        self.running_tokens.fetch_sub(estimate.input_tokens + estimate.output_tokens, Ordering::Relaxed);
        self.running_cost_usd_micros.fetch_sub(estimate.cost_usd_micros, Ordering::Relaxed);
        self.add(usage);
    }

    /// The rest of a budget if the running calls use their estimates.
    pub fn remaining_budget(&self, budget: Budget) -> Budget {
        let left = |limit: Option<u64>, used: u64, running: &AtomicU64| {
            limit.map(|limit| limit.saturating_sub(used).saturating_sub(running.load(Ordering::Relaxed)))
        };
        Budget {
            tokens: left(budget.tokens, self.tokens(), &self.running_tokens),
            usd_micros: left(budget.usd_micros, self.cost_usd_micros(), &self.running_cost_usd_micros),
        }
    }

    pub fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    pub fn cost_usd_micros(&self) -> u64 {
        self.cost_usd_micros.load(Ordering::Relaxed)
    }
}

/// Reports the progress of one stage.
pub(super) struct StageProgress {
    sink: Arc<dyn JobSink>,
    spent: Arc<UsedBudget>,
    stage: IndexStage,
    total: u64,
    done: u64,
    reported: Option<(Instant, u64)>,
}

impl StageProgress {
    /// Begins a stage and reports its beginning.
    pub fn begin(sink: &Arc<dyn JobSink>, spent: &Arc<UsedBudget>, stage: IndexStage, total: u64) -> Self {
        let mut progress =
            Self { sink: sink.clone(), spent: spent.clone(), stage, total, done: 0, reported: None };
        progress.report();
        progress
    }

    /// Counts finished units.
    pub fn advance(&mut self, units: u64) {
        self.done += units;
        if self.reported.is_none_or(|(at, _)| at.elapsed() >= REPORT_INTERVAL) {
            self.report();
        }
    }

    /// Sets the total after more units were found.
    pub fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    fn report(&mut self) {
        self.reported = Some((Instant::now(), self.done));
        self.sink.emit(JobEvent::Progress(IndexProgress {
            stage: self.stage,
            done: self.done,
            total: self.total.max(self.done),
            tokens: self.spent.tokens(),
            cost_usd_micros: self.spent.cost_usd_micros(),
        }));
    }
}

impl Drop for StageProgress {
    /// The last state of a stage is always reported, also when the stage ends early.
    fn drop(&mut self) {
        if self.reported.is_none_or(|(_, done)| done != self.done) {
            self.report();
        }
    }
}
