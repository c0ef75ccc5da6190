//! The reading connection: the data for queries and status replies.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::cache::{StoredJob, newest_job};
use super::chunks::{CHUNK_COLUMNS, chunk_of_row, chunks_of_document};
use super::documents::{DocumentFilter, document, documents};
use super::entities::{MAX_SOURCES, entity_id};
use super::relations::relation_id;
use super::vectors::VectorTables;
use super::writer::{meta, meta_value};
use super::{cache, search, writer};
use crate::traits::{FileEntry, IndexReader, QueryVector};
use crate::types::{
    Chunk, ChunkId, Edge, Entity, IndexCounts, KnowledgeError, SearchHit, SearchText, VectorKind,
};
use types::knowledge::{CacheKind, Document, IndexLevel, PairKey, Relation};

/// The reading connection.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    vectors: RefCell<VectorTables>,
}

const EDGE_COLUMNS: &str =
    "r.id, ea.name, eb.name, r.forward, r.keywords, r.description, r.weight, ea.degree + eb.degree";

fn edge_of_row(row: &Row<'_>) -> rusqlite::Result<Edge> {
    let (a, b): (String, String) = (row.get(1)?, row.get(2)?);
    let forward: bool = row.get(3)?;
    let (source, target) = if forward { (a, b) } else { (b, a) };
    let relation =
        Relation { source, target, keywords: row.get(4)?, description: row.get(5)?, weight: row.get(6)? };
    Ok(Edge { relation, rank: row.get(7)? })
}

impl Reader {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, vectors: RefCell::default() }
    }

    /// Runs reads on one snapshot: a write that commits meanwhile is not seen.
    pub(super) fn snapshot<T>(
        &mut self,
        read: impl FnOnce(&Self) -> Result<T, KnowledgeError>,
    ) -> Result<T, KnowledgeError> {
        self.connection.execute_batch("begin deferred")?;
        let result = read(self);
        // Nothing was written. A failed rollback leaves a transaction, which the next begin reports.
        let end = self.connection.execute_batch("rollback");
        let value = result?;
        end?;
        Ok(value)
    }

    /// One page of documents in the order of their ids.
    pub fn documents(&self, filter: &DocumentFilter, limit: u32) -> Result<Vec<Document>, KnowledgeError> {
        documents(&self.connection, filter, limit)
    }

    /// One document by its id or path.
    pub fn document(&self, id_or_path: &str) -> Result<Option<Document>, KnowledgeError> {
        document(&self.connection, id_or_path)
    }

    /// The chunks of a document in order.
    pub fn document_chunks(&self, id: &str) -> Result<Vec<Chunk>, KnowledgeError> {
        chunks_of_document(&self.connection, id)
    }

    /// The workspace that the index belongs to.
    pub fn workspace(&self) -> Result<Option<String>, KnowledgeError> {
        meta_value(&self.connection, meta::WORKSPACE)
    }

    /// The level of the newest job.
    pub fn level(&self) -> Result<Option<IndexLevel>, KnowledgeError> {
        Ok(meta_value(&self.connection, meta::LEVEL)?.and_then(|name| IndexLevel::from_name(&name)))
    }

    /// The newest job.
    pub fn newest_job(&self) -> Result<Option<StoredJob>, KnowledgeError> {
        newest_job(&self.connection)
    }

    /// All entities after a name, in the order of their names. For exports.
    pub fn entities_after(&self, name: &str, limit: u32) -> Result<Vec<Entity>, KnowledgeError> {
        let mut statement = self.connection.prepare_cached(
            "select name, type, description, degree, stub from kn_entity where name > ?1 order by name limit ?2",
        )?;
        let rows = statement.query_map(params![name, limit], entity_of_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The entities with the most relations. For exports without a start.
    pub fn greatest_entities(&self, limit: u32) -> Result<Vec<Entity>, KnowledgeError> {
        let mut statement = self.connection.prepare_cached(
            "select name, type, description, degree, stub from kn_entity order by degree desc, name limit ?1",
        )?;
        let rows = statement.query_map([limit], entity_of_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The whole name of the entity that a user means; `None` if no name fits.
    ///
    /// # Errors
    /// Several fit equally well, or the read failed.
    pub fn find_entity(&self, name: &str) -> Result<Option<String>, KnowledgeError> {
        super::lookup::find_entity(&self.connection, name)
    }

    /// The notice for the user about this index.
    pub fn notice(&self) -> Result<Option<String>, KnowledgeError> {
        Ok(meta_value(&self.connection, meta::NOTICE)?.filter(|notice| !notice.is_empty()))
    }

    /// The folders that the last job over everything left out, and the number of files that were left out because of
    /// their content.
    pub fn left_out(&self) -> Result<(Vec<String>, u64), KnowledgeError> {
        let folders = meta_value(&self.connection, meta::LEFT_OUT)?;
        let folders = folders.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let files =
            self.connection.query_row("select count(*) from kn_skipped", [], |row| row.get::<_, u64>(0))?;
        Ok((folders, files))
    }

    /// Whether there is any vector of this model and, if it is known, this dimension.
    pub fn has_vectors(&self, model: &str, dimension: Option<usize>) -> Result<bool, KnowledgeError> {
        super::vectors::has_vectors(&self.connection, model, dimension)
    }

    fn edge(&self, pair: &PairKey) -> Result<Option<(i64, Edge)>, KnowledgeError> {
        let (Some(one), Some(other)) =
            (entity_id(&self.connection, pair.first())?, entity_id(&self.connection, pair.second())?)
        else {
            return Ok(None);
        };
        let Some(id) = relation_id(&self.connection, one, other)? else { return Ok(None) };
        let sql = format!(
            "select {EDGE_COLUMNS} from kn_relation r join kn_entity ea on ea.id = r.a join kn_entity eb on eb.id = r.b \
             where r.id = ?1"
        );
        let edge = self.connection.prepare_cached(&sql)?.query_row([id], edge_of_row).optional()?;
        Ok(edge.map(|edge| (id, edge)))
    }

    fn source_chunks(&self, sql: &str, id: i64) -> Result<Vec<ChunkId>, KnowledgeError> {
        let limit = i64::try_from(MAX_SOURCES).unwrap_or(i64::MAX);
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![id, limit], |row| Ok(ChunkId(row.get(0)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn nearest(
        &self,
        kind: VectorKind,
        query: &QueryVector,
        k: usize,
        min_cosine: f32,
    ) -> Result<Vec<(i64, f64)>, KnowledgeError> {
        let generation = self.generation()?;
        self.vectors.borrow_mut().nearest(&self.connection, kind, generation, query, k, min_cosine)
    }
}

fn entity_of_row(row: &Row<'_>) -> rusqlite::Result<Entity> {
    Ok(Entity {
        name: row.get(0)?,
        entity_type: row.get(1)?,
        description: row.get(2)?,
        degree: row.get(3)?,
        stub: row.get(4)?,
    })
}

impl IndexReader for Reader {
    fn generation(&self) -> Result<u64, KnowledgeError> {
        writer::generation(&self.connection)
    }

    fn counts(&self) -> Result<IndexCounts, KnowledgeError> {
        Ok(self.connection.prepare_cached(
            "select (select count(*) from kn_doc), (select count(*) from kn_doc where status = 'failed'), \
             (select count(*) from kn_doc where status in ('pending', 'processing')), (select count(*) from kn_chunk), \
             (select count(*) from kn_entity), (select count(*) from kn_relation)",
        )?
        .query_row([], |row| {
            Ok(IndexCounts {
                documents: row.get(0)?,
                failed_documents: row.get(1)?,
                open_documents: row.get(2)?,
                chunks: row.get(3)?,
                entities: row.get(4)?,
                relations: row.get(5)?,
            })
        })?)
    }

    fn search_entities(&self, text: &SearchText, k: usize) -> Result<Vec<SearchHit<String>>, KnowledgeError> {
        search::entities(&self.connection, text, k)
    }

    fn search_relations(
        &self,
        text: &SearchText,
        k: usize,
    ) -> Result<Vec<SearchHit<PairKey>>, KnowledgeError> {
        search::relations(&self.connection, text, k)
    }

    fn search_chunks(&self, text: &str, k: usize) -> Result<Vec<SearchHit<ChunkId>>, KnowledgeError> {
        search::chunks(&self.connection, text, k)
    }

    fn nearest_entities(
        &self,
        query: &QueryVector,
        k: usize,
        min_cosine: f32,
    ) -> Result<Vec<SearchHit<String>>, KnowledgeError> {
        let rows = self.nearest(VectorKind::Entity, query, k, min_cosine)?;
        search::keyed_hits(rows, |row| search::entity_name(&self.connection, row))
    }

    fn nearest_relations(
        &self,
        query: &QueryVector,
        k: usize,
        min_cosine: f32,
    ) -> Result<Vec<SearchHit<PairKey>>, KnowledgeError> {
        let rows = self.nearest(VectorKind::Relation, query, k, min_cosine)?;
        search::keyed_hits(rows, |row| search::relation_pair(&self.connection, row))
    }

    fn nearest_chunks(
        &self,
        query: &QueryVector,
        k: usize,
        min_cosine: f32,
    ) -> Result<Vec<SearchHit<ChunkId>>, KnowledgeError> {
        let rows = self.nearest(VectorKind::Chunk, query, k, min_cosine)?;
        search::keyed_hits(rows, |row| search::chunk_key(&self.connection, row))
    }

    fn similarities(
        &self,
        query: &QueryVector,
        chunks: &[ChunkId],
    ) -> Result<Vec<Option<f32>>, KnowledgeError> {
        super::vectors::similarities(&self.connection, query, chunks)
    }

    fn has_stale_vectors(
        &self,
        kind: VectorKind,
        model: &str,
        dimension: Option<usize>,
    ) -> Result<bool, KnowledgeError> {
        super::vectors::has_stale(&self.connection, kind, model, dimension)
    }

    fn entities(&self, names: &[String]) -> Result<Vec<Entity>, KnowledgeError> {
        let mut statement = self
            .connection
            .prepare_cached("select name, type, description, degree, stub from kn_entity where name = ?1")?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.extend(statement.query_row([name], entity_of_row).optional()?);
        }
        Ok(found)
    }

    fn edges_of(&self, names: &[String]) -> Result<Vec<Edge>, KnowledgeError> {
        let sql = format!(
            "select {EDGE_COLUMNS} from (select * from kn_relation where a = ?1 union all \
             select * from kn_relation where b = ?1) r \
             join kn_entity ea on ea.id = r.a join kn_entity eb on eb.id = r.b"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut seen = HashSet::new();
        let mut edges = Vec::new();
        for name in names.iter().collect::<BTreeSet<_>>() {
            let Some(id) = entity_id(&self.connection, name)? else { continue };
            let mut rows = statement.query([id])?;
            while let Some(row) = rows.next()? {
                if seen.insert(row.get::<_, i64>(0)?) {
                    let edge = edge_of_row(row)?;
                    edges.push((edge.relation.key(), edge));
                }
            }
        }
        edges.sort_by(|(one_key, one), (other_key, other)| {
            other
                .rank
                .cmp(&one.rank)
                .then_with(|| other.relation.weight.total_cmp(&one.relation.weight))
                .then_with(|| one_key.cmp(other_key))
        });
        Ok(edges.into_iter().map(|(_, edge)| edge).collect())
    }

    fn relations(&self, pairs: &[PairKey]) -> Result<Vec<Edge>, KnowledgeError> {
        let mut found = Vec::with_capacity(pairs.len());
        for pair in pairs {
            found.extend(self.edge(pair)?.map(|(_, edge)| edge));
        }
        Ok(found)
    }

    fn chunks(&self, ids: &[ChunkId]) -> Result<Vec<Chunk>, KnowledgeError> {
        let sql = format!(
            "select {CHUNK_COLUMNS} from kn_chunk c join kn_doc d on d.id = c.doc_id where c.key = ?1"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.extend(statement.query_row([id.as_str()], chunk_of_row).optional()?);
        }
        Ok(found)
    }

    fn entity_chunks(&self, names: &[String]) -> Result<Vec<Vec<ChunkId>>, KnowledgeError> {
        let sql = "select c.key from kn_entity_chunk s join kn_chunk c on c.id = s.chunk_id where s.entity_id = ?1 \
                   order by s.ts, c.path, c.ord, c.key limit ?2";
        names
            .iter()
            .map(|name| match entity_id(&self.connection, name)? {
                Some(id) => self.source_chunks(sql, id),
                None => Ok(Vec::new()),
            })
            .collect()
    }

    fn relation_chunks(&self, pairs: &[PairKey]) -> Result<Vec<Vec<ChunkId>>, KnowledgeError> {
        let sql = "select c.key from kn_relation_chunk s join kn_chunk c on c.id = s.chunk_id where s.relation_id = ?1 \
                   order by s.ts, c.path, c.ord, c.key limit ?2";
        pairs
            .iter()
            .map(|pair| match self.edge(pair)? {
                Some((id, _)) => self.source_chunks(sql, id),
                None => Ok(Vec::new()),
            })
            .collect()
    }

    fn files(&self, paths: &[String]) -> Result<Vec<FileEntry>, KnowledgeError> {
        let mut statement = self
            .connection
            .prepare_cached("select bytes, mtime_ns from kn_doc where path = ?1 and source = 'file'")?;
        let mut files = Vec::new();
        for path in paths {
            let mut rows = statement.query([path])?;
            if let Some(row) = rows.next()? {
                files.push(FileEntry { path: path.clone(), bytes: row.get(0)?, modified_ns: row.get(1)? });
            }
        }
        Ok(files)
    }

    fn cached(&self, kind: CacheKind, key: &str) -> Result<Option<String>, KnowledgeError> {
        cache::cached(&self.connection, kind, key)
    }
}
