//! The store by its public calls.

mod damage;
mod documents;
mod edits;
mod graph;

use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::traits::QueryVector;
use crate::types::{Chunk, ChunkId, DocId, VectorKind, hash128};
use types::knowledge::{CacheKind, DocumentSource, DocumentStatus, IndexLevel, PairKey};

/// A store in a folder of its own, with direct access to the writer and the reader.
pub(super) struct TestStore {
    pub writer: Writer,
    pub reader: Reader,
    folder: tempfile::TempDir,
}

impl TestStore {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (writer, reader) = open(&folder.path().join("index.db"));
        Self { writer, reader, folder }
    }

    /// Closes both connections and opens the file again, as after a crash.
    pub fn reopen(self) -> Self {
        let Self { writer, reader, folder } = self;
        drop((writer, reader));
        let (writer, reader) = open(&folder.path().join("index.db"));
        Self { writer, reader, folder }
    }

    /// Every row of every table, sorted, without row numbers, times and generations.
    pub fn dump(&self) -> Vec<String> {
        dump(self.writer.connection())
    }

    pub fn read<T>(&mut self, read: impl FnOnce(&Reader) -> Result<T, KnowledgeError>) -> T {
        self.reader.snapshot(read).expect("a read")
    }
}

fn open(path: &Path) -> (Writer, Reader) {
    let (connection, _) = file::open_to_write(path).expect("a file");
    (Writer::new(connection).expect("a writer"), Reader::new(file::open_to_read(path).expect("a file")))
}

/// Queries whose rows are equal after equal changes, for any row numbers.
const DUMPS: &[&str] = &[
    "select 'doc', key, path, hash, source, status, level, error, lang, bytes from kn_doc",
    "select 'chunk', c.key, d.key, c.ord, c.text, c.symbol, c.path, c.words from kn_chunk c join kn_doc d on d.id = c.doc_id",
    "select 'entity', name, type, description, degree, stub, words, summary_due from kn_entity",
    "select 'entity_desc', e.name, c.key, s.origin, s.type, s.description from kn_entity_desc s \
     left join kn_entity e on e.id = s.entity_id left join kn_chunk c on c.id = s.chunk_id",
    "select 'relation', min(ea.name, eb.name), max(ea.name, eb.name), r.forward = (ea.name < eb.name), r.keywords, \
     r.description, r.weight, r.ends, r.words from kn_relation r \
     left join kn_entity ea on ea.id = r.a left join kn_entity eb on eb.id = r.b",
    "select 'relation_desc', r.ends, c.key, s.origin, s.keywords, s.description, s.weight from kn_relation_desc s \
     left join kn_relation r on r.id = s.relation_id left join kn_chunk c on c.id = s.chunk_id",
    "select 'symbol', c.key, s.entity, s.name, s.parent from kn_symbol s left join kn_chunk c on c.id = s.chunk_id",
    "select 'reference', c.key, r.source, r.kind, r.name, r.qualifier, l.ends from kn_reference r \
     left join kn_chunk c on c.id = r.chunk_id left join kn_relation l on l.id = r.relation_id",
    "select 'unresolved', name from kn_unresolved",
    "select 'alias', alias, name from kn_alias",
    "select 'text', d.key, t.text from kn_doc_text t join kn_doc d on d.id = t.doc_id",
    "select 'vec', kind, coalesce(c.key, e.name, r.ends), model from kn_vec v \
     left join kn_chunk c on v.kind = 2 and c.id = v.row_id left join kn_entity e on v.kind = 0 and e.id = v.row_id \
     left join kn_relation r on v.kind = 1 and r.id = v.row_id",
];

/// The dump of a file that no thread of this process may still use.
pub(crate) fn dump_file(path: &Path) -> Vec<String> {
    dump(&file::open_to_write(path).expect("a file").0)
}

pub(super) fn dump(connection: &Connection) -> Vec<String> {
    // The full-text tables agree with their content.
    for table in ["kn_fts_chunk", "kn_fts_entity", "kn_fts_relation"] {
        connection
            .execute(&format!("insert into {table} ({table}, rank) values ('integrity-check', 1)"), [])
            .unwrap_or_else(|error| panic!("{table}: {error}"));
    }
    let mut lines = Vec::new();
    for sql in DUMPS {
        let mut statement = connection.prepare(sql).expect("a query");
        let columns = statement.column_count();
        let rows = statement
            .query_map([], |row| {
                let values: Vec<String> = (0..columns)
                    .map(|at| row.get::<_, rusqlite::types::Value>(at).map(|value| format!("{value:?}")))
                    .collect::<Result<_, _>>()?;
                Ok(values.join(" | "))
            })
            .expect("rows");
        lines.extend(rows.map(|row| row.expect("a row")));
    }
    lines.sort();
    lines
}

/// A document of chunks with these texts.
pub(super) fn document(path: &str, texts: &[&str]) -> (NewDocument, Vec<Chunk>) {
    let hash = hash128(&[texts.join("\n").as_bytes()]);
    let id = DocId(format!("doc-{}", hash128(&[path.as_bytes(), hash.as_bytes()])));
    let new = NewDocument {
        id: id.clone(),
        path: Some(path.into()),
        hash,
        source: DocumentSource::File,
        language: Some("rust".into()),
        bytes: 10,
        modified_ns: 7,
    };
    let chunks = texts
        .iter()
        .zip(0..)
        .map(|(text, ordinal)| Chunk {
            id: ChunkId::of_chunk(&id, ordinal, text),
            doc_id: id.clone(),
            path: Some(path.into()),
            ordinal,
            text: (*text).into(),
            tokens: 3,
            start_byte: 0,
            end_byte: 1,
            start_line: ordinal + 1,
            end_line: ordinal + 1,
            language: Some("rust".into()),
            symbol: None,
            content_hash: hash128(&[text.as_bytes()]),
        })
        .collect();
    (new, chunks)
}

pub(super) fn entity(chunk: usize, name: &str, entity_type: &str, description: &str) -> EntityRecord {
    EntityRecord {
        chunk,
        name: name.into(),
        entity_type: entity_type.into(),
        description: description.into(),
    }
}

pub(super) fn relation(chunk: usize, source: &str, target: &str, keywords: &str) -> RelationRecord {
    RelationRecord {
        chunk,
        source: source.into(),
        target: target.into(),
        keywords: keywords.into(),
        description: format!("{source} and {target}"),
        weight: 1.0,
    }
}

fn store(
    test: &mut TestStore,
    path: &str,
    texts: &[&str],
    entities: Vec<EntityRecord>,
    relations: Vec<RelationRecord>,
) {
    let (new, chunks) = document(path, texts);
    let content = DocumentContent { chunks, entities, relations, ..DocumentContent::default() };
    test.writer.store_document(&new, &content, IndexLevel::Structure, 1000).expect("stored");
}
