//! Generated files: the work for them grows with their size, and a job ends soon after its cancellation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::prepare::{PreparedDocument, file_document, prepare};
use super::testing::{IndexFixture, request};
use super::text::decode;
use super::{ChunkSettings, run_job};
use crate::traits::JobSink;
use crate::types::{JobEvent, JobOutcome};
use base::sync::lock;
use types::knowledge::{IndexLevel, IndexStage};

/// Time that one file may take in a build without optimisations on a busy machine. The structure has two seconds.
const MAX_FILE_TIME: Duration = Duration::from_secs(15);

/// Time until a cancelled job ends, in such a build. Users see less than a second.
const MAX_CANCEL_TIME: Duration = Duration::from_secs(5);

fn prepared(path: &str, text: &str) -> PreparedDocument {
    let text = decode(path, text.as_bytes()).expect("a text");
    let new = file_document(path, 0, 0, "hash".into());
    let cancel = CancellationToken::new();
    prepare(new, &text, IndexLevel::Structure, &ChunkSettings::default(), &cancel).expect("in time")
}

/// Generated files: a name, and a text of about this many bytes.
fn generated_files(bytes: usize) -> Vec<(&'static str, &'static str, String)> {
    let repeat = |part: &str| part.repeat(bytes / part.len());
    let nested = |open: &str, close: &str| {
        let levels = bytes / (open.len() + close.len());
        format!("{}{}", open.repeat(levels), close.repeat(levels))
    };
    vec![
        ("nested objects", "a.js", format!("x = {}", nested("{a:\n", "}\n"))),
        ("nested objects on one line", "a.js", format!("x = {}", nested("{a:", "}"))),
        ("nested arrays", "a.ts", format!("x = {}", nested("[\n", "]\n"))),
        ("nested functions", "a.js", nested("function f(){\n", "}\n")),
        ("nested methods", "a.rs", nested("mod m { impl A { fn f() { self.x(); \n", "}}}\n")),
        ("nested blocks", "a.c", format!("void f() {}", nested("{\n", "}\n"))),
        ("calls on one line", "a.py", repeat("f(1);")),
        ("chain of calls", "a.js", format!("x{}", repeat(".f()\n"))),
        (
            "chain of calls on one line",
            "A.java",
            format!("class A {{ void f() {{ x{}; }} }}", repeat(".f()")),
        ),
        ("nested calls", "a.js", nested("f(\n", ")\n")),
        ("deep indentation", "a.js", format!("{}{}", " ".repeat(bytes / 2), "f();".repeat(bytes / 8))),
        ("arrow functions", "a.js", nested("a = (b = \n", ") => 1\n")),
        ("unclosed brackets", "a.rs", repeat("fn f(")),
        ("comments", "a.js", repeat("// words\n")),
        ("attributes", "a.rs", repeat("#[a]\n")),
        ("one long word", "a.txt", "a".repeat(bytes)),
        ("spaces", "a.txt", " ".repeat(bytes)),
        ("beginnings of tokens", "a.txt", repeat("AKIA-ghp_-")),
        ("list items on one line", "a.md", repeat("- ")),
        ("quotes on one line", "a.md", repeat("> ")),
        ("brackets", "a.md", repeat("[a](")),
        ("headings", "a.md", repeat("# a\n")),
    ]
}

#[test]
fn generated_files_take_time_in_proportion_to_their_size() {
    for (name, path, text) in generated_files(200 * 1024) {
        let start = Instant::now();
        let document = prepared(path, &text);
        let took = start.elapsed();
        println!("{name:32} {took:>10.1?}, {} chunks", document.content.chunks.len());
        assert!(took < MAX_FILE_TIME, "{name} took {took:?}");
    }
}

#[test]
fn nested_objects_keep_their_structure() {
    for levels in [1_000, 4_000] {
        let text =
            format!("function first_one() {{}}\nx = {}{}", "{a:\n".repeat(levels), "}\n".repeat(levels));
        let document = prepared("a.js", &text);
        assert!(!document.lacks_structure, "{levels} levels of {} bytes", text.len());
        assert!(document.content.entities.iter().any(|entity| entity.name == "first_one (a.js)"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_job_ends_soon_in_every_stage() {
    let files = generated_files(100 * 1024);
    for stage in [IndexStage::Scanning, IndexStage::Chunking, IndexStage::Merging] {
        let workspace = IndexFixture::new();
        for (n, (_, path, text)) in files.iter().enumerate().take(6) {
            workspace.files.put(&format!("{n}/{path}"), text);
        }
        for n in 0..1_000 {
            let calls: String = (0..20).map(|call| format!("call_{n}_{call}(); ")).collect();
            let names: String = (0..20).map(|call| format!("fn call_{}_{call}() {{}}\n", n + 1)).collect();
            workspace.files.put(&format!("src/f{n}.rs"), format!("{names}fn own_{n}() {{ {calls} }}\n"));
        }
        let (events, cancel) = (workspace.events.clone(), workspace.cancel.clone());
        let job = tokio::spawn(async move {
            let sink: Arc<dyn JobSink> = workspace.events.clone();
            let outcome =
                run_job(&request(IndexLevel::Structure), &workspace.indexer, &sink, &workspace.cancel).await;
            (outcome, Instant::now())
        });
        let is_in_stage = |event: &JobEvent| match event {
            JobEvent::Progress(progress) => progress.stage == stage,
            JobEvent::Ended(_) => true,
        };
        while !lock(&events.0).iter().any(is_in_stage) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let cancelled = Instant::now();
        cancel.cancel();
        let (outcome, ended) = job.await.expect("the job ends");
        println!("{stage:?}: {:?} after {:?}", outcome, ended - cancelled);
        assert_eq!(outcome, JobOutcome::Cancelled, "{stage:?}");
        assert!(ended - cancelled < MAX_CANCEL_TIME, "{stage:?}: {:?}", ended - cancelled);
    }
}
