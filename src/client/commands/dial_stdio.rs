//! `agentctl daemon dial-stdio`: passes bytes on between standard input and output and the daemon's socket. `agentctl -H
//! ssh://…` runs it on the daemon's machine. The daemon sees this process, and decides its role as that of any other.

use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use tokio::task::spawn_blocking;

use crate::connection::connector::Connector;
use crate::failure::Failure;

/// Connects to the daemon, which is started first if none runs, and returns when one side has closed the connection.
///
/// # Errors
/// No daemon answers, or a stream failed.
pub(crate) async fn dial_stdio(reach: &Connector, after_crash: bool) -> Result<(), Failure> {
    let client = match after_crash {
        true => reach.connect_again().await?,
        false => reach.connect_or_start().await?,
    };
    let socket = client.socket().ok_or_else(|| Failure::usage("the daemon must be on this machine"))?;
    let lost = |error: io::Error| Failure::unreachable(format!("lost the daemon: {error}"));
    let daemon = UnixStream::connect(socket).map_err(lost)?;
    drop(client);
    let mut to_daemon = daemon.try_clone().map_err(lost)?;
    let mut input = stream(io::stdin().as_fd())?;
    let mut output = stream(io::stdout().as_fd())?;
    // The kernel moves the bytes (splice). This copy may wait for input when the daemon has closed the connection; the
    // process then ends without it.
    spawn_blocking(move || {
        let _ = io::copy(&mut input, &mut to_daemon);
        // The daemon ends a connection whose client has closed its side.
        let _ = to_daemon.shutdown(Shutdown::Write);
    });
    let copied = spawn_blocking(move || io::copy(&mut &daemon, &mut output)).await;
    match copied.map_err(|error| Failure::internal(error.to_string()))? {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A standard stream without the buffer of the library.
fn stream(standard: impl AsFd) -> Result<File, Failure> {
    Ok(File::from(standard.as_fd().try_clone_to_owned()?))
}
