//! Permission requests to the editor, and what its answer means. Pure.
//!
//! Only an option that was offered allows a call. Everything else denies it: an unknown option, `cancelled`, an error,
//! an answer of another form.

use serde_json::Value;

use super::mapper::calls::{fenced, kind, locations};
use super::mapper::diff::diff_parts;
use super::schema::{
    CallContent, CallState, OptionKind, PermissionOption, PermissionParams, ToolCall, chosen_option,
};
use api::params::ApproveParams;
use types::call_summary::call_title;
use types::ids::SessionId;
use types::permission::{Decision, Mode, RequestKind, Scope};
use types::permission_request::PermissionRequest;
use types::tool::{ProposedPlan, Subject};

/// Maximum number of session grants that are offered, the narrowest first.
const MAX_SESSION_GRANTS: usize = 2;

/// An answer that allows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    option: PermissionOption,
    scope: Scope,
    grant: Option<String>,
    mode: Option<Mode>,
}

const DENY: &str = "deny";

fn grants(request: &PermissionRequest) -> Vec<Grant> {
    let grant = |id: String, name: String, kind, scope, grant: Option<&String>, mode| Grant {
        option: PermissionOption { option_id: id, name, kind },
        scope,
        grant: grant.cloned(),
        mode,
    };
    if request.kind == RequestKind::Plan {
        let plan = |name: &str, kind, mode: Mode| {
            grant(format!("plan:{}", mode.name()), name.to_owned(), kind, Scope::Once, None, Some(mode))
        };
        return vec![
            plan("Approve, and ask before edits", OptionKind::AllowOnce, Mode::Default),
            plan("Approve, and accept edits", OptionKind::AllowAlways, Mode::AcceptEdits),
        ];
    }
    let once =
        if request.kind == RequestKind::Sandbox { "Run outside the sandbox once" } else { "Allow once" };
    let mut grants = vec![grant("once".into(), once.into(), OptionKind::AllowOnce, Scope::Once, None, None)];
    // One answer outside the sandbox must not become a rule by a wrong click.
    if request.kind != RequestKind::Sandbox {
        for (index, rule) in request.suggestions.iter().take(MAX_SESSION_GRANTS).enumerate() {
            let name = format!("Allow {rule} in this session");
            let always = OptionKind::AllowAlways;
            grants.push(grant(format!("session:{index}"), name, always, Scope::Session, Some(rule), None));
        }
        if let Some(rule) = request.suggestions.first() {
            let name = format!("Always allow {rule} in this folder");
            grants.push(grant(
                "project".into(),
                name,
                OptionKind::AllowAlways,
                Scope::Project,
                Some(rule),
                None,
            ));
        }
    }
    grants
}

/// The request for the editor.
pub(super) fn permission_params(session_id: SessionId, request: &PermissionRequest) -> PermissionParams {
    let mut options: Vec<PermissionOption> = grants(request).into_iter().map(|grant| grant.option).collect();
    let deny = if request.kind == RequestKind::Plan { "Keep planning" } else { "Deny" };
    options.push(PermissionOption {
        option_id: DENY.into(),
        name: deny.into(),
        kind: OptionKind::RejectOnce,
    });
    let child = request.child_session_id.is_some();
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
    } else if !request.reason.is_empty() {
        content.push(CallContent::text(request.reason.clone()));
    }
    let tool_call = ToolCall {
        // A call of a sub-agent is shown under the id of its request.
        tool_call_id: if child { request.request_id.to_string() } else { request.call_id.to_string() },
        title: Some(if child { format!("Sub-agent: {title}") } else { title }),
        name: Some(request.tool.clone()),
        kind: Some(kind(&request.tool)),
        status: Some(CallState::Pending),
        content: Some(content),
        locations: Some(places).filter(|places| !places.is_empty()),
        raw_input: Some(request.input.clone()),
        ..ToolCall::default()
    };
    PermissionParams { session_id: session_id.to_string(), tool_call, options }
}

/// The answer for the daemon. `reply` is the editor's result; `None` for an error.
pub(super) fn permission_answer(request: &PermissionRequest, reply: Option<&Value>) -> ApproveParams {
    let chosen = chosen_option(reply);
    let grant = grants(request).into_iter().find(|grant| Some(grant.option.option_id.as_str()) == chosen);
    let digest = Some(request.digest.clone()).filter(|digest| !digest.is_empty());
    let answer = ApproveParams { request_id: Some(request.request_id), digest, ..ApproveParams::default() };
    match grant {
        Some(Grant { scope, grant, mode, .. }) => {
            ApproveParams { decision: Some(Decision::Allow), scope, grant, mode, ..answer }
        }
        None => ApproveParams { decision: Some(Decision::Deny), ..answer },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        let content = permission_params(session, &edit).tool_call.content.expect("a diff");
        assert_eq!(
            content,
            [
                CallContent::Diff {
                    path: "/w/f".into(),
                    old_text: Some("x\n".into()),
                    new_text: "y\n".into()
                },
                CallContent::text("no rule allows it"),
            ]
        );
    }
}
