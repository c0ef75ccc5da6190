//! The whole state of one job, as it is stored.

use serde::{Deserialize, Serialize};

use store::JobRow;
use types::event::Origin;
use types::ids::SessionId;
use types::job::{Job, JobAttempt};
use types::job_request::{Concurrency, RetryMode, RetryPolicy};
use types::time::Timestamp;
use types::usage::{Budgets, ModelUsage};
use types::worktree::WorktreeChoice;

/// The state of a job. Its content (`JobRequest`) is stored next to it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// The job as clients see it, with its whole result.
    pub job: Job,
    /// Who created it.
    pub creator: Creator,
    /// All attempts, the first one first.
    #[serde(default)]
    pub attempts: Vec<JobAttempt>,
    /// The model that the first request goes to, as `PROVIDER/MODEL`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// How many jobs with the same key run at a time.
    pub concurrency: Concurrency,
    /// When the job expires if it has not started.
    pub start_before_ms: Option<Timestamp>,
    /// The key that prevents a second job, with its scope.
    pub unique_key: Option<UniqueKey>,
    /// When a failed attempt is repeated.
    pub retry: RetryPolicy,
    /// Limits of the job over all attempts.
    pub budgets: Budgets,
    /// What the attempts that are over have used.
    #[serde(default)]
    pub spent: Spent,
    /// A cancel that is committed, while its attempt is being stopped.
    pub cancelling: Option<Cancelling>,
    /// What the next attempt starts from.
    #[serde(default)]
    pub next_mode: RetryMode,
    /// The worktree that the job wants.
    pub worktree: Option<WorktreeChoice>,
    /// The commit that the first worktree started from. Further attempts start from it too.
    pub worktree_base: Option<String>,
    /// The worktree of the newest attempt.
    pub worktree_place: Option<WorktreePlace>,
}

/// The client that created a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Creator {
    /// Its name.
    pub client: String,
    /// Its user id.
    pub uid: u32,
}

impl From<&Origin> for Creator {
    fn from(origin: &Origin) -> Self {
        Self { client: origin.client.clone(), uid: origin.uid }
    }
}

/// A unique key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniqueKey {
    /// The key with its scope.
    pub text: String,
    /// Whether the job keeps the key when it is over.
    pub stays: bool,
}

/// A committed cancel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelling {
    /// Why, for users.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// What attempts have used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Model calls, tokens and money of all sessions of the job.
    #[serde(default)]
    pub models: ModelUsage,
    /// Time of all turns without waits for a person, in milliseconds.
    #[serde(default)]
    pub wall_time_ms: u64,
    /// Model calls of all turns. A call that the provider refused is one, but it is not in the ledger.
    #[serde(default)]
    pub turn_calls: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreePlace {
    /// Its folder.
    pub path: String,
    /// The folder in it that corresponds to the job's folder.
    pub cwd: String,
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    /// Uncommitted changes of the main folder, which it did not take over.
    #[serde(default)]
    pub uncommitted_in_base: u64,
}

impl JobRecord {
    /// The session of the attempt that lives; `None` if none does.
    #[must_use]
    pub fn living_session(&self) -> Option<SessionId> {
        self.job.session_id.filter(|_| self.job.state.has_attempt())
    }

    /// The limits that are left for the next attempt. A limit of 0 means that nothing is left.
    #[must_use]
    pub fn remaining(&self) -> Budgets {
        let mut left = self.budgets;
        left.subtract(&self.spent.models);
        left.model_calls = left.model_calls.map(|most| {
            let used = self.spent.turn_calls.max(self.spent.models.calls);
            self.budgets.model_calls.unwrap_or(most).saturating_sub(used)
        });
        left.wall_time_ms = left.wall_time_ms.map(|ms| ms.saturating_sub(self.spent.wall_time_ms));
        left
    }

    /// Whether another attempt could do anything within the limits.
    #[must_use]
    pub fn has_budget_left(&self) -> bool {
        let left = self.remaining();
        let limits = [left.usd_micros, left.model_calls, left.output_tokens, left.wall_time_ms];
        !limits.contains(&Some(0))
    }

    #[must_use]
    pub fn row(&self) -> JobRow {
        let job = &self.job;
        let unique = self.unique_key.as_ref().filter(|key| key.stays || !job.state.is_final());
        JobRow {
            job_id: job.job_id,
            state: job.state,
            cwd: job.cwd.clone(),
            schedule_id: job.schedule_id,
            template: job.template.clone(),
            unique_key: unique.map(|key| key.text.clone()),
            created_at: job.created_at_ms,
            started_at: job.started_at_ms,
            ended_at: job.ended_at_ms,
            cost_usd_micros: self.spent.models.cost_at_least_usd_micros,
            record: serde_json::to_string(self).unwrap_or_default(),
        }
    }
}
