//! What any bytes from a peer must do: the laws that the fuzz targets and their corpus hold us to.

mod calls;
mod dispatch;
mod framing;
mod slow;

pub use dispatch::dispatch;
pub use framing::framing;
