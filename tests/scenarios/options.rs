//! Options of turns: on create, update and submit, and what the model receives of them.

use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::{Api, TestDaemon};
use crate::support::model_server::{Gate, Step};

fn system(daemon: &TestDaemon, at: usize) -> String {
    daemon.models.requests()[at].body["system"].to_string()
}

#[tokio::test]
async fn system_prompt_of_submit_holds_for_one_turn() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    session.submit("one").await;
    seen.turn_ends("success").await;
    let own =
        json!({"input": "two", "system_prompt": "You are a poet.", "append_system_prompt": "In rhymes."});
    session.submit_with(own).await;
    assert_eq!(seen.wait_for("turn.started").await["system_prompt"], "You are a poet.");
    let built = seen.wait_for("turn.prompt_built").await;
    assert!(built["system"].as_str().expect("a text").contains("In rhymes."), "{built}");
    seen.turn_ends("success").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    session.submit("three").await;
    seen.turn_ends("success").await;
    assert!(system(&daemon, 1).contains("You are a poet.") && system(&daemon, 1).contains("In rhymes."));
    assert_eq!(system(&daemon, 0), system(&daemon, 2), "the session's own prompt is unchanged");
    assert!(!system(&daemon, 0).contains("poet"));

    // A changed prompt of the session begins with the next turn; an empty one is the default again.
    session.call("update", json!({"system_prompt": "You are a judge."})).await;
    session.submit("four").await;
    seen.turn_ends("success").await;
    session.call("update", json!({"system_prompt": ""})).await;
    session.submit("five").await;
    seen.turn_ends("success").await;
    assert!(system(&daemon, 3).contains("You are a judge."));
    assert_eq!(system(&daemon, 4), system(&daemon, 0));
    let long = "x".repeat(600_000);
    let refused = session.refused("submit", json!({"input": "x", "system_prompt": long})).await;
    assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!("system_prompt")));
}

#[tokio::test]
async fn safe_mode_of_submit_asks_before_allowed_call() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let script = || {
        daemon.models.push(Step::calls([bash("echo ran >> log.txt")]));
        daemon.models.push(Step::text("Done."));
    };
    script();
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "ran\n");
    script();
    session.submit_with(json!({"input": "go", "safe_mode": true})).await;
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(daemon.read("log.txt"), "ran\n");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    // The next turn has no safe mode. After the update, all turns of the session have it.
    script();
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "ran\nran\n");
    session.call("update", json!({"safe_mode": true})).await;
    script();
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "ran\nran\n");
}

#[tokio::test]
async fn folders_of_submit_count_as_workspace_for_one_turn() {
    let daemon = TestDaemon::start().await;
    let more = daemon.path("more");
    std::fs::create_dir(&more).expect("made");
    std::fs::write(more.join("AGENTS.md"), "Use tabs here.").expect("written");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let read = ("Read", json!({"file_path": more.join("AGENTS.md")}));
    daemon.models.push(Step::calls([read.clone()]));
    daemon.models.push(Step::text("Done."));
    session.submit_with(json!({"input": "go", "additional_dirs": [more]})).await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty());
    assert!(system(&daemon, 0).contains("Use tabs here."));
    daemon.models.push(Step::calls([read]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(!system(&daemon, 2).contains("Use tabs here."));
}

#[tokio::test]
async fn fallback_model_of_session_answers_for_missing_model() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let refused =
        client.refused("session.create", json!({"cwd": daemon.workspace(), "fallback_model": "no/m"}));
    assert_eq!(refused.await.data["path"], "fallback_model");
    let session = client.create_with(&daemon, json!({"fallback_model": "scripted/spare"})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::error(404, "not_found_error", "no such model"));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let switched = seen.wait_for("model.switched").await;
    assert_eq!((&switched["to"], &switched["reason"]), (&json!("scripted/spare"), &json!("not_found")));
    seen.turn_ends("success").await;
    // A turn may name another fallback model, and an update may remove the session's fallback model.
    daemon.models.push(Step::error(404, "not_found_error", "no such model"));
    daemon.models.push(Step::text("Done."));
    session.submit_with(json!({"input": "go", "fallback_model": "scripted/third"})).await;
    assert_eq!(seen.wait_for("model.switched").await["to"], "scripted/third");
    seen.turn_ends("success").await;
    session.call("update", json!({"fallback_model": ""})).await;
    daemon.models.push(Step::error(404, "not_found_error", "no such model"));
    session.submit("go").await;
    seen.turn_ends("llm_error").await;
}

#[tokio::test]
async fn stop_sequences_and_metadata_reach_every_api() {
    for api in [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses] {
        let daemon = TestDaemon::builder().api(api).start().await;
        let client = daemon.client("alice").await;
        let more = json!({"stop": ["END"], "metadata": {"user_id": "u-1"}});
        let session = client.create_with(&daemon, more).await;
        let mut seen = session.follow().await;
        daemon.models.set_fallback(|_| Step::text("Done."));
        session.submit("one").await;
        seen.turn_ends("success").await;
        session.submit_with(json!({"input": "two", "stop": ["A", "B"], "metadata": {}})).await;
        seen.turn_ends("success").await;
        let requests = daemon.models.requests();
        let name = if matches!(api, Api::Anthropic) { "stop_sequences" } else { "stop" };
        let stops: Vec<&Value> = requests.iter().map(|it| &it.body[name]).collect();
        assert_eq!(stops, [&json!(["END"]), &json!(["A", "B"])]);
        let labels: Vec<&Value> = requests.iter().map(|it| &it.body["metadata"]).collect();
        assert_eq!(labels, [&json!({"user_id": "u-1"}), &Value::Null]);
        daemon.models.assert_no_breach();
        for (name, wrong) in [
            ("stop", json!(["a", "b", "c", "d", "e"])),
            ("stop", json!([" "])),
            ("metadata", json!({"k": "v".repeat(513)})),
        ] {
            let mut params = json!({"input": "x"});
            params[name] = wrong;
            let refused = session.refused("submit", params).await;
            assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!(name)));
        }
    }
}

#[tokio::test]
async fn steering_input_refuses_options_of_its_own() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("go").await;
    gate.wait_reached().await;
    for (name, value) in [
        ("safe_mode", json!(true)),
        ("system_prompt", json!("x")),
        ("additional_dirs", json!([])),
        ("fallback_model", json!("scripted/x")),
        ("stop", json!(["x"])),
    ] {
        let mut params = json!({"input": "x", "when_busy": "steer"});
        params[name] = value;
        let refused = session.refused("submit", params).await;
        assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!(name)));
    }
    gate.open();
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn session_begins_with_initial_items() {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let items = json!([
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello Ada."}]},
    ]);
    let id = "ses_0190f2a4-0000-7000-8000-0000000000aa";
    let params = json!({"cwd": daemon.workspace(), "session_id": id, "initial_items": items});
    client.call("session.create", params.clone()).await;
    let again = client.call("session.create", params.clone()).await;
    assert_eq!(again["session"]["session_id"], id, "a repeated create returns the same session");
    let mut other = params;
    other["initial_items"][0]["content"] = json!("My name is Bob.");
    assert_eq!(client.refused("session.create", other.clone()).await.kind, "conflict");
    for (wrong, path) in [
        (json!([{"role": "user", "content": " "}]), "initial_items"),
        (json!([{"role": "system", "content": "x"}]), "initial_items[0].role"),
        (
            json!([{"role": "user", "content": [{"type": "image", "path": "/x"}]}]),
            "initial_items[0].content[0].type",
        ),
    ] {
        let params = json!({"cwd": daemon.workspace(), "initial_items": wrong});
        assert_eq!(client.refused("session.create", params).await.data["path"], path);
    }
    daemon.crash_and_restart().await;
    let client = daemon.client("bob").await;
    let session = crate::support::client::Session { id: id.into(), ..client.create(&daemon).await };
    let kinds: Vec<Value> = session.items().await.iter().map(|item| item["kind"].clone()).collect();
    assert_eq!(kinds, ["user_message", "assistant_message"]);
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Ada."));
    session.submit("What is my name?").await;
    seen.turn_ends("success").await;
    let request = &daemon.models.requests()[0];
    let texts: Vec<&Value> = request.messages().iter().map(|it| &it["content"][0]["text"]).collect();
    assert_eq!(texts, ["My name is Ada.", "Hello Ada.", "What is my name?"]);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn ablation_turns_thinking_reminders_and_background_off() {
    let config = "[permissions]\nallow = [\"Bash\"]\n[session]\nthinking = \"high\"\n\
                  [model.\"scripted/model\"]\nthinking = true\n[session.ablation]\nreminders = true";
    let daemon = TestDaemon::builder().config(config).start().await;
    let client = daemon.client("alice").await;
    let usual = client.create_with(&daemon, json!({"mode": "plan"})).await;
    assert_eq!(usual.view().await["ablation"]["reminders"], true);
    assert_eq!(usual.view().await["ablation"]["thinking"], false);
    let off = json!({"thinking": true, "background_tasks": true});
    let bare = client.create_with(&daemon, json!({"ablation": off, "mode": "plan"})).await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    for session in [&usual, &bare] {
        let mut seen = session.follow().await;
        session.submit("go").await;
        seen.turn_ends("success").await;
    }
    let requests = daemon.models.requests();
    assert!(requests[0].body["thinking"].is_object() && requests[1].body["thinking"]["type"] != "enabled");
    let told = |at: usize| requests[at].messages()[0].to_string().contains("Plan mode is on");
    assert!(!told(0), "a session without reminders gets none: {:?}", requests[0].messages());
    assert!(told(1), "create replaces the configured switches: {:?}", requests[1].messages());
    bare.call("update", json!({"mode": "default"})).await;
    let mut seen = bare.follow().await;
    daemon.models.push(Step::calls([("Bash", json!({"command": "sleep 9", "run_in_background": true}))]));
    bare.submit("go").await;
    let done = seen.wait_for("tool.completed").await;
    assert_eq!(done["code"], "too_many_background", "{done}");
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn variable_for_bare_loop_overrides_files_and_project() {
    let config = "[session]\nsimple = false";
    let daemon = TestDaemon::builder().config(config).environment("AGENTD_SIMPLE", "1").start().await;
    daemon.write(".agentd/config.toml", "[session]\nsimple = false\n[session.ablation]\nreminders = false\n");
    daemon.trust().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let ablation = session.view().await["ablation"].clone();
    let switches = ablation.as_object().expect("switches");
    assert!(!switches.is_empty() && switches.values().all(|is_off| *is_off == true), "{ablation}");
}

#[tokio::test]
async fn session_get_shows_settings_and_attached_clients() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let more = json!({"tools": {"allow": ["Read"]}, "budgets": {"model_calls": 3}, "on_restart": "pause",
        "fallback_model": "scripted/spare", "safe_mode": true, "system_prompt": "Be brief."});
    let session = alice.create_with(&daemon, more).await;
    let bob = daemon.client("bob").await.join(&session);
    let _seen = bob.follow().await;
    let view = session.view().await;
    assert_eq!(view["tools"], json!({"allow": ["Read"]}));
    assert_eq!(view["budgets"], json!({"model_calls": 3}));
    assert_eq!((&view["on_restart"], &view["safe_mode"]), (&json!("pause"), &json!(true)));
    assert_eq!(view["fallback_model"], "scripted/spare");
    assert_eq!((&view["system_prompt"], &view["additional_dirs"]), (&json!("Be brief."), &json!([])));
    let attached = view["attached"].as_array().expect("a list");
    assert_eq!((&attached[0]["name"], &attached[0]["role"]), (&json!("bob"), &json!("controller")));
    assert!(attached[0]["since_ms"].as_i64() >= view["created_at_ms"].as_i64());
    assert_eq!(
        (attached.len(), &view["clients"]),
        (1, &json!(1)),
        "a client that only calls is not attached"
    );
    let changed = session.call("update", json!({"safe_mode": false, "fallback_model": ""})).await;
    assert_eq!(changed["session"]["safe_mode"], false);
    assert_eq!(session.view().await["fallback_model"], Value::Null);
    let listed = &alice.call("session.list", json!({})).await["sessions"][0];
    assert_eq!((&listed["budgets"], &listed["number"]), (&Value::Null, &view["number"]));
}

#[tokio::test]
async fn number_is_accepted_instead_of_id() {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let first = client.create(&daemon).await;
    let second = client.create(&daemon).await;
    let number = |view: &Value| view["number"].as_u64().expect("a number");
    let (one, two) = (number(&first.view().await), number(&second.view().await));
    assert!(two > one);
    for given in [json!(two), json!(two.to_string())] {
        let got = client.call("session.get", json!({"session_id": given})).await;
        assert_eq!(got["session"]["session_id"], second.id);
        let got = client.call("session.get", json!([given])).await;
        assert_eq!(got["session"]["session_id"], second.id, "the same with positional parameters");
    }
    daemon.models.push(Step::calls([bash("touch a"), bash("touch b")]));
    daemon.models.push(Step::text("Done."));
    client.call("session.submit", json!({"session_id": one, "input": "go"})).await;
    let mut seen = first.follow().await;
    seen.find("both requests", |event| event["state"] == "requires_action").await;
    let pending = first.pending().await;
    let numbers: Vec<Value> = pending.iter().map(|it| it["number"].clone()).collect();
    assert_eq!(numbers, [json!(format!("{one}.1")), json!(format!("{one}.2"))]);
    let deny = |id: &Value| json!({"request_id": id, "decision": "deny"});
    client.call("session.approve", json!({"answers": [deny(&numbers[1])]})).await;
    client.call("session.approve", deny(&numbers[0])).await;
    seen.turn_ends("success").await;
    let refused = client.refused("session.approve", deny(&numbers[0])).await;
    assert_eq!(refused.kind, "not_pending", "a settled request keeps its number");
    assert_eq!(client.refused("session.approve", deny(&json!(format!("{one}.3")))).await.kind, "not_found");
    assert_eq!(client.refused("session.get", json!({"session_id": 999})).await.kind, "not_found");
    client.call("session.delete", json!({"session_id": two})).await;
    daemon.crash_and_restart().await;
    let third = daemon.client("bob").await.create(&daemon).await;
    assert!(number(&third.view().await) > two, "the number of a deleted session is not used again");
}
