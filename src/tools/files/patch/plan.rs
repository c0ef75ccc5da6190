//! Computes and checks every file of a patch before the first one is changed.

use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::file_errors;
use crate::files::edit_guard;
use crate::files::edit_guard::{PreparedEdit, RequiredRead};
use crate::files::file_checks::with_similar_path;
use crate::files::patch::hunks::place_hunks;
use crate::files::patch::parse::{FilePatch, Hunk};
use crate::fs::diff;
use crate::fs::diff::Diff;
use crate::fs::pinned::{FileSnapshot, PinnedPath};
use crate::fs::text;
use crate::fs::text::{Charset, ShownText};
use crate::sensitivity::Access;
use types::tool::{PlannedFile, Subject};

/// Bytes of the diff of all files for users; a longer one is truncated.
const MAX_DIFF_BYTES: usize = 96 << 10;

/// A path that the patch changes, in the order of judging.
pub(super) struct PatchTarget {
    pub(super) path: PinnedPath,
    pub(super) removes: bool,
}

/// Every path that is written or removed. A path may occur once, or in several updates.
pub(super) fn targets(
    context: &ToolContext,
    sections: &[FilePatch<'_>],
) -> Result<Vec<PatchTarget>, ToolError> {
    let mut targets: Vec<PatchTarget> = Vec::new();
    let mut updates: Vec<PathBuf> = Vec::new();
    for section in sections {
        let (source, removes, move_to) = match section {
            FilePatch::Add { path, .. } => (*path, false, None),
            FilePatch::Delete { path } => (*path, true, None),
            FilePatch::Update { path, move_to, .. } => (*path, move_to.is_some(), *move_to),
        };
        let is_update = matches!(section, FilePatch::Update { move_to: None, .. });
        let path = context.resolve(source, Access::Edit)?;
        if targets.iter().any(|target| target.path.path == path.path) {
            if is_update && updates.contains(&path.path) {
                continue;
            }
            return Err(duplicate_error(context, &path));
        }
        if is_update {
            updates.push(path.path.clone());
        }
        targets.push(PatchTarget { path, removes });
        if let Some(to) = move_to {
            let path = context.resolve(to, Access::Edit)?;
            if targets.iter().any(|target| target.path.path == path.path) {
                return Err(duplicate_error(context, &path));
            }
            targets.push(PatchTarget { path, removes: false });
        }
    }
    Ok(targets)
}

pub(super) fn duplicate_error(context: &ToolContext, path: &PinnedPath) -> ToolError {
    ToolError::new(
        "duplicate_file",
        format!("{} comes up twice in the patch; say everything about a file in one section. Nothing was changed.", context.show(&path.path)),
    )
    .with(json!({ "path": path.path }))
}

pub(super) fn subject(targets: &[PatchTarget]) -> Subject {
    let parts = targets.iter().map(|target| {
        let path = target.path.resolved.clone();
        if target.removes { Subject::Delete { path } } else { Subject::Edit { path } }
    });
    Subject::Several { parts: parts.collect() }
}

/// The planned state of one file.
pub(super) enum FileStep {
    Write(PreparedEdit),
    Remove { path: PinnedPath, before: FileSnapshot, diff: Diff },
}

impl FileStep {
    pub(super) fn path(&self) -> &PinnedPath {
        match self {
            FileStep::Write(change) => &change.path,
            FileStep::Remove { path, .. } => path,
        }
    }

    pub(super) fn diff(&self) -> &Diff {
        match self {
            FileStep::Write(change) => &change.diff,
            FileStep::Remove { diff, .. } => diff,
        }
    }

    pub(super) fn planned(&self) -> PlannedFile {
        let (before, after, whole) = match self {
            FileStep::Write(change) => {
                (change.before.as_ref(), Some(change.sha256.hex().to_owned()), change.known_whole)
            }
            FileStep::Remove { before, .. } => (Some(before), None, false),
        };
        PlannedFile {
            path: self.path().path.clone(),
            sha256_before: before.map(|before| before.sha256.hex().to_owned()),
            sha256_after: after,
            added: self.diff().added,
            removed: self.diff().removed,
            whole,
        }
    }
}

pub(super) fn count_changed_lines(steps: &[FileStep]) -> (u64, u64) {
    steps
        .iter()
        .fold((0, 0), |(added, removed), step| (added + step.diff().added, removed + step.diff().removed))
}

pub(super) fn whole_diff(steps: &[FileStep]) -> String {
    let mut text = String::new();
    for (at, step) in steps.iter().enumerate() {
        if text.len() > MAX_DIFF_BYTES {
            text.push_str(&format!("[cut: the diffs of {} more files]\n", steps.len() - at));
            break;
        }
        text.push_str(&step.diff().text);
    }
    text
}

/// Computes every file without changing anything.
pub(super) fn plan(
    context: &ToolContext,
    sections: Vec<FilePatch<'_>>,
    targets: &[PatchTarget],
) -> Result<Vec<FileStep>, ToolError> {
    // Several updates of one file become one change.
    let mut merged: Vec<(PathBuf, FilePatch<'_>)> = Vec::new();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for section in sections {
        let source = match &section {
            FilePatch::Add { path, .. } | FilePatch::Delete { path } | FilePatch::Update { path, .. } => {
                *path
            }
        };
        let path = context.resolve(source, Access::Edit)?.path.clone();
        if let Some(at) = places.get(&path) {
            if let (FilePatch::Update { hunks, .. }, FilePatch::Update { hunks: more, .. }) =
                (&mut merged[*at].1, section)
            {
                hunks.extend(more);
            }
            continue;
        }
        places.insert(path.clone(), merged.len());
        merged.push((path, section));
    }
    let target = |path: &PathBuf| {
        let found = targets.iter().find(|target| target.path.path == *path);
        found.map(|target| target.path.clone()).ok_or_else(|| file_errors::changed_path_error(path))
    };
    let mut steps = Vec::new();
    for (path, section) in merged {
        let path = target(&path)?;
        match section {
            FilePatch::Add { lines, .. } => steps.push(add(context, path, &lines)?),
            FilePatch::Delete { .. } => steps.push(remove(context, path)?),
            FilePatch::Update { move_to: None, hunks, .. } => {
                steps.push(FileStep::Write(plan_update(context, path, &hunks)?));
            }
            FilePatch::Update { move_to: Some(to), hunks, .. } => {
                let to = target(&context.resolve(to, Access::Edit)?.path)?;
                let changed = plan_update(context, path.clone(), &hunks)?;
                require_free(context, &to)?;
                // The new file is written completely before the old one is removed: a crash between the two
                // loses nothing.
                let new = changed.charset.decode(&changed.after).unwrap_or_default();
                let moved =
                    PreparedEdit::new(context, to, None, (None, &new), changed.charset, changed.after);
                let moved = PreparedEdit {
                    known_whole: changed.known_whole,
                    mode_of: changed.before.clone(),
                    ..moved
                };
                steps.push(FileStep::Write(moved));
                steps.push(remove(context, path)?);
            }
        }
    }
    Ok(steps)
}

pub(super) fn require_free(
    context: &ToolContext,
    path: &PinnedPath,
) -> Result<Option<FileSnapshot>, ToolError> {
    match path.load()? {
        None => Ok(None),
        Some(empty) if empty.bytes.is_empty() => Ok(Some(empty)),
        Some(content) => Err(ToolError::new(
            "file_exists",
            format!(
                "{} exists and is not empty; use *** Update File. Nothing was changed.",
                context.show(&path.path)
            ),
        )
        .with(json!({ "path": path.path, "size": content.bytes.len() }))),
    }
}

pub(super) fn add(context: &ToolContext, path: PinnedPath, lines: &[&str]) -> Result<FileStep, ToolError> {
    let before = require_free(context, &path)?;
    let content: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let after = content.clone().into_bytes();
    let old = before.as_ref().map(|_| "");
    let change = PreparedEdit::new(context, path, before, (old, &content), Charset::UTF8, after);
    Ok(FileStep::Write(change))
}

/// A file to remove need not have been read (it may be binary), but if it was read it must be unchanged.
pub(super) fn remove(context: &ToolContext, path: PinnedPath) -> Result<FileStep, ToolError> {
    let Some(before) = path.load()? else { return Err(missing_error(context, &path)) };
    if context.record(&path.path).is_some() {
        edit_guard::require_known(context, &path.path, &before, RequiredRead::AnyPart)?;
    }
    let shown = context.show(&path.path);
    let text = text::binary_kind(&before.bytes)
        .is_none()
        .then(|| text::detect(&before.bytes, text::Extent::Whole).decode(&before.bytes))
        .flatten();
    let diff = match text {
        Some(text) => diff::unified(&shown, Some(&ShownText::new(&text).text), None),
        None => Diff {
            text: format!("--- a/{shown}\n+++ /dev/null\n[a binary file of {} bytes]\n", before.bytes.len()),
            added: 0,
            removed: 0,
        },
    };
    Ok(FileStep::Remove { path, before, diff })
}

pub(super) fn missing_error(context: &ToolContext, path: &PinnedPath) -> ToolError {
    let refusal = ToolError::io(&path.path, &std::io::ErrorKind::NotFound.into());
    with_similar_path(context, &path.path, refusal)
}

/// The checks of Edit in the same order, for every hunk.
pub(super) fn plan_update(
    context: &ToolContext,
    path: PinnedPath,
    hunks: &[Hunk<'_>],
) -> Result<PreparedEdit, ToolError> {
    let Some(before) = path.load()? else { return Err(missing_error(context, &path)) };
    // Without permission to read, even a failed match would reveal content.
    if !edit_guard::may_show_content(context, &path) {
        edit_guard::require_known(context, &path.path, &before, RequiredRead::AnyPart)?;
    }
    let held = before.clone();
    let (charset, original) = edit_guard::decode(context, &path, &held)?;
    let view = ShownText::new(&original);
    let edits = place_hunks(&view.text, hunks).map_err(|lost| lost.into_error(context, &path, &view.text))?;
    edit_guard::require_known(context, &path.path, &before, RequiredRead::AnyPart)?;
    let new = view.replace_each(edits.iter().map(|(range, text)| (range.clone(), text.as_str())));
    let known_whole = context.record(&path.path).is_some_and(|record| record.whole);
    let change =
        PreparedEdit::change_file(context, path, before, (&*original, new), charset, "the patch", None)?;
    Ok(PreparedEdit { known_whole, ..change })
}
