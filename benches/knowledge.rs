//! Speed of indexing a workspace: this repository at each level without a model, again unchanged, and one more
//! document. Run: `cargo bench --bench knowledge`, or with a folder as argument. CPU times are those of the whole process.

mod measure;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use agentd::knowledge::index::{Budget, IndexRequest, Indexer, insert_documents, run_job};
use agentd::knowledge::{JobOutcome, JobSink};
use agentd::types::knowledge::{IndexLevel, InsertedDocument};
use measure::{FolderSource, SilentSink, Table, Target, cpu_time, new_indexer, new_runtime, peak_mib, to_ms};
use tokio_util::sync::CancellationToken;

/// Size of the document that is inserted.
const DOCUMENT_BYTES: usize = 20_000;

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let folder = folder.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let temp = tempfile::tempdir().expect("a folder");
    new_runtime().block_on(measure(&folder, &temp.path().join("index.db")));
}

/// Bytes that this process has written so far.
fn written_bytes() -> f64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find(|line| line.starts_with("wchar:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|bytes| bytes.parse().ok()).unwrap_or(0.0)
}

async fn measure(folder: &Path, file: &Path) {
    let indexer = new_indexer(file, FolderSource { root: folder.to_owned(), excluded: Vec::new() });
    let sink: Arc<dyn JobSink> = Arc::new(SilentSink);
    let mut table = Table::default();
    for (name, level, limit) in [
        ("lexical", IndexLevel::Lexical, Target::None),
        ("structure, after lexical", IndexLevel::Structure, Target::AtMost(20.0)),
        ("structure, unchanged", IndexLevel::Structure, Target::AtMost(1.0)),
    ] {
        let request =
            IndexRequest { id: format!("job_{name}"), paths: Vec::new(), level, budget: Budget::default() };
        let (start, used) = (Instant::now(), cpu_time());
        let outcome = run_job(&request, &indexer, &sink, &CancellationToken::new()).await;
        let (wall, cpu) = (start.elapsed(), cpu_time() - used);
        assert!(matches!(outcome, JobOutcome::Done(_)), "{outcome:?}");
        let counts = indexer.store.read(|reader| reader.counts()).await.expect("counts");
        table.print_row(&format!("{name}: wall"), wall.as_secs_f64(), "s", limit);
        if !name.contains("unchanged") {
            let per_chunk = to_ms(cpu) / counts.chunks.max(1) as f64;
            table.print_row(&format!("{name}: CPU per chunk"), per_chunk, "ms", Target::AtMost(5.0));
        }
        println!(
            "  {} documents, {} chunks, {} entities, {} relations",
            counts.documents, counts.chunks, counts.entities, counts.relations
        );
    }
    measure_insert(&indexer, &mut table).await;
    table.print_row("peak memory of the process", peak_mib(), "MiB", Target::AtMost(150.0));
    let size = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    table.print_row("index file", size as f64 / 1_048_576.0, "MiB", Target::None);
    for query in
        ["how are permission requests answered", "WAL checkpoint writer thread", "readFile token_count"]
    {
        let (start, text) = (Instant::now(), query.to_owned());
        let search = indexer.store.read(move |reader| {
            let hits = reader.search_chunks(&text, 5)?;
            let ids: Vec<_> = hits.iter().map(|hit| hit.key.clone()).collect();
            reader.chunks(&ids)
        });
        let hits = search.await.expect("hits");
        table.print_row(&format!("full text: {query}"), to_ms(start.elapsed()), "ms", Target::None);
        let location = |chunk: &agentd::knowledge::Chunk| {
            format!("{}:{}", chunk.path.as_deref().unwrap_or("-"), chunk.start_line)
        };
        println!("  {}", hits.iter().map(location).collect::<Vec<_>>().join(", "));
    }
    table.print_summary();
}

/// Measures the bytes that are written for one more document.
async fn measure_insert(indexer: &Indexer, table: &mut Table) {
    let line = "The writer thread stores each document in one transaction and never blocks a session.\n";
    let text = line.repeat(DOCUMENT_BYTES / line.len());
    let (size, before) = (text.len() as f64, written_bytes());
    let document = InsertedDocument { id: Some("bench".into()), path: None, text };
    insert_documents(indexer, vec![document], &CancellationToken::new()).await.expect("inserted");
    let factor = (written_bytes() - before) / size;
    table.print_row("inserting a document: bytes written per byte", factor, "", Target::AtMost(50.0));
}
