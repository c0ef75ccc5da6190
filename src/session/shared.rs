//! What every session shares: the floors below and the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::engine;
use crate::judge::Rules;
use crate::model::Models;
use crate::policy::Policies;
use crate::session::error::SessionError;
use crate::session::metrics::Counts;
use crate::store::{Store, StoreError};
use crate::tools::Toolbox;
use crate::types::event::Envelope;
use crate::types::ids::{RequestId, SessionId};
use crate::types::permission::{Mode, RuleKind, RuleScope};
use crate::types::thinking::Thinking;
use crate::types::time::Clock;
use crate::types::usage::Budgets;

/// Settings of all sessions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the turn machine.
    pub engine: Arc<engine::Settings>,
    /// Rules of the configuration, of all its files together.
    pub rules: Arc<Rules>,
    /// The same one by one, with where they stand.
    pub configured: Arc<[ConfiguredRule]>,
    /// The user's home folder.
    pub home: PathBuf,
    /// The user's folder with an `AGENTS.md` for all projects.
    pub user_dir: Option<PathBuf>,
    /// Model of sessions that name none.
    pub main_model: Option<String>,
    /// The pointers of `[models]` by name, also those that are not set.
    pub pointers: BTreeMap<&'static str, Option<String>>,
    /// Mode of sessions that name none.
    pub mode: Mode,
    /// How much models may think in sessions that do not say.
    pub thinking: Option<Thinking>,
    /// Safe mode of sessions that do not say.
    pub safe_mode: bool,
    /// Commands that only look, inside the workspace, pass without a rule.
    pub safe_commands: bool,
    /// Whether some calls ask in `bypass`, too: see [`crate::judge::BypassGuard`].
    pub bypass_guard: bool,
    /// Whether `bypass` may be asked for; the reason why not otherwise.
    pub bypass: Result<(), String>,
    /// Limits of sessions that name none.
    pub budgets: Budgets,
    /// Limits of unattended sessions where they name none: there is always a limit.
    pub unattended_budgets: Budgets,
    /// Whether that of money is our own default, which only holds where a price is known.
    pub unattended_usd_is_default: bool,
    /// How long a session that nobody uses stays in memory.
    pub idle_unload: Duration,
    /// How much the journal may hold, in bytes: beyond that nothing new is taken in.
    pub journal_bytes: u64,
    /// How long sessions that have ended are kept; without it, until somebody deletes them.
    pub keep_ended: Option<Duration>,
    /// Sessions in memory; beyond that, those that were not used for longest leave at once. Sessions
    /// that are used, or whose turn is open, stay in any case.
    pub loaded_sessions: usize,
}

/// A rule of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredRule {
    /// What it says.
    pub kind: RuleKind,
    /// The rule as it is written.
    pub rule: String,
    /// The system's, or the user's.
    pub scope: RuleScope,
    /// The file that it stands in.
    pub file: PathBuf,
}

/// Who sees what happens in all sessions, after it is on disk. It is asked inside the session's task: it
/// must not wait, and what becomes of it is its own affair.
pub trait Observer: Send + Sync {
    /// A fact was committed.
    fn on_commit(&self, envelope: &Envelope);
}

/// Something began or ceased to wait for a person.
#[derive(Clone, Debug)]
pub struct PendingChange {
    /// In this session.
    pub session_id: SessionId,
    /// The request or question.
    pub request_id: RequestId,
    /// Whether it waits now.
    pub is_pending: bool,
    /// Whether the session is unattended.
    pub background: bool,
    /// The event, as it stands in the journal.
    pub body: Arc<str>,
}

/// Events of requests that those who follow all sessions may be behind; then they look at what waits.
const PENDING_CAPACITY: usize = 1_024;

/// What the configuration makes: one whole, which a reload replaces by another.
pub struct Components {
    /// The models.
    pub models: Models,
    /// The tools.
    pub tools: Toolbox,
    /// The settings.
    pub settings: Settings,
}

/// What all sessions share: the journal and the time, which stay, and the set-up of the moment.
pub struct Shared {
    /// The journal.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Rules that outlive a session.
    pub policies: Arc<Policies>,
    /// What happened since the start, in numbers.
    pub(super) counts: Counts,
    /// Sees every committed fact, beside those who follow a session.
    observer: Option<Box<dyn Observer>>,
    /// Rings whenever something begins or ceases to wait for a person.
    pending_tx: broadcast::Sender<PendingChange>,
    components: RwLock<Arc<Components>>,
    /// What the journal held when it was last looked at.
    journal_bytes: AtomicU64,
}

impl Shared {
    /// A house with its first set-up.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>, components: Components) -> Self {
        let (pending_tx, _) = broadcast::channel(PENDING_CAPACITY);
        let policies = Arc::default();
        Self {
            store,
            clock,
            policies,
            counts: Counts::default(),
            observer: None,
            pending_tx,
            components: RwLock::new(Arc::new(components)),
            journal_bytes: AtomicU64::new(0),
        }
    }

    /// Looks how much the journal holds.
    ///
    /// # Errors
    /// It could not be read.
    pub async fn measure_journal(&self) -> Result<(), StoreError> {
        self.journal_bytes.store(self.store.used_bytes().await?, Ordering::Relaxed);
        Ok(())
    }

    /// What the journal held when it was last looked at, in bytes.
    #[must_use]
    pub fn journal_bytes(&self) -> u64 {
        self.journal_bytes.load(Ordering::Relaxed)
    }

    /// Whether there is room for something new.
    pub(super) fn check_journal_quota(&self) -> Result<(), SessionError> {
        let (held, most) = (self.journal_bytes(), self.components().settings.journal_bytes);
        if held > most { Err(SessionError::JournalFull { held, most }) } else { Ok(()) }
    }

    /// The same with a folder for rules that outlive a session.
    #[must_use]
    pub fn with_policies(self, policies: Policies) -> Self {
        Self { policies: Arc::new(policies), ..self }
    }

    /// The same, observed.
    #[must_use]
    pub fn with_observer(self, observer: impl Observer + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Counts a committed fact and shows it to who observes.
    pub(super) fn on_commit(&self, envelope: &Envelope) {
        self.counts.saw(envelope);
        if let Some(observer) = &self.observer {
            observer.on_commit(envelope);
        }
    }

    /// Hears of everything that begins or ceases to wait for a person from now on, in all sessions.
    #[must_use]
    pub fn subscribe_pending(&self) -> broadcast::Receiver<PendingChange> {
        self.pending_tx.subscribe()
    }

    pub(super) fn has_pending_subscribers(&self) -> bool {
        self.pending_tx.receiver_count() > 0
    }

    pub(super) fn notify_pending(&self, pending_change: PendingChange) {
        // Nobody may listen.
        let _ = self.pending_tx.send(pending_change);
    }

    /// The set-up of this moment. Whoever works with it keeps what was given: a model call, a tool and
    /// a verdict each take it once, at their beginning.
    #[must_use]
    pub fn components(&self) -> Arc<Components> {
        Arc::clone(&self.components.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another set-up, for all that begins from now on.
    pub(super) fn replace(&self, components: Components) {
        let mut current = self.components.write().unwrap_or_else(PoisonError::into_inner);
        let tools = components.tools.inherit_from(&current.tools);
        *current = Arc::new(Components { tools, ..components });
    }
}
