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
use crate::support::pages::Pages;

/// Time for an installation.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(150);

/// Runs an installation; `false` if it cannot be done here.
pub(super) async fn install(program: &str, arguments: &[&str], folder: &Path) -> bool {
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

async fn call_tool(
    daemon: &TestDaemon,
    session: &Session,
    seen: &mut Log,
    tool: &str,
    input: Value,
) -> Value {
    daemon.models.push(Step::calls([(tool, input)]));
    daemon.models.push(Step::text("Done."));
    let before = seen.events_of("tool.completed").len();
    session.submit("go").await;
    seen.turn_ends("success").await;
    seen.events_of("tool.completed")[before].clone()
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
        base::skip_test!("npm cannot install the reference servers here");
        return;
    }
    let bin = |name: &str| folder.join("node_modules/.bin").join(name);
    let workspace = daemon.workspace().canonicalize().expect("resolved");
    let everything = json!({"command": bin("mcp-server-everything"), "args": ["stdio"], "elicitation": true});
    add(&daemon, "everything", everything).await;
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
        let done = call_tool(&daemon, &session, &mut seen, &tool, json!({"message": "hello"})).await;
        assert!(done["output"].as_str().expect("words").contains("hello"), "{done}\n{listed}");
    }
    let resources = json!({"name": "everything", "cwd": workspace});
    let resources = daemon.client("bob").await.call("mcp.resources", resources).await;
    let uri = resources["resources"][0]["uri"].clone();
    assert!(uri.is_string(), "{resources}");
    daemon.models.push(Step::text("Read."));
    let link = json!({"type": "resource_link", "server": "everything", "uri": uri});
    session.call("submit", json!({ "input": [link] })).await;
    seen.turn_ends("success").await;
    assert!(daemon.models.requests().last().expect("one").body.to_string().contains("mcp_resource"));
    daemon.write("note.txt", "written by hand");
    let path = workspace.join("note.txt");
    let done =
        call_tool(&daemon, &session, &mut seen, "mcp__files__read_text_file", json!({"path": path})).await;
    assert!(done["output"].as_str().expect("words").contains("written by hand"), "{done}");
    let outside = call_tool(
        &daemon,
        &session,
        &mut seen,
        "mcp__files__read_text_file",
        json!({"path": "/etc/hostname"}),
    )
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
        base::skip_test!("Python cannot install the reference servers here");
        return;
    }
    let bin = |name: &str| -> PathBuf { environment.join("bin").join(name) };
    let workspace = daemon.workspace().canonicalize().expect("resolved");
    if !install("git", &["init", "-q"], &workspace).await {
        base::skip_test!("there is no git");
        return;
    }
    add(&daemon, "time", json!({"command": bin("mcp-server-time"), "args": ["--local-timezone", "UTC"]}))
        .await;
    add(&daemon, "git", json!({"command": bin("mcp-server-git"), "args": ["--repository", workspace]})).await;
    let pages = Pages::serve(|path| match path {
        "/page" => Pages::page("text/html", "<html><body><p>Served by the test.</p></body></html>"),
        _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
    });
    let direct = json!({"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"});
    add(
        &daemon,
        "fetch",
        json!({"command": bin("mcp-server-fetch"), "args": ["--allow-private-ips"], "env": direct}),
    )
    .await;
    let listed = daemon.client("bob").await.call("mcp.list", json!({"cwd": workspace})).await;
    for server in listed["servers"].as_array().expect("a list") {
        assert_eq!(server["state"], "ready", "{listed}");
    }
    let (session, mut seen) = session(&daemon).await;
    let done =
        call_tool(&daemon, &session, &mut seen, "mcp__time__get_current_time", json!({"timezone": "UTC"}))
            .await;
    assert!(done["output"].as_str().expect("words").contains("UTC"), "{done}");
    let done =
        call_tool(&daemon, &session, &mut seen, "mcp__git__git_status", json!({"repo_path": workspace}))
            .await;
    assert_eq!(done["status"], "completed", "{done}");
    let url = format!("{}/page", pages.base);
    let done = call_tool(&daemon, &session, &mut seen, "mcp__fetch__fetch", json!({ "url": url })).await;
    assert!(done["output"].as_str().expect("words").contains("Served by the test."), "{done}");
    assert!(pages.asked() >= 1);
    daemon.models.assert_no_breach();
}

/// A program that drives `agentctl mcp serve` with the Python SDK and prints what it got as JSON.
const FOREIGN_CLIENT: &str = r#"
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

def field(value, *names):
    return next(getattr(value, name) for name in names if getattr(value, name, None) is not None)

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp", "serve"], env=dict(os.environ), cwd=os.getcwd())
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            started = await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            async def call(name, **arguments):
                result = await session.call_tool(name, arguments)
                return field(result, "structured_content", "structuredContent")
            made = await call("session_start", prompt="say hello")
            waited = await call("session_wait", session_id=made["session_id"], timeout_ms=20000)
            read_back = await call("session_read", session_id=made["session_id"])
            wrong = await session.call_tool("session_status", {"session_id": "ses_none"})
            print(json.dumps({
                "server": field(started, "server_info", "serverInfo").name, "tools": tools, "waited": waited,
                "read": read_back, "wrong": bool(getattr(wrong, "is_error", getattr(wrong, "isError", False))),
            }))

asyncio.run(main())
"#;

/// A Python with the SDK: the one that `.ci/run` prepares, or a new environment.
async fn python_with_sdk(folder: &Path) -> Option<PathBuf> {
    if let Some(prepared) = std::env::var_os("AGENTD_TEST_MCP_PYTHON") {
        return Some(prepared.into());
    }
    let environment = folder.join("sdk");
    let python = environment.join("bin/python");
    let pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "mcp"];
    let is_ready = install("python3", &["-m", "venv", environment.to_str()?], folder).await
        && install(python.to_str()?, &pip, folder).await;
    is_ready.then_some(python)
}

#[tokio::test]
async fn python_sdk_drives_sessions_through_mcp_serve() {
    let daemon = TestDaemon::start().await;
    let Some(python) = python_with_sdk(&daemon.path("")).await else {
        base::skip_test!("Python cannot install the SDK of MCP here");
        return;
    };
    let program = daemon.path("client.py");
    std::fs::write(&program, FOREIGN_CLIENT).expect("written");
    daemon.models.push(Step::text("Hello to you."));
    let mut command = Command::new(python);
    command.arg(&program).arg(env!("CARGO_BIN_EXE_agentctl")).current_dir(daemon.workspace());
    command.env("AGENTD_SOCKET", daemon.socket()).env("AGENTD_CONFIG", daemon.path("config.toml"));
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output =
        tokio::time::timeout(Duration::from_secs(60), output).await.expect("in time").expect("started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!(seen["server"], "agentctl");
    assert_eq!(seen["tools"].as_array().map(Vec::len), Some(6));
    assert_eq!((&seen["waited"]["state"], &seen["wrong"]), (&json!("idle"), &json!(true)), "{seen}");
    assert_eq!(seen["waited"]["result"]["text"], "Hello to you.");
    assert!(seen["read"]["items"].to_string().contains("say hello"), "{seen}");
    daemon.models.assert_no_breach();
}
