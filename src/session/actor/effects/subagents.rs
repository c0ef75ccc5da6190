//! Sub-agents as effects: each is followed by a task of the session whose call started it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::actor::effects::EffectRunner;
use crate::shared::elapsed_ms;
use engine::{Input, SessionRules};
use types::ids::{CallId, SessionId};
use types::session::{SessionSpec, TurnResult};
use types::subagent::ParentCall;
use types::tool::{ReadRecord, ToolOutcome};
use types::usage::Budgets;

/// The data that a sub-agent needs from the session that starts it.
#[derive(Clone, Debug)]
pub(crate) struct NewSubagent {
    /// Name of the agent.
    pub agent: String,
    /// Whether its call was judged as one that changes nothing.
    pub read_only: bool,
    /// The model's description of the task in a few words.
    pub description: String,
    /// The prompt with the whole task.
    pub prompt: String,
    /// Limits of the sub-agent's session.
    pub budgets: Budgets,
    /// The settings of the starting session, with the options of its running turn.
    pub spec: SessionSpec,
    /// The rules of the starting session.
    pub rules: Arc<SessionRules>,
    /// The files that the starting session has read.
    pub reads: Arc<HashMap<PathBuf, ReadRecord>>,
}

/// A sub-agent to follow.
#[derive(Clone, Debug)]
pub(crate) struct SubagentRun {
    /// The call that started the sub-agent.
    pub parent: ParentCall,
    /// The session of the sub-agent.
    pub child_session_id: SessionId,
    /// Data for the creation of the session; `None` to follow an existing session.
    pub new: Option<Box<NewSubagent>>,
}

/// The result of a sub-agent's turn, or the reason why there is none. `None` if the daemon stops; the
/// next daemon then follows the sub-agent again.
pub(crate) type SubagentEnd = Option<Result<TurnResult, ToolOutcome>>;

/// Creates and follows the sessions of sub-agents. The registry implements this trait, because a
/// session has no access to other sessions.
pub(crate) trait SubagentHost: Send + Sync {
    /// Runs a sub-agent to its end and reports its progress and its permission requests. Cancelling
    /// `stop` kills the sub-agent. Dropping the future leaves the sub-agent's session as it is.
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
        let (report, started) = (self.report.clone(), Instant::now());
        let work = self.host.run(run, report, stop);
        self.subagents.spawn(async move {
            let done = work.await?;
            let duration_ms = elapsed_ms(started);
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

    /// Stops following all sub-agents. Their sessions continue.
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
