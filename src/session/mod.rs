//! One task owns one session. For each input, the task decides, writes, applies, publishes and runs
//! effects, in that order. Other tasks hold a [`SessionHandle`], whose methods send messages to the session's task.

mod actor;
mod agent_restrictions;
mod agents;
mod attach;
mod background_hooks;
mod budgets;
mod call_context;
mod changes;
mod edit_context;
mod effective_rules;
mod error;
mod extension_files;
mod file_checkpoints;
mod file_models;
mod grant_outbox;
mod handle;
mod history;
mod hooks;
mod idempotency;
mod journal_copy;
mod lease;
mod loaded_workspaces;
mod mcp;
mod mcp_sampling;
mod metrics;
mod project_config;
mod project_data;
mod rate_limits;
mod registry;
mod requests;
mod session_environments;
mod shared;
mod slash_commands;
mod staged_imports;
mod stream;
mod trust;
mod trusted_programs;
mod user_links;
mod worktree_bases;

pub use actor::journal::summary_of_events;
pub use agents::AgentList;
pub use attach::AttachReply;
pub use changes::cumulative_diff as changes_of;
pub use error::{SessionError, WorktreeError};
pub use extension_files::ExtensionFiles;
pub use handle::SessionHandle;
pub use history::ForkRequest;
pub use idempotency::IdempotencyKey;
pub use loaded_workspaces::LoadedWorkspaces;
pub use rate_limits::RateLimits;
pub use registry::Registry;
pub use registry::explain::explain;
pub use registry::initial_items::InitialMessage;
pub use registry::mcp::McpOwner;
pub use registry::new_session_request::NewSessionRequest;
pub use registry::pending::PendingFollower;
pub use registry::project::{ProjectConfig, ProjectValue};
pub use registry::session_changes::SessionFollower;
pub use registry::worktrees::{MadeWorktree, WorktreeRequest};
pub use requests::{
    AbortOutcome, AnswerRequest, ParkPatience, QuestionAnswer, QuestionReply, QueueChange, Reloaded,
    RewindOutcome, RewindRequest, SettingsUpdate, Submission, SubmittedInput,
};
pub use session_environments::SessionEnvironments;
pub use shared::{Components, ConfiguredRule, Observer, PendingChange, Settings, Shared, StatusChange};
pub use slash_commands::CommandList;
pub use stream::follow::Follower;

// Types of lower layers that belong to this layer's interface.
pub use engine::{QueueEdit, Refusal};
pub use judge::Rule;
pub use project::extensions::Diagnostic;
pub use project::extensions::agents::Agent;
pub use project::extensions::watch::{ExtensionWatcher, WatchedPaths};
pub use project::policy::PolicyError;
pub use project::workspace::changed_files;
pub use project::worktree::{MergeHow, Merged, WorktreeDiff};
pub use store::{
    AuditCheck, AuditQuery, Durability, ItemQuery, LedgerQuery, Page, SessionQuery, StoreError, StoredItem,
    WorktreeOwner, WorktreeRow, backups,
};
pub use tools::{IngestedFile, InputFile, InputSource, SandboxReport};
