//! Coming later, leaving, coming back, reading slowly: everybody gets the same story once.

use serde_json::{Value, json};

use super::{is_foldable, permanent};
use crate::support::client::Session;
use crate::support::daemon::{BOTH_APIS, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};
use crate::support::raw::Raw;

/// A session that is being answered "alpha beta gamma delta": two words are out, the gate holds
/// the rest.
async fn in_mid_message(house: &TestDaemon) -> (Session, Log, Gate) {
    let session = house.client("alice").await.create(house).await;
    let mut seen = session.follow().await;
    let (first, gate) = (Gate::new(), Gate::new());
    let answer = Step::text("alpha beta gamma delta").hold_after(1, &first).hold_after(2, &gate);
    house.models.push(answer);
    session.submit("say it").await;
    // One word after the other, so that they are two events.
    seen.text_of("alpha ".len()).await;
    first.open();
    seen.text_of("beta ".len()).await;
    (session, seen, gate)
}

#[tokio::test]
async fn who_comes_in_mid_message_gets_the_text_so_far_and_then_the_rest() {
    for api in BOTH_APIS {
        let house = TestDaemon::builder().api(api).start().await;
        let (session, mut seen, gate) = in_mid_message(&house).await;
        let mut late = house.client("bob").await.join(&session).follow().await;
        assert_eq!(late.text_of("alpha beta ".len()).await, "alpha beta ");
        gate.open();
        let answer = late.answer().await;
        assert_eq!(answer, seen.answer().await);
        assert_eq!(answer["item"]["text"], "alpha beta gamma delta");
        assert_eq!(late.streamed(&answer["item_id"]), "alpha beta gamma delta");
    }
}

#[tokio::test]
async fn a_cursor_inside_a_running_block_gets_exactly_what_is_missing() {
    let house = TestDaemon::start().await;
    let (session, seen, gate) = in_mid_message(&house).await;
    let alpha = seen.seen_of("message.text_delta")[0].clone();
    assert_eq!(alpha["text"], "alpha ");
    let mut late = session.follow_after(alpha["seq"].as_u64().expect("a seq")).await;
    let mut at_end = session.follow_after(seen.last_seq()).await;
    assert_eq!(late.text_of(1).await, "beta ");
    gate.open();
    let answer = late.answer().await;
    assert_eq!(late.streamed(&answer["item_id"]), "beta gamma delta");
    at_end.answer().await;
    assert_eq!(at_end.streamed(&answer["item_id"]), "gamma delta");
}

#[tokio::test]
async fn a_cursor_inside_a_finished_block_gets_the_item_alone() {
    let house = TestDaemon::start().await;
    let (session, mut seen, gate) = in_mid_message(&house).await;
    let alpha = seen.seen_of("message.text_delta")[0].clone();
    gate.open();
    seen.turn_ends("success").await;
    let mut late = session.follow_after(alpha["seq"].as_u64().expect("a seq")).await;
    assert_eq!(late.answer().await["item"]["text"], "alpha beta gamma delta");
    late.turn_ends("success").await;
    assert!(late.seen_of("message.text_delta").is_empty(), "{:?}", late.seen());
}

#[tokio::test]
async fn a_cursor_beyond_the_end_is_an_error_and_not_silence() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    for verb in ["subscribe", "events"] {
        let refusal = session.refused(verb, json!({"after_seq": 1_000_000})).await;
        assert_eq!((refusal.code, refusal.kind.as_str()), (-32015, "cursor_ahead"));
        assert!(refusal.data["last_seq"].is_u64(), "{refusal:?}");
    }
}

/// The seqs of both parts together: each one once, in order, and everything permanent among them.
fn assert_no_gap(parts: &[Vec<Value>], journal: &[Value]) {
    let all: Vec<Value> = parts.concat();
    let seqs: Vec<u64> = all.iter().map(|event| event["seq"].as_u64().expect("a seq")).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let shown = permanent(all);
    assert_eq!(shown, journal[..shown.len()]);
}

#[tokio::test]
async fn who_comes_back_with_the_last_seq_goes_on_without_a_gap_or_a_duplicate() {
    let house = TestDaemon::start().await;
    let alice = house.client("alice").await;
    let session = alice.create(&house).await;
    let mut seen = session.follow().await;
    let gates = [Gate::new(), Gate::new()];
    let answer = Step::text("alpha beta gamma delta").hold_after(1, &gates[0]).hold_after(3, &gates[1]);
    house.models.push(answer);
    session.submit("say it").await;
    seen.text_of(1).await;

    let mut parts = vec![seen.seen()];
    drop((seen, session.clone(), alice));
    let session = house.client("alice again").await.join(&session);
    gates[0].open();
    let mut seen = session.follow_after(parts[0].last().expect("events")["seq"].as_u64().expect("seq")).await;
    seen.text_of("beta gamma ".len()).await;
    parts.push(seen.seen());
    seen.unsubscribe().await;
    gates[1].open();
    let mut seen = session.follow_after(parts[1].last().expect("events")["seq"].as_u64().expect("seq")).await;
    seen.turn_ends("success").await;
    parts.push(seen.seen());

    let journal = session.events().await;
    assert_no_gap(&parts, &journal);
    let deltas = parts.concat().into_iter().filter(|event| event["type"] == "message.text_delta");
    let text: String = deltas.map(|delta| delta["text"].as_str().expect("text").to_owned()).collect();
    // What came in one piece with its end is shown with the whole.
    let whole = "alpha beta gamma delta";
    assert!(whole.starts_with(&text) && text.len() >= "alpha beta gamma ".len(), "{text:?}");
    let last = parts.concat().into_iter().rfind(|event| event["type"] == "message.completed");
    assert!(last.expect("its end").to_string().contains(whole));
}

#[tokio::test]
async fn a_cursor_survives_kill_9_of_the_daemon() {
    let mut house = TestDaemon::start().await;
    let (session, seen, _gate) = in_mid_message(&house).await;
    let before = seen.seen();
    house.models.push(Step::text("once more"));
    house.crash_and_restart().await;
    let session = house.client("alice").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    seen.turn_ends("success").await;
    assert_no_gap(&[before, seen.seen()], &session.events().await);
}

#[tokio::test]
async fn after_unsubscribe_nothing_more_comes() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    let ended = session.follow().await;
    let mut other = session.follow().await;
    assert_eq!(ended.unsubscribe().await, json!(true));
    let so_far = ended.seen().len();
    assert_eq!(ended.unsubscribe().await, json!(false), "there is none any more");
    house.models.push(Step::text("Hello."));
    session.submit("hello").await;
    other.turn_ends("success").await;
    assert_eq!(ended.seen().len(), so_far);
}

#[tokio::test]
async fn coming_and_going_is_visible_to_those_who_stay() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    seen.wait_for("session.attached").await;
    {
        let bob = house.client("bob").await;
        let _his = bob.join(&session).follow().await;
        let came = seen.wait_for("session.attached").await;
        assert_eq!((&came["clients"], &came["origin"]["client"]), (&json!(2), &json!("bob")));
        assert_eq!(session.view().await["clients"], 2);
    }
    let left = seen.wait_for("session.detached").await;
    assert_eq!((&left["clients"], &left["origin"]["client"]), (&json!(1), &json!("bob")));
}

/// Somebody who subscribes and then does not read, until asked to.
struct SlowReader(Raw);

impl SlowReader {
    async fn of(house: &TestDaemon, session: &Session) -> Self {
        let mut raw = house.raw().await;
        let params = json!({"session_id": session.id});
        raw.line(json!({"jsonrpc": "2.0", "id": 1, "method": "session.subscribe", "params": params})).await;
        assert!(raw.next().await.expect("a reply")["result"].is_string());
        Self(raw)
    }

    /// Reads it all up to the end of the turn: every event.
    async fn catches_up(mut self) -> Vec<Value> {
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

/// Pieces of some kilobytes, every one different.
fn pages(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{name}{n:06}_").repeat(8192 / (name.len() + 7))).collect()
}

#[tokio::test]
async fn who_reads_slowly_holds_nobody_up_and_misses_nothing() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    let slow = SlowReader::of(&house, &session).await;
    house.models.push(Step::pieces(pages("page", 640)));
    session.submit("write a book").await;
    seen.turn_ends("success").await;
    let whole = pages("page", 640).concat();
    assert!(whole.len() > 5_000_000);
    let ended = super::blobs::whole(&session.client, &session, &seen.seen_of("turn.completed")[0]).await;
    assert!(ended["result"]["text"] == whole.as_str(), "the text of the result is not what was said");

    let events = slow.catches_up().await;
    let item_id =
        events.iter().rfind(|e| e["type"] == "message.completed").expect("a message")["item_id"].clone();
    assert!(streamed_text(&events, &item_id) == whole, "the slow reader got another text");
    assert!(session.events().await.iter().all(|event| !is_foldable(event)));
}

#[tokio::test]
async fn who_reads_slowly_gets_the_text_of_an_answer_that_broke_off() {
    let house = TestDaemon::builder().config("[retry]\nbase_ms = 1").start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    let slow = SlowReader::of(&house, &session).await;
    let broken = Step::pieces(pages("said", 400)).thinking(&pages("thought", 400).join(" "));
    house.models.push(broken.break_off("overloaded_error", "sorry"));
    house.models.push(Step::text("short"));
    session.submit("write a book").await;
    seen.turn_ends("success").await;

    let events = slow.catches_up().await;
    let cut = events.iter().find(|event| event["item"]["status"] == "interrupted").expect("a broken answer");
    let kept = super::blobs::whole(&session.client, &session, cut).await;
    assert!(kept["item"]["text"] == pages("said", 400).concat().as_str(), "not all text was kept");
    assert!(streamed_text(&events, &cut["item_id"]) == pages("said", 400).concat(), "another text was shown");
}
