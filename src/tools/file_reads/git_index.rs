//! The files in git's index (gitformat-index(5)). Running git is no way to find them, because the settings
//! of a repository may name programs.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Maximum size of an index.
const MAX_INDEX_BYTES: u64 = 16 << 20;
/// Maximum size of a `.git` file.
const MAX_GITFILE_BYTES: u64 = 4 << 10;
/// Properties of a file in an entry, before the hash of its content.
const STAT_BYTES: usize = 40;
/// Lengths of hashes: SHA-1, SHA-256.
const HASH_BYTES: [usize; 2] = [20, 32];
/// An entry for a folder of a sparse index.
const FOLDER_MODE: u32 = 0o040_000;

/// The paths in the index of a repository, relative to its top. `git_folder` is its `.git`. `None` if the
/// index is not understood.
pub(super) fn tracked_files(git_folder: &Path) -> Option<Vec<PathBuf>> {
    let folder = match git_folder.is_dir() {
        true => git_folder.to_path_buf(),
        false => {
            let text = String::from_utf8(read(git_folder, MAX_GITFILE_BYTES)?).ok()?;
            git_folder.parent()?.join(text.strip_prefix("gitdir:")?.trim())
        }
    };
    let index = folder.join("index");
    if index.symlink_metadata().is_err() {
        return Some(Vec::new());
    }
    let bytes = read(&index, MAX_INDEX_BYTES)?;
    HASH_BYTES.into_iter().find_map(|hash| parse(&bytes, hash))
}

fn read(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(|it| it.is_file()))?;
    file.take(max_bytes + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= max_bytes).then_some(bytes)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Parses an index with hashes of this length. Each entry states the length of its name, which is wrong if
/// the length of the hashes is.
fn parse(bytes: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    let version =
        number(bytes, 4).filter(|version| bytes.starts_with(b"DIRC") && (2..=4).contains(version))?;
    let count = number(bytes, 8)?;
    let mut paths = Vec::new();
    let mut name: Vec<u8> = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let start = at;
        let flags = u16::from_be_bytes(bytes.get(at + STAT_BYTES + hash..)?.first_chunk().copied()?);
        if number(bytes, at + 24)? == FOLDER_MODE {
            return None;
        }
        at += STAT_BYTES + hash + 2 + if flags & 0x4000 != 0 { 2 } else { 0 };
        if version == 4 {
            let (cut, behind) = offset(bytes, at)?;
            name.truncate(name.len().checked_sub(cut)?);
            at = behind;
        } else {
            name.clear();
        }
        let length = bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&bytes[at..at + length]);
        let stated = usize::from(flags & 0xfff);
        if name.is_empty() || stated != name.len().min(0xfff) {
            return None;
        }
        at += length + 1;
        if version < 4 {
            at = start + (at - start).next_multiple_of(8);
        }
        paths.push(PathBuf::from(OsString::from_vec(name.clone())));
    }
    // A split index holds most entries in another file.
    let mut extension = at;
    while let Some(signature) = bytes.get(extension..extension + 4).filter(|_| extension + hash < bytes.len())
    {
        if signature == b"link" {
            return None;
        }
        extension += 8 + usize::try_from(number(bytes, extension + 4)?).ok()?;
    }
    Some(paths)
}

/// A number in the encoding of offsets in packs (gitformat-pack(5)), and the position after it.
fn offset(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}
