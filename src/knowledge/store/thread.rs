//! A thread that owns a value and runs one closure at a time on it. SQLite calls block, so they never run on the
//! threads of the async runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::types::{ErrorKind, KnowledgeError};

/// Closures that may wait.
const QUEUE_CAPACITY: usize = 64;

type WorkItem<S> = Box<dyn FnOnce(&mut S) + Send>;

/// The handle. The thread ends when its last handle is dropped, after the closures that were sent.
#[derive(Debug)]
pub struct WorkThread<S> {
    work: mpsc::Sender<WorkItem<S>>,
}

impl<S> Clone for WorkThread<S> {
    fn clone(&self) -> Self {
        Self { work: self.work.clone() }
    }
}

impl<S: Send + 'static> WorkThread<S> {
    /// Starts a thread with this name that owns `state`.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(name: &str, mut state: S) -> Result<Self, KnowledgeError> {
        let (work, mut inbox) = mpsc::channel::<WorkItem<S>>(QUEUE_CAPACITY);
        let run = move || {
            while let Some(next) = inbox.blocking_recv() {
                // The caller sees that its answer is missing; the thread continues with the next closure.
                if catch_unwind(AssertUnwindSafe(|| next(&mut state))).is_err() {
                    tracing::error!("work on an index panicked");
                }
            }
        };
        std::thread::Builder::new().name(name.into()).spawn(run).map_err(|error| {
            KnowledgeError::new(
                ErrorKind::Storage,
                format!("could not start a thread for the index: {error}; end other processes and try again"),
            )
        })?;
        Ok(Self { work })
    }

    /// Runs a closure on the thread and waits for its result. A dropped future does not stop a closure that has
    /// begun.
    ///
    /// # Errors
    /// The closure's error, or that it panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut S) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> Result<T, KnowledgeError> {
        let (reply, result) = oneshot::channel();
        let work: WorkItem<S> = Box::new(move |state| {
            // The caller may have stopped waiting: then the result is dropped.
            drop(reply.send(work(state)));
        });
        self.work.send(work).await.map_err(|_| stopped_error())?;
        result.await.map_err(|_| stopped_error())?
    }

    /// Like [`Self::run`], but ends at once when `cancel` fires. The closure must notice that too, because the thread
    /// begins nothing else before it returns.
    ///
    /// # Errors
    /// As [`Self::run`], or `cancel` fired.
    pub async fn run_until<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        work: impl FnOnce(&mut S) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> Result<T, KnowledgeError> {
        tokio::select! {
            result = self.run(work) => result,
            () = cancel.cancelled() => Err(KnowledgeError::cancelled()),
        }
    }
}

fn stopped_error() -> KnowledgeError {
    KnowledgeError::new(
        ErrorKind::Storage,
        "could not use the index: its thread failed; try again, and report it if it happens again",
    )
}
