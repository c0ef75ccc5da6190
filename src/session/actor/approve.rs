//! Answering a permission request. The rules are loaded once per answer and used for every check of it.

use crate::actor::command::ReplyTo;
use crate::actor::commit::UnwrittenPlan;
use crate::actor::{Actor, effects};
use crate::edit_context::EditContext;
use crate::effective_rules::EffectiveRules;
use crate::error::SessionError;
use crate::grant_outbox;
use crate::idempotency::method;
use crate::requests::AnswerRequest;
use engine::{EditedCall, Input, PendingPermission, Refusal, Reply};
use judge::Rule;
use store::PendingGrant;
use types::event::SettledBy;
use types::ids::PermissionId;
use types::outcome::AnswerOutcome;
use types::permission::{Decision, Scope, Verdict, VerdictKind};
use types::tool::PreparedCall;

struct CommittedAnswer {
    outcome: AnswerOutcome,
    /// The rules from now on, if the answer gave a grant.
    extended: Option<EffectiveRules>,
}

impl Actor {
    /// Commits an answer and replies, then settles the other pending requests that its grant allows.
    pub(super) async fn answer_and_approve_matching(
        &mut self,
        request: AnswerRequest,
        reply: ReplyTo<AnswerOutcome>,
    ) {
        let mode_before = self.engine.mode();
        let (result, extended) = match self.answer_permission(request).await {
            Ok(CommittedAnswer { outcome, extended }) => (Ok(outcome), extended),
            Err(error) => (Err(error), None),
        };
        let _ = reply.send(result);
        // An approved plan ends plan mode, and the next mode may cover other requests.
        if mode_before != self.engine.mode() && self.engine.turn_id().is_some() {
            for (request_id, rule) in self.requests_allowed_by(self.engine.mode()).await {
                self.handle_input(Input::AllowedByRule { request_id, by: SettledBy::Mode, rule }).await;
            }
        }
        if let Some(effective) = extended {
            self.approve_matching(&effective).await;
        }
    }

    /// Commits an answer to a permission request, if the rules of this moment permit it.
    async fn answer_permission(&mut self, request: AnswerRequest) -> Result<CommittedAnswer, SessionError> {
        let AnswerRequest { answer, grant, updated_input, edited, keyed, origin } = request;
        if let Some(outcome) = self.remembered(method::APPROVE, keyed.as_ref()).await? {
            return Ok(CommittedAnswer { outcome, extended: None });
        }
        let permission = self.pending_request(answer.request_id)?;
        let effective = EffectiveRules::load(&self.shared, &self.call_context()).await;
        if edited.is_none() && updated_input.is_some() {
            // `SessionHandle::answer_permission` could not prepare `updated_input`, because the request was not pending then.
            return Err(SessionError::Refused(Refusal::NotPending));
        }
        self.check_grant(&effective, &permission, grant.as_ref()).await?;
        match &edited {
            Some(edited) => self.check_edit(&effective, &permission, edited).await?,
            None => self.check_still_permitted(&effective, &permission, answer.decision).await?,
        }
        let (request_id, scope, origin) = (answer.request_id, answer.scope, Some(origin));
        let input = engine::RequestAnswer { answer, edited, origin: origin.clone() };
        let decision = self.decide(Input::Answer(Box::new(input)))?;
        let Reply::Answered(outcome) = decision.reply.clone() else {
            return Err(SessionError::Refused(Refusal::NotPending));
        };
        let pending_grant = outcome.grant.clone().filter(|_| scope == Scope::Project).map(|rule| {
            let entry = grant_outbox::policy_entry(&self.shared, rule, origin, self.id, request_id);
            let spec = self.engine.spec();
            grant_outbox::pending_grant(
                // Grants in a worktree outlive it.
                spec.worktree.as_ref().map_or(&spec.cwd, |worktree| &worktree.base_folder),
                request_id,
                &entry,
            )
        });
        let idempotency = keyed.and_then(|keyed| keyed.row(method::APPROVE, self.id, &outcome));
        let unwritten = UnwrittenPlan {
            idempotency,
            pending_grant: pending_grant.clone(),
            ..UnwrittenPlan::new(decision)
        };
        // Commit the grant first, then write the policy file. After a crash in between, the next start writes
        // the file.
        self.commit(unwritten).await?;
        let is_valid = match pending_grant {
            Some(pending_grant) => self.write_grant(pending_grant).await,
            None => true,
        };
        let granted = outcome.grant.as_deref().filter(|_| is_valid).and_then(|rule| Rule::stored(rule).ok());
        Ok(CommittedAnswer { outcome, extended: granted.map(|grant| effective.with_added_grant(&grant)) })
    }

    /// Writes a grant to its policy file. Returns whether it is valid from now on.
    async fn write_grant(&mut self, pending_grant: PendingGrant) -> bool {
        let Err(error) = grant_outbox::write_grant(&self.shared, pending_grant).await else { return true };
        tracing::error!(session = %self.id, %error, "could not write a grant; the next start tries again");
        let text = format!("the grant for this folder is not effective yet: {error}");
        self.handle_input(Input::Notice { kind: "grant_not_written".into(), text }).await;
        false
    }

    /// The data that a caller needs to prepare changed arguments of a pending call.
    pub(super) async fn edit_context(&self, request_id: PermissionId) -> Result<EditContext, SessionError> {
        let permission = self.pending_request(request_id)?;
        let components = self.shared.components();
        let effective = EffectiveRules::load(&self.shared, &self.call_context()).await;
        let context =
            effective.session_context(&components.settings, self.effects.blobs(), &self.call_context());
        Ok(EditContext { call: permission.call, context, components })
    }

    fn pending_request(&self, request_id: PermissionId) -> Result<PendingPermission, SessionError> {
        let pending = self.engine.pending().into_iter().find(|pending| pending.request_id == request_id);
        pending.ok_or(SessionError::Refused(Refusal::NotPending))
    }

    /// Judges a pending call by current rules, perhaps with changed arguments.
    async fn judge_again(
        &self,
        effective: &EffectiveRules,
        permission: &PendingPermission,
        prepared: &PreparedCall,
    ) -> Verdict {
        let components = self.shared.components();
        effects::judge_prepared(effective, &components, &self.call_context(), &permission.call.tool, prepared)
            .await
    }

    /// Checks that the grant of an answer allows this call. Any other grant is an error.
    async fn check_grant(
        &self,
        effective: &EffectiveRules,
        permission: &PendingPermission,
        grant: Option<&Rule>,
    ) -> Result<(), SessionError> {
        let Some(grant) = grant else { return Ok(()) };
        if permission.outside.is_some() {
            // The engine accepts only the single grant for this purpose.
            return Ok(());
        }
        let extended = effective.with_added_grant(grant);
        let verdict = self.judge_again(&extended, permission, &permission.prepared).await;
        if verdict.verdict == VerdictKind::Allow {
            return Ok(());
        }
        let why =
            format!("{grant} does not cover this call ({}); take one of the suggestions", verdict.reason);
        Err(SessionError::BadParam("grant", why))
    }

    /// A current deny rule overrides the answer to an older request. The same applies to a run without sandbox
    /// that the mode or configuration now forbids. A stricter mode leaves the decision to the user.
    async fn check_still_permitted(
        &self,
        effective: &EffectiveRules,
        permission: &PendingPermission,
        decision: Decision,
    ) -> Result<(), SessionError> {
        if decision != Decision::Allow {
            return Ok(());
        }
        let settings = &self.shared.components().settings;
        if permission.outside.is_some()
            && !settings.engine.offer_unsandboxed_retry.applies_to(self.engine.spec().background)
        {
            let why = "[sandbox] offer_unsandboxed_retry no longer lets commands out of the sandbox: deny it";
            return Err(SessionError::BadParam("decision", why.into()));
        }
        let verdict = self.judge_again(effective, permission, &permission.prepared).await;
        if verdict.verdict == VerdictKind::Deny && (permission.outside.is_some() || verdict.rule.is_some()) {
            let why = format!("the call is not permitted any more: {}; deny it", verdict.reason);
            return Err(SessionError::BadParam("decision", why));
        }
        Ok(())
    }

    /// Changed arguments are judged like the model's own: a denied call stays denied.
    async fn check_edit(
        &self,
        effective: &EffectiveRules,
        permission: &PendingPermission,
        edited: &EditedCall,
    ) -> Result<(), SessionError> {
        let verdict = self.judge_again(effective, permission, &edited.prepared).await;
        if verdict.verdict == VerdictKind::Deny {
            let why = format!("the changed call is not permitted: {}", verdict.reason);
            return Err(SessionError::BadParam("updated_input", why));
        }
        Ok(())
    }

    /// Whether a hook leaves the decision about a pending call to the user. After a restart, only the
    /// journal records this.
    pub(super) fn is_left_to_user(&self, pending: &PendingPermission) -> bool {
        pending.is_left_to_user || self.effects.hook_asks(pending.call.call_id)
    }

    /// Settles the other pending requests that a new grant or rule allows.
    pub(super) async fn approve_matching(&mut self, effective: &EffectiveRules) {
        let call_context = self.call_context();
        let pending = self.engine.pending();
        for pending in pending.into_iter().filter(|it| !self.is_left_to_user(it)).collect::<Vec<_>>() {
            if let Some(grant) = &pending.outside {
                if let Some(rule) = grant.clone().filter(|grant| self.engine.rules().allow.contains(grant)) {
                    let (request_id, by) = (pending.request_id, SettledBy::Rule);
                    self.handle_input(Input::AllowedByRule { request_id, by, rule }).await;
                }
                continue;
            }
            let components = self.shared.components();
            let verdict = effects::judge_prepared(
                effective,
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
}
