//! Removes or shortens the model's thinking as the subscription requests.
//!
//! The journal always contains the complete thinking. This filter applies before an event is sent to the
//! client. An event that contains only hidden thinking is skipped. Events are never renumbered, so cursors
//! stay exact. A completed message keeps every block at its position, with the visible part of its text.

use std::sync::Arc;

use serde::Deserialize;

use api::params::{Include, ThinkingShown};
use types::event::{Envelope, Event};
use types::history::RewoundHistory;
use types::message::Block;

/// Maximum characters of a thinking block that a summary shows.
const SUMMARY_CHARS: usize = 200;

/// The event as this subscriber may see it. `None` if nothing visible remains.
pub(super) fn redact(body: Arc<str>, include: Include) -> Option<Arc<str>> {
    if include.thinking == ThinkingShown::Full || !may_hold_thinking(&body) {
        return Some(body);
    }
    match kind(&body) {
        Some("message.thinking_delta") => None,
        Some("message.completed" | "history.repaired" | "session.rewound") => {
            Some(redact_body(&body, include.thinking).unwrap_or(body))
        }
        _ => Some(body),
    }
}

/// A cheap check before parsing. Quotes inside texts are escaped, so text of a user or model cannot
/// match. Arguments of a call can match; then the event is parsed.
fn may_hold_thinking(body: &str) -> bool {
    [
        r#""type":"message.thinking_delta""#,
        r#""type":"message.completed""#,
        r#""type":"history.repaired""#,
        r#""type":"session.rewound""#,
    ]
    .iter()
    .any(|mark| body.contains(mark))
}

fn kind(body: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct EventHead<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
    }
    serde_json::from_str::<EventHead<'_>>(body).ok().map(|head| head.kind)
}

/// Shortens the thinking in an event. Entries of truncated fields that would reveal more are removed.
/// This includes a truncated list of blocks, because its blob contains the complete blocks.
fn redact_body(body: &str, shown: ThinkingShown) -> Option<Arc<str>> {
    let mut envelope: Envelope = serde_json::from_str(body).ok()?;
    let mut hidden = vec![String::from("/item"), "/item/content".into(), "/messages".into()];
    match &mut envelope.event {
        Event::MessageCompleted { item, .. } => {
            redact_blocks(&mut item.content, "/item/content", shown, &mut hidden)
        }
        Event::HistoryRepaired { messages, .. } | Event::SessionRewound(RewoundHistory { messages, .. }) => {
            for (at, message) in messages.iter_mut().enumerate() {
                let place = format!("/messages/{at}/content");
                redact_blocks(&mut message.content, &place, shown, &mut hidden);
                hidden.push(place);
                hidden.push(format!("/messages/{at}"));
            }
        }
        _ => return None,
    }
    // The event contains no thinking, so return it unchanged.
    if hidden.iter().all(|place| !place.ends_with("/text")) {
        return None;
    }
    envelope.truncated_fields.retain(|field| !hidden.contains(&field.pointer));
    serde_json::to_string(&envelope).ok().map(Arc::from)
}

/// Shortens the thinking in these blocks, and adds the fields that a client must not expand to `hidden`.
fn redact_blocks(blocks: &mut [Block], place: &str, shown: ThinkingShown, hidden: &mut Vec<String>) {
    for (at, block) in blocks.iter_mut().enumerate() {
        let secret = match block {
            Block::Thinking { text, signature } => {
                *text = match shown {
                    ThinkingShown::Summary => head(text),
                    ThinkingShown::None | ThinkingShown::Full => String::new(),
                };
                *signature = None;
                "signature"
            }
            Block::RedactedThinking { data } => {
                data.clear();
                "data"
            }
            _ => continue,
        };
        hidden.push(format!("{place}/{at}/text"));
        hidden.push(format!("{place}/{at}/{secret}"));
        hidden.push(format!("{place}/{at}"));
    }
}

/// The first line of a thinking text, shortened to the limit.
fn head(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let is_all = line.len() == text.trim().len();
    match line.char_indices().nth(SUMMARY_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None if is_all => line.to_owned(),
        None => format!("{line} …"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::redact_thinking::*;

    const IDS: &str = r#""session_id":"ses_00000000000000000000000000000001","turn_id":"turn_00000000000000000000000000000001","item_id":"item_00000000000000000000000000000001","at_ms":1"#;

    fn event(rest: &str) -> Arc<str> {
        Arc::from(format!("{{\"seq\":7,{IDS},{rest}}}"))
    }

    fn redact_event(body: &Arc<str>, thinking: ThinkingShown) -> Option<Value> {
        let redacted = redact(Arc::clone(body), Include { thinking })?;
        Some(serde_json::from_str(&redacted).expect("an event"))
    }

    fn message(content: &Value, truncated: &Value) -> Arc<str> {
        let item = json!({"item_id":"item_00000000000000000000000000000001",
            "turn_id":"turn_00000000000000000000000000000001","kind":"assistant_message","status":"completed",
            "first_seq":3,"last_seq":7,"text":"so","role":"assistant","content":content});
        event(&format!("\"truncated_fields\":{truncated},\"type\":\"message.completed\",\"item\":{item}"))
    }

    #[test]
    fn thinking_deltas_are_sent_to_full_subscribers_only() {
        let thought = event(r#""type":"message.thinking_delta","index":0,"text":"hm""#);
        let text_delta =
            event(r#""type":"message.text_delta","index":1,"text":"\"type\":\"message.thinking_delta\"""#);
        let call = event(
            r#""type":"tool.requested","call_id":"call_00000000000000000000000000000001","tool":"T","input":{"type":"message.thinking_delta"}"#,
        );
        for (mode, is_shown) in
            [(ThinkingShown::Full, true), (ThinkingShown::Summary, false), (ThinkingShown::None, false)]
        {
            assert_eq!(redact_event(&thought, mode).is_some(), is_shown, "{mode:?}");
            for body in [&text_delta, &call] {
                let redacted = redact(Arc::clone(body), Include { thinking: mode }).expect("it is shown");
                assert!(Arc::ptr_eq(body, &redacted), "{mode:?}: {redacted}");
            }
        }
    }

    #[test]
    fn completed_message_keeps_blocks_with_redacted_thinking() {
        let long = "x".repeat(500);
        let content = json!([
            {"type":"thinking","text":format!("\nFirst this.\n{long}"),"signature":"s"},
            {"type":"redacted_thinking","data":"opaque"},
            {"type":"text","text":"so"},
        ]);
        let cuts = json!([
            {"pointer":"/item/content/0/text","blob_id":"blob_00000000000000000000000000000001","bytes":9,"media_type":"text/plain"},
            {"pointer":"/item/text","blob_id":"blob_00000000000000000000000000000002","bytes":9,"media_type":"text/plain"},
        ]);
        let body = message(&content, &cuts);
        let Some(whole) = redact_event(&body, ThinkingShown::Full) else { panic!("it is shown") };
        assert_eq!(whole["item"]["content"], content);
        for (mode, text) in [(ThinkingShown::Summary, "First this. …"), (ThinkingShown::None, "")] {
            let redacted = redact_event(&body, mode).expect("it is shown");
            assert_eq!(redacted["seq"], 7);
            let expected = json!([
                {"type":"thinking","text":text},
                {"type":"redacted_thinking","data":""},
                {"type":"text","text":"so"},
            ]);
            assert_eq!(redacted["item"]["content"], expected, "{mode:?}");
            let left: Vec<&Value> = redacted["truncated_fields"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|field| &field["pointer"])
                .collect();
            assert_eq!(left, ["/item/text"], "{mode:?}: what is hidden cannot be fetched");
        }
        let plain = message(&json!([{"type":"text","text":"so"}]), &json!([]));
        let redacted = redact(Arc::clone(&plain), Include { thinking: ThinkingShown::None }).expect("shown");
        assert!(Arc::ptr_eq(&plain, &redacted), "to the letter");
    }

    #[test]
    fn thinking_summary_is_beginning_of_text() {
        let long = "é".repeat(SUMMARY_CHARS + 1);
        for (text, expected) in [
            ("", String::new()),
            ("  \n one line \n", "one line".into()),
            ("one\ntwo", "one …".into()),
            (long.as_str(), format!("{}…", "é".repeat(SUMMARY_CHARS))),
        ] {
            assert_eq!(head(text), expected, "{text:.20}");
        }
    }
}
