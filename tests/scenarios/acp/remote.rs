//! An editor on a laptop, and a session on a server.

use serde_json::json;

use super::editor::Editor;
use crate::scenarios::remote::{FakeSsh, HOST};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

#[tokio::test]
async fn editor_works_in_a_session_of_another_machine_through_a_broken_connection() {
    let daemon = TestDaemon::start().await;
    let ssh = FakeSsh::install(&daemon);
    let folder = daemon.workspace().display().to_string();
    let mut editor = Editor::from_command(ssh.command(&["-H", HOST, "acp", "-w", &folder]));
    editor.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    // The folder and the servers of the editor are those of the laptop.
    let servers = json!([{"name": "files", "command": "/opt/laptop/server", "args": [],
        "env": [{"name": "TOKEN", "value": "hush-hush"}]}]);
    let params = json!({"cwd": "/home/me/on-the-laptop", "mcpServers": servers});
    let reply = editor.call("session/new", params).await;
    let session = reply["sessionId"].as_str().expect("an id").to_owned();
    let view = daemon.client("alice").await.call("session.get", json!({"session_id": session})).await;
    assert_eq!(view["session"]["cwd"], folder);
    let gate = Gate::new();
    daemon.models.push(Step::text("alpha beta gamma").hold_after(1, &gate));
    let prompt = editor.prompt(&session, "count").await;
    editor.answered(&session, "alpha ").await;
    assert!(ssh.cut() >= 2);
    gate.open();
    assert_eq!(editor.stop_reason(prompt).await, "end_turn");
    assert!(editor.text(&session, "agent_message_chunk").ends_with("alpha beta gamma"));
    assert_eq!(editor.text(&session, "agent_message_chunk").matches("alpha").count(), 1);
    let written = daemon.all_written_bytes();
    assert!(!written.windows(9).any(|part| part == b"hush-hush"));
}
