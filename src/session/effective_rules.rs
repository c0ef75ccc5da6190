//! The effective rules of a session: those of the configuration, of the user, of the workspace, and of
//! the session itself. The rules of the workspace are its grants, and the project's own rules if these
//! apply (see `trust`). The source of a rule does not change the verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::agent_restrictions::{self, restrict};
use crate::call_context::CallContext;
use crate::shared::{Components, Settings, Shared};
use crate::trust;
use crate::worktree_bases::WorktreeBase;
use engine::SessionRules;
use judge::{BypassGuard, FileFacts, Policy, Repository, Rule, Rules, file_reads, is_unreadable, judge};
use project::policy::PolicyScope;
use project::workspace;
use tools::{Blobs, ProgramSearch, SessionContext, UnreadablePaths};
use types::permission::{Mode, Verdict, VerdictKind, unsandboxed_grant};
use types::tool::{Confinement, PreparedCall, Subject};

/// All rules together, as of one moment.
#[derive(Clone, Debug)]
pub(super) struct EffectiveRules {
    rules: Arc<Rules>,
    /// The error of a policy file, if any. The file's deny rules are then unknown, so no call runs
    /// without a request.
    problem: Option<String>,
    repository: Repository,
    /// Folders with keys, and the targets of links to them.
    key_folders: Arc<[PathBuf]>,
    /// Finds the programs that commands start.
    programs: Arc<ProgramSearch>,
}

impl EffectiveRules {
    /// Loads the current rules on a blocking thread.
    pub async fn load(shared: &Arc<Shared>, call_context: &CallContext) -> Self {
        let (shared, call_context, runtime) = (Arc::clone(shared), call_context.clone(), Handle::current());
        let loading =
            tokio::task::spawn_blocking(move || Self::load_blocking(&shared, &call_context, &runtime));
        loading.await.unwrap_or_else(|_| Self {
            rules: Arc::default(),
            problem: Some("the rules could not be read: see the daemon's log".into()),
            repository: Repository::Content,
            key_folders: Arc::default(),
            programs: Arc::default(),
        })
    }

    /// Like [`Self::load`], for callers on a blocking thread. Reads files.
    pub fn load_blocking(shared: &Shared, call_context: &CallContext, runtime: &Handle) -> Self {
        let workspace = &call_context.session_context.workspace;
        let base = shared.worktree_bases.find(workspace);
        let (mut more, mut problem) = read_rule_files(shared, workspace, base.as_ref());
        let folders = shared.project_folders(workspace);
        let inventory = workspace::scan(&folders);
        let of_command = runtime.block_on(trusted_command_rules(shared, call_context, &inventory.digest));
        let (project, damage) = runtime.block_on(trust::rules(shared, &folders, inventory));
        append_rules(&mut more, &project);
        more.allow.extend(of_command);
        if let Some(base) = &base {
            let folders = shared.project_folders(&base.folder);
            let inventory = workspace::scan(&folders);
            let (of_base, damage) = runtime.block_on(trust::rules(shared, &folders, inventory));
            // The worktree's commit may be older than these rules. Only its own trust allows something.
            append_rules(&mut more, &Rules { allow: Vec::new(), ..of_base });
            problem = problem.or(damage);
        }
        let (of_agent, unclear) = agent_restrictions::rules(&call_context.restrictions);
        append_rules(&mut more, &of_agent);
        problem = problem.or(damage).or(unclear);
        if problem.is_some() {
            more.allow.clear();
        }
        let (own, unreadable) = session_rules(&call_context.rules);
        problem = problem.or(unreadable);
        append_rules(&mut more, &own);
        let settings = &shared.components().settings;
        let rules = if more == Rules::default() {
            Arc::clone(&settings.rules)
        } else {
            let mut all = (*settings.rules).clone();
            append_rules(&mut all, &more);
            Arc::new(all)
        };
        let rules = match &base {
            Some(base) => match rules_in_worktree(&rules, workspace, &settings.home, base) {
                Some(rules) => Arc::new(rules),
                None => {
                    problem
                        .get_or_insert_with(|| "the path of the base folder cannot be used in rules".into());
                    rules
                }
            },
            None => rules,
        };
        let repository = workspace::repository(workspace);
        Self {
            rules: resolve_linked_rules(rules, workspace, &settings.home),
            problem,
            repository,
            key_folders: key_folders_and_links(&settings.home),
            programs: Arc::new(shared.components().tools.program_search(&call_context.session_context)),
        }
    }

    /// The session's own grant that lets exactly this command run outside the sandbox. A rule in a file
    /// is never such a grant. The verdict decides separately whether the command may run at all.
    pub fn unsandboxed_grant(&self, call_context: &CallContext, prepared: &PreparedCall) -> Option<String> {
        let Subject::Bash { command, .. } = &prepared.subject else { return None };
        let grant = unsandboxed_grant(command).filter(|_| self.problem.is_none())?;
        call_context.rules.allow.contains(&grant).then_some(grant)
    }

    /// Returns a copy of the rules with one more grant.
    pub fn with_added_grant(&self, grant: &Rule) -> Self {
        let mut rules = (*self.rules).clone();
        rules.allow.push(grant.clone());
        Self { rules: Arc::new(rules), ..self.clone() }
    }

    /// The session context of a call, with the paths that the current rules deny, or ask before reading.
    pub fn session_context(
        &self,
        settings: &Settings,
        blobs: Arc<dyn Blobs>,
        call_context: &CallContext,
    ) -> SessionContext {
        let (rules, home) = (Arc::clone(&self.rules), settings.home.clone());
        let (workspace, mode) = (call_context.session_context.workspace.clone(), call_context.mode);
        let safe_mode = call_context.safe_mode;
        let unreadable = UnreadablePaths::new(move |tool, path| {
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
                key_folders: &[],
                file_facts: &FileFacts::default(),
            };
            is_unreadable(&policy, tool, path)
        });
        SessionContext {
            unreadable,
            blobs: Some(blobs),
            ..SessionContext::clone(&call_context.session_context)
        }
    }

    /// Judges a call by these rules. For a command it inspects the files that the command would read, so
    /// it blocks on the disk.
    pub fn verdict(
        &self,
        components: &Components,
        call_context: &CallContext,
        tool: &str,
        prepared: &PreparedCall,
    ) -> Verdict {
        let settings = &components.settings;
        // If the configuration no longer allows `bypass`, running sessions lose this mode, too.
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
            key_folders: &self.key_folders,
            file_facts: &FileFacts::default(),
        };
        let reads = file_reads(&policy, &prepared.subject);
        let session_context = &call_context.session_context;
        let file_facts = components.tools.inspect_reads(reads, session_context, prepared.sandbox);
        let policy = Policy { file_facts: &file_facts, ..policy };
        let verdict = judge(&policy, tool, &prepared.subject);
        let verdict = match workspace_program(&verdict, &self.programs) {
            Some(reason) => {
                let strict = judge(&Policy { safe_commands: false, ..policy }, tool, &prepared.subject);
                Verdict { verdict: VerdictKind::Ask, rule: None, reason, ..strict }
            }
            None => verdict,
        };
        let restrictions = &call_context.restrictions;
        let verdict = restrict(verdict, &policy, restrictions, tool, &prepared.subject);
        match &self.problem {
            Some(problem) if verdict.verdict != VerdictKind::Allow && verdict.rule.is_none() => {
                Verdict { reason: problem.clone(), ..verdict }
            }
            _ => verdict,
        }
    }
}

/// Programs of the shell itself, which no search path changes.
const BUILTINS: &[&str] =
    &["echo", "printf", "test", "[", "pwd", "cd", "true", "false", ":", "command", "type"];

/// Why an allowed command needs a request nevertheless: a part that passes as read-only, without a rule, would start a
/// program that lies in the workspace. Everything that can write there decides what the program does.
fn workspace_program(verdict: &Verdict, programs: &ProgramSearch) -> Option<String> {
    if verdict.verdict != VerdictKind::Allow {
        return None;
    }
    let free = verdict.parts.iter().filter(|part| part.rule.is_none());
    let name = free.into_iter().find_map(|part| {
        let first = part.words.first().map(String::as_str).filter(|first| !BUILTINS.contains(first));
        if let Some(first) = first.filter(|first| programs.is_in_workspace(first)) {
            return Some(first.to_owned());
        }
        // Programs of wrappers and substitutions, also with quotes inside of their names.
        let bare = part.command.replace(['"', '\'', '\\'], "");
        let words = [part.command.as_str(), bare.as_str()].into_iter().flat_map(|text| {
            text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+')))
                .map(str::to_owned)
        });
        let words = words.chain(part.words.iter().cloned());
        words
            .filter(|word| !word.is_empty() && !BUILTINS.contains(&word.as_str()))
            .find(|word| programs.may_be_in_workspace(word))
    })?;
    Some(format!("{name} is a program inside the workspace, by PATH"))
}

/// Adds the deny and ask rules for the targets of existing links. Reads the disk.
pub(super) fn resolve_linked_rules(rules: Arc<Rules>, workspace: &Path, home: &Path) -> Arc<Rules> {
    let resolved_rules = rules.with_resolved_links(workspace, home, &resolve_existing);
    if resolved_rules == Rules::default() {
        return rules;
    }
    let mut all = (*rules).clone();
    append_rules(&mut all, &resolved_rules);
    Arc::new(all)
}

/// Adds deny and ask rules for a worktree: relative ones hold in the base folder, too, because its files can be read from
/// the worktree; those of paths of the base's repository hold for the same paths of the worktree. `None` if a rule has
/// no form for the base folder.
fn rules_in_worktree(rules: &Rules, workspace: &Path, home: &Path, base: &WorktreeBase) -> Option<Rules> {
    let mut all = rules.clone();
    append_rules(&mut all, &rules.relative_at(&base.folder)?);
    let moved = all.with_resolved_links(workspace, home, &|path| {
        path.starts_with(&base.repository).then(|| base.counterpart(path))
    });
    append_rules(&mut all, &moved);
    Some(all)
}

/// The folders with keys in the home folder, each also by its path with links resolved. Reads the disk.
fn key_folders_and_links(home: &Path) -> Arc<[PathBuf]> {
    let real_home = resolve_existing(home).unwrap_or_else(|| home.to_owned());
    let mut folders = [judge::key_folders(home), judge::key_folders(&real_home)].concat();
    folders.extend(folders.clone().iter().filter_map(|folder| resolve_existing(folder)));
    folders.into()
}

/// Resolves the links of a path, as far as the path exists.
fn resolve_existing(path: &Path) -> Option<PathBuf> {
    let there = |above: &Path| Some(above.canonicalize().ok()?.join(path.strip_prefix(above).ok()?));
    path.ancestors().find_map(there)
}

/// The rules of a project's slash command, if the folder is trusted in this state.
async fn trusted_command_rules(shared: &Shared, call_context: &CallContext, digest: &str) -> Vec<Rule> {
    let rules = &call_context.rules_that_need_trust;
    let workspace = &call_context.session_context.workspace;
    if rules.is_empty() || !trust::is_trusted(shared, workspace, digest).await.unwrap_or(false) {
        return Vec::new();
    }
    rules.iter().filter_map(|rule| Rule::stored(rule).ok()).collect()
}

/// The session's own rules. They were checked when they were added, so the error is one of a damaged journal.
fn session_rules(own: &SessionRules) -> (Rules, Option<String>) {
    let mut problem = None;
    let mut restricting = |rules: &[String]| -> Vec<Rule> {
        let parsed = rules.iter().map(|rule| Rule::stored(rule));
        parsed.filter_map(|rule| rule.map_err(|error| problem = Some(error.to_string())).ok()).collect()
    };
    let (ask, deny) = (restricting(&own.ask), restricting(&own.deny));
    let allow = own.allow.iter().filter_map(|rule| Rule::stored(rule).ok()).collect();
    (Rules { allow, ask, deny }, problem)
}

/// The rules of the user's files, and the error of one of them, if any. Those of a worktree's base folder hold as well.
fn read_rule_files(
    shared: &Shared,
    workspace: &Path,
    base: Option<&WorktreeBase>,
) -> (Rules, Option<String>) {
    let (mut rules, mut problem) = (Rules::default(), None);
    let of_base = base.map(|base| PolicyScope::Workspace(&base.folder));
    for place in [PolicyScope::User, PolicyScope::Workspace(workspace)].into_iter().chain(of_base) {
        match shared.policies.read(place) {
            Ok(policy) => append_rules(&mut rules, &policy.rules),
            Err(error) => problem = Some(error.to_string()),
        }
    }
    (rules, problem)
}

/// Prepares the verdict of a call. Blocks on the disk. If a grant lets the command run outside the sandbox, the call is
/// judged and reported as unsandboxed.
pub(super) fn judge_call(
    effective: &EffectiveRules,
    components: &Components,
    call_context: &CallContext,
    tool: &str,
    mut prepared: PreparedCall,
) -> (PreparedCall, Verdict) {
    let settings = &components.settings;
    let is_confined = prepared.sandbox.is_some_and(|it| it.level >= 2);
    let may_leave = is_confined
        && settings.engine.offer_unsandboxed_retry.applies_to(call_context.session_context.unattended);
    let grant = effective.unsandboxed_grant(call_context, &prepared).filter(|_| may_leave);
    if grant.is_some() {
        prepared.sandbox = Some(Confinement::UNSANDBOXED);
    }
    let verdict = effective.verdict(components, call_context, tool, &prepared);
    if let Subject::Bash { background: false, .. } = prepared.subject {
        prepared.read_only = verdict.read_only;
    }
    let verdict = match grant {
        Some(grant) => verdict_unsandboxed(verdict, &grant),
        None => verdict,
    };
    (prepared, verdict)
}

/// The verdict of a command that a grant lets run outside the sandbox. The verdict names the grant or
/// the missing sandbox.
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

#[cfg(test)]
mod tests {
    use super::key_folders_and_links;

    #[test]
    fn key_folders_include_targets_of_links() {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path().canonicalize().expect("there");
        for folder in ["real", "keys"] {
            std::fs::create_dir(dir.join(folder)).expect("made");
        }
        std::os::unix::fs::symlink(dir.join("real"), dir.join("home")).expect("linked");
        std::os::unix::fs::symlink(dir.join("keys"), dir.join("real/.ssh")).expect("linked");
        let folders = key_folders_and_links(&dir.join("home"));
        for expected in ["home/.ssh", "real/.ssh", "keys", "home/.gnupg", "real/.gnupg"] {
            assert!(folders.contains(&dir.join(expected)), "{expected}: {folders:?}");
        }
    }
}
