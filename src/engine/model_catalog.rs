//! Data about models for the engine: their capabilities.

use std::fmt;
use std::sync::Arc;

use types::usage::ModelSnapshot;

/// The capabilities of a model that the engine uses. An absent value is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCapabilities {
    /// Maximum tokens of a request and its answer together.
    pub context_window: Option<u32>,
    /// Maximum tokens of an answer.
    pub max_output_tokens: Option<u32>,
    /// Whether the model accepts pictures.
    pub accepts_images: bool,
    /// Whether the model's price is known. Without a price, a limit on money cannot be enforced.
    pub has_price: bool,
    /// Price of a thousand output tokens in millionths of a dollar, if it is known.
    pub output_usd_micros_per_1k: Option<u64>,
}

/// Looks up models by `PROVIDER/MODEL`. Lookups of the same name must return the same result.
#[derive(Clone, Default)]
pub struct ModelCatalog(Option<Arc<Lookup>>);

type Lookup = dyn Fn(&str) -> ModelCapabilities + Send + Sync;

impl ModelCatalog {
    /// Creates a catalog that calls this function for each lookup. The function must not block.
    #[must_use]
    pub fn from_lookup(look_up: impl Fn(&str) -> ModelCapabilities + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look_up)))
    }

    /// The known capabilities of the model; empty without a lookup function.
    #[must_use]
    pub fn capabilities(&self, model: &str) -> ModelCapabilities {
        self.0
            .as_ref()
            .map_or(ModelCapabilities { accepts_images: true, ..ModelCapabilities::default() }, |look_up| {
                look_up(model)
            })
    }
}

impl fmt::Debug for ModelCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelCatalog")
    }
}

/// The model for small tasks (`[models] quick`).
#[derive(Clone, Debug, PartialEq)]
pub struct TitleModel {
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Limits and price for booking its calls.
    pub model_snapshot: ModelSnapshot,
}
