//! The NotebookEdit tool: replaces, inserts or deletes one cell.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use crate::files::edit_guard;
use crate::files::edit_guard::RequiredRead;
use crate::files::file_checks::{is_notebook, with_similar_path};
use crate::files::notebook::change::{NotebookChange, apply};
use crate::files::notebook::shape::{Notebook, read};
use crate::fs::pinned::PinnedPath;
use crate::input;
use crate::sensitivity::Access;
use types::ids::CallId;
use types::tool::{PreparedCall, ToolOutcome};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The notebook: absolute, or relative to the current folder.
    notebook_path: String,
    /// The id of the cell, as Read shows it. A new cell is put below it.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    cell_id: Option<String>,
    /// The number of the cell, from 0, instead of its id. A new cell gets this number.
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    cell_number: Option<u64>,
    /// The new source of the cell. Not needed to delete one.
    #[serde(default)]
    new_source: String,
    /// The type of the cell. By default, a new cell is code, and an existing cell keeps its type.
    #[serde(default)]
    #[schemars(with = "Option<Kind>")]
    cell_type: Option<Kind>,
    /// The action; by default replace.
    #[serde(default)]
    #[schemars(with = "Option<Mode>")]
    edit_mode: Option<Mode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
enum Kind {
    Code,
    Markdown,
    Raw,
}

impl Kind {
    fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Replace,
    Insert,
    Delete,
}

pub(crate) const DESCRIPTION: &str = "Changes one cell of a Jupyter notebook (.ipynb): replaces its source \
    (the outputs of a code cell are cleared), inserts a new cell, or deletes one. Name the cell by cell_id or by \
    cell_number (from 0); without either, a new cell comes first. The notebook must have been read before.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    let path = context.resolve(&input.notebook_path, Access::Edit)?;
    let plan = plan_change(context, input, &path).map(|(change, _)| change);
    edit_guard::prepare(context, path, "NotebookEdit", plan)
}

pub(crate) fn run(
    context: &ToolContext,
    call_id: CallId,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let path = context.resolve(&input.notebook_path, Access::Edit)?;
    let (change, at) = plan_change(context, input, &path)?;
    change.require_judged(prepared)?;
    if stop.is_cancelled() {
        return Ok(cancelled());
    }
    let verb = match input.edit_mode.unwrap_or(Mode::Replace) {
        Mode::Replace => "Replaced",
        Mode::Insert => "Inserted",
        Mode::Delete => "Deleted",
    };
    let done = format!("{verb} cell {at} of {}", context.show(&path.path));
    change.make(call_id, &done, json!({ "cell_number": at }))
}

/// The checks in the order of Edit, and the change with the number of the cell.
fn plan_change(
    context: &ToolContext,
    input: &Input,
    path: &PinnedPath,
) -> Result<(edit_guard::PreparedEdit, usize), ToolError> {
    let shown = context.show(&path.path);
    if !is_notebook(&path.path) {
        return Err(ToolError::new("not_a_notebook", format!("{shown} is no .ipynb file; use Edit"))
            .with(json!({ "path": path.path })));
    }
    let Some(before) = path.load()? else {
        let missing = ToolError::io(&path.path, &std::io::ErrorKind::NotFound.into());
        return Err(with_similar_path(context, &path.path, missing));
    };
    // Without permission to read, even the list of cells would reveal content.
    if !edit_guard::may_show_content(context, path) {
        edit_guard::require_known(context, &path.path, &before, RequiredRead::AnyPart)?;
    }
    let held = before.clone();
    let (charset, text) = edit_guard::decode_any(context, path, &held)?;
    let notebook = read(&text).map_err(|why| {
        ToolError::new("bad_notebook", format!("{shown} cannot be read as a notebook: {why}"))
            .with(json!({ "path": path.path, "problem": why }))
    })?;
    let at = cell_index(input, &notebook, &shown)?;
    edit_guard::require_known(context, &path.path, &before, RequiredRead::AnyPart)?;
    let source = input.new_source.replace("\r\n", "\n");
    let kind = input.cell_type.map(Kind::name);
    let change = match input.edit_mode.unwrap_or(Mode::Replace) {
        Mode::Replace => NotebookChange::Replace { at, source: &source, kind },
        Mode::Insert => NotebookChange::Insert { at, source: &source, kind: kind.unwrap_or("code") },
        Mode::Delete => NotebookChange::Delete { at },
    };
    let new = apply(&notebook, &change);
    if new == text {
        return Err(ToolError::new("same_strings", format!("cell {at} of {shown} is like that already"))
            .with(json!({ "cell_number": at })));
    }
    let known_whole = context.record(&path.path).is_some_and(|record| record.whole);
    let change = edit_guard::PreparedEdit::change_file(
        context,
        path.clone(),
        before,
        (&*text, new),
        charset,
        "new_source",
        None,
    )?;
    Ok((edit_guard::PreparedEdit { known_whole, ..change }, at))
}

/// The number of the requested cell; for an insert, of the new one.
fn cell_index(input: &Input, notebook: &Notebook<'_>, shown: &str) -> Result<usize, ToolError> {
    let count = notebook.cells.len();
    let inserts = input.edit_mode == Some(Mode::Insert);
    if let Some(id) = input.cell_id.as_deref().filter(|id| !id.is_empty()) {
        let by_id = notebook.cells.iter().position(|cell| cell.id.as_deref() == Some(id));
        // Read shows a cell without an id as `cell-NUMBER`.
        let by_number = || {
            let at: usize = id.strip_prefix("cell-")?.parse().ok()?;
            notebook.cells.get(at).is_some_and(|cell| cell.id.is_none()).then_some(at)
        };
        return match by_id.or_else(by_number) {
            Some(at) => Ok(at + usize::from(inserts)),
            None => Err(ToolError::new(
                "cell_not_found",
                format!("{shown} has no cell with the id {id:?}; read it to see the ids"),
            )
            .with(json!({ "cell_id": id, "cells": count }))),
        };
    }
    let Some(number) = input.cell_number else {
        return if inserts {
            Ok(0)
        } else {
            Err(ToolError::new("invalid_input", "say which cell is meant: give cell_id or cell_number")
                .with(json!({ "path": "cell_id" })))
        };
    };
    let most = count + usize::from(inserts);
    match usize::try_from(number).ok().filter(|at| *at < most) {
        Some(at) => Ok(at),
        None => Err(ToolError::new(
            "cell_not_found",
            format!("{shown} has {count} cells, numbered from 0; there is no cell {number}"),
        )
        .with(json!({ "cell_number": number, "cells": count }))),
    }
}
