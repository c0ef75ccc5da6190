//! WebFetch (T12): one page of the web as text.
//!
//! - `address`: which addresses may be reached; `hop`: one request, to an address that was judged,
//!   and the only place beside the models that speaks HTTP.
//! - `fetch`: the tool: redirects, and what becomes of the answer.

mod address;
mod fetch;
mod hop;

#[cfg(test)]
mod tests;

pub use address::{Ranges, WrongRange};
pub(super) use fetch::{DESCRIPTION, Input, prepare, run};
pub(super) use hop::Client;
