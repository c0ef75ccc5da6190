//! `session.submit`

use std::sync::Arc;

use super::params::Caller;
use crate::context::RpcContext;
use crate::{convert, input_files};
use api::params::SubmitParams;
use api::{Fault, methods};
use session::Submission;
use types::outcome::SubmitOutcome;

pub(super) async fn submit(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: SubmitParams,
) -> Result<SubmitOutcome, Fault> {
    let keyed = convert::ordered_idempotency_key::<methods::session::Submit>(p.idempotency_key.take(), &p);
    let submission = Submission {
        when_busy: p.when_busy,
        expected_turn: p.expected_turn_id,
        options: p.options(),
        raw: p.raw,
        runs_hooks: true,
        keyed,
        origin: caller.origin(),
    };
    let input = input_files::ingest(&ctx, p.session_id, p.input);
    ctx.registry.submit(p.session_id, submission, convert::fault, input).await
}
