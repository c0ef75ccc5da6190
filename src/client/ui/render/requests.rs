//! Permission requests, questions, and the choice between two answers.

use crate::terminal::style::{StyledLine, Tone, cut};
use crate::ui::feedback;
use crate::ui::question;
use crate::ui::render::ends::{client_name, resolved};
use crate::ui::render::{OutputPiece, Transcript, lines};
use crate::ui::summary::call_summary;
use types::event::{Envelope, Event, SettledBy};
use types::permission::RequestKind;
use types::session::PermissionRequest;

impl Transcript {
    pub(super) fn request_event(&mut self, envelope: &Envelope) -> Vec<OutputPiece> {
        match &envelope.event {
            Event::FeedbackRequested { request_id, .. } => lines(vec![feedback::request_line(*request_id)]),
            Event::FeedbackCompleted { by, .. } => {
                let number =
                    self.candidates.iter().position(|candidate| Some(*candidate) == envelope.item_id);
                let origin = envelope.origin.as_ref().map(|origin| origin.client.as_str());
                self.is_chosen = number.is_some();
                self.candidates.clear();
                lines(vec![feedback::choice_line(number.map(|number| number + 1), *by, origin)])
            }
            Event::QuestionRequested { question } => lines(question::question_lines(question)),
            Event::QuestionResolved { kind, choice, answers, by, .. } => {
                let how = match by {
                    SettledBy::Submit => "continued by a further input".to_string(),
                    SettledBy::Abort => "no longer asked".into(),
                    SettledBy::Answer
                    | SettledBy::Timeout
                    | SettledBy::NoApprover
                    | SettledBy::Rule
                    | SettledBy::Mode => match choice {
                        Some(choice) => choice.name().into(),
                        None => answers.iter().map(question::answer_text).collect::<Vec<_>>().join(" · "),
                    },
                };
                let who = envelope.origin.as_ref().map(|o| format!(" by {}", client_name(&o.client)));
                let what = kind.name().replace('_', " ");
                lines(vec![
                    StyledLine::new(Tone::Dim, format!("  └ {what}: "))
                        .and(Tone::Plain, how)
                        .and(Tone::Dim, who.unwrap_or_default()),
                ])
            }
            Event::PermissionRequested { request, .. } => {
                let summary = asked_summary(request);
                self.request_summaries.insert(request.request_id, summary);
                if request.child_session_id.is_none() {
                    self.calls.remember_summary(request.call_id, &request.tool, &request.input);
                }
                Vec::new()
            }
            Event::PermissionResolved { request_id, call_id, .. } => {
                let what = self.request_summaries.remove(request_id).unwrap_or_default();
                let who = envelope.origin.as_ref().map(|o| o.client.as_str());
                let line = resolved("", &envelope.event, who);
                let foreign = self.calls.add_note(*call_id, line).is_some();
                if foreign { lines(vec![resolved(&what, &envelope.event, who)]) } else { Vec::new() }
            }
            Event::PermissionExpired { request_id, on_timeout, .. } => {
                let what = self.request_summaries.get(request_id).cloned().unwrap_or_default();
                lines(vec![
                    StyledLine::new(Tone::Dim, format!("  └ {} ", cut(&what, 60)))
                        .and(Tone::Warn, "no user answered in time: ")
                        .and(Tone::Plain, on_timeout.name().replace('_', " ")),
                ])
            }
            _ => Vec::new(),
        }
    }
}

/// The request in one line.
pub(crate) fn asked_summary(request: &PermissionRequest) -> String {
    let summary = call_summary(&request.tool, &request.input);
    match request.kind {
        RequestKind::Tool => summary,
        RequestKind::Plan => "carry out the plan".into(),
        RequestKind::Sandbox => format!("again, OUTSIDE THE SANDBOX: {summary}"),
    }
}
