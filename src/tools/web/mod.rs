//! The WebFetch tool: one page of the web as text.
//!
//! - `hop`: one request to a judged address. Only `hop` and the model
//!   calls use HTTP.
//! - `fetch`: the tool: redirects, and conversion of the response.

mod fetch;
mod hop;

#[cfg(test)]
mod tests;

pub(super) use fetch::{DESCRIPTION, FETCH_TIMEOUT, Input, MAX_TEXT_CHARS, prepare, run};
pub(super) use hop::WebClient;
