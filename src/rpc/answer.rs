//! `session.answer` and `session.feedback`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::api::params::{AnswerParams, AnswerReply, FeedbackParams};
use crate::api::{Code, Fault};
use crate::rpc::context::RpcContext;
use crate::session::{QuestionAnswer, QuestionReply};
use crate::types::question::Choice;

pub(super) async fn answer(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: AnswerParams,
) -> Result<AnswerReply, Fault> {
    let Some(choice) = Choice::of_name(&p.choice) else {
        let options = Choice::ALL.map(Choice::name);
        let why = format!("choice: {:?} is none of the options: {}", p.choice, options.join(", "));
        return Err(Fault::new(Code::InvalidParams, why)
            .with("path", "choice")
            .with("options", serde_json::json!(options)));
    };
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let reply = QuestionReply::Choice(choice);
    let chosen = QuestionAnswer { request_id: p.request_id, reply, keyed, origin: caller.origin() };
    let (session_id, seq) = ctx.registry.answer_question(chosen).await.map_err(convert::fault)?;
    Ok(AnswerReply { session_id, seq })
}

pub(super) async fn feedback(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: FeedbackParams,
) -> Result<AnswerReply, Fault> {
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let reply = QuestionReply::Answer(p.item_id);
    let chosen = QuestionAnswer { request_id: p.request_id, reply, keyed, origin: caller.origin() };
    let (session_id, seq) = ctx.registry.answer_question(chosen).await.map_err(convert::fault)?;
    Ok(AnswerReply { session_id, seq })
}
