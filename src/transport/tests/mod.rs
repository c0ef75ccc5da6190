//! Tests over real sockets in temporary folders.

mod framings;
mod limits;
mod protocol;
mod shutdown;
mod subscriptions;
mod support;
