//! The Glob tool: finds files by name, newest first.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use nix::sys::stat::Mode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::call;
use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use crate::files::walk;
use crate::fs::pinned::PinnedPath;
use base::open;
use types::glob_brackets;
use types::tool::{PreparedCall, Subject, ToolOutcome};

/// Paths in one answer.
const MAX_MATCHES: usize = 100;
/// Matches that are collected for sorting.
const MAX_SORTED_MATCHES: usize = 100_000;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// A glob such as `**/*.rs` or `src/**/test_*.py`. Without a `/` it matches at any depth.
    pattern: String,
    /// The folder to search; the current folder if not given.
    #[serde(default)]
    path: Option<String>,
}

pub(crate) const DESCRIPTION: &str = "Finds files by a glob pattern. Newest first, at most 100. Files that \
    .gitignore names and hidden files are left out unless pattern or path spells the dot or the folder.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    let (path, _) = search_target(context, input)?;
    let summary = format!("Glob {}", input.pattern);
    Ok(PreparedCall::read(Subject::Read { path: path.resolved }, summary))
}

/// A pattern relative to a folder.
struct Pattern {
    matcher: GlobMatcher,
    hidden: bool,
    /// What the pattern spells after its literal beginning.
    spelled: Option<SpelledParts>,
    spells_git: bool,
}

/// Parts of a pattern that are opened although they are hidden or ignored.
struct SpelledParts {
    /// Lets the walk into these folders, and into others that match.
    overrides: Override,
    /// The parts: the first hidden or ignored part of a path must be one of them.
    names: GlobSet,
}

impl SpelledParts {
    fn new(root: &Path, glob: &str) -> Option<Self> {
        let mut names = GlobSetBuilder::new();
        for part in glob.split('/').filter(|part| walk::is_spelled(part)) {
            names.add(GlobBuilder::new(&glob_brackets::either_reading(part)).build().ok()?);
        }
        let names = names.build().ok().filter(|names| !names.is_empty())?;
        let mut overrides = OverrideBuilder::new(root);
        for glob in walk::spelled_folders(glob).iter().chain([&format!("/{glob}")]) {
            overrides.add(&glob_brackets::either_reading(glob)).ok()?;
        }
        Some(Self { overrides: overrides.build().ok()?, names })
    }
}

/// The folder to search (including the literal beginning of the pattern), and the rest of the pattern.
fn search_target(context: &ToolContext, input: &Input) -> Result<(PinnedPath, Pattern), ToolError> {
    let pattern = input.pattern.trim();
    if pattern.is_empty() {
        return Err(ToolError::new("invalid_pattern", "the pattern is empty; `**/*` finds every file"));
    }
    let is_literal = |part: &&str| !part.contains(['*', '?', '[', '{', '\\']);
    let parts: Vec<&str> = pattern.split('/').collect();
    let literal = parts[..parts.len() - 1].iter().copied().take_while(is_literal).collect::<Vec<_>>();
    let rest = parts[literal.len()..].join("/");
    let base = match (literal.is_empty(), input.path.as_deref().filter(|path| !path.is_empty())) {
        (true, path) => path.unwrap_or(".").to_owned(),
        (false, path) => {
            let folder = literal.join("/");
            if folder.is_empty() {
                "/".to_owned()
            } else if folder.starts_with('/') || folder == "~" || folder.starts_with("~/") {
                folder
            } else {
                format!("{}/{folder}", path.unwrap_or("."))
            }
        }
    };
    let any_depth = parts.len() == 1;
    let glob = if any_depth { format!("**/{rest}") } else { rest.clone() };
    let build = |glob: &str| GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    // Names such as `[slug]` match as well, and a bracket without a partner is part of a name.
    let matcher = build(&glob_brackets::either_reading(&glob))
        .or_else(|e| build(&glob_brackets::literal_brackets(&glob)).map_err(|_| e))
        .map_err(|e| {
            ToolError::new("invalid_pattern", format!("{pattern:?} is not a valid glob: {}", e.kind()))
                .with(json!({ "pattern": pattern }))
        })?
        .compile_matcher();
    let hidden = rest.split('/').any(|part| part.starts_with('.') && part.len() > 1);
    let root = walk::search_root(context, Some(&base))?;
    let spelled = SpelledParts::new(&root.path, &glob);
    let spells_git = walk::spells_git(pattern);
    Ok((root, Pattern { matcher, hidden, spelled, spells_git }))
}

pub(crate) fn run(
    context: &ToolContext,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let (root, pattern) = search_target(context, input)?;
    call::same_target(prepared, &Subject::Read { path: root.resolved.clone() })?;
    walk::require_existing(&root)?;
    if !root.is_folder() {
        return Err(ToolError::new(
            "not_a_directory",
            format!("{} is a file; give a folder as path", context.show(&root.path)),
        ));
    }
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    let (mut looked_at, mut total) = (0_usize, 0_usize);
    let mut walk = walk::below(context, "Glob", &root.path, pattern.spells_git);
    if pattern.hidden {
        walk.builder.hidden(false);
    }
    let mut left_out = walk::LeftOut::new(context);
    let spelled = pattern.spelled.as_ref().filter(|_| !walk.is_open);
    if let Some(spelled) = spelled {
        walk.builder.overrides(spelled.overrides.clone());
    }
    for entry in walk.builder.build() {
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        let Some(entry) = entry.ok().filter(walk::is_file) else { continue };
        let path = entry.into_path();
        looked_at += 1;
        context.progress.report(|| format!("{looked_at} files looked at, {total} match"));
        let below = path.strip_prefix(&root.path).unwrap_or(&path);
        let mut is_shown = |spelled: &SpelledParts| {
            left_out.is_shown(&root.path, &path, |name| spelled.names.is_match(name))
        };
        if !pattern.matcher.is_match(below) || !spelled.is_none_or(&mut is_shown) {
            continue;
        }
        total += 1;
        if found.len() < MAX_SORTED_MATCHES {
            let changed = path.symlink_metadata().and_then(|meta| meta.modified());
            found.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    // A folder that became a link during the walk may have led elsewhere, so drop names that cannot be opened.
    let folder = root.folder_handle()?;
    let is_still_below = |path: &PathBuf| {
        let below = path.strip_prefix(&root.path).unwrap_or(path);
        open::open_below(folder.as_fd(), below, open::HANDLE, Mode::empty()).is_ok()
    };
    let newest = found.iter().map(|(_, path)| path).take(MAX_MATCHES);
    let mut lines: Vec<String> =
        newest.filter(|path| is_still_below(path)).map(|path| context.show(path)).collect();
    let shown = lines.len();
    if total == 0 {
        lines.push("No files match.".into());
        let is_match = |path: &Path| pattern.matcher.is_match(path.strip_prefix(&root.path).unwrap_or(path));
        let how = "spell the dot, the folder or the name in the pattern";
        lines.extend(walk.unsearched_note(context, is_match, how));
    } else if total > MAX_MATCHES {
        lines.push(format!("(the {MAX_MATCHES} newest of {total} files; narrow the pattern to see others)"));
    }
    lines.extend(walk.hidden_note());
    let detail = json!({ "count": total, "shown": shown, "hidden_by_rules": walk.hidden_count() });
    Ok(ToolOutcome { detail: Some(detail), ..ToolOutcome::completed(lines.join("\n")) })
}
