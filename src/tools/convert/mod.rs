//! Documents of others: PDF and HTML made text, pictures looked at and made fit for models.
//!
//! The libraries that read them recurse and allocate as the document says. So they run in a process of
//! their own with limits on memory and time (`child`): whatever a hostile document does, it does
//! there, and the daemon sees a conversion that failed.
//!
//! - `run`: the side of the daemon; `child`: what that process does; `pdf`, `html`, `image`: the work.

mod child;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzz;
mod html;
mod image;
mod pdf;
mod run;

pub use child::{DOCUMENT_ARGUMENT, convert_document};
pub(super) use image::{Seen, media_type};
pub(super) use run::{Document, convert};

#[cfg(test)]
pub(super) use image::tests::{FORMATS, sample as sample_image};

#[cfg(test)]
pub(super) use pdf::tests::sample as sample_pdf;
