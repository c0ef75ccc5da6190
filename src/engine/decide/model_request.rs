//! The request for the next model call, and the limits of the results in it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::request::build::normalize_transcript;
use crate::request::tokens;
use crate::window::result_budget::{self, BoundedResult};
use types::blob::BlobRef;
use types::message::Message;
use types::model::ModelRequest;
use types::thinking::Thinking;

impl PlanBuilder<'_> {
    /// The request for the next model call.
    pub fn build_request(&self) -> Result<ModelRequest, &'static str> {
        if let Some(compaction) = self.state.compacting() {
            return Ok(self.summary_request(self.conversation_request(Vec::new())?, compaction));
        }
        let (model, thinks) = (self.turn_model(), self.turn_thinking() != Some(Thinking::Off));
        self.conversation_request(normalize_transcript(
            &self.state.transcript,
            thinks.then_some(model.as_str()),
        ))
    }

    fn turn_thinking(&self) -> Option<Thinking> {
        self.state.turn.as_ref().map_or(self.state.spec.thinking, |turn| turn.settings.thinking)
    }

    /// A request with these messages and the settings of the turn.
    pub fn conversation_request(&self, messages: Vec<Arc<Message>>) -> Result<ModelRequest, &'static str> {
        let model = self.turn_model();
        if model.is_empty() {
            return Err("no model is configured: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or [models] main \
                        in the configuration, or name one with --model PROVIDER/MODEL");
        }
        Ok(ModelRequest {
            model: model.parse()?,
            system: self.system_prompt(),
            messages,
            tools: self.offered_tools(),
            max_output_tokens: self.output_limit(),
            thinking: self.turn_thinking(),
            sampling: self
                .state
                .turn
                .as_ref()
                .map_or(self.state.spec.sampling, |turn| turn.settings.sampling),
            media: HashMap::new(),
            previous_response_id: self.previous_response_id(&model),
            fresh_connection: self.state.turn.as_ref().is_some_and(|turn| turn.model_call.is_fresh),
            is_helper_call: false,
            stop: self.state.stop_sequences().to_vec(),
            metadata: self.state.metadata().clone(),
            no_interleaving: self.state.spec.ablation.interleaved_thinking,
            is_repeated: self.awaits_second_answer(),
        })
    }

    /// The provider's id of the newest answer. `None` if another model gave that answer.
    fn previous_response_id(&self, model: &str) -> Option<String> {
        let (by, response_id) = self.state.continues.as_ref()?;
        (by == model).then(|| response_id.clone())
    }

    /// Tokens of the next request: the provider's last count, if there is one, plus an estimate.
    pub fn sent_tokens(&self) -> u64 {
        tokens::sent_tokens(&self.state, &self.turn_model(), &self.offered_tools())
    }

    /// Limits a result to the bytes that the message has left. `whole` is the blob with the tool's full output,
    /// if the tool kept more than `output`.
    pub fn bound_result(&mut self, output: String, whole: Option<BlobRef>) -> BoundedResult {
        self.bound_result_with_reserve(output, whole, 0)
    }

    /// Like [`PlanBuilder::bound_result`], with this many bytes reserved for text that may be added later.
    pub fn bound_result_with_reserve(
        &mut self,
        output: String,
        whole: Option<BlobRef>,
        spare: usize,
    ) -> BoundedResult {
        let (bounded, blob) =
            result_budget::bound_result(&self.state, self.result_limits(), output, whole, spare);
        self.plan.blobs.extend(blob);
        bounded
    }
}
