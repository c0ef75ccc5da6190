//! Runs effects: model calls, tool calls and timers. Their results return as inputs. The session owns every
//! effect task: it stops them, and they end with the session.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, info_span};

use crate::crash;
use crate::engine::Input;
use crate::session::agents;
use crate::session::mcp::SessionServers;
use crate::session::project_data::PromptParts;
use crate::session::shared::Shared;
use crate::session::trust;
use crate::store::SessionKey;
use crate::tools::{ActiveModelCall, Blobs, Live, ProcessStarted, Running};
use crate::types::background::KilledBy;
use crate::types::ids::{CallId, Seq, SessionId};
use crate::types::model::{Delta, FaultKind, ModelFault, ModelReply, ModelRequest, ReplyBlock};
use crate::workspace;
use blobs::Own;
use hooks::HookCache;
use rate_limiter::RateLimiter;
use subagents::SubagentHost;

mod background;
pub(in crate::session) mod blobs;
pub(in crate::session) mod context_check;
pub(in crate::session) mod hooks;
pub(in crate::session) mod media;
pub(in crate::session) mod rate_limiter;
pub(in crate::session) mod subagents;
#[cfg(test)]
mod tests;
mod tool_calls;

pub(in crate::session) use tool_calls::{PendingPreparation, verdict};

/// Capacity of the queue of results to the session. When it is full, effects wait.
const REPORTS: usize = 64;
/// Capacity of the queue of delta batches between a model's stream and the session.
const BATCHES: usize = 16;
/// Capacity of the queue of output parts between a tool and its task.
const PIECES: usize = 64;

/// Maximum size of a helper call's reply in bytes.
const HELPER_BYTES: usize = 64 << 10;
/// Time limit of a helper call, because it keeps its session loaded.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);
const PANICKED: &str = "the adapter failed on this answer; see the daemon's log";

/// The running effects of one session.
pub(in crate::session) struct EffectRunner {
    shared: Arc<Shared>,
    key: SessionKey,
    /// Blobs that tools of this session may read.
    blobs: Arc<dyn Blobs>,
    running: JoinSet<Option<EffectResult>>,
    /// Background tasks that are followed, and those whose end is not in the journal yet. They belong to the
    /// session, not to its turn.
    commands: JoinSet<Option<Input>>,
    live: HashMap<CallId, BackgroundTask>,
    /// Running helper calls. The session owns them, and no turn waits for them.
    helpers: JoinSet<Option<Input>>,
    /// Sub-agents that are followed. Only the end of the session or an abort stops them.
    subagents: JoinSet<Option<Input>>,
    subagent_stops: HashMap<CallId, CancellationToken>,
    host: Arc<dyn SubagentHost>,
    hook_cache: HookCache,
    /// If set, all background tasks stop, including those that are being started.
    none_goes_on: Option<KilledBy>,
    /// Boxed: a tokio queue allocates space for 32 entries.
    reports: mpsc::Receiver<Box<Input>>,
    report: mpsc::Sender<Box<Input>>,
    /// The stream of the current model answer. It comes directly from the adapter: a task in between would cost
    /// two scheduler switches per delta.
    stream: Option<Stream>,
    /// The end of an answer, held back until its last deltas are handled.
    held: Option<Input>,
    /// Effects that are stopped by aborting their task.
    others: Vec<AbortHandle>,
    /// Tool calls that are stopped by their token, because their processes must end first.
    tools: HashMap<CallId, CancellationToken>,
    /// Calls that wait until the content of their files is stored.
    checkpoints: HashMap<CallId, oneshot::Sender<()>>,
    /// Sends started processes to the session.
    process_starts: mpsc::Sender<ProcessStarted>,
    /// The session's MCP servers, made at their first use.
    mcp: OnceLock<Arc<SessionServers>>,
}

/// The final input of an effect, and the background task that it leaves.
struct EffectResult {
    input: Input,
    command: Option<Box<Running>>,
}

impl From<Input> for EffectResult {
    fn from(input: Input) -> Self {
        Self { input, command: None }
    }
}

/// A background task.
struct BackgroundTask {
    live: Arc<Live>,
    /// Id of the tokio task that follows it.
    task: tokio::task::Id,
    abort: AbortHandle,
}

/// Deltas of one model call. The receiver is kept until the next call, even if this call is stopped: a sender
/// without receiver would report a failure.
struct Stream {
    token: Seq,
    batches: mpsc::Receiver<Vec<Delta>>,
    pace: RateLimiter,
    /// The stream is not read before this time.
    rests_until: Option<Instant>,
}

impl Stream {
    fn new(token: Seq, batches: mpsc::Receiver<Vec<Delta>>) -> Self {
        Self { token, batches, pace: RateLimiter::new(), rests_until: None }
    }

    fn input(&mut self, deltas: Vec<Delta>) -> Input {
        let bytes = deltas.iter().map(delta_text_bytes).sum();
        self.rests_until =
            self.pace.record(deltas.len(), bytes, Instant::now(), ActiveModelCall::are_others());
        Input::Deltas { token: self.token, deltas }
    }
}

/// The next deltas, if a model is answering. Cancel-safe.
async fn next_deltas(stream: &mut Option<Stream>) -> Option<Input> {
    let stream = stream.as_mut()?;
    if let Some(until) = stream.rests_until {
        tokio::time::sleep_until(until.into()).await;
        stream.rests_until = None;
    }
    let deltas = stream.batches.recv().await?;
    Some(stream.input(deltas))
}

impl EffectRunner {
    pub fn new(
        shared: Arc<Shared>,
        key: SessionKey,
        process_starts: mpsc::Sender<ProcessStarted>,
        host: Arc<dyn SubagentHost>,
    ) -> Self {
        let (report, reports) = mpsc::channel(REPORTS);
        let own = Own { store: shared.store.clone(), key, runtime: Handle::current() };
        Self {
            shared,
            key,
            blobs: Arc::new(own),
            running: JoinSet::new(),
            commands: JoinSet::new(),
            live: HashMap::new(),
            helpers: JoinSet::new(),
            subagents: JoinSet::new(),
            subagent_stops: HashMap::new(),
            host,
            hook_cache: HookCache::default(),
            none_goes_on: None,
            reports,
            report,
            stream: None,
            held: None,
            others: Vec::new(),
            tools: HashMap::new(),
            checkpoints: HashMap::new(),
            process_starts,
            mcp: OnceLock::new(),
        }
    }

    /// The session's blobs, for the session context of a call.
    pub fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::clone(&self.blobs)
    }

    /// The session's MCP servers.
    pub fn mcp_servers(&self, workspace: &str, unattended: bool, owner: SessionId) -> Arc<SessionServers> {
        let make = || {
            let session = (workspace.into(), unattended, owner);
            Arc::new(SessionServers::new(Arc::clone(&self.shared), session, self.report.clone()))
        };
        Arc::clone(self.mcp.get_or_init(make))
    }

    pub fn are_idle(&self) -> bool {
        self.running.is_empty() && self.held.is_none()
    }

    /// Whether no helper call is running.
    pub fn have_no_helpers(&self) -> bool {
        self.helpers.is_empty()
    }

    /// Drops all helper calls.
    pub fn drop_helpers(&mut self) {
        self.helpers = JoinSet::new();
    }

    /// Whether no background task is followed.
    pub fn have_no_commands(&self) -> bool {
        self.commands.is_empty()
    }

    pub fn has_running_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// The next input from an effect. Cancel-safe. Waits forever while no effect runs.
    pub async fn next(&mut self) -> Option<Input> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        tokio::select! {
            // Handle an effect's reports before its end.
            biased;
            Some(input) = self.reports.recv() => Some(*input),
            Some(input) = next_deltas(&mut self.stream) => Some(input),
            Some(ended) = self.commands.join_next_with_id() => self.command_ended(ended),
            Some(ended) = self.running.join_next() => self.ended(ended),
            Some(ended) = self.helpers.join_next() => ended.ok().flatten(),
            Some(ended) = self.subagents.join_next() => self.subagent_ended(ended),
            else => std::future::pending().await,
        }
    }

    /// The next input that is available without waiting.
    pub fn try_next(&mut self) -> Option<Input> {
        let report = self.reports.try_recv().ok().map(|input| *input);
        report.or_else(|| {
            let stream = self.stream.as_mut()?;
            if stream.rests_until.is_some_and(|until| until > Instant::now()) {
                return None;
            }
            let deltas = stream.batches.try_recv().ok()?;
            Some(stream.input(deltas))
        })
    }

    fn ended(&mut self, ended: Result<Option<EffectResult>, tokio::task::JoinError>) -> Option<Input> {
        self.others.retain(|job| !job.is_finished());
        let home = ended.ok().flatten();
        let (input, command) = home.map(|home| (home.input, home.command)).unzip();
        if let (Some(Input::ToolDone { call_id, .. }), Some(command)) = (&input, command.flatten()) {
            self.follow(*call_id, *command);
        }
        if let Some(Input::ToolDone { call_id, .. }) = &input {
            self.tools.remove(call_id);
            self.checkpoints.remove(call_id);
        }
        if self.running.is_empty() {
            self.tools.clear();
        }
        // An effect may send its last report and end between two polls.
        if let Some(Input::ModelDone { token, .. } | Input::ModelFailed { token, .. }) = &input
            && let Some(mut stream) = self.stream.take_if(|stream| stream.token == *token)
        {
            let mut deltas = Vec::new();
            while let Ok(more) = stream.batches.try_recv() {
                deltas.extend(more);
            }
            if !deltas.is_empty() {
                self.held = input;
                return Some(stream.input(deltas));
            }
        }
        input
    }

    /// Aborts the effects that can be dropped, and cancels those that must end by themselves.
    pub fn stop_all(&mut self) {
        for job in self.others.drain(..) {
            job.abort();
        }
        for stop in self.tools.values() {
            stop.cancel();
        }
    }

    /// Stops model calls, timers and preparations. Running tools continue.
    pub fn stop_all_but_tools(&mut self) {
        for job in self.others.drain(..) {
            job.abort();
        }
    }

    /// Drops all effects of the turn that did not stop in time.
    pub fn drop_all(&mut self) {
        self.running.abort_all();
        self.tools.clear();
        self.checkpoints.clear();
        self.others.clear();
    }

    /// Lets a call continue whose file checkpoint is stored.
    pub fn checkpoint_stored(&mut self, call_id: CallId) {
        if let Some(waits) = self.checkpoints.remove(&call_id) {
            let _ = waits.send(());
        }
    }

    pub fn stop_tool(&mut self, call_id: CallId) {
        if let Some(stop) = self.tools.get(&call_id) {
            stop.cancel();
        }
    }

    fn start(&mut self, job: impl Future<Output = Option<Input>> + Send + 'static) {
        self.others.push(self.running.spawn(async move { job.await.map(EffectResult::from) }));
    }

    /// Builds the system prompt with these parts, and looks the MCP servers up.
    pub fn gather(
        &mut self,
        (servers, had_mcp): (Arc<SessionServers>, bool),
        session_id: SessionId,
        mode: &'static str,
        mut request: workspace::Request,
        parts: PromptParts,
    ) {
        let (shared, report) = (Arc::clone(&self.shared), self.report.clone());
        self.start(async move {
            let (section, ran) = hooks::at_session_start(&shared, session_id, &request.cwd, mode).await;
            request.sections.extend(section);
            if let Some(ran) = ran {
                report.send(Box::new(ran)).await.ok()?;
            }
            if parts.agents {
                match agents::load(&shared, &request.cwd).await {
                    Ok(list) => request.sections.push(list.prompt_section()),
                    Err(error) => tracing::warn!(%error, "could not read the agents; the prompt lists none"),
                }
            }
            let trusted =
                shared.store.trusted(&request.cwd.to_string_lossy()).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "could not read whether a folder is trusted; treating it as not trusted");
                    None
                });
            let (reader, cwd, runtime) = (Arc::clone(&shared), request.cwd.clone(), Handle::current());
            let read = tokio::task::spawn_blocking(move || parts.load(&reader, &cwd, &runtime));
            let (skills, memory) = read.await.unwrap_or_default();
            request.sections.extend(skills);
            let request = workspace::Request { trusted, memory, ..request };
            let gathered = workspace::gather(request, &shared.git_facts);
            let (gathered, found) = tokio::join!(gathered, servers.for_turn(had_mcp));
            if let Some(found) = found {
                // It is handled before the end of this effect.
                report.send(Box::new(found)).await.ok()?;
            }
            let gathered = gathered?;
            Some(Input::ContextReady {
                system: gathered.system,
                sources: gathered.sources,
                instructions: gathered.instructions,
                skipped_instructions: gathered.skipped_instructions,
                untrusted: gathered.untrusted,
            })
        });
    }

    /// Gathers the git facts of a trusted workspace, so that the first prompt does not wait for git.
    pub fn prefetch_git(&mut self, cwd: PathBuf) {
        let shared = Arc::clone(&self.shared);
        self.start(async move {
            if let Ok(Some(trusted)) = shared.store.trusted(&cwd.to_string_lossy()).await {
                shared.git_facts.prefetch(&cwd, &trusted).await;
            }
            None
        });
    }

    /// Checks again whether the workspace contains files that need trust.
    pub fn recheck_trust(&mut self, cwd: PathBuf) {
        let shared = Arc::clone(&self.shared);
        self.start(async move { trust::waiting(&shared, &cwd).await.map(Input::Untrusted) });
    }

    /// Removes the files that an ended session kept for its commands.
    pub fn forget(&mut self, session: SessionId) {
        let components = self.shared.components();
        self.start(async move {
            components.tools.forget_session(session).await;
            None
        });
    }

    pub fn sleep(&mut self, token: Seq, delay_ms: u64) {
        self.start(async move {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            Some(Input::TimerFired { token })
        });
    }

    /// Starts a model call. `phase` is the parent of its tracing span.
    pub fn call_model(&mut self, token: Seq, mut request: ModelRequest, phase: &Span) {
        let span = info_span!(parent: phase, "model_call", model = %request.model);
        let key = self.key;
        let shared = Arc::clone(&self.shared);
        let components = shared.components();
        let (out, batches) = mpsc::channel(BATCHES);
        self.stream = Some(Stream::new(token, batches));
        let call = async move {
            let _present = ActiveModelCall::new();
            crash::point("C3");
            let started = shared.clock.now();
            if components.models.model(&request.model).vision != Some(false) {
                request.media = media::load_media(&shared.store, key, &request).await;
            }
            let result = AssertUnwindSafe(components.models.call(&request, &out)).catch_unwind().await;
            let duration_ms = shared.clock.now().since(started);
            let result = result.unwrap_or_else(|_| Err(ModelFault::new(FaultKind::Garbage, PANICKED)));
            Some(match result {
                Ok(reply) => {
                    let model_snapshot = components.models.model_snapshot(&request.model);
                    let cost = model_snapshot.cost_usd_micros(&reply.usage);
                    // A reply from the response cache costs nothing.
                    let cost_usd_micros = if reply.cache_hit { Some(0) } else { cost };
                    Input::ModelDone {
                        token,
                        reply: Box::new(reply),
                        cost_usd_micros,
                        model_snapshot,
                        duration_ms,
                    }
                }
                Err(fault) => {
                    let model_snapshot = components.models.model_snapshot(&request.model);
                    Input::ModelFailed { token, fault, model_snapshot, duration_ms }
                }
            })
        };
        self.start(call.instrument(span));
    }

    /// Starts a helper call. Its deltas are not published.
    pub fn ask_helper(&mut self, token: Seq, request: ModelRequest) {
        let shared = Arc::clone(&self.shared);
        let components = shared.components();
        self.helpers.spawn(async move {
            crash::point("C3.helper");
            let started = shared.clock.now();
            let (out, mut batches) = mpsc::channel(BATCHES);
            let ask =
                AssertUnwindSafe(async move { components.models.call(&request, &out).await }).catch_unwind();
            let listen = async move {
                let (mut began, mut bytes) = (false, 0);
                while let Some(deltas) = batches.recv().await {
                    began |= deltas.iter().any(|delta| !matches!(delta, Delta::Silence { .. }));
                    bytes += deltas.iter().map(delta_text_bytes).sum::<usize>();
                    if bytes > HELPER_BYTES {
                        // The receiver is gone, so end the stream.
                        break;
                    }
                }
                (began, bytes > HELPER_BYTES)
            };
            let both = tokio::time::timeout(HELPER_TIMEOUT, async { tokio::join!(ask, listen) }).await;
            let (outcome, began) = match both {
                Ok((_, (began, true))) => (Err(too_long()), began),
                Ok((Ok(outcome), (began, _))) => (outcome.and_then(not_too_long), began),
                Ok((Err(_), (began, _))) => (Err(ModelFault::new(FaultKind::Garbage, PANICKED)), began),
                Err(_) => {
                    let text = format!("no whole answer within {} s", HELPER_TIMEOUT.as_secs());
                    (Err(ModelFault::new(FaultKind::Idle, text)), true)
                }
            };
            if let Err(fault) = &outcome {
                tracing::debug!(kind = fault.kind.name(), "a helper call failed: {}", fault.message);
            }
            crash::point("C7.helper");
            let duration_ms = shared.clock.now().since(started);
            Some(Input::HelperDone { token, outcome: Box::new(outcome), began, duration_ms })
        });
    }
}

/// Refuses a helper reply that is too long. Deltas that arrive with the end were not counted before.
fn not_too_long(reply: ModelReply) -> Result<ModelReply, ModelFault> {
    let text = |block: &ReplyBlock| match block {
        ReplyBlock::Text(text) | ReplyBlock::Thinking { text, .. } => text.len(),
        ReplyBlock::RedactedThinking(_) | ReplyBlock::ToolCall { .. } => 0,
    };
    if reply.content.iter().map(text).sum::<usize>() <= HELPER_BYTES {
        return Ok(reply);
    }
    Err(ModelFault { usage: Some(Box::new(reply.usage)), ..too_long() })
}

fn too_long() -> ModelFault {
    let text = format!("more than {} KiB, which is too long for a short answer", HELPER_BYTES >> 10);
    ModelFault::new(FaultKind::Garbage, text)
}

/// Bytes of text in a delta.
fn delta_text_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thinking { text, .. } => text.len(),
        Delta::ToolInput { json, .. } => json.len(),
        _ => 0,
    }
}
