//! Attaching without a terminal. History and live lines go to standard output. Each line of standard input is
//! submitted.
//!
//! If there is input, the program ends when the last submitted line was answered. Without input, it follows
//! the session until the session ends. On a terminal (`--plain`, `TERM=dumb`) a line can answer the open request.

use api::methods;
use std::path::Path;

use crate::connection::client::{CallError, Client};
use crate::connection::follow::{FollowStep, SessionFollower, stop_words};
use crate::connection::input_files::{mentioned_resources, with_attachments};
use crate::connection::mentions;
use crate::connection::remote::Machine;
use crate::connection::session_calls::submit;
use crate::connection::wire::ReceivedEvent;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::line_input::LineInput;
use crate::terminal::out::OutputStreams;
use crate::ui::line_prompt::{LinePrompt, LineResult};
use crate::ui::prompt;
use crate::ui::question;
use crate::ui::render::{OutputPiece, Transcript};
use api::params::SubmitBlock;
use types::event::Event;
use types::ids::TurnId;
use types::session::{SessionState, SessionView};

pub(super) async fn plain(
    client: Client,
    follow: SessionFollower,
    (session, machine): (SessionView, Machine),
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    pipe(client, follow, (session, machine), LineInput::stdin(), out).await
}

async fn pipe(
    mut client: Client,
    mut follow: SessionFollower,
    (session, machine): (SessionView, Machine),
    mut input: LineInput,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let mut reading = session.summary.state != SessionState::Ended;
    let mut transcript = Transcript::with_input();
    let mut submitted = false;
    let mut unanswered: Vec<TurnId> = Vec::new();
    let mut prompt = LinePrompt::default();
    loop {
        tokio::select! {
            step = follow.next() => match step? {
                FollowStep::Event(received) => {
                    print(&received, &mut transcript, out)?;
                    let Some(envelope) = &received.event else { continue };
                    if input.has_user {
                        prompt.on_event(&envelope.event);
                        prompt.take_lines(out.columns()).iter().try_for_each(|line| out.wrapped_line(line))?;
                    } else {
                        print_commands(&envelope.event, out)?;
                    }
                    match &envelope.event {
                        Event::SessionEnded { .. } => return Ok(()),
                        Event::TurnCompleted { .. } => unanswered.retain(|turn| Some(*turn) != envelope.turn_id),
                        _ => {}
                    }
                }
                FollowStep::Restarting(reason) => out.note(stop_words(reason))?,
                FollowStep::Lost => out.note("lost the connection to the daemon; connecting again…")?,
                FollowStep::Back(back) => {
                    client = back;
                    out.note("the daemon is back")?;
                }
            },
            line = input.next(), if reading => match line? {
                Some(line) => match prompt.on_line(&line) {
                    LineResult::Approve(params) => {
                        sent(client.call::<methods::session::Approve>(&params).await)?;
                    }
                    LineResult::Answer(params) => sent(client.call::<methods::session::Answer>(&params).await)?,
                    LineResult::Print(lines) => lines.iter().try_for_each(|line| out.wrapped_line(line))?,
                    LineResult::NoAnswer if line.trim().is_empty() => {}
                    LineResult::NoAnswer => {
                        let is_read = input.has_user && machine == Machine::This;
                        let mentioned =
                            if is_read { mentioned_in_line(&line, &session, out)? } else { Some(Vec::new()) };
                        if let Some(mentioned) = mentioned {
                            let input = with_attachments(vec![line], mentioned);
                            unanswered.push(submit(&client, session.session_id, input, None).await?.turn_id);
                            submitted = true;
                        }
                    }
                },
                None => reading = false,
            },
        }
        if !reading && submitted && unanswered.is_empty() {
            return Ok(out.fresh_line()?);
        }
    }
}

/// The files and resources that a typed line mentions; `None` if the line is not sent, because a file cannot be read.
/// The content of a likely secret is left out, because standard input is in use and cannot answer a question.
fn mentioned_in_line(
    line: &str,
    session: &SessionView,
    out: &mut OutputStreams,
) -> Result<Option<Vec<SubmitBlock>>, Failure> {
    let mentioned = match mentions::read_mentioned(line, Path::new(&session.cwd)) {
        Ok(mentioned) => mentioned,
        Err(error) => {
            out.note(&format!("not sent: {error}"))?;
            return Ok(None);
        }
    };
    let mut blocks = Vec::new();
    for content in mentioned {
        if content.is_likely_secret {
            let path = escape::line(&content.path);
            let number = session.number;
            out.note(&format!(
                "{path} probably holds secrets, so only its name is sent; `agentctl submit {number} TEXT --file {path}` \
                 sends it"
            ))?;
        } else {
            blocks.push(content.block);
        }
    }
    blocks.extend(mentioned_resources(line));
    Ok(Some(blocks))
}

fn print(
    received: &ReceivedEvent,
    transcript: &mut Transcript,
    out: &mut OutputStreams,
) -> std::io::Result<()> {
    let Some(envelope) = &received.event else { return Ok(()) };
    for piece in transcript.render_event(envelope) {
        match piece {
            OutputPiece::Text(text) => out.stream_words(&text)?,
            OutputPiece::Break => out.fresh_line()?,
            OutputPiece::Line(line) => out.wrapped_line(&line)?,
            OutputPiece::Folded { shown, .. } => {
                for line in shown {
                    out.line(&line)?;
                }
            }
        }
    }
    Ok(())
}

/// Prints an open request, and the command that answers it.
fn print_commands(event: &Event, out: &mut OutputStreams) -> std::io::Result<()> {
    match event {
        Event::QuestionRequested { question } => out.note(&question::hint(question)),
        Event::PermissionRequested { request, .. } => {
            for line in prompt::question(request) {
                out.line(&line)?;
            }
            let id = request.request_id;
            out.note(&format!("▌ agentctl approve {id}, or agentctl deny {id}"))
        }
        _ => Ok(()),
    }
}

/// The failure of an answer. It is none that another client answered first.
fn sent<T>(reply: Result<T, CallError>) -> Result<(), Failure> {
    match reply {
        Err(CallError::Fault(fault)) if fault.kind() != "not_pending" => Err(CallError::Fault(fault).into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::fake_daemon::{
        FakeDaemon, SESSION, TURN, permission_requested, permission_resolved, text_delta, turn_completed,
    };
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;
    use crate::ui::attach::plain::*;
    use serde_json::json;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn plain_attach_submits_lines_and_ends_after_answer() {
        let fake = FakeDaemon::start(|journal, _, params| {
            journal.push([
                text_delta(&format!("you said {}", params["input"].as_str().expect("text"))),
                turn_completed("success"),
            ]);
            Ok(json!({"turn_id": TURN, "state": "running", "seq": 1}))
        });
        fake.journal.push([text_delta("before\n"), permission_requested()]);
        let client = fake.connector().connect().await.expect("connected");
        let session: SessionView = serde_json::from_value(sample(SESSION, "t")).expect("a session");
        let follow = SessionFollower::start(&fake.connector(), &client, session.session_id, 0)
            .await
            .expect("followed");
        let (mut out, text, side) = captured_output();
        let run =
            pipe(client, follow, (session, Machine::This), LineInput::from_pipe(&b"hello\n\n"[..]), &mut out);
        tokio::time::timeout(Duration::from_secs(20), run).await.expect("in time").expect("ended");
        assert!(text.text().starts_with("before\n▌ May Bash do this?"), "{}", text.text());
        assert!(text.text().contains("you said hello\n─ done"), "{}", text.text());
        assert!(side.text().contains("agentctl approve perm_"));
    }

    #[tokio::test]
    async fn typed_line_answers_request_of_plain_attach() {
        let fake = FakeDaemon::start(|journal, _, params| {
            let decision = params["decision"].as_str().expect("an answer");
            journal
                .push([permission_resolved(decision), json!({"type": "session.ended", "reason": "killed"})]);
            Ok(json!({"session_id": SESSION, "seq": 2}))
        });
        fake.journal.push([permission_requested()]);
        let client = fake.connector().connect().await.expect("connected");
        let session: SessionView = serde_json::from_value(sample(SESSION, "t")).expect("a session");
        let follow = SessionFollower::start(&fake.connector(), &client, session.session_id, 0)
            .await
            .expect("followed");
        let (mut out, text, _) = captured_output();
        let (mut user, input) = tokio::io::duplex(64);
        let run = pipe(client, follow, (session, Machine::This), LineInput::from_user(input), &mut out);
        let answer = async {
            // A line before the request is shown would be an input.
            while !text.text().contains("▌ 2  Yes, until the session ends: Bash(make)") {
                tokio::task::yield_now().await;
            }
            user.write_all(b"2\n").await.expect("typed");
        };
        let both = async { tokio::join!(run, answer) };
        let (ended, ()) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("in time");
        ended.expect("ended");
        let (method, params) = fake.calls().pop().expect("a call");
        assert_eq!(
            (method.as_str(), &params["scope"], &params["grant"]),
            ("session.approve", &json!("session"), &json!("Bash(make)"))
        );
    }

    #[tokio::test]
    async fn typed_line_attaches_mentioned_file_and_piped_line_does_not() {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in [("a.txt", "x"), (".env", "TOKEN=x")] {
            std::fs::write(dir.path().join(name), text).expect("written");
        }
        for (is_person, expected) in [(true, 2), (false, 0)] {
            let fake = FakeDaemon::start(|journal, _, _| {
                journal.push([turn_completed("success")]);
                Ok(json!({"turn_id": TURN, "state": "running", "seq": 1}))
            });
            let client = fake.connector().connect().await.expect("connected");
            let mut session: SessionView = serde_json::from_value(sample(SESSION, "t")).expect("a session");
            session.cwd = dir.path().display().to_string();
            let follow = SessionFollower::start(&fake.connector(), &client, session.session_id, 0)
                .await
                .expect("followed");
            let (mut out, _, side) = captured_output();
            let typed = &b"see @a.txt and @.env\n"[..];
            let input = if is_person { LineInput::from_user(typed) } else { LineInput::from_pipe(typed) };
            let run = pipe(client, follow, (session, Machine::This), input, &mut out);
            tokio::time::timeout(Duration::from_secs(20), run).await.expect("in time").expect("ended");
            let calls = fake.calls();
            let (_, params) = calls.iter().find(|(method, _)| method == "session.submit").expect("a call");
            let blocks = params["input"].as_array().map_or(0, Vec::len);
            assert_eq!(blocks, expected, "{params}");
            assert_eq!(side.text().contains(".env probably holds secrets"), is_person, "{}", side.text());
        }
    }
}
