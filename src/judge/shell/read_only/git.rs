//! Read-only uses of `git`.

use crate::file_facts::{Selection, TreeSearch};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::resolve::Folders;
use crate::shell::paths::resolve::Repository;
use crate::shell::programs::option_spec::{GivenOption, ParsedOptions};
use crate::shell::read_only::programs;
use crate::shell::read_only::programs::{FileOutput, OperandKinds};
use crate::shell::read_only::{ReadPaths, names_a_file, values_that_may_be_paths};

/// Position of the verb, or of the last word if there is none.
pub(super) fn verb_at(words: &[Word]) -> usize {
    let has_option = words.get(1).is_some_and(|word| word.text == "--no-pager");
    (if has_option { 2 } else { 1 }).min(words.len() - 1)
}

/// The paths that the command reads.
pub(super) fn read_paths(words: &[Word], cwds: &[String], folders: &Folders) -> Option<ReadPaths> {
    // Below its top a workspace may contain another repository, whose settings run programs: content
    // can look like a bare repository.
    if cwds.iter().any(|cwd| *cwd != folders.workspace) || folders.repository == Repository::Content {
        return None;
    }
    let literal = |at: usize| words.get(at).filter(|word| word.is_literal()).map(|word| word.text.as_str());
    let name = literal(verb_at(words))?;
    let in_two = literal(verb_at(words) + 1).and_then(|second| programs::git_in_two(name, second));
    let at = verb_at(words) + usize::from(in_two.is_some());
    let call = &words[at..];
    let verb = in_two.or_else(|| programs::git(name))?;
    let parts = verb.options.parts(call)?;
    // For many options git itself does not take the next word as the value.
    let is_odd = |option: &GivenOption<'_>| {
        option.value_at.is_some_and(|at| at != option.at && call[at].text.starts_with('-'))
    };
    let formats = parts.options.iter().filter(|option| matches!(option.name, "--format" | "--pretty"));
    let mut formats = formats.map(|option| option.value.unwrap_or_default());
    let lists = match verb.operands {
        OperandKinds::Shown => false,
        OperandKinds::Searched => return search_paths(call, at, &parts),
        OperandKinds::Listed(flags) if parts.operands.is_empty() || parts.has(flags) => true,
        OperandKinds::Listed(_) => return None,
    };
    let is_plain = |at: &usize| call[*at].is_literal() || !lists && call[*at].marks.has(Marks::GLOB);
    let passes = !parts.options.iter().any(is_odd)
        && parts.operands.iter().all(is_plain)
        && formats.all(is_tame_format)
        && !(call[0].text == "diff" && may_compare_folders(call, &parts, folders.repository));
    if !passes {
        return None;
    }
    let moved = |paths: Vec<usize>| paths.into_iter().map(|path| at + path).collect();
    let operands = if lists { Vec::new() } else { moved(parts.operands.clone()) };
    let shows = if verb.lists_names { FileOutput::Names } else { FileOutput::Content };
    let patches = shows_patches(call, &parts).then(|| moved(path_limits(call, &parts)));
    let values = moved(values_that_may_be_paths(&parts));
    Some(ReadPaths { values, patches, ..ReadPaths::new(shows, operands) })
}

/// Options with which a verb shows the content of changes, whatever else is given.
const PATCHES: &[&str] = &[
    "p",
    "u",
    "U",
    "L",
    "W",
    "m",
    "--patch",
    "--unified",
    "--binary",
    "--check",
    "--cc",
    "--function-context",
    "--word-diff",
    "--word-diff-regex",
    "--color-words",
];

/// Options with which `diff` and `show` show only names and numbers.
const SUMMARIES: &[&str] = &[
    "s",
    "--no-patch",
    "--stat",
    "--numstat",
    "--shortstat",
    "--summary",
    "--compact-summary",
    "--name-only",
    "--name-status",
    "--raw",
    "--quiet",
];

/// Whether the command may show content of files that its words do not name. A hash may be that of a file.
fn shows_patches(call: &[Word], parts: &ParsedOptions<'_>) -> bool {
    let summarises = parts.has(SUMMARIES) && !parts.has(PATCHES);
    let operands: Vec<&str> = parts.operands.iter().map(|at| call[*at].text.as_str()).collect();
    let is_hash = |text: &&str| text.len() >= 4 && text.bytes().all(|c| c.is_ascii_hexdigit());
    // `REVISION:PATH` names its file; of a folder, only names are shown. `:/TEXT` and `HEAD^{/TEXT}` search commits.
    let is_file = |text: &&str| {
        let is_index = text.strip_prefix(':').is_none_or(|path| path.starts_with(is_name_character));
        text.contains(':') && !text.contains('{') && is_index
    };
    let names_files = !operands.is_empty() && operands.iter().all(is_file);
    match call[0].text.as_str() {
        "diff" => !summarises,
        "show" => !names_files && (!summarises || operands.iter().any(is_hash)),
        "cat-file" => !names_files && parts.has(&["p"]),
        "log" | "reflog" => parts.has(PATCHES),
        "status" => parts.has(&["v", "--verbose"]),
        _ => false,
    }
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_')
}

/// The operands that may limit a command to paths: those after `--`, or without `--` all that are not
/// certainly a revision.
fn path_limits(call: &[Word], parts: &ParsedOptions<'_>) -> Vec<usize> {
    let is_head = |text: &str| {
        let rest = text.strip_prefix("HEAD").or_else(|| text.strip_prefix('@'));
        let is_ancestor = |rest: &str| rest.bytes().all(|c| matches!(c, b'~' | b'^') || c.is_ascii_digit());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', '^']) && is_ancestor(rest))
    };
    let end = call.iter().position(|word| word.text == "--");
    let is_limit = |at: &usize| match end {
        Some(end) => end < *at,
        None => !is_head(&call[*at].text),
    };
    parts.operands.iter().copied().filter(is_limit).collect()
}

/// `git grep`: it reads the tracked files, never links. An operand may also be a revision; then no such
/// file exists, and the disk does not show what it contains.
fn search_paths(call: &[Word], at: usize, parts: &ParsedOptions<'_>) -> Option<ReadPaths> {
    let is_given = parts.has(&["e"]);
    let operands = parts.operands.get(usize::from(!is_given)..)?;
    if !parts.operands.iter().all(|operand| call[*operand].is_literal()) {
        return None;
    }
    let operands: Vec<usize> = operands.iter().map(|operand| at + operand).collect();
    let search = TreeSearch { selection: Selection::Tracked, hidden: true, ..TreeSearch::default() };
    Some(ReadPaths {
        searches_here: operands.is_empty(),
        search: Some(search),
        ..ReadPaths::new(FileOutput::Content, operands)
    })
}

/// `--format=…` without parts that run gpg: `%G?` and similar, also with modifiers after `%`
/// (git-log(1), "PRETTY FORMATS"). A name that git does not define is one of the settings, and may
/// contain anything.
fn is_tame_format(format: &str) -> bool {
    const NAMES: &[&str] = &["", "oneline", "short", "medium", "full", "fuller", "reference", "email", "raw"];
    let verifies =
        |(at, _): (usize, &str)| format[at + 1..].trim_start_matches(['-', '+', ' ']).starts_with('G');
    NAMES.contains(&format) || format.contains('%') && !format.match_indices('%').any(verifies)
}

/// Whether `git diff` may compare two folders. Without a usable repository it compares the content of
/// two paths, with everything below them (git-diff(1), `--no-index`). With more than two paths it does
/// not.
fn may_compare_folders(call: &[Word], parts: &ParsedOptions<'_>, repository: Repository) -> bool {
    let operands: Vec<&Word> = parts.operands.iter().map(|at| &call[*at]).collect();
    // A pattern may expand to any number of paths.
    let may_be_two = operands.len() == 2 || operands.iter().any(|word| word.marks.has(Marks::GLOB));
    // git may refuse an existing repository: it belongs to another user, or is broken.
    let is_revision = |text: &str| {
        let name = text.split(['~', '^', ':', '.', '@']).next().unwrap_or_default();
        let is_hash = name.len() >= 7 && name.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        let is_mixed =
            name.bytes().any(|c| c.is_ascii_digit()) && name.bytes().any(|c| c.is_ascii_lowercase());
        name.is_empty() && text.starts_with('@')
            || is_hash && is_mixed
            || name.ends_with("HEAD") && name.bytes().all(|c| c.is_ascii_uppercase() || c == b'_')
    };
    let is_of_revisions = || operands.iter().any(|word| is_revision(&word.text));
    may_be_two
        && (repository == Repository::Nowhere || !is_of_revisions())
        && !operands.iter().all(|word| names_a_file(&word.text))
}
