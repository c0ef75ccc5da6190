//! How many jobs are in which state.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use types::job::{JobCounts, JobState};

/// Counters that the runner keeps and that any thread reads without waiting.
#[derive(Debug, Default)]
pub(crate) struct JobCounters {
    /// For a final state, the jobs that reached it since the start; for others, the jobs that are in it.
    by_state: [AtomicU64; JobState::ALL.len()],
    is_paused: AtomicBool,
}

impl JobCounters {
    /// A job goes from one state to another; `None` if it was not known before.
    pub fn moved(&self, from: Option<JobState>, to: JobState) {
        if from == Some(to) {
            return;
        }
        if let Some(from) = from.filter(|state| !state.is_final()) {
            self.by_state[from as usize].fetch_sub(1, Ordering::Relaxed);
        }
        self.by_state[to as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
    }

    /// The current numbers.
    pub fn snapshot(&self) -> JobCounts {
        let count = |state: &JobState| self.by_state[*state as usize].load(Ordering::Relaxed);
        let named = |state: JobState| (state.name().to_owned(), count(&state));
        let (over, open): (Vec<_>, Vec<_>) = JobState::ALL.into_iter().partition(|state| state.is_final());
        JobCounts {
            paused: self.is_paused.load(Ordering::Relaxed),
            open: open.into_iter().filter(|state| count(state) > 0).map(named).collect(),
            completed: over.into_iter().filter(|state| count(state) > 0).map(named).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_counted_in_their_newest_state() {
        let counters = JobCounters::default();
        counters.moved(None, JobState::Queued);
        counters.moved(None, JobState::Queued);
        counters.moved(Some(JobState::Queued), JobState::Running);
        counters.moved(Some(JobState::Running), JobState::Running);
        counters.moved(None, JobState::Skipped);
        let counts = counters.snapshot();
        assert_eq!((counts.open["queued"], counts.open["running"], counts.open.len()), (1, 1, 2));
        assert_eq!((counts.completed["skipped"], counts.completed.len()), (1, 1));
        counters.moved(Some(JobState::Running), JobState::Succeeded);
        assert!(!counters.snapshot().open.contains_key("running"));
    }
}
