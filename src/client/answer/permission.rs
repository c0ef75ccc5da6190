//! The answers to a permission request.

use serde_json::Value;

use api::params::ApproveParams;
use types::permission::{Decision, Mode, RequestKind, Scope};
use types::session::PermissionRequest;

/// An answer that a request offers. A rule is an index of the request's `suggestions`, which begin with the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermissionChoice {
    /// Allow this call. A plan is carried out with requests before its edits.
    Once,
    /// Allow the calls of this rule until the session ends.
    Session(usize),
    /// Allow the calls of this rule in the folder, until the rule is removed.
    Folder(usize),
    /// Carry out a plan, and accept its edits.
    AcceptEdits,
    Deny,
}

/// The answers that a request offers.
pub(crate) fn choices(request: &PermissionRequest) -> Vec<PermissionChoice> {
    let rules = 0..request.suggestions.len();
    let mut choices = vec![PermissionChoice::Once];
    match request.kind {
        RequestKind::Plan => choices.push(PermissionChoice::AcceptEdits),
        // A rule for an unsandboxed retry covers only this command, and lasts at most for the session.
        RequestKind::Sandbox => choices.extend(rules.take(1).map(PermissionChoice::Session)),
        RequestKind::Tool => {
            choices.extend(rules.clone().map(PermissionChoice::Session));
            choices.extend(rules.map(PermissionChoice::Folder));
        }
    }
    choices.push(PermissionChoice::Deny);
    choices
}

/// The parameters of `session.approve` for an answer.
pub(crate) fn params(request: &PermissionRequest, choice: PermissionChoice) -> ApproveParams {
    let (scope, rule) = match choice {
        PermissionChoice::Session(rule) => (Scope::Session, Some(rule)),
        PermissionChoice::Folder(rule) => (Scope::Project, Some(rule)),
        PermissionChoice::Once | PermissionChoice::AcceptEdits | PermissionChoice::Deny => {
            (Scope::Once, None)
        }
    };
    let mode = match (request.kind, choice) {
        (RequestKind::Plan, PermissionChoice::Once) => Some(Mode::Default),
        (RequestKind::Plan, PermissionChoice::AcceptEdits) => Some(Mode::AcceptEdits),
        _ => None,
    };
    let decision = if choice == PermissionChoice::Deny { Decision::Deny } else { Decision::Allow };
    ApproveParams {
        request_id: Some(request.request_id),
        decision: Some(decision),
        scope,
        grant: rule.and_then(|rule| request.suggestions.get(rule).cloned()),
        mode,
        // The answer applies to exactly the request that was on the screen.
        digest: Some(request.digest.clone()).filter(|digest| !digest.is_empty()),
        ..ApproveParams::default()
    }
}

/// The parameters of a denial with words for the model.
pub(crate) fn denial(request: &PermissionRequest, words: &str) -> ApproveParams {
    let feedback = Some(words.to_owned()).filter(|words| !words.trim().is_empty());
    ApproveParams { feedback, ..params(request, PermissionChoice::Deny) }
}

/// Whether the call may run with other arguments. An unsandboxed retry must keep its command.
pub(crate) fn can_edit(request: &PermissionRequest) -> bool {
    request.kind != RequestKind::Sandbox
}

/// The command of a shell call whose other arguments an edit keeps.
fn bash_command(request: &PermissionRequest) -> Option<&str> {
    request.input.get("command").and_then(Value::as_str).filter(|_| request.tool == "Bash")
}

/// The arguments as text for editing: the command of a shell call, otherwise JSON.
pub(crate) fn editable_input(request: &PermissionRequest) -> String {
    if let Some(command) = bash_command(request) {
        return command.to_owned();
    }
    serde_json::to_string_pretty(&request.input).unwrap_or_default()
}

/// The parameters of `session.approve` for edited arguments, or the error in them.
pub(crate) fn parse_edited(request: &PermissionRequest, text: &str) -> Result<ApproveParams, String> {
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
    Ok(ApproveParams { updated_input, ..params(request, PermissionChoice::Once) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(kind: &str) -> PermissionRequest {
        serde_json::from_value(json!({
            "request_id": "perm_0190f2a4-0000-7000-8000-000000000004",
            "call_id": "call_0190f2a4-0000-7000-8000-000000000003",
            "kind": kind, "tool": "Bash", "input": {"command": "sh test.sh"}, "summary": "s",
            "subject": {"kind": "bash", "command": "sh test.sh"}, "reason": "no rule allows it",
            "suggestions": ["Bash(sh test.sh)", "Bash(sh:*)"]}))
        .expect("a request")
    }

    #[test]
    fn choices_follow_the_kind_of_the_request() {
        use PermissionChoice::{AcceptEdits, Deny, Folder, Once, Session};
        let tool = request("tool");
        assert_eq!(choices(&tool), [Once, Session(0), Session(1), Folder(0), Folder(1), Deny]);
        assert_eq!(choices(&PermissionRequest { suggestions: Vec::new(), ..tool }), [Once, Deny]);
        assert_eq!(choices(&request("sandbox")), [Once, Session(0), Deny]);
        assert_eq!(choices(&request("plan")), [Once, AcceptEdits, Deny]);
        assert!(!can_edit(&request("sandbox")) && can_edit(&request("tool")));
    }

    #[test]
    fn params_name_rule_mode_and_words() {
        let tool = request("tool");
        let answer = params(&tool, PermissionChoice::Session(0));
        assert_eq!((answer.scope, answer.grant.as_deref()), (Scope::Session, Some("Bash(sh test.sh)")));
        let answer = params(&tool, PermissionChoice::Folder(1));
        assert_eq!((answer.scope, answer.grant.as_deref()), (Scope::Project, Some("Bash(sh:*)")));
        assert_eq!(params(&tool, PermissionChoice::Once).grant, None);
        let mode = |choice| params(&request("plan"), choice).mode;
        assert_eq!(mode(PermissionChoice::AcceptEdits), Some(Mode::AcceptEdits));
        assert_eq!(mode(PermissionChoice::Once), Some(Mode::Default));
        assert_eq!(mode(PermissionChoice::Deny), None);
        let denied = denial(&tool, "use ninja");
        assert_eq!((denied.decision, denied.feedback.as_deref()), (Some(Decision::Deny), Some("use ninja")));
        assert_eq!(denial(&tool, " ").feedback, None);
    }

    #[test]
    fn approval_contains_digest_of_shown_request() {
        let mut tool = request("tool");
        assert_eq!(params(&tool, PermissionChoice::Once).digest, None);
        tool.digest = "ab".into();
        for choice in choices(&tool) {
            assert_eq!(params(&tool, choice).digest.as_deref(), Some("ab"), "{choice:?}");
        }
    }

    #[test]
    fn edited_arguments_are_sent_and_errors_reported() {
        let request = request("tool");
        let same = parse_edited(&request, &editable_input(&request)).expect("JSON");
        assert_eq!((same.decision, same.updated_input), (Some(Decision::Allow), None));
        let other = parse_edited(&request, "{\"command\": \"sh -n test.sh\"}").expect("JSON");
        assert_eq!(other.updated_input, Some(json!({"command": "sh -n test.sh"})));
        // A command is edited as a command, with the other arguments unchanged.
        assert_eq!(editable_input(&request), "sh test.sh");
        for command in ["sh -n test.sh", "[ -f x ] && sh x", "{ ls; }", "a\nb", "echo '{\"a\": 1}'"] {
            let edited = parse_edited(&request, command).expect("a command");
            assert_eq!(edited.updated_input, Some(json!({"command": command})), "{command}");
        }
        assert!(parse_edited(&request, " ").is_err());
        assert!(parse_edited(&request, "{").is_err_and(|error| error.contains("JSON")));
        assert!(parse_edited(&request, "[]").is_err_and(|error| error.contains("object")));
    }
}
