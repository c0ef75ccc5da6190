//! `session.approve`, `permission.respond`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{AnswerError, ApproveParams, ApproveReply, ApproveResult, Approved};
use session::IdempotencyKey;
use types::event::Origin;

/// Maximum number of answers per call.
const MAX_ANSWERS: usize = 256;

pub(super) async fn approve(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: ApproveParams,
) -> Result<ApproveReply, Fault> {
    let key = p.idempotency_key.take();
    let Some(answers) = p.answers.take() else {
        let keyed = convert::idempotency_key(key, &p);
        return approve_one(&ctx, caller.origin(), keyed, p).await.map(ApproveReply::One);
    };
    let alone = p.request_id.is_none() && p.decision.is_none();
    if !alone {
        return Err(convert::invalid_param("answers", "give one answer or a list of them, not both"));
    }
    if answers.is_empty() || answers.len() > MAX_ANSWERS {
        return Err(convert::invalid_param(
            "answers",
            &format!("expected 1 to {MAX_ANSWERS} answers, got {}", answers.len()),
        ));
    }
    let mut results = Vec::with_capacity(answers.len());
    for (at, answer) in answers.into_iter().enumerate() {
        let request_id = answer.request_id;
        // The key belongs to the whole call, so the reply to each answer is stored under the key and
        // the answer's index.
        let keyed = convert::idempotency_key(key.as_ref().map(|key| format!("{key}#{at}")), &answer);
        let taken = approve_one(&ctx, caller.origin(), keyed, answer).await;
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

async fn approve_one(
    ctx: &RpcContext,
    origin: Origin,
    keyed: Option<IdempotencyKey>,
    p: ApproveParams,
) -> Result<Approved, Fault> {
    let answer = convert::permission_answer(p, keyed, origin)?;
    let (session_id, answered) = ctx.registry.answer_permission(answer).await.map_err(convert::fault)?;
    Ok(Approved { session_id, seq: answered.seq, grant: answered.grant })
}
