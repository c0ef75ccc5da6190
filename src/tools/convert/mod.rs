//! Documents of others made text: PDF and HTML.
//!
//! The libraries that read them recurse and allocate as the document says. So they run in a process of
//! their own with limits on memory and time (`child`): whatever a hostile document does, it does
//! there, and the daemon sees a conversion that failed.
//!
//! - `run`: the side of the daemon; `child`: what that process does; `pdf`, `html`: the work.

mod child;
mod html;
mod pdf;
mod run;

pub use child::{DOCUMENT_ARGUMENT, convert_document};
pub(super) use run::{Document, convert};

#[cfg(test)]
pub(super) use pdf::tests::sample as sample_pdf;
