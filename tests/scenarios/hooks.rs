//! Hooks: commands of the user that inspect, change or refuse calls and inputs. The journal records each run.

use serde_json::{Value, json};

use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

/// A configuration with one hook.
fn hook(event: &str, matcher: &str, command: &str) -> String {
    let text = |text: &str| Value::from(text).to_string();
    format!(
        "[[hooks.{event}]]\nmatcher = {}\ncommand = {}\ntimeout = \"10s\"\n",
        text(matcher),
        text(command)
    )
}

fn bash(command: &str) -> Step {
    Step::calls([("Bash", json!({"command": command}))])
}

/// Runs a turn with one call. Returns the log and the result of the call.
async fn turn(daemon: &TestDaemon, call: Step) -> (Log, Value) {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(call);
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    log.turn_ends("success").await;
    let done = log.events_of("tool.completed")[0].clone();
    (log, done)
}

#[tokio::test]
async fn pre_tool_use_hook_denies_allows_and_changes_calls() {
    let command = r#"read event
case $event in
  *forbidden*) echo '{"decision":"deny","reason":"not that"}';;
  *replace*) echo '{"decision":"allow","updated_input":{"command":"echo instead > made.txt"}}';;
  *allowed*) echo '{"decision":"allow"}';;
esac"#;
    let config = hook("pre_tool_use", "Bash", command);
    let daemon = TestDaemon::builder().config(&config).start().await;
    let (log, denied) = turn(&daemon, bash("echo forbidden > made.txt")).await;
    assert_eq!(denied["status"], "denied", "{denied}");
    assert!(denied["output"].as_str().expect("a text").contains("not that"), "{denied}");
    let ran = &log.events_of("hook.completed")[0];
    assert_eq!((&ran["event"], &ran["decision"]), (&json!("pre_tool_use"), &json!("deny")), "{ran}");
    assert_eq!(ran["call_id"], denied["call_id"]);
    let (log, allowed) = turn(&daemon, bash("echo allowed > made.txt")).await;
    assert_eq!(allowed["status"], "completed", "no user was asked: {allowed}");
    assert!(log.events_of("permission.requested").is_empty());
    assert_eq!(daemon.read("made.txt"), "allowed\n");
    let (_, replaced) = turn(&daemon, bash("echo replace > other.txt")).await;
    assert_eq!(daemon.read("made.txt"), "instead\n");
    assert!(
        replaced["output"].as_str().expect("a text").contains("echo instead"),
        "the model is told: {replaced}"
    );
}

#[tokio::test]
async fn deny_rule_wins_over_allowing_hook() {
    let config = hook("pre_tool_use", "*", r#"echo '{"decision":"allow"}'"#);
    let daemon =
        TestDaemon::builder().config(&config).config("[permissions]\ndeny = [\"Bash(rm:*)\"]").start().await;
    daemon.write("kept.txt", "x");
    let (_, done) = turn(&daemon, bash("rm kept.txt")).await;
    assert_eq!(done["status"], "denied", "{done}");
    assert_eq!(daemon.read("kept.txt"), "x");
}

#[tokio::test]
async fn failing_hooks_leave_the_decision_to_the_user() {
    for command in ["sleep 100", "echo no JSON", "exit 7", "kill -9 $$"] {
        let config = hook("pre_tool_use", "Bash", command).replace("10s", "200ms");
        let daemon =
            TestDaemon::builder().config(&config).config("[permissions]\nallow = [\"Bash\"]").start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut log = session.follow().await;
        daemon.models.push(bash("echo x"));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let asked = log.wait_for("permission.requested").await;
        assert!(asked["reason"].as_str().expect("a text").contains("hook"), "{command}: {asked}");
        let ran = &log.events_of("hook.completed")[0];
        assert!(ran["error"].is_string(), "{command}: {ran}");
        session.allow(&asked).await;
        log.turn_ends("success").await;
        assert_eq!(daemon.tool_processes(), [], "{command}");
    }
}

#[tokio::test]
async fn claude_settings_of_trusted_project_run_with_their_field_names() {
    let daemon = TestDaemon::start().await;
    let settings = json!({"hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "cat > seen.json; exit 2 2>&1", "timeout": 5}]}],
        "PostToolUse": [{"matcher": "LS", "hooks": [{"type": "command",
            "command": "echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PostToolUse\",\"additionalContext\":\"from a hook\"}}'"}]}],
    }});
    daemon.write(".claude/settings.json", &settings.to_string());
    let (log, _) = turn(&daemon, Step::calls([("LS", json!({"path": "."}))])).await;
    assert!(log.events_of("hook.completed").is_empty(), "nothing of the project runs without trust");
    daemon.trust().await;
    let (_, done) = turn(&daemon, bash("echo hello")).await;
    assert_eq!(done["status"], "denied", "exit code 2: {done}");
    let seen: Value = serde_json::from_str(&daemon.read("seen.json")).expect("JSON");
    assert_eq!((&seen["hook_event_name"], &seen["tool_name"]), (&json!("PreToolUse"), &json!("Bash")));
    assert_eq!(seen["tool_input"]["command"], "echo hello");
    let (_, listed) = turn(&daemon, Step::calls([("LS", json!({"path": "."}))])).await;
    assert!(listed["output"].as_str().expect("a text").contains("from a hook"), "{listed}");
}

#[tokio::test]
async fn hook_changed_by_its_call_does_not_run() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    daemon.write(".claude/after.sh", "echo {}");
    let hooks = json!({"hooks": {"PostToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "sh .claude/after.sh"}]}
    ]}});
    daemon.write(".claude/settings.json", &hooks.to_string());
    daemon.write("generate.sh", "echo 'touch ran' > .claude/after.sh");
    daemon.trust().await;
    let (log, _) = turn(&daemon, bash("true")).await;
    assert_eq!(log.events_of("hook.completed").len(), 1, "the trusted hook runs");
    let (log, done) = turn(&daemon, bash("sh generate.sh")).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(daemon.read(".claude/after.sh"), "touch ran\n");
    assert!(log.events_of("hook.completed").is_empty(), "trust ended with the change");
    assert!(!daemon.workspace().join("ran").exists());
}

#[tokio::test]
async fn input_hook_refuses_or_adds_context() {
    let command = r#"read event
case $event in
  *secret*) echo 'no secrets here' >&2; exit 2;;
  *) echo '{"context":"today is a holiday"}';;
esac"#;
    let daemon = TestDaemon::builder().config(&hook("user_prompt_submit", "", command)).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    let refused = session.refused("submit", json!({"input": "my secret"})).await;
    assert_eq!((refused.kind.as_str(), &refused.data["refused_by"]), ("invalid_params", &json!("hook")));
    assert!(refused.message.contains("no secrets here"), "{refused:?}");
    log.wait_for("hook.completed").await;
    daemon.models.push(Step::text("Fine."));
    session.submit("hello").await;
    log.turn_ends("success").await;
    let sent = daemon.models.requests()[0].body["messages"].to_string();
    assert!(sent.contains("today is a holiday") && !sent.contains("my secret"), "{sent}");
}

#[tokio::test]
async fn stop_hook_makes_the_session_continue_until_it_agrees() {
    let command =
        r#"test -e finished || { touch finished; echo '{"decision":"deny","reason":"run the tests"}'; }"#;
    let config = hook("stop", "", command) + &hook("session_start", "", r#"echo '{"context":"be careful"}'"#);
    let daemon = TestDaemon::builder().config(&config).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(Step::text("Done."));
    daemon.models.push(Step::text("Now it is done."));
    session.submit("go").await;
    log.turn_ends("success").await;
    assert_eq!(log.turn_ends("success").await["text"], "Now it is done.");
    let requests = daemon.models.requests();
    assert!(requests[0].body["system"].to_string().contains("be careful"));
    assert!(requests[1].body["messages"].to_string().contains("run the tests"));
}

#[tokio::test]
async fn abort_ends_hanging_hook_and_other_sessions_go_on() {
    let config = hook("pre_tool_use", "Bash", "echo $$ > pid; exec sleep 1000").replace("10s", "5m");
    let daemon = TestDaemon::builder().config(&config).start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    daemon.models.push(bash("echo x"));
    session.submit("go").await;
    let file = daemon.workspace().join("pid");
    let pid = || std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
    poll_until("the hook", || daemon.log(), || (!pid().is_empty()).then_some(())).await;
    let other = alice.create(&daemon).await;
    let mut log = other.follow().await;
    daemon.models.push(Step::text("Fine."));
    other.submit("hello").await;
    log.turn_ends("success").await;
    session.call("abort", json!({})).await;
    let process = std::path::Path::new("/proc").join(pid());
    poll_until("the end of the hook", || daemon.log(), || (!process.exists()).then_some(())).await;
}

#[tokio::test]
async fn hook_cannot_allow_what_only_users_may_allow() {
    let config = hook("pre_tool_use", "*", r#"echo '{"decision":"allow"}'"#);
    let daemon = TestDaemon::builder().config(&config).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(Step::calls([("Write", json!({"file_path": ".envrc", "content": "x"}))]));
    session.submit("go").await;
    log.wait_for("permission.requested").await;
}

#[tokio::test]
async fn request_that_hook_leaves_to_user_is_settled_by_no_rule_after_crash() {
    let config = hook("pre_tool_use", "Bash", r#"echo '{"decision":"ask","reason":"look first"}'"#);
    let mut daemon = TestDaemon::builder().config(&config).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(bash("touch made"));
    session.submit("go").await;
    let asked = log.wait_for("permission.requested").await;
    daemon.crash_and_restart().await;
    let bob = daemon.client("bob").await;
    let session = bob.join(&session);
    let mut log = session.follow_after(log.last_seq()).await;
    let rule =
        json!({"session_id": session.id, "kind": "allow", "rule": "Bash(touch:*)", "scope": "session"});
    bob.call("permission.add_rule", rule).await;
    let pending = bob.call("permission.list", json!({"session_id": session.id})).await["requests"].clone();
    assert_eq!(pending[0]["request_id"], asked["request_id"], "a user decides: {pending}");
    daemon.models.push(Step::text("Done."));
    session.allow(&asked).await;
    log.turn_ends("success").await;
    assert!(daemon.workspace().join("made").exists());
}
