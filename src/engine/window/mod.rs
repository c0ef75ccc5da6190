//! How the conversation is made to fit the context window of the model.

pub(super) mod result_budget;
