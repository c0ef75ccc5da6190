//! Calls that need no permission request: approval modes, rules of the configuration, and
//! calls that nothing allows.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// Runs one turn with these calls. Returns the session before it and all events. A permission request
/// would stay unanswered and block the test, so there must be none.
async fn run_unasked(daemon: &TestDaemon, session: &Session, calls: Vec<(&str, Value)>) -> Vec<Value> {
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls(calls));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
    assert!(seen.events_of("permission.requested").is_empty());
    seen.events()
}

fn statuses(events: &[Value]) -> Vec<(String, String)> {
    let completed = events.iter().filter(|event| event["type"] == "tool.completed");
    let pair = |event: &Value| {
        let text = |name: &str| event[name].as_str().expect("a text").to_owned();
        (text("tool"), text("status"))
    };
    completed.map(pair).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(tool, status)| ((*tool).into(), (*status).into())).collect()
}

fn write(daemon: &TestDaemon, name: &str) -> (&'static str, Value) {
    ("Write", json!({"file_path": daemon.workspace().join(name), "content": "x\n"}))
}

#[tokio::test]
async fn dont_ask_mode_denies_unallowed_calls() {
    let daemon =
        TestDaemon::builder().config("[permissions]\nallow = [\"Bash(touch allowed)\"]").start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "dont_ask"})).await;
    let calls = vec![bash("touch allowed"), bash("touch other"), write(&daemon, "a.txt")];
    let events = run_unasked(&daemon, &session, calls).await;
    let mut got = statuses(&events);
    got.sort();
    assert_eq!(got, pairs(&[("Bash", "completed"), ("Bash", "denied"), ("Write", "denied")]));
    assert!(daemon.workspace().join("allowed").exists());
    assert!(!daemon.workspace().join("other").exists() && !daemon.workspace().join("a.txt").exists());
}

#[tokio::test]
async fn accept_edits_mode_allows_workspace_edits_only() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "autoEdit"})).await;
    assert_eq!(session.view().await["mode"], "accept_edits", "the other name means the same");
    let events = run_unasked(&daemon, &session, vec![write(&daemon, "a.txt")]).await;
    assert_eq!(statuses(&events), pairs(&[("Write", "completed")]));
    assert_eq!(daemon.read("a.txt"), "x\n");

    let mut seen = session.follow_after(events.last().expect("events")["seq"].as_u64().expect("a seq")).await;
    let outside = ("Write", json!({"file_path": daemon.path("outside.txt"), "content": "x"}));
    daemon.models.push(Step::calls([bash("touch b"), outside]));
    session.submit("more").await;
    assert_eq!(seen.wait_for("permission.requested").await["tool"], "Bash");
    assert_eq!(seen.wait_for("permission.requested").await["tool"], "Write");
}

#[tokio::test]
async fn bypass_mode_requires_configuration_and_root_option() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let bypass = json!({"cwd": daemon.workspace(), "mode": "yolo"});
    let refusal = alice.refused("session.create", bypass.clone()).await;
    assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &json!("mode")));
    assert!(refusal.message.contains("allow_bypass = true"), "{}", refusal.message);

    if nix::unistd::geteuid().is_root() {
        let weak = "[permissions]\nallow_bypass = true\n[sandbox]\nlevel = \"rlimits\"";
        let daemon = TestDaemon::builder().config(weak).start().await;
        let bypass = |daemon: &TestDaemon| json!({"cwd": daemon.workspace(), "mode": "yolo"});
        let refusal = daemon.client("alice").await.refused("session.create", bypass(&daemon)).await;
        assert!(refusal.message.contains("allow_bypass_as_root"), "{}", refusal.message);

        // A sandbox of level 2 is sufficient instead.
        let daemon = TestDaemon::builder().config("[permissions]\nallow_bypass = true").start().await;
        let alice = daemon.client("alice").await;
        let sandbox = alice.sandbox().await;
        if sandbox["landlock"] == "works" {
            alice.call("session.create", bypass(&daemon)).await;
        } else {
            base::skip_test!("Landlock does not work here: {}", sandbox["landlock"]);
        }
    }
}

#[tokio::test]
async fn deny_rule_and_protected_paths_override_bypass() {
    let config = "[permissions]\nallow_bypass = true\nallow_bypass_as_root = true\n\
                  allow = [\"Bash\"]\ndeny = [\"Bash(rm:*)\"]";
    let daemon = TestDaemon::builder().config(config).start().await;
    daemon.write("precious", "x");
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "bypass"})).await;
    let calls = vec![
        bash("rm precious"),
        bash("true; rm -f precious"),
        write(&daemon, ".git/hooks/pre-commit"),
        ("Write", json!({"file_path": daemon.path("data/agentd/x"), "content": "x"})),
        bash("touch ordinary"),
    ];
    let events = run_unasked(&daemon, &session, calls).await;
    let denied = |tool| (tool, "denied");
    let expected = [denied("Bash"), denied("Bash"), denied("Write"), denied("Write"), ("Bash", "completed")];
    assert_eq!(statuses(&events), pairs(&expected));
    assert_eq!(daemon.read("precious"), "x");
    assert!(!daemon.workspace().join(".git/hooks/pre-commit").exists());
    assert!(daemon.workspace().join("ordinary").exists());
    let rule = events.iter().find(|event| event["type"] == "tool.completed").expect("one");
    assert!(rule["output"].as_str().expect("text").contains("Bash(rm:*)"), "the model is told why: {rule}");
}

#[tokio::test]
async fn safe_mode_requests_every_call_and_runs_sequentially() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Read\", \"Bash\"]").start().await;
    daemon.write("a.txt", "alpha\n");
    let session = daemon.client("alice").await.create_with(&daemon, json!({"safe_mode": true})).await;
    let mut seen = session.follow().await;
    let read = || ("Read", json!({"file_path": daemon.workspace().join("a.txt")}));
    daemon.models.push(Step::calls([read(), read(), bash("true")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(seen.wait_for("permission.requested").await);
    }
    for question in asked.iter().rev() {
        session.allow(question).await;
    }
    seen.turn_ends("success").await;
    let order: Vec<_> = seen
        .events()
        .iter()
        .filter_map(|event| {
            let is_step = event["type"] == "tool.started" || event["type"] == "tool.completed";
            is_step.then(|| event["call_id"].clone())
        })
        .collect();
    let expected: Vec<_> = asked.iter().flat_map(|q| [q["call_id"].clone(), q["call_id"].clone()]).collect();
    assert_eq!(order, expected);
}

#[tokio::test]
async fn deny_rule_applies_to_symlink_targets() {
    let rules = "[permissions]\nallow = [\"Bash\"]\ndeny = [\"Read(l/**)\", \"Read(la)\", \"Edit(l/**)\"]";
    let daemon = TestDaemon::builder().config(rules).start().await;
    daemon.write("src/a", "secret");
    daemon.write("other/b", "secret");
    daemon.write("free", "x");
    for (to, link) in [("src", "l"), ("other/b", "la")] {
        std::os::unix::fs::symlink(to, daemon.workspace().join(link)).expect("linked");
    }
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "accept_edits"})).await;
    let read = |name: &str| ("Read", json!({"file_path": daemon.workspace().join(name)}));
    let denied = ["l/a", "src/a", "la", "other/b"];
    let calls = denied.into_iter().map(read).chain([write(&daemon, "src/new"), read("free")]).collect();
    let events = run_unasked(&daemon, &session, calls).await;
    let expected = [("Read", "denied"); 4].into_iter().chain([("Write", "denied"), ("Read", "completed")]);
    assert_eq!(statuses(&events), pairs(&expected.collect::<Vec<_>>()));
}

#[tokio::test]
async fn bypass_guard_asks_attended_and_denies_unattended() {
    let allowed = "[permissions]\nallow_bypass = true\nallow_bypass_as_root = true\n";
    // HOME is a folder of the test. Recursive deletion is covered by unit tests, where nothing runs.
    let command = "mkdir -p ~/.ssh && echo key > ~/.ssh/authorized_keys && touch passed";
    let writes_keys = || Step::calls([bash(command)]);
    let daemon = TestDaemon::builder().config(allowed).start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create_with(&daemon, json!({"mode": "bypass"})).await;
    let mut seen = session.follow().await;
    daemon.models.push(writes_keys());
    daemon.models.push(Step::text("Good."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    assert!(asked["reason"].as_str().expect("why").contains("bypass"), "{asked}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;

    let session = alice.create_with(&daemon, json!({"mode": "bypass", "background": true})).await;
    daemon.models.push(writes_keys());
    daemon.models.push(Step::text("Good."));
    let mut seen = session.follow().await;
    session.submit("go").await;
    let done = seen.wait_for("tool.completed").await;
    assert_eq!((&done["status"], &done["code"]), (&json!("denied"), &json!("denied_by_rule")));
    assert!(done["output"].as_str().expect("text").contains("unattended"), "{done}");
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty());

    // The sandbox would make home folders read-only. Turn it off, so that only the configuration key
    // decides.
    let config = format!("{allowed}bypass_guard = false\n[sandbox]\nlevel = \"off\"");
    let daemon = TestDaemon::builder().config(&config).start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "bypass"})).await;
    run_unasked(&daemon, &session, vec![bash(command)]).await;
    assert!(daemon.workspace().join("passed").exists());
}

#[tokio::test]
async fn bypass_guard_asks_before_writes_behind_links_to_key_folders() {
    let config = "[permissions]\nallow_bypass = true\nallow_bypass_as_root = true\n";
    let daemon = TestDaemon::builder().config(config).start().await;
    // Users often keep dotfiles in another folder: `~/.ssh` is a link to a folder with an unrelated name.
    std::fs::create_dir_all(daemon.path("dotfiles/keys")).expect("made");
    std::os::unix::fs::symlink(daemon.path("dotfiles/keys"), daemon.path("home/.ssh")).expect("linked");
    // Another name of the home folder itself.
    std::os::unix::fs::symlink(daemon.path("home"), daemon.path("me")).expect("linked");
    let alice = daemon.client("alice").await;
    for file in ["home/.ssh/config", "dotfiles/keys/config", "me/.ssh/config", "me/.gnupg/gpg.conf"] {
        let session = alice.create_with(&daemon, json!({"mode": "bypass"})).await;
        let call = ("Write", json!({"file_path": daemon.path(file), "content": "x"}));
        let mut seen = session.follow().await;
        daemon.models.push(Step::calls([call]));
        daemon.models.push(Step::text("Good."));
        session.submit("go").await;
        let asked = seen.wait_for("permission.requested").await;
        assert!(asked["reason"].as_str().expect("why").contains("bypass"), "{file}: {asked}");
        session.answer(&asked, json!({"decision": "deny"})).await;
        seen.turn_ends("success").await;
        assert!(!daemon.path(file).exists(), "{file}");
    }
}
