//! Stage 2: find entities, relations and chunks.

use std::collections::HashSet;

use super::fusion::{fuse, round_robin};
use crate::traits::{IndexReader, QueryVector};
use crate::types::{ChunkId, Edge, Entity, KnowledgeError, SearchHit, SearchText};
use types::knowledge::{EntityOrder, Keywords, PairKey, QueryParams, QueryStage};

/// The embedded texts of a query; `None` without an embedder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryVectors {
    /// The query, for chunks.
    pub query: Option<QueryVector>,
    /// Keywords and query, for entities.
    pub entities: Option<QueryVector>,
    /// Themes, for relations.
    pub relations: Option<QueryVector>,
}

/// The weights of the two kinds of search when their results are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusionWeights {
    /// Weight of full-text search.
    pub lexical: f64,
    /// Weight of vector search; 0 turns it off.
    pub dense: f64,
    /// Vectors below this similarity are no results.
    pub min_cosine: f32,
}

impl Default for FusionWeights {
    fn default() -> Self {
        Self { lexical: 1.0, dense: 1.0, min_cosine: 0.2 }
    }
}

/// The results of the search, before any token limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// Entities in their final order.
    pub entities: Vec<Entity>,
    /// Relations in their final order.
    pub relations: Vec<Edge>,
    /// Chunks found by the text of the query.
    pub direct_chunks: Vec<ChunkId>,
}

impl SearchResult {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty() && self.relations.is_empty() && self.direct_chunks.is_empty()
    }
}

/// Searches the parts that the mode selects. Reports each part before it begins. Blocks on the index.
pub fn search(
    reader: &dyn IndexReader,
    params: &QueryParams,
    keywords: &Keywords,
    vectors: &QueryVectors,
    weights: FusionWeights,
    on_stage: &dyn Fn(QueryStage),
) -> Result<SearchResult, KnowledgeError> {
    let mut found = SearchResult::default();
    if params.mode().has_entities() {
        on_stage(QueryStage::RetrievingEntities);
        found.entities = search_entities(reader, params, keywords, vectors, weights)?;
    }
    if params.mode().has_relations() {
        on_stage(QueryStage::RetrievingRelations);
        let themed = search_relations(reader, params, keywords, vectors, weights)?;
        let edges = related_edges(reader, &found.entities)?;
        found.entities =
            merge_relation_ends(reader, std::mem::take(&mut found.entities), &themed, params.top_k())?;
        found.relations = join_relations(themed, edges);
    } else if params.wants_relations() {
        on_stage(QueryStage::RetrievingRelations);
        found.relations = related_edges(reader, &found.entities)?;
    }
    if params.mode().has_direct_chunks() {
        on_stage(QueryStage::RetrievingChunks);
        found.direct_chunks = search_chunks(reader, params, vectors, weights)?;
    }
    Ok(found)
}

/// The search text for entities: all keywords and the question.
fn entity_text(params: &QueryParams, keywords: &Keywords) -> SearchText {
    let all = keywords.high_level.iter().chain(&keywords.low_level);
    SearchText { keywords: all.cloned().collect(), question: params.query.clone() }
}

/// The search text for relations: the themes, or the question if there are none.
fn relation_text(params: &QueryParams, keywords: &Keywords) -> SearchText {
    match keywords.high_level.is_empty() {
        true => params.query.as_str().into(),
        false => SearchText { keywords: keywords.high_level.clone(), question: String::new() },
    }
}

fn keys<K>(hits: Vec<SearchHit<K>>) -> Vec<K> {
    hits.into_iter().map(|hit| hit.key).collect()
}

/// Entities by name and description, then ordered by their degree.
pub fn search_entities(
    reader: &dyn IndexReader,
    params: &QueryParams,
    keywords: &Keywords,
    vectors: &QueryVectors,
    weights: FusionWeights,
) -> Result<Vec<Entity>, KnowledgeError> {
    let lexical = keys(reader.search_entities(&entity_text(params, keywords), params.top_k())?);
    let dense = match &vectors.entities {
        Some(vector) if weights.dense > 0.0 => {
            keys(reader.nearest_entities(vector, params.top_k(), weights.min_cosine)?)
        }
        _ => Vec::new(),
    };
    let names = fuse(&[(&lexical, weights.lexical), (&dense, weights.dense)], params.top_k());
    let mut entities = reader.entities(&names)?;
    if params.entity_order.unwrap_or_default() == EntityOrder::Degree {
        // Stable: ties keep the order of similarity.
        entities.sort_by_key(|entity| std::cmp::Reverse(entity.degree));
    }
    Ok(entities)
}

/// Relations by keywords, ends and description, in the order of the search.
fn search_relations(
    reader: &dyn IndexReader,
    params: &QueryParams,
    keywords: &Keywords,
    vectors: &QueryVectors,
    weights: FusionWeights,
) -> Result<Vec<Edge>, KnowledgeError> {
    let lexical = keys(reader.search_relations(&relation_text(params, keywords), params.top_k())?);
    let dense = match &vectors.relations {
        Some(vector) if weights.dense > 0.0 => {
            keys(reader.nearest_relations(vector, params.top_k(), weights.min_cosine)?)
        }
        _ => Vec::new(),
    };
    let pairs: Vec<PairKey> = fuse(&[(&lexical, weights.lexical), (&dense, weights.dense)], params.top_k());
    reader.relations(&pairs)
}

/// All relations of these entities, each once, by rank and weight.
pub fn related_edges(reader: &dyn IndexReader, entities: &[Entity]) -> Result<Vec<Edge>, KnowledgeError> {
    let names: Vec<String> = entities.iter().map(|entity| entity.name.clone()).collect();
    if names.is_empty() { Ok(Vec::new()) } else { reader.edges_of(&names) }
}

/// Alternates between the found entities and the ends of the found relations.
fn merge_relation_ends(
    reader: &dyn IndexReader,
    entities: Vec<Entity>,
    relations: &[Edge],
    limit: usize,
) -> Result<Vec<Entity>, KnowledgeError> {
    let mut seen = HashSet::new();
    let ends = relations.iter().flat_map(|edge| [&edge.relation.source, &edge.relation.target]);
    let ends: Vec<String> = ends.filter(|name| seen.insert(name.as_str())).cloned().collect();
    if ends.is_empty() {
        return Ok(entities);
    }
    let known: HashSet<&str> = entities.iter().map(|entity| entity.name.as_str()).collect();
    let missing: Vec<String> = ends.iter().filter(|name| !known.contains(name.as_str())).cloned().collect();
    let mut loaded = reader.entities(&missing)?;
    let names: Vec<String> = entities.iter().map(|entity| entity.name.clone()).collect();
    // The limit of each list is `top_k`; the joined list holds the best of both.
    let order = round_robin(&[&names, &ends], limit.max(names.len()));
    loaded.extend(entities);
    let mut by_name: std::collections::HashMap<String, Entity> =
        loaded.into_iter().map(|entity| (entity.name.clone(), entity)).collect();
    Ok(order.iter().filter_map(|name| by_name.remove(name)).collect())
}

/// Alternates between the relations of the search and those of the entities; each pair once.
fn join_relations(themed: Vec<Edge>, edges: Vec<Edge>) -> Vec<Edge> {
    let mut seen = HashSet::new();
    let mut joined = Vec::with_capacity(themed.len() + edges.len());
    let (mut themed, mut edges) = (themed.into_iter(), edges.into_iter());
    loop {
        let (one, other) = (themed.next(), edges.next());
        if one.is_none() && other.is_none() {
            return joined;
        }
        joined.extend([one, other].into_iter().flatten().filter(|edge| seen.insert(edge.relation.key())));
    }
}

/// Chunks by their text. The query alone is searched, without keywords.
fn search_chunks(
    reader: &dyn IndexReader,
    params: &QueryParams,
    vectors: &QueryVectors,
    weights: FusionWeights,
) -> Result<Vec<ChunkId>, KnowledgeError> {
    let limit = params.chunk_limit();
    let lexical = keys(reader.search_chunks(&params.query, limit)?);
    let dense = match &vectors.query {
        Some(vector) if weights.dense > 0.0 => {
            keys(reader.nearest_chunks(vector, limit, weights.min_cosine)?)
        }
        _ => Vec::new(),
    };
    Ok(fuse(&[(&lexical, weights.lexical), (&dense, weights.dense)], limit))
}
