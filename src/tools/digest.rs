//! The SHA-256 of a file's content. A large content is hashed on a thread of its own while the caller continues
//! to use it: hashing takes half the time of an edit of a large file.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use crate::tools::fs::disk;

/// Minimal number of bytes for which a thread is worth its start.
pub(super) const LARGE: usize = 1 << 20;

/// Content that is shared with the hashing thread.
pub(super) type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A digest, complete or in progress. Cheap to clone.
#[derive(Clone)]
pub(super) struct Digest(Arc<Making>);

struct Making {
    made: OnceLock<String>,
    bytes: Option<Bytes>,
    /// The thread ends by itself when the hash is complete, also if no caller waits.
    thread: Mutex<Option<JoinHandle<String>>>,
}

impl Digest {
    /// Starts computing the digest of `bytes`.
    pub(super) fn of(bytes: &Bytes) -> Self {
        let is_large = (**bytes).as_ref().len() >= LARGE;
        let hash = || {
            let bytes = Arc::clone(bytes);
            // Without a thread, the digest is computed on request.
            std::thread::Builder::new()
                .name("digest".into())
                .spawn(move || disk::sha256((*bytes).as_ref()))
                .ok()
        };
        Self(Arc::new(Making {
            made: OnceLock::new(),
            bytes: Some(Arc::clone(bytes)),
            thread: Mutex::new(is_large.then(hash).flatten()),
        }))
    }

    /// A digest with a known value.
    pub(super) fn known(sha256: String) -> Self {
        Self(Arc::new(Making { made: OnceLock::from(sha256), bytes: None, thread: Mutex::new(None) }))
    }

    /// The digest in hexadecimal. Waits until it is complete.
    pub(super) fn hex(&self) -> &str {
        self.0.made.get_or_init(|| {
            let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            let made = thread.and_then(|thread| thread.join().ok());
            made.unwrap_or_else(|| {
                self.0.bytes.as_ref().map_or_else(String::new, |it| disk::sha256((**it).as_ref()))
            })
        })
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.made.get().map_or("…", String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_same_on_any_thread() {
        for length in [0, 1, LARGE - 1, LARGE, 3 * LARGE + 1] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let plain = disk::sha256(&bytes);
            let shared: Bytes = Arc::new(bytes);
            let digest = Digest::of(&shared);
            assert_eq!((digest.clone().hex(), digest.hex()), (plain.as_str(), plain.as_str()), "{length}");
        }
        assert_eq!(Digest::known("ab".into()).hex(), "ab");
    }
}
