//! The commit of a decision, in this order: encode, write, apply, publish, run effects. Do not change this
//! order. Clients must never see an event that a crash could lose, and every effect needs a stored reason.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::actor::effects::PendingPreparation;
use crate::actor::effects::context_check::PendingContextCheck;
use crate::actor::journal::JournalBatch;
use crate::actor::{Actor, audit, crash_points, journal, sleep_until};
use crate::error::SessionError;
use crate::shared::{PendingChange, StatusChange};
use crate::stream::feed::FeedEntry;
use engine::{Decision, Effect, Engine, Plan, PlannedEvent, Reply};
use store::{Durability, Idempotency, PendingGrant, StoreError};
use tools::ProcessStarted;
use types::daemon_event::SessionChangeKind;
use types::event::{Envelope, Event};
use types::session::SessionState;

/// A failed write of a process record is retried if the failure was reported within this time.
const PROCESS_RECORD_RETRY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long before the write of its decision work may begin. Older results are not used, because the
/// disk may have changed.
const WORK_AHEAD_TTL: Duration = Duration::from_millis(250);
/// Wait before a failed write is retried.
const WRITE_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The engine as of the last commit. Only a commit replaces it.
pub(super) struct CommittedEngine(Engine);

impl CommittedEngine {
    pub fn new(engine: Engine) -> Self {
        Self(engine)
    }

    pub fn use_settings(&mut self, settings: &Arc<engine::Settings>) {
        self.0.use_settings(settings);
    }
}

impl Deref for CommittedEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

/// A decision that is not in the journal yet, with the rows of other tables for the same transaction.
pub(super) struct UnwrittenPlan {
    pub decision: Box<Decision>,
    /// The reply to store under the caller's key.
    pub idempotency: Option<Idempotency>,
    /// The grant to write to its policy file after the commit.
    pub pending_grant: Option<PendingGrant>,
    /// Whether the write is repeated until it succeeds, because no caller could repeat the input.
    pub must_write: bool,
}

impl UnwrittenPlan {
    pub fn new(decision: Box<Decision>) -> Self {
        Self { decision, idempotency: None, pending_grant: None, must_write: false }
    }
}

/// Work that began before its decision was written. Dropping a preparation cancels it.
enum WorkAhead {
    Preparation(PendingPreparation),
    ContextCheck(PendingContextCheck),
}

impl Actor {
    /// Stores a decision, publishes its events, then runs its effects. After an error nothing was applied,
    /// published or run.
    pub(super) async fn commit(&mut self, unwritten: UnwrittenPlan) -> Result<Reply, SessionError> {
        if unwritten.decision.plan.events.is_empty() && unwritten.idempotency.is_none() {
            self.run_effects(unwritten.decision.plan.effects);
            return Ok(unwritten.decision.reply);
        }
        let JournalBatch { append, entries } = self.encode(&unwritten);
        let ahead = self.before_write(&unwritten.decision);
        if let Err(error) = self.journal.append(append).await {
            return Err(self.retain_unwritten_plan(unwritten, error));
        }
        let Decision { mut plan, next, reply } = *unwritten.decision;
        crash_points::after_commit(&plan);
        self.engine.0 = next;
        self.publish(&plan, entries);
        self.use_work_ahead(&mut plan, ahead);
        self.run_effects(plan.effects);
        Ok(reply)
    }

    /// The transaction of a decision. A plan that only continues a stream has no rows in other tables.
    fn encode(&self, unwritten: &UnwrittenPlan) -> JournalBatch {
        let Decision { plan, next, .. } = &*unwritten.decision;
        let mut batch = journal::encode_plan(self.journal.key(), plan);
        if plan.is_stream() {
            return batch;
        }
        batch.append.summary = journal::changes_summary(plan).then(|| next.snapshot());
        batch.append.processes = journal::ended_process_rows(plan, &self.state.recorded_calls);
        batch.append.audit = audit::plan_notes(plan, &self.engine);
        batch.append.pending_grant.clone_from(&unwritten.pending_grant);
        if unwritten.idempotency.is_some() {
            batch.append.idempotency.clone_from(&unwritten.idempotency);
            batch.append.sync = Durability::Full;
        }
        batch
    }

    /// The steps between a decision and its write.
    fn before_write(&self, decision: &Decision) -> Option<(WorkAhead, Instant)> {
        let plan = &decision.plan;
        if plan.is_stream() {
            return None;
        }
        crash_points::after_decision(plan);
        // Remove sandbox placeholders before publishing `turn.completed`, so that clients never see them.
        if plan.events.iter().any(|entry| matches!(entry.envelope.event, Event::TurnCompleted { .. })) {
            self.shared.components().tools.on_session_idle(self.id);
        }
        Some((self.start_work_ahead(decision)?, Instant::now()))
    }

    /// Keeps a decision whose write failed, if the decision must be written or may have been written.
    /// In both cases, the state must not lag behind the journal. Returns the error for the caller.
    fn retain_unwritten_plan(&mut self, unwritten: UnwrittenPlan, error: StoreError) -> SessionError {
        let is_unknown = matches!(error, StoreError::CommitUnknown(_));
        let is_lost = error == StoreError::Closed && !self.state.is_rewriting;
        if is_unknown || (unwritten.must_write && !is_lost) {
            if !self.state.is_rewriting {
                tracing::warn!(session = %self.id, %error, "could not write the journal; trying again");
            }
            self.state.unwritten = Some(unwritten);
        }
        error.into()
    }

    /// Publishes the events to the feed, to the observer, and to the callers that wait for them.
    fn publish(&mut self, plan: &Plan, entries: Vec<FeedEntry>) {
        self.notify_pending_changes(plan, &entries);
        self.feed.publish(entries);
        for entry in &plan.events {
            self.shared.on_commit(&entry.envelope);
            self.shared.rate_limits.on_event(&entry.envelope, self.engine.model());
            self.state.spans.on_event(&entry.envelope);
            if let Some(change) = status_change(&entry.envelope) {
                self.shared.notify_status(change);
            }
            self.on_event(&entry.envelope);
            self.watch_repository(&entry.envelope.event);
        }
        self.notify_lists(plan);
        crash_points::after_publish(plan);
    }

    /// Notifies the followers of all sessions, if the plan changes values that lists show.
    fn notify_lists(&self, plan: &Plan) {
        let is_attach =
            |event: &Event| matches!(event, Event::SessionAttached { .. } | Event::SessionDetached { .. });
        let is_end = |event: &Event| matches!(event, Event::SessionEnded { .. });
        let mut events = plan.events.iter().map(|entry| &entry.envelope.event);
        if journal::changes_summary(plan) || events.clone().any(is_attach) {
            let has_ended = events.any(is_end);
            let kind = if has_ended { SessionChangeKind::Ended } else { SessionChangeKind::Updated };
            self.shared.notify_session(self.id, kind);
        }
    }

    /// Drops the git facts of the workspace after a turn that may have changed the repository.
    fn watch_repository(&mut self, event: &Event) {
        match event {
            Event::ToolStarted { read_only: false, .. } => self.state.may_have_changed_repository = true,
            Event::TurnCompleted { .. } if std::mem::take(&mut self.state.may_have_changed_repository) => {
                self.shared.git_facts.invalidate(Path::new(&self.engine.spec().cwd));
            }
            _ => {}
        }
    }

    fn run_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.run_effect(effect);
        }
    }

    /// Starts effects that change nothing while the decision is being written, because they need not wait for
    /// the journal. Their results are reported after the write. The effects stay in the plan until then.
    fn start_work_ahead(&self, decision: &Decision) -> Option<WorkAhead> {
        if self.state.parking.is_some() || self.state.is_rewriting {
            return None;
        }
        let is_answer = |entry: &PlannedEvent| crash_points::is_answer(&entry.envelope.event);
        // Events other than an answer may change how a call is judged.
        let has_answer = decision.plan.events.iter().any(is_answer);
        decision.plan.effects.iter().find_map(|effect| match effect {
            Effect::CheckContext { turn_id } => {
                Some(WorkAhead::ContextCheck(self.start_context_check(&decision.next, *turn_id)))
            }
            Effect::Prepare { turn_id, calls } if has_answer => {
                let calls = calls.clone();
                let preparation = self.effects.start_preparation(*turn_id, calls, self.call_context());
                Some(WorkAhead::Preparation(preparation))
            }
            _ => None,
        })
    }

    /// Replaces an effect of the plan by its work that was started ahead. Work that is too old is
    /// dropped. A plan with such an effect never stops that effect.
    fn use_work_ahead(&mut self, plan: &mut Plan, ahead: Option<(WorkAhead, Instant)>) {
        let Some((ahead, started_at)) = ahead else { return };
        if started_at.elapsed() >= WORK_AHEAD_TTL {
            return;
        }
        match ahead {
            WorkAhead::ContextCheck(check) => {
                plan.effects.retain(|effect| !matches!(effect, Effect::CheckContext { .. }));
                self.effects.report_context_check(check);
            }
            WorkAhead::Preparation(preparation) => {
                plan.effects.retain(|effect| !matches!(effect, Effect::Prepare { .. }));
                self.effects.report_preparation(preparation);
            }
        }
    }

    /// Notifies the followers of pending requests in all sessions.
    fn notify_pending_changes(&self, plan: &Plan, entries: &[FeedEntry]) {
        if plan.requests.is_empty() || !self.shared.has_pending_subscribers() {
            return;
        }
        for change in &plan.requests {
            let Some(entry) = entries.iter().find(|entry| entry.seq == change.seq) else { continue };
            self.shared.notify_pending(PendingChange {
                session_id: self.id,
                request_id: change.request_id,
                is_pending: !change.settled,
                background: self.engine.spec().background,
                body: Arc::clone(&entry.body),
            });
        }
    }

    /// Records a started process before its tool continues.
    pub(super) async fn on_process_started(&mut self, process_start: ProcessStarted) {
        let call_id = process_start.record.call_id;
        let start_append =
            journal::process_start(self.journal.key(), *process_start.record, self.shared.clock.now());
        let started_at = Instant::now();
        let mut stored = self.journal.append(start_append.clone()).await;
        if stored.is_err() && started_at.elapsed() < PROCESS_RECORD_RETRY_TIMEOUT {
            // The first write may have succeeded; a second one has the same result. An unrecorded process is
            // killed, so a retry is useful unless it would delay an abort.
            stored = self.journal.append(start_append).await;
        }
        if stored.is_ok() {
            self.state.recorded_calls.insert(call_id);
        }
        // Sending fails if the call was dropped.
        let _ = process_start.stored.send(stored.map_err(|error| error.to_string()));
    }

    /// Retries a write; after a failure, waits. Returns whether the session should continue.
    pub(super) async fn retry_write(&mut self, unwritten: UnwrittenPlan) -> bool {
        self.state.is_rewriting = true;
        let result = self.commit(UnwrittenPlan { must_write: true, ..unwritten }).await;
        self.state.is_rewriting = false;
        if result.is_ok() {
            tracing::info!(session = %self.id, "the journal is writable again");
            return true;
        }
        let wait = tokio::time::sleep(WRITE_RETRY_DELAY);
        tokio::pin!(wait);
        loop {
            let deadline = self.next_deadline();
            tokio::select! {
                () = &mut wait => return true,
                command = self.inbox.recv() => match command {
                    // `decide` refuses the command and gives the reason. Attaching still works.
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

/// The new state that an event reports. The end of a session is reported by its own event.
fn status_change(envelope: &Envelope) -> Option<StatusChange> {
    let (state, requires) = match envelope.event {
        Event::SessionStatus { state, requires } => (state, requires),
        Event::SessionEnded { .. } => (SessionState::Ended, None),
        _ => return None,
    };
    Some(StatusChange { session_id: envelope.session_id, state: Some(state), requires })
}
