//! Attaching without a terminal: history and live lines on standard output; each line of standard input
//! is submitted.
//!
//! With input it ends when the last submitted line was answered. Without input it follows until the
//! session ends. On a terminal (`--plain`, `TERM=dumb`) a line `1`, `2` or `4` answers the oldest request.

use std::io::IsTerminal as _;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::api::params::{ApproveParams, ApproveReply};
use crate::client::connection::client::{CallError, Client};
use crate::client::connection::follow::{Follow, Step};
use crate::client::connection::session_calls::submit;
use crate::client::connection::wire::Received;
use crate::client::failure::Failure;
use crate::client::terminal::out::Out;
use crate::client::ui::prompt;
use crate::client::ui::question;
use crate::client::ui::render::{Piece, Transcript};
use crate::types::event::Event;
use crate::types::ids::TurnId;
use crate::types::permission::{Decision, Scope};
use crate::types::session::{PermissionRequest, SessionState, SessionView};

pub(super) async fn plain(
    client: Client,
    follow: Follow,
    session: SessionView,
    out: &mut Out,
) -> Result<(), Failure> {
    let is_person = std::io::stdin().is_terminal();
    pipe(client, follow, session, (tokio::io::stdin(), is_person), out).await
}

/// The answer of a typed number to the oldest request. A rule for the folder needs a page that confirms it.
fn answer_of(requests: &[PermissionRequest], line: &str) -> Option<ApproveParams> {
    let request = requests.first()?;
    let send = |decision, scope| Some(prompt::approval(request, decision, scope, None));
    match line.trim() {
        "1" => send(Decision::Allow, Scope::Once),
        "2" if !request.suggestions.is_empty() => send(Decision::Allow, Scope::Session),
        "4" => send(Decision::Deny, Scope::Once),
        _ => None,
    }
}

async fn pipe(
    mut client: Client,
    mut follow: Follow,
    session: SessionView,
    (input, is_person): (impl AsyncRead + Unpin, bool),
    out: &mut Out,
) -> Result<(), Failure> {
    let mut lines = BufReader::new(input).lines();
    let mut reading = session.state != SessionState::Ended;
    let mut transcript = Transcript::with_input();
    let mut submitted = false;
    let mut unanswered: Vec<TurnId> = Vec::new();
    let mut requests: Vec<PermissionRequest> = Vec::new();
    loop {
        tokio::select! {
            step = follow.next() => match step? {
                Step::Event(received) => {
                    print(&received, &mut transcript, out)?;
                    let Some(envelope) = &received.event else { continue };
                    match &envelope.event {
                        Event::SessionEnded { .. } => return Ok(()),
                        Event::PermissionRequested { request, .. } => requests.push(request.clone()),
                        Event::PermissionResolved { request_id, .. } => {
                            requests.retain(|request| request.request_id != *request_id);
                        }
                        Event::TurnCompleted { .. } => unanswered.retain(|turn| Some(*turn) != envelope.turn_id),
                        _ => {}
                    }
                }
                Step::Lost => out.note("lost the daemon; looking for it…")?,
                Step::Back(back) => {
                    client = back;
                    out.note("the daemon is back")?;
                }
            },
            line = lines.next_line(), if reading => match line? {
                Some(line) if line.trim().is_empty() => {}
                // A pipe has no user who could have read the request.
                Some(line) if is_person && answer_of(&requests, &line).is_some() => {
                    if let Some(params) = answer_of(&requests, &line) {
                        match client.call::<ApproveReply>("session.approve", &params).await {
                            Err(CallError::Fault(fault)) if fault.kind() != "not_pending" => {
                                return Err(CallError::Fault(fault).into());
                            }
                            _ => {}
                        }
                    }
                }
                Some(line) => {
                    unanswered.push(submit(&client, session.session_id, line, None).await?.turn_id);
                    submitted = true;
                }
                None => reading = false,
            },
        }
        if !reading && submitted && unanswered.is_empty() {
            return Ok(out.fresh_line()?);
        }
    }
}

fn print(received: &Received, transcript: &mut Transcript, out: &mut Out) -> std::io::Result<()> {
    let Some(envelope) = &received.event else { return Ok(()) };
    for piece in transcript.on(envelope) {
        match piece {
            Piece::Text(text) => out.stream(&text)?,
            Piece::Break => out.fresh_line()?,
            Piece::Line(line) => out.line(&line)?,
            Piece::Folded { shown, .. } => {
                for line in shown {
                    out.line(&line)?;
                }
            }
        }
    }
    if let Event::QuestionRequested { question } = &envelope.event {
        out.note(&question::hint(question))?;
    }
    if let Event::PermissionRequested { request, .. } = &envelope.event {
        for line in prompt::question(request) {
            out.line(&line)?;
        }
        let id = request.request_id;
        out.note(&format!(
            "▌ 1 yes, once · 2 until the session ends · 4 no, then Enter; or agentctl approve {id}"
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::client::fake::{Fake, SESSION, TURN, asks, completed, says};
    use crate::client::resolve_id::sample;
    use crate::client::terminal::out::testing::papers;
    use crate::client::ui::attach::plain::*;
    use serde_json::json;
    use std::time::Duration;

    #[tokio::test]
    async fn plain_attach_submits_lines_and_ends_after_answer() {
        let fake = Fake::start(|journal, _, params| {
            journal.push([
                says(&format!("you said {}", params["input"].as_str().expect("text"))),
                completed("success"),
            ]);
            Ok(json!({"turn_id": TURN, "state": "running", "seq": 1}))
        });
        fake.journal.push([says("before\n"), asks()]);
        let client = fake.reach().connect().await.expect("connected");
        let session: SessionView = serde_json::from_value(sample(SESSION, "t")).expect("a session");
        let follow = Follow::start(&fake.reach(), &client, session.session_id, 0).await.expect("followed");
        let (mut out, text, side) = papers();
        let run = pipe(client, follow, session, (&b"hello\n\n"[..], false), &mut out);
        tokio::time::timeout(Duration::from_secs(20), run).await.expect("in time").expect("ended");
        assert!(text.text().starts_with("before\n▌ May Bash do this?"), "{}", text.text());
        assert!(text.text().contains("you said hello\n─ done"), "{}", text.text());
        assert!(side.text().contains("agentctl approve perm_"));
    }
}
