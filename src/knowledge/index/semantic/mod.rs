//! Level semantic: a model names the entities and relations of each document.
//!
//! - `prompt.rs` holds the texts for the model, `parse.rs` reads its answers, `normalize.rs` cleans names.
//! - `extract.rs` asks for one document: chunks are grouped into units of at most 1200 tokens, and each answer is in the
//!   cache before it is used. So the list of what a document contributes is durable before the graph changes.
//! - `summarize.rs` joins descriptions that are too many.
//! - `run.rs` does both for all documents of a job, within its budget.

mod extract;
mod normalize;
mod parse;
mod prompt;
mod run;
mod summarize;

pub use run::{Run, run};

/// How the model is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemanticSettings {
    /// Further passes over a unit, 0 or 1. Larger values mean 1.
    pub max_gleaning: u32,
    /// Model calls at the same time.
    pub concurrency: usize,
    /// Documents at the same time.
    pub parallel_documents: usize,
    /// Tokens of a gleaning call's input at most; above it there is none.
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

/// Tokens of the system prompt, for estimates.
pub(super) fn prompt_tokens() -> u64 {
    crate::knowledge::tokens::count(&prompt::extraction_system(&SemanticSettings::default())) as u64
}
