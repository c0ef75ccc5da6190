//! Signals start the end; a second one hurries it (S12).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::session::Registry;

/// The signals we listen to.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn end(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {
                    tracing::warn!("SIGHUP: reloading is not built yet; restart to read the configuration again");
                }
            }
        }
    }
}

/// Waits for the first signal or for `daemon.shutdown`.
pub(super) async fn wait(mut signals: Signals, stop: &CancellationToken) -> Signals {
    tokio::select! {
        () = signals.end() => {}
        () = stop.cancelled() => {}
    }
    signals
}

/// Parks the sessions; running tools get a while, unless somebody is in a hurry.
pub(super) async fn park(
    registry: &Registry,
    mut signals: Signals,
    hurry: &Arc<AtomicBool>,
    within: Duration,
) {
    let patient = !hurry.load(Ordering::Acquire);
    tokio::select! {
        () = registry.park_all(patient, within) => {}
        () = signals.end() => {
            tracing::warn!("second signal: not waiting for running tools");
            registry.park_all(false, Duration::from_secs(3)).await;
        }
    }
}
