//! Handles the commands of a session. Submit, answer and abort have their own files.

use std::time::Duration;

use tokio::time::Instant;

use crate::actor::command::SessionCommand;
use crate::actor::commit::UnwrittenPlan;
use crate::actor::effects;
use crate::actor::effects::prompt::UnsentRequest;
use crate::actor::{Actor, PARK_TIMEOUT, ParkState};
use crate::call_context::CallContext;
use crate::effective_rules::EffectiveRules;
use crate::error::SessionError;
use crate::idempotency::{self, IdempotencyKey, method};
use crate::requests::SessionFacts;
use crate::requests::{ParkPatience, QuestionAnswer, QuestionReply, Reloaded, SettingsUpdate};
use base::crash;
use engine::{Input, Now, Refusal, Reply, SessionUpdate};
use types::background::KilledBy;
use types::event::Origin;
use types::ids::{PermissionId, Seq};
use types::permission::{Mode, RuleKind, VerdictKind};
use types::session::AttachedClient;

impl Actor {
    pub(super) async fn handle_command(&mut self, command: SessionCommand) {
        self.adopt_clock_change().await;
        if let Some(parking) = &mut self.state.parking {
            match command {
                // This shutdown does not wait, so abort running tools immediately.
                SessionCommand::Park { patience, reply } => {
                    parking.replies.push(reply);
                    if patience == ParkPatience::StopTools && !parking.has_stopped_effects {
                        parking.by = Instant::now();
                    }
                }
                other => refuse_command(other),
            }
            return;
        }
        match command {
            SessionCommand::Submit(submission, input, reply) => {
                let _ = reply.send(self.submit(*submission, input).await);
            }
            SessionCommand::Compact(request, keyed, origin, reply) => {
                let _ = reply.send(self.compact(*request, keyed, origin).await);
            }
            SessionCommand::Context(reply) => {
                self.refresh_settings();
                let now = Now { at: self.shared.clock.now(), seed: self.state.seeds.next_seed() };
                let _ = reply.send(Ok(self.engine.context(now)));
            }
            SessionCommand::NextRequest(reply) => {
                let _ = reply.send(self.next_request());
            }
            SessionCommand::BookUsage(usage, reply) => {
                let booked = Input::BookUsage(usage);
                let _ = reply.send(self.decide_and_commit(booked).await.map(|_| ()));
            }
            SessionCommand::JobEvents(events, reply) => {
                let recorded = self.decide_and_commit(Input::JobEvents(events)).await;
                let _ = reply.send(recorded.map(|_| ()));
            }
            SessionCommand::HooksRan(runs, problems, reply) => {
                if let Some(problems) = problems {
                    self.handle_input(Input::HooksRead { problems }).await;
                }
                let ran =
                    Input::HooksRan { call_id: None, runs, continues: None, stops: None, context: None };
                let _ = reply.send(self.decide_and_commit(ran).await.map(|_| ()));
            }
            SessionCommand::Command(command, reply) => {
                let _ = reply.send(self.answer_command(*command).await);
            }
            SessionCommand::Facts(reply) => {
                let _ = reply.send(Ok(SessionFacts {
                    spec: self.engine.spec().clone(),
                    mode: self.engine.mode(),
                    model: self.engine.model().to_owned(),
                }));
            }
            SessionCommand::EditContext(request_id, reply) => {
                let _ = reply.send(self.edit_context(request_id).await);
            }
            SessionCommand::Answer(answer, reply) => self.answer_and_approve_matching(*answer, reply).await,
            SessionCommand::Update(changes, reply) => {
                let _ = reply.send(self.update(*changes).await);
            }
            SessionCommand::Rule { add, kind, rule, origin, reply } => {
                let changed = self.change_rule(add, kind, rule, origin).await;
                let adds = changed.is_ok() && add && kind == RuleKind::Allow;
                let _ = reply.send(changed);
                if adds {
                    let effective = EffectiveRules::load(&self.shared, &self.call_context()).await;
                    self.approve_matching(&effective).await;
                }
            }
            SessionCommand::Rules(reply) => {
                let _ = reply.send(Ok(self.engine.rules()));
            }
            SessionCommand::Queue(reply) => {
                let _ = reply.send(Ok(self.engine.queue()));
            }
            SessionCommand::EditQueue(change, reply) => {
                let _ = reply.send(self.edit_queue(*change).await);
            }
            SessionCommand::Rewind(request, reply) => {
                let _ = reply.send(Box::pin(self.rewind(*request)).await);
            }
            SessionCommand::Archive { archived, keyed, origin, reply } => {
                let _ = reply.send(self.archive(archived, keyed, origin).await);
            }
            SessionCommand::AnswerQuestion(chosen, reply) => {
                let _ = reply.send(self.answer_question(*chosen).await);
            }
            SessionCommand::Abort { turn_id, call_id, keyed, origin, reply } => {
                let input = Input::Abort { turn_id, call_id, origin: Some(origin) };
                self.abort(input, call_id, keyed.map(|keyed| (method::ABORT, keyed)), reply).await;
            }
            SessionCommand::Kill { keyed, origin, reply } => {
                let input = Input::Kill { origin: Some(origin) };
                self.abort(input, None, keyed.map(|keyed| (method::KILL, keyed)), reply).await;
            }
            SessionCommand::Attach(mut attachment, reply) => {
                let clients = self.clients.add(AttachedClient {
                    name: attachment.origin.client.clone(),
                    role: attachment.role.to_owned(),
                    since_ms: self.shared.clock.now(),
                });
                attachment.is_counted = true;
                let origin = Some(attachment.origin.clone());
                let result = self.decide_and_commit_until_written(Input::Attached { clients, origin }).await;
                if result.is_err() {
                    // A failing disk must not prevent users from reading a session.
                    tracing::warn!(session = %self.id, "could not write session.attached");
                }
                self.recheck_trust();
                self.prefetch_git();
                // If the caller is gone, the guard is dropped here, which sends a detach.
                let _ = reply.send(Ok(attachment));
            }
            SessionCommand::Unload => self.state.evict = true,
            #[cfg(test)]
            SessionCommand::Panic => panic!("as a test wants it"),
            SessionCommand::Reloaded(Reloaded { changed, needs_restart, files }) => {
                self.refresh_settings();
                let is_watched = self.clients.count() > 0;
                if is_watched || self.engine.turn_id().is_some() {
                    self.handle_input(Input::Reloaded { changed, needs_restart, files }).await;
                }
                // Changed files of the project are no longer those that the user trusted.
                if is_watched {
                    self.recheck_trust();
                }
            }
            SessionCommand::Park { patience, reply } => {
                crash::point("C23.parking");
                let tool_time = match patience {
                    ParkPatience::WaitForTools => PARK_TIMEOUT,
                    ParkPatience::StopTools => Duration::ZERO,
                };
                self.effects.stop_all_but_tools();
                // Their sessions are parked by themselves.
                self.effects.drop_subagents();
                // Background tasks would not end by themselves.
                self.effects.stop_all_commands(KilledBy::Shutdown);
                if !self.effects.has_running_tools() {
                    self.effects.drop_all();
                }
                let by = Instant::now() + tool_time;
                self.state.parking = Some(ParkState { replies: vec![reply], by, has_stopped_effects: false });
            }
        }
    }

    /// The next model request as it would be sent now.
    fn next_request(&mut self) -> Result<UnsentRequest, SessionError> {
        self.refresh_settings();
        let now = Now { at: self.shared.clock.now(), seed: self.state.seeds.next_seed() };
        let bad_model =
            |why: &str| SessionError::BadParam("session_id", format!("nothing can be sent: {why}"));
        let next = self.engine.next_request(now).map_err(bad_model)?;
        let prompt = next.needs_prompt.then(|| Box::new(self.prompt_source()));
        Ok(UnsentRequest { request: Box::new(next.request), prompt })
    }

    /// Checks again whether the workspace contains files that need trust.
    pub(super) fn recheck_trust(&mut self) {
        if self.engine.has_context() && self.state.parking.is_none() {
            self.effects.recheck_trust(self.engine.spec().cwd.clone().into());
        }
    }

    /// Gathers git facts for the first prompt, if it is not built yet.
    pub(super) fn prefetch_git(&mut self) {
        let is_waiting = !self.engine.has_context() && self.engine.turn_id().is_none();
        if is_waiting && !self.engine.is_ended() && self.state.parking.is_none() {
            self.effects.prefetch_git(self.engine.spec().cwd.clone().into());
        }
    }

    /// Applies changes of the session. A mode applies immediately, also to pending requests.
    async fn update(&mut self, changes: SettingsUpdate) -> Result<(), SessionError> {
        // The registry stores the variables and the servers.
        let SettingsUpdate { title, options, environment: _, mcp_servers: _, keyed, origin } = changes;
        if let Some(done) = self.remembered(method::UPDATE, keyed.as_ref()).await? {
            return Ok(done);
        }
        let covered = match options.mode {
            Some(mode) => self.requests_allowed_by(mode).await,
            None => Vec::new(),
        };
        let update = SessionUpdate { title, options, covered, origin: Some(origin) };
        let decision = self.decide(Input::Update(Box::new(update)))?;
        // A call without changes writes nothing, so its reply is not stored.
        let idempotency = keyed.and_then(|keyed| keyed.row(method::UPDATE, self.id, &()));
        self.commit(UnwrittenPlan { idempotency, ..UnwrittenPlan::new(decision) }).await.map(|_| ())
    }

    /// Pending requests that another mode allows, with the reason. No mode lets a command run without its
    /// sandbox.
    pub(super) async fn requests_allowed_by(&self, mode: Mode) -> Vec<(PermissionId, String)> {
        let call_context = CallContext { mode, ..self.call_context() };
        let effective = EffectiveRules::load(&self.shared, &call_context).await;
        let components = self.shared.components();
        let mut covered = Vec::new();
        for pending in
            self.engine.pending().into_iter().filter(|it| it.outside.is_none() && !self.is_left_to_user(it))
        {
            let verdict = effects::judge_prepared(
                &effective,
                &components,
                &call_context,
                &pending.call.tool,
                &pending.prepared,
            )
            .await;
            if verdict.verdict == VerdictKind::Allow {
                covered.push((pending.request_id, format!("mode {}: {}", mode.name(), verdict.reason)));
            }
        }
        covered
    }

    async fn change_rule(
        &mut self,
        add: bool,
        kind: RuleKind,
        rule: String,
        origin: Origin,
    ) -> Result<(), SessionError> {
        self.decide_and_commit(Input::Rule { add, kind, rule, origin: Some(origin) }).await.map(|_| ())
    }

    async fn answer_question(&mut self, chosen: QuestionAnswer) -> Result<Seq, SessionError> {
        let method = match chosen.reply {
            QuestionReply::Choice(_) | QuestionReply::Answers(_) => method::ANSWER,
            QuestionReply::Answer(_) => method::FEEDBACK,
        };
        if let Some(known) = self.remembered(method, chosen.keyed.as_ref()).await? {
            return Ok(known);
        }
        let (request_id, origin) = (chosen.request_id, Some(chosen.origin));
        let input = match chosen.reply {
            QuestionReply::Choice(choice) => Input::AnswerQuestion { request_id, choice, origin },
            QuestionReply::Answers(answers) => Input::AnswerUser { request_id, answers, origin },
            QuestionReply::Answer(item_id) => Input::ChooseAnswer { request_id, item_id, origin },
        };
        let decision = self.decide(input)?;
        let Reply::QuestionAnswered(seq) = decision.reply else {
            return Err(SessionError::Refused(Refusal::NotPending));
        };
        let idempotency = chosen.keyed.and_then(|keyed| keyed.row(method, self.id, &seq));
        self.commit(UnwrittenPlan { idempotency, ..UnwrittenPlan::new(decision) }).await?;
        Ok(seq)
    }

    /// The stored reply of an earlier call with this key.
    pub(super) async fn remembered<T: serde::de::DeserializeOwned>(
        &self,
        method: &'static str,
        keyed: Option<&IdempotencyKey>,
    ) -> Result<Option<T>, SessionError> {
        let Some(keyed) = keyed else { return Ok(None) };
        idempotency::remembered(&self.shared.store, method, self.id, keyed).await
    }
}

fn refuse_command(command: SessionCommand) {
    match command {
        SessionCommand::Submit(_, _, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Compact(.., reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Context(reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::NextRequest(reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::BookUsage(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::JobEvents(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::HooksRan(_, _, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Command(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Facts(reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::EditContext(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Answer(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Update(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Rule { reply, .. } => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Rules(reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Queue(reply) | SessionCommand::EditQueue(_, reply) => {
            drop(reply.send(Err(SessionError::ShuttingDown)));
        }
        SessionCommand::Rewind(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Archive { reply, .. } => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::AnswerQuestion(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Abort { reply, .. } | SessionCommand::Kill { reply, .. } => {
            drop(reply.send(Err(SessionError::ShuttingDown)));
        }
        SessionCommand::Attach(attachment, reply) => drop(reply.send(Ok(attachment))),
        SessionCommand::Reloaded(_) => {}
        SessionCommand::Park { reply, .. } => drop(reply.send(())),
        SessionCommand::Unload => {}
        #[cfg(test)]
        SessionCommand::Panic => {}
    }
}
