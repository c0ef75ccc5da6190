//! Lists, adds and removes rules with their origin.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::actor::audit;
use crate::agents;
use crate::error::SessionError;
use crate::registry::Registry;
use crate::trust;
use judge::{Rule, stored_rule_note};
use project::policy::{PolicyEntry, PolicyScope};
use project::workspace;
use types::event::Origin;
use types::ids::SessionId;
use types::permission::{RuleKind, RuleParams, RuleScope, RuleView};

/// The agent that a rule `Task(NAME)` names.
fn agent_name(rule: &str) -> Option<&str> {
    rule.strip_prefix("Task(")?.strip_suffix(')')
}

impl Registry {
    /// The effective rules of a workspace, or of a session and its workspace, and the errors of policy
    /// files. Without a session and a workspace, returns the rules for all workspaces.
    ///
    /// # Errors
    /// The session or folder does not exist.
    pub async fn rules(
        &self,
        session_id: Option<SessionId>,
        workspace: Option<&str>,
    ) -> Result<(Vec<RuleView>, Vec<String>), SessionError> {
        let shared = Arc::clone(&self.inner.shared);
        let configured = Arc::clone(&shared.components().settings.configured);
        let mut rules: Vec<RuleView> = configured
            .iter()
            .map(|rule| RuleView {
                kind: rule.kind,
                rule: rule.rule.clone(),
                scope: rule.scope,
                file: Some(rule.file.display().to_string()),
                added_at_ms: None,
                by: None,
                note: stored_rule_note(&rule.rule),
            })
            .collect();
        let folder = self.workspace_path(session_id, workspace).await?;
        let agents_of = folder.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut read = (Vec::new(), Vec::new());
            let places = [(RuleScope::User, None), (RuleScope::Project, folder.as_deref())];
            for (scope, folder) in places {
                let place = match (scope, folder) {
                    (RuleScope::User, _) => PolicyScope::User,
                    (_, Some(folder)) => PolicyScope::Workspace(folder),
                    (_, None) => continue,
                };
                match shared.policies.read(place) {
                    Ok(policy) => read.0.extend(policy.entries.iter().map(|entry| RuleView {
                        kind: entry.kind,
                        rule: entry.rule.clone(),
                        scope,
                        file: Some(shared.policies.file(place).display().to_string()),
                        added_at_ms: Some(entry.added_at_ms),
                        by: entry.by.clone(),
                        note: stored_rule_note(&entry.rule),
                    })),
                    Err(error) => read.1.push(error.to_string()),
                }
            }
            // The project's own files whose deny or ask rules are not understood.
            let settings = folder.map(|folder| workspace::scan(&shared.project_folders(&folder)).settings);
            let unread = settings.into_iter().flatten().filter(|it| it.project.is_closed);
            read.1.extend(
                unread.map(|it| trust::unread_project(&it.name, &it.project.problem.unwrap_or_default())),
            );
            read
        });
        let (more, problems) = read.await.map_err(|_| SessionError::Crashed)?;
        rules.extend(more);
        if let Some(id) = session_id {
            let own = self.open(id).await?.rules().await?;
            for kind in [RuleKind::Deny, RuleKind::Ask, RuleKind::Allow] {
                rules.extend(own.with_kind(kind).iter().map(|rule| RuleView {
                    kind,
                    rule: rule.clone(),
                    scope: RuleScope::Session,
                    file: None,
                    added_at_ms: None,
                    by: None,
                    note: stored_rule_note(rule),
                }));
            }
        }
        if let Some(folder) = agents_of.filter(|_| rules.iter().any(|rule| agent_name(&rule.rule).is_some()))
        {
            let agents = agents::load(&self.inner.shared, &folder).await?;
            for rule in &mut rules {
                let missing = agent_name(&rule.rule).filter(|name| agents.find(name).is_none());
                let note = missing.map(|name| format!("there is no agent {name} in this folder now"));
                rule.note = rule.note.take().or(note);
            }
        }
        Ok((rules, problems))
    }

    /// Adds a rule. It applies from the next verdict on, also in running sessions. Returns whether it was new.
    ///
    /// # Errors
    /// The rule or its scope is invalid, or the rule could not be written.
    pub async fn add_rule(&self, rule: RuleParams, origin: Origin) -> Result<bool, SessionError> {
        self.change_rule(true, rule, origin).await
    }

    /// Removes a rule. The removal applies from the next verdict on.
    ///
    /// # Errors
    /// The rule does not exist there, or the change could not be written.
    pub async fn remove_rule(&self, rule: RuleParams, origin: Origin) -> Result<bool, SessionError> {
        self.change_rule(false, rule, origin).await
    }

    async fn change_rule(&self, add: bool, rule: RuleParams, origin: Origin) -> Result<bool, SessionError> {
        self.check_open()?;
        let RuleParams { rule, kind, scope, session_id, workspace, .. } = rule;
        let bad = |error: judge::BadRule| SessionError::BadParam("rule", error.to_string());
        let rule: Rule = match add {
            true => rule.parse().map_err(bad)?,
            false => self.rule_to_remove(&rule, kind, scope, session_id, workspace.as_deref()).await?,
        };
        if add && rule.is_unsandboxed() && (scope != RuleScope::Session || kind != RuleKind::Allow) {
            let why = "running outside the sandbox is granted to a session only: scope session, kind allow";
            return Err(SessionError::BadParam("rule", why.into()));
        }
        let rule = rule.to_string();
        let folder = match scope {
            RuleScope::Managed => {
                let why = "managed rules are in /etc/agentd/config.toml, which only an administrator changes";
                return Err(SessionError::BadParam("scope", why.into()));
            }
            RuleScope::Session => {
                let id = session_id.ok_or_else(|| {
                    SessionError::BadParam("session_id", "name the session of the rule".into())
                })?;
                return self.open(id).await?.change_rule(add, kind, rule, origin).await.map(|()| true);
            }
            RuleScope::User => None,
            RuleScope::Project => {
                let folder = self.workspace_path(session_id, workspace.as_deref()).await?;
                let why = "name the folder, or a session that works in it";
                Some(folder.ok_or_else(|| SessionError::BadParam("workspace", why.into()))?)
            }
        };
        if let (false, Some(folder)) = (add, &folder) {
            self.discard_pending(&folder.to_string_lossy(), kind, &rule).await?;
        }
        let shared = Arc::clone(&self.inner.shared);
        let wanted = rule.clone();
        let place = folder.as_ref().map_or("every folder".into(), |folder| folder.display().to_string());
        let note = audit::lasting_rule_note(shared.clock.now(), add, kind, &rule, &place, &origin);
        let changed = tokio::task::spawn_blocking(move || {
            let place = folder.as_deref().map_or(PolicyScope::User, PolicyScope::Workspace);
            if add {
                let (added_at_ms, by) = (shared.clock.now(), Some(origin));
                let entry = PolicyEntry { kind, rule, added_at_ms, by, session_id, request_id: None };
                shared.policies.add(place, entry)
            } else {
                shared.policies.remove(place, kind, &rule)
            }
        });
        let changed = changed.await.map_err(|_| SessionError::Crashed)?.map_err(SessionError::Policy)?;
        if !add && !changed {
            if self
                .inner
                .shared
                .components()
                .settings
                .configured
                .iter()
                .any(|it| it.rule == wanted && it.kind == kind)
            {
                let why = "this rule is in the configuration; remove it from that file";
                return Err(SessionError::BadParam("rule", why.into()));
            }
            return Err(SessionError::Refused(engine::Refusal::NoSuchRule));
        }
        if changed {
            // The file is effective already, so a failing disk must not cause a refusal.
            if let Err(error) = self.note(note).await {
                tracing::error!(%error, "could not write a rule change to the audit log");
            }
        }
        Ok(changed)
    }

    /// The rule that a text names for removal: a rule that is kept under exactly this text, also one that could
    /// not be written now, else what the text means now.
    async fn rule_to_remove(
        &self,
        text: &str,
        kind: RuleKind,
        scope: RuleScope,
        session_id: Option<SessionId>,
        workspace: Option<&str>,
    ) -> Result<Rule, SessionError> {
        let bad = |error: judge::BadRule| SessionError::BadParam("rule", error.to_string());
        let now = text.parse::<Rule>();
        let Ok(exact) = Rule::stored(text) else { return now.map_err(bad) };
        if now.as_ref().is_ok_and(|now| *now == exact) {
            return Ok(exact);
        }
        let session_id_of_rule = session_id.filter(|_| scope == RuleScope::Session);
        let (rules, _) = match (scope, session_id_of_rule) {
            (RuleScope::Session, None) => return now.map_err(bad),
            (RuleScope::Session, id) => self.rules(id, None).await?,
            (RuleScope::Project, _) => self.rules(session_id, workspace).await?,
            _ => self.rules(None, None).await?,
        };
        let is_kept =
            rules.iter().any(|rule| rule.kind == kind && rule.scope == scope && rule.rule == exact.as_str());
        if is_kept { Ok(exact) } else { now.map_err(bad) }
    }

    /// The real path of the requested workspace.
    async fn workspace_path(
        &self,
        session_id: Option<SessionId>,
        workspace: Option<&str>,
    ) -> Result<Option<PathBuf>, SessionError> {
        match (workspace, session_id) {
            (Some(folder), _) if !Path::new(folder).is_absolute() => {
                let why = format!("expected an absolute path, got {folder:?}");
                Err(SessionError::BadParam("workspace", why))
            }
            // A folder that no longer exists may still have rules, so use its path unresolved.
            (Some(folder), _) => {
                Ok(Some(tokio::fs::canonicalize(folder).await.unwrap_or_else(|_| PathBuf::from(folder))))
            }
            // Rules of a worktree are kept for the folder that it was made for.
            (None, Some(id)) => {
                let folder = PathBuf::from(self.view(id).await?.cwd);
                let base = self.inner.shared.worktree_bases.find(&folder);
                Ok(Some(base.map_or(folder, |base| base.folder)))
            }
            (None, None) => Ok(None),
        }
    }
}
