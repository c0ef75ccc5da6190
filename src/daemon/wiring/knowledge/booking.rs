//! Books the usage of model calls about indexes. A call is booked even if its caller no longer exists. A client
//! may close its connection, or the daemon may stop, while the provider already charges for the request.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use base::sync::lock;
use engine::{OutsideUsage, estimate_usage, settle_usage};
use knowledge::ModelUsage;
use session::Registry;
use types::event::Purpose;
use types::model::{Delta, ModelRequest};
use types::usage::{ModelSnapshot, Usage};

/// Records usage in the hidden sessions of workspaces, and owns the tasks that do this.
pub(super) struct Bookings {
    registry: Registry,
    tasks: Mutex<JoinSet<()>>,
}

impl Bookings {
    pub fn new(registry: Registry) -> Self {
        Self { registry, tasks: Mutex::default() }
    }

    /// Starts the booking of a request that will be sent next.
    pub fn open_call(
        self: &Arc<Self>,
        workspace: &Path,
        request: ModelRequest,
        snapshot: ModelSnapshot,
    ) -> SentCall {
        SentCall {
            bookings: Arc::clone(self),
            workspace: workspace.to_owned(),
            request,
            snapshot,
            received: AtomicUsize::new(0),
            is_open: true,
        }
    }

    /// Records usage. Dropping the returned future does not stop the recording.
    async fn book(&self, workspace: PathBuf, usage: OutsideUsage) {
        let (sender, done) = oneshot::channel();
        self.spawn(workspace, usage, Some(sender));
        // Without a runtime, the sender is dropped at once, and there is nothing to wait for.
        let _ = done.await;
    }

    fn spawn(&self, workspace: PathBuf, usage: OutsideUsage, done: Option<oneshot::Sender<()>>) {
        // The runtime may have ended when the last calls are dropped.
        let Ok(runtime) = Handle::try_current() else { return };
        let registry = self.registry.clone();
        let book = async move {
            if let Err(error) = registry.book_index_usage(&workspace, usage).await {
                tracing::warn!(%error, "the usage of a model call about an index was not recorded");
            }
            drop(done);
        };
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(book, &runtime);
    }

    /// Waits until all usage is recorded.
    pub async fn finish(&self) {
        loop {
            let mut tasks = std::mem::take(&mut *lock(&self.tasks));
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }
}

/// A request that was sent. One of its methods must end it. If its caller drops it instead, it is
/// booked like a lost attempt of a session, with an upper estimate of the provider's charge.
pub(super) struct SentCall {
    bookings: Arc<Bookings>,
    workspace: PathBuf,
    request: ModelRequest,
    snapshot: ModelSnapshot,
    /// Bytes of the answer so far.
    received: AtomicUsize,
    is_open: bool,
}

impl SentCall {
    pub const fn request(&self) -> &ModelRequest {
        &self.request
    }

    /// Counts a part of the answer.
    pub fn receive(&self, batch: &[Delta]) {
        let bytes = batch.iter().map(|delta| match delta {
            Delta::Text { text, .. } | Delta::Thinking { text, .. } => text.len(),
            Delta::ToolInput { json, .. } => json.len(),
            _ => 0,
        });
        self.received.fetch_add(bytes.sum(), Ordering::Relaxed);
    }

    /// Whether the provider began to answer.
    pub fn has_received(&self) -> bool {
        self.received.load(Ordering::Relaxed) > 0
    }

    pub async fn book_answer(mut self, usage: Usage, is_cached: bool) -> ModelUsage {
        self.is_open = false;
        let cost = if is_cached { Some(0) } else { self.snapshot.cost_usd_micros(&usage) };
        let booking = self.booking(usage, cost);
        self.bookings.book(self.workspace.clone(), booking).await;
        model_usage(&usage, cost)
    }

    /// Books a call without an answer, because the provider may charge for it. `reported` is the usage
    /// that the provider reported.
    pub async fn book_lost(mut self, reported: Option<&Usage>) -> ModelUsage {
        self.is_open = false;
        let (usage, cost) = self.lost_usage(reported);
        let booking = self.lost_booking(usage, cost);
        self.bookings.book(self.workspace.clone(), booking).await;
        model_usage(&usage, cost)
    }

    /// Ends a call that costs nothing, because the provider refused it or was not reached.
    pub fn drop_unbooked(mut self) {
        self.is_open = false;
    }

    fn lost_usage(&self, reported: Option<&Usage>) -> (Usage, Option<u64>) {
        let received = self.received.load(Ordering::Relaxed);
        let usage = settle_usage(estimate_usage(&self.request, received, &self.snapshot), reported);
        (usage, self.snapshot.cost_usd_micros(&usage))
    }

    fn lost_booking(&self, usage: Usage, cost_usd_micros: Option<u64>) -> OutsideUsage {
        OutsideUsage { is_lost: true, ..self.booking(usage, cost_usd_micros) }
    }

    fn booking(&self, usage: Usage, cost_usd_micros: Option<u64>) -> OutsideUsage {
        let model = self.request.model.to_string();
        OutsideUsage {
            purpose: Purpose::Knowledge,
            model,
            usage,
            cost_usd_micros,
            model_snapshot: self.snapshot,
            is_lost: false,
        }
    }
}

impl Drop for SentCall {
    fn drop(&mut self) {
        if self.is_open {
            let (usage, cost) = self.lost_usage(None);
            let booking = self.lost_booking(usage, cost);
            self.bookings.spawn(std::mem::take(&mut self.workspace), booking, None);
        }
    }
}

fn model_usage(usage: &Usage, cost_usd_micros: Option<u64>) -> ModelUsage {
    ModelUsage {
        input_tokens: usage.all_tokens() - usage.output_tokens,
        output_tokens: usage.output_tokens,
        cost_usd_micros: cost_usd_micros.unwrap_or(0),
    }
}
