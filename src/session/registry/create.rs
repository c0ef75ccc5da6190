//! Creates and changes sessions. Each request is checked against the configuration and the machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::actor::audit;
use crate::actor::journal;
use crate::agents;
use crate::budgets::{check_money, with_max_turns};
use crate::error::SessionError;
use crate::file_models::{self, FileModel};
use crate::idempotency::{IdempotencyKey, method};
use crate::project_config::{PROJECT_FILE, ProjectLayer};
use crate::registry::Registry;
use crate::registry::initial_items::{self, InitialMessage};
use crate::registry::mcp;
use engine::{Engine, SessionRules};
use store::{Idempotency, NewSession, StoreError};
use types::ablation::Ablation;
use types::daemon_event::SessionChangeKind;
use types::event::{Envelope, Event, Origin};
use types::ids::{JobId, Mint, Seed, SessionId};
use types::permission::{RuleKind, is_unsandboxed_grant};
use types::session::{OnRestart, SessionSpec, SessionView};
use types::session_environment::SessionEnvironment;
use types::subagent::{AgentProfile, AgentRestrictions, HIDDEN_AGENT, ParentCall};
use types::tool::{ReadRecord, ToolChoice};
use types::turn_options::TurnOptions;
use types::worktree::WorktreeChoice;

/// Code of the notice about the project's configuration file.
const PROJECT_NOTICE: &str = "project_config";
/// The agent name of a coordinator.
const COORDINATOR: &str = "coordinator";
/// The tools of a coordinator: none of them changes anything.
const COORDINATOR_TOOLS: [&str; 12] = [
    "Task",
    "Read",
    "Glob",
    "Grep",
    "LS",
    "TodoWrite",
    "TodoRead",
    "AskUser",
    "ExitPlanMode",
    "Skill",
    "KnowledgeSearch",
    "ToolSearch",
];

fn coordinator_prompt(scratch: &str) -> String {
    format!(
        "You coordinate. You change nothing yourself: plan the work, hand each part to a sub-agent with Task, and check \
         what comes back.\n\
         - Independent parts go into one message, so that they run at the same time.\n\
         - A sub-agent sees nothing of this conversation: its prompt contains all that it needs.\n\
         - All of them share the scratch folder {scratch}. Let them write longer results there, and name the files in \
         later prompts; you can read them.\n\
         - Tell the user at the end what was done and what was not."
    )
}

/// The parameters of a new session.
#[derive(Clone, Debug, Default)]
pub struct NewSessionRequest {
    /// An id that the caller chose.
    pub session_id: Option<SessionId>,
    /// Folder of the session.
    pub cwd: String,
    /// The session gets a worktree of the folder's repository with these properties, and works there.
    pub worktree: Option<WorktreeChoice>,
    /// Short title.
    pub title: Option<String>,
    /// Whether the session is unattended.
    pub background: bool,
    /// Policy for turns that a restart interrupts.
    pub on_restart: Option<OnRestart>,
    /// Options of the session's turns.
    pub options: TurnOptions,
    /// Optimisations that are turned off.
    pub ablation: Option<Ablation>,
    /// Whether the model answers twice and a client chooses.
    pub binary_feedback: Option<bool>,
    /// Name of the agent that the session works as.
    pub agent: Option<String>,
    /// Whether the session only plans and hands work to sub-agents.
    pub coordinator: bool,
    /// For a sub-agent: the values that it inherits from the session that starts it.
    pub inherited: Option<Box<SubagentInheritance>>,
    /// The conversation that the session begins with.
    pub initial_items: Vec<InitialMessage>,
    /// MCP servers of this session alone, with the keys of `[mcp.NAME]`. The values may contain secrets.
    pub mcp_servers: BTreeMap<String, serde_json::Value>,
    /// Variables for the commands of the session; absent for those of the daemon.
    pub environment: Option<SessionEnvironment>,
    /// The job that the session is an attempt of.
    pub job_id: Option<JobId>,
    /// Whether lists omit the session. A hidden session holds usage that belongs to no other session.
    pub is_hidden: bool,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Option<Origin>,
}

/// The values that a sub-agent inherits from the session that starts it.
#[derive(Clone, Debug)]
pub struct SubagentInheritance {
    /// The call that starts the sub-agent.
    pub(crate) parent: ParentCall,
    /// The agent that the sub-agent works as.
    pub(crate) agent: AgentProfile,
    /// The rules of the starting session.
    pub(crate) rules: SessionRules,
    /// The files that the starting session has read.
    pub(crate) reads: Vec<ReadRecord>,
}

impl SubagentInheritance {
    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for kind in [RuleKind::Allow, RuleKind::Ask, RuleKind::Deny] {
            // A grant to leave the sandbox applies only to the session to which the user gave it.
            let rules = self.rules.with_kind(kind).iter().filter(|rule| !is_unsandboxed_grant(rule));
            events.extend(rules.map(|rule| Event::PermissionRuleAdded { kind, rule: rule.clone() }));
        }
        if !self.reads.is_empty() {
            events.push(Event::SessionInherited { reads: self.reads.clone() });
        }
        events
    }
}

impl NewSessionRequest {
    /// Whether this request, resolved to `spec`, describes the session `known`. The defaults of the
    /// configuration may have changed since `known` was created.
    fn is_for(&self, spec: &SessionSpec, existing: &SessionSpec) -> bool {
        let options = &self.options;
        let requested_spec = SessionSpec {
            title: self.title.clone().unwrap_or_else(|| existing.title.clone()),
            model: if options.model.is_some() { spec.model.clone() } else { existing.model.clone() },
            mode: options.mode.unwrap_or(existing.mode),
            safe_mode: options.safe_mode.unwrap_or(existing.safe_mode),
            thinking: options.thinking.or(existing.thinking),
            sampling: options.sampling().or(existing.sampling),
            budgets: if options.budgets.is_some() { spec.budgets } else { existing.budgets },
            ablation: self.ablation.unwrap_or(existing.ablation),
            fallback_model: match options.fallback_model {
                Some(_) => spec.fallback_model.clone(),
                None => existing.fallback_model.clone(),
            },
            project_settings: existing.project_settings.clone(),
            project_root: existing.project_root.clone(),
            // The scratch folder of a coordinator has a new name each time, so do not compare it.
            agent: if self.coordinator { existing.agent.clone() } else { spec.agent.clone() },
            additional_dirs: if self.coordinator {
                existing.additional_dirs.clone()
            } else {
                spec.additional_dirs.clone()
            },
            binary_feedback: self.binary_feedback.unwrap_or(existing.binary_feedback),
            ..spec.clone()
        };
        requested_spec == *existing
    }
}

/// The rows of a new session with its first event and history.
fn new_session(
    created: &Envelope,
    spec: &SessionSpec,
    history: &[Envelope],
    keyed: Option<IdempotencyKey>,
) -> NewSession {
    let (row, _, blobs) = journal::encode_event(created, None);
    let mut new = NewSession {
        session_id: created.session_id,
        spec: spec.clone(),
        at: created.at_ms,
        rows: vec![row],
        items: Vec::new(),
        blobs,
        audit: audit::creation_notes(created, spec.mode),
        idempotency: keyed.map(|keyed| Idempotency {
            method: method::CREATE,
            key: keyed.key,
            digest: keyed.digest,
            reply: created.session_id.to_string(),
        }),
        history: Default::default(),
    };
    history.iter().for_each(|event| initial_items::add(&mut new, event));
    new
}

impl Registry {
    /// Creates a session. If the id or key was used before with the same request, returns that session.
    ///
    /// # Errors
    /// A parameter is invalid, or the id or key was used with a different request.
    pub async fn create(&self, mut request: NewSessionRequest) -> Result<SessionView, SessionError> {
        self.check_open()?;
        if let Some(existing) = self.find_created(request.keyed.as_ref()).await? {
            return Ok(existing);
        }
        match request.worktree.take() {
            Some(choice) => self.create_in_worktree(request, choice).await,
            None => self.create_in_folder(request).await,
        }
    }

    pub(super) async fn create_in_folder(
        &self,
        request: NewSessionRequest,
    ) -> Result<SessionView, SessionError> {
        let shared = &self.inner.shared;
        let servers = mcp::parse_servers(request.mcp_servers.clone())?;
        self.check_environment(request.environment.as_ref(), !request.background)?;
        let (mut spec, notices) = self.build_spec(&request).await?;
        spec.initial_digest = initial_items::digest(&request.initial_items)?;
        if request.is_hidden {
            spec.agent = Some(AgentProfile { name: HIDDEN_AGENT.into(), ..AgentProfile::default() });
        }
        let now = shared.clock.now();
        let mut mint = Mint::new(now.0, Seed::random());
        let id = request.session_id.unwrap_or_else(|| mint.session());
        let envelope = Envelope {
            seq: 1,
            session_id: id,
            turn_id: None,
            item_id: None,
            step: None,
            parent_call_id: spec.parent.map(|parent| parent.call_id),
            at_ms: now,
            origin: request.origin.clone(),
            truncated_fields: Vec::new(),
            event: Event::SessionCreated(Box::new(spec.clone())),
        };
        let mut first = request.inherited.as_ref().map(|it| it.events()).unwrap_or_default();
        if !notices.is_empty() {
            first.push(Event::Notice { kind: PROJECT_NOTICE.into(), text: notices.join("; ") });
        }
        let mut history: Vec<Envelope> =
            (2..).zip(first).map(|(seq, event)| Envelope { seq, event, ..envelope.clone() }).collect();
        let last = history.last().unwrap_or(&envelope);
        let items = initial_items::events(last, &request.initial_items, &mut mint);
        history.extend(items);
        let new = new_session(&envelope, &spec, &history, request.keyed.clone());
        // Save the servers before the session exists, so that no turn of the session begins without them.
        let is_new = shared.store.find(id).await?.is_none();
        // The ledger keeps the calls of a deleted session under its id. A new session with this id
        // would lose its own calls.
        if is_new && request.session_id.is_some() && shared.store.has_usage(id).await? {
            let why = "a deleted session had this id; choose another, or leave it out";
            return Err(SessionError::BadParam("session_id", why.into()));
        }
        if is_new {
            self.save_servers(id, servers.clone()).await?;
            self.save_environment(id, request.environment.clone()).await?;
        }
        match shared.database.create(new).await {
            Ok(key) => {
                let mut engine = Engine::new(id, Arc::clone(&shared.components().settings.engine));
                engine.apply(&envelope);
                history.iter().for_each(|event| engine.apply(event));
                // A client that knows the id may have opened the session already. Only one task may own a session.
                let slot = self.slot(id);
                slot.get_or_init(|| async { self.insert_created(id, key, engine) }).await;
                shared.notify_session(id, SessionChangeKind::Created);
                self.view(id).await
            }
            // Another call with the same key or id was faster.
            Err(StoreError::Taken) => match self.find_created(request.keyed.as_ref()).await? {
                Some(existing) => Ok(existing),
                None if self.has_servers(id, &servers).await
                    && self.environment_of(id).await == request.environment =>
                {
                    self.require_same_session(id, &spec, &request).await
                }
                None => Err(SessionError::Conflict("session_id")),
            },
            Err(error) => {
                if is_new {
                    self.remove_servers(id).await;
                    self.remove_environment(id).await;
                }
                Err(error.into())
            }
        }
    }

    /// The session that was created with this key, if there is one.
    async fn find_created(
        &self,
        keyed: Option<&IdempotencyKey>,
    ) -> Result<Option<SessionView>, SessionError> {
        let Some(keyed) = keyed else { return Ok(None) };
        let Some(stored) = self.inner.shared.store.stored_reply(method::CREATE, &keyed.key).await? else {
            return Ok(None);
        };
        if stored.digest != keyed.digest {
            return Err(SessionError::Conflict("idempotency_key"));
        }
        let id = stored.reply.parse().map_err(|_| SessionError::NotFound)?;
        self.view(id).await.map(Some)
    }

    /// The session with this id, if it was created from the same request. The defaults may have changed since.
    async fn require_same_session(
        &self,
        id: SessionId,
        spec: &SessionSpec,
        request: &NewSessionRequest,
    ) -> Result<SessionView, SessionError> {
        let store = &self.inner.shared.store;
        let key = store.find(id).await?.ok_or(SessionError::Conflict("idempotency_key"))?;
        let first =
            store.events_after(key, 0, 1, 0).await?.rows.into_iter().next().ok_or(SessionError::NotFound)?;
        match store.restored_event(key, first.seq, &first.body).await? {
            Some(Envelope { event: Event::SessionCreated(created), .. })
                if request.is_for(spec, &created) =>
            {
                self.view(id).await
            }
            _ => Err(SessionError::Conflict("session_id")),
        }
    }

    /// Gives a session the tools, the instructions and the scratch folder of a coordinator.
    async fn make_coordinator(
        &self,
        request: &NewSessionRequest,
        spec: &mut SessionSpec,
        options: &mut TurnOptions,
    ) -> Result<(), SessionError> {
        let fixed_options = [("agent", request.agent.is_some()), ("tools", options.tools.is_some())];
        if let Some((name, _)) = fixed_options.into_iter().find(|(_, is_given)| *is_given) {
            let why = format!("a coordinator has fixed tools; leave out {name} or coordinator");
            return Err(SessionError::BadParam("coordinator", why));
        }
        let components = self.inner.shared.components();
        let scratch = components.tools.make_scratch_folder().await.map_err(|error| {
            SessionError::BadParam("coordinator", format!("could not make the scratch folder: {error}"))
        })?;
        let scratch = scratch.to_string_lossy().into_owned();
        spec.coordinator = true;
        spec.agent = Some(AgentProfile {
            name: COORDINATOR.into(),
            prompt: coordinator_prompt(&scratch),
            ..AgentProfile::default()
        });
        let allow = COORDINATOR_TOOLS.iter().map(|tool| (*tool).to_owned()).collect();
        let allow = Some(self.existing_tools(allow));
        options.tools = Some(ToolChoice { allow, deny: Vec::new() });
        options.additional_dirs.get_or_insert_default().push(scratch);
        Ok(())
    }

    /// Applies the agent with this name to the options of a session with the settings `spec`. Its model is used
    /// unless the request names another one.
    async fn use_agent(
        &self,
        name: &str,
        spec: &SessionSpec,
        options: &mut TurnOptions,
    ) -> Result<AgentProfile, SessionError> {
        let list = agents::load(&self.inner.shared, Path::new(&spec.cwd)).await?;
        let Some(agent) = list.find(name).cloned() else {
            let names: Vec<&str> = list.agents.iter().map(|agent| agent.slug.as_str()).collect();
            let why = format!("there is no agent {name:?}; the agents are {}", names.join(", "));
            return Err(SessionError::BadParam("agent", why));
        };
        // The request may take tools away, but gives the agent none.
        let tools = options.tools.take().unwrap_or_default().narrowed_to(&agent.tool_choice());
        options.tools = (!tools.is_all()).then_some(tools);
        let components = self.inner.shared.components();
        let named = agent.model_name.filter(|_| options.model.is_none());
        if let Some(FileModel::Named(model)) = named.map(|name| file_models::resolve(&components, &name)) {
            options.model = Some(model);
        }
        if let Some(mode) = agent.mode {
            let own = options.mode.unwrap_or(spec.mode);
            options.mode = Some(own.narrowed_to(mode));
        }
        if agent.max_turns.is_some() {
            let budgets = options.budgets.unwrap_or(spec.budgets);
            options.budgets = Some(with_max_turns(budgets, agent.max_turns));
        }
        // The user of the session may choose another mode later, for example by approving a plan.
        let restrictions = AgentRestrictions { modes: Vec::new(), ..agent.restrictions };
        Ok(AgentProfile { name: agent.name, prompt: agent.prompt, restrictions })
    }

    /// The settings that a session of this request would have now. Creates nothing.
    pub async fn check_new_session(&self, request: &NewSessionRequest) -> Result<SessionSpec, SessionError> {
        self.build_spec(request).await.map(|(spec, _)| spec)
    }

    /// The settings of a new session: the user's, then the project's, then those of the request. Also
    /// returns notices for the user about the project's settings.
    async fn build_spec(
        &self,
        request: &NewSessionRequest,
    ) -> Result<(SessionSpec, Vec<String>), SessionError> {
        let components = self.inner.shared.components();
        let settings = &components.settings;
        if request.background && request.binary_feedback == Some(true) {
            let why = "an unattended session has no user who could choose an answer; leave it out";
            return Err(SessionError::BadParam("binary_feedback", why.into()));
        }
        let (cwd, project, may_have_settings) = self.folder_with_project(&request.cwd).await?;
        let worktree = self.require_own_worktree(&cwd, request).await?;
        let options = self.resolve_options(request.options.clone()).await?;
        let mut spec = SessionSpec {
            cwd,
            title: request.title.clone().unwrap_or_default(),
            model: settings.main_model.clone().unwrap_or_default(),
            mode: settings.mode,
            background: request.background,
            job_id: request.job_id,
            worktree,
            safe_mode: settings.safe_mode,
            on_restart: request.on_restart,
            budgets: settings.budgets,
            thinking: settings.thinking,
            ablation: settings.ablation,
            // An unattended session has no user who could choose.
            binary_feedback: request.binary_feedback.unwrap_or(settings.binary_feedback)
                && !request.background,
            ..SessionSpec::default()
        };
        spec.project_root = Some(project.root().display().to_string());
        let layer = ProjectLayer::load_if(may_have_settings, &self.inner.shared, project).await?;
        let user_budgets = spec.budgets;
        let mut notices = self.apply_project(&layer, &mut spec);
        let mut options = options;
        spec.agent = match (&request.inherited, &request.agent) {
            (Some(inherited), _) => {
                spec.parent = Some(inherited.parent);
                Some(inherited.agent.clone())
            }
            (None, Some(name)) => Some(self.use_agent(name, &spec, &mut options).await?),
            (None, None) => None,
        };
        if request.coordinator {
            self.make_coordinator(request, &mut spec, &mut options).await?;
        }
        spec.set(&options);
        spec.ablation = request.ablation.unwrap_or(spec.ablation);
        self.check_mode(spec.mode)?;
        let limits = |budgets| {
            if request.background { self.unattended(&spec.model, budgets) } else { budgets }
        };
        let (own, mut budgets) = (limits(user_budgets), limits(spec.budgets));
        let is_of_project =
            layer.is_used() && options.budgets.is_none() && layer.values.budgets.limits_money();
        if is_of_project && check_money(&components, &spec.model, budgets).is_err() {
            // A project's file must not make its folder unusable, so use the user's own limits on money.
            (budgets.usd_micros, budgets.session_usd_micros) = (own.usd_micros, own.session_usd_micros);
            let model = &spec.model;
            notices.push(format!(
                "{PROJECT_FILE}: the price of {model} is not known, so its limit on money does not hold"
            ));
        }
        spec.budgets = budgets;
        check_money(&components, &spec.model, spec.budgets)?;
        Ok((spec, notices))
    }
}
