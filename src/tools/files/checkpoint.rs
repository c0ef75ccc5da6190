//! File checkpoints: the content of files before a call changes them, and the return to such a content. All
//! paths are opened like those of the tools, so that no link can redirect them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::context::ToolContext;
use crate::fs::pinned::{FileSnapshot, PinnedPath};
use crate::sensitivity::Access;
use base::crash;
use types::ids::CallId;
use types::tool::{PathSensitivity, Subject};

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Absolute path without links.
    pub path: PathBuf,
    /// The state at that moment.
    pub state: FileState,
}

/// The state of a file at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// There was no file.
    Missing,
    /// There was a file.
    Content {
        /// SHA-256 of the content.
        sha256: String,
        /// Permission bits.
        mode: u32,
        /// The content, unless it is larger than the caller wants.
        bytes: Option<Arc<Vec<u8>>>,
    },
    /// The file could not be read: it is not a regular file, too large, or cannot be opened.
    Unreadable(String),
}

impl FileState {
    /// SHA-256 of the content; `None` if there is no file. An unreadable file has no known content.
    ///
    /// # Errors
    /// The reason why the content is not known.
    pub fn sha256(&self) -> Result<Option<&str>, &str> {
        match self {
            FileState::Missing => Ok(None),
            FileState::Content { sha256, .. } => Ok(Some(sha256)),
            FileState::Unreadable(why) => Err(why),
        }
    }
}

/// One file of a rewind.
#[derive(Clone, Debug)]
pub struct RestoreStep {
    /// Absolute path.
    pub path: PathBuf,
    /// SHA-256 of the content that is replaced; `None` if there must be no file.
    pub from: Option<String>,
    /// The new content and permission bits; `None` removes the file.
    pub to: Option<(Vec<u8>, u32)>,
}

/// The paths that a call will change.
pub(crate) fn paths_of(subject: &Subject) -> Vec<PathBuf> {
    subject.changed_paths().into_iter().map(Path::to_path_buf).collect()
}

/// The current versions of files. Contents of more than `max_bytes` are left out.
pub(crate) fn versions(context: &ToolContext, paths: &[PathBuf], max_bytes: u64) -> Vec<FileVersion> {
    let version = |path: &PathBuf| {
        let loaded = open(context, path).and_then(|held| held.load().map_err(|refusal| refusal.text));
        let state = match loaded {
            Ok(None) => FileState::Missing,
            Ok(Some(content)) => FileState::Content {
                sha256: content.sha256.hex().to_owned(),
                mode: content.mode(),
                bytes: (content.bytes.len() as u64 <= max_bytes).then(|| Arc::clone(&content.bytes)),
            },
            Err(why) => FileState::Unreadable(why),
        };
        FileVersion { path: path.clone(), state }
    };
    paths.iter().map(version).collect()
}

/// Changes all files, or none: after a failure, the files that were changed get their content back.
///
/// # Errors
/// The path of the file that could not be changed, and the reason.
pub(crate) fn restore(
    context: &ToolContext,
    call_id: CallId,
    steps: Vec<RestoreStep>,
) -> Result<(), (PathBuf, String)> {
    let mut done: Vec<(PathBuf, Option<FileSnapshot>)> = Vec::new();
    for step in steps {
        match apply_step(context, call_id, &step) {
            Ok(before) => {
                done.push((step.path, before));
                crash::point("C25.partly");
            }
            Err(why) => {
                for (path, before) in done.into_iter().rev() {
                    if let Err(error) = write_content(context, call_id, &path, before.as_ref()) {
                        tracing::error!(path = %path.display(), error, "could not restore a file after a failed rewind");
                    }
                }
                return Err((step.path, why));
            }
        }
    }
    Ok(())
}

/// Applies one step and returns the content from before.
fn apply_step(
    context: &ToolContext,
    call_id: CallId,
    step: &RestoreStep,
) -> Result<Option<FileSnapshot>, String> {
    let held = open(context, &step.path)?;
    held.remove_temp(call_id);
    let before = held.load().map_err(|refusal| refusal.text)?;
    if before.as_ref().map(|content| content.sha256.hex()) != step.from.as_deref() {
        return Err("it changed meanwhile".into());
    }
    let after = step.to.as_ref().map(|(bytes, mode)| FileSnapshot::own(bytes.clone(), *mode));
    write(&held, call_id, before.as_ref(), after.as_ref())?;
    Ok(before)
}

/// Replaces the content of a file, independent of its current content.
fn write_content(
    context: &ToolContext,
    call_id: CallId,
    path: &Path,
    after: Option<&FileSnapshot>,
) -> Result<(), String> {
    let held = open(context, path)?;
    let before = held.load().map_err(|refusal| refusal.text)?;
    write(&held, call_id, before.as_ref(), after)
}

fn write(
    held: &PinnedPath,
    call_id: CallId,
    before: Option<&FileSnapshot>,
    after: Option<&FileSnapshot>,
) -> Result<(), String> {
    let written = match (before, after) {
        (None, None) => Ok(()),
        (Some(before), None) => held.remove(before),
        (Some(before), Some(after)) => held.replace(call_id, Some(before), &after.bytes).map(|_| ()),
        (None, Some(after)) => held.create_like(call_id, after, &after.bytes).map(|_| ()),
    };
    written.map_err(|refusal| refusal.text)
}

/// Pins a path, as before a change by a tool.
fn open(context: &ToolContext, path: &Path) -> Result<PinnedPath, String> {
    let held = context.hold(path, Access::Edit).map_err(|refusal| refusal.text)?;
    // The path was judged without links. A link that appeared since would redirect the write.
    if held.path != path {
        return Err(format!("{} leads to another place now", path.display()));
    }
    if held.sensitivity == PathSensitivity::Protected {
        return Err(format!("{} is protected", path.display()));
    }
    Ok(held)
}
