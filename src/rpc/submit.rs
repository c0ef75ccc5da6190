//! `session.submit`

use std::sync::Arc;

use super::params::Caller;
use crate::context::RpcContext;
use crate::{convert, input_files};
use api::params::{SubmitParams, SubmitReply, SubmitState, WhenBusy};
use api::{Fault, methods};
use session::{BusyPolicy, Submission};
use types::outcome::{AcceptedState, SubmitOutcome};

pub(super) async fn submit(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: SubmitParams,
) -> Result<SubmitReply, Fault> {
    let keyed = convert::ordered_idempotency_key::<methods::session::Submit>(p.idempotency_key.take(), &p);
    let submission = Submission {
        when_busy: match p.when_busy {
            None => BusyPolicy::Unspecified,
            Some(WhenBusy::Queue) => BusyPolicy::Queue,
            Some(WhenBusy::Steer) => BusyPolicy::Steer,
            Some(WhenBusy::Interrupt) => BusyPolicy::Interrupt,
            Some(WhenBusy::Reject) => BusyPolicy::Reject,
        },
        expected_turn: p.expected_turn_id,
        options: p.options(),
        raw: p.raw,
        runs_hooks: true,
        keyed,
        origin: caller.origin(),
    };
    let input = input_files::ingest(&ctx, p.session_id, p.input);
    ctx.registry.submit(p.session_id, submission, convert::fault, input).await.map(reply)
}

fn reply(submitted: SubmitOutcome) -> SubmitReply {
    SubmitReply {
        turn_id: submitted.turn_id,
        state: match submitted.state {
            AcceptedState::Running => SubmitState::Running,
            AcceptedState::Queued => SubmitState::Queued,
            AcceptedState::Steered => SubmitState::Steered,
            AcceptedState::Completed => SubmitState::Completed,
        },
        seq: submitted.seq,
        text: submitted.text,
    }
}
