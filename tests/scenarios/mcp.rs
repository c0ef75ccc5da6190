//! MCP servers in sessions: their tools, permissions, results, failures and lifetime.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::{MESSAGE_APIS, TestDaemon};
use crate::support::log::Log;
use crate::support::mcp_server::{McpScript, usual_tools};
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

/// A daemon with one user's server.
pub(super) async fn daemon_with(behaviour: Value, more: &str) -> (TestDaemon, McpScript) {
    let mut daemon = TestDaemon::builder().build().await;
    let script = McpScript::new(&daemon, "fake");
    script.set(behaviour);
    let config = daemon.path("config.toml");
    let text = std::fs::read_to_string(&config).expect("read") + &script.table("fake", more);
    std::fs::write(config, text).expect("written");
    daemon.launch().await;
    (daemon, script)
}

pub(super) async fn bypass(daemon: &TestDaemon) -> (Session, Log) {
    let rules = json!({"kind": "allow", "rule": "mcp__fake", "scope": "session"});
    let session = daemon.client("alice").await.create(daemon).await;
    let rule = json!({"session_id": session.id, "kind": rules["kind"], "rule": rules["rule"], "scope": rules["scope"]});
    daemon.client("rules").await.call("permission.add_rule", rule).await;
    let seen = session.follow().await;
    (session, seen)
}

/// One turn in which the model calls a tool. Returns the completed call.
pub(super) async fn turn(
    daemon: &TestDaemon,
    session: &Session,
    seen: &mut Log,
    tool: &str,
    input: Value,
) -> Value {
    daemon.models.push(Step::calls([(tool, input)]));
    daemon.models.push(Step::text("Done."));
    let before = seen.events_of("tool.completed").len();
    session.submit("go").await;
    seen.turn_ends("success").await;
    seen.events_of("tool.completed")[before].clone()
}

/// Names of the tools in the newest request.
pub(super) fn offered_tools(daemon: &TestDaemon) -> Vec<String> {
    let requests = daemon.models.requests();
    let tools = requests.last().expect("a request").body["tools"].clone();
    let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned);
    tools.as_array().into_iter().flatten().filter_map(name).collect()
}

#[tokio::test]
async fn server_tool_is_offered_asked_for_and_called() {
    for api in MESSAGE_APIS {
        let mut daemon = TestDaemon::builder().api(api).build().await;
        let script = McpScript::new(&daemon, "fake");
        script.set(json!({"instructions": "Echo politely."}));
        let config = daemon.path("config.toml");
        let text = std::fs::read_to_string(&config).expect("read") + &script.table("fake", "");
        std::fs::write(config, text).expect("written");
        daemon.launch().await;
        assert_eq!(script.count("start"), 0, "a server starts at its first use");
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::calls([("mcp__fake__echo", json!({"text": "hello"}))]));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let status = seen.wait_for("mcp.status").await;
        assert_eq!((&status["server"], &status["state"]), (&json!("fake"), &json!("ready")));
        let asked = seen.wait_for("permission.requested").await;
        assert!(asked["summary"].as_str().expect("words").starts_with("fake:echo {"), "{asked}");
        assert_eq!(asked["suggestions"], json!(["mcp__fake__echo"]));
        assert_eq!(asked["subject"]["kind"], "mcp");
        session.allow(&asked).await;
        seen.turn_ends("success").await;
        let done = &seen.events_of("tool.completed")[0];
        assert_eq!((&done["output"], &done["status"]), (&json!("hello"), &json!("completed")));
        assert!(offered_tools(&daemon).contains(&"mcp__fake__echo".to_owned()));
        let system = daemon.models.requests()[0].body.to_string();
        assert!(system.contains("Echo politely.") && system.contains("mcp_instructions"), "{system}");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn session_without_servers_gets_no_mcp_tools() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    assert!(
        seen.events().iter().all(|event| !event["type"].as_str().unwrap_or_default().starts_with("mcp."))
    );
    assert!(offered_tools(&daemon).iter().all(|name| !name.starts_with("mcp__") && name != "ToolSearch"));
}

#[tokio::test]
async fn results_of_all_kinds_reach_model_and_clients() {
    let (daemon, script) = daemon_with(json!({}), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    let failed = turn(&daemon, &session, &mut seen, "mcp__fake__fail", json!({})).await;
    assert_eq!((&failed["status"], &failed["code"]), (&json!("failed"), &json!("tool_failed")));
    assert_eq!(failed["output"], "it went wrong");
    let structured = turn(&daemon, &session, &mut seen, "mcp__fake__structured", json!({})).await;
    assert_eq!(structured["output"], r#"{"answer":42}"#);
    assert_eq!(structured["detail"]["structured"]["answer"], 42);
    let picture = turn(&daemon, &session, &mut seen, "mcp__fake__picture", json!({})).await;
    assert_eq!(picture["attachments"][0]["media_type"], "image/png", "{picture}");
    let slow = turn(&daemon, &session, &mut seen, "mcp__fake__slow", json!({})).await;
    assert_eq!(slow["output"], "slow is done");
    let progress = seen.events_of("tool.progress");
    assert!(
        progress.iter().any(|event| event["text"].to_string().contains("1 of 2: step 1")),
        "{progress:?}"
    );
    let wrong = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": 5})).await;
    assert_eq!(wrong["code"], "invalid_input");
    let unknown = turn(&daemon, &session, &mut seen, "mcp__fake__nothing", json!({})).await;
    assert_eq!(unknown["code"], "unknown_tool");
    assert_eq!(script.count("start"), 1, "one process serves all turns");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn project_server_runs_only_under_trust() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "project");
    daemon.write(".mcp.json", &json!({"mcpServers": {"fake": script.entry()}}).to_string());
    daemon.write(".mcprc", "{ this is not JSON");
    let (session, mut seen) = bypass(&daemon).await;
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    let states: Vec<Value> =
        seen.events_of("mcp.status").iter().map(|event| event["state"].clone()).collect();
    assert_eq!(states, ["untrusted", "failed"], "the second one is the broken file");
    assert_eq!(script.count("start"), 0);
    daemon.trust().await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!(done["output"], "x");
    // A changed file is not trusted any more.
    daemon.write(
        ".mcp.json",
        &json!({"mcpServers": {"fake": script.entry(), "b": {"command": "b"}}}).to_string(),
    );
    let gone = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!(gone["status"], "failed", "{gone}");
}

#[tokio::test]
async fn failing_servers_are_reported_and_leave_others_alone() {
    let mut daemon = TestDaemon::builder().build().await;
    let (good, hangs, exits) =
        (McpScript::new(&daemon, "good"), McpScript::new(&daemon, "hangs"), McpScript::new(&daemon, "exits"));
    hangs.set(json!({"mode": "hang"}));
    exits.set(json!({"mode": "exit"}));
    let config = daemon.path("config.toml");
    let text = std::fs::read_to_string(&config).expect("read")
        + &good.table("fake", "")
        + &hangs.table("hangs", "startup_timeout = \"1s\"")
        + &exits.table("exits", "")
        + "[mcp.missing]\ncommand = \"/no/such/program\"\n[mcp.unset]\ncommand = \"x\"\nargs = [\"${NOT_SET}\"]\n";
    std::fs::write(config, text).expect("written");
    daemon.launch().await;
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!(done["output"], "x");
    let error_of = |server: &str| {
        let statuses = seen.events_of("mcp.status");
        let status = statuses.iter().find(|event| event["server"] == server && event["state"] == "failed");
        status.unwrap_or_else(|| panic!("{server}: {statuses:?}"))["error"]
            .as_str()
            .expect("words")
            .to_owned()
    };
    assert!(error_of("hangs").contains("within 1 s"), "{}", error_of("hangs"));
    assert!(error_of("exits").contains("exited with status 7") && error_of("exits").contains("no licence"));
    assert!(error_of("missing").contains("no such program"), "{}", error_of("missing"));
    assert!(error_of("unset").contains("NOT_SET"), "{}", error_of("unset"));
    let request = daemon.models.requests()[0].body.to_string();
    assert!(request.contains("MCP server exits"), "the model is told: {request}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn call_that_kills_floods_or_hangs_its_server_ends_in_bounded_time() {
    let (daemon, script) = daemon_with(json!({}), "timeout = \"8s\"").await;
    let (session, mut seen) = bypass(&daemon).await;
    for (tool, code, words) in [
        ("mcp__fake__die", "outcome_unknown", "exited with status 3"),
        ("mcp__fake__huge", "outcome_unknown", "16 MiB"),
        ("mcp__fake__flood", "outcome_unknown", "messages"),
    ] {
        // The server may still restart; its tools come back with a later turn.
        let done = call_until_available(&daemon, &session, &mut seen, tool).await;
        assert_eq!(done["code"], code, "{tool}: {done}");
        assert!(done["output"].as_str().expect("words").contains(words), "{tool}: {done}");
    }
    let done = call_until_available(&daemon, &session, &mut seen, "mcp__fake__hang").await;
    assert_eq!(done["code"], "timed_out");
    assert!(script.count("start") >= 4, "it was restarted: {:?}", script.lines());
    assert!(seen.events_of("mcp.status").iter().any(|event| event["state"] == "failed"));
}

/// Calls a tool in turns until its server is there again.
async fn call_until_available(daemon: &TestDaemon, session: &Session, seen: &mut Log, tool: &str) -> Value {
    for _ in 0..40 {
        let done = turn(daemon, session, seen, tool, json!({})).await;
        if done["code"] != "unknown_tool" && done["code"] != "mcp_unavailable" {
            return done;
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    panic!("{tool} is not there: {:?}", seen.events_of("mcp.status"));
}

#[tokio::test]
async fn abort_cancels_running_server_call() {
    let (daemon, script) = daemon_with(json!({}), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    daemon.models.push(Step::calls([("mcp__fake__hang", json!({}))]));
    session.submit("go").await;
    seen.wait_for("tool.started").await;
    poll_until(
        "the call",
        || format!("{:?}", script.lines()),
        || (script.count("call hang") == 1).then_some(()),
    )
    .await;
    session.call("abort", json!({})).await;
    let done = seen.wait_for("tool.completed").await;
    assert_eq!(done["status"], "cancelled");
    seen.turn_ends("aborted").await;
    poll_until(
        "the server to hear of it",
        || format!("{:?}", script.lines()),
        || (script.count("cancelled") == 1).then_some(()),
    )
    .await;
}

#[tokio::test]
async fn hanging_server_call_leaves_other_sessions_alone() {
    let (daemon, script) = daemon_with(json!({}), "").await;
    let (one, mut seen_one) = bypass(&daemon).await;
    daemon.models.push(Step::calls([("mcp__fake__hang", json!({}))]));
    one.submit("go").await;
    seen_one.wait_for("tool.started").await;
    poll_until(
        "the call",
        || format!("{:?}", script.lines()),
        || (script.count("call hang") == 1).then_some(()),
    )
    .await;
    let (two, mut seen_two) = bypass(&daemon).await;
    let done = turn(&daemon, &two, &mut seen_two, "mcp__fake__echo", json!({"text": "meanwhile"})).await;
    assert_eq!(done["output"], "meanwhile");
    assert_eq!(script.count("start"), 1, "both use one process");
    one.call("abort", json!({})).await;
    seen_one.turn_ends("aborted").await;
}

#[tokio::test]
async fn tools_changed_in_turn_apply_to_next_turn_and_ask_again() {
    let (daemon, script) = daemon_with(json!({}), "").await;
    let mut tools = usual_tools();
    tools
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "announce", "inputSchema": {"type": "object"}}));
    script.set(json!({"tools": tools}));
    let (session, mut seen) = bypass(&daemon).await;
    turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    tools[0]["description"] = json!("The tool echo, with a trick");
    tools.as_array_mut().expect("a list").push(json!({"name": "extra", "inputSchema": {"type": "object"}}));
    // The list changes within this turn.
    daemon.models.push(Step::calls([("mcp__fake__announce", json!({}))]));
    script.set(json!({"tools": tools}));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert!(!offered_tools(&daemon).contains(&"mcp__fake__extra".to_owned()), "the turn keeps its tools");
    poll_until("the new list", String::new, || {
        // The server answers its new list soon.
        (script.count("call announce") == 1).then_some(())
    })
    .await;
    let has_extra = || async {
        let reply = daemon
            .client("bob")
            .await
            .call("mcp.tools", json!({"name": "fake", "cwd": daemon.workspace()}))
            .await;
        reply["tools"].to_string().contains("mcp__fake__extra")
    };
    for _ in 0..100 {
        if has_extra().await {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    // The rule allowed the old definition.
    daemon.models.push(Step::calls([("mcp__fake__echo", json!({"text": "x"}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("again").await;
    let asked = seen.wait_for("permission.requested").await;
    assert!(asked["reason"].as_str().expect("words").contains("has changed"), "{asked}");
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(offered_tools(&daemon).contains(&"mcp__fake__extra".to_owned()));
    // After one approval, the tool needs no further request.
    turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!(seen.events_of("permission.requested").len(), 1);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn running_server_call_is_unknown_after_crash() {
    let (mut daemon, script) = daemon_with(json!({}), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    daemon.models.push(Step::calls([("mcp__fake__hang", json!({}))]));
    session.submit("go").await;
    seen.wait_for("tool.started").await;
    poll_until(
        "the call",
        || format!("{:?}", script.lines()),
        || (script.count("call hang") == 1).then_some(()),
    )
    .await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    let question = seen.wait_for("question.requested").await;
    assert_eq!(question["kind"], "unknown_outcome");
    assert_eq!(script.count("call hang"), 1, "it does not run again");
    // The tools are in the journal, so the next model request offers them without asking the server again.
    daemon.models.push(Step::calls([("mcp__fake__echo", json!({"text": "after"}))]));
    daemon.models.push(Step::text("Done."));
    let answer = json!({"request_id": question["request_id"], "choice": "continue"});
    daemon.client("carol").await.call("session.answer", answer).await;
    seen.turn_ends("success").await;
    let done = seen.events_of("tool.completed");
    assert_eq!(done.last().expect("a call")["output"], "after");
}

#[tokio::test]
async fn server_environment_holds_no_secrets_of_daemon() {
    let mut daemon = TestDaemon::builder().environment("MY_API_KEY", "canary").build().await;
    let script = McpScript::new(&daemon, "fake");
    let config = daemon.path("config.toml");
    let text = std::fs::read_to_string(&config).expect("read") + &script.table("fake", "");
    std::fs::write(config, text).expect("written");
    daemon.launch().await;
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__env", json!({})).await;
    let names = done["output"].as_str().expect("names");
    assert!(names.contains("PATH") && names.contains("MCP_SCRIPT"), "{names}");
    assert!(!names.contains("MY_API_KEY"), "{names}");
}

#[tokio::test]
async fn http_server_gets_headers_from_environment() {
    let mut daemon = TestDaemon::builder().environment("MCP_TOKEN", "canary-token").build().await;
    let script = McpScript::new(&daemon, "fake");
    let (url, heads) = script.serve_http();
    let config = daemon.path("config.toml");
    let text = std::fs::read_to_string(&config).expect("read")
        + &format!(
            "[mcp.fake]\nurl = \"{url}\"\nheaders = {{ Authorization = \"Bearer ${{MCP_TOKEN}}\" }}\nheaders_command = \"echo '{{\\\"X-More\\\": \\\"yes\\\"}}'\"\n"
        );
    std::fs::write(config, text).expect("written");
    daemon.launch().await;
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "over http"})).await;
    assert_eq!(done["output"], "over http");
    let heads = heads.lock().expect("a lock").join("\n").to_lowercase();
    assert!(heads.contains("authorization: bearer canary-token") && heads.contains("x-more: yes"), "{heads}");
    let written = daemon.all_written_bytes();
    assert!(!String::from_utf8_lossy(&written).contains("canary-token"), "the token is stored nowhere");
}

#[tokio::test]
async fn sessions_share_server_until_both_are_gone() {
    let (daemon, script) = daemon_with(json!({}), "").await;
    let (one, mut seen_one) = bypass(&daemon).await;
    let (two, mut seen_two) = bypass(&daemon).await;
    turn(&daemon, &one, &mut seen_one, "mcp__fake__echo", json!({"text": "1"})).await;
    turn(&daemon, &two, &mut seen_two, "mcp__fake__echo", json!({"text": "2"})).await;
    assert_eq!(script.count("start"), 1, "{:?}", script.lines());
}
