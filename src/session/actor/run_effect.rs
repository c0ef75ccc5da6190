//! Starts the effects of a committed decision.

use std::path::PathBuf;

use tokio::time::Instant;

use crate::engine::Effect;
use crate::session::actor::effects::context_check::ContextFiles;
use crate::session::actor::{Actor, STOP_TIMEOUT};
use crate::workspace;

impl Actor {
    pub(super) fn run_effect(&mut self, effect: Effect) {
        if self.state.parking.is_some() {
            // The next start derives this from the journal again.
            return;
        }
        match effect {
            Effect::GatherContext => {
                let spec = self.engine.prompt_spec();
                self.effects.gather(workspace::Request {
                    cwd: spec.cwd.clone().into(),
                    additional: spec.additional_dirs.iter().map(PathBuf::from).collect(),
                    model: spec.model.clone(),
                    // The prompt must not change when it is built again on another day.
                    date: self.engine.created_at().date(),
                    custom: spec.system_prompt.clone(),
                    appended: spec.append_system_prompt.clone(),
                    user_dir: self.shared.components().settings.user_dir.clone(),
                    trusted: None,
                });
            }
            Effect::CheckContext { turn_id } => {
                let spec = self.engine.spec();
                self.effects.check_context(
                    turn_id,
                    ContextFiles {
                        reads: self.engine.reads(),
                        cwd: spec.cwd.clone().into(),
                        additional: spec.additional_dirs.iter().map(PathBuf::from).collect(),
                        user_dir: self.shared.components().settings.user_dir.clone(),
                    },
                );
            }
            Effect::CallModel { token, request } => {
                self.effects.call_model(token, *request, self.state.spans.current());
            }
            Effect::AskHelper { token, request } => self.effects.ask_helper(token, *request),
            Effect::Sleep { token, delay_ms } => self.effects.sleep(token, delay_ms),
            Effect::Prepare { turn_id, calls } => {
                self.effects.prepare(turn_id, calls, self.call_context());
            }
            Effect::RunTool { call, prepared } => {
                self.effects.run_tool(call, prepared, self.call_context(), self.state.spans.current());
            }
            Effect::Inspect { call, prepared } => {
                self.effects.inspect(call.call_id, prepared, self.call_context());
            }
            Effect::StopAll => {
                self.stop_now(&effect);
                self.state.stop_by.get_or_insert(Instant::now() + STOP_TIMEOUT);
            }
            Effect::StopCall(_) | Effect::StopCommands { .. } => self.stop_now(&effect),
        }
    }

    /// Asks work to stop if the effect requests that. A second request has no further effect.
    pub(super) fn stop_now(&mut self, effect: &Effect) {
        match effect {
            Effect::StopAll => self.effects.stop_all(),
            Effect::StopCall(call_id) => self.effects.stop_tool(*call_id),
            Effect::StopCommands { calls, by } => self.effects.stop_commands(calls, *by),
            Effect::GatherContext
            | Effect::CheckContext { .. }
            | Effect::CallModel { .. }
            | Effect::AskHelper { .. }
            | Effect::Sleep { .. }
            | Effect::Prepare { .. }
            | Effect::RunTool { .. }
            | Effect::Inspect { .. } => {}
        }
    }
}
