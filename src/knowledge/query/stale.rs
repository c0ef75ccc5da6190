//! Compares the found files with the workspace, which may have another branch since they were indexed.

use std::collections::{BTreeSet, HashSet};

use super::allowed::paths_in;
use super::context::Selection;
use crate::traits::{FileSource, IndexReader};
use crate::types::KnowledgeError;

/// Number of files that a warning names.
const MAX_NAMED_FILES: usize = 5;

/// The found files that differ from the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StaleFiles {
    /// Files that do not exist any more.
    pub gone: Vec<String>,
    /// Files with another time or size.
    pub changed: Vec<String>,
}

impl StaleFiles {
    /// The warnings for the caller.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |files: &[String], what: &str| {
            let mut names = files.iter().take(MAX_NAMED_FILES).cloned().collect::<Vec<_>>().join(", ");
            if files.len() > MAX_NAMED_FILES {
                names.push_str(&format!(" and {} more", files.len() - MAX_NAMED_FILES));
            }
            (!files.is_empty()).then(|| format!("{what}: {names}; index again (knowledge.index)"))
        };
        let gone = warning(&self.gone, "these files are gone, and their results were left out");
        let changed =
            warning(&self.changed, "these files changed since they were indexed, so lines may differ");
        gone.into_iter().chain(changed).collect()
    }
}

/// Removes the results that name a file which does not exist any more. Blocks on the index and the workspace.
pub(super) fn remove_gone(
    reader: &dyn IndexReader,
    selection: &mut Selection,
    workspace: &dyn FileSource,
) -> Result<StaleFiles, KnowledgeError> {
    let mut names: BTreeSet<&str> =
        selection.chunks.iter().filter_map(|chunk| chunk.path.as_deref()).collect();
    names.extend(selection.entities.iter().flat_map(|entity| paths_in(&entity.name)));
    let ends = selection.relations.iter().flat_map(|edge| [&edge.relation.source, &edge.relation.target]);
    names.extend(ends.flat_map(|name| paths_in(name)));
    let paths: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let mut stale = StaleFiles::default();
    for indexed in reader.files(&paths)? {
        match workspace.find(&indexed.path) {
            None => stale.gone.push(indexed.path),
            Some(file) if file != indexed => stale.changed.push(indexed.path),
            Some(_) => {}
        }
    }
    if !stale.gone.is_empty() {
        let gone: HashSet<&str> = stale.gone.iter().map(String::as_str).collect();
        let is_left = |name: &str| paths_in(name).all(|path| !gone.contains(path));
        selection.tokens = None;
        selection.chunks.retain(|chunk| chunk.path.as_deref().is_none_or(|path| !gone.contains(path)));
        selection.entities.retain(|entity| is_left(&entity.name));
        selection.relations.retain(|edge| is_left(&edge.relation.source) && is_left(&edge.relation.target));
    }
    Ok(stale)
}
