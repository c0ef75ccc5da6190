//! After a crash: finds the state of an interrupted file change and removes its temporary files.

use std::path::Path;

use crate::context::ToolContext;
use crate::file_identity::FileStamp;
use crate::sensitivity::Access;
use types::ids::CallId;
use types::tool::{FileChange, Inspection, PlannedChange, PlannedFile, PreparedCall, ReadRecord, Subject};

enum PlannedFileState {
    /// The file has the planned content; its read record, if available.
    New(Option<ReadRecord>),
    Old,
    Neither(String),
}

/// Checks the files that a call was to change. Removes the temporary files of that call, if its process was
/// killed before it could.
pub(crate) fn inspect(context: &ToolContext, call_id: CallId, prepared: &PreparedCall) -> Inspection {
    if !prepared.subject.changes_files() {
        return Inspection::Conflict("it is not a change of a file".into());
    }
    remove_temps(context, &prepared.subject, call_id);
    let files = match (&prepared.change, &prepared.subject) {
        (Some(PlannedChange::Several { files }), _) => files.clone(),
        (Some(PlannedChange::One(edit)), Subject::Edit { path }) => vec![PlannedFile {
            path: path.path.clone(),
            sha256_before: edit.sha256_before.clone(),
            sha256_after: Some(edit.sha256_after.clone()),
            added: edit.added,
            removed: edit.removed,
            whole: edit.whole,
        }],
        _ => return Inspection::Conflict("what it was to write was not known beforehand".into()),
    };
    let (mut done, mut undone) = (Vec::new(), Vec::new());
    let mut records = Vec::new();
    for file in &files {
        match inspect_file(context, file) {
            PlannedFileState::New(record) => {
                records.extend(record);
                done.push(file);
            }
            PlannedFileState::Old => undone.push(file),
            PlannedFileState::Neither(why) => return Inspection::Conflict(why),
        }
    }
    let changes = done.iter().map(|file| file_change(file)).collect();
    if undone.is_empty() {
        Inspection::Done { records, changes }
    } else if done.is_empty() {
        Inspection::NotDone
    } else {
        let list = |files: &[&PlannedFile]| {
            files.iter().map(|file| context.show(&file.path)).collect::<Vec<_>>().join(", ")
        };
        let text = format!("Changed: {}. Not changed: {}.", list(&done), list(&undone));
        Inspection::Partly { records, changes, text }
    }
}

fn remove_temps(context: &ToolContext, subject: &Subject, call_id: CallId) {
    for path in subject.changed_paths() {
        if let Ok(held) = context.hold(path, Access::Edit) {
            held.remove_temp(call_id);
        }
    }
}

fn inspect_file(context: &ToolContext, file: &PlannedFile) -> PlannedFileState {
    let path = file.path.as_path();
    let shown = context.show(path);
    // Do not follow links that appeared since: only the judged object is checked.
    let loaded = context.hold(path, Access::Edit).and_then(|held| Ok((held.load()?, held)));
    let (found, meta) = match &loaded {
        Ok((found, held)) => (found.as_ref(), held.found.as_ref().map(|found| &found.meta)),
        Err(refusal) => {
            return PlannedFileState::Neither(format!("{shown} could not be read: {}", refusal.text));
        }
    };
    let now = found.map(|content| content.sha256.hex());
    let planned_before = file.sha256_before.as_deref();
    // An earlier call of the same message may have written the content that this call started with. The plan
    // was made before both, so it does not give this call's result.
    let known = known_hash(context, path);
    let is_planned = known.is_none() || known == planned_before || planned_before.is_none() && now.is_none();
    if (known.is_some() && now == known) || (is_planned && now == planned_before) {
        return PlannedFileState::Old;
    }
    if !is_planned || now != file.sha256_after.as_deref() {
        return PlannedFileState::Neither(format!(
            "{shown} holds neither the content before nor the one after"
        ));
    }
    match (found, meta) {
        (None, _) => PlannedFileState::New(None),
        (Some(content), Some(meta)) => {
            let stamp = FileStamp::from_metadata(meta);
            PlannedFileState::New(Some(ReadRecord {
                path: path.to_path_buf(),
                mtime_ns: stamp.mtime_ns,
                size: stamp.size,
                sha256: content.sha256.hex().to_owned(),
                whole: file.whole,
                lines: Vec::new(),
                total_lines: None,
            }))
        }
        (Some(_), None) => PlannedFileState::Neither(format!("{shown} could not be looked at")),
    }
}

/// The hash of the content that the model knows.
fn known_hash<'c>(context: &'c ToolContext, path: &Path) -> Option<&'c str> {
    context.record(path).map(|record| record.sha256.as_str()).filter(|hash| !hash.is_empty())
}

/// The diff was shown before the call ran, and is not stored.
fn file_change(file: &PlannedFile) -> FileChange {
    FileChange {
        path: file.path.clone(),
        diff: String::new(),
        added: file.added,
        removed: file.removed,
        sha256_before: file.sha256_before.clone(),
        sha256_after: file.sha256_after.clone(),
    }
}
