//! Signals that stop the daemon. A second stop signal shortens the shutdown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use nix::sys::signal::{SigHandler, Signal as Hangup};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use session::{ParkPatience, Registry};

/// Time for running tools after a second stop signal. Within this time, their processes get 2 s after SIGTERM.
const HURRIED_STOP_TIMEOUT: Duration = Duration::from_secs(4);

/// The signals that the daemon handles.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Whether a stop signal arrived before the listeners existed. A listener may also receive this signal.
    early: bool,
}

/// The action that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalRequest {
    Stop,
    Reload,
}

/// Ignores SIGHUP, so that it does not kill a daemon that has no handler yet. Call this before a second
/// thread exists. An early SIGHUP needs no reload, because the daemon reads the configuration later
/// anyway. [`Signals::listen`] installs a handler before any process is started. exec resets a handler
/// to the default (signal(7)), so no tool inherits the ignored signal.
#[expect(unsafe_code, reason = "setting what a signal does is unsafe for handlers that run code")]
pub fn ignore_hangup() {
    // SAFETY: ignoring a signal runs no handler code.
    let ignored = unsafe { nix::sys::signal::signal(Hangup::SIGHUP, SigHandler::SigIgn) };
    debug_assert!(ignored.is_ok(), "SIGHUP can be ignored");
}

/// Whether a stop signal arrived.
static STOP_SIGNALLED: AtomicBool = AtomicBool::new(false);

/// Records stop signals from now on. Tokio installs its handler before it registers the listener, so it
/// would lose a signal in between. This handler is installed before both, in addition to tokio's handler.
#[expect(unsafe_code, reason = "setting what a signal does is unsafe for handlers that run code")]
fn record_early_signals() -> std::io::Result<()> {
    for signal in [Hangup::SIGTERM, Hangup::SIGINT] {
        // SAFETY: storing into an atomic is allowed in a handler (signal-safety(7)).
        unsafe {
            signal_hook_registry::register(signal as i32, || STOP_SIGNALLED.store(true, Ordering::SeqCst))
        }?;
    }
    Ok(())
}

impl Signals {
    /// Starts to listen. No later stop signal is lost.
    pub fn listen() -> std::io::Result<Self> {
        record_early_signals()?;
        let mut signals = Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            early: false,
        };
        signals.early = STOP_SIGNALLED.load(Ordering::SeqCst);
        Ok(signals)
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hangup.recv() => SignalRequest::Reload,
        }
    }

    /// The next signal that stops the daemon. Cancel-safe.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Whether a stop signal has arrived already.
    pub fn ask_to_stop(&mut self) -> bool {
        self.stop().now_or_never().is_some() || self.early
    }
}

/// Parks the sessions, and returns at `by` at the latest. Running tools get some time, unless a second
/// stop signal arrives.
pub(super) async fn park(registry: &Registry, signals: &mut Signals, hurry: &CancellationToken, by: Instant) {
    tokio::select! {
        biased;
        () = hurry.cancelled() => tracing::info!("fast shutdown requested: not waiting for running tools"),
        () = signals.stop() => tracing::warn!("second signal: not waiting for running tools"),
        parked = timeout_at(by, registry.park_all(ParkPatience::WaitForTools)) => return log_shutdown(parked.is_ok(), registry),
    }
    let by = by.min(Instant::now() + HURRIED_STOP_TIMEOUT);
    let parked = timeout_at(by, registry.park_all(ParkPatience::StopTools)).await;
    log_shutdown(parked.is_ok(), registry);
}

fn log_shutdown(in_time: bool, registry: &Registry) {
    if !in_time {
        tracing::warn!(
            left = registry.running(),
            "some sessions did not stop in time; the next start resumes them"
        );
    }
}
