//! Converts untrusted documents: PDF and HTML to text, and pictures to a form for models.
//!
//! The parser libraries recurse and allocate as the document demands. They run in a process of their own with
//! limits on memory and time (`child`). A hostile document can only harm that process, and the daemon gets a
//! failed conversion.
//!
//! - `run`: the daemon's side; `child`: the process's side; `pdf`, `image`: the conversions.

mod child;
pub(super) mod fuzz;
mod image;
mod pdf;
mod run;

pub use child::{DOCUMENT_ARGUMENT, convert_document};
pub(super) use image::{ImageInfo, media_type};
pub(super) use run::{DocumentKind, convert};

#[cfg(test)]
pub(super) use image::tests::{FORMATS, sample as sample_image};

#[cfg(test)]
pub(super) use pdf::tests::sample as sample_pdf;
