//! What the turn machine knows of models beside their names: which one stands in for which, and what
//! each can do.

use std::fmt;
use std::sync::Arc;

use crate::types::usage::ModelSnapshot;

/// What a model can do, as far as the turn machine cares. What is absent is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCapabilities {
    /// Tokens that fit in a request and its answer.
    pub context_window: Option<u32>,
    /// Tokens of the longest answer.
    pub max_output_tokens: Option<u32>,
    /// Whether it can be shown pictures.
    pub sees: bool,
    /// Whether its price is known: a limit on money cannot hold for another.
    pub has_price: bool,
}

/// Looks models up by `PROVIDER/MODEL`. The same name always gives the same answer.
#[derive(Clone, Default)]
pub struct ModelCatalog(Option<Arc<Lookup>>);

type Lookup = dyn Fn(&str) -> ModelCapabilities + Send + Sync;

impl ModelCatalog {
    /// Answers of this function, which must not wait for anything.
    #[must_use]
    pub fn from_lookup(look_up: impl Fn(&str) -> ModelCapabilities + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look_up)))
    }

    /// What is known of the model; nothing, where nobody was named who knows.
    #[must_use]
    pub fn capabilities(&self, model: &str) -> ModelCapabilities {
        self.0.as_ref().map_or(ModelCapabilities { sees: true, ..ModelCapabilities::default() }, |look_up| {
            look_up(model)
        })
    }
}

impl fmt::Debug for ModelCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}

/// Models that stand in for the session's own (Q31), as `PROVIDER/MODEL`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FallbackModels {
    /// For one that is overloaded, missing or not to be reached.
    pub fallback: Option<String>,
    /// For one whose rate is limited.
    pub backup: Option<String>,
    /// For one whose window is too small.
    pub large_context: Option<String>,
    /// For one that cannot see.
    pub vision: Option<String>,
}

/// The model for small things (`[models] quick`).
#[derive(Clone, Debug, PartialEq)]
pub struct TitleModel {
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// What its calls are booked with.
    pub terms: ModelSnapshot,
}
