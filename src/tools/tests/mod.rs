//! Tests the tools through their public interface, with real folders and processes.

mod bash;
mod cases;
mod edits;
mod escapes;
mod everyday;
mod files;
mod git_folders;
mod hidden_paths;
mod paths;
mod sandbox;
mod search;
mod web;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{ProcessStarted, SessionContext, Settings, Toolbox};
use types::ids::{Mint, Seed};
use types::message::ToolCall;
use types::tool::{PreparedCall, Subject, ToolOutcome, ToolStatus};

/// A workspace with a home folder, and the record of files that the model has read.
struct ToolFixture {
    _root: tempfile::TempDir,
    root: PathBuf,
    session_context: SessionContext,
    tools: Toolbox,
    mint: Mint,
}

impl ToolFixture {
    fn new() -> Self {
        Self::with_settings(|_| {})
    }

    fn with_settings(change: impl FnOnce(&mut Settings)) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), change)
    }

    fn in_folder(dir: tempfile::TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        let root = dir.path().canonicalize().unwrap();
        for folder in ["ws", "home", "data"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        let mut settings = Settings::new(root.join("home"));
        settings.protected = vec![root.join("data")];
        settings.instance = "test-instance".into();
        change(&mut settings);
        // Marks of processes must differ between tests that run in parallel.
        let seed =
            root.to_string_lossy().bytes().fold(0_u128, |sum, b| sum.wrapping_mul(131) + u128::from(b));
        let mut mint = Mint::new(0, Seed(seed));
        let workspace = root.join("ws");
        let session_context = SessionContext {
            session_id: mint.session(),
            cwd: workspace.clone(),
            workspace,
            additional: Vec::new(),
            reads: Arc::new(HashMap::new()),
            unattended: false,
            bash_timeout_ms: None,
            unreadable: Default::default(),
            blobs: None,
            mode: Default::default(),
            project: None,
            todos: Arc::default(),
            commands: Vec::new(),
            agents: Arc::from([]),
            mcp: Default::default(),
            environment: None,
        };
        Self { _root: dir, root, session_context, tools: Toolbox::new(settings), mint }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.session_context.workspace.join(name)
    }

    fn write_file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn call(&mut self, tool: &str, input: Value) -> ToolCall {
        let call_id = self.mint.call();
        ToolCall { call_id, provider_id: "p".into(), tool: tool.into(), input, input_error: None }
    }

    async fn prepare(&mut self, tool: &str, input: Value) -> Result<PreparedCall, ToolOutcome> {
        let call = self.call(tool, input);
        within(self.tools.prepare(&call, &self.session_context)).await
    }

    /// Prepares and runs a call, records the files that it read, and follows its current folder.
    async fn run(&mut self, tool: &str, input: Value) -> ToolOutcome {
        let call = self.call(tool, input);
        let prepared = match within(self.tools.prepare(&call, &self.session_context)).await {
            Ok(prepared) => prepared,
            Err(outcome) => return outcome,
        };
        let outcome = self.run_prepared(&call, &prepared).await;
        self.remember(&outcome);
        outcome
    }

    /// Does the same as the end of a turn.
    fn end_turn(&self) {
        self.tools.on_session_idle(self.session_context.session_id);
    }

    async fn run_prepared(&self, call: &ToolCall, prepared: &PreparedCall) -> ToolOutcome {
        let (progress, _ignored) = mpsc::channel(1);
        let stop = CancellationToken::new();
        within(self.tools.run(call, prepared, &self.session_context, progress, registrar(), stop)).await
    }

    fn remember(&mut self, outcome: &ToolOutcome) {
        let reads = Arc::make_mut(&mut self.session_context.reads);
        for record in &outcome.reads {
            let record = record.merged_with(reads.get(&record.path));
            reads.insert(record.path.clone(), record);
        }
        if let Some(cwd) = &outcome.cwd {
            self.session_context.cwd.clone_from(cwd);
        }
    }
}

/// Accepts records of started processes, as a session does.
fn registrar() -> mpsc::Sender<ProcessStarted> {
    let (process_starts, mut received_starts) = mpsc::channel::<ProcessStarted>(1);
    tokio::spawn(async move {
        while let Some(process_start) = received_starts.recv().await {
            let _ = process_start.stored.send(Ok(()));
        }
    });
    process_starts
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("done within the deadline")
}

fn code(outcome: &ToolOutcome) -> &str {
    outcome.code.as_deref().unwrap_or("")
}

#[track_caller]
fn completed(outcome: &ToolOutcome) -> &str {
    assert_eq!(outcome.status, ToolStatus::Completed, "{outcome:?}");
    &outcome.output
}

#[track_caller]
fn failed(outcome: &ToolOutcome, code: &str) {
    assert_eq!((outcome.status, self::code(outcome)), (ToolStatus::Failed, code), "{outcome:?}");
    assert!(!outcome.output.is_empty());
}

#[tokio::test]
async fn invalid_tool_calls_are_returned_with_advice() {
    let mut fixture = ToolFixture::new();
    for (tool, input, code, expected_text) in [
        ("Raed", json!({}), "unknown_tool", "Did you mean Read?"),
        ("bash", json!({}), "unknown_tool", "Did you mean Bash?"),
        ("Read", json!({}), "invalid_input", "missing field `file_path`"),
        ("Read", json!({"file_path": 1}), "invalid_input", "at `file_path`"),
        ("Bash", json!({"command": " "}), "invalid_input", "empty"),
        ("Grep", json!({"pattern": "("}), "invalid_regex", "regular expression"),
        ("Grep", json!({"pattern": "x", "output_mode": "all"}), "invalid_input", "output_mode"),
        ("Glob", json!({"pattern": "a\\"}), "invalid_pattern", "glob"),
        ("Edit", json!({"file_path": "\0", "old_string": "a", "new_string": "b"}), "bad_path", "U+0000"),
    ] {
        let outcome = fixture.prepare(tool, input).await.unwrap_err();
        failed(&outcome, code);
        assert!(outcome.output.contains(expected_text), "{}", outcome.output);
    }
    let mut call = fixture.call("Read", json!("{\"file_path\": "));
    call.input_error = Some("EOF while parsing".into());
    let outcome = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap_err();
    failed(&outcome, "invalid_json");
}

#[test]
fn tool_definitions_are_complete_and_stable() {
    let tools = Toolbox::new(Settings::new("/home/u".into()));
    let definitions = tools.definitions();
    let names: Vec<(&str, bool)> =
        definitions.iter().map(|tool| (tool.name.as_str(), tool.read_only)).collect();
    assert_eq!(
        names,
        [
            ("Bash", false),
            ("BashOutput", true),
            ("KillBash", false),
            ("Read", true),
            ("Write", false),
            ("Edit", false),
            ("MultiEdit", false),
            ("ApplyPatch", false),
            ("NotebookEdit", false),
            ("Glob", true),
            ("Grep", true),
            ("LS", true),
            ("WebFetch", false),
            ("Task", false),
            ("TodoWrite", false),
            ("TodoRead", true),
            ("AskUser", false),
            ("ExitPlanMode", false),
            ("Skill", true),
            ("Memory", false),
            ("KnowledgeSearch", true)
        ]
    );
    // The session offers the last one itself.
    assert_eq!(
        names.iter().map(|(name, _)| *name).chain(["ToolSearch"]).collect::<Vec<_>>(),
        types::tool::BUILT_IN_TOOLS
    );
    for card in definitions.iter() {
        let text = card.input_schema.to_string();
        assert_eq!(card.input_schema["type"], "object", "{}", card.name);
        assert!(!text.contains("$ref") && !text.contains("$schema") && !text.contains("\"null\""), "{text}");
        let described = card.input_schema["properties"].as_object();
        assert!(
            described
                .into_iter()
                .flat_map(|fields| fields.values())
                .all(|field| field["description"].is_string()),
            "{text}"
        );
    }
    assert_eq!(*definitions, *Toolbox::new(Settings::new("/home/u".into())).definitions());
    let grep = &definitions[10].input_schema["properties"];
    assert_eq!(grep["output_mode"]["enum"], json!(["content", "files_with_matches", "count"]));
    assert!(grep["-A"]["type"] == "integer" && grep["type"]["type"] == "string");
}

#[tokio::test]
async fn prepared_call_survives_serialisation_round_trip() {
    let mut fixture = ToolFixture::new();
    let prepared = fixture.prepare("Write", json!({"file_path": "a/b.txt", "content": "x\n"})).await.unwrap();
    let back: PreparedCall = serde_json::from_str(&serde_json::to_string(&prepared).unwrap()).unwrap();
    assert_eq!(back, prepared);
}

/// The notes of a call about how far it is, and its outcome.
async fn run_with_notes(fixture: &mut ToolFixture, tool: &str, input: Value) -> (Vec<String>, ToolOutcome) {
    let call = fixture.call(tool, input);
    let prepared = within(fixture.tools.prepare(&call, &fixture.session_context)).await.unwrap();
    let (progress, mut listener) = mpsc::channel(1_000);
    let stop = CancellationToken::new();
    let run = fixture.tools.run(&call, &prepared, &fixture.session_context, progress, registrar(), stop);
    let outcome = within(run).await;
    let mut notes = Vec::new();
    while let Ok(note) = listener.try_recv() {
        assert_eq!(note.stream, "progress");
        notes.push(note.text);
    }
    (notes, outcome)
}

#[tokio::test]
async fn long_calls_report_how_far_they_are_and_short_ones_do_not() {
    for is_long in [true, false] {
        let mut fixture = ToolFixture::with_settings(|settings| {
            settings.progress_interval = if is_long { Duration::ZERO } else { Duration::from_secs(3_600) };
        });
        fixture.write_file("big.txt", "a line of text\n".repeat(200_000));
        fixture.write_file("src/small.txt", "text");
        for (tool, input, expected) in [
            ("Read", json!({"file_path": "big.txt", "limit": 1}), "1 of 2 MiB read\n"),
            ("Grep", json!({"pattern": "nothing", "path": "big.txt"}), "1 files searched\n"),
            ("Grep", json!({"pattern": "nothing"}), "2 files searched\n"),
            ("Glob", json!({"pattern": "*.txt"}), "2 files looked at, 1 match\n"),
        ] {
            let (notes, outcome) = run_with_notes(&mut fixture, tool, input.clone()).await;
            completed(&outcome);
            assert_eq!(notes.iter().any(|note| note == expected), is_long, "{tool} {input}: {notes:?}");
            assert!(is_long || notes.is_empty(), "{notes:?}");
        }
    }
}

fn edited_path(prepared: &PreparedCall) -> &Path {
    match &prepared.subject {
        Subject::Edit { path } => &path.path,
        other => panic!("not an edit: {other:?}"),
    }
}
