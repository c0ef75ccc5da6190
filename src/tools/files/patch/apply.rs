//! The patch tool: parses a patch, computes and checks every file, and only then changes the files one after
//! the other. If a change fails, the result lists the changes that were made.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::call;
use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use crate::file_errors;
use crate::files::edit_guard;
use crate::files::patch::parse::{parse, unify_line_endings};
use crate::files::patch::plan::{FileStep, count_changed_lines, plan, subject, targets, whole_diff};
use base::crash;
use types::ids::CallId;
use types::tool::{FileChange, PathSensitivity, PlannedChange, PreparedCall, ToolOutcome, ToolStatus};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The patch, from "*** Begin Patch" to "*** End Patch".
    #[serde(alias = "patch")]
    input: String,
}

impl Input {
    /// The text of the patch.
    pub(super) fn text(&self) -> &str {
        &self.input
    }
}

pub(crate) const DESCRIPTION: &str = "Changes several files at once by a patch:\n\
    *** Begin Patch\n*** Add File: PATH\n+line\n*** Delete File: PATH\n*** Update File: PATH\n*** Move to: NEW PATH\n\
    @@ a line above the change, such as a function's head\n line kept\n-line removed\n+line added\n*** End of File\n\
    *** End Patch\n\
    Give 3 kept lines above and below each change; add @@ lines if that is not unique. \"Move to\", \"@@\" and \
    \"End of File\" may be left out. Everything is checked before the first file is changed. Files that are updated \
    must have been read before.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    let patch = unify_line_endings(&input.input);
    let sections = parse(&patch)?;
    let targets = targets(context, &sections)?;
    let subject = subject(&targets);
    let bare = |summary: String| PreparedCall::new(subject.clone(), summary);
    let names = || {
        let names: Vec<String> = targets.iter().map(|target| context.show(&target.path.path)).collect();
        names.join(", ")
    };
    // Judge protected files before any error reveals their content.
    if targets.iter().any(|target| target.path.sensitivity == PathSensitivity::Protected) {
        return Ok(bare(format!("Patch {}", names())));
    }
    let steps = match plan(context, sections, &targets) {
        Ok(steps) => steps,
        Err(refusal) => {
            let open = targets.iter().all(|target| edit_guard::may_show_content(context, &target.path));
            // As for Edit: an error must not reveal content of a file that the model may not read.
            return if open || refusal.code == "not_read" {
                Err(refusal)
            } else {
                Ok(bare(format!("Patch {}", names())))
            };
        }
    };
    let (added, removed) = count_changed_lines(&steps);
    let files = steps.iter().map(FileStep::planned).collect();
    Ok(PreparedCall {
        diff: Some(whole_diff(&steps)),
        change: Some(PlannedChange::Several { files }),
        ..bare(format!("Patch {} (+{added} −{removed})", names()))
    })
}

pub(crate) fn run(
    context: &ToolContext,
    call_id: CallId,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let patch = unify_line_endings(&input.input);
    let sections = parse(&patch)?;
    let targets = targets(context, &sections)?;
    call::same_target(prepared, &subject(&targets))?;
    let steps = plan(context, sections, &targets)?;
    if let Some(diff) = &prepared.diff
        && *diff != whole_diff(&steps)
    {
        let first = &targets[0].path.path;
        return Err(file_errors::changed_content_error(first));
    }
    if stop.is_cancelled() {
        return Ok(cancelled());
    }
    Ok(apply_steps(context, call_id, steps))
}

/// Changes the files, one after the other.
fn apply_steps(context: &ToolContext, call_id: CallId, steps: Vec<FileStep>) -> ToolOutcome {
    let count = steps.len();
    let mut whole = ToolOutcome::completed(String::new());
    let (mut done, mut files): (Vec<String>, Vec<Value>) = (Vec::new(), Vec::new());
    let mut failed = None;
    let mut rest: Vec<String> = Vec::new();
    for step in steps {
        let shown = context.show(&step.path().path);
        if failed.is_some() {
            rest.push(shown);
            continue;
        }
        match apply_step(context, call_id, step) {
            Ok(outcome) => {
                crash::point("C16.between");
                done.push(outcome.output);
                files.extend(outcome.detail);
                whole.changes.extend(outcome.changes);
                whole.reads.extend(outcome.reads);
            }
            Err(refusal) => {
                rest.push(shown);
                failed = Some(refusal);
            }
        }
    }
    let report = done.join("\n");
    let Some(refusal) = failed else {
        return ToolOutcome { output: report, detail: Some(json!({ "files": files })), ..whole };
    };
    if done.is_empty() {
        return refusal.into();
    }
    let output = format!(
        "Only {} of {count} changes were made: {}\nDone:\n{report}\nNot done: {}.",
        done.len(),
        refusal.text,
        rest.join(", ")
    );
    ToolOutcome {
        status: ToolStatus::Failed,
        code: Some("partly_done".into()),
        output,
        detail: Some(json!({ "files": files, "cause": refusal.code, "meta": refusal.meta })),
        ..whole
    }
}

fn apply_step(context: &ToolContext, call_id: CallId, step: FileStep) -> Result<ToolOutcome, ToolError> {
    match step {
        FileStep::Write(change) => {
            let verb = if change.before.is_some() { "Edited" } else { "Created" };
            let done = format!("{verb} {}", context.show(&change.path.path));
            change.make(call_id, &done, json!({}))
        }
        FileStep::Remove { path, before, diff } => {
            path.remove(&before)?;
            let path = path.resolved.path;
            let detail = json!({
                "path": path, "removed_file": true, "sha256_before": before.sha256.hex(),
                "added": diff.added, "removed": diff.removed,
            });
            let change = FileChange {
                diff: diff.text,
                added: diff.added,
                removed: diff.removed,
                sha256_before: Some(before.sha256.hex().to_owned()),
                sha256_after: None,
                path: path.clone(),
            };
            Ok(ToolOutcome {
                detail: Some(detail),
                changes: vec![change],
                ..ToolOutcome::completed(format!(
                    "Removed {} (−{} lines).",
                    context.show(&path),
                    diff.removed
                ))
            })
        }
    }
}
