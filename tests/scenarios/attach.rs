//! Clients that attach late, detach, reconnect or read slowly all receive every event exactly once.

use serde_json::{Value, json};

use super::{is_delta, permanent};
use crate::support::client::Session;
use crate::support::daemon::{MESSAGE_APIS, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};
use crate::support::raw::RawConnection;

/// A session in the middle of the answer "alpha beta gamma delta": two words are sent, and the gate
/// holds the rest.
async fn start_mid_message(daemon: &TestDaemon) -> (Session, Log, Gate) {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut seen = session.follow().await;
    let (first, gate) = (Gate::new(), Gate::new());
    let answer = Step::text("alpha beta gamma delta").hold_after(1, &first).hold_after(2, &gate);
    daemon.models.push(answer);
    session.submit("say it").await;
    // Send one word after the other, so that they become two events.
    seen.text_of("alpha ".len()).await;
    first.open();
    seen.text_of("beta ".len()).await;
    (session, seen, gate)
}

#[tokio::test]
async fn attach_during_message_sends_text_so_far_then_deltas() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder().api(api).start().await;
        let (session, mut seen, gate) = start_mid_message(&daemon).await;
        let mut late = daemon.client("bob").await.join(&session).follow().await;
        assert_eq!(late.text_of("alpha beta ".len()).await, "alpha beta ");
        gate.open();
        let answer = late.next_answer().await;
        assert_eq!(answer, seen.next_answer().await);
        assert_eq!(answer["item"]["text"], "alpha beta gamma delta");
        assert_eq!(late.streamed(&answer["item_id"]), "alpha beta gamma delta");
    }
}

#[tokio::test]
async fn cursor_inside_running_block_receives_missing_deltas_only() {
    let daemon = TestDaemon::start().await;
    let (session, seen, gate) = start_mid_message(&daemon).await;
    let alpha = seen.events_of("message.text_delta")[0].clone();
    assert_eq!(alpha["text"], "alpha ");
    let mut late = session.follow_after(alpha["seq"].as_u64().expect("a seq")).await;
    let mut at_end = session.follow_after(seen.last_seq()).await;
    assert_eq!(late.text_of(1).await, "beta ");
    gate.open();
    let answer = late.next_answer().await;
    assert_eq!(late.streamed(&answer["item_id"]), "beta gamma delta");
    at_end.next_answer().await;
    assert_eq!(at_end.streamed(&answer["item_id"]), "gamma delta");
}

#[tokio::test]
async fn cursor_inside_completed_block_receives_item_only() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, gate) = start_mid_message(&daemon).await;
    let alpha = seen.events_of("message.text_delta")[0].clone();
    gate.open();
    seen.turn_ends("success").await;
    let mut late = session.follow_after(alpha["seq"].as_u64().expect("a seq")).await;
    assert_eq!(late.next_answer().await["item"]["text"], "alpha beta gamma delta");
    late.turn_ends("success").await;
    assert!(late.events_of("message.text_delta").is_empty(), "{:?}", late.events());
}

#[tokio::test]
async fn cursor_beyond_last_seq_is_refused() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    for verb in ["subscribe", "events"] {
        let refusal = session.refused(verb, json!({"after_seq": 1_000_000})).await;
        assert_eq!((refusal.code, refusal.kind.as_str()), (-32015, "cursor_ahead"));
        assert!(refusal.data["last_seq"].is_u64(), "{refusal:?}");
    }
}

/// The seqs of both parts together are unique, in order, and contain every event that is not pruned.
fn assert_no_gap(parts: &[Vec<Value>], journal: &[Value]) {
    let all: Vec<Value> = parts.concat();
    let seqs: Vec<u64> = all.iter().map(|event| event["seq"].as_u64().expect("a seq")).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let shown = permanent(all);
    assert_eq!(shown, journal[..shown.len()]);
}

#[tokio::test]
async fn reconnect_with_last_seq_has_no_gap_or_duplicate() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let gates = [Gate::new(), Gate::new()];
    let answer = Step::text("alpha beta gamma delta").hold_after(1, &gates[0]).hold_after(3, &gates[1]);
    daemon.models.push(answer);
    session.submit("say it").await;
    seen.text_of(1).await;

    let mut parts = vec![seen.events()];
    drop((seen, session.clone(), alice));
    let session = daemon.client("alice again").await.join(&session);
    gates[0].open();
    let mut seen = session.follow_after(parts[0].last().expect("events")["seq"].as_u64().expect("seq")).await;
    seen.text_of("beta gamma ".len()).await;
    parts.push(seen.events());
    seen.unsubscribe().await;
    gates[1].open();
    let mut seen = session.follow_after(parts[1].last().expect("events")["seq"].as_u64().expect("seq")).await;
    seen.turn_ends("success").await;
    parts.push(seen.events());

    let journal = session.events().await;
    assert_no_gap(&parts, &journal);
    let deltas = parts.concat().into_iter().filter(|event| event["type"] == "message.text_delta");
    let text: String = deltas.map(|delta| delta["text"].as_str().expect("text").to_owned()).collect();
    // Text that arrived together with the end of the message is part of the completed message.
    let whole = "alpha beta gamma delta";
    assert!(whole.starts_with(&text) && text.len() >= "alpha beta gamma ".len(), "{text:?}");
    let last = parts.concat().into_iter().rfind(|event| event["type"] == "message.completed");
    assert!(last.expect("a completed message").to_string().contains(whole));
}

#[tokio::test]
async fn cursor_stays_valid_after_daemon_is_killed() {
    let mut daemon = TestDaemon::start().await;
    let (session, seen, _gate) = start_mid_message(&daemon).await;
    let before = seen.events();
    daemon.models.push(Step::text("once more"));
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    seen.turn_ends("success").await;
    assert_no_gap(&[before, seen.events()], &session.events().await);
}

#[tokio::test]
async fn unsubscribed_client_receives_no_more_events() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let ended = session.follow().await;
    let mut other = session.follow().await;
    assert_eq!(ended.unsubscribe().await, json!(true));
    let so_far = ended.events().len();
    assert_eq!(ended.unsubscribe().await, json!(false), "there is none any more");
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    other.turn_ends("success").await;
    assert_eq!(ended.events().len(), so_far);
}

#[tokio::test]
async fn attach_and_detach_are_published_to_other_clients() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    seen.wait_for("session.attached").await;
    {
        let bob = daemon.client("bob").await;
        let _his = bob.join(&session).follow().await;
        let came = seen.wait_for("session.attached").await;
        assert_eq!((&came["clients"], &came["origin"]["client"]), (&json!(2), &json!("bob")));
        assert_eq!(session.view().await["clients"], 2);
    }
    let left = seen.wait_for("session.detached").await;
    assert_eq!((&left["clients"], &left["origin"]["client"]), (&json!(1), &json!("bob")));
}

/// A client that subscribes and reads only when the test tells it to.
struct SlowReader(RawConnection);

impl SlowReader {
    async fn attach(daemon: &TestDaemon, session: &Session) -> Self {
        let mut raw = daemon.raw().await;
        let params = json!({"session_id": session.id});
        raw.line(json!({"jsonrpc": "2.0", "id": 1, "method": "session.subscribe", "params": params})).await;
        assert!(raw.next().await.expect("a reply")["result"].is_string());
        Self(raw)
    }

    /// Reads all events up to the end of the turn.
    async fn read_turn(mut self) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        while !events.last().is_some_and(|event| event["type"] == "turn.completed") {
            let mut message = self.0.next().await.expect("the connection stays");
            events.push(message["params"]["result"].take());
        }
        let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().expect("a seq")).collect();
        assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
        events
    }
}

fn streamed_text(events: &[Value], item_id: &Value) -> String {
    let deltas = events.iter().filter(|e| e["type"] == "message.text_delta" && e["item_id"] == *item_id);
    deltas.map(|delta| delta["text"].as_str().expect("text")).collect()
}

/// Texts of some kilobytes, all different.
fn pages(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{name}{n:06}_").repeat(8192 / (name.len() + 7))).collect()
}

#[tokio::test]
async fn slow_client_misses_nothing_and_delays_no_other() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let slow = SlowReader::attach(&daemon, &session).await;
    daemon.models.push(Step::pieces(pages("page", 640)));
    session.submit("write a book").await;
    seen.turn_ends("success").await;
    let whole = pages("page", 640).concat();
    assert!(whole.len() > 5_000_000);
    let ended = super::blobs::whole(&session.client, &session, &seen.events_of("turn.completed")[0]).await;
    assert!(ended["result"]["text"] == whole.as_str(), "the text of the result differs from the answer");

    let events = slow.read_turn().await;
    let item_id =
        events.iter().rfind(|e| e["type"] == "message.completed").expect("a message")["item_id"].clone();
    assert!(streamed_text(&events, &item_id) == whole, "the slow reader got another text");
    assert!(session.events().await.iter().all(|event| !is_delta(event)));
}

#[tokio::test]
async fn slow_client_receives_text_of_interrupted_message() {
    let daemon = TestDaemon::builder().config("[retry]\nbase_ms = 1").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let slow = SlowReader::attach(&daemon, &session).await;
    let broken = Step::pieces(pages("said", 400)).thinking(&pages("thought", 400).join(" "));
    daemon.models.push(broken.break_off("overloaded_error", "sorry"));
    daemon.models.push(Step::text("short"));
    session.submit("write a book").await;
    seen.turn_ends("success").await;

    let events = slow.read_turn().await;
    let cut = events.iter().find(|event| event["item"]["status"] == "interrupted").expect("a broken answer");
    let kept = super::blobs::whole(&session.client, &session, cut).await;
    assert!(kept["item"]["text"] == pages("said", 400).concat().as_str(), "not all text was kept");
    assert!(streamed_text(&events, &cut["item_id"]) == pages("said", 400).concat(), "another text was shown");
}
