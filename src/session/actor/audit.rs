//! Creates the audit rows of a decision, which are written in the transaction of its events.

use serde_json::Value;

use engine::{Engine, Plan};
use judge::Rule;
use types::audit::{AuditKind, AuditNote};
use types::event::{Envelope, Event, Origin, SettledBy};
use types::history::FileAction;
use types::ids::CallId;
use types::message::ToolCall;
use types::permission::{self, Decision, Mode, RuleKind};
use types::time::Timestamp;
use types::tool::{Confinement, ToolStatus};

/// The audit rows of a plan. `before` is the engine that made the plan; it contains the calls.
pub(crate) fn plan_notes(plan: &Plan, before: &Engine) -> Vec<AuditNote> {
    let events = plan.events.iter().map(|entry| &entry.envelope);
    events.flat_map(|fact| event_note(plan, before, fact).into_iter().chain(folders_note(fact))).collect()
}

/// The audit row of a session that has or gets additional folders.
fn folders_note(fact: &Envelope) -> Option<AuditNote> {
    let folders = match &fact.event {
        Event::SessionUpdated { options, .. } | Event::TurnStarted { options } => {
            options.additional_dirs.as_ref()?
        }
        Event::SessionCreated(spec) if !spec.additional_dirs.is_empty() => &spec.additional_dirs,
        _ => return None,
    };
    let list = if folders.is_empty() { "none".to_owned() } else { folders.join(", ") };
    Some(session_note(fact, AuditKind::Folders, "allow", format!("folders that count as workspace: {list}")))
}

fn event_note(plan: &Plan, before: &Engine, fact: &Envelope) -> Option<AuditNote> {
    let new_note = |kind, verdict: &str, reason: String| session_note(fact, kind, verdict, reason);
    let of_call = |call_id: CallId, note: AuditNote| {
        let call = before.tool_call(call_id);
        let edited = match &fact.event {
            Event::PermissionResolved { updated_input, .. } => updated_input.as_ref(),
            _ => None,
        };
        let digest = call.as_ref().map(|call| digest(call, edited, before));
        AuditNote { call_id: Some(call_id), tool: call.map(|call| call.tool.clone()), digest, ..note }
    };
    match &fact.event {
        // The sub-agent's own event is in the log.
        event if event.shows_request_of().is_some() => None,
        Event::ToolStatus { call_id, allowed_by, prepared, .. } => {
            // A rule, or another reason for the permission as text: the mode or a built-in table.
            let is_rule = Rule::stored(allowed_by).is_ok();
            let reason =
                if is_rule { "no user was asked".into() } else { format!("no user was asked: {allowed_by}") };
            let note = new_note(AuditKind::Rule, "allow", reason);
            let note = AuditNote { rule: is_rule.then(|| allowed_by.clone()), ..note };
            Some(of_call(*call_id, with_sandbox(note, prepared.sandbox)))
        }
        Event::ToolCompleted { call_id, status: ToolStatus::Denied, output, detail, .. }
            if !was_settled(plan, *call_id) =>
        {
            let rule = detail.as_ref().and_then(|detail| detail["rule"].as_str()).map(str::to_owned);
            Some(of_call(*call_id, AuditNote { rule, ..new_note(AuditKind::Rule, "deny", output.clone()) }))
        }
        Event::PermissionResolved { call_id, decision, scope, grant, by, rule, .. } => {
            let verdict = match decision {
                Decision::Allow => "allow",
                Decision::Deny => "deny",
            };
            let reason = match (settled_without_answer(by), &fact.origin) {
                (Some(reason), _) => reason.to_owned(),
                (None, None) => "a grant of the session covers it".to_owned(),
                (None, Some(_)) => format!("answered, scope {}", wire_name(scope)),
            };
            let rule = grant.clone().or_else(|| rule.clone());
            let note = AuditNote { rule, ..new_note(AuditKind::Permission, verdict, reason) };
            Some(of_call(*call_id, with_sandbox(note, before.confinement(*call_id))))
        }
        Event::SessionRewound(rewound) => {
            let files = rewound.files.iter().filter(|file| file.action != FileAction::Unchanged).count();
            let items = rewound.removed_items.len();
            Some(new_note(
                AuditKind::Rewind,
                "allow",
                format!("{items} items removed, {files} files changed"),
            ))
        }
        Event::QuestionResolved { call_id, choice, kind, by, .. } => {
            let choice_name = choice.as_ref().map_or_else(|| "answered".to_owned(), wire_name);
            let note = new_note(
                AuditKind::Question,
                &choice_name,
                format!("{}, by {}", wire_name(kind), wire_name(by)),
            );
            Some(match call_id {
                Some(call_id) => of_call(*call_id, note),
                None => note,
            })
        }
        Event::FeedbackCompleted { request_id: Some(_), by, .. } => {
            let chosen = if fact.item_id.is_some() { "chosen" } else { "withdrawn" };
            Some(new_note(AuditKind::Question, chosen, format!("one of two answers, by {}", wire_name(by))))
        }
        Event::SessionUpdated { options, .. } => {
            Some(new_note(AuditKind::Mode, options.mode?.name(), "the session's mode was changed".into()))
        }
        Event::TurnStarted { options } => {
            let mode = options.mode.filter(|mode| *mode != before.spec().mode)?;
            Some(new_note(AuditKind::Mode, mode.name(), "the mode of one turn".into()))
        }
        Event::PermissionRuleAdded { kind, rule } => Some(with_rule(
            new_note(AuditKind::Grant, kind.name(), "a rule of the session was added".into()),
            rule,
        )),
        Event::PermissionRuleRemoved { kind, rule } => Some(with_rule(
            new_note(AuditKind::Grant, kind.name(), "a rule of the session was taken back".into()),
            rule,
        )),
        _ => None,
    }
}

/// Why a permission request ended without an answer.
fn settled_without_answer(by: &SettledBy) -> Option<&'static str> {
    match by {
        SettledBy::Abort => Some("withdrawn by an abort"),
        SettledBy::Timeout => Some("no user answered in time"),
        SettledBy::NoApprover => Some("no user could be asked"),
        SettledBy::Rule => Some("a newer rule covers it"),
        SettledBy::Mode => Some("the mode was changed to one that lets it pass"),
        _ => None,
    }
}

/// Adds the sandbox of the call, if the call is a command.
fn with_sandbox(note: AuditNote, sandbox: Option<Confinement>) -> AuditNote {
    match sandbox {
        Some(sandbox) => AuditNote { sandbox: sandbox.to_string(), ..note },
        None => note,
    }
}

fn with_rule(note: AuditNote, rule: &str) -> AuditNote {
    AuditNote { rule: Some(rule.into()), ..note }
}

/// The audit row of a user or workspace rule that was added or removed.
pub(crate) fn lasting_rule_note(
    at: Timestamp,
    add: bool,
    kind: RuleKind,
    rule: &str,
    place: &str,
    origin: &Origin,
) -> AuditNote {
    let what = if add { "added" } else { "taken back" };
    let note = AuditNote::new(at, AuditKind::Grant, kind.name(), format!("a rule for {place} was {what}"));
    with_rule(note.with_origin(Some(origin)), rule)
}

/// The audit rows of a session that starts in a less strict mode or with additional folders.
pub(crate) fn creation_notes(fact: &Envelope, mode: Mode) -> Vec<AuditNote> {
    let asks_less = matches!(mode, Mode::AcceptEdits | Mode::Bypass);
    let of_mode = asks_less
        .then(|| session_note(fact, AuditKind::Mode, mode.name(), "the session begins in this mode".into()));
    of_mode.into_iter().chain(folders_note(fact)).collect()
}

fn session_note(fact: &Envelope, kind: AuditKind, verdict: &str, reason: String) -> AuditNote {
    let note = AuditNote::new(fact.at_ms, kind, verdict, reason).with_origin(fact.origin.as_ref());
    AuditNote { session_id: Some(fact.session_id), seq: Some(fact.seq), ..note }
}

/// Whether the plan settles a request about the call. The answer is the decision then.
fn was_settled(plan: &Plan, call: CallId) -> bool {
    plan.events.iter().any(
        |entry| matches!(&entry.envelope.event, Event::PermissionResolved { call_id, .. } if *call_id == call),
    )
}

/// A digest that binds a decision to exactly this call.
fn digest(call: &ToolCall, edited: Option<&Value>, engine: &Engine) -> String {
    let input = edited.unwrap_or(&call.input);
    permission::digest(engine.session_id(), &engine.cwd().to_string_lossy(), &call.tool, input)
}

/// The wire name of a unit variant.
fn wire_name<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}
