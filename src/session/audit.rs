//! Which rows of the audit log a decision comes to (P7, S27). They go into the transaction of its
//! facts.

use sha2::{Digest as _, Sha256};

use crate::engine::{Engine, Plan};
use crate::types::audit::{AuditKind, AuditNote};
use crate::types::event::{Envelope, Event, SettledBy};
use crate::types::ids::CallId;
use crate::types::message::ToolCall;
use crate::types::permission::{Decision, Mode};
use crate::types::tool::ToolStatus;

/// The rows of a plan. `before` is the engine that made it: it knows the calls.
pub(super) fn notes(plan: &Plan, before: &Engine) -> Vec<AuditNote> {
    plan.facts.iter().filter_map(|entry| note(plan, before, &entry.envelope)).collect()
}

fn note(plan: &Plan, before: &Engine, fact: &Envelope) -> Option<AuditNote> {
    let made = |kind, verdict: &str, reason: String| {
        let note = AuditNote::new(fact.at_ms, kind, verdict, reason).by(fact.origin.as_ref());
        AuditNote { session_id: Some(fact.session_id), seq: Some(fact.seq), ..note }
    };
    let of_call = |call_id: CallId, note: AuditNote| {
        let call = before.tool_call(call_id);
        let digest = call.as_ref().map(|call| digest(call, before));
        AuditNote { call_id: Some(call_id), tool: call.map(|call| call.tool.clone()), digest, ..note }
    };
    match &fact.event {
        Event::ToolStatus { call_id, allowed_by, .. } => {
            let note = made(AuditKind::Rule, "allow", "nobody was asked".into());
            Some(of_call(*call_id, AuditNote { rule: Some(allowed_by.clone()), ..note }))
        }
        Event::ToolCompleted { call_id, status: ToolStatus::Denied, output, .. }
            if !was_settled(plan, *call_id) =>
        {
            Some(of_call(*call_id, made(AuditKind::Rule, "deny", output.clone())))
        }
        Event::PermissionResolved { call_id, decision, scope, grant, by, .. } => {
            let verdict = match decision {
                Decision::Allow => "allow",
                Decision::Deny => "deny",
            };
            let reason = match (by, &fact.origin, scope) {
                (SettledBy::Abort, _, _) => "withdrawn by an abort".to_owned(),
                (_, None, _) => "a grant of the session covers it".to_owned(),
                (_, Some(_), scope) => format!("answered, scope {}", word(scope)),
            };
            Some(of_call(
                *call_id,
                AuditNote { rule: grant.clone(), ..made(AuditKind::Permission, verdict, reason) },
            ))
        }
        Event::QuestionResolved { call_id, choice, kind, by, .. } => {
            let note = made(AuditKind::Question, &word(choice), format!("{}, by {}", word(kind), word(by)));
            Some(match call_id {
                Some(call_id) => of_call(*call_id, note),
                None => note,
            })
        }
        Event::SessionUpdated { mode: Some(mode), .. } => {
            Some(made(AuditKind::Mode, mode.name(), "the session's mode was changed".into()))
        }
        _ => None,
    }
}

/// The row of a session that begins in a mode that asks less than it could.
pub(super) fn of_creation(fact: &Envelope, mode: Mode) -> Option<AuditNote> {
    if !matches!(mode, Mode::AcceptEdits | Mode::Bypass) {
        return None;
    }
    let note = AuditNote::new(fact.at_ms, AuditKind::Mode, mode.name(), "the session begins in this mode");
    Some(AuditNote {
        session_id: Some(fact.session_id),
        seq: Some(fact.seq),
        ..note.by(fact.origin.as_ref())
    })
}

/// Whether the plan settles a request about the call: then that is the decision.
fn was_settled(plan: &Plan, call: CallId) -> bool {
    plan.facts.iter().any(
        |entry| matches!(&entry.envelope.event, Event::PermissionResolved { call_id, .. } if *call_id == call),
    )
}

/// What binds a decision to exactly this call (S6).
fn digest(call: &ToolCall, engine: &Engine) -> String {
    let (folder, session) = (engine.cwd().to_string_lossy(), engine.session_id());
    let text = serde_json::json!([call.tool, call.input, folder, session]).to_string();
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The wire name of a unit variant.
fn word<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}
