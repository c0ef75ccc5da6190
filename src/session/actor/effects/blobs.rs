//! Access to a session's blobs for its tools.

use tokio::runtime::Handle;

use store::{SessionKey, StoreError, StoreReader, StoredBlob};
use tools::Blobs;
use types::ids::BlobId;

/// The blobs of one session. Tools read them from blocking threads.
pub(crate) struct SessionBlobs {
    pub store: StoreReader,
    pub key: SessionKey,
    pub runtime: Handle,
}

impl std::fmt::Debug for SessionBlobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionBlobs({:?})", self.key)
    }
}

impl SessionBlobs {
    fn stored(&self, blob_id: BlobId) -> Result<Option<StoredBlob>, String> {
        let found = self.runtime.block_on(self.store.blob(self.key, blob_id));
        found.map_err(|error| format!("could not {error}"))
    }
}

impl Blobs for SessionBlobs {
    fn find(&self, blob_id: BlobId) -> Result<Option<(u64, String)>, String> {
        Ok(self.stored(blob_id)?.map(|blob| (blob.bytes, blob.media_type)))
    }

    fn read(&self, blob_id: BlobId, offset: u64, most: usize) -> Result<Vec<u8>, String> {
        let read = async {
            let Some(blob) = self.store.blob(self.key, blob_id).await? else { return Ok(Vec::new()) };
            self.store.read_blob(&blob, offset, most).await
        };
        self.runtime.block_on(read).map_err(|error: StoreError| format!("could not {error}"))
    }
}
