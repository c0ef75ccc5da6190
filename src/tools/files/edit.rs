//! The Edit tool: exact replacement of text after a series of checks. Each check has its own error code. Their
//! order is fixed, so that the first problem is reported first.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use crate::files::edit_guard;
use crate::files::edit_guard::{PreparedEdit, RequiredRead};
use crate::files::file_checks::with_similar_path;
use crate::files::replace::Replacement;
use crate::fs::pinned::{FileSnapshot, PinnedPath};
use crate::fs::text::Charset;
use crate::input;
use crate::sensitivity::Access;
use types::ids::CallId;
use types::tool::{PreparedCall, ToolOutcome};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct Input {
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

pub(crate) const DESCRIPTION: &str = "Replaces text in a file. old_string must be in the file exactly once \
    (add lines around it until it is), unless replace_all is set. Encoding and line endings are kept. \
    With an empty old_string a new file is created. The file must have been read before.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    replacement(input).require_difference()?;
    let path = context.resolve(&input.file_path, Access::Edit)?;
    let plan = plan_edit(context, input, &path, None);
    edit_guard::prepare(context, path, "Edit", plan.map(|(change, _)| change))
}

pub(crate) fn run(
    context: &ToolContext,
    call_id: CallId,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    replacement(input).require_difference()?;
    let path = context.resolve(&input.file_path, Access::Edit)?;
    let (change, replaced) = plan_edit(context, input, &path, Some(prepared))?;
    change.require_judged(prepared)?;
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

fn replacement(input: &Input) -> Replacement<'_> {
    Replacement { old: &input.old_string, new: &input.new_string, all: input.replace_all, number: 0 }
}

/// Makes checks 2 to 9. Returns the change with the number of replacements.
fn plan_edit(
    context: &ToolContext,
    input: &Input,
    path: &PinnedPath,
    planned: Option<&PreparedCall>,
) -> Result<(PreparedEdit, usize), ToolError> {
    let shown = context.show(&path.path);
    let found = path.load()?;
    if input.old_string.is_empty() {
        return match found {
            // 2: a new file. An empty file counts as missing.
            None => Ok((create(context, input, path, None), 1)),
            Some(empty) if empty.bytes.is_empty() => Ok((create(context, input, path, Some(empty)), 1)),
            // 3: a file with content needs a text to replace.
            Some(content) => Err(ToolError::new(
                "file_exists",
                format!("{shown} exists and is not empty; give the text to replace as old_string"),
            )
            .with(json!({ "path": path.path, "size": content.bytes.len() }))),
        };
    }
    // 4: the file must exist.
    let Some(before) = found else {
        let missing = ToolError::io(&path.path, &std::io::ErrorKind::NotFound.into());
        return Err(with_similar_path(context, &path.path, missing));
    };
    // Without permission to read, even a failed match would reveal content.
    if !edit_guard::may_show_content(context, path) {
        edit_guard::require_known(context, &path.path, &before, RequiredRead::AnyPart)?;
    }
    // 5 and 6: the file must be text, and encoding must return the same bytes.
    let held = before.clone();
    let (charset, original) = edit_guard::decode(context, path, &held)?;
    // 7 and 8: the text must occur, and only once unless all occurrences are replaced.
    let (new, replaced) = replacement(input).apply(&shown, &path.path, &original)?;
    let known_whole = context.record(&path.path).is_some_and(|record| record.whole);
    let texts = (&*original, new);
    let change =
        PreparedEdit::change_file(context, path.clone(), before, texts, charset, "new_string", planned)?;
    // 9: the model must have read the current version.
    edit_guard::require_known(context, &path.path, &held, RequiredRead::AnyPart)?;
    Ok((PreparedEdit { known_whole, ..change }, replaced))
}

fn create(
    context: &ToolContext,
    input: &Input,
    path: &PinnedPath,
    before: Option<FileSnapshot>,
) -> PreparedEdit {
    let old = before.as_ref().map(|_| "");
    let after = input.new_string.clone().into_bytes();
    PreparedEdit::new(context, path.clone(), before, (old, &input.new_string), Charset::UTF8, after)
}
