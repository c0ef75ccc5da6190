//! The hooks of a workspace: those of the configuration, of the user's `.claude/settings.json`, and of all folders of a
//! trusted project.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::shared::Shared;
use crate::trust;
use project::hooks::{Hook, HookAnswers, HookEnvironment, HookInput, claude_hooks, own_hooks, run_hooks};
use project::workspace::{self, FolderFiles};
use types::hook::{HookEvent, HookRun};

/// A project's own hooks.
pub(super) const OWN_FILE: &str = ".agentd/hooks/hooks.toml";
/// Files of a project with hooks.
pub(super) const PROJECT_FILES: [&str; 3] =
    [OWN_FILE, ".claude/settings.json", ".claude/settings.local.json"];
/// The user's file with hooks for all projects, below the home folder.
const USER_FILE: &str = ".claude/settings.json";
/// Maximum bytes of the user's file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The hooks for one event of a session.
pub(super) struct EventHooks {
    hooks: Vec<Hook>,
    /// Files that cannot be used, with the reason.
    problems: Vec<(PathBuf, String)>,
    environment: HookEnvironment,
}

impl EventHooks {
    /// Whether there is nothing to run and nothing to report.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.problems.is_empty()
    }

    /// Runs the hooks that match this event and its tool.
    pub async fn run(&self, input: &HookInput) -> HookAnswers {
        let hooks: Vec<Hook> = self
            .hooks
            .iter()
            .filter(|hook| {
                let is_for = |tool| hook.is_for(input.event, tool);
                is_for(input.tool.as_deref()) || input.tool_aliases.iter().any(|name| is_for(Some(name)))
            })
            .cloned()
            .collect();
        let mut answers = run_hooks(&hooks, input, &self.environment).await;
        // Report the problems only once in a session.
        if input.event == HookEvent::SessionStart {
            answers.runs.extend(self.problems.iter().map(|(path, problem)| HookRun {
                event: input.event,
                command: path.display().to_string(),
                decision: None,
                reason: None,
                duration_ms: 0,
                error: Some(problem.clone()),
            }));
        }
        answers
    }
}

/// Loads the hooks for an event in a folder. The files are read again for each use. If there are no
/// hook files, only the check for them is needed.
pub(super) async fn load(shared: &Arc<Shared>, cwd: &Path, event: HookEvent) -> EventHooks {
    let (shared, cwd, runtime) = (Arc::clone(shared), cwd.to_owned(), Handle::current());
    let read = tokio::task::spawn_blocking(move || load_blocking(&shared, &cwd, event, &runtime));
    read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Like [`load`], for callers on a blocking thread.
pub(super) fn load_blocking(shared: &Shared, cwd: &Path, event: HookEvent, runtime: &Handle) -> EventHooks {
    let components = shared.components();
    let folders = shared.project_folders(cwd);
    let mut found = EventHooks {
        hooks: components.settings.hooks.to_vec(),
        problems: Vec::new(),
        environment: HookEnvironment {
            cwd: cwd.to_owned(),
            project_dir: folders.root().to_owned(),
            variables: Vec::new(),
        },
    };
    if let Some((path, text)) = read_user_file(&components.settings.home.join(USER_FILE)) {
        found.add(path, text.and_then(|text| claude_hooks(&text).map_err(|error| error.0)));
    }
    if folders.may_have(&PROJECT_FILES) {
        // Do not wait for another blocking thread here. If no further thread can start, the wait would never end.
        let (inventory, files) = workspace::scan_with_files(&folders, &PROJECT_FILES);
        match runtime.block_on(trust::is_trusted(shared, cwd, &inventory.digest)) {
            Ok(true) => {
                for FolderFiles { folder, files } in files {
                    for (path, content) in files {
                        let mut hooks = content.and_then(|bytes| parse(&path, &bytes));
                        for hook in hooks.iter_mut().flatten() {
                            hook.project_dir = Some(folder.clone());
                        }
                        found.add(folders.display_name(&folder, &path).into(), hooks);
                    }
                }
            }
            // A check of the workspace asks the user for trust.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "could not read whether a folder is trusted; treating it as not trusted")
            }
        }
    }
    found.hooks.retain(|hook| hook.event == event);
    if !found.hooks.is_empty() {
        found.environment.variables = components.tools.environment();
    }
    found
}

impl EventHooks {
    fn add(&mut self, path: PathBuf, hooks: Result<Vec<Hook>, String>) {
        match hooks {
            Ok(hooks) => self.hooks.extend(hooks),
            Err(problem) => self.problems.push((path, problem)),
        }
    }
}

/// The hooks of a project's file.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Hook>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the content is not UTF-8")?;
    if path != Path::new(OWN_FILE) {
        return claude_hooks(text).map_err(|error| error.0);
    }
    let table: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    // The file may name its table `hooks`, as the configuration does.
    let own = match table.get("hooks") {
        Some(toml::Value::Table(own)) if table.len() == 1 => own,
        _ => &table,
    };
    own_hooks(own).map_err(|error| error.0)
}

/// The user's file, if it exists.
fn read_user_file(path: &Path) -> Option<(PathBuf, Result<String, String>)> {
    let meta = path.metadata().ok()?;
    let text = if meta.len() > MAX_FILE_BYTES {
        Err(format!("it has more than {MAX_FILE_BYTES} bytes"))
    } else {
        std::fs::read_to_string(path).map_err(|error| format!("could not read it: {error}"))
    };
    Some((path.to_owned(), text))
}
