//! Applies events to the conversation.

use crate::answer::question::is_typed;
use crate::connection::wire::ReceivedEvent;
use crate::terminal::style::StyledLine;
use crate::ui::attach::app::App;
use crate::ui::attach::app::composer::following_mode;
use crate::ui::attach::app::input_line::NextKey;
use crate::ui::question;
use crate::ui::render::{todo_lines, untrusted_parts};
use crate::ui::summary::one_line;
use crate::ui::undo;
use types::event::{Envelope, Event};
use types::ids::PermissionId;
use types::message::{InputBlock, input_line, input_text, without_own_commands};
use types::permission::Mode;
use types::session::{Item, ItemKind, SessionState, SessionView};
use types::todo::TodoStatus;

/// The text of an input that may return to the input line. Mentioned files are attached again when it is sent.
pub(in crate::ui::attach) fn own_text(input: &[InputBlock]) -> String {
    let text = input_text(input);
    if text.is_empty() { input_line(input) } else { text }
}

/// The words of the user in a message: without the output of the user's own commands, which was sent along.
pub(in crate::ui::attach) fn own_words(item: &Item) -> String {
    without_own_commands(item.text.as_deref().unwrap_or_default()).to_owned()
}

/// Where an event is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownIn {
    History,
    /// In the rows around the input line.
    View,
}

impl App {
    pub(crate) fn on_event(&mut self, received: &ReceivedEvent) {
        let Some(envelope) = &received.event else { return };
        self.progress.on_event(envelope);
        self.follow_session(envelope);
        self.follow_queue(envelope);
        if self.apply_event(envelope) == ShownIn::History {
            self.show_event(envelope);
        }
    }

    /// Updates requests, questions and the rows around the input line.
    fn apply_event(&mut self, envelope: &Envelope) -> ShownIn {
        match &envelope.event {
            Event::PermissionRequested { request, .. } => self.pending.add_request(request, envelope.at_ms),
            Event::PermissionResolved { request_id, .. } => self.remove_request(*request_id),
            Event::SubagentStarted { child_session_id, agent, .. } => {
                self.pending.agents.insert(*child_session_id, agent.clone());
            }
            Event::FeedbackRequested { request_id, item_ids } => {
                self.pending.feedback = Some((*request_id, item_ids.clone()));
            }
            Event::FeedbackCompleted { .. } => self.pending.feedback = None,
            Event::QuestionRequested { question } => {
                // An open question is shown below the history. Once it is answered, it moves into the
                // history.
                self.pending.add_question(question, envelope.at_ms);
                self.finish_text();
                return ShownIn::View;
            }
            Event::QuestionResolved { request_id, answers, .. } => {
                if let Some(question) = self.pending.remove_question(*request_id) {
                    let is_answered = is_typed(&question) && !answers.is_empty();
                    let lines = match is_answered {
                        true => question::answered_lines(&question, answers),
                        false => question::question_lines(&question),
                    };
                    lines.iter().for_each(|line| self.push_line(line));
                    if is_answered {
                        return ShownIn::View;
                    }
                }
            }
            Event::TodoUpdated { todos } => {
                // The list is repainted in its place. At the end of the turn it moves into the history.
                self.todos.clone_from(todos);
                self.finish_text();
                return ShownIn::View;
            }
            Event::WorkspaceTrustRequired { parts, .. } => {
                let parts: Vec<&str> = untrusted_parts(parts).into_iter().map(String::as_str).collect();
                if !parts.is_empty() {
                    self.warnings.push(format!(
                        "this folder is not trusted (agentctl trust); not used: {}",
                        one_line(&parts.join(", "), 300)
                    ));
                }
                return ShownIn::View;
            }
            Event::TurnCompleted { .. } => {
                self.end_stop_hint();
                self.hint_at_unanswered_input();
                self.show_todos();
            }
            // A hint is about the turn before it.
            Event::TurnStarted { .. } => {
                self.notice.clear();
                if matches!(self.line.next_key, NextKey::Rewinds | NextKey::Leaves | NextKey::AsksForAnswer) {
                    self.line.next_key = NextKey::Usual;
                }
            }
            // The rows around the input line show this already.
            Event::TurnSteered { .. } => return ShownIn::View,
            Event::SessionUpdated { options, .. } if options.mode.is_some() => return ShownIn::View,
            _ => {}
        }
        ShownIn::History
    }

    fn show_event(&mut self, envelope: &Envelope) {
        if let Event::MessageCompleted { item, superseded: false, .. } = &envelope.event
            && item.kind == ItemKind::AssistantMessage
            && let Some(text) = item.text.as_ref().filter(|text| !text.trim().is_empty())
        {
            self.scrollback.last_answer = Some(text.clone());
        }
        if let Event::MessageCompleted { item, .. } = &envelope.event
            && item.kind == ItemKind::UserMessage
            && self.setup.one_turn.is_none()
        {
            self.push_line(&StyledLine::default());
        }
        self.scrollback.transcript.set_columns(self.columns);
        let pieces = self.scrollback.transcript.render_event(envelope);
        self.scrollback.push_pieces(pieces, self.columns);
        if let Event::PermissionResolved { request_id, scope, grant: Some(grant), .. } = &envelope.event
            && self.pending.granted.take_if(|granted| granted == request_id).is_some()
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
                if let Some(turn) =
                    turn.filter(|turn| !self.queue.inputs.iter().any(|(known, _)| known == turn))
                {
                    let index = if *front { 0 } else { self.queue.inputs.len() };
                    self.queue.inputs.insert(index, (turn, own_text(input)));
                }
            }
            Event::TurnQueueUpdated { input } => {
                if let Some((_, text)) =
                    self.queue.inputs.iter_mut().find(|(queued, _)| Some(*queued) == turn)
                {
                    *text = own_text(input);
                }
            }
            Event::TurnQueueMoved { before } => {
                let Some(from) = self.queue.inputs.iter().position(|(queued, _)| Some(*queued) == turn)
                else {
                    return;
                };
                let moved = self.queue.inputs.remove(from);
                let to = before
                    .and_then(|before| self.queue.inputs.iter().position(|(queued, _)| *queued == before));
                self.queue.inputs.insert(to.unwrap_or(self.queue.inputs.len()), moved);
            }
            Event::TurnDequeued { .. } | Event::TurnStarted { .. } => {
                self.queue.inputs.retain(|(queued, _)| Some(*queued) != turn);
            }
            Event::TurnSteered { input } => self.queue.steered.push(own_text(input)),
            // The steered inputs are now part of the conversation.
            Event::MessageCompleted { item, .. } if item.kind == ItemKind::UserMessage => {
                let text = item.text.as_deref().unwrap_or_default();
                let is_read = |steered: &mut String| text.contains(steered.as_str());
                self.queue.unanswered =
                    self.queue.steered.extract_if(.., is_read).last().or(self.queue.unanswered.take());
                self.line.editor.remember(&own_words(item));
            }
            Event::MessageStarted { .. } => self.queue.unanswered = None,
            Event::TurnCompleted { .. } => self.queue.steered.clear(),
            _ => {}
        }
    }

    fn remove_request(&mut self, id: PermissionId) {
        self.pending.remove_request(id);
        if self.line.content.request() == Some(id) {
            self.stop_writing();
        }
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
