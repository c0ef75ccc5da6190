//! `agentctl login`: the key of a provider is stored for the daemon, tried, used, and hidden from tools.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::agentctl::{CliOutput, command, ended};
use super::agentctl_prompt::Terminal;
use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

const KEY: &str = "sk-canary-1234567890";

async fn login(daemon: &TestDaemon, provider: &str, typed: &str) -> CliOutput {
    let mut child =
        command(daemon, &["login", provider]).stdin(Stdio::piped()).spawn().expect("agentctl starts");
    let mut input = child.stdin.take().expect("a pipe");
    // The program may end without reading.
    let _ = input.write_all(typed.as_bytes()).await;
    drop(input);
    ended(daemon, child).await
}

#[tokio::test]
async fn stored_key_is_tried_used_and_hidden_from_tools() {
    let daemon = TestDaemon::builder()
        .provider("api_key_env = \"AGENTD_NO_SUCH_KEY\"")
        .config("[permissions]\nallow = [\"Read\", \"Bash(cat:*)\"]\n")
        .start()
        .await;
    let said = login(&daemon, "scripted", &format!(" {KEY}\n")).await;
    assert!(said.code == 0 && said.out.contains("new sessions use scripted/model"), "{said:?}");
    assert!(!format!("{said:?}").contains(KEY));
    let file = daemon.path("config/agentd/keys/scripted");
    assert_eq!(std::fs::read_to_string(&file).expect("stored"), format!("{KEY}\n"));
    assert_eq!(std::fs::metadata(&file).expect("stored").permissions().mode() & 0o777, 0o600);

    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "dont_ask"})).await;
    let mut seen = session.follow().await;
    let path = file.display().to_string();
    daemon.models.push(Step::calls([
        ("Read", json!({"file_path": path})),
        bash(&format!("cat {path}")),
        ("Grep", json!({"pattern": "canary", "path": daemon.path("config").display().to_string()})),
    ]));
    daemon.models.push(Step::text("Nothing."));
    session.submit("read the key").await;
    seen.turn_ends("success").await;
    let requests = daemon.models.requests();
    let sent = requests.first().expect("a request");
    let header = sent.header("x-api-key").or_else(|| sent.header("authorization"));
    assert!(header.is_some_and(|header| header.ends_with(KEY)), "{sent:?}");
    for request in &requests {
        assert!(!request.body.to_string().contains(KEY), "{}", request.body);
    }
}

#[tokio::test]
async fn refused_or_unusable_key_is_reported_without_it() {
    let daemon = TestDaemon::builder().provider("api_key_env = \"AGENTD_NO_SUCH_KEY\"").start().await;
    let file = daemon.path("config/agentd/keys/other");
    for (provider, typed) in
        [("other", KEY), ("../config", KEY), ("scripted", ""), ("scripted", "sk-canary two\n")]
    {
        let said = login(&daemon, provider, typed).await;
        assert!(said.code == 64 && said.out.is_empty(), "{provider}: {said:?}");
        assert!(!said.err.contains("canary") && !file.exists(), "{provider}: {said:?}");
    }
    daemon.models.answer_list(401, "{\"error\":{\"type\":\"authentication_error\",\"message\":\"no\"}}");
    let said = login(&daemon, "scripted", KEY).await;
    assert!(said.code == 2 && said.err.contains("agentctl login scripted"), "{said:?}");
    assert!(!said.err.contains("canary"), "{said:?}");
}

#[tokio::test]
async fn typed_key_is_not_shown() {
    let daemon = TestDaemon::builder().provider("api_key_env = \"AGENTD_NO_SUCH_KEY\"").start().await;
    let mut terminal = Terminal::start(&daemon, &["login", "scripted"]);
    terminal.shows("not shown").await;
    terminal.keys(&format!("{KEY}\r")).await;
    terminal.shows("accepts the key").await;
    assert!(!terminal.output().contains("canary"), "{:?}", terminal.output());
    assert!(terminal.ends().await.success());
    let mut terminal = Terminal::start(&daemon, &["login", "scripted"]);
    terminal.shows("not shown").await;
    terminal.keys("sk-\u{3}").await;
    assert_eq!(terminal.ends().await.code(), Some(3));
}
