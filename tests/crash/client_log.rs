//! A log of everything that clients received, kept outside the daemon: every acknowledgement and every
//! event. No crash of the daemon may make an entry untrue.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

/// Everything that any client received.
#[derive(Default)]
pub struct ClientLog(Mutex<ReceivedMessages>);

/// Received messages of all sessions.
#[derive(Clone, Default)]
pub struct ReceivedMessages {
    /// By session id.
    pub sessions: BTreeMap<String, SessionMessages>,
}

/// Received messages of one session.
#[derive(Clone, Default)]
pub struct SessionMessages {
    /// Events that are never pruned, by seq.
    pub events: BTreeMap<u64, Value>,
    /// The highest seq that any client saw.
    pub last_seq: u64,
    /// Acknowledged submits: the turn id, and the seq of the event that accepted the input.
    pub turns: Vec<(String, u64)>,
    /// Acknowledged answers: the request id, and the seq of the event that records the answer.
    pub answers: Vec<(String, u64)>,
    /// Acknowledged aborts: the turn id.
    pub aborts: Vec<String>,
}

/// Whether the daemon prunes this event when its item completes.
pub fn is_delta(event: &Value) -> bool {
    event["type"].as_str().is_some_and(|kind| kind.ends_with("_delta") || kind == "tool.progress")
}

impl ClientLog {
    /// The entries so far.
    pub fn notes(&self) -> MutexGuard<'_, ReceivedMessages> {
        self.0.lock().expect("no panic")
    }

    /// Records an event that a client received. Two clients must receive the same event for a seq.
    pub fn record_event(&self, session: &str, event: &Value) {
        let mut notes = self.notes();
        let told = notes.sessions.entry(session.to_owned()).or_default();
        let seq = event["seq"].as_u64().expect("a number");
        told.last_seq = told.last_seq.max(seq);
        if is_delta(event) {
            return;
        }
        if let Some(known) = told.events.get(&seq)
            && known != event
        {
            let (known, event) = (known.clone(), event.clone());
            drop(notes);
            panic!("{seq} was {known}, and is {event}");
        }
        told.events.insert(seq, event.clone());
    }

    /// Records an acknowledged submit. The daemon never acknowledges the same key with another turn.
    pub fn record_submit(&self, session: &str, reply: &Value) {
        let turn = (text(&reply["turn_id"]), reply["seq"].as_u64().expect("a number"));
        let mut notes = self.notes();
        let turns = &mut notes.sessions.entry(session.to_owned()).or_default().turns;
        if !turns.contains(&turn) {
            turns.push(turn);
        }
    }

    /// Records an acknowledged answer.
    pub fn record_answer(&self, session: &str, request: &Value, reply: &Value) {
        let answer = (text(request), reply["seq"].as_u64().expect("a number"));
        self.notes().sessions.entry(session.to_owned()).or_default().answers.push(answer);
    }

    /// Records an acknowledged abort.
    pub fn record_abort(&self, session: &str, turn: &str) {
        self.notes().sessions.entry(session.to_owned()).or_default().aborts.push(turn.to_owned());
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Position of one client in one session's events over all its connections. The client always requests
/// the events after its cursor and must receive each of them exactly once.
#[derive(Default)]
pub struct StreamCursor {
    /// Seq of the last received event.
    pub cursor: u64,
    /// Seqs of events that are never pruned, in order.
    pub kept: Vec<u64>,
    /// Streamed text of incomplete messages, by item id.
    streamed: HashMap<String, String>,
    /// The items of `streamed` that began on the current connection.
    fresh: HashSet<String>,
}

impl StreamCursor {
    /// Records the start of a new connection.
    pub fn start_connection(&mut self) {
        self.fresh.clear();
    }

    /// Records one event.
    pub fn record_event(&mut self, event: &Value) {
        let seq = event["seq"].as_u64().expect("a number");
        assert!(seq > self.cursor, "{seq} comes after {}: {event}", self.cursor);
        self.cursor = seq;
        if !is_delta(event) {
            self.kept.push(seq);
        }
        let Some(item) = event["item_id"].as_str() else { return };
        match event["type"].as_str() {
            Some("message.text_delta") => {
                self.streamed
                    .entry(item.to_owned())
                    .or_default()
                    .push_str(event["text"].as_str().expect("text"));
                self.fresh.insert(item.to_owned());
            }
            Some("message.completed") => {
                let streamed = self.streamed.remove(item).unwrap_or_default();
                let whole = event["item"]["text"].as_str().unwrap_or_default();
                // A client that reconnects after the message completed gets the complete text. A client
                // that reconnects earlier, or stayed connected, gets exactly the missing text.
                let is_right = match self.fresh.remove(item) {
                    true => whole == streamed,
                    false => whole.starts_with(&streamed),
                };
                assert!(is_right, "streamed {streamed:?}, but the whole is {whole:?}: {event}");
            }
            _ => {}
        }
    }
}
