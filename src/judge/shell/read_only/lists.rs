//! Lists of files for `xargs`: commands that print the names of files, and commands that read them.

use crate::file_facts::{FileRead, LinkUse, NameRule, ReadKind, Selection, TreeSearch};
use crate::shell::lex::word::Word;
use crate::shell::paths::resolve::Folders;
use crate::shell::programs::option_spec::ParsedOptions;
use crate::shell::read_only::programs::{self, FileOutput, Operands};
use crate::shell::read_only::{file_reads, find, push_reads, read_paths};

/// Options with which a search prints only names of files.
const NAMES_ONLY: &[&str] = &["l", "--files-with-matches", "--files"];

/// Programs that print lines of their input, with the options that keep each line whole.
const FILTERS: &[(&str, &[&str])] = &[
    ("head", &["n", "q", "--lines", "--quiet"]),
    ("tail", &["n", "q", "--lines", "--quiet"]),
    ("sort", &["f", "h", "n", "r", "u", "V", "--numeric-sort", "--reverse", "--unique", "--version-sort"]),
    ("uniq", &["d", "i", "u", "--repeated", "--unique"]),
    (
        "grep",
        &[
            "E",
            "e",
            "F",
            "i",
            "P",
            "v",
            "w",
            "x",
            "--extended-regexp",
            "--fixed-strings",
            "--ignore-case",
            "--invert-match",
            "--perl-regexp",
            "--regexp",
        ],
    ),
];

/// Whether a command prints lines of its input, unchanged.
pub(crate) fn passes_lines(words: &[Word]) -> bool {
    let Some(name) = words.first().map(|word| word.text.as_str()) else { return false };
    let Some((_, whole)) = FILTERS.iter().find(|(filter, _)| *filter == name) else { return false };
    let parts = programs::program(name).and_then(|row| row.options.parts(words));
    let patterns = |parts: &ParsedOptions<'_>| usize::from(name == "grep" && !parts.has(&["e", "--regexp"]));
    parts.is_some_and(|parts| {
        parts.operands.len() == patterns(&parts)
            && parts.options.iter().all(|option| whole.contains(&option.name))
    })
}

/// The files whose names a command prints, as searches of their content: `find`, `git ls-files`, and
/// searches that print only names.
pub(crate) fn listed_files(
    words: &[Word],
    piped: bool,
    cwds: &[String],
    folders: &Folders,
) -> Option<Vec<FileRead>> {
    let literal = |at: usize| words.get(at).filter(|word| word.is_literal()).map(|word| word.text.as_str());
    let mut reads = Vec::new();
    let mut add = |path: &str, search: TreeSearch| {
        push_reads(&mut reads, path, &ReadKind::Tree(search), NameRule::Plain, cwds);
    };
    match literal(0)? {
        "find" => {
            let look = find::parse(words)?;
            let search = TreeSearch { hidden: true, includes: look.names?, ..TreeSearch::default() };
            if look.folders.is_empty() {
                add(".", search.clone());
            }
            words[look.folders].iter().for_each(|folder| add(&folder.text, search.clone()));
        }
        "git" if literal(1) == Some("ls-files") => {
            let is_plain = |word: &Word| word.is_literal() && !word.text.starts_with(['-', ':']);
            let ending = |word: &Word| word.text.strip_prefix("*.").map(|_| word.text.clone());
            let patterns = &words[2..];
            if !patterns.iter().all(is_plain) {
                return None;
            }
            let includes = patterns.iter().map(ending).collect::<Option<Vec<_>>>().unwrap_or_default();
            add(
                ".",
                TreeSearch { selection: Selection::Tracked, hidden: true, includes, ..TreeSearch::default() },
            );
        }
        name => {
            let row = programs::program(name)?;
            let parts = row.options.parts(words)?;
            let search = row.search.and_then(|spec| spec.search(&parts))?;
            if !row.prints_names && !parts.has(NAMES_ONLY) || parts.has(&["0", "--null", "Z", "c", "--json"])
            {
                return None;
            }
            let look = read_paths(words, piped, cwds, folders)?;
            if look.operands.is_empty() {
                add(".", search.clone());
            }
            for at in look.operands {
                if !words[at].is_literal() {
                    return None;
                }
                add(&words[at].text, search.clone());
            }
        }
    }
    Some(reads)
}

/// What a command reads that `xargs` gives more files.
pub(crate) fn fed_reads(
    words: &[Word],
    listed: Vec<FileRead>,
    cwds: &[String],
    folders: &Folders,
) -> Result<Vec<FileRead>, String> {
    let name = words[0].text.as_str();
    let refused = || format!("{name} gets arguments that are not in the text");
    let takes_files = |row: &&programs::ReadOnlyProgram| {
        row.search.is_none_or(|spec| !spec.recurses.is_empty() && !spec.is_flat)
            && matches!(row.operands, Operands::Paths | Operands::PatternThenPaths)
    };
    programs::program(name).filter(takes_files).ok_or_else(refused)?;
    let mut whole = words.to_vec();
    whole.push(Word { text: "listed".into(), ..Word::default() });
    let look = read_paths(&whole, true, cwds, folders).ok_or_else(refused)?;
    if look.search.is_some() || look.operands.last() != Some(&words.len()) {
        return Err(refused());
    }
    let mut reads = file_reads(&whole, true, cwds, folders)?;
    if look.shows == FileOutput::Content && folders.has_file_rules {
        return Err(refused());
    }
    reads.extend(listed.into_iter().map(|read| {
        let kind = match read.kind {
            ReadKind::Tree(search) => ReadKind::Tree(TreeSearch { links: LinkUse::Opened, ..search }),
            other => other,
        };
        FileRead { kind, ..read }
    }));
    Ok(reads)
}
