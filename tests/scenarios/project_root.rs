//! A session in a sub-folder of a project uses the files of all folders from the project's root down to its own.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::mcp_server::McpScript;
use crate::support::model_server::Step;

const DEEP: &str = "sub/deep";

/// Makes the workspace a repository, as far as git checks it.
fn make_repository(daemon: &TestDaemon, folder: &str) {
    for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n\tbare = false\n")] {
        daemon.write(&format!("{folder}.git/{name}"), text);
    }
    for name in ["objects/.keep", "refs/.keep"] {
        daemon.write(&format!("{folder}.git/{name}"), "");
    }
}

fn hook_on(tool: &str, command: &str) -> String {
    let hooks = json!([{"type": "command", "command": command}]);
    json!({"hooks": {"PreToolUse": [{"matcher": tool, "hooks": hooks}]}}).to_string()
}

/// Writes files with rules, a hook, servers, agents, commands and skills into the root and two folders below it.
fn write_project(daemon: &TestDaemon, script: &McpScript) {
    make_repository(daemon, "");
    let rules = "[permissions]\nallow = [\"Bash(touch allowed)\"]\ndeny = [\"Bash(touch denied)\", \"Read(secret.txt)\", \
                 \"Edit(sub/locked/**)\"]\n";
    daemon.write(".agentd/config.toml", rules);
    daemon.write("sub/.agentd/config.toml", "[permissions]\ndeny = [\"Bash(touch middle)\"]\n");
    let marker = daemon.workspace().join("hook-ran");
    daemon.write(
        ".claude/settings.json",
        &hook_on("LS", &format!("echo $CLAUDE_PROJECT_DIR >> {}", marker.display())),
    );
    let servers = json!({"mcpServers": {"fake": script.entry(), "near": {"command": "/nonexistent/far"}}});
    daemon.write(".mcp.json", &servers.to_string());
    daemon.write("sub/deep/.mcp.json", &json!({"mcpServers": {"near": script.entry()}}).to_string());
    let agent = |place: &str| format!("---\ndescription: From the {place}\n---\nYou are from the {place}.\n");
    daemon.write(".claude/agents/reviewer.md", &agent("root"));
    daemon.write(".claude/agents/other.md", &agent("root"));
    daemon.write("sub/.claude/agents/other.md", &agent("middle"));
    daemon.write(".claude/commands/fix.md", "Fix the root.\n");
    daemon.write(".claude/commands/both.md", "Both, the far one.\n");
    daemon.write("sub/deep/.claude/commands/both.md", "Both, the near one.\n");
    let skill = "---\nname: report\ndescription: Write a report\n---\nUse the template.\n";
    daemon.write(".claude/skills/report/SKILL.md", skill);
    daemon.write("AGENTS.md", "Text of the root.");
    daemon.write("sub/deep/AGENTS.md", "Text of the folder.");
    daemon.write("secret.txt", "s");
}

fn deep(daemon: &TestDaemon) -> PathBuf {
    daemon.workspace().join(DEEP)
}

async fn create(client: &Client, daemon: &TestDaemon, more: Value) -> Session {
    let mut params = json!({"cwd": deep(daemon)});
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    client.create_with(daemon, params).await
}

async fn trust(client: &Client, daemon: &TestDaemon) {
    let status = client.call("workspace.status", json!({"cwd": deep(daemon)})).await;
    client.call("workspace.trust", json!({"cwd": deep(daemon), "digest": status["digest"]})).await;
}

/// Runs these calls in one turn, and returns the status and the text of each result in the order of the calls.
async fn run_calls(
    daemon: &TestDaemon,
    session: &Session,
    seen: &mut Log,
    calls: Vec<(&str, Value)>,
) -> Vec<String> {
    let before = seen.events_of("tool.completed").len();
    let count = calls.len();
    for call in calls {
        daemon.models.push(Step::calls([call]));
    }
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let done = seen.events_of("tool.completed");
    assert_eq!(done.len() - before, count);
    done[before..].iter().map(|done| format!("{} {}", done["status"], done["output"])).collect()
}

#[tokio::test]
async fn files_of_project_root_hold_in_sub_folder_after_trust() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "fake");
    write_project(&daemon, &script);
    daemon.write("sub/deep/x", "");
    let alice = daemon.client("alice").await;
    let cwd = json!({"cwd": deep(&daemon)});

    // Before trust the request names each file, and deny rules hold.
    let status = alice.call("workspace.status", cwd.clone()).await;
    assert_eq!((&status["trusted"], &status["project_root"]), (&json!(false), &json!(daemon.workspace())));
    let session = create(&alice, &daemon, json!({"mode": "accept_edits"})).await;
    assert_eq!(session.view().await["project_root"], json!(daemon.workspace()));
    let mut seen = session.follow().await;
    let calls = vec![
        bash("touch denied"),
        bash("touch middle"),
        ("Read", json!({"file_path": daemon.workspace().join("secret.txt")})),
        ("LS", json!({"path": "."})),
    ];
    let results = run_calls(&daemon, &session, &mut seen, calls).await;
    for (result, expected) in results.iter().zip(["\"denied\"", "\"denied\"", "\"denied\"", "\"completed\""])
    {
        assert!(result.starts_with(expected), "{expected}: {results:?}");
    }
    let required = seen.events_of("workspace.trust_required");
    let parts = required[0]["parts"].to_string();
    let top = daemon.workspace();
    for name in [".agentd/config.toml: allow", ".claude (", ".mcp.json (", "sub/.claude ("] {
        let name = top.join(name).display().to_string();
        assert!(parts.contains(&name), "{name}: {parts}");
    }
    assert!(parts.contains("\".mcp.json (") && parts.contains("\".claude ("), "its own files: {parts}");
    assert!(!top.join("hook-ran").exists() && script.count("start") == 0, "nothing ran");
    let sent = daemon.models.requests()[0].body.to_string();
    assert!(sent.contains("Text of the root.") && sent.contains("Text of the folder."), "{sent}");

    // With trust in the folder, all of them are used, and the nearer one wins by its name.
    trust(&alice, &daemon).await;
    let agents = alice.call("agent.list", cwd.clone()).await["agents"].to_string();
    assert!(agents.contains("From the root") && agents.contains("From the middle"), "{agents}");
    let commands = alice.call("command.list", cwd.clone()).await["commands"].to_string();
    for name in ["\"fix\"", "\"both\"", "\"report\""] {
        assert!(commands.contains(name), "{name}: {commands}");
    }
    let servers = alice.call("mcp.list", cwd.clone()).await["servers"].clone();
    let states: Vec<_> =
        servers.as_array().expect("a list").iter().map(|it| (&it["name"], &it["state"])).collect();
    assert_eq!(states, [(&json!("fake"), &json!("ready")), (&json!("near"), &json!("ready"))]);
    let session = create(&alice, &daemon, json!({"mode": "accept_edits"})).await;
    let rule = json!({"session_id": session.id, "kind": "allow", "rule": "mcp__fake", "scope": "session"});
    alice.call("permission.add_rule", rule).await;
    let mut seen = session.follow().await;
    let calls = vec![
        ("LS", json!({"path": "."})),
        bash("touch allowed"),
        bash("touch denied"),
        ("mcp__fake__echo", json!({"text": "from the server"})),
        ("Skill", json!({"name": "report"})),
    ];
    let results = run_calls(&daemon, &session, &mut seen, calls).await;
    for (result, expected) in
        results.iter().zip(["\"completed\"", "\"completed\"", "\"denied\"", "\"completed\"", "\"completed\""])
    {
        assert!(result.starts_with(expected), "{expected}: {results:?}");
    }
    assert!(
        results[3].contains("from the server") && results[4].contains("Use the template."),
        "{results:?}"
    );
    assert_eq!(
        daemon.read("hook-ran").trim(),
        top.display().to_string(),
        "the hook knows the folder of its file"
    );
    assert!(deep(&daemon).join("allowed").exists(), "commands run in the session's folder");
    for (command, text) in [("/fix", "Fix the root."), ("/both", "Both, the near one.")] {
        daemon.models.push(Step::text("Done."));
        session.submit(command).await;
        seen.turn_ends("success").await;
        let sent = daemon.models.requests().last().expect("one").body.to_string();
        assert!(sent.contains(text) && !sent.contains("the far one"), "{text}: {sent}");
    }
    let other = create(&alice, &daemon, json!({"agent": "other"})).await;
    let mut seen = other.follow().await;
    daemon.models.push(Step::text("Done."));
    other.submit("look").await;
    seen.turn_ends("success").await;
    let sent = daemon.models.requests().last().expect("one").body.to_string();
    assert!(sent.contains("You are from the middle."), "{sent}");

    // A file that was not covered asks again.
    daemon.write("sub/.mcp.json", "{}");
    let status = alice.call("workspace.status", cwd).await;
    assert_eq!(status["trusted"], json!(false), "{status}");
    let shown = ctl(&daemon, &["trust", &deep(&daemon).display().to_string(), "--yes"]).await.stdout();
    assert!(shown.contains(&top.join("sub/.mcp.json").display().to_string()), "{shown}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn relative_patterns_of_project_start_at_folder_of_their_file() {
    let daemon = TestDaemon::start().await;
    make_repository(&daemon, "");
    daemon.write(
        ".agentd/config.toml",
        "[permissions]\ndeny = [\"Edit(sub/deep/locked/**)\", \"Edit(local/**)\", \"Edit(*.pem)\"]\n",
    );
    daemon.write("sub/deep/local/a", "");
    let alice = daemon.client("alice").await;
    let session = create(&alice, &daemon, json!({"mode": "accept_edits"})).await;
    let mut seen = session.follow().await;
    let write = |path: &str| ("Write", json!({"file_path": path, "content": "x"}));
    let calls = vec![write("locked/x"), write("local/b"), write("keys/a.pem"), write("free")];
    let results = run_calls(&daemon, &session, &mut seen, calls).await;
    for (result, expected) in
        results.iter().zip(["\"denied\"", "\"completed\"", "\"denied\"", "\"completed\""])
    {
        assert!(result.starts_with(expected), "{expected}: {results:?}");
    }
}

#[tokio::test]
async fn new_repository_in_sub_folder_does_not_remove_rules_of_root() {
    let mut daemon = TestDaemon::start().await;
    make_repository(&daemon, "");
    daemon.write(".agentd/config.toml", "[permissions]\ndeny = [\"Bash(touch denied)\"]\n");
    daemon.write("sub/deep/x", "");
    let session = create(&daemon.client("alice").await, &daemon, json!({})).await;
    make_repository(&daemon, "sub/deep/");
    let mut last_seq = 0;
    for _ in 0..2 {
        let session = daemon.client("alice").await.join(&session);
        let mut seen = session.follow_after(last_seq).await;
        let results = run_calls(&daemon, &session, &mut seen, vec![bash("touch denied")]).await;
        assert!(results[0].starts_with("\"denied\""), "{results:?}");
        assert_eq!(session.view().await["project_root"], json!(daemon.workspace()));
        last_seq = seen.last_seq();
        daemon.crash_and_restart().await;
    }
    let alice = daemon.client("alice").await;
    let fresh = create(&alice, &daemon, json!({})).await;
    assert_eq!(fresh.view().await["project_root"], json!(deep(&daemon)), "a new session has the new root");
}
