//! Changing a session while it is loaded: its model, its tools, its workspace folders.

use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Request, Step};

fn tools_of(request: &Request) -> Vec<&str> {
    let tools = request.body["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

fn system(daemon: &TestDaemon, at: usize) -> String {
    daemon.models.requests()[at].body["system"].to_string()
}

#[tokio::test]
async fn updated_model_answers_next_turn() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("One."));
    session.submit("one").await;
    seen.turn_ends("success").await;
    let updated = session.call("update", json!({"model": "scripted/other"})).await;
    assert_eq!(updated["session"]["model"], "scripted/other");
    assert_eq!(seen.wait_for("session.updated").await["model"], "scripted/other");
    daemon.models.push(Step::text("Two."));
    session.submit("two").await;
    seen.turn_ends("success").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Three."));
    session.submit("three").await;
    seen.find("the third turn", |event| event["result"]["text"] == "Three.").await;
    let models: Vec<Value> = daemon.models.requests().iter().map(|it| it.body["model"].clone()).collect();
    assert_eq!(models, ["model", "other", "other"]);
    for wrong in ["no-slash", "missing/model"] {
        let refused = session.refused("update", json!({"model": wrong})).await;
        assert_eq!((refused.kind.as_str(), refused.code), ("invalid_params", -32602), "{wrong}");
    }
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn session_offers_and_runs_chosen_tools_only() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let tools = json!({"allow": ["Read", "Grep", "Bash"], "deny": ["Bash"]});
    let session = daemon.client("alice").await.create_with(&daemon, json!({"tools": tools})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo ran >> log.txt")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let refused = &seen.events_of("tool.completed")[0];
    assert_eq!((&refused["status"], &refused["code"]), (&json!("failed"), &json!("tool_not_offered")));
    assert_eq!(daemon.read("log.txt"), "");
    assert_eq!(tools_of(&daemon.models.requests()[1]), ["Read", "Grep"]);

    session.call("update", json!({"tools": {}})).await;
    daemon.models.push(Step::calls([bash("echo ran >> log.txt")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "ran\n");
    assert!(tools_of(&daemon.models.requests()[2]).contains(&"Edit"));
    let refused = session.refused("update", json!({"tools": {"allow": ["Raed"]}})).await;
    assert!(refused.message.contains("Raed") && refused.message.contains("Read"), "{}", refused.message);
}

#[tokio::test]
async fn submit_tools_apply_to_one_turn() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session =
        daemon.client("alice").await.create_with(&daemon, json!({"tools": {"deny": ["Edit"]}})).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::calls([bash("echo ran >> log.txt")]));
    daemon.models.push(Step::text("One.").hold(&gate));
    session.submit_with(json!({"input": "one", "tools": {"allow": ["Read"]}})).await;
    gate.wait_reached().await;
    // Queued input keeps its own choice of tools. Steering input must not have one.
    session.submit_with(json!({"input": "two", "when_busy": "queue", "tools": {"allow": ["Grep"]}})).await;
    let joins = json!({"input": "x", "when_busy": "steer", "tools": {}});
    let refused = session.refused("submit", joins).await;
    assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!("tools")));
    let refused = session.refused("submit", json!({"input": "x", "tools": {"allow": ["Raed"]}})).await;
    assert!(refused.message.contains("Raed"), "{}", refused.message);
    daemon.models.push(Step::text("Two."));
    gate.open();
    seen.find("the second turn", |event| event["result"]["text"] == "Two.").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Three."));
    session.submit("three").await;
    seen.find("the third turn", |event| event["result"]["text"] == "Three.").await;
    let requests = daemon.models.requests();
    let offered: Vec<Vec<&str>> = requests.iter().map(tools_of).collect();
    let [first, again, two, three] = &offered[..] else { panic!("{offered:?}") };
    assert_eq!((first, again, two), (&vec!["Read"], &vec!["Read"], &vec!["Grep"]));
    assert!(three.contains(&"Bash") && !three.contains(&"Edit"), "{three:?}");
    assert_eq!(daemon.read("log.txt"), "", "a tool that is not offered does not run");
}

#[tokio::test]
async fn command_is_judged_in_its_current_folder() {
    let config = "[permissions]\nallow = [\"Bash(tee:*)\", \"Bash(echo:*)\"]";
    let daemon = TestDaemon::builder().config(config).start().await;
    let more = daemon.path("more");
    std::fs::create_dir(&more).expect("made");
    daemon.write(".git/config", "[core]\n");
    daemon.write("sub/x", "");
    let further = json!({"additional_dirs": [more]});
    let session = daemon.client("alice").await.create_with(&daemon, further).await;
    let mut seen = session.follow().await;
    // The model may change into an additional folder without a request; then back to the workspace's
    // own repository.
    daemon.models.push(Step::calls([bash(&format!("cd {} && pwd", more.display()))]));
    daemon.models.push(Step::calls([bash("echo here | tee made.txt")]));
    daemon.models.push(Step::calls([bash(&format!("cd {}/.git", daemon.workspace().display()))]));
    daemon.models.push(Step::calls([bash("echo evil | tee config")]));
    // `tee y` is judged in the top folder together with `cd sub`. It would then run in `sub`, so it fails.
    daemon.models.push(Step::calls([bash(&format!("cd {}", daemon.workspace().display()))]));
    daemon.models.push(Step::calls([bash("cd sub"), bash("echo two | tee y")]));
    daemon.models.push(Step::calls([bash("echo three | tee z")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty(), "no call needs a request");
    let ends: Vec<(String, String)> = seen
        .events_of("tool.completed")
        .iter()
        .map(|done| {
            let text = |key: &str| done[key].as_str().unwrap_or_default().to_owned();
            (text("status"), text("code"))
        })
        .collect();
    let completed = ("completed".to_owned(), String::new());
    assert_eq!(ends[..3], vec![completed.clone(); 3], "{ends:?}");
    assert_eq!(ends[3].0, "denied", "{ends:?}");
    assert_eq!(daemon.read(".git/config"), "[core]\n");
    assert_eq!(ends[5], completed, "{ends:?}");
    assert_eq!(ends[6], ("failed".into(), "target_changed".into()), "{ends:?}");
    assert_eq!(ends[7], completed, "{ends:?}");
    assert_eq!(
        (daemon.read("sub/z").as_str(), daemon.read("sub/y").as_str(), daemon.read("y").as_str()),
        ("three\n", "", "")
    );
    assert_eq!(std::fs::read_to_string(more.join("made.txt")).expect("made there"), "here\n");
}

#[tokio::test]
async fn additional_folders_count_as_workspace_with_instructions() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let more = daemon.path("more");
    std::fs::create_dir(&more).expect("made");
    std::fs::write(more.join("AGENTS.md"), "Use spaces here.").expect("written");
    std::fs::write(more.join("a.txt"), "old\n").expect("written");
    let asks = json!({"mode": "accept_edits"});
    let session = daemon.client("alice").await.create_with(&daemon, asks).await;
    let mut seen = session.follow().await;
    let read = ("Read", json!({"file_path": more.join("a.txt")}));
    daemon.models.push(Step::calls([read.clone()]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;

    for (wrong, says) in [
        (json!("more"), "absolute"),
        (json!(daemon.path("nowhere")), "could not open"),
        (json!(more.join("a.txt")), "not a folder"),
        (json!("/"), "cannot be a workspace"),
        (json!("/proc/self"), "cannot be a workspace"),
        (json!(daemon.path("data/agentd")), "daemon itself"),
    ] {
        let refused = session.refused("update", json!({"additional_dirs": [wrong]})).await;
        assert!(refused.message.contains(says), "{wrong}: {}", refused.message);
    }
    session.call("update", json!({"additional_dirs": [more]})).await;
    let edit = json!({"file_path": more.join("a.txt"), "old_string": "old", "new_string": "new"});
    daemon.models.push(Step::calls([read.clone()]));
    daemon.models.push(Step::calls([("Edit", edit)]));
    daemon.models.push(Step::calls([bash(&format!(
        "echo more >> {}; cat {}",
        more.join("b.txt").display(),
        more.join("b.txt").display()
    ))]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("permission.requested").len(), 1, "no further request");
    assert_eq!(daemon.read("../more/a.txt"), "new\n");
    assert_eq!(daemon.read("../more/b.txt"), "more\n");
    assert!(!system(&daemon, 0).contains("Use spaces here."));
    assert!(system(&daemon, 2).contains("Use spaces here."), "{}", system(&daemon, 2));

    // The additional folder still applies after a restart, until an update removes it.
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    daemon.models.push(Step::calls([read.clone()]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("permission.requested").len(), 0);
    session.call("update", json!({"additional_dirs": []})).await;
    daemon.models.push(Step::calls([read]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(!system(&daemon, daemon.models.requests().len() - 1).contains("Use spaces here."));
}
