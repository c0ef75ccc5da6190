//! After a crash: what became of a change of a file, and nothing left beside it (S4).

use super::care::Access;
use super::context::Context;
use super::disk::Stamp;
use crate::types::ids::CallId;
use crate::types::tool::{FileChange, Inspection, PlannedChange, Prepared, ReadRecord, Subject};

/// Looks at the file that a call was to change. Removes the temporary file of that call, if its
/// process was killed before it could.
pub(super) fn inspect(context: &Context, call_id: CallId, prepared: &Prepared) -> Inspection {
    let Subject::Edit { path } = &prepared.subject else {
        return Inspection::Conflict("it is no change of a file".into());
    };
    let path = &path.path;
    // Links that came in since are not followed: what was judged is what is looked at.
    let held = match context.hold(path, Access::Edit) {
        Ok(held) => held,
        Err(refusal) => return Inspection::Conflict(refusal.text),
    };
    held.remove_temp(call_id);
    let Some(planned) = &prepared.change else {
        return Inspection::Conflict("what it was to write was not known beforehand".into());
    };
    let shown = context.show(path);
    let (found, meta) = match held.load() {
        Ok(found) => (found, held.found.as_ref().map(|found| &found.meta)),
        Err(refusal) => return Inspection::Conflict(format!("{shown} could not be read: {}", refusal.text)),
    };
    let now = found.as_ref().map(|content| content.sha256.as_str());
    let planned_before = planned.sha256_before.as_deref();
    // What an earlier call of the same message wrote is what this one began with: then the plan, made
    // before both, does not say what this one would have come to.
    let known = context.record(path).map(|record| record.sha256.as_str());
    let is_planned = known.is_none() || known == planned_before || planned_before.is_none() && now.is_none();
    if (known.is_some() && now == known) || (is_planned && now == planned_before) {
        return Inspection::NotDone;
    }
    match (found, meta) {
        (Some(content), Some(meta)) if is_planned && content.sha256 == planned.sha256_after => {
            let stamp = Stamp::of(meta);
            Inspection::Done {
                record: ReadRecord {
                    path: path.clone(),
                    mtime_ns: stamp.mtime_ns,
                    size: stamp.size,
                    sha256: content.sha256,
                    whole: planned.whole,
                },
                change: change(path, planned),
            }
        }
        _ => Inspection::Conflict(format!("{shown} holds neither the content before nor the one after")),
    }
}

/// The diff was shown before the call ran, and is not kept.
fn change(path: &std::path::Path, planned: &PlannedChange) -> FileChange {
    FileChange {
        path: path.to_path_buf(),
        diff: String::new(),
        added: planned.added,
        removed: planned.removed,
    }
}
