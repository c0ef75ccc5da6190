//! The content of the images and documents in a model request. It is read again for each call and has the same
//! bytes each time.
//!
//! Providers limit the number and the total size of these parts. If a conversation exceeds the limit, the
//! oldest parts are omitted. That invalidates the provider's prompt cache, so it happens rarely and in large
//! steps: at the limit, half of the parts are omitted.

use std::collections::HashMap;
use std::sync::Arc;

use store::{SessionKey, StoreError, StoreReader};
use types::ids::BlobId;
use types::model::ModelRequest;

/// Maximum bytes of all content in a request. In base64 this is 28 MB, and a request may have 32 MB
/// (docs.anthropic.com/en/api/overview).
const MAX_MEDIA_BYTES: u64 = 21 << 20;
/// Maximum number of images and documents in a request. Providers accept 100 images
/// (docs.anthropic.com/en/docs/build-with-claude/vision).
const MAX_MEDIA: usize = 90;

/// Loads the content of a request. Content that is unreadable or over the limit is omitted, and the model receives a
/// note about it.
pub(crate) async fn load_media(
    store: &StoreReader,
    key: SessionKey,
    request: &ModelRequest,
) -> HashMap<BlobId, Arc<[u8]>> {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let all: Vec<(BlobId, u64)> =
        blocks.flat_map(|block| block.media_refs()).map(|(_, blob)| (blob.blob_id, blob.bytes)).collect();
    let mut media = HashMap::new();
    for (blob_id, _) in &all[first_included_index(&all)..] {
        if media.contains_key(blob_id) {
            continue;
        }
        let read = async {
            let Some(blob) = store.blob(key, *blob_id).await? else { return Ok(None) };
            store.read_blob(&blob, 0, usize::MAX).await.map(Some)
        };
        match read.await {
            Ok(Some(bytes)) => {
                media.insert(*blob_id, Arc::from(bytes));
            }
            Ok(None) => tracing::warn!(%blob_id, "an attachment is missing"),
            Err::<_, StoreError>(error) => tracing::warn!(%blob_id, %error, "left out an attachment"),
        }
    }
    media
}

/// Index of the first part that is included. It depends only on the parts and never decreases. So a longer
/// conversation with the same beginning includes the same parts until it reaches the limit again.
fn first_included_index(all: &[(BlobId, u64)]) -> usize {
    let (mut first, mut bytes) = (0, 0_u64);
    for (at, (_, size)) in all.iter().enumerate() {
        bytes += size;
        if bytes > MAX_MEDIA_BYTES || at + 1 - first > MAX_MEDIA {
            while first < at && (bytes > MAX_MEDIA_BYTES / 2 || at + 1 - first > MAX_MEDIA / 2) {
                bytes -= all[first].1;
                first += 1;
            }
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use crate::actor::effects::media::*;
    use types::blob::TEXT;

    fn numbered_blobs(sizes: &[u64]) -> Vec<(BlobId, u64)> {
        sizes
            .iter()
            .enumerate()
            .map(|(n, size)| (BlobId::from_content(TEXT, &n.to_be_bytes()), *size))
            .collect()
    }

    #[test]
    fn oldest_media_are_dropped_in_steps_to_fit_limit() {
        for size in [1, 1 << 20, 3_750_000, MAX_MEDIA_BYTES] {
            let all = numbered_blobs(&[size; 400]);
            let (mut last, mut moves) = (0, 0);
            for end in 0..=all.len() {
                let first = first_included_index(&all[..end]);
                assert!(first >= last && first <= end, "{size} {end}: {first} after {last}");
                let shown = &all[first..end];
                assert!(
                    shown.len() <= MAX_MEDIA
                        && shown.iter().map(|(_, size)| size).sum::<u64>() <= MAX_MEDIA_BYTES
                );
                assert!(end == 0 || !shown.is_empty(), "the newest is always shown");
                moves += usize::from(first != last);
                last = first;
            }
            let room = (MAX_MEDIA_BYTES / size).min(MAX_MEDIA as u64) as usize;
            assert!(moves <= 400 / (room / 2).max(1) + 1, "{size}: moved {moves} times");
        }
        assert_eq!(first_included_index(&numbered_blobs(&[5 << 20; 4])), 0);
    }
}
