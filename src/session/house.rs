//! What every session shares: the floors below and the settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::engine;
use crate::judge::Rules;
use crate::model::Models;
use crate::store::Store;
use crate::tools::Toolbox;
use crate::types::permission::Mode;
use crate::types::time::Clock;
use crate::types::usage::Budgets;

/// Settings of all sessions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the turn machine.
    pub engine: Arc<engine::Settings>,
    /// Rules of the configuration.
    pub rules: Arc<Rules>,
    /// The user's home folder.
    pub home: PathBuf,
    /// The user's folder with an `AGENTS.md` for all projects.
    pub user_dir: Option<PathBuf>,
    /// Model of sessions that name none.
    pub main_model: Option<String>,
    /// Mode of sessions that name none.
    pub mode: Mode,
    /// Safe mode of sessions that do not say.
    pub safe_mode: bool,
    /// Whether `bypass` may be asked for; the reason why not otherwise.
    pub bypass: Result<(), String>,
    /// Limits of sessions that name none.
    pub budgets: Budgets,
    /// How long a session that nobody uses stays in memory.
    pub idle_unload: Duration,
    /// Sessions in memory; beyond that, those that were not used for longest leave at once. Sessions
    /// that are used, or whose turn is open, stay in any case.
    pub loaded_sessions: usize,
}

/// The floors below and the settings, shared by all sessions.
pub struct House {
    /// The journal.
    pub store: Store,
    /// The models.
    pub models: Models,
    /// The tools.
    pub tools: Toolbox,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The settings.
    pub settings: Settings,
}
