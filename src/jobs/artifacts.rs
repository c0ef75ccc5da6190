//! The files that a job keeps with its result.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};

use base::open::open_resolved;
use project::folders::read_up_to;
use types::blob::Blob;
use types::job::Artifact;

/// Maximum bytes of one kept file, and of all files of a job.
const MAX_BYTES: (u64, u64) = (8 << 20, 32 << 20);
/// Maximum number of kept files.
const MAX_FILES: usize = 200;
/// Maximum number of directory entries that are looked at.
const MAX_ENTRIES: usize = 100_000;

/// Checks a glob: relative to the job's folder, and inside of it.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), String> {
    let path = Path::new(pattern);
    if pattern.is_empty() || path.is_absolute() {
        return Err("expected a glob relative to the job's folder".into());
    }
    if path.components().any(|part| part == std::path::Component::ParentDir) {
        return Err("it cannot leave the job's folder".into());
    }
    Glob::new(pattern).map(|_| ()).map_err(|error| error.to_string())
}

/// Reads the files below `folder`, a path without links, that match a pattern. Links are not followed, also not those
/// that a command puts in the place of a file or a folder meanwhile. Files that are too large are listed without content.
/// Blocks on the disk.
pub(crate) fn collect(folder: &Path, patterns: &[String]) -> (Vec<Artifact>, Vec<Blob>) {
    let Some(globs) = glob_set(patterns) else { return Default::default() };
    let mut paths = matching_files(folder, &globs);
    paths.sort();
    let (mut artifacts, mut blobs, mut total) = (Vec::new(), Vec::new(), 0);
    for path in paths.into_iter().take(MAX_FILES) {
        let Ok(facts) = path.symlink_metadata() else { continue };
        let relative = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
        let most = MAX_BYTES.0.min(MAX_BYTES.1.saturating_sub(total));
        let content = read_file(&path, most).ok().flatten();
        let blob = content.map(|bytes| {
            let media_type = if std::str::from_utf8(&bytes).is_ok() {
                types::blob::TEXT
            } else {
                "application/octet-stream"
            };
            Blob::new(media_type, bytes)
        });
        let bytes = blob.as_ref().map_or(facts.len(), Blob::len);
        total += blob.as_ref().map_or(0, Blob::len);
        artifacts.push(Artifact { path: relative, blob_id: blob.as_ref().map(|blob| blob.blob_id), bytes });
        blobs.extend(blob);
    }
    blobs.dedup_by_key(|blob| blob.blob_id);
    (artifacts, blobs)
}

/// The content of a regular file; `None` if it has more than `most` bytes.
fn read_file(path: &Path, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    read_up_to(open_resolved(path)?, most)
}

fn glob_set(patterns: &[String]) -> Option<GlobSet> {
    if patterns.is_empty() {
        return None;
    }
    let mut globs = GlobSetBuilder::new();
    for pattern in patterns {
        globs.add(Glob::new(pattern).ok()?);
    }
    globs.build().ok()
}

fn matching_files(folder: &Path, globs: &GlobSet) -> Vec<PathBuf> {
    let (mut found, mut folders, mut entries) = (Vec::new(), vec![folder.to_owned()], 0);
    while let Some(current) = folders.pop() {
        for entry in std::fs::read_dir(&current).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MAX_ENTRIES {
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && entry.file_name() != ".git" {
                folders.push(path);
            } else if kind.is_file() && path.strip_prefix(folder).is_ok_and(|path| globs.is_match(path)) {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_stays_in_the_folder() {
        for (pattern, fits) in [
            ("out/*.txt", true),
            ("**/*.log", true),
            ("", false),
            ("/etc/*", false),
            ("../x", false),
            ("a[", false),
        ] {
            assert_eq!(check_pattern(pattern).is_ok(), fits, "{pattern}");
        }
    }

    #[test]
    fn matching_files_are_read_and_links_are_not() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        std::fs::create_dir_all(root.join("out/.git")).expect("folders");
        for (name, text) in
            [("out/a.txt", "one"), ("out/b.bin", "\u{0}"), ("c.txt", "no"), ("out/.git/d.txt", "no")]
        {
            std::fs::write(root.join(name), text).expect("written");
        }
        std::os::unix::fs::symlink("/etc/passwd", root.join("out/e.txt")).expect("a link");
        let (artifacts, blobs) = collect(root, &["out/**".to_owned()]);
        let names: Vec<&str> = artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
        assert_eq!(names, ["out/a.txt", "out/b.bin"]);
        assert_eq!(blobs.len(), 2);
        assert!(artifacts.iter().all(|artifact| artifact.blob_id.is_some()));
        assert!(collect(root, &[]).0.is_empty());
    }

    #[test]
    fn link_or_pipe_in_the_place_of_a_file_is_not_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        std::fs::write(root.join("secret"), "secret").expect("written");
        std::fs::create_dir(root.join("real")).expect("a folder");
        std::fs::write(root.join("real/a.txt"), "inside").expect("written");
        std::os::unix::fs::symlink("secret", root.join("link.txt")).expect("a link");
        std::os::unix::fs::symlink("real", root.join("folder")).expect("a link");
        std::os::unix::fs::symlink("/dev/zero", root.join("zero.txt")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe.txt")).status();
        assert!(made.expect("a program").success());
        // What was a file when the folder was listed is something else when it is opened.
        for name in ["link.txt", "folder/a.txt", "zero.txt", "pipe.txt", "real"] {
            assert!(read_file(&root.join(name), 100).is_err(), "{name}");
        }
        assert_eq!(read_file(&root.join("real/a.txt"), 6).expect("read").as_deref(), Some(&b"inside"[..]));
        assert_eq!(read_file(&root.join("real/a.txt"), 5).expect("read"), None);
    }
}
