//! The recipes of docs/jobs.md, as they are written there.

use std::path::Path;

use serde_json::json;

use super::agentctl::command;
use crate::support::daemon::TestDaemon;
use crate::support::inbox::Inbox;
use crate::support::model_server::Step;
use crate::support::wait::with_deadline;

/// The shell commands of a recipe.
fn recipe(name: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/jobs.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = text.split_once(&format!("<!-- recipe: {name} -->\n```sh\n")).expect("the recipe");
    rest.split_once("\n```").expect("its end").0.to_owned()
}

/// Runs a recipe in the daemon's workspace. Returns what it printed.
async fn run(daemon: &TestDaemon, name: &str) -> String {
    let agentctl = command(daemon, &[]);
    let program = Path::new(agentctl.as_std().get_program());
    let path = format!(
        "{}:{}",
        program.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut shell = tokio::process::Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &recipe(name)]).current_dir(daemon.workspace());
    shell.envs(agentctl.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("PATH", path).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = with_deadline(name, || daemon.log(), shell.output()).await.expect("bash");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}\n{errors}");
    said
}

fn git(daemon: &TestDaemon, args: &[&str]) {
    let done =
        std::process::Command::new("git").args(args).current_dir(daemon.workspace()).output().expect("git");
    assert!(done.status.success(), "{args:?}: {done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nightly_update_works_in_a_worktree_and_tells_a_webhook() {
    let inbox = Inbox::start(&[204]);
    let config = format!(
        "[permissions]\nallow = [\"Bash\"]\n[jobs.notify.team]\nurl = \"{}\"\nsecret_env = \"HOOK\"",
        inbox.url
    );
    let price = "[model.\"scripted/model\"]\nprice = { input = 1.0, output = 2.0 }";
    let daemon = TestDaemon::builder()
        .config(&format!("{config}\n{price}"))
        .environment("HOOK", "geheim")
        .start()
        .await;
    daemon.write("app.txt", "one\n");
    git(&daemon, &["init", "-q"]);
    git(&daemon, &["-c", "user.name=a", "-c", "user.email=a@b", "add", "."]);
    git(&daemon, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]);
    daemon.models.push(Step::calls([("Bash", json!({"command": "echo two >> app.txt"}))]));
    daemon.models.push(Step::text("Updated."));
    let said = run(&daemon, "nightly").await;
    assert!(said.contains("Updated.") && said.contains("+two"), "{said}");
    assert_eq!(daemon.read("app.txt"), "one\n", "the main folder stays as it is");
    assert_eq!(inbox.next().json()["type"], "job.succeeded");
}

#[tokio::test]
async fn pipeline_step_gets_a_structured_result() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("{\"ok\": true, \"problems\": []}"));
    run(&daemon, "pipeline").await;
}

#[tokio::test]
async fn batch_of_fifty_files_runs_four_at_a_time() {
    let daemon = TestDaemon::builder().config("[jobs]\nconcurrent = 8").start().await;
    for number in 0..50 {
        daemon.write(&format!("texts/{number}.txt"), "text\n");
    }
    daemon.models.set_fallback(|_| Step::text("Corrected."));
    let said = run(&daemon, "batch").await;
    assert_eq!(said.matches("Corrected.").count(), 50, "{said}");
    let client = daemon.client("alice").await;
    let listed = client.call("job.list", json!({"label": "batch=spelling", "limit": 100})).await;
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(50));
}
