//! How fast a workspace is indexed: this repository at level structure, and again unchanged. Run: `cargo bench --bench
//! knowledge`, or with a folder as argument. CPU times are those of the whole process.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agentd::knowledge::index::{ChunkSettings, IndexRequest, Indexer, run_job, semantic};
use agentd::knowledge::store::KnowledgeStore;
use agentd::knowledge::{
    FileEntry, FileRefusal, FileSource, FileVisit, JobEvent, JobSink, KnowledgeError, Level,
};
use agentd::types::time::{Clock, Timestamp};
use tokio_util::sync::CancellationToken;

/// Files of a folder, without the checks of the daemon.
struct Folder(PathBuf);

impl FileSource for Folder {
    fn walk(&self, _: &[String], visit: &mut FileVisit<'_>) -> Result<(), KnowledgeError> {
        for entry in ignore::WalkBuilder::new(&self.0).build().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(path) = entry.path().strip_prefix(&self.0) else { continue };
            if metadata.is_file() {
                let modified =
                    metadata.modified().unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH).unwrap_or_default();
                let file = FileEntry {
                    path: path.to_string_lossy().into_owned(),
                    bytes: metadata.len(),
                    modified_ns: i64::try_from(modified.as_nanos()).unwrap_or(0),
                };
                if let ControlFlow::Break(()) = visit(file) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn read(&self, path: &str, _: u64) -> Result<Vec<u8>, FileRefusal> {
        std::fs::read(self.0.join(path)).map_err(|error| FileRefusal::Unreadable(error.to_string()))
    }
}

struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "a benchmark has no other clock")]
    fn now(&self) -> Timestamp {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(now.as_millis()).unwrap_or(0))
    }
}

struct Silent;

impl JobSink for Silent {
    fn emit(&self, _: JobEvent) {}
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("usage");
    let time = |value: nix::sys::time::TimeVal| {
        Duration::new(value.tv_sec().unsigned_abs(), u32::try_from(value.tv_usec()).unwrap_or(0) * 1000)
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// Most memory that the process had, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let folder = folder.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let place = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(measure(&folder, &place.path().join("index.db")));
}

async fn measure(folder: &Path, file: &Path) {
    let indexer = Indexer {
        store: KnowledgeStore::open(file).expect("an index"),
        files: Arc::new(Folder(folder.to_owned())),
        model: None,
        embedder: None,
        clock: Arc::new(SystemClock),
        chunks: ChunkSettings::default(),
        settings: semantic::SemanticSettings::default(),
    };
    let sink: Arc<dyn JobSink> = Arc::new(Silent);
    for (name, level) in
        [("lexical", Level::Lexical), ("structure", Level::Structure), ("unchanged", Level::Structure)]
    {
        let request = IndexRequest {
            id: format!("job_{name}"),
            paths: Vec::new(),
            level,
            budget: agentd::knowledge::index::Budget::default(),
        };
        let (start, used) = (Instant::now(), cpu());
        let outcome = run_job(&request, &indexer, &sink, &CancellationToken::new()).await;
        let (wall, cpu) = (start.elapsed(), cpu() - used);
        let counts = indexer.store.read(|reader| reader.counts()).await.expect("counts");
        let per_chunk = cpu.as_secs_f64() * 1000.0 / (counts.chunks.max(1) as f64);
        println!(
            "{name}: {:.2} s wall, {:.2} s CPU, {per_chunk:.2} ms CPU per chunk, peak {} MiB; {outcome:?}; {counts:?}",
            wall.as_secs_f64(),
            cpu.as_secs_f64(),
            peak_mib(),
        );
    }
    let size = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    println!("index file: {:.1} MiB", size as f64 / 1_048_576.0);
    for query in
        ["how are permission requests answered", "WAL checkpoint writer thread", "readFile token_count"]
    {
        let (start, text) = (Instant::now(), query.to_owned());
        let hits = indexer
            .store
            .read(move |reader| {
                let hits = reader.search_chunks(&text, 5)?;
                let ids: Vec<_> = hits.iter().map(|hit| hit.key.clone()).collect();
                reader.chunks(&ids)
            })
            .await
            .expect("hits");
        let took = start.elapsed();
        let places: Vec<String> = hits
            .iter()
            .map(|chunk| format!("{}:{}", chunk.path.as_deref().unwrap_or("-"), chunk.start_line))
            .collect();
        println!("{query}: {:.1} ms, {}", took.as_secs_f64() * 1000.0, places.join(", "));
    }
}
