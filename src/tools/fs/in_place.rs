//! Writes a file in place, where replacing it would lose something: other names of the file, its owner or attributes, a
//! mount, or the change itself because the folder is closed.
//!
//! A kill in the middle leaves a mix of both contents. So the old and the new content are written to an undo record
//! first, and the next start of the daemon restores the old content from it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};

use crate::folder_handle;
use base::crash;
use base::open;
use types::ids::CallId;

/// Ending of undo records, and of those whose file another program has changed.
const RECORD_ENDING: &str = "undo";
const CONFLICT_ENDING: &str = "conflict";

/// Attributes that belong to a content, or to a label of the system, and are not copied to another file.
const UNCOPIED_PREFIX: &str = "security.";

/// The first line of an undo record. Both contents follow it.
#[derive(Debug, Serialize, Deserialize)]
struct RecordHead {
    path: PathBuf,
    inode: u64,
    old_bytes: usize,
    new_bytes: usize,
}

/// An undo record on the disk. It is removed once the file is intact.
struct UndoRecord(PathBuf);

impl UndoRecord {
    /// Writes a record, synced.
    fn begin(folder: &Path, call_id: CallId, head: &RecordHead, old: &[u8], new: &[u8]) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(format!("{call_id}-{}.{RECORD_ENDING}", head.inode));
        let unfinished = path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        let mut line = serde_json::to_vec(head).map_err(io::Error::other)?;
        line.push(b'\n');
        let written = file
            .write_all(&line)
            .and_then(|()| file.write_all(old))
            .and_then(|()| file.write_all(new))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&unfinished, &path))
            .and_then(|()| File::open(folder)?.sync_all());
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(Self(path))
    }

    fn remove(self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::warn!(%error, record = %self.0.display(), "could not remove an undo record");
        }
    }
}

/// Replaces the content of an open file, which contains `old`. After an error, it contains `old` again if the disk
/// accepts that. With a `folder` for undo records, a crash loses nothing either.
pub(super) fn overwrite(
    file: &mut File,
    path: &Path,
    (old, new): (&[u8], &[u8]),
    folder: Option<&Path>,
    call_id: CallId,
) -> io::Result<()> {
    let inode = file.metadata()?.ino();
    let head = RecordHead { path: path.to_owned(), inode, old_bytes: old.len(), new_bytes: new.len() };
    let record = folder.map(|folder| UndoRecord::begin(folder, call_id, &head, old, new)).transpose()?;
    crash::point("C16.undo");
    let written = write_half(file, new).and_then(|()| set_content(file, new));
    if written.is_err() {
        set_content(file, old)?;
    }
    crash::point("C16.overwritten");
    if let Some(record) = record {
        record.remove();
    }
    written
}

fn set_content(file: &mut File, content: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

/// Writes the first half, for tests of a crash in the middle. A release has no crash points and writes nothing here.
fn write_half(file: &mut File, content: &[u8]) -> io::Result<()> {
    if cfg!(debug_assertions) {
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&content[..content.len() / 2])?;
    }
    crash::point("C16.overwriting");
    Ok(())
}

/// Copies the attributes and access lists of a file to the one that replaces it, and removes those that the new one
/// got from its folder. Returns false if that is not possible.
pub(super) fn copy_attributes(from: &File, to: &File) -> bool {
    let (Some(wanted), Some(present)) = (attribute_names(from), attribute_names(to)) else { return false };
    for name in present.iter().filter(|name| !wanted.contains(name)) {
        if rustix::fs::fremovexattr(to, name.as_str()).is_err() {
            return false;
        }
    }
    wanted.iter().all(|name| {
        let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
        rustix::fs::fgetxattr(from, name.as_str(), value.as_mut_slice()).is_ok_and(|count| {
            rustix::fs::fsetxattr(to, name.as_str(), &value[..count], rustix::fs::XattrFlags::empty()).is_ok()
        })
    })
}

/// Limits of the kernel: XATTR_SIZE_MAX and XATTR_LIST_MAX.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Names of the attributes that a copy needs; none on file systems without attributes.
fn attribute_names(file: &File) -> Option<Vec<String>> {
    let mut list = vec![0; MAX_ATTRIBUTE_BYTES];
    let count = match rustix::fs::flistxattr(file, list.as_mut_slice()) {
        Ok(count) => count,
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => 0,
        Err(_) => return None,
    };
    let names = list[..count].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let names: Option<Vec<String>> = names.map(|name| String::from_utf8(name.to_vec()).ok()).collect();
    Some(names?.into_iter().filter(|name| !name.starts_with(UNCOPIED_PREFIX)).collect())
}

/// Restores the files whose writing in place a crash has interrupted, from the records in this folder. Call it before
/// any tool runs. Blocks on the disk. Returns the restored files.
#[must_use]
pub fn restore_interrupted_writes(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let records = entries.map(|entry| entry.path());
    let records = records.filter(|path| path.extension().is_some_and(|ending| ending == RECORD_ENDING));
    let mut restored = Vec::new();
    for path in records {
        match restore(&path) {
            Ok(Restored::Intact) => UndoRecord(path).remove(),
            Ok(Restored::Old(file)) => {
                tracing::warn!(file = %file.display(), "restored a file whose change was interrupted");
                restored.push(file);
                UndoRecord(path).remove();
            }
            Ok(Restored::Conflict(file)) => {
                let kept = path.with_extension(CONFLICT_ENDING);
                tracing::warn!(file = %file.display(), record = %kept.display(),
                    "a change of this file was interrupted, and another program has changed it since; the record holds \
                     both contents");
                let _ = fs::rename(&path, &kept);
            }
            Err(error) => tracing::warn!(%error, record = %path.display(), "could not use an undo record"),
        }
    }
    restored
}

/// The outcome for one record.
#[derive(Debug, PartialEq, Eq)]
enum Restored {
    /// The file has one of the two contents, or does not exist any more.
    Intact,
    /// The file has the old content again.
    Old(PathBuf),
    /// The file has another content, or the path leads to another file.
    Conflict(PathBuf),
}

fn restore(record: &Path) -> io::Result<Restored> {
    let bytes = fs::read(record)?;
    let damaged = || io::Error::other("the record is damaged");
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
    let head: RecordHead = serde_json::from_slice(&bytes[..end])?;
    let contents = &bytes[end + 1..];
    if head.old_bytes.checked_add(head.new_bytes) != Some(contents.len()) {
        return Err(damaged());
    }
    let (old, new) = contents.split_at(head.old_bytes);
    let below = head.path.strip_prefix("/").map_err(|_| damaged())?;
    let slash = folder_handle::open_root()?;
    let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut file = match open::open_below(slash.as_fd(), below, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(nix::errno::Errno::ENOENT) => return Ok(Restored::Intact),
        Err(errno) => return Err(errno.into()),
    };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.ino() != head.inode {
        return Ok(Restored::Conflict(head.path));
    }
    let mut now = Vec::new();
    (&file).take(contents.len() as u64 + 1).read_to_end(&mut now)?;
    if now == old || now == new {
        return Ok(Restored::Intact);
    }
    if !is_mix(&now, old, new) {
        return Ok(Restored::Conflict(head.path));
    }
    set_content(&mut file, old)?;
    Ok(Restored::Old(head.path))
}

/// Whether an interrupted write of `new` over `old` can have left this content: each byte is from one of them. After a
/// power failure, the parts that reached the disk may lie anywhere.
fn is_mix(now: &[u8], old: &[u8], new: &[u8]) -> bool {
    let is_length =
        now.len() == old.len() || now.len() == new.len() || now.len() <= new.len() && now.len() > old.len();
    is_length
        && now
            .iter()
            .enumerate()
            .all(|(index, byte)| old.get(index) == Some(byte) || new.get(index) == Some(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::{Mint, Seed};

    fn call() -> CallId {
        Mint::new(1, Seed::random()).call()
    }

    #[test]
    fn interrupted_write_is_restored_and_foreign_change_is_kept() {
        let (old, new) = ("old old old old\n".repeat(500), "new new\n".repeat(1_500));
        let (short, long) = (old.as_bytes(), new.as_bytes());
        let half = long.len() / 2;
        let mixed =
            |new: &[u8], old: &[u8], cut: usize| [&new[..cut], old.get(cut..).unwrap_or_default()].concat();
        let cases: [(&str, Vec<u8>, &[u8]); 6] = [
            ("nothing written", short.to_vec(), short),
            ("all written", long.to_vec(), long),
            ("first bytes written", mixed(long, short, 10), short),
            ("half written", mixed(long, short, half), short),
            ("longer already", mixed(long, short, long.len() - 1), short),
            ("changed by another program", b"other".to_vec(), b"other"),
        ];
        for (case, found, expected) in cases {
            let dir = tempfile::tempdir().expect("a folder");
            let root = dir.path().canonicalize().expect("a path");
            let (file, records) = (root.join("f"), root.join("records"));
            fs::write(&file, &found).expect("written");
            let inode = file.metadata().expect("there").ino();
            let head =
                RecordHead { path: file.clone(), inode, old_bytes: short.len(), new_bytes: long.len() };
            UndoRecord::begin(&records, call(), &head, short, long).expect("written");
            let restored = restore_interrupted_writes(&records);
            assert_eq!(fs::read(&file).expect("there"), expected, "{case}");
            assert_eq!(!restored.is_empty(), found != expected, "{case}");
            let left: Vec<_> = fs::read_dir(&records).expect("there").flatten().map(|it| it.path()).collect();
            let is_conflict = case == "changed by another program";
            assert_eq!(left.len(), usize::from(is_conflict), "{case}: {left:?}");
            assert!(restore_interrupted_writes(&records).is_empty(), "{case}: twice");
        }
    }

    #[test]
    fn shorter_and_longer_contents_are_overwritten_without_leftover_record() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, records) = (dir.path().join("f"), dir.path().join("records"));
        for (old, new) in [("long content", "short"), ("a", "much longer"), ("", "x"), ("x", "")] {
            fs::write(&path, old).expect("written");
            let mut file = OpenOptions::new().read(true).write(true).open(&path).expect("open");
            overwrite(&mut file, &path, (old.as_bytes(), new.as_bytes()), Some(&records), call())
                .expect("written");
            assert_eq!(fs::read_to_string(&path).expect("there"), new);
            assert_eq!(fs::read_dir(&records).expect("there").count(), 0);
        }
    }
}
