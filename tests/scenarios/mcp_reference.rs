//! The reference MCP servers of npm and PyPI in real sessions. Without Node, Python or a registry the tests print
//! `SKIPPED`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

/// Time for an installation.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(150);

/// Runs an installation; `false` if it cannot be done here.
async fn install(program: &str, arguments: &[&str], folder: &Path) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.kill_on_drop(true).spawn() else { return false };
    matches!(tokio::time::timeout(INSTALL_TIMEOUT, child.wait()).await, Ok(Ok(status)) if status.success())
}

async fn session(daemon: &TestDaemon) -> (Session, Log) {
    let client = daemon.client("alice").await;
    let session = client.create(daemon).await;
    for server in ["everything", "files", "web", "time", "git", "fetch"] {
        let rule = json!({"session_id": session.id, "kind": "allow", "rule": format!("mcp__{server}"), "scope": "session"});
        client.call("permission.add_rule", rule).await;
    }
    let seen = session.follow().await;
    (session, seen)
}

async fn called(daemon: &TestDaemon, session: &Session, seen: &mut Log, tool: &str, input: Value) -> Value {
    daemon.models.push(Step::calls([(tool, input)]));
    daemon.models.push(Step::text("Done."));
    let before = seen.seen_of("tool.completed").len();
    session.submit("go").await;
    seen.turn_ends("success").await;
    seen.seen_of("tool.completed")[before].clone()
}

async fn add(daemon: &TestDaemon, name: &str, config: Value) {
    daemon
        .client("adder")
        .await
        .call("mcp.add", json!({"name": name, "config": config, "scope": "user"}))
        .await;
}

#[tokio::test]
async fn reference_servers_of_npm_work_over_stdio_and_http() {
    let daemon = TestDaemon::start().await;
    let folder = daemon.path("npm");
    std::fs::create_dir(&folder).expect("a folder");
    let packages = [
        "install",
        "--no-audit",
        "--no-fund",
        "@modelcontextprotocol/server-everything",
        "@modelcontextprotocol/server-filesystem",
    ];
    if !install("npm", &packages, &folder).await {
        eprintln!("SKIPPED: npm cannot install the reference servers here");
        return;
    }
    let bin = |name: &str| folder.join("node_modules/.bin").join(name);
    let workspace = daemon.workspace().canonicalize().expect("resolved");
    add(&daemon, "everything", json!({"command": bin("mcp-server-everything"), "args": ["stdio"]})).await;
    add(&daemon, "files", json!({"command": bin("mcp-server-filesystem"), "args": [workspace]})).await;
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let mut http = Command::new(bin("mcp-server-everything"));
    http.arg("streamableHttp").env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    let _http = http.kill_on_drop(true).spawn().expect("started");
    for _ in 0..100 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    add(&daemon, "web", json!({"url": format!("http://127.0.0.1:{port}/mcp")})).await;
    let listed = daemon.client("bob").await.call("mcp.list", json!({"cwd": workspace})).await;
    let (session, mut seen) = session(&daemon).await;
    for server in ["everything", "web"] {
        let tool = format!("mcp__{server}__echo");
        let done = called(&daemon, &session, &mut seen, &tool, json!({"message": "hello"})).await;
        assert!(done["output"].as_str().expect("words").contains("hello"), "{done}\n{listed}");
    }
    daemon.write("note.txt", "written by hand");
    let path = workspace.join("note.txt");
    let done =
        called(&daemon, &session, &mut seen, "mcp__files__read_text_file", json!({"path": path})).await;
    assert!(done["output"].as_str().expect("words").contains("written by hand"), "{done}");
    let outside =
        called(&daemon, &session, &mut seen, "mcp__files__read_text_file", json!({"path": "/etc/hostname"}))
            .await;
    assert_eq!(outside["status"], "failed", "{outside}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn reference_servers_of_pypi_work_in_session() {
    let daemon = TestDaemon::start().await;
    let folder = daemon.path("python");
    std::fs::create_dir(&folder).expect("a folder");
    let environment = folder.join("venv");
    let path = environment.to_str().expect("text");
    let pip = environment.join("bin/pip");
    let packages = [
        "install",
        "-q",
        "--disable-pip-version-check",
        "mcp-server-time",
        "mcp-server-git",
        "mcp-server-fetch",
    ];
    if !install("python3", &["-m", "venv", path], &folder).await
        || !install(pip.to_str().expect("text"), &packages, &folder).await
    {
        eprintln!("SKIPPED: Python cannot install the reference servers here");
        return;
    }
    let bin = |name: &str| -> PathBuf { environment.join("bin").join(name) };
    let workspace = daemon.workspace().canonicalize().expect("resolved");
    if !install("git", &["init", "-q"], &workspace).await {
        eprintln!("SKIPPED: there is no git");
        return;
    }
    add(&daemon, "time", json!({"command": bin("mcp-server-time"), "args": ["--local-timezone", "UTC"]}))
        .await;
    add(&daemon, "git", json!({"command": bin("mcp-server-git"), "args": ["--repository", workspace]})).await;
    add(&daemon, "fetch", json!({"command": bin("mcp-server-fetch")})).await;
    let listed = daemon.client("bob").await.call("mcp.list", json!({"cwd": workspace})).await;
    for server in listed["servers"].as_array().expect("a list") {
        assert_eq!(server["state"], "ready", "{listed}");
    }
    let (session, mut seen) = session(&daemon).await;
    let done =
        called(&daemon, &session, &mut seen, "mcp__time__get_current_time", json!({"timezone": "UTC"})).await;
    assert!(done["output"].as_str().expect("words").contains("UTC"), "{done}");
    let done =
        called(&daemon, &session, &mut seen, "mcp__git__git_status", json!({"repo_path": workspace})).await;
    assert_eq!(done["status"], "completed", "{done}");
    daemon.models.assert_no_breach();
}
