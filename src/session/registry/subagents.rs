//! Runs sub-agents: creates the session, submits its task once, and follows its journal until its turn ends.
//!
//! Every step may run again after a crash. The session has a fixed id and the task has an idempotency
//! key, so a repeated step has no further effect.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::actor::effects::subagents::{NewSubagent, SubagentEnd, SubagentHost, SubagentRun};
use crate::agents;
use crate::budgets::with_max_turns;
use crate::error::SessionError;
use crate::file_models::{self, FileModel};
use crate::handle::SessionHandle;
use crate::idempotency::IdempotencyKey;
use crate::registry::earlier_requests::EarlierRequests;
use crate::registry::new_session_request::{NewSessionRequest, SubagentInheritance};
use crate::registry::{Inner, Registry};
use crate::requests::{Submission, SubmittedInput};
use engine::Input;
use types::event::{Envelope, Event, Origin};
use types::ids::{CallId, Seq, SessionId, TurnId};
use types::message::InputBlock;
use types::permission::Mode;
use types::queue::WhenBusy;
use types::session::TurnResult;
use types::subagent::{AgentProfile, TASK};
use types::tool::{ProposedPlan, ToolChoice, ToolOutcome, ToolProgress};
use types::turn_options::TurnOptions;

/// How long a killed sub-agent may take to report its end. The aborting session waits for less time.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a sub-agent whose session crashes is loaded again.
const MAX_RELOADS: usize = 3;
/// Bytes of events per read.
const PAGE_BYTES: usize = 256 * 1024;
/// Name under which the daemon itself submits and kills.
const DAEMON_NAME: &str = "agentd";

/// Runs the sub-agents of one session.
pub(super) struct RegistryHost(pub Weak<Inner>);

impl SubagentHost for RegistryHost {
    fn run(
        &self,
        run: SubagentRun,
        report: mpsc::Sender<Box<Input>>,
        stop: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = SubagentEnd> + Send>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let registry = Registry { inner: inner.upgrade()? };
            match registry.run_subagent(run, report, stop).await {
                Ok(end) => end,
                Err(SessionError::ShuttingDown) => None,
                Err(error) => Some(Err(failure_outcome(&error))),
            }
        })
    }
}

/// The result of a call whose sub-agent could not be run.
fn failure_outcome(error: &SessionError) -> ToolOutcome {
    ToolOutcome::failed("subagent_failed", format!("The sub-agent could not be run: {error}."))
}

fn daemon_origin() -> Origin {
    Origin { client: DAEMON_NAME.into(), uid: nix::unistd::geteuid().as_raw(), ..Origin::default() }
}

/// Counts a sub-agent of a tree until it is dropped.
struct TreeSlot {
    inner: Arc<Inner>,
    root: SessionId,
}

impl Drop for TreeSlot {
    fn drop(&mut self) {
        let left = self.inner.subagents.get_mut(&self.root).map(|mut count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == Some(0) {
            self.inner.subagents.remove_if(&self.root, |_, count| *count == 0);
        }
    }
}

impl Registry {
    /// Counts a sub-agent of the tree of `root`. `None` if `most` sub-agents of the tree are running.
    fn tree_slot(&self, root: SessionId, most: usize) -> Option<TreeSlot> {
        let mut count = self.inner.subagents.entry(root).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(count);
        Some(TreeSlot { inner: Arc::clone(&self.inner), root })
    }

    async fn run_subagent(
        &self,
        run: SubagentRun,
        report: mpsc::Sender<Box<Input>>,
        stop: CancellationToken,
    ) -> Result<SubagentEnd, SessionError> {
        let SubagentRun { parent, child_session_id: id, new } = run;
        let exists = self.inner.shared.store.find(id).await?.is_some();
        let most = self.inner.shared.components().settings.engine.subagents;
        // After a restart all sub-agents continue, even if the limit is lower now.
        let most = if exists { usize::MAX } else { most };
        let Some(_slot) = self.tree_slot(parent.root_session_id, most) else {
            let text = format!(
                "{most} sub-agents of this session and its sub-agents run already ([limits] subagents). It was not \
                 started. Wait for one to end, or do the work yourself."
            );
            return Ok(Some(Err(ToolOutcome::failed("too_many_subagents", text))));
        };
        if stop.is_cancelled() && !exists {
            let text = "It was aborted before its sub-agent started.";
            return Ok(Some(Err(ToolOutcome::failed("aborted", text))));
        }
        let prompt = new.as_ref().map(|new| new.prompt.clone());
        if !exists {
            let Some(new) = new else {
                let text =
                    "The daemon stopped before the sub-agent started. Start it again if it is still needed.";
                return Ok(Some(Err(ToolOutcome::failed("not_started", text))));
            };
            base::crash::point("C26.reserved");
            self.create_subagent(id, parent, *new).await?;
        }
        base::crash::point("C26.created");
        let turn_id = match prompt {
            Some(prompt) => Some(self.submit_task(id, parent.call_id, prompt).await?),
            None => None,
        };
        base::crash::point("C26.submitted");
        let follower =
            SubagentFollower { registry: self, id, call_id: parent.call_id, turn_id, report, stop };
        follower.follow().await
    }

    async fn create_subagent(
        &self,
        id: SessionId,
        parent: types::subagent::ParentCall,
        new: NewSubagent,
    ) -> Result<(), SessionError> {
        let shared = &self.inner.shared;
        let NewSubagent { agent: name, read_only, description, budgets, spec, rules, reads, .. } = new;
        let list = agents::load(shared, spec.cwd.as_ref()).await?;
        let agent = list.find(&name).cloned().ok_or_else(|| {
            SessionError::BadParam("subagent_type", format!("the file of the agent {name} is gone"))
        })?;
        // The call was judged with an earlier version of the agent's file.
        if read_only && !agent.is_read_only() {
            let why = format!("the agent {name} has more tools since the call was judged; call it again");
            return Err(SessionError::BadParam("subagent_type", why));
        }
        let components = shared.components();
        let settings = &components.settings;
        let named = agent.model_name.as_deref().map(|name| file_models::resolve(&components, name));
        let model = match named {
            Some(FileModel::Named(model)) => model,
            Some(FileModel::OfSession) => spec.model.clone(),
            Some(FileModel::Unknown) | None => {
                settings.engine.models.task.clone().unwrap_or_else(|| spec.model.clone())
            }
        };
        // The sub-agent must not get a tool that its starting session may not use. The sub-agents of a coordinator do
        // the work that the coordinator must not do, so they get all tools.
        let own = if spec.coordinator { ToolChoice::default() } else { spec.tools.clone() };
        let mut tools = own.narrowed_to(&agent.tool_choice());
        let no_task = parent.depth >= settings.subagent_depth;
        // An approved plan would end the mode plan, which the agent's file demands.
        let no_plan = agent.restrictions.modes.contains(&Mode::Plan);
        for (tool, is_denied) in [(TASK, no_task), (ProposedPlan::TOOL, no_plan)] {
            if is_denied && !tools.deny.iter().any(|denied| denied == tool) {
                tools.deny.push(tool.to_owned());
            }
        }
        let of_parent = spec.agent.as_ref().map(|agent| agent.restrictions.clone()).unwrap_or_default();
        let restrictions = of_parent.and(agent.restrictions);
        let mode = agent.mode.map_or(spec.mode, |mode| spec.mode.narrowed_to(mode));
        let budgets = with_max_turns(budgets, agent.max_turns);
        let answers = agent.model_options;
        let fallback = answers.fallback_model.map(|name| file_models::resolve(&components, &name));
        let fallback_model = match fallback {
            Some(FileModel::Named(model)) => Some(model),
            Some(FileModel::OfSession | FileModel::Unknown) | None => spec.fallback_model.clone(),
        };
        let options = TurnOptions {
            model: (!model.is_empty()).then_some(model),
            thinking: answers.thinking.or(spec.thinking),
            fallback_model,
            mode: Some(mode),
            safe_mode: Some(spec.safe_mode),
            tools: Some(tools),
            budgets: Some(budgets),
            additional_dirs: Some(spec.additional_dirs.clone()),
            ..TurnOptions::default()
        };
        let options = options.with_sampling(answers.sampling.or(spec.sampling));
        let request = NewSessionRequest {
            is_hidden: false,
            job_id: None,
            session_id: Some(id),
            cwd: spec.cwd.clone(),
            worktree: None,
            title: Some(if description.trim().is_empty() { name.clone() } else { description }),
            background: spec.background,
            on_restart: spec.on_restart,
            options,
            ablation: Some(spec.ablation),
            binary_feedback: Some(false),
            agent: None,
            coordinator: false,
            inherited: Some(Box::new(SubagentInheritance {
                parent,
                agent: AgentProfile { name: agent.name, prompt: agent.prompt, restrictions },
                rules: (*rules).clone(),
                reads: reads.values().cloned().collect(),
            })),
            initial_items: Vec::new(),
            mcp_servers: BTreeMap::new(),
            environment: None,
            keyed: None,
            origin: Some(daemon_origin()),
        };
        self.create(request).await.map(|_| ())
    }

    /// The tools of an agent that exist in this daemon. An agent's file may name tools of other programs.
    pub(super) fn existing_tools(&self, tools: Vec<String>) -> Vec<String> {
        let known = self.inner.shared.components().tools.definitions();
        let is_known =
            |name: &String| name.starts_with("mcp__") || known.iter().any(|tool| tool.name == *name);
        tools.into_iter().filter(is_known).collect()
    }

    /// Submits the task. A repeated call returns the same turn.
    async fn submit_task(
        &self,
        id: SessionId,
        call_id: CallId,
        prompt: String,
    ) -> Result<TurnId, SessionError> {
        let submission = Submission {
            when_busy: Some(WhenBusy::Queue),
            expected_turn: None,
            options: TurnOptions::default(),
            raw: true,
            runs_hooks: false,
            keyed: Some(IdempotencyKey { key: format!("task-{call_id}"), digest: call_id.to_string() }),
            origin: daemon_origin(),
        };
        let input = SubmittedInput { blocks: vec![InputBlock::Text { text: prompt }], blobs: Vec::new() };
        let submitted = self.submit(id, submission, std::convert::identity, async { Ok(input) }).await?;
        Ok(submitted.turn_id)
    }
}

/// The fields of an event that decide whether the whole event must be parsed.
#[derive(Deserialize)]
struct EventHead<'e> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'e, str>,
    seq: Seq,
}

struct SubagentFollower<'r> {
    registry: &'r Registry,
    id: SessionId,
    call_id: CallId,
    /// The turn that works on the task; `None` for the newest turn.
    turn_id: Option<TurnId>,
    report: mpsc::Sender<Box<Input>>,
    stop: CancellationToken,
}

impl SubagentFollower<'_> {
    /// Follows the journal from its beginning until the turn ends. A session that crashed is loaded again.
    async fn follow(self) -> Result<SubagentEnd, SessionError> {
        let mut after = 0;
        // Events up to this seq happened before this call. Their requests are reported together.
        let mut known_to = None;
        let mut earlier = EarlierRequests::default();
        for _ in 0..=MAX_RELOADS {
            let handle = self.registry.open(self.id).await?;
            let known_to = *known_to.get_or_insert(handle.last_seq());
            let mut follower = handle.follow(after).await?;
            let mut is_killed = false;
            loop {
                let ready = tokio::select! {
                    ready = follower.wait_ready() => ready,
                    () = self.stop.cancelled(), if !is_killed => {
                        is_killed = true;
                        self.kill(&handle).await?;
                        continue;
                    }
                };
                if !ready {
                    break;
                }
                for line in follower.next_events(PAGE_BYTES).await? {
                    if let Some(result) = self.handle_event(&handle, &line, known_to, &mut earlier).await? {
                        return Ok(Some(Ok(result)));
                    }
                }
                after = follower.cursor();
                if after >= known_to {
                    for event in earlier.take_pending() {
                        let event = Box::new(event);
                        self.send(Input::SubagentEvent { call_id: self.call_id, event }).await?;
                    }
                }
            }
            if let Some(result) = self.registry.result_of_ended(self.id).await? {
                return Ok(Some(Ok(result)));
            }
            self.registry.check_open()?;
        }
        Err(SessionError::Crashed)
    }

    /// Kills the session. The journal then reports the end of its turn.
    async fn kill(&self, handle: &SessionHandle) -> Result<(), SessionError> {
        match tokio::time::timeout(KILL_TIMEOUT, handle.kill(None, daemon_origin())).await {
            Ok(killed) => killed.map(|_| ()),
            Err(_) => Ok(()),
        }
    }

    /// Handles an event. Returns the result if the event ends the turn.
    async fn handle_event(
        &self,
        handle: &SessionHandle,
        line: &str,
        known_to: Seq,
        earlier: &mut EarlierRequests,
    ) -> Result<Option<TurnResult>, SessionError> {
        let Ok(EventHead { kind, seq }) = serde_json::from_str(line) else { return Ok(None) };
        let is_wanted = matches!(
            &*kind,
            "tool.status"
                | "turn.completed"
                | "permission.requested"
                | "permission.resolved"
                | "permission.expired"
                | "question.requested"
                | "question.resolved"
        );
        if !is_wanted {
            return Ok(None);
        }
        let store = &self.registry.inner.shared.store;
        let Some(Envelope { turn_id, event, .. }) = store.restored_event(handle.key(), seq, line).await?
        else {
            return Ok(None);
        };
        let call_id = self.call_id;
        match event {
            Event::TurnCompleted { result } if self.turn_id.is_none() || turn_id == self.turn_id => {
                return Ok(Some(result));
            }
            Event::ToolStatus { prepared, .. } if seq > known_to => {
                let progress = ToolProgress { stream: "stdout", text: format!("{}\n", prepared.summary) };
                self.send(Input::Progress { call_id, progress }).await?;
            }
            event => {
                if let Some(event) = earlier.filter(event, seq <= known_to) {
                    self.send(Input::SubagentEvent { call_id, event: Box::new(event) }).await?;
                }
            }
        }
        Ok(None)
    }

    async fn send(&self, input: Input) -> Result<(), SessionError> {
        self.report.send(Box::new(input)).await.map_err(|_| SessionError::ShuttingDown)
    }
}

impl Registry {
    /// The last result of a session that accepts no more input.
    async fn result_of_ended(&self, id: SessionId) -> Result<Option<TurnResult>, SessionError> {
        let view = self.view(id).await?;
        if view.summary.state != types::session::SessionState::Ended {
            return Ok(None);
        }
        self.last_result(id).await
    }
}
