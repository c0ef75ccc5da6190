//! Layer 2: calls to model providers.
//!
//! One request type and one stream of deltas for all providers ([`Models::call`]); the wire format of each API
//! stays inside its folder. The path of an answer:
//!
//! ```text
//! bytes ─ sse (events) ─ anthropic | openai_chat (what they mean) ─ assembly (deltas + reply)
//!   ▲ http (a provider)   or   ▲ replay (a cassette)
//! ```
//!
//! This layer never waits and retries: a call ends with one reply or one fault, and the engine decides what
//! follows.

mod anthropic;
mod api;
mod catalog;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
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
#[cfg(any(test, feature = "fuzzing"))]
mod testing;

pub use catalog::builtin::ModelFacts;
pub use keys::Key;
pub use models::Models;
pub use settings::{Kind, ModelError, ModelSettings, Provider, ReplayReasoning, Settings};

#[cfg(test)]
mod edge_cases;
