//! Model calls of one job: limited in number and within a budget. The model itself has a time limit.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::SemanticSettings;
use crate::knowledge::index::progress::{Budget, Spent};
use crate::knowledge::store::KnowledgeStore;
use crate::knowledge::traits::{Completion, JobSink, LanguageModel, ModelCall};
use crate::knowledge::types::{ErrorKind, KnowledgeError};
use crate::types::time::Clock;

/// What the level works with.
pub struct Run<'a> {
    /// The index.
    pub store: &'a KnowledgeStore,
    /// The model.
    pub model: &'a Arc<dyn LanguageModel>,
    /// How it is used.
    pub settings: &'a SemanticSettings,
    /// Files and folders that the job is about; all if empty.
    pub paths: &'a [String],
    /// What the job may use.
    pub budget: Budget,
    /// The time.
    pub clock: &'a Arc<dyn Clock>,
    /// Where progress goes.
    pub sink: &'a Arc<dyn JobSink>,
    pub(in crate::knowledge::index) spent: &'a Arc<Spent>,
    /// Ends the run at the next call, document or summary.
    pub cancel: &'a CancellationToken,
    pub(in crate::knowledge::index) calls: Semaphore,
}

impl Run<'_> {
    /// Calls the model when a place is free, unless the budget is used up.
    pub(super) async fn call(&self, call: ModelCall) -> Result<Completion, KnowledgeError> {
        let _place = tokio::select! {
            place = self.calls.acquire() => place.map_err(|_| KnowledgeError::cancelled())?,
            () = self.cancel.cancelled() => return Err(KnowledgeError::cancelled()),
        };
        self.check_budget()?;
        // A call that is dropped cannot say what it used, so it ends by itself when the job is cancelled.
        let answer = self.model.complete(call, self.cancel.clone()).await;
        match &answer {
            Ok(completion) => self.spent.add(completion.usage),
            Err(error) => self.spent.add(error.used),
        }
        answer
    }

    fn check_budget(&self) -> Result<(), KnowledgeError> {
        let is_used_up = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
        if is_used_up(self.budget.tokens, self.spent.tokens())
            || is_used_up(self.budget.usd_micros, self.spent.cost_usd_micros())
        {
            return Err(KnowledgeError::new(
                ErrorKind::BudgetExceeded,
                format!(
                    "could not finish: the job's budget is used up ({} tokens, {} micro-dollars); start it again with a \
                     new budget to continue",
                    self.spent.tokens(),
                    self.spent.cost_usd_micros()
                ),
            ));
        }
        Ok(())
    }
}
