//! The loop that owns one session: decide → write → apply → publish → run effects.

pub(super) mod audit;
pub(super) mod commands;
pub(super) mod crash_points;
pub(super) mod effects;
pub(super) mod journal;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::error::SessionError;
use super::handle::{AbortOutcome, Reply, SessionCommand};
use crate::session::lease::LeaseCount;
use crate::session::shared::{PendingChange, Shared};
use crate::session::stream::feed::{Entry, Feed};
use effects::{EffectRunner, PendingPreparation};

use crate::crash;
use crate::engine::{Effect, Engine, Input, Now, Plan};
use crate::store::{Idempotency, PendingGrant, SessionKey, StoreError};
use crate::tools::ProcessStarted;
use crate::types::background::{BackgroundCommand, BackgroundState, KilledBy};
use crate::types::event::{Envelope, Event, Origin};
use crate::types::ids::{CallId, Seeds, SessionId};
use crate::types::model::Delta;
use crate::types::usage::ModelSnapshot;
use crate::workspace;

/// Maximum size of deltas that are merged into one decision, in bytes of text.
const JOIN_BYTES: usize = 64 * 1024;
/// How long effects may take to stop before they are dropped.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(8);
/// How long running tools may continue when the daemon stops.
pub(super) const PARK_TIMEOUT: Duration = Duration::from_secs(4);
/// Reports when the session's task ends by a panic, so that no caller waits for it.
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

/// A failed write of a process record is retried if the failure was reported within this time.
const PROCESS_RECORD_RETRY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a prepared call may wait for its decision. After that it is prepared again.
const PREPARATION_TTL: Duration = Duration::from_millis(250);
/// Wait before a failed write is retried.
const WRITE_RETRY_DELAY: Duration = Duration::from_millis(500);

/// A session and its services.
pub(super) struct Actor {
    pub id: SessionId,
    pub key: SessionKey,
    pub shared: Arc<Shared>,
    pub engine: Engine,
    pub feed: Arc<Feed>,
    pub clients: Arc<AtomicU32>,
    pub inbox: mpsc::Receiver<Box<SessionCommand>>,
    pub leaving: mpsc::UnboundedReceiver<Box<Origin>>,
    pub process_starts: mpsc::Receiver<ProcessStarted>,
    pub effects: EffectRunner,
    /// Background tasks, readable by other tasks.
    pub commands: Arc<RwLock<Vec<BackgroundCommand>>>,
    pub leases: Arc<LeaseCount>,
    pub state: LoopState,
}

/// State of the loop that is not part of the engine. It is lost when the process ends.
#[derive(Default)]
pub(super) struct LoopState {
    /// A decision that could not be written. Until it is, no further decision is made.
    unwritten: Option<UnwrittenPlan>,
    /// Whether the write is being retried.
    is_rewriting: bool,
    pub aborts: Vec<Reply<AbortOutcome>>,
    /// Calls whose processes are recorded.
    recorded_calls: HashSet<CallId>,
    pub call_aborts: HashMap<CallId, Vec<Reply<AbortOutcome>>>,
    /// Callers that killed a session without a turn and wait for its background tasks to end.
    pub kills: Option<(Vec<Reply<AbortOutcome>>, AbortOutcome)>,
    pub aborted: AbortOutcome,
    pub stop_by: Option<Instant>,
    /// An input that was read ahead while deltas were merged.
    lookahead_input: Option<Input>,
    pub parking: Option<Parking>,
    /// Since when the session has had no work and no messages.
    idle_since: Option<Instant>,
    /// Whether the registry asked to unload the session.
    pub evict: bool,
    seeds: Seeds,
}

/// A decision with its reply to store.
struct UnwrittenPlan {
    plan: Plan,
    idempotency: Option<Idempotency>,
    /// The pending grant to write to its policy file after the commit.
    owes: Option<PendingGrant>,
}

pub(super) struct Parking {
    pub replies: Vec<oneshot::Sender<()>>,
    pub by: Instant,
    pub told: bool,
}

impl Actor {
    /// Runs until the session is parked or unloaded. `first` is handled before any other input.
    pub async fn run(mut self, first: Option<Input>) {
        let _panic_guard = PanicGuard(Arc::clone(&self.feed));
        if let Some(input) = first {
            crash::point("C21.loaded");
            self.handle_input(input).await;
            crash::point("C21.done");
        }
        loop {
            if self.is_parked() {
                break;
            }
            if let Some(stuck) = self.state.unwritten.take() {
                if !self.retry_write(stuck).await {
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
                        self.handle_command(*command).await;
                    }
                    None => break,
                },
                Some(origin) = self.leaving.recv() => {
                    self.state.idle_since = None;
                    self.detached(*origin).await;
                }
                Some(process_start) = self.process_starts.recv() => self.on_process_started(process_start).await,
                input = self.effects.next() => if let Some(input) = input { self.on_effect_result(input).await },
                () = sleep_until(deadline), if deadline.is_some() => self.on_deadline(),
                () = sleep_until(due), if due.is_some() => self.handle_input(Input::DeadlineReached).await,
                () = sleep_until(leaves_at), if leaves_at.is_some() => if self.try_unload().await { break },
            }
        }
        self.effects.drop_all();
        self.effects.drop_all_commands();
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
            && self.state.lookahead_input.is_none()
            && (self.engine.aborted_commands().is_empty() || self.effects.have_no_commands())
    }

    /// Limits and price of the turn's model.
    fn model_snapshot(&self) -> ModelSnapshot {
        let model = self.engine.model().parse().ok();
        model.map(|model| self.shared.components().models.model_snapshot(&model)).unwrap_or_default()
    }

    async fn detached(&mut self, origin: Origin) {
        let clients = self.clients.fetch_sub(1, Ordering::Relaxed).saturating_sub(1);
        self.handle_input(Input::Detached { clients, origin: Some(origin) }).await;
    }

    /// When to unload the session; `None` while it has work. A session with an open turn stays loaded, even
    /// while the turn waits for a user. So loading a session never looks like a restart to its turn.
    fn unload_at(&mut self) -> Option<Instant> {
        let rests = self.engine.turn_id().is_none()
            && self.effects.are_idle()
            && self.effects.have_no_commands()
            && self.effects.have_no_helpers()
            && self.state.aborts.is_empty();
        self.leases.set_idle(rests);
        if !rests {
            self.state.idle_since = None;
            self.state.evict = false;
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
        // The remaining messages come from callers that did not wait for a reply. Handle the detaches. The
        // session cannot be loaded again before this task has ended.
        while let Ok(origin) = self.leaving.try_recv() {
            self.detached(*origin).await;
        }
        tracing::debug!(session = %self.id, "leaves memory");
        true
    }

    /// When to check the deadlines of requests again. They are wall-clock times; the clock may be set, or stand
    /// still while the machine sleeps. So the loop checks them at intervals.
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
            Some(parking) if !parking.told => {
                parking.told = true;
                parking.by = Instant::now() + STOP_TIMEOUT;
                self.effects.stop_all();
                self.effects.stop_all_commands(KilledBy::Shutdown);
            }
            _ => {
                tracing::warn!(session = %self.id, "jobs did not stop in time and are dropped");
                self.effects.drop_all();
                if self.state.parking.is_some() {
                    self.effects.drop_all_commands();
                } else {
                    self.effects.drop_commands(&self.engine.aborted_commands());
                }
                self.state.stop_by = None;
                if self.state.unwritten.is_some() {
                    // This input cannot be written either. The next start derives it again.
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

    /// Handles an input without a waiting caller. If the plan cannot be written, it is kept.
    pub(super) async fn handle_input(&mut self, input: Input) {
        if let Err(error) = self.advance(input, None).await {
            tracing::debug!(session = %self.id, %error, "an input was not taken in");
        }
    }

    pub(super) async fn advance(
        &mut self,
        mut input: Input,
        idempotency: Option<Idempotency>,
    ) -> Result<(), SessionError> {
        let keep = !matches!(
            input,
            Input::Submit(_)
                | Input::Answer(_)
                | Input::Update(_)
                | Input::Rule { .. }
                | Input::AnswerQuestion { .. }
                | Input::Abort { .. }
                | Input::Kill { .. }
        );
        if let Input::ToolDone { call_id, outcome, .. } = &mut input {
            self.note_survivors(journal::survivors(outcome.detail.as_ref()));
            if self.state.call_aborts.contains_key(call_id) {
                // The user stopped the call, so do not offer to repeat it without the sandbox.
                outcome.blocked = None;
            }
        }
        if let Input::CommandOver { call_id, over } = &input
            && self.engine.aborted_commands().contains(call_id)
        {
            self.note_survivors(over.end.survivors.clone());
        }
        let mut plan = self.decide(input)?;
        let result = self.commit(&mut plan, idempotency).await;
        if let Err(SessionError::Store(error)) = &result
            && keep
            && self.state.unwritten.is_none()
            && *error != StoreError::Closed
        {
            tracing::warn!(session = %self.id, %error, "the journal cannot be written; trying again");
            self.state.unwritten = Some(UnwrittenPlan { plan, idempotency: None, owes: None });
        }
        result
    }

    /// Loads the current settings for the next decisions.
    pub(super) fn refresh_settings(&mut self) {
        self.engine.use_settings(&self.shared.components().settings.engine);
    }

    pub(super) fn decide(&mut self, input: Input) -> Result<Plan, SessionError> {
        if self.state.unwritten.is_some() {
            return Err(SessionError::Store(StoreError::Unwritable("an earlier write waits".into())));
        }
        if self.engine.turn_id().is_none() {
            // The next turn uses settings that the running turn could not adopt.
            self.refresh_settings();
        }
        let now = Now { at: self.shared.clock.now(), seed: self.state.seeds.next_seed() };
        Ok(self.engine.decide(input, now)?)
    }

    /// Writes a plan, applies and publishes its events and runs its effects. If the write fails, nothing was
    /// applied, published or run, and the plan is unchanged. If the result of the commit is unknown, the plan
    /// is kept and retried until it is known: the state must not lag behind the journal.
    pub(super) async fn commit(
        &mut self,
        plan: &mut Plan,
        idempotency: Option<Idempotency>,
    ) -> Result<(), SessionError> {
        self.commit_with_grants(plan, idempotency, None).await
    }

    /// The same with a pending grant in the same transaction. It is written to its policy file after the
    /// commit.
    pub(super) async fn commit_with_grants(
        &mut self,
        plan: &mut Plan,
        idempotency: Option<Idempotency>,
        owes: Option<PendingGrant>,
    ) -> Result<(), SessionError> {
        if !plan.events.is_empty() || idempotency.is_some() {
            let next = journal::changes_summary(plan).then(|| {
                let mut next = self.engine.clone();
                plan.events.iter().for_each(|entry| next.apply(&entry.envelope));
                next
            });
            let snapshot = next.as_ref().map(Engine::snapshot);
            let mut prepared = journal::prepare(self.key, plan, snapshot, idempotency.clone());
            prepared.append.processes = journal::deaths(plan, &self.state.recorded_calls);
            prepared.append.pending_grant = owes.clone();
            prepared.append.audit = audit::notes(plan, &self.engine);
            crash_points::after_decision(plan);
            // Remove sandbox placeholders before publishing `turn.completed`, so that clients never see them.
            if plan.events.iter().any(|entry| matches!(entry.envelope.event, Event::TurnCompleted { .. })) {
                self.shared.components().tools.on_session_idle(self.id);
            }
            let (preparation, begun) = (self.prepare_ahead(plan), Instant::now());
            if let Err(error) = self.shared.store.append(prepared.append).await {
                if matches!(error, StoreError::CommitUnknown(_)) {
                    tracing::warn!(session = %self.id, %error, "a write is in doubt; trying again");
                    self.state.unwritten =
                        Some(UnwrittenPlan { plan: std::mem::take(plan), idempotency, owes });
                }
                return Err(error.into());
            }
            crash_points::after_commit(plan);
            match next {
                Some(next) => self.engine = next,
                None => plan.events.iter().for_each(|entry| self.engine.apply(&entry.envelope)),
            }
            self.notify_pending_changes(plan, &prepared.lines);
            self.feed.publish(prepared.lines);
            for entry in &plan.events {
                self.shared.on_commit(&entry.envelope);
                self.on_event(&entry.envelope);
            }
            crash_points::after_publish(plan);
            // After a long wait the rules may have changed.
            if let Some(preparation) = preparation.filter(|_| begun.elapsed() < PREPARATION_TTL) {
                plan.effects.retain(|effect| !matches!(effect, Effect::Prepare { .. }));
                self.effects.report_preparation(preparation);
            }
        }
        for effect in plan.effects.drain(..) {
            self.run_effect(effect);
        }
        Ok(())
    }

    /// Prepares the calls of an answer while the answer is being written. Preparation changes nothing, so it
    /// need not wait for the journal. Its result is reported after the write; dropping it cancels the
    /// preparation. The effect stays in the plan until then.
    fn prepare_ahead(&self, plan: &Plan) -> Option<PendingPreparation> {
        if self.state.parking.is_some()
            || self.state.is_rewriting
            || !plan.events.iter().any(|entry| crash_points::is_answer(&entry.envelope.event))
        {
            // Other events may change how a call is judged.
            return None;
        }
        let (turn_id, calls) = plan.effects.iter().find_map(|effect| match effect {
            Effect::Prepare { turn_id, calls } => Some((*turn_id, calls.clone())),
            _ => None,
        })?;
        Some(self.effects.start_preparation(turn_id, calls, self.call_context()))
    }

    /// Notifies the followers of pending requests in all sessions.
    fn notify_pending_changes(&self, plan: &Plan, lines: &[Entry]) {
        if plan.requests.is_empty() || !self.shared.has_pending_subscribers() {
            return;
        }
        for change in &plan.requests {
            let Some(line) = lines.iter().find(|line| line.seq == change.seq) else { continue };
            self.shared.notify_pending(PendingChange {
                session_id: self.id,
                request_id: change.request_id,
                is_pending: !change.settled,
                background: self.engine.spec().background,
                body: Arc::clone(&line.body),
            });
        }
    }

    /// Records a started process before its tool continues.
    async fn on_process_started(&mut self, process_start: ProcessStarted) {
        let call_id = process_start.record.call_id;
        let born = journal::process_start(self.key, *process_start.record, self.shared.clock.now());
        let begun = Instant::now();
        let mut stored = self.shared.store.append(born.clone()).await;
        if stored.is_err() && begun.elapsed() < PROCESS_RECORD_RETRY_TIMEOUT {
            // The first write may have succeeded; a second one has the same result. An unrecorded process is
            // killed, so a retry is useful unless it would delay an abort.
            stored = self.shared.store.append(born).await;
        }
        if stored.is_ok() {
            self.state.recorded_calls.insert(call_id);
        }
        // Sending fails if the call was dropped.
        let _ = process_start.stored.send(stored.map_err(|error| error.to_string()));
    }

    /// Answers callers that waited for this event.
    fn on_event(&mut self, fact: &Envelope) {
        match &fact.event {
            Event::TurnCompleted { .. } => {
                let aborted = std::mem::take(&mut self.state.aborted);
                self.state.stop_by = None;
                for reply in self.state.aborts.drain(..) {
                    let _ = reply.send(Ok(aborted.clone()));
                }
                // Callers that wait for background tasks get their reply when these end.
                let behind = self.engine.running_commands();
                let over = self.state.call_aborts.extract_if(|call_id, _| !behind.contains(call_id));
                for reply in over.flat_map(|(_, replies)| replies) {
                    let _ = reply.send(Ok(AbortOutcome::default()));
                }
            }
            Event::SessionEnded { .. } => {
                self.effects.drop_helpers();
                self.effects.forget(self.id);
            }
            // The call does not run any more. A user must decide about its remains.
            Event::QuestionRequested { question } => {
                let about = question.call_id.and_then(|call_id| self.state.call_aborts.remove(&call_id));
                for reply in about.unwrap_or_default() {
                    let _ = reply.send(Ok(AbortOutcome::default()));
                }
            }
            Event::ToolBlocked { call_id, .. } => _ = self.state.recorded_calls.remove(call_id),
            Event::ToolCompleted { call_id, detail, .. } => {
                if self.engine.running_commands().contains(call_id) {
                    return;
                }
                self.state.recorded_calls.remove(call_id);
                for reply in self.state.call_aborts.remove(call_id).unwrap_or_default() {
                    let survivors = journal::survivors(detail.as_ref());
                    let _ = reply.send(Ok(AbortOutcome { turn: None, calls: vec![*call_id], survivors }));
                }
            }
            Event::ToolBackground { end: None, .. } => self.publish_background_commands(),
            Event::ToolBackground { call_id, end: Some(end), .. } => {
                self.publish_background_commands();
                self.effects.forget_command(*call_id);
                self.state.recorded_calls.remove(call_id);
                let (call_id, survivors) = (*call_id, &end.survivors);
                for reply in self.state.call_aborts.remove(&call_id).unwrap_or_default() {
                    let (calls, survivors) = (vec![call_id], survivors.clone());
                    let _ = reply.send(Ok(AbortOutcome { turn: None, calls, survivors }));
                }
                if let Some((_, ended)) = &mut self.state.kills {
                    ended.survivors.extend(survivors);
                }
                if self.engine.running_commands().is_empty()
                    && let Some((replies, ended)) = self.state.kills.take()
                {
                    for reply in replies {
                        let _ = reply.send(Ok(ended.clone()));
                    }
                }
            }
            _ => {}
        }
    }

    fn publish_background_commands(&self) {
        let mut running = self.engine.commands();
        running.retain(|command| command.state == BackgroundState::Running);
        *self.commands.write().unwrap_or_else(PoisonError::into_inner) = running;
    }

    fn note_survivors(&mut self, survivors: Vec<i32>) {
        if self.engine.is_aborting() {
            self.state.aborted.survivors.extend(survivors);
        }
    }

    fn run_effect(&mut self, effect: Effect) {
        if self.state.parking.is_some() {
            // The next start derives this from the journal again.
            return;
        }
        match effect {
            Effect::GatherContext => {
                let spec = self.engine.spec();
                self.effects.gather(workspace::Request {
                    cwd: spec.cwd.clone().into(),
                    additional: spec.additional_dirs.iter().map(PathBuf::from).collect(),
                    model: spec.model.clone(),
                    date: self.shared.clock.now().date(),
                    custom: spec.system_prompt.clone(),
                    appended: spec.append_system_prompt.clone(),
                    user_dir: self.shared.components().settings.user_dir.clone(),
                    trusted: None,
                });
            }
            Effect::CallModel { token, request } => self.effects.call_model(token, *request),
            Effect::AskHelper { token, request } => self.effects.ask_helper(token, *request),
            Effect::Sleep { token, delay_ms } => self.effects.sleep(token, delay_ms),
            Effect::Prepare { turn_id, calls } => {
                self.effects.prepare(turn_id, calls, self.call_context());
            }
            Effect::RunTool { call, prepared } => {
                self.effects.run_tool(call, prepared, self.call_context());
            }
            Effect::Inspect { call, prepared } => {
                self.effects.inspect(call.call_id, prepared, self.call_context());
            }
            Effect::StopAll => {
                self.stop_now(&effect);
                self.state.stop_by.get_or_insert(Instant::now() + STOP_TIMEOUT);
            }
            Effect::StopCall(_) | Effect::StopCommands { .. } => self.stop_now(&effect),
        }
    }

    /// Asks work to stop if the effect requests that. A second request has no further effect.
    pub(super) fn stop_now(&mut self, effect: &Effect) {
        match effect {
            Effect::StopAll => self.effects.stop_all(),
            Effect::StopCall(call_id) => self.effects.stop_tool(*call_id),
            Effect::StopCommands { calls, by } => self.effects.stop_commands(calls, *by),
            Effect::GatherContext
            | Effect::CallModel { .. }
            | Effect::AskHelper { .. }
            | Effect::Sleep { .. }
            | Effect::Prepare { .. }
            | Effect::RunTool { .. }
            | Effect::Inspect { .. } => {}
        }
    }

    /// Retries a write; after a failure, waits. Returns whether the session should continue.
    async fn retry_write(&mut self, mut stuck: UnwrittenPlan) -> bool {
        self.state.is_rewriting = true;
        let result =
            self.commit_with_grants(&mut stuck.plan, stuck.idempotency.clone(), stuck.owes.clone()).await;
        self.state.is_rewriting = false;
        if result.is_ok() {
            tracing::info!(session = %self.id, "the journal can be written again");
            return true;
        }
        self.state.unwritten.get_or_insert(stuck);
        let wait = tokio::time::sleep(WRITE_RETRY_DELAY);
        tokio::pin!(wait);
        loop {
            let deadline = self.next_deadline();
            tokio::select! {
                () = &mut wait => return true,
                command = self.inbox.recv() => match command {
                    // `decide` refuses it and gives the reason; attaching still works.
                    Some(command) => self.handle_command(*command).await,
                    None => return false,
                },
                // A failing disk must not delay the shutdown.
                () = sleep_until(deadline), if deadline.is_some() => {
                    self.on_deadline();
                    return true;
                }
                Some(process_start) = self.process_starts.recv() => self.on_process_started(process_start).await,
            }
        }
    }
}

fn delta_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thinking { text, .. } => text.len(),
        Delta::ToolInput { json, .. } => json.len(),
        Delta::BlockStarted { .. } | Delta::BlockCompleted { .. } | Delta::Silence { .. } => 16,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
