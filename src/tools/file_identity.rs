//! What identifies a file, a version of it, and a content.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use sha2::{Digest as _, Sha256};

use types::hex;

/// Metadata that cheaply distinguishes one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) mtime_ns: i64,
    pub(crate) size: u64,
}

impl FileStamp {
    pub(crate) fn from_metadata(meta: &Metadata) -> Self {
        Self {
            mtime_ns: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
            size: meta.len(),
        }
    }
}

/// Identity of a file system object, unique while a handle to it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileIdentity {
    pub(crate) fn from_metadata(meta: &Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino() }
    }
}

/// The SHA-256 of a content in lower-case hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}
