//! The files of a rewind: their content at an item, taken from the file checkpoints of the journal.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use crate::error::SessionError;
use crate::shared::Shared;
use engine::HistoryPoint;
use store::SessionKey;
use tools::{FileState, FileVersion, RestoreStep, SessionContext};
use types::event::{Envelope, Event};
use types::history::{FileAction, FileCheckpoint, RewindConflict, RewoundFile};
use types::ids::{ItemId, Seq};

/// The part of the files that a rewind restores.
#[derive(Debug, Default)]
pub(crate) struct FilePlan {
    /// All files that the session changed after the item.
    pub files: Vec<RewoundFile>,
    /// Files that prevent the rewind.
    pub conflicts: Vec<RewindConflict>,
    /// The changes to make.
    pub steps: Vec<RestoreStep>,
}

/// A file that the session changed after the item.
struct ChangedFile {
    /// The version of the file at the item.
    then: FileCheckpoint,
    /// SHA-256 of the file's content after the session's last change; `None` if the session removed the file.
    last_written: Option<String>,
}

/// Plans the rewind of all files that the session changed after an item.
pub(crate) async fn plan_rewind(
    shared: &Shared,
    key: SessionKey,
    point: HistoryPoint,
    context: &SessionContext,
) -> Result<FilePlan, SessionError> {
    let changed = files_changed_after(shared, key, point).await?;
    let mut plan = FilePlan::default();
    let mut paths: Vec<PathBuf> = Vec::new();
    for (path, ChangedFile { then, .. }) in &changed {
        let why = if !context.is_inside(path) {
            "it is outside the session's workspace"
        } else if then.exists && then.sha256.is_none() && then.content.is_none() {
            "its earlier content is not known: the session was imported, or the file could not be read"
        } else {
            paths.push(path.clone());
            continue;
        };
        let path = path.to_string_lossy().into_owned();
        plan.conflicts.push(RewindConflict { path, reason: why.into() });
    }
    let tools = shared.components().tools.clone();
    let now = tools.file_versions(paths, 0, context).await;
    for FileVersion { path, state } in now {
        let Some(ChangedFile { then, last_written }) = changed.get(&path) else { continue };
        let path_text = path.to_string_lossy().into_owned();
        let conflict = |reason: &str| RewindConflict { path: path_text.clone(), reason: reason.into() };
        let (wanted, is_missing) = (then.sha256.as_deref(), matches!(state, FileState::Missing));
        let current = match state.sha256() {
            Ok(current) => current,
            Err(why) => {
                plan.conflicts.push(conflict(why));
                continue;
            }
        };
        let is_known = then.sha256.is_some() || !then.exists;
        let file = |action| RewoundFile { path: path_text.clone(), action, sha256: then.sha256.clone() };
        if is_known && current == wanted {
            plan.files.push(file(FileAction::Unchanged));
            continue;
        }
        if current != last_written.as_deref() {
            plan.conflicts.push(conflict(if is_missing {
                "it was removed since the session last changed it"
            } else {
                "it changed since the session last wrote it"
            }));
            continue;
        }
        let (to, action) = if then.exists {
            let Some(content) = content(shared, key, then).await? else {
                plan.conflicts.push(conflict("its earlier content was not kept, because it was too large"));
                continue;
            };
            (Some((content, then.mode.unwrap_or(0o644))), FileAction::Restored)
        } else {
            (None, FileAction::Deleted)
        };
        plan.files.push(file(action));
        plan.steps.push(RestoreStep { path, from: current.map(str::to_owned), to });
    }
    Ok(plan)
}

async fn content(
    shared: &Shared,
    key: SessionKey,
    then: &FileCheckpoint,
) -> Result<Option<Vec<u8>>, SessionError> {
    let Some(content_ref) = &then.content else { return Ok(None) };
    let Some(blob) = shared.store.blob(key, content_ref.blob_id).await? else { return Ok(None) };
    Ok(Some(shared.store.read_blob(&blob, 0, usize::MAX).await?))
}

/// The files that the session changed after an item, by path.
async fn files_changed_after(
    shared: &Shared,
    key: SessionKey,
    point: HistoryPoint,
) -> Result<BTreeMap<PathBuf, ChangedFile>, SessionError> {
    let mut changed: BTreeMap<PathBuf, ChangedFile> = BTreeMap::new();
    let mut kept_items: HashMap<ItemId, bool> = HashMap::new();
    let mut cursor: Seq = point.first_seq;
    loop {
        let rows = shared.store.file_history_after(key, cursor).await?;
        let Some(last) = rows.last() else { return Ok(changed) };
        cursor = last.seq;
        for row in rows {
            let Some(envelope) = shared.store.restored_event(key, row.seq, &row.body).await? else {
                continue;
            };
            if is_item_kept(shared, key, point, &envelope, &mut kept_items).await? {
                continue;
            }
            match envelope.event {
                Event::FileCheckpointed { files, .. } => {
                    for then in files {
                        let last_written = then.sha256.clone();
                        let new = || ChangedFile { then: then.clone(), last_written };
                        changed.entry(then.path.clone()).or_insert_with(new);
                    }
                }
                Event::FileChanged { change, .. } => {
                    if let Some(file) = changed.get_mut(&change.path) {
                        file.last_written = change.sha256_after;
                    }
                }
                Event::SessionRewound(rewound) => {
                    for file in rewound.files {
                        if let Some(known) = changed.get_mut(&PathBuf::from(file.path)) {
                            known.last_written = file.sha256;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether an event belongs to an item that the rewind keeps. A call of the same message may end after
/// the item began.
async fn is_item_kept(
    shared: &Shared,
    key: SessionKey,
    point: HistoryPoint,
    envelope: &Envelope,
    known: &mut HashMap<ItemId, bool>,
) -> Result<bool, SessionError> {
    let is_rewind = matches!(envelope.event, Event::SessionRewound(_));
    let Some(item_id) = envelope.item_id.filter(|_| !is_rewind) else { return Ok(false) };
    if let Some(is_kept) = known.get(&item_id) {
        return Ok(*is_kept);
    }
    let found = shared.store.find_item(key, Some(item_id)).await?;
    let is_kept = found.is_some_and(|item| item.first_seq <= point.first_seq);
    known.insert(item_id, is_kept);
    Ok(is_kept)
}
