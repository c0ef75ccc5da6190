//! Read-only views: sessions, the ledger, models, tools, and pending requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::error::SessionError;
use crate::registry::Registry;
use store::{LedgerQuery, SessionQuery, StoredRequest};
use types::event::{Envelope, Event};
use types::ids::{PermissionId, SessionId};
use types::ledger::{LedgerRow, ModelUsage};
use types::model::ModelView;
use types::permission_request::PendingRequest;
use types::session::{SessionDetails, SessionView};
use types::tool::{ToolDefinition, ToolLimits};

/// The pointer of `[models]` for sessions that name no model.
const MAIN_POINTER: &str = "main";
/// Maximum number of models in one session's view.
const MAX_MODELS: u32 = 1_000;
/// Maximum bytes of the events behind one page of pending requests.
const PAGE_BYTES: usize = 4 << 20;

impl Registry {
    /// The summary of one session.
    pub async fn view(&self, id: SessionId) -> Result<SessionView, SessionError> {
        let view = self.inner.shared.store.view(id).await?.ok_or(SessionError::NotFound)?;
        Ok(self.add_live_state(view))
    }

    /// The summary of one session with its settings and attached clients.
    pub async fn view_with_details(&self, id: SessionId) -> Result<SessionView, SessionError> {
        let store = &self.inner.shared.store;
        let view = self.view(id).await?;
        let key = store.find(id).await?.ok_or(SessionError::NotFound)?;
        let spec = store.spec(key).await?;
        let slot = self.inner.slots.get(&id).map(|slot| Arc::clone(&slot));
        let attached = slot.as_ref().and_then(|slot| slot.get()).map(|loaded| loaded.clients.list_clients());
        let on_restart = self.inner.shared.components().settings.engine.on_restart;
        let project = self.inner.shared.find_project(Path::new(&spec.cwd)).await;
        let details = Box::new(SessionDetails {
            attached: attached.unwrap_or_default(),
            budgets: spec.budgets,
            tools: spec.tools,
            additional_dirs: spec.additional_dirs,
            safe_mode: spec.safe_mode,
            on_restart: spec.on_restart.unwrap_or(on_restart),
            system_prompt: spec.system_prompt,
            append_system_prompt: spec.append_system_prompt,
            fallback_model: spec.fallback_model,
            output_schema: spec.output_schema,
            stop: spec.stop,
            metadata: spec.metadata,
            ablation: spec.ablation,
            project_settings: spec.project_settings,
            binary_feedback: spec.binary_feedback,
            coordinator: spec.coordinator,
            todos: store.todos(key).await?,
            project_root: Some(project.root().display().to_string()),
            env: self.environment_names(id, spec.parent).await,
            worktree: spec.worktree,
        });
        Ok(SessionView { details: Some(details), ..view })
    }

    /// The session with this number.
    ///
    /// # Errors
    /// No session has this number, or the database could not be read.
    pub async fn numbered(&self, number: u64) -> Result<SessionId, SessionError> {
        self.inner.shared.store.numbered(number).await?.ok_or(SessionError::NotFound)
    }

    /// The id of the `nth` permission request or question of the session with this number.
    ///
    /// # Errors
    /// There is no such request, or the database could not be read.
    pub async fn numbered_request(&self, session: u64, nth: u64) -> Result<String, SessionError> {
        let store = &self.inner.shared.store;
        store.numbered_request(session, nth).await?.ok_or(SessionError::NoSuchRequest)
    }

    /// The summary of one session with its usage per model, its settings and attached clients.
    pub async fn view_with_models(&self, id: SessionId) -> Result<SessionView, SessionError> {
        let view = self.view_with_details(id).await?;
        let query = LedgerQuery { session_id: Some(id), ..LedgerQuery::default() };
        let rows = self.inner.shared.store.ledger(query, None, MAX_MODELS).await?;
        let mut models = BTreeMap::<String, ModelUsage>::new();
        for row in rows {
            // The rows of sub-agents are counted for their own sessions.
            models.entry(row.model).or_default().add(&row.spent);
        }
        Ok(SessionView { models, ..view })
    }

    /// A page of the ledger, newest sessions first, and the sum over the whole query. The ledger
    /// includes deleted sessions.
    pub async fn ledger(
        &self,
        query: LedgerQuery,
        after: Option<(SessionId, String)>,
        limit: u32,
    ) -> Result<(Vec<LedgerRow>, ModelUsage, bool), SessionError> {
        let store = &self.inner.shared.store;
        let mut rows = store.ledger(query, after, limit.saturating_add(1)).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        Ok((rows, store.ledger_total(query).await?, more))
    }

    /// The tools that sessions offer to their models.
    #[must_use]
    pub fn tools(&self) -> Arc<[ToolDefinition]> {
        self.inner.shared.components().tools.definitions()
    }

    /// Whether a tool needs permission, its time limit, and its output limit.
    #[must_use]
    pub fn tool_limits(&self, tool: &str) -> ToolLimits {
        self.inner.shared.components().tools.limits(tool)
    }

    /// Maximum bytes of one tool result for the model.
    #[must_use]
    pub fn max_result_bytes(&self) -> u64 {
        self.inner.shared.components().settings.engine.result_bytes as u64
    }

    /// The available models with their known properties.
    #[must_use]
    pub fn models(&self) -> Vec<ModelView> {
        let components = self.inner.shared.components();
        let settings = &components.settings;
        // `main` comes first. If it is not configured, its model comes from the environment.
        let others = settings.engine.models.all().into_iter().filter(|(name, _)| *name != MAIN_POINTER);
        let mut pointers: Vec<(&str, &String)> =
            others.filter_map(|(name, model)| Some((name, model.as_ref()?))).collect();
        pointers.sort_unstable();
        pointers.splice(0..0, settings.main_model.iter().map(|model| (MAIN_POINTER, model)));
        let mut models =
            components.models.list(&pointers.iter().map(|(_, model)| (*model).clone()).collect::<Vec<_>>());
        for view in &mut models {
            let own = pointers.iter().filter(|(_, model)| **model == view.model);
            view.pointers = own.map(|(name, _)| (*name).to_owned()).collect();
        }
        models
    }

    /// A page of sessions, newest first. Also returns the start of the next page.
    pub async fn views(
        &self,
        before: Option<i64>,
        limit: u32,
        wanted: SessionQuery<'_>,
    ) -> Result<(Vec<SessionView>, Option<i64>), SessionError> {
        let mut rows = self.inner.shared.store.views(before, limit + 1, wanted).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = if more { rows.last().map(|(position, _)| *position) } else { None };
        let mut views: Vec<SessionView> =
            rows.into_iter().map(|(_, view)| self.add_live_state(view)).collect();
        if let Some(search) = wanted.search {
            let ids: Vec<SessionId> = views.iter().map(|view| view.session_id).collect();
            let mut found = self.inner.shared.store.text_matches(&ids, search).await?;
            for view in &mut views {
                view.matches = found.remove(&view.session_id).unwrap_or_default();
            }
        }
        Ok((views, next))
    }

    fn add_live_state(&self, mut view: SessionView) -> SessionView {
        let slot = self.inner.slots.get(&view.session_id).map(|slot| Arc::clone(&slot));
        if let Some(loaded) = slot.as_ref().and_then(|slot| slot.get()) {
            view.clients = loaded.clients.count();
            view.last_seq = view.last_seq.max(loaded.feed.last_seq());
            view.background_commands = loaded.commands();
        }
        view
    }

    /// A page of pending permission requests, oldest first.
    pub async fn pending(
        &self,
        session: Option<SessionId>,
        after: Option<PermissionId>,
        limit: u32,
    ) -> Result<(Vec<PendingRequest>, Option<PermissionId>), SessionError> {
        let store = &self.inner.shared.store;
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
        let requests: Vec<PendingRequest> = rows
            .iter()
            .filter_map(|row| Some((&row.number, serde_json::from_str::<Envelope>(&row.body).ok()?)))
            .filter_map(|(number, envelope)| match envelope.event {
                Event::PermissionRequested { request, read_only, change, sandbox } => {
                    let Envelope { session_id, at_ms, truncated_fields, .. } = envelope;
                    let number = number.clone();
                    Some(PendingRequest {
                        session_id,
                        number,
                        at_ms,
                        truncated_fields,
                        request,
                        read_only,
                        change,
                        sandbox,
                    })
                }
                _ => None,
            })
            .collect();
        let next = if more { requests.last().map(|pending| pending.request.request_id) } else { None };
        Ok((requests, next))
    }
}
