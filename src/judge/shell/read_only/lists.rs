//! Lists of files for `xargs`: commands that print the names of files, and commands that read them.

use crate::file_facts::{FileRead, LinkUse, NameRule, ReadKind, TreeSearch};
use crate::shell::lex::word::Word;
use crate::shell::paths::resolve::Folders;
use crate::shell::programs::lookup;
use crate::shell::programs::operands::has_word;
use crate::shell::programs::record::Record;
use crate::shell::programs::record::options::ParsedOptions;
use crate::shell::programs::record::read_only::{FileOutput, Operands};
use crate::shell::read_only::reads::push_reads;
use crate::shell::read_only::{file_reads, find, git, read_paths};

/// Options with which a search prints only names of files.
const NAMES_ONLY: &[&str] = &["-l", "--files-with-matches", "--files"];

/// Programs that print lines of their input, with the options that keep each line whole.
const FILTERS: &[(&str, &str)] = &[
    ("head", "-n -q --lines --quiet"),
    ("tail", "-n -q --lines --quiet"),
    ("sort", "-f -h -n -r -u -V --numeric-sort --reverse --unique --version-sort"),
    ("uniq", "-d -i -u --repeated --unique"),
    (
        "grep",
        "-E -e -F -i -P -v -w -x --extended-regexp --fixed-strings --ignore-case --invert-match --perl-regexp \
         --regexp",
    ),
];

/// Whether a command prints lines of its input, unchanged.
pub(crate) fn passes_lines(words: &[Word]) -> bool {
    let Some(name) = words.first().map(|word| word.text.as_str()) else { return false };
    let Some((_, whole)) = FILTERS.iter().find(|(filter, _)| *filter == name) else { return false };
    let parsed = lookup::read_only_record(name).and_then(|record| record.options.as_ref()?.parse(words));
    let patterns =
        |parsed: &ParsedOptions<'_>| usize::from(name == "grep" && !parsed.has(&["-e", "--regexp"]));
    parsed.is_some_and(|parsed| {
        parsed.operands.len() == patterns(&parsed)
            && parsed.options.iter().all(|option| has_word(whole, option.name))
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
    let literal =
        |index: usize| words.get(index).filter(|word| word.is_literal()).map(|word| word.text.as_str());
    let mut reads = Vec::new();
    let mut add = |path: &str, search: TreeSearch| {
        push_reads(&mut reads, path, &ReadKind::Tree(search), NameRule::Plain, cwds);
    };
    match literal(0)? {
        "find" => {
            let call = find::parse(words)?;
            let search = TreeSearch { hidden: true, includes: call.names?, ..TreeSearch::default() };
            if call.folders.is_empty() {
                add(".", search.clone());
            }
            words[call.folders].iter().for_each(|folder| add(&folder.text, search.clone()));
        }
        name if lookup::has_read_only_verbs(name) => add(".", git::listed_files(words)?),
        name => {
            let record = lookup::read_only_record(name)?;
            let parsed = record.options.as_ref()?.parse(words)?;
            let search = record.search.as_ref().and_then(|search| search.search(&parsed))?;
            let prints_names = record.read_only.as_ref()?.prints_names || parsed.has(NAMES_ONLY);
            if !prints_names || parsed.has(&["-0", "--null", "-Z", "-c", "--json"]) {
                return None;
            }
            let paths = read_paths(words, piped, cwds, folders)?;
            if paths.operands.is_empty() {
                add(".", search.clone());
            }
            for index in paths.operands {
                if !words[index].is_literal() {
                    return None;
                }
                add(&words[index].text, search.clone());
            }
        }
    }
    Some(reads)
}

/// What a command reads that gets the listed files as more arguments from `xargs`.
pub(crate) fn reads_with_listed_files(
    words: &[Word],
    listed: Vec<FileRead>,
    cwds: &[String],
    folders: &Folders,
) -> Result<Vec<FileRead>, String> {
    let name = words[0].text.as_str();
    let refused = || format!("{name} gets arguments that are not in the text");
    let takes_files = |record: &&Record| {
        record.search.as_ref().is_none_or(|search| !search.recurses.is_empty() && !search.is_flat)
            && record.read_only.as_ref().is_some_and(|read_only| {
                matches!(read_only.operands, Operands::Paths | Operands::PatternThenPaths)
            })
    };
    lookup::read_only_record(name).filter(takes_files).ok_or_else(refused)?;
    let mut whole = words.to_vec();
    whole.push(Word { text: "listed".into(), ..Word::default() });
    let paths = read_paths(&whole, true, cwds, folders).ok_or_else(refused)?;
    if paths.search.is_some() || paths.operands.last() != Some(&words.len()) {
        return Err(refused());
    }
    let mut reads = file_reads(&whole, true, cwds, folders)?;
    if paths.shows == FileOutput::Content && folders.has_file_rules {
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
