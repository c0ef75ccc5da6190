//! Builds the request for a model from the state. The result is a function of the journal, so that earlier
//! parts of a conversation stay byte-identical from call to call.

pub(super) mod build;
pub mod model_texts;
pub(super) mod reminders;
pub(super) mod repair_history;
pub(super) mod tokens;
pub(super) mod vision;
