//! Calls that commands and the attach view make with the same parameters.

use crate::api::params::{SessionReply, SubmitInput, SubmitParams, SubmitReply, UpdateParams, WhenBusy};
use crate::client::connection::client::Client;
use crate::client::connection::wire::CallError;
use crate::client::failure::Failure;
use crate::types::ids::SessionId;
use crate::types::permission::Mode;

/// Submits input to a session. Without `when_busy` it queues while a turn runs, or answers an open
/// question with "continue".
pub(in crate::client) async fn submit(
    client: &Client,
    session_id: SessionId,
    input: impl Into<SubmitInput>,
    when_busy: Option<WhenBusy>,
) -> Result<SubmitReply, Failure> {
    Ok(client.call("session.submit", &submit_params(session_id, input.into(), when_busy, None)).await?)
}

/// The parameters of a submission with a new idempotency key.
pub(in crate::client) fn submit_params(
    session_id: SessionId,
    input: SubmitInput,
    when_busy: Option<WhenBusy>,
    model: Option<String>,
) -> SubmitParams {
    SubmitParams {
        session_id,
        input,
        when_busy,
        expected_turn_id: None,
        idempotency_key: Some(idempotency_key()),
        budgets: None,
        mode: None,
        model,
        thinking: None,
        tools: None,
        temperature: None,
        top_p: None,
        output_schema: None,
        raw: false,
    }
}

/// Changes settings of a session.
pub(in crate::client) async fn update(
    client: &Client,
    session_id: SessionId,
    mode: Option<Mode>,
    title: Option<String>,
) -> Result<SessionReply, CallError> {
    let params = UpdateParams {
        session_id,
        title,
        mode,
        budgets: None,
        thinking: None,
        temperature: None,
        top_p: None,
        model: None,
        tools: None,
        additional_dirs: None,
        idempotency_key: None,
    };
    client.call("session.update", &params).await
}

/// An idempotency key, which makes a repeated call harmless.
pub(in crate::client) fn idempotency_key() -> String {
    uuid::Uuid::now_v7().to_string()
}
