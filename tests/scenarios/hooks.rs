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
        daemon.tool_processes_reach(|count| count == 0).await;
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
async fn calls_of_trusted_hooks_ask_after_a_trusted_file_changed() {
    // The hook is still in the file; the file is empty now; the file is gone.
    for change in
        ["touch .claude/settings.local.json; echo more >> .claude/after.sh", "echo '{}' > $F", "rm $F"]
    {
        let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
        let deny = json!({"type": "command", "command": "exit 0"});
        let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [deny]}]}});
        daemon.write(".claude/settings.json", &hooks.to_string());
        daemon.write(".claude/after.sh", "");
        daemon.write("pull.sh", &format!("F=.claude/settings.json; {change}"));
        daemon.trust().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut log = session.follow().await;
        daemon.models.push(bash("sh pull.sh"));
        daemon.models.push(bash("echo unguarded"));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let asked = log.wait_for("permission.requested").await;
        let reason = asked["reason"].as_str().expect("a text");
        assert!(reason.contains("since you trusted it") && reason.contains("agentctl trust"), "{reason}");
        assert!(asked.to_string().contains("echo unguarded"), "{asked}");
        session.allow(&asked).await;
        log.turn_ends("success").await;
        // A decision of the user about the new files ends it.
        daemon.trust().await;
        daemon.models.push(bash("echo trusted again"));
        daemon.models.push(Step::text("Done."));
        session.submit("go on").await;
        log.turn_ends("success").await;
    }
}

#[tokio::test]
async fn matcher_in_another_letter_case_asks_and_is_shown() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\", \"Write\"]").start().await;
    let hook = json!({"type": "command", "command": "exit 0"});
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "bash|Write", "hooks": [hook]}]}});
    daemon.write(".claude/settings.json", &hooks.to_string());
    daemon.trust().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(bash("echo x"));
    daemon.models.push(Step::calls([("Write", json!({"file_path": "new.txt", "content": "x"}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = log.wait_for("permission.requested").await;
    assert_eq!(asked["tool"], "Bash", "{asked}");
    assert!(asked["reason"].as_str().expect("a text").contains("the tool is named \"Bash\""), "{asked}");
    session.allow(&asked).await;
    log.turn_ends("success").await;
    assert_eq!(daemon.read("new.txt"), "x");
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

/// Writes the project's settings and trusts them.
async fn settings(daemon: &TestDaemon, hooks: Value) {
    daemon.write(".claude/settings.json", &json!({ "hooks": hooks }).to_string());
    daemon.trust().await;
}

/// One hook of Claude Code's form.
fn claude_hook(matcher: &str, command: &str) -> Value {
    json!([{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}])
}

#[tokio::test]
async fn unreadable_hooks_make_their_calls_ask_and_are_shown() {
    let good = r#"{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo '{\"decision\": \"block\"}'"}]}"#;
    let bad = r#"{"matcher": "LS", "hooks": [{"type": "command"}]}"#;
    let broken_entry = format!("{{\"hooks\": {{\"PreToolUse\": [{good},\n{bad}]}}}}");
    for (text, place) in [(broken_entry.as_str(), "line 2"), ("{", "settings.json"), ("[]", "settings.json")]
    {
        let daemon = TestDaemon::start().await;
        daemon.write(".claude/settings.json", text);
        daemon.trust().await;
        let alice = daemon.client("alice").await;
        let session = alice.create(&daemon).await;
        let mut log = session.follow().await;
        daemon.models.push(Step::calls([("LS", json!({"path": "."}))]));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let asked = log.wait_for("permission.requested").await;
        let reason = asked["reason"].as_str().expect("a text");
        assert!(reason.contains(".claude/settings.json") && reason.contains(place), "{text}: {asked}");
        session.allow(&asked).await;
        log.turn_ends("success").await;
        let notices = log.events_of("notice");
        let shown = notices.iter().filter(|notice| notice["kind"] == "hook_problem").count();
        assert_eq!(shown, 1, "{text}: {notices:?}");
        let view = session.call("get", json!({})).await["session"].clone();
        assert!(view["notice"].as_str().expect("a text").contains(place), "{text}: {view}");
        // No user sees an unattended session.
        let unattended = alice.create_with(&daemon, json!({"background": true})).await;
        let mut log = unattended.follow().await;
        daemon.models.push(Step::calls([("LS", json!({"path": "."}))]));
        daemon.models.push(Step::text("Done."));
        unattended.submit("go").await;
        log.turn_ends("success").await;
        assert_eq!(log.events_of("tool.completed")[0]["status"], "denied", "{text}");
    }
}

#[tokio::test]
async fn good_entry_next_to_unreadable_one_still_denies() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let deny = r#"echo loading; echo '{"permissionDecision": "DENY", "reason": "never"}'"#;
    let entries = json!([{"matcher": "("}, {"matcher": "^(?!Read$).*", "hooks": [{"type": "command", "command": deny}]}]);
    settings(&daemon, json!({ "PreToolUse": entries })).await;
    let (_, done) = turn(&daemon, bash("echo x")).await;
    assert_eq!(done["status"], "denied", "{done}");
    assert!(done["output"].as_str().expect("a text").contains("never"), "{done}");
}

#[tokio::test]
async fn hooks_get_absolute_paths_and_each_file_of_a_patch() {
    let guard = r#"read -r event
f=$(printf %s "$event" | sed 's/.*"tool_input":{[^}]*"file_path":"\([^"]*\)".*/\1/')
case "$f" in */.env*) echo "keep $f" >&2; exit 2;; esac"#;
    let daemon = TestDaemon::builder().config("[session]\nmode = \"accept_edits\"").start().await;
    settings(&daemon, json!({"PreToolUse": claude_hook("Edit|Write", guard)})).await;
    let patch = "*** Begin Patch\n*** Add File: fine.txt\n+a\n*** Add File: .env.local\n+b\n*** End Patch";
    for call in [
        ("Write", json!({"file_path": ".env", "content": "x"})),
        ("Write", json!({"file_path": "sub/../.env", "content": "x"})),
        ("ApplyPatch", json!({"input": patch})),
    ] {
        let (log, done) = turn(&daemon, Step::calls([call.clone()])).await;
        assert_eq!(done["status"], "denied", "{call:?}: {done}");
        assert!(done["output"].as_str().expect("a text").contains("keep /"), "{call:?}: {done}");
        let runs = log.events_of("hook.completed").len();
        assert_eq!(runs, if call.0 == "ApplyPatch" { 2 } else { 1 }, "{call:?}");
    }
    assert!(!daemon.workspace().join("fine.txt").exists());
    let (_, done) =
        turn(&daemon, Step::calls([("Write", json!({"file_path": "fine.txt", "content": "x"}))])).await;
    assert_eq!(done["status"], "completed", "{done}");
}

#[tokio::test]
async fn hook_that_cannot_run_asks_unless_failures_are_allowed() {
    for (on_failure, asks) in [("ask", true), ("allow", false)] {
        let config = format!("[hooks]\non_failure = \"{on_failure}\"\n[permissions]\nallow = [\"Bash\"]");
        let daemon = TestDaemon::builder().config(&config).start().await;
        let missing = json!([
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "/no/such/guard"}, {"type": "prompt", "prompt": "?"}]}
        ]);
        settings(&daemon, json!({ "PreToolUse": missing })).await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut log = session.follow().await;
        daemon.models.push(bash("echo x"));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        if asks {
            let asked = log.wait_for("permission.requested").await;
            session.allow(&asked).await;
        }
        log.turn_ends("success").await;
        assert_eq!(log.events_of("permission.requested").len(), usize::from(asks), "{on_failure}");
        let failed = log.events_of("hook.completed").iter().any(|run| run["error"].is_string());
        assert!(failed, "{on_failure}: the failure is shown");
        let notices = log.events_of("notice");
        assert!(notices.iter().any(|notice| notice["kind"] == "hook_problem"), "{on_failure}: {notices:?}");
    }
}

#[tokio::test]
async fn conditions_narrow_hooks_and_asynchronous_ones_hold_nothing_up() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    settings(
        &daemon,
        json!({"PreToolUse": [{"matcher": "Bash", "hooks": [
            {"type": "command", "if": "Bash(git *)", "command": "exit 2"},
            {"type": "command", "async": true, "command": "until test -e go; do sleep 0.05; done; touch ran"}
        ]}]}),
    )
    .await;
    let (_, done) = turn(&daemon, bash("echo x")).await;
    assert_eq!(done["status"], "completed", "nothing waits: {done}");
    daemon.write("go", "");
    let ran = daemon.workspace().join("ran");
    poll_until("the asynchronous hook", || daemon.log(), || ran.exists().then_some(())).await;
    let (_, done) = turn(&daemon, bash("git status")).await;
    assert_eq!(done["status"], "denied", "{done}");
}

#[tokio::test]
async fn fields_of_the_reference_reach_hooks_and_their_answers_the_session() {
    let before =
        r#"echo '{"systemMessage":"look here","hookSpecificOutput":{"additionalContext":"be brief"}}'"#;
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    settings(
        &daemon,
        json!({
            "PreToolUse": claude_hook("Bash", before),
            "PostToolUse": claude_hook("Bash", "cat > after.json"),
            "SessionStart": [
                {"matcher": "startup", "hooks": [{"type": "command", "command": "echo startup >> starts"}]},
                {"matcher": "resume", "hooks": [{"type": "command", "command": "echo resume >> starts"}]},
                {"matcher": "clear", "hooks": [{"type": "command", "command": "echo clear >> starts"}]}
            ]
        }),
    )
    .await;
    let (log, done) = turn(&daemon, bash("echo hello")).await;
    assert!(done["output"].as_str().expect("a text").contains("be brief"), "{done}");
    let messages = log.events_of("hook.completed").iter().filter(|run| run["message"] == "look here").count();
    assert_eq!(messages, 1);
    let seen: Value = serde_json::from_str(&daemon.read("after.json")).expect("JSON");
    assert_eq!(seen["tool_use_id"], done["call_id"], "{seen}");
    assert!(seen["tool_response"]["stdout"].as_str().expect("a text").contains("hello"), "{seen}");
    assert_eq!(daemon.read("starts"), "startup\n");
}

#[tokio::test]
async fn hook_that_does_not_continue_ends_the_turn() {
    let stop = r#"echo '{"continue": false, "stopReason": "budget is used up"}'"#;
    let daemon = TestDaemon::start().await;
    settings(&daemon, json!({"PreToolUse": claude_hook("*", stop)})).await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(Step::calls([("LS", json!({"path": "."}))]));
    session.submit("go").await;
    log.turn_ends("permission_denied").await;
    let notices = log.events_of("notice");
    let told =
        notices.iter().any(|it| it["text"].as_str().is_some_and(|text| text.contains("budget is used up")));
    assert!(told, "{notices:?}");
}

#[tokio::test]
async fn start_hooks_run_after_a_compaction() {
    let daemon = TestDaemon::start().await;
    settings(
        &daemon,
        json!({
            "SessionStart": claude_hook("compact", "echo compact >> starts; echo remember the plan"),
            "PreCompact": [
                {"matcher": "manual", "hooks": [{"type": "command", "command": "echo manual >> starts"}]},
                {"matcher": "auto", "hooks": [{"type": "command", "command": "echo auto >> starts"}]}
            ]
        }),
    )
    .await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut log = session.follow().await;
    daemon.models.push(Step::text(&"A long answer. ".repeat(400)));
    session.submit(&"A long question. ".repeat(400)).await;
    log.turn_ends("success").await;
    daemon.models.push(Step::text("They talked."));
    session.call("compact", json!({})).await;
    log.turn_ends("success").await;
    let both = || {
        let starts = std::fs::read_to_string(daemon.workspace().join("starts")).unwrap_or_default();
        (starts.contains("manual") && starts.contains("compact") && !starts.contains("auto")).then_some(())
    };
    poll_until("both hooks", || daemon.log(), both).await;
    while log.events_of("hooks.status").is_empty() {
        log.wait_for("hooks.status").await;
    }
    daemon.models.push(Step::text("Fine."));
    session.submit("and now?").await;
    log.turn_ends("success").await;
    let sent = daemon.models.requests().last().expect("a request").body["messages"].to_string();
    assert!(sent.contains("remember the plan"), "{sent}");
}
