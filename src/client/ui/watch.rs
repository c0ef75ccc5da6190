//! Follows one turn to its end: used by `run` and `demo` after the submit.

use api::methods;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::args::Output;
use crate::connection::client::{CallError, Client};
use crate::connection::first_time::is_first_time;
use crate::connection::follow::{FollowStep, SessionFollower, stop_words};
use crate::connection::wire::ReceivedEvent;
use crate::failure::{Failure, code, code_of};
use crate::terminal::format::{now, short_id};
use crate::terminal::out::{OutputStreams, harmless_json, terminal_columns};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::approval_prompt::{AnswerPolicy, ApprovalPrompt, Outcome, automatic_answer, show};
use crate::ui::question;
use crate::ui::render::{OutputPiece, Transcript};
use crate::ui::request_timing::wait_until;
use crate::ui::undo;
use api::params::{AbortParams, AnswerParams, ApproveParams};
use types::event::Event;
use types::ids::{SessionId, TurnId};
use types::permission::{Decision, Scope};
use types::question::{Choice, Question, QuestionKind, UserAnswer};
use types::session::{ItemKind, ItemStatus, PermissionRequest, SessionView};

/// The answer to questions of the model if there is no user. Its text says that.
fn absent_user_answer(question: &Question) -> AnswerParams {
    let text = "No answer: there is no user at a terminal to ask. Decide yourself what is most likely meant, and say \
                which assumption you made.";
    let answer = UserAnswer { choices: Vec::new(), text: Some(text.into()) };
    question::answers(question.request_id, vec![answer; question.questions.len()])
}

/// The end of a turn.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    /// The exit code.
    pub(crate) code: u8,
    /// `turn.completed.result`, with the ids of session and turn.
    pub(crate) result: Value,
}

/// The end of the turn, if the event reports it.
///
/// # Errors
/// The event is no JSON.
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
    asker: ApprovalPrompt,
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
            asker: ApprovalPrompt::default(),
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

    /// Prints events and answers requests until the turn has ended.
    pub(crate) async fn until_ended(mut self, out: &mut OutputStreams) -> Result<TurnEnd, Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let ended = self.watch(out, &mut interrupt, &mut terminate).await;
        self.asker.close(out);
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
            self.asker.update(Instant::now(), out)?;
            let next_change = self.asker.next_change();
            tokio::select! {
                step = self.follow.next() => match step? {
                    FollowStep::Event(event) => {
                        if let Some(ended) = self.event(&event, out)? {
                            return Ok(ended);
                        }
                    }
                    FollowStep::Restarting(reason) => out.note(&format!("  {}", stop_words(reason)))?,
                    FollowStep::Lost => out.note("  lost the daemon; looking for it…")?,
                    FollowStep::Back(client) => self.back(client, out)?,
                },
                input = self.asker.key() => match input {
                    Some(input) => match self.asker.press(&input, Instant::now(), out)? {
                        Outcome::Send(answer) => self.answer(answer),
                        Outcome::Choose(answer) => self.choose(answer),
                        Outcome::Abort => self.interrupted(out)?,
                        Outcome::Edit => self.edit(out).await?,
                        Outcome::Feedback | Outcome::Wait => {}
                    },
                    None => return Err(Failure::new(code::ABORTED, "the terminal is gone; the session goes on")),
                },
                Some(done) = self.calls.join_next() => self.handle_call_end(done, out)?,
                () = wait_until(next_change) => {}
                _ = interrupt.recv() => self.interrupted(out)?,
                _ = terminate.recv() => return Err(Failure::silent(code::ABORTED)),
            }
        }
    }

    /// Lets the user edit the arguments of the open request, in the editor or in the input line.
    async fn edit(&mut self, out: &mut OutputStreams) -> Result<(), Failure> {
        let Some(text) = self.asker.editable() else { return Ok(()) };
        if !crate::ui::editor::has_editor() {
            return Ok(self.asker.edit_here(out)?);
        }
        self.asker.close(out);
        let changed = crate::ui::editor::in_editor(&text).await;
        self.asker.reopen(Instant::now(), out)?;
        match changed {
            Ok(changed) => {
                if let Outcome::Send(answer) = self.asker.parse_edited(&changed, out)? {
                    self.answer(answer);
                }
                Ok(())
            }
            Err(error) => Ok(out.note(&format!("  the editor failed: {error}"))?),
        }
    }

    fn event(
        &mut self,
        received: &ReceivedEvent,
        out: &mut OutputStreams,
    ) -> Result<Option<TurnEnd>, Failure> {
        self.print(received, out)?;
        if let Some(envelope) = &received.event {
            match &envelope.event {
                Event::PermissionRequested { request, .. } => self.requested(request, out)?,
                Event::PermissionResolved { request_id, decision, scope, grant, .. } => {
                    let open = self.open.len();
                    self.open.retain(|r| r.request_id != *request_id);
                    if self.open.len() < open && *decision == Decision::Allow {
                        self.unanswerable = self.unanswerable.saturating_sub(1);
                    }
                    self.asker.remove_request(*request_id, Instant::now(), out)?;
                    if let (AnswerPolicy::Person, Decision::Allow, Some(grant)) =
                        (self.asking, decision, grant)
                    {
                        self.show_undo(*scope, grant, out)?;
                    }
                }
                Event::QuestionRequested { question } => self.question(question, out)?,
                Event::QuestionResolved { request_id, .. } => {
                    self.questions.retain(|q| q.request_id != *request_id);
                    self.asker.remove_question(*request_id, Instant::now(), out)?;
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

    fn requested(&mut self, request: &PermissionRequest, out: &mut OutputStreams) -> io::Result<()> {
        let Some((answer, line)) = automatic_answer(request, self.asking) else {
            return self.asker.push(request.clone(), Instant::now(), out);
        };
        if self.output == Output::Text {
            show(request, out)?;
            out.print_error_line(&line)?;
        }
        if matches!(self.asking, AnswerPolicy::Deny(_)) {
            self.unanswerable += 1;
        }
        self.open.push(request.clone());
        self.answer(answer);
        Ok(())
    }

    /// Handles a question. If a user is present, the user answers. Otherwise a question of the model gets a
    /// text that says so, and any other question aborts the turn instead of guessing. The demonstration
    /// continues the turn.
    fn question(&mut self, question: &Question, out: &mut OutputStreams) -> io::Result<()> {
        if question::is_typed(question) && self.asking != AnswerPolicy::Person {
            let word = StyledLine::new(Tone::Warn, "▌ no answer: there is no user to ask");
            if self.output == Output::Text {
                out.print_error_line(&word)?;
            }
            self.questions.push(question.clone());
            self.choose(absent_user_answer(question));
            return Ok(());
        }
        let (choice, word) = match self.asking {
            AnswerPolicy::Person => return self.asker.push_question(question.clone(), Instant::now(), out),
            AnswerPolicy::Deny(_) if question.kind == QuestionKind::RepeatedCall => {
                self.is_repetition_stopped = true;
                (Choice::Abort, "▌ aborted: the model repeats the same call, and there is no user to ask")
            }
            AnswerPolicy::Deny(_) => (Choice::Abort, "▌ aborted: there is no user to ask"),
            AnswerPolicy::Allow => (Choice::Continue, "▌ answered by the demonstration: c (continue)"),
        };
        if self.output == Output::Text {
            out.print_error_line(&StyledLine::new(Tone::Warn, word))?;
        }
        self.questions.push(question.clone());
        self.choose(question::params(question.request_id, choice.name()));
        Ok(())
    }

    fn choose(&mut self, params: AnswerParams) {
        let client = self.client.clone();
        self.calls.spawn(async move { client.call::<methods::session::Answer>(&params).await.map(|_| ()) });
    }

    /// Continues after a reconnection. An answer may have been lost with the connection, so answer open
    /// requests again.
    fn back(&mut self, client: Client, out: &mut OutputStreams) -> io::Result<()> {
        self.client = client;
        out.note("  the daemon is back")?;
        let answers: Vec<ApproveParams> = self
            .open
            .iter()
            .filter_map(|r| automatic_answer(r, self.asking))
            .map(|(answer, _)| answer)
            .collect();
        for answer in answers {
            self.answer(answer);
        }
        let choice = if self.asking == AnswerPolicy::Allow { Choice::Continue } else { Choice::Abort };
        for question in self.questions.clone() {
            self.choose(match question::is_typed(&question) {
                true => absent_user_answer(&question),
                false => question::params(question.request_id, choice.name()),
            });
        }
        Ok(())
    }

    fn answer(&mut self, answer: ApproveParams) {
        let client = self.client.clone();
        self.calls.spawn(async move { client.call::<methods::session::Approve>(&answer).await.map(|_| ()) });
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
                format!("left; look after it with `agentctl attach {short}`"),
            ));
        }
        out.note("  aborting the turn… (Ctrl-C again leaves at once)")?;
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
