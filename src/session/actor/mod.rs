//! The loop that owns one session: decide → write → apply → publish → run effects.

mod abort;
mod approve;
pub(super) mod audit;
mod clock_watch;
pub(super) mod command;
mod commands;
mod commit;
mod crash_points;
pub(super) mod effects;
mod hooks;
pub(super) mod journal;
mod queue;
mod rewind;
mod run_effect;
mod submit;
mod turn_spans;
mod waiting_callers;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::error::SessionError;
use crate::attach::AttachedClients;
use crate::call_context::CallContext;
use crate::hooks::HookPlace;
use crate::lease::LeaseCount;
use crate::mcp::SessionServers;
use crate::project_data::SessionProjectData;
use crate::requests::AbortOutcome;
use crate::session_environments::EnvironmentOfSession;
use crate::shared::Shared;
use crate::stream::feed::Feed;
use base::crash;
use clock_watch::ClockWatch;
use command::{ReplyTo, SessionCommand};
use commit::{CommittedEngine, UnwrittenPlan};
use effects::EffectRunner;
use engine::{Decision, Engine, Input, Now, Reply};
use store::{JournalWriter, StoreError};
use tools::ProcessStarted;
use turn_spans::TurnSpans;
use types::background::{BackgroundCommand, KilledBy};
use types::event::Origin;
use types::ids::{CallId, Seeds, SessionId};
use types::model::Delta;
use types::usage::ModelSnapshot;

/// Maximum size of deltas that are merged into one decision, in bytes of text.
const JOIN_BYTES: usize = 64 * 1024;
/// How long effects may take to stop before they are dropped.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long running tools may continue when the daemon stops.
const PARK_TIMEOUT: Duration = Duration::from_secs(4);
/// Marks the feed as crashed if the session's task ends by a panic, so that no caller waits for the task.
struct PanicGuard(Arc<Feed>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.crash();
        }
    }
}

/// Maximum sleep until a deadline before the clock is read again.
const DEADLINE_RECHECK_INTERVAL: Duration = Duration::from_secs(30);

/// A session and its services.
pub(super) struct Actor {
    id: SessionId,
    shared: Arc<Shared>,
    engine: CommittedEngine,
    /// The only writer of this session's journal.
    journal: JournalWriter,
    feed: Arc<Feed>,
    clients: Arc<AttachedClients>,
    inbox: mpsc::Receiver<Box<SessionCommand>>,
    leaving: mpsc::UnboundedReceiver<Box<Origin>>,
    process_starts: mpsc::Receiver<ProcessStarted>,
    effects: EffectRunner,
    /// Background tasks, readable by other tasks.
    commands: Arc<RwLock<Vec<BackgroundCommand>>>,
    leases: Arc<LeaseCount>,
    state: LoopState,
}

/// The queues of a session and the values that its handles read.
pub(super) struct ActorLinks {
    pub inbox: mpsc::Receiver<Box<SessionCommand>>,
    pub leaving: mpsc::UnboundedReceiver<Box<Origin>>,
    pub process_starts: mpsc::Receiver<ProcessStarted>,
    pub feed: Arc<Feed>,
    pub clients: Arc<AttachedClients>,
    pub commands: Arc<RwLock<Vec<BackgroundCommand>>>,
}

/// State of the loop that is not part of the engine. It is lost when the process ends.
#[derive(Default)]
struct LoopState {
    /// A decision that could not be written. No further decision is made until the write succeeds.
    unwritten: Option<UnwrittenPlan>,
    /// Whether the write is being retried.
    is_rewriting: bool,
    aborts: Vec<ReplyTo<AbortOutcome>>,
    /// Calls whose processes are recorded.
    recorded_calls: HashSet<CallId>,
    call_aborts: HashMap<CallId, Vec<ReplyTo<AbortOutcome>>>,
    /// Callers that killed a session without a turn and wait for its background tasks to end.
    kills: Option<(Vec<ReplyTo<AbortOutcome>>, AbortOutcome)>,
    aborted: AbortOutcome,
    stop_by: Option<Instant>,
    /// An input that was read ahead while deltas were merged.
    lookahead_input: Option<Input>,
    parking: Option<ParkState>,
    /// Since when the session has had no work and no messages.
    idle_since: Option<Instant>,
    /// Whether the registry asked to unload the session.
    evict: bool,
    /// Whether the running turn used a tool that may change the repository.
    may_have_changed_repository: bool,
    /// How often in a row a hook made the session continue.
    stop_hook_rounds: u32,
    spans: TurnSpans,
    seeds: Seeds,
    clock: ClockWatch,
}

struct ParkState {
    replies: Vec<oneshot::Sender<()>>,
    by: Instant,
    has_stopped_effects: bool,
}

impl Actor {
    pub fn new(
        shared: Arc<Shared>,
        engine: Engine,
        journal: JournalWriter,
        effects: EffectRunner,
        links: ActorLinks,
        leases: Arc<LeaseCount>,
    ) -> Self {
        let ActorLinks { inbox, leaving, process_starts, feed, clients, commands } = links;
        Self {
            id: engine.session_id(),
            shared,
            engine: CommittedEngine::new(engine),
            journal,
            feed,
            clients,
            inbox,
            leaving,
            process_starts,
            effects,
            commands,
            leases,
            state: LoopState::default(),
        }
    }

    /// Runs until the session is parked or unloaded. `first` is handled before any other input.
    ///
    /// The futures that handle something are large, so they are boxed. Otherwise a thousand waiting
    /// sessions would reserve space for all of them.
    pub async fn run(mut self, first: Option<Input>) {
        let _panic_guard = PanicGuard(Arc::clone(&self.feed));
        // Watch the files of the workspace while the session is loaded.
        let spec = self.engine.spec();
        let (cwd, root) = (Path::new(&spec.cwd), spec.project_root.as_deref().map(Path::new));
        let _workspace = self.shared.workspaces.register_session(cwd, root, self.id);
        if let Some(input) = first {
            crash::point("C21.loaded");
            self.handle_input(input).await;
            crash::point("C21.done");
        } else {
            self.prefetch_git();
        }
        loop {
            if self.is_parked() {
                break;
            }
            if let Some(stuck) = self.state.unwritten.take() {
                if !Box::pin(self.retry_write(stuck)).await {
                    break;
                }
                continue;
            }
            if self.has_stopped() {
                self.state.stop_by = None;
                let model_snapshot = self.model_snapshot();
                self.handle_input(Input::Stopped { model_snapshot }).await;
                continue;
            }
            if let Some(input) = self.state.lookahead_input.take() {
                self.handle_input(input).await;
                continue;
            }
            let deadline = self.next_deadline();
            let leaves_at = self.unload_at();
            let due = self.next_request_deadline();
            tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(command) => {
                        self.state.idle_since = None;
                        Box::pin(self.handle_command(*command)).await;
                    }
                    None => break,
                },
                Some(origin) = self.leaving.recv() => {
                    self.state.idle_since = None;
                    self.on_client_detached(*origin).await;
                }
                Some(process_start) = self.process_starts.recv() => Box::pin(self.on_process_started(process_start)).await,
                input = self.effects.next() => if let Some(input) = input { self.on_effect_result(input).await },
                () = sleep_until(deadline), if deadline.is_some() => self.on_deadline(),
                () = sleep_until(due), if due.is_some() => self.handle_input(Input::DeadlineReached).await,
                () = sleep_until(leaves_at), if leaves_at.is_some() => if self.try_unload().await { break },
            }
        }
        self.effects.drop_all();
        self.effects.drop_all_commands();
        self.effects.drop_subagents();
        if self.state.parking.is_some() && self.state.unwritten.is_none() {
            let helped = !self.effects.have_no_helpers();
            self.effects.drop_helpers();
            self.handle_input(Input::Parked { helped }).await;
        }
        self.feed.close();
        if let Some(parking) = self.state.parking.take() {
            for reply in parking.replies {
                let _ = reply.send(());
            }
        }
    }

    /// Whether all work of a turn that is being aborted has ended.
    fn has_stopped(&self) -> bool {
        self.engine.is_aborting()
            && self.effects.are_idle()
            && self.effects.have_no_subagents()
            && self.state.lookahead_input.is_none()
            && (self.engine.aborted_commands().is_empty() || self.effects.have_no_commands())
    }

    /// Limits and price of the turn's model.
    fn model_snapshot(&self) -> ModelSnapshot {
        let model = self.engine.model().parse().ok();
        model.map(|model| self.shared.components().models.model_snapshot(&model)).unwrap_or_default()
    }

    async fn on_client_detached(&mut self, origin: Origin) {
        let clients = self.clients.remove(&origin.client);
        self.handle_input(Input::Detached { clients, origin: Some(origin) }).await;
    }

    /// When to unload the session; `None` while it has work. A session with an open turn stays loaded, even while
    /// the turn waits for a user. Otherwise, loading the session again would look like a restart to the turn.
    fn unload_at(&mut self) -> Option<Instant> {
        let is_resting = self.engine.turn_id().is_none()
            && self.effects.are_idle()
            && self.effects.have_no_commands()
            && self.effects.have_no_helpers()
            && self.effects.have_no_subagents()
            && self.state.aborts.is_empty();
        self.leases.set_idle(is_resting);
        if !is_resting {
            self.state.idle_since = None;
            // A new session may still gather git facts. It is unloaded after that.
            self.state.evict &= self.engine.turn_id().is_none();
            return None;
        }
        let now = Instant::now();
        if self.state.evict {
            return Some(now);
        }
        let since = *self.state.idle_since.get_or_insert(now);
        since.checked_add(self.shared.components().settings.idle_unload)
    }

    /// Unloads the session if it has no leases and its queues are empty.
    async fn try_unload(&mut self) -> bool {
        self.state.evict = false;
        if !self.inbox.is_empty() || !self.leases.try_close() {
            self.state.idle_since = Some(Instant::now());
            return false;
        }
        // The remaining messages come from callers that did not wait for a reply, so handle only the
        // detaches. The session cannot be loaded again before this task has ended.
        while let Ok(origin) = self.leaving.try_recv() {
            self.on_client_detached(*origin).await;
        }
        tracing::debug!(session = %self.id, "leaves memory");
        true
    }

    /// When to check the deadlines of requests again. Deadlines are wall-clock times. The clock may be
    /// set, or stand still while the machine sleeps, so the loop checks them at intervals.
    fn next_request_deadline(&self) -> Option<Instant> {
        let at = self.engine.next_deadline().filter(|_| self.state.parking.is_none())?;
        let wait = Duration::from_millis(at.since(self.shared.clock.now()));
        Some(Instant::now() + wait.min(DEADLINE_RECHECK_INTERVAL))
    }

    fn next_deadline(&self) -> Option<Instant> {
        match (&self.state.parking, self.state.stop_by) {
            (Some(parking), _) => Some(parking.by),
            (None, stop_by) => stop_by,
        }
    }

    /// A stop deadline passed: drops the effects that did not end in time.
    fn on_deadline(&mut self) {
        match &mut self.state.parking {
            Some(parking) if !parking.has_stopped_effects => {
                parking.has_stopped_effects = true;
                parking.by = Instant::now() + STOP_TIMEOUT;
                self.effects.stop_all();
                self.effects.stop_all_commands(KilledBy::Shutdown);
            }
            _ => {
                tracing::warn!(session = %self.id, "background tasks of the daemon did not stop in time and were dropped");
                self.effects.drop_all();
                if self.state.parking.is_some() {
                    self.effects.drop_all_commands();
                } else {
                    self.effects.drop_subagents();
                    self.effects.drop_commands(&self.engine.aborted_commands());
                }
                self.state.stop_by = None;
                if self.state.unwritten.is_some() {
                    // The store would also refuse this input. The next daemon derives it from the journal.
                    self.state.lookahead_input = None;
                }
            }
        }
    }

    fn is_parked(&self) -> bool {
        self.state.parking.is_some()
            && self.effects.are_idle()
            && self.effects.have_no_commands()
            && self.state.lookahead_input.is_none()
    }

    /// Handles a result of an effect and merges waiting deltas into it.
    async fn on_effect_result(&mut self, input: Input) {
        let Input::Deltas { token, mut deltas } = input else {
            self.handle_input(input).await;
            return;
        };
        let mut bytes: usize = deltas.iter().map(delta_bytes).sum();
        while bytes < JOIN_BYTES {
            match self.effects.try_next() {
                Some(Input::Deltas { token: other, deltas: more }) if other == token => {
                    bytes += more.iter().map(delta_bytes).sum::<usize>();
                    deltas.extend(more);
                }
                Some(other) => {
                    self.state.lookahead_input = Some(other);
                    break;
                }
                None => break,
            }
        }
        self.handle_input(Input::Deltas { token, deltas }).await;
    }

    /// Handles an input without a waiting caller. If the decision cannot be written, it is kept and the write is
    /// repeated.
    async fn handle_input(&mut self, input: Input) {
        self.adopt_clock_change().await;
        if let Err(error) = self.decide_and_commit_until_written(input).await {
            tracing::debug!(session = %self.id, %error, "an input was not accepted");
        }
    }

    /// Decides the result of an input and commits the decision. If the write fails, the caller may repeat the input.
    async fn decide_and_commit(&mut self, mut input: Input) -> Result<Reply, SessionError> {
        self.record_survivors(&mut input);
        let decision = self.decide(input)?;
        Box::pin(self.commit(UnwrittenPlan { must_write: false, ..UnwrittenPlan::new(decision) })).await
    }

    /// Same for an input that no caller could repeat, so a failed write is repeated.
    async fn decide_and_commit_until_written(&mut self, mut input: Input) -> Result<Reply, SessionError> {
        self.record_survivors(&mut input);
        let decision = self.decide(input)?;
        Box::pin(self.commit(UnwrittenPlan { must_write: true, ..UnwrittenPlan::new(decision) })).await
    }

    /// Records the processes that remain after work has ended. Also prevents the offer to run a command
    /// outside the sandbox if the user stopped its call.
    fn record_survivors(&mut self, input: &mut Input) {
        match input {
            Input::HooksRan { continues: Some(_), .. } => self.state.stop_hook_rounds += 1,
            Input::ToolDone { call_id, outcome, .. } => {
                self.note_survivors(journal::surviving_pids(outcome.detail.as_ref()));
                if self.state.call_aborts.contains_key(call_id) {
                    outcome.blocked = None;
                }
            }
            Input::CommandOver { call_id, over } if self.engine.aborted_commands().contains(call_id) => {
                self.note_survivors(over.end.survivors.clone());
            }
            _ => {}
        }
    }

    /// Decides the result of an input. Refuses every input while an earlier decision is unwritten.
    fn decide(&mut self, input: Input) -> Result<Box<Decision>, SessionError> {
        if self.state.unwritten.is_some() {
            return Err(SessionError::Store(StoreError::Unwritable("an earlier write waits".into())));
        }
        if self.engine.turn_id().is_none() {
            // The next turn uses settings that the running turn could not adopt.
            self.refresh_settings();
        }
        let now = Now { at: self.shared.clock.now(), seed: self.state.seeds.next_seed() };
        Ok(Box::new(self.engine.decide(input, now)?))
    }

    /// Uses the current settings for the next decisions. Settings are not part of the state.
    fn refresh_settings(&mut self) {
        let components = self.shared.components();
        let settings = components.engine_settings(Path::new(&self.engine.spec().cwd));
        self.engine.use_settings(settings);
        if let Some(unwritten) = &mut self.state.unwritten {
            unwritten.decision.next.use_settings(settings);
        }
    }

    fn mcp_servers(&self) -> Arc<SessionServers> {
        let spec = self.engine.spec();
        let owner = spec.parent.map_or(self.id, |parent| parent.root_session_id);
        self.effects.mcp_servers(&spec.cwd, spec.background, owner)
    }

    /// The session's folder and the variables of its commands.
    fn hook_place(&self) -> HookPlace {
        let spec = self.engine.spec();
        let environment = EnvironmentOfSession {
            all: Arc::clone(&self.shared.environments),
            id: self.id,
            root: spec.parent.map_or(self.id, |parent| parent.root_session_id),
        };
        HookPlace { cwd: spec.cwd.clone().into(), environment: Some(Arc::new(environment)) }
    }

    fn call_context(&self) -> CallContext {
        let project = SessionProjectData::new(&self.shared, std::path::Path::new(&self.engine.spec().cwd));
        let commands = self.effects.commands(&self.engine);
        let mut context = CallContext::from_engine(&self.engine, self.id, commands, Arc::new(project));
        Arc::make_mut(&mut context.session_context).environment = self.hook_place().environment;
        if !context.session_context.mcp.catalog.is_empty() {
            Arc::make_mut(&mut context.session_context).mcp.servers = Some(self.mcp_servers());
        }
        context
    }
}

fn delta_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thinking { text, .. } => text.len(),
        Delta::ToolInput { json, .. } => json.len(),
        Delta::ThinkingSealed { signature, data, .. } => {
            16 + signature.as_ref().map_or(0, String::len) + data.as_ref().map_or(0, String::len)
        }
        Delta::BlockStarted { .. }
        | Delta::BlockCompleted { .. }
        | Delta::CallCompleted { .. }
        | Delta::Silence { .. } => 16,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
