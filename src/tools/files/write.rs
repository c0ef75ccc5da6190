//! The Write tool: creates files, and overwrites files that the model has read completely.
//!
//! An existing file keeps its encoding. It also keeps its line endings, if it has CRLF (or CR) throughout and
//! the new content has neither: the model never saw them and should not change them by accident.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use crate::files::edit_guard;
use crate::files::edit_guard::{PreparedEdit, RequiredRead};
use crate::files::file_checks::refuse_binary;
use crate::fs::pinned::PinnedPath;
use crate::fs::text;
use crate::fs::text::{Charset, LineEndings};
use crate::sensitivity::Access;
use types::ids::CallId;
use types::tool::{PreparedCall, ToolOutcome};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The file: absolute, or relative to the current folder. Missing folders are made.
    file_path: String,
    /// The whole new content.
    content: String,
}

pub(crate) const DESCRIPTION: &str = "Writes a file: creates it with its folders, or replaces its whole content. \
    An existing file must have been read whole before. To change parts of a file use Edit.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    let path = context.resolve(&input.file_path, Access::Edit)?;
    let plan = plan(context, input, &path);
    edit_guard::prepare(context, path, "Write", plan)
}

pub(crate) fn run(
    context: &ToolContext,
    call_id: CallId,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let path = context.resolve(&input.file_path, Access::Edit)?;
    let change = plan(context, input, &path)?;
    change.require_judged(prepared)?;
    if stop.is_cancelled() {
        return Ok(cancelled());
    }
    let shown = context.show(&path.path);
    let done =
        if change.before.is_some() { format!("Overwrote {shown}") } else { format!("Created {shown}") };
    change.make(call_id, &done, json!({}))
}

fn plan(context: &ToolContext, input: &Input, path: &PinnedPath) -> Result<PreparedEdit, ToolError> {
    let Some(before) = path.load()? else {
        let after = input.content.clone().into_bytes();
        return Ok(PreparedEdit::new(
            context,
            path.clone(),
            None,
            (None, &input.content),
            Charset::UTF8,
            after,
        ));
    };
    if !before.bytes.is_empty() {
        refuse_binary(&path.path, &before.bytes)?;
        edit_guard::require_known(context, &path.path, &before, RequiredRead::Whole)?;
    }
    let detected = text::detect(&before.bytes, text::Extent::Whole);
    let old = detected.decode(&before.bytes);
    let endings = old.as_deref().map_or(LineEndings::None, LineEndings::detect);
    let content = match endings {
        LineEndings::Cr if !input.content.contains('\r') => input.content.replace('\n', "\r"),
        LineEndings::CrLf if !input.content.contains("\r\n") => input.content.replace('\n', "\r\n"),
        _ => input.content.clone(),
    };
    // If the old encoding lacks a character, write the file in UTF-8.
    let (charset, after) = match detected.encode(&content) {
        Some(bytes) if old.is_some() => (detected, bytes),
        _ => (Charset::UTF8, content.clone().into_bytes()),
    };
    let old = old.unwrap_or_else(|| String::from_utf8_lossy(&before.bytes).into_owned());
    Ok(PreparedEdit::new(context, path.clone(), Some(before), (Some(&old), &content), charset, after))
}
