//! Vectors: one row of signed bytes each. The reading thread holds the searched ones in memory.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::vector_index::{QuantizedVector, ScanIndex, VectorIndex};
use super::writer::{Writer, raise_generation};
use crate::traits::QueryVector;
use crate::types::{ChunkId, ErrorKind, KnowledgeError, VectorKind, hash128};

/// Maximum dimensions of a vector.
const MAX_DIMENSION: usize = 8192;

impl VectorKind {
    const fn number(self) -> i64 {
        match self {
            VectorKind::Entity => 0,
            VectorKind::Relation => 1,
            VectorKind::Chunk => 2,
        }
    }
}

/// All vectors of one kind and model, in memory.
struct LoadedVectors {
    generation: u64,
    model: String,
    dimension: usize,
    /// The source text of each row's vector, to find the changed ones.
    contents: HashMap<i64, u64>,
    index: Box<dyn VectorIndex + Send>,
}

impl LoadedVectors {
    fn new(model: &str, dimension: usize) -> Self {
        let index = Box::new(ScanIndex::new(dimension));
        Self { generation: 0, model: model.to_owned(), dimension, contents: HashMap::new(), index }
    }

    /// Updates the vectors from the file. Only changed ones are read completely.
    fn refresh(
        &mut self,
        connection: &Connection,
        kind: VectorKind,
        generation: u64,
    ) -> Result<(), KnowledgeError> {
        let mut old_contents = std::mem::take(&mut self.contents);
        let mut statement = connection.prepare_cached(
            "select row_id, content_hash, scale, q8 from kn_vec where kind = ?1 and model = ?2 and dim = ?3",
        )?;
        let mut rows = statement.query(params![kind.number(), self.model, self.dimension])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            // 64 bits of the hash are enough, because only versions of one row are compared.
            let content: String = row.get(1)?;
            let content =
                content.get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or_default();
            if old_contents.remove(&id) != Some(content) {
                let bytes: Vec<u8> = row.get(3)?;
                self.index.upsert(id, &QuantizedVector { scale: row.get::<_, f64>(2)? as f32, bytes });
            }
            self.contents.insert(id, content);
        }
        old_contents.keys().for_each(|row| self.index.remove(*row));
        self.generation = generation;
        Ok(())
    }
}

/// The vectors of the reading thread, loaded at the first search and refreshed after a change of the index.
#[derive(Default)]
pub(super) struct VectorTables {
    tables: [Option<LoadedVectors>; 3],
}

impl std::fmt::Debug for VectorTables {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("VectorTables").finish_non_exhaustive()
    }
}

impl VectorTables {
    pub fn nearest(
        &mut self,
        connection: &Connection,
        kind: VectorKind,
        generation: u64,
        query: &QueryVector,
        k: usize,
        min_cosine: f32,
    ) -> Result<Vec<(i64, f64)>, KnowledgeError> {
        let dimension = query.values.len();
        if dimension == 0 || dimension > MAX_DIMENSION {
            return Ok(Vec::new());
        }
        let slot = &mut self.tables[usize::try_from(kind.number()).unwrap_or_default()];
        let mut vectors = match slot.take() {
            Some(vectors) if vectors.model == query.model && vectors.dimension == dimension => vectors,
            _ => LoadedVectors::new(&query.model, dimension),
        };
        if vectors.generation != generation {
            // The slot stays empty after an error, so that the next search loads everything.
            vectors.refresh(connection, kind, generation)?;
        }
        Ok(slot.insert(vectors).index.search(&query.values, k, min_cosine))
    }
}

/// Similarity of single chunks, read from their rows.
pub(super) fn similarities(
    connection: &Connection,
    query: &QueryVector,
    chunks: &[ChunkId],
) -> Result<Vec<Option<f32>>, KnowledgeError> {
    let query_vector = QuantizedVector::from_values(&query.values);
    let mut statement = connection.prepare_cached(
        "select v.scale, v.q8 from kn_chunk c join kn_vec v on v.kind = 2 and v.row_id = c.id \
         where c.key = ?1 and v.model = ?2 and v.dim = ?3",
    )?;
    chunks
        .iter()
        .map(|chunk| {
            let found = statement
                .query_row(params![chunk.as_str(), query.model, query.values.len()], |row| {
                    let vector = row.get_ref(1)?.as_blob()?;
                    Ok(query_vector.similarity(vector, row.get::<_, f64>(0)? as f32))
                })
                .optional()?;
            Ok(found)
        })
        .collect()
}

/// Whether rows of this kind have no vector of this model and dimension.
pub(super) fn has_stale(
    connection: &Connection,
    kind: VectorKind,
    model: &str,
    dimension: Option<usize>,
) -> Result<bool, KnowledgeError> {
    let sql = format!("select exists ({})", pending_sql(kind, "1"));
    Ok(connection.prepare_cached(&sql)?.query_row(params![model, dimension], |row| row.get(0))?)
}

/// Whether there is any vector of this model and, if it is known, this dimension.
pub(super) fn has_vectors(
    connection: &Connection,
    model: &str,
    dimension: Option<usize>,
) -> Result<bool, KnowledgeError> {
    let sql = "select exists (select 1 from kn_vec where model = ?1 and (?2 is null or dim = ?2))";
    Ok(connection.prepare_cached(sql)?.query_row(params![model, dimension], |row| row.get(0))?)
}

/// Rows without a vector of the model `?1` and the dimension `?2`, which may be unknown.
fn pending_sql(kind: VectorKind, columns: &str) -> String {
    let (table, filter) = match kind {
        VectorKind::Entity => ("kn_entity", "t.stub = 0"),
        VectorKind::Relation => ("kn_relation", "1"),
        VectorKind::Chunk => ("kn_chunk", "1"),
    };
    format!(
        "select {columns} from {table} t where {filter} and not exists (select 1 from kn_vec v where v.kind = {} \
         and v.row_id = t.id and v.model = ?1 and (?2 is null or v.dim = ?2))",
        kind.number()
    )
}

/// A text that must be embedded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingVector {
    kind: VectorKind,
    row: i64,
    pub text: String,
}

impl PendingVector {
    fn content_hash(&self) -> String {
        hash128(&[self.text.as_bytes()])
    }
}

impl Writer {
    /// Texts of this kind without a vector of this model and dimension (of any dimension if it is unknown), at most
    /// `limit`. Vectors of equal texts are copied first, so that no text is embedded twice.
    ///
    /// # Errors
    /// The read or write failed.
    pub fn pending_vectors(
        &mut self,
        kind: VectorKind,
        model: &str,
        dimension: Option<usize>,
        limit: u32,
    ) -> Result<Vec<PendingVector>, KnowledgeError> {
        let text = match kind {
            VectorKind::Entity => "t.name || char(10) || t.description",
            VectorKind::Relation => "t.keywords || char(9) || t.ends || char(10) || t.description",
            VectorKind::Chunk => {
                "coalesce(t.path, '') || ' ' || coalesce(t.symbol, '') || char(10) || t.text"
            }
        };
        let sql = format!("{} order by t.id limit ?3", pending_sql(kind, &format!("t.id, {text}")));
        self.transaction(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![model, dimension, limit], |row| {
                Ok(PendingVector { kind, row: row.get(0)?, text: row.get(1)? })
            })?;
            let mut pending = Vec::new();
            for row in rows.collect::<Result<Vec<_>, _>>()? {
                let copied = connection
                    .prepare_cached(
                        "insert or replace into kn_vec (kind, row_id, model, dim, scale, content_hash, q8) \
                         select ?1, ?2, model, dim, scale, content_hash, q8 from kn_vec \
                         where content_hash = ?3 and model = ?4 and (?5 is null or dim = ?5) limit 1",
                    )?
                    .execute(params![kind.number(), row.row, row.content_hash(), model, dimension])?;
                if copied == 0 {
                    pending.push(row);
                }
            }
            Ok(pending)
        })
    }

    /// Stores the vectors of these texts. A text that changed meanwhile gets its vector in the next round.
    ///
    /// # Errors
    /// The write failed, or the vectors have no or different lengths.
    pub fn put_vectors(
        &mut self,
        model: &str,
        pending: &[PendingVector],
        vectors: &[Vec<f32>],
    ) -> Result<(), KnowledgeError> {
        let dimension = vectors.first().map_or(0, Vec::len);
        let is_valid = pending.len() == vectors.len()
            && (1..=MAX_DIMENSION).contains(&dimension)
            && vectors.iter().all(|vector| vector.len() == dimension);
        if !is_valid {
            return Err(KnowledgeError::new(
                ErrorKind::Embedder,
                "could not store vectors: the embedder returned a wrong number of values; check the embedding model",
            ));
        }
        self.transaction(|connection| {
            for (text, vector) in pending.iter().zip(vectors) {
                let QuantizedVector { scale, bytes } = QuantizedVector::from_values(vector);
                connection
                    .prepare_cached(
                        "insert or replace into kn_vec (kind, row_id, model, dim, scale, content_hash, q8) \
                         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    )?
                    .execute(params![
                        text.kind.number(),
                        text.row,
                        model,
                        dimension,
                        f64::from(scale),
                        text.content_hash(),
                        bytes
                    ])?;
            }
            raise_generation(connection)?;
            Ok(())
        })
    }
}
