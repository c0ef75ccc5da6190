//! `session.answer`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::api::params::{AnswerParams, AnswerReply};
use crate::api::{Code, Fault};
use crate::rpc::context::RpcContext;
use crate::session::QuestionAnswer;
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
    let chosen = QuestionAnswer { request_id: p.request_id, choice, keyed, origin: caller.origin() };
    let (session_id, seq) = ctx.registry.answer_question(chosen).await.map_err(convert::fault)?;
    Ok(AnswerReply { session_id, seq })
}
