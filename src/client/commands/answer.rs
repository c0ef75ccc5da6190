//! `agentctl answer`: answers questions of the model, about a call with an unknown outcome, or about a paused turn.

use crate::answer::question;
use crate::connection::client::{CallError, Client};
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::ui::question::question_lines;
use api::methods;
use api::params::{AnswerParams, EventsParams, ListParams};
use types::event::Event;
use types::ids::{QuestionId, SessionId};
use types::question::Question;
use types::session::{Requires, SessionState, SessionView};

pub(crate) async fn answer(
    reach: &Connector,
    name: &str,
    typed: &[String],
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let request_id = find(&client, name).await?;
    let open = all_open(&client).await?;
    let open =
        open.into_iter().map(|(_, question)| question).find(|question| question.request_id == request_id);
    let choice = typed.join(", ");
    let params = match open.filter(question::is_typed) {
        Some(question) => answers_of(&question, typed)?,
        // Ask the daemon also about a question that is no longer open, because it knows which client
        // answered.
        None => question::params(request_id, &choice),
    };
    let reply = match client.call::<methods::session::Answer>(&params).await {
        Err(CallError::Fault(fault)) if fault.kind() == "not_found" => return Err(no_question(name)),
        reply => reply?,
    };
    let choice = escape::line(&choice).into_owned();
    // Name the question and its session as the user did.
    let is_number = name.trim_start_matches('#').chars().all(|c| c.is_ascii_digit());
    let what = match is_number {
        true => format!("#{}", name.trim_start_matches('#')),
        false => format!("{request_id} (session {})", reply.session_id),
    };
    Ok(out.say(&format!("answered {what}: {choice}"))?)
}

/// The parameters of typed answers, one for each question of the model.
fn answers_of(question: &Question, typed: &[String]) -> Result<AnswerParams, Failure> {
    let questions = &question.questions;
    // Several words without quotes form one answer.
    let joined = [typed.join(" ")];
    let typed = if questions.len() == 1 { joined.as_slice() } else { typed };
    if questions.len() != typed.len() {
        let list: Vec<String> =
            question_lines(question).iter().map(|line| format!("\n{}", line.plain())).collect();
        let message = format!(
            "{} questions need as many answers, got {}:{}",
            questions.len(),
            typed.len(),
            list.concat()
        );
        return Err(Failure::usage(message));
    }
    let answers = questions.iter().zip(typed).map(|(question, typed)| question::parse(question, typed));
    let answers = answers.collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?;
    Ok(question::answers(question.request_id, answers))
}

/// The question that `name` identifies: its id, a start of it, or a session with exactly one open
/// question.
async fn find(client: &Client, name: &str) -> Result<QuestionId, Failure> {
    // Send a full id to the daemon unchanged. If the question is no longer open, the daemon knows which
    // client answered it.
    if let Ok(id) = name.parse::<QuestionId>() {
        return Ok(id);
    }
    let open: Vec<QuestionId> = if name.starts_with("ask_") {
        let all = all_open(client).await?;
        all.into_iter().map(|(_, q)| q.request_id).filter(|id| id.to_string().starts_with(name)).collect()
    } else {
        let session = resolve_id::session(client, name).await?;
        of_session(client, session.session_id).await?.into_iter().map(|q| q.request_id).collect()
    };
    match open.as_slice() {
        [] => Err(no_question(name)),
        [one] => Ok(*one),
        several => {
            let list: Vec<String> = several.iter().map(|id| format!("\n  {id}")).collect();
            let name = escape::line(name);
            Err(Failure::usage(format!("{name} could be any of these:{}", list.concat())))
        }
    }
}

fn no_question(name: &str) -> Failure {
    Failure::internal(format!(
        "no question {} waits for an answer; `agentctl approvals` lists what waits",
        escape::line(name)
    ))
}

/// Every open question with its session.
pub(crate) async fn all_open(client: &Client) -> Result<Vec<(SessionView, Question)>, Failure> {
    let states = Some(vec![SessionState::RequiresAction, SessionState::Paused]);
    let waiting = resolve_id::all_sessions(
        client,
        &ListParams { states, include_children: true, ..ListParams::default() },
    )
    .await?;
    let mut open = Vec::new();
    for session in waiting {
        let asks = matches!(
            session.summary.requires,
            Some(Requires::UnknownOutcome | Requires::Question | Requires::Permission)
        );
        if session.summary.state == SessionState::Paused || asks {
            let questions = of_session(client, session.session_id).await?;
            open.extend(questions.into_iter().map(|question| (session.clone(), question)));
        }
    }
    Ok(open)
}

async fn of_session(client: &Client, session_id: SessionId) -> Result<Vec<Question>, Failure> {
    let mut open: Vec<Question> = Vec::new();
    let params = EventsParams { limit: Some(1_000), ..EventsParams::for_session(session_id) };
    let mut pages = client.pages::<methods::session::Events>(params);
    while let Some(page) = pages.next().await? {
        for envelope in page.events {
            match envelope.event {
                Event::QuestionRequested { question } => open.push(question),
                Event::QuestionResolved { request_id, .. } => open.retain(|q| q.request_id != request_id),
                _ => {}
            }
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::{FakeDaemon, SESSION};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[tokio::test]
    async fn reply_names_question_as_user_did() {
        const QUESTION: &str = "ask_0190f2a4-0000-7000-8000-000000000006";
        let fake = FakeDaemon::start(|journal, method, _| {
            let mut session = sample(SESSION, "one");
            (session["state"], session["number"]) = (json!("paused"), json!(12));
            Ok(match method {
                "session.get" => json!({ "session": session }),
                "session.list" => json!({"sessions": [session]}),
                "session.events" => json!({"events": journal.rows(), "last_seq": 1}),
                _ => json!({"session_id": SESSION, "seq": 2}),
            })
        });
        fake.journal.push([json!({"type": "question.requested", "request_id": QUESTION, "kind": "resume",
            "text": "Go on?", "options": ["continue", "abort"]})]);
        let by_id = format!("answered {QUESTION} (session {SESSION}): continue\n");
        for (name, expected) in
            [("12", "answered #12: continue\n"), ("#12", "answered #12: continue\n"), (QUESTION, &by_id)]
        {
            let (mut out, text, _) = captured_output();
            answer(&fake.connector(), name, &["continue".into()], &mut out).await.expect("answered");
            assert_eq!(text.text(), expected, "{name}");
            assert_eq!(fake.calls().pop().expect("a call").1["request_id"], QUESTION);
        }
    }
}
