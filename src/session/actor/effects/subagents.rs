//! Sub-agents as effects: each is followed by a task of the session whose call started it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::{Input, SessionRules};
use crate::session::actor::effects::EffectRunner;
use crate::types::ids::{CallId, SessionId};
use crate::types::session::{SessionSpec, TurnResult};
use crate::types::subagent::ParentCall;
use crate::types::tool::{ReadRecord, ToolOutcome};
use crate::types::usage::Budgets;

/// The data that a sub-agent needs from the session that starts it.
#[derive(Clone, Debug)]
pub(in crate::session) struct NewSubagent {
    /// The agent's name.
    pub agent: String,
    /// Whether its call was judged as one that changes nothing.
    pub read_only: bool,
    /// Its task in a few words.
    pub description: String,
    /// Its whole task.
    pub prompt: String,
    /// Its limits.
    pub budgets: Budgets,
    /// The settings of the starting session, with those of its running turn.
    pub spec: SessionSpec,
    /// The rules of the starting session.
    pub rules: Arc<SessionRules>,
    /// The files that it has read.
    pub reads: Arc<HashMap<PathBuf, ReadRecord>>,
}

/// A sub-agent to follow.
#[derive(Clone, Debug)]
pub(in crate::session) struct SubagentRun {
    /// The call that started it.
    pub parent: ParentCall,
    /// Its session.
    pub child_session_id: SessionId,
    /// Data for its creation; `None` to follow one that exists.
    pub new: Option<Box<NewSubagent>>,
}

/// The result of a sub-agent's turn, or why there is none. `None`: the daemon stops, and the next start follows it
/// again.
pub(in crate::session) type SubagentEnd = Option<Result<TurnResult, ToolOutcome>>;

/// Creates and follows the sessions of sub-agents. The registry implements it: a session knows no other sessions.
pub(in crate::session) trait SubagentHost: Send + Sync {
    /// Runs a sub-agent to its end. Reports its progress and its permission requests. When `stop` is cancelled, it is
    /// killed. Dropping the future leaves its session as it is.
    fn run(
        &self,
        run: SubagentRun,
        report: mpsc::Sender<Box<Input>>,
        stop: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = SubagentEnd> + Send>>;
}

impl EffectRunner {
    /// Follows a sub-agent until it ends.
    pub fn run_subagent(&mut self, run: SubagentRun) {
        let call_id = run.parent.call_id;
        if self.subagent_stops.contains_key(&call_id) {
            return;
        }
        let stop = CancellationToken::new();
        self.subagent_stops.insert(call_id, stop.clone());
        let (report, clock) = (self.report.clone(), Arc::clone(&self.shared.clock));
        let started = clock.now();
        let work = self.host.run(run, report, stop);
        self.subagents.spawn(async move {
            let done = work.await?;
            let duration_ms = clock.now().since(started);
            Some(Input::SubagentDone { call_id, done: Box::new(done), duration_ms })
        });
    }

    /// Kills the sub-agent of one call, if the call started one.
    pub fn stop_subagent(&mut self, call_id: CallId) {
        if let Some(stop) = self.subagent_stops.get(&call_id) {
            stop.cancel();
        }
    }

    /// Kills all sub-agents.
    pub fn stop_subagents(&mut self) {
        self.subagent_stops.values().for_each(CancellationToken::cancel);
    }

    /// Follows no sub-agent any more. Their sessions continue.
    pub fn drop_subagents(&mut self) {
        self.subagents.abort_all();
        self.subagent_stops.clear();
    }

    /// Whether no sub-agent is followed.
    pub fn have_no_subagents(&self) -> bool {
        self.subagents.is_empty()
    }

    /// The input of a sub-agent that ended.
    pub(super) fn subagent_ended(
        &mut self,
        ended: Result<Option<Input>, tokio::task::JoinError>,
    ) -> Option<Input> {
        let input = ended.ok().flatten();
        if let Some(Input::SubagentDone { call_id, .. }) = &input {
            self.subagent_stops.remove(call_id);
        }
        if self.subagents.is_empty() {
            self.subagent_stops.clear();
        }
        input
    }
}
