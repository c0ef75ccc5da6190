//! Answers as lines: for `--plain`, `TERM=dumb` and `run --quiet`. The prompt shows one question or request at a time.
//! A line with the number of an entry answers it. Pure.

use std::collections::VecDeque;

use crate::answer::permission::{self, PermissionChoice};
use crate::answer::question::{self, GivenAnswers, choice_of, is_typed};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::prompt;
use crate::ui::question::{input_mark, line_keys};
use crate::ui::request_list::{ListEntry, ListOutcome, RequestList};
use crate::ui::summary::one_line;
use api::params::{AnswerParams, ApproveParams};
use types::event::Event;
use types::ids::RequestId;
use types::permission::RequestKind;
use types::question::Question;

#[derive(Debug)]
pub(crate) enum LineResult {
    /// Send this answer to a permission request.
    Approve(ApproveParams),
    /// Send this answer to a question.
    Answer(AnswerParams),
    /// Print these lines. The request stays open.
    Print(Vec<StyledLine>),
    /// The line answers nothing.
    NoAnswer,
}

/// The open questions and requests. A request stays open until the daemon reports its end, so that a user can answer
/// again if an answer was lost with the connection.
#[derive(Default)]
pub(crate) struct LinePrompt {
    requests: RequestList,
    /// Questions are answered before requests, because the turn makes no new request while a question is open.
    questions: VecDeque<Question>,
    answers: GivenAnswers,
    /// The request whose lines were taken.
    printed: Option<RequestId>,
}

impl LinePrompt {
    /// Opens and closes requests.
    pub(crate) fn on_event(&mut self, event: &Event) {
        match event {
            Event::PermissionRequested { request, .. } => self.requests.push(request.clone()),
            Event::PermissionResolved { request_id, .. } => {
                self.requests.remove(*request_id);
            }
            Event::QuestionRequested { question } => self.questions.push_back(question.clone()),
            Event::QuestionResolved { request_id, .. } => {
                if self.front() == Some(RequestId::Question(*request_id)) {
                    self.answers.clear();
                }
                self.questions.retain(|question| question.request_id != *request_id);
            }
            _ => {}
        }
    }

    /// Whether a line may be an answer.
    pub(crate) fn is_open(&self) -> bool {
        self.front().is_some()
    }

    fn front(&self) -> Option<RequestId> {
        let question = self.questions.front().map(|question| RequestId::Question(question.request_id));
        question.or_else(|| self.requests.current().map(|request| RequestId::Permission(request.request_id)))
    }

    /// The lines of the request that is open now; empty if they were taken before. The text of a question is not part of
    /// them, because the transcript contains it.
    pub(crate) fn take_lines(&mut self, columns: usize) -> Vec<StyledLine> {
        let front = self.front();
        if self.printed == front {
            return Vec::new();
        }
        self.printed = front;
        let request = self.requests.current().filter(|_| self.questions.is_empty());
        let mut lines = request.map(|request| prompt::rows(request, columns)).unwrap_or_default();
        lines.extend(self.answer_lines());
        lines
    }

    pub(crate) fn answer_lines(&self) -> Vec<StyledLine> {
        if let Some(question) = self.questions.front() {
            let mut lines = vec![line_keys(question)];
            let next = self.answers.next_question(question).filter(|_| question.questions.len() > 1);
            lines.extend(next.map(|next| {
                let mark = input_mark(question, self.answers.as_slice().len());
                let text = one_line(&next.question, 200);
                StyledLine::new(Tone::Warn, format!("▌ {mark}")).and(Tone::Bold, text)
            }));
            return lines;
        }
        let Some(request) = self.requests.current() else { return Vec::new() };
        let hint = match request.kind {
            _ if self.requests.is_page_open() => "type a number, then Enter · Enter alone goes back",
            RequestKind::Plan => "type a number, then Enter · 3 WORDS says what to change",
            RequestKind::Tool | RequestKind::Sandbox => {
                "type a number, then Enter · 4 WORDS tells the model why"
            }
        };
        let hint = StyledLine::new(Tone::Warn, "▌ ").and(Tone::Dim, hint);
        self.requests.answer_lines().into_iter().chain([hint]).collect()
    }

    /// Handles a typed line.
    pub(crate) fn on_line(&mut self, line: &str) -> LineResult {
        let line = line.trim();
        match self.questions.is_empty() {
            true => self.on_request_line(line),
            false => self.on_question_line(line),
        }
    }

    fn on_question_line(&mut self, line: &str) -> LineResult {
        let Some(question) = self.questions.front() else { return LineResult::NoAnswer };
        if !is_typed(question) {
            return match choice_of(line) {
                Some(choice) => LineResult::Answer(question::params(question.request_id, choice.name())),
                None => LineResult::NoAnswer,
            };
        }
        let Some(user_question) = self.answers.next_question(question) else { return LineResult::NoAnswer };
        match question::parse(user_question, line) {
            Err(error) => LineResult::Print(vec![StyledLine::new(Tone::Bad, format!("▌ {error}"))]),
            Ok(answer) => match self.answers.add(question, answer) {
                Some(params) => LineResult::Answer(params),
                None => LineResult::Print(self.answer_lines()),
            },
        }
    }

    fn on_request_line(&mut self, line: &str) -> LineResult {
        let Some(request) = self.requests.current() else { return LineResult::NoAnswer };
        if self.requests.is_page_open() {
            if line.is_empty() {
                self.requests.close_page();
                return LineResult::Print(self.answer_lines());
            }
            return match line.parse().ok().and_then(|number| self.requests.confirm(Some(number))) {
                Some(ListOutcome::Send(params)) => LineResult::Approve(params),
                _ => LineResult::NoAnswer,
            };
        }
        let (first, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let number = match first {
            "y" => ListEntry::ONCE.number(),
            "n" => ListEntry::DENY.number(),
            first => first.parse().unwrap_or(0),
        };
        let Some(entry) = self.requests.entries().into_iter().find(|entry| entry.number() == number) else {
            return LineResult::NoAnswer;
        };
        if !words.is_empty() {
            return match entry {
                ListEntry::Words | ListEntry::Answer(PermissionChoice::Deny) => {
                    LineResult::Approve(permission::denial(request, words))
                }
                // The user writes something else that begins with a number.
                _ => LineResult::NoAnswer,
            };
        }
        match self.requests.answer(entry) {
            Some(ListOutcome::Send(params)) => LineResult::Approve(params),
            Some(ListOutcome::Page | ListOutcome::Words) => LineResult::Print(self.answer_lines()),
            Some(ListOutcome::SendAll(_) | ListOutcome::SendAndAcceptEdits(_)) | None => LineResult::NoAnswer,
        }
    }
}

#[cfg(test)]
mod tests;
