//! Starts the effects of a committed decision.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;

use crate::actor::effects::context_check::{ContextFiles, PendingContextCheck};
use crate::actor::effects::prompt::PromptSource;
use crate::actor::effects::subagents::{NewSubagent, SubagentRun};
use crate::actor::{Actor, STOP_TIMEOUT};
use crate::project_data::PromptParts;
use engine::{Effect, Engine};
use project::hooks::HookInput;
use project::workspace;
use types::hook::HookEvent;
use types::ids::{CallId, TurnId};
use types::subagent::{ParentCall, TASK};
use types::tool::Subject;

impl Actor {
    pub(super) fn run_effect(&mut self, effect: Effect) {
        if self.state.parking.is_some() {
            // The next daemon derives this effect from the journal.
            return;
        }
        match effect {
            Effect::GatherContext => {
                let source = self.prompt_source();
                let mode = self.engine.mode().name();
                let servers = self.mcp_servers();
                let had_mcp = !self.engine.mcp_catalog().is_empty();
                let start = HookInput {
                    source: Some(self.engine.start_source().to_owned()),
                    ..HookInput::new(HookEvent::SessionStart, self.id.to_string(), String::new(), mode)
                };
                self.effects.gather((servers, had_mcp), (self.hook_place(), start), source);
            }
            Effect::CheckContext { turn_id } => {
                let check = self.start_context_check(&self.engine, turn_id);
                self.effects.report_context_check(check);
            }
            Effect::CallModel { token, request } => {
                self.effects.call_model(token, *request, self.state.spans.current());
            }
            Effect::AskHelper { token, request } => self.effects.ask_helper(token, *request),
            Effect::Sleep { token, delay_ms } => self.effects.sleep(token, delay_ms),
            Effect::Prepare { turn_id, calls } => {
                self.effects.prepare(turn_id, calls, self.call_context());
            }
            Effect::CheckRules { turn_id, calls } => {
                self.effects.check_rules(turn_id, calls, self.call_context());
            }
            Effect::RunTool { call, prepared } => {
                self.effects.run_tool(call, prepared, self.call_context(), self.state.spans.current());
            }
            Effect::RunSubagent { call, prepared, child_session_id, agent, budgets } => {
                let read_only = matches!(prepared.subject, Subject::Task { read_only: true, .. });
                let text = |name: &str| call.input[name].as_str().unwrap_or_default().to_owned();
                let mut spec = self.engine.spec().clone();
                spec.mode = self.engine.mode();
                spec.model = self.engine.model().to_owned();
                spec.safe_mode = self.engine.safe_mode();
                spec.thinking = self.engine.thinking();
                spec.sampling = self.engine.sampling();
                spec.fallback_model = self.engine.fallback_model().cloned();
                spec.additional_dirs = self.engine.additional_dirs().to_vec();
                self.effects.run_subagent(SubagentRun {
                    parent: self.parent_call(call.call_id),
                    child_session_id,
                    new: Some(Box::new(NewSubagent {
                        agent,
                        read_only,
                        description: text("description"),
                        prompt: text("prompt"),
                        budgets,
                        spec,
                        rules: self.engine.rules_in_force(),
                        reads: self.engine.reads(),
                    })),
                });
            }
            Effect::FollowSubagent { call_id, child_session_id } => {
                let parent = self.parent_call(call_id);
                self.effects.run_subagent(SubagentRun { parent, child_session_id, new: None });
            }
            Effect::AnswerTool { call_id, answers } => self.mcp_servers().answer(call_id, answers),
            Effect::Inspect { call, prepared } => {
                self.effects.inspect(call.call_id, prepared, self.call_context());
            }
            Effect::StopAll => {
                self.stop_now(&effect);
                self.state.stop_by.get_or_insert(Instant::now() + STOP_TIMEOUT);
            }
            Effect::StopCall(_) | Effect::StopCommands { .. } | Effect::StopSubagents => {
                self.stop_now(&effect);
            }
        }
    }

    /// What the system prompt is built from.
    pub(super) fn prompt_source(&self) -> PromptSource {
        let spec = self.engine.prompt_spec();
        let parts = PromptParts {
            agents: self.engine.offers_tool(TASK),
            skills: self.engine.offers_tool("Skill"),
            memory: self.engine.offers_tool("Memory") && !spec.ablation.auto_memory,
        };
        let request = workspace::PromptRequest {
            cwd: spec.cwd.clone().into(),
            additional: spec.additional_dirs.iter().map(PathBuf::from).collect(),
            model: spec.model.clone(),
            // Use the creation date, so that the prompt stays the same when it is built again on another day.
            date: self.engine.created_at().date(),
            custom: spec.system_prompt.clone(),
            appended: spec.append_system_prompt.clone(),
            user_dir: self.shared.components().settings.user_dir.clone(),
            trusted: None,
            // A blocking thread reads the files for these parts.
            sections: Vec::new(),
            memory: None,
            agent: spec.agent.map(|agent| agent.prompt).filter(|prompt| !prompt.is_empty()),
        };
        PromptSource { request, parts }
    }

    /// Starts to compare the files that the model knows with the disk. Changes nothing.
    pub(super) fn start_context_check(&self, engine: &Engine, turn_id: TurnId) -> PendingContextCheck {
        let spec = engine.spec();
        let files = ContextFiles {
            reads: engine.reads(),
            shared: Arc::clone(&self.shared),
            cwd: spec.cwd.clone().into(),
            additional: spec.additional_dirs.iter().map(PathBuf::from).collect(),
            user_dir: self.shared.components().settings.user_dir.clone(),
        };
        let had_mcp = !engine.mcp_catalog().is_empty();
        PendingContextCheck::start(turn_id, (self.mcp_servers(), had_mcp), files)
    }

    /// A call of this session as the parent of a sub-agent.
    fn parent_call(&self, call_id: CallId) -> ParentCall {
        let session_id = self.id;
        match self.engine.spec().parent {
            Some(above) => ParentCall { session_id, call_id, depth: above.depth + 1, ..above },
            None => ParentCall { session_id, call_id, root_session_id: session_id, depth: 1 },
        }
    }

    /// Asks work to stop if the effect requests that. A second request has no further effect.
    pub(super) fn stop_now(&mut self, effect: &Effect) {
        match effect {
            Effect::StopAll => self.effects.stop_all(),
            Effect::StopCall(call_id) => {
                self.effects.stop_tool(*call_id);
                self.effects.stop_subagent(*call_id);
            }
            Effect::StopSubagents => self.effects.stop_subagents(),
            Effect::StopCommands { calls, by } => self.effects.stop_commands(calls, *by),
            Effect::GatherContext
            | Effect::CheckContext { .. }
            | Effect::CallModel { .. }
            | Effect::AskHelper { .. }
            | Effect::Sleep { .. }
            | Effect::Prepare { .. }
            | Effect::CheckRules { .. }
            | Effect::RunTool { .. }
            | Effect::RunSubagent { .. }
            | Effect::FollowSubagent { .. }
            | Effect::AnswerTool { .. }
            | Effect::Inspect { .. } => {}
        }
    }
}
