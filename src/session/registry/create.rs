//! Creates and changes sessions: checks each request against the configuration and the machine.

use std::path::Path;
use std::sync::Arc;

use crate::engine::Engine;
use crate::session::actor::audit;
use crate::session::actor::journal;
use crate::session::error::SessionError;
use crate::session::handle::{Changes, IdempotencyKey};
use crate::session::registry::Registry;
use crate::session::registry::create_request::NewSessionRequest;
use crate::session::shared::Components;
use crate::store::{Idempotency, NewSession, StoreError};
use crate::types::event::{Envelope, Event};
use crate::types::ids::{Mint, Seed, SessionId};
use crate::types::model::ModelRef;
use crate::types::permission::Mode;
use crate::types::session::{SessionSpec, SessionView};
use crate::types::tool::ToolChoice;
use crate::types::usage::Budgets;

/// Maximum number of additional folders of a session.
const MOST_DIRS: usize = 16;
/// Method name under which the replies to `session.create` are stored.
const CREATE: &str = "session.create";

impl Registry {
    /// Creates a session. If the id or key was used before with the same request, returns that session.
    ///
    /// # Errors
    /// A parameter is invalid, or the id or key was used with a different request.
    pub async fn create(&self, request: NewSessionRequest) -> Result<SessionView, SessionError> {
        self.check_open()?;
        let shared = &self.inner.shared;
        if let Some(known) = self.made_with(request.keyed.as_ref()).await? {
            return Ok(known);
        }
        let spec = self.spec(&request).await?;
        let now = shared.clock.now();
        let id = request.session_id.unwrap_or_else(|| Mint::new(now.0, Seed::random()).session());
        let envelope = Envelope {
            seq: 1,
            session_id: id,
            turn_id: None,
            item_id: None,
            at_ms: now,
            origin: request.origin.clone(),
            truncated_fields: Vec::new(),
            event: Event::SessionCreated(spec.clone()),
        };
        let (row, _, blobs) = journal::write(&envelope, None);
        let idempotency = request.keyed.clone().map(|keyed| Idempotency {
            method: CREATE,
            key: keyed.key,
            digest: keyed.digest,
            reply: id.to_string(),
        });
        let audit = audit::of_creation(&envelope, spec.mode);
        let spec_of = spec.clone();
        let rows = vec![row];
        let new = NewSession { session_id: id, spec: spec_of, at: now, rows, blobs, audit, idempotency };
        match shared.store.create(new).await {
            Ok(key) => {
                let mut engine = Engine::new(id, Arc::clone(&shared.components().settings.engine));
                engine.apply(&envelope);
                // A client that knows the id may have opened the session already. Only one task may own it.
                let slot = self.slot(id);
                slot.get_or_init(|| async { self.made(id, key, engine) }).await;
                self.view(id).await
            }
            // Another call with the same key or id was faster.
            Err(StoreError::Taken) => match self.made_with(request.keyed.as_ref()).await? {
                Some(known) => Ok(known),
                None => self.same_session(id, &spec, &request).await,
            },
            Err(error) => Err(error.into()),
        }
    }

    /// The session that was created with this key, if there is one.
    async fn made_with(&self, keyed: Option<&IdempotencyKey>) -> Result<Option<SessionView>, SessionError> {
        let Some(keyed) = keyed else { return Ok(None) };
        let Some(known) = self.inner.shared.store.remembered(CREATE, &keyed.key).await? else {
            return Ok(None);
        };
        if known.digest != keyed.digest {
            return Err(SessionError::Conflict("idempotency_key"));
        }
        let id = known.reply.parse().map_err(|_| SessionError::NotFound)?;
        self.view(id).await.map(Some)
    }

    /// The session with this id, if it was created from the same request. The defaults may have changed since.
    async fn same_session(
        &self,
        id: SessionId,
        spec: &SessionSpec,
        asked: &NewSessionRequest,
    ) -> Result<SessionView, SessionError> {
        let store = &self.inner.shared.store;
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

    /// The canonical path of a folder: absolute and without symbolic links.
    pub(in crate::session) async fn folder(&self, asked: &str) -> Result<String, SessionError> {
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

    /// Checks additional workspace folders. Each must exist and must not be the root or a folder of the system
    /// or the daemon.
    async fn additional(&self, asked: &[String]) -> Result<Vec<String>, SessionError> {
        const NAME: &str = "additional_dirs";
        if asked.len() > MOST_DIRS {
            let why = format!("{} folders are too many, {MOST_DIRS} at most", asked.len());
            return Err(SessionError::BadParam(NAME, why));
        }
        let components = self.inner.shared.components();
        let mut dirs = Vec::new();
        for asked in asked {
            let dir = self.folder_of(NAME, asked).await?;
            let path = Path::new(&dir);
            let of_system = ["/proc", "/sys", "/dev"].iter().any(|place| path.starts_with(place));
            if path.parent().is_none() || of_system {
                let why = format!("{asked} cannot be a workspace: name a folder of a project");
                return Err(SessionError::BadParam(NAME, why));
            }
            if components.tools.is_protected(path) {
                let why = format!("{asked} is a folder of the daemon itself, which no tool may change");
                return Err(SessionError::BadParam(NAME, why));
            }
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        Ok(dirs)
    }

    /// Checks that named tools exist. With a misspelt name the session would offer fewer or more tools than
    /// intended.
    ///
    /// # Errors
    /// A tool does not exist.
    pub fn known_tools(&self, choice: ToolChoice) -> Result<ToolChoice, SessionError> {
        let cards = self.inner.shared.components().tools.cards();
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
        let components = self.inner.shared.components();
        let settings = &components.settings;
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

    /// Checks that sessions may use this mode.
    ///
    /// # Errors
    /// The configuration does not allow it.
    pub fn check_mode(&self, mode: Mode) -> Result<(), SessionError> {
        match (mode, &self.inner.shared.components().settings.bypass) {
            (Mode::Bypass, Err(why)) => Err(SessionError::BadParam("mode", why.clone())),
            _ => Ok(()),
        }
    }

    /// Limits of an unattended session. The configuration fills in missing ones. The built-in money limit is
    /// omitted if the model's price is unknown; the other limits apply.
    fn unattended(&self, model: &str, asked: Budgets) -> Budgets {
        let components = self.inner.shared.components();
        let mut limits = components.settings.unattended_budgets;
        let price = model.parse::<ModelRef>().ok().and_then(|known| components.models.price(&known));
        if components.settings.unattended_usd_is_default && price.is_none() {
            limits.usd_micros = None;
        }
        asked.or(limits)
    }

    /// Limits of a turn in this session. An unattended session always has limits.
    ///
    /// # Errors
    /// The session does not exist, or the model's price is unknown.
    pub async fn turn_budgets(&self, id: SessionId, asked: Budgets) -> Result<Budgets, SessionError> {
        let view = self.view(id).await?;
        let budgets = if view.background { self.unattended(&view.model, asked) } else { asked };
        self.check_budgets(&view.model, budgets)?;
        Ok(budgets)
    }

    /// Changes the title, model, mode, limits, tools or folders of a session. Mode and folders apply
    /// immediately, also to a running turn. Model and tools apply from the next turn.
    ///
    /// # Errors
    /// The session does not exist or has ended, or a value is invalid.
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

    /// Checks that the model has a price if there is a money limit. Without a price the limit would have no
    /// effect.
    ///
    /// # Errors
    /// The model's price is unknown.
    pub fn check_budgets(&self, model: &str, budgets: Budgets) -> Result<(), SessionError> {
        check_money(&self.inner.shared.components(), model, budgets)
    }

    /// Resolves a model name or the name of a pointer in `[models]`.
    ///
    /// # Errors
    /// The provider does not exist, or the pointer is not set.
    pub fn known_model(&self, text: &str) -> Result<String, SessionError> {
        let components = self.inner.shared.components();
        let wrong = |why: &str| SessionError::BadParam("model", format!("{text:?}: {why}"));
        let text = match components.settings.pointers.get(text) {
            Some(Some(model)) => model.as_str(),
            Some(None) => return Err(wrong("this pointer of [models] is not set")),
            None => text,
        };
        let model: ModelRef = text.parse().map_err(wrong)?;
        let providers = components.models.providers();
        if !providers.contains(&model.provider) {
            let known = if providers.is_empty() { "none".into() } else { providers.join(", ") };
            let why = format!("there is no provider {:?}; configured: {known}", model.provider);
            return Err(SessionError::BadParam("model", why));
        }
        Ok(text.to_string())
    }
}

/// Checks that the model has a price if there is a money limit. Without a price the limit would have no effect.
pub(in crate::session) fn check_money(
    components: &Components,
    model: &str,
    budgets: Budgets,
) -> Result<(), SessionError> {
    let Ok(known) = model.parse::<ModelRef>() else { return Ok(()) };
    if !budgets.limits_money() || components.models.price(&known).is_some() {
        return Ok(());
    }
    let why = format!(
        "the price of {model} is not known, so a limit on money cannot hold: set price in \
         [model.\"{model}\"], or limit model_calls or output_tokens"
    );
    Err(SessionError::BadParam("budgets.usd_micros", why))
}
