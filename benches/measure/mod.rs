//! Shared by the benchmarks of the index: clock, CPU time, memory, files of a folder, and the table of results.
#![allow(dead_code, reason = "each benchmark uses a part")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentd::knowledge::index::{ChunkSettings, Indexer, semantic};
use agentd::knowledge::store::KnowledgeStore;
use agentd::knowledge::{FileEntry, FileRefusal, FileSource, FileVisit, JobEvent, JobSink, KnowledgeError};
use agentd::types::time::{Clock, Timestamp};

/// Files of a folder, without the checks of the daemon.
pub struct FolderSource {
    pub root: PathBuf,
    /// Folders to leave out, for example the questions of a benchmark.
    pub excluded: Vec<&'static str>,
}

impl FolderSource {
    /// Path and size of each file, sorted.
    pub fn files(&self) -> Vec<FileEntry> {
        let walk = ignore::WalkBuilder::new(&self.root).sort_by_file_name(std::ffi::OsStr::cmp).build();
        let entry = |entry: ignore::DirEntry| {
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let path = entry.path().strip_prefix(&self.root).ok()?;
            if self.excluded.iter().any(|folder| path.starts_with(folder)) {
                return None;
            }
            let modified =
                metadata.modified().unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH).unwrap_or_default();
            Some(FileEntry {
                path: path.to_string_lossy().into_owned(),
                bytes: metadata.len(),
                modified_ns: i64::try_from(modified.as_nanos()).unwrap_or(0),
            })
        };
        walk.flatten().filter_map(entry).collect()
    }
}

impl FileSource for FolderSource {
    fn walk(
        &self,
        _: &[String],
        _: &dyn Fn() -> bool,
        visit: &mut FileVisit<'_>,
    ) -> Result<Vec<String>, KnowledgeError> {
        for file in self.files() {
            if let ControlFlow::Break(()) = visit(file) {
                break;
            }
        }
        Ok(Vec::new())
    }

    fn find(&self, path: &str) -> Option<FileEntry> {
        self.files().into_iter().find(|file| file.path == path)
    }

    fn read(&self, path: &str, _: u64) -> Result<Vec<u8>, FileRefusal> {
        std::fs::read(self.root.join(path)).map_err(|error| FileRefusal::Unreadable(error.to_string()))
    }
}

/// The system's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "a benchmark has no other clock")]
    fn now(&self) -> Timestamp {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(now.as_millis()).unwrap_or(0))
    }
}

/// Reports nothing.
pub struct SilentSink;

impl JobSink for SilentSink {
    fn emit(&self, _: JobEvent) {}
}

/// An indexer without models.
pub fn new_indexer(file: &Path, files: FolderSource) -> Indexer {
    Indexer {
        store: KnowledgeStore::open(file).expect("an index"),
        files: Arc::new(files),
        model: None,
        embedder: None,
        warning: None,
        clock: Arc::new(SystemClock),
        chunks: ChunkSettings::default(),
        settings: semantic::SemanticSettings::default(),
    }
}

/// CPU time of this process so far.
pub fn cpu_time() -> Duration {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("usage");
    let time = |value: nix::sys::time::TimeVal| {
        Duration::new(value.tv_sec().unsigned_abs(), u32::try_from(value.tv_usec()).unwrap_or(0) * 1000)
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// The time in milliseconds.
pub fn to_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Peak memory of the process in MiB.
pub fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// A runtime with one worker.
pub fn new_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// The limit of a figure.
#[derive(Clone, Copy)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Printed without a verdict.
    None,
}

/// The table of results, with target and verdict in each row.
#[derive(Default)]
pub struct Table {
    has_head: bool,
    missed: usize,
    judged: usize,
}

impl Table {
    /// Prints a row.
    pub fn print_row(&mut self, name: &str, value: f64, unit: &str, target: Target) {
        if !self.has_head {
            println!("{:<58} {:>12} {:>14}  verdict", "measured", "value", "target");
            self.has_head = true;
        }
        let digits = if unit.is_empty() { 3 } else { 2 };
        let (shown, is_met) = match target {
            Target::AtMost(limit) => (format!("<= {limit}"), Some(value <= limit)),
            Target::AtLeast(limit) => (format!(">= {limit:.3}"), Some(value >= limit)),
            Target::None => ("-".to_owned(), None),
        };
        let verdict = match is_met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        self.judged += usize::from(is_met.is_some());
        self.missed += usize::from(is_met == Some(false));
        println!("{name:<58} {:>12} {shown:>14}  {verdict}", format!("{value:.digits$} {unit}").trim_end());
    }

    /// Prints how many targets were met.
    pub fn print_summary(&self) {
        println!("{} of {} targets met", self.judged - self.missed, self.judged);
    }
}
