//! The LS tool: lists a folder.

use std::os::fd::AsFd as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::call;
use crate::context::{ToolContext, escape_name};
use crate::error::{ToolError, cancelled};
use crate::files::walk;
use crate::folder_handle;
use types::tool::{PreparedCall, Subject, ToolOutcome};

/// Names in one answer.
const MAX_ENTRIES: usize = 1_000;
/// Names that are collected for sorting.
const MAX_SORTED_NAMES: usize = 100_000;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The folder: absolute, or relative to the current folder, which is meant if none is given.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
}

pub(crate) const DESCRIPTION: &str = "Lists a folder, hidden files included. Folders end with a slash, links show \
    where they lead.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    let path = walk::search_root(context, input.path.as_deref())?;
    let summary = format!("List {}", context.show(&path.path));
    Ok(PreparedCall::read(Subject::Read { path: path.resolved }, summary))
}

pub(crate) fn run(
    context: &ToolContext,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let root = walk::search_root(context, input.path.as_deref())?;
    call::same_target(prepared, &Subject::Read { path: root.resolved.clone() })?;
    let io = |e: std::io::Error| ToolError::io(&root.path, &e);
    walk::require_existing(&root)?;
    if !root.is_folder() {
        return Err(ToolError::new(
            "not_a_directory",
            format!("{} is a file; use Read to see it", context.show(&root.path)),
        ));
    }
    let mut names = Vec::new();
    let (mut total, mut hidden) = (0_usize, 0_usize);
    let folder = root.folder_handle()?;
    for entry in folder_handle::list_folder(folder, &root.path)? {
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        let entry = entry.map_err(io)?;
        if context.session_context.unreadable.is_unreadable("LS", &root.path.join(entry.file_name())) {
            hidden += 1;
            continue;
        }
        total += 1;
        if names.len() >= MAX_SORTED_NAMES {
            continue;
        }
        let name = escape_name(&entry.file_name().to_string_lossy());
        names.push(match entry.file_type() {
            Ok(kind) if kind.is_dir() => format!("{name}/"),
            Ok(kind) if kind.is_symlink() => {
                match nix::fcntl::readlinkat(folder.as_fd(), entry.file_name().as_os_str()) {
                    Ok(target) => format!("{name} -> {}", escape_name(&target.to_string_lossy())),
                    Err(_) => name,
                }
            }
            _ => name,
        });
    }
    names.sort();
    names.truncate(MAX_ENTRIES);
    let shown = names.len();
    if total == 0 && hidden == 0 {
        names.push("(the folder is empty)".into());
    } else if total > shown {
        names.push(format!("({shown} of {total} entries; use Glob to find others)"));
    }
    if hidden > 0 {
        names.push(format!("({hidden} entries are not shown: a permission rule keeps them from being read)"));
    }
    let detail = json!({ "count": total, "shown": shown, "hidden_by_rules": hidden });
    Ok(ToolOutcome { detail: Some(detail), ..ToolOutcome::completed(names.join("\n")) })
}
