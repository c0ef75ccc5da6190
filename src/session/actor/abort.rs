//! Aborting the turn or one call, and ending the session.

use tokio::time::Instant;

use crate::actor::command::ReplyTo;
use crate::actor::commit::UnwrittenPlan;
use crate::actor::{Actor, STOP_TIMEOUT};
use crate::error::SessionError;
use crate::idempotency::IdempotencyKey;
use crate::requests::AbortOutcome;
use engine::{Effect, Input};
use types::background::KilledBy;
use types::ids::{CallId, TurnId};

impl Actor {
    pub(super) async fn abort(
        &mut self,
        input: Input,
        call_id: Option<CallId>,
        keyed: Option<(&'static str, IdempotencyKey)>,
        reply: ReplyTo<AbortOutcome>,
    ) {
        let was_open = self.engine.open_calls();
        let behind = self.engine.running_commands();
        let turn = self.engine.turn_id();
        let under_way = self.engine.is_aborting();
        let dequeued = queued_turn(&input).filter(|turn_id| self.engine.is_queued(*turn_id));
        if let Some((method, keyed)) = &keyed {
            match self.remembered::<AbortOutcome>(method, Some(keyed)).await {
                // The reply is sent when the stopped work has ended.
                Ok(Some(_)) if under_way && dequeued.is_none() => return self.state.aborts.push(reply),
                Ok(None) => {}
                Ok(Some(known)) => return drop(reply.send(Ok(known))),
                Err(error) => return drop(reply.send(Err(error))),
            }
        }
        let stopped = self.stop_and_write(input, call_id, keyed).await;
        if let Err(error) = stopped {
            if matches!(error, SessionError::Store(_)) {
                // The abort cannot be written, but stop the work anyway, because the work may be filling the disk.
                let stopped_calls = call_id.map_or(was_open, |call_id| vec![call_id]);
                self.effects.stop_commands(&stopped_calls, KilledBy::Abort);
                stopped_calls.into_iter().for_each(|call_id| self.effects.stop_tool(call_id));
            }
            let _ = reply.send(Err(error));
            return;
        }
        if dequeued.is_some() {
            let _ = reply.send(Ok(AbortOutcome { turn: dequeued, ..AbortOutcome::default() }));
            return;
        }
        match call_id {
            Some(call_id) if behind.contains(&call_id) => {
                self.state.call_aborts.entry(call_id).or_default().push(reply);
            }
            Some(call_id) if was_open.contains(&call_id) => {
                if self.engine.open_calls().contains(&call_id) {
                    self.state.call_aborts.entry(call_id).or_default().push(reply);
                } else {
                    let _ = reply.send(Ok(AbortOutcome { calls: vec![call_id], ..AbortOutcome::default() }));
                }
            }
            None if self.engine.is_aborting() => {
                if !under_way {
                    let calls = [was_open, self.engine.aborted_commands()].concat();
                    self.state.aborted = AbortOutcome { turn, calls, survivors: Vec::new() };
                    self.state.stop_by = Some(Instant::now() + STOP_TIMEOUT);
                }
                self.state.aborts.push(reply);
            }
            None if self.engine.is_ended() && !behind.is_empty() => {
                let nothing = || AbortOutcome { calls: behind, ..AbortOutcome::default() };
                self.state.kills.get_or_insert_with(|| (Vec::new(), nothing())).0.push(reply);
            }
            _ => {
                let _ = reply.send(Ok(AbortOutcome::default()));
            }
        }
    }

    /// Decides an abort and stops the work while the decision is written. The transaction also stores the reply.
    async fn stop_and_write(
        &mut self,
        input: Input,
        call_id: Option<CallId>,
        keyed: Option<(&'static str, IdempotencyKey)>,
    ) -> Result<(), SessionError> {
        let dequeued = queued_turn(&input).filter(|turn_id| self.engine.is_queued(*turn_id));
        let turn = dequeued.or(self.engine.turn_id());
        let open = self.engine.open_calls();
        let decision = self.decide(input)?;
        let plan = &decision.plan;
        let mut calls = match call_id {
            Some(call_id) if open.contains(&call_id) => vec![call_id],
            Some(_) => Vec::new(),
            None if turn.is_some() && dequeued.is_none() => open,
            None => Vec::new(),
        };
        calls.extend(plan.effects.iter().flat_map(|effect| match effect {
            Effect::StopCommands { calls, .. } => calls.clone(),
            _ => Vec::new(),
        }));
        let stops = call_id.is_none() && !plan.events.is_empty();
        let stopped = AbortOutcome { turn: turn.filter(|_| stops), calls, survivors: Vec::new() };
        let idempotency = keyed.and_then(|(method, keyed)| keyed.row(method, self.id, &stopped));
        // The write needs a disk sync. The work must not continue meanwhile.
        for effect in &decision.plan.effects {
            self.stop_now(effect);
        }
        self.commit(UnwrittenPlan { idempotency, ..UnwrittenPlan::new(decision) }).await.map(|_| ())
    }
}

/// The turn that an abort names. `None` if the abort names a call.
fn queued_turn(input: &Input) -> Option<TurnId> {
    match input {
        Input::Abort { turn_id, call_id: None, .. } => *turn_id,
        _ => None,
    }
}
