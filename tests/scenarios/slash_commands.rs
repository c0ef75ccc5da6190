//! Slash commands: built-in ones that need no model, and those of Markdown files.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Request, Step};

/// The text of the newest user message of a request.
fn newest_message(request: &Request) -> String {
    request.messages().last().expect("a message")["content"].to_string()
}

async fn answer(session: &Session, line: &str) -> Value {
    session.call("submit", json!({"input": line})).await
}

#[tokio::test]
async fn built_in_commands_answer_without_a_model_call() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    for (line, word) in [
        ("/help", "/status"),
        ("/status", "Mode: default"),
        ("/cost", "0 tokens"),
        ("/context", "Context of scripted/model"),
        ("/model", "scripted/model"),
        ("/mode", "default"),
        ("/agents", "general-purpose"),
        ("/mcp", "No MCP servers"),
    ] {
        let reply = answer(&session, line).await;
        assert_eq!(reply["state"], "completed", "{line}: {reply}");
        let text = reply["text"].as_str().expect("an answer");
        assert!(text.contains(word), "{line}: {text}");
        let event = seen.wait_for("command.completed").await;
        assert_eq!((&event["text"], &event["turn_id"]), (&reply["text"], &reply["turn_id"]));
        let result = seen.turn_ends("success").await;
        assert_eq!((&result["text"], &result["model_calls"]), (&reply["text"], &json!(0)));
    }
    assert_eq!(daemon.models.requests().len(), 0);
    let view = session.view().await;
    assert_eq!((&view["title"], &view["state"]), (&json!(""), &json!("idle")));
    assert_eq!(session.items().await.len(), 0, "commands are not part of the conversation");
}

#[tokio::test]
async fn settings_commands_change_the_session_at_once() {
    let daemon = TestDaemon::start().await;
    std::fs::create_dir_all(daemon.path("more")).expect("made");
    let session = daemon.client("alice").await.create(&daemon).await;
    answer(&session, "/mode plan").await;
    answer(&session, "/model scripted/other").await;
    let added = answer(&session, "/add-dir ../more").await;
    let more = daemon.path("more").canonicalize().expect("there").display().to_string();
    assert!(added["text"].as_str().expect("text").contains(&more), "{added}");
    let view = session.view().await;
    assert_eq!((&view["mode"], &view["model"]), (&json!("plan"), &json!("scripted/other")));
    daemon.models.push(Step::text("Hello."));
    let mut seen = session.follow().await;
    session.submit("hello").await;
    let started = seen.find("the turn", |event| event["model"] == "scripted/other").await;
    assert_eq!(started["type"], "session.updated");
    seen.find("the answer", |event| event["type"] == "turn.completed" && event["result"]["model_calls"] == 1)
        .await;
    let request = &daemon.models.requests()[0];
    assert_eq!(request.body["model"], "other");
    assert!(request.body["system"].to_string().contains(&more));
    for (line, word) in
        [("/mode loose", "accept_edits"), ("/model nowhere/x", "provider"), ("/add-dir missing", "missing")]
    {
        let refusal = session.refused("submit", json!({"input": line})).await;
        assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &json!("input")), "{line}");
        assert!(refusal.message.contains(word), "{line}: {}", refusal.message);
    }
}

#[tokio::test]
async fn unknown_command_is_refused_with_the_nearest_name() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let before = session.events().await.len();
    let refusal = session.refused("submit", json!({"input": "/statsu"})).await;
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32602, "invalid_params"));
    assert_eq!(refusal.data["nearest"], "status");
    let refusal = session.refused("submit", json!({"input": "/xyzzyqq now"})).await;
    assert!(refusal.data["nearest"].is_null(), "{refusal:?}");
    assert_eq!(session.events().await.len(), before, "nothing is written");
    // These are ordinary texts.
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let mut seen = session.follow().await;
    for input in [json!("/home/x is broken"), json!("/etc/x\nme"), json!("#tag")] {
        session.call("submit", json!({"input": input})).await;
        seen.turn_ends("success").await;
    }
    session.call("submit", json!({"input": "/help", "raw": true})).await;
    seen.turn_ends("success").await;
    let requests = daemon.models.requests();
    assert_eq!(requests.len(), 4);
    assert!(newest_message(&requests[3]).contains("/help"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn command_during_a_turn_is_answered_at_once() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("Slow.").hold(&gate));
    let turn = session.submit("hello").await;
    daemon.models.wait_for_requests(1).await;
    let reply = answer(&session, "/status").await;
    assert_eq!((&reply["turn_id"], &reply["state"]), (&json!(turn), &json!("completed")));
    let refusal = session.refused("submit", json!({"input": "/status", "when_busy": "reject"})).await;
    assert_eq!(refusal.kind, "busy");
    let queued = answer(&session, "/clear").await;
    assert_eq!(queued["state"], "queued");
    gate.open();
    assert_eq!(seen.turn_ends("success").await["text"], "Slow.");
    seen.wait_for("session.cleared").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn cleared_conversation_is_hidden_from_the_model_and_kept_in_the_journal() {
    let mut daemon = TestDaemon::start().await;
    daemon.write("a.txt", "alpha\n");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("Read", json!({"file_path": daemon.workspace().join("a.txt")}))]));
    daemon.models.push(Step::text("It says alpha."));
    session.submit("remember the word kiwi").await;
    seen.turn_ends("success").await;
    let reply = answer(&session, "/clear").await;
    assert_eq!(reply["state"], "completed");
    seen.wait_for("session.cleared").await;
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.find("the answer", |event| event["result"]["text"] == "Hello.").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello again."));
    session.submit("and again").await;
    seen.find("the answer", |event| event["result"]["text"] == "Hello again.").await;
    let requests = daemon.models.requests();
    for request in &requests[2..] {
        assert!(!request.body["messages"].to_string().contains("kiwi"), "{}", request.body);
    }
    assert_eq!(requests[3].messages().len(), 3);
    assert!(session.items().await.iter().any(|item| item["text"] == "remember the word kiwi"));
    daemon.models.assert_no_breach();
}

const REVIEW: &str = "---\ndescription: Review a file\nargument-hint: FILE\nallowed-tools: Bash(touch:*)\n\
                      model: scripted/reviewer\n---\nReview the file $1 for $ARGUMENTS.\n";

#[tokio::test]
async fn project_command_runs_with_its_model_and_rules_for_one_turn() {
    let daemon =
        TestDaemon::builder().config("[permissions]\ndeny = [\"Bash(touch forbidden)\"]").start().await;
    daemon.write(".claude/commands/team/review.md", REVIEW);
    let session = daemon.client("alice").await.create(&daemon).await;
    let refusal = session.refused("submit", json!({"input": "/team:review a.txt"})).await;
    assert_eq!(refusal.kind, "invalid_params", "not before it is trusted");
    ctl(&daemon, &["trust", "--yes"]).await.stdout();

    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch made"), bash("touch forbidden")]));
    daemon.models.push(Step::text("Reviewed."));
    answer(&session, "/team:review a.txt bugs").await;
    let started = seen.wait_for("turn.started").await;
    assert_eq!(started["model"], "scripted/reviewer");
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty());
    assert!(daemon.workspace().join("made").exists() && !daemon.workspace().join("forbidden").exists());
    let request = &daemon.models.requests()[0];
    assert_eq!(request.body["model"], "reviewer");
    assert!(
        newest_message(request).contains("Review the file a.txt for a.txt bugs."),
        "{}",
        newest_message(request)
    );
    let items = session.items().await;
    assert_eq!(items[0]["command"], json!({"name": "team:review", "arguments": "a.txt bugs"}));
    assert_eq!(session.view().await["title"], "/team:review a.txt bugs");

    // The next turn has neither the model nor the rules of the command.
    daemon.models.push(Step::calls([bash("touch later")]));
    session.submit("go on").await;
    let request = seen.wait_for("permission.requested").await;
    assert_eq!(request["tool"], "Bash");
    assert_eq!(daemon.models.requests()[2].body["model"], "model");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn listed_commands_name_sources_and_broken_files() {
    let daemon = TestDaemon::start().await;
    daemon.write(".agentd/commands/deploy.md", "Deploy it.");
    let user = daemon.path("home/.claude/commands");
    std::fs::create_dir_all(&user).expect("made");
    std::fs::write(user.join("greet.md"), "---\ndescription: Say hello\n---\nGreet $ARGUMENTS.")
        .expect("written");
    std::fs::write(user.join("broken.md"), "---\ndescription: x\n---\n").expect("written");
    std::fs::write(user.join("help.md"), "Mine.").expect("written");
    std::fs::write(daemon.path(".env"), "secret").expect("written");
    std::os::unix::fs::symlink(daemon.path(".env"), user.join("leak.md")).expect("linked");
    let alice = daemon.client("alice").await;
    let list = alice.call("command.list", json!({"cwd": daemon.workspace()})).await;
    let by_name = |list: &Value, name: &str| {
        let commands = list["commands"].as_array().expect("a list").clone();
        commands.into_iter().find(|command| command["name"] == name)
    };
    assert_eq!(by_name(&list, "help").expect("there")["source"], "built_in");
    let greet = by_name(&list, "greet").expect("there");
    assert_eq!((&greet["source"], &greet["description"]), (&json!("user"), &json!("Say hello")));
    assert!(by_name(&list, "deploy").is_none() && by_name(&list, "leak").is_none());
    let told = list["diagnostics"].to_string();
    for name in ["broken.md", "help.md", "leak.md", ".agentd/commands"] {
        assert!(told.contains(name), "{name}: {told}");
    }
    assert!(!told.contains("secret\""));
    ctl(&daemon, &["trust", "--yes"]).await.stdout();
    let session = alice.create(&daemon).await;
    let list = alice.call("command.list", json!({"session_id": session.id})).await;
    assert_eq!(by_name(&list, "deploy").expect("there")["source"], "project");
    let shown = ctl(&daemon, &["commands"]).await;
    let text = shown.stdout();
    assert!(text.contains("/deploy") && text.contains("/greet") && text.contains("/help"), "{text}");
    let refusal = alice.refused("command.list", json!({})).await;
    assert_eq!(refusal.kind, "invalid_params");

    daemon.models.push(Step::text("Hello."));
    let ran = ctl(&daemon, &["run", "/greet the world"]).await;
    ran.stdout();
    assert!(newest_message(&daemon.models.requests()[0]).contains("Greet the world."));
}

#[tokio::test]
async fn agentctl_prints_answers_of_commands() {
    let daemon = TestDaemon::start().await;
    let shown = ctl(&daemon, &["run", "/help"]).await;
    assert!(shown.stdout().contains("/status"));
    let session = daemon.client("alice").await.create(&daemon).await;
    let shown = ctl(&daemon, &["submit", &session.id, "/mode plan"]).await;
    assert!(shown.stdout().contains("plan"));
    assert_eq!(daemon.models.requests().len(), 0);
    for (text, hint) in [("/hlep", "/help"), ("/zzzzzzzz", "sent as text: there is no command /zzzzzzzz")] {
        daemon.models.push(Step::text("It is a text."));
        let sent = ctl(&daemon, &["run", text]).await;
        assert!(sent.code == 0 && sent.err.contains(hint), "{sent:?}");
    }
}

#[tokio::test]
async fn bug_report_holds_events_and_no_keys() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut daemon = TestDaemon::builder()
        .environment("SCRIPTED_API_KEY", "verysecretkey123")
        .provider("api_key_file = \"key\"\nheaders = { x-team = \"nightshift77\" }")
        .config(
            "[providers.other]\nkind = \"openai_chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
             api_key_command = \"\"\"\necho \\\n  plainlater55\"\"\"\n\
             [permissions]\nallow = [\"Bash(cat:*)\", \"Bash(echo:*)\"]\n\
             [permissions.unattended]\nnotify_command = [\"true\", \"plainarg66\"]\n\
             notify_url = \"https://hooks.slack.example/services/T0/plainhook88\"",
        )
        .build()
        .await;
    let key_file = daemon.path("key");
    std::fs::write(&key_file, "plainfilekey44\n").expect("written");
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).expect("set");
    daemon.launch().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let token = format!("sk-ant-{}", "x1".repeat(20));
    daemon.models.push(Step::calls([bash("echo plainfilekey44 plainoutput99 | tr 9 3")]));
    daemon.models.push(Step::text(&format!(
        "Your key is verysecretkey123, or {token}, or plainfilekey44 with nightshift77."
    )));
    session.submit("what is my key? password=correcthorse").await;
    seen.turn_ends("success").await;
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[0].1.contains("plainfilekey44 plainoutput33"), "{results:?}");
    let reply = answer(&session, "/bug it hangs").await;
    let text = reply["text"].as_str().expect("text");
    let path =
        text.split_whitespace().find(|word| word.contains("bug-")).expect("a path").trim_end_matches('.');
    let bundle = std::fs::read_to_string(path).expect("written");
    for secret in [
        "verysecretkey123",
        &token,
        "correcthorse",
        "plainfilekey44",
        "nightshift77",
        "plainlater55",
        "plainarg66",
        "plainhook88",
        "plainoutput33",
    ] {
        assert!(!bundle.contains(secret), "{secret}");
    }
    for part in [
        "it hangs",
        "turn.completed",
        "providers.scripted.api_key_file",
        "notify_url",
        "tool.completed",
        env!("CARGO_PKG_VERSION"),
        &session.id,
    ] {
        assert!(bundle.contains(part), "{part}: {bundle}");
    }
    assert_eq!(std::fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn repeated_key_returns_the_same_answer() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let params = json!({"input": "/status", "idempotency_key": "k1"});
    let first = session.call("submit", params.clone()).await;
    answer(&session, "/mode plan").await;
    assert_eq!(session.call("submit", params).await, first);
    let done = session.events().await.iter().filter(|event| event["type"] == "command.completed").count();
    assert_eq!(done, 2);
}

#[tokio::test]
async fn compact_command_replaces_the_conversation_and_reminds_the_model() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text(&"A long story about a kiwi. ".repeat(300)));
    session.submit("tell me a story").await;
    seen.turn_ends("success").await;
    daemon.models.push(Step::text("A story about a bird was told."));
    let reply = answer(&session, "/compact keep the bird").await;
    assert_eq!(reply["state"], "running");
    let done = seen.find("the summary", |event| event["type"] == "compact.completed").await;
    assert!(done["error"].is_null(), "{done}");
    seen.turn_ends("success").await;
    assert!(daemon.models.requests()[1].body.to_string().contains("keep the bird"));
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    let body = daemon.models.requests()[2].body["messages"].to_string();
    assert!(body.contains("A story about a bird was told.") && !body.contains("kiwi"), "{body}");
    assert!(body.contains("was replaced by a summary, because"), "{body}");
    assert!(seen.events_of("reminder.added").iter().any(|event| event["kind"] == "compacted"));
    daemon.models.assert_no_breach();
}
