//! Attaching without a terminal. History and live lines go to standard output. Each line of standard input is
//! submitted.
//!
//! If there is input, the program ends when the last submitted line was answered. Without input, it follows
//! the session until the session ends. On a terminal (`--plain`, `TERM=dumb`) a line `1`, `2` or `4` answers
//! the oldest request.

use api::methods;
use std::io::IsTerminal as _;
use std::path::Path;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::connection::client::{CallError, Client};
use crate::connection::follow::{FollowStep, SessionFollower, stop_words};
use crate::connection::input_files::{mentioned_resources, with_attachments};
use crate::connection::mentions;
use crate::connection::remote::Machine;
use crate::connection::session_calls::submit;
use crate::connection::wire::ReceivedEvent;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::ui::prompt;
use crate::ui::question;
use crate::ui::render::{OutputPiece, Transcript};
use api::params::{ApproveParams, SubmitBlock};
use types::event::Event;
use types::ids::TurnId;
use types::permission::{Decision, Scope};
use types::session::{PermissionRequest, SessionState, SessionView};

pub(super) async fn plain(
    client: Client,
    follow: SessionFollower,
    (session, machine): (SessionView, Machine),
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let is_person = std::io::stdin().is_terminal();
    pipe(client, follow, (session, machine), (tokio::io::stdin(), is_person), out).await
}

/// The answer of a typed number to the oldest request. `3` is no answer here, because a rule for the folder
/// needs a page that confirms it.
fn answer_for_key(requests: &[PermissionRequest], line: &str) -> Option<ApproveParams> {
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
    mut follow: SessionFollower,
    (session, machine): (SessionView, Machine),
    (input, is_person): (impl AsyncRead + Unpin, bool),
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let mut lines = BufReader::new(input).lines();
    let mut reading = session.summary.state != SessionState::Ended;
    let mut transcript = Transcript::with_input();
    let mut submitted = false;
    let mut unanswered: Vec<TurnId> = Vec::new();
    let mut requests: Vec<PermissionRequest> = Vec::new();
    loop {
        tokio::select! {
            step = follow.next() => match step? {
                FollowStep::Event(received) => {
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
                FollowStep::Restarting(reason) => out.note(stop_words(reason))?,
                FollowStep::Lost => out.note("lost the daemon; looking for it…")?,
                FollowStep::Back(back) => {
                    client = back;
                    out.note("the daemon is back")?;
                }
            },
            line = lines.next_line(), if reading => match line? {
                Some(line) if line.trim().is_empty() => {}
                // Only a user at a terminal can answer, because a pipe has no user who could have read the
                // request.
                Some(line) if is_person && answer_for_key(&requests, &line).is_some() => {
                    if let Some(params) = answer_for_key(&requests, &line) {
                        match client.call::<methods::session::Approve>(&params).await {
                            Err(CallError::Fault(fault)) if fault.kind() != "not_pending" => {
                                return Err(CallError::Fault(fault).into());
                            }
                            _ => {}
                        }
                    }
                }
                Some(line) => {
                    let is_read = is_person && machine == Machine::This;
                    let mentioned = if is_read { mentioned_in_line(&line, &session, out)? } else { Some(Vec::new()) };
                    if let Some(mentioned) = mentioned {
                        let input = with_attachments(vec![line], mentioned);
                        unanswered.push(submit(&client, session.session_id, input, None).await?.turn_id);
                        submitted = true;
                    }
                }
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
        Err(why) => {
            out.note(&format!("not sent: {why}"))?;
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
    use crate::fake_daemon::{FakeDaemon, SESSION, TURN, permission_requested, text_delta, turn_completed};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;
    use crate::ui::attach::plain::*;
    use serde_json::json;
    use std::time::Duration;

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
        let run = pipe(client, follow, (session, Machine::This), (&b"hello\n\n"[..], false), &mut out);
        tokio::time::timeout(Duration::from_secs(20), run).await.expect("in time").expect("ended");
        assert!(text.text().starts_with("before\n▌ May Bash do this?"), "{}", text.text());
        assert!(text.text().contains("you said hello\n─ done"), "{}", text.text());
        assert!(side.text().contains("agentctl approve perm_"));
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
            let run = pipe(
                client,
                follow,
                (session, Machine::This),
                (&b"see @a.txt and @.env\n"[..], is_person),
                &mut out,
            );
            tokio::time::timeout(Duration::from_secs(20), run).await.expect("in time").expect("ended");
            let calls = fake.calls();
            let (_, params) = calls.iter().find(|(method, _)| method == "session.submit").expect("a call");
            let blocks = params["input"].as_array().map_or(0, Vec::len);
            assert_eq!(blocks, expected, "{params}");
            assert_eq!(side.text().contains(".env probably holds secrets"), is_person, "{}", side.text());
        }
    }
}
