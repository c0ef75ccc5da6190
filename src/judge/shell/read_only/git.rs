//! Read-only uses of `git`.

use crate::file_facts::{Selection, TreeSearch};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::resolve::{Folders, Repository};
use crate::shell::programs::lookup;
use crate::shell::programs::record::options::{GivenOption, ParsedOptions};
use crate::shell::programs::record::read_only::{FileOutput, Operands};
use crate::shell::read_only::ReadPaths;
use crate::shell::read_only::names::names_a_file;
use crate::shell::read_only::recorded::values_that_may_be_paths;

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
    let literal =
        |index: usize| words.get(index).filter(|word| word.is_literal()).map(|word| word.text.as_str());
    let first = verb_at(words);
    let (record, has_two_words) =
        lookup::read_only_verb(&words[0].text, literal(first)?, literal(first + 1))?;
    let (read_only, options) = (record.read_only.as_ref()?, record.options.as_ref()?);
    let index = first + usize::from(has_two_words);
    let call = &words[index..];
    let parsed = options.parse(call)?;
    // For many options git itself does not take the next word as the value.
    let is_odd = |option: &GivenOption<'_>| {
        option.value_at.is_some_and(|index| index != option.index && call[index].text.starts_with('-'))
    };
    let formats = parsed.options.iter().filter(|option| matches!(option.name, "--format" | "--pretty"));
    let mut formats = formats.map(|option| option.value.unwrap_or_default());
    let lists = match read_only.operands {
        Operands::Shown => false,
        Operands::Searched => return search_paths(call, index, &parsed),
        Operands::Listed if parsed.operands.is_empty() || parsed.has(&read_only.lists_with) => true,
        _ => return None,
    };
    let is_plain =
        |index: &usize| call[*index].is_literal() || !lists && call[*index].marks.has_any(Marks::GLOB);
    let passes = !parsed.options.iter().any(is_odd)
        && parsed.operands.iter().all(is_plain)
        && formats.all(is_harmless_format)
        && !(call[0].text == "diff" && may_compare_folders(call, &parsed, folders.repository));
    if !passes {
        return None;
    }
    let in_words = |paths: Vec<usize>| paths.into_iter().map(|path| index + path).collect();
    let operands = if lists { Vec::new() } else { in_words(parsed.operands.clone()) };
    let patches = shows_patches(call, &parsed).then(|| in_words(path_limits(call, &parsed)));
    let values = in_words(values_that_may_be_paths(&parsed));
    Some(ReadPaths {
        values,
        patches,
        of_repository: true,
        checked_from: first + 1,
        ..ReadPaths::new(read_only.shows, operands)
    })
}

/// Options with which a verb shows the content of changes, whatever else is given.
const PATCHES: &[&str] = &[
    "-p",
    "-u",
    "-U",
    "-L",
    "-W",
    "-m",
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
    "-s",
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
fn shows_patches(call: &[Word], parsed: &ParsedOptions<'_>) -> bool {
    let summarises = parsed.has(SUMMARIES) && !parsed.has(PATCHES);
    let operands: Vec<&str> = parsed.operands.iter().map(|index| call[*index].text.as_str()).collect();
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
        "cat-file" => !names_files && parsed.has(&["-p"]),
        "log" | "reflog" => parsed.has(PATCHES),
        "status" => parsed.has(&["-v", "--verbose"]),
        _ => false,
    }
}

/// Whether a character may begin the name of a file.
fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_')
}

/// The operands that may limit a command to paths: those after `--`, or without `--` all that are not
/// certainly a revision.
fn path_limits(call: &[Word], parsed: &ParsedOptions<'_>) -> Vec<usize> {
    let is_head = |text: &str| {
        let rest = text.strip_prefix("HEAD").or_else(|| text.strip_prefix('@'));
        let is_ancestor = |rest: &str| rest.bytes().all(|c| matches!(c, b'~' | b'^') || c.is_ascii_digit());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', '^']) && is_ancestor(rest))
    };
    let end = call.iter().position(|word| word.text == "--");
    let is_limit = |index: &usize| match end {
        Some(end) => end < *index,
        None => !is_head(&call[*index].text),
    };
    parsed.operands.iter().copied().filter(is_limit).collect()
}

/// `git grep`: it reads the tracked files, never links. An operand may also be a revision; then no such
/// file exists, and the disk does not show what it contains.
fn search_paths(call: &[Word], index: usize, parsed: &ParsedOptions<'_>) -> Option<ReadPaths> {
    let is_given = parsed.has(&["-e"]);
    let operands = parsed.operands.get(usize::from(!is_given)..)?;
    if !parsed.operands.iter().all(|operand| call[*operand].is_literal()) {
        return None;
    }
    let operands: Vec<usize> = operands.iter().map(|operand| index + operand).collect();
    let search = TreeSearch { selection: Selection::Tracked, hidden: true, ..TreeSearch::default() };
    Some(ReadPaths {
        searches_here: operands.is_empty(),
        search: Some(search),
        of_repository: true,
        checked_from: index + 1,
        ..ReadPaths::new(FileOutput::Content, operands)
    })
}

/// `--format=…` without parsed that run gpg: `%G?` and similar, also with modifiers after `%`
/// (git-log(1), "PRETTY FORMATS"). A name that git does not define is one of the settings, and may
/// contain anything.
fn is_harmless_format(format: &str) -> bool {
    const NAMES: &[&str] = &["", "oneline", "short", "medium", "full", "fuller", "reference", "email", "raw"];
    let verifies =
        |(index, _): (usize, &str)| format[index + 1..].trim_start_matches(['-', '+', ' ']).starts_with('G');
    NAMES.contains(&format) || format.contains('%') && !format.match_indices('%').any(verifies)
}

/// Whether `git diff` may compare two folders. Without a usable repository it compares the content of
/// two paths, with everything below them (git-diff(1), `--no-index`). With more than two paths it does
/// not.
fn may_compare_folders(call: &[Word], parsed: &ParsedOptions<'_>, repository: Repository) -> bool {
    let operands: Vec<&Word> = parsed.operands.iter().map(|index| &call[*index]).collect();
    // A pattern may expand to any number of paths.
    let may_be_two = operands.len() == 2 || operands.iter().any(|word| word.marks.has_any(Marks::GLOB));
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

/// Whether a command names all files whose content it shows.
pub(super) fn names_what_it_shows(words: &[Word]) -> bool {
    let from = verb_at(words);
    let rest = &words[from + 1..];
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let tells_names = |word: &Word| {
        let text = word.text.as_str();
        !text.starts_with('-')
            || matches!(text, "--oneline" | "--graph" | "--stat" | "--all" | "--decorate" | "-n")
            || text.strip_prefix('-').is_some_and(is_number)
    };
    match words[from].text.as_str() {
        // With `-v` it shows the changes.
        "status" => {
            let is_verbose = |text: &str| {
                text.starts_with("--v")
                    || !text.starts_with("--") && text.starts_with('-') && text.contains('v')
            };
            !rest.iter().any(|word| is_verbose(&word.text))
        }
        "rev-parse" | "ls-files" | "describe" | "merge-base" | "branch" | "tag" | "remote" | "shortlog" => {
            true
        }
        "log" => rest.iter().all(tells_names),
        _ => false,
    }
}

/// For `git ls-files`: the tracked files whose names it prints.
pub(super) fn listed_files(words: &[Word]) -> Option<TreeSearch> {
    words.get(1).filter(|word| word.is_literal() && word.text == "ls-files")?;
    let is_plain = |word: &Word| word.is_literal() && !word.text.starts_with(['-', ':']);
    let ending = |word: &Word| word.text.strip_prefix("*.").map(|_| word.text.clone());
    let patterns = &words[2..];
    if !patterns.iter().all(is_plain) {
        return None;
    }
    let includes = patterns.iter().map(ending).collect::<Option<Vec<_>>>().unwrap_or_default();
    Some(TreeSearch { selection: Selection::Tracked, hidden: true, includes, ..TreeSearch::default() })
}
