//! A job that is killed at any step and started again gives the same index as a job without interruption.
//!
//! The parent runs this test program again with a crash point; the child runs the job and exits there.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::testing::{CountingClock, MemoryFiles, ScriptedModel, answer, request};
use super::*;
use crate::store::{KnowledgeStore, unfinished_jobs};
use crate::traits::{CallPurpose, JobSink};
use crate::types::JobOutcome;
use types::knowledge::{IndexLevel, IndexSummary, InsertedDocument};

/// The folder of the child's index.
const FOLDER: &str = "AGENTD_TEST_INDEX_FOLDER";
/// The name of the child's test.
const CHILD: &str = "index::crash_tests::child_runs_one_job_until_its_crash_point";

/// Crash points, each with the passes at which the child exits.
const POINTS: &[(&str, &[u32])] = &[
    ("KN.kept", &[1]),
    ("KN.accepted", &[1]),
    ("KN.job", &[1]),
    ("KN.chunks", &[1, 3]),
    ("KN.graph", &[2]),
    ("KN.commit", &[1, 4]),
    ("KN.references", &[1]),
    ("KN.answer", &[1, 4]),
    ("KN.extraction", &[1, 3]),
    ("KN.summary", &[1]),
];

fn indexer(file: &Path) -> Indexer {
    let files = MemoryFiles::default();
    for n in 0..5 {
        files.put(
            &format!("src/file_{n}.rs"),
            format!(
                "/// Number {n}.\npub fn function_{n}() {{ function_{}(); shared_thing() }}\n",
                (n + 1) % 5
            ),
        );
    }
    for n in 0..8 {
        files.put(&format!("notes/{n}.txt"), format!("fact number {n} of Alice"));
    }
    files.put("src/shared.rs", "/// Used by all.\npub fn shared_thing() {}\n");
    let model = ScriptedModel::new(|call| {
        Ok(match call.purpose {
            CallPurpose::Summary => answer("Alice: all facts."),
            _ => {
                let text = &call.messages[0].content;
                let fact = text.lines().find(|line| line.starts_with("fact")).unwrap_or("nothing");
                answer(&format!(
                    "entity<|#|>Alice<|#|>person<|#|>{fact}\nrelation<|#|>Alice<|#|>{fact}<|#|>k<|#|>{fact}\n<|COMPLETE|>"
                ))
            }
        })
    });
    Indexer {
        store: KnowledgeStore::open(file).expect("a store"),
        files: Arc::new(files),
        model: Some(model),
        embedder: None,
        warning: None,
        // All times are equal, so that the results of two runs do not differ in their times.
        clock: Arc::new(CountingClock::with_fixed_time()),
        chunks: ChunkSettings::default(),
        settings: semantic::SemanticSettings::default(),
    }
}

/// Inserts a document and runs a job over everything.
async fn run(file: &Path) -> JobOutcome {
    let indexer = indexer(file);
    let sink: Arc<dyn JobSink> = Arc::new(super::testing::EventRecorder::default());
    let cancel = tokio_util::sync::CancellationToken::new();
    let document =
        InsertedDocument { id: Some("inserted".into()), path: None, text: "fact of its own".into() };
    insert_documents(&indexer, vec![document], &cancel).await.expect("inserted");
    let mut request = request(IndexLevel::Semantic);
    request.budget.tokens = Some(1_000_000);
    run_job(&request, &indexer, &sink, &cancel).await
}

fn dump(file: &Path) -> Vec<String> {
    crate::store::tests::dump_file(file)
}

#[tokio::test]
#[ignore = "the other test of this file starts it with a crash point"]
async fn child_runs_one_job_until_its_crash_point() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        run(&Path::new(&folder).join("index.db")).await;
    }
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn job_killed_at_any_step_converges_after_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = folder.path().join("whole.db");
    assert!(matches!(run(&whole).await, JobOutcome::Done(IndexSummary { failed: 0, .. })));
    let expected = dump(&whole);
    for (point, times) in POINTS {
        for time in *times {
            let folder = tempfile::tempdir().expect("a folder");
            let child = Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", CHILD, "--ignored"])
                .env(FOLDER, folder.path())
                .env("AGENTD_CRASH", format!("{point}:{time}"))
                .output()
                .expect("the child ran");
            assert!(!child.status.success(), "{point}:{time} was not reached");
            let file = folder.path().join("index.db");
            if *point == "KN.answer" {
                assert_eq!(unfinished_jobs(folder.path()).len(), 0, "the workspace was not named");
            }
            assert!(
                matches!(run(&file).await, JobOutcome::Done(IndexSummary { failed: 0, .. })),
                "{point}:{time}"
            );
            assert_eq!(dump(&file), expected, "{point}:{time}");
        }
    }
}
