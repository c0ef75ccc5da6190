//! A command that goes on behind its call (T6): how it is followed to its end, and what others may know
//! and want of it meanwhile. It is held like any other: judged, sandboxed, scrubbed, limited, recorded,
//! with a tree that ends as a whole; only its life is longer than its call's.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::bash::{self, CallChannels, Started};
use super::capture::{Capture, Piece};
use super::limits::Limits;
use super::output::kept;
use crate::tools::context::ToolContext;
use crate::tools::error::{ToolError, cancelled};
use crate::tools::shell::outcome::CommandEnd;
use crate::types::background::{BackgroundEnd, BackgroundState, KilledBy, Over};
use crate::types::blob::{Blob, BlobRef};
use crate::types::ids::CallId;
use crate::types::tool::{PreparedCall, Progress, ToolOutcome};

/// Characters of an output that are kept where there is no place for spools.
const MOST: usize = 1 << 20;

/// What others may know and want of a background command while it runs. Cheap to share.
#[derive(Debug)]
pub struct Live {
    capture: Arc<Mutex<Capture>>,
    stop: CancellationToken,
    killed_by: OnceLock<KilledBy>,
    written: CancellationToken,
}

impl Live {
    /// Has it ended, with all that it started. The first who says so is the one who did it.
    pub fn stop(&self, by: KilledBy) {
        let _ = self.killed_by.set(by);
        self.stop.cancel();
    }

    /// Says that its end stands in the journal.
    pub fn written(&self) {
        self.written.cancel();
    }

    /// Waits until its end stands in the journal. Cancel-safe.
    pub(super) async fn is_written(&self) {
        self.written.cancelled().await;
    }

    /// Bytes that it has said so far, and those of them after the first `from`.
    pub(super) fn since(&self, from: u64) -> (u64, Piece) {
        let capture = kept(&self.capture);
        (capture.bytes(), capture.since(from))
    }
}

/// A command that was started to go on behind its call. Dropping it kills all of it.
pub struct Running {
    started: Started,
    live: Arc<Live>,
    limit: Duration,
    limits: Limits,
}

/// Starts a command that goes on behind its call.
pub(in crate::tools) async fn start(
    context: &ToolContext,
    call_id: CallId,
    input: &bash::Input,
    prepared: &PreparedCall,
    wires: CallChannels,
) -> Result<Running, ToolOutcome> {
    let settings = &context.settings;
    let limit = input.timeout_ms().map_or(settings.background_time, Duration::from_millis);
    let started = match bash::start(context, call_id, input, prepared, wires).await {
        Ok(Some(started)) => started,
        Ok(None) => return Err(cancelled()),
        Err(refusal) => return Err(ToolError::into(refusal)),
    };
    let live = Arc::new(Live {
        capture: started.output.capture(),
        stop: CancellationToken::new(),
        killed_by: OnceLock::new(),
        written: CancellationToken::new(),
    });
    let limit = limit.min(settings.background_time);
    Ok(Running { started, live, limit, limits: settings.limits })
}

impl Running {
    /// What others may know of it.
    #[must_use]
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    /// Follows it to its end. When this returns, every process of it is gone or named as a survivor; when
    /// it is dropped, they are killed. Progress that the channel cannot take is dropped.
    pub async fn follow(self, progress: mpsc::Sender<Progress>) -> Over {
        let Self { mut started, live, limit, limits } = self;
        started.output.progress = progress;
        let (ran, mut output) = started.see_through(limit, &live.stop).await;
        output.close();
        let bytes = kept(&live.capture).bytes();
        // Everything of it, however little: the model may not have been told any of it.
        let spooled = output.into_spool().finish(bytes == 0).await;

        let (signal, exit_code) = ran.code();
        let mut notes = Vec::new();
        let state = match ran.end {
            CommandEnd::Exited => BackgroundState::Exited,
            CommandEnd::Stopped => BackgroundState::Killed,
            CommandEnd::TimedOut => BackgroundState::TimedOut,
        };
        if ran.end == CommandEnd::Exited && exit_code != Some(0) {
            let Piece { before, rest, .. } = kept(&live.capture).since(0);
            notes.extend(ran.trouble(&limits, &(before + &rest)).2);
        }
        if ran.end == CommandEnd::TimedOut {
            notes.push(format!("The command was stopped after {} ms (its time limit).", limit.as_millis()));
        }
        let has_place = spooled.is_some();
        let blob = spooled.and_then(|spooled| {
            notes.push(spooled.note);
            spooled.blob
        });
        // Without a place for spools, what is in memory is kept.
        let blob = blob.or_else(|| {
            (!has_place && bytes > 0)
                .then(|| Blob::text(&std::mem::take(&mut *kept(&live.capture)).render(MOST).0))
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
        Over { state, end, blob }
    }
}
