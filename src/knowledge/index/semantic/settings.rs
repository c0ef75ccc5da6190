//! Settings for the use of a model at level semantic.

/// Settings for the use of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemanticSettings {
    /// Further passes over a unit, 0 or 1. Larger values mean 1.
    pub max_gleaning: u32,
    /// Model calls at the same time.
    pub concurrency: usize,
    /// Documents at the same time.
    pub parallel_documents: usize,
    /// Maximum tokens of a gleaning call's input; a longer one is not sent.
    pub max_input_tokens: usize,
    /// The language of descriptions.
    pub language: String,
    /// Types that the model may use.
    pub entity_types: Vec<String>,
}

impl Default for SemanticSettings {
    fn default() -> Self {
        let types = [
            "person",
            "organization",
            "location",
            "event",
            "concept",
            "method",
            "content",
            "data",
            "artifact",
            "component",
        ];
        Self {
            max_gleaning: 1,
            concurrency: 4,
            parallel_documents: 3,
            max_input_tokens: 20_480,
            language: "English".into(),
            entity_types: types.map(str::to_owned).to_vec(),
        }
    }
}
