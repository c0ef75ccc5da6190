//! Fits the conversation into the context window of the model.

pub(super) mod result_budget;
