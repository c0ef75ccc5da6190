//! Parses the text of a patch.
//!
//! The format is that of the `apply_patch` tool in the prompts of OpenAI's coding models:
//!
//! ```text
//! *** Begin Patch
//! *** Add File: PATH            then lines that begin with `+`
//! *** Delete File: PATH
//! *** Update File: PATH         then, if it is renamed, `*** Move to: PATH`, and hunks:
//! @@ a line above the hunk      any number of these, also a bare `@@`
//!  kept / -removed / +added     lines
//! *** End of File               after a hunk that reaches to the end
//! *** End Patch
//! ```
//!
//! The parser accepts mistakes with a clear meaning. Examples: blanks around the markers, a here-document or a code
//! fence around the patch, `\r\n`, an empty line for an empty kept line, no `@@` before the first hunk of a file.

use std::borrow::Cow;

use serde_json::json;

use crate::error::ToolError;

/// Maximal number of files or hunks in one patch; more are a mistake.
const MAX_PARTS: usize = 1_000;

/// The change of one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FilePatch<'p> {
    Add { path: &'p str, lines: Vec<&'p str> },
    Delete { path: &'p str },
    Update { path: &'p str, move_to: Option<&'p str>, hunks: Vec<Hunk<'p>> },
}

/// A changed region of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk<'p> {
    /// Lines above it that give its position, outermost first.
    pub(crate) anchors: Vec<&'p str>,
    pub(crate) lines: Vec<HunkLine<'p>>,
    /// Whether its last line is the last one of the file.
    pub(crate) at_end: bool,
    /// Number of its first line in the patch, from 1.
    pub(crate) number: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HunkLine<'p> {
    Keep(&'p str),
    Remove(&'p str),
    Add(&'p str),
}

impl<'p> HunkLine<'p> {
    /// The text after the sign.
    pub(crate) fn text(self) -> &'p str {
        match self {
            HunkLine::Keep(text) | HunkLine::Remove(text) | HunkLine::Add(text) => text,
        }
    }
}

/// Converts a patch to `\n` line endings.
pub(crate) fn unify_line_endings(patch: &str) -> Cow<'_, str> {
    if patch.contains("\r\n") { patch.replace("\r\n", "\n").into() } else { patch.into() }
}

/// Parses a patch (with `\n` line endings). The error names the wrong line.
pub(crate) fn parse(patch: &str) -> Result<Vec<FilePatch<'_>>, ToolError> {
    let (lines, first) = patch_body(patch)?;
    let mut sections: Vec<FilePatch<'_>> = Vec::new();
    let mut parts = 0;
    // A blank line in an added file is valid only if no line follows it.
    let mut blank = None;
    for (number, line) in (first..).zip(lines.iter().copied()) {
        parts += usize::from(line.starts_with("***") || line.starts_with("@@"));
        if parts > MAX_PARTS {
            return Err(parse_error(number, format!("a patch has at most {MAX_PARTS} files and hunks")));
        }
        if let Some(section) = parse_header(line, number)? {
            sections.push(section);
            blank = None;
            continue;
        }
        match sections.last_mut() {
            None if line.trim().is_empty() => {}
            None => {
                return Err(parse_error(
                    number,
                    format!(
                        "expected *** Add File: PATH, *** Update File: PATH or *** Delete File: PATH, found {:?}",
                        shorten(line)
                    ),
                ));
            }
            Some(FilePatch::Delete { .. }) if line.trim().is_empty() => {}
            Some(FilePatch::Delete { .. }) => {
                return Err(parse_error(number, "*** Delete File takes no lines".into()));
            }
            Some(FilePatch::Add { lines, .. }) => match line.strip_prefix('+') {
                Some(text) if blank.is_none() => lines.push(text),
                None if line.trim().is_empty() => blank = blank.or(Some(number)),
                _ => {
                    let (number, found) = blank.map_or((number, line), |number| (number, ""));
                    return Err(parse_error(
                        number,
                        format!("every line of an added file begins with +, found {:?}", shorten(found)),
                    ));
                }
            },
            Some(FilePatch::Update { move_to, hunks, .. }) => {
                if let Some(target) = marker_text(line, "Move to:") {
                    if move_to.is_some() || !hunks.is_empty() {
                        return Err(parse_error(
                            number,
                            "*** Move to: stands right below *** Update File:".into(),
                        ));
                    }
                    *move_to = Some(path(target, number)?);
                } else {
                    update_line(hunks, line, number)?;
                }
            }
        }
    }
    for section in &mut sections {
        finish_section(section, first)?;
    }
    if sections.is_empty() {
        return Err(parse_error(first, "the patch changes no file".into()));
    }
    Ok(sections)
}

/// The lines between the two markers, and the number of the first.
fn patch_body(patch: &str) -> Result<(Vec<&str>, usize), ToolError> {
    let lines: Vec<&str> = patch.split('\n').collect();
    let is = |line: &str, marker: &str| marker_text(line, marker).is_some_and(str::is_empty);
    let Some(begin) = lines.iter().position(|line| is(line, "Begin Patch")) else {
        return Err(parse_error(1, "the patch must begin with *** Begin Patch".into()));
    };
    // Only the beginning of a here-document or of a code fence may precede it.
    let is_wrapping = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with("```") || line.contains("<<")
    };
    if let Some(at) = lines[..begin].iter().position(|line| !is_wrapping(line)) {
        return Err(parse_error(
            at + 1,
            format!("unexpected text before *** Begin Patch: {:?}", shorten(lines[at])),
        ));
    }
    let Some(end) = lines.iter().rposition(|line| is(line, "End Patch")).filter(|end| *end > begin) else {
        return Err(parse_error(lines.len(), "the patch must end with *** End Patch".into()));
    };
    // Only the end of the same here-document or code fence may follow it.
    if lines[end + 1..].iter().filter(|line| !line.trim().is_empty()).count() > 1 {
        return Err(parse_error(end + 2, "unexpected text after *** End Patch".into()));
    }
    Ok((lines[begin + 1..end].to_vec(), begin + 2))
}

/// The text after `*** WORDS` on the line.
fn marker_text<'p>(line: &'p str, marker: &str) -> Option<&'p str> {
    line.trim().strip_prefix("***")?.trim_start().strip_prefix(marker).map(str::trim)
}

fn parse_header<'p>(line: &'p str, number: usize) -> Result<Option<FilePatch<'p>>, ToolError> {
    // A kept line of a file may have the same text, and then begins with a blank.
    if !line.starts_with("***") {
        return Ok(None);
    }
    if let Some(text) = marker_text(line, "Add File:") {
        return Ok(Some(FilePatch::Add { path: path(text, number)?, lines: Vec::new() }));
    }
    if let Some(text) = marker_text(line, "Delete File:") {
        return Ok(Some(FilePatch::Delete { path: path(text, number)? }));
    }
    if let Some(text) = marker_text(line, "Update File:") {
        let path = path(text, number)?;
        return Ok(Some(FilePatch::Update { path, move_to: None, hunks: Vec::new() }));
    }
    Ok(None)
}

fn path(text: &str, number: usize) -> Result<&str, ToolError> {
    if text.is_empty() { Err(parse_error(number, "the path is missing".into())) } else { Ok(text) }
}

fn update_line<'p>(hunks: &mut Vec<Hunk<'p>>, line: &'p str, number: usize) -> Result<(), ToolError> {
    if let Some(anchor) = line.strip_prefix("@@") {
        // `@@ -1,2 +3,4 @@ text` is the form of other tools: only the text is used.
        let anchor = match anchor.trim_start().strip_prefix('-').and_then(|rest| rest.split_once("@@")) {
            Some((numbers, text)) if numbers.chars().all(|c| c.is_ascii_digit() || ",+- ".contains(c)) => {
                text
            }
            _ => anchor,
        };
        let anchor = anchor.strip_prefix(' ').unwrap_or(anchor);
        let anchor = anchor.strip_suffix(" @@").unwrap_or(anchor);
        let begins = hunks.last().is_none_or(|hunk| !hunk.lines.is_empty() || hunk.at_end);
        if begins {
            hunks.push(Hunk { number, ..Hunk::default() });
        }
        if let Some(hunk) = hunks.last_mut().filter(|_| !anchor.trim().is_empty()) {
            hunk.anchors.push(anchor);
        }
        return Ok(());
    }
    if marker_text(line, "End of File").is_some_and(str::is_empty) && line.starts_with("***") {
        match hunks.last_mut().filter(|hunk| !hunk.lines.is_empty()) {
            Some(hunk) => hunk.at_end = true,
            None => {
                return Err(parse_error(number, "*** End of File stands below the lines of a hunk".into()));
            }
        }
        return Ok(());
    }
    let line = match (line.split_at_checked(1), line) {
        (_, "") => HunkLine::Keep(""),
        (Some((" ", text)), _) => HunkLine::Keep(text),
        (Some(("-", text)), _) => HunkLine::Remove(text),
        (Some(("+", text)), _) => HunkLine::Add(text),
        _ => {
            return Err(parse_error(
                number,
                format!(
                    "a line of a hunk begins with a blank, - or +, and a hunk with @@; found {:?}",
                    shorten(line)
                ),
            ));
        }
    };
    match hunks.last_mut().filter(|hunk| !hunk.at_end) {
        Some(hunk) => hunk.lines.push(line),
        // A blank line between two files is not a hunk.
        None if line == HunkLine::Keep("") => {}
        None => hunks.push(Hunk { number, lines: vec![line], ..Hunk::default() }),
    }
    Ok(())
}

/// Removes blank lines between files, and empty hunks.
fn finish_section(section: &mut FilePatch<'_>, first: usize) -> Result<(), ToolError> {
    let FilePatch::Update { path, move_to, hunks } = section else { return Ok(()) };
    for hunk in hunks.iter_mut() {
        // An empty line at the very end without a leading blank is layout.
        while matches!(hunk.lines.last(), Some(HunkLine::Keep(""))) && !hunk.at_end {
            hunk.lines.pop();
        }
        if hunk.lines.iter().all(|line| matches!(line, HunkLine::Keep(_))) && move_to.is_none() {
            return Err(parse_error(hunk.number, "this hunk neither adds nor removes a line".into()));
        }
    }
    if hunks.is_empty() && move_to.is_none() {
        return Err(parse_error(first, format!("*** Update File: {path} has no hunk")));
    }
    Ok(())
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn parse_error(line: usize, text: String) -> ToolError {
    ToolError::new("bad_patch", format!("the patch is wrong at line {line}: {text}. Nothing was changed."))
        .with(json!({ "line": line, "problem": text }))
}
