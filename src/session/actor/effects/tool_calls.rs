//! Tool calls as effects: prepared and judged, run, and inspected after a crash.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::actor::effects::EffectRunner;
use crate::actor::effects::hook_inputs::HookedCall;
use crate::actor::effects::hooks::{self, HookCache};
use crate::actor::effects::tool_run::panic_outcome;
use crate::call_context::CallContext;
use crate::effective_rules::EffectiveRules;
use crate::shared::{Components, Shared};
use crate::{agents, effective_rules, hooks as session_hooks};
use engine::{Input, JudgedCall};
use project::hooks::HookAnswers;
use tools::{CallPreparer, PatchedFile, SessionContext, ToolError};
use types::hook::HookEvent;
use types::ids::{CallId, TurnId};
use types::message::ToolCall;
use types::permission::{Mode, Verdict, VerdictKind};
use types::subagent::TASK;
use types::tool::{Inspection, PreparedCall, Subject, ToolOutcome};

impl EffectRunner {
    /// Prepares and judges all calls before any of them is reported. One blocking thread does this, so
    /// that no other work waits while a long command is judged.
    pub fn prepare(&mut self, turn_id: TurnId, calls: Vec<Arc<ToolCall>>, call_context: CallContext) {
        let preparation = self.start_preparation(turn_id, calls, call_context);
        self.report_preparation(preparation);
    }

    /// Reports the result of a preparation when it is complete.
    pub fn report_preparation(&mut self, preparation: PendingPreparation) {
        self.start(async move { Some(preparation.finish().await) });
    }

    /// Starts a preparation whose result is not reported yet. Dropping the returned value cancels the preparation.
    pub fn start_preparation(
        &self,
        turn_id: TurnId,
        calls: Vec<Arc<ToolCall>>,
        call_context: CallContext,
    ) -> PendingPreparation {
        let (shared, components) = (Arc::clone(&self.shared), self.shared.components());
        let (blobs, runtime, mode) = (Arc::clone(&self.blobs), Handle::current(), call_context.mode);
        let (cache, report) = (self.hook_cache.clone(), self.report.clone());
        let call_ids: Vec<CallId> = calls.iter().map(|call| call.call_id).collect();
        let unwanted = CancellationToken::new();
        let wanted = unwanted.clone().drop_guard();
        let first = tokio::task::spawn_blocking({
            let (calls, unwanted, shared) = (calls.clone(), unwanted.clone(), Arc::clone(&shared));
            move || {
                let preparer = runtime.block_on(components.tools.call_preparer());
                let effective = EffectiveRules::load_blocking(&shared, &call_context, &runtime);
                let mut session_context =
                    effective.session_context(&components.settings, blobs, &call_context);
                if calls.iter().any(|call| call.tool == TASK) {
                    let found = runtime.block_on(agents::load(&shared, &session_context.workspace));
                    session_context.agents = found.map(|list| list.agents).unwrap_or_default().into();
                }
                let place = (&*call_context.session_context).into();
                let hooks = session_hooks::load_blocking(&shared, &place, HookEvent::PreToolUse, &runtime);
                let judge = CallJudge { preparer, effective, session_context, components, call_context };
                let judged: Vec<JudgedCall> = calls
                    .iter()
                    .take_while(|_| !unwanted.is_cancelled())
                    .map(|call| judge.judge(call))
                    .collect();
                let files = |call: &Arc<ToolCall>| match hooks.is_empty() {
                    true => Vec::new(),
                    false => judge.preparer.patched_files(call, &judge.session_context),
                };
                let files: Vec<Vec<PatchedFile>> = calls.iter().map(files).collect();
                (judge, hooks, judged, files)
            }
        });
        let task = tokio::spawn(async move {
            let (judge, found, judged, files) = match first.await {
                Ok(judged) => judged,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            };
            if let Some(read) = cache.report_of(found.problems()) {
                // Sending fails if the session has ended.
                let _ = report.send(Box::new(read)).await;
            }
            if found.is_empty() {
                return judged;
            }
            let hooked = HookedCalls { shared, found, cache, report, calls, files };
            // Hooks may take long. Here they block no thread, and they end when the preparation is dropped.
            tokio::select! {
                judged = hooked.judge(judge, judged) => judged,
                () = unwanted.cancelled() => Vec::new(),
            }
        });
        PendingPreparation { task, turn_id, mode, call_ids, _wanted: wanted }
    }

    /// Judges calls that waited by the rules in force now. The answers of their hooks still count.
    pub fn check_rules(
        &mut self,
        turn_id: TurnId,
        calls: Vec<(Arc<ToolCall>, Arc<PreparedCall>)>,
        call_context: CallContext,
    ) {
        let (shared, components, cache) =
            (Arc::clone(&self.shared), self.shared.components(), self.hook_cache.clone());
        let (runtime, mode) = (Handle::current(), call_context.mode);
        self.start(async move {
            let ids: Vec<CallId> = calls.iter().map(|(call, _)| call.call_id).collect();
            let checking = tokio::task::spawn_blocking(move || {
                let effective = EffectiveRules::load_blocking(&shared, &call_context, &runtime);
                let check = |(call, prepared): &(Arc<ToolCall>, Arc<PreparedCall>)| {
                    let (prepared, verdict) = effective_rules::judge_call(
                        &effective,
                        &components,
                        &call_context,
                        &call.tool,
                        PreparedCall::clone(prepared),
                    );
                    let answers = cache.answers(call.call_id).unwrap_or_default();
                    (call.call_id, hooks::combine(verdict, &prepared, &answers, &call_context))
                };
                calls.iter().map(check).collect()
            });
            let unknown = |id: CallId| (id, unchecked());
            let verdicts =
                checking.await.unwrap_or_else(|_| ids.into_iter().map(unknown).collect::<Vec<_>>());
            Some(Input::RulesChecked { turn_id, mode, verdicts })
        });
    }

    /// Inspects the file that an interrupted call was changing.
    pub fn inspect(&mut self, call_id: CallId, prepared: Arc<PreparedCall>, call_context: CallContext) {
        let components = self.shared.components();
        self.start(async move {
            let inspecting =
                AssertUnwindSafe(components.tools.inspect(call_id, &prepared, &call_context.session_context));
            let inspection = inspecting.catch_unwind().await.unwrap_or_else(|_| {
                Inspection::Conflict("looking at it failed inside the daemon; see its log".into())
            });
            Some(Input::Inspected { call_id, inspection })
        });
    }
}

/// Prepares calls and judges them by the rules that were loaded together at one moment.
struct CallJudge {
    preparer: CallPreparer,
    effective: EffectiveRules,
    session_context: SessionContext,
    components: Arc<Components>,
    call_context: CallContext,
}

impl CallJudge {
    /// Prepares and judges one call. Blocks on the disk.
    fn judge(&self, call: &ToolCall) -> JudgedCall {
        let prepare_and_judge = || {
            let prepared = self.preparer.prepare(call, &self.session_context)?;
            let (effective, context) = (&self.effective, &self.call_context);
            Ok(effective_rules::judge_call(effective, &self.components, context, &call.tool, prepared))
        };
        let result = match std::panic::catch_unwind(AssertUnwindSafe(prepare_and_judge)) {
            Ok(judged) => judged.map_err(|refusal: ToolError| ToolOutcome::from(refusal)),
            Err(_) => Err(panic_outcome()),
        };
        JudgedCall { call_id: call.call_id, updated_input: None, result }
    }

    /// Judges a prepared call again.
    fn judge_again(&self, tool: &str, judged: &mut JudgedCall) {
        if let Ok((prepared, verdict)) = &mut judged.result {
            let (effective, context) = (&self.effective, &self.call_context);
            (*prepared, *verdict) =
                effective_rules::judge_call(effective, &self.components, context, tool, prepared.clone());
        }
    }
}

/// The verdict if the rules could not be checked.
fn unchecked() -> Verdict {
    Verdict {
        verdict: VerdictKind::Ask,
        rule: None,
        reason: "the rules could not be checked; the daemon's log says why".into(),
        suggestions: Vec::new(),
        parts: Vec::new(),
        read_only_command: false,
        read_only: false,
    }
}

struct HookedCalls {
    shared: Arc<Shared>,
    found: session_hooks::EventHooks,
    cache: HookCache,
    report: mpsc::Sender<Box<Input>>,
    calls: Vec<Arc<ToolCall>>,
    files: Vec<Vec<PatchedFile>>,
}

impl HookedCalls {
    /// Runs the hooks of judged calls at the same time. Hooks may take long, so all calls are judged again after them,
    /// by the rules of that moment. A call whose arguments a hook replaced is prepared again. A call that cannot run
    /// needs no hooks.
    async fn judge(self, mut judge: CallJudge, mut judged: Vec<JudgedCall>) -> Vec<JudgedCall> {
        let home = judge.components.settings.home.clone();
        let runs = self.calls.iter().zip(&self.files).zip(&judged).map(|((call, files), judged)| {
            let (found, cache, context) = (&self.found, &self.cache, &judge.call_context);
            let (reached, home) = ((&*self.shared, &self.report), home.as_path());
            async move {
                let Ok((prepared, _)) = &judged.result else { return HookAnswers::default() };
                let call = HookedCall { call, subject: &prepared.subject, files, context, home };
                hooks::before_call(found, cache, &call, reached).await
            }
        });
        let answers = futures_util::future::join_all(runs).await;
        let changed: Vec<(usize, ToolCall)> = self
            .calls
            .iter()
            .zip(&judged)
            .zip(&answers)
            .enumerate()
            .filter_map(|(index, ((call, judged), answers))| {
                let (prepared, _) = judged.result.as_ref().ok()?;
                let input = hooks::replaced_arguments(call, prepared, answers)?;
                Some((index, ToolCall { input, ..(**call).clone() }))
            })
            .collect();
        let call_context = judge.call_context.clone();
        let again = tokio::task::spawn_blocking({
            let (shared, runtime, calls) = (Arc::clone(&self.shared), Handle::current(), self.calls.clone());
            move || {
                judge.effective = EffectiveRules::load_blocking(&shared, &judge.call_context, &runtime);
                for (call, judged) in calls.iter().zip(&mut judged) {
                    judge.judge_again(&call.tool, judged);
                }
                for (index, call) in changed {
                    judged[index].result = judge.judge(&call).result;
                    judged[index].updated_input = Some(call.input);
                }
                judged
            }
        });
        let mut judged = match again.await {
            Ok(judged) => judged,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        for (judged, answers) in judged.iter_mut().zip(answers) {
            if let Ok((prepared, verdict)) = &mut judged.result {
                *verdict = hooks::combine(verdict.clone(), prepared, &answers, &call_context);
            }
            if let Some(ran) = hooks::hooks_of_call_ran(judged.call_id, answers.runs, answers.stops) {
                // Sending fails if the session has ended.
                let _ = self.report.send(Box::new(ran)).await;
            }
        }
        judged
    }
}

/// A running preparation of tool calls. Dropping it cancels the preparation.
pub(crate) struct PendingPreparation {
    task: JoinHandle<Vec<JudgedCall>>,
    turn_id: TurnId,
    mode: Mode,
    call_ids: Vec<CallId>,
    _wanted: DropGuard,
}

impl PendingPreparation {
    async fn finish(mut self) -> Input {
        let failed =
            |id: &CallId| JudgedCall { call_id: *id, updated_input: None, result: Err(panic_outcome()) };
        let judged = (&mut self.task).await;
        let calls = judged.unwrap_or_else(|_| self.call_ids.iter().map(failed).collect());
        Input::Prepared { turn_id: self.turn_id, mode: self.mode, calls }
    }
}

/// Judges a call by the rules. A command is judged on a blocking thread: a long one takes milliseconds, and the
/// files that it would read are inspected.
pub(crate) async fn judge_prepared(
    effective: &EffectiveRules,
    components: &Arc<Components>,
    call_context: &CallContext,
    tool: &str,
    prepared: &PreparedCall,
) -> Verdict {
    if !matches!(&prepared.subject, Subject::Bash { .. }) {
        return effective.verdict(components, call_context, tool, prepared);
    }
    let (effective, components, call_context) =
        (effective.clone(), Arc::clone(components), call_context.clone());
    let (tool, prepared) = (tool.to_owned(), prepared.clone());
    let judged =
        tokio::task::spawn_blocking(move || effective.verdict(&components, &call_context, &tool, &prepared))
            .await;
    judged.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
