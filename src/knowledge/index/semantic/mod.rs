//! Level semantic: a model names the entities and relations of each document.
//!
//! - `prompt.rs` holds the texts for the model, `parse.rs` parses its answers, `normalize.rs` cleans names.
//! - `extract.rs` asks for one document: chunks are grouped into units of at most 1200 tokens, and each answer is in
//!   the cache before it is used. So the contributions of a document are durable before the graph changes.
//! - `summarize.rs` joins descriptions that are too many.
//! - `run.rs` does both for all documents of a job, within its budget.

mod calls;
mod extract;
mod normalize;
mod parse;
mod prompt;
mod run;
mod settings;
mod summarize;

pub use calls::SemanticRun;
pub(super) use prompt::prompt_tokens;
pub(super) use run::is_requested;
pub use run::run;
pub use settings::SemanticSettings;
