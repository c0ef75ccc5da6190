//! Hidden paths: configured ones, and secrets at their current and first locations.

use std::path::{Path, PathBuf};

use super::is_within;
use super::secrets::{
    self, HomeDir, Located, MACHINE_SECRETS, PACKAGE_CACHES, WritableRoots, shared_sockets,
};
use crate::context::ToolContext;
use crate::shell::sandbox::layout::first_seen::FirstSeen;
use crate::shell::sandbox::layout::unreadable::unsearchable_ancestor;

/// Existing files and folders that are hidden, without duplicates. Blocks on the disk.
pub(super) fn hidden_paths(
    context: &ToolContext,
    first_seen: &FirstSeen,
    at_home: Option<&HomeDir<'_>>,
    reach: &WritableRoots<'_>,
) -> Vec<PathBuf> {
    let home = &context.places.home;
    let real_home = at_home.map_or(home.as_path(), HomeDir::real);
    let (memory, chosen_folders) = (first_seen, reach.chosen_folders);
    let mut configured_paths = Vec::new();
    for path in &context.settings.sandbox.hidden {
        let now = reach.locate(path.clone(), real_home);
        configured_paths.extend(memory.moved_target(path, now.found_path()).map(Located::Found));
        configured_paths.push(now);
    }
    let elsewhere: Vec<PathBuf> = secrets::relocated_credentials()
        .into_iter()
        .chain(shared_sockets().filter(|path| !is_within(path, chosen_folders)))
        .chain(MACHINE_SECRETS.iter().map(PathBuf::from))
        .collect();
    let sights = |reach: &WritableRoots<'_>| {
        let mut all = match at_home {
            Some(at_home) => at_home.credentials(reach),
            None => unsearchable_ancestor(home).map(Located::Unsearchable).into_iter().collect(),
        };
        all.extend(elsewhere.iter().map(|path| reach.locate(path.clone(), real_home)));
        all
    };
    let credentials = sights(reach);
    let there: Vec<PathBuf> =
        credentials.iter().filter_map(Located::found_path).map(Path::to_owned).collect();
    let before = memory.credentials(&there, || {
        // A cache folder that this session works in is hidden for other sessions.
        let all_caches = at_home.map_or_else(Vec::new, |at_home| at_home.below(PACKAGE_CACHES));
        sights(&WritableRoots { chosen_folders: &[], caches: &all_caches, of_all: true, ..*reach })
    });
    // Workspace folders (except a whole home folder) and folders that the session needs stay visible.
    let is_chosen = |path: &Path| {
        chosen_folders.iter().any(|folder| {
            path.starts_with(folder) && !real_home.starts_with(folder) || folder.starts_with(path)
        })
    };
    let is_needed = |path: &PathBuf| path.starts_with(reach.temp) || reach.temp.starts_with(path);
    let before = before.into_iter().filter(|path| !is_chosen(path) && !is_needed(path));
    let secrets = credentials.into_iter().filter_map(Located::path_to_hide).chain(before);
    // A secret that the user listed as writable stays visible.
    let secrets = secrets.filter(|path| !chosen_folders.contains(path));
    let mut hidden: Vec<PathBuf> =
        configured_paths.into_iter().filter_map(Located::path_to_hide).chain(secrets).collect();
    hidden.sort();
    hidden.dedup();
    hidden
}
