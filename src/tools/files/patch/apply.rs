//! The patch tool: parses a patch, computes and checks every file, and only then changes the files one after
//! the other. If a change fails, the result lists the changes that were made.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

use crate::crash;
use crate::tools::call;
use crate::tools::context::ToolContext;
use crate::tools::disk;
use crate::tools::error::{ToolError, cancelled};
use crate::tools::files::did_you_mean::nearest;
use crate::tools::files::edit_guard;
use crate::tools::files::edit_guard::{Change, Needs};
use crate::tools::files::file_checks::with_similar_path;
use crate::tools::files::patch::parse::{Hunk, Line, Section, parse, unify};
use crate::tools::files::patch::seek::seek;
use crate::tools::fs::diff;
use crate::tools::fs::diff::Diff;
use crate::tools::fs::pinned::{Content, PinnedPath};
use crate::tools::fs::text;
use crate::tools::fs::text::{Charset, Shown};
use crate::tools::sensitivity::Access;
use crate::types::ids::CallId;
use crate::types::tool::{
    FileChange, PathSensitivity, PlannedChange, PlannedFile, PreparedCall, Subject, ToolOutcome, ToolStatus,
};

/// Bytes of the diff of all files for users; a longer one is truncated.
const LONGEST_DIFF: usize = 96 << 10;

#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::tools) struct Input {
    /// The patch, from "*** Begin Patch" to "*** End Patch".
    #[serde(alias = "patch")]
    input: String,
}

pub(in crate::tools) const DESCRIPTION: &str = "Changes several files at once by a patch:\n\
    *** Begin Patch\n*** Add File: PATH\n+line\n*** Delete File: PATH\n*** Update File: PATH\n*** Move to: NEW PATH\n\
    @@ a line above the change, such as a function's head\n line kept\n-line removed\n+line added\n*** End of File\n\
    *** End Patch\n\
    Give 3 kept lines above and below each change; add @@ lines if that is not unique. \"Move to\", \"@@\" and \
    \"End of File\" may be left out. Everything is checked before the first file is changed. Files that are updated \
    must have been read before.";

pub(in crate::tools) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    let patch = unify(&input.input);
    let sections = parse(&patch)?;
    let targets = targets(context, &sections)?;
    let subject = subject(&targets);
    let bare = |summary: String| PreparedCall {
        subject: subject.clone(),
        summary,
        diff: None,
        read_only: false,
        change: None,
        sandbox: None,
    };
    let names = || {
        let names: Vec<String> = targets.iter().map(|target| context.show(&target.path.path)).collect();
        names.join(", ")
    };
    // Judge protected files before any error reveals their content.
    if targets.iter().any(|target| target.path.sensitivity == PathSensitivity::Protected) {
        return Ok(bare(format!("Patch {}", names())));
    }
    let steps = match plan(context, sections, &targets) {
        Ok(steps) => steps,
        Err(refusal) => {
            let open = targets.iter().all(|target| edit_guard::may_show_content(context, &target.path));
            // As for Edit: an error must not reveal content of a file that the model may not read.
            return if open || refusal.code == "not_read" {
                Err(refusal)
            } else {
                Ok(bare(format!("Patch {}", names())))
            };
        }
    };
    let (added, removed) = sums(&steps);
    let files = steps.iter().map(Step::planned).collect();
    Ok(PreparedCall {
        diff: Some(whole_diff(&steps)),
        change: Some(PlannedChange::Several { files }),
        ..bare(format!("Patch {} (+{added} −{removed})", names()))
    })
}

pub(in crate::tools) fn run(
    context: &ToolContext,
    call_id: CallId,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let patch = unify(&input.input);
    let sections = parse(&patch)?;
    let targets = targets(context, &sections)?;
    call::same_target(prepared, &subject(&targets))?;
    let steps = plan(context, sections, &targets)?;
    if let Some(diff) = &prepared.diff
        && *diff != whole_diff(&steps)
    {
        let first = &targets[0].path.path;
        return Err(disk::changed_content(first));
    }
    if stop.is_cancelled() {
        return Ok(cancelled());
    }
    Ok(make(context, call_id, steps))
}

/// A path that the patch changes, in the order of judging.
struct Target {
    path: PinnedPath,
    removes: bool,
}

/// Every path that is written or removed. A path may occur once, or in several updates.
fn targets(context: &ToolContext, sections: &[Section<'_>]) -> Result<Vec<Target>, ToolError> {
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

fn twice(context: &ToolContext, path: &PinnedPath) -> ToolError {
    ToolError::new(
        "duplicate_file",
        format!("{} comes up twice in the patch; say everything about a file in one section. Nothing was changed.", context.show(&path.path)),
    )
    .with(json!({ "path": path.path }))
}

fn subject(targets: &[Target]) -> Subject {
    let parts = targets.iter().map(|target| {
        let path = target.path.resolved.clone();
        if target.removes { Subject::Delete { path } } else { Subject::Edit { path } }
    });
    Subject::Several { parts: parts.collect() }
}

/// The planned state of one file.
enum Step {
    Write(Box<Change>),
    Remove { path: PinnedPath, before: Content, diff: Diff },
}

impl Step {
    fn path(&self) -> &PinnedPath {
        match self {
            Step::Write(change) => &change.path,
            Step::Remove { path, .. } => path,
        }
    }

    fn diff(&self) -> &Diff {
        match self {
            Step::Write(change) => &change.diff,
            Step::Remove { diff, .. } => diff,
        }
    }

    fn planned(&self) -> PlannedFile {
        let (before, after, whole) = match self {
            Step::Write(change) => (change.before.as_ref(), Some(change.sha256.clone()), change.known_whole),
            Step::Remove { before, .. } => (Some(before), None, false),
        };
        PlannedFile {
            path: self.path().path.clone(),
            sha256_before: before.map(|before| before.sha256.clone()),
            sha256_after: after,
            added: self.diff().added,
            removed: self.diff().removed,
            whole,
        }
    }
}

fn sums(steps: &[Step]) -> (u64, u64) {
    steps
        .iter()
        .fold((0, 0), |(added, removed), step| (added + step.diff().added, removed + step.diff().removed))
}

fn whole_diff(steps: &[Step]) -> String {
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
fn plan(
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
                steps.push(Step::Write(Box::new(update(context, path, &hunks)?)));
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
                steps.push(Step::Write(Box::new(moved)));
                steps.push(remove(context, path)?);
            }
        }
    }
    Ok(steps)
}

fn require_free(context: &ToolContext, path: &PinnedPath) -> Result<Option<Content>, ToolError> {
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

fn add(context: &ToolContext, path: PinnedPath, lines: &[&str]) -> Result<Step, ToolError> {
    let before = require_free(context, &path)?;
    let content: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let after = content.clone().into_bytes();
    let old = before.as_ref().map(|_| "");
    let change = Change::new(context, path, before, (old, &content), Charset::UTF8, after);
    Ok(Step::Write(Box::new(change)))
}

/// A file to remove need not have been read (it may be binary), but if it was read it must be unchanged.
fn remove(context: &ToolContext, path: PinnedPath) -> Result<Step, ToolError> {
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

fn missing(context: &ToolContext, path: &PinnedPath) -> ToolError {
    let refusal = ToolError::io(&path.path, &std::io::ErrorKind::NotFound.into());
    with_similar_path(context, &path.path, refusal)
}

/// The checks of Edit in the same order, for every hunk.
fn update(context: &ToolContext, path: PinnedPath, hunks: &[Hunk<'_>]) -> Result<Change, ToolError> {
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

/// A hunk that was not found.
pub(super) struct Lost {
    pub(super) number: usize,
    pub(super) wanted: String,
    pub(super) is_anchor: bool,
}

impl Lost {
    fn refusal(self, context: &ToolContext, path: &PinnedPath, text: &str) -> ToolError {
        let shown = context.show(&path.path);
        let what = if self.is_anchor { "the line after @@ is" } else { "the kept and removed lines are" };
        let mut message = format!("the hunk at line {} of the patch: {what} not in {shown}", self.number);
        let near = nearest(text, &self.wanted);
        match &near {
            Some(near) => message.push_str(&format!(
                " (in this order, below the hunks before it). The nearest text begins at line {}:\n{}\n",
                near.line, near.text
            )),
            None => message.push_str(". Read the file again and copy the lines exactly. "),
        }
        message.push_str("Nothing was changed.");
        ToolError::new("context_not_found", message).with(json!({
            "path": path.path,
            "line": self.number,
            "wanted": self.wanted,
            "nearest": near.map(|near| json!({ "line": near.line, "text": near.text })),
        }))
    }
}

/// The changes of the hunks, as ranges of `text` (`\n` line endings) with their replacements: ascending and
/// disjoint. Kept lines keep their bytes, also if they matched only approximately.
pub(super) fn place(text: &str, hunks: &[Hunk<'_>]) -> Result<Vec<(Range<usize>, String)>, Lost> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    // The text after the last line feed is a line only if it is not empty.
    let is_ended = text.is_empty() || text.ends_with('\n');
    if is_ended {
        lines.pop();
    }
    let starts: Vec<usize> = lines
        .iter()
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len() + 1;
            Some(start)
        })
        .chain([text.len()])
        .collect();
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut from = 0;
    for hunk in hunks {
        // Hunks are usually in file order. If one is not found, search above as well.
        let found = match find(&lines, hunk, from) {
            Err(lost) if from > 0 => find(&lines, hunk, 0).map_err(|_| lost)?,
            found => found?,
        };
        let first = edits.len();
        let mut at = found;
        let mut open: Option<(Range<usize>, Vec<&str>)> = None;
        for line in hunk.lines.iter().chain([&Line::Keep("")]).take(hunk.lines.len() + 1) {
            match line {
                Line::Remove(_) => {
                    let (range, _) = open.get_or_insert_with(|| (at..at, Vec::new()));
                    range.end += 1;
                    at += 1;
                }
                Line::Add(new) => open.get_or_insert_with(|| (at..at, Vec::new())).1.push(new),
                Line::Keep(_) => {
                    if let Some((range, new)) = open.take() {
                        edits.push(splice(&starts, lines.len(), is_ended, range, &new));
                    }
                    at += 1;
                }
            }
        }
        from = at.saturating_sub(1).min(lines.len());
        let (before, own) = edits.split_at(first);
        let overlaps = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end || a == b;
        if own.iter().any(|(own, _)| before.iter().any(|(other, _)| overlaps(own, other))) {
            let wanted = hunk.lines.iter().map(|line| line.text()).collect::<Vec<_>>().join("\n");
            return Err(Lost { number: hunk.number, wanted, is_anchor: false });
        }
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    // Text added after a last line without an ending starts a new line. If that last line is removed, the text
    // starts at its position.
    if let [.., (removed, nothing), (below, added)] = edits.as_mut_slice()
        && !is_ended
        && nothing.is_empty()
        && removed.end == text.len()
        && below.start == text.len()
        && let Some(rest) = added.strip_prefix('\n')
    {
        *added = rest.to_owned();
    }
    Ok(edits)
}

/// Converts lines to a range of the text.
fn splice(
    starts: &[usize],
    count: usize,
    is_ended: bool,
    lines: Range<usize>,
    new: &[&str],
) -> (Range<usize>, String) {
    let (start, end) = (starts[lines.start.min(count)], starts[lines.end.min(count)]);
    let mut text: String = new.iter().flat_map(|line| [line, "\n"]).collect();
    if is_ended || lines.end < count {
        return (start..end, text);
    }
    // The last line has no ending. It gets one if text is added after it, and its replacement has none.
    if lines.start >= count {
        return (start..end, format!("\n{}", text.strip_suffix('\n').unwrap_or(&text)));
    }
    if text.ends_with('\n') {
        text.pop();
    }
    (start..end, text)
}

/// The line at which the hunk begins.
fn find(lines: &[&str], hunk: &Hunk<'_>, from: usize) -> Result<usize, Lost> {
    let mut from = from;
    for anchor in &hunk.anchors {
        match seek(lines, &[anchor], from, false) {
            Some(at) => from = at + 1,
            None => {
                return Err(Lost { number: hunk.number, wanted: (*anchor).to_owned(), is_anchor: true });
            }
        }
    }
    let wanted: Vec<&str> = hunk
        .lines
        .iter()
        .filter_map(|line| match line {
            Line::Keep(text) | Line::Remove(text) => Some(*text),
            Line::Add(_) => None,
        })
        .collect();
    if wanted.is_empty() {
        // A hunk with only added lines goes below the anchor, or to the end of the file.
        return Ok(if hunk.anchors.is_empty() || hunk.at_end { lines.len() } else { from });
    }
    seek(lines, &wanted, from, hunk.at_end)
        // The anchor may itself be the first of the kept lines.
        .or_else(|| (!hunk.anchors.is_empty()).then(|| seek(lines, &wanted, from - 1, hunk.at_end)).flatten())
        .ok_or_else(|| Lost { number: hunk.number, wanted: wanted.join("\n"), is_anchor: false })
}

/// Changes the files, one after the other.
fn make(context: &ToolContext, call_id: CallId, steps: Vec<Step>) -> ToolOutcome {
    let count = steps.len();
    let mut whole = ToolOutcome::completed(String::new());
    let (mut done, mut files): (Vec<String>, Vec<Value>) = (Vec::new(), Vec::new());
    let mut failed = None;
    let mut rest: Vec<String> = Vec::new();
    for step in steps {
        let shown = context.show(&step.path().path);
        if failed.is_some() {
            rest.push(shown);
            continue;
        }
        match one(context, call_id, step) {
            Ok(outcome) => {
                crash::point("C16.between");
                done.push(outcome.output);
                files.extend(outcome.detail);
                whole.changes.extend(outcome.changes);
                whole.reads.extend(outcome.reads);
            }
            Err(refusal) => {
                rest.push(shown);
                failed = Some(refusal);
            }
        }
    }
    let report = done.join("\n");
    let Some(refusal) = failed else {
        return ToolOutcome { output: report, detail: Some(json!({ "files": files })), ..whole };
    };
    if done.is_empty() {
        return refusal.into();
    }
    let output = format!(
        "Only {} of {count} changes were made: {}\nDone:\n{report}\nNot done: {}.",
        done.len(),
        refusal.text,
        rest.join(", ")
    );
    ToolOutcome {
        status: ToolStatus::Failed,
        code: Some("partly_done".into()),
        output,
        detail: Some(json!({ "files": files, "cause": refusal.code, "meta": refusal.meta })),
        ..whole
    }
}

fn one(context: &ToolContext, call_id: CallId, step: Step) -> Result<ToolOutcome, ToolError> {
    match step {
        Step::Write(change) => {
            let verb = if change.before.is_some() { "Edited" } else { "Created" };
            let done = format!("{verb} {}", context.show(&change.path.path));
            change.make(call_id, &done, json!({}))
        }
        Step::Remove { path, before, diff } => {
            path.remove(&before)?;
            let path = path.resolved.path;
            let detail = json!({
                "path": path, "removed_file": true, "sha256_before": before.sha256,
                "added": diff.added, "removed": diff.removed,
            });
            let change = FileChange {
                diff: diff.text,
                added: diff.added,
                removed: diff.removed,
                sha256_before: Some(before.sha256.clone()),
                sha256_after: None,
                path: path.clone(),
            };
            Ok(ToolOutcome {
                detail: Some(detail),
                changes: vec![change],
                ..ToolOutcome::completed(format!(
                    "Removed {} (−{} lines).",
                    context.show(&path),
                    diff.removed
                ))
            })
        }
    }
}
