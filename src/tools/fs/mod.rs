//! Access to files: resolves, judges and opens paths without a race; encodings and diffs.

pub(super) mod content_hash;
pub(super) mod diff;
pub(super) mod hardlink;
pub(crate) mod in_place;
pub(super) mod jail;
pub(super) mod pinned;
pub(super) mod resolve;
mod temp_file;
pub(super) mod text;
