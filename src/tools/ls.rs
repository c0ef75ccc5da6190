//! LS (T9): what is in a folder.

use std::fs;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::refusal::{Refusal, cancelled};
use super::{toolbox, walk};
use crate::types::tool::{Prepared, Subject, ToolOutcome};

/// Names in one answer.
const MOST: usize = 1_000;
/// Names that are remembered for sorting.
const MOST_SORTED: usize = 100_000;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The folder: absolute, or relative to the current folder, which is meant if none is given.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
}

pub(super) const DESCRIPTION: &str = "Lists a folder, hidden files included. Folders end with a slash, links show \
    where they lead.";

pub(super) fn prepare(context: &Context, input: &Input) -> Result<Prepared, Refusal> {
    let path = walk::root(context, input.path.as_deref())?;
    let summary = format!("List {}", context.show(&path.path));
    Ok(Prepared {
        subject: Subject::Read { path },
        summary,
        diff: None,
        read_only: true,
        change: None,
        sandbox: None,
    })
}

pub(super) fn run(
    context: &Context,
    input: &Input,
    prepared: &Prepared,
    stop: &CancellationToken,
) -> Result<ToolOutcome, Refusal> {
    let root = walk::root(context, input.path.as_deref())?;
    toolbox::same_target(prepared, &Subject::Read { path: root.clone() })?;
    let io = |e: std::io::Error| Refusal::io(&root.path, &e);
    if !walk::require_existing(&root.path)?.is_dir() {
        return Err(Refusal::new(
            "not_a_directory",
            format!("{} is a file; use Read to see it", context.show(&root.path)),
        ));
    }
    let mut names = Vec::new();
    let mut total = 0_usize;
    for entry in fs::read_dir(&root.path).map_err(io)? {
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        let entry = entry.map_err(io)?;
        total += 1;
        if names.len() >= MOST_SORTED {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        names.push(match entry.file_type() {
            Ok(kind) if kind.is_dir() => format!("{name}/"),
            Ok(kind) if kind.is_symlink() => match fs::read_link(entry.path()) {
                Ok(target) => format!("{name} -> {}", target.display()),
                Err(_) => name,
            },
            _ => name,
        });
    }
    names.sort();
    names.truncate(MOST);
    let shown = names.len();
    if total == 0 {
        names.push("(the folder is empty)".into());
    } else if total > shown {
        names.push(format!("({shown} of {total} entries; use Glob to find others)"));
    }
    let detail = json!({ "count": total, "shown": shown });
    Ok(ToolOutcome { detail: Some(detail), ..ToolOutcome::completed(names.join("\n")) })
}
