//! Creates sessions.
//!
//! `new_session_request` is the request, and `new_session_spec` checks it against the configuration and the machine.

use std::sync::Arc;

use crate::actor::audit;
use crate::actor::journal;
use crate::error::SessionError;
use crate::idempotency::{IdempotencyKey, method};
use crate::registry::Registry;
use crate::registry::initial_items;
use crate::registry::mcp;
use crate::registry::new_session_request::NewSessionRequest;
use engine::Engine;
use store::{Idempotency, NewSession, StoreError};
use types::daemon_event::SessionChangeKind;
use types::event::{Envelope, Event};
use types::ids::{Mint, Seed, SessionId};
use types::session::{SessionSpec, SessionView};
use types::subagent::{AgentProfile, HIDDEN_AGENT};

/// Code of the notice about the project's configuration file.
const PROJECT_NOTICE: &str = "project_config";
/// The events of a new session after `created`: what it inherits, notices about the project's settings, and the
/// conversation that it begins with.
fn initial_history(
    created: &Envelope,
    request: &NewSessionRequest,
    notices: &[String],
    mint: &mut Mint,
) -> Vec<Envelope> {
    let mut events = request.inherited.as_ref().map(|it| it.events()).unwrap_or_default();
    if !notices.is_empty() {
        events.push(Event::Notice { kind: PROJECT_NOTICE.into(), text: notices.join("; ") });
    }
    let mut history: Vec<Envelope> =
        (2..).zip(events).map(|(seq, event)| Envelope { seq, event, ..created.clone() }).collect();
    let last = history.last().unwrap_or(created);
    let items = initial_items::events(last, &request.initial_items, mint);
    history.extend(items);
    history
}

/// The rows of a new session with its first event and history.
fn new_session(
    created: &Envelope,
    spec: &SessionSpec,
    history: &[Envelope],
    keyed: Option<IdempotencyKey>,
) -> NewSession {
    let (row, _, blobs) = journal::encode_event(created, None);
    let mut new = NewSession {
        session_id: created.session_id,
        spec: spec.clone(),
        at: created.at_ms,
        rows: vec![row],
        items: Vec::new(),
        blobs,
        audit: audit::creation_notes(created, spec.mode),
        idempotency: keyed.map(|keyed| Idempotency {
            method: method::CREATE,
            key: keyed.key,
            digest: keyed.digest,
            reply: created.session_id.to_string(),
        }),
        history: Default::default(),
    };
    history.iter().for_each(|event| initial_items::add(&mut new, event));
    new
}

impl Registry {
    /// Creates a session. If the id or key was used before with the same request, returns that session.
    ///
    /// # Errors
    /// A parameter is invalid, or the id or key was used with a different request.
    pub async fn create(&self, mut request: NewSessionRequest) -> Result<SessionView, SessionError> {
        self.check_open()?;
        if let Some(existing) = self.find_created(request.keyed.as_ref()).await? {
            return Ok(existing);
        }
        match request.worktree.take() {
            Some(choice) => self.create_in_worktree(request, choice).await,
            None => self.create_in_folder(request).await,
        }
    }

    /// Creates a session in the folder of its request.
    ///
    /// # Errors
    /// As for [`Self::create`].
    pub(super) async fn create_in_folder(
        &self,
        request: NewSessionRequest,
    ) -> Result<SessionView, SessionError> {
        let shared = &self.inner.shared;
        let servers = mcp::parse_servers(request.mcp_servers.clone())?;
        self.check_environment(request.environment.as_ref(), !request.background)?;
        let (mut spec, notices) = self.build_spec(&request).await?;
        spec.initial_digest = initial_items::digest(&request.initial_items)?;
        if request.is_hidden {
            spec.agent = Some(AgentProfile { name: HIDDEN_AGENT.into(), ..AgentProfile::default() });
        }
        let now = shared.clock.now();
        let mut mint = Mint::new(now.0, Seed::random());
        let id = request.session_id.unwrap_or_else(|| mint.session());
        let created = Envelope {
            seq: 1,
            session_id: id,
            turn_id: None,
            item_id: None,
            step: None,
            parent_call_id: spec.parent.map(|parent| parent.call_id),
            at_ms: now,
            origin: request.origin.clone(),
            truncated_fields: Vec::new(),
            event: Event::SessionCreated(Box::new(spec.clone())),
        };
        let history = initial_history(&created, &request, &notices, &mut mint);
        let new = new_session(&created, &spec, &history, request.keyed.clone());
        // Save the servers before the session exists, so that no turn of the session begins without them.
        let is_new = shared.store.find(id).await?.is_none();
        // The ledger keeps the calls of a deleted session under its id. A new session with this id
        // would lose its own calls.
        if is_new && request.session_id.is_some() && shared.store.has_usage(id).await? {
            let why = "a deleted session had this id; choose another, or leave it out";
            return Err(SessionError::BadParam("session_id", why.into()));
        }
        if is_new {
            self.save_servers(id, servers.clone()).await?;
            self.save_environment(id, request.environment.clone()).await?;
        }
        match shared.database.create(new).await {
            Ok(key) => {
                let mut engine = Engine::new(id, Arc::clone(&shared.components().settings.engine));
                engine.apply(&created);
                history.iter().for_each(|event| engine.apply(event));
                // A client that knows the id may have opened the session already. Only one task may own a session.
                let slot = self.slot(id);
                slot.get_or_init(|| async { self.insert_created(id, key, engine) }).await;
                shared.notify_session(id, SessionChangeKind::Created);
                self.view(id).await
            }
            // Another call with the same key or id was faster.
            Err(StoreError::Taken) => match self.find_created(request.keyed.as_ref()).await? {
                Some(existing) => Ok(existing),
                None if self.has_servers(id, &servers).await
                    && self.environment_of(id).await == request.environment =>
                {
                    self.require_same_session(id, &spec, &request).await
                }
                None => Err(SessionError::Conflict("session_id")),
            },
            Err(error) => {
                if is_new {
                    self.remove_servers(id).await;
                    self.remove_environment(id).await;
                }
                Err(error.into())
            }
        }
    }

    /// The session that was created with this key, if there is one.
    async fn find_created(
        &self,
        keyed: Option<&IdempotencyKey>,
    ) -> Result<Option<SessionView>, SessionError> {
        let Some(keyed) = keyed else { return Ok(None) };
        let Some(stored) = self.inner.shared.store.stored_reply(method::CREATE, &keyed.key).await? else {
            return Ok(None);
        };
        if stored.digest != keyed.digest {
            return Err(SessionError::Conflict("idempotency_key"));
        }
        let id = stored.reply.parse().map_err(|_| SessionError::NotFound)?;
        self.view(id).await.map(Some)
    }

    /// The session with this id, if it was created from the same request. The defaults may have changed since.
    async fn require_same_session(
        &self,
        id: SessionId,
        spec: &SessionSpec,
        request: &NewSessionRequest,
    ) -> Result<SessionView, SessionError> {
        let store = &self.inner.shared.store;
        let key = store.find(id).await?.ok_or(SessionError::Conflict("idempotency_key"))?;
        let first =
            store.events_after(key, 0, 1, 0).await?.rows.into_iter().next().ok_or(SessionError::NotFound)?;
        match store.restored_event(key, first.seq, &first.body).await? {
            Some(Envelope { event: Event::SessionCreated(created), .. })
                if request.has_created(&created, spec) =>
            {
                self.view(id).await
            }
            _ => Err(SessionError::Conflict("session_id")),
        }
    }
}
