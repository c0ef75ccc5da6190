//! Everything that restricts calls in a folder, and the texts that could not be read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::error::SessionError;
use crate::registry::Registry;
use crate::registry::mcp::McpOwner;
use crate::{agents, hooks, trust};
use project::workspace;
use types::permission::RuleKind;
use types::restriction::{Restriction, RestrictionKind, Restrictions};

impl Registry {
    /// The restrictions of a folder: rules, hooks, agents and servers.
    pub async fn restrictions(&self, cwd: &str) -> Result<Restrictions, SessionError> {
        let cwd = self.folder(cwd).await?;
        let folder = PathBuf::from(&cwd);
        let mut found = Restrictions { cwd, ..Restrictions::default() };
        self.add_rules(&mut found).await?;
        self.add_project_rules(&folder, &mut found).await;
        self.add_hooks(&folder, &mut found).await;
        self.add_agents(&folder, &mut found).await?;
        self.add_servers(&folder, &mut found).await?;
        Ok(found)
    }

    async fn add_rules(&self, found: &mut Restrictions) -> Result<(), SessionError> {
        let (rules, problems) = self.rules(None, Some(&found.cwd)).await?;
        for rule in rules.into_iter().filter(|rule| rule.kind != RuleKind::Allow) {
            let text = format!("{} {}", rule.kind.name(), rule.rule);
            match rule.note {
                None => found.in_force.push(restriction(RestrictionKind::Rule, text, rule.file)),
                Some(note) => {
                    found.unread.push(restriction(
                        RestrictionKind::Rule,
                        format!("{text}: {note}"),
                        rule.file,
                    ));
                }
            }
        }
        found.unread.extend(problems.into_iter().map(|text| restriction(RestrictionKind::Rule, text, None)));
        Ok(())
    }

    /// The deny and ask rules of the project's own files.
    async fn add_project_rules(&self, folder: &Path, found: &mut Restrictions) {
        let (shared, folder, runtime) =
            (Arc::clone(&self.inner.shared), folder.to_owned(), Handle::current());
        let read = tokio::task::spawn_blocking(move || {
            let folders = shared.project_folders(&folder);
            let inventory = workspace::scan(&folders);
            let files: Vec<(String, Vec<String>)> = inventory
                .settings
                .iter()
                .map(|it| {
                    let deny = it.project.deny.iter().map(|rule| format!("deny {rule}"));
                    let ask = it.project.ask.iter().map(|rule| format!("ask {rule}"));
                    (it.folder.join(&it.name).display().to_string(), deny.chain(ask).collect())
                })
                .collect();
            let (_, problem) = runtime.block_on(trust::rules(&shared, &folders, inventory));
            (files, problem)
        });
        let Ok((files, _)) = read.await else { return };
        for (file, rules) in files {
            found.in_force.extend(
                rules.into_iter().map(|text| restriction(RestrictionKind::Rule, text, Some(file.clone()))),
            );
        }
    }

    async fn add_hooks(&self, folder: &Path, found: &mut Restrictions) {
        let (shared, folder, runtime) =
            (Arc::clone(&self.inner.shared), folder.to_owned(), Handle::current());
        let read = tokio::task::spawn_blocking(move || hooks::in_force(&shared, &folder, &runtime));
        let Ok(file) = read.await else { return };
        let line = |line: usize| u32::try_from(line).ok().filter(|line| *line > 0);
        found.in_force.extend(file.hooks.iter().map(|hook| Restriction {
            kind: RestrictionKind::Hook,
            text: format!("hook {} {}: {}", hook.event.name(), hook.matcher(), hook.command),
            file: Some(hook.file.display().to_string()).filter(|file| !file.is_empty()),
            line: line(hook.line),
        }));
        found.unread.extend(file.problems.into_iter().map(|problem| Restriction {
            kind: RestrictionKind::Hook,
            file: Some(problem.file.display().to_string()),
            line: line(problem.line),
            text: problem.reason,
        }));
    }

    async fn add_agents(&self, folder: &Path, found: &mut Restrictions) -> Result<(), SessionError> {
        let list = agents::load(&self.inner.shared, folder).await?;
        for agent in list.agents.into_iter().filter(|agent| agent.path.is_some()) {
            let file = agent.path.as_ref().map(|path| path.display().to_string());
            let limits = [
                agent.tools.map(|tools| format!("has only {}", tools.join(", "))),
                (!agent.denied_tools.is_empty())
                    .then(|| format!("never has {}", agent.denied_tools.join(", "))),
                agent.mode.map(|mode| format!("works at most in mode {}", mode.name())),
                agent.max_turns.map(|turns| format!("ends after {turns} model calls")),
            ];
            let limits: Vec<String> = limits.into_iter().flatten().collect();
            if !limits.is_empty() {
                let text = format!("agent {} {}", agent.name, limits.join(", "));
                found.in_force.push(restriction(RestrictionKind::Agent, text, file));
            }
        }
        found.unread.extend(
            list.diagnostics.into_iter().map(|it| {
                restriction(RestrictionKind::Agent, it.message, Some(it.path.display().to_string()))
            }),
        );
        Ok(())
    }

    async fn add_servers(&self, folder: &Path, found: &mut Restrictions) -> Result<(), SessionError> {
        let place = McpOwner::of_folder(&folder.to_string_lossy());
        let configured = self.configured(&place).await?.configured;
        for (name, server) in configured.servers {
            match server.config {
                Ok(config) => {
                    let of_running = self.inner.shared.mcp.unmatched_entries(&name, folder);
                    let unread = if of_running.is_empty() { config.odd_entries(&name) } else { of_running };
                    let unread = unread.into_iter().map(|note| format!("server {name}: {note}"));
                    found.unread.extend(unread.map(|text| restriction(RestrictionKind::Server, text, None)));
                    let limits = [
                        config.allow_tools.map(|tools| match tools.as_slice() {
                            [] => "offers no tool".to_owned(),
                            tools => format!("offers only {}", tools.join(", ")),
                        }),
                        (!config.deny_tools.is_empty())
                            .then(|| format!("never offers {}", config.deny_tools.join(", "))),
                    ];
                    let limits: Vec<String> = limits.into_iter().flatten().collect();
                    if !limits.is_empty() {
                        let text = format!("server {name} {}", limits.join(", "));
                        found.in_force.push(restriction(RestrictionKind::Server, text, None));
                    }
                }
                Err(problem) => {
                    let text = format!("server {name}: {problem}");
                    found.unread.push(restriction(RestrictionKind::Server, text, None));
                }
            }
        }
        found.unread.extend(
            configured
                .problems
                .into_iter()
                .map(|(file, problem)| restriction(RestrictionKind::Server, problem, Some(file))),
        );
        Ok(())
    }
}

fn restriction(kind: RestrictionKind, text: String, file: Option<String>) -> Restriction {
    Restriction { kind, text, file, line: None }
}
