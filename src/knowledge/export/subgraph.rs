//! Entities around a start, and the relations between them.

use std::collections::{HashMap, HashSet};

use crate::traits::IndexReader;
use crate::types::{Entity, KnowledgeError};
use types::knowledge::Relation;

/// Maximum number of relations that are read for one step: a hub may have tens of thousands.
const MAX_EDGES_PER_NODE: usize = 50;

/// A part of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubGraph {
    /// Entities, the start first, then by distance and degree.
    pub nodes: Vec<Entity>,
    /// Relations between these entities.
    pub edges: Vec<Relation>,
    /// Whether there are more entities within the depth.
    pub truncated: bool,
}

/// The entities at most `depth` steps from `start`, at most `max_nodes`; those with the most relations first.
pub fn around(
    reader: &dyn IndexReader,
    start: Vec<Entity>,
    depth: u32,
    max_nodes: usize,
) -> Result<SubGraph, KnowledgeError> {
    let mut graph = SubGraph { nodes: start, ..SubGraph::default() };
    graph.truncated = graph.nodes.len() > max_nodes;
    graph.nodes.truncate(max_nodes);
    let mut known: HashSet<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
    let mut border: Vec<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
    for _ in 0..depth {
        let mut per_node: HashMap<&str, usize> = HashMap::new();
        let edges = reader.edges_of(&border)?;
        let mut next: Vec<String> = Vec::new();
        for edge in &edges {
            let (source, target) = (edge.relation.source.as_str(), edge.relation.target.as_str());
            for (inner, outer) in [(source, target), (target, source)] {
                let count = per_node.entry(inner).or_default();
                if known.contains(inner) && !known.contains(outer) && *count < MAX_EDGES_PER_NODE {
                    *count += 1;
                    next.push(outer.to_owned());
                }
            }
        }
        next.sort_unstable();
        next.dedup();
        let mut found = reader.entities(&next)?;
        found.sort_by(|a, b| b.degree.cmp(&a.degree).then_with(|| a.name.cmp(&b.name)));
        let room = max_nodes - graph.nodes.len();
        graph.truncated |= found.len() > room;
        found.truncate(room);
        border = found.iter().map(|node| node.name.clone()).collect();
        known.extend(border.iter().cloned());
        graph.nodes.extend(found);
        if border.is_empty() {
            break;
        }
    }
    graph.edges = between(reader, &graph.nodes)?;
    Ok(graph)
}

/// The relations whose ends are both among these entities.
pub fn between(reader: &dyn IndexReader, nodes: &[Entity]) -> Result<Vec<Relation>, KnowledgeError> {
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let known: HashSet<&str> = names.iter().map(String::as_str).collect();
    let edges = reader.edges_of(&names)?.into_iter().map(|edge| edge.relation);
    Ok(edges
        .filter(|edge| known.contains(edge.source.as_str()) && known.contains(edge.target.as_str()))
        .collect())
}
