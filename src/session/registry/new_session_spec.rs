//! The settings of a new session: those of the user, the project, the agent and the request.

use std::path::Path;

use crate::agents;
use crate::budgets::{check_money, with_max_turns};
use crate::error::SessionError;
use crate::file_models::{self, FileModel};
use crate::project_config::{PROJECT_FILE, ProjectLayer};
use crate::registry::Registry;
use crate::registry::new_session_request::NewSessionRequest;
use types::session::SessionSpec;
use types::subagent::{AgentProfile, AgentRestrictions};
use types::turn_options::TurnOptions;
use types::usage::Budgets;

impl Registry {
    /// The settings that a session of this request would have now. Creates nothing.
    pub async fn check_new_session(&self, request: &NewSessionRequest) -> Result<SessionSpec, SessionError> {
        self.build_spec(request).await.map(|(spec, _)| spec)
    }

    /// The settings of a new session: the user's, then the project's, then those of the request. Also
    /// returns notices for the user about the project's settings.
    pub(super) async fn build_spec(
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
        let mut options = self.resolve_options(request.options.clone()).await?;
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
        notices.extend(self.limit_budgets(request, &layer, user_budgets, options.budgets, &mut spec)?);
        Ok((spec, notices))
    }

    /// Completes and checks the limits of a new session. `user_budgets` are the limits without the project's file, and
    /// `requested` are those of the request. Returns a notice if the project's limit on money cannot hold.
    ///
    /// # Errors
    /// The user or the request limits money, but the price of the model is not known.
    fn limit_budgets(
        &self,
        request: &NewSessionRequest,
        layer: &ProjectLayer,
        user_budgets: Budgets,
        requested: Option<Budgets>,
        spec: &mut SessionSpec,
    ) -> Result<Option<String>, SessionError> {
        let components = self.inner.shared.components();
        let complete = |budgets| {
            if request.background { self.unattended(&spec.model, budgets) } else { budgets }
        };
        let (user_limits, mut limits) = (complete(user_budgets), complete(spec.budgets));
        let is_of_project = layer.is_used() && requested.is_none() && layer.values.budgets.limits_money();
        let mut notice = None;
        if is_of_project && check_money(&components, &spec.model, limits).is_err() {
            // A project's file must not make its folder unusable, so use the user's own limits on money.
            (limits.usd_micros, limits.session_usd_micros) =
                (user_limits.usd_micros, user_limits.session_usd_micros);
            let model = &spec.model;
            notice = Some(format!(
                "{PROJECT_FILE}: the price of {model} is not known, so its limit on money does not hold"
            ));
        }
        check_money(&components, &spec.model, limits)?;
        spec.budgets = limits;
        Ok(notice)
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
}
