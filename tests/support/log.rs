//! The events of one subscription, read in order.
#![allow(dead_code, reason = "a tool box: not every test needs every tool")]

use serde_json::{Value, json};

use super::client::Client;

/// A subscription and the test's read position in it.
pub struct Log {
    client: Client,
    pub subscription: String,
    read: usize,
}

impl Log {
    pub fn new(client: Client, subscription: String) -> Self {
        Self { client, subscription, read: 0 }
    }

    /// Reads until `is_wanted` accepts an event, and returns it.
    pub async fn find(&mut self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let (subscription, read) = (&self.subscription, &mut self.read);
        self.client
            .wire
            .wait(what, |inbox| {
                let events = inbox.events.get(subscription).map_or(&[][..], Vec::as_slice);
                while let Some(event) = events.get(*read) {
                    *read += 1;
                    if is_wanted(event) {
                        return Some(event.clone());
                    }
                }
                None
            })
            .await
    }

    /// The next event. `None` when the daemon has closed the connection and all earlier events were
    /// read. Has no timeout.
    pub async fn next_or_end(&mut self) -> Option<Value> {
        let (subscription, read) = (&self.subscription, &mut self.read);
        let look = |inbox: &mut super::client::Inbox| {
            let next = inbox.events.get(subscription).and_then(|events| events.get(*read)).cloned();
            *read += usize::from(next.is_some());
            if next.is_none() && inbox.is_closed { Some(None) } else { next.map(Some) }
        };
        self.client.wire.wait_on(look).await
    }

    /// Reads until the next event of this kind, and returns it.
    pub async fn wait_for(&mut self, kind: &str) -> Value {
        self.find(kind, |event| event["type"] == kind).await
    }

    /// Reads until the next completed answer of the model.
    pub async fn next_answer(&mut self) -> Value {
        let is_answer =
            |event: &Value| event["type"] == "message.completed" && event["item"]["role"] == "assistant";
        self.find("an answer of the model", is_answer).await
    }

    /// Reads until the next event of this kind for this tool call.
    pub async fn wait_for_call(&mut self, kind: &str, call_id: &Value) -> Value {
        let is_wanted = |event: &Value| event["type"] == kind && event["call_id"] == *call_id;
        self.find(&format!("{kind} of {call_id}"), is_wanted).await
    }

    /// Reads until the turn ends; it must end with this subtype.
    pub async fn turn_ends(&mut self, subtype: &str) -> Value {
        let ended = self.wait_for("turn.completed").await;
        assert_eq!(ended["result"]["subtype"], subtype, "{ended:#}\n{}", self.client.wire.tail());
        ended["result"].clone()
    }

    /// Reads until the session has this state.
    pub async fn state_is(&mut self, state: &str) {
        let is_wanted = |event: &Value| event["type"] == "session.status" && event["state"] == state;
        self.find(&format!("the state {state}"), is_wanted).await;
    }

    /// Reads until this many bytes of the model's text have arrived, and returns the text.
    pub async fn text_of(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            let delta = self.wait_for("message.text_delta").await;
            text.push_str(delta["text"].as_str().expect("text"));
        }
        text
    }

    /// All events received so far, read or not.
    pub fn events(&self) -> Vec<Value> {
        let inbox = self.client.wire.inbox.lock().expect("no panic");
        inbox.events.get(&self.subscription).cloned().unwrap_or_default()
    }

    /// All received events of this kind.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// All streamed text of an item.
    pub fn streamed(&self, item_id: &Value) -> String {
        let deltas = self.events_of("message.text_delta").into_iter();
        let own = deltas.filter(|delta| delta["item_id"] == *item_id);
        own.map(|delta| delta["text"].as_str().expect("text").to_owned()).collect()
    }

    /// Seq of the newest received event.
    pub fn last_seq(&self) -> u64 {
        self.events().last().and_then(|event| event["seq"].as_u64()).unwrap_or_default()
    }

    /// Ends the subscription.
    pub async fn unsubscribe(&self) -> Value {
        self.client.call("session.unsubscribe", json!({"subscription": self.subscription})).await
    }
}
