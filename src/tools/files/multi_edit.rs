//! The MultiEdit tool: several exact replacements in one file, each applied to the result of the one before.
//! All or none are made.

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
use crate::fs::pinned::PinnedPath;
use crate::fs::text::Charset;
use crate::input;
use crate::sensitivity::Access;
use types::ids::CallId;
use types::tool::{PreparedCall, ToolOutcome};

/// Maximal number of edits in one call; more are a mistake.
const MAX_EDITS: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The file: absolute, or relative to the current folder.
    file_path: String,
    /// The edits, made one after the other; all or none.
    edits: Vec<One>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct One {
    /// The text to replace, exactly as it is in the file after the edits before, without line
    /// numbers. Empty only in the first edit, to create the file.
    old_string: String,
    /// The text to put there instead.
    new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default, deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    replace_all: bool,
}

pub(crate) const DESCRIPTION: &str = "Makes several exact replacements in one file at once: all of them or none. \
    Each edit follows the rules of Edit and sees the text as the edits before it left it. \
    The file must have been read before.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    require_edits(input)?;
    let path = context.resolve(&input.file_path, Access::Edit)?;
    let plan = plan_edits(context, input, &path).map(|(change, _)| change);
    edit_guard::prepare(context, path, "MultiEdit", plan)
}

pub(crate) fn run(
    context: &ToolContext,
    call_id: CallId,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    require_edits(input)?;
    let path = context.resolve(&input.file_path, Access::Edit)?;
    let (change, replaced) = plan_edits(context, input, &path)?;
    change.require_judged(prepared)?;
    if stop.is_cancelled() {
        return Ok(cancelled());
    }
    let verb = if change.before.is_some() { "Edited" } else { "Created" };
    let done = format!("{verb} {} with {} edits", context.show(&path.path), input.edits.len());
    change.make(call_id, &done, json!({ "edits": input.edits.len(), "replaced": replaced }))
}

fn replacements(input: &Input) -> impl Iterator<Item = Replacement<'_>> {
    (1..).zip(&input.edits).map(|(number, one)| Replacement {
        old: &one.old_string,
        new: &one.new_string,
        all: one.replace_all,
        number,
    })
}

/// Check 1: there is an edit, and each one changes something.
fn require_edits(input: &Input) -> Result<(), ToolError> {
    let count = input.edits.len();
    if count == 0 || count > MAX_EDITS {
        let text = format!("edits holds {count} entries; give 1 to {MAX_EDITS}");
        return Err(ToolError::new("invalid_input", text).with(json!({ "path": "edits", "count": count })));
    }
    replacements(input).try_for_each(|replacement| {
        replacement.require_difference()?;
        if replacement.number > 1 && replacement.old.is_empty() {
            let text = "old_string is empty, which only the first edit may be (to create the file)";
            return Err(replacement.refuse("invalid_input", text.into(), json!({ "path": "edits" })));
        }
        Ok(())
    })
}

/// Makes the other checks, in the order of Edit. Returns the change with the number of replacements.
fn plan_edits(
    context: &ToolContext,
    input: &Input,
    path: &PinnedPath,
) -> Result<(PreparedEdit, usize), ToolError> {
    let shown = context.show(&path.path);
    let found = path.load()?;
    let creates = input.edits.first().is_some_and(|edit| edit.old_string.is_empty());
    let (before, charset, original) = match found {
        found @ (None | Some(_)) if creates => {
            if let Some(content) = found.as_ref().filter(|content| !content.bytes.is_empty()) {
                return Err(ToolError::new(
                    "file_exists",
                    format!("{shown} exists and is not empty; give the text to replace as old_string"),
                )
                .with(json!({ "path": path.path, "size": content.bytes.len() })));
            }
            (found, Charset::UTF8, String::new())
        }
        None => {
            let missing = ToolError::io(&path.path, &std::io::ErrorKind::NotFound.into());
            return Err(with_similar_path(context, &path.path, missing));
        }
        Some(before) => {
            // Without permission to read, even a failed match would reveal content.
            if !edit_guard::may_show_content(context, path) {
                edit_guard::require_known(context, &path.path, &before, RequiredRead::AnyPart)?;
            }
            let (charset, original) = edit_guard::decode(context, path, &before)?;
            let original = original.into_owned();
            (Some(before), charset, original)
        }
    };
    let (mut text, mut replaced) = (original.clone(), 0);
    for replacement in replacements(input) {
        if replacement.old.is_empty() {
            text = replacement.new.to_owned();
            replaced += 1;
            continue;
        }
        let places;
        (text, places) = replacement.apply(&shown, &path.path, &text)?;
        replaced += places;
    }
    if let Some(before) = before.as_ref().filter(|_| !creates) {
        edit_guard::require_known(context, &path.path, before, RequiredRead::AnyPart)?;
    }
    let after = edit_guard::encode(context, path, charset, &text, "a new_string")?;
    let known_whole = creates || context.record(&path.path).is_some_and(|record| record.whole);
    let old = before.is_some().then_some(original.as_str());
    let change = PreparedEdit::new(context, path.clone(), before, (old, &text), charset, after);
    Ok((PreparedEdit { known_whole, ..change }, replaced))
}
