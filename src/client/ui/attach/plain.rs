//! Attaching without a terminal: history and live lines on standard output; each line of standard input
//! is submitted.
//!
//! With input it ends when the last submitted line was answered. Without input it follows until the
//! session ends.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::client::connection::client::Client;
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
use crate::types::session::{SessionState, SessionView};

pub(super) async fn plain(
    client: Client,
    follow: Follow,
    session: SessionView,
    out: &mut Out,
) -> Result<(), Failure> {
    pipe(client, follow, session, tokio::io::stdin(), out).await
}

async fn pipe(
    mut client: Client,
    mut follow: Follow,
    session: SessionView,
    input: impl AsyncRead + Unpin,
    out: &mut Out,
) -> Result<(), Failure> {
    let mut lines = BufReader::new(input).lines();
    let mut reading = session.state != SessionState::Ended;
    let mut transcript = Transcript::with_input();
    let mut submitted = false;
    let mut unanswered: Vec<TurnId> = Vec::new();
    loop {
        tokio::select! {
            step = follow.next() => match step? {
                Step::Event(received) => {
                    print(&received, &mut transcript, out)?;
                    let Some(envelope) = &received.event else { continue };
                    match &envelope.event {
                        Event::SessionEnded { .. } => return Ok(()),
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
        out.note(&format!("▌ agentctl approve {id} · agentctl deny {id}"))?;
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
        let run = pipe(client, follow, session, &b"hello\n\n"[..], &mut out);
        tokio::time::timeout(Duration::from_secs(20), run).await.expect("in time").expect("ended");
        assert!(text.text().starts_with("before\n▌ May Bash do this?"), "{}", text.text());
        assert!(text.text().contains("you said hello\n─ done"), "{}", text.text());
        assert!(side.text().contains("agentctl approve perm_"));
    }
}
