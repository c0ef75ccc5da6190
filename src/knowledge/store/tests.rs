//! The store by its public calls.

use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::knowledge::traits::QueryVector;
use crate::knowledge::types::{
    CacheKind, Chunk, ChunkId, DocId, DocumentSource, DocumentStatus, Level, PairKey, VectorKind, hash128,
};

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

/// Queries whose rows say the same after equal changes, whatever the row numbers are.
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
pub(in crate::knowledge) fn dump_file(path: &Path) -> Vec<String> {
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
    test.writer.store_document(&new, &content, Level::Structure, 1000).expect("stored");
}

#[test]
fn stored_document_is_found_by_identifier_parts_and_whole_names() {
    let mut test = TestStore::new();
    store(&mut test, "src/read_file.rs", &["fn readFileAgain() {}", "other text"], vec![], vec![]);
    for query in ["readFileAgain", "how to read a file again", "read_file", "READING files"] {
        let hits = test.read(|reader| reader.search_chunks(query, 10));
        assert!(!hits.is_empty(), "{query}");
        let chunk = &test.read(|reader| reader.chunks(&[hits[0].key.clone()]))[0];
        assert_eq!(chunk.text, "fn readFileAgain() {}", "{query}");
        assert_eq!(chunk.path.as_deref(), Some("src/read_file.rs"));
    }
    assert!(test.read(|reader| reader.search_chunks("\" OR * NEAR(", 10)).is_empty());
}

#[test]
fn entities_and_edges_come_with_degrees_and_ranks() {
    let mut test = TestStore::new();
    let entities = vec![entity(0, "A", "type", "first"), entity(0, "B", "type", "second")];
    store(
        &mut test,
        "a",
        &["x"],
        entities,
        vec![relation(0, "B", "A", "calls"), relation(0, "B", "C", "calls")],
    );
    let found = test.read(|reader| reader.entities(&["B".into(), "missing".into(), "A".into(), "C".into()]));
    let degrees: Vec<(&str, u32, bool)> =
        found.iter().map(|entity| (entity.name.as_str(), entity.degree, entity.stub)).collect();
    assert_eq!(degrees, [("B", 2, false), ("A", 1, false), ("C", 1, true)]);
    let edges = test.read(|reader| reader.edges_of(&["A".into(), "B".into()]));
    assert_eq!(edges.len(), 2);
    assert_eq!((edges[0].relation.source.as_str(), edges[0].relation.target.as_str()), ("B", "A"));
    assert_eq!(edges[0].rank, 3);
    let chunks = test.read(|reader| reader.entity_chunks(&["A".into(), "none".into(), "C".into()]));
    assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0]);
    let pair = PairKey::new("C", "B");
    assert_eq!(test.read(|reader| reader.relation_chunks(std::slice::from_ref(&pair)))[0].len(), 1);
    assert_eq!(test.read(|reader| reader.search_relations("calls", 10)).len(), 2);
    assert_eq!(test.read(|reader| reader.search_entities("second", 10))[0].key, "B");
}

#[test]
fn changed_file_replaces_its_chunks_and_contributions() {
    let mut test = TestStore::new();
    store(&mut test, "other", &["x"], vec![entity(0, "Kept", "type", "by other")], vec![]);
    let before = test.dump();
    let entities = vec![entity(0, "Old", "type", "d"), entity(0, "Kept", "type", "by old")];
    store(&mut test, "a", &["old"], entities, vec![relation(0, "Old", "Kept", "k")]);
    store(&mut test, "a", &["new"], vec![entity(0, "New", "type", "d")], vec![]);
    assert!(test.read(|reader| reader.entities(&["Old".into()])).is_empty());
    assert!(test.read(|reader| reader.search_chunks("old", 10)).is_empty());
    assert_eq!(test.read(|reader| reader.entities(&["Kept".into()]))[0].description, "by other");
    assert_eq!(test.read(IndexReader::counts).documents, 2);
    assert_eq!(test.writer.delete_document("a", false), Ok(DeleteOutcome::Deleted));
    assert_eq!(test.dump(), before);
    assert_eq!(test.writer.delete_document("a", false), Ok(DeleteOutcome::NotFound));
}

#[test]
fn relation_weight_counts_chunks_and_ignores_repeated_indexing() {
    let mut test = TestStore::new();
    let records = |weight: f64| {
        (0..2).map(|chunk| RelationRecord { weight, ..relation(chunk, "A", "B", "k, l") }).collect::<Vec<_>>()
    };
    store(&mut test, "a", &["x", "y"], vec![], vec![]);
    let id = document("a", &["x", "y"]).0.id;
    for _ in 0..3 {
        test.writer.store_extraction(&id, &[], &records(0.25), 5).unwrap();
        let edge = &test.read(|reader| reader.relations(&[PairKey::new("A", "B")]))[0];
        assert!((edge.relation.weight - 2.0).abs() < 1e-9, "{}", edge.relation.weight);
        assert_eq!(edge.relation.keywords, "k,l");
    }
    test.writer.store_extraction(&id, &[], &records(3.0), 5).unwrap();
    let edge = &test.read(|reader| reader.relations(&[PairKey::new("A", "B")]))[0];
    assert!((edge.relation.weight - 6.0).abs() < 1e-9);
}

#[test]
fn entity_type_is_the_most_frequent_and_descriptions_are_joined_once() {
    let mut test = TestStore::new();
    for (path, entity_type, description) in [
        ("a", "person", "one"),
        ("b", "company", "two"),
        ("c", "person", "one"),
        ("d", "company", "three"),
        ("e", "person", "two"),
    ] {
        store(&mut test, path, &[path], vec![entity(0, "X", entity_type, description)], vec![]);
    }
    let found = &test.read(|reader| reader.entities(&["X".into()]))[0];
    assert_eq!(found.entity_type, "person");
    let mut lines: Vec<&str> = found.description.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["one", "three", "two"]);
}

#[test]
fn eight_model_descriptions_need_a_summary_that_deletion_undoes() {
    let mut test = TestStore::new();
    test.writer.set_model("m1").unwrap();
    for n in 0..8 {
        let path = format!("f{n}");
        store(&mut test, &path, &[&path], vec![], vec![]);
        let id = document(&path, &[&path]).0.id;
        let records = [entity(0, "X", "thing", &format!("fact {n}"))];
        test.writer.store_extraction(&id, &records, &[], 10 + n).unwrap();
        assert_eq!(test.writer.pending_summaries(10).unwrap().len(), usize::from(n == 7));
    }
    let pending = test.writer.pending_summaries(10).unwrap().remove(0);
    assert_eq!(pending.descriptions.len(), 8);
    test.writer.put_summary(&pending, "m1", "all facts").unwrap();
    assert_eq!(test.read(|reader| reader.entities(&["X".into()]))[0].description, "all facts");
    test.writer.delete_document("f3", false).unwrap();
    let found = test.read(|reader| reader.entities(&["X".into()]))[0].description.clone();
    assert!(!found.contains("fact 3") && found.contains("fact 7"), "{found}");
    assert!(test.writer.pending_summaries(10).unwrap().is_empty());
}

#[test]
fn calls_are_resolved_when_their_symbol_comes_later_and_undone_when_it_goes() {
    let mut test = TestStore::new();
    let (new, chunks) = document("a.rs", &["caller"]);
    let content = DocumentContent {
        chunks,
        entities: vec![entity(0, "caller (a.rs)", "function", "calls")],
        references: vec![ReferenceRecord {
            chunk: 0,
            source: "caller (a.rs)".into(),
            kind: ReferenceKind::Call,
            name: "open_store".into(),
            qualifier: String::new(),
        }],
        ..DocumentContent::default()
    };
    test.writer.store_document(&new, &content, Level::Structure, 1).unwrap();
    while test.writer.resolve_references().unwrap() > 0 {}
    let before = test.dump();
    let (new, chunks) = document("b.rs", &["callee"]);
    let content = DocumentContent {
        chunks,
        entities: vec![entity(0, "open_store (b.rs)", "function", "opens")],
        symbols: vec![SymbolRecord {
            chunk: 0,
            entity: "open_store (b.rs)".into(),
            name: "open_store".into(),
            parent: String::new(),
        }],
        ..DocumentContent::default()
    };
    test.writer.store_document(&new, &content, Level::Structure, 2).unwrap();
    while test.writer.resolve_references().unwrap() > 0 {}
    let edges = test.read(|reader| reader.edges_of(&["caller (a.rs)".into()]));
    assert_eq!(edges[0].relation.target, "open_store (b.rs)");
    assert_eq!(edges[0].relation.keywords, "calls");
    test.writer.delete_document("b.rs", false).unwrap();
    assert_eq!(test.dump(), before);
}

#[test]
fn inserted_document_is_kept_until_processed_and_then_a_repeat_is_no_op() {
    let mut test = TestStore::new();
    let (mut new, chunks) = document("x", &["text"]);
    (new.source, new.path) = (DocumentSource::Inserted, None);
    assert_eq!(test.writer.accept_document(&new, "text", 1), Ok(true));
    let mut test = test.reopen();
    assert_eq!(test.writer.unprocessed_inserts("", 10).unwrap()[0].1, "text");
    assert_eq!(test.read(IndexReader::counts).open_documents, 1);
    let content = DocumentContent { chunks, ..DocumentContent::default() };
    test.writer.store_document(&new, &content, Level::Structure, 2).unwrap();
    assert!(test.writer.unprocessed_inserts("", 10).unwrap().is_empty());
    assert_eq!(test.writer.accept_document(&new, "text", 3), Ok(false));
    let document = test.read(|reader| reader.document(new.id.as_str())).unwrap();
    assert_eq!((document.status, document.chunks), (DocumentStatus::Processed, 1));
    assert_eq!(document.created_at_ms, 1, "the time of the first insert");
}

#[test]
fn vectors_are_shared_between_equal_texts_and_replaced_for_a_new_model() {
    let mut test = TestStore::new();
    store(&mut test, "a", &["one", "two"], vec![entity(0, "E", "type", "d")], vec![]);
    let embed = |test: &mut TestStore, model: &str, kind| {
        let pending = test.writer.pending_vectors(kind, model, 10).unwrap();
        let vectors: Vec<Vec<f32>> = pending
            .iter()
            .map(|text| if text.text.contains("one") { vec![1.0, 0.0, 0.1] } else { vec![0.0, 1.0, 0.1] })
            .collect();
        if !pending.is_empty() {
            test.writer.put_vectors(model, &pending, &vectors).unwrap();
        }
        pending.len()
    };
    assert_eq!(embed(&mut test, "m1", VectorKind::Chunk), 2);
    assert!(!test.read(|reader| reader.has_stale_vectors(VectorKind::Chunk, "m1")));
    assert!(test.read(|reader| reader.has_stale_vectors(VectorKind::Chunk, "m2")));
    let query = QueryVector { model: "m1".into(), values: vec![1.0, 0.0, 0.0] };
    let near = test.read(|reader| reader.nearest_chunks(&query, 10, 0.2));
    assert_eq!(near.len(), 1);
    let chunk = test.read(|reader| reader.chunks(&[near[0].key.clone()])).remove(0);
    assert_eq!(chunk.text, "one");
    let both = document("a", &["one", "two"]).1;
    let ids: Vec<ChunkId> = both.iter().map(|chunk| chunk.id.clone()).collect();
    let similar = test.read(|reader| reader.similarities(&query, &ids));
    assert!(similar[0].unwrap() > 0.9 && similar[1].unwrap() < 0.2);
    // Another dimension and model: nothing is found until it is embedded again.
    let other = QueryVector { model: "m2".into(), values: vec![1.0, 0.0] };
    assert!(test.read(|reader| reader.nearest_chunks(&other, 10, 0.2)).is_empty());
    assert_eq!(embed(&mut test, "m2", VectorKind::Chunk), 2);
    assert!(test.read(|reader| reader.nearest_chunks(&query, 10, 0.2)).is_empty());
    let wrong = test.writer.pending_vectors(VectorKind::Entity, "m2", 10).unwrap();
    assert!(test.writer.put_vectors("m2", &wrong, &[]).is_err());
}

#[test]
fn cached_answers_survive_document_deletion_unless_requested() {
    let mut test = TestStore::new();
    store(&mut test, "a", &["x"], vec![], vec![]);
    let chunk = document("a", &["x"]).1.remove(0).id;
    let put = |test: &mut TestStore, key: &str| {
        let answer = CachedAnswer {
            kind: CacheKind::Extract,
            key: key.into(),
            value: "v".into(),
            chunk: Some(chunk.clone()),
        };
        test.writer.put_answers(&[answer], 1).unwrap();
    };
    put(&mut test, "k1");
    test.writer.delete_document("a", false).unwrap();
    assert_eq!(test.writer.cached_answer(CacheKind::Extract, "k1").unwrap().as_deref(), Some("v"));
    store(&mut test, "a", &["x"], vec![], vec![]);
    put(&mut test, "k2");
    test.writer.delete_document("a", true).unwrap();
    assert_eq!(test.writer.cached_answer(CacheKind::Extract, "k2").unwrap(), None);
    assert_eq!(test.writer.clear_cache(&[]).unwrap(), 1);
}

#[test]
fn edited_entity_keeps_its_text_and_name_when_documents_change() {
    let mut test = TestStore::new();
    store(
        &mut test,
        "a",
        &["x"],
        vec![entity(0, "Old", "type", "found")],
        vec![relation(0, "Old", "B", "k")],
    );
    let edit =
        EntityEdit { name: Some("New".into()), description: Some("by hand".into()), ..EntityEdit::default() };
    test.writer.update_entity("Old", &edit, 5).unwrap();
    store(
        &mut test,
        "a",
        &["y"],
        vec![entity(0, "Old", "type", "found again")],
        vec![relation(0, "Old", "B", "k")],
    );
    let found = test.read(|reader| reader.entities(&["New".into(), "Old".into()]));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].description.as_str(), found[0].degree), ("by hand", 1));
    assert_eq!(test.read(|reader| reader.search_relations("New", 5)).len(), 1);
    let taken = EntityEdit { name: Some("B".into()), ..EntityEdit::default() };
    assert_eq!(test.writer.update_entity("New", &taken, 6).unwrap_err().kind, ErrorKind::Exists);
    assert_eq!(test.writer.update_entity("none", &edit, 6).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn created_entities_and_relations_survive_document_deletion() {
    let mut test = TestStore::new();
    let before = test.dump();
    test.writer.create_entity("A", "concept", "mine", 1).unwrap();
    assert_eq!(test.writer.create_entity("A", "x", "y", 1).unwrap_err().kind, ErrorKind::Exists);
    test.writer.create_relation("A", "B", "k", "mine too", 2.5, 1).unwrap();
    assert_eq!(test.writer.create_relation("B", "A", "k", "d", 1.0, 1).unwrap_err().kind, ErrorKind::Exists);
    assert_eq!(test.writer.create_relation("A", "A", "k", "d", 1.0, 1).unwrap_err().kind, ErrorKind::Invalid);
    store(&mut test, "a", &["x"], vec![entity(0, "A", "type", "found")], vec![relation(0, "A", "B", "z")]);
    test.writer.delete_document("a", false).unwrap();
    let edges = test.read(|reader| reader.edges_of(&["A".into()]));
    assert_eq!((edges[0].relation.description.as_str(), edges[0].relation.weight), ("mine too", 2.5));
    let pair = PairKey::new("A", "B");
    let edit = RelationEdit { keywords: Some("b, a".into()), ..RelationEdit::default() };
    test.writer.update_relation(&pair, &edit, 2).unwrap();
    let edge = test.read(|reader| reader.relations(std::slice::from_ref(&pair))).remove(0);
    assert_eq!((edge.relation.keywords.as_str(), edge.relation.source.as_str()), ("a,b", "A"));
    test.writer.delete_relation(&pair).unwrap();
    assert_eq!(test.writer.delete_relation(&pair).unwrap_err().kind, ErrorKind::NotFound);
    test.writer.delete_entity("A").unwrap();
    assert_eq!(test.dump(), before);
}

#[test]
fn merged_entities_share_sources_relations_and_later_extractions() {
    let mut test = TestStore::new();
    store(
        &mut test,
        "a",
        &["x"],
        vec![entity(0, "JS", "language", "short"), entity(0, "Javascript", "language", "long form")],
        vec![
            relation(0, "JS", "Node", "runs"),
            relation(0, "Node", "Javascript", "hosts"),
            relation(0, "JS", "Javascript", "is"),
        ],
    );
    test.writer
        .merge_entities(&["JS".into(), "Javascript".into()], "JavaScript", &EntityEdit::default(), 2)
        .unwrap();
    let found = test.read(|reader| reader.entities(&["JS".into(), "Javascript".into(), "JavaScript".into()]));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].degree), ("JavaScript", 1));
    let edge = test.read(|reader| reader.relations(&[PairKey::new("JavaScript", "Node")])).remove(0);
    assert_eq!(edge.relation.keywords, "hosts,runs");
    store(&mut test, "b", &["y"], vec![entity(0, "JS", "language", "later")], vec![]);
    let found = test.read(|reader| reader.entities(&["JavaScript".into()])).remove(0);
    assert!(found.description.contains("later"), "{}", found.description);
    assert_eq!(test.read(IndexReader::counts).entities, 2);
}

#[tokio::test]
async fn damaged_file_is_set_aside_and_an_empty_index_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/index.db");
    drop(KnowledgeStore::open(&path).unwrap());
    for damage in [&b"this is no database at all, by far not"[..], &[0_u8; 4096]] {
        // The threads of the last handle close the file after it is dropped.
        let wal = path.with_file_name("index.db-wal");
        crate::knowledge::index::testing::wait_until(|| !wal.exists()).await;
        std::fs::write(&path, damage).unwrap();
        let store = KnowledgeStore::open(&path).unwrap();
        let is_fresh_file = damage.iter().all(|byte| *byte == 0);
        assert!(store.was_rebuilt() || is_fresh_file);
    }
    let aside = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".damaged-"));
    assert!(aside.count() >= 1);
}

#[tokio::test]
async fn damage_below_the_first_pages_is_noticed_and_reopened_empty() {
    use std::os::unix::fs::FileExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    let store = KnowledgeStore::open(&path).unwrap();
    store
        .write(|writer| {
            for n in 0..50 {
                let (text, path) = (format!("text {n}").repeat(200), format!("f{n}"));
                let (new, chunks) = document(&path, &[&text]);
                writer.store_document(
                    &new,
                    &DocumentContent { chunks, ..Default::default() },
                    Level::Lexical,
                    1,
                )?;
            }
            Ok(())
        })
        .await
        .unwrap();
    drop(store);
    // The threads close the file after the last handle is gone.
    let wal = folder.path().join("index.db-wal");
    crate::knowledge::index::testing::wait_until(|| !wal.exists()).await;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0xa5; usize::try_from(length).unwrap() / 2], length / 2).unwrap();
    drop(file);
    let store = KnowledgeStore::open(&path).unwrap();
    let read = store.read_rows(|reader| {
        for document in reader.documents(&DocumentFilter::default(), 1000)? {
            reader.document_chunks(document.id.as_str())?;
        }
        reader.counts()
    });
    assert_eq!(read.await.unwrap_err().kind, ErrorKind::Damaged);
    assert!(store.is_damaged());
    drop(store);
    let store = KnowledgeStore::reopen_empty(&path).unwrap();
    assert!(store.was_rebuilt());
    assert_eq!(store.read(|reader| reader.counts()).await.unwrap().documents, 0);
}

#[tokio::test]
async fn panic_on_the_index_thread_fails_one_call_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = KnowledgeStore::open(&folder.path().join("index.db")).unwrap();
    let broken = store.write(|_| -> Result<(), KnowledgeError> { panic!("as a test wants it") }).await;
    assert_eq!(broken.unwrap_err().kind, ErrorKind::Storage);
    assert_eq!(store.read(|reader| reader.generation()).await.unwrap(), 0);
}

#[test]
fn file_of_another_program_that_holds_the_lock_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    let (mut writer, _reader) = open(&path);
    writer.connection().busy_timeout(std::time::Duration::ZERO).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    assert_eq!(writer.set_model("x").unwrap_err().kind, ErrorKind::Busy);
    other.execute_batch("rollback").unwrap();
    writer.set_model("x").unwrap();
}
