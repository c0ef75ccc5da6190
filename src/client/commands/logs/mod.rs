//! `agentctl logs` and `events`: the conversation of a session as `run` prints it, or its events, without attaching.

mod event_lines;

use api::methods;
use std::collections::VecDeque;
use std::io::IsTerminal as _;

use crate::args::{EventsArgs, LogsArgs, Since};
use crate::commands::logs::event_lines::log_line;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::expand_truncated;
use crate::connection::follow::{FollowStep, SessionFollower, stop_words};
use crate::connection::pages::RawEventsPage;
use crate::connection::session_feed::SessionFeed;
use crate::connection::wire::ReceivedEvent;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::now;
use crate::terminal::out::{OutputStreams, harmless_json, terminal_columns};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::render::{OutputPiece, Transcript};
use crate::ui::session_state::state;
use api::params::EventsParams;
use types::ids::{Seq, SessionId};
use types::time::Timestamp;

enum PrintForm {
    Conversation(Box<Transcript>),
    Lines,
    /// One JSON text for each event.
    Json,
}

/// Selects the form of the output and the first printed event.
struct Printer {
    form: PrintForm,
    since: Option<Since>,
    /// Prints only this number of the last existing lines.
    tail: Option<usize>,
}

pub(crate) async fn logs(reach: &Connector, args: &LogsArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let form = match (args.json, args.events) {
        (true, _) => PrintForm::Json,
        (false, true) => PrintForm::Lines,
        (false, false) => {
            let transcript = Transcript::with_input();
            let is_terminal = out.is_terminal();
            PrintForm::Conversation(Box::new(if is_terminal {
                transcript
            } else {
                transcript.with_raw_text()
            }))
        }
    };
    let printer = Printer { form, since: args.since, tail: args.tail };
    follow(reach, &args.session, printer, args.follow, out).await
}

/// `events SESSION`: the events of a session. Without a session, the changes of all sessions until the user
/// stops the command.
pub(crate) async fn events(
    reach: &Connector,
    args: &EventsArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    match &args.session {
        Some(session) => {
            let form = if args.json { PrintForm::Json } else { PrintForm::Lines };
            let printer = Printer { form, since: args.since, tail: None };
            follow(reach, session, printer, args.follow, out).await
        }
        None => changes(reach, args.json, out).await,
    }
}

async fn changes(reach: &Connector, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let mut feed = SessionFeed::start(&reach.as_observer()).await?;
    out.note("changes of all sessions; Ctrl-C ends this")?;
    loop {
        let before: Vec<_> = feed.sessions().into_iter().cloned().collect();
        feed.wait_change().await?;
        for session in feed.sessions() {
            let earlier = before.iter().find(|it| it.session_id == session.session_id);
            if earlier == Some(session) {
                continue;
            }
            if json {
                let text = serde_json::to_string(session).map_err(|e| Failure::internal(e.to_string()))?;
                out.say(&harmless_json(&text))?;
                continue;
            }
            let (tone, state_text) = state(session);
            if earlier.is_some_and(|earlier| {
                state(earlier).1 == state_text && earlier.summary.title == session.summary.title
            }) {
                continue;
            }
            let line = StyledLine::new(Tone::Bold, format!("{:>4}  ", session.number))
                .and(tone, format!("{state_text}  "))
                .and(Tone::Plain, escape::line(&session.summary.title).into_owned());
            out.line(&line.cut(terminal_columns()))?;
        }
        for deleted in
            before.iter().filter(|it| !feed.sessions().iter().any(|now| now.session_id == it.session_id))
        {
            out.line(&StyledLine::new(Tone::Dim, format!("{:>4}  deleted", deleted.number)))?;
        }
    }
}

async fn follow(
    reach: &Connector,
    name: &str,
    mut printer: Printer,
    is_followed: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let reach = &reach.as_observer();
    let client = reach.connect_or_start().await?;
    let session = resolve_id::session(&client, name).await?.session_id;
    let last = printer.history(&client, session, out).await?;
    if !is_followed {
        return Ok(());
    }
    let follow = SessionFollower::start(reach, &client, session, last).await?;
    let mut follow =
        if matches!(printer.form, PrintForm::Conversation(_)) { follow } else { follow.as_sent() };
    loop {
        match follow.next().await? {
            FollowStep::Event(received) => {
                for piece in printer.pieces(&received) {
                    print(piece, out)?;
                }
            }
            FollowStep::Restarting(reason) => out.note(stop_words(reason))?,
            FollowStep::Lost => out.note("lost the connection to the daemon; connecting again…")?,
            FollowStep::Back(_) => out.note("the daemon is back")?,
        }
    }
}

impl Printer {
    /// Prints the existing events and returns the newest seq.
    async fn history(
        &mut self,
        client: &Client,
        session: SessionId,
        out: &mut OutputStreams,
    ) -> Result<Seq, Failure> {
        let (after_seq, from) = match self.since {
            None => (0, Timestamp(i64::MIN)),
            Some(Since::Seq(seq)) => (seq, Timestamp(i64::MIN)),
            Some(Since::Ago(ms)) => (0, now().before(ms)),
        };
        let params = EventsParams { after_seq, limit: Some(500), ..EventsParams::for_session(session) };
        let mut pages = client.pages_as::<methods::session::Events, RawEventsPage>(params);
        let mut last = after_seq;
        let mut tail_pieces: VecDeque<OutputPiece> = VecDeque::new();
        while let Some(page) = pages.next().await? {
            for raw in &page.events {
                let received =
                    ReceivedEvent::parse(raw).map_err(|e| Failure::internal(format!("an event: {e}")))?;
                last = last.max(received.seq);
                if received.event.as_ref().is_some_and(|e| e.at_ms < from) {
                    continue;
                }
                let received = match self.form {
                    PrintForm::Conversation(_) if expand_truncated::is_truncated(&received) => {
                        expand_truncated::whole(client, received).await?
                    }
                    _ => received,
                };
                for piece in self.pieces(&received) {
                    match self.tail {
                        None => print(piece, out)?,
                        Some(_) => tail_pieces.push_back(piece),
                    }
                }
                self.keep_tail(&mut tail_pieces);
            }
        }
        for piece in tail_pieces {
            print(piece, out)?;
        }
        out.fresh_line()?;
        Ok(last)
    }

    /// Drops pieces from the front, but keeps enough of them for the last `tail` lines.
    fn keep_tail(&self, pieces: &mut VecDeque<OutputPiece>) {
        let Some(tail) = self.tail else { return };
        let lines = |piece: &OutputPiece| match piece {
            OutputPiece::Text(text) => text.matches('\n').count(),
            OutputPiece::Break => 0,
            OutputPiece::Line(_) => 1,
            OutputPiece::Folded { shown, .. } => shown.len(),
        };
        let mut total: usize = pieces.iter().map(lines).sum();
        while let Some(first) = pieces.front()
            && total.saturating_sub(lines(first)) >= tail
            && pieces.len() > 1
        {
            total -= lines(first);
            pieces.pop_front();
        }
    }

    fn pieces(&mut self, received: &ReceivedEvent) -> Vec<OutputPiece> {
        match (&mut self.form, &received.event) {
            (PrintForm::Json, _) => {
                let raw = received.raw.get();
                let is_terminal = std::io::stdout().is_terminal();
                let json = if is_terminal { harmless_json(raw) } else { raw.to_owned() };
                vec![OutputPiece::Line(StyledLine::new(Tone::Plain, json))]
            }
            (PrintForm::Conversation(transcript), Some(envelope)) => transcript.render_event(envelope),
            (PrintForm::Conversation(_), None) => Vec::new(),
            (PrintForm::Lines, Some(envelope)) => {
                log_line(envelope).map(OutputPiece::Line).into_iter().collect()
            }
            (PrintForm::Lines, None) => {
                let text = format!("{:>6}                 {}", received.seq, escape::line(&received.kind));
                vec![OutputPiece::Line(StyledLine::new(Tone::Dim, text))]
            }
        }
    }
}

fn print(piece: OutputPiece, out: &mut OutputStreams) -> std::io::Result<()> {
    match piece {
        OutputPiece::Text(text) => out.stream_words(&text),
        OutputPiece::Break => out.fresh_line(),
        OutputPiece::Line(line) => out.line(&line),
        OutputPiece::Folded { shown, .. } => shown.iter().try_for_each(|line| out.line(line)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake_daemon::{
        CALL, FakeDaemon, SESSION, TURN, permission_requested, text_delta, turn_completed,
    };
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;
    use crate::ui::screen_files::{SIZES, check_lines};

    /// Pages of two events.
    fn two_event_pages() -> FakeDaemon {
        let fake = FakeDaemon::start(|journal, method, params| match method {
            "session.get" => Ok(json!({"session": sample(SESSION, "t")})),
            _ => {
                let cursor = params["cursor"].as_str().and_then(|c| c.parse().ok());
                let after = cursor.or(params["after_seq"].as_u64()).unwrap_or(0) as usize;
                let rows = journal.rows();
                let end = rows.len().min(after + 2);
                let mut page = json!({"events": rows[after..end], "last_seq": rows.len()});
                if end < rows.len() {
                    page["next_cursor"] = json!(end.to_string());
                }
                Ok(page)
            }
        });
        fake.journal.push([
            text_delta("x"),
            permission_requested(),
            json!({"type": "moon.rose"}),
            turn_completed("success"),
        ]);
        fake
    }

    async fn print_logs(args: LogsArgs) -> String {
        print_logs_of(&two_event_pages(), args).await
    }

    async fn print_logs_of(fake: &FakeDaemon, args: LogsArgs) -> String {
        let (mut out, text, _) = captured_output();
        logs(&fake.connector(), &LogsArgs { session: SESSION.into(), ..args }, &mut out)
            .await
            .expect("printed");
        text.text()
    }

    #[tokio::test]
    async fn logs_print_conversation_or_events_of_every_page() {
        let conversation = print_logs(LogsArgs::default()).await;
        assert!(
            conversation.starts_with("x\n") && !conversation.contains("permission.requested"),
            "{conversation}"
        );
        assert_eq!(
            print_logs(LogsArgs { events: true, ..LogsArgs::default() }).await,
            "     2 11-14 22:13:20Z permission.requested     perm_0190f2a4-0000-7000-8000-000000000005 Bash make\n     \
             3                 moon.rose\n     \
             4 11-14 22:13:20Z turn.completed           success: the answer\n"
        );
        let last = print_logs(LogsArgs { events: true, tail: Some(1), ..LogsArgs::default() }).await;
        assert_eq!(last.lines().count(), 1, "{last}");
    }

    #[tokio::test]
    async fn logs_screen_matches_fixture() {
        let fake = two_event_pages();
        let other = "item_0190f2a4-0000-7000-8000-000000000009";
        let item = |kind: &str, text: &str| {
            json!({"type": "message.completed", "item": {"item_id": other, "turn_id": TURN, "kind": kind,
                "status": "completed", "first_seq": 1, "last_seq": 2, "text": text}})
        };
        let output: String = (1..=30).map(|n| format!("test store::case_{n} ... ok\n")).collect();
        fake.journal.push([
            item("user_message", "the tests fail; find out why"),
            json!({"type": "tool.requested", "call_id": CALL, "tool": "Bash", "input": {"command": "cargo test"}}),
            json!({"type": "tool.completed", "call_id": CALL, "tool": "Bash", "status": "failed", "output": output,
                "detail": {"exit_code": 101}, "duration_ms": 8_100}),
            item("assistant_message", "The loader panics on a missing file.\n\n- Return the error\n"),
            turn_completed("success"),
        ]);
        let text = print_logs_of(&fake, LogsArgs::default()).await;
        let lines: Vec<String> = text.lines().skip(2).map(str::to_owned).collect();
        for size in SIZES {
            check_lines("logs", size, &lines);
        }
    }

    #[tokio::test]
    async fn logs_json_prints_unchanged_events_since_cursor() {
        let rows = two_event_pages().journal.rows();
        for (since, first) in [(None, 0), (Some(Since::Seq(3)), 3), (Some(Since::Ago(1)), 4)] {
            let text = print_logs(LogsArgs { json: true, since, ..LogsArgs::default() }).await;
            // The age of unknown events is unknown, so the command prints them instead of hiding them.
            let tail_rows = rows
                .iter()
                .enumerate()
                .filter(|(n, row)| *n >= first || first == 4 && row["type"] == "moon.rose");
            let expected: String = tail_rows.map(|(_, row)| format!("{row}\n")).collect();
            assert_eq!(text, expected, "{since:?}");
        }
    }
}
