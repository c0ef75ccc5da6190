//! The state of a session in words, with how its last turn ended.

use crate::terminal::escape;
use crate::terminal::style::{Tone, cut};
use types::session::{LastTurn, Requires, SessionState, SessionView, Subtype};

/// Maximum columns of a call in a state.
const MAX_CALL_COLUMNS: usize = 40;

/// The state in words: the running calls, the decision that the session waits for, or how its last turn
/// ended.
pub fn state(session: &SessionView) -> (Tone, String) {
    let (tone, text) = state_words(session);
    match session.background_commands.len() {
        0 => (tone, text),
        count => (if tone == Tone::Dim { Tone::Good } else { tone }, format!("{text} +{count} bg")),
    }
}

/// Whether the last turn failed or was stopped by a limit, and nothing has started since.
pub fn has_failed(session: &SessionView) -> bool {
    matches!(session.summary.state, SessionState::Idle | SessionState::Failed)
        && session
            .summary
            .last_turn
            .as_ref()
            .is_some_and(|turn| !matches!(turn.subtype, Subtype::Success | Subtype::Aborted))
        || session.summary.state == SessionState::Failed
}

fn state_words(session: &SessionView) -> (Tone, String) {
    let activity = session.summary.activity.as_deref().map(|text| cut(&escape::line(text), MAX_CALL_COLUMNS));
    match (session.summary.state, session.summary.requires) {
        (SessionState::Running, _) => (Tone::Good, activity.unwrap_or_else(|| "running".into())),
        (SessionState::RequiresAction, Some(Requires::Permission)) => {
            // Show the tool only, because `approvals` and `attach` show the whole call.
            let tool = activity.as_deref().and_then(|text| text.split(' ').next()).unwrap_or("permission");
            (Tone::Warn, format!("waits: {tool}"))
        }
        (SessionState::RequiresAction, requires) => {
            let what = match requires {
                Some(Requires::UnknownOutcome) => "unknown outcome",
                Some(Requires::Question) => "question",
                _ => "you",
            };
            (Tone::Warn, format!("waits: {what}"))
        }
        (SessionState::Paused, _) => (Tone::Warn, "paused: answer".into()),
        (SessionState::Failed, _) => (Tone::Bad, "failed".into()),
        (SessionState::Idle, _) => {
            session.summary.last_turn.as_ref().map_or((Tone::Dim, "idle".into()), last_turn)
        }
        (other, _) => (Tone::Dim, other.name().into()),
    }
}

/// The end of a turn, in words.
pub fn last_turn(turn: &LastTurn) -> (Tone, String) {
    let stopped = |what: &str| (Tone::Warn, format!("stopped: {what}"));
    match turn.subtype {
        Subtype::Success => (Tone::Dim, "idle".into()),
        Subtype::Aborted => (Tone::Warn, "stopped by you".into()),
        Subtype::PermissionDenied => stopped("denied"),
        Subtype::ErrorMaxTurns => stopped("call limit"),
        Subtype::ErrorMaxBudgetUsd => stopped("budget"),
        Subtype::ErrorMaxTokens => stopped("token limit"),
        Subtype::ErrorMaxTime => stopped("time limit"),
        Subtype::MaxOutputTokens => stopped("answer too long"),
        Subtype::ErrorRepeatedCall => stopped("same call again"),
        Subtype::StructuredOutputInvalid => (Tone::Bad, "failed: wrong shape".into()),
        Subtype::LlmError | Subtype::ErrorDuringExecution => {
            let reason = match turn.kind.as_deref() {
                Some("unauthorized" | "forbidden") => "key refused",
                Some("no_key") => "no key",
                Some("unreachable") => "unreachable",
                Some("interrupted" | "idle") => "connection",
                Some("rate_limited") => "rate limit",
                Some("overloaded") => "overloaded",
                Some("server") => "server error",
                Some("not_found") => "no such model",
                Some("bad_request" | "garbage") => "bad request",
                Some("unconfigured") => "no model",
                Some("context_overflow") => "context full",
                Some("cassette_exhausted") => "cassette ended",
                _ if turn.subtype == Subtype::LlmError => "model",
                _ => "internal error",
            };
            (Tone::Bad, format!("failed: {reason}"))
        }
    }
}

/// The last line for lists: the error of a failed turn, else the end of the conversation.
pub fn last_line(session: &SessionView) -> (Tone, &str) {
    let error = session
        .summary
        .last_turn
        .as_ref()
        .filter(|_| has_failed(session))
        .and_then(|turn| turn.message.as_deref());
    match error {
        Some(error) => (Tone::Bad, error),
        None => (Tone::Dim, session.summary.last_line.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resolve_id::sample;

    #[test]
    fn session_states_are_words_with_colours() {
        let check = |changes: serde_json::Value, expected: (Tone, &str)| {
            let mut session = sample("ses_0190f2a4-0000-7000-8000-000000000001", "t");
            session
                .as_object_mut()
                .expect("an object")
                .extend(changes.as_object().expect("an object").clone());
            let session: SessionView = serde_json::from_value(session).expect("a session");
            assert_eq!(state(&session), (expected.0, expected.1.to_owned()));
        };
        check(json!({}), (Tone::Dim, "idle"));
        check(json!({"state": "running", "activity": "Bash cargo test"}), (Tone::Good, "Bash cargo test"));
        check(json!({"state": "running"}), (Tone::Good, "running"));
        check(
            json!({"state": "requires_action", "requires": "permission", "activity": "Edit src/lib.rs"}),
            (Tone::Warn, "waits: Edit"),
        );
        check(json!({"state": "requires_action", "requires": "question"}), (Tone::Warn, "waits: question"));
        let turn = |subtype: &str, kind: &str| json!({"last_turn": {"subtype": subtype, "kind": kind, "message": "m", "ended_at_ms": 1}});
        check(turn("llm_error", "unauthorized"), (Tone::Bad, "failed: key refused"));
        check(turn("error_max_budget_usd", "budget"), (Tone::Warn, "stopped: budget"));
        check(turn("aborted", "aborted"), (Tone::Warn, "stopped by you"));
        check(turn("success", ""), (Tone::Dim, "idle"));
        check(json!({"state": "ended"}), (Tone::Dim, "ended"));
    }
}
