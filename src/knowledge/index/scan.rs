//! Compares the files of a workspace with the index. Blocking.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use tokio_util::sync::CancellationToken;

use super::text::{SourceText, UnsuitableReason, decode, is_secret_path, max_bytes};
use crate::graph::language_of_path;
use crate::store::{KnownFile, SkippedFile, Writer};
use crate::traits::{FileEntry, FileSource};
use crate::types::{DocId, FileRefusal, KnowledgeError, hash128};
use types::knowledge::{DocumentStatus, IndexLevel};

/// Maximum number of files of one workspace.
const MAX_FILES: usize = 200_000;

/// The files that the index knows.
#[derive(Debug, Default)]
pub(super) struct KnownFiles {
    pub documents: Vec<KnownFile>,
    /// Files that are omitted because of their content.
    pub skipped: Vec<SkippedFile>,
}

impl KnownFiles {
    pub fn load(writer: &Writer) -> Result<Self, KnowledgeError> {
        Ok(Self { documents: writer.known_files()?, skipped: writer.skipped_files()? })
    }
}

/// Result of a scan.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Files to read: new, changed, failed before, or indexed at a lower level.
    pub to_read: Vec<FileEntry>,
    /// Number of documents whose file is unchanged.
    pub unchanged: u64,
    /// Documents whose file is gone or no longer allowed.
    pub removed_documents: Vec<DocId>,
    /// Number of files that are not read: too large, secret, or left out before and unchanged.
    pub skipped: u64,
    /// Files that were left out and are gone.
    pub gone_skipped: Vec<String>,
    /// Total size of the files to read, in bytes.
    pub bytes: u64,
    /// Folders with dependencies or results of builds that were not searched.
    pub left_out: Vec<String>,
}

/// Lists the files and compares time and size. A file with the same time and size is not read.
///
/// # Errors
/// The files could not be listed, or the job was cancelled. The caller must not remove any document then.
pub(super) fn scan(
    files: &dyn FileSource,
    paths: &[String],
    known: &KnownFiles,
    level: IndexLevel,
    cancel: &CancellationToken,
) -> Result<Scan, KnowledgeError> {
    let skipped: HashMap<&str, &SkippedFile> =
        known.skipped.iter().map(|file| (file.path.as_str(), file)).collect();
    let known: HashMap<&str, &KnownFile> =
        known.documents.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut found = Scan::default();
    let mut seen: HashSet<String> = HashSet::new();
    let mut is_cut = false;
    let left_out = files.walk(paths, &|| cancel.is_cancelled(), &mut |entry| {
        if cancel.is_cancelled() {
            return ControlFlow::Break(());
        }
        if seen.len() >= MAX_FILES {
            is_cut = true;
            return ControlFlow::Break(());
        }
        if entry.bytes > max_bytes(&entry.path) || is_secret_path(&entry.path) {
            found.skipped += 1;
            return ControlFlow::Continue(());
        }
        // A walk of overlapping paths may report a file twice.
        if !seen.insert(entry.path.clone()) {
            return ControlFlow::Continue(());
        }
        let is_current = known.get(entry.path.as_str()).is_some_and(|file| {
            file.modified_ns == entry.modified_ns
                && file.bytes == entry.bytes
                && file.status != DocumentStatus::Failed
                && file.level >= level.min(IndexLevel::Structure)
        });
        let is_left_out = skipped.get(entry.path.as_str()).is_some_and(|file| {
            file.modified_ns == entry.modified_ns
                && file.bytes == entry.bytes
                && !known.contains_key(entry.path.as_str())
        });
        if is_current {
            found.unchanged += 1;
        } else if is_left_out {
            found.skipped += 1;
        } else {
            found.bytes += entry.bytes;
            found.to_read.push(entry);
        }
        ControlFlow::Continue(())
    })?;
    if cancel.is_cancelled() {
        return Err(KnowledgeError::cancelled());
    }
    found.left_out = left_out;
    found.to_read.sort_by(|one, other| one.path.cmp(&other.path));
    if !is_cut {
        let mut removed_documents: Vec<&KnownFile> = known
            .values()
            .filter(|file| is_below(&file.path, paths) && !seen.contains(&file.path))
            .copied()
            .collect();
        removed_documents.sort_by(|one, other| one.path.cmp(&other.path));
        found.removed_documents = removed_documents.into_iter().map(|file| file.id.clone()).collect();
        let is_gone = |path: &&&str| is_below(path, paths) && !seen.contains(**path);
        found.gone_skipped = skipped.keys().filter(is_gone).map(|path| (*path).to_owned()).collect();
    }
    Ok(found)
}

/// Whether a path is one of these or below one of them; none means all.
pub(super) fn is_below(path: &str, paths: &[String]) -> bool {
    paths.is_empty()
        || paths.iter().any(|above| {
            let above = above.trim_start_matches("./").trim_end_matches('/');
            matches!(above, "" | ".")
                || path == above
                || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
        })
}

#[derive(Debug)]
pub(super) enum ReadFile {
    /// Text with its hash.
    Text { text: SourceText, hash: String },
    /// Its content equals the content in the index.
    Unchanged(DocId),
    /// The file must not be opened.
    Skipped,
    /// The content must not be indexed.
    Unsuitable,
    /// The file cannot be read: the reason.
    Failed(String),
}

/// Reads a file and compares its hash.
pub(super) fn read_file(
    files: &dyn FileSource,
    entry: &FileEntry,
    known: Option<&KnownFile>,
    level: IndexLevel,
) -> ReadFile {
    let bytes = match files.read(&entry.path, max_bytes(&entry.path)) {
        Ok(bytes) => bytes,
        Err(FileRefusal::Unreadable(reason)) => return ReadFile::Failed(reason),
        Err(FileRefusal::Gone | FileRefusal::TooLarge | FileRefusal::Secret | FileRefusal::Outside) => {
            return ReadFile::Skipped;
        }
    };
    let hash = hash128(&[&bytes]);
    let is_current = known.is_some_and(|file| {
        file.hash == hash
            && file.status != DocumentStatus::Failed
            && file.level >= level.min(IndexLevel::Structure)
    });
    if let (Some(file), true) = (known, is_current) {
        return ReadFile::Unchanged(file.id.clone());
    }
    match decode(&entry.path, &bytes) {
        Ok(text) => ReadFile::Text { text, hash },
        Err(UnsuitableReason::Binary | UnsuitableReason::Secret) => ReadFile::Unsuitable,
    }
}

/// Whether the scan can tell without reading that a file is no text, for estimates.
pub(super) fn is_probably_text(path: &str) -> bool {
    const BINARY_EXTENSIONS: &[&str] = &[
        "png", "jpg", "jpeg", "gif", "webp", "ico", "pdf", "zip", "gz", "xz", "zst", "tar", "db", "sqlite",
        "woff", "woff2", "ttf", "otf", "mp3", "mp4", "wasm", "so", "a", "o", "class", "jar", "exe", "dll",
        "bin",
    ];
    if language_of_path(path).is_some() {
        return true;
    }
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    extension.is_none_or(|extension| !BINARY_EXTENSIONS.contains(&extension.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_scan_cover_folders_and_files() {
        let below = |path: &str, paths: &[&str]| {
            is_below(path, &paths.iter().map(|p| (*p).into()).collect::<Vec<_>>())
        };
        assert!(
            below("a/b.rs", &[])
                && below("a/b.rs", &["a/"])
                && below("a/b.rs", &["./a"])
                && below("a/b.rs", &["."])
        );
        assert!(below("a/b.rs", &["x", "a/b.rs"]) && !below("ab/c.rs", &["a"]));
    }
}
