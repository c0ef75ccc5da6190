//! MCP servers that do not keep to the protocol, or that start slowly, and configurations in the forms of other programs.

use serde_json::{Value, json};

use crate::scenarios::mcp::{bypass, daemon_with, offered_tools, turn};
use crate::support::daemon::{MESSAGE_APIS, TestDaemon};
use crate::support::mcp_server::{McpScript, tools_with, usual_tools};
use crate::support::model_server::Step;

/// The usual tools and these.
fn tools_and(more: &Value) -> Value {
    let mut tools = usual_tools();
    tools.as_array_mut().expect("a list").extend(more.as_array().expect("a list").iter().cloned());
    tools
}

#[tokio::test]
async fn bad_tools_are_named_and_others_are_offered() {
    let schema = json!({"type": "object", "properties": {}});
    let odd = json!([
        {"name": "no_schema"},
        {"name": "odd_output", "inputSchema": schema, "outputSchema": true},
        {"name": "odd_hint", "inputSchema": schema, "annotations": {"readOnlyHint": "true"}},
        {"inputSchema": schema},
        {"name": "of_list", "inputSchema": {"type": "array"}},
        {"name": "long", "description": "x".repeat(1 << 20), "inputSchema": schema},
    ]);
    let (daemon, _script) = daemon_with(json!({"tools": tools_and(&odd)}), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!(done["output"], "x");
    let offered = offered_tools(&daemon);
    for (tool, expected) in
        [("no_schema", true), ("odd_output", true), ("odd_hint", true), ("long", true), ("of_list", false)]
    {
        assert_eq!(offered.contains(&format!("mcp__fake__{tool}")), expected, "{tool}: {offered:?}");
    }
    let notes = seen.events_of("mcp.status")[0]["notes"].to_string();
    for part in ["no_schema", "odd_output", "odd_hint", "it has no name", "of_list", "long"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    let listed = daemon.client("bob").await.call("mcp.list", json!({"cwd": daemon.workspace()})).await;
    assert!(listed["servers"][0]["notes"].to_string().contains("of_list"), "{listed}");
    assert!(daemon.models.requests()[0].body.to_string().len() < 200_000, "the long description is cut");
}

#[tokio::test]
async fn odd_results_reach_model_because_tool_ran() {
    let (daemon, script) = daemon_with(json!({"tools": tools_with(&["raw"])}), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    let before = json!({"type": "text", "text": "before"});
    for (result, expected) in [
        (
            json!({"content": [before, {"type": "video", "url": "v"}]}),
            "before\n[a part of the kind \"video\"",
        ),
        (
            json!({"content": [before, {"type": "text", "text": 5, "annotations": {"priority": "high"}}]}),
            "before\n5",
        ),
        (json!({"content": [before], "structuredContent": {"a": 1}}), "before\n{\"a\":1}"),
        (json!({"content": "alone"}), "alone"),
    ] {
        script.set(json!({"tools": tools_with(&["raw"]), "result": result}));
        let done = turn(&daemon, &session, &mut seen, "mcp__fake__raw", json!({})).await;
        assert_eq!(done["status"], "completed", "{done}");
        assert!(done["output"].as_str().expect("words").starts_with(expected), "{done}");
    }
    script.set(json!({"tools": tools_with(&["raw"]), "result": {"tools": "none"}}));
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__raw", json!({})).await;
    assert_eq!(done["code"], "outcome_unknown", "{done}");
    let words = done["output"].as_str().expect("words");
    assert!(words.contains("has probably run") && !words.contains("refused"), "{words}");
}

#[tokio::test]
async fn odd_schemas_are_fitted_and_arguments_keep_their_names() {
    let odd = json!([
        {"name": "arguments", "inputSchema": {"type": "object", "properties": {
            "uids[]": {"type": "array"}, "$filter": {"type": "object", "properties": {"天气": {"type": "string"}}},
        }, "required": ["uids[]"]}},
        {"name": "either", "inputSchema": {"anyOf": [
            {"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}},
        ]}},
        {"name": "nulls", "inputSchema": {"type": "object", "properties": null, "required": null}},
        {"name": "unfit", "inputSchema": {"oneOf": [{"type": "string"}]}},
    ]);
    for api in MESSAGE_APIS {
        let mut daemon = TestDaemon::builder().api(api).build().await;
        let script = McpScript::new(&daemon, "fake");
        script.set(json!({"tools": tools_and(&odd)}));
        let config = daemon.path("config.toml");
        let text = std::fs::read_to_string(&config).expect("read") + &script.table("fake", "");
        std::fs::write(config, text).expect("written");
        daemon.launch().await;
        let (session, mut seen) = bypass(&daemon).await;
        turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
        let body = daemon.models.requests()[0].body.to_string();
        let name_like = |begin: &str| {
            let at = body.find(&format!("\"{begin}_")).unwrap_or_else(|| panic!("{begin}: {body}"));
            body[at + 1..].split('"').next().expect("a name").to_owned()
        };
        let (uids, filter, weather) = (name_like("uids"), name_like("filter"), name_like("property"));
        let input = json!({ uids: [1], filter: { weather: "sun" } });
        let done = turn(&daemon, &session, &mut seen, "mcp__fake__arguments", input).await;
        let received: Value = serde_json::from_str(done["output"].as_str().expect("words")).expect("JSON");
        assert_eq!(received, json!({"uids[]": [1], "$filter": {"天气": "sun"}}));
        let offered = offered_tools(&daemon);
        assert!(
            offered.contains(&"mcp__fake__either".into()) && !offered.contains(&"mcp__fake__unfit".into())
        );
        let notices = seen
            .events()
            .iter()
            .filter(|event| event.to_string().contains("mcp__fake__unfit is left out"))
            .count();
        assert!(notices > 0, "{:?}", seen.events());
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn refused_tool_is_left_out_of_later_requests() {
    let (daemon, _script) = daemon_with(json!({}), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    let refusal = "Invalid schema for function 'mcp__fake__hang': something that no rule knows";
    daemon.models.push(Step::error(400, "invalid_request_error", refusal));
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    let done = seen.turn_ends("success").await;
    assert_eq!(daemon.models.requests().len(), 2, "{done}");
    assert!(!offered_tools(&daemon).contains(&"mcp__fake__hang".into()));
    assert!(seen.events().iter().any(|event| event.to_string().contains("mcp__fake__hang is left out")));
    daemon.models.push(Step::text("Again."));
    session.submit("again").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.models.requests().len(), 3, "it is not offered again");
    assert!(!offered_tools(&daemon).contains(&"mcp__fake__hang".into()));
}

#[tokio::test]
async fn slow_server_joins_later_turn_after_one_start() {
    let mut daemon = TestDaemon::builder().build().await;
    let script = McpScript::new(&daemon, "fake");
    let gate = daemon.path("gate");
    script.set(json!({"gate": gate}));
    let config = daemon.path("config.toml");
    let text = std::fs::read_to_string(&config).expect("read") + &script.table("fake", "");
    std::fs::write(config, text).expect("written");
    daemon.launch().await;
    let (session, mut seen) = bypass(&daemon).await;
    for text in ["one", "two"] {
        daemon.models.push(Step::text("Without it."));
        session.submit(text).await;
        seen.turn_ends("success").await;
        assert!(offered_tools(&daemon).iter().all(|name| !name.starts_with("mcp__")));
    }
    assert_eq!(seen.events_of("mcp.status")[0]["state"], "starting");
    let request = daemon.models.requests()[0].body.to_string();
    assert!(request.contains("it still starts"), "the model is told: {request}");
    std::fs::write(&gate, "").expect("written");
    while seen.events_of("mcp.status").last().is_none_or(|status| status["state"] != "ready") {
        seen.wait_for("mcp.status").await;
    }
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!(done["output"], "x");
    assert_eq!(script.count("start"), 1, "{:?}", script.lines());
}

#[tokio::test]
async fn stray_messages_before_handshake_are_ignored_and_logged() {
    let error = json!({"code": -32600, "message": "Invalid Request"});
    for stray in [
        json!([{"jsonrpc": "2.0", "id": 77, "result": {}}]),
        json!([{"jsonrpc": "2.0", "id": "x", "error": error}]),
        json!([{"jsonrpc": "2.0", "id": null, "error": error}, {"jsonrpc": "2.0", "id": 78, "result": {"tools": []}}]),
    ] {
        for revision in ["2025-06-18", "2026-07-28"] {
            let (daemon, script) = daemon_with(json!({"stray": stray, "revision": revision}), "").await;
            let client = daemon.client("alice").await;
            let params = json!({"name": "fake", "cwd": daemon.workspace()});
            let tested = client.call("mcp.test", params.clone()).await;
            assert_eq!(tested["state"], "ready", "{stray} {revision}: {tested}");
            assert_eq!(script.count("start"), 1, "{stray} {revision}");
            let logs = client.call("mcp.logs", params).await.to_string();
            assert!(logs.contains("ignored during the handshake"), "{stray} {revision}: {logs}");
        }
    }
}

#[tokio::test]
async fn redirect_to_slash_is_followed_and_others_name_their_target() {
    let mut daemon = TestDaemon::builder().build().await;
    let script = McpScript::new(&daemon, "fake");
    let (url, _) = script.serve_http();
    let config = daemon.path("config.toml");
    let text = std::fs::read_to_string(&config).expect("read") + &format!("[mcp.fake]\nurl = \"{url}\"\n");
    std::fs::write(config, text).expect("written");
    daemon.launch().await;
    script.set(json!({"redirect": "https://login.example/start?token=hush"}));
    let client = daemon.client("alice").await;
    let params = json!({"name": "fake", "cwd": daemon.workspace()});
    let tested = client.call("mcp.test", params.clone()).await;
    let error = tested["error"].as_str().expect("words");
    assert!(error.contains("https://login.example/start") && !error.contains("hush"), "{error}");
    script.set(json!({"redirect": "/mcp/"}));
    let tested = client.call("mcp.test", params).await;
    assert_eq!(tested["state"], "ready", "{tested}");
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!((&done["output"], script.count("call echo")), (&json!("x"), 1), "each call is sent once");
}

#[tokio::test]
async fn roots_are_kept_from_server_that_must_not_use_them() {
    for (more, expected) in [("", true), ("roots = false", false)] {
        let (daemon, script) = daemon_with(json!({}), more).await;
        let outside = daemon.path("home");
        let mut entry = script.entry();
        entry["args"].as_array_mut().expect("a list").push(json!("--skip"));
        entry["args"].as_array_mut().expect("a list").push(json!(outside));
        entry["roots"] = json!(expected);
        let client = daemon.client("alice").await;
        let tested = client.call("mcp.test", json!({"config": entry, "cwd": daemon.workspace()})).await;
        assert_eq!(tested["state"], "ready", "{tested}");
        assert_eq!(tested["problems"].to_string().contains("set roots = false"), expected, "{tested}");
        client.call("mcp.test", json!({"name": "fake", "cwd": daemon.workspace()})).await;
        let hello =
            script.lines().into_iter().rfind(|line| line.starts_with("initialize")).expect("a handshake");
        assert_eq!(hello.contains("roots"), expected, "{hello}");
    }
}

#[tokio::test]
async fn restrictions_that_are_not_understood_deny_widely_and_are_reported() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "wx");
    let mut entry = script.entry();
    entry["disabledTools"] = json!(["wx:hang", "DIE", "fail, huge", "gone"]);
    daemon.write(".mcp.json", &json!({"mcpServers": {"wx": entry}}).to_string());
    daemon.trust().await;
    let client = daemon.client("alice").await;
    let cwd = json!({"cwd": daemon.workspace()});
    let before = client.call("workspace.restrictions", cwd.clone()).await["unread"].to_string();
    assert!(before.contains("wx:hang") && before.contains("fail, huge"), "{before}");
    let listed = client.call("mcp.list", cwd.clone()).await["servers"][0].clone();
    let tools = listed["tools"].to_string();
    for (tool, is_used) in [("hang", false), ("die", false), ("fail", false), ("huge", false), ("echo", true)]
    {
        assert_eq!(tools.contains(&format!("mcp__wx__{tool}\"")), is_used, "{tool}: {tools}");
    }
    let after = client.call("workspace.restrictions", cwd.clone()).await["unread"].to_string();
    for text in [listed["notes"].to_string(), after] {
        for entry in ["wx:hang", "DIE", "fail, huge", "gone"] {
            assert!(text.contains(entry), "{entry}: {text}");
        }
    }
    for (list, odd) in
        [("deny_tools", "wx:hang"), ("disabledTools", "a, b"), ("allow_tools", "^a$"), ("includeTools", "")]
    {
        let mut entry = script.entry();
        entry[list] = json!([odd]);
        let params = json!({"name": "wx", "config": entry, "scope": "user"});
        let refused = client.refused("mcp.add", params).await;
        assert_eq!(refused.kind, "invalid_params", "{list} {odd}: {refused:?}");
    }
}

#[tokio::test]
async fn project_file_of_other_program_starts_its_server() {
    let daemon = TestDaemon::builder().environment("WX_TOKEN", "canary").start().await;
    let script = McpScript::new(&daemon, "fake");
    let mut entry = script.entry();
    entry["env"]["TOKEN"] = json!("${env:WX_TOKEN}");
    entry["env"]["HERE"] = json!("${workspaceFolder}");
    entry["envFile"] = json!(".env");
    let text = format!("// VS Code\n{{\"inputs\": [],\n\"servers\": {{\"fake\": {entry},}},}}");
    let wide: Vec<u8> =
        std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    std::fs::write(daemon.workspace().join(".mcp.json"), wide).expect("written");
    daemon.trust().await;
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__env", json!({})).await;
    let names = done["output"].as_str().expect("names");
    assert!(names.contains("TOKEN") && names.contains("HERE"), "{names}");
    let listed = daemon.client("bob").await.call("mcp.list", json!({"cwd": daemon.workspace()})).await;
    assert!(listed["servers"][0]["notes"].to_string().contains(".mcp.json:3: the key"), "{listed}");
}
