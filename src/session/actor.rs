//! The loop that owns one session: decide → write → remember → tell → act.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::error::SessionError;
use super::feed::Feed;
use super::handle::{Aborted, Answer, Answered, Command, Keyed, Reply, Submission, Submitted, SubmittedAs};
use super::house::House;
use super::jobs::{Jobs, Surroundings};
use super::journal;
use crate::engine::{Effect, Engine, Input, Now, Plan, Refusal, Submit};
use crate::store::{Idempotency, SessionKey, StoreError};
use crate::types::event::{Envelope, Event, Origin};
use crate::types::ids::{CallId, Seed, SessionId};
use crate::types::model::Delta;
use crate::workspace;

/// Deltas joined into one decision, in bytes of text.
const JOIN_BYTES: usize = 64 * 1024;
/// How long jobs may take to stop before they are dropped (S8).
const STOP_WITHIN: Duration = Duration::from_secs(8);
/// How long running tools may go on when the daemon stops.
const PATIENCE: Duration = Duration::from_secs(4);
/// Wait before a failed write is tried again.
const WRITE_AGAIN: Duration = Duration::from_millis(500);

/// A session and everything that belongs to it.
pub(super) struct Actor {
    pub id: SessionId,
    pub key: SessionKey,
    pub house: Arc<House>,
    pub engine: Engine,
    pub feed: Arc<Feed>,
    pub clients: Arc<AtomicU32>,
    pub inbox: mpsc::Receiver<Command>,
    pub leaving: mpsc::UnboundedReceiver<Origin>,
    pub jobs: Jobs,
    pub state: Tending,
}

/// What the loop keeps beside the engine; nothing of it outlives the process.
#[derive(Default)]
pub(super) struct Tending {
    /// A plan that could not be written; nothing is decided until it is.
    stuck: Option<Plan>,
    aborts: Vec<Reply<Aborted>>,
    call_aborts: HashMap<CallId, Vec<Reply<Aborted>>>,
    aborted: Aborted,
    stop_by: Option<Instant>,
    /// Reports taken out of order while deltas were joined.
    ahead: Option<Input>,
    parking: Option<Parking>,
}

struct Parking {
    replies: Vec<oneshot::Sender<()>>,
    by: Instant,
    told: bool,
}

impl Actor {
    /// Runs until the session is parked or every handle is gone.
    pub async fn run(mut self, recover: bool) {
        if recover {
            self.hear(Input::Recovered).await;
        }
        loop {
            if self.is_parked() {
                break;
            }
            if let Some(plan) = self.state.stuck.take() {
                self.write_again(plan).await;
                continue;
            }
            if self.engine.is_aborting() && self.jobs.are_idle() && self.state.ahead.is_none() {
                self.state.stop_by = None;
                self.hear(Input::Stopped).await;
                continue;
            }
            if let Some(input) = self.state.ahead.take() {
                self.hear(input).await;
                continue;
            }
            let deadline = self.deadline();
            tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(command) => self.obey(command).await,
                    None => break,
                },
                Some(origin) = self.leaving.recv() => {
                    let clients = self.clients.fetch_sub(1, Ordering::Relaxed).saturating_sub(1);
                    self.hear(Input::Detached { clients, origin: Some(origin) }).await;
                }
                input = self.jobs.next() => if let Some(input) = input { self.heard(input).await },
                () = sleep_until(deadline), if deadline.is_some() => self.late(),
            }
        }
        self.jobs.drop_all();
        if let Some(parking) = self.state.parking.take() {
            for reply in parking.replies {
                let _ = reply.send(());
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match (&self.state.parking, self.state.stop_by) {
            (Some(parking), _) => Some(parking.by),
            (None, stop_by) => stop_by,
        }
    }

    /// A deadline passed: jobs that were to stop are dropped.
    fn late(&mut self) {
        match &mut self.state.parking {
            Some(parking) if !parking.told => {
                parking.told = true;
                parking.by = Instant::now() + STOP_WITHIN;
                self.jobs.stop_all();
            }
            _ => {
                tracing::warn!(session = %self.id, "jobs did not stop in time and are dropped");
                self.jobs.drop_all();
                self.state.stop_by = None;
            }
        }
    }

    fn is_parked(&self) -> bool {
        self.state.parking.is_some() && self.jobs.are_idle() && self.state.ahead.is_none()
    }

    async fn obey(&mut self, command: Command) {
        if self.state.parking.is_some() {
            return refuse(command);
        }
        match command {
            Command::Submit(submission, reply) => {
                let _ = reply.send(self.submit(*submission).await);
            }
            Command::Answer(answer, reply) => {
                let result = self.answer(*answer).await;
                let granted = matches!(&result, Ok(Answered { grant: Some(_), .. }));
                let _ = reply.send(result);
                if granted {
                    self.settle_granted().await;
                }
            }
            Command::Abort { turn_id, call_id, origin, reply } => {
                self.abort(Input::Abort { turn_id, call_id, origin: Some(origin) }, call_id, reply).await;
            }
            Command::Kill { origin, reply } => {
                self.abort(Input::Kill { origin: Some(origin) }, None, reply).await;
            }
            Command::Attach { origin, reply } => {
                let clients = self.clients.fetch_add(1, Ordering::Relaxed) + 1;
                let result = self.advance(Input::Attached { clients, origin: Some(origin) }, None).await;
                if result.is_err() {
                    // A failing disk must not keep people from looking.
                    tracing::warn!(session = %self.id, "an attach could not be written");
                }
                let _ = reply.send(Ok(()));
            }
            Command::Park { patient, reply } => {
                let patience = if patient { PATIENCE } else { Duration::ZERO };
                self.jobs.stop_all_but_tools();
                if !self.jobs.run_tools() {
                    self.jobs.drop_all();
                }
                let by = Instant::now() + patience;
                self.state.parking = Some(Parking { replies: vec![reply], by, told: false });
            }
        }
    }

    async fn submit(&mut self, submission: Submission) -> Result<Submitted, SessionError> {
        const METHOD: &str = "session.submit";
        if let Some(known) = self.remembered(METHOD, submission.keyed.as_ref()).await? {
            return Ok(known);
        }
        let running = self.engine.turn_id();
        let input = Input::Submit(Submit {
            input: submission.input,
            when_busy: submission.when_busy,
            expected_turn: submission.expected_turn,
            budgets: submission.budgets,
            origin: Some(submission.origin),
        });
        let mut plan = self.decide(input)?;
        let taken = plan.facts.iter().find_map(|entry| {
            let state = match entry.envelope.event {
                Event::TurnStarted { .. } => SubmittedAs::Running,
                Event::TurnQueued { .. } => SubmittedAs::Queued,
                Event::TurnSteered { .. } => SubmittedAs::Steered,
                _ => return None,
            };
            let turn_id = entry.envelope.turn_id.or(running)?;
            Some(Submitted { turn_id, state, seq: entry.envelope.seq })
        });
        let submitted = taken.ok_or(SessionError::Refused(Refusal::EmptyInput))?;
        let idempotency = self.row(METHOD, submission.keyed, &submitted);
        self.perform(&mut plan, idempotency).await?;
        Ok(submitted)
    }

    async fn answer(&mut self, answer: Answer) -> Result<Answered, SessionError> {
        const METHOD: &str = "session.approve";
        if let Some(known) = self.remembered(METHOD, answer.keyed.as_ref()).await? {
            return Ok(known);
        }
        let mut plan = self.decide(Input::Answer {
            request_id: answer.request_id,
            decision: answer.decision,
            scope: answer.scope,
            grant: answer.grant,
            feedback: answer.feedback,
            origin: Some(answer.origin),
        })?;
        let answered = plan.facts.iter().find_map(|entry| match &entry.envelope.event {
            Event::PermissionResolved { grant, .. } => {
                Some(Answered { seq: entry.envelope.seq, grant: grant.clone() })
            }
            _ => None,
        });
        let answered = answered.ok_or(SessionError::Refused(Refusal::NotPending))?;
        let idempotency = self.row(METHOD, answer.keyed, &answered);
        self.perform(&mut plan, idempotency).await?;
        Ok(answered)
    }

    /// A grant for the session settles the other requests that it covers.
    async fn settle_granted(&mut self) {
        let around = Surroundings::of(&self.engine, self.id);
        for (request_id, call, prepared) in self.engine.pending() {
            let verdict = super::jobs::verdict(&self.house, &around, &call.tool, &prepared);
            if verdict.verdict == crate::types::permission::VerdictKind::Allow {
                self.hear(Input::Answer {
                    request_id,
                    decision: crate::types::permission::Decision::Allow,
                    scope: crate::types::permission::Scope::Once,
                    grant: None,
                    feedback: None,
                    origin: None,
                })
                .await;
            }
        }
    }

    async fn abort(&mut self, input: Input, call_id: Option<CallId>, reply: Reply<Aborted>) {
        let was_open = self.engine.open_calls();
        let turn = self.engine.turn_id();
        let under_way = self.engine.is_aborting();
        if let Err(error) = self.advance(input, None).await {
            let _ = reply.send(Err(error));
            return;
        }
        match call_id {
            Some(call_id) if was_open.contains(&call_id) => {
                if self.engine.open_calls().contains(&call_id) {
                    self.state.call_aborts.entry(call_id).or_default().push(reply);
                } else {
                    let _ = reply.send(Ok(Aborted { calls: vec![call_id], ..Aborted::default() }));
                }
            }
            None if self.engine.is_aborting() => {
                if !under_way {
                    self.state.aborted = Aborted { turn, calls: was_open, survivors: Vec::new() };
                    self.state.stop_by = Some(Instant::now() + STOP_WITHIN);
                }
                self.state.aborts.push(reply);
            }
            _ => {
                let _ = reply.send(Ok(Aborted::default()));
            }
        }
    }

    /// A job's report; deltas that wait behind it join it.
    async fn heard(&mut self, input: Input) {
        let Input::Deltas { token, mut deltas } = input else {
            self.hear(input).await;
            return;
        };
        let mut bytes: usize = deltas.iter().map(delta_bytes).sum();
        while bytes < JOIN_BYTES {
            match self.jobs.try_next() {
                Some(Input::Deltas { token: other, deltas: more }) if other == token => {
                    bytes += more.iter().map(delta_bytes).sum::<usize>();
                    deltas.extend(more);
                }
                Some(other) => {
                    self.state.ahead = Some(other);
                    break;
                }
                None => break,
            }
        }
        self.hear(Input::Deltas { token, deltas }).await;
    }

    /// Takes in something that nobody waits for an answer to. What cannot be written waits.
    async fn hear(&mut self, input: Input) {
        if let Err(error) = self.advance(input, None).await {
            tracing::debug!(session = %self.id, %error, "an input was not taken in");
        }
    }

    async fn advance(&mut self, input: Input, idempotency: Option<Idempotency>) -> Result<(), SessionError> {
        let keep = !matches!(
            input,
            Input::Submit(_) | Input::Answer { .. } | Input::Abort { .. } | Input::Kill { .. }
        );
        if let Input::ToolDone { outcome, .. } = &input {
            self.note_survivors(outcome.detail.as_ref());
        }
        let mut plan = self.decide(input)?;
        let result = self.perform(&mut plan, idempotency).await;
        if let Err(SessionError::Store(error)) = &result
            && keep
            && *error != StoreError::Closed
        {
            tracing::warn!(session = %self.id, %error, "the journal cannot be written; trying again");
            self.state.stuck = Some(plan);
        }
        result
    }

    fn decide(&self, input: Input) -> Result<Plan, SessionError> {
        if self.state.stuck.is_some() {
            return Err(SessionError::Store(StoreError::Unwritable("an earlier write waits".into())));
        }
        let now = Now { at: self.house.clock.now(), seed: Seed::random() };
        Ok(self.engine.decide(input, now)?)
    }

    /// Write, remember, tell, act. If the write fails, nothing was remembered, told or done, and the
    /// plan is as it was.
    async fn perform(
        &mut self,
        plan: &mut Plan,
        idempotency: Option<Idempotency>,
    ) -> Result<(), SessionError> {
        if !plan.facts.is_empty() {
            let next = journal::changes_summary(plan).then(|| {
                let mut next = self.engine.clone();
                plan.facts.iter().for_each(|entry| next.apply(&entry.envelope));
                next
            });
            let snapshot = next.as_ref().map(Engine::snapshot);
            let prepared = journal::prepare(self.key, plan, snapshot, idempotency);
            self.house.store.append(prepared.append).await?;
            match next {
                Some(next) => self.engine = next,
                None => plan.facts.iter().for_each(|entry| self.engine.apply(&entry.envelope)),
            }
            self.feed.publish(prepared.lines);
            for entry in &plan.facts {
                self.told(&entry.envelope);
            }
        }
        for effect in plan.effects.drain(..) {
            self.act(effect);
        }
        Ok(())
    }

    /// Answers those who waited for this fact.
    fn told(&mut self, fact: &Envelope) {
        match &fact.event {
            Event::TurnCompleted { .. } => {
                let aborted = std::mem::take(&mut self.state.aborted);
                self.state.stop_by = None;
                for reply in self.state.aborts.drain(..) {
                    let _ = reply.send(Ok(aborted.clone()));
                }
                for (_, replies) in self.state.call_aborts.drain() {
                    for reply in replies {
                        let _ = reply.send(Ok(Aborted::default()));
                    }
                }
            }
            Event::ToolCompleted { call_id, detail, .. } => {
                for reply in self.state.call_aborts.remove(call_id).unwrap_or_default() {
                    let survivors = survivors(detail.as_ref());
                    let _ = reply.send(Ok(Aborted { turn: None, calls: vec![*call_id], survivors }));
                }
            }
            _ => {}
        }
    }

    fn note_survivors(&mut self, detail: Option<&serde_json::Value>) {
        if self.engine.is_aborting() {
            self.state.aborted.survivors.extend(survivors(detail));
        }
    }

    fn act(&mut self, effect: Effect) {
        if self.state.parking.is_some() {
            // Derived again from the journal after the next start.
            return;
        }
        match effect {
            Effect::GatherContext => {
                let spec = self.engine.spec();
                self.jobs.gather(workspace::Request {
                    cwd: spec.cwd.clone().into(),
                    model: spec.model.clone(),
                    date: date(self.house.clock.now()),
                    custom: spec.system_prompt.clone(),
                    appended: spec.append_system_prompt.clone(),
                    user_dir: self.house.settings.user_dir.clone(),
                });
            }
            Effect::CallModel { token, request } => self.jobs.call_model(token, *request),
            Effect::Sleep { token, delay_ms } => self.jobs.sleep(token, delay_ms),
            Effect::Prepare { turn_id, calls } => {
                self.jobs.prepare(turn_id, calls, Surroundings::of(&self.engine, self.id));
            }
            Effect::RunTool { call, prepared } => {
                self.jobs.run_tool(call, prepared, Surroundings::of(&self.engine, self.id));
            }
            Effect::StopAll => {
                self.jobs.stop_all();
                self.state.stop_by.get_or_insert(Instant::now() + STOP_WITHIN);
            }
            Effect::StopCall(call_id) => self.jobs.stop_tool(call_id),
        }
    }

    async fn write_again(&mut self, mut plan: Plan) {
        if self.perform(&mut plan, None).await.is_ok() {
            tracing::info!(session = %self.id, "the journal can be written again");
            return;
        }
        self.state.stuck = Some(plan);
        let wait = tokio::time::sleep(WRITE_AGAIN);
        tokio::pin!(wait);
        loop {
            tokio::select! {
                () = &mut wait => return,
                command = self.inbox.recv() => match command {
                    // Refused by `decide` with the reason; attaching still works.
                    Some(command) => self.obey(command).await,
                    None => return,
                },
            }
        }
    }

    async fn remembered<T: serde::de::DeserializeOwned>(
        &self,
        method: &'static str,
        keyed: Option<&Keyed>,
    ) -> Result<Option<T>, SessionError> {
        let Some(keyed) = keyed else { return Ok(None) };
        let key = self.scoped(&keyed.key);
        let Some(known) = self.house.store.remembered(method, &key).await? else { return Ok(None) };
        if known.digest != keyed.digest {
            return Err(SessionError::Conflict("idempotency_key"));
        }
        Ok(serde_json::from_str(&known.reply).ok())
    }

    fn row<T: serde::Serialize>(
        &self,
        method: &'static str,
        keyed: Option<Keyed>,
        reply: &T,
    ) -> Option<Idempotency> {
        let keyed = keyed?;
        let reply = serde_json::to_string(reply).ok()?;
        Some(Idempotency { method, key: self.scoped(&keyed.key), digest: keyed.digest, reply })
    }

    /// Two sessions may use the same key.
    fn scoped(&self, key: &str) -> String {
        format!("{}:{key}", self.id)
    }
}

fn refuse(command: Command) {
    match command {
        Command::Submit(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        Command::Answer(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        Command::Abort { reply, .. } | Command::Kill { reply, .. } => {
            drop(reply.send(Err(SessionError::ShuttingDown)));
        }
        Command::Attach { reply, .. } => drop(reply.send(Ok(()))),
        Command::Park { reply, .. } => drop(reply.send(())),
    }
}

fn survivors(detail: Option<&serde_json::Value>) -> Vec<i32> {
    let list = detail.and_then(|detail| detail.get("survivors")).and_then(serde_json::Value::as_array);
    list.into_iter().flatten().filter_map(|pid| i32::try_from(pid.as_i64()?).ok()).collect()
}

fn delta_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thinking { text, .. } => text.len(),
        Delta::ToolInput { json, .. } => json.len(),
        Delta::BlockStarted { .. } | Delta::BlockCompleted { .. } => 16,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// `YYYY-MM-DD` in UTC (days to civil date after Howard Hinnant's public algorithm).
fn date(at: crate::types::time::Timestamp) -> String {
    let days = at.0.div_euclid(86_400_000) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;
    use crate::types::time::Timestamp;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(Timestamp(0)), "1970-01-01");
        assert_eq!(date(Timestamp(1_709_164_800_000)), "2024-02-29");
        assert_eq!(date(Timestamp(1_795_219_200_000)), "2026-11-21");
    }
}
