//! The map of living sessions: make, list, answer, delete, park. How they are loaded and leave is in
//! `loading`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use super::audit;
use super::commands::{self, SUBMIT};
use super::error::SessionError;
use super::handle::{Answer, Answered, Asked, Changes, Chosen, Keyed, Resident, Submitted};
use super::house::{House, Setup};
use super::journal;
use super::request::NewSessionRequest;
use crate::crash;
use crate::engine::{Edited, Engine};
use crate::store::{Idempotency, LedgerQuery, NewSession, StoreError, StoredRequest, Sync};
use crate::types::audit::AuditNote;
use crate::types::blob::Cut;
use crate::types::event::{Envelope, Event, Origin};
use crate::types::ids::{Mint, PermissionId, RequestId, Seed, Seq, SessionId};
use crate::types::ledger::{LedgerRow, ModelUsage};
use crate::types::message::ToolCall;
use crate::types::metrics::Metrics;
use crate::types::model::{ModelRef, ModelView};
use crate::types::permission::Mode;
use crate::types::session::{PermissionRequest, SessionSpec, SessionState, SessionView};
use crate::types::time::Timestamp;
use crate::types::tool::{ToolCard, ToolChoice};
use crate::types::usage::Budgets;

/// Folders beside its own that a session may have.
const MOST_DIRS: usize = 16;
/// How long a session may take to hear of a new configuration.
const TELL_WITHIN: Duration = Duration::from_secs(1);
/// Method name under which `session.delete` remembers its replies.
const DELETE: &str = "session.delete";
/// Method name under which `session.create` remembers its replies.
const CREATE: &str = "session.create";

/// The pointer of `[models]` that sessions use that name no model.
const MAIN: &str = "main";
/// Models that one session's view shows at most.
const MODELS: u32 = 1_000;

/// Bytes of the events behind one page of pending requests.
const PAGE_BYTES: usize = 4 << 20;

/// A pending permission request.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Its session.
    pub session_id: SessionId,
    /// When it was raised.
    pub at_ms: Timestamp,
    /// Places of it that were cut.
    pub cut: Vec<Cut>,
    /// The request.
    pub request: PermissionRequest,
}

/// A place in memory for one session. It is filled once: what leaves takes its place along.
pub(super) type Slot = Arc<OnceCell<Resident>>;

/// All sessions. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub house: Arc<House>,
    pub live: DashMap<SessionId, Slot>,
    pub actors: TaskTracker,
    closing: AtomicBool,
    /// Sessions in memory.
    pub loaded: Arc<AtomicUsize>,
    /// Rises from visit to visit.
    pub tick: AtomicU64,
}

impl Registry {
    /// A registry over a house; nothing is loaded yet.
    #[must_use]
    pub fn new(house: House) -> Self {
        let inner = Inner {
            house: Arc::new(house),
            live: DashMap::new(),
            actors: TaskTracker::new(),
            closing: AtomicBool::new(false),
            loaded: Arc::default(),
            tick: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// What the sessions stand on.
    #[must_use]
    pub fn house(&self) -> &House {
        &self.inner.house
    }

    /// Puts another set-up in the place of the present one and tells the sessions that somebody looks
    /// at or whose turn runs. One that does not listen takes it with its next turn.
    pub async fn reload(&self, setup: Setup, changed: &[String], needs_restart: &[String]) {
        self.inner.house.replace(setup);
        if changed.is_empty() && needs_restart.is_empty() {
            return;
        }
        // No guard of the map is held while a session is told.
        let slots: Vec<Slot> = self.inner.live.iter().map(|entry| Arc::clone(entry.value())).collect();
        let told = slots.iter().filter_map(|slot| slot.get()).map(|loaded| {
            tokio::time::timeout(TELL_WITHIN, loaded.reloaded(changed.to_vec(), needs_restart.to_vec()))
        });
        futures_util::future::join_all(told).await;
    }

    /// Picks up every session whose turn was under way, and those that left processes. One that cannot be loaded stops no other.
    ///
    /// # Errors
    /// The list of them could not be read.
    pub async fn recover(&self) -> Result<usize, SessionError> {
        let unfinished = self.inner.house.store.unfinished().await?;
        crash::point("C21.listed");
        let mut recovered = 0;
        for id in unfinished {
            // In a task of its own: a journal that makes the reader panic takes nobody else with it (S7).
            let registry = self.clone();
            let opened = tokio::spawn(async move { registry.open(id).await.map(|_| ()) }).await;
            match opened {
                Ok(Ok(())) => recovered += 1,
                Ok(Err(error)) => tracing::error!(session = %id, %error, "a session could not be picked up"),
                Err(error) => tracing::error!(session = %id, %error, "picking a session up failed"),
            }
        }
        Ok(recovered)
    }

    /// Makes a session. With an id or key that was used before, returns that session if the request
    /// is the same.
    ///
    /// # Errors
    /// A parameter is wrong, or the id or key was used for something else.
    pub async fn create(&self, request: NewSessionRequest) -> Result<SessionView, SessionError> {
        self.check_open()?;
        let house = &self.inner.house;
        if let Some(known) = self.made_with(request.keyed.as_ref()).await? {
            return Ok(known);
        }
        let spec = self.spec(&request).await?;
        let now = house.clock.now();
        let id = request.session_id.unwrap_or_else(|| Mint::new(now.0, Seed::random()).session());
        let envelope = Envelope {
            seq: 1,
            session_id: id,
            turn_id: None,
            item_id: None,
            at_ms: now,
            origin: request.origin.clone(),
            cut: Vec::new(),
            event: Event::SessionCreated(spec.clone()),
        };
        let (row, _, blobs) = journal::write(&envelope, None);
        let idempotency = request.keyed.clone().map(|keyed| Idempotency {
            method: CREATE,
            key: keyed.key,
            digest: keyed.digest,
            reply: id.to_string(),
        });
        let audit = audit::of_creation(&envelope, spec.mode).into_iter().collect();
        let spec_of = spec.clone();
        let rows = vec![row];
        let new = NewSession { session_id: id, spec: spec_of, at: now, rows, blobs, audit, idempotency };
        match house.store.create(new).await {
            Ok(key) => {
                let mut engine = Engine::new(id, Arc::clone(&house.setup().settings.engine));
                engine.apply(&envelope);
                // Whoever knows the id may have opened it already: one task owns a session.
                let slot = self.slot(id);
                slot.get_or_init(|| async { self.made(id, key, engine) }).await;
                self.view(id).await
            }
            // Somebody was faster, with the same key or the same id.
            Err(StoreError::Taken) => match self.made_with(request.keyed.as_ref()).await? {
                Some(known) => Ok(known),
                None => self.same_session(id, &spec, &request).await,
            },
            Err(error) => Err(error.into()),
        }
    }

    /// The session that was made with this key, if there is one.
    async fn made_with(&self, keyed: Option<&Keyed>) -> Result<Option<SessionView>, SessionError> {
        let Some(keyed) = keyed else { return Ok(None) };
        let Some(known) = self.inner.house.store.remembered(CREATE, &keyed.key).await? else {
            return Ok(None);
        };
        if known.digest != keyed.digest {
            return Err(SessionError::Conflict("idempotency_key"));
        }
        let id = known.reply.parse().map_err(|_| SessionError::NotFound)?;
        self.view(id).await.map(Some)
    }

    /// The session that has this id already, if it was made from the same request.
    /// What the request leaves to the defaults may have changed since.
    async fn same_session(
        &self,
        id: SessionId,
        spec: &SessionSpec,
        asked: &NewSessionRequest,
    ) -> Result<SessionView, SessionError> {
        let store = &self.inner.house.store;
        let key = store.find(id).await?.ok_or(SessionError::Conflict("idempotency_key"))?;
        let first =
            store.events_after(key, 0, 1, 0).await?.rows.into_iter().next().ok_or(SessionError::NotFound)?;
        match store.whole(key, first.seq, &first.body).await? {
            Some(Envelope { event: Event::SessionCreated(known), .. }) if asked.is_for(spec, &known) => {
                self.view(id).await
            }
            _ => Err(SessionError::Conflict("session_id")),
        }
    }

    /// A folder as the kernel knows it: absolute and free of links.
    pub(super) async fn folder(&self, asked: &str) -> Result<String, SessionError> {
        self.folder_of("cwd", asked).await
    }

    async fn folder_of(&self, name: &'static str, asked: &str) -> Result<String, SessionError> {
        let path = Path::new(asked);
        if !path.is_absolute() {
            let why = format!("expected an absolute path, got {asked:?}");
            return Err(SessionError::BadParam(name, why));
        }
        let asked_for = path.to_owned();
        let looked = tokio::task::spawn_blocking(move || {
            let cwd = asked_for.canonicalize()?;
            let is_folder = cwd.metadata()?.is_dir();
            Ok((cwd, is_folder))
        });
        let cwd = match looked.await.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            Ok((cwd, true)) => cwd,
            Ok(_) => return Err(SessionError::BadParam(name, format!("{asked} is not a folder"))),
            Err(error) => {
                return Err(SessionError::BadParam(name, format!("could not open {asked}: {error}")));
            }
        };
        let cwd = cwd.to_str().map(String::from);
        cwd.ok_or_else(|| SessionError::BadParam(name, "the path is not valid UTF-8".into()))
    }

    /// Folders that are to count as workspace beside the session's own (Q42): each exists, is neither the
    /// whole disk nor of the system or the daemon.
    async fn additional(&self, asked: &[String]) -> Result<Vec<String>, SessionError> {
        const NAME: &str = "additional_dirs";
        if asked.len() > MOST_DIRS {
            let why = format!("{} folders are too many, {MOST_DIRS} at most", asked.len());
            return Err(SessionError::BadParam(NAME, why));
        }
        let setup = self.inner.house.setup();
        let mut dirs = Vec::new();
        for asked in asked {
            let dir = self.folder_of(NAME, asked).await?;
            let path = Path::new(&dir);
            let of_system = ["/proc", "/sys", "/dev"].iter().any(|place| path.starts_with(place));
            if path.parent().is_none() || of_system {
                let why = format!("{asked} cannot be a workspace: name a folder of a project");
                return Err(SessionError::BadParam(NAME, why));
            }
            if setup.tools.is_protected(path) {
                let why = format!("{asked} is a folder of the daemon itself, which no tool may change");
                return Err(SessionError::BadParam(NAME, why));
            }
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        Ok(dirs)
    }

    /// Tools that are named must exist: a misspelt name would offer less than was meant, or more.
    ///
    /// # Errors
    /// There is no tool of such a name.
    pub fn known_tools(&self, choice: ToolChoice) -> Result<ToolChoice, SessionError> {
        let cards = self.inner.house.setup().tools.cards();
        let mut named = choice.allow.iter().flatten().chain(&choice.deny);
        match named.find(|name| !cards.iter().any(|card| card.name == **name)) {
            None => Ok(choice),
            Some(name) => {
                let known: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
                let why = format!("there is no tool {name:?}; the tools are {}", known.join(", "));
                Err(SessionError::BadParam("tools", why))
            }
        }
    }

    async fn spec(&self, request: &NewSessionRequest) -> Result<SessionSpec, SessionError> {
        let setup = self.inner.house.setup();
        let settings = &setup.settings;
        let cwd = self.folder(&request.cwd).await?;
        let mode = request.mode.unwrap_or(settings.mode);
        self.check_mode(mode)?;
        let model = match &request.model {
            Some(model) => self.known_model(model)?,
            None => settings.main_model.clone().unwrap_or_default(),
        };
        let asked = request.budgets.unwrap_or(settings.budgets);
        let budgets = if request.background { self.unattended(&model, asked) } else { asked };
        self.check_budgets(&model, budgets)?;
        Ok(SessionSpec {
            cwd,
            title: request.title.clone().unwrap_or_default(),
            model,
            mode,
            background: request.background,
            safe_mode: request.safe_mode.unwrap_or(settings.safe_mode),
            on_restart: request.on_restart,
            budgets,
            thinking: request.thinking.or(settings.thinking),
            sampling: request.sampling,
            system_prompt: request.system_prompt.clone(),
            append_system_prompt: request.append_system_prompt.clone(),
            tools: self.known_tools(request.tools.clone())?,
            additional_dirs: self.additional(&request.additional_dirs).await?,
        })
    }

    /// Whether sessions may have this mode.
    ///
    /// # Errors
    /// The configuration does not allow it.
    pub fn check_mode(&self, mode: Mode) -> Result<(), SessionError> {
        match (mode, &self.inner.house.setup().settings.bypass) {
            (Mode::Bypass, Err(why)) => Err(SessionError::BadParam("mode", why.clone())),
            _ => Ok(()),
        }
    }

    /// Limits of an unattended session: where it names none, the configuration does (S29). Our own
    /// limit on money is left out where no price is known; the other limits hold.
    fn unattended(&self, model: &str, asked: Budgets) -> Budgets {
        let setup = self.inner.house.setup();
        let mut limits = setup.settings.unattended_budgets;
        let price = model.parse::<ModelRef>().ok().and_then(|known| setup.models.price(&known));
        if setup.settings.unattended_usd_is_default && price.is_none() {
            limits.usd_micros = None;
        }
        asked.or(limits)
    }

    /// Limits of a turn as they count in this session: an unattended one always has some.
    ///
    /// # Errors
    /// There is no such session, or the model's price is not known.
    pub async fn turn_budgets(&self, id: SessionId, asked: Budgets) -> Result<Budgets, SessionError> {
        let view = self.view(id).await?;
        let budgets = if view.background { self.unattended(&view.model, asked) } else { asked };
        self.check_budgets(&view.model, budgets)?;
        Ok(budgets)
    }

    /// What became of an earlier submit with this key, if there was one.
    ///
    /// # Errors
    /// The key was used with other parameters, or the store failed.
    pub async fn submitted(&self, id: SessionId, keyed: &Keyed) -> Result<Option<Submitted>, SessionError> {
        commands::remembered(&self.inner.house.store, SUBMIT, id, keyed).await
    }

    /// Changes title, model, mode, limits, tools or folders of a session. A mode and folders count at once, also
    /// for a running turn; model and tools with the next one.
    ///
    /// # Errors
    /// There is no such session, it has ended, or a value is wrong.
    pub async fn update(&self, id: SessionId, mut changes: Changes) -> Result<SessionView, SessionError> {
        if let Some(mode) = changes.mode {
            self.check_mode(mode)?;
        }
        if let Some(model) = changes.model {
            changes.model = Some(self.known_model(&model)?);
        }
        if let Some(tools) = changes.tools {
            changes.tools = Some(self.known_tools(tools)?);
        }
        if let Some(dirs) = changes.additional_dirs {
            changes.additional_dirs = Some(self.additional(&dirs).await?);
        }
        if let Some(budgets) = changes.budgets {
            changes.budgets = Some(self.turn_budgets(id, budgets).await?);
        }
        self.open(id).await?.update(changes).await?;
        self.view(id).await
    }

    /// A limit on money binds only where the price is known: never silently not.
    ///
    /// # Errors
    /// The model's price is not known.
    pub fn check_budgets(&self, model: &str, budgets: Budgets) -> Result<(), SessionError> {
        check_money(&self.inner.house.setup(), model, budgets)
    }

    /// The model that a caller names, by its name or by that of a pointer of `[models]`.
    ///
    /// # Errors
    /// There is no such provider, or the pointer is not set.
    pub fn known_model(&self, text: &str) -> Result<String, SessionError> {
        let setup = self.inner.house.setup();
        let wrong = |why: &str| SessionError::BadParam("model", format!("{text:?}: {why}"));
        let text = match setup.settings.pointers.get(text) {
            Some(Some(model)) => model.as_str(),
            Some(None) => return Err(wrong("this pointer of [models] is not set")),
            None => text,
        };
        let model: ModelRef = text.parse().map_err(wrong)?;
        let providers = setup.models.providers();
        if !providers.contains(&model.provider) {
            let known = if providers.is_empty() { "none".into() } else { providers.join(", ") };
            let why = format!("there is no provider {:?}; configured: {known}", model.provider);
            return Err(SessionError::BadParam("model", why));
        }
        Ok(text.to_string())
    }

    pub(super) fn check_open(&self) -> Result<(), SessionError> {
        if self.inner.closing.load(Ordering::Acquire) { Err(SessionError::ShuttingDown) } else { Ok(()) }
    }

    /// One session as clients see it.
    ///
    /// # Errors
    /// There is no such session.
    pub async fn view(&self, id: SessionId) -> Result<SessionView, SessionError> {
        let view = self.inner.house.store.view(id).await?.ok_or(SessionError::NotFound)?;
        Ok(self.with_live(view))
    }

    /// One session with its part of the ledger.
    ///
    /// # Errors
    /// There is no such session.
    pub async fn view_with_models(&self, id: SessionId) -> Result<SessionView, SessionError> {
        let view = self.view(id).await?;
        let query = LedgerQuery { session_id: Some(id), ..LedgerQuery::default() };
        let rows = self.inner.house.store.ledger(query, None, MODELS).await?;
        Ok(SessionView { models: rows.into_iter().map(|row| (row.model, row.spent)).collect(), ..view })
    }

    /// A page of the ledger, newest sessions first, and the sum of all that is asked for. Sessions that
    /// were deleted are in it.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn ledger(
        &self,
        query: LedgerQuery,
        after: Option<(SessionId, String)>,
        limit: u32,
    ) -> Result<(Vec<LedgerRow>, ModelUsage, bool), SessionError> {
        let store = &self.inner.house.store;
        let mut rows = store.ledger(query, after, limit.saturating_add(1)).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        Ok((rows, store.ledger_total(query).await?, more))
    }

    /// What happened since the start, in numbers. How long that is, the caller knows.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let house = &self.inner.house;
        let (database_writes, database_write_errors) = house.store.writes();
        // No guard of the map is held while a session is looked at.
        let slots: Vec<Slot> = self.inner.live.iter().map(|entry| Arc::clone(entry.value())).collect();
        let clients = slots.iter().filter_map(|slot| slot.get());
        let subscribers = clients.map(|loaded| u64::from(loaded.clients.load(Ordering::Relaxed))).sum();
        let sessions_loaded = self.loaded() as u64;
        Metrics { sessions_loaded, subscribers, database_writes, database_write_errors, ..house.counts.now() }
    }

    /// The tools that sessions offer their models.
    #[must_use]
    pub fn tools(&self) -> Arc<[ToolCard]> {
        self.inner.house.setup().tools.cards()
    }

    /// Models to choose from, with what is known of them.
    #[must_use]
    pub fn models(&self) -> Vec<ModelView> {
        let setup = self.inner.house.setup();
        let settings = &setup.settings;
        // The first pointer first; without a configuration its model comes from the environment.
        let others = settings.pointers.iter().filter(|(name, _)| **name != MAIN);
        let others = others.filter_map(|(name, model)| Some((*name, model.as_ref()?)));
        let pointers: Vec<(&str, &String)> =
            settings.main_model.iter().map(|model| (MAIN, model)).chain(others).collect();
        let mut models =
            setup.models.list(&pointers.iter().map(|(_, model)| (*model).clone()).collect::<Vec<_>>());
        for view in &mut models {
            let own = pointers.iter().filter(|(_, model)| **model == view.model);
            view.pointers = own.map(|(name, _)| (*name).to_owned()).collect();
        }
        models
    }

    /// A page of sessions, newest first; the position is where the next page begins.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn views(
        &self,
        before: Option<i64>,
        limit: u32,
        states: &[SessionState],
        cwd: Option<&str>,
        search: Option<&str>,
    ) -> Result<(Vec<SessionView>, Option<i64>), SessionError> {
        let mut rows = self.inner.house.store.views(before, limit + 1, states, cwd, search).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = if more { rows.last().map(|(position, _)| *position) } else { None };
        Ok((rows.into_iter().map(|(_, view)| self.with_live(view)).collect(), next))
    }

    fn with_live(&self, mut view: SessionView) -> SessionView {
        let slot = self.inner.live.get(&view.session_id).map(|slot| Arc::clone(&slot));
        if let Some(loaded) = slot.as_ref().and_then(|slot| slot.get()) {
            view.clients = loaded.clients.load(Ordering::Relaxed);
            view.last_seq = view.last_seq.max(loaded.feed.last_seq());
            view.background_commands = loaded.commands();
        }
        view
    }

    /// Answers a permission request of any session.
    ///
    /// # Errors
    /// There is no such request, or it was settled.
    pub async fn answer(&self, answer: Answer) -> Result<(SessionId, Answered), SessionError> {
        let store = &self.inner.house.store;
        let request_id = RequestId::Permission(answer.request_id);
        if let Some(grant) = &answer.grant {
            grant
                .parse::<crate::judge::Rule>()
                .map_err(|error| SessionError::BadParam("grant", error.to_string()))?;
        }
        let known = store.request(request_id).await?.ok_or(SessionError::NoSuchRequest)?;
        let handle = self.open(known.session_id).await?;
        let edited = match &answer.updated_input {
            Some(input) => match handle.look(answer.request_id).await {
                Ok(asked) => Some(self.edited(asked, input.clone()).await?),
                // The answer says why there is nothing to answer.
                Err(_) => None,
            },
            None => None,
        };
        let answered = handle.answer(answer, edited).await;
        if answered == Err(SessionError::Refused(crate::engine::Refusal::NotPending))
            && let Some(settled) = store.request(request_id).await?.and_then(|known| known.settled)
        {
            return Err(SessionError::Settled(settled));
        }
        Ok((known.session_id, answered?))
    }

    /// Looks at changed arguments as at the model's own: against the tool's schema, without running.
    async fn edited(&self, asked: Asked, input: serde_json::Value) -> Result<Edited, SessionError> {
        let setup = self.inner.house.setup();
        let call = ToolCall { input: input.clone(), input_error: None, ..(*asked.call).clone() };
        match setup.tools.prepare(&call, &asked.scene).await {
            Ok(prepared) => Ok(Edited { input, prepared }),
            Err(outcome) => Err(SessionError::BadParam("updated_input", outcome.output)),
        }
    }

    /// Answers a question of any session; the session and the event that says so.
    ///
    /// # Errors
    /// There is no such question, or it was settled.
    pub async fn choose(&self, chosen: Chosen) -> Result<(SessionId, Seq), SessionError> {
        let store = &self.inner.house.store;
        let request = RequestId::Question(chosen.request_id);
        let known = store.request(request).await?.ok_or(SessionError::NoSuchQuestion)?;
        let handle = self.open(known.session_id).await?;
        let resolved = handle.choose(chosen).await;
        if resolved == Err(SessionError::Refused(crate::engine::Refusal::NotPending))
            && let Some(settled) = store.request(request).await?.and_then(|known| known.settled)
        {
            return Err(SessionError::Settled(settled));
        }
        Ok((known.session_id, resolved?))
    }

    /// A page of pending permission requests, oldest first.
    ///
    /// # Errors
    /// There is no such session, or the database could not be read.
    pub async fn pending(
        &self,
        session: Option<SessionId>,
        after: Option<PermissionId>,
        limit: u32,
    ) -> Result<(Vec<Pending>, Option<PermissionId>), SessionError> {
        let store = &self.inner.house.store;
        let key = match session {
            Some(id) => Some(store.find(id).await?.ok_or(SessionError::NotFound)?),
            None => None,
        };
        let after = after.map(|id| id.to_string());
        let mut rows = store.pending_requests(key, after.as_deref(), limit + 1).await?;
        let mut bytes = 0;
        let mut fits = |row: &StoredRequest| {
            bytes += row.body.len();
            bytes <= PAGE_BYTES
        };
        let page = rows.iter().take(limit as usize).take_while(|row| fits(row)).count().max(1);
        let more = rows.len() > page;
        rows.truncate(page);
        let requests: Vec<Pending> = rows
            .iter()
            .filter_map(|row| serde_json::from_str::<Envelope>(&row.body).ok())
            .filter_map(|envelope| match envelope.event {
                Event::PermissionRequested { request, .. } => {
                    let Envelope { session_id, at_ms, cut, .. } = envelope;
                    Some(Pending { session_id, at_ms, cut, request })
                }
                _ => None,
            })
            .collect();
        let next = if more { requests.last().map(|pending| pending.request.request_id) } else { None };
        Ok((requests, next))
    }

    /// Stops a session and removes it with its history.
    ///
    /// # Errors
    /// There is no such session, or the store failed.
    pub async fn delete(
        &self,
        id: SessionId,
        keyed: Option<Keyed>,
        origin: Origin,
    ) -> Result<(), SessionError> {
        if let Some(keyed) = &keyed
            && let Some(known) = self.inner.house.store.remembered(DELETE, &keyed.key).await?
        {
            return if known.digest == keyed.digest {
                Ok(())
            } else {
                Err(SessionError::Conflict("idempotency_key"))
            };
        }
        let handle = self.open(id).await?;
        handle.kill(origin).await?;
        handle.park(false).await;
        let idempotency = keyed.map(|keyed| Idempotency {
            method: DELETE,
            key: keyed.key,
            digest: keyed.digest,
            reply: String::new(),
        });
        self.inner.house.store.delete(handle.key(), idempotency, self.inner.house.clock.now()).await?;
        self.inner.live.remove(&id);
        Ok(())
    }

    /// Writes down what was decided outside of any session.
    ///
    /// # Errors
    /// It was not written.
    pub async fn note(&self, note: AuditNote) -> Result<(), SessionError> {
        Ok(self.inner.house.store.record(vec![note], Sync::Normal).await?)
    }

    /// Sessions whose task runs.
    #[must_use]
    pub fn running(&self) -> usize {
        self.inner.actors.len()
    }

    /// Stops all work and waits for it: turns are parked where a restart can pick them up. Nothing
    /// can be opened afterwards. May be dropped and called again, also in more of a hurry.
    pub async fn park_all(&self, patient: bool) {
        self.inner.closing.store(true, Ordering::Release);
        let slots: Vec<Slot> = self.inner.live.iter().map(|entry| Arc::clone(entry.value())).collect();
        let parked = slots.iter().filter_map(|slot| slot.get()).map(|loaded| loaded.park(patient));
        self.inner.actors.close();
        futures_util::future::join_all(parked).await;
        self.inner.live.clear();
        // Also those that were just being loaded: nothing writes after this.
        self.inner.actors.wait().await;
    }
}

/// A limit on money binds only where the price is known: never silently not.
pub(super) fn check_money(setup: &Setup, model: &str, budgets: Budgets) -> Result<(), SessionError> {
    let Ok(known) = model.parse::<ModelRef>() else { return Ok(()) };
    if !budgets.limits_money() || setup.models.price(&known).is_some() {
        return Ok(());
    }
    let why = format!(
        "the price of {model} is not known, so a limit on money cannot hold: set price in \
         [model.\"{model}\"], or limit model_calls or output_tokens"
    );
    Err(SessionError::BadParam("budgets.usd_micros", why))
}
