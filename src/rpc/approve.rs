//! `session.approve`

use std::sync::Arc;

use super::convert;
use super::office::Office;
use super::params::Caller;
use crate::api::params::{ApproveParams, ApproveReply};
use crate::api::{Code, Fault};
use crate::session::Answer;
use crate::types::permission::{Decision, Scope};

pub(super) async fn approve(
    office: Arc<Office>,
    caller: Caller,
    mut p: ApproveParams,
) -> Result<ApproveReply, Fault> {
    if p.scope == Scope::Project {
        let why = "scope: project grants are not built yet; use once or session";
        return Err(Fault::new(Code::Unsupported, why).with("path", "scope"));
    }
    let lasting = p.decision == Decision::Allow && p.scope == Scope::Session;
    if p.grant.is_some() && !lasting {
        let why = "grant: goes with decision allow and scope session only";
        return Err(Fault::new(Code::InvalidParams, why).with("path", "grant"));
    }
    if p.decision == Decision::Deny && p.scope != Scope::Once {
        let why = "scope: a denial is for this call only; leave scope out";
        return Err(Fault::new(Code::InvalidParams, why).with("path", "scope"));
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
