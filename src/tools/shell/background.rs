//! Background tasks: follows a command that runs after its call has returned, and gives other calls access to
//! it. The command is judged, sandboxed, limited and recorded like any other, and its process tree ends as a
//! whole. Only its lifetime is longer than its call's.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::bash::{self, CallChannels, CommandContext, RunningCommand};
use crate::background_task::BackgroundTaskHandle;
use crate::capture::OutputPart;
use crate::error::{ToolError, cancelled};
use crate::settings::Limits;
use crate::shell::outcome::CommandEnd;
use base::sync::lock;
use types::background::{BackgroundEnd, BackgroundState, UnrecordedEnd};
use types::blob::{Blob, BlobRef};
use types::ids::CallId;
use types::tool::{PreparedCall, ToolOutcome, ToolProgress};

/// Characters of output that are kept if there is no folder for spools.
const MAX_READ_BYTES: usize = 1 << 20;

/// A started background task. Dropping it kills all its processes.
pub struct RunningTask {
    started: RunningCommand,
    live: Arc<BackgroundTaskHandle>,
    limit: Duration,
    limits: Limits,
}

/// Starts a background task.
pub(crate) async fn start(
    context: &CommandContext,
    call_id: CallId,
    input: &bash::Input,
    prepared: &PreparedCall,
    channels: CallChannels,
) -> Result<RunningTask, ToolOutcome> {
    let settings = &context.settings;
    let limit = input.timeout_ms().map_or(settings.config.background_timeout.0, Duration::from_millis);
    let started = match bash::start(context, call_id, input, prepared, channels).await {
        Ok(Some(started)) => started,
        Ok(None) => return Err(cancelled()),
        Err(refusal) => return Err(ToolError::into(refusal)),
    };
    let live = Arc::new(BackgroundTaskHandle {
        capture: started.output.capture(),
        stop: CancellationToken::new(),
        killed_by: OnceLock::new(),
        written: CancellationToken::new(),
    });
    let limit = limit.min(settings.config.background_timeout.0);
    Ok(RunningTask { started, live, limit, limits: settings.limits() })
}

impl RunningTask {
    /// Access for other calls.
    #[must_use]
    pub fn handle(&self) -> Arc<BackgroundTaskHandle> {
        Arc::clone(&self.live)
    }

    /// Follows the task to its end. When this returns, every process of it has ended or is listed as a
    /// survivor. Dropping the future kills them. Progress that the channel cannot take is dropped.
    pub async fn follow(self, progress: mpsc::Sender<ToolProgress>) -> UnrecordedEnd {
        let Self { mut started, live, limit, limits } = self;
        started.output.progress = progress;
        let (ran, mut output) = started.run_to_end(limit, &live.stop).await;
        output.close();
        let bytes = lock(&live.capture).bytes();
        // Keep even a short output, because the model may not have received any of it.
        let spooled = output.into_spool().finish(bytes == 0).await;

        let (signal, exit_code) = ran.code();
        let mut notes = Vec::new();
        let state = match ran.end {
            CommandEnd::Exited => BackgroundState::Exited,
            CommandEnd::Stopped => BackgroundState::Killed,
            CommandEnd::TimedOut => BackgroundState::TimedOut,
        };
        if ran.end == CommandEnd::Exited && exit_code != Some(0) {
            let OutputPart { before, rest, .. } = lock(&live.capture).output_since(0);
            notes.extend(ran.probable_cause(&limits, &(before + &rest)).2);
        }
        if ran.end == CommandEnd::TimedOut {
            notes.push(format!("The command was stopped after {} ms (its time limit).", limit.as_millis()));
        }
        notes.extend(ran.leftover_note());
        let has_place = spooled.is_some();
        let blob = spooled.and_then(|spooled| {
            notes.push(spooled.note);
            spooled.blob
        });
        // Without a folder for spools, keep the output in memory.
        let blob = blob.or_else(|| {
            (!has_place && bytes > 0)
                .then(|| Blob::text(&lock(&live.capture).output_since(0).shorten(MAX_READ_BYTES).0))
        });
        let end = BackgroundEnd {
            exit_code,
            signal,
            killed_by: (state == BackgroundState::Killed).then(|| live.killed_by.get().copied()).flatten(),
            output_bytes: bytes,
            output_blob: blob.as_ref().map(BlobRef::from),
            note: (!notes.is_empty()).then(|| notes.join(" ")),
            survivors: ran.ended.survivors,
            duration_ms: u64::try_from(ran.spent.as_millis()).unwrap_or(u64::MAX),
        };
        UnrecordedEnd { state, end, blob }
    }
}
