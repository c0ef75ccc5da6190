//! Properties of the graph: it depends on the stored documents only.

use proptest::prelude::*;

use super::tests::{TestStore, document, entity, relation};
use super::*;
use types::knowledge::IndexLevel;

/// One random document: its number, and the statements of its chunks as small numbers.
#[derive(Clone, Debug)]
struct DocumentScript {
    path: usize,
    version: usize,
    entities: Vec<(usize, usize)>,
    relations: Vec<(usize, usize)>,
    symbols: Vec<usize>,
    references: Vec<usize>,
}

fn script() -> impl Strategy<Value = DocumentScript> {
    let pairs = |size| prop::collection::vec((0..6_usize, 0..6_usize), 0..size);
    let numbers = || prop::collection::vec(0..4_usize, 0..3);
    (0..5_usize, 0..3_usize, pairs(5), pairs(5), numbers(), numbers()).prop_map(
        |(path, version, entities, relations, symbols, references)| DocumentScript {
            path,
            version,
            entities,
            relations,
            symbols,
            references,
        },
    )
}

fn path(script: &DocumentScript) -> String {
    format!("dir/f{}.rs", script.path)
}

fn content(script: &DocumentScript) -> (NewDocument, DocumentContent) {
    let texts = [format!("first {} {}", script.path, script.version), "second shared text".to_owned()];
    let (new, chunks) = document(&path(script), &[&texts[0], &texts[1]]);
    let name = |n: usize| format!("N{n}");
    let content = DocumentContent {
        chunks,
        entities: script
            .entities
            .iter()
            .map(|(n, kind)| {
                entity(
                    kind % 2,
                    &name(*n),
                    ["type", "function", "module"][kind % 3],
                    &format!("d{kind} of {}", path(script)),
                )
            })
            .collect(),
        relations: script
            .relations
            .iter()
            .filter(|(a, b)| a != b)
            .map(|(a, b)| relation((a + b) % 2, &name(*a), &name(*b), &format!("k{a},k{b}")))
            .collect(),
        symbols: script
            .symbols
            .iter()
            .map(|n| SymbolRecord {
                chunk: 0,
                entity: format!("sym_{n} ({})", path(script)),
                name: format!("sym_{n}"),
                parent: String::new(),
            })
            .collect(),
        references: script
            .references
            .iter()
            .map(|n| ReferenceRecord {
                chunk: 1,
                source: name(*n),
                kind: if n % 2 == 0 { ReferenceKind::Call } else { ReferenceKind::Import },
                name: format!("sym_{n}"),
                qualifier: String::new(),
            })
            .collect(),
    };
    (new, content)
}

fn put(test: &mut TestStore, script: &DocumentScript, now_ms: i64) {
    let (new, content) = content(script);
    test.writer.store_document(&new, &content, IndexLevel::Structure, now_ms).expect("stored");
}

fn resolve(test: &mut TestStore) {
    while test.writer.resolve_references().expect("resolved") > 0 {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn insert_then_delete_returns_every_table_to_its_former_state(
        documents in prop::collection::vec(script(), 0..5),
        added in script(),
    ) {
        let mut test = TestStore::new();
        for (script, now_ms) in documents.iter().filter(|script| script.path != added.path).zip(1..) {
            put(&mut test, script, now_ms);
        }
        resolve(&mut test);
        let before = test.dump();
        put(&mut test, &added, 50);
        resolve(&mut test);
        test.writer.delete_document(&path(&added), false).expect("deleted");
        prop_assert_eq!(test.dump(), before);
    }

    #[test]
    fn merge_order_of_documents_does_not_change_the_graph(
        documents in prop::collection::vec(script(), 0..5),
        keys in prop::collection::vec(any::<u32>(), 5),
    ) {
        // One version of each path; every document keeps its own time.
        let mut unique: Vec<(DocumentScript, i64)> = Vec::new();
        for (script, now_ms) in documents.into_iter().zip(1..) {
            if unique.iter().all(|(other, _)| other.path != script.path) {
                unique.push((script, now_ms));
            }
        }
        let mut test = TestStore::new();
        for (script, now_ms) in &unique {
            put(&mut test, script, *now_ms);
        }
        resolve(&mut test);
        let mut shuffled: Vec<_> = unique.iter().zip(keys).collect();
        shuffled.sort_by_key(|(_, key)| *key);
        let mut other = TestStore::new();
        for ((script, now_ms), _) in shuffled {
            put(&mut other, script, *now_ms);
            resolve(&mut other);
        }
        prop_assert_eq!(test.dump(), other.dump());
    }

    #[test]
    fn storing_a_document_again_changes_nothing(documents in prop::collection::vec(script(), 1..4)) {
        let mut test = TestStore::new();
        for script in &documents {
            put(&mut test, script, 1);
        }
        resolve(&mut test);
        let before = test.dump();
        let last = documents.last().expect("one");
        put(&mut test, last, 1);
        resolve(&mut test);
        prop_assert_eq!(test.dump(), before);
    }

    #[test]
    fn degree_and_weight_follow_the_relations(documents in prop::collection::vec(script(), 0..6)) {
        let mut test = TestStore::new();
        for (script, now_ms) in documents.iter().zip(1..) {
            put(&mut test, script, now_ms);
            resolve(&mut test);
        }
        let wrong: i64 = test.writer.connection().query_row(
            "select count(*) from kn_entity e where degree <> \
             (select count(*) from kn_relation r where r.a = e.id or r.b = e.id)", [], |row| row.get(0)).expect("a count");
        prop_assert_eq!(wrong, 0);
        let light: i64 = test.writer.connection().query_row(
            "select count(*) from kn_relation r where weight < (select count(distinct chunk_id) from kn_relation_desc s \
             where s.relation_id = r.id)", [], |row| row.get(0)).expect("a count");
        prop_assert_eq!(light, 0);
    }
}
