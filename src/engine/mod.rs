//! Layer 1: the turn as a pure machine. State and input give facts and effects; nothing here waits,
//! asks a clock, or touches the world. The session (floor 3) performs what is decided, in the order
//! decide → write → remember → tell → act.

mod apply;
mod decide;
mod input;
mod model_catalog;
mod request;
mod settings;
mod state;
mod view;
mod window;

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub use request::build::normalize as normalized;

pub use apply::transient_kinds::{LATEST_ONLY_KINDS, TRANSIENT_KINDS};
pub use decide::plan::{Effect, Entry, ItemChange, Plan, RequestChange};
pub use decide::retry::{OnRateLimit, Retry};
pub use input::{Answer, Busy, EditedCall, Input, JudgedCall, Now, Recovery, Refusal, Submit, Update};
pub use model_catalog::{FallbackModels, ModelCapabilities, ModelCatalog, TitleModel};
pub use request::repair_history::{Repair, breach, repair};
pub use request::vision::needs_vision;
pub use settings::{Settings, Unattended};
pub use state::{Engine, SessionRules};
pub use view::{Pending, Snapshot};

#[cfg(test)]
pub(crate) mod properties;
