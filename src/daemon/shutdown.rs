//! Signals start the end; a second one hurries it (S12).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use nix::sys::signal::{SigHandler, Signal as Hangup};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::session::Registry;

/// What is left for running tools once somebody is in a hurry: their processes get 2 s after TERM (S8).
const HURRIED: Duration = Duration::from_secs(4);

/// The signals we listen to.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// One came before anybody listened; it may be heard again by those who do.
    early: bool,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Stop,
    Reload,
}

/// To be called first of all, before there is a second thread: from now on a hangup does not end a
/// daemon that does not listen yet; it would only read again what is about to be read anyway.
/// [`Signals::listen`] puts a handler in its place before anything is started, and exec sets a handler
/// back to the default (signal(7)), so no tool ignores hangups because of this.
#[expect(unsafe_code, reason = "setting what a signal does is unsafe for handlers that run code")]
pub fn ignore_hangup() {
    // SAFETY: ignoring runs no code of ours.
    let ignored = unsafe { nix::sys::signal::signal(Hangup::SIGHUP, SigHandler::SigIgn) };
    debug_assert!(ignored.is_ok(), "SIGHUP can be ignored");
}

/// A wish to stop came.
static EARLY: AtomicBool = AtomicBool::new(false);

/// Notes a wish to stop from now on. Tokio first sets its handler, then lets the listener in, and what
/// comes between the two reaches nobody: this handler stands before both (it is kept beside tokio's).
#[expect(unsafe_code, reason = "setting what a signal does is unsafe for handlers that run code")]
fn note_early() -> std::io::Result<()> {
    for signal in [Hangup::SIGTERM, Hangup::SIGINT] {
        // SAFETY: storing into an atomic is allowed in a handler (signal-safety(7)).
        unsafe { signal_hook_registry::register(signal as i32, || EARLY.store(true, Ordering::SeqCst)) }?;
    }
    Ok(())
}

impl Signals {
    /// From now on no wish to stop is lost.
    pub fn listen() -> std::io::Result<Self> {
        note_early()?;
        let mut signals = Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            early: false,
        };
        signals.early = EARLY.load(Ordering::SeqCst);
        Ok(signals)
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> Wish {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.hangup.recv() => Wish::Reload,
        }
    }

    /// The next signal that asks to stop. Cancel-safe.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Whether we were asked to stop already.
    pub fn ask_to_stop(&mut self) -> bool {
        self.stop().now_or_never().is_some() || self.early
    }
}

/// Parks the sessions until `by` at the latest; running tools get a while, unless somebody is in a hurry.
pub(super) async fn park(registry: &Registry, signals: &mut Signals, hurry: &CancellationToken, by: Instant) {
    tokio::select! {
        biased;
        () = hurry.cancelled() => tracing::info!("asked to hurry: not waiting for running tools"),
        () = signals.stop() => tracing::warn!("second signal: not waiting for running tools"),
        parked = timeout_at(by, registry.park_all(true)) => return told(parked.is_ok(), registry),
    }
    let by = by.min(Instant::now() + HURRIED);
    let parked = timeout_at(by, registry.park_all(false)).await;
    told(parked.is_ok(), registry);
}

fn told(in_time: bool, registry: &Registry) {
    if !in_time {
        tracing::warn!(
            left = registry.running(),
            "some sessions did not stop in time; a restart looks after them"
        );
    }
}
