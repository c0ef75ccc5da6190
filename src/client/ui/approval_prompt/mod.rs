//! Permission requests inside `run`: the policy that answers them, and the approval prompt.

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::terminal::out::{OutputStreams, terminal_columns};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::editor::Editor;
use crate::ui::keys::Keys;
use crate::ui::prompt;
use crate::ui::prompt::Answer;
use crate::ui::question;
use crate::ui::request_timing::{Pending, Phase, RequestTiming};
use api::params::{AnswerParams, ApproveParams};
use types::ids::{PermissionId, QuestionId};
use types::permission::{Decision, RequestKind, Scope};
use types::question::{Question, UserAnswer};
use types::session::PermissionRequest;

/// The policy that decides how requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerPolicy {
    /// The user at the terminal answers.
    Person,
    /// No user is present: the `on_timeout` action applies at once, with this reason.
    Deny(&'static str),
    /// For the demonstration: the program allows every request once, and shows it.
    Allow,
}

/// Result of a key in the approval prompt.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Send this answer.
    Send(ApproveParams),
    /// Send this answer to a question.
    Choose(AnswerParams),
    /// Abort the turn.
    Abort,
    /// Let the user edit the arguments.
    Edit,
    /// Deny with feedback, which the user types next.
    Feedback,
    /// The key had no effect yet.
    Wait,
}

/// The approval prompt, with the requests and questions that wait for it.
#[derive(Default)]
pub(crate) struct ApprovalPrompt {
    queue: VecDeque<PermissionRequest>,
    /// Questions are answered before requests. While a question is open, no new request is made, but earlier
    /// requests may be pending.
    questions: VecDeque<Question>,
    keys: Option<Keys>,
    input_line: Option<Editor>,
    /// Whether the typed text is edited arguments, not feedback.
    edits: bool,
    timing: RequestTiming,
    /// The outcome that Enter confirms.
    confirming: Option<Outcome>,
    /// Answers to the first questions, while the model waits for the answers to all of its questions.
    answers: Vec<UserAnswer>,
}

impl ApprovalPrompt {
    /// Shows a request to the user, or queues it after the open one.
    pub(crate) fn push(
        &mut self,
        request: PermissionRequest,
        now: Instant,
        out: &mut OutputStreams,
    ) -> io::Result<()> {
        self.queue.push_back(request);
        if self.queue.len() == 1 && self.questions.is_empty() { self.open(now, out) } else { Ok(()) }
    }

    /// Queues a question. The caller has shown its text already.
    pub(crate) fn push_question(
        &mut self,
        question: Question,
        now: Instant,
        out: &mut OutputStreams,
    ) -> io::Result<()> {
        self.questions.push_back(question);
        if self.questions.len() == 1 { self.open(now, out) } else { Ok(()) }
    }

    /// Removes a question that some client has answered.
    pub(crate) fn remove_question(
        &mut self,
        id: QuestionId,
        now: Instant,
        out: &mut OutputStreams,
    ) -> io::Result<()> {
        let was_open = self.questions.front().is_some_and(|q| q.request_id == id);
        self.questions.retain(|q| q.request_id != id);
        if was_open { self.show_next(now, out) } else { Ok(()) }
    }

    /// Removes a request that some client has answered.
    pub(crate) fn remove_request(
        &mut self,
        id: PermissionId,
        now: Instant,
        out: &mut OutputStreams,
    ) -> io::Result<()> {
        let was_open = self.questions.is_empty() && self.queue.front().is_some_and(|r| r.request_id == id);
        self.queue.retain(|r| r.request_id != id);
        if was_open { self.show_next(now, out) } else { Ok(()) }
    }

    fn show_next(&mut self, now: Instant, out: &mut OutputStreams) -> io::Result<()> {
        self.confirming = None;
        if self.input_line.take().is_some() {
            out.print_error_line(&StyledLine::default())?;
        }
        self.close(out);
        if self.front().is_none() { Ok(()) } else { self.open(now, out) }
    }

    fn front(&self) -> Option<Pending> {
        let question = self.questions.front().map(|q| Pending::Question(q.request_id));
        question.or_else(|| self.queue.front().map(|r| Pending::Permission(r.request_id)))
    }

    /// Switches the terminal to raw mode; [`ApprovalPrompt::update`] shows the request.
    fn open(&mut self, now: Instant, out: &mut OutputStreams) -> io::Result<()> {
        if !self.questions.is_empty() {
            (self.input_line, self.confirming) = (None, None);
            self.answers.clear();
        }
        // End the old reader before the new one begins, because at most one may read the terminal.
        self.keys = None;
        let keys = Keys::enter_raw_mode()?;
        if keys.had_input() {
            self.timing.key_pressed(now);
        }
        self.keys = Some(keys);
        out.set_raw(true);
        Ok(())
    }

    /// Shows a request once the user is not typing. Shows its keys once it accepts keys.
    pub(crate) fn update(&mut self, now: Instant, out: &mut OutputStreams) -> io::Result<()> {
        match self.timing.update(self.front(), now) {
            Some(Phase::Shown) => self.show_front(out),
            Some(Phase::Answerable) => {
                self.show_keys(out)?;
                self.begin_answer(out)
            }
            Some(Phase::Hidden) | None => Ok(()),
        }
    }

    /// The time of the next update.
    pub(crate) fn next_change(&self) -> Option<Instant> {
        self.timing.next_change()
    }

    /// Shows the request at the front. A question is not shown here, because it was shown when it arrived.
    fn show_front(&self, out: &mut OutputStreams) -> io::Result<()> {
        match self.queue.front() {
            Some(request) if self.questions.is_empty() => show(request, out),
            _ => Ok(()),
        }
    }

    fn show_keys(&self, out: &mut OutputStreams) -> io::Result<()> {
        match (self.questions.front(), self.queue.front()) {
            (Some(question), _) => out.print_error_line(&question::keys(question)),
            (None, Some(request)) => show_keys(request, out),
            (None, None) => Ok(()),
        }
    }

    /// Opens the input line for the next typed answer, if the front is a question of the model.
    fn begin_answer(&mut self, out: &mut OutputStreams) -> io::Result<()> {
        let Some(question) = self.questions.front().filter(|question| question::is_typed(question)) else {
            return Ok(());
        };
        self.input_line = Some(Editor::default());
        out.prompt(&format!("  {}", question::input_mark(question, self.answers.len())), "")
    }

    /// Appends to the typed answer. The answers are sent once the last one is typed.
    fn type_answer(&mut self, input: &Input, out: &mut OutputStreams) -> io::Result<Outcome> {
        let (Some(question), Some(editor)) = (self.questions.front(), &mut self.input_line) else {
            return Ok(Outcome::Wait);
        };
        let at = self.answers.len();
        let mark = format!("  {}", question::input_mark(question, at));
        match type_words(editor, input) {
            TypingStep::More => out.prompt(&mark, editor.text())?,
            TypingStep::Back => {
                editor.clear();
                out.prompt(&mark, "")?;
            }
            TypingStep::Done => {
                let Some(user_question) = question.questions.get(at) else { return Ok(Outcome::Wait) };
                let parsed = question::parse(user_question, editor.text());
                let (request_id, all) = (question.request_id, question.questions.len());
                out.print_error_line(&StyledLine::default())?;
                match parsed {
                    Ok(answer) => self.answers.push(answer),
                    Err(why) => out.print_error_line(&StyledLine::new(Tone::Bad, format!("  {why}")))?,
                }
                if self.answers.len() == all {
                    self.input_line = None;
                    let answers = std::mem::take(&mut self.answers);
                    return Ok(Outcome::Choose(question::answers(request_id, answers)));
                }
                self.begin_answer(out)?;
            }
        }
        Ok(Outcome::Wait)
    }

    /// Restores the terminal from raw mode.
    pub(crate) fn close(&mut self, out: &mut OutputStreams) {
        self.keys = None;
        out.set_raw(false);
    }

    /// The next key while a request is open. Without an open request this waits for ever. Cancel-safe.
    pub(crate) async fn key(&mut self) -> Option<Input> {
        match &mut self.keys {
            Some(keys) => keys.next().await,
            None => std::future::pending().await,
        }
    }

    /// Handles a key for the open request.
    pub(crate) fn press(
        &mut self,
        input: &Input,
        now: Instant,
        out: &mut OutputStreams,
    ) -> io::Result<Outcome> {
        let key = match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => Some(key),
            Input::Paste(_) => None,
            _ => return Ok(Outcome::Wait),
        };
        if key.is_some_and(is_interrupt) {
            self.confirming = None;
            return Ok(Outcome::Abort);
        }
        self.timing.key_pressed(now);
        if self.input_line.is_some() && self.questions.is_empty() {
            return self.type_words(input, out);
        }
        if self.input_line.is_some() {
            return self.type_answer(input, out);
        }
        if self.timing.phase() != Some(Phase::Answerable) {
            return Ok(Outcome::Wait);
        }
        if let Some(outcome) = self.confirming.take() {
            if key.is_some_and(|key| key.code == KeyCode::Enter) {
                return Ok(outcome);
            }
            out.note("  not confirmed")?;
            self.timing.ignore_keys(now);
            return Ok(Outcome::Wait);
        }
        let answer =
            key.filter(|key| !key.modifiers.contains(KeyModifiers::CONTROL)).and_then(|key| match key.code {
                KeyCode::Char(c) => Some(c),
                _ => None,
            });
        let outcome = match (self.questions.front(), self.queue.front(), answer) {
            (Some(question), _, Some(c)) => choose(question, c),
            (None, Some(request), Some(c)) => answer_request(request, c),
            _ => None,
        };
        match outcome {
            // This key is no answer, so the user is typing something else. Ignore the next keys as well.
            None => self.timing.ignore_keys(now),
            Some((outcome, Some(confirmation))) => {
                for line in confirmation.wrap(terminal_columns()) {
                    out.print_error_line(&line)?;
                }
                self.confirming = Some(outcome);
            }
            Some((Outcome::Feedback, None)) => {
                (self.input_line, self.edits) = (Some(Editor::default()), false);
                out.prompt("  because: ", "")?;
            }
            Some((outcome, None)) => return Ok(outcome),
        }
        Ok(Outcome::Wait)
    }

    /// Appends to the typed feedback, or to the edited arguments.
    fn type_words(&mut self, input: &Input, out: &mut OutputStreams) -> io::Result<Outcome> {
        let Some(request) = self.queue.front() else { return Ok(Outcome::Wait) };
        if let Some(editor) = &mut self.input_line {
            match type_words(editor, input) {
                TypingStep::More => {
                    out.prompt(if self.edits { "  input: " } else { "  because: " }, editor.text())?
                }
                TypingStep::Done if self.edits => {
                    let text = editor.text().to_string();
                    out.print_error_line(&StyledLine::default())?;
                    return self.parse_edited(&text, out);
                }
                TypingStep::Back => {
                    self.input_line = None;
                    out.print_error_line(&StyledLine::default())?;
                    show_keys(request, out)?;
                }
                TypingStep::Done => {
                    let feedback = Some(editor.take_text()).filter(|w| !w.trim().is_empty());
                    let answer = prompt::approval(request, Decision::Deny, Scope::Once, feedback);
                    out.print_error_line(&StyledLine::default())?;
                    return Ok(self.send_answer(answer));
                }
            }
        }
        Ok(Outcome::Wait)
    }

    /// The arguments of the open request, for an editor.
    pub(crate) fn editable(&self) -> Option<String> {
        self.queue.front().filter(|_| self.questions.is_empty()).map(prompt::editable_input)
    }

    /// Edits the arguments in the input line, if there is no editor.
    pub(crate) fn edit_here(&mut self, out: &mut OutputStreams) -> io::Result<()> {
        let Some(request) = self.queue.front() else { return Ok(()) };
        let mut editor = Editor::default();
        // This input line has one row.
        let text = prompt::editable_input(request);
        let text = if text.contains('\n') { request.input.to_string() } else { text };
        editor.insert(&text);
        out.prompt("  input: ", editor.text())?;
        (self.input_line, self.edits) = (Some(editor), true);
        Ok(())
    }

    /// Switches to raw mode again after an editor.
    pub(crate) fn reopen(&mut self, now: Instant, out: &mut OutputStreams) -> io::Result<()> {
        if self.keys.is_none() && (!self.queue.is_empty() || !self.questions.is_empty()) {
            self.open(now, out)?;
            self.show_front(out)?;
            self.show_keys(out)?;
            return self.begin_answer(out);
        }
        Ok(())
    }

    /// Parses edited arguments. After a mistake it shows the error and keeps the request open.
    pub(crate) fn parse_edited(&mut self, text: &str, out: &mut OutputStreams) -> io::Result<Outcome> {
        self.input_line = None;
        let Some(request) = self.queue.front() else { return Ok(Outcome::Wait) };
        match prompt::parse_edited(request, text) {
            Ok(answer) => Ok(self.send_answer(answer)),
            Err(why) => {
                out.print_error_line(&StyledLine::new(Tone::Bad, format!("  {why}")))?;
                show_keys(request, out)?;
                Ok(Outcome::Wait)
            }
        }
    }

    /// The request stays open until the daemon reports it as settled. If an answer is lost with the
    /// connection, the user can answer again.
    fn send_answer(&mut self, answer: ApproveParams) -> Outcome {
        self.input_line = None;
        Outcome::Send(answer)
    }
}

/// The result of a key, and the line that asks for its confirmation if it needs one.
type KeyOutcome = (Outcome, Option<StyledLine>);

fn choose(question: &Question, key: char) -> Option<KeyOutcome> {
    if question::is_typed(question) {
        return None;
    }
    let choice = question::choice_for_key(key)?;
    let params = question::params(question.request_id, choice.name());
    Some((Outcome::Choose(params), question::confirmation(choice)))
}

fn answer_request(request: &PermissionRequest, key: char) -> Option<KeyOutcome> {
    let send = |decision, scope| Outcome::Send(prompt::approval(request, decision, scope, None));
    let answer = prompt::answer_for_key(request, key)?;
    let outcome = match answer {
        Answer::Once => send(Decision::Allow, Scope::Once),
        Answer::AcceptEdits => Outcome::Send(prompt::approval_with_edits(request)),
        Answer::Session => send(Decision::Allow, Scope::Session),
        Answer::Project => send(Decision::Allow, Scope::Project),
        Answer::Deny => send(Decision::Deny, Scope::Once),
        Answer::Edit => Outcome::Edit,
        Answer::Feedback => Outcome::Feedback,
        Answer::Abort => Outcome::Abort,
    };
    Some((outcome, prompt::confirmation(request, answer)))
}

/// Whether the key is Ctrl-C, which aborts at any time.
fn is_interrupt(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// Prints the request.
pub(crate) fn show(request: &PermissionRequest, out: &mut OutputStreams) -> io::Result<()> {
    for line in prompt::rows(request, terminal_columns()) {
        out.print_error_line(&line)?;
    }
    Ok(())
}

fn show_keys(request: &PermissionRequest, out: &mut OutputStreams) -> io::Result<()> {
    for line in prompt::keys(request).iter().flat_map(|line| line.wrap(terminal_columns())) {
        out.print_error_line(&line)?;
    }
    Ok(())
}

/// An answer that the policy gives without the user.
pub(crate) fn automatic_answer(
    request: &PermissionRequest,
    asking: AnswerPolicy,
) -> Option<(ApproveParams, StyledLine)> {
    match asking {
        AnswerPolicy::Person => None,
        AnswerPolicy::Deny(reason) => Some((
            ApproveParams {
                no_approver: true,
                ..prompt::approval(request, Decision::Deny, Scope::Once, None)
            },
            StyledLine::new(Tone::Warn, format!("▌ {reason}")),
        )),
        // The commands of the demonstration need no access outside the sandbox.
        AnswerPolicy::Allow if request.kind == RequestKind::Sandbox => Some((
            prompt::approval(request, Decision::Deny, Scope::Once, None),
            StyledLine::new(Tone::Warn, "▌ answered by the demonstration: n (no)"),
        )),
        AnswerPolicy::Allow => Some((
            prompt::approval(request, Decision::Allow, Scope::Once, None),
            StyledLine::new(Tone::Warn, "▌ answered by the demonstration: y (once)"),
        )),
    }
}

enum TypingStep {
    More,
    Done,
    Back,
}

fn type_words(editor: &mut Editor, input: &Input) -> TypingStep {
    match input {
        Input::Paste(text) => editor.insert(&text.replace(['\n', '\r'], " ")),
        Input::Key(key) if key.kind != KeyEventKind::Release => match key.code {
            KeyCode::Enter => return TypingStep::Done,
            KeyCode::Esc => return TypingStep::Back,
            KeyCode::Backspace => editor.backspace(),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => editor.delete_to_start(),
            KeyCode::Char('w') if key.modifiers.contains(KeyModifiers::CONTROL) => editor.delete_word(),
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                editor.insert(c.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        },
        _ => {}
    }
    TypingStep::More
}

#[cfg(test)]
mod tests;
