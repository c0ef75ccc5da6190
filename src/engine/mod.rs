//! The turn as a pure state machine. It computes events and effects from a state and an input.
//! No code here waits, reads a clock, or does I/O. The session (the crate `session`) executes each decision in the
//! order decide → write → apply → publish → run effects.

mod apply;
mod copy;
mod decide;
mod input;
mod inspect;
mod model_catalog;
mod output;
mod request;
mod settings;
mod state;
mod view;
mod window;

#[doc(hidden)]
pub use request::build::normalize as normalized;

pub use apply::{LATEST_ONLY_KINDS, TRANSIENT_KINDS};
pub use copy::{CopyEnd, CopyLimits, HistoryPoint, JournalCopier, UNCOPIED_KINDS};
pub use decide::context::NextRequest;
pub use decide::slash_command::{
    BUILT_IN, BuiltInCommand, CLEARED, NOTE, TypedLine, find_built_in, is_command_name, typed_line,
};
pub use decide::structured_output::check_schema;
pub use decide::usage_estimate::{estimate as estimate_usage, settle as settle_usage};
pub use input::{
    AnsweredCommand, EditedCall, Input, JudgedCall, Now, OutsideUsage, QueueEdit, Recovery, Refusal,
    RequestAnswer, Rewind, SessionUpdate, SubmitRequest,
};
pub use inspect::Inspection;
pub use model_catalog::{ModelCapabilities, ModelCatalog, TitleModel};
pub use output::{Decision, Effect, ItemChange, Plan, PlannedEvent, Reply, RequestChange};
#[doc(hidden)]
pub use request::model_texts;
pub use request::repair_history::{RepairedHistory, find_breach, repair};
pub use request::vision::needs_vision;
pub use settings::Settings;
#[doc(hidden)]
pub use state::CONTEXT_OVERFLOW;
pub use state::{Engine, SessionRules};
pub use view::PendingPermission;
