//! Edit (T3): exact replacement of text, behind a chain of checks. Each check has its own code;
//! they come in a fixed order, so that the first thing to fix is named first.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::care::Access;
use super::context::Context;
use super::guard::{self, Change, Needs};
use super::held::{Content, Held};
use super::near::nearest;
use super::read::{helpful, refuse_binary};
use super::refusal::{Refusal, cancelled};
use super::text::{self, Charset, Shown};
use super::{input, toolbox};
use crate::types::ids::CallId;
use crate::types::tool::{Prepared, ResolvedPath, ToolOutcome};

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The file: absolute, or relative to the current folder.
    file_path: String,
    /// The text to replace, exactly as it is in the file, without line numbers. Empty to create
    /// the file.
    old_string: String,
    /// The text to put there instead.
    new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default, deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    replace_all: bool,
}

pub(super) const DESCRIPTION: &str = "Replaces text in a file. old_string must be in the file exactly once \
    (add lines around it until it is), unless replace_all is set. Encoding and line endings are kept. \
    With an empty old_string a new file is created. The file must have been read before.";

pub(super) fn prepare(context: &Context, input: &Input) -> Result<Prepared, Refusal> {
    require_difference(input)?;
    let path = context.resolve(&input.file_path, Access::Edit)?;
    let plan = plan(context, input, &path).map(|(change, _)| change);
    guard::prepare(context, path, "Edit", plan)
}

pub(super) fn run(
    context: &Context,
    call_id: CallId,
    input: &Input,
    prepared: &Prepared,
    stop: &CancellationToken,
) -> Result<ToolOutcome, Refusal> {
    require_difference(input)?;
    let path = context.resolve(&input.file_path, Access::Edit)?;
    let (change, replaced) = plan(context, input, &path)?;
    toolbox::same_change(prepared, &change)?;
    if stop.is_cancelled() {
        return Ok(cancelled());
    }
    let shown = context.show(&path.path);
    let done = match (&change.before, replaced) {
        (None, _) => format!("Created {shown}"),
        (Some(_), 0 | 1) => format!("Edited {shown}"),
        (Some(_), n) => format!("Edited {shown} in {n} places"),
    };
    change.make(call_id, &done, json!({ "replaced": replaced }))
}

/// Check 1. Line endings do not make a difference: the model does not see them.
fn require_difference(input: &Input) -> Result<(), Refusal> {
    if unify(&input.old_string) == unify(&input.new_string) {
        return Err(Refusal::new(
            "same_strings",
            "old_string and new_string are the same, so there is nothing to change",
        )
        .with(json!({ "length": input.old_string.len() })));
    }
    Ok(())
}

fn unify(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Checks 2 to 9, and the change with the number of replaced places.
fn plan(context: &Context, input: &Input, path: &Held) -> Result<(Change, usize), Refusal> {
    let shown = context.show(&path.path);
    let found = path.load()?;
    if input.old_string.is_empty() {
        return match found {
            // 2: a new file. An empty one counts as none.
            None => Ok((create(context, input, path, None), 1)),
            Some(empty) if empty.bytes.is_empty() => Ok((create(context, input, path, Some(empty)), 1)),
            // 3
            Some(content) => Err(Refusal::new(
                "file_exists",
                format!("{shown} exists and is not empty; give the text to replace as old_string"),
            )
            .with(json!({ "path": path.path, "size": content.bytes.len() }))),
        };
    }
    // 4
    let Some(before) = found else {
        let missing = Refusal::io(&path.path, &std::io::ErrorKind::NotFound.into());
        return Err(helpful(context, &path.path, missing));
    };
    // Without permission to read, not even "it is not in there" may be told.
    if !guard::may_show_content(context, path) {
        guard::require_known(context, &path.path, &before, Needs::AnyPart)?;
    }
    // 5
    refuse_binary(&path.path, &before.bytes)?;
    // 6
    let charset = text::detect(&before.bytes, true);
    let Some(original) = charset.decode(&before.bytes) else {
        return Err(Refusal::new(
            "encoding_not_safe",
            format!("{shown} looks like {}, but would not come back byte for byte", charset.name()),
        )
        .with(json!({ "path": path.path, "encoding": charset.name() })));
    };
    let view = Shown::new(&original);
    let old = unify(&input.old_string);
    let places: Vec<Range<usize>> =
        view.text.match_indices(&old).map(|(at, text)| at..at + text.len()).collect();
    // 7
    if places.is_empty() {
        return Err(absent(&shown, path, &view.text, &old));
    }
    // 8
    if places.len() > 1 && !input.replace_all {
        return Err(ambiguous(&shown, path, &view.text, &places));
    }
    // 9
    guard::require_known(context, &path.path, &before, Needs::AnyPart)?;

    let new = view.replace(&places, &unify(&input.new_string));
    let Some(after) = charset.encode(&new) else {
        return Err(Refusal::new(
            "cannot_encode",
            format!("{shown} is kept in {}, which lacks a character of new_string", charset.name()),
        )
        .with(json!({ "path": path.path, "encoding": charset.name() })));
    };
    let known_whole = context.record(&path.path).is_some_and(|record| record.whole);
    let change = Change::new(context, path.clone(), Some(before), (Some(&original), &new), charset, after);
    Ok((Change { known_whole, ..change }, places.len()))
}

fn create(context: &Context, input: &Input, path: &Held, before: Option<Content>) -> Change {
    let old = before.as_ref().map(|_| "");
    let after = input.new_string.clone().into_bytes();
    Change::new(context, path.clone(), before, (old, &input.new_string), Charset::UTF8, after)
}

fn absent(shown: &str, path: &ResolvedPath, text: &str, old: &str) -> Refusal {
    let mut message = format!("old_string is not in {shown}.");
    let near = nearest(text, old);
    if let Some(near) = &near {
        let hint = if near.only_whitespace { " (only whitespace differs)" } else { "" };
        message.push_str(&format!(" The nearest text begins at line {}{hint}:\n{}", near.line, near.text));
    } else {
        message.push_str(" Read the file again and copy the text exactly, without the line numbers.");
    }
    Refusal::new("string_not_found", message).with(json!({
        "path": path.path,
        "nearest": near.map(|near| json!({
            "line": near.line, "text": near.text, "only_whitespace": near.only_whitespace,
        })),
    }))
}

fn ambiguous(shown: &str, path: &ResolvedPath, text: &str, places: &[Range<usize>]) -> Refusal {
    const MOST: usize = 20;
    let mut lines = Vec::new();
    let (mut line, mut done) = (1, 0);
    for place in places.iter().take(MOST) {
        line += text[done..place.start].matches('\n').count();
        done = place.start;
        lines.push(line);
    }
    let list = lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let more = if places.len() > MOST { ", …" } else { "" };
    Refusal::new(
        "multiple_matches",
        format!(
            "old_string is in {shown} {} times, at lines {list}{more}. Add lines around it until it is unique, \
             or set replace_all.",
            places.len()
        ),
    )
    .with(json!({ "path": path.path, "count": places.len(), "lines": lines }))
}
