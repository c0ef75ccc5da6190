//! Calls to model providers.
//!
//! One request type and one stream of deltas for all providers ([`Models::call`]); the wire format of each API
//! stays inside its folder. The path of an answer:
//!
//! ```text
//! bytes ─ sse (events) ─ adapter of the API (what they mean) ─ assembly (deltas + reply)
//!   ▲ http (a provider)   or   ▲ replay (a cassette)
//! ```
//!
//! This layer does not wait and retry: a call ends with one reply or one fault, and the engine decides what
//! follows. Two requests are repeated at once: after a refused key that has changed meanwhile, and after a provider
//! lost the conversation that it kept.

mod anthropic;
mod api;
mod api_row;
mod backend;
mod catalog;
mod check;
#[doc(hidden)]
pub mod fuzz;
mod http;
mod keys;
mod list;
mod models;
mod openai_chat;
mod openai_responses;
mod replay;
mod request;
mod response_cache;
mod settings;
mod stream;
mod testing;
mod tool_schema;

pub use api::kind_of_vendor;
pub use keys::{CREDENTIAL_PREFIX, read_secret_file};
pub use models::Models;
pub use settings::{
    MaxTokensField, ModelError, ModelFacts, ModelSettings, Provider, ProviderKind, ReplayReasoning, Settings,
};

#[cfg(test)]
mod edge_cases;
