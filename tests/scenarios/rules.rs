//! Rules that outlive a session: added with an answer or by hand, visible to all sessions, removable,
//! and never stored in the workspace.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

/// A daemon whose model makes this call for every input and then answers "done".
async fn daemon_that_calls(config: &str, command: &'static str) -> TestDaemon {
    let daemon = TestDaemon::builder().config(config).start().await;
    daemon.models.set_fallback(move |request| {
        let last = request.messages().last().map(ToString::to_string).unwrap_or_default();
        if last.contains("tool_result") { Step::text("Done.") } else { Step::calls([bash(command)]) }
    });
    daemon
}

/// Submits input and returns the permission request, if there was one.
async fn asks(session: &Session, seen: &mut Log) -> Option<Value> {
    session.submit("go").await;
    let next = seen
        .find("a request or an end", |event| {
            ["permission.requested", "turn.completed"].iter().any(|kind| event["type"] == *kind)
        })
        .await;
    (next["type"] == "permission.requested").then_some(next)
}

fn policy_files(daemon: &TestDaemon) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(data(daemon).join("policy")) else { return Vec::new() };
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn data(daemon: &TestDaemon) -> std::path::PathBuf {
    daemon.path("data/agentd")
}

#[tokio::test]
async fn project_grant_survives_restart_and_can_be_removed() {
    let mut daemon = daemon_that_calls("", "touch mark").await;
    let alice = daemon.client("alice").await;
    let one = alice.create(&daemon).await;
    let two = alice.create(&daemon).await;
    let (mut seen_one, mut seen_two) = (one.follow().await, two.follow().await);
    let asked = asks(&one, &mut seen_one).await.expect("a request");
    let answer = json!({"decision": "allow", "scope": "project", "grant": "Bash(touch:*)"});
    assert_eq!(one.answer(&asked, answer).await["grant"], "Bash(touch:*)");
    seen_one.turn_ends("success").await;
    assert_eq!(asks(&two, &mut seen_two).await, None, "the grant covers an existing session");

    let files = policy_files(&daemon);
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(std::fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(file).expect("text");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(written["workspace"], json!(daemon.workspace()));
    assert_eq!(written["rules"][0]["request_id"], asked["request_id"]);
    assert_eq!(written["rules"][0]["by"]["client"], "alice");
    assert!(!daemon.workspace().join(".agentd").exists(), "no rule file in the workspace");

    daemon.crash_and_restart().await;
    let alice = daemon.client("alice").await;
    let three = alice.create(&daemon).await;
    let mut seen = three.follow().await;
    assert_eq!(asks(&three, &mut seen).await, None, "the grant survives a restart");
    let other = daemon.path("other");
    std::fs::create_dir(&other).expect("made");
    let elsewhere = alice.create_with(&daemon, json!({"cwd": other})).await;
    let mut seen_there = elsewhere.follow().await;
    let there = asks(&elsewhere, &mut seen_there).await.expect("a request in another folder");
    elsewhere.answer(&there, json!({"decision": "deny"})).await;

    let rules = alice.call("permission.rules", json!({"workspace": daemon.workspace()})).await;
    let rule = &rules["rules"][0];
    assert_eq!(
        (&rule["rule"], &rule["scope"], &rule["kind"]),
        (&json!("Bash(touch:*)"), &json!("project"), &json!("allow"))
    );
    assert_eq!(rule["file"], json!(file));
    let gone = json!({"rule": "Bash(touch:*)", "scope": "project", "workspace": daemon.workspace()});
    assert_eq!(alice.call("permission.remove_rule", gone.clone()).await["changed"], true);
    assert_eq!(alice.refused("permission.remove_rule", gone).await.code, -32002);
    assert!(asks(&three, &mut seen).await.is_some(), "a removed grant has no effect");
}

#[tokio::test]
async fn rules_of_all_scopes_apply_with_their_source() {
    let config = "[permissions]\ndeny = [\"Bash(rm:*)\"]\nask = [\"Bash(make:*)\"]";
    let daemon = daemon_that_calls(config, "touch mark").await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let add = async |rule: &str, kind: &str, scope: &str| {
        let mut params = json!({"rule": rule, "kind": kind, "scope": scope});
        if scope != "user" {
            params["session_id"] = json!(session.id);
        }
        alice.call("permission.add_rule", params).await["changed"].clone()
    };
    let asked = asks(&session, &mut seen).await.expect("it asks");
    // A new rule settles pending requests; deny wins in every scope.
    assert_eq!(add("Bash(touch:*)", "allow", "session").await, true);
    let settled = seen.wait_for("permission.resolved").await;
    assert_eq!(
        (&settled["request_id"], &settled["by"], &settled["rule"]),
        (&asked["request_id"], &json!("rule"), &json!("Bash(touch:*)"))
    );
    seen.turn_ends("success").await;
    assert_eq!(add("Bash(touch:*)", "deny", "project").await, true);
    assert_eq!(asks(&session, &mut seen).await, None);
    assert_eq!(seen.events_of("tool.completed").pop().expect("one")["code"], "denied_by_rule");
    assert_eq!(add("Read(/etc/**)", "allow", "user").await, true);
    assert_eq!(add("Read(/etc/**)", "allow", "user").await, false, "the rule already exists");
    let known = alice.call("permission.rules", json!({"session_id": session.id})).await;
    let told: Vec<String> = known["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|rule| {
            format!(
                "{} {} {}",
                rule["scope"].as_str().unwrap(),
                rule["kind"].as_str().unwrap(),
                rule["rule"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "user ask Bash(make:*)",
            "user deny Bash(rm:*)",
            "user allow Read(/etc/**)",
            "project deny Bash(touch:*)",
            "session allow Bash(touch:*)",
        ]
    );
    assert_eq!(known["rules"][0]["file"], json!(daemon.path("config.toml")));
    for (params, path) in [
        (json!({"rule": "Bash(", "scope": "user"}), "rule"),
        (json!({"rule": "Bash(rm:*)", "kind": "deny", "scope": "managed"}), "scope"),
        (json!({"rule": "Read", "scope": "project"}), "workspace"),
        (json!({"rule": "Read", "scope": "session"}), "session_id"),
        (json!({"rule": "Read", "scope": "project", "workspace": "x"}), "workspace"),
    ] {
        let refused = alice.refused("permission.add_rule", params).await;
        assert_eq!((refused.code, &refused.data["path"]), (-32602, &json!(path)), "{refused:?}");
    }
    let configured = json!({"rule": "Bash(rm:*)", "kind": "deny", "scope": "user"});
    assert!(alice.refused("permission.remove_rule", configured).await.message.contains("configuration"));
}

#[tokio::test]
async fn written_wildcard_denies_and_useless_rule_is_refused() {
    let config = "[permissions]\nallow_bypass = true\nallow_bypass_as_root = true\ndeny = [\"Bash(rm *)\"]\n\
                  [session]\nmode = \"bypass\"";
    let daemon = daemon_that_calls(config, "rm -f victim").await;
    std::fs::write(daemon.workspace().join("victim"), "x").expect("written");
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    assert_eq!(asks(&session, &mut seen).await, None);
    assert_eq!(seen.events_of("tool.completed").pop().expect("one")["code"], "denied_by_rule");
    assert!(daemon.workspace().join("victim").exists());

    let add = |rule: &str| json!({"rule": rule, "kind": "deny", "scope": "user"});
    for (rule, nearest) in [
        ("Bash(git * push)", "Bash(git:*)"),
        ("Bash(npm run test*)", "Bash(npm run test:*)"),
        ("Bash(*rm)", "the nearest rule is Bash,"),
        ("bsh(rm:*)", "there is no tool bsh"),
    ] {
        let refused = alice.refused("permission.add_rule", add(rule)).await;
        assert_eq!((refused.code, &refused.data["path"]), (-32602, &json!("rule")), "{refused:?}");
        assert!(refused.message.contains(nearest), "{refused:?}");
    }
    let reply = alice.call("permission.add_rule", add("Bash(git push *)")).await;
    assert_eq!((&reply["changed"], &reply["rule"]), (&json!(true), &json!("Bash(git push:*)")));
    assert_eq!(alice.call("permission.add_rule", add("Bash(git push:*)")).await["changed"], false);
    let said = ctl(&daemon, &["rules", "add", "--user", "--ask", "bash(make *)"]).await.stdout();
    assert!(said.contains("ask Bash(make:*) in every folder: added"), "{said}");
    assert_eq!(alice.call("permission.remove_rule", add("Bash(git push *)")).await["changed"], true);
}

#[tokio::test]
async fn stored_rule_keeps_exact_meaning_and_has_note() {
    let mut daemon = daemon_that_calls("", "touch a b").await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let grant = json!({"rule": "Bash(true)", "kind": "allow", "scope": "project", "session_id": session.id});
    alice.call("permission.add_rule", grant).await;
    // As an earlier version stored it.
    let file = policy_files(&daemon).pop().expect("one");
    let text = std::fs::read_to_string(&file).expect("text");
    let old = ["Bash(touch *)", "Bash(git * push)", "WebSearch", "Task(nowhere)"];
    let mut written: Value = serde_json::from_str(&text).expect("JSON");
    let entries = old.map(|rule| {
        let mut entry = written["rules"][0].clone();
        entry["rule"] = json!(rule);
        entry
    });
    written["rules"].as_array_mut().expect("rules").extend(entries);
    std::fs::write(&file, written.to_string()).expect("written");
    daemon.crash_and_restart().await;

    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let asked = asks(&session, &mut seen).await.expect("the stored text has no wildcard");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    let known = alice.call("permission.rules", json!({"session_id": session.id})).await;
    let notes: Vec<&str> = known["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|it| it["note"].as_str().unwrap_or(""))
        .collect();
    for (note, part) in
        notes.iter().zip(["", "Bash(touch:*)", "Bash(git:*)", "no tool WebSearch", "no agent nowhere"])
    {
        assert!(note.contains(part) && note.is_empty() == part.is_empty(), "{notes:?}");
    }
    let listed = ctl(&daemon, &["rules"]).await.stdout();
    assert!(listed.contains("NOTE") && listed.contains("refused"), "{listed}");
    // A rule that could not be written now can be removed, and exactly this one.
    for rule in old {
        let gone = json!({"rule": rule, "scope": "project", "session_id": session.id});
        assert_eq!(alice.call("permission.remove_rule", gone).await["changed"], true, "{rule}");
    }
}

#[tokio::test]
async fn damaged_rule_file_denies_calls_and_stays_unchanged() {
    let daemon = daemon_that_calls("[permissions]\nallow = [\"Bash\"]", "touch mark").await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let deny = json!({"rule": "Bash(rm:*)", "kind": "deny", "scope": "project", "session_id": session.id});
    alice.call("permission.add_rule", deny.clone()).await;
    assert_eq!(asks(&session, &mut seen).await, None, "the configuration allows it");
    let file = policy_files(&daemon).pop().expect("one");
    std::fs::write(&file, "{\"version\":1,").expect("damaged");
    let asked = asks(&session, &mut seen).await.expect("a damaged rule file allows nothing");
    assert!(asked["reason"].as_str().is_some_and(|why| why.contains(&*file.to_string_lossy())), "{asked}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    let known = alice.call("permission.rules", json!({"session_id": session.id})).await;
    assert_eq!(known["problems"].as_array().map(Vec::len), Some(1));
    let refused = alice.refused("permission.add_rule", deny).await;
    assert_eq!(refused.data["file"], json!(file));
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "{\"version\":1,", "never deleted");
    std::fs::remove_file(&file).expect("moved away");
    assert_eq!(asks(&session, &mut seen).await, None);
}

#[tokio::test]
async fn agentctl_sets_rules_and_modes() {
    let daemon = daemon_that_calls("", "touch mark").await;
    let alice = daemon.client("alice").await;
    let session = alice.create_with(&daemon, json!({"title": "work"})).await;
    let mut seen = session.follow().await;
    let asked = asks(&session, &mut seen).await.expect("it asks");
    let id = asked["request_id"].as_str().expect("an id");
    let said = ctl(&daemon, &["approve", id, "--project"]).await.stdout();
    assert!(said.contains("granted in this folder: Bash(touch mark)"), "{said}");
    seen.turn_ends("success").await;
    let listed = ctl(&daemon, &["rules", "list", "--session", "work"]).await.stdout();
    assert!(
        listed.contains("allow") && listed.contains("Bash(touch mark)") && listed.contains("this folder"),
        "{listed}"
    );
    ctl(&daemon, &["rules", "add", "--user", "--deny", "Bash(rm:*)"]).await.stdout();
    ctl(&daemon, &["rules", "add", "--session", "work", "--ask", "Bash(make)"]).await.stdout();
    let listed = ctl(&daemon, &["rules", "list", "--session", "work", "--json"]).await.stdout();
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(3), "{listed}");
    let all: Value = serde_json::from_str(&ctl(&daemon, &["rules", "--json"]).await.stdout()).expect("JSON");
    assert!(all.to_string().contains("Bash(rm:*)"), "{all}");
    ctl(&daemon, &["rules", "revoke", "--user", "--deny", "Bash(rm:*)"]).await.stdout();
    ctl(&daemon, &["rules", "add", "--user", "--deny", "Bash(rm:*)"]).await.stdout();
    ctl(&daemon, &["rules", "rm", "--user", "--deny", "Bash(rm:*)"]).await.stdout();
    ctl(&daemon, &["mode", "work", "accept_edits"]).await.stdout();
    assert_eq!(session.view().await["mode"], "accept_edits");
    ctl(&daemon, &["rename", "work", "other work"]).await.stdout();
    assert_eq!(session.view().await["title"], "other work");

    daemon.models.push(Step::calls([bash("touch a"), bash("touch b")]));
    daemon.models.push(Step::text("Done."));
    session.submit("two").await;
    let a = seen.wait_for("permission.requested").await["request_id"].clone();
    let b = seen.wait_for("permission.requested").await["request_id"].clone();
    let (a, b) = (a.as_str().expect("an id"), b.as_str().expect("an id"));
    let said = ctl(&daemon, &["approve", a, "--input", "{\"command\": \"touch c\"}"]).await.stdout();
    assert!(said.contains("allowed"), "{said}");
    let said = ctl(&daemon, &["deny", b, "--feedback", "enough", "--stop"]).await.stdout();
    assert!(said.contains("denied"), "{said}");
    seen.turn_ends("permission_denied").await;
}

#[tokio::test]
async fn audit_names_matching_rule_and_additional_folders() {
    let config = "[permissions]\ndeny = [\"Bash(rm:*)\"]\nallow = [\"Bash(touch:*)\"]";
    let daemon = TestDaemon::builder().config(config).start().await;
    let more = daemon.path("more");
    std::fs::create_dir(&more).expect("made");
    let more = more.canonicalize().expect("resolved");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("rm x"), bash("touch x"), bash("ls")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    session.call("update", json!({"additional_dirs": [more]})).await;
    let reply = session.client.call("permission.audit", json!({"limit": 50})).await;
    let rows = reply["entries"].as_array().expect("a list");
    let of = |kind: &str| -> Vec<_> { rows.iter().filter(|row| row["kind"] == kind).collect() };
    let rules: Vec<_> =
        of("rule").iter().map(|row| (row["verdict"].clone(), row.get("rule").cloned())).collect();
    for expected in [
        (json!("deny"), Some(json!("Bash(rm:*)"))),
        (json!("allow"), Some(json!("Bash(touch:*)"))),
        (json!("allow"), None),
    ] {
        assert!(rules.contains(&expected), "{expected:?} in {rules:?}");
    }
    let folders = of("folders");
    assert_eq!(folders.len(), 1, "{rows:#?}");
    assert!(folders[0]["reason"].as_str().expect("words").contains(&*more.to_string_lossy()), "{folders:?}");
    assert_eq!(folders[0]["client"], "alice");
}

#[tokio::test]
async fn file_deny_rule_applies_to_hard_links() {
    let config = "[permissions]\ndeny = [\"Read(notes.txt)\"]\nask = [\"Read(plan.txt)\"]\n";
    let daemon = TestDaemon::builder().config(config).start().await;
    for (name, other) in [("notes.txt", "n.md"), ("plan.txt", "p.md"), ("free.txt", "f.md")] {
        std::fs::write(daemon.workspace().join(name), "kept").expect("written");
        std::fs::hard_link(daemon.workspace().join(name), daemon.workspace().join(other)).expect("linked");
    }
    for name in ["n.md", "p.md", "f.md"] {
        daemon.models.push(Step::calls([("Read", json!({"file_path": name}))]));
        daemon.models.push(Step::text("Done."));
    }
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    session.submit("go").await;
    let refused = seen.find("a refusal", |event| event["type"] == "tool.completed").await;
    assert_eq!(
        (&refused["status"], &refused["detail"]["rule"]),
        (&json!("denied"), &json!("Read(notes.txt)"))
    );
    seen.turn_ends("success").await;
    let asked = asks(&session, &mut seen).await.expect("the rule asks");
    assert!(asked["reason"].as_str().is_some_and(|why| why.contains("Read(plan.txt)")), "{asked}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert_eq!(asks(&session, &mut seen).await, None, "no rule applies any more");
}
