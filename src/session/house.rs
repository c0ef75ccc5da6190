//! What every session shares: the floors below and the settings.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
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
    /// Commands that only look, inside the workspace, pass without a rule.
    pub safe_commands: bool,
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

/// What the configuration makes: one whole, which a reload replaces by another.
pub struct Setup {
    /// The models.
    pub models: Models,
    /// The tools.
    pub tools: Toolbox,
    /// The settings.
    pub settings: Settings,
}

/// What all sessions share: the journal and the time, which stay, and the set-up of the moment.
pub struct House {
    /// The journal.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    setup: RwLock<Arc<Setup>>,
}

impl House {
    /// A house with its first set-up.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>, setup: Setup) -> Self {
        Self { store, clock, setup: RwLock::new(Arc::new(setup)) }
    }

    /// The set-up of this moment. Whoever works with it keeps what was given: a model call, a tool and
    /// a verdict each take it once, at their beginning.
    #[must_use]
    pub fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another set-up, for all that begins from now on.
    pub(super) fn replace(&self, setup: Setup) {
        *self.setup.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
    }
}
