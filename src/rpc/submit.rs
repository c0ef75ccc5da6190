//! `session.submit`

use std::sync::Arc;

use super::params::Caller;
use crate::api::Fault;
use crate::api::params::{SubmitParams, SubmitReply, SubmitState, WhenBusy};
use crate::rpc::context::RpcContext;
use crate::rpc::{convert, input_files};
use crate::session::{Busy, Submission};
use crate::types::outcome::{SubmitOutcome, SubmittedAs};

pub(super) async fn submit(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: SubmitParams,
) -> Result<SubmitReply, Fault> {
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let submission = Submission {
        when_busy: match p.when_busy {
            None => Busy::Unspecified,
            Some(WhenBusy::Queue) => Busy::Queue,
            Some(WhenBusy::Steer) => Busy::Steer,
            Some(WhenBusy::Interrupt) => Busy::Interrupt,
            Some(WhenBusy::Reject) => Busy::Reject,
        },
        expected_turn: p.expected_turn_id,
        options: p.options(),
        raw: p.raw,
        runs_hooks: true,
        keyed,
        origin: caller.origin(),
    };
    let input = input_files::ingest(&ctx, p.session_id, p.input);
    ctx.registry.submit(p.session_id, submission, input).await.map(reply)
}

fn reply(submitted: SubmitOutcome) -> SubmitReply {
    SubmitReply {
        turn_id: submitted.turn_id,
        state: match submitted.state {
            SubmittedAs::Running => SubmitState::Running,
            SubmittedAs::Queued => SubmitState::Queued,
            SubmittedAs::Steered => SubmitState::Steered,
            SubmittedAs::Completed => SubmitState::Completed,
        },
        seq: submitted.seq,
        text: submitted.text,
    }
}
