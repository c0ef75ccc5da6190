//! The Grep tool: finds text in files with ripgrep's engine.
//!
//! Files that probably contain secrets are searched only if the call names them. Otherwise, a search of the
//! whole workspace would bypass the permission request for reading them.

use std::borrow::Cow;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use crate::files::search::{OutputMode, Search, SearchParams};
use crate::files::walk;
use crate::fs::pinned::PinnedPath;
use crate::{call, input};
use types::glob_brackets;
use types::tool::{PreparedCall, Subject, ToolOutcome};

/// Default number of lines (or files) in one answer.
const DEFAULT_LINES: usize = 250;
const MAX_CONTEXT_LINES: u64 = 100;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// A regular expression (Rust syntax; escape literal braces).
    pattern: String,
    /// The file or folder to search; the current folder if not given.
    #[serde(default)]
    path: Option<String>,
    /// Only files that match this glob, such as `*.rs` or `*.{ts,tsx}`.
    #[serde(default)]
    glob: Option<String>,
    /// The form of the result: matching lines, only the files (default), or counts per file.
    #[serde(default)]
    output_mode: Option<OutputMode>,
    /// Ignore case.
    #[serde(default, rename = "-i", deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    ignore_case: bool,
    /// Show line numbers (default true).
    #[serde(default = "default_true", rename = "-n", deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    line_numbers: bool,
    /// Lines to show after each match.
    #[serde(default, rename = "-A", deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    after: Option<u64>,
    /// Lines to show before each match.
    #[serde(default, rename = "-B", deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    before: Option<u64>,
    /// Lines to show around each match.
    #[serde(default, rename = "-C", deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    around: Option<u64>,
    /// Let the pattern span lines; `.` then matches line ends too.
    #[serde(default, deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    multiline: bool,
    /// Only files of this type, such as rust, py, js.
    #[serde(default)]
    r#type: Option<String>,
    /// Show only so many lines or files.
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    head_limit: Option<u64>,
}

fn default_true() -> bool {
    true
}

pub(crate) const DESCRIPTION: &str = "Searches the content of files with a regular expression. Files that \
    .gitignore names and hidden files are left out unless path or glob spells their folder; binary files always are. Use \
    this instead of grep or rg in Bash.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    build_matcher(input)?;
    let held = walk::search_root(context, input.path.as_deref())?;
    choose_files(context, input, &held, &mut WalkBuilder::new(&held.path))?;
    let summary = format!("Grep {:?} in {}", input.pattern, context.show(&held.path));
    let subject = Subject::Read { path: held.resolved };
    Ok(PreparedCall::read(subject, summary))
}

fn build_matcher(input: &Input) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(input.ignore_case).multi_line(true).dot_matches_new_line(input.multiline);
    let pattern = match input.multiline {
        true => any_line_end(&input.pattern),
        false => Cow::Borrowed(input.pattern.as_str()),
    };
    let mut build = |crlf: bool| {
        builder.crlf(crlf);
        // The order counts: `crlf` also sets the terminator.
        if input.multiline {
            builder.line_terminator(None);
        } else if !crlf {
            builder.line_terminator(Some(b'\n'));
        }
        builder.build(&pattern)
    };
    // The end of a line is before `\r\n` as well. A pattern that contains `\r` is refused with this, and means it.
    let ends_lines = input.pattern.contains('$').then(|| build(true).ok()).flatten();
    ends_lines.map_or_else(|| build(false), Ok).map_err(|e| {
        ToolError::new("invalid_regex", format!("{:?} is not a valid regular expression: {e}", input.pattern))
            .with(json!({ "pattern": input.pattern }))
    })
}

/// Lets `\n` of a pattern that spans lines match `\r\n` as well, since the model does not know how a file ends its lines.
fn any_line_end(pattern: &str) -> Cow<'_, str> {
    const LINE_END: &str = r"(?:\r?\n)";
    if !pattern.contains("\\n") && !pattern.contains('\n') || pattern.contains("(?x") {
        return Cow::Borrowed(pattern);
    }
    let (mut any, mut class_depth) = (String::new(), 0_usize);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') if class_depth == 0 => any.push_str(LINE_END),
                escaped => any.extend(std::iter::once(c).chain(escaped)),
            },
            '\n' if class_depth == 0 => any.push_str(LINE_END),
            _ => {
                match c {
                    '[' => class_depth += 1,
                    ']' => class_depth = class_depth.saturating_sub(1),
                    _ => {}
                }
                any.push(c);
            }
        }
    }
    Cow::Owned(any)
}

/// Selects the files to search, in addition to ignore rules.
fn choose_files(
    context: &ToolContext,
    input: &Input,
    root: &PinnedPath,
    builder: &mut WalkBuilder,
) -> Result<(), ToolError> {
    if let Some(glob) = input.glob.as_deref().filter(|glob| !glob.is_empty()) {
        let wrong = |e: ignore::Error| {
            ToolError::new("invalid_pattern", format!("{glob:?} is not a valid glob: {e}"))
                .with(json!({ "glob": glob }))
        };
        let folder = if root.is_folder() { &root.path } else { root.path.parent().unwrap_or(&root.path) };
        let mut spelled = if glob.starts_with('!') { Vec::new() } else { walk::spelled_folders(glob) };
        // All of a folder is searched if the glob begins with its path.
        let mut left_out = walk::LeftOut::new(context);
        let is_left_out =
            |named: &&String| left_out.is_folder_left_out(&folder.join(named.trim_matches('/')));
        if let Some(opened) = spelled.iter().find(is_left_out).map(|named| format!("{named}**/")) {
            spelled.push(opened);
        }
        let build = |read: fn(&str) -> String| {
            let mut overrides = OverrideBuilder::new(folder);
            overrides.add(&read(glob))?;
            for named in &spelled {
                overrides.add(&read(named))?;
            }
            overrides.build()
        };
        // Names such as `[slug]` match as well, and a bracket without a partner is part of a name.
        let overrides = build(glob_brackets::either_reading)
            .or_else(|e| build(glob_brackets::literal_brackets).map_err(|_| e))
            .map_err(wrong)?;
        builder.overrides(overrides);
    }
    if let Some(kind) = input.r#type.as_deref().filter(|kind| !kind.is_empty()) {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        types.select(kind);
        let types = types.build().map_err(|_| {
            ToolError::new("invalid_type", format!("{kind:?} is not a known file type; use glob instead"))
                .with(json!({ "type": kind }))
        })?;
        builder.types(types);
    }
    Ok(())
}

pub(crate) fn run(
    context: &ToolContext,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let root = walk::search_root(context, input.path.as_deref())?;
    call::same_target(prepared, &Subject::Read { path: root.resolved.clone() })?;
    walk::require_existing(&root)?;
    let spells_git = input.glob.as_deref().is_some_and(walk::spells_git);
    let mut walk = walk::below(context, "Grep", &root.path, spells_git);
    choose_files(context, input, &root, &mut walk.builder)?;

    let mode = input.output_mode.unwrap_or_default();
    let around = |side: Option<u64>| {
        let lines = if mode == OutputMode::Content { side.or(input.around).unwrap_or(0) } else { 0 };
        usize::try_from(lines.min(MAX_CONTEXT_LINES)).unwrap_or(0)
    };
    let limit = input.head_limit.filter(|n| *n > 0);
    let wanted = SearchParams {
        matcher: build_matcher(input)?,
        mode,
        multiline: input.multiline,
        line_numbers: input.line_numbers,
        before: around(input.before),
        after: around(input.after),
        lines: limit.map_or(DEFAULT_LINES, |n| usize::try_from(n).unwrap_or(usize::MAX)),
        bytes: context.settings.output_cap,
    };
    let search = Search { context, root: &root, wanted: &wanted, stop };
    match search.run(&walk) {
        Some(answer) => Ok(answer.into_outcome(context, mode, &walk)),
        None => Ok(cancelled()),
    }
}
