//! The full output of a command, in a file. Output that does not fit into the answer for the model goes to a
//! spool of the call. Only its owner can read the file, and it becomes the call's blob when the call ends.
//!
//! Memory holds at most one piece that is being filled, one that is being written, and the tail of the output
//! beyond the quota. Each spool has a quota, and all spools together have one. Beyond a quota, and on a full
//! disk, the middle is left out, and the file and the answer say so. A dropped call removes its spool file.
//! The next daemon removes spool files of a killed daemon, because no blob refers to them.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio::task::JoinHandle;

use base::sync::lock;
use types::blob::{Blob, Content, TEXT};
use types::ids::{BlobId, CallId};

/// Bytes per write.
const PIECE_BYTES: usize = 128 << 10;
/// Bytes of the tail that are kept when the middle is left out.
const TAIL_BYTES: usize = 128 << 10;

/// The folder of spools and their quotas.
#[derive(Clone, Debug)]
pub(crate) struct Spools {
    folder: Arc<Path>,
    call_bytes: u64,
    total_bytes: u64,
    /// Bytes in the folder, as far as known.
    used: Arc<Mutex<u64>>,
}

impl Spools {
    /// Spools in `folder`, which is created with the first spool. Each holds at most `call_bytes`, and all
    /// files of the folder together `total_bytes`.
    pub(crate) fn new(folder: &Path, call_bytes: u64, total_bytes: u64) -> Self {
        let used = Arc::new(Mutex::new(bytes_in(folder)));
        Self { folder: folder.into(), call_bytes, total_bytes, used }
    }

    /// Reserves up to `wanted` bytes of the total quota and returns the granted number.
    fn grant(&self, wanted: u64) -> u64 {
        let mut used = lock(&self.used);
        if *used + wanted > self.total_bytes {
            // Files of sessions may have been removed since the last count. Each clone may have reserved two
            // pieces.
            let held_back = Arc::strong_count(&self.used) as u64 * 2 * PIECE_BYTES as u64;
            *used = (*used).min(bytes_in(&self.folder) + held_back);
        }
        let granted = wanted.min(self.total_bytes.saturating_sub(*used));
        *used += granted;
        granted
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}

/// The file and the state of writing.
struct SpoolFile {
    /// `None` if it could not be created.
    file: Option<File>,
    written: u64,
    trouble: Option<String>,
}

/// The spool of one call.
pub(super) struct Spool {
    place: Option<Spools>,
    blob_id: BlobId,
    /// Bytes that are not yet written. Small output never leaves this buffer.
    piece: Vec<u8>,
    state: SpoolState,
    /// Bytes that were or will be written to the file.
    granted: u64,
    /// The tail of the output beyond the quota, and the number of bytes left out before it.
    tail: Vec<u8>,
    dropped_bytes: u64,
}

enum SpoolState {
    /// Nothing was written yet.
    Fresh,
    Ready(Box<SpoolFile>),
    Writing(JoinHandle<Box<SpoolFile>>),
    /// The writing thread failed; the state of the file is unknown.
    Failed,
}

pub(super) struct SpoolResult {
    /// The blob, if a file exists.
    pub blob: Option<Blob>,
    /// Note for the model.
    pub note: String,
}

impl Spool {
    /// Creates its file with the first complete piece. Without a place, no file is ever created.
    pub(super) fn new(place: Option<Spools>, call_id: CallId) -> Self {
        Self {
            place,
            blob_id: BlobId::of_call(call_id),
            piece: Vec::new(),
            state: SpoolState::Fresh,
            granted: 0,
            tail: Vec::new(),
            dropped_bytes: 0,
        }
    }

    /// Adds output. Never waits; call [`Spool::settle`] before reading more.
    pub(super) fn push(&mut self, text: &str) {
        let Some(place) = &self.place else { return };
        let wanted = text.len() as u64;
        let left = place.call_bytes.saturating_sub(self.granted);
        let is_open = self.dropped_bytes == 0 && self.tail.is_empty();
        let mut granted = if is_open { place.grant(wanted.min(left)) } else { 0 };
        while !text.is_char_boundary(granted as usize) {
            granted -= 1;
        }
        self.granted += granted;
        let (fits, rest) = text.split_at(granted as usize);
        self.piece.extend_from_slice(fits.as_bytes());
        self.tail.extend_from_slice(rest.as_bytes());
        if self.tail.len() > 2 * TAIL_BYTES {
            let excess = self.tail.len() - TAIL_BYTES;
            self.tail.drain(..excess);
            self.dropped_bytes += excess as u64;
        }
    }

    /// Waits until more output can be added. Cancel-safe.
    pub(super) async fn settle(&mut self) {
        if self.piece.len() < PIECE_BYTES {
            return;
        }
        self.wait_for_write().await;
        self.write();
    }

    /// Waits for the write in progress.
    async fn wait_for_write(&mut self) {
        if let SpoolState::Writing(job) = &mut self.state {
            self.state = match job.await {
                Ok(spool_file) => SpoolState::Ready(spool_file),
                Err(_) => SpoolState::Failed,
            };
        }
    }

    /// Starts writing the collected bytes.
    fn write(&mut self) {
        let piece = std::mem::take(&mut self.piece);
        let Some(place) = &self.place else { return };
        let path = place.folder.join(self.blob_id.to_string());
        let spool_file = match std::mem::replace(&mut self.state, SpoolState::Fresh) {
            SpoolState::Ready(spool_file) => Some(spool_file),
            SpoolState::Fresh => None,
            other => {
                self.state = other;
                return;
            }
        };
        self.state = SpoolState::Writing(tokio::task::spawn_blocking(move || {
            let mut spool_file = spool_file.unwrap_or_else(|| make(&path));
            if let (Some(file), None) = (&mut spool_file.file, &spool_file.trouble) {
                match file.write_all(&piece) {
                    Ok(()) => spool_file.written += piece.len() as u64,
                    Err(error) => spool_file.trouble = Some(error.to_string()),
                }
            }
            spool_file
        }));
    }

    /// Finishes the spool. `is_fully_shown`: the model receives the full output anyway, and the file is
    /// removed.
    pub(super) async fn finish(mut self, is_fully_shown: bool) -> Option<SpoolResult> {
        let place = self.place.clone()?;
        if is_fully_shown {
            return None;
        }
        self.wait_for_write().await;
        if self.dropped_bytes > 0 {
            let note =
                format!("\n[… {} bytes were left out here: more than may be kept …]\n", self.dropped_bytes);
            self.piece.extend_from_slice(note.as_bytes());
            let start = self.tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            self.piece.extend_from_slice(&self.tail[start..]);
        } else {
            self.piece.append(&mut self.tail);
        }
        self.write();
        self.wait_for_write().await;
        let SpoolState::Ready(spool_file) = std::mem::replace(&mut self.state, SpoolState::Fresh) else {
            return Some(SpoolResult { blob: None, note: "The whole output could not be kept.".into() });
        };
        let (spool_file, synced) = tokio::task::spawn_blocking(move || {
            let synced = match &spool_file.file {
                // Remove a partial write, and sync the kept part so that it survives a power failure.
                Some(file) => file.set_len(spool_file.written).and_then(|()| file.sync_data()),
                None => Ok(()),
            };
            (spool_file, synced)
        })
        .await
        .ok()?;
        if spool_file.written == 0 || synced.is_err() {
            let why = spool_file.trouble.or(synced.err().map(|error| error.to_string())).unwrap_or_default();
            let _ = std::fs::remove_file(place.folder.join(self.blob_id.to_string()));
            return Some(SpoolResult {
                blob: None,
                note: format!("The whole output could not be kept ({why})."),
            });
        }
        let bytes = spool_file.written;
        let extent = match (&spool_file.trouble, self.dropped_bytes) {
            (Some(why), _) => format!("Only the first {bytes} bytes of the output were kept ({why})"),
            (None, 0) => format!("The whole output ({bytes} bytes) is kept"),
            (None, dropped_bytes) => format!(
                "{bytes} bytes of the output are kept, {dropped_bytes} from the middle are not: it was more than may be kept"
            ),
        };
        let note = format!(
            "{extent}: read any part with Read, file_path \"{}\", offset and limit (column in long lines).",
            self.blob_id
        );
        let content = Content::File { bytes };
        let blob = Blob { blob_id: self.blob_id, media_type: TEXT.into(), content };
        // The file belongs to the result from now on.
        self.place = None;
        Some(SpoolResult { blob: Some(blob), note })
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let Some(place) = &self.place else { return };
        if !matches!(self.state, SpoolState::Fresh) {
            let _ = std::fs::remove_file(place.folder.join(self.blob_id.to_string()));
        }
    }
}

fn make(path: &Path) -> Box<SpoolFile> {
    let made = || {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
    };
    let (file, trouble) = match made() {
        Ok(file) => (Some(file), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Box::new(SpoolFile { file, written: 0, trouble })
}

#[cfg(test)]
mod tests;
