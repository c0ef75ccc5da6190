//! Jobs from scan to end, with files in memory and scripted models.

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::testing::{HashEmbedder, IndexFixture, ScriptedModel, answer, model_error, request};
use super::*;
use crate::store::{DeleteOutcome, DocumentFilter};
use crate::traits::{CallPurpose, Completion, QueryVector};
use crate::types::{ErrorKind, JobEvent, JobOutcome};
use types::knowledge::{DocumentStatus, IndexLevel, IndexStage, InsertedDocument, PairKey};

const RUST: &str =
    "//! Keeps rows.\n\n/// Opens it.\npub fn open_store() { check_rows() }\n\nfn check_rows() {}\n";

fn outcome_counts(outcome: &JobOutcome) -> (u64, u64, u64, u64, u64) {
    match outcome {
        JobOutcome::Done(it) => (it.indexed, it.unchanged, it.removed, it.skipped, it.failed),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn second_job_reads_changed_files_only() {
    let workspace = IndexFixture::new();
    workspace.files.put("src/store.rs", RUST);
    workspace.files.put("README.md", "# Title\n\nSee [the store](src/store.rs).\n");
    workspace.files.put("data.bin", b"\0\x01\x02");
    workspace.files.put(".ssh/id_rsa", "x");
    workspace.files.put("big.txt", "x".repeat(1024 * 1024 + 1));
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Structure).await), (2, 0, 0, 3, 0));
    let reads = workspace.files.take_reads();
    assert_eq!(reads, ["README.md", "data.bin", "src/store.rs"]);
    let store = &workspace.indexer.store;
    let edges = store.read(|reader| reader.edges_of(&["open_store (src/store.rs)".into()])).await.unwrap();
    let found: Vec<&str> = edges.iter().map(|edge| edge.relation.keywords.as_str()).collect();
    assert_eq!(found, ["defines", "calls"]);
    let link = store
        .read(|reader| reader.relations(&[PairKey::new("Title (README.md)", "src/store.rs")]))
        .await
        .unwrap();
    assert_eq!(link[0].relation.keywords, "links");

    let generation = store.read(|reader| reader.generation()).await.unwrap();
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Structure).await), (0, 2, 0, 3, 0));
    assert_eq!(workspace.files.take_reads(), [""; 0], "a binary is not read again");
    let unchanged = store.read(|reader| reader.generation()).await.unwrap();
    assert_eq!(unchanged, generation, "cached answers to queries stay valid");

    workspace.files.put("src/store.rs", RUST);
    assert_eq!(
        outcome_counts(&workspace.index(IndexLevel::Structure).await).0,
        0,
        "touched, but the same content"
    );
    workspace.files.put("src/store.rs", "fn other_name() {}\n");
    workspace.files.remove("README.md");
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Structure).await), (1, 0, 1, 3, 0));
    let hits = store.read(|reader| reader.search_chunks("check_rows Title", 10)).await.unwrap();
    assert!(hits.is_empty());
}

#[tokio::test]
async fn lexical_level_makes_no_graph_and_structure_adds_it_later() {
    let workspace = IndexFixture::new();
    workspace.files.put("src/store.rs", RUST);
    workspace.index(IndexLevel::Lexical).await;
    let store = &workspace.indexer.store;
    let counts = store.read(|reader| reader.counts()).await.unwrap();
    assert_eq!((counts.chunks, counts.entities, counts.relations), (1, 0, 0));
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Structure).await).0, 1);
    assert!(store.read(|reader| reader.counts()).await.unwrap().entities >= 4);
    assert_eq!(
        outcome_counts(&workspace.index(IndexLevel::Lexical).await).1,
        1,
        "a lower level keeps what is there"
    );
}

#[tokio::test]
async fn unreadable_file_fails_alone_and_is_tried_again() {
    let workspace = IndexFixture::new();
    workspace.files.put("a.txt", "unreadable");
    workspace.files.put("b.txt", "words");
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Structure).await), (1, 0, 0, 0, 1));
    let store = &workspace.indexer.store;
    let failed = store
        .read_rows(|reader| {
            reader.documents(&DocumentFilter { status: Some(DocumentStatus::Failed), after: None }, 10)
        })
        .await
        .unwrap();
    assert!(failed[0].error.as_deref().unwrap().contains("permission denied"));
    workspace.files.put("a.txt", "readable");
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Structure).await), (1, 1, 0, 0, 0));
}

#[tokio::test]
async fn job_reports_stages_in_order_and_one_end() {
    let workspace = IndexFixture::new();
    for n in 0..200 {
        workspace.files.put(&format!("f{n}.rs"), format!("fn f{n}() {{}}"));
    }
    workspace.index(IndexLevel::Structure).await;
    let events = base::sync::lock(&workspace.events.0).clone();
    let mut stages: Vec<IndexStage> = Vec::new();
    for event in &events {
        if let JobEvent::Progress(progress) = event {
            assert!(progress.done <= progress.total);
            if stages.last() != Some(&progress.stage) {
                stages.push(progress.stage);
            }
        }
    }
    assert_eq!(stages, [IndexStage::Scanning, IndexStage::Chunking, IndexStage::Merging]);
    let last = events.iter().rev().find_map(|event| match event {
        JobEvent::Progress(progress) if progress.stage == IndexStage::Chunking => Some(progress.done),
        _ => None,
    });
    assert_eq!(last, Some(200));
    let ends = events.iter().filter(|event| matches!(event, JobEvent::Ended(_))).count();
    assert!(ends == 1 && matches!(events.last(), Some(JobEvent::Ended(_))));
}

#[tokio::test]
async fn cancelled_job_keeps_finished_documents_and_continues() {
    let workspace = IndexFixture::new();
    for n in 0..300 {
        workspace.files.put(&format!("f{n}.rs"), format!("fn f{n}() {{}}"));
    }
    workspace.cancel.cancel();
    assert_eq!(workspace.index(IndexLevel::Structure).await, JobOutcome::Cancelled);
    let workspace = IndexFixture { cancel: CancellationToken::new(), ..workspace };
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Structure).await).0, 300);
}

#[tokio::test]
async fn inserted_documents_are_searchable_and_repeats_are_no_ops() {
    let workspace = IndexFixture::new();
    let insert = |id: Option<&str>, path: Option<&str>, text: &str| InsertedDocument {
        id: id.map(str::to_owned),
        path: path.map(str::to_owned),
        text: text.into(),
    };
    let documents = vec![
        insert(None, None, "the quick brown fox"),
        insert(Some("mine"), Some("notes/a.md"), "# Notes\n\nabout lazy dogs"),
    ];
    let outcomes = insert_documents(&workspace.indexer, documents.clone(), &workspace.cancel).await.unwrap();
    assert!(outcomes[0].id.as_str().starts_with("doc-") && outcomes[1].id.as_str() == "mine");
    let again = insert_documents(&workspace.indexer, documents, &workspace.cancel).await.unwrap();
    assert!(again.iter().all(|outcome| outcome.unchanged));
    let store = &workspace.indexer.store;
    assert_eq!(store.read(|reader| reader.search_chunks("lazy dog", 5)).await.unwrap().len(), 1);
    assert_eq!(store.read(|reader| reader.search_entities(&"notes".into(), 5)).await.unwrap().len(), 3);
    // A job over the files does not touch them.
    workspace.index(IndexLevel::Structure).await;
    assert_eq!(store.read(|reader| reader.counts()).await.unwrap().documents, 2);
    let changed = vec![insert(Some("mine"), Some("notes/a.md"), "only cats")];
    assert!(!insert_documents(&workspace.indexer, changed, &workspace.cancel).await.unwrap()[0].unchanged);
    assert!(store.read(|reader| reader.search_chunks("lazy dog", 5)).await.unwrap().is_empty());
    for bad in
        [insert(None, None, " "), insert(Some(""), None, "x"), insert(None, Some("a/.ssh/id_rsa"), "x")]
    {
        let error = insert_documents(&workspace.indexer, vec![bad], &workspace.cancel).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
    }
}

const EXTRACTION: &str = "entity<|#|>Alice<|#|>person<|#|>Alice leads the team.\n\
                          entity<|#|>Acme<|#|>organization<|#|>Acme employs Alice.\n\
                          relation<|#|>Alice<|#|>Acme<|#|>employment<|#|>Alice works at Acme.\n<|COMPLETE|>";

#[tokio::test]
async fn semantic_level_needs_a_budget_and_uses_cached_answers() {
    let model = ScriptedModel::with_answer(EXTRACTION);
    let workspace = IndexFixture::with_model(&model);
    workspace.files.put("a.txt", "Alice works at Acme and leads the team.");
    let refused = workspace.run(&request(IndexLevel::Semantic)).await;
    assert!(matches!(refused, JobOutcome::Failed { ref error } if error.contains("budget")), "{refused:?}");
    assert_eq!(model.count(), 0);
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Semantic).await).0, 1);
    assert_eq!(model.count(), 2, "one call and one gleaning call");
    let store = &workspace.indexer.store;
    let entities = store.read(|reader| reader.entities(&["Alice".into()])).await.unwrap();
    assert_eq!((entities[0].entity_type.as_str(), entities[0].degree), ("person", 1));
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Semantic).await).1, 1);
    assert_eq!(model.count(), 2, "the document was read");
    // Deleted and indexed again: the answers come from the cache.
    let deleted = store.write(|writer| writer.delete_document("a.txt", false)).await.unwrap();
    assert_eq!(deleted, DeleteOutcome::Deleted);
    assert!(store.read(|reader| reader.entities(&["Alice".into()])).await.unwrap().is_empty());
    workspace.index(IndexLevel::Semantic).await;
    assert_eq!(model.count(), 2);
    assert_eq!(store.read(|reader| reader.entities(&["Alice".into()])).await.unwrap().len(), 1);
}

#[tokio::test]
async fn truncated_extraction_is_used_but_not_cached() {
    let model = ScriptedModel::new(|_| Ok(Completion { truncated: true, ..answer(EXTRACTION) }));
    let workspace = IndexFixture::with_model(&model);
    workspace.files.put("a.txt", "Alice");
    workspace.index(IndexLevel::Semantic).await;
    let store = &workspace.indexer.store;
    assert_eq!(store.read(|reader| reader.entities(&["Acme".into()])).await.unwrap().len(), 1);
    let before = model.count();
    store.write(|writer| writer.delete_document("a.txt", false)).await.unwrap();
    workspace.index(IndexLevel::Semantic).await;
    assert_eq!(model.count(), 2 * before);
}

#[tokio::test]
async fn used_up_budget_ends_the_job_and_a_new_one_continues() {
    let model = ScriptedModel::with_answer(EXTRACTION);
    let workspace = IndexFixture::with_model(&model);
    for n in 0..10 {
        workspace.files.put(&format!("f{n}.txt"), format!("Alice {n}"));
    }
    let mut limited = request(IndexLevel::Semantic);
    limited.budget.tokens = Some(500);
    let outcome = workspace.run(&limited).await;
    assert!(matches!(outcome, JobOutcome::Failed { ref error } if error.contains("budget")), "{outcome:?}");
    // A job that continues after a crash gets the rest of its budget.
    let stored = workspace.indexer.store.read_rows(|reader| reader.newest_job()).await.unwrap().unwrap();
    let stored: IndexRequest = serde_json::from_str(&stored.request).unwrap();
    assert_eq!(stored.budget.tokens, Some(0));
    let first = model.count();
    assert!((5..=9).contains(&first), "{first}");
    assert!(model.most_running.load(Ordering::SeqCst) <= 4);
    assert_eq!(outcome_counts(&workspace.index(IndexLevel::Semantic).await).4, 0);
    assert!(model.count() <= 20 + 4, "{} calls: answers are not asked for twice", model.count());
    let store = &workspace.indexer.store;
    let alice = store.read(|reader| reader.entity_chunks(&["Alice".into()])).await.unwrap();
    assert_eq!(alice[0].len(), 10);
}

#[tokio::test]
async fn unavailable_model_ends_the_job_after_five_failures() {
    let model = ScriptedModel::new(|_| Err(model_error()));
    let workspace = IndexFixture::with_model(&model);
    for n in 0..20 {
        workspace.files.put(&format!("f{n}.txt"), format!("text {n}"));
    }
    assert!(matches!(workspace.index(IndexLevel::Semantic).await, JobOutcome::Failed { .. }));
    assert!(model.count() <= 8);
    let counts = workspace.indexer.store.read(|reader| reader.counts()).await.unwrap();
    assert!(counts.failed_documents >= 5 && counts.chunks == 20, "{counts:?}");
}

#[tokio::test]
async fn many_descriptions_are_summarised_once() {
    let model = ScriptedModel::new(|call| {
        Ok(match call.purpose {
            CallPurpose::Summary => answer("Alice: all facts."),
            _ => {
                let text = &call.messages[0].content;
                let fact = text.lines().find(|line| line.starts_with("fact")).unwrap_or_default();
                answer(&format!("entity<|#|>Alice<|#|>person<|#|>{fact}\n<|COMPLETE|>"))
            }
        })
    });
    let workspace = IndexFixture::with_model(&model);
    for n in 0..9 {
        workspace.files.put(&format!("f{n}.txt"), format!("fact number {n} of Alice"));
    }
    workspace.index(IndexLevel::Semantic).await;
    let store = &workspace.indexer.store;
    let alice = store.read(|reader| reader.entities(&["Alice".into()])).await.unwrap();
    assert_eq!(alice[0].description, "Alice: all facts.");
    let summaries =
        || base::sync::lock(&model.calls).iter().filter(|call| call.purpose == CallPurpose::Summary).count();
    assert_eq!(summaries(), 1);
    workspace.index(IndexLevel::Semantic).await;
    assert_eq!(summaries(), 1);
    let chunk_text = base::sync::lock(&model.calls)[0].messages[0].content.clone();
    assert!(chunk_text.contains("```"), "the text is fenced: {chunk_text}");
}

#[tokio::test]
async fn estimate_names_calls_and_tokens_without_calling_the_model() {
    let model = ScriptedModel::with_answer("");
    let workspace = IndexFixture::with_model(&model);
    workspace.files.put("a.txt", "word ".repeat(5000));
    let found =
        estimate(&request(IndexLevel::Semantic), &workspace.indexer, &workspace.cancel).await.unwrap();
    assert_eq!((found.files, found.bytes), (1, 25_000));
    assert!((8..=14).contains(&found.model_calls), "{found:?}");
    assert!(found.input_tokens > 12_000 && found.output_tokens > 3000, "{found:?}");
    let free =
        estimate(&request(IndexLevel::Structure), &workspace.indexer, &workspace.cancel).await.unwrap();
    assert_eq!((free.model_calls, free.files), (0, 1));
    assert_eq!(model.count(), 0);
    assert!(workspace.files.take_reads().is_empty());
}

#[tokio::test]
async fn semantic_job_over_paths_reads_and_estimates_these_only() {
    let model = ScriptedModel::with_answer(EXTRACTION);
    let workspace = IndexFixture::with_model(&model);
    workspace.files.put("docs/a.txt", "Alice");
    workspace.files.put("src/b.txt", "word ".repeat(5000));
    workspace.index(IndexLevel::Structure).await;
    let mut narrow = request(IndexLevel::Semantic);
    narrow.paths = vec!["docs".into()];
    narrow.budget.tokens = Some(100_000);
    let found = estimate(&narrow, &workspace.indexer, &workspace.cancel).await.unwrap();
    assert_eq!(found.model_calls, 2);
    assert!(matches!(workspace.run(&narrow).await, JobOutcome::Done(_)));
    assert_eq!(model.count(), 2);
    let all = estimate(&request(IndexLevel::Semantic), &workspace.indexer, &workspace.cancel).await.unwrap();
    assert!(all.model_calls >= 8, "{all:?}");
}

#[tokio::test]
async fn changed_embedding_model_embeds_everything_again() {
    let mut workspace = IndexFixture::new();
    workspace.files.put("src/store.rs", RUST);
    workspace.files.put("b.txt", "other words");
    let first = HashEmbedder::new("m1", 32);
    workspace.indexer.embedder = Some(first.clone());
    workspace.index(IndexLevel::Structure).await;
    let count = first.texts.load(Ordering::Relaxed);
    assert!(count > 5);
    workspace.index(IndexLevel::Structure).await;
    assert_eq!(first.texts.load(Ordering::Relaxed), count, "nothing is embedded twice");
    let second = HashEmbedder::new("m2", 16);
    workspace.indexer.embedder = Some(second.clone());
    workspace.index(IndexLevel::Structure).await;
    assert_eq!(second.texts.load(Ordering::Relaxed), count);
    let query = QueryVector { model: "m2".into(), values: second.vector("other words").await };
    let near =
        workspace.indexer.store.read(move |reader| reader.nearest_chunks(&query, 1, 0.2)).await.unwrap();
    assert_eq!(near.len(), 1);
}

#[tokio::test]
async fn unfinished_job_is_listed_until_it_ends() {
    let workspace = IndexFixture::new();
    let folder = workspace.folder.path().to_owned();
    let store = workspace.indexer.store.clone();
    let stored = serde_json::to_string(&request(IndexLevel::Structure)).unwrap();
    store
        .write(move |writer| {
            writer.set_workspace("/work")?;
            writer.begin_job("job_1", &stored, 1)
        })
        .await
        .unwrap();
    let found = crate::store::unfinished_jobs(&folder);
    assert_eq!(found[0].0, std::path::Path::new("/work"));
    let again: IndexRequest = serde_json::from_str(&found[0].1).unwrap();
    assert!(matches!(workspace.run(&again).await, JobOutcome::Done(_)));
    assert!(crate::store::unfinished_jobs(&folder).is_empty());
}
