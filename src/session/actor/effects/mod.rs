//! Runs effects: model calls, tool calls and timers. Their results return as inputs. The session owns every
//! effect task: it stops them, and they end with the session.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::hooks::HookPlace;
use crate::mcp::SessionServers;
use crate::shared::Shared;
use crate::trust;
use blobs::SessionBlobs;
use engine::Input;
use hooks::HookCache;
use model_calls::{DeltaQueue, next_deltas};
use project::hooks::HookInput;
use prompt::{BuiltPrompt, PromptSource, build_prompt};
use store::SessionKey;
use subagents::SubagentHost;
use tools::{BackgroundTaskHandle, Blobs, ProcessStarted, RunningTask};
use types::background::KilledBy;
use types::ids::{CallId, Seq, SessionId};

mod background;
pub(crate) mod blobs;
pub(crate) mod context_check;
mod hook_inputs;
pub(crate) mod hooks;
pub(crate) mod media;
mod model_calls;
pub(crate) mod prompt;
pub(crate) mod rate_limiter;
pub(crate) mod subagents;
#[cfg(test)]
mod tests;
mod tool_calls;
mod tool_run;

pub(crate) use tool_calls::{PendingPreparation, judge_prepared};

/// Capacity of the queue of results to the session. When it is full, effects wait.
const RESULT_CAPACITY: usize = 64;
/// Capacity of the queue of output parts between a tool and its task.
const OUTPUT_CAPACITY: usize = 64;

/// The running effects of one session.
pub(crate) struct EffectRunner {
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
    stop_all_by: Option<KilledBy>,
    /// Boxed: a tokio queue allocates space for 32 entries.
    reports: mpsc::Receiver<Box<Input>>,
    report: mpsc::Sender<Box<Input>>,
    /// The deltas of the current model answer. They come directly from the adapter: a task in between would cost
    /// two scheduler switches per delta.
    deltas: Option<DeltaQueue>,
    /// The end of an answer, held back until the session has handled the last deltas.
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

/// The final input of an effect, and the background task that continues after the effect.
struct EffectResult {
    input: Input,
    command: Option<Box<RunningTask>>,
}

impl From<Input> for EffectResult {
    fn from(input: Input) -> Self {
        Self { input, command: None }
    }
}

struct BackgroundTask {
    live: Arc<BackgroundTaskHandle>,
    /// Id of the tokio task that follows the background task.
    task: tokio::task::Id,
    abort: AbortHandle,
}

impl EffectRunner {
    pub fn new(
        shared: Arc<Shared>,
        key: SessionKey,
        process_starts: mpsc::Sender<ProcessStarted>,
        host: Arc<dyn SubagentHost>,
    ) -> Self {
        let (report, reports) = mpsc::channel(RESULT_CAPACITY);
        let own = SessionBlobs { store: shared.store.clone(), key, runtime: Handle::current() };
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
            stop_all_by: None,
            reports,
            report,
            deltas: None,
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
            Some(input) = next_deltas(&mut self.deltas) => Some(input),
            Some(ended) = self.commands.join_next_with_id() => self.command_ended(ended),
            Some(ended) = self.running.join_next() => self.take_result(ended),
            Some(ended) = self.helpers.join_next() => ended.ok().flatten(),
            Some(ended) = self.subagents.join_next() => self.subagent_ended(ended),
            else => std::future::pending().await,
        }
    }

    /// The next input that is available without waiting.
    pub fn try_next(&mut self) -> Option<Input> {
        let report = self.reports.try_recv().ok().map(|input| *input);
        report.or_else(|| {
            let stream = self.deltas.as_mut()?;
            if stream.rests_until.is_some_and(|until| until > Instant::now()) {
                return None;
            }
            let deltas = stream.batches.try_recv().ok()?;
            Some(stream.input(deltas))
        })
    }

    fn take_result(&mut self, ended: Result<Option<EffectResult>, tokio::task::JoinError>) -> Option<Input> {
        self.others.retain(|job| !job.is_finished());
        let result = ended.ok().flatten();
        let (input, command) = result.map(|result| (result.input, result.command)).unzip();
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
            && let Some(mut stream) = self.deltas.take_if(|stream| stream.token == *token)
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

    /// Builds the system prompt, and looks up the MCP servers.
    pub fn gather(
        &mut self,
        (servers, had_mcp): (Arc<SessionServers>, bool),
        (place, start): (HookPlace, HookInput),
        mut source: PromptSource,
    ) {
        let (shared, report) = (Arc::clone(&self.shared), self.report.clone());
        self.start(async move {
            source.request.sections.extend(hooks::at_session_start(&shared, place, start, &report).await);
            let (reader, cwd) = (Arc::clone(&shared), source.request.cwd.clone());
            let (parts, runtime) = (source.parts, Handle::current());
            let (server_files, read) = servers.read_files_then(move || parts.load(&reader, &cwd, &runtime));
            let gathered = build_prompt(&shared, source, async { read.await.unwrap_or_default() });
            let (gathered, found) = tokio::join!(gathered, servers.for_turn(had_mcp, server_files));
            if let Some(found) = found {
                // The session handles this report before the end of this effect.
                report.send(Box::new(found)).await.ok()?;
            }
            let BuiltPrompt { prompt: gathered, refused_agents } = gathered?;
            if let Some(text) = refused_agents {
                report.send(Box::new(Input::Notice { kind: "agents_refused".into(), text })).await.ok()?;
            }
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
                shared.git_facts.prefetch(shared.find_project(&cwd).await, &trusted).await;
            }
            None
        });
    }

    /// Checks again whether the workspace contains files that need trust.
    pub fn recheck_trust(&mut self, cwd: PathBuf) {
        let shared = Arc::clone(&self.shared);
        self.start(async move { trust::find_untrusted(&shared, &cwd).await.map(Input::Untrusted) });
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
}
