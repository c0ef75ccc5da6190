//! Test doubles for queries: an index in memory that counts its reads, a scripted model, a hashing embedder.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::traits::{
    CallPurpose, Completion, Embedder, FileEntry, FileSource, FileVisit, IndexReader, LanguageModel,
    ModelCall, QueryVector,
};
use crate::types::{
    Chunk, ChunkId, DocId, Edge, Entity, ErrorKind, FileRefusal, IndexCounts, KnowledgeError, ModelUsage,
    SearchHit, SearchText, VectorKind,
};
use base::sync::lock;
use types::knowledge::{CacheKind, PairKey, Relation};

pub(super) fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

pub(super) fn chunk(id: &str, path: Option<&str>, start_line: u32, end_line: u32, text: &str) -> Chunk {
    Chunk {
        id: ChunkId(id.into()),
        doc_id: DocId(format!("doc-{}", path.unwrap_or(id))),
        path: path.map(str::to_owned),
        ordinal: 0,
        text: text.into(),
        tokens: 0,
        start_byte: 0,
        end_byte: 0,
        start_line,
        end_line,
        language: None,
        symbol: None,
        content_hash: String::new(),
    }
}

pub(super) fn entity(name: &str, entity_type: &str, description: &str, degree: u32) -> Entity {
    Entity {
        name: name.into(),
        entity_type: entity_type.into(),
        description: description.into(),
        degree,
        stub: false,
    }
}

/// An index in memory. Each search is noted by name.
#[derive(Clone, Default)]
pub(super) struct MemoryIndex {
    pub entities: BTreeMap<String, Entity>,
    pub relations: BTreeMap<PairKey, Relation>,
    pub chunks: BTreeMap<ChunkId, Chunk>,
    pub entity_chunks: BTreeMap<String, Vec<ChunkId>>,
    pub vectors: BTreeMap<ChunkId, Vec<f32>>,
    /// Paths of documents that are no files.
    pub inserted: HashSet<String>,
    pub is_broken: bool,
    pub generation: u64,
    pub cache: Arc<Mutex<BTreeMap<String, String>>>,
    pub reads: Arc<Mutex<Vec<&'static str>>>,
}

impl MemoryIndex {
    pub fn add_entity(&mut self, name: &str, description: &str, chunks: &[&str]) {
        self.entities.insert(name.into(), entity(name, "thing", description, 0));
        let chunks = chunks.iter().map(|id| ChunkId((*id).to_owned())).collect();
        self.entity_chunks.insert(name.into(), chunks);
    }

    pub fn add_relation(&mut self, source: &str, target: &str, keywords: &str, weight: f64) {
        let relation = Relation {
            source: source.into(),
            target: target.into(),
            keywords: keywords.into(),
            description: format!("{source} {keywords} {target}"),
            weight,
        };
        if self.relations.insert(relation.key(), relation).is_none() {
            for end in [source, target] {
                if let Some(entity) = self.entities.get_mut(end) {
                    entity.degree += 1;
                }
            }
        }
    }

    pub fn add_chunk(&mut self, id: &str, path: &str, text: &str) {
        self.chunks.insert(ChunkId(id.into()), chunk(id, Some(path), 1, 9, text));
    }

    fn record_call(&self, name: &'static str) -> Result<(), KnowledgeError> {
        lock(&self.reads).push(name);
        if self.is_broken {
            return Err(KnowledgeError::new(ErrorKind::Storage, "could not read the index: test; stop"));
        }
        Ok(())
    }

    fn edge(&self, relation: &Relation) -> Edge {
        let degree = |name: &str| self.entities.get(name).map_or(0, |entity| entity.degree);
        Edge { relation: relation.clone(), rank: degree(&relation.source) + degree(&relation.target) }
    }
}

/// Keys ranked by the number of words that their text shares with the query.
fn ranked<K: Clone + Ord>(
    query: &str,
    k: usize,
    texts: impl Iterator<Item = (K, String)>,
) -> Vec<SearchHit<K>> {
    let words = |text: &str| -> HashSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let wanted = words(query);
    let mut hits: Vec<SearchHit<K>> = texts
        .map(|(key, text)| SearchHit { key, score: wanted.intersection(&words(&text)).count() as f64 })
        .filter(|hit| hit.score > 0.0)
        .collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
    hits.truncate(k);
    hits
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt()).max(f32::EPSILON)
}

impl IndexReader for MemoryIndex {
    fn generation(&self) -> Result<u64, KnowledgeError> {
        Ok(self.generation)
    }

    fn counts(&self) -> Result<IndexCounts, KnowledgeError> {
        Ok(IndexCounts::default())
    }

    fn search_entities(&self, text: &SearchText, k: usize) -> Result<Vec<SearchHit<String>>, KnowledgeError> {
        self.record_call("entities")?;
        let texts =
            self.entities.values().map(|it| (it.name.clone(), format!("{} {}", it.name, it.description)));
        Ok(ranked(&text.joined(), k, texts))
    }

    fn search_relations(
        &self,
        text: &SearchText,
        k: usize,
    ) -> Result<Vec<SearchHit<PairKey>>, KnowledgeError> {
        self.record_call("relations")?;
        let text_of = |it: &Relation| format!("{} {}", it.keywords, it.description);
        Ok(ranked(&text.joined(), k, self.relations.iter().map(|(key, it)| (key.clone(), text_of(it)))))
    }

    fn search_chunks(&self, text: &str, k: usize) -> Result<Vec<SearchHit<ChunkId>>, KnowledgeError> {
        self.record_call("chunks")?;
        Ok(ranked(text, k, self.chunks.iter().map(|(id, it)| (id.clone(), it.text.clone()))))
    }

    fn nearest_entities(
        &self,
        _: &QueryVector,
        _: usize,
        _: f32,
    ) -> Result<Vec<SearchHit<String>>, KnowledgeError> {
        Ok(Vec::new())
    }

    fn nearest_relations(
        &self,
        _: &QueryVector,
        _: usize,
        _: f32,
    ) -> Result<Vec<SearchHit<PairKey>>, KnowledgeError> {
        Ok(Vec::new())
    }

    fn nearest_chunks(
        &self,
        query: &QueryVector,
        k: usize,
        min: f32,
    ) -> Result<Vec<SearchHit<ChunkId>>, KnowledgeError> {
        let scored = self.vectors.iter().map(|(id, vector)| (id, cosine(vector, &query.values)));
        let mut hits: Vec<SearchHit<ChunkId>> = scored
            .filter(|(_, score)| *score >= min)
            .map(|(id, score)| SearchHit { key: id.clone(), score: f64::from(score) })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
        hits.truncate(k);
        Ok(hits)
    }

    fn similarities(
        &self,
        query: &QueryVector,
        chunks: &[ChunkId],
    ) -> Result<Vec<Option<f32>>, KnowledgeError> {
        Ok(chunks.iter().map(|id| self.vectors.get(id).map(|vector| cosine(vector, &query.values))).collect())
    }

    fn has_stale_vectors(&self, _: VectorKind, _: &str, _: Option<usize>) -> Result<bool, KnowledgeError> {
        Ok(false)
    }

    fn entities(&self, names: &[String]) -> Result<Vec<Entity>, KnowledgeError> {
        Ok(names.iter().filter_map(|name| self.entities.get(name).cloned()).collect())
    }

    fn edges_of(&self, names: &[String]) -> Result<Vec<Edge>, KnowledgeError> {
        let touches = |it: &&Relation| names.contains(&it.source) || names.contains(&it.target);
        let mut edges: Vec<Edge> = self.relations.values().filter(touches).map(|it| self.edge(it)).collect();
        edges.sort_by(|a, b| {
            let by_rank = b.rank.cmp(&a.rank).then(b.relation.weight.total_cmp(&a.relation.weight));
            by_rank.then_with(|| a.relation.key().cmp(&b.relation.key()))
        });
        Ok(edges)
    }

    fn relations(&self, pairs: &[PairKey]) -> Result<Vec<Edge>, KnowledgeError> {
        Ok(pairs.iter().filter_map(|pair| self.relations.get(pair)).map(|it| self.edge(it)).collect())
    }

    fn chunks(&self, ids: &[ChunkId]) -> Result<Vec<Chunk>, KnowledgeError> {
        Ok(ids.iter().filter_map(|id| self.chunks.get(id).cloned()).collect())
    }

    fn entity_chunks(&self, names: &[String]) -> Result<Vec<Vec<ChunkId>>, KnowledgeError> {
        lock(&self.reads).push("entity_chunks");
        Ok(names.iter().map(|name| self.entity_chunks.get(name).cloned().unwrap_or_default()).collect())
    }

    fn relation_chunks(&self, pairs: &[PairKey]) -> Result<Vec<Vec<ChunkId>>, KnowledgeError> {
        lock(&self.reads).push("relation_chunks");
        Ok(pairs.iter().map(|_| Vec::new()).collect())
    }

    fn files(&self, paths: &[String]) -> Result<Vec<FileEntry>, KnowledgeError> {
        let entry = |path: &String| FileEntry { path: path.clone(), bytes: 1, modified_ns: 1 };
        Ok(paths.iter().filter(|path| !self.inserted.contains(*path)).map(entry).collect())
    }

    fn cached(&self, _: CacheKind, key: &str) -> Result<Option<String>, KnowledgeError> {
        Ok(lock(&self.cache).get(key).cloned())
    }
}

impl super::run::ReadIndex for MemoryIndex {
    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn IndexReader) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, KnowledgeError>> {
        let result = work(self);
        async move { result }.boxed()
    }
}

impl super::run::AnswerCache for MemoryIndex {
    fn put(&self, _: CacheKind, key: String, value: String) -> BoxFuture<'_, Result<(), KnowledgeError>> {
        lock(&self.cache).insert(key, value);
        async { Ok(()) }.boxed()
    }
}

/// A model with fixed answers. Records its calls.
#[derive(Default)]
pub(super) struct ScriptedModel {
    pub calls: Mutex<Vec<ModelCall>>,
    pub keywords: String,
    pub is_failing: bool,
    pub is_truncating: bool,
}

impl ScriptedModel {
    pub fn new() -> Self {
        let keywords = r#"{"high_level_keywords": ["parsing"], "low_level_keywords": ["Parser"]}"#.to_owned();
        Self { keywords, ..Self::default() }
    }

    pub fn purposes(&self) -> Vec<CallPurpose> {
        lock(&self.calls).iter().map(|call| call.purpose).collect()
    }

    fn answer(&self, call: ModelCall) -> Result<Completion, KnowledgeError> {
        let text = match call.purpose {
            CallPurpose::Keywords => self.keywords.clone(),
            _ => "The Parser reads tokens [1].".to_owned(),
        };
        lock(&self.calls).push(call);
        if self.is_failing {
            return Err(KnowledgeError::new(ErrorKind::Model, "could not call the model: test; stop"));
        }
        Ok(Completion { text, usage: ModelUsage::default(), truncated: self.is_truncating })
    }
}

impl LanguageModel for ScriptedModel {
    fn identity(&self) -> String {
        "scripted".into()
    }

    fn complete(
        &self,
        call: ModelCall,
        _: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>> {
        async move { self.answer(call) }.boxed()
    }

    fn stream(
        &self,
        call: ModelCall,
        deltas: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>> {
        async move {
            let answer = self.answer(call)?;
            for word in answer.text.split_inclusive(' ') {
                if cancel.is_cancelled() || deltas.send(word.to_owned()).await.is_err() {
                    return Err(KnowledgeError::cancelled());
                }
            }
            Ok(answer)
        }
        .boxed()
    }
}

/// Each word adds 1 at a position that its hash chooses.
pub(super) struct HashingEmbedder {
    pub calls: Mutex<usize>,
    pub is_failing: bool,
}

pub(super) fn hashed_vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; 64];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash =
            word.to_lowercase().bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31) ^ usize::from(byte));
        vector[hash % 64] += 1.0;
    }
    vector
}

impl Embedder for HashingEmbedder {
    fn model_id(&self) -> String {
        "hashing".into()
    }

    fn dimension(&self) -> Option<usize> {
        Some(64)
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, KnowledgeError>> {
        *lock(&self.calls) += 1;
        async move {
            if self.is_failing {
                return Err(KnowledgeError::new(ErrorKind::Embedder, "could not embed: test; stop"));
            }
            Ok(texts.iter().map(|text| hashed_vector(text)).collect())
        }
        .boxed()
    }
}

/// A workspace in which some files are gone and some have changed.
pub(super) struct ChangedFiles {
    pub gone: HashSet<String>,
    pub changed: HashSet<String>,
}

impl FileSource for ChangedFiles {
    fn walk(
        &self,
        _: &[String],
        _: &dyn Fn() -> bool,
        _: &mut FileVisit<'_>,
    ) -> Result<Vec<String>, KnowledgeError> {
        Ok(Vec::new())
    }

    fn find(&self, path: &str) -> Option<FileEntry> {
        let modified_ns = if self.changed.contains(path) { 2 } else { 1 };
        (!self.gone.contains(path)).then(|| FileEntry { path: path.into(), bytes: 1, modified_ns })
    }

    fn read(&self, _: &str, _: u64) -> Result<Vec<u8>, FileRefusal> {
        Err(FileRefusal::Gone)
    }
}
