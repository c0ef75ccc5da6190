//! Properties of every event of every subscription in every scenario. A violation fails the test that
//! saw it, whatever that test is about.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde_json::Value;

/// Maximum bytes of a delta on the wire, with a small allowance for its frame.
const MAX_EVENT_BYTES: usize = 64 * 1024 + 512;

/// The properties of one subscription, with the state that they need.
#[derive(Default)]
pub(super) struct StreamProperties {
    last_seq: u64,
    /// Streamed text by item id.
    streamed: HashMap<String, String>,
    /// Items whose start this subscription received live.
    begun: HashSet<String>,
    completed: HashSet<String>,
}

impl StreamProperties {
    pub fn check(&mut self, event: &Value, bytes: usize) -> Result<(), String> {
        let kind = event["type"].as_str().ok_or("no type")?;
        let seq = event["seq"].as_u64().ok_or("no seq")?;
        rule(seq > self.last_seq, || format!("seq {seq} after {}", self.last_seq))?;
        self.last_seq = seq;
        rule(event["session_id"].as_str().is_some_and(|id| id.starts_with("ses_")), || "no session".into())?;
        rule(event["at_ms"].is_i64() || event["at_ms"].is_u64(), || "no time".into())?;
        rule(documented().contains(kind), || format!("{kind} has no heading in proto-docs/events.md"))?;
        rule(bytes <= MAX_EVENT_BYTES, || format!("{bytes} bytes"))?;
        let item = event["item_id"].as_str().unwrap_or_default().to_owned();
        match kind {
            "message.started" => {
                self.begun.insert(item);
            }
            "message.text_delta" => {
                rule(!self.completed.contains(&item), || "text after the end of its message".into())?;
                self.streamed.entry(item).or_default().push_str(event["text"].as_str().ok_or("no text")?);
            }
            "message.completed" => {
                let text = event["item"]["text"].as_str().unwrap_or_default();
                let streamed = self.streamed.get(&item).map_or("", String::as_str);
                let is_right = match bytes_of(event, "/item/text") {
                    None => text.ends_with(streamed),
                    // The event contains only the beginning of the value.
                    Some(whole) if self.begun.contains(&item) => {
                        streamed.starts_with(text) && streamed.len() as u64 == whole
                    }
                    Some(whole) => streamed.len() as u64 <= whole,
                };
                rule(is_right, || format!("streamed {streamed:.999?}, but the whole is {text:.999?}"))?;
                rule(self.completed.insert(item), || "a message ends twice".into())?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Full length in bytes of the value at a JSON pointer of an event that contains only its beginning.
pub fn bytes_of(event: &Value, place: &str) -> Option<u64> {
    event["truncated_fields"].as_array()?.iter().find(|field| field["pointer"] == place)?["bytes"].as_u64()
}

fn rule(is_kept: bool, breach: impl FnOnce() -> String) -> Result<(), String> {
    if is_kept { Ok(()) } else { Err(breach()) }
}

/// Event kinds with a heading in the written reference.
fn documented() -> &'static HashSet<String> {
    static KINDS: OnceLock<HashSet<String>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/proto-docs/events.md");
        let page = std::fs::read_to_string(page).unwrap_or_else(|_| agentd::api::docs::events_page());
        page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect()
    })
}
