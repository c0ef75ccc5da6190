//! `agentctl answer`: answers a question about a call with an unknown outcome, or about a paused turn.

use crate::api::params::{AnswerParams, AnswerReply, EventsParams, EventsReply, ListParams};
use crate::client::connection::client::{CallError, Client};
use crate::client::connection::connector::Connector;
use crate::client::failure::Failure;
use crate::client::resolve_id;
use crate::client::ui::out::Out;
use crate::client::ui::style::{Line, Tone};
use crate::client::ui::summary::{call_summary, one_line};
use crate::client::ui::{escape, prompt};
use crate::types::event::Event;
use crate::types::ids::{QuestionId, SessionId};
use crate::types::question::{Choice, Question, QuestionKind};
use crate::types::session::{Requires, SessionState, SessionView};

/// Number of output lines of a call that are shown with a question.
const OUTPUT_LINES: usize = 6;

pub(in crate::client) async fn answer(
    reach: &Connector,
    name: &str,
    choice: &str,
    out: &mut Out,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let request_id = find(&client, name).await?;
    let params = params(request_id, choice);
    let reply = match client.call::<AnswerReply>("session.answer", &params).await {
        Err(CallError::Fault(fault)) if fault.kind() == "not_found" => return Err(no_question(name)),
        reply => reply?,
    };
    Ok(out.say(&format!("answered {request_id}: {choice} (session {})", reply.session_id))?)
}

/// The parameters of an answer.
pub(in crate::client) fn params(request_id: QuestionId, choice: &str) -> AnswerParams {
    AnswerParams { request_id, choice: choice.into(), idempotency_key: None }
}

/// The question that `name` identifies: its id, a start of it, or a session with exactly one open
/// question.
async fn find(client: &Client, name: &str) -> Result<QuestionId, Failure> {
    // Send a full id to the daemon unchanged: the daemon knows who answered a question that is no
    // longer open.
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
///
/// # Errors
/// A call failed.
pub(in crate::client) async fn all_open(client: &Client) -> Result<Vec<(SessionView, Question)>, Failure> {
    let states = Some(vec![SessionState::RequiresAction, SessionState::Paused]);
    let waiting = resolve_id::all_sessions(client, &ListParams { states, ..ListParams::default() }).await?;
    let mut open = Vec::new();
    for session in waiting {
        if session.state == SessionState::Paused || session.requires == Some(Requires::UnknownOutcome) {
            let questions = of_session(client, session.session_id).await?;
            open.extend(questions.into_iter().map(|question| (session.clone(), question)));
        }
    }
    Ok(open)
}

async fn of_session(client: &Client, session_id: SessionId) -> Result<Vec<Question>, Failure> {
    let mut open: Vec<Question> = Vec::new();
    let mut page = EventsParams { limit: Some(1_000), ..EventsParams::of(session_id) };
    loop {
        let reply: EventsReply = client.call("session.events", &page).await?;
        for envelope in reply.events {
            match envelope.event {
                Event::QuestionRequested { question } => open.push(question),
                Event::QuestionResolved { request_id, .. } => open.retain(|q| q.request_id != request_id),
                _ => {}
            }
        }
        match reply.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(open),
        }
    }
}

/// The text of a question, without its keys.
pub(in crate::client) fn shown(question: &Question) -> Vec<Line> {
    let head = match question.kind {
        QuestionKind::UnknownOutcome => "▌ Outcome unknown: ",
        QuestionKind::Resume => "▌ Paused: ",
    };
    let mut lines = vec![Line::new(Tone::Warn, head).and(Tone::Plain, escape::line(&question.text))];
    if let (Some(tool), Some(input)) = (&question.tool, &question.input) {
        lines.push(Line::new(Tone::Dim, "    ").and(Tone::Bold, call_summary(tool, input)));
    }
    if let Some(output) = &question.output {
        let said: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let from = said.len().saturating_sub(OUTPUT_LINES);
        if from > 0 {
            lines.push(Line::new(Tone::Dim, format!("    │ … {from} lines of output before these")));
        }
        lines.extend(
            said[from..]
                .iter()
                .map(|line| Line::new(Tone::Dim, "    │ ").and(Tone::Plain, one_line(line, 200))),
        );
    }
    lines
}

/// The keys, in one line.
pub(in crate::client) fn keys() -> Line {
    Line::new(Tone::Bold, "▌ c")
        .and(Tone::Plain, " continue")
        .and(Tone::Bold, "  a")
        .and(Tone::Plain, " abort the turn")
}

/// The line shown instead of the keys while a choice needs confirmation; `None` if it needs none.
pub(in crate::client) fn confirmation(choice: Choice) -> Option<Line> {
    match choice {
        Choice::Abort => Some(prompt::confirm(Line::new(Tone::Warn, "▌ abort the turn"))),
        Choice::Continue => None,
    }
}

/// The choice of a key.
pub(in crate::client) fn of_key(key: char) -> Option<Choice> {
    match key.to_ascii_lowercase() {
        'c' => Some(Choice::Continue),
        'a' => Some(Choice::Abort),
        _ => None,
    }
}

/// The command that answers the question from another terminal.
pub(in crate::client) fn hint(question: &Question) -> String {
    format!("▌ agentctl answer {} continue|abort", question.request_id)
}
