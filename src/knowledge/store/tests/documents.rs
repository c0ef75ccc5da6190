//! Documents, vectors and cached answers.

use super::*;

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
fn inserted_document_is_kept_until_processed_and_then_a_repeat_is_no_op() {
    let mut test = TestStore::new();
    let (mut new, chunks) = document("x", &["text"]);
    (new.source, new.path) = (DocumentSource::Inserted, None);
    assert_eq!(test.writer.accept_document(&new, "text", 1), Ok(true));
    let mut test = test.reopen();
    assert_eq!(test.writer.unprocessed_inserts("", 10).unwrap()[0].1, "text");
    assert_eq!(test.read(IndexReader::counts).open_documents, 1);
    let content = DocumentContent { chunks, ..DocumentContent::default() };
    test.writer.store_document(&new, &content, IndexLevel::Structure, 2).unwrap();
    assert!(test.writer.unprocessed_inserts("", 10).unwrap().is_empty());
    assert_eq!(test.writer.accept_document(&new, "text", 3), Ok(false));
    let document = test.read(|reader| reader.document(new.id.as_str())).unwrap();
    assert_eq!((document.status, document.chunks), (DocumentStatus::Processed, 1));
    let created_ms =
        test.writer.connection().query_row("select created_ms from kn_doc", [], |row| row.get(0));
    assert_eq!(created_ms, Ok(1_i64), "the time of the first insert");
}

#[test]
fn vectors_are_shared_between_equal_texts_and_replaced_for_a_new_model() {
    let mut test = TestStore::new();
    store(&mut test, "a", &["one", "two"], vec![entity(0, "E", "type", "d")], vec![]);
    let embed = |test: &mut TestStore, model: &str, kind| {
        let pending = test.writer.pending_vectors(kind, model, None, 10).unwrap();
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
    assert!(!test.read(|reader| reader.has_stale_vectors(VectorKind::Chunk, "m1", None)));
    assert!(test.read(|reader| reader.has_stale_vectors(VectorKind::Chunk, "m2", None)));
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
    let wrong = test.writer.pending_vectors(VectorKind::Entity, "m2", None, 10).unwrap();
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
fn chinese_japanese_and_korean_texts_are_found_by_their_words() {
    let mut test = TestStore::new();
    let texts = [
        "会话在闲置五分钟后被卸载。agentd的权限请求会等待用户。",
        "トークンはキャッシュに保存される。吾輩は猫である。",
        "세션은 유휴 상태에서 언로드된다. 파일을 읽는다.",
        "𠮷野家 is a name with a rare character",
        "plain English text about sessions",
    ];
    store(&mut test, "notes.md", &texts, vec![entity(0, "权限请求", "concept", "等待用户的回答")], vec![]);
    for (query, ordinal) in [
        ("会话什么时候卸载?", 0),
        ("权限", 0),
        ("agentd", 0),
        ("卸", 0),
        ("キャッシュの保存", 1),
        ("猫", 1),
        ("세션", 2),
        ("파일을 어떻게 읽는가", 2),
        ("𠮷野家", 3),
        ("session", 4),
    ] {
        let hits = test.read(|reader| reader.search_chunks(query, 5));
        let first = hits.first().unwrap_or_else(|| panic!("{query} found nothing"));
        let chunk = &test.read(|reader| reader.chunks(std::slice::from_ref(&first.key)))[0];
        assert_eq!(chunk.ordinal, ordinal, "{query}: {hits:?}");
    }
    assert_eq!(test.read(|reader| reader.search_chunks("数据库", 5)), []);
    assert_eq!(test.read(|reader| reader.search_entities(&"权限".into(), 5))[0].key, "权限请求");
}

#[test]
fn vectors_of_another_dimension_are_stale_and_replaced() {
    let mut test = TestStore::new();
    store(&mut test, "a.rs", &["one"], vec![], vec![]);
    let kind = VectorKind::Chunk;
    let pending = test.writer.pending_vectors(kind, "m", None, 10).unwrap();
    test.writer.put_vectors("m", &pending, &[vec![1.0, 0.0]]).unwrap();
    assert!(!test.read(|reader| reader.has_stale_vectors(kind, "m", None)));
    assert!(!test.read(|reader| reader.has_stale_vectors(kind, "m", Some(2))));
    assert!(test.read(|reader| reader.has_stale_vectors(kind, "m", Some(3))));
    let query = |values: &[f32]| QueryVector { model: "m".into(), values: values.to_vec() };
    assert!(test.read(|reader| reader.nearest_chunks(&query(&[1.0, 0.0, 0.0]), 5, 0.0)).is_empty());
    let pending = test.writer.pending_vectors(kind, "m", Some(3), 10).unwrap();
    test.writer.put_vectors("m", &pending, &[vec![0.0, 1.0, 0.0]]).unwrap();
    assert_eq!(test.read(|reader| reader.nearest_chunks(&query(&[0.0, 1.0, 0.0]), 5, 0.5)).len(), 1);
    assert!(test.read(|reader| reader.nearest_chunks(&query(&[1.0, 0.0]), 5, 0.0)).is_empty());
}

#[test]
fn skipped_files_are_known_until_they_change_or_go() {
    let mut test = TestStore::new();
    let skipped = |path: &str| SkippedFile { path: path.into(), bytes: 3, modified_ns: 7 };
    test.writer.note_skipped(&[skipped("a.bin"), skipped("b.bin")], &[]).unwrap();
    let changed = SkippedFile { bytes: 4, ..skipped("a.bin") };
    test.writer.note_skipped(std::slice::from_ref(&changed), &["b.bin".into()]).unwrap();
    assert_eq!(test.writer.skipped_files().unwrap(), [changed]);
}
