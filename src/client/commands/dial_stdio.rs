//! `agentctl daemon dial-stdio`: passes bytes on between standard input and output and the daemon's socket. `agentctl -H
//! ssh://…` runs it on the daemon's machine. The daemon sees this process, and decides its role as that of any other.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::connection::connector::Connector;
use crate::failure::Failure;

/// How long the daemon may still reply after the end of the input.
const LAST_REPLIES_TIMEOUT: Duration = Duration::from_secs(1);

/// Connects to the daemon, which is started first if none runs, and returns when one side has closed the connection.
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
    // This copy may wait for input when the daemon has closed the connection; the process then ends without it.
    let sending = spawn_blocking(move || {
        let _ = pass_on(&mut input, &mut to_daemon);
        let _ = to_daemon.shutdown(Shutdown::Write);
    });
    let mut receiving = spawn_blocking(move || pass_on(&mut &daemon, &mut output));
    let ended = tokio::select! {
        ended = &mut receiving => ended,
        // The daemon replies to calls whose client sends no more, but it keeps their subscriptions open.
        _ = sending => match timeout(LAST_REPLIES_TIMEOUT, receiving).await {
            Ok(ended) => ended,
            Err(_) => return Ok(()),
        },
    };
    Ok(ended.map_err(|error| Failure::internal(error.to_string()))??)
}

/// Copies until the end. `io::copy` would use `splice`, which holds the lock of sshd's pipe while it waits for the daemon:
/// sshd then hangs in its next read, and its other connections with it.
fn pass_on(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&bytes[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A standard stream without the buffer of the library.
fn stream(standard: impl AsFd) -> Result<File, Failure> {
    Ok(File::from(standard.as_fd().try_clone_to_owned()?))
}
