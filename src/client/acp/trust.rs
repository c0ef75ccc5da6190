//! The question whether to trust the folder of a new session. Sessions work without trust, so the answer may come at
//! any time. A user is asked once for each folder, in the editor or in the terminal.

use serde_json::Value;

use super::daemon::Daemon;
use super::schema::{
    CallContent, CallState, OptionKind, PermissionOption, PermissionParams, ToolCall, ToolKind, Version,
    chosen_option,
};
use super::wire::{AcpError, OpenRequest, Output};
use crate::connection::first_time::{ASKED_TRUST_FILE, is_first_time, is_recorded};
use crate::ui::render::untrusted_parts;
use api::methods;
use api::params::{TrustParams, WorkspaceParams};
use types::ids::SessionId;
use types::trust::TrustStatus;

const TRUST: &str = "trust";
const NOT_NOW: &str = "not_now";

/// Asks, unless the folder is trusted, has nothing that needs trust, or the user has answered before.
pub(super) async fn ask_once(
    daemon: &Daemon,
    output: &Output,
    version: Version,
    session_id: SessionId,
    cwd: String,
) -> Result<(), AcpError> {
    let params = WorkspaceParams { cwd, count_changes: false };
    let status: TrustStatus = daemon.call::<methods::workspace::Status>(&params).await?;
    let file = daemon.reach().record_file(ASKED_TRUST_FILE);
    if status.trusted || untrusted_parts(&status.parts).is_empty() || is_recorded(&file, &status.cwd) {
        return Ok(());
    }
    let params = request(session_id, &status).written(version);
    let reply = OpenRequest::default().ask(output, "session/request_permission", &params).await;
    match answer(reply.flatten().as_ref()) {
        Some(true) => {
            let params =
                TrustParams { cwd: status.cwd.clone(), digest: Some(status.digest), idempotency_key: None };
            daemon.call::<methods::workspace::Trust>(&params).await?;
            is_first_time(&file, &status.cwd);
        }
        Some(false) => _ = is_first_time(&file, &status.cwd),
        // Dismissed: the next session of the folder asks again.
        None => {}
    }
    Ok(())
}

/// The request. It offers no permanent answer: trust is bound to the content as it is now.
fn request(session_id: SessionId, status: &TrustStatus) -> PermissionParams {
    let parts = untrusted_parts(&status.parts).into_iter().chain(&status.programs);
    let content = parts.map(|part| CallContent::text(part.as_str())).collect();
    let option =
        |id: &str, name: &str, kind| PermissionOption { option_id: id.into(), name: name.into(), kind };
    PermissionParams {
        session_id: session_id.to_string(),
        tool_call: ToolCall {
            tool_call_id: format!("trust-{}", status.digest),
            title: Some(format!("Trust {}? That makes these parts of it active:", status.cwd)),
            kind: Some(ToolKind::Other),
            status: Some(CallState::Pending),
            content: Some(content),
            ..ToolCall::default()
        },
        options: vec![
            option(TRUST, "Trust it as it is now", OptionKind::AllowOnce),
            option(NOT_NOW, "Not now; the session works without it", OptionKind::RejectOnce),
        ],
        reason: None,
        is_about_call: false,
    }
}

/// Whether the user trusts the folder; `None` without an answer.
fn answer(reply: Option<&Value>) -> Option<bool> {
    match chosen_option(reply)? {
        TRUST => Some(true),
        NOT_NOW => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_offered_option_trusts_a_folder() {
        let status = TrustStatus {
            cwd: "/w".into(),
            digest: "d".into(),
            parts: vec!["hooks in .claude/settings.json".into(), "git facts".into()],
            programs: vec!["/w/x.sh".into()],
            ..TrustStatus::default()
        };
        let session = "ses_0190f2a4-0000-7000-8000-000000000000".parse().expect("an id");
        let params = request(session, &status);
        assert!(params.options.iter().all(|option| option.kind != OptionKind::AllowAlways));
        assert_eq!(params.tool_call.content.map(|content| content.len()), Some(2));
        let reply = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
        assert_eq!(answer(Some(&reply("trust"))), Some(true));
        assert_eq!(answer(Some(&reply("not_now"))), Some(false));
        for wrong in [Some(reply("once")), Some(json!({"outcome": {"outcome": "cancelled"}})), None] {
            assert_eq!(answer(wrong.as_ref()), None);
        }
    }
}
