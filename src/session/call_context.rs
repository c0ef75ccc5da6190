//! The data of a session that a tool call needs.

use std::path::PathBuf;
use std::sync::Arc;

use engine::{Engine, SessionRules};
use tools::{BackgroundTaskView, McpContext, ProjectData, SessionContext, UnreadablePaths};
use types::ids::SessionId;
use types::permission::Mode;
use types::subagent::AgentRestrictions;

/// The session data that an effect needs.
#[derive(Clone)]
pub(crate) struct CallContext {
    pub session_context: Arc<SessionContext>,
    pub rules: Arc<SessionRules>,
    /// Allow rules of the turn's slash command that hold only while the folder is trusted.
    pub rules_that_need_trust: Arc<[String]>,
    /// What the session's agent forbids.
    pub restrictions: Arc<AgentRestrictions>,
    pub safe_mode: bool,
    pub mode: Mode,
}

impl CallContext {
    pub fn from_engine(
        engine: &Engine,
        session_id: SessionId,
        commands: Vec<BackgroundTaskView>,
        project: Arc<dyn ProjectData>,
    ) -> Self {
        let spec = engine.spec();
        let session_context = SessionContext {
            session_id,
            workspace: PathBuf::from(&spec.cwd),
            additional: engine
                .additional_dirs()
                .iter()
                // The session may use its whole worktree, also if it begins in a folder of it.
                .chain(spec.worktree.as_ref().map(|worktree| &worktree.path))
                .filter(|folder| **folder != spec.cwd)
                .map(PathBuf::from)
                .collect(),
            cwd: engine.cwd().to_path_buf(),
            reads: engine.reads(),
            unattended: spec.background,
            bash_timeout_ms: spec.project_settings.bash_timeout_ms,
            unreadable: UnreadablePaths::default(),
            blobs: None,
            mode: engine.mode(),
            project: Some(project),
            todos: engine.todos(),
            commands,
            agents: Arc::from([]),
            mcp: McpContext {
                catalog: engine.mcp_catalog(),
                model: engine.model().to_owned(),
                servers: None,
            },
            environment: None,
        };
        Self {
            session_context: Arc::new(session_context),
            rules: engine.rules_in_force(),
            rules_that_need_trust: engine.rules_that_need_trust().into(),
            restrictions: Arc::new(
                spec.agent.as_ref().map(|agent| agent.restrictions.clone()).unwrap_or_default(),
            ),
            safe_mode: engine.safe_mode(),
            mode: engine.mode(),
        }
    }
}
