//! A repository that brings agents, commands, skills, hooks and MCP servers at once, in their usual forms.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::mcp_server::McpScript;
use crate::support::model_server::Step;

/// Writes the files of the repository. A hook notes each call of LS in `hook-ran`.
fn write_project(daemon: &TestDaemon, script: &McpScript) {
    daemon.write("CLAUDE.md", "Be brief.");
    daemon.write(
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews code\ntools: Read, Grep\nmodel: opus\n---\nYou are strict.\n",
    );
    daemon.write(
        ".claude/commands/fix.md",
        "---\ndescription: Fixes an issue\nargument-hint: [issue]\nallowed-tools: Bash(echo:*)\n---\nFix issue $ARGUMENTS.\n",
    );
    daemon.write(
        ".claude/skills/report/SKILL.md",
        "---\nname: report\ndescription: Write a report\n---\nUse the template.\n",
    );
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "LS", "hooks": [
        {"type": "command", "command": "touch hook-ran"},
    ]}]}});
    daemon.write(".claude/settings.json", &settings.to_string());
    daemon.write(".mcp.json", &json!({"mcpServers": {"fake": script.entry()}}).to_string());
}

/// The extensions of the workspace: names of agents and commands, and states of servers.
async fn offer(daemon: &TestDaemon) -> (String, String, Value) {
    let client = daemon.client("alice").await;
    let cwd = json!({"cwd": daemon.workspace()});
    let agents = client.call("agent.list", cwd.clone()).await["agents"].to_string();
    let commands = client.call("command.list", cwd.clone()).await["commands"].to_string();
    let servers = client.call("mcp.list", cwd).await["servers"].clone();
    (agents, commands, servers)
}

#[tokio::test]
async fn project_extensions_work_only_after_trust() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "fake");
    write_project(&daemon, &script);
    let alice = daemon.client("alice").await;
    let ran = || daemon.workspace().join("hook-ran").exists();

    let (agents, commands, servers) = offer(&daemon).await;
    assert!(!agents.contains("reviewer"), "{agents}");
    assert!(!commands.contains("\"fix\"") && !commands.contains("\"report\""), "{commands}");
    assert_eq!((&servers[0]["name"], &servers[0]["state"]), (&json!("fake"), &json!("untrusted")));
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let unknown = session.refused("submit", json!({"input": "/fix 7"})).await;
    assert_eq!(unknown.kind, "invalid_params", "{unknown:?}");
    daemon
        .models
        .push(Step::calls([("LS", json!({"path": "."})), ("mcp__fake__echo", json!({"text": "x"}))]));
    daemon.models.push(Step::calls([("Skill", json!({"name": "report"}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let required = seen.wait_for("workspace.trust_required").await;
    seen.turn_ends("success").await;
    let parts = required["parts"].to_string();
    for part in [".mcp.json", "slash commands", "skills", "agents", "hooks"] {
        assert!(parts.contains(part), "{part} needs trust: {parts}");
    }
    let done = seen.events_of("tool.completed");
    let codes: Vec<&Value> = done.iter().map(|done| &done["code"]).collect();
    assert_eq!(done.len(), 3);
    assert!(codes.contains(&&json!("unknown_tool")) && codes.contains(&&json!("unknown_skill")), "{codes:?}");
    assert!(!ran() && script.count("start") == 0, "nothing of the project ran");
    let first = daemon.models.requests()[0].body.to_string();
    assert!(first.contains("Be brief."), "instructions are text and need no trust");

    ctl(&daemon, &["trust", "--yes"]).await.stdout();
    let (agents, commands, servers) = offer(&daemon).await;
    assert!(agents.contains("reviewer"), "{agents}");
    assert!(commands.contains("\"fix\"") && commands.contains("\"report\""), "{commands}");
    assert_eq!(servers[0]["state"], "ready");
    let session = alice.create(&daemon).await;
    let rule = json!({"session_id": session.id, "kind": "allow", "rule": "mcp__fake", "scope": "session"});
    alice.call("permission.add_rule", rule).await;
    let mut seen = session.follow().await;
    let before = daemon.models.requests().len();
    daemon.models.push(Step::calls([
        ("LS", json!({"path": "."})),
        ("mcp__fake__echo", json!({"text": "from the server"})),
        ("Skill", json!({"name": "report"})),
        bash("echo allowed by the command"),
    ]));
    daemon.models.push(Step::text("Fixed."));
    session.submit("/fix 7").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty(), "the command allows echo");
    let outputs: Vec<String> =
        seen.events_of("tool.completed").iter().map(|done| done["output"].to_string()).collect();
    for part in ["from the server", "Use the template.", "allowed by the command"] {
        assert!(outputs.iter().any(|output| output.contains(part)), "{part}: {outputs:?}");
    }
    assert!(ran(), "the hook ran");
    let sent = daemon.models.requests()[before].body.to_string();
    assert!(sent.contains("Fix issue 7.") && sent.contains("- report: Write a report"), "{sent}");
    let reviewer = alice.create_with(&daemon, json!({"agent": "reviewer"})).await;
    let mut seen = reviewer.follow().await;
    daemon.models.push(Step::text("No."));
    reviewer.submit("look").await;
    seen.turn_ends("success").await;
    let sent = daemon.models.requests().last().expect("one").body.to_string();
    assert!(sent.contains("You are strict."), "{sent}");
    daemon.models.assert_no_breach();
}
