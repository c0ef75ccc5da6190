//! Hooks of a session: around its tool calls, and on events that only report.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::actor::effects::EffectRunner;
use crate::call_context::CallContext;
use crate::hooks;
use crate::shared::Shared;
use base::sync::lock;
use engine::Input;
use project::hooks::{HookAnswers, HookInput};
use types::hook::{HookDecision, HookEvent};
use types::ids::{CallId, SessionId};
use types::message::ToolCall;
use types::permission::{Mode, Verdict, VerdictKind};
use types::tool::{PathSensitivity, PreparedCall, Subject, ToolOutcome};

/// The answers of hooks to calls of the running turn. A call may be prepared several times, also at the same time;
/// its hooks run once.
#[derive(Clone, Default)]
pub(crate) struct HookCache(Arc<Mutex<HashMap<CallId, Arc<OnceCell<HookAnswers>>>>>);

impl HookCache {
    fn answers_cell(&self, call_id: CallId) -> Arc<OnceCell<HookAnswers>> {
        Arc::clone(lock(&self.0).entry(call_id).or_default())
    }

    /// The answers of the hooks that ran for a call.
    pub fn answers(&self, call_id: CallId) -> Option<HookAnswers> {
        lock(&self.0).get(&call_id).and_then(|cell| cell.get().cloned())
    }

    /// Whether a hook leaves the decision about this call to the user.
    pub fn asks(&self, call_id: CallId) -> bool {
        self.answers(call_id).is_some_and(|answers| answers.decision == Some(HookDecision::Ask))
    }

    /// Forgets the calls of a turn that has ended.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// The input of a hook about a call.
fn call_input(event: HookEvent, call: &ToolCall, context: &CallContext) -> HookInput {
    let session = &context.session_context;
    let cwd = session.workspace.to_string_lossy().into_owned();
    HookInput {
        tool: Some(call.tool.clone()),
        tool_aliases: session.mcp.catalog.find(&call.tool).map(|tool| tool.names().own()).unwrap_or_default(),
        input: Some(call.input.clone()),
        ..HookInput::new(event, session.session_id.to_string(), cwd, context.mode.name())
    }
}

/// Runs the hooks before a call, unless they ran already. Their runs are new only the first time.
pub(super) async fn before_call(
    found: &hooks::EventHooks,
    cache: &HookCache,
    call: &ToolCall,
    context: &CallContext,
) -> HookAnswers {
    let cell = cache.answers_cell(call.call_id);
    let mut is_first = false;
    let answers = cell
        .get_or_init(|| {
            is_first = true;
            async { found.run(&call_input(HookEvent::PreToolUse, call, context)).await }
        })
        .await
        .clone();
    if is_first { answers } else { HookAnswers { runs: Vec::new(), ..answers } }
}

/// The verdict on a call after its hooks. A deny rule always wins, and a hook cannot overrule an ask rule.
pub(super) fn combine(
    verdict: Verdict,
    prepared: &PreparedCall,
    answers: &HookAnswers,
    context: &CallContext,
) -> Verdict {
    let by_hook = |kind, reason: String| Verdict {
        verdict: kind,
        rule: None,
        reason,
        suggestions: Vec::new(),
        ..verdict.clone()
    };
    let why = |what: &str| {
        let reason = answers.reason.trim();
        if reason.is_empty() { format!("a hook {what}") } else { format!("a hook {what}: {reason}") }
    };
    match (answers.decision, verdict.verdict) {
        (_, VerdictKind::Deny) | (None, _) => verdict,
        (Some(HookDecision::Deny), _) => by_hook(VerdictKind::Deny, why("denies it")),
        (Some(HookDecision::Ask), VerdictKind::Allow) if context.mode == Mode::DontAsk => {
            by_hook(VerdictKind::Deny, why("asks, and this session never asks"))
        }
        (Some(HookDecision::Ask), VerdictKind::Allow) => by_hook(VerdictKind::Ask, why("asks")),
        (Some(HookDecision::Allow), VerdictKind::Ask)
            if verdict.rule.is_none()
                && hook_may_allow(context)
                && !only_user_may_allow(&prepared.subject) =>
        {
            by_hook(VerdictKind::Allow, why("allows it"))
        }
        (Some(HookDecision::Ask | HookDecision::Allow), _) => verdict,
    }
}

/// Whether a hook may replace a user's answer. In plan mode and in safe mode, only users decide. In
/// `bypass` mode, only calls that a user must see need a request.
fn hook_may_allow(context: &CallContext) -> bool {
    !context.safe_mode && !matches!(context.mode, Mode::Plan | Mode::Bypass)
}

/// Whether only a user may allow a call, and no mode. Such calls use files that programs run, files
/// that hold secrets, or tools of a server whose definition changed since a user allowed it.
fn only_user_may_allow(subject: &Subject) -> bool {
    match subject {
        Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path } => {
            path.sensitivity != PathSensitivity::Ordinary
        }
        Subject::Several { parts } => parts.iter().any(only_user_may_allow),
        Subject::Mcp { is_changed, .. } => *is_changed,
        _ => false,
    }
}

/// Runs the hooks after a call, and returns their additions to its result. The hooks are loaded after
/// the call, because the call may have changed the files that trust covers.
pub(super) async fn after_call(
    shared: &Arc<Shared>,
    call: &ToolCall,
    context: &CallContext,
    outcome: &ToolOutcome,
) -> Option<(Input, String)> {
    let found = hooks::load(shared, &context.session_context.workspace, HookEvent::PostToolUse).await;
    if found.is_empty() {
        return None;
    }
    let output = json!({ "status": outcome.status, "output": outcome.output, "detail": outcome.detail });
    let input = HookInput { output: Some(output), ..call_input(HookEvent::PostToolUse, call, context) };
    let answers = found.run(&input).await;
    let part = |heading: &str, text: &str| match text.trim() {
        "" => String::new(),
        text => format!("\n\n[{heading}]\n{text}"),
    };
    let is_denied = answers.decision == Some(HookDecision::Deny);
    let objection = if is_denied { answers.reason.as_str() } else { "" };
    let text = part("A hook of the user objects to this result", objection)
        + &part("A hook of the user adds", &answers.context);
    let ran = Input::HooksRan { call_id: Some(call.call_id), runs: answers.runs, continues: None };
    Some((ran, text))
}

/// An event of a session for its hooks.
#[derive(Clone, Debug)]
pub(crate) struct SessionHookEvent {
    pub event: HookEvent,
    pub session_id: SessionId,
    pub cwd: PathBuf,
    pub mode: &'static str,
    pub message: Option<String>,
    pub source: Option<String>,
    /// Whether a hook made the session continue before this turn.
    pub is_continued: bool,
    /// Whether a hook may make the session continue.
    pub may_continue: bool,
}

impl SessionHookEvent {
    fn hook_input(&self) -> HookInput {
        let cwd = self.cwd.to_string_lossy().into_owned();
        HookInput {
            message: self.message.clone(),
            source: self.source.clone(),
            is_continued: self.is_continued,
            ..HookInput::new(self.event, self.session_id.to_string(), cwd, self.mode)
        }
    }
}

impl EffectRunner {
    /// Runs the hooks of an event that need no immediate result. The session does not wait for them.
    pub fn run_session_hooks(&mut self, event: SessionHookEvent) {
        let shared = Arc::clone(&self.shared);
        self.helpers.spawn(async move {
            let found = hooks::load(&shared, &event.cwd, event.event).await;
            if found.is_empty() {
                return None;
            }
            let answers = found.run(&event.hook_input()).await;
            let is_denied = event.may_continue && answers.decision == Some(HookDecision::Deny);
            let continues = is_denied.then_some(answers.reason);
            let runs = answers.runs;
            (!runs.is_empty()).then_some(Input::HooksRan { call_id: None, runs, continues })
        });
    }

    /// Whether a hook leaves the decision about this call to the user.
    pub fn hook_asks(&self, call_id: CallId) -> bool {
        self.hook_cache.asks(call_id)
    }

    /// Forgets the answers of hooks to the calls of the turn that has ended.
    pub fn forget_hook_answers(&mut self) {
        self.hook_cache.clear();
    }
}

/// Runs the hooks at the start of a session. Returns their text for the system prompt.
pub(super) async fn at_session_start(
    shared: &Arc<Shared>,
    session_id: SessionId,
    cwd: &std::path::Path,
    mode: &'static str,
) -> (Option<String>, Option<Input>) {
    let found = hooks::load(shared, cwd, HookEvent::SessionStart).await;
    if found.is_empty() {
        return (None, None);
    }
    let folder = cwd.to_string_lossy().into_owned();
    let input = HookInput {
        source: Some("startup".into()),
        ..HookInput::new(HookEvent::SessionStart, session_id.to_string(), folder, mode)
    };
    let answers = found.run(&input).await;
    let context = answers.context.trim();
    let section = (!context.is_empty()).then(|| format!("# From a hook of the user\n{context}"));
    let runs = answers.runs;
    (section, (!runs.is_empty()).then_some(Input::HooksRan { call_id: None, runs, continues: None }))
}

/// The arguments of a call that a hook replaced.
pub(super) fn replaced_arguments(call: &ToolCall, answers: &HookAnswers) -> Option<Value> {
    answers.updated_input.clone().filter(|input| *input != call.input)
}
