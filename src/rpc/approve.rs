//! `session.approve`

use std::sync::Arc;

use super::convert;
use super::office::Office;
use super::params::Caller;
use crate::api::params::{ApproveParams, ApproveReply};
use crate::api::{Code, Fault};
use crate::session::Answer;
use crate::types::permission::Scope;

pub(super) async fn approve(
    office: Arc<Office>,
    caller: Caller,
    mut p: ApproveParams,
) -> Result<ApproveReply, Fault> {
    if p.scope == Scope::Project {
        let why = "scope: project grants are not built yet; use once or session";
        return Err(Fault::new(Code::Unsupported, why).with("path", "scope"));
    }
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let answer = Answer {
        request_id: p.request_id,
        decision: p.decision,
        scope: p.scope,
        grant: p.grant,
        feedback: p.feedback,
        keyed,
        origin: caller.origin(),
    };
    let (session_id, answered) = office.registry.answer(answer).await.map_err(convert::fault)?;
    Ok(ApproveReply { session_id, seq: answered.seq, grant: answered.grant })
}
