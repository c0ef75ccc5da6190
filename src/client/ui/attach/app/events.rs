//! Applies events to the conversation.

use crate::connection::wire::ReceivedEvent;
use crate::terminal::style::StyledLine;
use crate::ui::attach::app::App;
use crate::ui::attach::app::composer::following_mode;
use crate::ui::question;
use crate::ui::question_list::OptionCursor;
use crate::ui::render::{OutputPiece, asked_summary, todo_lines, untrusted_parts};
use crate::ui::summary::one_line;
use crate::ui::undo;
use types::event::{Envelope, Event};
use types::ids::{PermissionId, SessionId};
use types::message::{Block, InputBlock, OWN_COMMAND, input_line, input_text};
use types::permission::Mode;
use types::session::{Item, ItemKind, PermissionRequest, SessionState, SessionView};
use types::todo::TodoStatus;

/// The text of an input that may return to the input line. Mentioned files are attached again when it is sent.
pub(in crate::ui::attach) fn own_text(input: &[InputBlock]) -> String {
    let text = input_text(input);
    if text.is_empty() { input_line(input) } else { text }
}

/// The words of the user in a message: without the output of the user's own commands, which was sent along.
pub(in crate::ui::attach) fn own_words(item: &Item) -> String {
    let texts = item.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let (outputs, words): (Vec<&str>, Vec<&str>) = texts.partition(|text| text.starts_with(OWN_COMMAND));
    match outputs.is_empty() {
        true => item.text.clone().unwrap_or_default(),
        false => words.join("\n"),
    }
}

impl App {
    pub(crate) fn on_event(&mut self, received: &ReceivedEvent) {
        let Some(envelope) = &received.event else { return };
        self.progress.on_event(envelope);
        self.follow_session(envelope);
        self.follow_queue(envelope);
        match &envelope.event {
            Event::PermissionRequested { request, .. } => self.add_request(request, envelope),
            Event::PermissionResolved { request_id, .. } => self.remove_request(*request_id),
            Event::SubagentStarted { child_session_id, agent, .. } => {
                self.agents.insert(*child_session_id, agent.clone());
            }
            Event::FeedbackRequested { request_id, item_ids } => {
                self.feedback = Some((*request_id, item_ids.clone()));
            }
            Event::FeedbackCompleted { .. } => self.feedback = None,
            Event::QuestionRequested { question } => {
                // An open question is shown below the history. Once it is answered, it moves into the
                // history.
                self.questions.push_back(question.clone());
                self.waits_since = Some(envelope.at_ms);
                self.alert(&question.text);
                self.finish_text();
                return;
            }
            Event::QuestionResolved { request_id, answers, .. } => {
                let resolved = self.questions.iter().find(|q| q.request_id == *request_id).cloned();
                if self.questions.front().is_some_and(|q| q.request_id == *request_id) {
                    self.answers.clear();
                    self.options = OptionCursor::default();
                }
                self.questions.retain(|q| q.request_id != *request_id);
                self.update_wait();
                if let Some(resolved) = resolved {
                    let is_answered = question::is_typed(&resolved) && !answers.is_empty();
                    let lines = match is_answered {
                        true => question::answered_lines(&resolved, answers),
                        false => question::question_lines(&resolved),
                    };
                    for line in &lines {
                        self.push_line(line);
                    }
                    if is_answered {
                        return;
                    }
                }
            }
            Event::TodoUpdated { todos } => {
                // The list is repainted in its place. At the end of the turn it moves into the history.
                self.todos.clone_from(todos);
                self.finish_text();
                return;
            }
            Event::WorkspaceTrustRequired { parts, .. } => {
                let parts: Vec<&str> = untrusted_parts(parts).into_iter().map(String::as_str).collect();
                if !parts.is_empty() {
                    self.warnings.push(format!(
                        "this folder is not trusted (agentctl trust); not used: {}",
                        one_line(&parts.join(", "), 300)
                    ));
                }
                return;
            }
            Event::TurnCompleted { .. } => {
                self.end_stop_hint();
                self.show_todos();
            }
            // A hint is about the turn before it.
            Event::TurnStarted { .. } => {
                self.notice.clear();
                (self.is_esc_armed, self.is_leave_armed) = (false, false);
            }
            // The rows around the input line show this already.
            Event::TurnSteered { .. } => return,
            Event::SessionUpdated { options, .. } if options.mode.is_some() => return,
            _ => {}
        }
        if let Event::MessageCompleted { item, superseded: false, .. } = &envelope.event
            && item.kind == ItemKind::AssistantMessage
            && let Some(text) = item.text.as_ref().filter(|text| !text.trim().is_empty())
        {
            self.last_answer = Some(text.clone());
        }
        if let Event::MessageCompleted { item, .. } = &envelope.event
            && item.kind == ItemKind::UserMessage
            && self.setup.one_turn.is_none()
        {
            self.push_line(&StyledLine::default());
        }
        self.transcript.set_columns(self.columns);
        for piece in self.transcript.render_event(envelope) {
            match piece {
                OutputPiece::Text(text) => self.push_text(&text),
                OutputPiece::Break => self.finish_text(),
                OutputPiece::Line(line) => self.push_line(&line),
                OutputPiece::Folded { shown, full } => {
                    self.finish_text();
                    self.record_lines(full);
                    // Do not wrap diffs and output between words.
                    self.history.extend(shown.iter().flat_map(|line| line.hard_wrap(self.columns)));
                }
            }
        }
        if let Event::PermissionResolved { request_id, scope, grant: Some(grant), .. } = &envelope.event
            && self.granted.take_if(|granted| granted == request_id).is_some()
        {
            let SessionView { session_id, cwd, .. } = &self.session;
            let lines = undo::lines(*scope, grant, *session_id, cwd, &self.setup.flags, self.columns);
            for line in lines {
                self.push_line(&line);
            }
        }
    }

    /// Updates the state and the settings of the session from an event.
    fn follow_session(&mut self, envelope: &Envelope) {
        let session = &mut self.session;
        match &envelope.event {
            Event::SessionStatus { state, requires } => {
                (session.summary.state, session.summary.requires) = (*state, *requires);
            }
            Event::SessionUpdated { title, options, .. } => {
                session.summary.title = title.clone().unwrap_or(std::mem::take(&mut session.summary.title));
                session.summary.model =
                    options.model.clone().unwrap_or(std::mem::take(&mut session.summary.model));
                session.summary.mode = options.mode.unwrap_or(session.summary.mode);
                // If this is the answer to an earlier press of Shift-Tab, the answer to the last press is
                // still missing.
                let is_step = |mode: Mode| matches!(mode, Mode::Default | Mode::AcceptEdits | Mode::Plan);
                let is_earlier = |(now, requested)| is_step(now) && following_mode(now) == requested;
                let is_earlier = options.mode.zip(self.asked_mode).is_some_and(is_earlier);
                if options.mode.is_some() && !is_earlier {
                    self.asked_mode = None;
                }
                session.summary.thinking = options.thinking.or(session.summary.thinking);
            }
            Event::SessionAttached { clients } | Event::SessionDetached { clients } => {
                session.clients = *clients;
            }
            Event::SessionEnded { .. } => session.summary.state = SessionState::Ended,
            _ => {}
        }
    }

    /// Updates the queued and the steered inputs from an event.
    fn follow_queue(&mut self, envelope: &Envelope) {
        let turn = envelope.turn_id;
        match &envelope.event {
            Event::TurnQueued { input, front, .. } => {
                // The queue itself may already contain an input whose event is in the omitted part of the journal.
                if let Some(turn) = turn.filter(|turn| !self.queue.iter().any(|(known, _)| known == turn)) {
                    let at = if *front { 0 } else { self.queue.len() };
                    self.queue.insert(at, (turn, own_text(input)));
                }
            }
            Event::TurnQueueUpdated { input } => {
                if let Some((_, text)) = self.queue.iter_mut().find(|(queued, _)| Some(*queued) == turn) {
                    *text = own_text(input);
                }
            }
            Event::TurnQueueMoved { before } => {
                let Some(from) = self.queue.iter().position(|(queued, _)| Some(*queued) == turn) else {
                    return;
                };
                let moved = self.queue.remove(from);
                let to =
                    before.and_then(|before| self.queue.iter().position(|(queued, _)| *queued == before));
                self.queue.insert(to.unwrap_or(self.queue.len()), moved);
            }
            Event::TurnDequeued { .. } | Event::TurnStarted { .. } => {
                self.queue.retain(|(queued, _)| Some(*queued) != turn);
            }
            Event::TurnSteered { input } => self.steered.push(own_text(input)),
            // The steered inputs are now part of the conversation.
            Event::MessageCompleted { item, .. } if item.kind == ItemKind::UserMessage => {
                let text = item.text.as_deref().unwrap_or_default();
                self.steered.retain(|steered| !text.contains(steered.as_str()));
                self.editor.remember(&own_words(item));
            }
            Event::TurnCompleted { .. } => self.steered.clear(),
            _ => {}
        }
    }

    fn add_request(&mut self, request: &PermissionRequest, envelope: &Envelope) {
        let mut request = request.clone();
        if let Some(agent) = request.child_session_id.map(|id| self.agent_of(id)) {
            request.reason = format!("sub-agent {agent}: {}", request.reason);
        }
        self.alert(&format!("{}?", asked_summary(&request)));
        self.requests.push(request);
        self.waits_since.get_or_insert(envelope.at_ms);
    }

    fn remove_request(&mut self, id: PermissionId) {
        self.requests.remove(id);
        if self.feedback_target.is_some_and(|target| target.request == id) || self.editing == Some(id) {
            (self.feedback_target, self.editing) = (None, None);
            self.editor.clear();
            self.editor.insert(&std::mem::take(&mut self.set_aside));
        }
        self.update_wait();
    }

    fn update_wait(&mut self) {
        if self.requests.is_empty() && self.questions.is_empty() {
            self.waits_since = None;
        }
    }

    fn alert(&mut self, text: &str) {
        self.alert = Some(one_line(text, 100));
    }

    /// The agent of a sub-agent. Returns its id if another sub-agent started it, because then its agent is
    /// unknown.
    fn agent_of(&self, id: SessionId) -> String {
        self.agents.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    /// Moves the todo list of the model into the history, at the end of a turn.
    fn show_todos(&mut self) {
        if self.todos.is_empty() {
            return;
        }
        for line in todo_lines(&self.todos) {
            self.push_line(&line);
        }
        // Do not show a completed list in the next turn.
        if self.todos.iter().all(|todo| todo.status == TodoStatus::Completed) {
            self.todos.clear();
        }
    }
}
