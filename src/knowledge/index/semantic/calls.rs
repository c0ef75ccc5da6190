//! Model calls of one job: limited in number and within a budget. The model itself has a time limit.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::SemanticSettings;
use crate::index::progress::UsedBudget;
use crate::index::request::IndexRequest;
use crate::store::KnowledgeStore;
use crate::tokens;
use crate::traits::{Completion, JobSink, LanguageModel, ModelCall};
use crate::types::{ErrorKind, KnowledgeError, ModelUsage};
use types::time::Clock;

/// The parts that the level uses.
pub struct SemanticRun<'a> {
    /// The index.
    pub store: &'a KnowledgeStore,
    pub model: &'a Arc<dyn LanguageModel>,
    /// Settings for the use of the model.
    pub settings: &'a SemanticSettings,
    /// The job: its files and folders, and its budget.
    pub request: &'a IndexRequest,
    /// The time.
    pub clock: &'a Arc<dyn Clock>,
    /// Receiver of the progress.
    pub sink: &'a Arc<dyn JobSink>,
    pub(crate) spent: &'a Arc<UsedBudget>,
    /// Ends the run at the next call, document or summary.
    pub cancel: &'a CancellationToken,
    pub(crate) calls: Semaphore,
}

impl SemanticRun<'_> {
    /// Calls the model when a permit is free, unless the budget is used up.
    pub(super) async fn call(&self, call: ModelCall) -> Result<Completion, KnowledgeError> {
        let _place = tokio::select! {
            place = self.calls.acquire() => place.map_err(|_| KnowledgeError::cancelled())?,
            () = self.cancel.cancelled() => return Err(KnowledgeError::cancelled()),
        };
        self.check_budget()?;
        let estimate = self.estimate(&call);
        self.spent.begin_call(estimate);
        if let Err(error) = self.store_budget().await {
            self.spent.end_call(estimate, ModelUsage::default());
            return Err(error);
        }
        // Do not drop a running call, because it could not report its usage. It ends by itself when the job
        // is cancelled.
        let answer = self.model.complete(call, self.cancel.clone()).await;
        let used = match &answer {
            Ok(completion) => completion.usage,
            Err(error) => error.used,
        };
        self.spent.end_call(estimate, used);
        self.store_budget().await?;
        answer
    }

    /// The probable usage of a call. The answer of an extraction is about as long as its input.
    fn estimate(&self, call: &ModelCall) -> ModelUsage {
        let texts =
            call.messages.iter().map(|message| message.content.as_str()).chain([call.system.as_str()]);
        let input_tokens = texts.map(tokens::count).sum::<usize>() as u64;
        let cost_usd_micros = self.model.price(input_tokens, input_tokens).unwrap_or(0);
        ModelUsage { input_tokens, output_tokens: input_tokens, cost_usd_micros }
    }

    /// Stores the remaining budget, so that a job that continues after a crash gets no more.
    async fn store_budget(&self) -> Result<(), KnowledgeError> {
        let request =
            IndexRequest { budget: self.spent.remaining_budget(self.request.budget), ..self.request.clone() };
        let text = serde_json::to_string(&request).map_err(|error| {
            KnowledgeError::new(ErrorKind::Invalid, format!("could not store the job: {error}; report it"))
        })?;
        self.store.write(move |writer| writer.update_job(&request.id, &text)).await
    }

    fn check_budget(&self) -> Result<(), KnowledgeError> {
        let is_used_up = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
        if is_used_up(self.request.budget.tokens, self.spent.tokens())
            || is_used_up(self.request.budget.usd_micros, self.spent.cost_usd_micros())
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
