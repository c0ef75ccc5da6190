//! `session.submit`

use std::sync::Arc;

use super::convert;
use super::office::Office;
use super::params::Caller;
use crate::api::Fault;
use crate::api::params::{SubmitInput, SubmitParams, SubmitReply, SubmitState, WhenBusy};
use crate::session::{Busy, Submission, SubmittedAs};
use crate::types::message::InputBlock;

pub(super) async fn submit(
    office: Arc<Office>,
    caller: Caller,
    mut p: SubmitParams,
) -> Result<SubmitReply, Fault> {
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let budgets = match p.budgets {
        Some(budgets) => {
            Some(office.registry.turn_budgets(p.session_id, budgets).await.map_err(convert::fault)?)
        }
        None => None,
    };
    let model = p.model.as_deref().map(|model| office.registry.known_model(model)).transpose();
    let model = model.map_err(convert::fault)?;
    if let Some(mode) = p.mode {
        office.registry.check_mode(mode).map_err(convert::fault)?;
    }
    let submission = Submission {
        input: match p.input {
            SubmitInput::Text(text) => vec![InputBlock::Text { text }],
            SubmitInput::Blocks(blocks) => blocks,
        },
        when_busy: match p.when_busy {
            None => Busy::Unsaid,
            Some(WhenBusy::Queue) => Busy::Queue,
            Some(WhenBusy::Steer) => Busy::Steer,
            Some(WhenBusy::Interrupt) => Busy::Interrupt,
            Some(WhenBusy::Reject) => Busy::Reject,
        },
        expected_turn: p.expected_turn_id,
        budgets,
        mode: p.mode,
        model,
        keyed,
        origin: caller.origin(),
    };
    let session = office.registry.open(p.session_id).await.map_err(convert::fault)?;
    let submitted = session.submit(submission).await.map_err(convert::fault)?;
    Ok(SubmitReply {
        turn_id: submitted.turn_id,
        state: match submitted.state {
            SubmittedAs::Running => SubmitState::Running,
            SubmittedAs::Queued => SubmitState::Queued,
            SubmittedAs::Steered => SubmitState::Steered,
        },
        seq: submitted.seq,
    })
}
