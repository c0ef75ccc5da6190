//! Stage 3: converts the results of the search to the prompt: token limits, chunks of the remaining items,
//! references.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::budget::{CountTokens, fitting_prefix, line_tokens};
use super::chunk_pick::{assign_chunks, pick_chunks};
use super::fusion::round_robin;
use super::prompt::{PromptOptions, system_prompt};
use super::references::references;
use super::result::NoContextReason;
use super::search::{QueryVectors, SearchResult};
use crate::traits::IndexReader;
use crate::types::{Chunk, ChunkId, Edge, Entity, KnowledgeError};
use types::knowledge::{
    ChunkPick, FoundChunk, FoundCounts, FoundEntity, FoundRelation, Metadata, PairKey, PromptTokens,
    QueryParams, QueryStage, RawData, Reference,
};

/// Maximum number of chunks for each entity or relation.
const RELATED_CHUNKS: usize = 5;
/// Tokens kept free: the reference list and the marks of a chat.
pub const BUFFER_TOKENS: usize = 200;
/// Tokens of the marks around one message of the conversation.
const MESSAGE_TOKENS: usize = 4;

/// Entities and relations that fit, and candidates for the chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Entities within their limit.
    pub entities: Vec<Entity>,
    /// Relations within their limit.
    pub relations: Vec<Edge>,
    /// Tokens of the lines of entities and relations, if they were counted.
    pub tokens: Option<(usize, usize)>,
    /// Chunks in their order before a reranker, each once.
    pub chunks: Vec<Chunk>,
    /// Scores of the reranker, by chunk; empty without one.
    pub rerank_scores: HashMap<ChunkId, f64>,
    /// Numbers before the limits.
    pub found: FoundCounts,
    /// Chunks that do not exist any more.
    pub missing_chunks: usize,
}

impl Selection {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty() && self.relations.is_empty() && self.chunks.is_empty()
    }

    /// Removes chunks with a low score of the reranker, then those beyond the limit.
    pub fn keep_best_chunks(&mut self, params: &QueryParams) {
        let (scores, min_score) = (&self.rerank_scores, params.min_rerank_score());
        self.chunks.retain(|chunk| scores.get(&chunk.id).is_none_or(|score| *score >= min_score));
        self.chunks.truncate(params.chunk_limit());
    }
}

/// Applies the limits of entities and relations, then gathers the chunks of those that remain. Blocks on the index.
pub fn select(
    reader: &dyn IndexReader,
    found: SearchResult,
    params: &QueryParams,
    vectors: &QueryVectors,
    count: &CountTokens,
    on_stage: &dyn Fn(QueryStage),
) -> Result<Selection, KnowledgeError> {
    let mut counts =
        FoundCounts { entities: found.entities.len(), relations: found.relations.len(), chunks: 0 };
    let SearchResult { mut entities, mut relations, direct_chunks } = found;
    let (fitting_count, entity_tokens) =
        fitting_prefix(&entities, params.max_entity_tokens(), entity_line, count);
    entities.truncate(fitting_count);
    let (fitting_count, relation_tokens) =
        fitting_prefix(&relations, params.max_relation_tokens(), relation_line, count);
    relations.truncate(fitting_count);
    let wants_more = params.mode().has_entity_chunks() || params.wants_relation_chunks();
    if wants_more && !params.mode().has_direct_chunks() {
        on_stage(QueryStage::RetrievingChunks);
    }
    let mut of_entities = Vec::new();
    if params.mode().has_entity_chunks() && !entities.is_empty() {
        let names: Vec<String> = entities.iter().map(|entity| entity.name.clone()).collect();
        of_entities = related_chunks(reader, reader.entity_chunks(&names)?, params, vectors)?;
    }
    let mut of_relations = Vec::new();
    if params.wants_relation_chunks() && !relations.is_empty() {
        let pairs: Vec<PairKey> = relations.iter().map(|edge| edge.relation.key()).collect();
        of_relations = related_chunks(reader, reader.relation_chunks(&pairs)?, params, vectors)?;
    }
    let order = round_robin(&[&direct_chunks, &of_entities, &of_relations], usize::MAX);
    counts.chunks = order.len();
    // A reranker sees twice the chunks that remain; without one the limit applies at once.
    let loaded: Vec<ChunkId> = order.into_iter().take(params.chunk_limit().saturating_mul(2)).collect();
    let chunks = reader.chunks(&loaded)?;
    let missing_chunks = loaded.len() - chunks.len();
    Ok(Selection {
        entities,
        relations,
        tokens: Some((entity_tokens, relation_tokens)),
        chunks,
        rerank_scores: HashMap::new(),
        found: counts,
        missing_chunks,
    })
}

/// The chosen chunks of entities or relations.
fn related_chunks(
    reader: &dyn IndexReader,
    lists: Vec<Vec<ChunkId>>,
    params: &QueryParams,
    vectors: &QueryVectors,
) -> Result<Vec<ChunkId>, KnowledgeError> {
    let assigned = assign_chunks(lists);
    let pick = params.chunk_pick.unwrap_or_default();
    let similarities = match &vectors.query {
        Some(vector) if pick == ChunkPick::Vector => {
            let ids: Vec<ChunkId> = assigned.iter().flatten().cloned().collect();
            reader.similarities(vector, &ids)?
        }
        _ => Vec::new(),
    };
    Ok(pick_chunks(&assigned, pick, RELATED_CHUNKS, &similarities))
}

#[derive(Serialize)]
struct EntityLine<'a> {
    name: &'a str,
    r#type: &'a str,
    description: &'a str,
}

#[derive(Serialize)]
struct RelationLine<'a> {
    source: &'a str,
    target: &'a str,
    description: &'a str,
}

#[derive(Serialize)]
struct ChunkLine<'a> {
    reference_id: &'a str,
    lines: String,
    content: &'a str,
}

#[derive(Serialize)]
struct ReferenceLine<'a> {
    reference_id: &'a str,
    path: &'a str,
}

fn json_line(value: &impl Serialize) -> String {
    // Serialising strings and numbers cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// The line of an entity in the prompt.
#[must_use]
pub fn entity_line(entity: &Entity) -> String {
    json_line(&EntityLine {
        name: &entity.name,
        r#type: &entity.entity_type,
        description: &entity.description,
    })
}

/// The line of a relation in the prompt.
#[must_use]
pub fn relation_line(edge: &Edge) -> String {
    let relation = &edge.relation;
    json_line(&RelationLine {
        source: &relation.source,
        target: &relation.target,
        description: &relation.description,
    })
}

fn chunk_line(chunk: &Chunk, reference_id: &str) -> String {
    let lines = format!("{}-{}", chunk.start_line, chunk.end_line);
    json_line(&ChunkLine { reference_id, lines, content: &chunk.text })
}

fn reference_line(reference: &Reference) -> String {
    json_line(&ReferenceLine { reference_id: &reference.reference_id, path: &reference.path })
}

/// The prompt with all of its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryContext {
    /// The system prompt of the answer call.
    pub system: String,
    /// The data in the prompt.
    pub raw_data: RawData,
    /// The limit that removed everything that was found, if nothing is left.
    pub no_context: Option<NoContextReason>,
}

impl QueryContext {
    /// The complete prompt of the answer call as one text.
    #[must_use]
    pub fn full_prompt(&self, params: &QueryParams) -> String {
        let mut text = self.system.clone();
        for message in params.history() {
            text.push_str(&format!("\n\n---{}---\n{}", message.role.name(), message.content));
        }
        text.push_str("\n\n---user---\n");
        text.push_str(&params.query);
        text
    }
}

/// Builds the prompt: chunks get the tokens that remain of `max_total_tokens` next to the question, the conversation,
/// entities and relations. Pure.
#[must_use]
pub fn build_context(
    mut selection: Selection,
    params: &QueryParams,
    metadata: Metadata,
    count: &CountTokens,
) -> QueryContext {
    let options = PromptOptions {
        language: params.language.as_deref(),
        response_type: params.response_type(),
        user_prompt: params.user_prompt(),
    };
    let had_chunks = !selection.chunks.is_empty();
    selection.keep_best_chunks(params);
    // Something was found, and either the reranker or a token limit may leave nothing of it.
    let reason = match had_chunks && selection.is_empty() {
        true => NoContextReason::Reranker,
        false => NoContextReason::TokenLimit,
    };
    let mut tokens = PromptTokens {
        system: count(&system_prompt(options, &data_block(&[], &[], &[], &[]))),
        entities: 0,
        relations: 0,
        chunks: 0,
        query: count(&params.query),
        history: history_tokens(params, count),
    };
    let charged = tokens.system + tokens.query + tokens.history + BUFFER_TOKENS;
    let budget = params.max_total_tokens().saturating_sub(charged);
    // Both lists fit their own limits already, but these may be larger than the whole.
    if selection.tokens.is_none_or(|(entities, relations)| entities + relations > budget) {
        let (fitting, used) = fitting_prefix(&selection.entities, budget, entity_line, count);
        selection.entities.truncate(fitting);
        let (fitting, more) = fitting_prefix(&selection.relations, budget - used, relation_line, count);
        selection.relations.truncate(fitting);
        selection.tokens = Some((used, more));
    }
    (tokens.entities, tokens.relations) = selection.tokens.unwrap_or_default();
    let budget = budget - tokens.entities - tokens.relations;
    let entity_lines: Vec<String> = selection.entities.iter().map(entity_line).collect();
    let relation_lines: Vec<String> = selection.relations.iter().map(relation_line).collect();
    let mut chunks = selection.chunks;
    let scores = selection.rerank_scores;
    let counted = fitting_chunks(&chunks, budget, count);
    chunks.truncate(counted.len());

    let references = references(&chunks);
    let ids: HashMap<&str, &str> =
        references.iter().map(|it| (it.path.as_str(), it.reference_id.as_str())).collect();
    let id_of =
        |chunk: &Chunk| ids.get(chunk.path.as_deref().unwrap_or_default()).copied().unwrap_or_default();
    let chunk_lines: Vec<String> = chunks.iter().map(|chunk| chunk_line(chunk, id_of(chunk))).collect();
    let named = references.iter().filter(|it| !it.reference_id.is_empty());
    let reference_lines: Vec<String> = named.map(reference_line).collect();
    let exact = |((chunk, line), counted): ((&Chunk, &String), &usize)| {
        if is_like_placeholder(id_of(chunk)) { *counted } else { line_tokens(line, count) }
    };
    tokens.chunks = chunks.iter().zip(&chunk_lines).zip(&counted).map(exact).sum();
    let found_chunks = chunks.iter().map(|chunk| FoundChunk {
        chunk_id: chunk.id.as_str().to_owned(),
        reference_id: id_of(chunk).to_owned(),
        path: chunk.path.clone().unwrap_or_default(),
        start_line: chunk.start_line,
        end_line: chunk.end_line,
        symbol: chunk.symbol.clone(),
        content: chunk.text.clone(),
        rerank_score: scores.get(&chunk.id).copied(),
    });
    let found_chunks: Vec<FoundChunk> = found_chunks.collect();
    let system =
        system_prompt(options, &data_block(&entity_lines, &relation_lines, &chunk_lines, &reference_lines));
    let raw_data = RawData {
        entities: selection.entities.into_iter().map(found_entity).collect(),
        relations: selection.relations.into_iter().map(found_relation).collect(),
        chunks: found_chunks,
        references,
        metadata: Metadata {
            found: selection.found,
            missing_chunks: selection.missing_chunks,
            tokens,
            ..metadata
        },
    };
    let is_empty =
        raw_data.entities.is_empty() && raw_data.relations.is_empty() && raw_data.chunks.is_empty();
    QueryContext { system, raw_data, no_context: is_empty.then_some(reason) }
}

/// Tokens of the conversation with the marks around each message.
fn history_tokens(params: &QueryParams, count: &CountTokens) -> usize {
    params.history().iter().map(|message| count(&message.content) + MESSAGE_TOKENS).sum()
}

/// Placeholder for the number of a reference while it is not known.
const PLACEHOLDER: &str = "999";

/// Whether a line costs as much with this number as with the placeholder: up to three digits are one token.
fn is_like_placeholder(reference_id: &str) -> bool {
    (1..=PLACEHOLDER.len()).contains(&reference_id.len())
}

/// Tokens of the lines of the chunks that fit. The numbers of their references are not known yet. References beyond
/// the buffer are charged too, so that the whole prompt never exceeds its limit.
fn fitting_chunks(chunks: &[Chunk], budget: usize, count: &CountTokens) -> Vec<usize> {
    let (mut used, mut of_references) = (0_usize, 0_usize);
    let mut fitting = Vec::new();
    let mut paths: HashSet<&str> = HashSet::new();
    for chunk in chunks {
        let tokens = line_tokens(&chunk_line(chunk, PLACEHOLDER), count);
        used = used.saturating_add(tokens);
        if let Some(path) = chunk.path.as_deref()
            && paths.insert(path)
        {
            of_references +=
                line_tokens(&json_line(&ReferenceLine { reference_id: PLACEHOLDER, path }), count);
        }
        if used.saturating_add(of_references.saturating_sub(BUFFER_TOKENS)) > budget {
            break;
        }
        fitting.push(tokens);
    }
    fitting
}

fn data_block(entities: &[String], relations: &[String], chunks: &[String], references: &[String]) -> String {
    let parts = [
        ("entities", entities),
        ("relations", relations),
        ("chunks", chunks),
        ("reference list", references),
    ];
    let mut text = String::new();
    for (name, lines) in parts {
        text.push_str(&format!("# {name}\n"));
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

fn found_entity(entity: Entity) -> FoundEntity {
    FoundEntity {
        name: entity.name,
        entity_type: entity.entity_type,
        description: entity.description,
        rank: entity.degree,
    }
}

fn found_relation(edge: Edge) -> FoundRelation {
    let relation = edge.relation;
    FoundRelation {
        source: relation.source,
        target: relation.target,
        keywords: relation.keywords,
        description: relation.description,
        weight: relation.weight,
        rank: edge.rank,
    }
}
