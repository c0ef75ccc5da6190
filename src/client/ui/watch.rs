//! Follows one turn to its end: used by `run` and `demo` after the submit.

use api::methods;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::answer::policy::AnswerPolicy;
use crate::args::Output;
use crate::connection::client::{CallError, Client};
use crate::connection::first_time::is_first_time;
use crate::connection::follow::{FollowStep, SessionFollower, stop_words};
use crate::connection::wire::ReceivedEvent;
use crate::failure::{Failure, code, code_of};
use crate::terminal::format::{now, short_id};
use crate::terminal::line_input::LineInput;
use crate::terminal::out::{OutputStreams, harmless_json, terminal_columns};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::line_prompt::{LinePrompt, LineResult};
use crate::ui::prompt;
use crate::ui::render::{OutputPiece, Transcript};
use crate::ui::undo;
use api::params::{AbortParams, AnswerParams, ApproveParams};
use types::event::Event;
use types::ids::{SessionId, TurnId};
use types::permission::{Decision, Scope};
use types::question::{Question, QuestionKind};
use types::session::{ItemKind, ItemStatus, PermissionRequest, SessionView};

#[derive(Debug)]
pub(crate) struct TurnEnd {
    pub(crate) code: u8,
    /// `turn.completed.result`, with the ids of session and turn.
    pub(crate) result: Value,
}

/// The end of the turn, if the event reports it.
pub(crate) fn find_turn_end(
    received: &ReceivedEvent,
    session: SessionId,
    turn: TurnId,
) -> io::Result<Option<TurnEnd>> {
    if received.kind != "turn.completed" {
        return Ok(None);
    }
    // Parse the raw text, because a result of a kind that is newer than this client also ends the turn.
    let event: Value = serde_json::from_str(received.raw.get()).map_err(io::Error::other)?;
    if event["turn_id"] != json!(turn) {
        return Ok(None);
    }
    let mut result = event["result"].clone();
    let code = code_of(result["subtype"].as_str().unwrap_or_default());
    if let Some(members) = result.as_object_mut() {
        members.insert("session_id".into(), json!(session));
        members.insert("turn_id".into(), json!(turn));
    }
    Ok(Some(TurnEnd { code, result }))
}

/// The text that an event adds to the output for good: a complete answer that no retry replaces, or the result of a
/// slash command.
fn completed_text(event: &Event) -> Option<&str> {
    let text = match event {
        Event::MessageCompleted { item, superseded: false, candidate: false, .. }
            if item.kind == ItemKind::AssistantMessage && item.status == ItemStatus::Completed =>
        {
            item.text.as_deref()?
        }
        Event::CommandCompleted { text, .. } => text,
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// One turn that is being followed.
pub(crate) struct TurnWatcher {
    client: Client,
    follow: SessionFollower,
    session: SessionView,
    turn: TurnId,
    asking: AnswerPolicy,
    output: Output,
    transcript: Transcript,
    /// The requests that the user at the terminal answers.
    prompt: LinePrompt,
    input: LineInput,
    /// Whether lines are read. They are from the first request on; before it, the user types for the shell.
    is_reading: bool,
    /// Tasks that send answers and aborts, and wait for the replies.
    calls: JoinSet<Result<(), CallError>>,
    /// Unanswered requests, for automatic answers.
    open: Vec<PermissionRequest>,
    /// Unanswered questions, for automatic answers.
    questions: Vec<Question>,
    unanswerable: u32,
    /// Whether the turn was aborted at a call that the model repeats, because no user could decide about it.
    is_repetition_stopped: bool,
    interrupts: u32,
    /// File with the folders and days on which the notice about trust was shown; `None` shows it every time.
    trust_notice_file: Option<PathBuf>,
    /// Whether only the answer, requests and errors are printed.
    is_quiet: bool,
}

impl TurnWatcher {
    pub(crate) fn new(
        client: Client,
        follow: SessionFollower,
        (session, turn): (SessionView, TurnId),
        asking: AnswerPolicy,
        output: Output,
    ) -> Self {
        Self {
            client,
            follow,
            session,
            turn,
            asking,
            output,
            transcript: Transcript::default(),
            prompt: LinePrompt::default(),
            input: LineInput::stdin(),
            is_reading: false,
            calls: JoinSet::new(),
            open: Vec::new(),
            questions: Vec::new(),
            unanswerable: 0,
            is_repetition_stopped: false,
            interrupts: 0,
            trust_notice_file: None,
            is_quiet: false,
        }
    }

    /// Sets that only the answer is printed, and what needs the user: requests and errors.
    pub(crate) fn with_quiet_output(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    /// Sets that the notice about missing trust is printed once a day. This file stores the days.
    pub(crate) fn with_trust_notice_file(mut self, file: PathBuf) -> Self {
        self.trust_notice_file = Some(file);
        self
    }

    /// Sets that the user's lines come from this input.
    #[cfg(test)]
    pub(crate) fn with_input(mut self, input: LineInput) -> Self {
        self.input = input;
        self
    }

    /// Prints events and answers requests until the turn has ended.
    pub(crate) async fn until_ended(mut self, out: &mut OutputStreams) -> Result<TurnEnd, Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let ended = self.watch(out, &mut interrupt, &mut terminate).await;
        out.fresh_line()?;
        ended
    }

    async fn watch(
        &mut self,
        out: &mut OutputStreams,
        interrupt: &mut Signal,
        terminate: &mut Signal,
    ) -> Result<TurnEnd, Failure> {
        loop {
            tokio::select! {
                step = self.follow.next() => match step? {
                    FollowStep::Event(event) => {
                        if let Some(ended) = self.event(&event, out)? {
                            return Ok(ended);
                        }
                    }
                    FollowStep::Restarting(reason) => out.note(&format!("  {}", stop_words(reason)))?,
                    FollowStep::Lost => out.note("  lost the connection to the daemon; connecting again…")?,
                    FollowStep::Back(client) => self.back(client, out)?,
                },
                line = self.input.next(), if self.is_reading => match line? {
                    Some(line) => self.on_line(&line, out)?,
                    None => return Err(Failure::new(code::ABORTED, "the terminal was closed; the session continues")),
                },
                Some(done) = self.calls.join_next() => self.handle_call_end(done, out)?,
                _ = interrupt.recv() => self.interrupted(out)?,
                _ = terminate.recv() => return Err(Failure::silent(code::ABORTED)),
            }
        }
    }

    /// Prints the request that is open now.
    fn print_request(&mut self, out: &mut OutputStreams) -> io::Result<()> {
        let lines = self.prompt.take_lines(out.columns());
        if lines.is_empty() {
            return Ok(());
        }
        self.input.discard_typed();
        self.is_reading = true;
        lines.iter().try_for_each(|line| out.print_wrapped_error_line(line))
    }

    /// Answers the open request with a typed line.
    fn on_line(&mut self, line: &str, out: &mut OutputStreams) -> io::Result<()> {
        match self.prompt.on_line(line) {
            LineResult::Approve(params) => self.approve(params),
            LineResult::Answer(params) => self.answer(params),
            LineResult::Print(lines) => {
                lines.iter().try_for_each(|line| out.print_wrapped_error_line(line))?
            }
            LineResult::NoAnswer if self.prompt.is_open() => {
                out.note("  this is no answer; the answers are:")?;
                self.prompt.answer_lines().iter().try_for_each(|line| out.print_wrapped_error_line(line))?;
            }
            LineResult::NoAnswer => {
                out.note("  no request is open; `agentctl submit` sends the session more input")?;
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        received: &ReceivedEvent,
        out: &mut OutputStreams,
    ) -> Result<Option<TurnEnd>, Failure> {
        self.print(received, out)?;
        if let Some(envelope) = &received.event {
            if self.asking == AnswerPolicy::Person {
                self.prompt.on_event(&envelope.event);
                self.print_request(out)?;
            }
            match &envelope.event {
                Event::PermissionRequested { request, .. } => self.requested(request, out)?,
                Event::PermissionResolved { request_id, decision, scope, grant, .. } => {
                    let open = self.open.len();
                    self.open.retain(|r| r.request_id != *request_id);
                    if self.open.len() < open && *decision == Decision::Allow {
                        self.unanswerable = self.unanswerable.saturating_sub(1);
                    }
                    if let (AnswerPolicy::Person, Decision::Allow, Some(grant)) =
                        (self.asking, decision, grant)
                    {
                        self.show_undo(*scope, grant, out)?;
                    }
                }
                Event::QuestionRequested { question } => self.question(question, out)?,
                Event::QuestionResolved { request_id, .. } => {
                    self.questions.retain(|q| q.request_id != *request_id);
                }
                Event::SessionEnded { .. } => {
                    return Err(Failure::new(
                        code::ABORTED,
                        "the session was ended before the turn was done",
                    ));
                }
                _ => {}
            }
        }
        let ended = find_turn_end(received, self.session.session_id, self.turn)?;
        // A pipe gets what `agentctl result` prints. An answer may have come in several messages.
        if let Some(ended) = ended.as_ref().filter(|_| self.prints_result_only(out)) {
            out.say_text(ended.result["text"].as_str().unwrap_or_default())?;
        }
        Ok(ended.map(|ended| match ended.code {
            code::SUCCESS if self.unanswerable > 0 => TurnEnd { code: code::DENIED, ..ended },
            // As in an unattended session, where the daemon ends the turn.
            code::ABORTED if self.is_repetition_stopped => TurnEnd { code: code::BUDGET, ..ended },
            _ => ended,
        }))
    }

    /// Whether nothing but the result of the turn is printed.
    fn prints_result_only(&self, out: &OutputStreams) -> bool {
        self.is_quiet && self.output == Output::Text && !out.is_terminal()
    }

    fn print(&mut self, received: &ReceivedEvent, out: &mut OutputStreams) -> io::Result<()> {
        match self.output {
            Output::Json => Ok(()),
            Output::StreamJson if io::stdout().is_terminal() => out.say(&harmless_json(received.raw.get())),
            Output::StreamJson => out.say(received.raw.get()),
            Output::Text => {
                let Some(envelope) = &received.event else { return Ok(()) };
                if matches!(envelope.event, Event::WorkspaceTrustRequired { .. })
                    && !self.needs_trust_notice()
                {
                    return Ok(());
                }
                let is_answer_only = self.is_quiet && !matches!(envelope.event, Event::Error { .. });
                let is_piped = !out.is_terminal();
                if let Some(text) = completed_text(&envelope.event).filter(|_| is_piped && !self.is_quiet) {
                    out.say_text(text)?;
                }
                for piece in self.transcript.render_event(envelope) {
                    match piece {
                        // A stream may break and be repeated, so a pipe gets only what is complete.
                        OutputPiece::Text(_) | OutputPiece::Break if is_piped => {}
                        OutputPiece::Text(text) => out.stream_words(&text)?,
                        OutputPiece::Break => out.fresh_line()?,
                        OutputPiece::Line(_) | OutputPiece::Folded { .. } if is_answer_only => {}
                        OutputPiece::Line(line) => out.print_wrapped_error_line(&line)?,
                        OutputPiece::Folded { shown, .. } => {
                            for line in shown {
                                out.print_error_line(&line)?;
                            }
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// Whether to print that the folder is not trusted. This is printed once a day.
    fn needs_trust_notice(&self) -> bool {
        let Some(file) = &self.trust_notice_file else { return true };
        is_first_time(file, &format!("{} {}", now().day(), self.session.cwd))
    }

    /// Prints how to remove a lasting grant.
    fn show_undo(&self, scope: Scope, grant: &str, out: &mut OutputStreams) -> io::Result<()> {
        let flags = self.follow.flags();
        for line in
            undo::lines(scope, grant, self.session.session_id, &self.session.cwd, flags, terminal_columns())
        {
            out.print_error_line(&line)?;
        }
        Ok(())
    }

    /// Answers a request as the policy says.
    fn requested(&mut self, request: &PermissionRequest, out: &mut OutputStreams) -> io::Result<()> {
        let Some((answer, report)) = self.asking.permission_answer(request) else { return Ok(()) };
        if self.output == Output::Text {
            for line in prompt::rows(request, out.columns()) {
                out.print_error_line(&line)?;
            }
            out.print_error_line(&StyledLine::new(Tone::Warn, format!("▌ {report}")))?;
        }
        if matches!(self.asking, AnswerPolicy::Deny(_)) {
            self.unanswerable += 1;
        }
        self.open.push(request.clone());
        self.approve(answer);
        Ok(())
    }

    /// Answers a question as the policy says.
    fn question(&mut self, question: &Question, out: &mut OutputStreams) -> io::Result<()> {
        let Some((answer, report)) = self.asking.question_answer(question) else { return Ok(()) };
        self.is_repetition_stopped |=
            matches!(self.asking, AnswerPolicy::Deny(_)) && question.kind == QuestionKind::RepeatedCall;
        if self.output == Output::Text {
            out.print_error_line(&StyledLine::new(Tone::Warn, format!("▌ {report}")))?;
        }
        self.questions.push(question.clone());
        self.answer(answer);
        Ok(())
    }

    fn answer(&mut self, params: AnswerParams) {
        let client = self.client.clone();
        self.calls.spawn(async move { client.call::<methods::session::Answer>(&params).await.map(|_| ()) });
    }

    /// Continues after a reconnection. An answer may have been lost with the connection, so answer open
    /// requests again.
    fn back(&mut self, client: Client, out: &mut OutputStreams) -> io::Result<()> {
        self.client = client;
        out.note("  the daemon is back")?;
        let asking = self.asking;
        let approvals: Vec<_> = self.open.iter().filter_map(|open| asking.permission_answer(open)).collect();
        approvals.into_iter().for_each(|(params, _)| self.approve(params));
        let answers: Vec<_> = self.questions.iter().filter_map(|open| asking.question_answer(open)).collect();
        answers.into_iter().for_each(|(params, _)| self.answer(params));
        Ok(())
    }

    fn approve(&mut self, params: ApproveParams) {
        let client = self.client.clone();
        self.calls.spawn(async move { client.call::<methods::session::Approve>(&params).await.map(|_| ()) });
    }

    fn handle_call_end(
        &mut self,
        done: Result<Result<(), CallError>, tokio::task::JoinError>,
        out: &mut OutputStreams,
    ) -> io::Result<()> {
        match done {
            // Another client answered first, and the event names that client. A lost connection is detected
            // elsewhere.
            Ok(Ok(()) | Err(CallError::Closed | CallError::Io(_))) => Ok(()),
            Ok(Err(CallError::Fault(fault))) if fault.kind() == "not_pending" => Ok(()),
            Ok(Err(CallError::Fault(fault))) if fault.data["path"] == "no_approver" => out.note(
                "  it waits (on_timeout = \"pause\"): `agentctl approvals` lists it, `agentctl approve ID` answers",
            ),
            Ok(Err(fault)) => out.print_error_line(&StyledLine::new(Tone::Bad, format!("  {}", Failure::from(fault)))),
            Err(_) => Ok(()),
        }
    }

    fn interrupted(&mut self, out: &mut OutputStreams) -> Result<(), Failure> {
        self.interrupts += 1;
        if self.interrupts > 1 {
            let short = short_id(self.session.session_id);
            return Err(Failure::new(
                code::ABORTED,
                format!("the session continues; `agentctl attach {short}` shows it"),
            ));
        }
        out.note("  aborting the turn… (Ctrl-C again leaves now)")?;
        let params = AbortParams {
            session_id: self.session.session_id,
            turn_id: Some(self.turn),
            call_id: None,
            idempotency_key: None,
        };
        let client = self.client.clone();
        self.calls.spawn(async move { client.call::<methods::session::Abort>(&params).await.map(|_| ()) });
        Ok(())
    }
}
