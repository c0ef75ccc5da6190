//! Through real sockets in scratch folders.

mod framings;
mod limits;
mod protocol;
mod shutdown;
mod subscriptions;
mod support;
