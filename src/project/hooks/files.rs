//! Reads the files with hooks.

use std::path::Path;

use super::config::HookFile;
use super::text::decode;
use super::{claude, own};

/// The name of a project's own file; every other file has the form of `.claude/settings.json`.
const OWN_NAME: &str = "hooks.toml";

/// A file with hooks: its name for people, and its content or why it could not be read.
pub type HookSource = (std::path::PathBuf, Result<Vec<u8>, String>);

/// Every hook of these files, and every entry that is not used. A file that cannot be read makes every call ask.
#[must_use]
pub fn read_hook_files(sources: impl IntoIterator<Item = HookSource>) -> HookFile {
    let mut all = HookFile::default();
    for (file, content) in sources {
        all.append(match content {
            Ok(bytes) => read_hook_file(&file, &bytes),
            Err(reason) => HookFile::unreadable(&file, reason),
        });
    }
    all
}

/// The hooks of one file, by its name.
#[must_use]
pub fn read_hook_file(file: &Path, bytes: &[u8]) -> HookFile {
    match decode(bytes) {
        Err(reason) => HookFile::unreadable(file, reason),
        Ok(text) if file.ends_with(OWN_NAME) => own::read(file, &text),
        Ok(text) => claude::read(file, &text),
    }
}
