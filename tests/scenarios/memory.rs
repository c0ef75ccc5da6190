//! Notes about a project: kept over sessions, private, bounded, in the prompt by their first line.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

fn memory(input: Value) -> (&'static str, Value) {
    ("Memory", input)
}

#[tokio::test]
async fn note_of_model_needs_permission_and_reaches_next_session() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let write = json!({"action": "write", "name": "build", "text": "Use just, not make\nIt is faster."});
    daemon.models.push(Step::calls([memory(write)]));
    session.submit("remember it").await;
    let request = seen.wait_for("permission.requested").await;
    assert_eq!(request["tool"], "Memory");
    daemon.models.push(Step::text("Kept."));
    session.allow(&request).await;
    seen.turn_ends("success").await;
    daemon.crash_and_restart().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([
        memory(json!({"action": "list"})),
        memory(json!({"action": "read", "name": "build"})),
        memory(json!({"action": "read", "name": "other"})),
        memory(json!({"action": "write"})),
    ]));
    daemon.models.push(Step::text("I know."));
    session.submit("how do I build?").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty(), "reading needs none");
    let prompt = seen.events_of("session.prompt_built")[0]["system"].to_string();
    assert!(prompt.contains("# Memory") && prompt.contains("- build: Use just, not make"), "{prompt}");
    assert!(!prompt.contains("It is faster."), "only first lines are in the prompt");
    let mut done: Vec<Value> = seen.events_of("tool.completed");
    done.sort_by_key(|event| event["call_id"].to_string());
    let outputs: Vec<String> = done.iter().map(|event| event["output"].to_string()).collect();
    assert!(outputs.iter().any(|it| it.contains("build: Use just")), "{outputs:?}");
    assert!(outputs.iter().any(|it| it.contains("It is faster.")), "{outputs:?}");
    assert!(done.iter().any(|event| event["code"] == "unknown_note"));
    assert!(done.iter().any(|event| event["code"] == "invalid_input"));
    let parts = session.call("context", json!({})).await["parts"].clone();
    assert!(parts.as_array().expect("parts").iter().any(|part| part["name"] == "memory"), "{parts}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn session_without_automatic_memory_has_neither_tool_nor_index() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let set = json!({"cwd": daemon.workspace(), "name": "build", "text": "Use just"});
    alice.call("memory.set", set).await;
    let session = alice.create_with(&daemon, json!({"ablation": {"auto_memory": true}})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([memory(json!({"action": "list"}))]));
    daemon.models.push(Step::text("No."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    let sent = daemon.models.requests()[0].body.to_string();
    assert!(!sent.contains("Use just") && !sent.contains("\"Memory\""), "{sent}");
    assert_eq!(seen.events_of("tool.completed")[0]["code"], "tool_not_offered");
}

#[tokio::test]
async fn clients_list_set_and_remove_notes_of_one_project() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let cwd = daemon.workspace();
    let set = json!({"cwd": cwd, "name": "style", "text": "# Tabs\nnot spaces", "idempotency_key": "k"});
    let note = alice.call("memory.set", set.clone()).await["note"].clone();
    assert_eq!((&note["name"], &note["description"]), (&json!("style"), &json!("Tabs")));
    assert_eq!(alice.call("memory.set", set).await["note"], note, "the same key, the same reply");
    let one = alice.call("memory.list", json!({"cwd": cwd, "name": "style"})).await;
    assert_eq!(one["notes"][0]["text"], "# Tabs\nnot spaces");
    let all = alice.call("memory.list", json!({ "cwd": cwd })).await;
    assert_eq!((all["notes"].as_array().map(Vec::len), all["notes"][0].get("text")), (Some(1), None));
    std::fs::create_dir_all(daemon.path("other")).expect("made");
    let other = alice.call("memory.list", json!({"cwd": daemon.path("other")})).await;
    assert_eq!(other["notes"], json!([]), "another project has its own");
    for (params, path) in [
        (json!({"cwd": cwd, "name": "../x", "text": "x"}), "name"),
        (json!({"cwd": cwd, "name": "x", "text": "  "}), "text"),
        (json!({"cwd": cwd, "name": "x", "text": "y".repeat(20_000)}), "text"),
        (json!({"cwd": "/does/not/exist", "name": "x", "text": "y"}), "cwd"),
    ] {
        let refused = alice.refused("memory.set", params).await;
        assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!(path)));
    }
    let missing = alice.refused("memory.remove", json!({"cwd": cwd, "name": "nothing"})).await;
    assert_eq!(missing.kind, "not_found");
    alice.call("memory.remove", json!({"cwd": cwd, "name": "style"})).await;
    assert_eq!(alice.call("memory.list", json!({ "cwd": cwd })).await["notes"], json!([]));

    assert_eq!(
        ctl(&daemon, &["memory", "set", "style", "Use", "tabs"]).await.stdout(),
        "stored style (8 bytes)\n"
    );
    assert_eq!(ctl(&daemon, &["memory"]).await.stdout(), "NOTE   FIRST LINE\nstyle  Use tabs\n");
    assert_eq!(ctl(&daemon, &["memory", "show", "style"]).await.stdout(), "Use tabs\n");
    let files = std::fs::read_dir(daemon.path("data")).expect("a folder").flatten();
    let data = files.map(|entry| entry.path().join("memory")).find(|path| path.is_dir());
    let folder =
        std::fs::read_dir(data.expect("the notes")).expect("a folder").flatten().next().expect("one");
    let file = std::fs::read_dir(folder.path()).expect("a folder").flatten().next().expect("a note");
    assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(ctl(&daemon, &["memory", "rm", "style"]).await.stdout(), "removed style\n");
}

#[tokio::test]
async fn typed_note_goes_to_memory_or_instructions() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let said = session.call("submit", json!({"input": "# memory: deploys happen on Friday"})).await;
    assert!(said["text"].to_string().contains("deploys-happen-on-friday"), "{said}");
    let notes = alice.call("memory.list", json!({"cwd": daemon.workspace()})).await["notes"].clone();
    assert_eq!(notes[0]["description"], "deploys happen on Friday");
    session.call("submit", json!({"input": "# instructions: use tabs"})).await;
    session.call("submit", json!({"input": "# be brief"})).await;
    assert_eq!(daemon.read("AGENTS.md"), "- use tabs\n- be brief\n");
    let empty = session.refused("submit", json!({"input": "# memory:"})).await;
    assert_eq!(empty.kind, "invalid_params");
}
