//! Errors of the index, and the usage of a model call.

/// The usage of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// Tokens in, cached ones included.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Price in micro-dollars; 0 if unknown.
    pub cost_usd_micros: u64,
}

impl ModelUsage {
    /// Adds the usage of another call.
    pub const fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_usd_micros = self.cost_usd_micros.saturating_add(other.cost_usd_micros);
    }
}

/// The kinds of errors, by which `rpc/convert` chooses a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorKind {
    /// A parameter is wrong.
    Invalid,
    /// The document, entity, relation or job does not exist.
    NotFound,
    /// Several entities fit a name; the error lists them.
    Ambiguous,
    /// An object with this name exists already.
    Exists,
    /// The call is not possible while an index job runs.
    Busy,
    /// The level needs a budget: the message holds the estimate.
    BudgetRequired,
    /// The budget is used up.
    BudgetExceeded,
    /// The index file could not be read or written.
    Storage,
    /// The index file is damaged. It is set aside, and the next job builds it again.
    Damaged,
    /// The model gave an error.
    Model,
    /// The embedder gave an error.
    Embedder,
    /// A file or the workspace could not be read.
    Files,
    /// The caller cancelled the call.
    Cancelled,
}

impl ErrorKind {
    /// The machine-readable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An error of this folder. The message has the form "could not X: Y; do Z".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KnowledgeError {
    pub kind: ErrorKind,
    /// The text for users.
    pub message: String,
    /// The names that fit, with [`ErrorKind::Ambiguous`].
    pub candidates: Vec<String>,
    /// The usage of a failed model call, as far as it is known.
    pub used: ModelUsage,
}

impl KnowledgeError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), candidates: Vec::new(), used: ModelUsage::default() }
    }

    /// Sets the usage of the failed model call.
    #[must_use]
    pub fn with_usage(mut self, used: ModelUsage) -> Self {
        self.used = used;
        self
    }

    /// The error of a cancelled call.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "could not finish: it was cancelled; start it again to continue")
    }
}
