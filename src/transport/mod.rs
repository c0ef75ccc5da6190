//! Bytes in, JSON-RPC calls out: a private Unix socket, three framings and one dispatcher.
//!
//! ```text
//!  bind ─► BoundSocket ─► serve ─► one task per connection
//!                              framing    bytes ↔ messages (NDJSON, Content-Length, WebSocket, HTTP)
//!                              envelope   message → calls, ids kept as they came
//!                              dispatch   calls → the methods of an `RpcModule`, run concurrently
//!                              outbox     replies and notifications → one writer, bounded in bytes
//! ```
//!
//! This layer knows frames, limits, peers and back-pressure, but no sessions. A method handler finds
//! its [`Connection`] in jsonrpsee's `Extensions`.

mod call_order;
mod connection;
mod connection_task;
mod dispatch;
mod envelope;
mod error;
pub mod framing;
mod limits;
mod lock;
mod outbox;
mod peer_origin;
mod private_dir;
mod reply;
mod serve;
mod server_state;
mod socket;
mod subscription_sink;
mod writer;

#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod tests;

pub use connection::{Connection, SubscribeError};
pub use error::TransportError;
pub use framing::ndjson;
pub use limits::Limits;
pub use lock::{LockNote, StateLock};
pub use outbox::MessageText;
pub use peer_origin::set_process_name;
pub use private_dir::{check_folder, is_in_shared_place, private_folder};
pub use serve::{RunningServer, serve};
pub use socket::{BoundSocket, bind};
pub use subscription_sink::{SendPermit, SinkClosed, SubscriptionSink};
