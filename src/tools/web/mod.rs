//! The WebFetch tool: one page of the web as text.
//!
//! - `address`: addresses that may be reached; `hop`: one request to a judged address. Only `hop` and the model
//!   calls use HTTP.
//! - `fetch`: the tool: redirects, and conversion of the response.

mod address;
mod fetch;
mod hop;

#[cfg(test)]
mod tests;

pub use address::{Ranges, WrongRange};
pub(super) use fetch::{DESCRIPTION, Input, prepare, run};
pub(super) use hop::Client;
