//! `permission.explain`: the verdict of the rules, computed only from the given parameters.

use serde_json::{Value, json};

use crate::support::daemon::TestDaemon;

async fn explain(daemon: &TestDaemon, params: Value) -> Value {
    daemon.client("explainer").await.call("permission.explain", params).await
}

#[tokio::test]
async fn explain_matches_shared_permission_cases() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("explainer").await;
    let mut wrong = Vec::new();
    for line in include_str!("../cases/bash-permissions.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let written = |key: &str| -> Vec<String> {
            let list = case[key].as_array().cloned().unwrap_or_default();
            list.iter().map(|rule| format!("Bash({})", rule.as_str().expect("a rule"))).collect()
        };
        let reply = client
            .call(
                "permission.explain",
                json!({
                    "workspace": "/w/proj", "home": "/home/u", "safe_commands": false,
                    "allow": written("grants"), "ask": [], "deny": written("denies"),
                    "tool": "Bash", "input": {"command": case["command"]},
                }),
            )
            .await;
        let accepted = case["accept"].as_array().is_some_and(|list| list.contains(&reply["verdict"]));
        if reply["verdict"] != case["expected"] && !accepted {
            wrong.push(format!("{}: {}", case["id"], reply["verdict"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[tokio::test]
async fn explain_parts_name_rule_and_verdict() {
    let daemon = TestDaemon::start().await;
    let reply = explain(
        &daemon,
        json!({
            "workspace": daemon.workspace(), "allow": ["Bash(cargo:*)"], "ask": [], "deny": [],
            "tool": "Bash", "input": {"command": "git status && cd src && cargo test | tee out.txt; git status"},
        }),
    )
    .await;
    assert_eq!(reply["verdict"], "ask");
    let parts: Vec<(&str, &str, Option<&str>)> = reply["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| {
            let text = |key: &str| part[key].as_str();
            (text("command").expect("a text"), text("verdict").expect("a verdict"), text("rule"))
        })
        .collect();
    assert_eq!(
        parts,
        [
            ("git status", "allow", None),
            ("cd src", "allow", None),
            ("cargo test", "allow", Some("Bash(cargo:*)")),
            ("tee out.txt", "ask", None),
            // Below the top folder, content may look like a git repository.
            ("git status", "ask", None),
        ]
    );
    let denied = explain(
        &daemon,
        json!({
            "workspace": daemon.workspace(), "allow": ["Bash(echo:*)"], "deny": ["Bash(rm:*)"],
            "tool": "Bash", "input": {"command": "echo a && rm x; echo b > .agentd/x"},
        }),
    )
    .await;
    assert_eq!(denied["verdict"], "deny");
    let told = |at: usize| (denied["parts"][at]["verdict"].clone(), denied["parts"][at]["rule"].clone());
    assert_eq!(
        [told(0), told(1), told(2)],
        [
            (json!("allow"), json!("Bash(echo:*)")),
            (json!("deny"), json!("Bash(rm:*)")),
            (json!("deny"), json!(null))
        ]
    );
}

#[tokio::test]
async fn explain_judges_file_by_resolved_target() {
    let daemon = TestDaemon::start().await;
    std::fs::write(daemon.workspace().join("a.txt"), "a").expect("a file");
    std::os::unix::fs::symlink("/etc/hostname", daemon.workspace().join("link")).expect("a link");
    for (tool, key, path, expected) in [
        ("Read", "file_path", "a.txt", "allow"),
        ("Read", "file_path", "link", "ask"),
        ("Read", "file_path", ".env", "ask"),
        ("Write", "file_path", "b.txt", "ask"),
        ("Edit", "file_path", ".git/config", "deny"),
        ("Delete", "file_path", "a.txt", "ask"),
        ("LS", "path", ".", "allow"),
    ] {
        let mut input = json!({});
        input[key] = json!(path);
        let params = json!({"workspace": daemon.workspace(), "allow": [], "ask": [], "deny": [], "tool": tool, "input": input});
        assert_eq!(explain(&daemon, params).await["verdict"], expected, "{tool} {path}");
    }
}

#[tokio::test]
async fn explain_judges_with_files_of_given_folder() {
    let daemon = TestDaemon::start().await;
    let folder = daemon.workspace().join("project");
    std::fs::create_dir_all(folder.join("src")).expect("a folder");
    std::fs::write(folder.join("src/a.rs"), "a").expect("a file");
    let verdict = async |command: &str| {
        let input = json!({"command": command});
        let reply = explain(&daemon, json!({"workspace": folder, "tool": "Bash", "input": input})).await;
        (reply["verdict"].clone(), reply["reason"].as_str().unwrap_or_default().to_owned())
    };
    for command in ["grep -rn KEY .", "cat src/*.rs", "for f in src/*.rs; do head \"$f\"; done"] {
        assert_eq!(verdict(command).await.0, "allow", "{command}");
    }
    std::fs::write(folder.join(".env"), "KEY=x").expect("a file");
    std::os::unix::fs::symlink("/etc/hostname", folder.join("src/b.rs")).expect("a link");
    for (command, named) in [
        ("grep -rn KEY .", ".env"),
        ("cat src/*.rs", "src/b.rs"),
        ("for f in src/*.rs; do head \"$f\"; done", "src/b.rs"),
    ] {
        let (kind, reason) = verdict(command).await;
        assert!(kind == "ask" && reason.contains(named), "{command}: {kind}, {reason}");
    }
}

#[tokio::test]
async fn explain_names_invalid_rule_or_tool() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("explainer").await;
    for (params, path) in [
        (json!({"workspace": "/w", "allow": ["Bash("], "tool": "Bash", "input": {"command": "ls"}}), "allow"),
        (json!({"workspace": "w", "tool": "Bash", "input": {"command": "ls"}}), "workspace"),
        (json!({"workspace": "/w", "tool": "Bash", "input": {}}), "input.command"),
        (json!({"workspace": "/w", "tool": "Task", "input": {}}), "tool"),
    ] {
        let error = client.refused("permission.explain", params.clone()).await;
        assert_eq!((error.code, error.data["path"].as_str()), (-32602, Some(path)), "{params}");
    }
}
