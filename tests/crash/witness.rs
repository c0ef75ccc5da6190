//! What clients were told, written down outside the daemon: every acknowledgement and every event.
//! Whatever happens to the daemon, none of it may turn out to be untrue.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

/// Everything that any client was told.
#[derive(Default)]
pub struct ClientLog(Mutex<Notes>);

/// What was told of all sessions.
#[derive(Clone, Default)]
pub struct Notes {
    /// By session.
    pub sessions: BTreeMap<String, SeenEvent>,
}

/// What was told of one session.
#[derive(Clone, Default)]
pub struct SeenEvent {
    /// Permanent events by their number.
    pub events: BTreeMap<u64, Value>,
    /// The highest number that anybody saw.
    pub last_seq: u64,
    /// Acknowledged submits: the turn, and the number of the event that took it in.
    pub turns: Vec<(String, u64)>,
    /// Acknowledged answers: the request, and the number of the event that says so.
    pub answers: Vec<(String, u64)>,
    /// Acknowledged aborts: the turn.
    pub aborts: Vec<String>,
}

/// Rows that are folded away once the event that holds the whole is there.
pub fn is_delta(event: &Value) -> bool {
    event["type"].as_str().is_some_and(|kind| kind.ends_with("_delta") || kind == "tool.progress")
}

impl ClientLog {
    /// What is written down so far.
    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().expect("no panic")
    }

    /// A client was shown this. Two clients must be shown the same.
    pub fn saw(&self, session: &str, event: &Value) {
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

    /// A submit was acknowledged. The same turn is never acknowledged as another.
    pub fn submitted(&self, session: &str, reply: &Value) {
        let turn = (text(&reply["turn_id"]), reply["seq"].as_u64().expect("a number"));
        let mut notes = self.notes();
        let turns = &mut notes.sessions.entry(session.to_owned()).or_default().turns;
        if !turns.contains(&turn) {
            turns.push(turn);
        }
    }

    /// An answer was acknowledged.
    pub fn answered(&self, session: &str, request: &Value, reply: &Value) {
        let answer = (text(request), reply["seq"].as_u64().expect("a number"));
        self.notes().sessions.entry(session.to_owned()).or_default().answers.push(answer);
    }

    /// An abort was acknowledged.
    pub fn aborted(&self, session: &str, turn: &str) {
        self.notes().sessions.entry(session.to_owned()).or_default().aborts.push(turn.to_owned());
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// One client's reading of one session over all its connections: it always asks for what lies after
/// the last event it saw, and must get everything, once.
#[derive(Default)]
pub struct StreamCursor {
    /// The last event it saw.
    pub cursor: u64,
    /// Permanent events, in order.
    pub kept: Vec<u64>,
    /// Text of messages that are under way, by item.
    streamed: HashMap<String, String>,
    /// Of those, what came over this connection.
    fresh: HashSet<String>,
}

impl StreamCursor {
    /// A new connection begins.
    pub fn reconnected(&mut self) {
        self.fresh.clear();
    }

    /// Takes in one event.
    pub fn read(&mut self, event: &Value) {
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
                // Who comes back when the message is finished gets it whole; who comes back before,
                // or was never away, gets exactly what is missing.
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
