//! The SHA-256 of a file's content. Hashing ten megabytes takes longer than reading them. So a large content is
//! hashed on another thread, while the caller compares or writes it.

use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use crate::file_identity;
use base::sync::lock;

/// Minimal number of bytes for which a thread is worth its start.
const MIN_THREAD_BYTES: usize = 1 << 20;

/// The hash of a content. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ContentHash(Arc<HashState>);

#[derive(Debug)]
struct HashState {
    bytes: Arc<Vec<u8>>,
    hex: OnceLock<String>,
    /// The thread that computes the hash of a large content. It ends by itself if the hash is not used.
    thread: Mutex<Option<JoinHandle<String>>>,
}

impl ContentHash {
    /// Starts to hash a large content. A small one is hashed on first use.
    pub(crate) fn start(bytes: &Arc<Vec<u8>>) -> Self {
        let thread = (bytes.len() >= MIN_THREAD_BYTES).then(|| {
            let bytes = Arc::clone(bytes);
            std::thread::Builder::new().name("hash".into()).spawn(move || file_identity::sha256(&bytes))
        });
        // Without a thread, the hash is computed on first use.
        let thread = Mutex::new(thread.and_then(Result::ok));
        Self(Arc::new(HashState { bytes: Arc::clone(bytes), hex: OnceLock::new(), thread }))
    }

    /// The hash in hexadecimal. Waits for the thread that computes it.
    pub(crate) fn hex(&self) -> &str {
        self.0.hex.get_or_init(|| {
            let thread = lock(&self.0.thread).take();
            let computed = thread.and_then(|thread| thread.join().ok());
            computed.unwrap_or_else(|| file_identity::sha256(&self.0.bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::fs::content_hash::*;

    #[test]
    fn content_hash_of_any_length_equals_plain_hash() {
        for length in [0, 1, MIN_THREAD_BYTES - 1, MIN_THREAD_BYTES, MIN_THREAD_BYTES + 1] {
            let bytes = Arc::new(vec![7; length]);
            let hash = ContentHash::start(&bytes);
            let copy = hash.clone();
            assert_eq!(hash.hex(), file_identity::sha256(&bytes), "{length}");
            assert_eq!(copy.hex(), hash.hex());
        }
    }
}
