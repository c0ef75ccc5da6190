//! A permission request as shown to the user: the exact bytes of what would happen, and the reason.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::diff::{Diff, FileName};
use crate::ui::markdown;
use types::permission::RequestKind;
use types::session::PermissionRequest;
use types::tool::{ProposedPlan, Subject};

/// The text of the request, without its keys.
pub fn question(request: &PermissionRequest) -> Vec<StyledLine> {
    if request.kind == RequestKind::Plan {
        let text = escape::exact_lines(ProposedPlan::text(&request.input));
        let head = StyledLine::new(Tone::Warn, "▌ The model proposes this plan:");
        let lines = text.into_iter().map(|line| StyledLine::new(Tone::Dim, "    ").and(Tone::Plain, line));
        return std::iter::once(head).chain(lines).collect();
    }
    let leaves = request.kind == RequestKind::Sandbox;
    let mut shown = match leaves {
        false => vec![
            StyledLine::new(Tone::Warn, "▌ May ")
                .and(Tone::Bold, escape::line(&request.tool))
                .and(Tone::Warn, " do this? ")
                .and(Tone::Dim, escape::line(&request.reason)),
        ],
        true => vec![
            StyledLine::new(Tone::Bad, "▌ May ")
                .and(Tone::Bold, escape::line(&request.tool))
                .and(Tone::Bad, " do this AGAIN, OUTSIDE THE SANDBOX?"),
            StyledLine::new(Tone::Dim, format!("    {}", escape::line(&request.reason))),
        ],
    };
    let input = request.input.as_object();
    let told_by_diff = request.diff.is_some();
    let fields = input.into_iter().flatten().filter(|(name, _)| !is_hidden_argument(name, told_by_diff));
    for (name, value) in fields {
        shown.extend(field_lines(name, value));
    }
    if input.is_none() {
        shown.extend(field_lines("input", &request.input));
    }
    if let (Subject::Bash { .. }, false) = (&request.subject, request.cwd.is_empty()) {
        shown.extend(field_lines("in", &Value::from(request.cwd.as_str())));
    }
    for path in other_targets(request) {
        shown.extend(field_lines("really", &Value::from(path)));
    }
    if let Some(what) = request.blocked.as_ref().and_then(|blocked| blocked.what.as_deref()) {
        shown.extend(field_lines("stopped at", &Value::from(what)));
    }
    if let Some(diff) = &request.diff {
        let diff = Diff::parse(diff);
        // Show the file's name only if the arguments do not contain it.
        let name = match diff.file().is_some_and(|file| names_file(request, file)) {
            true => FileName::Hidden,
            false => FileName::Shown,
        };
        shown.extend(diff.lines(name).into_iter().map(|line| line.with_lead(Tone::Plain, "    ")));
    }
    shown
}

/// A proposed plan as it reads, with the lead of the arguments. [`question`] has its exact text.
pub(crate) fn plan_lines(request: &PermissionRequest, columns: usize) -> Vec<StyledLine> {
    let text = escape::text(ProposedPlan::text(&request.input)).into_owned();
    let lines = markdown::lines(&text, columns.max(MIN_PLAN_COLUMNS));
    lines.into_iter().map(|line| line.with_lead(Tone::Dim, "    ")).collect()
}

fn names_file(request: &PermissionRequest, file: &str) -> bool {
    let name = |name: &str| request.input.get(name).and_then(Value::as_str);
    let named = ["file_path", "notebook_path", "path"].into_iter().filter_map(name);
    let file = unresolved_path(&request.cwd, file);
    named.into_iter().any(|named| unresolved_path(&request.cwd, named) == file)
}

/// The files that the call would really access, if the arguments do not show them: targets of links, and hard
/// links that match a rule.
fn other_targets(request: &PermissionRequest) -> Vec<String> {
    let parts = match &request.subject {
        Subject::Several { parts } => parts.as_slice(),
        subject => std::slice::from_ref(subject),
    };
    // The part of a pattern before its first wildcard names a folder.
    let folder = |pattern: &str| {
        let plain = pattern.find(['*', '?', '[', '{']).map_or(pattern, |at| &pattern[..at]);
        plain.rfind('/').map_or(String::new(), |end| plain[..=end].to_owned())
    };
    let name = |name: &str| request.input.get(name).and_then(Value::as_str);
    let names = ["file_path", "path", "notebook_path"].into_iter().filter_map(name).map(str::to_owned);
    let pattern = (request.tool == "Glob").then(|| name("pattern")).flatten().map(folder);
    let named: Vec<PathBuf> = names
        .chain(pattern)
        .filter(|text| text.len() <= MAX_PATH_BYTES)
        .map(|text| unresolved_path(&request.cwd, &text))
        .collect();
    let mut targets = Vec::new();
    for part in parts {
        let (Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path }) = part else {
            continue;
        };
        let is_named = named.contains(&path.path) || named.is_empty() && path.path == Path::new(&request.cwd);
        // If there is a diff, it names the file itself.
        let own = (!is_named && request.diff.is_none()).then_some(&path.path);
        targets.extend(own.into_iter().chain(&path.matched_aliases).map(|path| path.display().to_string()));
    }
    targets.truncate(MAX_OTHER_TARGETS);
    targets
}

/// Fewer columns cannot be read.
const MIN_PLAN_COLUMNS: usize = 10;
/// PATH_MAX of Linux.
const MAX_PATH_BYTES: usize = 4_096;
/// Maximum number of listed files. The call may contain more.
const MAX_OTHER_TARGETS: usize = 20;

/// A path from the arguments as an absolute path, without resolving links.
fn unresolved_path(cwd: &str, text: &str) -> PathBuf {
    let mut path = PathBuf::from(cwd);
    for part in Path::new(text).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// The request in rows of at most `columns`. Continuation rows are indented, so that only the daemon's own
/// text begins at the start of a row, whatever a command contains.
pub fn rows(request: &PermissionRequest, columns: usize) -> Vec<StyledLine> {
    let inward = if columns > 4 * INDENT.len() { INDENT } else { "" };
    let mut shown = Vec::new();
    let lines = match request.kind {
        RequestKind::Plan => {
            let head = question(request).into_iter().take(1);
            head.chain(plan_lines(request, columns.saturating_sub(4))).collect()
        }
        _ => question(request),
    };
    for line in lines {
        let mut rows = line.wrap(columns);
        if rows.len() > 1 {
            rows = line.wrap(columns - inward.len());
            for row in rows.iter_mut().skip(1) {
                row.0.insert(0, (Tone::Dim, inward.into()));
            }
        }
        shown.extend(rows);
    }
    shown
}

/// Indentation of continuation rows.
const INDENT: &str = "      ";

/// Whether an argument is hidden. The diff shows some arguments better, and the model's own description of
/// its call proves nothing.
fn is_hidden_argument(name: &str, told_by_diff: bool) -> bool {
    name == "description"
        || told_by_diff
            && matches!(
                name,
                "old_string"
                    | "new_string"
                    | "content"
                    | "file_text"
                    | "edits"
                    | "new_source"
                    | "input"
                    | "patch"
            )
}

fn field_lines(name: &str, value: &Value) -> Vec<StyledLine> {
    let label = if name == "command" { "$".to_string() } else { format!("{}:", escape::line(name)) };
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let indent = " ".repeat(label.chars().count());
    escape::exact_lines(&text)
        .into_iter()
        .enumerate()
        .map(|(n, line)| {
            let lead = if n == 0 { &label } else { &indent };
            StyledLine::new(Tone::Dim, format!("    {lead} ")).and(Tone::Plain, line)
        })
        .collect()
}

#[cfg(test)]
mod tests;
