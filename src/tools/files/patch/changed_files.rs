//! The files of a patch as calls of the tools that change one file, for hooks.

use serde_json::{Value, json};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::patch::apply::Input;
use crate::files::patch::parse::{FilePatch, Hunk, HunkLine, parse, unify_line_endings};
use crate::files::patch::plan::{FileStep, plan, targets};
use crate::sensitivity::Access;
use types::tool::{ResolvedPath, Subject};

#[derive(Clone, Debug)]
pub struct PatchedFile {
    /// The tool that would change the file so: `Write` or `Edit`.
    pub tool: &'static str,
    /// Its arguments: `file_path` (absolute), `content`, and for `Edit` `old_string` and `new_string`. A removed file
    /// has no content, and `deletes`.
    pub input: Value,
    /// The file, for rules.
    pub subject: Subject,
}

impl PatchedFile {
    fn new(tool: &'static str, path: ResolvedPath, mut input: Value) -> Self {
        input["file_path"] = json!(path.path.to_string_lossy());
        let deletes = input["deletes"] == true;
        let subject = if deletes { Subject::Delete { path } } else { Subject::Edit { path } };
        Self { tool, input, subject }
    }
}

/// The files of a patch in its order. A file that moves gives its old and its new place. `content` is the whole new
/// content if it can be computed, and else the new lines.
pub(crate) fn changed_files(context: &ToolContext, input: &Input) -> Result<Vec<PatchedFile>, ToolError> {
    let patch = unify_line_endings(input.text());
    let sections = parse(&patch)?;
    let resolve = |path: &str| Ok::<_, ToolError>(context.resolve(path, Access::Edit)?.resolved);
    let mut files = Vec::new();
    for section in &sections {
        match section {
            FilePatch::Add { path, lines } => {
                let content: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
                files.push(PatchedFile::new("Write", resolve(path)?, json!({ "content": content })));
            }
            FilePatch::Delete { path } => {
                let removed = json!({ "content": "", "deletes": true });
                files.push(PatchedFile::new("Write", resolve(path)?, removed));
            }
            FilePatch::Update { path, move_to, hunks } => {
                let (old, new) = (old_lines(hunks), new_lines(hunks));
                let edit = json!({ "old_string": old, "new_string": new, "content": new });
                files.push(PatchedFile::new("Edit", resolve(path)?, edit));
                if let Some(to) = move_to {
                    files.push(PatchedFile::new("Write", resolve(to)?, json!({ "content": new })));
                }
            }
        }
    }
    if let Ok(targets) = targets(context, &sections)
        && let Ok(steps) = plan(context, sections, &targets)
    {
        for step in &steps {
            let FileStep::Write(change) = step else { continue };
            let Some(text) = change.charset.decode(&change.after) else { continue };
            let path = json!(change.path.path.to_string_lossy());
            for file in files.iter_mut().filter(|file| file.input["file_path"] == path) {
                file.input["content"] = json!(text);
            }
        }
    }
    Ok(files)
}

fn old_lines(hunks: &[Hunk<'_>]) -> String {
    lines(hunks, |line| !matches!(line, HunkLine::Add(_)))
}

fn new_lines(hunks: &[Hunk<'_>]) -> String {
    lines(hunks, |line| !matches!(line, HunkLine::Remove(_)))
}

fn lines(hunks: &[Hunk<'_>], includes: impl Fn(&HunkLine<'_>) -> bool) -> String {
    let lines = hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| includes(line));
    lines.flat_map(|line| [line.text(), "\n"]).collect()
}
