//! Coordinators: sessions that only plan and hand work to sub-agents.

use crate::error::SessionError;
use crate::registry::Registry;
use crate::registry::new_session_request::NewSessionRequest;
use types::session::SessionSpec;
use types::subagent::AgentProfile;
use types::tool::ToolChoice;
use types::turn_options::TurnOptions;

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

/// The instructions of a coordinator whose sub-agents share the folder `scratch`.
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

impl Registry {
    /// Gives a session the tools, the instructions and the scratch folder of a coordinator.
    ///
    /// # Errors
    /// The request names an agent or tools, or the scratch folder cannot be created.
    pub(super) async fn make_coordinator(
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
}
