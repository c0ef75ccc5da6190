//! The graph that documents make.

use super::*;

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
    assert_eq!(test.read(|reader| reader.search_relations(&"calls".into(), 10)).len(), 2);
    assert_eq!(test.read(|reader| reader.search_entities(&"second".into(), 10))[0].key, "B");
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
    test.writer.store_document(&new, &content, IndexLevel::Structure, 1).unwrap();
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
    test.writer.store_document(&new, &content, IndexLevel::Structure, 2).unwrap();
    while test.writer.resolve_references().unwrap() > 0 {}
    let edges = test.read(|reader| reader.edges_of(&["caller (a.rs)".into()]));
    assert_eq!(edges[0].relation.target, "open_store (b.rs)");
    assert_eq!(edges[0].relation.keywords, "calls");
    test.writer.delete_document("b.rs", false).unwrap();
    assert_eq!(test.dump(), before);
}
