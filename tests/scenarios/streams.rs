//! Subscriptions from any seq, and clients that do not read. Every seq that was ever shown is a valid
//! cursor. A client that never reads costs little memory and does not affect others.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{bash, is_delta, permanent};
use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::raw::RawConnection;
use crate::support::wait::poll_until;

fn seq(event: &Value) -> u64 {
    event["seq"].as_u64().expect("a seq")
}

/// Key of one stream of a block or a call: its kind, its item, its index.
type StreamKey = (String, String, String);

/// The text of each stream in events with a seq above `after`.
fn streamed(events: &[Value], after: u64) -> HashMap<StreamKey, String> {
    let mut texts: HashMap<StreamKey, String> = HashMap::new();
    for event in events.iter().filter(|event| is_delta(event) && seq(event) > after) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let place = format!("{}{}", event["index"], text("stream"));
        let stream = (text("type"), text("item_id") + &text("call_id"), place);
        let piece = event["text"].as_str().or(event["json"].as_str()).expect("a text");
        texts.entry(stream).or_default().push_str(piece);
    }
    texts
}

/// Subscribes with every seq up to `last` and expects exactly the later events. `all` is what a
/// continuously connected client received. Each attach adds two events, so with several attaches in a
/// row only the bounds are tried: otherwise the number of cursors would triple each time.
async fn every_seq_can_start_a_subscription(client: &Client, session: &Session, all: &[Value], last: u64) {
    let session = client.join(session);
    let all: Vec<Value> = all.iter().filter(|event| seq(event) <= last).cloned().collect();
    let mut journal = permanent(session.events().await);
    journal.retain(|event| seq(event) <= last);
    let bounds = |stream: &StreamKey| {
        let own = |event: &&Value| stream.1.contains(event["item_id"].as_str().unwrap_or("none"));
        let of = |kind: &str| journal.iter().filter(own).find(|event| event["type"] == kind).map(seq);
        let first = of("message.started").or(of("tool.requested")).expect("a start");
        (first, of("message.completed").or(of("tool.completed")))
    };
    let is_visit = |n: u64| {
        let event = all.iter().find(|event| seq(event) == n);
        event.is_some_and(|event| event["type"] == "session.attached" || event["type"] == "session.detached")
    };
    let whole = streamed(&all, 0);
    for after in (0..=last).filter(|n| *n == last || !(is_visit(*n) && is_visit(n + 1))) {
        let mut late = session.follow_after(after).await;
        // Its own attach event is the first event after `last`.
        late.find("an event after all the others", |event| seq(event) > last).await;
        late.unsubscribe().await;
        let mut given = late.events();
        given.retain(|event| seq(event) <= last);
        assert!(given.is_sorted_by(|a, b| seq(a) < seq(b)), "after {after}: {given:#?}");
        let expected: Vec<&Value> = journal.iter().filter(|event| seq(event) > after).collect();
        assert_eq!(permanent(given.clone()).iter().collect::<Vec<_>>(), expected, "after {after}");
        let got = streamed(&given, after);
        let to_come = streamed(&all, after);
        for (stream, whole) in &whole {
            let (first, end) = bounds(stream);
            let sum = got.get(stream).map_or("", String::as_str);
            let is_text = stream.0 == "message.text_delta" || stream.0 == "message.thinking_delta";
            let expected = match end {
                Some(end) if after >= end => "",
                // Inside a completed item the subscription gets the item only. The same holds for
                // everything that is not text.
                Some(_) if after >= first || !is_text => "",
                Some(_) => whole.as_str(),
                None => &whole[whole.len() - to_come.get(stream).map_or(0, String::len)..],
            };
            assert_eq!(sum, expected, "after {after}, {stream:?} from {first} to {end:?}");
        }
    }
    let refusal = session.refused("subscribe", json!({"after_seq": 1_000_000})).await;
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32015, "cursor_ahead"));
}

#[tokio::test]
async fn every_published_seq_is_valid_subscription_cursor() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let (bob, session) = (daemon.client("bob").await, daemon.client("alice").await.create(&daemon).await);
    let mut seen = session.follow().await;
    let (think, say, call, last) = (Gate::new(), Gate::new(), Gate::new(), Gate::new());
    let command = "echo one; echo two; until [ -e go ]; do sleep 0.02; done; echo three";
    daemon.models.push(
        Step::calls([bash(command)])
            .thinking("hm so so ")
            .say("alpha beta gamma delta ")
            .hold_after(2, &think)
            .hold_after(5, &say)
            .hold_after(8, &call),
    );
    daemon.models.push(Step::text("first second third").hold_after(2, &last));
    session.submit("say it and do it").await;

    // A running block: first reasoning, then text, then the arguments of a call.
    for (gate, kind) in [
        (&think, "message.thinking_delta"),
        (&say, "message.text_delta"),
        (&call, "message.tool_input_delta"),
    ] {
        gate.wait_reached().await;
        seen.wait_for(kind).await;
        every_seq_can_start_a_subscription(&bob, &session, &seen.events(), seen.last_seq()).await;
        gate.open();
    }
    // The deltas were just pruned, and a tool runs.
    let mut said = String::new();
    while said.lines().count() < 2 {
        said += seen.wait_for("tool.progress").await["text"].as_str().expect("text");
    }
    every_seq_can_start_a_subscription(&bob, &session, &seen.events(), seen.last_seq()).await;
    daemon.write("go", "");
    // A later answer, during which the daemon is killed.
    last.wait_reached().await;
    seen.text_of("first second ".len()).await;
    let number = seen.last_seq();
    every_seq_can_start_a_subscription(&bob, &session, &seen.events(), number).await;
    let all = seen.events();
    let last_seq = seen.last_seq();
    drop((seen, bob));
    daemon.models.push(Step::text("once more"));
    daemon.crash_and_restart().await;
    let carol = daemon.client("carol").await;
    let session = carol.join(&session);
    let mut seen = session.follow_after(last_seq).await;
    seen.turn_ends("success").await;
    // Include seqs that only the killed daemon assigned. The items that were open at these seqs have ended
    // since then.
    let all = [all, seen.events()].concat();
    every_seq_can_start_a_subscription(&carol, &session, &all, seen.last_seq()).await;
}

/// Resident memory in KiB.
fn resident_kib(daemon: &TestDaemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn pages(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{n:07} ").repeat(1024)).collect()
}

#[tokio::test]
async fn client_that_never_reads_uses_bounded_memory() {
    // Memory of finished sessions is reused for the next ones. Return freed memory to the system at
    // once, because otherwise the allocator's cache would dominate the measurement.
    let daemon = TestDaemon::builder()
        .config("[limits]\nloaded_sessions = 2")
        .environment("MALLOC_MMAP_THRESHOLD_", "32768")
        .environment("MALLOC_TRIM_THRESHOLD_", "32768")
        .environment("MALLOC_ARENA_MAX", "1")
        .start()
        .await;
    let alice = daemon.client("alice").await;
    let whole = pages(384).concat();
    daemon.models.set_fallback(|_| Step::pieces(pages(384)));
    let mut before = 0;
    // First without readers until memory no longer grows; then with twenty clients that subscribe to
    // everything and never read.
    for (crowd, books) in [(0, 2), (0, 2), (20, 2)] {
        let mut sessions = Vec::new();
        for _ in 0..books {
            sessions.push(alice.create(&daemon).await);
        }
        let mut stuck: Vec<RawConnection> = Vec::new();
        for _ in 0..crowd {
            let mut raw = daemon.raw().await;
            for session in &sessions {
                let params = json!({"session_id": session.id});
                raw.line(json!({"jsonrpc": "2.0", "id": 1, "method": "session.subscribe", "params": params}))
                    .await;
            }
            stuck.push(raw);
        }
        for session in &sessions {
            wait_client_count(session, crowd).await;
            let mut seen = session.follow().await;
            session.submit("write a book").await;
            let answer = seen.next_answer().await;
            assert!(seen.streamed(&answer["item_id"]) == whole, "the healthy one got another text");
            seen.turn_ends("success").await;
            seen.unsubscribe().await;
        }
        let now = resident_kib(&daemon);
        eprintln!("{crowd} who never read, {books} × {} bytes: {now} KiB", whole.len());
        if crowd == 0 {
            before = now;
        } else {
            // Without a bound it would be the whole text for each client: 120 MiB.
            let grown = now.saturating_sub(before);
            assert!(grown <= crowd as u64 * 1024, "{before} KiB became {now}: more than 1 MiB for each");
        }
    }
}

async fn wait_client_count(session: &Session, wanted: usize) {
    let look = async {
        while session.view().await["clients"] != wanted as u64 {
            tokio::time::sleep(crate::support::wait::POLL_INTERVAL).await;
        }
    };
    crate::support::wait::with_deadline("all to be attached", String::new, look).await;
}

/// The daemon has few descriptors: it refuses excess connections and serves the open ones.
#[tokio::test]
async fn excess_connections_are_refused_when_descriptors_are_few() {
    let daemon = TestDaemon::builder().descriptors(64).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    for round in 0..3 {
        let mut crowd = Vec::new();
        for _ in 0..100 {
            crowd.push(std::os::unix::net::UnixStream::connect(daemon.socket()).expect("there is a queue"));
        }
        daemon.models.push(Step::calls([bash("sh -c 'echo said'")]));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let asked = seen.wait_for("permission.requested").await;
        session.allow(&asked).await;
        let done = seen.wait_for("tool.completed").await;
        assert!(done["output"].as_str().expect("output").contains("said"), "round {round}: {done}");
        seen.turn_ends("success").await;
        let before = cpu_ticks(&daemon);
        for _ in 0..50 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            session.view().await;
        }
        let ticks = cpu_ticks(&daemon) - before;
        assert!(ticks < 40, "{ticks} hundredths of a second of work while nothing happened");
        drop(crowd);
    }
    // The daemon accepts connections again.
    let seen = || daemon.log();
    let mut fresh = None;
    poll_until("a further connection", seen, || {
        fresh = std::os::unix::net::UnixStream::connect(daemon.socket()).ok();
        fresh.is_some().then_some(())
    })
    .await;
    let answer = async {
        loop {
            let mut raw = daemon.raw().await;
            // The daemon may close the connection before the client has sent anything.
            raw.try_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.status\"}\n").await;
            if raw.next().await.is_some_and(|reply| reply["result"].is_object()) {
                return;
            }
        }
    };
    crate::support::wait::with_deadline("an answer", || daemon.log(), answer).await;
}

/// Processor time of the daemon so far, in ticks of 10 ms.
fn cpu_ticks(daemon: &TestDaemon) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let field = |at: usize| fields[at].parse::<u64>().expect("a number");
    field(11) + field(12)
}

#[tokio::test]
async fn connections_over_limit_are_refused_with_reason() {
    let daemon = TestDaemon::builder().config("[limits]\nconnections = 40").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let mut told = 0;
    for wave in 0..25 {
        let mut crowd = Vec::new();
        for n in 0..200 {
            let mut raw = daemon.raw().await;
            if n % 7 == wave % 7 {
                // Half a frame, in one framing or the other.
                let half =
                    ["{\"jsonrpc\":\"2.0\",", "Content-Length: 900\r\n\r\n{", "GET / HTTP/1.1\r\nUpgr"];
                raw.try_send(half[n % 3]).await;
            }
            crowd.push(raw);
        }
        if wave == 0 {
            // All connections stay open: those over the limit receive an error and are closed.
            while told < 200 - 40 {
                let mut raw = crowd.pop().expect("there are more");
                let refusal = raw.next().await.expect("a word");
                assert_eq!(refusal["error"]["data"]["kind"], "overloaded", "{refusal}");
                assert!(raw.next().await.is_none(), "the daemon closes the connection");
                told += 1;
            }
        }
        drop(crowd);
    }
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn one_connection_can_hold_hundreds_of_subscriptions() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let params = json!({"session_id": session.id});
    for _ in 0..300 {
        assert!(alice.call("session.subscribe", params.clone()).await.is_string());
    }
}
