//! The typed clients of `proto-docs/clients/`: foreign tools judge their types, and their examples drive a session. Without
//! Node, Python or a registry the tests print `SKIPPED`.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use super::bash;
use crate::support::daemon::TestDaemon;

use crate::support::model_server::{Gate, Step};
use crate::support::wait::poll_until;

/// Time for an installation, or for a judge.
const TOOL_TIMEOUT: Duration = Duration::from_secs(180);

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("proto-docs/clients")
}

/// Runs a program to its end; `None` if it does not exist or takes too long.
async fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str], folder: &Path) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    tokio::time::timeout(TOOL_TIMEOUT, command.output()).await.ok()?.ok()
}

async fn succeeds(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str], folder: &Path) -> bool {
    run(program, arguments, folder).await.is_some_and(|output| output.status.success())
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => _ = std::fs::copy(entry.path(), target).expect("copied"),
        }
    }
}

/// An example lists, creates, submits and approves, and goes on behind its cursor after a crash of the daemon.
async fn example_survives_crash(daemon: &mut TestDaemon, mut example: Command) {
    let gate = Gate::new();
    daemon.models.push(Step::calls([bash("touch made")]));
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let output = daemon.path("example.out");
    let file = std::fs::File::create(&output).expect("a file");
    let mut child = example
        .arg("go")
        .current_dir(daemon.workspace())
        .env("AGENTD_SOCKET", daemon.socket())
        .stdin(Stdio::piped())
        .stdout(file)
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .expect("the example starts");
    let mut answers = child.stdin.take().expect("its input");
    tokio::io::AsyncWriteExt::write_all(&mut answers, b"y\n").await.expect("an answer");
    let printed = || std::fs::read_to_string(&output).unwrap_or_default();
    poll_until("the first text", printed, || printed().contains("one").then_some(())).await;
    assert!(daemon.workspace().join("made").exists(), "the user allowed the call");
    daemon.models.push(Step::text("after the restart"));
    daemon.crash_and_restart().await;
    let status = tokio::time::timeout(TOOL_TIMEOUT, child.wait()).await.expect("in time").expect("ran");
    assert!(status.success(), "{}", printed());
    assert!(printed().contains("after the restart") && printed().ends_with("success\n"), "{}", printed());
    assert_eq!(printed().matches("one").count(), 1, "nothing is repeated: {}", printed());
}

#[tokio::test]
async fn typescript_client_is_strict_and_survives_crash_of_daemon() {
    let mut daemon = TestDaemon::start().await;
    let folder = daemon.path("typescript");
    copy_folder(&clients().join("typescript"), &folder);
    let packages = ["install", "--no-audit", "--no-fund", "json-schema-to-typescript"];
    if !succeeds("npm", &packages, &folder).await {
        base::skip_test!("npm cannot install the tools of the TypeScript client here");
        return;
    }
    let bin = |name: &str| folder.join("node_modules/.bin").join(name);
    let built = run(bin("tsc"), &["-p", "."], &folder).await.expect("tsc ran");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));

    // Another generator reads the document, and names each variant as the document does.
    let schemas = agentd::api::openrpc::openrpc()["components"]["schemas"].clone();
    let text = json!({"title": "All", "$ref": "#/definitions/Envelope", "definitions": schemas}).to_string();
    let text = text.replace("#/components/schemas/", "#/definitions/");
    std::fs::write(folder.join("schema.json"), text).expect("written");
    let arguments = ["--unreachableDefinitions", "schema.json", "generated.ts"];
    let generated = run(bin("json2ts"), &arguments, &folder).await.expect("json2ts ran");
    assert!(generated.status.success(), "{}", String::from_utf8_lossy(&generated.stderr));
    let generated = std::fs::read_to_string(folder.join("generated.ts")).expect("text");
    assert!(generated.contains("export interface MessageTextDeltaEvent {"));
    assert!(!generated.contains("Envelope1"), "a variant without a name");
    assert!(succeeds(bin("tsc"), &["--strict", "--noEmit", "generated.ts"], &folder).await);

    let mut example = Command::new("node");
    example.arg(folder.join("dist/examples/run.js"));
    example_survives_crash(&mut daemon, example).await;
}

#[tokio::test]
async fn python_client_is_strict_and_survives_crash_of_daemon() {
    let mut daemon = TestDaemon::start().await;
    let folder = daemon.path("python");
    copy_folder(&clients().join("python"), &folder);
    let supported = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !succeeds("python3", &["-c", supported], &folder).await {
        base::skip_test!("there is no Python 3.11 for the Python client");
        return;
    }
    if succeeds("npm", &["install", "--no-audit", "--no-fund", "--no-save", "pyright"], &folder).await {
        let judge = folder.join("node_modules/.bin/pyright");
        let judged = run(judge, &["agentd_client", "examples"], &folder).await.expect("pyright ran");
        assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
    } else {
        base::skip_test!("npm cannot install pyright here");
    }
    let mut example = Command::new("python3");
    example.arg(folder.join("examples/run.py")).env("PYTHONPATH", &folder);
    example_survives_crash(&mut daemon, example).await;
}
