//! Hooks of a session: around its tool calls, and on events that only report.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::{OnceCell, mpsc};

use crate::actor::effects::EffectRunner;
use crate::actor::effects::hook_inputs::{HookedCall, absolute_input};
use crate::call_context::CallContext;
use crate::hooks::{self, HookPlace};
use crate::shared::Shared;
use base::sync::lock;
use engine::Input;
use project::hooks::{HookAnswers, HookInput};
use types::hook::{HookDecision, HookEvent, HookRun};
use types::ids::{CallId, SessionId};
use types::message::ToolCall;
use types::permission::{Mode, Verdict, VerdictKind};
use types::tool::{PathSensitivity, PreparedCall, Subject, ToolOutcome};

/// The answers of hooks to calls of the running turn. A call may be prepared several times, also at the same time;
/// its hooks run once.
#[derive(Clone, Default)]
pub(crate) struct HookCache {
    answers: Arc<Mutex<HashMap<CallId, Arc<OnceCell<HookAnswers>>>>>,
    /// The problems of hooks that were reported last.
    problems: Arc<Mutex<Option<Vec<String>>>>,
}

impl HookCache {
    fn answers_cell(&self, call_id: CallId) -> Arc<OnceCell<HookAnswers>> {
        Arc::clone(lock(&self.answers).entry(call_id).or_default())
    }

    /// A report of the problems, unless they are those of the last report.
    pub fn report_of(&self, problems: Vec<String>) -> Option<Input> {
        let mut reported = lock(&self.problems);
        if reported.as_ref() == Some(&problems) {
            return None;
        }
        *reported = Some(problems.clone());
        Some(Input::HooksRead { problems })
    }

    /// The text that hooks add to the result of a call.
    pub fn added_text(&self, call_id: CallId) -> String {
        let answers = lock(&self.answers).get(&call_id).and_then(|cell| cell.get().cloned());
        answers.map(|answers| added_text(&answers.context)).unwrap_or_default()
    }

    /// The answers of the hooks that ran for a call.
    pub fn answers(&self, call_id: CallId) -> Option<HookAnswers> {
        lock(&self.answers).get(&call_id).and_then(|cell| cell.get().cloned())
    }

    /// Whether a hook leaves the decision about this call to the user.
    pub fn asks(&self, call_id: CallId) -> bool {
        self.answers(call_id).is_some_and(|answers| answers.decision == Some(HookDecision::Ask))
    }

    /// Forgets the calls of a turn that has ended.
    pub fn clear(&self) {
        lock(&self.answers).clear();
    }
}

/// Runs the hooks before a call, unless they ran already. Their runs are new only the first time.
pub(super) async fn before_call(
    found: &hooks::EventHooks,
    cache: &HookCache,
    call: &HookedCall<'_>,
    (shared, report): (&Shared, &mpsc::Sender<Box<Input>>),
) -> HookAnswers {
    let call_id = call.call.call_id;
    let cell = cache.answers_cell(call_id);
    let mut is_first = false;
    let answers = cell
        .get_or_init(|| {
            is_first = true;
            let event = call.event(HookEvent::PreToolUse, None);
            let report = background_report(report.clone(), Some(call_id));
            async move { found.matching(&event).run(shared, report).await }
        })
        .await
        .clone();
    if is_first { answers } else { HookAnswers { runs: Vec::new(), stops: None, ..answers } }
}

/// Reports the runs of hooks that nothing waited for. Their decisions come too late.
fn background_report(
    report: mpsc::Sender<Box<Input>>,
    call_id: Option<CallId>,
) -> impl FnOnce(HookAnswers) -> futures_util::future::BoxFuture<'static, ()> + Send + 'static {
    move |answers| {
        Box::pin(async move {
            // Sending fails if the session has ended.
            let _ = report.send(Box::new(hooks_ran(call_id, answers.runs))).await;
        })
    }
}

/// The runs of hooks, without consequences.
fn hooks_ran(call_id: Option<CallId>, runs: Vec<HookRun>) -> Input {
    Input::HooksRan { call_id, runs, continues: None, stops: None, context: None }
}

/// The runs of hooks about a call. A hook may end the turn.
pub(super) fn hooks_of_call_ran(call_id: CallId, runs: Vec<HookRun>, stops: Option<String>) -> Option<Input> {
    (!runs.is_empty()).then_some(Input::HooksRan {
        call_id: Some(call_id),
        runs,
        continues: None,
        stops,
        context: None,
    })
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
    let asks = if answers.is_unreadable { "cannot be used" } else { "asks" };
    match (answers.decision, verdict.verdict) {
        (_, VerdictKind::Deny) | (None, _) => verdict,
        (Some(HookDecision::Deny), _) => by_hook(VerdictKind::Deny, why("denies it")),
        (Some(HookDecision::Ask), _) if context.mode == Mode::DontAsk => {
            by_hook(VerdictKind::Deny, why(&format!("{asks}, and this session never asks")))
        }
        // No user may have seen that a hook is not understood.
        (Some(HookDecision::Ask), _) if answers.is_unreadable && context.session_context.unattended => {
            by_hook(VerdictKind::Deny, why(&format!("{asks}, and this session is unattended")))
        }
        (Some(HookDecision::Ask), VerdictKind::Allow) => by_hook(VerdictKind::Ask, why(asks)),
        (Some(HookDecision::Ask), VerdictKind::Ask) => {
            Verdict { reason: format!("{}; {}", why(asks), verdict.reason), ..verdict }
        }
        (Some(HookDecision::Allow), VerdictKind::Ask)
            if verdict.rule.is_none()
                && hook_may_allow(context)
                && !only_user_may_allow(&prepared.subject) =>
        {
            by_hook(VerdictKind::Allow, why("allows it"))
        }
        (Some(HookDecision::Allow), _) => verdict,
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
    (call, prepared): (&ToolCall, &PreparedCall),
    context: &CallContext,
    outcome: &ToolOutcome,
    report: &mpsc::Sender<Box<Input>>,
) -> Option<(Option<Input>, String)> {
    let found = hooks::load(shared, (&*context.session_context).into(), HookEvent::PostToolUse).await;
    if found.is_empty() {
        return None;
    }
    let components = shared.components();
    let preparer = components.tools.call_preparer().await;
    let (patch, session_context) = (call.clone(), Arc::clone(&context.session_context));
    let files = tokio::task::spawn_blocking(move || preparer.patched_files(&patch, &session_context));
    let files = files.await.unwrap_or_default();
    let (subject, home) = (&prepared.subject, components.settings.home.as_path());
    let event = HookedCall { call, subject, files: &files, context, home }
        .event(HookEvent::PostToolUse, Some(outcome));
    let background = background_report(report.clone(), Some(call.call_id));
    let answers = found.matching(&event).run(shared, background).await;
    let is_denied = answers.decision == Some(HookDecision::Deny);
    let objection = if is_denied { answers.reason.as_str() } else { "" };
    let text =
        hook_text("A hook of the user objects to this result", objection) + &added_text(&answers.context);
    Some((hooks_of_call_ran(call.call_id, answers.runs, answers.stops), text))
}

/// The text that hooks add to the result of a call.
pub(super) fn added_text(context: &str) -> String {
    hook_text("A hook of the user adds", context)
}

fn hook_text(heading: &str, text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("\n\n[{heading}]\n{text}"),
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SessionHookEvent {
    pub event: HookEvent,
    pub session_id: SessionId,
    pub place: HookPlace,
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
        let cwd = self.place.cwd.to_string_lossy().into_owned();
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
        let (shared, report) = (Arc::clone(&self.shared), self.report.clone());
        self.helpers.spawn(async move {
            let found = hooks::load(&shared, event.place.clone(), event.event).await;
            if found.is_empty() {
                return None;
            }
            let background = background_report(report, None);
            let answers = found.matching(&event.hook_input().into()).run(&shared, background).await;
            let is_denied = event.may_continue && answers.decision == Some(HookDecision::Deny);
            let continues = is_denied.then_some(answers.reason);
            // After a compaction, the system prompt is not built again.
            let gives_context = event.event == HookEvent::SessionStart && !answers.context.trim().is_empty();
            let context = gives_context.then_some(answers.context);
            let runs = answers.runs;
            (!runs.is_empty()).then_some(Input::HooksRan {
                call_id: None,
                runs,
                continues,
                stops: None,
                context,
            })
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
    place: HookPlace,
    mut input: HookInput,
    report: &mpsc::Sender<Box<Input>>,
) -> Option<String> {
    input.cwd = place.cwd.to_string_lossy().into_owned();
    let found = hooks::load(shared, place, HookEvent::SessionStart).await;
    let read = Input::HooksRead { problems: found.problems() };
    report.send(Box::new(read)).await.ok()?;
    if found.is_empty() {
        return None;
    }
    let background = background_report(report.clone(), None);
    let answers = found.matching(&input.into()).run(shared, background).await;
    if !answers.runs.is_empty() {
        report.send(Box::new(hooks_ran(None, answers.runs))).await.ok()?;
    }
    let context = answers.context.trim();
    (!context.is_empty()).then(|| format!("# From a hook of the user\n{context}"))
}

/// The arguments of a call that a hook replaced.
pub(super) fn replaced_arguments(
    call: &ToolCall,
    prepared: &PreparedCall,
    answers: &HookAnswers,
) -> Option<Value> {
    // A hook may return the arguments as it got them.
    let is_new = |input: &Value| *input != call.input && *input != absolute_input(call, &prepared.subject);
    answers.updated_input.clone().filter(is_new)
}
