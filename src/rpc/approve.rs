//! `session.approve`, `permission.respond`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::api::params::{AnswerError, ApproveParams, ApproveReply, ApproveResult, Approved};
use crate::api::{Code, Fault};
use crate::rpc::context::RpcContext;
use crate::session::{IdempotencyKey, PermissionAnswer};
use crate::types::depth;
use crate::types::event::Origin;
use crate::types::permission::{Decision, Scope};

/// Maximum number of answers per call.
const MOST: usize = 256;

pub(super) async fn approve(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: ApproveParams,
) -> Result<ApproveReply, Fault> {
    let key = p.idempotency_key.take();
    let Some(answers) = p.answers.take() else {
        let keyed = convert::keyed(key, &p);
        return one(&ctx, caller.origin(), keyed, p).await.map(ApproveReply::One);
    };
    let alone = p.request_id.is_none() && p.decision.is_none();
    if !alone {
        return Err(wrong("answers", "give one answer or a list of them, not both"));
    }
    if answers.is_empty() || answers.len() > MOST {
        return Err(wrong("answers", &format!("expected 1 to {MOST} answers, got {}", answers.len())));
    }
    let mut results = Vec::with_capacity(answers.len());
    for (at, answer) in answers.into_iter().enumerate() {
        let request_id = answer.request_id;
        // The key belongs to the whole call, so each answer's reply is stored under the key and its index.
        let keyed = convert::keyed(key.as_ref().map(|key| format!("{key}#{at}")), &answer);
        let taken = one(&ctx, caller.origin(), keyed, answer).await;
        let (approved, error) = match taken {
            Ok(approved) => (Some(approved), None),
            Err(fault) => (None, Some(error(&fault))),
        };
        results.push(ApproveResult { request_id, approved, error });
    }
    Ok(ApproveReply::Several { results })
}

fn error(fault: &Fault) -> AnswerError {
    AnswerError { code: fault.code.number(), message: fault.message.clone(), data: fault.data() }
}

fn wrong(path: &str, why: &str) -> Fault {
    Fault::new(Code::InvalidParams, format!("{path}: {why}")).with("path", path)
}

async fn one(
    ctx: &RpcContext,
    origin: Origin,
    keyed: Option<IdempotencyKey>,
    p: ApproveParams,
) -> Result<Approved, Fault> {
    if p.answers.is_some() {
        return Err(wrong("answers", "an answer holds no further answers"));
    }
    let request_id = p.request_id.ok_or_else(|| wrong("request_id", "missing field `request_id`"))?;
    let decision = p.decision.ok_or_else(|| wrong("decision", "missing field `decision`"))?;
    let allows = decision == Decision::Allow;
    if p.grant.is_some() && !(allows && p.scope != Scope::Once) {
        return Err(wrong("grant", "goes with decision allow and scope session or project only"));
    }
    if !allows && p.scope != Scope::Once {
        return Err(wrong("scope", "a denial is for this call only; leave scope out"));
    }
    if p.stop && allows {
        return Err(wrong("stop", "goes with decision deny only; session.abort stops a turn"));
    }
    if p.no_approver && (allows || p.feedback.is_some()) {
        return Err(wrong("no_approver", "goes with decision deny and without feedback only"));
    }
    if p.updated_input.is_some() && !(allows && p.scope == Scope::Once) {
        return Err(wrong("updated_input", "goes with decision allow and scope once only"));
    }
    if p.updated_input.as_ref().is_some_and(|input| !input.is_object()) {
        return Err(wrong("updated_input", "expected an object, as the tool takes it"));
    }
    if p.updated_input.as_ref().is_some_and(|input| !depth::is_readable(input)) {
        return Err(wrong("updated_input", "it has too many levels of lists and objects (at most 96)"));
    }
    let answer = PermissionAnswer {
        request_id,
        decision,
        scope: p.scope,
        grant: p.grant,
        feedback: p.feedback,
        stop: p.stop,
        no_approver: p.no_approver,
        updated_input: p.updated_input,
        digest: p.digest,
        keyed,
        origin,
    };
    let (session_id, answered) = ctx.registry.answer(answer).await.map_err(convert::fault)?;
    Ok(Approved { session_id, seq: answered.seq, grant: answered.grant })
}
