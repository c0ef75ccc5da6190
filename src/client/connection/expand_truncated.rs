//! Completes events: reads the truncated values of an event from the daemon and inserts them.

use api::methods;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connection::client::{CallError, Client};
use crate::connection::wire::ReceivedEvent;
use api::params::{BlobEncoding, BlobParams, BlobReply};
use types::blob::TruncatedField;
use types::ids::{BlobId, SessionId};
use types::permission_request::PendingRequest;
use types::wire::fill;

/// Bytes per request.
const READ_BYTES: u32 = 1 << 20;

/// Whether a value of the event was truncated.
pub(crate) fn is_truncated(received: &ReceivedEvent) -> bool {
    received.event.as_ref().is_some_and(|event| !event.truncated_fields.is_empty())
}

/// The event with the full values of all its truncated fields. A value that the daemon no longer has
/// stays truncated.
pub(crate) async fn whole(client: &Client, received: ReceivedEvent) -> Result<ReceivedEvent, CallError> {
    let Some(event) = received.event.as_ref().filter(|event| !event.truncated_fields.is_empty()) else {
        return Ok(received);
    };
    let Ok(mut value) = serde_json::from_str::<Value>(received.raw.get()) else { return Ok(received) };
    insert_values(client, event.session_id, &mut value, &event.truncated_fields).await?;
    let whole = RawValue::from_string(value.to_string()).and_then(|raw| ReceivedEvent::parse(&raw));
    Ok(whole.unwrap_or(received))
}

/// The pending request with the full values of its truncated fields.
pub(crate) async fn request(client: &Client, pending: PendingRequest) -> Result<PendingRequest, CallError> {
    let Ok(mut value) = serde_json::to_value(&pending) else { return Ok(pending) };
    insert_values(client, pending.session_id, &mut value, &pending.truncated_fields).await?;
    Ok(serde_json::from_value(value).unwrap_or(pending))
}

/// Inserts the full values. Only fields that stay truncated remain in the list.
async fn insert_values(
    client: &Client,
    session_id: SessionId,
    value: &mut Value,
    truncated: &[TruncatedField],
) -> Result<(), CallError> {
    let mut blobs: Vec<(BlobId, Vec<u8>)> = Vec::new();
    let mut left: Vec<TruncatedField> = Vec::new();
    for field in truncated {
        if blobs.iter().all(|(id, _)| *id != field.blob_id) {
            match blob(client, session_id, field.blob_id).await {
                Ok(bytes) => blobs.push((field.blob_id, bytes)),
                Err(CallError::Fault(_)) => {
                    left.push(field.clone());
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        let bytes = |field: &TruncatedField| {
            blobs.iter().find(|(id, _)| *id == field.blob_id).map(|(_, b)| b.clone())
        };
        if fill(value, std::slice::from_ref(field), bytes).is_none() {
            left.push(field.clone());
        }
    }
    if let Some(fields) = value.as_object_mut() {
        fields.remove("truncated_fields");
        if let (false, Ok(left)) = (left.is_empty(), serde_json::to_value(&left)) {
            fields.insert("truncated_fields".into(), left);
        }
    }
    Ok(())
}

/// Reads a whole blob in parts.
async fn blob(client: &Client, session_id: SessionId, blob_id: BlobId) -> Result<Vec<u8>, CallError> {
    let mut bytes = Vec::new();
    let mut params = BlobParams { session_id, blob_id, offset: 0, limit: Some(READ_BYTES) };
    loop {
        let reply: BlobReply = client.call::<methods::session::Blob>(&params).await?;
        match reply.encoding {
            BlobEncoding::Text => bytes.extend_from_slice(reply.content.as_bytes()),
            BlobEncoding::Base64 => bytes.extend(STANDARD.decode(&reply.content).unwrap_or_default()),
        }
        match reply.next_offset {
            Some(next) if next > params.offset => params.offset = next,
            _ => return Ok(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::connection::expand_truncated::*;
    use crate::fake_daemon::{FakeDaemon, SESSION};

    const BLOB: &str = "blob_0190f2a4-0000-8000-8000-000000000009";

    fn event(truncated: Value) -> ReceivedEvent {
        let event = json!({"seq": 7, "session_id": SESSION, "at_ms": 1, "type": "notice", "kind": "k",
                           "text": "the beg", "truncated_fields": truncated});
        ReceivedEvent::parse(&RawValue::from_string(event.to_string()).expect("json")).expect("an event")
    }

    #[tokio::test]
    async fn truncated_values_are_restored_from_blobs_when_available() {
        let text = "the beginning, and more é".repeat(3);
        let served = text.clone();
        let fake = FakeDaemon::start(move |_, _, params| {
            if params["blob_id"] != BLOB {
                return Err(json!({"code": -32004, "message": "no", "data": {"kind": "not_found"}}));
            }
            let offset = usize::try_from(params["offset"].as_u64().expect("a number")).expect("small");
            let end = served.ceil_char_boundary((offset + 10).min(served.len()));
            let mut reply = json!({"blob_id": BLOB, "media_type": "text/plain", "bytes": served.len(),
                                   "offset": offset, "content": served[offset..end], "encoding": "text"});
            if end < served.len() {
                reply["next_offset"] = json!(end);
            }
            Ok(reply)
        });
        let client = fake.connector().connect_again().await.expect("connected");
        let cut = |blob: &str| json!([{"pointer": "/text", "blob_id": blob, "bytes": 9, "media_type": "text/plain"}]);
        let got = whole(&client, event(cut(BLOB))).await.expect("whole");
        let value: Value = serde_json::from_str(got.raw.get()).expect("json");
        assert_eq!((value["text"].as_str(), &value["truncated_fields"]), (Some(&*text), &Value::Null));
        assert!(!is_truncated(&got));
        let unavailable =
            whole(&client, event(cut("blob_0190f2a4-0000-8000-8000-00000000000a"))).await.expect("as it was");
        assert!(is_truncated(&unavailable));
    }
}
