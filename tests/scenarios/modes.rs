//! How much a session may do unasked: modes, rules of the configuration, and what nothing allows.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// One turn with these calls; the session as it was and every event of it. Whatever asks stays
/// unanswered, and then the test is stuck: so nothing may ask.
async fn run_unasked(house: &TestDaemon, session: &Session, calls: Vec<(&str, Value)>) -> Vec<Value> {
    let mut seen = session.follow().await;
    house.models.push(Step::calls(calls));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    house.models.assert_no_breach();
    assert!(seen.seen_of("permission.requested").is_empty());
    seen.seen()
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

fn write(house: &TestDaemon, name: &str) -> (&'static str, Value) {
    ("Write", json!({"file_path": house.workspace().join(name), "content": "x\n"}))
}

#[tokio::test]
async fn dont_ask_denies_what_no_rule_allows() {
    let house =
        TestDaemon::builder().config("[permissions]\nallow = [\"Bash(touch allowed)\"]").start().await;
    let session = house.client("alice").await.create_with(&house, json!({"mode": "dont_ask"})).await;
    let calls = vec![bash("touch allowed"), bash("touch other"), write(&house, "a.txt")];
    let events = run_unasked(&house, &session, calls).await;
    let mut got = statuses(&events);
    got.sort();
    assert_eq!(got, pairs(&[("Bash", "completed"), ("Bash", "denied"), ("Write", "denied")]));
    assert!(house.workspace().join("allowed").exists());
    assert!(!house.workspace().join("other").exists() && !house.workspace().join("a.txt").exists());
}

#[tokio::test]
async fn accept_edits_accepts_edits_in_the_workspace_and_nothing_else() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create_with(&house, json!({"mode": "autoEdit"})).await;
    assert_eq!(session.view().await["mode"], "accept_edits", "the other name means the same");
    let events = run_unasked(&house, &session, vec![write(&house, "a.txt")]).await;
    assert_eq!(statuses(&events), pairs(&[("Write", "completed")]));
    assert_eq!(house.read("a.txt"), "x\n");

    let mut seen = session.follow_after(events.last().expect("events")["seq"].as_u64().expect("a seq")).await;
    let outside = ("Write", json!({"file_path": house.path("outside.txt"), "content": "x"}));
    house.models.push(Step::calls([bash("touch b"), outside]));
    session.submit("more").await;
    assert_eq!(seen.wait_for("permission.requested").await["tool"], "Bash");
    assert_eq!(seen.wait_for("permission.requested").await["tool"], "Write");
}

#[tokio::test]
async fn bypass_must_be_allowed_by_the_configuration_and_twice_for_root() {
    let house = TestDaemon::start().await;
    let alice = house.client("alice").await;
    let bypass = json!({"cwd": house.workspace(), "mode": "yolo"});
    let refusal = alice.refused("session.create", bypass.clone()).await;
    assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &json!("mode")));
    assert!(refusal.message.contains("allow_bypass = true"), "{}", refusal.message);

    if nix::unistd::geteuid().is_root() {
        let weak = "[permissions]\nallow_bypass = true\n[sandbox]\nlevel = \"rlimits\"";
        let house = TestDaemon::builder().config(weak).start().await;
        let bypass = |house: &TestDaemon| json!({"cwd": house.workspace(), "mode": "yolo"});
        let refusal = house.client("alice").await.refused("session.create", bypass(&house)).await;
        assert!(refusal.message.contains("allow_bypass_as_root"), "{}", refusal.message);

        // A sandbox of level 2 makes up for it.
        let house = TestDaemon::builder().config("[permissions]\nallow_bypass = true").start().await;
        let alice = house.client("alice").await;
        let status = alice.call("daemon.status", json!({})).await;
        if status["sandbox"]["landlock"] == "works" {
            alice.call("session.create", bypass(&house)).await;
        } else {
            eprintln!("SKIPPED: Landlock does not work here: {}", status["sandbox"]["landlock"]);
        }
    }
}

#[tokio::test]
async fn a_deny_rule_and_protected_places_stand_above_bypass() {
    let config = "[permissions]\nallow_bypass = true\nallow_bypass_as_root = true\n\
                  allow = [\"Bash\"]\ndeny = [\"Bash(rm:*)\"]";
    let house = TestDaemon::builder().config(config).start().await;
    house.write("precious", "x");
    let session = house.client("alice").await.create_with(&house, json!({"mode": "bypass"})).await;
    let calls = vec![
        bash("rm precious"),
        bash("true; rm -f precious"),
        write(&house, ".git/hooks/pre-commit"),
        ("Write", json!({"file_path": house.path("data/agentd/x"), "content": "x"})),
        bash("touch ordinary"),
    ];
    let events = run_unasked(&house, &session, calls).await;
    let denied = |tool| (tool, "denied");
    let expected = [denied("Bash"), denied("Bash"), denied("Write"), denied("Write"), ("Bash", "completed")];
    assert_eq!(statuses(&events), pairs(&expected));
    assert_eq!(house.read("precious"), "x");
    assert!(!house.workspace().join(".git/hooks/pre-commit").exists());
    assert!(house.workspace().join("ordinary").exists());
    let rule = events.iter().find(|event| event["type"] == "tool.completed").expect("one");
    assert!(rule["output"].as_str().expect("text").contains("Bash(rm:*)"), "the model is told why: {rule}");
}

#[tokio::test]
async fn safe_mode_asks_before_everything_and_runs_one_after_the_other() {
    let house = TestDaemon::builder().config("[permissions]\nallow = [\"Read\", \"Bash\"]").start().await;
    house.write("a.txt", "alpha\n");
    let session = house.client("alice").await.create_with(&house, json!({"safe_mode": true})).await;
    let mut seen = session.follow().await;
    let read = || ("Read", json!({"file_path": house.workspace().join("a.txt")}));
    house.models.push(Step::calls([read(), read(), bash("true")]));
    house.models.push(Step::text("Done."));
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
        .seen()
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
async fn a_rule_that_denies_means_what_its_links_lead_to() {
    let rules = "[permissions]\nallow = [\"Bash\"]\ndeny = [\"Read(l/**)\", \"Read(la)\", \"Edit(l/**)\"]";
    let house = TestDaemon::builder().config(rules).start().await;
    house.write("src/a", "secret");
    house.write("other/b", "secret");
    house.write("free", "x");
    for (to, link) in [("src", "l"), ("other/b", "la")] {
        std::os::unix::fs::symlink(to, house.workspace().join(link)).expect("linked");
    }
    let session = house.client("alice").await.create_with(&house, json!({"mode": "accept_edits"})).await;
    let read = |name: &str| ("Read", json!({"file_path": house.workspace().join(name)}));
    let denied = ["l/a", "src/a", "la", "other/b"];
    let calls = denied.into_iter().map(read).chain([write(&house, "src/new"), read("free")]).collect();
    let events = run_unasked(&house, &session, calls).await;
    let expected = [("Read", "denied"); 4].into_iter().chain([("Write", "denied"), ("Read", "completed")]);
    assert_eq!(statuses(&events), pairs(&expected.collect::<Vec<_>>()));
}

#[tokio::test]
async fn bypass_guard_asks_attended_denies_unattended_and_obeys_its_key() {
    let allowed = "[permissions]\nallow_bypass = true\nallow_bypass_as_root = true\n";
    // HOME is a folder of the test. What is deleted recursively is for the unit tests: nothing runs there.
    let command = "mkdir -p ~/.ssh && echo key > ~/.ssh/authorized_keys && touch passed";
    let writes_keys = || Step::calls([bash(command)]);
    let house = TestDaemon::builder().config(allowed).start().await;
    let alice = house.client("alice").await;
    let session = alice.create_with(&house, json!({"mode": "bypass"})).await;
    let mut seen = session.follow().await;
    house.models.push(writes_keys());
    house.models.push(Step::text("Good."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    assert!(asked["reason"].as_str().expect("why").contains("bypass"), "{asked}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;

    let session = alice.create_with(&house, json!({"mode": "bypass", "background": true})).await;
    house.models.push(writes_keys());
    house.models.push(Step::text("Good."));
    let mut seen = session.follow().await;
    session.submit("go").await;
    let done = seen.wait_for("tool.completed").await;
    assert_eq!((&done["status"], &done["code"]), (&json!("denied"), &json!("denied_by_rule")));
    assert!(done["output"].as_str().expect("text").contains("unattended"), "{done}");
    seen.turn_ends("success").await;
    assert!(seen.seen_of("permission.requested").is_empty());

    // The sandbox keeps home folders from being written: off, so that the key alone is seen to decide.
    let config = format!("{allowed}bypass_guard = false\n[sandbox]\nlevel = \"off\"");
    let house = TestDaemon::builder().config(&config).start().await;
    let session = house.client("alice").await.create_with(&house, json!({"mode": "bypass"})).await;
    run_unasked(&house, &session, vec![bash(command)]).await;
    assert!(house.workspace().join("passed").exists());
}
