//! Floor 2: talking to model providers.
//!
//! One request and one stream of deltas for all of them ([`Models::call`]); what a provider's wire
//! looks like stays inside its folder. The way of an answer:
//!
//! ```text
//! bytes ─ sse (events) ─ anthropic | openai_chat (what they mean) ─ assembly (deltas + reply)
//!   ▲ http (a provider)   or   ▲ replay (a cassette)
//! ```
//!
//! Nothing here waits and tries again: a call ends with one reply or one fault, and the engine
//! decides what follows.

mod anthropic;
mod api;
mod assembly;
mod cache;
mod called;
mod cassette;
#[cfg(test)]
mod corners;
mod count;
mod effort;
mod fault;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod http;
mod keys;
mod known;
mod list;
mod media;
mod models;
mod openai_chat;
mod openai_responses;
mod overflow;
mod patience;
mod record;
mod replay;
mod request_hash;
mod sampling;
mod settings;
mod signature;
mod sse;
#[cfg(any(test, feature = "fuzzing"))]
mod testing;
mod text;
mod written;

pub use keys::Key;
pub use known::ModelFacts;
pub use models::Models;
pub use settings::{Kind, ModelError, ModelSettings, Provider, ReasoningBack, Settings};
