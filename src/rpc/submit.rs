//! `session.submit`

use std::sync::Arc;

use super::params::Caller;
use crate::api::Fault;
use crate::api::params::{SubmitParams, SubmitReply, SubmitState, WhenBusy};
use crate::rpc::context::RpcContext;
use crate::rpc::{convert, input_files};
use crate::session::{Busy, Submission, SubmitOutcome, SubmittedAs};
use crate::types::sampling::Sampling;

pub(super) async fn submit(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: SubmitParams,
) -> Result<SubmitReply, Fault> {
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let budgets = match p.budgets {
        Some(budgets) => {
            Some(ctx.registry.turn_budgets(p.session_id, budgets).await.map_err(convert::fault)?)
        }
        None => None,
    };
    let model = p.model.as_deref().map(|model| ctx.registry.known_model(model)).transpose();
    let model = model.map_err(convert::fault)?;
    let tools = p.tools.map(|tools| ctx.registry.known_tools(tools)).transpose().map_err(convert::fault)?;
    if let Some(mode) = p.mode {
        ctx.registry.check_mode(mode).map_err(convert::fault)?;
    }
    if let (Some(keyed), false) = (&keyed, input_files::is_plain(&p.input))
        && let Some(known) = ctx.registry.submitted(p.session_id, keyed).await.map_err(convert::fault)?
    {
        // Files may have changed since the first call, so return its reply without reading them again.
        return Ok(reply(&known));
    }
    let given = input_files::ingest(&ctx, p.session_id, p.input).await?;
    let submission = Submission {
        input: given.blocks,
        blobs: given.blobs,
        when_busy: match p.when_busy {
            None => Busy::Unspecified,
            Some(WhenBusy::Queue) => Busy::Queue,
            Some(WhenBusy::Steer) => Busy::Steer,
            Some(WhenBusy::Interrupt) => Busy::Interrupt,
            Some(WhenBusy::Reject) => Busy::Reject,
        },
        expected_turn: p.expected_turn_id,
        budgets,
        mode: p.mode,
        model,
        thinking: p.thinking,
        tools,
        sampling: Sampling { temperature: p.temperature, top_p: p.top_p },
        keyed,
        origin: caller.origin(),
    };
    let session = ctx.registry.open(p.session_id).await.map_err(convert::fault)?;
    let submitted = session.submit(submission).await.map_err(convert::fault)?;
    Ok(reply(&submitted))
}

fn reply(submitted: &SubmitOutcome) -> SubmitReply {
    SubmitReply {
        turn_id: submitted.turn_id,
        state: match submitted.state {
            SubmittedAs::Running => SubmitState::Running,
            SubmittedAs::Queued => SubmitState::Queued,
            SubmittedAs::Steered => SubmitState::Steered,
        },
        seq: submitted.seq,
    }
}
