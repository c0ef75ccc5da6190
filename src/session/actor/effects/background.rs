//! Background tasks: commands that still run after their tool call returned. They belong to the session, not to
//! its turn.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::actor::effects::tool_run::relay_progress;
use crate::actor::effects::{BackgroundTask, EffectRunner, OUTPUT_CAPACITY};
use base::crash;
use engine::{Engine, Input};
use tools::{BackgroundTaskView, RunningTask};
use types::background::{BackgroundEnd, BackgroundState, KilledBy, UnrecordedEnd};
use types::ids::CallId;

impl EffectRunner {
    /// Returns the input for the end of a background task. A task that was aborted has ended too, but
    /// its exit status is unknown.
    pub(super) fn command_ended(
        &mut self,
        ended: Result<(tokio::task::Id, Option<Input>), tokio::task::JoinError>,
    ) -> Option<Input> {
        match ended {
            Ok((_, input)) => input,
            Err(error) => {
                let call_id = self.live.iter().find(|(_, it)| it.task == error.id()).map(|(id, _)| *id)?;
                let note = "It was killed, and its end could not be waited for.".to_owned();
                let end = BackgroundEnd { note: Some(note), ..BackgroundEnd::default() };
                let over = UnrecordedEnd { state: BackgroundState::Lost, end, blob: None };
                Some(Input::CommandOver { call_id, over: Box::new(over) })
            }
        }
    }

    /// Stops background tasks. Their ends arrive as normal inputs.
    pub fn stop_commands(&mut self, calls: &[CallId], by: KilledBy) {
        for call_id in calls {
            if let Some(command) = self.live.get(call_id) {
                command.live.stop(by);
            }
        }
    }

    /// Stops all background tasks, including those that are being started.
    pub fn stop_all_commands(&mut self, by: KilledBy) {
        self.stop_all_by = Some(by);
        self.live.values().for_each(|command| command.live.stop(by));
    }

    /// Drops background tasks that did not stop in time.
    pub fn drop_commands(&mut self, calls: &[CallId]) {
        for call_id in calls {
            if let Some(command) = self.live.get(call_id) {
                command.abort.abort();
            }
        }
    }

    pub fn drop_all_commands(&mut self) {
        self.commands.abort_all();
    }

    /// Forgets a background task whose end is in the journal.
    pub fn forget_command(&mut self, call_id: CallId) {
        if let Some(command) = self.live.remove(&call_id) {
            command.live.mark_written();
        }
    }

    /// The session's background tasks, for the session context of a call.
    pub fn commands(&self, engine: &Engine) -> Vec<BackgroundTaskView> {
        let live = |call_id: &CallId| self.live.get(call_id).map(|it| Arc::clone(&it.live));
        let known = engine.commands().into_iter();
        known.map(|command| BackgroundTaskView { live: live(&command.call_id), command }).collect()
    }

    /// Follows a started background task until its end.
    pub(super) fn follow(&mut self, call_id: CallId, command: RunningTask) {
        let (report, live) = (self.report.clone(), command.handle());
        let (progress, pieces) = mpsc::channel(OUTPUT_CAPACITY);
        let abort = self.commands.spawn(async move {
            let over = relay_progress(call_id, command.follow(progress), pieces, &report).await?;
            let over = over.unwrap_or_else(|_| {
                let note = "The daemon failed at following it; its log says more.".to_owned();
                let end = BackgroundEnd { note: Some(note), ..BackgroundEnd::default() };
                UnrecordedEnd { state: BackgroundState::Lost, end, blob: None }
            });
            crash::point("C14.background");
            Some(Input::CommandOver { call_id, over: Box::new(over) })
        });
        if let Some(by) = self.stop_all_by {
            live.stop(by);
        }
        self.live.insert(call_id, BackgroundTask { live, task: abort.id(), abort });
    }
}
