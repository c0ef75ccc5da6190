//! Calls that commands and the attach view make with the same parameters.

use crate::connection::client::Client;
use crate::connection::wire::CallError;
use crate::failure::Failure;
use api::methods;
use api::params::{ListParams, SessionReply, SubmitInput, SubmitParams, UpdateParams};
use types::ids::SessionId;
use types::outcome::SubmitOutcome;
use types::permission::Mode;
use types::queue::WhenBusy;
use types::session::SessionView;
use types::turn_options::TurnOptions;

/// All sessions, newest first.
pub async fn all_sessions(client: &Client, filter: &ListParams) -> Result<Vec<SessionView>, Failure> {
    let params = ListParams { limit: Some(500), ..filter.clone() };
    Ok(client.all_rows::<methods::session::List>(params).await?)
}

/// Submits input to a session. Without `when_busy`, the input is queued while a turn runs, or answers an open
/// question with "continue".
pub(crate) async fn submit(
    client: &Client,
    session_id: SessionId,
    input: impl Into<SubmitInput>,
    when_busy: Option<WhenBusy>,
) -> Result<SubmitOutcome, Failure> {
    let params = submit_params(session_id, input.into(), when_busy, TurnOptions::default());
    Ok(client.call::<methods::session::Submit>(&params).await?)
}

/// The parameters of a submission with a new idempotency key.
pub(crate) fn submit_params(
    session_id: SessionId,
    input: SubmitInput,
    when_busy: Option<WhenBusy>,
    options: TurnOptions,
) -> SubmitParams {
    let idempotency_key = Some(idempotency_key());
    SubmitParams { when_busy, idempotency_key, ..SubmitParams::new(session_id, input) }.with_options(options)
}

/// Changes settings of a session.
pub(crate) async fn update(
    client: &Client,
    session_id: SessionId,
    mode: Option<Mode>,
    title: Option<String>,
) -> Result<SessionReply, CallError> {
    let params = UpdateParams { title, mode, ..UpdateParams::new(session_id) };
    client.call::<methods::session::Update>(&params).await
}

/// An idempotency key, which makes a repeated call harmless.
pub(crate) fn idempotency_key() -> String {
    uuid::Uuid::now_v7().to_string()
}
