//! The loop that owns one session: decide → write → remember → tell → act.

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

/// Deltas joined into one decision, in bytes of text.
const JOIN_BYTES: usize = 64 * 1024;
/// How long jobs may take to stop before they are dropped (S8).
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(8);
/// How long running tools may go on when the daemon stops.
pub(super) const PARK_TIMEOUT: Duration = Duration::from_secs(4);
/// Says that the session's task ended by a panic, so that nobody waits for it (S13).
struct PanicGuard(Arc<Feed>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.crash();
        }
    }
}

/// How long a deadline is waited for without a look at the clock.
const DEADLINE_RECHECK_INTERVAL: Duration = Duration::from_secs(30);

/// A birth that could not be written is tried once more if that was known within this time.
const PROCESS_RECORD_RETRY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long what a look came to may wait for the decision that it belongs to.
const PREPARATION_TTL: Duration = Duration::from_millis(250);
/// Wait before a failed write is tried again.
const WRITE_RETRY_DELAY: Duration = Duration::from_millis(500);

/// A session and everything that belongs to it.
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
    /// For whoever looks from outside: what runs in the background.
    pub commands: Arc<RwLock<Vec<BackgroundCommand>>>,
    pub leases: Arc<LeaseCount>,
    pub state: LoopState,
}

/// What the loop keeps beside the engine; nothing of it outlives the process.
#[derive(Default)]
pub(super) struct LoopState {
    /// A decision that could not be written; nothing is decided until it is.
    unwritten: Option<UnwrittenPlan>,
    /// It is being tried once more.
    is_rewriting: bool,
    pub aborts: Vec<Reply<AbortOutcome>>,
    /// Calls whose processes are recorded.
    recorded_calls: HashSet<CallId>,
    pub call_aborts: HashMap<CallId, Vec<Reply<AbortOutcome>>>,
    /// Who killed a session without a turn, while its background commands end.
    pub kills: Option<(Vec<Reply<AbortOutcome>>, AbortOutcome)>,
    pub aborted: AbortOutcome,
    pub stop_by: Option<Instant>,
    /// Reports taken out of order while deltas were joined.
    lookahead_input: Option<Input>,
    pub parking: Option<Parking>,
    /// Since when there was nothing to do and nothing was asked.
    idle_since: Option<Instant>,
    /// Somebody else needs the memory.
    pub evict: bool,
    seeds: Seeds,
}

/// A decision with the reply to remember of it.
struct UnwrittenPlan {
    plan: Plan,
    idempotency: Option<Idempotency>,
    /// What is to be paid at the next start, if this comes through.
    owes: Option<PendingGrant>,
}

pub(super) struct Parking {
    pub replies: Vec<oneshot::Sender<()>>,
    pub by: Instant,
    pub told: bool,
}

impl Actor {
    /// Runs until the session is parked, or leaves memory because nobody needed it for a while.
    /// `first` is what it is told before anything else.
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
                let terms = self.terms();
                self.handle_input(Input::Stopped { terms }).await;
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

    /// Whether nothing is left of a turn that is being aborted.
    fn has_stopped(&self) -> bool {
        self.engine.is_aborting()
            && self.effects.are_idle()
            && self.state.lookahead_input.is_none()
            && (self.engine.aborted_commands().is_empty() || self.effects.have_no_commands())
    }

    /// Of the turn's model.
    fn terms(&self) -> ModelSnapshot {
        let model = self.engine.model().parse().ok();
        model.map(|model| self.shared.components().models.terms(&model)).unwrap_or_default()
    }

    async fn detached(&mut self, origin: Origin) {
        let clients = self.clients.fetch_sub(1, Ordering::Relaxed).saturating_sub(1);
        self.handle_input(Input::Detached { clients, origin: Some(origin) }).await;
    }

    /// When to leave memory; `None` while there is work. A session whose turn is open stays, also
    /// while the turn waits for a person: so loading one never looks like a restart to its turn.
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

    /// Leaves memory if nobody is inside and nothing waits.
    async fn try_unload(&mut self) -> bool {
        self.state.evict = false;
        if !self.inbox.is_empty() || !self.leases.try_close() {
            self.state.idle_since = Some(Instant::now());
            return false;
        }
        // What is in the queues now was left by callers who did not wait for an answer. Those who
        // detached are heard; nobody opens the session anew before this task has ended.
        while let Ok(origin) = self.leaving.try_recv() {
            self.detached(*origin).await;
        }
        tracing::debug!(session = %self.id, "leaves memory");
        true
    }

    /// When to look at the deadlines of requests again. They are times of the clock on the wall, which
    /// may be set or stand still while the machine sleeps: so it is asked again now and then.
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

    /// A deadline passed: jobs that were to stop are dropped.
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
                    // It cannot be written either; the next start asks the world again.
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

    /// A job's report; deltas that wait behind it join it.
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

    /// Takes in something that nobody waits for an answer to. What cannot be written waits.
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
                // Who stops a call does not want it run again, wherever.
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

    /// Takes the settings of the moment for the decisions to come.
    pub(super) fn refresh_settings(&mut self) {
        self.engine.use_settings(&self.shared.components().settings.engine);
    }

    pub(super) fn decide(&mut self, input: Input) -> Result<Plan, SessionError> {
        if self.state.unwritten.is_some() {
            return Err(SessionError::Store(StoreError::Unwritable("an earlier write waits".into())));
        }
        if self.engine.turn_id().is_none() {
            // What a running turn did not take, the next one does.
            self.refresh_settings();
        }
        let now = Now { at: self.shared.clock.now(), seed: self.state.seeds.next_seed() };
        Ok(self.engine.decide(input, now)?)
    }

    /// Write, remember, tell, act. If the write fails, nothing was remembered, told or done, and the
    /// plan is as it was. Only if it may have come through all the same, the plan is kept back and
    /// tried again until that is known: memory must not fall behind the journal.
    pub(super) async fn commit(
        &mut self,
        plan: &mut Plan,
        idempotency: Option<Idempotency>,
    ) -> Result<(), SessionError> {
        self.commit_with_grants(plan, idempotency, None).await
    }

    /// The same; with a grant that stands in the same transaction, and is to be paid after it.
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
            // Nothing of the plan: who is told that the turn is over finds nothing in the workspace that stood in for it.
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
            // After a long wait the rules may be others.
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

    /// Calls of an answer are looked at while the answer is written: a look changes nothing, so it is not what has
    /// to wait for the journal. It is reported once the answer is written; dropped, it is given up. The effect stands
    /// in the plan until then.
    fn prepare_ahead(&self, plan: &Plan) -> Option<PendingPreparation> {
        if self.state.parking.is_some()
            || self.state.is_rewriting
            || !plan.events.iter().any(|entry| crash_points::is_answer(&entry.envelope.event))
        {
            // Other facts may change what a call is judged by.
            return None;
        }
        let (turn_id, calls) = plan.effects.iter().find_map(|effect| match effect {
            Effect::Prepare { turn_id, calls } => Some((*turn_id, calls.clone())),
            _ => None,
        })?;
        Some(self.effects.start_preparation(turn_id, calls, self.call_context()))
    }

    /// Tells those who follow what waits in all sessions.
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

    /// Stores who was started for a call, before its tool goes on (S9).
    async fn on_process_started(&mut self, process_start: ProcessStarted) {
        let call_id = process_start.record.call_id;
        let born = journal::process_start(self.key, *process_start.record, self.shared.clock.now());
        let begun = Instant::now();
        let mut stored = self.shared.store.append(born.clone()).await;
        if stored.is_err() && begun.elapsed() < PROCESS_RECORD_RETRY_TIMEOUT {
            // It may have come through all the same, and written twice it is the same. Who is not known is
            // killed, so it is worth another try, unless that would keep an abort waiting.
            stored = self.shared.store.append(born).await;
        }
        if stored.is_ok() {
            self.state.recorded_calls.insert(call_id);
        }
        // Nobody listens any more if the call was dropped.
        let _ = process_start.stored.send(stored.map_err(|error| error.to_string()));
    }

    /// Answers those who waited for this fact.
    fn on_event(&mut self, fact: &Envelope) {
        match &fact.event {
            Event::TurnCompleted { .. } => {
                let aborted = std::mem::take(&mut self.state.aborted);
                self.state.stop_by = None;
                for reply in self.state.aborts.drain(..) {
                    let _ = reply.send(Ok(aborted.clone()));
                }
                // Those of commands in the background wait for their end.
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
            // Nothing of the call runs: what is left of it is for a person to decide.
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
            // Derived again from the journal after the next start.
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

    /// Tells work to stop, if the effect is about that; to tell it twice is the same as once.
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

    /// Tries once more; if in vain, waits a while. Returns whether anybody is left to do it for.
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
                    // Refused by `decide` with the reason; attaching still works.
                    Some(command) => self.handle_command(*command).await,
                    None => return false,
                },
                // A failing disk must not hold up the end.
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
