//! Sub-agents: sessions that the tool Task starts. They run in parallel, their requests reach the clients of the
//! session that started them, they share its limits, and they continue after a crash.

use serde_json::{Value, json};

use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Gate, Request, Step};

/// A model with prices, so that costs can be added up.
const PRICED: &str = "[model.\"scripted/model\"]\nprice = { input = 2.0, output = 10.0 }";

fn task(agent: &str, prompt: &str) -> (&'static str, Value) {
    ("Task", json!({"description": format!("do {prompt}"), "prompt": prompt, "subagent_type": agent}))
}

/// The first text of the conversation: the task of a sub-agent, or the user's input.
pub(super) fn begins_with(request: &Request) -> String {
    request.messages()[0]["content"].to_string()
}

/// The session of a sub-agent, for a client.
fn child(session: &Session, client: &Client, started: &Value) -> Session {
    let id = started["child_session_id"].as_str().expect("an id");
    client.join(&Session { id: id.into(), ..session.clone() })
}

async fn allow(client: &Client, request: &Value) {
    let answer = json!({"request_id": request["request_id"], "decision": "allow"});
    client.call("session.approve", answer).await;
}

fn at_ms(event: &Value) -> u64 {
    event["at_ms"].as_u64().expect("a time")
}

/// Waits until the log has `count` events of this kind.
async fn count_of(log: &mut Log, kind: &str, count: usize) -> Vec<Value> {
    while log.events_of(kind).len() < count {
        log.wait_for(kind).await;
    }
    log.events_of(kind)
}

/// A model whose sub-agents each run one command that needs a request, and then report.
fn three_with_requests(daemon: &TestDaemon) {
    daemon.models.set_fallback(|request| {
        let first = begins_with(request);
        match (request.tool_results().len(), first.contains("delegate")) {
            (0, true) => Step::calls(["one", "two", "three"].map(|name| task("general-purpose", name))),
            (_, true) => Step::text("All done."),
            (0, false) => {
                let name =
                    ["one", "two", "three"].into_iter().find(|name| first.contains(name)).expect("a task");
                Step::calls([("Bash", json!({"command": format!("echo {name} >> ran.txt")}))])
            }
            (_, false) => Step::text("I did it.").usage(10, 5),
        }
    });
}

#[tokio::test]
async fn three_parallel_subagents_ask_through_one_session() {
    let daemon = TestDaemon::builder().config(PRICED).start().await;
    three_with_requests(&daemon);
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    let requests = count_of(&mut log, "permission.requested", 3).await;
    let started = log.events_of("subagent.started");
    assert_eq!(started.len(), 3, "all run at the same time");
    assert_eq!(session.view().await["requires"], "permission");
    for request in &requests {
        assert_eq!(request["session_id"], session.id.as_str());
        assert!(started.iter().any(|it| it["child_session_id"] == request["child_session_id"]), "{request}");
    }
    // Each request is listed once, with the sub-agent's session, and not again for the parent.
    let listed = alice.call("permission.list", json!({})).await;
    assert_eq!(listed["requests"].as_array().expect("a list").len(), 3, "{listed}");
    for request in &requests {
        allow(&alice, request).await;
    }
    let result = log.turn_ends("success").await;
    assert_eq!(result["text"], "All done.");
    assert_eq!(count_of(&mut log, "permission.resolved", 3).await.len(), 3);
    // The requests overlap: the turn waited for the user from the first one to the last answer.
    let (asked, resolved) = (log.events_of("permission.requested"), log.events_of("permission.resolved"));
    let waited = at_ms(&resolved[2]) - at_ms(&asked[0]);
    assert_eq!(result["permission_ms"], waited, "{result}");
    let done = log.events_of("subagent.completed");
    assert_eq!(done.len(), 3);
    let mut ran: Vec<String> = daemon.read("ran.txt").lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran, ["one", "three", "two"]);
    // Costs add up: the session's usage is its own and that of its sub-agents.
    let usage = &session.view().await["usage"];
    let mut output = 0;
    for event in &done {
        assert_eq!(event["result"]["text"], "I did it.");
        output += event["result"]["usage"]["output_tokens"].as_u64().expect("a number");
    }
    let own: u64 = log
        .events_of("message.completed")
        .iter()
        .filter_map(|event| event["usage"]["output_tokens"].as_u64())
        .sum();
    assert_eq!(usage["output_tokens"], own + output);
    let of_children = result["cost_usd_micros"].as_u64().expect("a price");
    assert_eq!(session.view().await["cost_usd_micros"], of_children);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn subagent_takes_over_thinking_sampling_and_fallback_model() {
    let config = "[model.\"scripted/model\"]\nthinking = true\n[permissions]\nallow = [\"Task\"]";
    let daemon = TestDaemon::builder().config(config).start().await;
    daemon.write(
        ".agentd/agents/own.md",
        "---\nname: own\ndescription: x\nthinking: off\ntemperature: 0.25\nfallback_model: scripted/other\n---\nx",
    );
    daemon.trust().await;
    daemon.models.set_fallback(|request| {
        match (begins_with(request).contains("delegate"), request.tool_results().len()) {
            (true, 0) => Step::calls([task("explore", "look"), task("own", "look")]),
            _ => Step::text("Fine."),
        }
    });
    let alice = daemon.client("alice").await;
    let more = json!({"thinking": "low", "top_p": 0.5, "fallback_model": "scripted/spare"});
    let session = alice.create_with(&daemon, more).await;
    let mut log = session.follow().await;
    // The turn's own values count, as the sub-agent works for this turn.
    session.submit_with(json!({"input": "delegate", "thinking": "high"})).await;
    log.turn_ends("success").await;
    let expected = [
        ("explore", json!("high"), Value::Null, json!(0.5), json!("scripted/spare")),
        ("own", json!("off"), json!(0.25), json!(0.5), json!("scripted/other")),
    ];
    for started in log.events_of("subagent.started") {
        let child = child(&session, &alice, &started);
        let created = child.events().await[0].clone();
        let (_, thinking, temperature, top_p, fallback) =
            expected.iter().find(|it| started["agent"] == it.0).expect("an agent of this test");
        assert_eq!((&created["thinking"], &created["temperature"]), (thinking, temperature), "{created}");
        assert_eq!((&created["top_p"], &created["fallback_model"]), (top_p, fallback), "{created}");
    }
    assert_eq!(log.events_of("subagent.started").len(), 2);
}

#[tokio::test]
async fn subagent_is_listed_below_its_parent_and_attachable() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    daemon.models.set_fallback(move |request| {
        match (begins_with(request).contains("delegate"), request.tool_results().len()) {
            (true, 0) => Step::calls([task("explore", "look")]),
            (true, _) => Step::text("Fine."),
            (false, _) => Step::text("Found it.").hold(&held),
        }
    });
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    let started = log.wait_for("subagent.started").await;
    gate.wait_reached().await;
    let plain = alice.call("session.list", json!({})).await;
    assert_eq!(plain["sessions"].as_array().expect("a list").len(), 1, "{plain}");
    let all = alice.call("session.list", json!({"include_children": true})).await;
    let sessions = all["sessions"].as_array().expect("a list");
    let below = sessions.iter().find(|it| it["session_id"] == started["child_session_id"]).expect("listed");
    assert_eq!(below["parent_session_id"], session.id.as_str());
    assert_eq!((&below["parent_call_id"], &below["agent"]), (&started["call_id"], &json!("explore")));
    let child = child(&session, &alice, &started);
    let mut below = child.follow().await;
    assert_eq!(below.wait_for("turn.started").await["parent_call_id"], started["call_id"]);
    // The read-only agent is offered only its own tools.
    let request =
        daemon.models.requests().into_iter().find(|it| !begins_with(it).contains("delegate")).expect("asked");
    let mut tools: Vec<&str> = request.body["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    tools.sort_unstable();
    assert_eq!(tools, ["Glob", "Grep", "LS", "Read"]);
    gate.open();
    below.turn_ends("success").await;
    assert_eq!(log.turn_ends("success").await["text"], "Fine.");
}

#[tokio::test]
async fn abort_of_parent_ends_all_subagents() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    daemon.models.set_fallback(|request| match begins_with(request).contains("delegate") {
        true => Step::calls([task("general-purpose", "one"), task("general-purpose", "two")]),
        false => Step::calls([("Bash", json!({"command": "sleep 1000"}))]),
    });
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    let started = count_of(&mut log, "subagent.started", 2).await;
    daemon.tool_processes_reach(|count| count >= 2).await;
    session.call("abort", json!({})).await;
    assert_eq!(daemon.tool_processes(), [], "nothing runs when the abort returns");
    log.turn_ends("aborted").await;
    assert_eq!(log.events_of("subagent.completed").len(), 2);
    for event in &started {
        assert_eq!(child(&session, &alice, event).view().await["state"], "ended");
    }
}

#[tokio::test]
async fn subagents_continue_after_kill_and_run_nothing_twice() {
    let mut daemon = TestDaemon::start().await;
    three_with_requests(&daemon);
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    let requests = count_of(&mut log, "permission.requested", 3).await;
    allow(&daemon.client("bob").await, &requests[0]).await;
    count_of(&mut log, "permission.resolved", 1).await;
    daemon.crash_and_restart().await;
    let bob = daemon.client("bob").await;
    let session = bob.join(&session);
    let mut log = session.follow().await;
    for request in &requests[1..] {
        allow(&bob, request).await;
    }
    // The command that was allowed before the crash may have been running: then its outcome is unknown.
    loop {
        let all = bob.call("session.list", json!({"include_children": true})).await;
        let sessions = all["sessions"].as_array().expect("a list").clone();
        let asks = sessions.iter().find(|it| it["requires"] == "unknown_outcome");
        if let Some(asks) = asks {
            let id = asks["session_id"].as_str().expect("an id");
            let asking = bob.join(&Session { id: id.into(), ..session.clone() });
            let question = asking.events().await.into_iter().rfind(|it| it["type"] == "question.requested");
            let question = question.expect("a question");
            bob.call("session.answer", json!({"request_id": question["request_id"], "choice": "continue"}))
                .await;
        }
        if session.view().await["state"] == "idle" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(log.turn_ends("success").await["text"], "All done.");
    let events = session.events().await;
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("subagent.started"), of("subagent.completed")), (3, 3));
    assert_eq!(of("permission.requested"), 3, "each request is shown once");
    let mut ran: Vec<String> = daemon.read("ran.txt").lines().map(str::to_owned).collect();
    let all = ran.len();
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), all, "no command ran twice");
    assert!(all >= 2, "the daemon may have died before the first command: {ran:?}");
}

#[tokio::test]
async fn subagents_share_remaining_session_budget() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|request| {
        match (begins_with(request).contains("delegate"), request.tool_results().len()) {
            (true, 0) => Step::calls([task("explore", "one"), task("explore", "two")]),
            (true, _) => Step::text("Enough."),
            // A sub-agent requests calls without end until its limit.
            (false, _) => Step::calls([("LS", json!({"path": "."}))]),
        }
    });
    let alice = daemon.client("alice").await;
    let session = alice.create_with(&daemon, json!({"budgets": {"session_model_calls": 8}})).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    log.turn_ends("success").await;
    for done in log.events_of("subagent.completed") {
        assert_eq!(done["result"]["subtype"], "error_max_turns", "{done}");
    }
    let reserved: Vec<u64> = log
        .events_of("subagent.started")
        .iter()
        .filter_map(|it| it["budgets"]["session_model_calls"].as_u64())
        .collect();
    // Seven calls are left. The first share is a third of them, or a half if the second call is not prepared yet.
    assert!(matches!(reserved[..], [2 | 3, 2]), "{reserved:?}");
    assert!(daemon.models.requests().len() <= 8, "{}", daemon.models.requests().len());
}

#[tokio::test]
async fn agents_that_call_each_other_end_at_the_depth_limit() {
    let daemon = TestDaemon::builder().config("[limits]\nsubagent_depth = 2").start().await;
    daemon.models.set_fallback(|request| match request.tool_results().len() {
        0 => Step::calls([task("general-purpose", "again")]),
        _ => Step::text("Back."),
    });
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    log.turn_ends("success").await;
    let all = alice.call("session.list", json!({"include_children": true})).await;
    assert_eq!(all["sessions"].as_array().expect("a list").len(), 3, "the session and two levels: {all}");
    let deepest = &daemon.models.requests()[2];
    let tools = deepest.body["tools"].as_array().expect("tools");
    assert!(tools.iter().all(|it| it["name"] != "Task"), "not offered at the limit");
}

#[tokio::test]
async fn abort_of_idle_session_starts_no_turn() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    daemon.models.set_fallback(move |request| {
        if !begins_with(request).contains("delegate") {
            return Step::text("Found it.").hold(&held);
        }
        if request.tool_results().is_empty() {
            let input = json!({"description": "d", "prompt": "look", "subagent_type": "explore", "run_in_background": true});
            return Step::calls([("Task", input)]);
        }
        Step::text("It runs.")
    });
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    log.turn_ends("success").await;
    session.call("abort", json!({})).await;
    let ended = count_of(&mut log, "subagent.completed", 1).await;
    assert_eq!(ended[0]["result"]["subtype"], "aborted");
    // The daemon tells the model with the next input. No turn runs before that.
    session.submit("go on").await;
    log.turn_ends("success").await;
    assert_eq!(log.events_of("turn.started").len(), 2);
    let reminders = log.events_of("reminder.added");
    assert!(reminders.iter().any(|event| event["kind"] == "subagents_aborted"), "{reminders:?}");
    gate.open();
}

#[tokio::test]
async fn agent_file_gives_prompt_and_tools_under_trust_only() {
    let daemon = TestDaemon::start().await;
    daemon.write(
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews code\ntools: Read, Grep\nmodel: opus\n---\nYou are strict.\n",
    );
    daemon.write(".claude/agents/broken.md", "---\nname: broken\n---\nx");
    let alice = daemon.client("alice").await;
    let cwd = daemon.workspace();
    let before = alice.call("agent.list", json!({"cwd": cwd})).await;
    let names = |list: &Value| -> Vec<String> {
        let agents = list["agents"].as_array().expect("a list");
        agents.iter().map(|it| it["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&before), ["general-purpose", "explore"]);
    assert!(
        before["diagnostics"][0]["message"].as_str().expect("a text").contains("not trusted"),
        "{before}"
    );
    let refused = alice.refused("session.create", json!({"cwd": cwd, "agent": "reviewer"})).await;
    assert_eq!(refused.data["path"], "agent", "{refused:?}");

    daemon.trust().await;
    let list = alice.call("agent.list", json!({"cwd": cwd})).await;
    assert_eq!(names(&list), ["reviewer", "general-purpose", "explore"]);
    assert_eq!(list["agents"][0]["tools"], json!(["Read", "Grep"]));
    assert_eq!(
        (&list["agents"][0]["source"], list["diagnostics"].as_array().map(Vec::len)),
        (&json!("project"), Some(2))
    );
    let session = alice.create_with(&daemon, json!({"agent": "reviewer"})).await;
    let mut log = session.follow().await;
    daemon.models.push(Step::text("No."));
    session.submit("look at it").await;
    log.turn_ends("success").await;
    let request = &daemon.models.requests()[0];
    assert!(request.body["system"].to_string().contains("You are strict."), "{}", request.body["system"]);
    assert_eq!(request.body["tools"].as_array().expect("tools").len(), 2);
    assert_eq!(session.view().await["agent"], "reviewer");
}

#[tokio::test]
async fn wrong_task_calls_say_what_to_fix() {
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::calls([task("unknown", "x"), task("explore", " ")]));
    daemon.models.push(Step::text("Well."));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    log.turn_ends("success").await;
    let done = log.events_of("tool.completed");
    assert_eq!(done[0]["code"], "unknown_agent");
    assert!(done[0]["output"].as_str().expect("a text").contains("general-purpose, explore"), "{}", done[0]);
    assert_eq!(done[1]["code"], "invalid_input");
    assert!(log.events_of("subagent.started").is_empty());
}

#[tokio::test]
async fn question_of_subagent_is_answered_through_its_parent() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|request| match (begins_with(request).contains("delegate"), request.tool_results().len()) {
        (true, 0) => Step::calls([task("general-purpose", "choose")]),
        (true, _) => Step::text("Chosen."),
        (false, 0) => Step::calls([(
            "AskUser",
            json!({"questions": [{"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]}),
        )]),
        (false, _) => Step::text("Thanks."),
    });
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    let question = log.wait_for("question.requested").await;
    let started = &log.events_of("subagent.started")[0];
    assert_eq!(question["child_session_id"], started["child_session_id"]);
    assert_eq!(session.view().await["requires"], "question");
    let answers = json!([{"choices": ["blue"]}]);
    alice.call("session.answer", json!({"request_id": question["request_id"], "answers": answers})).await;
    assert_eq!(log.turn_ends("success").await["text"], "Chosen.");
    assert_eq!(log.events_of("question.resolved").len(), 1);
}

#[tokio::test]
async fn kill_and_delete_include_subagents() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|request| {
        match (begins_with(request).contains("delegate"), request.tool_results().len()) {
            (true, 0) => Step::calls([task("explore", "look")]),
            _ => Step::text("Fine."),
        }
    });
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    log.turn_ends("success").await;
    let started = log.events_of("subagent.started")[0].clone();
    let child = child(&session, &alice, &started);
    assert_eq!(child.view().await["state"], "idle", "it can be continued by a user");
    session.call("kill", json!({})).await;
    assert_eq!(child.view().await["state"], "ended");
    session.call("delete", json!({})).await;
    assert_eq!(child.refused("get", json!({})).await.kind, "not_found");
}

#[tokio::test]
async fn coordinator_hands_work_to_subagents_with_shared_folder() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Write\"]").start().await;
    daemon.models.set_fallback(|request| {
        let is_coordinator = request.body["system"].to_string().contains("You coordinate.");
        match (is_coordinator, request.tool_results().len()) {
            (true, 0) => {
                let system = request.body["system"].to_string();
                let folder =
                    system.split("scratch folder ").nth(1).and_then(|text| text.split(". Let").next());
                let prompt = format!("write to {}/notes.txt", folder.expect("it is named"));
                Step::calls([task("general-purpose", &prompt)])
            }
            (true, _) => Step::text("It is written."),
            (false, 0) => {
                let first = begins_with(request);
                let path =
                    first.split("write to ").nth(1).and_then(|text| text.split('"').next()).expect("a path");
                let path = path.trim_end_matches('\\');
                Step::calls([("Write", json!({"file_path": path, "content": "shared\n"}))])
            }
            (false, _) => Step::text("Done."),
        }
    });
    let alice = daemon.client("alice").await;
    let session = alice.create_with(&daemon, json!({"coordinator": true})).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    assert_eq!(log.turn_ends("success").await["text"], "It is written.");
    let started = log.events_of("subagent.started")[0].clone();
    let events = child(&session, &alice, &started).events().await;
    let written = events.iter().find(|event| event["type"] == "tool.completed").expect("a result");
    assert_eq!(written["status"], "completed", "{written}");
    let folder = session.view().await["additional_dirs"][0].as_str().expect("a folder").to_owned();
    assert_eq!(std::fs::read_to_string(format!("{folder}/notes.txt")).expect("written"), "shared\n");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&folder).expect("a folder").permissions());
    assert_eq!(mode & 0o777, 0o700, "other users cannot read it");
    let offered = daemon.models.requests()[0].body["tools"].to_string();
    assert!(offered.contains("\"Task\"") && !offered.contains("\"Write\"") && !offered.contains("\"Bash\""));
    let _ = std::fs::remove_dir_all(folder);
    let both = json!({"cwd": daemon.workspace(), "coordinator": true, "agent": "explore"});
    assert_eq!(alice.refused("session.create", both).await.data["path"], "coordinator");
}

#[tokio::test]
async fn agent_with_more_tools_than_were_judged_is_not_started() {
    let daemon = TestDaemon::builder().config("[permissions]\nask = [\"Task\"]\n").start().await;
    let folder = daemon.path("home/.claude/agents");
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |tools: &str| {
        let text = format!("---\nname: look\ndescription: Looks\ntools: {tools}\n---\nLook.\n");
        std::fs::write(folder.join("look.md"), text).expect("written");
    };
    write("Read");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(Step::calls([task("look", "x")]));
    daemon.models.push(Step::text("Well."));
    session.submit("go").await;
    let asked = log.wait_for("permission.requested").await;
    write("Read, Bash");
    session.allow(&asked).await;
    log.turn_ends("success").await;
    let done = &log.events_of("tool.completed")[0];
    assert_eq!(done["status"], "failed", "{done}");
    assert!(done["output"].as_str().expect("a text").contains("call it again"), "{done}");
}
