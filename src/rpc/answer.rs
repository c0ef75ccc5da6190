//! `session.answer` and `session.feedback`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{AnswerParams, AnswerReply, FeedbackParams};
use api::{Code, Fault};
use session::{QuestionAnswer, QuestionReply};
use types::question::Choice;

/// Maximum number of answers per call.
const MAX_ANSWERS: usize = 64;

pub(super) async fn answer(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: AnswerParams,
) -> Result<AnswerReply, Fault> {
    let reply = match (&p.choice, &p.answers) {
        (Some(choice), None) => QuestionReply::Choice(parse_choice(choice)?),
        (None, Some(answers)) if answers.len() > MAX_ANSWERS => {
            let why = format!("expected at most {MAX_ANSWERS} answers, got {}", answers.len());
            return Err(convert::invalid_param("answers", &why));
        }
        (None, Some(answers)) => QuestionReply::Answers(answers.clone()),
        (Some(_), Some(_)) => {
            return Err(convert::invalid_param("answers", "give either choice or answers, not both"));
        }
        (None, None) => return Err(convert::invalid_param("answers", "give either choice or answers")),
    };
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let chosen = QuestionAnswer { request_id: p.request_id, reply, keyed, origin: caller.origin() };
    let (session_id, seq) = ctx.registry.answer_question(chosen).await.map_err(convert::fault)?;
    Ok(AnswerReply { session_id, seq })
}

fn parse_choice(name: &str) -> Result<Choice, Fault> {
    Choice::of_name(name).ok_or_else(|| {
        let options = Choice::ALL.map(Choice::name);
        let why = format!(
            "choice: {name:?} is not one of the options: {}; a question of a model or a server takes `answers`",
            options.join(", ")
        );
        Fault::new(Code::InvalidParams, why)
            .with("path", "choice")
            .with("options", serde_json::json!(options))
    })
}

pub(super) async fn feedback(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: FeedbackParams,
) -> Result<AnswerReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let reply = QuestionReply::Answer(p.item_id);
    let chosen = QuestionAnswer { request_id: p.request_id, reply, keyed, origin: caller.origin() };
    let (session_id, seq) = ctx.registry.answer_question(chosen).await.map_err(convert::fault)?;
    Ok(AnswerReply { session_id, seq })
}
