//! Queries of all modes against an index in memory.

use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::context::{BUFFER_TOKENS, QueryContext};
use super::testing::{ChangedFiles, HashingEmbedder, MemoryIndex, ScriptedModel, count_words, hashed_vector};
use super::*;
use crate::traits::CallPurpose;
use crate::types::{ChunkId, ErrorKind, KnowledgeError};
use base::sync::lock;
use types::knowledge::{
    ChatMessage, ChunkPick, EntityOrder, FoundChunk, Keywords, Metadata, QueryMode, QueryParams, QueryResult,
    QueryStatus,
};

fn index() -> MemoryIndex {
    let mut index = MemoryIndex { generation: 3, ..MemoryIndex::default() };
    index.add_entity("Parser", "reads tokens", &["c1", "c2"]);
    index.add_entity("Lexer", "splits text for the parser", &["c2", "gone"]);
    index.add_entity("Cache", "keeps answers", &["c3"]);
    index.add_relation("Parser", "Lexer", "parsing", 2.0);
    index.add_relation("Parser", "Cache", "storage", 1.0);
    for (id, path, text) in [
        ("c1", "src/parser.rs", "fn parse reads tokens"),
        ("c2", "src/lexer.rs", "fn lex text for the parser"),
        ("c3", "src/cache.rs", "fn cached answers"),
        ("c4", "README.md", "how the parser works"),
    ] {
        index.add_chunk(id, path, text);
        index.vectors.insert(ChunkId(id.into()), hashed_vector(text));
    }
    index
}

struct QueryFixture {
    index: MemoryIndex,
    model: Arc<ScriptedModel>,
    env: QueryEnv,
}

fn setup() -> QueryFixture {
    let (index, model) = (index(), Arc::new(ScriptedModel::new()));
    let env = QueryEnv {
        model: Some(model.clone()),
        embedder: Some(Arc::new(HashingEmbedder { calls: Default::default(), is_failing: false })),
        cache: None,
        ..QueryEnv::lexical(Arc::new(count_words))
    };
    QueryFixture { index, model, env }
}

fn params(mode: QueryMode) -> QueryParams {
    QueryParams { query: "how does the parser work".into(), mode: Some(mode), ..QueryParams::default() }
}

async fn run(setup: &QueryFixture, params: QueryParams) -> QueryResult {
    run_query(&setup.env, &setup.index, params, &Progress::disabled(), CancellationToken::new()).await
}

/// The golden table: the indexes that each mode reads, its number of calls, and its result.
#[tokio::test]
async fn modes_read_indexes_and_call_models_as_in_table() {
    let rows: [(QueryMode, &[&str], usize, [bool; 3]); 6] = [
        // mode, reads, model calls, entities / relations / chunks in the result
        (QueryMode::Bypass, &[], 0, [false, false, false]),
        (QueryMode::Naive, &["chunks"], 1, [false, false, true]),
        (QueryMode::Local, &["entities", "entity_chunks"], 2, [true, false, true]),
        (QueryMode::Global, &["entities", "relations"], 2, [true, true, false]),
        (QueryMode::Hybrid, &["entities", "relations", "entity_chunks"], 2, [true, true, true]),
        (QueryMode::Mix, &["entities", "relations", "chunks", "entity_chunks"], 2, [true, true, true]),
    ];
    for (mode, reads, calls, parts) in rows {
        let case = setup();
        let result = run(&case, params(mode)).await;
        assert_eq!(*lock(&case.index.reads), reads, "{mode}");
        assert_eq!(case.model.purposes().len(), calls, "{mode}");
        let raw = &result.raw_data;
        let got = [!raw.entities.is_empty(), !raw.relations.is_empty(), !raw.chunks.is_empty()];
        assert_eq!(got, parts, "{mode}");
        assert_eq!(raw.metadata.query_mode, mode);
        let expected = if mode == QueryMode::Bypass { QueryStatus::NoContext } else { QueryStatus::Success };
        assert_eq!(result.status, expected, "{mode}");

        // Given keywords save one call; returning only the context saves another one.
        let query_params = QueryParams { ll_keywords: Some(vec!["Parser".into()]), ..params(mode) };
        let case = setup();
        run(&case, query_params.clone()).await;
        assert_eq!(case.model.purposes().len(), calls.min(1), "{mode} with keywords");
        let case = setup();
        let result = run(&case, QueryParams { only_need_context: Some(true), ..query_params }).await;
        assert_eq!(case.model.purposes(), [], "{mode} with keywords, context alone");
        assert_eq!(result.response.is_empty(), mode != QueryMode::Bypass, "{mode}");
        let case = setup();
        run(&case, QueryParams { only_need_context: Some(true), ..params(mode) }).await;
        let purposes = case.model.purposes();
        assert_eq!(purposes.len(), calls.saturating_sub(1), "{mode}, context alone");
        assert!(purposes.iter().all(|purpose| *purpose == CallPurpose::Keywords));
    }
}

#[tokio::test]
async fn missing_context_ends_query_with_tag_and_without_answer_call() {
    let case = setup();
    let query =
        QueryParams { query: "zzz".into(), hl_keywords: Some(vec!["yyy".into()]), ..params(QueryMode::Mix) };
    let result = run(&case, query).await;
    assert_eq!((result.status, result.context.as_deref()), (QueryStatus::NoContext, Some("")));
    assert!(result.response.ends_with("[no-context]"), "{}", result.response);
    assert!(result.raw_data.chunks.is_empty() && result.raw_data.entities.is_empty());
    assert_eq!(result.raw_data.metadata.keywords.high_level, ["yyy"]);
    assert_eq!(case.model.purposes(), []);
}

#[tokio::test]
async fn context_alone_is_exactly_the_prompt_of_the_answer_call() {
    let case = setup();
    let query = QueryParams { user_prompt: Some("Be short.".into()), ..params(QueryMode::Mix) };
    let context = run(&case, QueryParams { only_need_context: Some(true), ..query.clone() })
        .await
        .context
        .expect("a context");
    run(&case, query.clone()).await;
    let calls = lock(&case.model.calls);
    let call = calls.last().expect("the answer call");
    assert_eq!(context, format!("{}\n\n---user---\n{}", call.system, query.query));
    assert!(context.contains("Be short.") && context.contains("\"reference_id\":\"1\""), "{context}");
}

#[tokio::test]
async fn history_reaches_answer_call_alone() {
    let case = setup();
    let history = vec![ChatMessage::user("secretword"), ChatMessage::assistant("reply")];
    run(&case, QueryParams { conversation_history: Some(history), ..params(QueryMode::Hybrid) }).await;
    let calls = lock(&case.model.calls);
    let has_word = |index: usize| calls[index].messages.iter().any(|message| message.content == "secretword");
    assert_eq!((calls.len(), has_word(0), has_word(1)), (2, false, true));
}

#[tokio::test]
async fn answers_are_cached_until_index_changes() {
    let mut case = setup();
    case.env.cache = Some(Arc::new(case.index.clone()));
    let query = || params(QueryMode::Naive);
    assert!(!run(&case, query()).await.raw_data.metadata.cached);
    let again = run(&case, query()).await;
    assert!(again.raw_data.metadata.cached && !again.response.is_empty());
    assert_eq!(case.model.purposes().len(), 1);
    case.index.generation += 1;
    run(&case, query()).await;
    assert_eq!(case.model.purposes().len(), 2, "another generation");
    let history = vec![ChatMessage::user("x")];
    let with_history = QueryParams { conversation_history: Some(history), ..query() };
    run(&case, with_history.clone()).await;
    run(&case, with_history).await;
    assert_eq!(case.model.purposes().len(), 4, "never cached with a history");
    let case = QueryFixture {
        model: Arc::new(ScriptedModel { is_truncating: true, ..ScriptedModel::new() }),
        ..case
    };
    let env = QueryEnv { model: Some(case.model.clone()), ..case.env.clone() };
    let cut = QueryFixture { env, ..case };
    let query = QueryParams { query: "the lexer".into(), ..query() };
    run(&cut, query.clone()).await;
    run(&cut, query).await;
    assert_eq!(cut.model.purposes().len(), 2, "a cut answer is not cached");
}

#[tokio::test]
async fn failing_parts_are_replaced_and_reported() {
    let mut case = setup();
    case.env.embedder = Some(Arc::new(HashingEmbedder { calls: Default::default(), is_failing: true }));
    let result = run(&case, params(QueryMode::Mix)).await;
    assert_eq!(result.status, QueryStatus::Success);
    assert!(result.raw_data.metadata.warnings.iter().any(|it| it.contains("embedder")));

    let mut case = setup();
    case.env.model = Some(Arc::new(ScriptedModel { is_failing: true, ..ScriptedModel::new() }));
    let result = run(&case, params(QueryMode::Mix)).await;
    assert!(result.raw_data.metadata.keywords_failed, "keywords fall back to the query");
    assert_eq!(result.raw_data.metadata.keywords.low_level, ["how does the parser work"]);
    assert_eq!(result.status, QueryStatus::Failed);
    assert_eq!(result.error.map(|error| error.kind).as_deref(), Some("model"));
    assert!(!result.raw_data.chunks.is_empty(), "what was found is returned");

    let mut case = setup();
    case.index.is_broken = true;
    let result = run(&case, params(QueryMode::Naive)).await;
    assert_eq!(result.error.map(|error| error.kind).as_deref(), Some("storage"));
}

#[tokio::test]
async fn raw_data_comes_before_first_delta() {
    let case = setup();
    let (sender, mut events) = mpsc::channel(64);
    let progress = Progress::to_channel(sender);
    let result =
        run_query(&case.env, &case.index, params(QueryMode::Mix), &progress, CancellationToken::new()).await;
    drop(progress);
    let mut names = Vec::new();
    let mut answer = String::new();
    while let Some(event) = events.recv().await {
        match event {
            QueryEvent::Stage(stage) => names.push(format!("{stage:?}")),
            QueryEvent::RawData(raw) => {
                assert!(!raw.references.is_empty());
                names.push("RawData".into());
            }
            QueryEvent::Delta(text) => {
                answer.push_str(&text);
                if names.last().is_none_or(|last| last != "Delta") {
                    names.push("Delta".into());
                }
            }
        }
    }
    let expected = [
        "ExtractingKeywords",
        "RetrievingEntities",
        "RetrievingRelations",
        "RetrievingChunks",
        "BuildingContext",
        "GeneratingResponse",
        "RawData",
        "Delta",
    ];
    assert_eq!(names, expected);
    assert_eq!(answer, result.response);
}

#[tokio::test]
async fn cancelled_query_leaves_no_cache_entry() {
    let mut case = setup();
    case.env.cache = Some(Arc::new(case.index.clone()));
    let (sender, events) = mpsc::channel(64);
    drop(events);
    let result = run_query(
        &case.env,
        &case.index,
        params(QueryMode::Naive),
        &Progress::to_channel(sender),
        CancellationToken::new(),
    )
    .await;
    assert_eq!(result.error.map(|error| error.kind).as_deref(), Some("cancelled"));
    assert!(lock(&case.index.cache).is_empty());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result =
        run_query(&case.env, &case.index, params(QueryMode::Naive), &Progress::disabled(), cancel).await;
    assert_eq!(result.error.map(|error| error.kind).as_deref(), Some("cancelled"));
    assert!(lock(&case.index.cache).is_empty());
}

#[test]
fn entities_are_ordered_by_degree_and_edges_by_rank() {
    let index = index();
    let keywords = Keywords { high_level: vec!["keeps".into()], low_level: vec!["Lexer splits".into()] };
    let query = QueryParams { query: "answers".into(), ..params(QueryMode::Local) };
    let vectors = QueryVectors::default();
    let found =
        search_entities(&index, &query, &keywords, &vectors, FusionWeights::default()).expect("entities");
    let names: Vec<&str> = found.iter().map(|entity| entity.name.as_str()).collect();
    assert_eq!(names, ["Cache", "Lexer"], "equal degrees keep the order of similarity");
    let edges = related_edges(&index, &found).expect("edges");
    let weights: Vec<f64> = edges.iter().map(|edge| edge.relation.weight).collect();
    assert_eq!(weights, [2.0, 1.0]);
    let by_similarity =
        QueryParams { entity_order: Some(EntityOrder::Similarity), query: "parser".into(), ..query };
    let found =
        search_entities(&index, &by_similarity, &Keywords::default(), &vectors, FusionWeights::default());
    assert_eq!(found.expect("entities")[0].name, "Lexer");
}

#[test]
fn missing_chunks_are_counted_and_left_out() {
    let index = index();
    let query = QueryParams { chunk_pick: Some(ChunkPick::Weight), ..params(QueryMode::Local) };
    let (_, selection) = selected(&index, &query);
    assert_eq!(selection.missing_chunks, 1);
    assert!(selection.chunks.iter().all(|chunk| index.chunks.contains_key(&chunk.id)));
}

struct ReversingReranker(bool);

impl Reranker for ReversingReranker {
    fn rerank(
        &self,
        _: String,
        documents: Vec<String>,
    ) -> futures_util::future::BoxFuture<'_, Result<Vec<(usize, f64)>, KnowledgeError>> {
        let is_failing = self.0;
        Box::pin(async move {
            if is_failing {
                return Err(KnowledgeError::new(ErrorKind::Model, "could not rank: test; stop"));
            }
            let count = documents.len();
            Ok((0..count).map(|index| (index, index as f64)).chain([(count + 7, 99.0)]).collect())
        })
    }
}

#[tokio::test]
async fn reranker_orders_chunks_and_failure_keeps_order() {
    let ids = |result: &QueryResult| -> Vec<String> {
        result.raw_data.chunks.iter().map(|chunk| chunk.chunk_id.clone()).collect()
    };
    let query = || QueryParams { only_need_context: Some(true), ..params(QueryMode::Naive) };
    let mut case = setup();
    let plain = ids(&run(&case, query()).await);
    case.env.reranker = Some(Arc::new(ReversingReranker(false)));
    let ranked = run(&case, query()).await;
    assert_eq!(ids(&ranked), plain.iter().rev().cloned().collect::<Vec<_>>());
    let best = run(&case, QueryParams { min_rerank_score: Some(1.5), ..query() }).await;
    assert!(ids(&best).len() < plain.len());
    case.env.reranker = Some(Arc::new(ReversingReranker(true)));
    let failed = run(&case, query()).await;
    assert_eq!(ids(&failed), plain);
    assert!(failed.raw_data.metadata.warnings.iter().any(|it| it.contains("reranker")));
}

/// Scores every chunk with this number.
struct FixedReranker(f64);

impl Reranker for FixedReranker {
    fn rerank(
        &self,
        _: String,
        documents: Vec<String>,
    ) -> futures_util::future::BoxFuture<'_, Result<Vec<(usize, f64)>, KnowledgeError>> {
        let score = self.0;
        Box::pin(async move { Ok((0..documents.len()).map(|index| (index, score)).collect()) })
    }
}

#[tokio::test]
async fn model_is_never_asked_about_nothing_and_the_reason_is_told() {
    let naive = || params(QueryMode::Naive);
    let history = vec![ChatMessage::user("word ".repeat(40_000))];
    let rows: [(&str, QueryParams, &str); 6] = [
        ("bypass", params(QueryMode::Bypass), "mode bypass"),
        ("nothing_found", QueryParams { query: "zzz".into(), ..naive() }, "has nothing about it"),
        ("reranker", QueryParams { min_rerank_score: Some(0.9), ..naive() }, "min_rerank_score"),
        ("token_limit", QueryParams { max_total_tokens: Some(10), ..naive() }, "max_total_tokens"),
        (
            "token_limit",
            QueryParams { conversation_history: Some(history.clone()), ..naive() },
            "conversation",
        ),
        (
            "token_limit",
            QueryParams {
                max_entity_tokens: Some(0),
                max_relation_tokens: Some(0),
                ll_keywords: Some(vec!["Parser".into()]),
                ..params(QueryMode::Global)
            },
            "max_entity_tokens",
        ),
    ];
    for (reason, query, text) in rows {
        for only_context in [false, true] {
            let mut case = setup();
            case.env.reranker = Some(Arc::new(FixedReranker(0.5)));
            case.env.embedder = None;
            let result =
                run(&case, QueryParams { only_need_context: Some(only_context), ..query.clone() }).await;
            assert_eq!(
                (result.status, result.context.as_deref()),
                (QueryStatus::NoContext, Some("")),
                "{reason}"
            );
            assert_eq!(result.raw_data.metadata.no_context_reason.as_deref(), Some(reason));
            assert!(
                result.response.contains(text) && result.response.ends_with("[no-context]"),
                "{}",
                result.response
            );
            assert_eq!(case.model.purposes(), [], "{reason}");
        }
    }
}

#[tokio::test]
async fn answer_and_context_come_in_one_call_on_request() {
    let mut case = setup();
    case.env.cache = Some(Arc::new(case.index.clone()));
    let query = || QueryParams { include_context: Some(true), ..params(QueryMode::Mix) };
    let result = run(&case, query()).await;
    let only = run(&case, QueryParams { only_need_context: Some(true), ..query() }).await;
    assert_eq!((result.response.is_empty(), only.response.is_empty()), (false, true));
    assert!(result.context.is_some());
    assert_eq!(result.context, only.context);
    let cached = run(&case, query()).await;
    assert!(cached.raw_data.metadata.cached && cached.context == result.context);
    assert_eq!(run(&case, params(QueryMode::Mix)).await.context, None);
}

/// Whatever changes the order of the references also changes the key of the answer.
#[tokio::test]
async fn cached_answer_never_comes_with_other_references() {
    type Change = fn(&mut QueryFixture);
    let changes: [(&str, Change); 4] = [
        ("a failed embedding", |case| {
            case.env.embedder =
                Some(Arc::new(HashingEmbedder { calls: Default::default(), is_failing: true }));
        }),
        ("no embedder", |case| case.env.embedder = None),
        ("other weights", |case| {
            case.env.weights = FusionWeights { lexical: 0.0, dense: 9.0, min_cosine: 0.0 }
        }),
        ("a reranker", |case| case.env.reranker = Some(Arc::new(ReversingReranker(false)))),
    ];
    let references = |result: &QueryResult| -> Vec<(String, String)> {
        let all = result.raw_data.references.iter();
        all.map(|it| (it.reference_id.clone(), it.path.clone())).collect()
    };
    for (name, change) in changes {
        let mut case = setup();
        case.env.cache = Some(Arc::new(case.index.clone()));
        let query = || QueryParams { include_context: Some(true), ..params(QueryMode::Naive) };
        let first = run(&case, query()).await;
        change(&mut case);
        let second = run(&case, query()).await;
        assert_eq!(second.raw_data.metadata.cached, second.context == first.context, "{name}");
        assert!(!second.raw_data.metadata.cached || references(&second) == references(&first), "{name}");
    }
}

#[tokio::test]
async fn results_of_missing_files_are_left_out_and_changed_ones_are_told() {
    let set = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let mut case = setup();
    case.index.add_entity("parse (src/parser.rs)", "reads tokens of the parser", &["c1"]);
    case.index.add_relation("parse (src/parser.rs)", "Lexer", "parser calls", 1.0);
    let found = run(&case, params(QueryMode::Mix)).await;
    assert!(found.raw_data.references.iter().any(|it| it.path == "src/parser.rs"));
    assert!(found.raw_data.entities.iter().any(|it| it.name == "parse (src/parser.rs)"));
    case.env.files =
        Some(Arc::new(ChangedFiles { gone: set(&["src/parser.rs"]), changed: set(&["src/lexer.rs"]) }));
    for mode in QueryMode::ALL {
        let result = run(&case, params(mode)).await;
        let data =
            serde_json::to_string(&(&result.raw_data.entities, &result.raw_data.relations)).expect("JSON");
        assert!(!data.contains("src/parser.rs"), "{mode}: {data}");
        let has_path = |path: &str| result.raw_data.chunks.iter().any(|it| it.path == path);
        assert!(!has_path("src/parser.rs"), "{mode}");
        let warnings = result.raw_data.metadata.warnings.join(" ");
        let is_told = warnings.contains("gone") && warnings.contains("src/parser.rs");
        assert_eq!(is_told, mode != QueryMode::Bypass, "{mode}: {warnings}");
        assert_eq!(has_path("src/lexer.rs"), warnings.contains("src/lexer.rs"), "{mode}: {warnings}");
    }
    // A path of an inserted document is no file.
    case.index.inserted.insert("src/parser.rs".into());
    let result = run(&case, params(QueryMode::Naive)).await;
    assert!(result.raw_data.chunks.iter().any(|it| it.path == "src/parser.rs"));
    case.index.inserted.clear();
    let all = set(&["src/parser.rs", "src/lexer.rs", "src/cache.rs", "README.md"]);
    case.env.files = Some(Arc::new(ChangedFiles { gone: all, changed: set(&[]) }));
    let result = run(&case, params(QueryMode::Naive)).await;
    assert_eq!(result.raw_data.metadata.no_context_reason.as_deref(), Some("files_gone"));
}

#[tokio::test]
async fn search_of_a_tool_uses_vectors_and_reranker_but_no_model() {
    let case = setup();
    let embedder = Arc::new(HashingEmbedder { calls: Default::default(), is_failing: false });
    let env = QueryEnv {
        embedder: Some(embedder.clone()),
        reranker: Some(Arc::new(ReversingReranker(false))),
        ..case.env.clone()
    };
    let find = async |env: &QueryEnv, is_allowed: fn(&str) -> bool| {
        let query = tool_params("how does the parser work".into(), QueryMode::Naive, Vec::new(), None, 6_000);
        let found = find_context(env, &case.index, query, Arc::new(is_allowed), CancellationToken::new());
        found.await.expect("a result")
    };
    let found = find(&env, |_| true).await;
    assert_eq!((*lock(&embedder.calls), case.model.purposes()), (1, vec![]));
    assert_eq!(found.selection.rerank_scores.len(), found.selection.chunks.len());
    let user = QueryParams { only_need_context: Some(true), ..params(QueryMode::Naive) };
    let user = run_query(&env, &case.index, user, &Progress::disabled(), CancellationToken::new()).await;
    let of_user: Vec<&str> = user.raw_data.chunks.iter().map(|chunk| chunk.chunk_id.as_str()).collect();
    let of_tool: Vec<&str> = found.selection.chunks.iter().map(|chunk| chunk.id.as_str()).collect();
    assert_eq!(of_tool, of_user, "the agent's search is the user's search");
    let allowed = find(&env, |path| path != "README.md").await;
    assert!(allowed.selection.chunks.iter().all(|chunk| chunk.path.as_deref() != Some("README.md")));
    let failing = HashingEmbedder { calls: Default::default(), is_failing: true };
    let found = find(&QueryEnv { embedder: Some(Arc::new(failing)), ..env.clone() }, |_| true).await;
    assert!(found.warnings.iter().any(|it| it.contains("embedder")), "{:?}", found.warnings);
}

fn selected(index: &MemoryIndex, query: &QueryParams) -> (Keywords, Selection) {
    let keywords = given_keywords(query).unwrap_or_else(|| Keywords::default().or_query(&query.query));
    let (vectors, weights) = (QueryVectors::default(), FusionWeights::default());
    let found = search(index, query, &keywords, &vectors, weights, &|_| {}).expect("results");
    (keywords, select(index, found, query, &vectors, &count_words, &|_| {}).expect("a selection"))
}

fn build(index: &MemoryIndex, query: &QueryParams) -> QueryContext {
    let (keywords, selection) = selected(index, query);
    let metadata = Metadata { query_mode: query.mode(), keywords, ..Metadata::default() };
    build_context(selection, query, metadata, &count_words)
}

#[test]
fn equal_inputs_give_byte_equal_prompts() {
    for mode in QueryMode::ALL {
        assert_eq!(build(&index(), &params(mode)).system, build(&index(), &params(mode)).system, "{mode}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// The budget is never exceeded, parts are prefixes, no chunk comes twice.
    #[test]
    fn prompts_stay_within_their_budgets(
        total in 0..600_u32,
        for_entities in 0..60_u32,
        for_relations in 0..60_u32,
        words in proptest::collection::vec(1..40_usize, 1..12),
        top_k in 1..12_u32,
        history in 0..200_usize,
    ) {
        let mut index = MemoryIndex::default();
        for (n, words) in words.iter().enumerate() {
            let (name, id) = (format!("E{n}"), format!("c{n}"));
            index.add_entity(&name, &"parser ".repeat(*words), &[&id, "c0"]);
            index.add_chunk(&id, &format!("f{}.rs", n % 3), &"parser \" {x} ".repeat(*words));
            index.add_relation(&name, "E0", "parser", 1.0);
        }
        let query = QueryParams {
            max_total_tokens: Some(total),
            max_entity_tokens: Some(for_entities),
            max_relation_tokens: Some(for_relations),
            top_k: Some(top_k),
            conversation_history: Some(vec![ChatMessage::user("word ".repeat(history))]),
            ..params(QueryMode::Mix)
        };
        let context = build(&index, &query);
        let raw = &context.raw_data;
        let lines_after = |title: &str| -> Vec<&str> {
            context.system.lines().skip_while(|line| *line != title).skip(1).take_while(|line| line.starts_with('{')).collect()
        };
        prop_assert!(lines_after("# entities").iter().map(|line| count_words(line)).sum::<usize>() <= for_entities as usize);
        prop_assert!(lines_after("# relations").iter().map(|line| count_words(line)).sum::<usize>() <= for_relations as usize);
        let tokens = raw.metadata.tokens;
        let history = count_words(&"word ".repeat(history)) + 4;
        prop_assert_eq!(tokens.history, history);
        let fixed = tokens.system + tokens.entities + tokens.relations + tokens.query + history + BUFFER_TOKENS;
        let has_data = !raw.chunks.is_empty() || !raw.entities.is_empty() || !raw.relations.is_empty();
        prop_assert_eq!(context.no_context.is_some(), !has_data);
        prop_assert!(!has_data || count_words(&context.full_prompt(&query)) <= total as usize);
        prop_assert!(raw.chunks.is_empty() || count_words(&context.full_prompt(&query)) <= total as usize);
        prop_assert!(!has_data || fixed <= total as usize);
        let mut ids: Vec<&str> = raw.chunks.iter().map(|chunk| chunk.chunk_id.as_str()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), all);
        // A larger budget only appends.
        let wider = build(&index, &QueryParams { max_total_tokens: Some(total + 100), ..query.clone() });
        let prefix: Vec<&FoundChunk> = raw.chunks.iter().collect();
        let of_wider: Vec<&FoundChunk> = wider.raw_data.chunks.iter().take(prefix.len()).collect();
        prop_assert_eq!(
            prefix.iter().map(|it| &it.chunk_id).collect::<Vec<_>>(),
            of_wider.iter().map(|it| &it.chunk_id).collect::<Vec<_>>()
        );
        // The limits never add entities.
        prop_assert!(raw.entities.len() <= raw.metadata.found.entities);
    }
}
