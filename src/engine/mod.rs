//! Floor 1: the turn as a pure machine. State and input give facts and effects; nothing here waits,
//! asks a clock, or touches the world. The session (floor 3) performs what is decided, in the order
//! decide → write → remember → tell → act.

mod answer;
mod apply;
mod background;
mod input;
mod known;
mod limit;
mod model;
mod outside;
mod passing;
mod plan;
mod prompt;
mod question;
mod recover;
mod repair;
mod result;
mod retry;
mod said;
mod settings;
mod sight;
mod state;
mod stop;
mod submit;
mod switch;
mod title;
mod tokens;
mod tools;
mod transcript;
mod update;
mod view;
mod wait;
mod words;

#[cfg(test)]
pub(crate) mod laws;

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub use prompt::normalize as normalized;

pub use input::{Answer, Busy, EditedCall, Input, JudgedCall, Now, Recovery, Refusal, Submit, Update};
pub use known::{FallbackModels, ModelCapabilities, ModelCatalog, TitleModel};
pub use passing::{LATEST_ONLY_KINDS, TRANSIENT_KINDS};
pub use plan::{Effect, Entry, ItemChange, Plan, RequestChange};
pub use repair::{Repair, breach, repair};
pub use retry::{OnRateLimit, Retry};
pub use settings::{Settings, Unattended};
pub use sight::needs_vision;
pub use state::{Engine, SessionRules};
pub use view::{Pending, Snapshot};
