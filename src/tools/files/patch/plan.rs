//! Computes and checks every file of a patch before the first one is changed.

use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;

use crate::tools::context::ToolContext;
use crate::tools::disk;
use crate::tools::error::ToolError;
use crate::tools::files::edit_guard;
use crate::tools::files::edit_guard::{Change, Needs};
use crate::tools::files::file_checks::with_similar_path;
use crate::tools::files::patch::hunks::place;
use crate::tools::files::patch::parse::{Hunk, Section};
use crate::tools::fs::diff;
use crate::tools::fs::diff::Diff;
use crate::tools::fs::pinned::{Content, PinnedPath};
use crate::tools::fs::text;
use crate::tools::fs::text::{Charset, Shown};
use crate::tools::sensitivity::Access;
use crate::types::tool::{PlannedFile, Subject};

/// Bytes of the diff of all files for users; a longer one is truncated.
const LONGEST_DIFF: usize = 96 << 10;

/// A path that the patch changes, in the order of judging.
pub(super) struct Target {
    pub(super) path: PinnedPath,
    pub(super) removes: bool,
}

/// Every path that is written or removed. A path may occur once, or in several updates.
pub(super) fn targets(context: &ToolContext, sections: &[Section<'_>]) -> Result<Vec<Target>, ToolError> {
    let mut targets: Vec<Target> = Vec::new();
    let mut updates: Vec<PathBuf> = Vec::new();
    for section in sections {
        let (source, removes, move_to) = match section {
            Section::Add { path, .. } => (*path, false, None),
            Section::Delete { path } => (*path, true, None),
            Section::Update { path, move_to, .. } => (*path, move_to.is_some(), *move_to),
        };
        let is_update = matches!(section, Section::Update { move_to: None, .. });
        let path = context.resolve(source, Access::Edit)?;
        if targets.iter().any(|target| target.path.path == path.path) {
            if is_update && updates.contains(&path.path) {
                continue;
            }
            return Err(twice(context, &path));
        }
        if is_update {
            updates.push(path.path.clone());
        }
        targets.push(Target { path, removes });
        if let Some(to) = move_to {
            let path = context.resolve(to, Access::Edit)?;
            if targets.iter().any(|target| target.path.path == path.path) {
                return Err(twice(context, &path));
            }
            targets.push(Target { path, removes: false });
        }
    }
    Ok(targets)
}

pub(super) fn twice(context: &ToolContext, path: &PinnedPath) -> ToolError {
    ToolError::new(
        "duplicate_file",
        format!("{} comes up twice in the patch; say everything about a file in one section. Nothing was changed.", context.show(&path.path)),
    )
    .with(json!({ "path": path.path }))
}

pub(super) fn subject(targets: &[Target]) -> Subject {
    let parts = targets.iter().map(|target| {
        let path = target.path.resolved.clone();
        if target.removes { Subject::Delete { path } } else { Subject::Edit { path } }
    });
    Subject::Several { parts: parts.collect() }
}

/// The planned state of one file.
pub(super) enum Step {
    Write(Change),
    Remove { path: PinnedPath, before: Content, diff: Diff },
}

impl Step {
    pub(super) fn path(&self) -> &PinnedPath {
        match self {
            Step::Write(change) => &change.path,
            Step::Remove { path, .. } => path,
        }
    }

    pub(super) fn diff(&self) -> &Diff {
        match self {
            Step::Write(change) => &change.diff,
            Step::Remove { diff, .. } => diff,
        }
    }

    pub(super) fn planned(&self) -> PlannedFile {
        let (before, after, whole) = match self {
            Step::Write(change) => {
                (change.before.as_ref(), Some(change.sha256.hex().to_owned()), change.known_whole)
            }
            Step::Remove { before, .. } => (Some(before), None, false),
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

pub(super) fn sums(steps: &[Step]) -> (u64, u64) {
    steps
        .iter()
        .fold((0, 0), |(added, removed), step| (added + step.diff().added, removed + step.diff().removed))
}

pub(super) fn whole_diff(steps: &[Step]) -> String {
    let mut text = String::new();
    for (at, step) in steps.iter().enumerate() {
        if text.len() > LONGEST_DIFF {
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
    sections: Vec<Section<'_>>,
    targets: &[Target],
) -> Result<Vec<Step>, ToolError> {
    // Several updates of one file become one change.
    let mut merged: Vec<(PathBuf, Section<'_>)> = Vec::new();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for section in sections {
        let source = match &section {
            Section::Add { path, .. } | Section::Delete { path } | Section::Update { path, .. } => *path,
        };
        let path = context.resolve(source, Access::Edit)?.path.clone();
        if let Some(at) = places.get(&path) {
            if let (Section::Update { hunks, .. }, Section::Update { hunks: more, .. }) =
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
        found.map(|target| target.path.clone()).ok_or_else(|| disk::changed_underway(path))
    };
    let mut steps = Vec::new();
    for (path, section) in merged {
        let path = target(&path)?;
        match section {
            Section::Add { lines, .. } => steps.push(add(context, path, &lines)?),
            Section::Delete { .. } => steps.push(remove(context, path)?),
            Section::Update { move_to: None, hunks, .. } => {
                steps.push(Step::Write(update(context, path, &hunks)?));
            }
            Section::Update { move_to: Some(to), hunks, .. } => {
                let to = target(&context.resolve(to, Access::Edit)?.path)?;
                let changed = update(context, path.clone(), &hunks)?;
                require_free(context, &to)?;
                // The new file is written completely before the old one is removed: a crash between the two
                // loses nothing.
                let new = changed.charset.decode(&changed.after).unwrap_or_default();
                let moved = Change::new(context, to, None, (None, &new), changed.charset, changed.after);
                let moved =
                    Change { known_whole: changed.known_whole, mode_of: changed.before.clone(), ..moved };
                steps.push(Step::Write(moved));
                steps.push(remove(context, path)?);
            }
        }
    }
    Ok(steps)
}

pub(super) fn require_free(context: &ToolContext, path: &PinnedPath) -> Result<Option<Content>, ToolError> {
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

pub(super) fn add(context: &ToolContext, path: PinnedPath, lines: &[&str]) -> Result<Step, ToolError> {
    let before = require_free(context, &path)?;
    let content: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let after = content.clone().into_bytes();
    let old = before.as_ref().map(|_| "");
    let change = Change::new(context, path, before, (old, &content), Charset::UTF8, after);
    Ok(Step::Write(change))
}

/// A file to remove need not have been read (it may be binary), but if it was read it must be unchanged.
pub(super) fn remove(context: &ToolContext, path: PinnedPath) -> Result<Step, ToolError> {
    let Some(before) = path.load()? else { return Err(missing(context, &path)) };
    if context.record(&path.path).is_some() {
        edit_guard::require_known(context, &path.path, &before, Needs::AnyPart)?;
    }
    let shown = context.show(&path.path);
    let text = text::binary_kind(&before.bytes)
        .is_none()
        .then(|| text::detect(&before.bytes, true).decode(&before.bytes))
        .flatten();
    let diff = match text {
        Some(text) => diff::unified(&shown, Some(&Shown::new(&text).text), None),
        None => Diff {
            text: format!("--- a/{shown}\n+++ /dev/null\n[a binary file of {} bytes]\n", before.bytes.len()),
            added: 0,
            removed: 0,
        },
    };
    Ok(Step::Remove { path, before, diff })
}

pub(super) fn missing(context: &ToolContext, path: &PinnedPath) -> ToolError {
    let refusal = ToolError::io(&path.path, &std::io::ErrorKind::NotFound.into());
    with_similar_path(context, &path.path, refusal)
}

/// The checks of Edit in the same order, for every hunk.
pub(super) fn update(
    context: &ToolContext,
    path: PinnedPath,
    hunks: &[Hunk<'_>],
) -> Result<Change, ToolError> {
    let Some(before) = path.load()? else { return Err(missing(context, &path)) };
    // Without permission to read, even a failed match would reveal content.
    if !edit_guard::may_show_content(context, &path) {
        edit_guard::require_known(context, &path.path, &before, Needs::AnyPart)?;
    }
    let held = before.clone();
    let (charset, original) = edit_guard::decode(context, &path, &held)?;
    let view = Shown::new(&original);
    let edits = place(&view.text, hunks).map_err(|lost| lost.refusal(context, &path, &view.text))?;
    edit_guard::require_known(context, &path.path, &before, Needs::AnyPart)?;
    let new = view.replace_each(edits.iter().map(|(range, text)| (range.clone(), text.as_str())));
    let known_whole = context.record(&path.path).is_some_and(|record| record.whole);
    let change = Change::within(context, path, before, (&*original, new), charset, "the patch", None)?;
    Ok(Change { known_whole, ..change })
}
