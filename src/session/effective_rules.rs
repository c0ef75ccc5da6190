//! The effective rules of a session. They come from the configuration, the user, the workspace (its grants, and
//! its own rules if they count: see `trust`) and the session itself. The scope of a rule does not influence the
//! verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::judge::{BypassGuard, Policy, Repository, Rule, Rules, is_unreadable, judge};
use crate::policy::Place;
use crate::session::actor::effects::CallContext;
use crate::session::registry::trust;
use crate::session::shared::{Settings, Shared};
use crate::tools::{Blobs, SessionContext, Unreadable};
use crate::types::permission::{Mode, Verdict, VerdictKind, outside_grant};
use crate::types::tool::{Confinement, PreparedCall, Subject};
use crate::workspace;

/// The rules of all scopes at one moment.
#[derive(Clone, Debug)]
pub(super) struct EffectiveRules {
    rules: Arc<Rules>,
    /// A policy file is invalid, so its deny rules are unknown and every call needs a permission request.
    problem: Option<String>,
    repository: Repository,
}

impl EffectiveRules {
    /// Loads the current rules on a blocking thread.
    pub async fn load(shared: &Arc<Shared>, call_context: &CallContext) -> Self {
        let (shared, call_context, runtime) = (Arc::clone(shared), call_context.clone(), Handle::current());
        let looked =
            tokio::task::spawn_blocking(move || Self::load_blocking(&shared, &call_context, &runtime));
        looked.await.unwrap_or_else(|_| Self {
            rules: Arc::default(),
            problem: Some("the rules could not be read: see the daemon's log".into()),
            repository: Repository::Content,
        })
    }

    /// The same for a caller that is on a blocking thread already. Reads files.
    pub fn load_blocking(shared: &Shared, call_context: &CallContext, runtime: &Handle) -> Self {
        let workspace = &call_context.session_context.workspace;
        let (mut more, mut problem) = read_rule_files(shared, workspace);
        let ground = workspace::scan(workspace);
        let (project, damage) = runtime.block_on(trust::rules(shared, workspace, ground));
        append_rules(&mut more, &project);
        problem = problem.or(damage);
        if problem.is_some() {
            more.allow.clear();
        }
        // The rules were checked when the user added them.
        let parsed = |rules: &[String]| rules.iter().filter_map(|rule| rule.parse::<Rule>().ok()).collect();
        let own = &call_context.rules;
        append_rules(
            &mut more,
            &Rules { allow: parsed(&own.allow), ask: parsed(&own.ask), deny: parsed(&own.deny) },
        );
        let settings = &shared.components().settings;
        let rules = if more == Rules::default() {
            Arc::clone(&settings.rules)
        } else {
            let mut all = (*settings.rules).clone();
            append_rules(&mut all, &more);
            Arc::new(all)
        };
        let repository = workspace::repository(workspace);
        Self { rules: with_links(rules, workspace, &settings.home), problem, repository }
    }

    /// The session's grant to run exactly this command without the sandbox, if there is one. No rule of a file
    /// grants this. The verdict still decides whether the command may run at all.
    pub fn unsandboxed_grant(&self, call_context: &CallContext, prepared: &PreparedCall) -> Option<String> {
        let Subject::Bash { command, .. } = &prepared.subject else { return None };
        let grant = outside_grant(command).filter(|_| self.problem.is_none())?;
        call_context.rules.allow.contains(&grant).then_some(grant)
    }

    /// The same rules plus one grant.
    pub fn with_grant(&self, grant: &Rule) -> Self {
        let mut rules = (*self.rules).clone();
        rules.allow.push(grant.clone());
        Self { rules: Arc::new(rules), ..self.clone() }
    }

    /// The session context of a call, including the paths that the current rules hide from reads.
    pub fn session_context(
        &self,
        settings: &Settings,
        blobs: Arc<dyn Blobs>,
        call_context: &CallContext,
    ) -> SessionContext {
        let (rules, home) = (Arc::clone(&self.rules), settings.home.clone());
        let (workspace, mode) = (call_context.session_context.workspace.clone(), call_context.mode);
        let safe_mode = call_context.safe_mode;
        let unreadable = Unreadable::new(move |tool, path| {
            let (rules, workspace, home) = (&*rules, workspace.as_path(), home.as_path());
            let policy = Policy {
                mode,
                rules,
                grants: &[],
                workspace,
                additional: &[],
                home,
                safe_mode,
                safe_commands: false,
                repository: Repository::Content,
                bypass_guard: BypassGuard::Off,
            };
            is_unreadable(&policy, tool, path)
        });
        SessionContext {
            unreadable,
            blobs: Some(blobs),
            ..SessionContext::clone(&call_context.session_context)
        }
    }

    /// Judges a call by these rules.
    pub fn verdict(
        &self,
        settings: &Settings,
        call_context: &CallContext,
        tool: &str,
        prepared: &PreparedCall,
    ) -> Verdict {
        // A session must not continue in a mode that the configuration no longer allows.
        let mode = match call_context.mode {
            Mode::Bypass if settings.bypass.is_err() => Mode::Default,
            mode => mode,
        };
        let policy = Policy {
            mode,
            rules: &self.rules,
            grants: &[],
            workspace: &call_context.session_context.workspace,
            additional: &call_context.session_context.additional,
            home: &settings.home,
            safe_mode: call_context.safe_mode || self.problem.is_some(),
            safe_commands: settings.safe_commands,
            repository: self.repository,
            bypass_guard: match (settings.bypass_guard, call_context.session_context.unattended) {
                (false, _) => BypassGuard::Off,
                (true, true) => BypassGuard::Deny,
                (true, false) => BypassGuard::Ask,
            },
        };
        let verdict = judge(&policy, tool, &prepared.subject);
        match &self.problem {
            Some(problem) if verdict.verdict != VerdictKind::Allow && verdict.rule.is_none() => {
                Verdict { reason: problem.clone(), ..verdict }
            }
            _ => verdict,
        }
    }
}

/// Adds the targets of symbolic links that exist now to the deny and ask rules. Reads the file system.
pub(super) fn with_links(rules: Arc<Rules>, workspace: &Path, home: &Path) -> Arc<Rules> {
    let led = rules.behind_links(workspace, home, &resolve_existing);
    if led == Rules::default() {
        return rules;
    }
    let mut all = (*rules).clone();
    append_rules(&mut all, &led);
    Arc::new(all)
}

/// Resolves the existing part of a path.
fn resolve_existing(path: &Path) -> Option<PathBuf> {
    let there = |above: &Path| Some(above.canonicalize().ok()?.join(path.strip_prefix(above).ok()?));
    path.ancestors().find_map(there)
}

/// The rules of the user's policy files, and the error of an invalid one.
fn read_rule_files(shared: &Shared, workspace: &Path) -> (Rules, Option<String>) {
    let (mut rules, mut problem) = (Rules::default(), None);
    for place in [Place::User, Place::Workspace(workspace)] {
        match shared.policies.read(place) {
            Ok(policy) => append_rules(&mut rules, &policy.rules),
            Err(error) => problem = Some(error.to_string()),
        }
    }
    (rules, problem)
}

/// A call with its verdict. If a grant lets the command run without the sandbox, it is judged and reported as
/// such.
pub(super) fn judge_call(
    effective: &EffectiveRules,
    settings: &Settings,
    call_context: &CallContext,
    tool: &str,
    mut prepared: PreparedCall,
) -> (PreparedCall, Verdict) {
    let held = prepared.sandbox.is_some_and(|held| held.level >= 2);
    let may_leave = held && settings.engine.offer_outside.holds(call_context.session_context.unattended);
    let grant = effective.unsandboxed_grant(call_context, &prepared).filter(|_| may_leave);
    if grant.is_some() {
        prepared.sandbox = Some(Confinement::OUTSIDE);
    }
    let verdict = effective.verdict(settings, call_context, tool, &prepared);
    if let Subject::Bash { background: false, .. } = prepared.subject {
        prepared.read_only = verdict.read_only;
    }
    let verdict = match grant {
        Some(grant) => verdict_unsandboxed(verdict, &grant),
        None => verdict,
    };
    (prepared, verdict)
}

/// Marks a verdict as one for a command without sandbox and names the grant.
fn verdict_unsandboxed(verdict: Verdict, grant: &str) -> Verdict {
    match verdict.verdict {
        VerdictKind::Allow => {
            let by = verdict.rule.clone().unwrap_or_else(|| verdict.reason.clone());
            Verdict { rule: Some(format!("{by}, {grant}")), ..verdict }
        }
        VerdictKind::Ask => {
            let reason =
                format!("{}; it would run OUTSIDE THE SANDBOX, as the session was granted", verdict.reason);
            Verdict { reason, ..verdict }
        }
        VerdictKind::Deny => verdict,
    }
}

fn append_rules(into: &mut Rules, more: &Rules) {
    into.allow.extend_from_slice(&more.allow);
    into.ask.extend_from_slice(&more.ask);
    into.deny.extend_from_slice(&more.deny);
}
