//! Handles the commands of a session: submit, answer, abort, attach and others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::crash;
use crate::engine::{self, EditedCall, Effect, Input, Refusal, Submit, Update};
use crate::session::actor::effects;
use crate::session::actor::effects::CallContext;
use crate::session::actor::{Actor, PARK_TIMEOUT, Parking, STOP_TIMEOUT};
use crate::session::effective_rules::EffectiveRules;
use crate::session::error::SessionError;
use crate::session::handle::{
    AbortOutcome, AnswerOutcome, IdempotencyKey, PermissionAnswer, QuestionAnswer, Reply, SessionCommand,
    Submission, SubmitOutcome, SubmittedAs,
};
use crate::session::handle::{Changes, PendingCall};
use crate::session::registry::create::check_money;
use crate::session::registry::grant_outbox;
use crate::store::{Idempotency, Store};
use crate::types::background::KilledBy;
use crate::types::event::{Event, Origin, SettledBy};
use crate::types::ids::{CallId, PermissionId, Seq, SessionId};
use crate::types::permission::{Decision, Mode, RuleKind, Scope, VerdictKind};

/// Method name under which the replies to submits are stored.
pub(in crate::session) const SUBMIT: &str = "session.submit";

impl Actor {
    pub(in crate::session) async fn handle_command(&mut self, command: SessionCommand) {
        if let Some(parking) = &mut self.state.parking {
            match command {
                // This shutdown does not wait, so abort running tools immediately.
                SessionCommand::Park { patient, reply } => {
                    parking.replies.push(reply);
                    if !patient && !parking.told {
                        parking.by = Instant::now();
                    }
                }
                other => refuse_command(other),
            }
            return;
        }
        match command {
            SessionCommand::Submit(submission, reply) => {
                let _ = reply.send(self.submit(*submission).await);
            }
            SessionCommand::Answer(answer, edited, reply) => {
                let result = self.answer(*answer, edited.map(|edited| *edited)).await;
                let granted = matches!(&result, Ok(AnswerOutcome { grant: Some(_), .. }));
                let _ = reply.send(result);
                if granted {
                    self.approve_matching().await;
                }
            }
            SessionCommand::PendingCall(request_id, reply) => {
                let _ = reply.send(self.pending_call(request_id).await);
            }
            SessionCommand::Update(changes, reply) => {
                let _ = reply.send(self.update(*changes).await);
            }
            SessionCommand::Rule { add, kind, rule, origin, reply } => {
                let changed = self.change_rule(add, kind, rule, origin).await;
                let adds = changed.is_ok() && add && kind == RuleKind::Allow;
                let _ = reply.send(changed);
                if adds {
                    self.approve_matching().await;
                }
            }
            SessionCommand::Rules(reply) => {
                let _ = reply.send(Ok(self.engine.rules()));
            }
            SessionCommand::AnswerQuestion(chosen, reply) => {
                let _ = reply.send(self.answer_question(*chosen).await);
            }
            SessionCommand::Abort { turn_id, call_id, keyed, origin, reply } => {
                let input = Input::Abort { turn_id, call_id, origin: Some(origin) };
                self.abort(input, call_id, Self::with_method("session.abort", keyed), reply).await;
            }
            SessionCommand::Kill { keyed, origin, reply } => {
                let input = Input::Kill { origin: Some(origin) };
                self.abort(input, None, Self::with_method("session.kill", keyed), reply).await;
            }
            SessionCommand::Attach(mut attachment, reply) => {
                let clients = self.clients.fetch_add(1, Ordering::Relaxed) + 1;
                attachment.is_counted = true;
                let origin = Some(attachment.origin.clone());
                let result = self.advance(Input::Attached { clients, origin }, None).await;
                if result.is_err() {
                    // A failing disk must not prevent users from reading a session.
                    tracing::warn!(session = %self.id, "an attach could not be written");
                }
                self.recheck_trust();
                // If the caller is gone, the guard is dropped here, which sends a detach.
                let _ = reply.send(Ok(attachment));
            }
            SessionCommand::Unload => self.state.evict = true,
            #[cfg(test)]
            SessionCommand::Panic => panic!("as a test wants it"),
            SessionCommand::Reloaded { changed, needs_restart } => {
                self.refresh_settings();
                let is_watched = self.clients.load(Ordering::Relaxed) > 0;
                if is_watched || self.engine.turn_id().is_some() {
                    self.handle_input(Input::Reloaded { changed, needs_restart }).await;
                }
            }
            SessionCommand::Park { patient, reply } => {
                crash::point("C23.parking");
                let patience = if patient { PARK_TIMEOUT } else { Duration::ZERO };
                self.effects.stop_all_but_tools();
                // Background tasks would not end by themselves.
                self.effects.stop_all_commands(KilledBy::Shutdown);
                if !self.effects.run_tools() {
                    self.effects.drop_all();
                }
                let by = Instant::now() + patience;
                self.state.parking = Some(Parking { replies: vec![reply], by, told: false });
            }
        }
    }

    async fn submit(&mut self, submission: Submission) -> Result<SubmitOutcome, SessionError> {
        crash::point("C1.received");
        if let Some(known) = self.remembered(SUBMIT, submission.keyed.as_ref()).await? {
            return Ok(known);
        }
        self.shared.check_journal_quota()?;
        if let Some(model) = &submission.model {
            let budgets = submission.budgets.unwrap_or(self.engine.spec().budgets);
            check_money(&self.shared.components(), model, budgets)?;
        }
        let running = self.engine.turn_id();
        let input = Input::Submit(Submit {
            input: submission.input,
            blobs: submission.blobs,
            when_busy: submission.when_busy,
            expected_turn: submission.expected_turn,
            budgets: submission.budgets,
            mode: submission.mode,
            model: submission.model,
            thinking: submission.thinking,
            tools: submission.tools,
            sampling: submission.sampling,
            origin: Some(submission.origin),
        });
        let mut plan = self.decide(input)?;
        let taken = plan.events.iter().find_map(|entry| {
            let state = match entry.envelope.event {
                Event::TurnStarted { .. } => SubmittedAs::Running,
                Event::TurnQueued { .. } => SubmittedAs::Queued,
                Event::TurnSteered { .. } => SubmittedAs::Steered,
                _ => return None,
            };
            let turn_id = entry.envelope.turn_id.or(running)?;
            Some(SubmitOutcome { turn_id, state, seq: entry.envelope.seq })
        });
        let submitted = taken.ok_or(SessionError::Refused(Refusal::EmptyInput))?;
        let idempotency = self.reply_row(SUBMIT, submission.keyed, &submitted);
        crash::point("C1.decided");
        self.commit(&mut plan, idempotency).await?;
        self.recheck_trust();
        crash::point("C2.performed");
        Ok(submitted)
    }

    /// Checks again whether the workspace contains files that need trust.
    fn recheck_trust(&mut self) {
        if self.engine.has_context() && self.state.parking.is_none() {
            self.effects.recheck_trust(self.engine.spec().cwd.clone().into());
        }
    }

    async fn answer(
        &mut self,
        answer: PermissionAnswer,
        edited: Option<EditedCall>,
    ) -> Result<AnswerOutcome, SessionError> {
        const METHOD: &str = "session.approve";
        if let Some(known) = self.remembered(METHOD, answer.keyed.as_ref()).await? {
            return Ok(known);
        }
        let effective = EffectiveRules::load(&self.shared, &self.call_context()).await;
        self.check_grant(&effective, &answer)?;
        match &edited {
            Some(edited) => self.check_edit(&effective, &answer, edited)?,
            None => self.check_still(&effective, &answer)?,
        }
        let (request_id, scope, origin) = (answer.request_id, answer.scope, Some(answer.origin));
        let mut plan = self.decide(Input::Answer(Box::new(engine::Answer {
            request_id,
            decision: answer.decision,
            scope,
            grant: answer.grant,
            feedback: answer.feedback,
            stop: answer.stop,
            no_approver: answer.no_approver,
            edited,
            digest: answer.digest,
            origin: origin.clone(),
        })))?;
        let answered = plan.events.iter().find_map(|entry| match &entry.envelope.event {
            Event::PermissionResolved { grant, .. } => {
                Some(AnswerOutcome { seq: entry.envelope.seq, grant: grant.clone() })
            }
            _ => None,
        });
        let answered = answered.ok_or(SessionError::Refused(Refusal::NotPending))?;
        let owes = answered.grant.clone().filter(|_| scope == Scope::Project).map(|rule| {
            let entry = grant_outbox::entry(&self.shared, rule, origin, self.id, request_id);
            grant_outbox::pending_grant(&self.engine.spec().cwd, request_id, &entry)
        });
        let idempotency = self.reply_row(METHOD, answer.keyed, &answered);
        // Commit the grant first, then write the policy file. After a crash in between, the next start writes
        // the file.
        self.commit_with_grants(&mut plan, idempotency, owes.clone()).await?;
        if let Some(owes) = owes
            && let Err(error) = grant_outbox::write_grant(&self.shared, owes).await
        {
            tracing::error!(session = %self.id, %error, "a grant could not be written; the next start tries again");
            let text = format!("the grant for this folder does not count yet: {error}");
            self.handle_input(Input::Notice { kind: "grant_not_written".into(), text }).await;
        }
        Ok(answered)
    }

    pub(in crate::session) fn call_context(&self) -> CallContext {
        CallContext::from_engine(&self.engine, self.id, self.effects.commands(&self.engine))
    }

    async fn pending_call(&self, request_id: PermissionId) -> Result<PendingCall, SessionError> {
        let call = self.pending_request(request_id)?.call;
        let call_context = self.call_context();
        let effective = EffectiveRules::load(&self.shared, &call_context).await;
        let session_context = effective.session_context(
            &self.shared.components().settings,
            self.effects.blobs(),
            &call_context,
        );
        Ok(PendingCall { call, session_context: Arc::new(session_context) })
    }

    fn pending_request(&self, request_id: PermissionId) -> Result<engine::Pending, SessionError> {
        let pending = self.engine.pending().into_iter().find(|pending| pending.request_id == request_id);
        pending.ok_or(SessionError::Refused(Refusal::NotPending))
    }

    /// Applies changes of the session. A mode applies immediately, also to pending requests.
    async fn update(&mut self, changes: Changes) -> Result<(), SessionError> {
        const METHOD: &str = "session.update";
        let Changes {
            title,
            mode,
            budgets,
            thinking,
            sampling,
            model,
            tools,
            additional_dirs,
            keyed,
            origin,
        } = changes;
        if let Some(done) = self.remembered(METHOD, keyed.as_ref()).await? {
            return Ok(done);
        }
        let covered = match mode {
            Some(mode) => self.covered_by(mode).await,
            None => Vec::new(),
        };
        let origin = Some(origin);
        let update = Update {
            title,
            mode,
            budgets,
            thinking,
            sampling,
            model,
            tools,
            additional_dirs,
            covered,
            origin,
        };
        let mut plan = self.decide(Input::Update(Box::new(update)))?;
        // A call without changes writes nothing, so its reply is not stored.
        let idempotency = self.reply_row(METHOD, keyed, &());
        self.commit(&mut plan, idempotency).await
    }

    /// Pending requests that another mode allows, with the reason. No mode lets a command run without its
    /// sandbox.
    async fn covered_by(&self, mode: Mode) -> Vec<(PermissionId, String)> {
        let call_context = CallContext { mode, ..self.call_context() };
        let effective = EffectiveRules::load(&self.shared, &call_context).await;
        let components = self.shared.components();
        let mut covered = Vec::new();
        for pending in self.engine.pending().into_iter().filter(|it| it.outside.is_none()) {
            let verdict = effects::verdict(
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
        self.advance(Input::Rule { add, kind, rule, origin: Some(origin) }, None).await
    }

    async fn answer_question(&mut self, chosen: QuestionAnswer) -> Result<Seq, SessionError> {
        const METHOD: &str = "session.answer";
        if let Some(known) = self.remembered(METHOD, chosen.keyed.as_ref()).await? {
            return Ok(known);
        }
        let mut plan = self.decide(Input::AnswerQuestion {
            request_id: chosen.request_id,
            choice: chosen.choice,
            origin: Some(chosen.origin),
        })?;
        let resolved = plan.events.iter().find_map(|entry| match &entry.envelope.event {
            Event::QuestionResolved { .. } => Some(entry.envelope.seq),
            _ => None,
        });
        let seq = resolved.ok_or(SessionError::Refused(Refusal::NotPending))?;
        let idempotency = self.reply_row(METHOD, chosen.keyed, &seq);
        self.commit(&mut plan, idempotency).await?;
        Ok(seq)
    }

    /// A grant must allow this call; any other grant is an error.
    fn check_grant(&self, effective: &EffectiveRules, answer: &PermissionAnswer) -> Result<(), SessionError> {
        let Some(grant) = &answer.grant else { return Ok(()) };
        let pending = self.engine.pending();
        let Some(asked) = pending.iter().find(|pending| pending.request_id == answer.request_id) else {
            return Ok(());
        };
        if asked.outside.is_some() {
            // The engine accepts only the single grant for this purpose.
            return Ok(());
        }
        let rule = grant
            .parse()
            .map_err(|error: crate::judge::BadRule| SessionError::BadParam("grant", error.to_string()))?;
        let call_context = self.call_context();
        let settings = &self.shared.components().settings;
        let verdict =
            effective.with_grant(&rule).verdict(settings, &call_context, &asked.call.tool, &asked.prepared);
        if verdict.verdict == VerdictKind::Allow {
            return Ok(());
        }
        let why =
            format!("{grant} does not cover this call ({}); take one of the suggestions", verdict.reason);
        Err(SessionError::BadParam("grant", why))
    }

    /// A current deny rule overrides the answer to an older request. The same applies to a run without sandbox
    /// that the mode or configuration now forbids. A stricter mode leaves the decision to the user.
    fn check_still(&self, effective: &EffectiveRules, answer: &PermissionAnswer) -> Result<(), SessionError> {
        if answer.decision != Decision::Allow {
            return Ok(());
        }
        let Ok(asked) = self.pending_request(answer.request_id) else { return Ok(()) };
        let settings = &self.shared.components().settings;
        if asked.outside.is_some()
            && !settings.engine.offer_unsandboxed_retry.holds(self.engine.spec().background)
        {
            let why = "[sandbox] offer_unsandboxed_retry no longer lets commands out of the sandbox: deny it";
            return Err(SessionError::BadParam("decision", why.into()));
        }
        let verdict = effective.verdict(settings, &self.call_context(), &asked.call.tool, &asked.prepared);
        if verdict.verdict == VerdictKind::Deny && (asked.outside.is_some() || verdict.rule.is_some()) {
            let why = format!("the call is not permitted any more: {}; deny it", verdict.reason);
            return Err(SessionError::BadParam("decision", why));
        }
        Ok(())
    }

    /// Changed arguments are judged like the model's own: a denied call stays denied.
    fn check_edit(
        &self,
        effective: &EffectiveRules,
        answer: &PermissionAnswer,
        edited: &EditedCall,
    ) -> Result<(), SessionError> {
        let asked = self.pending_request(answer.request_id)?;
        let settings = &self.shared.components().settings;
        let verdict = effective.verdict(settings, &self.call_context(), &asked.call.tool, &edited.prepared);
        if verdict.verdict == VerdictKind::Deny {
            let why = format!("the changed call is not permitted: {}", verdict.reason);
            return Err(SessionError::BadParam("updated_input", why));
        }
        Ok(())
    }

    /// Settles the other pending requests that a new grant or rule allows.
    async fn approve_matching(&mut self) {
        let call_context = self.call_context();
        let effective = EffectiveRules::load(&self.shared, &call_context).await;
        for pending in self.engine.pending() {
            if let Some(grant) = &pending.outside {
                if let Some(rule) = grant.clone().filter(|grant| self.engine.rules().allow.contains(grant)) {
                    let (request_id, by) = (pending.request_id, SettledBy::Rule);
                    self.handle_input(Input::AllowedByRule { request_id, by, rule }).await;
                }
                continue;
            }
            let components = self.shared.components();
            let verdict = effects::verdict(
                &effective,
                &components,
                &call_context,
                &pending.call.tool,
                &pending.prepared,
            )
            .await;
            if verdict.verdict == VerdictKind::Allow {
                let (request_id, by) = (pending.request_id, SettledBy::Rule);
                let rule = verdict.rule.unwrap_or(verdict.reason);
                self.handle_input(Input::AllowedByRule { request_id, by, rule }).await;
            }
        }
    }

    async fn abort(
        &mut self,
        input: Input,
        call_id: Option<CallId>,
        keyed: Option<(&'static str, IdempotencyKey)>,
        reply: Reply<AbortOutcome>,
    ) {
        let was_open = self.engine.open_calls();
        let behind = self.engine.running_commands();
        let turn = self.engine.turn_id();
        let under_way = self.engine.is_aborting();
        if let Some((method, keyed)) = &keyed {
            match self.remembered::<AbortOutcome>(method, Some(keyed)).await {
                // The reply is sent when the stopped work has ended.
                Ok(Some(_)) if under_way => return self.state.aborts.push(reply),
                Ok(None) => {}
                Ok(Some(known)) => return drop(reply.send(Ok(known))),
                Err(error) => return drop(reply.send(Err(error))),
            }
        }
        let stopped = self.stop_and_write(input, call_id, keyed).await;
        if let Err(error) = stopped {
            if matches!(error, SessionError::Store(_)) {
                // The abort cannot be written, but the work is stopped: it may be what fills the disk.
                let told = call_id.map_or(was_open, |call_id| vec![call_id]);
                self.effects.stop_commands(&told, KilledBy::Abort);
                told.into_iter().for_each(|call_id| self.effects.stop_tool(call_id));
            }
            let _ = reply.send(Err(error));
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

    /// Decides an abort, stops the work while the decision is written, and stores the reply in the same
    /// transaction.
    async fn stop_and_write(
        &mut self,
        input: Input,
        call_id: Option<CallId>,
        keyed: Option<(&'static str, IdempotencyKey)>,
    ) -> Result<(), SessionError> {
        let turn = self.engine.turn_id();
        let open = self.engine.open_calls();
        let mut plan = self.decide(input)?;
        let mut calls = match call_id {
            Some(call_id) if open.contains(&call_id) => vec![call_id],
            Some(_) => Vec::new(),
            None if turn.is_some() => open,
            None => Vec::new(),
        };
        calls.extend(plan.effects.iter().flat_map(|effect| match effect {
            Effect::StopCommands { calls, .. } => calls.clone(),
            _ => Vec::new(),
        }));
        let stops = call_id.is_none() && !plan.events.is_empty();
        let stopped = AbortOutcome { turn: turn.filter(|_| stops), calls, survivors: Vec::new() };
        let idempotency = keyed.and_then(|(method, keyed)| self.reply_row(method, Some(keyed), &stopped));
        // The write needs a disk sync. The work must not continue meanwhile.
        plan.effects.iter().for_each(|effect| self.stop_now(effect));
        self.commit(&mut plan, idempotency).await
    }

    fn with_method(
        method: &'static str,
        keyed: Option<IdempotencyKey>,
    ) -> Option<(&'static str, IdempotencyKey)> {
        keyed.map(|keyed| (method, keyed))
    }

    async fn remembered<T: serde::de::DeserializeOwned>(
        &self,
        method: &'static str,
        keyed: Option<&IdempotencyKey>,
    ) -> Result<Option<T>, SessionError> {
        let Some(keyed) = keyed else { return Ok(None) };
        remembered(&self.shared.store, method, self.id, keyed).await
    }

    fn reply_row<T: serde::Serialize>(
        &self,
        method: &'static str,
        keyed: Option<IdempotencyKey>,
        reply: &T,
    ) -> Option<Idempotency> {
        let keyed = keyed?;
        let reply = serde_json::to_string(reply).ok()?;
        Some(Idempotency { method, key: scoped(self.id, &keyed.key), digest: keyed.digest, reply })
    }
}

/// The stored reply of an earlier call with this key.
pub(in crate::session) async fn remembered<T: serde::de::DeserializeOwned>(
    store: &Store,
    method: &'static str,
    id: SessionId,
    keyed: &IdempotencyKey,
) -> Result<Option<T>, SessionError> {
    let Some(known) = store.remembered(method, &scoped(id, &keyed.key)).await? else { return Ok(None) };
    if known.digest != keyed.digest {
        return Err(SessionError::Conflict("idempotency_key"));
    }
    Ok(serde_json::from_str(&known.reply).ok())
}

/// Prefixes the key with the session id, because two sessions may use the same key.
pub(in crate::session) fn scoped(id: SessionId, key: &str) -> String {
    format!("{id}:{key}")
}

fn refuse_command(command: SessionCommand) {
    match command {
        SessionCommand::Submit(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Answer(_, _, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::PendingCall(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Update(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Rule { reply, .. } => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Rules(reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::AnswerQuestion(_, reply) => drop(reply.send(Err(SessionError::ShuttingDown))),
        SessionCommand::Abort { reply, .. } | SessionCommand::Kill { reply, .. } => {
            drop(reply.send(Err(SessionError::ShuttingDown)));
        }
        SessionCommand::Attach(attachment, reply) => drop(reply.send(Ok(attachment))),
        SessionCommand::Reloaded { .. } => {}
        SessionCommand::Park { reply, .. } => drop(reply.send(())),
        SessionCommand::Unload => {}
        #[cfg(test)]
        SessionCommand::Panic => {}
    }
}
