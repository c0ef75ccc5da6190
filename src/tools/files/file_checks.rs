//! Checks and errors that several file tools share.

use std::path::Path;

use serde_json::json;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::did_you_mean::similar_path;
use crate::fs::text;

/// Whether a file is a notebook. Only the name counts, because the content is JSON like any other.
pub(crate) fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("ipynb"))
}

/// Refuses binary content.
pub(crate) fn refuse_binary(path: &Path, head: &[u8]) -> Result<(), ToolError> {
    let Some(kind) = text::binary_kind(head) else { return Ok(()) };
    Err(ToolError::new(
        "binary_file",
        format!("{} is {kind}; only text files can be opened with this tool", path.display()),
    )
    .with(json!({ "path": path, "kind": kind })))
}

/// Adds a suggestion for the intended name to the error of a missing file.
pub(crate) fn with_similar_path(context: &ToolContext, path: &Path, refusal: ToolError) -> ToolError {
    if refusal.code != "file_not_found" {
        return refusal;
    }
    let hidden = |path: &Path| context.session_context.unreadable.is_unreadable("Read", path);
    match similar_path(path, &context.session_context.workspace, &hidden) {
        None => refusal,
        Some(similar) => ToolError {
            text: format!("{}. Did you mean {}?", refusal.text, context.show(&similar)),
            ..refusal.with(json!({ "path": path, "did_you_mean": similar }))
        },
    }
}
