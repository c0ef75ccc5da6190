//! Vectors: one row of signed bytes each, scanned from memory. Large tables are filtered by sign bits first.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::writer::{Writer, raise_generation};
use crate::knowledge::traits::QueryVector;
use crate::knowledge::types::{ChunkId, ErrorKind, KnowledgeError, VectorKind, hash128};

/// Up to this number of vectors all are compared; above it, sign bits choose the candidates.
const MAX_EXACT: usize = 20_000;
/// Candidates that the sign bits choose. Their recall at 40 was 0.99 with a million vectors of 384 dimensions.
const MIN_CANDIDATES: usize = 800;
/// Dimensions of a vector at most.
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

/// A vector of length 1 as signed bytes and the factor that restores it.
fn quantize(values: &[f32]) -> (f32, Vec<u8>) {
    let norm = values.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
    let greatest = values.iter().fold(0.0_f32, |greatest, value| greatest.max(value.abs()));
    if !(norm.is_finite() && norm > 0.0) || greatest == 0.0 {
        return (0.0, vec![0; values.len()]);
    }
    let factor = 127.0 / greatest;
    let bytes = values.iter().map(|value| ((value * factor).round() as i8).cast_unsigned()).collect();
    ((f64::from(greatest) / 127.0 / norm) as f32, bytes)
}

/// Cosine similarity of two quantized vectors of equal length.
fn similarity(one: &[u8], one_scale: f32, other: &[u8], other_scale: f32) -> f32 {
    let sum: i32 = one
        .iter()
        .zip(other)
        .map(|(one, other)| i32::from(one.cast_signed()) * i32::from(other.cast_signed()))
        .sum();
    sum as f32 * one_scale * other_scale
}

/// The sign bits of a vector, 64 to a word.
fn sign_bits(bytes: &[u8], bits: &mut Vec<u64>) {
    for chunk in bytes.chunks(64) {
        let mut word = 0;
        for (at, byte) in chunk.iter().enumerate() {
            word |= u64::from(byte.cast_signed() > 0) << at;
        }
        bits.push(word);
    }
}

/// All vectors of one kind and model.
#[derive(Debug, Default)]
struct VectorTable {
    generation: u64,
    model: String,
    dimension: usize,
    rows: Vec<i64>,
    scales: Vec<f32>,
    bytes: Vec<u8>,
    /// Sign bits; empty for small tables.
    bits: Vec<u64>,
}

impl VectorTable {
    fn load(
        connection: &Connection,
        kind: VectorKind,
        generation: u64,
        model: &str,
        dimension: usize,
    ) -> Result<Self, KnowledgeError> {
        let mut table = Self { generation, model: model.to_owned(), dimension, ..Self::default() };
        let mut statement = connection.prepare_cached(
            "select row_id, scale, q8 from kn_vec where kind = ?1 and model = ?2 and dim = ?3 order by row_id",
        )?;
        let mut rows = statement.query(params![kind.number(), model, dimension])?;
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(2)?.as_blob().unwrap_or_default();
            if bytes.len() == dimension {
                table.rows.push(row.get(0)?);
                table.scales.push(row.get::<_, f64>(1)? as f32);
                table.bytes.extend_from_slice(bytes);
            }
        }
        if table.rows.len() > MAX_EXACT {
            for vector in table.bytes.chunks(dimension) {
                sign_bits(vector, &mut table.bits);
            }
        }
        Ok(table)
    }

    fn nearest(&self, values: &[f32], k: usize, min_cosine: f32) -> Vec<(i64, f64)> {
        let (scale, query) = quantize(values);
        let candidates: Vec<usize> = if self.bits.is_empty() {
            (0..self.rows.len()).collect()
        } else {
            let mut bits = Vec::new();
            sign_bits(&query, &mut bits);
            let mut distances: Vec<(u32, usize)> = self
                .bits
                .chunks(bits.len())
                .enumerate()
                .map(|(at, other)| {
                    (bits.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum(), at)
                })
                .collect();
            let count = MIN_CANDIDATES.max(k * 8).min(distances.len());
            if count < distances.len() {
                distances.select_nth_unstable(count);
                distances.truncate(count);
            }
            distances.into_iter().map(|(_, at)| at).collect()
        };
        let mut found: Vec<(i64, f64)> = candidates
            .into_iter()
            .map(|at| {
                let vector = &self.bytes[at * self.dimension..(at + 1) * self.dimension];
                (self.rows[at], similarity(vector, self.scales[at], &query, scale))
            })
            .filter(|(_, cosine)| *cosine >= min_cosine)
            .map(|(row, cosine)| (row, f64::from(cosine)))
            .collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        found.truncate(k);
        found
    }
}

/// The vectors of the reading thread, loaded at the first search after a change of the index.
#[derive(Debug, Default)]
pub(super) struct VectorTables {
    tables: [Option<VectorTable>; 3],
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
        let is_current = slot.as_ref().is_some_and(|table| {
            table.generation == generation && table.model == query.model && table.dimension == dimension
        });
        if !is_current {
            *slot = None;
        }
        let table = match slot {
            Some(table) => table,
            None => slot.insert(VectorTable::load(connection, kind, generation, &query.model, dimension)?),
        };
        Ok(table.nearest(&query.values, k, min_cosine))
    }
}

/// Similarity of single chunks, read from their rows.
pub(super) fn similarities(
    connection: &Connection,
    query: &QueryVector,
    chunks: &[ChunkId],
) -> Result<Vec<Option<f32>>, KnowledgeError> {
    let (scale, bytes) = quantize(&query.values);
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
                    Ok(similarity(vector, row.get::<_, f64>(0)? as f32, &bytes, scale))
                })
                .optional()?;
            Ok(found)
        })
        .collect()
}

/// Whether rows of this kind have no vector of this model.
pub(super) fn has_stale(
    connection: &Connection,
    kind: VectorKind,
    model: &str,
) -> Result<bool, KnowledgeError> {
    let sql = format!("select exists ({})", pending_sql(kind, "1"));
    Ok(connection.prepare_cached(&sql)?.query_row([model], |row| row.get(0))?)
}

/// Rows without a vector of the model `?1`.
fn pending_sql(kind: VectorKind, columns: &str) -> String {
    let (table, filter) = match kind {
        VectorKind::Entity => ("kn_entity", "t.stub = 0"),
        VectorKind::Relation => ("kn_relation", "1"),
        VectorKind::Chunk => ("kn_chunk", "1"),
    };
    format!(
        "select {columns} from {table} t where {filter} and not exists (select 1 from kn_vec v where v.kind = {} \
         and v.row_id = t.id and v.model = ?1)",
        kind.number()
    )
}

/// A text that must be embedded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingVector {
    kind: VectorKind,
    row: i64,
    /// The text.
    pub text: String,
}

impl PendingVector {
    fn content_hash(&self) -> String {
        hash128(&[self.text.as_bytes()])
    }
}

impl Writer {
    /// Texts of this kind without a vector of this model, at most `limit`. Vectors of equal texts are copied first, so that
    /// no text is embedded twice.
    ///
    /// # Errors
    /// The read or write failed.
    pub fn pending_vectors(
        &mut self,
        kind: VectorKind,
        model: &str,
        limit: u32,
    ) -> Result<Vec<PendingVector>, KnowledgeError> {
        let text = match kind {
            VectorKind::Entity => "t.name || char(10) || t.description",
            VectorKind::Relation => "t.keywords || char(9) || t.ends || char(10) || t.description",
            VectorKind::Chunk => {
                "coalesce(t.path, '') || ' ' || coalesce(t.symbol, '') || char(10) || t.text"
            }
        };
        let sql = format!("{} order by t.id limit ?2", pending_sql(kind, &format!("t.id, {text}")));
        self.transaction(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![model, limit], |row| {
                Ok(PendingVector { kind, row: row.get(0)?, text: row.get(1)? })
            })?;
            let mut pending = Vec::new();
            for row in rows.collect::<Result<Vec<_>, _>>()? {
                let copied = connection
                    .prepare_cached(
                        "insert or replace into kn_vec (kind, row_id, model, dim, scale, content_hash, q8) \
                         select ?1, ?2, model, dim, scale, content_hash, q8 from kn_vec \
                         where content_hash = ?3 and model = ?4 limit 1",
                    )?
                    .execute(params![kind.number(), row.row, row.content_hash(), model])?;
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
                let (scale, bytes) = quantize(vector);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantized_similarity_is_close_to_cosine() {
        let one: Vec<f32> = (0..384).map(|n| ((n * 7919) % 101) as f32 / 50.0 - 1.0).collect();
        let other: Vec<f32> = (0..384).map(|n| ((n * 104_729) % 97) as f32 / 48.0 - 1.0).collect();
        let dot: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
        let norm = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
        let exact = dot / norm(&one) / norm(&other);
        let ((a, x), (b, y)) = (quantize(&one), quantize(&other));
        assert!((similarity(&x, a, &y, b) - exact).abs() < 0.01);
        assert!((similarity(&x, a, &x, a) - 1.0).abs() < 0.01);
        assert_eq!(quantize(&[0.0, f32::NAN]).0, 0.0);
    }
}
