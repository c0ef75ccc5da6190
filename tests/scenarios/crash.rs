//! Kills the daemon with SIGKILL after each event of the main scenario. At every moment: shown events
//! are kept, the command ran at most once, the turn completes, and the next turn works.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{bash, permanent};
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

/// Answers permission requests until the turn ends or this many events were received.
async fn work(session: &Session, seen: &mut Log, most: usize) -> Option<Value> {
    for _ in 0..most {
        let event = seen.find("anything", |_| true).await;
        match event["type"].as_str() {
            Some("permission.requested") => {
                let answer = json!({"request_id": event["request_id"], "decision": "allow"});
                session.client.send("session.approve", answer).await;
            }
            Some("question.requested") => {
                let answer = json!({"request_id": event["request_id"], "choice": "continue"});
                session.client.send("session.answer", answer).await;
            }
            Some("turn.completed") => return Some(event),
            _ => {}
        }
    }
    None
}

/// One scenario with a crash after `moment` events of the turn. Returns whether the turn ended before
/// that.
async fn crash_after(moment: usize) -> bool {
    let mut daemon = TestDaemon::start().await;
    let calls = || Step::calls([bash("echo once >> log.txt"), ("LS", json!({"path": "."}))]).say("I log it.");
    daemon.models.set_fallback(move |request| match request.body.to_string().contains("tool_result") {
        true => Step::text("It is logged."),
        false => calls(),
    });
    let session = daemon.client("alice").await.create(&daemon).await;
    let turn = session.submit("log it").await;
    let mut seen = session.follow().await;
    let is_over = work(&session, &mut seen, moment).await.is_some();
    daemon.kill().await;
    let shown = seen.events();

    daemon.launch().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    let ended = work(&session, &mut seen, usize::MAX).await.expect("the turn ends");
    assert_eq!(ended["turn_id"], json!(turn));
    let why = |what: &str| format!("{what}, killed after {moment} events: {shown:#?}");

    let journal = session.events().await;
    for event in permanent(shown.clone()) {
        assert!(journal.contains(&event), "{}", why(&format!("{event} is lost")));
    }
    let mut times: HashMap<(String, String), usize> = HashMap::new();
    for event in journal.iter().filter(|event| event["call_id"].is_string()) {
        let text = |name: &str| event[name].as_str().expect("a text").to_owned();
        *times.entry((text("type"), text("call_id"))).or_default() += 1;
    }
    let twice: Vec<_> = times.into_iter().filter(|(_, times)| *times > 1).collect();
    assert!(twice.is_empty(), "{}", why(&format!("twice: {twice:?}")));

    let is_command = |event: &&Value| event["type"] == "tool.completed" && event["tool"] == "Bash";
    let command = journal.iter().find(is_command).expect("the command has an outcome");
    let log = daemon.read("log.txt");
    match command["status"].as_str() {
        Some("completed") => assert_eq!(log, "once\n", "{}", why("the log")),
        Some("unknown") => assert!(log.is_empty() || log == "once\n", "{}", why(&log)),
        other => panic!("{}", why(&format!("the command is {other:?}"))),
    }

    session.submit("and now?").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
    is_over
}

/// Tests every second moment, so that two tests share the work.
async fn crash_at_moments(first: usize) {
    let mut moment = first;
    while !crash_after(moment).await {
        moment += 2;
    }
    assert!(moment > 20, "the turn was over after {moment} events");
}

#[tokio::test]
async fn crash_at_even_points_loses_and_repeats_nothing() {
    crash_at_moments(0).await;
}

#[tokio::test]
async fn crash_at_odd_points_loses_and_repeats_nothing() {
    crash_at_moments(1).await;
}
