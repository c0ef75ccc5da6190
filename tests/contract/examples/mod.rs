//! Plays each method against a daemon. The calls are the examples of `proto-docs/`; `AGENTD_BLESS=1` stores those whose
//! shape has changed.

mod record;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use agentd::api::methods::METHODS;
use serde_json::{Value, json};

use self::record::{Recorder, broken_promise, difference};
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::mcp_server::McpScript;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{POLL_INTERVAL, with_deadline};

/// Replies then show money.
const PRICE: &str = "[model.\"scripted/model\"]\nprice = { input = 1.0, output = 10.0 }\n";
/// Parts of replies that depend on the machine.
const VARIES: &[&str] = &[
    "daemon.status/result/sandbox",
    "daemon.status/result/confinement",
    "daemon.check/result",
    "daemon.metrics/result",
];

#[tokio::test]
async fn each_method_has_an_example_that_works() {
    let mut daemon = TestDaemon::builder().config(PRICE).build().await;
    let server = McpScript::new(&daemon, "memo");
    server.set(json!({"resources": [{"uri": "memo://plan", "name": "plan", "text": "Write tests."}]}));
    daemon.launch().await;
    make_repository(&daemon);
    daemon.models.set_fallback(|_| Step::text("Done."));
    let top = daemon.path("").canonicalize().expect("a folder");
    let places = vec![
        (std::env::current_exe().expect("a path"), "/usr/bin/mcp-memo"),
        (top.join("work"), "/home/ann/shop"),
        (top.join("data"), "/home/ann/.local/share"),
        (top, "/home/ann"),
    ];
    let play = Recorder::new(daemon.client("editor").await, places);
    connection(&play).await;
    workspace(&play, &daemon).await;
    turns(&play, &daemon).await;
    queue(&play, &daemon).await;
    questions(&play, &daemon).await;
    history(&play, &daemon).await;
    permissions(&play, &daemon).await;
    servers(&play, &daemon, &server).await;
    index(&play, &daemon).await;
    jobs(&play, &daemon).await;
    worktrees(&play, &daemon).await;
    play.call("daemon.shutdown", json!({})).await;

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto-docs/examples.json");
    let stored = std::fs::read_to_string(&file).expect("the examples");
    let stored: BTreeMap<String, Value> = serde_json::from_str(&stored).expect("examples");
    let mut kept = BTreeMap::new();
    let mut problems = Vec::new();
    for (method, now) in play.examples() {
        let problem = match stored.get(&method) {
            None => Some(format!("{method} has no stored example")),
            Some(stored) => difference(&method, stored, &now, VARIES),
        };
        kept.insert(method.clone(), if problem.is_none() { stored[&method].clone() } else { now });
        problems.extend(problem);
    }
    let missing: Vec<&str> =
        METHODS.iter().map(|method| method.name).filter(|name| !kept.contains_key(*name)).collect();
    assert!(missing.is_empty(), "no example is played of {missing:?}");
    if std::env::var_os("AGENTD_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&kept).expect("JSON");
        std::fs::write(&file, format!("{text}\n")).expect("written");
        return;
    }
    keeps_promise(&kept);
    assert!(
        problems.is_empty(),
        "run the tests with AGENTD_BLESS=1 and commit proto-docs/examples.json:\n{}",
        problems.join("\n")
    );
}

/// The calls of the first release of protocol version 1 still work: `tests/fixtures/protocol-1.json` is never rewritten.
fn keeps_promise(now: &BTreeMap<String, Value>) {
    let first = include_str!("../../fixtures/protocol-1.json");
    let first: BTreeMap<String, Value> = serde_json::from_str(first).expect("examples");
    for (name, example) in first {
        let method = METHODS.iter().find(|method| method.name == name);
        let method = method.unwrap_or_else(|| panic!("the method {name} is gone"));
        let params = example["params"].as_object().expect("parameters");
        let unknown = params.keys().find(|param| !method.param_names().contains(&param.as_str()));
        assert_eq!(unknown, None, "a parameter of {name} is gone");
        let path = format!("{name}/result");
        let broken = broken_promise(&path, &example["result"], &now[&name]["result"], VARIES);
        assert_eq!(broken, None, "clients of version 1 rely on it");
    }
}

fn make_repository(daemon: &TestDaemon) {
    daemon.write("src/parser.rs", "/// Reads tokens.\npub struct Parser;\n");
    daemon.write("README.md", "# Shop\n\nThe parser reads orders.\n");
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["config", "user.name", "Ann"],
        &["config", "user.email", "ann@example.org"],
        &["add", "-A"],
        &["commit", "-q", "-m", "first"],
    ] {
        let status = Command::new("git").arg("-C").arg(daemon.workspace()).args(args).status();
        assert!(status.expect("git runs").success(), "git {args:?}");
    }
}

async fn connection(play: &Recorder) {
    play.call("daemon.hello", json!({"protocol_version": 1, "name": "editor", "role": "controller"})).await;
    play.call("rpc.discover", json!({})).await;
    play.client.sandbox().await;
    play.call("daemon.status", json!({})).await;
    play.call("daemon.check", json!({})).await;
    play.call("daemon.metrics", json!({})).await;
    play.call("daemon.reload", json!({})).await;
    play.call("daemon.subscribe", json!({})).await;
    play.call("permission.subscribe", json!({})).await;
    play.call("model.list", json!({})).await;
    play.call("model.check", json!({})).await;
    play.call("tool.list", json!({"limit": 1})).await;
}

async fn workspace(play: &Recorder, daemon: &TestDaemon) {
    let cwd = json!(daemon.workspace());
    daemon.write(".agentd/commands/review.md", "---\ndescription: Reviews a change\n---\nReview it.\n");
    daemon.write(
        ".agentd/agents/critic.md",
        "---\nname: critic\ndescription: Finds faults\n---\nFind faults.\n",
    );
    daemon.write(".agentd/config.toml", "[permissions]\ndeny = [\"Edit(secret/**)\"]\n");
    let status = play.call("workspace.status", json!({ "cwd": cwd })).await;
    play.call("workspace.trust", json!({"cwd": cwd, "digest": status["digest"]})).await;
    play.call("workspace.restrictions", json!({ "cwd": cwd })).await;
    play.call("daemon.config", json!({ "cwd": cwd })).await;
    play.call("agent.list", json!({ "cwd": cwd })).await;
    play.call("command.list", json!({ "cwd": cwd })).await;
    let memory = json!({"cwd": cwd, "name": "style", "text": "Tests read as scenarios."});
    play.call("memory.set", memory).await;
    play.call("memory.list", json!({ "cwd": cwd })).await;
    play.call("memory.remove", json!({"cwd": cwd, "name": "style"})).await;
}

/// Creates a session and follows it.
async fn session(play: &Recorder, daemon: &TestDaemon, more: Value) -> (Value, Log) {
    let mut params = json!({ "cwd": daemon.workspace() });
    params.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
    let id = play.call("session.create", params).await["session"]["session_id"].clone();
    let subscription = play.call("session.subscribe", json!({"session_id": id, "after_seq": 0})).await;
    (id, Log::new(play.client.clone(), subscription.as_str().expect("an id").to_owned()))
}

async fn turns(play: &Recorder, daemon: &TestDaemon) {
    let (id, mut seen) = session(play, daemon, json!({"title": "Orders", "mode": "default"})).await;
    daemon.models.push(Step::calls([
        ("Write", json!({"file_path": "src/order.rs", "content": "pub struct Order;\n".repeat(5000)})),
        ("Bash", json!({"command": "touch done"})),
    ]));
    daemon.models.push(Step::text("I added the order."));
    let params = json!({"session_id": id, "input": "Add an order.", "idempotency_key": "9f1c"});
    play.call("session.submit", params).await;
    let asked = seen.wait_for("permission.requested").await;
    play.call("permission.list", json!({ "session_id": id })).await;
    let answer = json!({"request_id": asked["request_id"], "decision": "allow", "scope": "once"});
    play.call("session.approve", answer).await;
    let asked = seen.wait_for("permission.requested").await;
    let answer = json!({"request_id": asked["request_id"], "decision": "allow"});
    play.call("permission.respond", answer).await;
    seen.turn_ends("success").await;
    let requested = seen.events_of("tool.requested");
    let summaries: Vec<&Value> = requested.iter().map(|event| &event["summary"]).collect();
    assert_eq!(summaries, ["Write src/order.rs", "touch done"]);
    play.call("session.wait", json!({"session_id": id, "timeout_ms": 10_000})).await;
    play.call("session.get", json!({ "session_id": id })).await;
    play.call("session.list", json!({ "limit": 1 })).await;
    play.call("session.diff", json!({ "session_id": id })).await;
    play.call("session.context", json!({ "session_id": id })).await;
    play.call("session.request", json!({ "session_id": id })).await;
    play.call("session.events", json!({"session_id": id, "after_seq": 0, "limit": 2})).await;
    let items = play.call("session.items", json!({"session_id": id, "newest_first": true})).await;
    let long =
        items["items"].as_array().expect("items").iter().find_map(|item| item["truncated_fields"].get(0));
    let blob = json!({"session_id": id, "blob_id": long.expect("a long input")["blob_id"], "limit": 64});
    play.call("session.blob", blob).await;
    play.call("session.update", json!({"session_id": id, "title": "The order", "mode": "accept_edits"}))
        .await;
    play.call("model.usage", json!({ "session_id": id })).await;
    let subscription = play.call("session.subscribe", json!({ "session_id": id })).await;
    play.call("session.unsubscribe", json!({ "subscription": subscription })).await;
    play.call("session.compact", json!({ "session_id": id })).await;
    play.call("session.wait", json!({"session_id": id, "timeout_ms": 10_000})).await;
}

async fn queue(play: &Recorder, daemon: &TestDaemon) {
    let (id, mut seen) = session(play, daemon, json!({})).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("One two.").hold_after(1, &gate));
    let submit = |input: &str| json!({"session_id": id, "input": input, "when_busy": "queue"});
    let first = play.call("session.submit", submit("first")).await["turn_id"].clone();
    seen.wait_for("message.text_delta").await;
    let mut queued = Vec::new();
    for input in ["second", "third", "fourth"] {
        queued.push(play.call("session.submit", submit(input)).await["turn_id"].clone());
    }
    play.call("session.queue.list", json!({ "session_id": id })).await;
    play.call("session.queue.move", json!({"session_id": id, "turn_id": queued[1], "before": queued[0]}))
        .await;
    play.call("session.queue.update", json!({"session_id": id, "turn_id": queued[0], "input": "2nd"})).await;
    play.call("session.queue.remove", json!({"session_id": id, "turn_id": queued[2]})).await;
    play.call("session.queue.clear", json!({ "session_id": id })).await;
    play.call("session.abort", json!({"session_id": id, "turn_id": first})).await;
    gate.open();
    seen.turn_ends("aborted").await;
}

async fn questions(play: &Recorder, daemon: &TestDaemon) {
    let (id, mut seen) = session(play, daemon, json!({})).await;
    let question = json!([{"question": "Which colour?", "header": "Colour", "multi_select": false, "options": [
        {"label": "Red", "description": "Warm"}, {"label": "Blue", "description": "Cold"}]}]);
    daemon.models.push(Step::calls([("AskUser", json!({ "questions": question }))]));
    play.call("session.submit", json!({"session_id": id, "input": "Paint it."})).await;
    let asked = seen.wait_for("question.requested").await;
    let answer = json!({"request_id": asked["request_id"], "answers": [{"choices": ["Blue"]}]});
    play.call("session.answer", answer).await;
    seen.turn_ends("success").await;

    let (id, mut seen) = session(play, daemon, json!({"binary_feedback": true})).await;
    daemon.models.push(Step::text("It is blue."));
    daemon.models.push(Step::text("It is green."));
    play.call("session.submit", json!({"session_id": id, "input": "Which colour is it?"})).await;
    let asked = seen.wait_for("feedback.request").await;
    let choice = json!({"request_id": asked["request_id"], "item_id": asked["item_ids"][0]});
    play.call("session.feedback", choice).await;
    seen.turn_ends("success").await;
}

async fn history(play: &Recorder, daemon: &TestDaemon) {
    let (id, mut seen) = session(play, daemon, json!({})).await;
    play.call("session.submit", json!({"session_id": id, "input": "Say hello."})).await;
    seen.turn_ends("success").await;
    play.call("session.submit", json!({"session_id": id, "input": "Again."})).await;
    seen.turn_ends("success").await;
    let items = play.call("session.items", json!({"session_id": id, "kinds": ["user_message"]})).await;
    let second = items["items"][1]["item_id"].clone();
    play.call("session.fork", json!({"session_id": id, "item_id": second, "title": "Another way"})).await;
    play.call("session.rewind", json!({"session_id": id, "item_id": second, "dry_run": true})).await;
    let page = play.call("session.export", json!({"session_id": id, "format": "jsonl"})).await;
    let copy = play.call("session.import", json!({"data": page["data"], "last": true})).await;
    let copy = copy["session"]["session_id"].clone();
    play.call("session.archive", json!({"session_id": copy, "archived": true})).await;
    play.call("session.kill", json!({ "session_id": id })).await;
    play.call("session.delete", json!({ "session_id": copy })).await;
    play.call("daemon.backup", json!({"path": daemon.path("backup.db")})).await;
}

async fn permissions(play: &Recorder, daemon: &TestDaemon) {
    let workspace = json!(daemon.workspace());
    let input = json!({"command": "cargo test && git push"});
    let params =
        json!({"workspace": workspace, "tool": "Bash", "input": input, "allow": ["Bash(cargo test)"]});
    play.call("permission.explain", params).await;
    let rule =
        json!({"kind": "allow", "rule": "Bash(cargo test:*)", "scope": "project", "workspace": workspace});
    play.call("permission.add_rule", rule.clone()).await;
    play.call("permission.rules", json!({"workspace": workspace, "limit": 2})).await;
    play.call("permission.remove_rule", rule).await;
    play.call("permission.audit", json!({ "limit": 2 })).await;
    play.call("permission.verify_audit", json!({})).await;
}

async fn servers(play: &Recorder, daemon: &TestDaemon, server: &McpScript) {
    let cwd = json!(daemon.workspace());
    play.call("mcp.add", json!({"name": "memo", "config": server.entry(), "scope": "user"})).await;
    play.call("mcp.test", json!({ "name": "memo" })).await;
    play.call("mcp.list", json!({ "cwd": cwd })).await;
    play.call("mcp.tools", json!({"name": "memo", "cwd": cwd})).await;
    play.call("mcp.resources", json!({"name": "memo", "cwd": cwd})).await;
    play.call("mcp.logs", json!({"name": "memo", "cwd": cwd})).await;
    play.call("mcp.remove", json!({"name": "memo", "scope": "user"})).await;
    play.call("workspace.untrust", json!({ "cwd": cwd })).await;
}

async fn index(play: &Recorder, daemon: &TestDaemon) {
    let workspace = json!(daemon.workspace());
    let with = |more: Value| {
        let mut params = json!({ "workspace": workspace });
        params.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
        params
    };
    let entity =
        |name: &str| with(json!({"name": name, "type": "concept", "description": "A part of the shop."}));
    let relation = |more: Value| {
        let mut params = with(json!({"source": "Order", "target": "Parser"}));
        params.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
        params
    };
    let started = play.call("knowledge.index", with(json!({"paths": ["src"]}))).await;
    play.call("knowledge.subscribe", with(json!({"job_id": started["job_id"]}))).await;
    idle(play, &workspace).await;
    let document = json!({"documents": [{"id": "note-1", "text": "An order has items."}]});
    play.call("knowledge.insert", with(document)).await;
    idle(play, &workspace).await;
    play.call("knowledge.query", with(json!({"query": "parser", "only_need_context": true}))).await;
    play.call("knowledge.documents.list", with(json!({ "limit": 2 }))).await;
    play.call("knowledge.documents.get", with(json!({ "id": "note-1" }))).await;
    for name in ["Order", "Parser", "Lexer"] {
        play.call("knowledge.entity.create", entity(name)).await;
    }
    play.call("knowledge.entity.update", with(json!({"name": "Order", "description": "What is sold."})))
        .await;
    play.call("knowledge.relation.create", relation(json!({"description": "Is read by."}))).await;
    play.call("knowledge.relation.update", relation(json!({"weight": 2.0}))).await;
    play.call("knowledge.graph", with(json!({"name": "Order", "depth": 1}))).await;
    play.call("knowledge.relation.delete", relation(json!({}))).await;
    play.call("knowledge.entity.merge", with(json!({"sources": ["Lexer"], "target": "Parser"}))).await;
    play.call("knowledge.entity.delete", with(json!({ "name": "Order" }))).await;
    play.call("knowledge.status", with(json!({}))).await;
    let again = play.call("knowledge.index", with(json!({}))).await;
    play.call("knowledge.cancel", with(json!({"job_id": again["job_id"]}))).await;
    idle(play, &workspace).await;
    play.call("knowledge.documents.delete", with(json!({ "id": "note-1" }))).await;
    idle(play, &workspace).await;
    play.call("knowledge.cache.clear", with(json!({ "kinds": ["query"] }))).await;
    play.call("knowledge.delete", with(json!({}))).await;
}

/// Waits until the index of the workspace has no running job. These calls are no examples: their replies differ.
async fn idle(play: &Recorder, workspace: &Value) {
    let is_idle = async {
        loop {
            let status = play.client.call("knowledge.status", json!({ "workspace": workspace })).await;
            if status["state"] != "indexing" {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("an idle index", String::new, is_idle).await;
}

async fn jobs(play: &Recorder, daemon: &TestDaemon) {
    let cwd = json!(daemon.workspace());
    play.call("job.templates", json!({ "cwd": cwd })).await;
    play.call("job.pause", json!({})).await;
    let content = json!({"prompt": "Update the dependencies.", "cwd": cwd, "budgets": {"usd_micros": 1_000_000},
        "unique": {"key": "update", "scope": "active", "on_conflict": "return"}, "labels": {"team": "shop"}});
    let id = play.call("job.create", content).await["job"]["job_id"].clone();
    play.call("job.update", json!({"job_id": id, "priority": 10})).await;
    play.call("job.resume", json!({})).await;
    play.call("job.wait", json!({"job_id": id, "timeout_ms": 20_000})).await;
    play.call("job.get", json!({ "job_id": id })).await;
    play.call("job.list", json!({"states": ["succeeded"], "limit": 10})).await;
    play.call("job.logs", json!({"job_id": id, "limit": 2})).await;
    play.call("job.events", json!({ "job_id": id })).await;
    let later = json!({"prompt": "Sweep.", "cwd": cwd, "delay": "2h"});
    let later = play.call("job.create", later).await["job"]["job_id"].clone();
    play.call("job.cancel", json!({"job_id": later, "reason": "not needed"})).await;
    play.call("job.retry", json!({ "job_id": later })).await;
    play.call("job.wait", json!({"job_id": later, "timeout_ms": 20_000})).await;

    let schedule = json!({"name": "nightly", "cron": "0 3 * * *", "timezone": "Europe/Berlin",
        "job": {"prompt": "Update the dependencies.", "cwd": cwd}});
    let id = play.call("schedule.create", schedule).await["schedule"]["schedule_id"].clone();
    play.call("schedule.update", json!({"schedule_id": id, "cron": "30 3 * * MON-FRI"})).await;
    play.call("schedule.get", json!({ "schedule_id": id })).await;
    play.call("schedule.list", json!({})).await;
    play.call("schedule.trigger", json!({ "schedule_id": id })).await;
    play.call("schedule.next", json!({"cron": "0 3 * * *", "timezone": "Europe/Berlin", "count": 2})).await;
    play.call("schedule.delete", json!({ "schedule_id": id })).await;
}

async fn worktrees(play: &Recorder, daemon: &TestDaemon) {
    let (id, mut seen) = session(play, daemon, json!({"worktree": true, "mode": "accept_edits"})).await;
    let write = json!({"file_path": "src/total.rs", "content": "pub struct Total;\n"});
    daemon.models.push(Step::calls([("Write", write)]));
    play.call("session.submit", json!({"session_id": id, "input": "Add a total."})).await;
    seen.turn_ends("success").await;
    play.call("worktree.list", json!({})).await;
    play.call("worktree.diff", json!({ "session_id": id })).await;
    play.call("worktree.merge", json!({"session_id": id, "how": "ff"})).await;
    play.call("session.kill", json!({ "session_id": id })).await;
    play.call("worktree.remove", json!({ "session_id": id })).await;
}
