//! Stage 4: the model writes the answer.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::context::QueryContext;
use super::progress::{Progress, QueryEvent};
use crate::traits::{CallPurpose, Completion, LanguageModel, ModelCall};
use crate::types::KnowledgeError;
use types::knowledge::{ChatMessage, QueryParams};

/// Capacity of the queue of deltas for a slow reader.
const DELTA_CAPACITY: usize = 32;

#[must_use]
pub fn answer_call(context: &QueryContext, params: &QueryParams) -> ModelCall {
    let mut messages = params.history().to_vec();
    messages.push(ChatMessage::user(params.query.clone()));
    ModelCall { purpose: CallPurpose::Answer, system: context.system.clone(), messages }
}

/// Requests the answer; streams it if there is a receiver.
///
/// # Errors
/// The model failed, or the query was cancelled.
pub async fn generate_answer(
    context: &QueryContext,
    params: &QueryParams,
    model: &dyn LanguageModel,
    progress: &Progress,
    cancel: CancellationToken,
) -> Result<Completion, KnowledgeError> {
    let call = answer_call(context, params);
    if !progress.is_streaming() {
        return model.complete(call, cancel).await;
    }
    let (deltas, mut arriving) = mpsc::channel(DELTA_CAPACITY);
    let forward = async move {
        while let Some(text) = arriving.recv().await {
            if !progress.send(QueryEvent::Delta(text)).await {
                // Dropping the receiver ends the call.
                return;
            }
        }
    };
    let (answer, ()) = tokio::join!(model.stream(call, deltas, cancel), forward);
    answer
}
