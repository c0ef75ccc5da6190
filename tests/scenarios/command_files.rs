//! Command files whose text is filled in before the model receives it: outputs of commands, and files.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

/// Writes a command file of the user.
fn write_command(daemon: &TestDaemon, name: &str, text: &str) {
    let folder = daemon.path("home/.claude/commands");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join(format!("{name}.md")), text).expect("written");
}

async fn submit(session: &Session, line: &str) -> Value {
    session.call("submit", json!({ "input": line })).await
}

/// The newest user message of the newest request.
fn sent(daemon: &TestDaemon) -> String {
    let requests = daemon.models.requests();
    let messages = requests.last().expect("a request").messages();
    messages.last().expect("a message")["content"].to_string()
}

async fn start() -> (TestDaemon, Session, Log) {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let session = daemon.client("alice").await.create(&daemon).await;
    let seen = session.follow().await;
    (daemon, session, seen)
}

#[tokio::test]
async fn outputs_and_files_are_put_into_the_text() {
    let (daemon, session, mut seen) = start().await;
    daemon.write("a.txt", "alpha !`touch never` $1 @b.txt\n");
    daemon.write("b.txt", "beta\n");
    write_command(
        &daemon,
        "look",
        "---\nallowed-tools: Bash(touch:*)\n---\nIt says <!`cat $1`>. Made: <!`touch made`>. Compare @b.txt for $2.",
    );
    submit(&session, "/look a.txt\nme").await;
    seen.turn_ends("success").await;
    let text = sent(&daemon);
    assert!(
        text.contains("It says <alpha !`touch never` $1 @b.txt>. Made: <>. Compare @b.txt for me."),
        "{text}"
    );
    assert!(text.contains("beta"), "the file is attached: {text}");
    assert!(daemon.workspace().join("made").exists() && !daemon.workspace().join("never").exists());
    assert!(seen.events_of("permission.requested").is_empty());
    let items = session.items().await;
    let kinds: Vec<&str> = items.iter().filter_map(|item| item["kind"].as_str()).collect();
    assert_eq!(kinds, ["tool_call", "tool_call", "tool_call", "user_message", "assistant_message"]);
    assert_eq!(items[3]["command"]["name"], "look");
    // The next turn has the whole text, and no calls without results.
    submit(&session, "and now?").await;
    seen.turn_ends("success").await;
    let body = daemon.models.requests()[1].body["messages"].to_string();
    assert!(body.contains("It says <alpha") && !body.contains("tool_use"), "{body}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn command_that_asks_waits_for_the_answer() {
    let (daemon, session, mut seen) = start().await;
    write_command(&daemon, "make", "Result: <!`touch $1 && echo made`>");
    for (file, decision, expected) in
        [("one", "allow", "Result: <made>"), ("two", "deny", "Result: <[`touch two")]
    {
        submit(&session, &format!("/make {file}")).await;
        let asked = seen.wait_for("permission.requested").await;
        assert_eq!(asked["input"]["command"], format!("touch {file} && echo made"));
        assert_eq!(session.view().await["state"], "requires_action");
        session.answer(&asked, json!({ "decision": decision })).await;
        seen.turn_ends("success").await;
        assert!(sent(&daemon).contains(expected), "{}", sent(&daemon));
        assert_eq!(daemon.workspace().join(file).exists(), decision == "allow");
    }
    // An argument cannot smuggle a command past a rule.
    write_command(&daemon, "ok", "---\nallowed-tools: Bash(echo:*)\n---\n!`echo $1`");
    submit(&session, "/ok 'x; touch three'").await;
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(asked["input"]["command"], "echo x; touch three");
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    assert!(!daemon.workspace().join("three").exists());
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn unattended_command_that_asks_is_denied_at_once() {
    let daemon = TestDaemon::builder().config("[permissions.unattended]\ndeadline = \"1h\"").start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let session = daemon.client("alice").await.create_with(&daemon, json!({"background": true})).await;
    let mut seen = session.follow().await;
    std::fs::write(daemon.path("outside.txt"), "private").expect("written");
    write_command(&daemon, "make", "Result: <!`touch made`> @../outside.txt");
    submit(&session, "/make").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty());
    let text = sent(&daemon);
    assert!(text.contains("[`touch made`: ") && text.contains("[not attached: "), "{text}");
    assert!(!text.contains("private") && !daemon.workspace().join("made").exists());
}

#[tokio::test]
async fn project_command_runs_nothing_before_trust() {
    let (daemon, session, mut seen) = start().await;
    daemon.write(".claude/commands/make.md", "---\nallowed-tools: Bash(touch:*)\n---\n!`touch made`");
    let refusal = session.refused("submit", json!({"input": "/make"})).await;
    assert_eq!(refusal.kind, "invalid_params");
    assert!(!daemon.workspace().join("made").exists());
    daemon.trust().await;
    submit(&session, "/make").await;
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("made").exists());
}

#[tokio::test]
async fn endless_output_is_cut_and_hanging_command_is_stopped() {
    let daemon = TestDaemon::builder().config("[tools]\nbash_timeout = \"1s\"").start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    write_command(
        &daemon,
        "much",
        "---\nallowed-tools: Bash(yes:*), Bash(head:*), Bash(sleep:*)\n---\n<!`yes abc | head -c 100000000`> <!`sleep 600`>",
    );
    submit(&session, "/much").await;
    seen.turn_ends("success").await;
    let text = sent(&daemon);
    assert!(text.len() < 400_000 && text.contains("[`sleep 600`: "), "{}", text.len());
    submit(&session, "still there?").await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn command_that_waits_for_an_answer_survives_a_crash() {
    let (mut daemon, session, mut seen) = start().await;
    write_command(&daemon, "make", "Result: <!`cat a.txt`> <!`touch made && echo made`>");
    daemon.write("a.txt", "alpha\n");
    submit(&session, "/make").await;
    let asked = seen.wait_for("permission.requested").await;
    daemon.crash_and_restart().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    session.answer(&asked, json!({"decision": "allow"})).await;
    seen.find("the end", |event| event["type"] == "turn.completed").await;
    assert!(sent(&daemon).contains("Result: <alpha> <made>"), "{}", sent(&daemon));
    daemon.models.assert_no_breach();
}
