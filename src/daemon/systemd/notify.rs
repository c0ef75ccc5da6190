//! Readiness for service managers: sd_notify(3), which is one datagram to the socket they name.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// We answer on the socket.
pub(in crate::daemon) fn ready() {
    tell("READY=1");
}

/// We are on our way out.
pub(in crate::daemon) fn stopping() {
    tell("STOPPING=1");
}

fn tell(text: &str) {
    let Ok(name) = std::env::var("NOTIFY_SOCKET") else { return };
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::debug!(%error, "the service manager could not be told");
    }
}
