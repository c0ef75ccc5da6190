//! A command that the sandbox blocked: the user may allow a second run outside the sandbox.
//!
//! The first run has ended and its result is kept (`tool.blocked`). Then a request of kind `sandbox` asks about
//! a second run, which has its own start event: `tool.started` with `attempt: 2`. There is never a third run.
//! Only the grant for exactly this command (`Unsandboxed(COMMAND)`) allows the second run; no other rule, grant
//! or mode does. Without a second run, the call ends with the result of the first.

use crate::decide::plan::PlanBuilder;
use crate::state::CallState;
use crate::window::result_budget::BoundedResult;
use types::event::Event;
use types::ids::CallId;
use types::permission::{Mode, RequestKind, unsandboxed_grant};
use types::session::PermissionRequest;
use types::tool::{Barrier, Blocked, Confinement, PreparedCall, Subject, ToolOutcome};

/// Bytes of a result that are reserved for the user's feedback.
const FEEDBACK_BYTES: usize = 4 * 1024;

impl PlanBuilder<'_> {
    /// Whether to ask the user about a second run. In `dont_ask` mode, or if no user can answer, the
    /// call ends with the result of the first run.
    pub fn may_retry_unsandboxed(&self, call: &CallState, prepared: &PreparedCall) -> bool {
        let background = self.state.spec.background;
        call.blocked_run.is_none()
            // A background command is not started a second time without the user's knowledge.
            && matches!(prepared.subject, Subject::Bash { background: false, .. })
            && prepared.sandbox.is_some_and(|held| !held.unsandboxed)
            && self.engine.settings.offer_unsandboxed_retry.applies_to(background)
            && self.state.mode() != Mode::DontAsk
            && !self.has_no_approver()
            && !self.is_aborting()
    }

    /// Keeps the result of the first run and raises the request.
    pub fn offer_unsandboxed_retry(
        &mut self,
        call: &CallState,
        prepared: &PreparedCall,
        blocked: Blocked,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) {
        let call_id = call.call.call_id;
        for change in outcome.changes {
            self.push_item(call.item_id, Event::FileChanged { call_id, change });
        }
        let BoundedResult { output, whole, .. } =
            self.bound_result_with_reserve(outcome.output, outcome.whole, FEEDBACK_BYTES);
        self.plan.blobs.extend(outcome.blobs);
        self.push_item(
            call.item_id,
            Event::ToolBlocked {
                call_id,
                tool: call.call.tool.clone(),
                blocked: blocked.clone(),
                status: outcome.status,
                output,
                output_blob: whole,
                code: outcome.code,
                detail: outcome.detail,
                duration_ms,
                cwd: outcome.cwd.map(|path| path.to_string_lossy().into_owned()),
            },
        );
        let grant = match &prepared.subject {
            Subject::Bash { command, .. } => unsandboxed_grant(command),
            _ => None,
        };
        let effective = call.effective_call();
        let (deadline_ms, on_timeout) = self.deadline().unzip();
        let request = PermissionRequest {
            request_id: self.mint.permission(),
            child_session_id: None,
            kind: RequestKind::Sandbox,
            call_id,
            tool: effective.tool.clone(),
            summary: format!("run again, outside the sandbox: {}", prepared.summary),
            subject: prepared.subject.clone(),
            reason: reason(&blocked, prepared.sandbox),
            blocked: Some(blocked),
            diff: None,
            suggestions: grant.into_iter().collect(),
            parts: Vec::new(),
            read_only_command: false,
            deadline_ms,
            on_timeout,
            cwd: self.state.cwd.to_string_lossy().into_owned(),
            digest: self.state.digest(&effective),
            input: effective.input.clone(),
        };
        self.push_item(
            call.item_id,
            Event::PermissionRequested {
                request,
                read_only: prepared.read_only,
                change: None,
                sandbox: Some(Confinement::UNSANDBOXED),
            },
        );
    }

    /// Ends a call with the result of its first run, if the sandbox blocked that run. Returns whether
    /// the call ended.
    pub fn finish_with_first_run(&mut self, call_id: CallId, why: &str, note: &str) -> bool {
        let Some(call) = self.state.call(call_id).filter(|call| !call.has_begun()) else { return false };
        let Some(first) = call.blocked_run.clone() else { return false };
        let line = if first.output.is_empty() || first.output.ends_with('\n') { "" } else { "\n" };
        let mut detail = first.detail.clone();
        if let Some(detail) = detail.as_mut().and_then(serde_json::Value::as_object_mut) {
            detail.insert("unsandboxed".into(), why.into());
        }
        let outcome = ToolOutcome {
            status: first.status,
            code: first.code.clone(),
            detail,
            cwd: first.cwd.as_ref().map(Into::into),
            whole: first.output_blob.clone(),
            ..ToolOutcome::completed(format!("{}{line}{note}", first.output))
        };
        self.complete(call_id, outcome, first.duration_ms);
        true
    }
}

/// The reason of the request, and the consequence of an answer: the first run may have had effects.
fn reason(blocked: &Blocked, held: Option<Confinement>) -> String {
    let level = held.map_or(String::new(), |held| format!(" (level {})", held.level));
    // The obstacle that the command's own output names (`blocked.what`) is not repeated in the daemon's text.
    let what = match blocked.by {
        Barrier::Files => "at a file or a system call",
        Barrier::Network => "from reaching the network",
    };
    format!(
        "it has run once, and the sandbox{level} seems to have stopped it {what}; what it did until then is done, and it \
         would run again from its beginning, outside the sandbox"
    )
}
