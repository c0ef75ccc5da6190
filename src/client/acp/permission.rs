//! Permission requests to the editor, and what its answer means. Pure.
//!
//! Only an option that was offered allows a call. Everything else denies it: an unknown option, `cancelled`, an error,
//! an answer of another form.

use serde_json::Value;

use super::mapper::calls::{fenced, locations, requested_call};
use super::mapper::diff::diff_parts;
use super::schema::{CallContent, OptionKind, PermissionOption, PermissionParams, ToolCall, chosen_option};
use crate::answer::permission::{self, PermissionChoice};
use api::params::ApproveParams;
use types::call_summary::call_title;
use types::ids::SessionId;
use types::permission::RequestKind;
use types::permission_request::PermissionRequest;
use types::tool::{ProposedPlan, Subject};

/// Maximum number of session grants that are offered, the narrowest first.
const MAX_SESSION_GRANTS: usize = 2;

/// The answers that the editor offers.
fn offered(request: &PermissionRequest) -> Vec<PermissionChoice> {
    let is_offered = |choice: &PermissionChoice| match choice {
        // One answer outside the sandbox must not become a rule by a wrong click.
        PermissionChoice::Session(rule) => *rule < MAX_SESSION_GRANTS && request.kind != RequestKind::Sandbox,
        PermissionChoice::Folder(rule) => *rule == 0,
        PermissionChoice::Once | PermissionChoice::AcceptEdits | PermissionChoice::Deny => true,
    };
    permission::choices(request).into_iter().filter(is_offered).collect()
}

/// The id of an option. The editor sends it back.
fn option_id(request: &PermissionRequest, choice: PermissionChoice) -> String {
    match choice {
        PermissionChoice::Once if request.kind == RequestKind::Plan => "plan:default".into(),
        PermissionChoice::Once => "once".into(),
        PermissionChoice::AcceptEdits => "plan:accept_edits".into(),
        PermissionChoice::Session(rule) => format!("session:{rule}"),
        PermissionChoice::Folder(_) => "project".into(),
        PermissionChoice::Deny => "deny".into(),
    }
}

fn option(request: &PermissionRequest, choice: PermissionChoice) -> PermissionOption {
    let rule = |rule: usize| request.suggestions.get(rule).map(String::as_str).unwrap_or_default();
    let name = match (choice, request.kind) {
        (PermissionChoice::Once, RequestKind::Plan) => "Approve, and ask before edits".into(),
        (PermissionChoice::Once, RequestKind::Sandbox) => "Run outside the sandbox once".into(),
        (PermissionChoice::Once, RequestKind::Tool) => "Allow once".into(),
        (PermissionChoice::AcceptEdits, _) => "Approve, and accept edits".into(),
        (PermissionChoice::Session(index), _) => format!("Allow {} in this session", rule(index)),
        (PermissionChoice::Folder(index), _) => format!("Always allow {} in this folder", rule(index)),
        (PermissionChoice::Deny, RequestKind::Plan) => "Keep planning".into(),
        (PermissionChoice::Deny, _) => "Deny".into(),
    };
    let kind = match choice {
        PermissionChoice::Once => OptionKind::AllowOnce,
        PermissionChoice::AcceptEdits | PermissionChoice::Session(_) | PermissionChoice::Folder(_) => {
            OptionKind::AllowAlways
        }
        PermissionChoice::Deny => OptionKind::RejectOnce,
    };
    PermissionOption { option_id: option_id(request, choice), name, kind }
}

pub(super) fn permission_params(session_id: SessionId, request: &PermissionRequest) -> PermissionParams {
    let options = offered(request).into_iter().map(|choice| option(request, choice)).collect();
    let title = call_title(&request.tool, &request.input, request.cwd.as_ref());
    let mut content = Vec::new();
    let mut places = locations(&request.input, &request.cwd);
    if let Some(diff) = &request.diff {
        let path = match &request.subject {
            Subject::Edit { path } | Subject::Delete { path } => Some(path.path.as_path()),
            _ => None,
        };
        let parts = diff_parts(diff, path, &request.cwd);
        content = parts.content;
        places = parts.locations;
    }
    // A user must see the whole command before the answer, also if the title is only its beginning.
    if let Subject::Bash { command, .. } = &request.subject
        && command.trim() != title
    {
        content.push(CallContent::text(fenced(command)));
    }
    if request.kind == RequestKind::Plan {
        content.push(CallContent::text(ProposedPlan::text(&request.input)));
    }
    let has_reason = request.kind != RequestKind::Plan && !request.reason.is_empty();
    let tool_call = ToolCall {
        content: Some(content),
        locations: Some(places).filter(|places| !places.is_empty()),
        ..requested_call(request)
    };
    PermissionParams {
        session_id: session_id.to_string(),
        tool_call,
        options,
        reason: has_reason.then(|| request.reason.clone()),
        is_about_call: true,
    }
}

/// The answer for the daemon. `reply` is the editor's result; `None` for an error.
pub(super) fn permission_answer(request: &PermissionRequest, reply: Option<&Value>) -> ApproveParams {
    let chosen = chosen_option(reply);
    let choice =
        offered(request).into_iter().find(|choice| Some(option_id(request, *choice).as_str()) == chosen);
    permission::params(request, choice.unwrap_or(PermissionChoice::Deny))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::schema::{CallState, Version};
    use serde_json::json;
    use types::permission::{Decision, Mode, Scope};

    fn request(kind: &str, suggestions: &[&str]) -> PermissionRequest {
        serde_json::from_value(json!({
            "request_id": "perm_0190f2a4-0000-7000-8000-000000000001",
            "call_id": "call_0190f2a4-0000-7000-8000-000000000002",
            "kind": kind, "tool": "Bash", "input": {"command": "make\ntest"}, "summary": "make",
            "subject": {"kind": "bash", "command": "make\ntest"}, "reason": "no rule allows it",
            "suggestions": suggestions, "cwd": "/w", "digest": "d1"
        }))
        .expect("a request")
    }

    fn selected(option: &str) -> Value {
        json!({"outcome": {"outcome": "selected", "optionId": option}})
    }

    #[test]
    fn anything_except_offered_allow_option_denies() {
        let asked = request("tool", &["Bash(make)"]);
        let replies = [
            None,
            Some(json!({})),
            Some(Value::Null),
            Some(json!("once")),
            Some(selected("deny")),
            Some(selected("reject_once")),
            Some(selected("session:7")),
            Some(selected("plan:default")),
            Some(selected("")),
            Some(json!({"outcome": {"outcome": "cancelled"}})),
            Some(json!({"outcome": {"outcome": "cancelled", "optionId": "once"}})),
            Some(json!({"outcome": {"optionId": "once"}})),
            Some(json!({"outcome": "once"})),
            Some(json!({"optionId": "once"})),
        ];
        for reply in replies {
            let answer = permission_answer(&asked, reply.as_ref());
            assert_eq!((answer.decision, answer.scope), (Some(Decision::Deny), Scope::Once), "{reply:?}");
        }
        let answer = permission_answer(&asked, Some(&selected("once")));
        assert_eq!((answer.decision, answer.digest.as_deref()), (Some(Decision::Allow), Some("d1")));
        let answer = permission_answer(&asked, Some(&selected("session:0")));
        assert_eq!((answer.scope, answer.grant.as_deref()), (Scope::Session, Some("Bash(make)")));
        assert_eq!(permission_answer(&asked, Some(&selected("project"))).scope, Scope::Project);
    }

    #[test]
    fn sandbox_request_offers_no_permanent_answer() {
        let kinds = |request: &PermissionRequest| -> Vec<OptionKind> {
            let session = "ses_0190f2a4-0000-7000-8000-000000000000".parse().expect("an id");
            permission_params(session, request).options.iter().map(|option| option.kind).collect()
        };
        let asked = request("sandbox", &["Unsandboxed(make)"]);
        assert_eq!(kinds(&asked), [OptionKind::AllowOnce, OptionKind::RejectOnce]);
        let answer = permission_answer(&asked, Some(&selected("session:0")));
        assert_eq!(answer.decision, Some(Decision::Deny), "an option that was not offered");
        assert!(kinds(&request("tool", &["Bash(make)"])).contains(&OptionKind::AllowAlways));
    }

    #[test]
    fn plan_approval_names_the_mode_that_follows() {
        let asked = request("plan", &[]);
        let answer = |option: &str| {
            let answer = permission_answer(&asked, Some(&selected(option)));
            (answer.decision, answer.mode)
        };
        assert_eq!(answer("plan:default"), (Some(Decision::Allow), Some(Mode::Default)));
        assert_eq!(answer("plan:accept_edits"), (Some(Decision::Allow), Some(Mode::AcceptEdits)));
        assert_eq!(answer("plan:bypass"), (Some(Decision::Deny), None));
        assert_eq!(answer("once"), (Some(Decision::Deny), None));
    }

    #[test]
    fn request_shows_command_reason_and_diff() {
        let session = "ses_0190f2a4-0000-7000-8000-000000000000".parse().expect("an id");
        let params = permission_params(session, &request("tool", &[]));
        assert_eq!(params.tool_call.title.as_deref(), Some("make\ntest"));
        assert_eq!(params.tool_call.status, Some(CallState::Pending));
        let edit = PermissionRequest {
            diff: Some("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n".into()),
            ..request("tool", &[])
        };
        let written = |version| json!(permission_params(session, &edit).written(version));
        let diff = json!({"type": "diff", "path": "/w/f", "oldText": "x\n", "newText": "y\n"});
        let reason = json!({"type": "content", "content": {"type": "text", "text": "no rule allows it"}});
        assert_eq!(written(Version::V1)["toolCall"]["content"], json!([diff, reason]));
        let second = written(Version::V2);
        assert_eq!(second["description"], "no rule allows it");
        let content = &second["subject"]["toolCall"]["content"];
        assert_eq!(content.as_array().map(Vec::len), Some(1), "{content}");
        assert_eq!(content[0]["changes"][0]["operation"], "modify");
    }
}
