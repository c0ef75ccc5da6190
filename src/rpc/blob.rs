//! `session.blob`

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{BlobEncoding, BlobParams, BlobReply};
use api::{Code, Fault};
use session::SessionError;

pub(super) async fn blob(ctx: Arc<RpcContext>, _: Caller, p: BlobParams) -> Result<BlobReply, Fault> {
    let store = &ctx.registry.shared().store;
    let failed = |error| convert::fault(SessionError::Store(error));
    let key = store.find(p.session_id).await.map_err(failed)?;
    let key = key.ok_or_else(|| convert::fault(SessionError::NotFound))?;
    let known = store.blob(key, p.blob_id).await.map_err(failed)?.ok_or_else(|| {
        Fault::new(Code::NotFound, "this session has no such blob; its events name those it has")
    })?;
    if p.offset > known.bytes {
        let why = format!("offset: {} is beyond the blob, which has {} bytes", p.offset, known.bytes);
        return Err(Fault::new(Code::InvalidParams, why).with("path", "offset").with("bytes", known.bytes));
    }
    let limit = convert::limit(p.limit, 256 << 10, 1 << 20);
    let mut bytes = store.read_blob(&known, p.offset, limit as usize).await.map_err(failed)?;
    let is_text = known.media_type.starts_with("text/") || known.media_type == types::blob::JSON;
    let (content, encoding) = match is_text.then(|| whole_characters(&bytes)).flatten() {
        Some(text) => {
            let text = text.to_owned();
            bytes.truncate(text.len());
            (text, BlobEncoding::Text)
        }
        None => (STANDARD.encode(&bytes), BlobEncoding::Base64),
    };
    let next = p.offset + bytes.len() as u64;
    Ok(BlobReply {
        blob_id: p.blob_id,
        media_type: known.media_type,
        bytes: known.bytes,
        offset: p.offset,
        content,
        encoding,
        next_offset: (next < known.bytes).then_some(next),
    })
}

/// Returns the bytes as text without an incomplete character at the end. `None` if they are not text,
/// or if nothing remains.
fn whole_characters(bytes: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    (bytes.is_empty() || !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    #[test]
    fn blob_text_part_ends_at_character_boundary() {
        for (bytes, expected) in [
            ("aé".as_bytes(), Some("aé")),
            (&"aé".as_bytes()[..2], Some("a")),
            (&"aé".as_bytes()[2..], None),
            (&"é".as_bytes()[..1], None),
            (b"", Some("")),
            (b"a\xffb", None),
        ] {
            assert_eq!(whole_characters(bytes), expected, "{bytes:?}");
        }
    }
}
