//! Reloading the configuration: which settings apply at once, which wait for a restart, and that an
//! invalid file changes nothing.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, ModelServer, Step};
use crate::support::wait::poll_until;

/// Replaces `old` with `new` in the configuration file.
fn rewrite(daemon: &TestDaemon, old: &str, new: &str) {
    let file = daemon.path("config.toml");
    let text = std::fs::read_to_string(&file).expect("there");
    assert!(text.contains(old), "{old:?} is not in {text}");
    std::fs::write(file, text.replace(old, new)).expect("written");
}

async fn reload(client: &Client) -> Value {
    client.call("daemon.reload", json!({})).await
}

#[tokio::test]
async fn reloaded_rules_apply_to_next_call_of_loaded_session() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = []").start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo one >> log.txt")]));
    daemon.models.push(Step::text("One."));
    session.submit("one").await;
    let asked = seen.wait_for("permission.requested").await;

    rewrite(&daemon, "allow = []", "allow = [\"Bash\"]");
    let told = reload(&alice).await;
    assert_eq!(told, json!({"changed": ["permissions.allow"], "needs_restart": []}));
    let event = seen.wait_for("config.reloaded").await;
    assert_eq!((&event["changed"], &event["needs_restart"]), (&told["changed"], &told["needs_restart"]));
    let status = alice.call("daemon.status", json!({})).await;
    assert!(status["last_reload"]["at_ms"].is_i64() && status["last_reload"].get("error").is_none());
    assert_eq!(daemon.read("log.txt"), "", "the pending request is not settled");
    session.allow(&asked).await;
    seen.turn_ends("success").await;

    daemon.models.push(Step::calls([bash("echo two >> log.txt")]));
    daemon.models.push(Step::text("Two."));
    session.submit("two").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "one\ntwo\n");
    let asks = session.events().await.iter().filter(|e| e["type"] == "permission.requested").count();
    assert_eq!(asks, 1, "the second call passed by the new rule");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn reload_keeps_provider_of_running_model_call() {
    let daemon = TestDaemon::start().await;
    let second = ModelServer::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("from the old").hold_after(1, &gate));
    second.push(Step::text("from the new"));
    session.submit("one").await;
    seen.text_of(1).await;
    rewrite(&daemon, daemon.models.url(), second.url());
    assert_eq!(reload(&alice).await["changed"], json!(["providers.scripted.base_url"]));
    seen.wait_for("config.reloaded").await;
    gate.open();
    assert_eq!(seen.turn_ends("success").await["text"], "from the old");
    session.submit("two").await;
    assert_eq!(seen.turn_ends("success").await["text"], "from the new");
    let (old, new) = (&daemon.models.requests()[0].body, &second.requests()[0].body);
    assert_eq!((&old["system"], &old["tools"]), (&new["system"], &new["tools"]), "the prefix is the same");
    daemon.models.assert_no_breach();
    second.assert_no_breach();
}

#[tokio::test]
async fn retries_of_a_loaded_session_follow_the_new_settings() {
    let daemon = TestDaemon::builder().config("[retry]\nattempts = 3\nbase_ms = 1").start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let overloaded = || Step::error(529, "overloaded_error", "busy");
    (0..3).for_each(|_| daemon.models.push(overloaded()));
    session.submit("one").await;
    seen.turn_ends("llm_error").await;
    assert_eq!(daemon.models.requests().len(), 3);

    rewrite(&daemon, "attempts = 3", "attempts = 1");
    assert_eq!(reload(&alice).await["changed"], json!(["retry.attempts"]));
    daemon.models.push(overloaded());
    session.submit("two").await;
    seen.turn_ends("llm_error").await;
    assert_eq!(daemon.models.requests().len(), 4, "tried once");
}

#[tokio::test]
async fn invalid_reload_is_refused_and_old_configuration_stays() {
    let daemon = TestDaemon::builder().config("[retry]\nattempts = 3\n[tools]\nparallel = 4").start().await;
    let alice = daemon.client("alice").await;
    let file = daemon.path("config.toml").display().to_string();
    let good = std::fs::read_to_string(&file).expect("there");
    let line = |text: &str, of: &str| 1 + text.lines().position(|line| line.contains(of)).expect("there");
    for (old, new) in [
        ("attempts = 3", "atempts = 3"),
        ("parallel = 4", "parallel = \"many\""),
        ("main = \"scripted/model\"", "main = \"missing/model\""),
        ("[tools]", "[session]\nmode = \"bypass\"\n[tools]"),
    ] {
        rewrite(&daemon, old, new);
        let bad = std::fs::read_to_string(&file).expect("there");
        let wanted = line(&bad, new.lines().nth(usize::from(new.contains("bypass"))).expect("a line"));
        let refusal = alice.refused("daemon.reload", json!({})).await;
        assert_eq!((refusal.code, refusal.kind.as_str()), (-32602, "invalid_params"));
        assert!(refusal.message.contains(&format!("config.toml:{wanted}: ")), "{}", refusal.message);
        assert_eq!((&refusal.data["file"], &refusal.data["line"]), (&json!(file), &json!(wanted)));
        let status = alice.call("daemon.status", json!({})).await;
        let error = status["last_reload"]["error"].as_str().expect("an error");
        assert!(refusal.message.starts_with(error), "{error}");
        assert_eq!(status["main_model"], "scripted/model", "the old configuration applies");
        std::fs::write(&file, &good).expect("written");
    }
    // A signal has no reply: the log and the status report the error.
    rewrite(&daemon, "attempts = 3", "attempts = \"three\"");
    daemon.signal(Signal::SIGHUP);
    let told = || daemon.log().contains("retry.attempts: ").then_some(());
    poll_until("the log to tell", || daemon.log(), told).await;
    let session = alice.create(&daemon).await;
    daemon.models.push(Step::text("Still here."));
    let mut seen = session.follow().await;
    session.submit("hello").await;
    seen.turn_ends("success").await;
    let said = ctl(&daemon, &["daemon", "reload"]).await;
    assert!(said.code == 64 && said.err.contains("retry.attempts"), "{said:?}");
    let shown = ctl(&daemon, &["daemon", "status"]).await.stdout();
    assert!(
        shown.contains("reload") && shown.contains("failed") && shown.contains("retry.attempts"),
        "{shown}"
    );

    std::fs::write(&file, &good).expect("written");
    assert_eq!(reload(&alice).await, json!({"changed": [], "needs_restart": []}));
    assert!(alice.call("daemon.status", json!({})).await["last_reload"].get("error").is_none());
}

#[tokio::test]
async fn reload_names_settings_that_need_restart() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let elsewhere = daemon.path("run/agentd/elsewhere.sock");
    rewrite(
        &daemon,
        "log = \"debug\"",
        &format!("log = \"debug\"\nlog_format = \"json\"\nsocket = {elsewhere:?}"),
    );
    daemon.signal(Signal::SIGHUP);
    let event = seen.wait_for("config.reloaded").await;
    let waiting = json!(["daemon.log_format", "daemon.socket"]);
    assert_eq!((&event["changed"], &event["needs_restart"]), (&json!([]), &waiting));
    // They still wait for a restart when another setting changes.
    rewrite(&daemon, "log = \"debug\"", "log = \"info\"");
    assert_eq!(reload(&alice).await, json!({"changed": ["daemon.log"], "needs_restart": waiting}));
    let status = alice.call("daemon.status", json!({})).await;
    assert_eq!(
        (&status["last_reload"]["needs_restart"], &status["socket"]),
        (&waiting, &json!(daemon.socket()))
    );
    let said = ctl(&daemon, &["daemon", "reload", "--socket", &daemon.socket().display().to_string()])
        .await
        .stdout();
    assert!(said.contains("agentctl daemon restart") && said.contains("daemon.socket"), "{said}");
    assert!(daemon.stop().await.success());
}

#[tokio::test]
async fn reload_event_is_written_to_active_sessions_only() {
    let daemon = TestDaemon::builder().config("[tools]\nparallel = 4").start().await;
    let alice = daemon.client("alice").await;
    let (quiet, busy) = (alice.create(&daemon).await, alice.create(&daemon).await);
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold(&gate));
    busy.submit("count").await;
    gate.wait_reached().await;
    rewrite(&daemon, "parallel = 4", "parallel = 5");
    reload(&alice).await;
    // The next event of the busy session comes after the reload notice.
    gate.open();
    let mut seen = busy.follow().await;
    seen.turn_ends("success").await;
    let told = |events: Vec<Value>| events.iter().filter(|event| event["type"] == "config.reloaded").count();
    assert_eq!(told(busy.events().await), 1);
    assert_eq!(told(quiet.events().await), 0);
}

#[tokio::test]
async fn reloaded_limits_apply_to_new_connections() {
    let daemon = TestDaemon::builder().config("[limits]\nbatch = 8").start().await;
    let alice = daemon.client("alice").await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"daemon.status"},{"jsonrpc":"2.0","id":2,"method":"daemon.status"}]"#;
    let mut old = daemon.raw().await;
    assert_eq!(old.send_and_receive(batch).await.as_array().map(Vec::len), Some(2));
    rewrite(&daemon, "batch = 8", "batch = 1");
    assert_eq!(reload(&alice).await["changed"], json!(["limits.batch"]));
    assert_eq!(
        old.send_and_receive(batch).await.as_array().map(Vec::len),
        Some(2),
        "the connection keeps its first limits"
    );
    let refused = daemon.raw().await.send_and_receive(batch).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
}

#[tokio::test]
async fn observer_cannot_reload_configuration() {
    let daemon = TestDaemon::start().await;
    let eve = daemon.anonymous_client().await;
    eve.call("daemon.hello", json!({"name": "eve", "role": "observer"})).await;
    assert_eq!(eve.refused("daemon.reload", json!({})).await.kind, "not_authorised");
}
