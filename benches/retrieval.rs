//! Speed and quality of searching the index of a workspace. Run: `cargo bench --bench retrieval`, or with one of
//! `speed` and `quality` as argument.
//!
//! - speed: prompts of the modes hybrid and mix on 10,000 entities, 20,000 relations and 5,000 chunks, keywords given,
//!   no model. CPU milliseconds of the process, median and 95th percentile.
//! - quality: 60 questions about this repository with the files that answer them (`benches/knowledge/`). Recall@10 of
//!   files: levels lexical and structure, compared with plain FTS5 with the stemmer `porter`, and with a search for the
//!   words of the question as by ripgrep. For the first 20 questions also the bytes of `KnowledgeSearch` and of a
//!   script that finds the same with Grep and Read.

mod measure;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentd::knowledge::index::{Budget, IndexRequest, run_job};
use agentd::knowledge::query::{QueryEnv, Selection, build_context, find_context, tool_params, tool_text};
use agentd::knowledge::store::{DocumentContent, EntityRecord, KnowledgeStore, NewDocument, RelationRecord};
use agentd::knowledge::{Chunk, ChunkId, DocId, JobSink, tokens};
use agentd::types::knowledge::{DocumentSource, IndexLevel, Metadata, QueryMode, QueryParams};
use measure::{FolderSource, SilentSink, Table, Target, cpu_time, new_indexer, new_runtime, peak_mib, to_ms};
use tokio_util::sync::CancellationToken;

/// This repository without the questions about it.
fn repository() -> FolderSource {
    FolderSource { root: PathBuf::from(env!("CARGO_MANIFEST_DIR")), excluded: vec!["benches/knowledge"] }
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let is_wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let folder = tempfile::tempdir().expect("a folder");
    let (runtime, mut table) = (new_runtime(), Table::default());
    if is_wanted("speed") {
        runtime.block_on(measure_speed(&folder.path().join("speed.db"), &mut table));
    }
    if is_wanted("quality") {
        runtime.block_on(measure_quality(folder.path(), &mut table));
    }
    table.print_summary();
}

/// Pseudo-random numbers with a fixed seed.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    /// Small numbers are more frequent, as with words of a language.
    fn skewed(&mut self, limit: usize) -> usize {
        let (a, b) = (self.below(limit) + 1, self.below(limit) + 1);
        (a * b / limit).min(limit - 1)
    }
}

const WORDS: usize = 4_000;
const DOCUMENTS: usize = 500;
const CHUNKS_PER_DOCUMENT: usize = 10;
const ENTITIES: usize = 10_000;
const RELATIONS: usize = 20_000;
const QUERIES: usize = 200;

fn random_words(numbers: &mut RandomNumbers, count: usize) -> String {
    (0..count).map(|_| format!("w{}", numbers.skewed(WORDS))).collect::<Vec<_>>().join(" ")
}

fn create_document(number: usize, numbers: &mut RandomNumbers) -> (NewDocument, DocumentContent) {
    let id = DocId(format!("doc-{number}"));
    let path = format!("src/module_{number}.rs");
    let chunk = |ordinal: usize, text: String| Chunk {
        id: ChunkId::of_chunk(&id, ordinal as u32, &text),
        doc_id: id.clone(),
        path: Some(path.clone()),
        ordinal: ordinal as u32,
        tokens: tokens::count(&text) as u32,
        start_byte: 0,
        end_byte: text.len() as u64,
        start_line: (ordinal * 40 + 1) as u32,
        end_line: (ordinal * 40 + 40) as u32,
        language: Some("rust".into()),
        symbol: None,
        content_hash: format!("{number}-{ordinal}"),
        text,
    };
    let chunks = (0..CHUNKS_PER_DOCUMENT).map(|ordinal| chunk(ordinal, random_words(numbers, 180))).collect();
    let name = |number: usize| format!("Entity_{number} w{}", number % WORDS);
    let per_document = ENTITIES / DOCUMENTS;
    let entities = (0..per_document).map(|at| EntityRecord {
        chunk: at % CHUNKS_PER_DOCUMENT,
        name: name(number * per_document + at),
        entity_type: "function".into(),
        description: random_words(numbers, 25),
    });
    let entities: Vec<EntityRecord> = entities.collect();
    let relations = (0..RELATIONS / DOCUMENTS).map(|at| {
        let source = number * per_document + at % per_document;
        let target = (source + 1 + numbers.skewed(ENTITIES - 1)) % ENTITIES;
        RelationRecord {
            chunk: at % CHUNKS_PER_DOCUMENT,
            source: name(source),
            target: name(target),
            keywords: random_words(numbers, 2),
            description: random_words(numbers, 12),
            weight: 1.0,
        }
    });
    let relations = relations.collect();
    let new = NewDocument {
        id: id.clone(),
        path: Some(path.clone()),
        hash: number.to_string(),
        source: DocumentSource::File,
        language: Some("rust".into()),
        bytes: 10_000,
        modified_ns: 0,
    };
    (new, DocumentContent { chunks, entities, relations, ..DocumentContent::default() })
}

/// The results of a search without any model.
async fn search(store: &KnowledgeStore, params: QueryParams) -> Selection {
    let env = QueryEnv::lexical(Arc::new(tokens::count));
    let (is_allowed, cancel) = (Arc::new(|_: &str| true), CancellationToken::new());
    find_context(&env, store, params, is_allowed, cancel).await.expect("a context").selection
}

async fn measure_speed(file: &Path, table: &mut Table) {
    let store = KnowledgeStore::open(file).expect("an index");
    let mut numbers = RandomNumbers(7);
    let used = cpu_time();
    for number in 0..DOCUMENTS {
        let (new, content) = create_document(number, &mut numbers);
        store
            .write(move |writer| writer.store_document(&new, &content, IndexLevel::Structure, 1))
            .await
            .expect("stored");
    }
    let counts = store.read(|reader| reader.counts()).await.expect("counts");
    let per_chunk = to_ms(cpu_time() - used) / counts.chunks as f64;
    table.print_row("storing: CPU per chunk with text and graph", per_chunk, "ms", Target::AtMost(5.0));
    println!("  {} chunks, {} entities, {} relations", counts.chunks, counts.entities, counts.relations);
    for mode in [QueryMode::Local, QueryMode::Global, QueryMode::Hybrid, QueryMode::Mix, QueryMode::Naive] {
        let (mut times, mut prompt_tokens) = (Vec::new(), 0);
        for round in 0..QUERIES + 20 {
            let params = QueryParams {
                query: random_words(&mut numbers, 8),
                mode: Some(mode),
                hl_keywords: Some(vec![random_words(&mut numbers, 2), random_words(&mut numbers, 2)]),
                ll_keywords: Some((0..4).map(|_| random_words(&mut numbers, 1)).collect()),
                ..QueryParams::default()
            };
            let used = cpu_time();
            let selection = search(&store, params.clone()).await;
            let metadata = Metadata { query_mode: mode, ..Metadata::default() };
            let tokens = build_context(selection, &params, metadata, &tokens::count).raw_data.metadata.tokens;
            let tokens = tokens.entities + tokens.relations + tokens.chunks;
            // The first rounds fill caches.
            if round >= 20 {
                times.push(to_ms(cpu_time() - used));
                prompt_tokens += tokens;
            }
        }
        times.sort_by(f64::total_cmp);
        let is_judged = matches!(mode, QueryMode::Hybrid | QueryMode::Mix);
        let target = |limit| if is_judged { Target::AtMost(limit) } else { Target::None };
        table.print_row(&format!("{mode}: CPU median"), times[QUERIES / 2], "ms", target(15.0));
        table.print_row(
            &format!("{mode}: CPU 95th percentile"),
            times[QUERIES * 95 / 100],
            "ms",
            target(30.0),
        );
        println!("  {} tokens of data on average", prompt_tokens / QUERIES);
    }
    table.print_row("peak memory of the process", peak_mib(), "MiB", Target::AtMost(150.0));
}

struct Question {
    text: String,
    files: HashSet<String>,
}

fn read_questions(root: &Path) -> Vec<Question> {
    let text =
        std::fs::read_to_string(root.join("benches/knowledge/questions.jsonl")).expect("the questions");
    let question = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let files = value["files"].as_array().expect("files").iter();
        Question {
            text: value["question"].as_str().expect("a question").to_owned(),
            files: files.map(|file| file.as_str().expect("a path").to_owned()).collect(),
        }
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(question).collect()
}

/// The part of the wanted files among the first ten, and the reciprocal rank of the first one.
fn score_files(found: &[String], wanted: &HashSet<String>) -> (f64, f64) {
    let mut distinct: Vec<&String> = Vec::new();
    for path in found {
        if !distinct.contains(&path) {
            distinct.push(path);
        }
    }
    let top = &distinct[..distinct.len().min(10)];
    let hits = top.iter().filter(|path| wanted.contains(**path)).count();
    let first = top.iter().position(|path| wanted.contains(*path)).map_or(0.0, |at| 1.0 / (at as f64 + 1.0));
    (hits as f64 / wanted.len().min(10) as f64, first)
}

/// Words of a question that a person would search for.
fn extract_keywords(question: &str) -> Vec<String> {
    const COMMON: [&str; 38] = [
        "where", "how", "what", "which", "when", "why", "who", "is", "are", "the", "a", "an", "of", "to",
        "in", "into", "on", "for", "and", "or", "does", "do", "it", "its", "that", "with", "by", "from",
        "at", "be", "after", "before", "if", "while", "s", "as", "has", "not",
    ];
    let words = question.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_lowercase);
    words.filter(|word| !word.is_empty() && !COMMON.contains(&word.as_str())).collect()
}

/// Sorts files by the number of distinct words that they contain, then by the number of lines with such a word.
fn rank_by_words(texts: &[(String, String)], question: &str) -> Vec<String> {
    let words = extract_keywords(question);
    let mut ranked: Vec<(usize, usize, &String)> = texts
        .iter()
        .map(|(path, text)| {
            let lower = text.to_lowercase();
            let distinct = words.iter().filter(|word| lower.contains(word.as_str())).count();
            let lines =
                lower.lines().filter(|line| words.iter().any(|word| line.contains(word.as_str()))).count();
            (distinct, lines, path)
        })
        .filter(|(distinct, ..)| *distinct > 0)
        .collect();
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(b.2)));
    ranked.into_iter().take(10).map(|(.., path)| path.clone()).collect()
}

/// Creates a simple table for comparison, with one row per chunk: FTS5 with the stemmer `porter`.
fn create_plain_table(chunks: &[(String, String)]) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open_in_memory().expect("a database");
    connection
        .execute_batch(
            "create virtual table plain using fts5(path unindexed, body, tokenize = 'porter unicode61')",
        )
        .expect("a table");
    for (path, text) in chunks {
        connection.execute("insert into plain (path, body) values (?1, ?2)", [path, text]).expect("a row");
    }
    connection
}

fn search_plain_table(connection: &rusqlite::Connection, question: &str) -> Vec<String> {
    let words = question.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let query =
        words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ").replace(" or ", " OR ");
    let mut statement = connection
        .prepare("select path from plain where plain match ?1 order by rank limit 60")
        .expect("a statement");
    let rows = statement.query_map([query], |row| row.get::<_, String>(0)).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

async fn create_index(file: &Path, level: IndexLevel) -> KnowledgeStore {
    let indexer = new_indexer(file, repository());
    let request =
        IndexRequest { id: "job_bench".into(), paths: Vec::new(), level, budget: Budget::default() };
    let sink: Arc<dyn JobSink> = Arc::new(SilentSink);
    run_job(&request, &indexer, &sink, &CancellationToken::new()).await;
    indexer.store
}

/// Paths of the chunks that a mode finds, best first.
async fn find_files(store: &KnowledgeStore, question: &str, mode: QueryMode) -> Vec<String> {
    let params = QueryParams {
        query: question.to_owned(),
        mode: Some(mode),
        ll_keywords: Some(extract_keywords(question)),
        chunk_top_k: Some(Some(40)),
        ..QueryParams::default()
    };
    search(store, params).await.chunks.into_iter().filter_map(|chunk| chunk.path).collect()
}

async fn measure_quality(folder: &Path, table: &mut Table) {
    let repository = repository();
    let questions = read_questions(&repository.root);
    let lexical = create_index(&folder.join("lexical.db"), IndexLevel::Lexical).await;
    let structure = create_index(&folder.join("structure.db"), IndexLevel::Structure).await;
    let texts: Vec<(String, String)> = repository
        .files()
        .into_iter()
        .filter(|file| file.bytes <= 1 << 20)
        .filter_map(|file| {
            let text = std::fs::read_to_string(repository.root.join(&file.path)).ok()?;
            Some((file.path, text))
        })
        .collect();
    let ids = lexical
        .read_rows(|reader| {
            let documents = reader.documents(&Default::default(), 100_000)?;
            let mut chunks = Vec::new();
            for document in documents {
                let own = reader.document_chunks(document.id.as_str())?;
                chunks.extend(own.into_iter().map(|chunk| (chunk.path.unwrap_or_default(), chunk.text)));
            }
            Ok(chunks)
        })
        .await
        .expect("chunks");
    let plain_chunks = create_plain_table(&ids);
    println!("  {} questions, {} files, {} chunks", questions.len(), texts.len(), ids.len());
    let mut results: HashMap<&str, Vec<(f64, f64)>> = HashMap::new();
    let order =
        ["ripgrep", "plain FTS5", "lexical", "structure, local", "structure, hybrid", "structure, mix"];
    for question in &questions {
        let rows = [
            rank_by_words(&texts, &question.text),
            search_plain_table(&plain_chunks, &question.text),
            find_files(&lexical, &question.text, QueryMode::Naive).await,
            find_files(&structure, &question.text, QueryMode::Local).await,
            find_files(&structure, &question.text, QueryMode::Hybrid).await,
            find_files(&structure, &question.text, QueryMode::Mix).await,
        ];
        for (name, row) in order.iter().zip(&rows) {
            results.entry(name).or_default().push(score_files(row, &question.files));
        }
    }
    let mean = |name: &str, part: fn(&(f64, f64)) -> f64| {
        let scores = &results[name];
        scores.iter().map(part).sum::<f64>() / scores.len() as f64
    };
    // Retrieval without an embedding model must never be worse than plain full-text search.
    let plain_recall = mean("plain FTS5", |it| it.0);
    for name in order {
        let target = if matches!(name, "ripgrep" | "plain FTS5") {
            Target::None
        } else {
            Target::AtLeast(plain_recall)
        };
        table.print_row(&format!("recall@10 of files: {name}"), mean(name, |it| it.0), "", target);
        table.print_row(&format!("mean reciprocal rank: {name}"), mean(name, |it| it.1), "", Target::None);
    }
    measure_bytes(&structure, &questions, &texts, table).await;
}

/// Bytes that a model would receive: one call of `KnowledgeSearch`, or a Grep for each word of the question (50 lines
/// each) and a Read of the three best files (2,000 lines each).
async fn measure_bytes(
    store: &KnowledgeStore,
    questions: &[Question],
    texts: &[(String, String)],
    table: &mut Table,
) {
    let (mut searched, mut grepped, mut both) = (0, 0, 0_u32);
    for question in questions.iter().take(20) {
        let keywords = extract_keywords(&question.text);
        let params = tool_params(question.text.clone(), QueryMode::Mix, keywords.clone(), None, 6_000);
        let max_tokens = params.max_total_tokens();
        let selection = search(store, params).await;
        let text = tool_text(&selection, max_tokens, &tokens::count).unwrap_or_default();
        let has_answer = question.files.iter().any(|file| text.contains(file.as_str()));
        let mut lines = 0;
        for word in &keywords {
            let hits = texts.iter().flat_map(|(path, text)| {
                text.lines()
                    .filter(|line| line.to_lowercase().contains(word.as_str()))
                    .map(move |line| path.len() + line.len() + 6)
            });
            lines += hits.take(50).sum::<usize>();
        }
        let best = rank_by_words(texts, &question.text);
        let read = best.iter().take(3).filter_map(|path| texts.iter().find(|(known, _)| known == path));
        let read: usize =
            read.map(|(_, text)| text.lines().take(2_000).map(|line| line.len() + 8).sum::<usize>()).sum();
        searched += text.len();
        grepped += lines + read;
        both += u32::from(has_answer);
    }
    let kib = |bytes: usize| bytes as f64 / 1024.0;
    table.print_row(
        "20 questions: bytes of KnowledgeSearch",
        kib(searched),
        "KiB",
        Target::AtMost(kib(grepped)),
    );
    table.print_row("20 questions: bytes of Grep and Read", kib(grepped), "KiB", Target::None);
    table.print_row("20 questions: answers in KnowledgeSearch", f64::from(both), "of 20", Target::None);
}
