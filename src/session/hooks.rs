//! The hooks of a workspace: those of the configuration, of the user's `.claude/settings.json`, and of a trusted
//! project.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::shared::Shared;
use crate::trust::{self, FolderTrust};
use project::folders::ProjectFolders;
use project::hooks::{
    CallTarget, Hook, HookAnswer, HookAnswers, HookEnvironment, HookFile, HookInput, HookProblem,
    HookRunInput, HookSource, read_hook_files, run_hooks,
};
use project::workspace::{self, FolderFiles, ScannedFile};
use tools::{EnvironmentSource, SessionContext};
use types::hook::{HookDecision, HookEvent, HookRun};

/// A project's own hooks.
pub(super) const OWN_FILE: &str = ".agentd/hooks/hooks.toml";
/// Files of a project with hooks.
pub(super) const PROJECT_FILES: [&str; 3] =
    [OWN_FILE, ".claude/settings.json", ".claude/settings.local.json"];
/// The user's file with hooks for all projects, below the home folder.
const USER_FILE: &str = ".claude/settings.json";
/// Maximum bytes of the user's file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The folder for whose hooks a session asks, and the variables of its commands.
#[derive(Clone, Debug)]
pub(super) struct HookPlace {
    pub cwd: PathBuf,
    pub environment: Option<Arc<dyn EnvironmentSource>>,
}

impl From<&SessionContext> for HookPlace {
    fn from(session: &SessionContext) -> Self {
        Self { cwd: session.workspace.clone(), environment: session.environment.clone() }
    }
}

/// The hooks for one event of a session.
pub(super) struct EventHooks {
    hooks: Vec<Hook>,
    /// Entries and files that cannot be used, of all events.
    problems: Vec<HookProblem>,
    environment: HookEnvironment,
}

/// An event with what rules know about it.
pub(super) struct HookedEvent<'e> {
    pub input: HookInput,
    /// The call, if the event is about one.
    pub target: Option<CallTarget<'e>>,
    /// The files of a patch.
    pub files: Vec<(HookInput, CallTarget<'e>)>,
}

impl From<HookInput> for HookedEvent<'_> {
    fn from(input: HookInput) -> Self {
        Self { input, target: None, files: Vec::new() }
    }
}

/// The hooks that match an event, ready to run.
pub(super) struct MatchingHooks {
    awaited: Vec<HookRunInput>,
    /// Hooks whose end nothing waits for.
    background: Vec<HookRunInput>,
    environment: HookEnvironment,
    /// The answers for entries that cannot be used.
    problems: Vec<(HookRun, HookAnswer)>,
}

impl EventHooks {
    /// Whether there is nothing to run and nothing to report.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.problems.is_empty()
    }

    /// The entries and files that cannot be used, for users.
    pub fn problems(&self) -> Vec<String> {
        self.problems.iter().map(ToString::to_string).collect()
    }

    pub fn matching(&self, event: &HookedEvent<'_>) -> MatchingHooks {
        let HookedEvent { input, target, files } = event;
        let selected =
            self.hooks.iter().filter_map(|hook| HookRunInput::select(hook, input, target.as_ref(), files));
        let (background, awaited) = selected.partition(|run| run.hook.is_async);
        let is_call = input.event == HookEvent::PreToolUse;
        let on_failure = self.environment.on_failure;
        let tool = input.name().filter(|_| is_call);
        let asks =
            |problem: &&HookProblem| tool.is_some_and(|tool| problem.asks(on_failure, tool, target.as_ref()));
        let answer = |problem: &HookProblem| {
            let (decision, reason) = (Some(HookDecision::Ask), Some(problem.to_string()));
            let run =
                HookRun { decision, reason: reason.clone(), ..HookRun::new(input.event, &problem.place()) };
            (run, HookAnswer { decision, reason, is_unreadable: true, ..HookAnswer::default() })
        };
        MatchingHooks {
            awaited,
            background,
            environment: self.environment.clone(),
            problems: self.problems.iter().filter(asks).map(answer).collect(),
        }
    }
}

impl MatchingHooks {
    /// Runs the hooks. `report` gets the runs of those that nothing waits for.
    pub async fn run<F, R>(self, shared: &Shared, report: F) -> HookAnswers
    where
        F: FnOnce(HookAnswers) -> R + Send + 'static,
        R: Future<Output = ()> + Send,
    {
        let Self { awaited, background, environment, problems } = self;
        if !background.is_empty() {
            let environment = environment.clone();
            shared.background_hooks.spawn(async move {
                report(run_hooks(&background, &environment).await).await;
            });
        }
        let mut answers = run_hooks(&awaited, &environment).await;
        for (run, answer) in problems {
            answers.add(run, answer);
        }
        answers
    }
}

/// Loads the hooks for an event in a folder. The files are read again for each use. If there are no
/// hook files, only the check for them is needed.
pub(super) async fn load(shared: &Arc<Shared>, place: HookPlace, event: HookEvent) -> EventHooks {
    let (shared, runtime) = (Arc::clone(shared), Handle::current());
    let read = tokio::task::spawn_blocking(move || load_blocking(&shared, &place, event, &runtime));
    read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Like [`load`], for callers on a blocking thread.
pub(super) fn load_blocking(
    shared: &Shared,
    place: &HookPlace,
    event: HookEvent,
    runtime: &Handle,
) -> EventHooks {
    let HookPlace { cwd, environment } = place;
    let components = shared.components();
    let HookFile { mut hooks, problems } = in_force(shared, cwd, runtime);
    hooks.retain(|hook| hook.event == event);
    let mut variables =
        if hooks.is_empty() { Vec::new() } else { components.tools.environment(environment.as_deref()) };
    if event == HookEvent::PreToolUse {
        variables.iter_mut().filter(|(name, _)| name == "PATH").for_each(|(_, path)| keep_outside(path, cwd));
    }
    let on_failure = components.settings.hook_failures;
    let project_dir = shared.project_folders(cwd).root().to_owned();
    EventHooks {
        hooks,
        problems,
        environment: HookEnvironment { cwd: cwd.clone(), project_dir, variables, on_failure },
    }
}

/// Removes the folders of the workspace from a search path. The model may write there, and a program that it put there
/// must not decide about its calls.
fn keep_outside(path: &mut OsString, workspace: &Path) {
    let is_outside = |folder: &PathBuf| {
        let real = folder.canonicalize();
        folder.is_absolute()
            && !folder.starts_with(workspace)
            && !real.is_ok_and(|real| real.starts_with(workspace))
    };
    let outside: Vec<PathBuf> = std::env::split_paths(path).filter(is_outside).collect();
    // The parts come from such a list, so that they can be joined again.
    *path = std::env::join_paths(outside).unwrap_or_default();
}

/// Every hook that is in force in a folder, and every entry that cannot be used. Blocks on the disk.
pub(super) fn in_force(shared: &Shared, cwd: &Path, runtime: &Handle) -> HookFile {
    let settings = &shared.components().settings;
    let mut all = HookFile { hooks: settings.hooks.to_vec(), problems: Vec::new() };
    let user = read_user_file(&settings.home.join(USER_FILE));
    all.append(read_hook_files(user));
    all.append(project_hooks(shared, cwd, runtime));
    all
}

/// The hooks of the files of a trusted project, those of the nearest folder first. If trust ended because a file changed,
/// no hook runs, and the calls that the hooks are for ask.
fn project_hooks(shared: &Shared, cwd: &Path, runtime: &Handle) -> HookFile {
    let folders = shared.project_folders(cwd);
    let loaded = &shared.workspaces;
    if !folders.may_have(&PROJECT_FILES) && !loaded.has_hooks(cwd) {
        return HookFile::default();
    }
    // Do not wait for another blocking thread here. If no further thread can start, the wait would never end.
    let (inventory, files) = workspace::scan_with_files(&folders, &PROJECT_FILES);
    match runtime.block_on(trust::folder_trust(shared, cwd, &inventory.digest)) {
        Ok(FolderTrust::Trusted) => {
            let found = read_project_files(&folders, &files);
            loaded.set_hooks(cwd, &found.hooks);
            found
        }
        Ok(FolderTrust::Changed) => read_project_files(&folders, &files).suspended(loaded.hooks(cwd)),
        // A check of the workspace asks the user for trust.
        Ok(FolderTrust::Untrusted) => HookFile::default(),
        Err(error) => {
            tracing::warn!(%error, "could not read whether a folder is trusted; every call asks");
            let reason = "could not read whether the folder is trusted; see the daemon's log";
            HookFile::unreadable(Path::new(PROJECT_FILES[0]), reason)
        }
    }
}

fn read_project_files(folders: &ProjectFolders, files: &[FolderFiles]) -> HookFile {
    let mut all = HookFile::default();
    for folder in folders.nearest_first() {
        let read: Vec<&ScannedFile> =
            files.iter().filter(|it| it.folder == *folder).flat_map(|it| &it.files).collect();
        let is_left_out = |file: &&&str| {
            folder.join(file).symlink_metadata().is_ok()
                && !read.iter().any(|(path, _)| path == Path::new(file))
        };
        let left_out = PROJECT_FILES.iter().filter(is_left_out).map(|file| {
            let linked = "a link leads to it, and a link in a project is not followed";
            (PathBuf::from(file), Err(linked.to_owned()))
        });
        let sources = read.iter().map(|file| (*file).clone()).chain(left_out);
        let mut of_folder = read_hook_files(
            sources.map(|(path, content)| (PathBuf::from(folders.display_name(folder, &path)), content)),
        );
        for hook in &mut of_folder.hooks {
            hook.project_dir = Some(folder.to_owned());
        }
        all.append(of_folder);
    }
    all
}

/// The user's file, if it exists.
fn read_user_file(path: &Path) -> Option<HookSource> {
    let content = match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Ok(meta) if meta.len() > MAX_FILE_BYTES => Err(format!("it has more than {MAX_FILE_BYTES} bytes")),
        Ok(meta) if !meta.is_file() => Err("it is not a file".to_owned()),
        Ok(_) => std::fs::read(path).map_err(|error| format!("could not read it: {error}")),
        Err(error) => Err(format!("could not read it: {error}")),
    };
    Some((path.to_owned(), content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_path_of_deciding_hooks_leaves_out_workspace() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        let workspace = root.join("ws");
        std::fs::create_dir_all(workspace.join("bin")).expect("made");
        std::os::unix::fs::symlink(workspace.join("bin"), root.join("linked")).expect("linked");
        let (ws, top) = (workspace.display(), root.display());
        let mut path: OsString =
            format!("{ws}/bin:/usr/bin:.::node_modules/.bin:{top}/linked:/bin:{ws}").into();
        keep_outside(&mut path, &workspace);
        assert_eq!(path, "/usr/bin:/bin");
    }
}
