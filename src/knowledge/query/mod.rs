//! Answers questions about the index: keywords → search → context → answer.
//!
//! [`run_query`] runs the stages; each one is a function of its own ([`extract_keywords`], [`search`],
//! [`select`] with [`build_context`], [`generate_answer`]). Equal index, query and keywords give an equal prompt.

mod allowed;
mod answer;
mod budget;
mod cache_key;
mod chunk_pick;
mod context;
mod fusion;
mod keywords;
mod model_json;
mod progress;
mod prompt;
mod references;
mod rerank;
mod result;
mod run;
mod search;
mod stale;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tool_context;

pub use allowed::retain_allowed;
pub use answer::{answer_call, generate_answer};
pub use budget::CountTokens;
pub use cache_key::{answer_key, keywords_key};
pub use context::{QueryContext, Selection, build_context, select};
pub use keywords::{ExtractedKeywords, extract_keywords, given_keywords, parse_keywords};
pub use progress::{Progress, QueryEvent};
pub use rerank::{Reranker, rerank};
pub use result::{NO_CONTEXT_RESPONSE, NoContextReason};
pub use run::{AllowedPaths, AnswerCache, FoundContext, QueryEnv, ReadIndex, find_context, run_query};
pub use search::{FusionWeights, QueryVectors, SearchResult, related_edges, search, search_entities};
pub use tool_context::{tool_params, tool_text};
