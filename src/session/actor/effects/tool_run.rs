//! One running tool call: its task from the start to the result.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, info_span};

use crate::actor::effects::hooks::{self, HookCache};
use crate::actor::effects::{EffectResult, EffectRunner, OUTPUT_CAPACITY};
use crate::call_context::CallContext;
use crate::effective_rules::EffectiveRules;
use crate::shared::{Components, Shared, elapsed_ms};
use base::crash;
use engine::Input;
use tools::{Blobs, FileState, FileVersion, ProcessStarted, SessionContext};
use types::blob::{Blob, BlobRef};
use types::history::FileCheckpoint;
use types::ids::CallId;
use types::message::ToolCall;
use types::tool::{PreparedCall, Subject, ToolOutcome, ToolProgress};

impl EffectRunner {
    /// Runs an allowed call. `phase` is the parent of its tracing span.
    pub fn run_tool(
        &mut self,
        call: Arc<ToolCall>,
        prepared: Arc<PreparedCall>,
        call_context: CallContext,
        phase: &Span,
    ) {
        let span = info_span!(parent: phase, "tool_call", tool = call.tool, call = %call.call_id);
        let stop = CancellationToken::new();
        self.tools.insert(call.call_id, stop.clone());
        let checkpoint = prepared.subject.changes_files().then(|| {
            let (stored, is_stored) = oneshot::channel();
            self.checkpoints.insert(call.call_id, stored);
            is_stored
        });
        let running = RunningCall {
            components: self.shared.components(),
            shared: Arc::clone(&self.shared),
            report: self.report.clone(),
            process_starts: self.process_starts.clone(),
            cache: self.hook_cache.clone(),
            call,
            prepared,
            call_context,
            stop,
        };
        let blobs = Arc::clone(&self.blobs);
        self.running.spawn(running.run(blobs, checkpoint).instrument(span));
    }
}

/// A call and all that its task needs.
struct RunningCall {
    shared: Arc<Shared>,
    components: Arc<Components>,
    report: mpsc::Sender<Box<Input>>,
    process_starts: mpsc::Sender<ProcessStarted>,
    cache: HookCache,
    call: Arc<ToolCall>,
    prepared: Arc<PreparedCall>,
    call_context: CallContext,
    stop: CancellationToken,
}

impl RunningCall {
    /// Runs the call. `None` if the session has ended.
    async fn run(
        self,
        blobs: Arc<dyn Blobs>,
        checkpoint: Option<oneshot::Receiver<()>>,
    ) -> Option<EffectResult> {
        let context = self.session_context(blobs).await;
        let started = Instant::now();
        if matches!(self.prepared.subject, Subject::Bash { background: true, .. }) {
            return Some(self.start_in_background(&context, started).await);
        }
        if let Some(is_stored) = checkpoint {
            self.store_checkpoint(&context, is_stored).await?;
        }
        let (progress, pieces) = mpsc::channel(OUTPUT_CAPACITY);
        let run = async {
            crash::tool(&self.call.tool);
            let (starts, stop) = (self.process_starts.clone(), self.stop.clone());
            self.components.tools.run(&self.call, &self.prepared, &context, progress, starts, stop).await
        };
        // The tool continues while its output waits for the journal.
        let outcome = relay_progress(self.call.call_id, run, pieces, &self.report).await?;
        let mut outcome = outcome.unwrap_or_else(|_| panic_outcome());
        self.add_hook_texts(&mut outcome).await?;
        crash::point("C14");
        Some(self.done(outcome, started).into())
    }

    async fn session_context(&self, blobs: Arc<dyn Blobs>) -> SessionContext {
        match self.prepared.subject {
            // A command reads no files for the model. Its sandbox, if any, decides which paths it may read.
            Subject::Bash { .. } => SessionContext {
                blobs: Some(blobs),
                ..SessionContext::clone(&self.call_context.session_context)
            },
            _ => {
                let rules = EffectiveRules::load(&self.shared, &self.call_context).await;
                rules.session_context(&self.components.settings, blobs, &self.call_context)
            }
        }
    }

    async fn start_in_background(&self, context: &SessionContext, started: Instant) -> EffectResult {
        let (starts, stop) = (self.process_starts.clone(), self.stop.clone());
        let start = self.components.tools.start(&self.call, &self.prepared, context, starts, stop);
        let (outcome, command) = match AssertUnwindSafe(start).catch_unwind().await {
            // The engine writes the message for the model, because only the engine knows the task's name.
            Ok(Ok(command)) => (
                ToolOutcome { continues_in_background: true, ..ToolOutcome::completed("") },
                Some(Box::new(command)),
            ),
            Ok(Err(outcome)) => (outcome, None),
            Err(_) => (panic_outcome(), None),
        };
        crash::point("C14");
        EffectResult { input: self.done(outcome, started), command }
    }

    /// Waits until the session has stored the content of the files, before the call changes them. A stopped call changes
    /// none. `None` if the session has ended.
    async fn store_checkpoint(
        &self,
        context: &SessionContext,
        is_stored: oneshot::Receiver<()>,
    ) -> Option<()> {
        let versions = self.components.tools.file_versions_of(&self.prepared, context).await;
        let (files, blobs) = versions.into_iter().map(file_checkpoint).unzip::<_, _, Vec<_>, Vec<_>>();
        let blobs = blobs.into_iter().flatten().collect();
        let read = Input::FilesRead { call_id: self.call.call_id, files, blobs };
        self.report.send(Box::new(read)).await.ok()?;
        tokio::select! {
            _ = is_stored => crash::point("C25.stored"),
            () = self.stop.cancelled() => {}
        }
        Some(())
    }

    /// Adds what hooks say about the call and its result. `None` if the session has ended.
    async fn add_hook_texts(&self, outcome: &mut ToolOutcome) -> Option<()> {
        let is_stopped = self.stop.is_cancelled();
        let call = (&*self.call, &*self.prepared);
        let ran = tokio::select! {
            ran = hooks::after_call(&self.shared, call, &self.call_context, outcome, &self.report) => ran,
            () = self.stop.cancelled(), if !is_stopped => None,
        };
        outcome.output.push_str(&self.cache.added_text(self.call.call_id));
        if let Some((ran, text)) = ran {
            outcome.output.push_str(&text);
            if let Some(ran) = ran {
                self.report.send(Box::new(ran)).await.ok()?;
            }
        }
        Some(())
    }

    fn done(&self, outcome: ToolOutcome, started: Instant) -> Input {
        let call_id = self.call.call_id;
        Input::ToolDone { call_id, outcome: Box::new(outcome), duration_ms: elapsed_ms(started) }
    }
}

/// Runs a future to its end or panic and reports its output meanwhile. The last output is always reported
/// before the end. Returns `None` if the receiver is gone.
pub(super) async fn relay_progress<T>(
    call_id: CallId,
    run: impl Future<Output = T>,
    mut pieces: mpsc::Receiver<ToolProgress>,
    report: &mpsc::Sender<Box<Input>>,
) -> Option<std::thread::Result<T>> {
    let run = AssertUnwindSafe(run).catch_unwind();
    tokio::pin!(run);
    let over = loop {
        tokio::select! {
            biased;
            over = &mut run => break over,
            Some(progress) = pieces.recv() => {
                let send = report.send(Box::new(Input::Progress { call_id, progress }));
                tokio::pin!(send);
                tokio::select! {
                    sent = &mut send => if sent.is_err() { return None },
                    over = &mut run => {
                        let _ = send.await;
                        break over;
                    }
                }
            }
        }
    };
    while let Ok(progress) = pieces.try_recv() {
        if report.send(Box::new(Input::Progress { call_id, progress })).await.is_err() {
            break;
        }
    }
    Some(over)
}

pub(super) fn panic_outcome() -> ToolOutcome {
    ToolOutcome::failed("internal", "the tool failed inside the daemon; its log says more. Try another way.")
}

/// The checkpoint of a file, with its content.
fn file_checkpoint(version: FileVersion) -> (FileCheckpoint, Option<Blob>) {
    let FileVersion { path, state } = version;
    let missing = FileCheckpoint { path, exists: false, sha256: None, content: None, mode: None };
    match state {
        FileState::Missing => (missing, None),
        FileState::Unreadable(_) => (FileCheckpoint { exists: true, ..missing }, None),
        FileState::Content { sha256, mode, bytes } => {
            let blob = bytes.map(|bytes| Blob::new("application/octet-stream", bytes.as_slice()));
            let content = blob.as_ref().map(BlobRef::from);
            let (sha256, mode) = (Some(sha256), Some(mode));
            (FileCheckpoint { exists: true, sha256, content, mode, ..missing }, blob)
        }
    }
}
