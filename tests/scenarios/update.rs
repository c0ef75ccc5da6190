//! A session that changes while it lives: its model, its tools, the folders it works in (R4, Q42).

use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Request, Step};

fn tools_of(request: &Request) -> Vec<&str> {
    let tools = request.body["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

fn system(house: &TestDaemon, at: usize) -> String {
    house.models.requests()[at].body["system"].to_string()
}

#[tokio::test]
async fn another_model_answers_the_next_turn() {
    let mut house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::text("One."));
    session.submit("one").await;
    seen.turn_ends("success").await;
    let updated = session.call("update", json!({"model": "scripted/other"})).await;
    assert_eq!(updated["session"]["model"], "scripted/other");
    assert_eq!(seen.wait_for("session.updated").await["model"], "scripted/other");
    house.models.push(Step::text("Two."));
    session.submit("two").await;
    seen.turn_ends("success").await;
    house.crash_and_restart().await;
    let session = house.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    house.models.push(Step::text("Three."));
    session.submit("three").await;
    seen.find("the third turn", |event| event["result"]["text"] == "Three.").await;
    let models: Vec<Value> = house.models.requests().iter().map(|it| it.body["model"].clone()).collect();
    assert_eq!(models, ["model", "other", "other"]);
    for wrong in ["no-slash", "nobody/x"] {
        let refused = session.refused("update", json!({"model": wrong})).await;
        assert_eq!((refused.kind.as_str(), refused.code), ("invalid_params", -32602), "{wrong}");
    }
    house.models.assert_no_breach();
}

#[tokio::test]
async fn a_session_offers_the_tools_that_were_chosen_and_no_other_runs() {
    let house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let tools = json!({"allow": ["Read", "Grep", "Bash"], "deny": ["Bash"]});
    let session = house.client("alice").await.create_with(&house, json!({"tools": tools})).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("echo ran >> log.txt")]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let refused = &seen.seen_of("tool.completed")[0];
    assert_eq!((&refused["status"], &refused["code"]), (&json!("failed"), &json!("tool_not_offered")));
    assert_eq!(house.read("log.txt"), "");
    assert_eq!(tools_of(&house.models.requests()[1]), ["Read", "Grep"]);

    session.call("update", json!({"tools": {}})).await;
    house.models.push(Step::calls([bash("echo ran >> log.txt")]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(house.read("log.txt"), "ran\n");
    assert!(tools_of(&house.models.requests()[2]).contains(&"Edit"));
    let refused = session.refused("update", json!({"tools": {"allow": ["Raed"]}})).await;
    assert!(refused.message.contains("Raed") && refused.message.contains("Read"), "{}", refused.message);
}

#[tokio::test]
async fn a_turn_may_offer_tools_of_its_own() {
    let mut house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = house.client("alice").await.create_with(&house, json!({"tools": {"deny": ["Edit"]}})).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    house.models.push(Step::calls([bash("echo ran >> log.txt")]));
    house.models.push(Step::text("One.").hold(&gate));
    session.submit_with(json!({"input": "one", "tools": {"allow": ["Read"]}})).await;
    gate.reached().await;
    // One that waits keeps its choice; one that joins has none.
    session.submit_with(json!({"input": "two", "when_busy": "queue", "tools": {"allow": ["Grep"]}})).await;
    let joins = json!({"input": "x", "when_busy": "steer", "tools": {}});
    let refused = session.refused("submit", joins).await;
    assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!("tools")));
    let refused = session.refused("submit", json!({"input": "x", "tools": {"allow": ["Raed"]}})).await;
    assert!(refused.message.contains("Raed"), "{}", refused.message);
    house.models.push(Step::text("Two."));
    gate.open();
    seen.find("the second turn", |event| event["result"]["text"] == "Two.").await;
    house.crash_and_restart().await;
    let session = house.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    house.models.push(Step::text("Three."));
    session.submit("three").await;
    seen.find("the third turn", |event| event["result"]["text"] == "Three.").await;
    let requests = house.models.requests();
    let offered: Vec<Vec<&str>> = requests.iter().map(tools_of).collect();
    let [first, again, two, three] = &offered[..] else { panic!("{offered:?}") };
    assert_eq!((first, again, two), (&vec!["Read"], &vec!["Read"], &vec!["Grep"]));
    assert!(three.contains(&"Bash") && !three.contains(&"Edit"), "{three:?}");
    assert_eq!(house.read("log.txt"), "", "a tool that is not on offer does not run");
}

#[tokio::test]
async fn a_command_is_judged_where_it_starts() {
    let config = "[permissions]\nallow = [\"Bash(tee:*)\", \"Bash(echo:*)\"]";
    let house = TestDaemon::builder().config(config).start().await;
    let more = house.path("more");
    std::fs::create_dir(&more).expect("made");
    house.write(".git/config", "[core]\n");
    house.write("sub/x", "");
    let further = json!({"additional_dirs": [more]});
    let session = house.client("alice").await.create_with(&house, further).await;
    let mut seen = session.follow().await;
    // A further folder is one to go to, and nothing asks; then the workspace's own repository.
    house.models.push(Step::calls([bash(&format!("cd {} && pwd", more.display()))]));
    house.models.push(Step::calls([bash("echo here | tee made.txt")]));
    house.models.push(Step::calls([bash(&format!("cd {}/.git", house.workspace().display()))]));
    house.models.push(Step::calls([bash("echo evil | tee config")]));
    // Judged at the top, it would start elsewhere.
    house.models.push(Step::calls([bash(&format!("cd {}", house.workspace().display()))]));
    house.models.push(Step::calls([bash("cd sub"), bash("echo two | tee y")]));
    house.models.push(Step::calls([bash("echo three | tee z")]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert!(seen.seen_of("permission.requested").is_empty(), "nothing of it asks");
    let ends: Vec<(String, String)> = seen
        .seen_of("tool.completed")
        .iter()
        .map(|done| {
            let text = |key: &str| done[key].as_str().unwrap_or_default().to_owned();
            (text("status"), text("code"))
        })
        .collect();
    let completed = ("completed".to_owned(), String::new());
    assert_eq!(ends[..3], vec![completed.clone(); 3], "{ends:?}");
    assert_eq!(ends[3].0, "denied", "{ends:?}");
    assert_eq!(house.read(".git/config"), "[core]\n");
    assert_eq!(ends[5], completed, "{ends:?}");
    assert_eq!(ends[6], ("failed".into(), "target_changed".into()), "{ends:?}");
    assert_eq!(ends[7], completed, "{ends:?}");
    assert_eq!(
        (house.read("sub/z").as_str(), house.read("sub/y").as_str(), house.read("y").as_str()),
        ("three\n", "", "")
    );
    assert_eq!(std::fs::read_to_string(more.join("made.txt")).expect("made there"), "here\n");
}

#[tokio::test]
async fn additional_folders_count_as_workspace_and_say_how_to_work_in_them() {
    let mut house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let more = house.path("more");
    std::fs::create_dir(&more).expect("made");
    std::fs::write(more.join("AGENTS.md"), "Use spaces here.").expect("written");
    std::fs::write(more.join("a.txt"), "old\n").expect("written");
    let asks = json!({"mode": "accept_edits"});
    let session = house.client("alice").await.create_with(&house, asks).await;
    let mut seen = session.follow().await;
    let read = ("Read", json!({"file_path": more.join("a.txt")}));
    house.models.push(Step::calls([read.clone()]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;

    for (wrong, says) in [
        (json!("more"), "absolute"),
        (json!(house.path("nowhere")), "could not open"),
        (json!(more.join("a.txt")), "not a folder"),
        (json!("/"), "cannot be a workspace"),
        (json!("/proc/self"), "cannot be a workspace"),
        (json!(house.path("data/agentd")), "daemon itself"),
    ] {
        let refused = session.refused("update", json!({"additional_dirs": [wrong]})).await;
        assert!(refused.message.contains(says), "{wrong}: {}", refused.message);
    }
    session.call("update", json!({"additional_dirs": [more]})).await;
    let edit = json!({"file_path": more.join("a.txt"), "old_string": "old", "new_string": "new"});
    house.models.push(Step::calls([read.clone()]));
    house.models.push(Step::calls([("Edit", edit)]));
    house.models.push(Step::calls([bash(&format!(
        "echo more >> {}; cat {}",
        more.join("b.txt").display(),
        more.join("b.txt").display()
    ))]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.seen_of("permission.requested").len(), 1, "nothing more was asked");
    assert_eq!(house.read("../more/a.txt"), "new\n");
    assert_eq!(house.read("../more/b.txt"), "more\n");
    assert!(!system(&house, 0).contains("Use spaces here."));
    assert!(system(&house, 2).contains("Use spaces here."), "{}", system(&house, 2));

    // It stays after a restart, and ends when it is taken back.
    house.crash_and_restart().await;
    let session = house.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    house.models.push(Step::calls([read.clone()]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.seen_of("permission.requested").len(), 0);
    session.call("update", json!({"additional_dirs": []})).await;
    house.models.push(Step::calls([read]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(!system(&house, house.models.requests().len() - 1).contains("Use spaces here."));
}
