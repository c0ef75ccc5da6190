//! Changes of the graph by users, and the resolution of the names that they use.

use super::*;

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
    assert_eq!(test.read(|reader| reader.search_relations(&"New".into(), 5)).len(), 1);
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

#[test]
fn part_of_a_name_is_enough_unless_several_entities_have_it() {
    let mut test = TestStore::new();
    let names =
        ["load (src/a.rs)", "load (src/b.rs)", "Store::open (src/a.rs)", "src/a.rs", "Parser (src/a.rs)"];
    let entities = names.iter().map(|name| entity(0, name, "function", "d")).collect();
    let (new, chunks) = document("src/a.rs", &["x"]);
    let symbols = vec![SymbolRecord {
        chunk: 0,
        entity: "Store::open (src/a.rs)".into(),
        name: "open".into(),
        parent: "Store".into(),
    }];
    let content = DocumentContent { chunks, entities, symbols, ..DocumentContent::default() };
    test.writer.store_document(&new, &content, IndexLevel::Structure, 1).unwrap();
    let mut find = |name: &str| test.reader.snapshot(|reader| reader.find_entity(name));
    for (name, whole) in [
        ("Parser (src/a.rs)", "Parser (src/a.rs)"),
        ("Parser", "Parser (src/a.rs)"),
        ("parser", "Parser (src/a.rs)"),
        ("open", "Store::open (src/a.rs)"),
        ("Store::open", "Store::open (src/a.rs)"),
        ("a.rs", "src/a.rs"),
    ] {
        assert_eq!(find(name).unwrap().as_deref(), Some(whole), "{name}");
    }
    for none in ["Pars", "Store::close", "", "%", "(src/a.rs)"] {
        assert_eq!(find(none).unwrap(), None, "{none}");
    }
    let error = find("load").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Ambiguous);
    assert_eq!(error.candidates, ["load (src/a.rs)", "load (src/b.rs)"]);
    assert!(error.message.contains("load (src/b.rs)"), "{error}");
    let edit = EntityEdit { description: Some("mine".into()), ..EntityEdit::default() };
    assert_eq!(test.writer.update_entity("Parser", &edit, 2).unwrap(), "Parser (src/a.rs)");
    let key = test.writer.create_relation("Parser", "open", "k", "d", 1.0, 3).unwrap();
    assert_eq!((key.first(), key.second()), ("Parser (src/a.rs)", "Store::open (src/a.rs)"));
    assert_eq!(
        test.writer.create_relation("load", "x", "k", "d", 1.0, 3).unwrap_err().kind,
        ErrorKind::Ambiguous
    );
    test.writer.delete_relation(&PairKey::new("open", "parser")).unwrap();
}
