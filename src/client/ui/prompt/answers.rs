//! The answers to a permission request: their keys, their parameters, and their confirmations.

use serde_json::Value;

use crate::terminal::style::{StyledLine, Tone};
use crate::ui::summary;
use api::params::ApproveParams;
use types::permission::{Decision, Mode, RequestKind, Scope};
use types::session::PermissionRequest;

/// The answers that single keys give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Allow this call.
    Once,
    /// Allow calls like this one for the rest of the session.
    Session,
    /// Allow calls like this one in this folder, until the grant is removed.
    Project,
    /// Approve a plan, and accept edits while it is carried out.
    AcceptEdits,
    /// Allow this call with other arguments.
    Edit,
    /// Deny the call.
    Deny,
    /// Deny the call, with feedback for the model.
    Feedback,
    /// Abort the turn.
    Abort,
}

impl Answer {
    /// The answer that a key gives.
    #[must_use]
    pub fn from_key(key: char) -> Option<Self> {
        match key.to_ascii_lowercase() {
            'y' => Some(Answer::Once),
            '1' => Some(Answer::Once),
            '2' => Some(Answer::Session),
            '3' => Some(Answer::Project),
            'e' => Some(Answer::Edit),
            'n' | '4' => Some(Answer::Deny),
            'f' => Some(Answer::Feedback),
            'a' => Some(Answer::Abort),
            _ => None,
        }
    }
}

/// The answer of a key, if this request accepts it. An unsandboxed retry must keep its command unchanged. Its
/// grant lasts at most for the session.
#[must_use]
pub fn answer_for_key(request: &PermissionRequest, key: char) -> Option<Answer> {
    if request.kind == RequestKind::Plan {
        return match key.to_ascii_lowercase() {
            '2' => Some(Answer::AcceptEdits),
            // As in the list: say what to change.
            '3' => Some(Answer::Feedback),
            key => Answer::from_key(key),
        };
    }
    let leaves = request.kind == RequestKind::Sandbox;
    Answer::from_key(key).filter(|answer| match answer {
        Answer::Project | Answer::Edit => !leaves,
        Answer::Session => !leaves || !request.suggestions.is_empty(),
        Answer::AcceptEdits => false,
        Answer::Once | Answer::Deny | Answer::Feedback | Answer::Abort => true,
    })
}

/// The parameters of `session.approve` for an answer.
#[must_use]
pub fn approval(
    request: &PermissionRequest,
    decision: Decision,
    scope: Scope,
    feedback: Option<String>,
) -> ApproveParams {
    let lasts = decision == Decision::Allow && scope != Scope::Once;
    let grant = lasts.then(|| request.suggestions.first().cloned()).flatten();
    ApproveParams {
        request_id: Some(request.request_id),
        decision: Some(decision),
        scope,
        grant,
        feedback,
        // The answer applies to exactly the request that was on the screen.
        digest: Some(request.digest.clone()).filter(|digest| !digest.is_empty()),
        ..ApproveParams::default()
    }
}

/// The parameters of `session.approve` for a plan whose edits are accepted.
#[must_use]
pub fn approval_with_edits(request: &PermissionRequest) -> ApproveParams {
    let mode = Some(Mode::AcceptEdits);
    ApproveParams { mode, ..approval(request, Decision::Allow, Scope::Once, None) }
}

/// The command of a shell call whose other arguments an edit keeps.
fn bash_command(request: &PermissionRequest) -> Option<&str> {
    request.input.get("command").and_then(Value::as_str).filter(|_| request.tool == "Bash")
}

/// The arguments as text for editing: the command of a shell call, otherwise JSON.
#[must_use]
pub fn editable_input(request: &PermissionRequest) -> String {
    if let Some(command) = bash_command(request) {
        return command.to_owned();
    }
    serde_json::to_string_pretty(&request.input).unwrap_or_default()
}

/// The parameters of `session.approve` for edited arguments, or the error in them.
pub fn parse_edited(request: &PermissionRequest, text: &str) -> Result<ApproveParams, String> {
    // No command begins with `{` unless a blank follows, and none is JSON. So JSON is accepted for a command as well.
    let is_json = |text: &str| {
        let group = text.strip_prefix('{').is_some_and(|rest| rest.starts_with(char::is_whitespace));
        text.starts_with('{') && !group || serde_json::from_str::<Value>(text).is_ok()
    };
    let input: Value = match bash_command(request) {
        Some(_) if text.trim().is_empty() => return Err("the command is empty".into()),
        Some(_) if !is_json(text.trim()) => {
            let mut input = request.input.clone();
            input["command"] = Value::from(text);
            input
        }
        _ => serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?,
    };
    if !input.is_object() {
        return Err("expected a JSON object".into());
    }
    let updated_input = (input != request.input).then_some(input);
    Ok(ApproveParams { updated_input, ..approval(request, Decision::Allow, Scope::Once, None) })
}

/// The line of the keys, after the rule that 2 and 3 would add. The numbers are the same as in the list of
/// `attach`. The line fits 80 columns.
#[must_use]
pub fn keys(request: &PermissionRequest) -> Vec<StyledLine> {
    let grant = request.suggestions.first();
    let mut keys = vec![("1", "once")];
    match request.kind {
        RequestKind::Plan => keys = vec![("1", "yes, carry it out"), ("2", "yes, and accept edits")],
        RequestKind::Sandbox => {
            keys = vec![("1", "once outside")];
            keys.extend(grant.map(|_| ("2", "this command until the session ends")));
        }
        RequestKind::Tool if grant.is_some() => keys.extend([("2", "session"), ("3", "this folder")]),
        RequestKind::Tool => {}
    }
    match request.kind {
        RequestKind::Plan => keys.extend([("3", "no, and what to change"), ("4", "no")]),
        _ => keys.extend([("4", "no"), ("f", "no, and why")]),
    }
    if request.kind == RequestKind::Tool {
        keys.push(("e", "edit"));
    }
    keys.push(("a", "stop"));
    let mut lines = Vec::new();
    if let (Some(grant), RequestKind::Tool) = (grant, request.kind) {
        let rule = summary::one_line(grant, 60);
        lines.push(StyledLine::new(Tone::Dim, "▌ 2 and 3 write the rule ").and(Tone::Tool, rule));
    }
    let mut line = StyledLine::new(Tone::Plain, "▌ ");
    for (nth, (key, word)) in keys.into_iter().enumerate() {
        let gap = if nth > 0 { "  " } else { "" };
        line = line.and(Tone::Bold, format!("{gap}{key}")).and(Tone::Plain, format!(" {word}"));
    }
    lines.push(line);
    lines
}

/// The line that is shown instead of the keys while an answer needs confirmation; `None` if it needs none.
#[must_use]
pub fn confirmation(request: &PermissionRequest, answer: Answer) -> Option<StyledLine> {
    let grant = || request.suggestions.first().map(|grant| summary::one_line(grant, 60)).unwrap_or_default();
    let (what, grant) = match answer {
        Answer::Session => ("▌ allow for the session: ", grant()),
        Answer::Project => ("▌ allow in this folder until it is taken back: ", grant()),
        Answer::Abort => ("▌ abort the turn", String::new()),
        Answer::Once | Answer::AcceptEdits | Answer::Edit | Answer::Deny | Answer::Feedback => return None,
    };
    Some(confirm(StyledLine::new(Tone::Warn, what).and(Tone::Tool, grant)))
}

/// Appends the keys that confirm to a line.
pub(crate) fn confirm(line: StyledLine) -> StyledLine {
    line.and(Tone::Bold, "  Enter")
        .and(Tone::Plain, " confirms")
        .and(Tone::Bold, "  Esc")
        .and(Tone::Plain, " goes back")
}
