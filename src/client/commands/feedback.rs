//! `agentctl feedback`: chooses one of two answers of the model.

use crate::connection::client::{CallError, Client};
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{EventsParams, FeedbackParams};
use types::event::Event;
use types::ids::{ItemId, QuestionId, SessionId};
use types::session::{SessionState, SessionView};

/// An open request with its answers.
type OpenFeedback = (QuestionId, Vec<ItemId>);

pub(crate) async fn feedback(
    reach: &Connector,
    name: &str,
    answer: &str,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let (request_id, item_ids) = find(&client, name).await?;
    let item_id = match answer.parse::<usize>() {
        Ok(number) => item_ids.get(number.wrapping_sub(1)).copied(),
        Err(_) => answer.parse::<ItemId>().ok(),
    };
    let Some(item_id) = item_id else {
        let answer = escape::line(answer);
        return Err(Failure::usage(format!(
            "there is no answer {answer}; choose 1 or 2, or give an item id"
        )));
    };
    let params = FeedbackParams { request_id, item_id, idempotency_key: None };
    let reply = match client.call::<methods::session::Feedback>(&params).await {
        Err(CallError::Fault(fault)) if fault.kind() == "not_found" => return Err(no_open_feedback(name)),
        reply => reply?,
    };
    Ok(out.say(&format!("chosen: {item_id} (session {})", reply.session_id))?)
}

/// The open request that `name` identifies: the request's id, or the session that waits for it.
async fn find(client: &Client, name: &str) -> Result<OpenFeedback, Failure> {
    if name.starts_with("ask_") {
        let states = Some(vec![SessionState::RequiresAction]);
        let params = api::params::ListParams { states, include_children: true, ..Default::default() };
        for session in resolve_id::all_sessions(client, &params).await? {
            if let Some(open) = open_in(client, session.session_id).await?
                && open.0.to_string().starts_with(name)
            {
                return Ok(open);
            }
        }
        return Err(no_open_feedback(name));
    }
    let SessionView { session_id, .. } = resolve_id::session(client, name).await?;
    open_in(client, session_id).await?.ok_or_else(|| no_open_feedback(name))
}

fn no_open_feedback(name: &str) -> Failure {
    Failure::internal(format!("no choice between two answers is open for {}", escape::line(name)))
}

async fn open_in(client: &Client, session_id: SessionId) -> Result<Option<OpenFeedback>, Failure> {
    let mut open = None;
    let params = EventsParams { limit: Some(1_000), ..EventsParams::for_session(session_id) };
    let mut pages = client.pages::<methods::session::Events>(params);
    while let Some(page) = pages.next().await? {
        for envelope in page.events {
            match envelope.event {
                Event::FeedbackRequested { request_id, item_ids } => open = Some((request_id, item_ids)),
                Event::FeedbackCompleted { .. } => open = None,
                _ => {}
            }
        }
    }
    Ok(open)
}
