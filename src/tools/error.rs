//! The reason why a call cannot run: a stable code, a text that explains how to fix it, and data for clients.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use types::tool::{ToolOutcome, ToolStatus};

/// A reason that the model receives as an error result.
#[derive(Debug)]
pub struct ToolError {
    /// A stable code, for example `file_changed`.
    pub code: &'static str,
    /// Tells the model what to fix.
    pub text: String,
    /// Data for clients, a JSON object.
    pub meta: Value,
}

impl ToolError {
    pub(super) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), meta: json!({}) }
    }

    pub(super) fn with(self, meta: Value) -> Self {
        Self { meta, ..self }
    }

    /// An error of the file system about `path`.
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        let shown = path.display();
        let (code, text) = match error.kind() {
            io::ErrorKind::NotFound => ("file_not_found", format!("{shown} does not exist")),
            io::ErrorKind::PermissionDenied => ("permission_denied", format!("no permission for {shown}")),
            io::ErrorKind::NotADirectory => {
                ("not_a_directory", format!("a part of {shown} is a file, not a folder"))
            }
            io::ErrorKind::IsADirectory => ("is_a_directory", format!("{shown} is a folder")),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ("no_space", format!("no space is left for {shown}"))
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                ("read_only", format!("{shown} is on a read-only file system"))
            }
            _ => ("io_error", format!("could not access {shown}: {error}")),
        };
        // A name that is not valid text has no JSON form.
        Self::new(code, text).with(json!({ "path": path.to_string_lossy() }))
    }
}

impl From<ToolError> for ToolOutcome {
    fn from(refusal: ToolError) -> Self {
        ToolOutcome {
            detail: Some(json!({ "meta": refusal.meta })),
            ..ToolOutcome::failed(refusal.code, refusal.text)
        }
    }
}

/// The outcome of a call that was stopped before it had an effect.
pub(super) fn cancelled() -> ToolOutcome {
    ToolOutcome {
        status: ToolStatus::Cancelled,
        code: Some("cancelled".into()),
        ..ToolOutcome::completed("The call was cancelled.")
    }
}
