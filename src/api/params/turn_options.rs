//! The options of turns in the parameters of three methods. Each option is a parameter of its own, so that errors can
//! name it.

use crate::params::{CreateParams, SubmitInput, SubmitParams, UpdateParams};
use types::ids::SessionId;
use types::sampling::Sampling;
use types::turn_options::TurnOptions;

macro_rules! has_turn_options {
    ($($params:ty),*) => {$(
        impl $params {
            /// The options of turns in these parameters.
            #[must_use]
            pub fn options(&self) -> TurnOptions {
                TurnOptions {
                    budgets: self.budgets.clone(),
                    mode: self.mode.clone(),
                    model: self.model.clone(),
                    thinking: self.thinking.clone(),
                    tools: self.tools.clone(),
                    safe_mode: self.safe_mode.clone(),
                    system_prompt: self.system_prompt.clone(),
                    append_system_prompt: self.append_system_prompt.clone(),
                    additional_dirs: self.additional_dirs.clone(),
                    fallback_model: self.fallback_model.clone(),
                    stop: self.stop.clone(),
                    metadata: self.metadata.clone(),
                    output_schema: self.output_schema.clone(),
                    command: None,
                    compact: None,
                    sampling: Sampling { temperature: self.temperature, top_p: self.top_p },
                }
            }

            /// These parameters with other options of turns.
            #[must_use]
            pub fn with_options(self, options: TurnOptions) -> Self {
                Self {
                    budgets: options.budgets,
                    mode: options.mode,
                    model: options.model,
                    thinking: options.thinking,
                    tools: options.tools,
                    safe_mode: options.safe_mode,
                    system_prompt: options.system_prompt,
                    append_system_prompt: options.append_system_prompt,
                    additional_dirs: options.additional_dirs,
                    fallback_model: options.fallback_model,
                    stop: options.stop,
                    metadata: options.metadata,
                    output_schema: options.output_schema,
                    temperature: options.sampling.temperature,
                    top_p: options.sampling.top_p,
                    ..self
                }
            }
        }
    )*};
}

has_turn_options!(CreateParams, SubmitParams, UpdateParams);

impl SubmitParams {
    /// A submit without options.
    #[must_use]
    pub const fn new(session_id: SessionId, input: SubmitInput) -> Self {
        Self {
            session_id,
            input,
            when_busy: None,
            expected_turn_id: None,
            idempotency_key: None,
            temperature: None,
            top_p: None,
            budgets: None,
            mode: None,
            model: None,
            thinking: None,
            tools: None,
            safe_mode: None,
            system_prompt: None,
            append_system_prompt: None,
            additional_dirs: None,
            fallback_model: None,
            stop: None,
            metadata: None,
            output_schema: None,
            raw: false,
        }
    }
}

impl UpdateParams {
    /// An update that changes nothing.
    #[must_use]
    pub const fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            title: None,
            idempotency_key: None,
            temperature: None,
            top_p: None,
            budgets: None,
            mode: None,
            model: None,
            thinking: None,
            tools: None,
            safe_mode: None,
            system_prompt: None,
            append_system_prompt: None,
            additional_dirs: None,
            fallback_model: None,
            stop: None,
            metadata: None,
            output_schema: None,
        }
    }
}
