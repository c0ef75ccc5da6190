//! Properties for any bytes from a peer, checked by the fuzz targets and their corpus.

mod calls;
mod dispatch;
mod framing;
mod slow;

pub use dispatch::dispatch;
pub use framing::framing;
