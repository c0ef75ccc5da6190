//! Capabilities and prices of models: the built-in table, the additions of the configuration, and the list for
//! clients.

pub(super) mod builtin;
pub(super) mod called;
pub(super) mod effort;
pub(super) mod signature;
