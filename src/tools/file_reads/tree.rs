//! The files that a search below a folder reads.

use std::path::{Path, PathBuf};

use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ignore::{DirEntry, WalkBuilder};

use super::patterns::may_match;
use super::{Inspection, git_index};
use judge::{LinkUse, NameRule, Obstacle, ObstacleKind, Selection, TreeSearch};

/// Folders of the system with programs and libraries. Links that a search does not follow may lead there.
const SYSTEM_FOLDERS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store"];

impl Inspection<'_> {
    /// Inspects the files that a search below `root` reads; `real` is its path without links.
    pub(super) fn search(
        &mut self,
        root: &Path,
        real: &Path,
        search: &TreeSearch,
        names: NameRule,
    ) -> Result<(), Obstacle> {
        if matches!(search.selection, Selection::Tracked | Selection::Patches) {
            return self.search_tracked(root, real, search, names);
        }
        let Some(walk) = walk(real, search) else {
            return Err(self.obstacle(root, ObstacleKind::Unseen));
        };
        for entry in walk.build() {
            self.count(root)?;
            // What cannot be read now, the command cannot read either.
            let Ok(entry) = entry else { continue };
            if entry.depth() == 0 {
                continue;
            }
            self.inspect_entry(&entry, search, names)?;
        }
        Ok(())
    }

    fn inspect_entry(
        &mut self,
        entry: &DirEntry,
        search: &TreeSearch,
        names: NameRule,
    ) -> Result<(), Obstacle> {
        let path = entry.path();
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !entry.path_is_symlink() {
            return match is_folder {
                true => self.check_name(path, names),
                false if is_included(path, search) => {
                    self.check_name(path, names)?;
                    // A search itself skips pipes and devices below a folder.
                    if search.links == LinkUse::Opened {
                        self.check_ends(path, entry.file_type())?;
                    }
                    // A followed link above it may hide a telling name.
                    let real = match search.links {
                        LinkUse::Followed => path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
                        LinkUse::Skipped | LinkUse::Opened => path.to_path_buf(),
                    };
                    self.check_secret(path, &real)
                }
                false => Ok(()),
            };
        }
        let Ok(target) = path.canonicalize() else { return Ok(()) };
        let is_software = || SYSTEM_FOLDERS.iter().any(|folder| target.starts_with(folder));
        let is_harmless = || search.links == LinkUse::Skipped && is_software();
        if !self.is_inside(&target) && !is_harmless() {
            return Err(self.obstacle(path, ObstacleKind::Outside));
        }
        if search.links == LinkUse::Skipped || target.is_dir() || !is_included(path, search) {
            return Ok(());
        }
        self.check_name(path, names)?;
        self.check_ends(path, target.metadata().map(|meta| meta.file_type()).ok())?;
        self.check_secret(path, &target)
    }

    /// Inspects all files in the index of the workspace's repository, which a command shows that names a revision
    /// or a deleted path.
    pub(super) fn search_all_tracked(&mut self, path: &Path, search: &TreeSearch) -> Result<(), Obstacle> {
        match self.files.roots.iter().find(|root| path.starts_with(root)) {
            Some(root) => self.search_tracked(root, root, search, NameRule::Any),
            None => Err(self.obstacle(path, ObstacleKind::Unseen)),
        }
    }

    /// Inspects the files in git's index.
    fn search_tracked(
        &mut self,
        root: &Path,
        real: &Path,
        search: &TreeSearch,
        names: NameRule,
    ) -> Result<(), Obstacle> {
        let Some(top) = real.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()) else {
            // git refuses.
            return Ok(());
        };
        let Some(tracked) = git_index::tracked_files(&top.join(".git")) else {
            return Err(self.obstacle(root, ObstacleKind::Unseen));
        };
        for path in tracked.iter().map(|path| top.join(path)) {
            self.count(root)?;
            if !path.starts_with(real) || !is_included(&path, search) {
                continue;
            }
            let below: Vec<&Path> = path.ancestors().take_while(|above| *above != real).collect();
            below.iter().try_for_each(|part| self.check_name(part, names))?;
            let target = match search.links {
                LinkUse::Skipped => path.clone(),
                LinkUse::Opened | LinkUse::Followed => path.canonicalize().unwrap_or_else(|_| path.clone()),
            };
            if !self.is_inside(&target) {
                return Err(self.obstacle(&path, ObstacleKind::Outside));
            }
            if search.links == LinkUse::Opened {
                self.check_ends(&path, target.metadata().map(|meta| meta.file_type()).ok())?;
            }
            self.check_secret(&path, &target)?;
        }
        Ok(())
    }
}

fn is_included(path: &Path, search: &TreeSearch) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    search.includes.is_empty() || search.includes.iter().any(|pattern| may_match(pattern, &name))
}

/// The walk of a search. It finds at least what the search reads; `None` if that is not certain.
fn walk(root: &Path, search: &TreeSearch) -> Option<WalkBuilder> {
    let mut builder = WalkBuilder::new(root);
    // Globs with slashes are relative to the current folder of the search.
    let has_path_glob = search.globs.iter().any(|glob| glob.trim_start_matches("**/").contains('/'));
    let ignores = search.selection == Selection::Unignored && !has_path_glob;
    builder
        .standard_filters(ignores)
        // The user's own ignore file depends on the environment of the command.
        .git_global(false)
        .hidden(!search.hidden && !has_path_glob)
        .follow_links(search.links == LinkUse::Followed)
        .max_depth(search.max_depth);
    if ignores {
        builder.add_custom_ignore_filename(".rgignore");
    }
    if !search.globs.is_empty() && !has_path_glob {
        let mut globs = OverrideBuilder::new(root);
        search.globs.iter().try_for_each(|glob| globs.add(glob).map(|_| ())).ok()?;
        builder.overrides(globs.build().ok()?);
    }
    if !search.types.is_empty() {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        search.types.iter().for_each(|name| {
            types.select(name);
        });
        builder.types(types.build().ok()?);
    }
    let skipped: Vec<String> = search.skipped_folders.clone();
    builder.filter_entry(move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0
            || !is_folder
            || !skipped.iter().any(|own| *own == name) && !is_object_store(entry.path())
    });
    Some(builder)
}

/// git's own objects are compressed, so that no search finds text in them.
fn is_object_store(path: &Path) -> bool {
    let parts: PathBuf = path.components().rev().take(2).collect();
    parts == Path::new("objects/.git")
}
