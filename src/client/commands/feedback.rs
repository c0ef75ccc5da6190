//! `agentctl feedback`: chooses one of two answers of the model.

use crate::connection::client::{CallError, Client};
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::session_name;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{EventsParams, FeedbackParams};
use types::event::Event;
use types::ids::{ItemId, QuestionId};
use types::session::{SessionState, SessionView};

/// An open request with its answers.
struct OpenFeedback {
    session: SessionView,
    request_id: QuestionId,
    item_ids: Vec<ItemId>,
}

pub(crate) async fn feedback(
    reach: &Connector,
    name: &str,
    answer: &str,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let OpenFeedback { session, request_id, item_ids } = find(&client, name).await?;
    let index = match answer.parse::<usize>() {
        Ok(number) => number.checked_sub(1),
        Err(_) => item_ids.iter().position(|item_id| item_id.to_string() == answer),
    };
    let Some((index, item_id)) = index.and_then(|index| Some((index, *item_ids.get(index)?))) else {
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
    let chosen = match out.is_terminal() {
        true => format!("{}: answer {} is chosen", session_name(&session), index + 1),
        false => format!("chosen: {item_id} (session {})", reply.session_id),
    };
    Ok(out.say(&chosen)?)
}

/// The open request that `name` identifies: the request's id, or the session that waits for it.
async fn find(client: &Client, name: &str) -> Result<OpenFeedback, Failure> {
    if name.starts_with("ask_") {
        let states = Some(vec![SessionState::RequiresAction]);
        let params = api::params::ListParams { states, include_children: true, ..Default::default() };
        for session in resolve_id::all_sessions(client, &params).await? {
            if let Some(open) = open_in(client, session).await?
                && open.request_id.to_string().starts_with(name)
            {
                return Ok(open);
            }
        }
        return Err(no_open_feedback(name));
    }
    let session = resolve_id::session(client, name).await?;
    open_in(client, session).await?.ok_or_else(|| no_open_feedback(name))
}

fn no_open_feedback(name: &str) -> Failure {
    Failure::internal(format!("no choice between two answers is open for {}", escape::line(name)))
}

async fn open_in(client: &Client, session: SessionView) -> Result<Option<OpenFeedback>, Failure> {
    let mut open = None;
    let params = EventsParams { limit: Some(1_000), ..EventsParams::for_session(session.session_id) };
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
    Ok(open.map(|(request_id, item_ids)| OpenFeedback { session, request_id, item_ids }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::{FakeDaemon, ITEM, SESSION};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::{captured_output, captured_pipe};
    use serde_json::json;

    #[tokio::test]
    async fn feedback_prints_numbers_on_terminal_and_ids_in_pipe() {
        const SECOND: &str = "item_0190f2a4-0000-7000-8000-000000000008";
        const QUESTION: &str = "ask_0190f2a4-0000-7000-8000-000000000006";
        let fake = FakeDaemon::start(|journal, method, _| match method {
            "session.events" => Ok(json!({"events": journal.rows(), "last_seq": 1})),
            "session.feedback" => Ok(json!({"session_id": SESSION, "seq": 2})),
            _ => {
                let mut session = sample(SESSION, "one");
                session["number"] = json!(12);
                Ok(json!({ "session": session }))
            }
        });
        fake.journal
            .push([json!({"type": "feedback.request", "request_id": QUESTION, "item_ids": [ITEM, SECOND]})]);
        let in_pipe = format!("chosen: {SECOND} (session {SESSION})\n");
        for ((mut out, text, _), answer, expected) in [
            (captured_output(), "2", "#12: answer 2 is chosen\n"),
            (captured_output(), SECOND, "#12: answer 2 is chosen\n"),
            (captured_pipe(), "2", &in_pipe),
        ] {
            feedback(&fake.connector(), "12", answer, &mut out).await.expect("chosen");
            assert_eq!(text.text(), expected);
            assert_eq!(fake.calls().pop().expect("a call").1["item_id"], SECOND);
        }
        for answer in ["0", "3", "item_x"] {
            let (mut out, _, _) = captured_output();
            let failure =
                feedback(&fake.connector(), "12", answer, &mut out).await.expect_err("no such answer");
            assert_eq!(failure.code, 64, "{answer}");
        }
    }
}
