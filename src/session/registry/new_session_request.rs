//! The parameters of a new session, and the comparison with the session that an earlier request created.

use std::collections::BTreeMap;

use crate::idempotency::IdempotencyKey;
use crate::registry::initial_items::InitialMessage;
use engine::SessionRules;
use types::ablation::Ablation;
use types::event::{Event, Origin};
use types::ids::{JobId, SessionId};
use types::permission::{RuleKind, is_unsandboxed_grant};
use types::session::{OnRestart, SessionSpec};
use types::session_environment::SessionEnvironment;
use types::subagent::{AgentProfile, ParentCall};
use types::tool::ReadRecord;
use types::turn_options::TurnOptions;
use types::worktree::WorktreeChoice;

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
    /// The first events of the sub-agent's session: the rules and the read files that it inherits.
    pub(super) fn events(&self) -> Vec<Event> {
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
    /// Whether `existing` was created from this request. `spec` is what the request gives today: the defaults of the
    /// configuration may have changed since `existing` was created, so values that the request does not name are not
    /// compared.
    pub(super) fn has_created(&self, existing: &SessionSpec, spec: &SessionSpec) -> bool {
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
