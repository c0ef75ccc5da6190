//! Owns the asynchronous hooks.

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use base::sync::lock;

/// Number of asynchronous hooks that run at the same time, of all sessions.
const MAX_BACKGROUND_HOOKS: usize = 32;

/// The asynchronous hooks of all sessions. They end by their time limit, or with the daemon.
pub(super) struct BackgroundHooks {
    running: Mutex<JoinSet<()>>,
    places: Arc<Semaphore>,
}

impl Default for BackgroundHooks {
    fn default() -> Self {
        Self { running: Mutex::default(), places: Arc::new(Semaphore::new(MAX_BACKGROUND_HOOKS)) }
    }
}

impl BackgroundHooks {
    /// Runs hooks until their end. Does not start them if too many run.
    pub fn spawn(&self, hooks: impl Future<Output = ()> + Send + 'static) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            tracing::warn!("{MAX_BACKGROUND_HOOKS} asynchronous hooks run already; one more does not start");
            return;
        };
        let mut running = lock(&self.running);
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            hooks.await;
            drop(place);
        });
    }
}
