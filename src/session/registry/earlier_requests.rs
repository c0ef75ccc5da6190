//! Selects the requests of a sub-agent that its parent receives when it follows the sub-agent's journal again.

use std::collections::BTreeMap;

use types::event::Event;
use types::ids::RequestId;

/// The requests that a sub-agent raised before its journal was followed, each with its expiry. Once the journal has
/// been read up to that point, the requests that are still pending are reported.
#[derive(Default)]
pub(super) struct EarlierRequests(BTreeMap<RequestId, Vec<Event>>);

impl EarlierRequests {
    /// Keeps an earlier request and its expiry. Returns any other event of a request, which must be reported now;
    /// `None` for events that are about no request.
    pub(super) fn filter(&mut self, event: Event, is_earlier: bool) -> Option<Event> {
        match &event {
            Event::PermissionRequested { request, .. } if is_earlier => {
                self.0.insert(RequestId::Permission(request.request_id), vec![event]);
                None
            }
            Event::QuestionRequested { question } if is_earlier => {
                self.0.insert(RequestId::Question(question.request_id), vec![event]);
                None
            }
            // An answer can arrive while earlier requests are still kept. Then the request is not reported any
            // more. The answer is still reported, because the request may have been shown before a restart.
            Event::PermissionResolved { request_id, .. } => {
                self.0.remove(&RequestId::Permission(*request_id));
                Some(event)
            }
            Event::QuestionResolved { request_id, .. } => {
                self.0.remove(&RequestId::Question(*request_id));
                Some(event)
            }
            Event::PermissionExpired { request_id, .. } => {
                match self.0.get_mut(&RequestId::Permission(*request_id)) {
                    // The parent ignores the expiry of a request that it does not know yet.
                    Some(events) => events.push(event),
                    None => return Some(event),
                }
                None
            }
            Event::PermissionRequested { .. } | Event::QuestionRequested { .. } => Some(event),
            _ => None,
        }
    }

    /// Returns the requests that are still pending, each before its expiry.
    pub(super) fn take_pending(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.0).into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use types::event::SettledBy;
    use types::ids::{CallId, PermissionId, QuestionId};
    use types::permission::OnTimeout;
    use types::question::QuestionKind;

    fn requested(id: u128) -> Event {
        let request_id = QuestionId::from_uuid(Uuid::from_u128(id));
        let question = json!({"request_id": request_id, "kind": "question", "text": "Which?", "options": []});
        Event::QuestionRequested { question: serde_json::from_value(question).expect("a question") }
    }

    fn resolved(id: u128) -> Event {
        Event::QuestionResolved {
            request_id: QuestionId::from_uuid(Uuid::from_u128(id)),
            kind: QuestionKind::Question,
            call_id: None,
            choice: None,
            answers: Vec::new(),
            by: SettledBy::Answer,
            child_session_id: None,
        }
    }

    #[test]
    fn request_answered_before_earlier_ones_are_reported_is_not_reported() {
        let mut earlier = EarlierRequests::default();
        assert_eq!(earlier.filter(requested(1), true), None);
        assert_eq!(earlier.filter(requested(2), true), None);
        assert_eq!(earlier.filter(resolved(1), false), Some(resolved(1)), "it was shown before the restart");
        assert_eq!(earlier.filter(requested(3), false), Some(requested(3)), "a new request is not kept");
        assert_eq!(earlier.take_pending(), [requested(2)]);
        assert_eq!(earlier.take_pending(), []);
    }

    #[test]
    fn expiry_of_earlier_request_is_reported_after_it() {
        let request_id = PermissionId::from_uuid(Uuid::from_u128(1));
        let call_id = CallId::from_uuid(Uuid::from_u128(2));
        let requested = json!({
            "type": "permission.requested", "request_id": request_id, "call_id": call_id, "tool": "Bash", "input": {},
            "summary": "", "subject": {"kind": "bash", "command": "ls"}, "reason": "", "suggestions": [], "cwd": "/w",
        });
        let requested: Event = serde_json::from_value(requested).expect("an event");
        let expired = Event::PermissionExpired {
            request_id,
            call_id,
            on_timeout: OnTimeout::Pause,
            child_session_id: None,
        };
        let mut earlier = EarlierRequests::default();
        assert_eq!(earlier.filter(expired.clone(), true), Some(expired.clone()), "its request is not kept");
        assert_eq!(earlier.filter(requested.clone(), true), None);
        assert_eq!(earlier.filter(expired.clone(), true), None);
        assert_eq!(earlier.take_pending(), [requested, expired]);
    }
}
