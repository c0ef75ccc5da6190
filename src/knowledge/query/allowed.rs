//! Removes data that a session must not read.

use std::collections::{HashMap, HashSet};

use crate::query::context::Selection;
use crate::traits::IndexReader;
use crate::types::{ChunkId, KnowledgeError};
use types::knowledge::PairKey;

/// Removes chunks, entities and relations of paths that are not allowed. An entity or relation with several sources
/// is removed if one of them is not allowed, because its description may come from there. Blocks on the index.
pub fn retain_allowed(
    reader: &dyn IndexReader,
    selection: &mut Selection,
    is_allowed: &dyn Fn(&str) -> bool,
) -> Result<(), KnowledgeError> {
    selection.chunks.retain(|chunk| chunk.path.as_deref().is_none_or(is_allowed));
    let mut names: Vec<String> = selection.entities.iter().map(|entity| entity.name.clone()).collect();
    for edge in &selection.relations {
        names.extend([edge.relation.source.clone(), edge.relation.target.clone()]);
    }
    names.sort_unstable();
    names.dedup();
    let pairs: Vec<PairKey> = selection.relations.iter().map(|edge| edge.relation.key()).collect();
    let of_entities = reader.entity_chunks(&names)?;
    let of_relations = reader.relation_chunks(&pairs)?;
    let mut ids: Vec<ChunkId> = of_entities.iter().chain(&of_relations).flatten().cloned().collect();
    ids.sort_unstable();
    ids.dedup();
    let paths: HashMap<ChunkId, bool> = reader
        .chunks(&ids)?
        .into_iter()
        .map(|chunk| (chunk.id.clone(), chunk.path.as_deref().is_none_or(is_allowed)))
        .collect();
    let are_allowed = |chunks: &[ChunkId]| chunks.iter().all(|id| paths.get(id).copied().unwrap_or(true));
    let allowed: HashSet<&String> = names
        .iter()
        .zip(&of_entities)
        .filter(|(name, chunks)| are_allowed(chunks) && paths_in(name).all(is_allowed))
        .map(|(name, _)| name)
        .collect();
    selection.tokens = None;
    selection.entities.retain(|entity| allowed.contains(&entity.name));
    let mut sources = of_relations.iter();
    selection.relations.retain(|edge| {
        let is_source_allowed = sources.next().is_none_or(|chunks| are_allowed(chunks));
        is_source_allowed
            && allowed.contains(&edge.relation.source)
            && allowed.contains(&edge.relation.target)
    });
    Ok(())
}

/// Paths that a name may contain: a file is named by its path, and a symbol by `NAME (PATH)`.
pub(super) fn paths_in(name: &str) -> impl Iterator<Item = &str> {
    let of_symbol = name.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")).map(|(_, path)| path);
    [Some(name), of_symbol].into_iter().flatten()
}
