//! Prevents changes to content that the model does not know, and makes the last step of every file change.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::call::same_target;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::file_errors;
use crate::file_identity;
use crate::files::file_checks::{is_notebook, refuse_binary};
use crate::fs::content_hash::ContentHash;
use crate::fs::diff;
use crate::fs::diff::Diff;
use crate::fs::pinned::{FileSnapshot, PinnedPath};
use crate::fs::text;
use crate::fs::text::{Charset, LineEndings, ShownText};
use types::ids::CallId;
use types::tool::{
    FileChange, PathSensitivity, PlannedChange, PlannedEdit, PreparedCall, ReadRecord, ResolvedPath, Subject,
    ToolOutcome,
};

/// How much of a file the model must have read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredRead {
    AnyPart,
    Whole,
}

/// Refuses unless the model has read the file in its current version.
pub(crate) fn require_known(
    context: &ToolContext,
    path: &Path,
    found: &FileSnapshot,
    needs: RequiredRead,
) -> Result<(), ToolError> {
    let shown = context.show(path);
    let not_read = |text: String| Err(ToolError::new("not_read", text).with(json!({ "path": path })));
    let Some(record) = context.record(path) else {
        if !context.settings.config.edit_requires_read {
            return Ok(());
        }
        return not_read(format!("{shown} was not read yet; read it before changing it"));
    };
    if record.sha256 != found.sha256.hex() {
        return Err(file_errors::changed_content_error(path));
    }
    if needs == RequiredRead::Whole && !record.whole && context.settings.config.edit_requires_read {
        return not_read(format!(
            "only a part of {shown} was read; read the whole file before overwriting it, or use Edit"
        ));
    }
    Ok(())
}

/// Whether an error about this file may contain its content: the model has read the file, or may read it.
pub(crate) fn may_show_content(context: &ToolContext, path: &ResolvedPath) -> bool {
    context.record(&path.path).is_some()
        || (path.in_workspace
            && !matches!(path.sensitivity, PathSensitivity::Secret | PathSensitivity::HardLinked)
            && !context.session_context.unreadable.is_unreadable("Read", &path.path))
}

/// Checks 5 and 6 of a change inside a file: it is text, and encoding returns the same bytes. Notebooks are
/// refused, because they are changed by cells.
pub(crate) fn decode<'b>(
    context: &ToolContext,
    path: &ResolvedPath,
    before: &'b FileSnapshot,
) -> Result<(Charset, Cow<'b, str>), ToolError> {
    if is_notebook(&path.path) {
        let shown = context.show(&path.path);
        let text = format!("{shown} is a Jupyter notebook; change its cells with NotebookEdit");
        return Err(ToolError::new("is_notebook", text).with(json!({ "path": path.path })));
    }
    decode_any(context, path, before)
}

/// Like [`decode`], but accepts notebooks.
pub(crate) fn decode_any<'b>(
    context: &ToolContext,
    path: &ResolvedPath,
    before: &'b FileSnapshot,
) -> Result<(Charset, Cow<'b, str>), ToolError> {
    refuse_binary(&path.path, &before.bytes)?;
    match text::text_of(&before.bytes) {
        (charset, Some(text)) => Ok((charset, text)),
        (charset, None) => Err(ToolError::new(
            "encoding_not_safe",
            format!(
                "{} looks like {}, but would not come back byte for byte",
                context.show(&path.path),
                charset.name()
            ),
        )
        .with(json!({ "path": path.path, "encoding": charset.name() }))),
    }
}

/// The bytes of a changed text. `what` names the argument that may contain a character that the encoding lacks.
pub(crate) fn encode(
    context: &ToolContext,
    path: &ResolvedPath,
    charset: Charset,
    text: &str,
    what: &str,
) -> Result<Vec<u8>, ToolError> {
    charset.encode(text).ok_or_else(|| {
        let lacking = text.chars().find(|c| charset.encode(c.encode_utf8(&mut [0; 4])).is_none());
        let named = lacking.map_or("a character".to_owned(), |c| format!("{c:?} (U+{:04X})", u32::from(c)));
        ToolError::new(
            "cannot_encode",
            format!(
                "{} is kept in {}, which lacks {named} of {what}",
                context.show(&path.path),
                charset.name()
            ),
        )
        .with(json!({ "path": path.path, "encoding": charset.name(), "character": lacking }))
    })
}

/// A change that is ready to be made.
pub(crate) struct PreparedEdit {
    pub(crate) path: PinnedPath,
    /// The content that is replaced; `None` for a new file.
    pub(crate) before: Option<FileSnapshot>,
    pub(crate) after: Arc<Vec<u8>>,
    /// SHA-256 of `after`.
    pub(crate) sha256: ContentHash,
    pub(crate) charset: Charset,
    pub(crate) endings: LineEndings,
    pub(crate) diff: Diff,
    /// Whether the model knows the whole new content.
    pub(crate) known_whole: bool,
    /// The file that moves here; its permission bits are kept.
    pub(crate) mode_of: Option<FileSnapshot>,
}

impl PreparedEdit {
    /// `old` and `new` are the texts in their original line endings.
    pub(crate) fn new(
        context: &ToolContext,
        path: PinnedPath,
        before: Option<FileSnapshot>,
        (old, new): (Option<&str>, &str),
        charset: Charset,
        after: impl Into<Arc<Vec<u8>>>,
    ) -> Self {
        let after = after.into();
        let sha256 = ContentHash::start(&after);
        let diff = difference(context, &path, old, new, || None);
        let endings = LineEndings::detect(new);
        Self { path, before, after, sha256, charset, endings, diff, known_whole: true, mode_of: None }
    }

    /// A change inside a file: `old` and `new` are its texts in their original line endings. `what` names the
    /// argument that may contain a character that the encoding lacks. Avoids copies. `planned` is the judged
    /// call: the same change of the same content reuses its diff if that took long to compute.
    pub(crate) fn change_file(
        context: &ToolContext,
        path: PinnedPath,
        before: FileSnapshot,
        (old, new): (&str, String),
        charset: Charset,
        what: &str,
        planned: Option<&PreparedCall>,
    ) -> Result<Self, ToolError> {
        let endings = LineEndings::detect(&new);
        // If the content before and after is that of the judged call, the diff is the same as well.
        let judged_diff = |after: &[u8]| {
            let planned = planned?;
            let Some(PlannedChange::One(edit)) = &planned.change else { return None };
            let is_same = edit.sha256_before.as_deref() == Some(before.sha256.hex())
                && edit.sha256_after == file_identity::sha256(after);
            let text = planned.diff.clone().filter(|_| is_same)?;
            Some(Diff { text, added: edit.added, removed: edit.removed })
        };
        let (after, diff) = if charset == Charset::UTF8 {
            let diff = difference(context, &path, Some(old), &new, || judged_diff(new.as_bytes()));
            (new.into_bytes(), diff)
        } else {
            let after = encode(context, &path, charset, &new, what)?;
            let diff = difference(context, &path, Some(old), &new, || judged_diff(&after));
            (after, diff)
        };
        let after = Arc::new(after);
        let sha256 = ContentHash::start(&after);
        let before = Some(before);
        Ok(Self { path, before, after, sha256, charset, endings, diff, known_whole: true, mode_of: None })
    }

    pub(crate) fn prepared(&self, context: &ToolContext, verb: &str) -> PreparedCall {
        PreparedCall {
            subject: Subject::Edit { path: self.path.resolved.clone() },
            summary: format!(
                "{verb} {} (+{} −{})",
                context.show(&self.path.path),
                self.diff.added,
                self.diff.removed
            ),
            diff: Some(self.diff.text.clone()),
            read_only: false,
            sandbox: None,
            change: Some(PlannedChange::One(PlannedEdit {
                sha256_before: self.before.as_ref().map(|before| before.sha256.hex().to_owned()),
                sha256_after: self.sha256.hex().to_owned(),
                added: self.diff.added,
                removed: self.diff.removed,
                whole: self.known_whole,
            })),
        }
    }

    /// Refuses if the change differs from the judged one.
    pub(crate) fn require_judged(&self, prepared: &PreparedCall) -> Result<(), ToolError> {
        same_target(prepared, &Subject::Edit { path: self.path.resolved.clone() })?;
        if prepared.diff.as_ref().is_some_and(|diff| *diff != self.diff.text) {
            return Err(file_errors::changed_content_error(&self.path.path));
        }
        Ok(())
    }

    /// Writes the file. `done` begins the text for the model.
    pub(crate) fn make(self, call_id: CallId, done: &str, extra: Value) -> Result<ToolOutcome, ToolError> {
        let path = &self.path.path;
        let stamp = match &self.mode_of {
            Some(like) => self.path.create_like(call_id, like, &self.after),
            None => self.path.replace(call_id, self.before.as_ref(), &self.after),
        }?;
        // The hash of a large file was computed while the file was written and synced.
        let sha256 = self.sha256.hex().to_owned();
        let output = format!(
            "{done} (+{} −{} lines; {}, {}).",
            self.diff.added,
            self.diff.removed,
            self.charset.name(),
            self.endings.name()
        );
        let mut detail = json!({
            "path": path,
            "encoding": self.charset.name(),
            "line_endings": self.endings.name(),
            "created": self.before.is_none(),
            "sha256_before": self.before.as_ref().map(|before| before.sha256.hex()),
            "sha256_after": sha256,
            "added": self.diff.added,
            "removed": self.diff.removed,
        });
        if let (Value::Object(detail), Value::Object(extra)) = (&mut detail, extra) {
            detail.extend(extra);
        }
        let record = ReadRecord {
            path: path.clone(),
            mtime_ns: stamp.mtime_ns,
            size: stamp.size,
            sha256: sha256.clone(),
            whole: self.known_whole,
            lines: Vec::new(),
            total_lines: None,
        };
        let change = FileChange {
            path: path.clone(),
            diff: self.diff.text,
            added: self.diff.added,
            removed: self.diff.removed,
            sha256_before: self.before.map(|before| before.sha256.hex().to_owned()),
            sha256_after: Some(sha256),
        };
        Ok(ToolOutcome {
            detail: Some(detail),
            changes: vec![change],
            reads: vec![record],
            ..ToolOutcome::completed(output)
        })
    }
}

/// The diff for users. If all line endings are equal and stay so, it omits them; otherwise it shows every
/// carriage return. `known` may return the diff if it takes long to compute.
fn difference(
    context: &ToolContext,
    path: &ResolvedPath,
    old: Option<&str>,
    new: &str,
    known: impl FnOnce() -> Option<Diff>,
) -> Diff {
    let shown = context.show(&path.path);
    let (before, after) = (old.map(LineEndings::detect), LineEndings::detect(new));
    if !matches!(
        (before, after),
        (Some(LineEndings::CrLf), LineEndings::CrLf) | (Some(LineEndings::Cr), LineEndings::Cr)
    ) {
        return diff::unified_or_known(&shown, old, Some(new), known);
    }
    let old = old.map(|old| ShownText::new(old).text);
    diff::unified_or_known(&shown, old.as_deref(), Some(&ShownText::new(new).text), known)
}

/// The prepared call on `path` if its change cannot be computed before judging.
pub(crate) fn unplanned_call(context: &ToolContext, path: PinnedPath, verb: &str) -> PreparedCall {
    PreparedCall {
        summary: format!("{verb} {}", context.show(&path.path)),
        subject: Subject::Edit { path: path.resolved },
        diff: None,
        read_only: false,
        change: None,
        sandbox: None,
    }
}

/// The call as the permission rules judge it. An impossible call is refused at once if the error reveals
/// nothing that the model may not read. Protected files are judged first.
pub(crate) fn prepare(
    context: &ToolContext,
    path: PinnedPath,
    verb: &str,
    plan: Result<PreparedEdit, ToolError>,
) -> Result<PreparedCall, ToolError> {
    match plan {
        _ if path.sensitivity == PathSensitivity::Protected => Ok(unplanned_call(context, path, verb)),
        Ok(change) => Ok(change.prepared(context, verb)),
        Err(refusal) if may_show_content(context, &path) || refusal.code == "not_read" => Err(refusal),
        Err(_) => Ok(unplanned_call(context, path, verb)),
    }
}
