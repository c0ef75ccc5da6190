//! Readiness reports to service managers: sd_notify(3), one datagram to the socket that they name.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Reports that the daemon answers on its socket.
pub(in crate::daemon) fn ready() {
    tell("READY=1");
}

/// Reports that the daemon is stopping.
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
