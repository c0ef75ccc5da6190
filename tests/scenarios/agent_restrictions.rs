//! What the files of agents forbid holds for every call of their sub-agents, and for the sub-agents of those.

use serde_json::{Value, json};

use super::mcp::{bypass, daemon_with, offered_tools, turn};
use super::subagents::begins_with;
use crate::support::daemon::TestDaemon;
use crate::support::mcp_server::{McpScript, tools_with};
use crate::support::model_server::Step;

const BYPASS: &str = "[permissions]\nallow_bypass = true\nallow_bypass_as_root = true\n";

fn task(agent: &str, prompt: &str) -> (&'static str, Value) {
    ("Task", json!({"description": "do it", "prompt": prompt, "subagent_type": agent}))
}

fn put_agent(daemon: &TestDaemon, name: &str, front: &str) {
    let folder = daemon.path("home/.claude/agents");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!("---\nname: {name}\ndescription: Works\n{front}\n---\nWork.\n");
    std::fs::write(folder.join(format!("{name}.md")), text).expect("written");
}

/// Runs one command or call in a sub-agent of this agent, in the mode bypass. Returns the tools that the sub-agent was
/// offered.
async fn call_as(daemon: &TestDaemon, agent: &str, call: (&'static str, Value)) -> Vec<String> {
    let agent = agent.to_owned();
    daemon.models.set_fallback(move |request| {
        let is_child = begins_with(request).contains("the task");
        match (is_child, request.tool_results().len()) {
            (false, 0) => Step::calls([task(&agent, "the task")]),
            (true, 0) => Step::calls([call.clone()]),
            _ => Step::text("Done."),
        }
    });
    let session = daemon.client("alice").await.create_with(daemon, json!({"mode": "bypass"})).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    log.turn_ends("success").await;
    let requests = daemon.models.requests();
    let child = requests.iter().rev().find(|request| begins_with(request).contains("the task"));
    let tools =
        child.expect("a request of the sub-agent").body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn agent_does_only_what_its_file_leaves() {
    let daemon = TestDaemon::builder().config(BYPASS).start().await;
    put_agent(&daemon, "no-edit", "disallowedTools: Write, Edit");
    put_agent(&daemon, "planner", "permissionMode: plan");
    put_agent(&daemon, "git-only", "tools: Bash(git:*)");
    put_agent(&daemon, "reader", "tools: read");
    let write = || ("Write", json!({"file_path": "victim", "content": "x"}));
    let bash = |command: &str| ("Bash", json!({"command": command}));
    for (agent, call) in [
        ("no-edit", write()),
        ("planner", write()),
        ("planner", bash("touch victim")),
        ("git-only", bash("touch victim")),
        ("git-only", bash("git --version && touch victim")),
        ("git-only", write()),
        ("reader", bash("touch victim")),
        ("reader", write()),
    ] {
        let tools = call_as(&daemon, agent, call.clone()).await;
        assert!(!daemon.workspace().join("victim").exists(), "{agent}: {call:?}");
        match agent {
            "no-edit" => {
                assert!(!tools.iter().any(|tool| ["Write", "Edit", "ApplyPatch"].contains(&tool.as_str())))
            }
            "git-only" => assert_eq!(tools, ["Bash"]),
            "reader" => assert_eq!(tools, ["Read"]),
            _ => {}
        }
    }
    call_as(&daemon, "no-edit", bash("touch made")).await;
    assert!(daemon.workspace().join("made").exists(), "the rest of its tools works");
}

#[tokio::test]
async fn nested_sub_agent_gets_no_more_than_the_agent_that_starts_it() {
    let daemon = TestDaemon::builder().config(BYPASS).start().await;
    put_agent(&daemon, "lead", "tools: Read, Task\npermissionMode: plan");
    put_agent(&daemon, "worker", "tools: Bash, Write\npermissionMode: bypassPermissions");
    daemon.models.set_fallback(|request| {
        let first = begins_with(request);
        match (request.tool_results().len(), first.contains("inner"), first.contains("outer")) {
            (0, true, _) => Step::calls([
                ("Bash", json!({"command": "touch victim"})),
                ("Write", json!({"file_path": "victim", "content": "x"})),
            ]),
            (0, _, true) => Step::calls([task("worker", "inner"), task("general-purpose", "inner")]),
            (0, ..) => Step::calls([task("lead", "outer")]),
            _ => Step::text("Done."),
        }
    });
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "bypass"})).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    log.turn_ends("success").await;
    assert!(!daemon.workspace().join("victim").exists());
}

#[tokio::test]
async fn refused_agents_are_listed_with_the_reason() {
    let daemon = TestDaemon::start().await;
    put_agent(&daemon, "typo", "disallowedTools: Writ");
    put_agent(&daemon, "strange", "tool_restrictions: no writes");
    put_agent(&daemon, "synonym", "denied_tools: Bash");
    put_agent(&daemon, "empty", "tools: Frobnicate");
    put_agent(&daemon, "Code Reviewer", "model: opus");
    put_agent(&daemon, "other", "model: haiku");
    let alice = daemon.client("alice").await;
    let list = alice.call("agent.list", json!({"cwd": daemon.workspace()})).await;
    let slugs: Vec<&str> = list["agents"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|agent| agent["slug"].as_str())
        .collect();
    assert_eq!(slugs, ["code-reviewer", "other", "synonym", "general-purpose", "explore"], "{list}");
    assert_eq!(list["agents"][0]["name"], "Code Reviewer");
    let messages = list["diagnostics"].to_string();
    for word in ["Writ", "tool_restrictions", "denied_tools", "Frobnicate"] {
        assert!(messages.contains(word), "{messages}");
    }
    assert_eq!(messages.matches("models.aliases").count(), 1, "{messages}");
    for name in ["Code Reviewer", "code-reviewer"] {
        let session = alice.create_with(&daemon, json!({"agent": name})).await;
        assert_eq!(session.view().await["agent"], "Code Reviewer");
    }
    let refused = alice.refused("session.create", json!({"cwd": daemon.workspace(), "agent": "typo"})).await;
    assert_eq!(refused.data["path"], "agent", "{refused:?}");

    daemon.models.push(Step::text("Done."));
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("hello").await;
    log.turn_ends("success").await;
    let events = session.events().await;
    let notice = events.iter().find(|event| event["kind"] == "agents_refused").expect("a notice");
    let text = notice["text"].as_str().expect("text");
    assert!(text.contains("typo.md") && !text.contains("synonym.md"), "{text}");
}

#[tokio::test]
async fn restrictions_of_folder_list_what_holds_and_what_is_not_read() {
    let config = "[permissions]\ndeny = [\"Bash(rm *)\"]\nask = [\"mcp__absent\"]\n";
    let daemon = TestDaemon::builder().config(config).start().await;
    put_agent(&daemon, "typo", "disallowedTools: Writ");
    put_agent(&daemon, "planner", "permissionMode: plan\nmaxTurns: 3");
    let guard = json!({"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]});
    let broken = json!({"matcher": 7, "hooks": [{"type": "command", "command": "true"}]});
    let hooks = json!({"hooks": {"PreToolUse": [guard, broken]}});
    daemon.write(".claude/settings.json", &format!("{hooks:#}"));
    let servers = json!({"mcpServers": {
        "wx": {"command": "true", "disabledTools": ["drop"]},
        "odd": {"command": "true", "disabledTools": 5},
    }});
    daemon.write(".mcp.json", &servers.to_string());
    let alice = daemon.client("alice").await;
    let cwd = json!({"cwd": daemon.workspace()});
    alice.call("workspace.trust", cwd.clone()).await;
    let found = alice.call("workspace.restrictions", cwd).await;
    for (list, kind, text) in [
        ("in_force", "rule", "deny Bash(rm:*)"),
        ("in_force", "hook", "Bash"),
        ("in_force", "agent", "planner works at most in mode plan, ends after 3 model calls"),
        ("in_force", "server", "wx never offers drop"),
        ("unread", "hook", "matcher"),
        ("unread", "agent", "Writ"),
        ("unread", "server", "disabledTools"),
    ] {
        let entries = found[list].as_array().expect("a list");
        let has = |entry: &&Value| {
            entry["kind"] == kind && entry["text"].as_str().is_some_and(|shown| shown.contains(text))
        };
        let entry = entries.iter().find(has);
        let entry = entry.unwrap_or_else(|| panic!("{list} has no {kind} with {text:?}: {found:#}"));
        if kind == "hook" {
            assert!(entry["file"].as_str().is_some_and(|file| file.ends_with("settings.json")), "{entry}");
            assert!(entry["line"].as_u64().is_some_and(|line| line > 1), "{entry}");
        }
    }
}

#[tokio::test]
async fn rule_for_server_covers_tools_with_names_of_any_script() {
    let behaviour = json!({"tools": tools_with(&["获取天气"])});
    let (daemon, script) = daemon_with(behaviour, "").await;
    let (session, mut log) = bypass(&daemon).await;
    turn(&daemon, &session, &mut log, "mcp__fake__echo", json!({"text": "x"})).await;
    let offered = offered_tools(&daemon);
    let is_cut = |name: &&String| name.starts_with("mcp__fake_") && !name.starts_with("mcp__fake__");
    let name = offered.iter().find(is_cut).expect("it is offered").clone();
    let calls = script.count("call");
    let alice = daemon.client("rules").await;
    let rule =
        json!({"session_id": session.id, "kind": "deny", "rule": "mcp__fake__获取天气", "scope": "session"});
    alice.call("permission.add_rule", rule).await;
    daemon.models.push(Step::calls([(name.leak() as &'static str, json!({}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("again").await;
    log.turn_ends("success").await;
    let done = log.events_of("tool.completed").last().expect("a result").clone();
    assert_eq!((&done["status"], script.count("call")), (&json!("denied"), calls), "{done}");
}

#[tokio::test]
async fn restrictions_in_files_of_servers_hold() {
    let mut daemon = TestDaemon::builder().build().await;
    let script = McpScript::new(&daemon, "fake");
    let entry = |more: Value| {
        let mut entry = script.entry();
        entry.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        entry
    };
    let servers = json!({"mcpServers": {
        "some": entry(json!({"disabledTools": ["env"], "alwaysAllow": ["env"]})),
        "only": entry(json!({"includeTools": ["echo", "env"], "excludeTools": ["env"]})),
        "wrong": entry(json!({"disabledTools": "env"})),
        "unclear": entry(json!({"readOnly": true})),
    }});
    daemon.write(".mcp.json", &servers.to_string());
    daemon.launch().await;
    daemon.trust().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    log.turn_ends("success").await;
    let offered = offered_tools(&daemon);
    let of =
        |server: &str| offered.iter().filter(|name| name.starts_with(&format!("mcp__{server}__"))).count();
    assert!(of("some") > 5 && !offered.contains(&"mcp__some__env".to_owned()), "{offered:?}");
    assert_eq!((of("only"), of("wrong"), of("unclear")), (1, 0, 0), "{offered:?}");
    let list = alice.call("mcp.list", json!({"cwd": daemon.workspace()})).await.to_string();
    for word in ["alwaysAllow", "disabledTools", "readOnly"] {
        assert!(list.contains(word), "{list}");
    }
}
