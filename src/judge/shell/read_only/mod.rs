//! Read-only commands inside the workspace, which pass without a rule.
//!
//! Only listed programs pass, with listed options and listed kinds of words. Paths must not be outside
//! the workspace, and a command that shows content must not name a file that likely contains secrets.
//! What the text does not show, such as the targets of links and the files that a search finds, is
//! returned as [`FileRead`]s: the disk decides.

mod builtins;
mod find;
mod git;
mod lists;
mod names;
mod reads;
mod recorded;
mod search;
mod versions;

use crate::file_facts::{FileRead, NameRule, ReadKind, TreeSearch};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::{Folders, Repository};
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::{self, find_records};
use crate::shell::programs::operands::may_become_an_option;
use crate::shell::programs::record::read_only::FileOutput;
pub(crate) use lists::{listed_files, passes_lines, reads_with_listed_files};
pub(crate) use names::is_outside;
#[cfg(test)]
pub(crate) use names::worst_disk;
use names::{
    has_excessive_width, is_harmless_glob, is_harmless_with_any_option, is_output, may_be_folder_above,
};
pub(crate) use reads::redirected_reads;
use reads::{push_reads, reads_of};

/// The paths to check for a command whose options are all known.
struct ReadPaths {
    shows: FileOutput,
    /// The values of options that may name files.
    values: Vec<usize>,
    /// The other words that may name files.
    operands: Vec<usize>,
    /// For a program that shows the content of the files below its operands.
    search: Option<TreeSearch>,
    /// Whether it searches the current folder.
    searches_here: bool,
    /// For a git command that shows changes of files: the words that may limit it to some paths. Without
    /// any, it shows all tracked files.
    patches: Option<Vec<usize>>,
    /// Its operands are revisions and paths of a repository.
    of_repository: bool,
    /// The first word whose effect is not known from the read-only use alone.
    checked_from: usize,
}

impl ReadPaths {
    /// The command reads no files at all.
    const READS_NOTHING: Self = Self::new(FileOutput::Names, Vec::new());

    /// Paths of a command that has only operands.
    const fn new(shows: FileOutput, operands: Vec<usize>) -> Self {
        Self {
            shows,
            values: Vec::new(),
            operands,
            search: None,
            searches_here: false,
            patches: None,
            of_repository: false,
            checked_from: 1,
        }
    }
}

/// What a simple command reads if it only reads, otherwise why it must not run without a rule. `piped`:
/// it gets the output of another command.
pub(crate) fn file_reads(
    words: &[Word],
    piped: bool,
    cwds: &[String],
    folders: &Folders,
) -> Result<Vec<FileRead>, String> {
    let name = words[0].text.as_str();
    if let Some(pins) = versions::version_pins(words) {
        let mut reads = Vec::new();
        push_reads(&mut reads, ".", &ReadKind::Absent(pins), NameRule::Any, cwds);
        return Ok(reads);
    }
    let paths = read_paths(words, piped, cwds, folders);
    let Some(paths) = paths else {
        let is_known = has_read_only_use(name);
        return Err(format!("no rule allows {}{name}", if is_known { "this use of " } else { "" }));
    };
    let has_script = matches!(name, "echo" | "grep" | "egrep" | "fgrep" | "rg" | "sed" | "jq");
    if !has_script && words.iter().any(|word| has_excessive_width(&word.text)) {
        return Err("the output may have too many blanks".into());
    }
    // The repository also contains files above the workspace, so git must name the files that it shows.
    let has_more_files = paths.of_repository && folders.repository == Repository::Above;
    let is_search = paths.search.is_some();
    let names_all_files = || match paths.of_repository {
        true => git::names_what_it_shows(words),
        false => !words.iter().any(|word| word.marks.has_any(Marks::GLOB)),
    };
    if (folders.has_file_rules || has_more_files && !is_search)
        && paths.shows == FileOutput::Content
        && (is_search || !names_all_files())
    {
        return Err(match has_more_files {
            true => "the repository also contains files outside the workspace".into(),
            false => format!("{name} does not name each file that it shows, and a rule restricts reading"),
        });
    }
    let outside = |text: &str| is_outside(text, cwds, folders);
    let call = CommandCall {
        words,
        granted_count: paths.checked_from,
        outside: &outside,
        work_budget: &folders.work_budget,
    };
    if let Some(reason) = find_records(words).request_reason(&call) {
        return Err(reason);
    }
    for index in paths.values.iter().chain(&paths.operands) {
        check_word(name, &words[*index], &paths, cwds, folders)?;
    }
    Ok(reads_of(words, &paths, cwds, folders))
}

/// The meaning of the words of a read-only command.
fn read_paths(words: &[Word], piped: bool, cwds: &[String], folders: &Folders) -> Option<ReadPaths> {
    match words[0].text.as_str() {
        "find" => find::read_paths(words),
        name if builtins::is_builtin(name) => builtins::read_paths(words),
        name if lookup::has_read_only_verbs(name) => git::read_paths(words, cwds, folders),
        name => lookup::read_only_record(name).and_then(|record| recorded::read_paths(words, record, piped)),
    }
}

/// Whether some use of the program is read-only.
fn has_read_only_use(name: &str) -> bool {
    name == "find"
        || builtins::is_builtin(name)
        || lookup::has_read_only_verbs(name)
        || lookup::read_only_record(name).is_some()
}

/// Whether the command only prints the version of its program.
pub(crate) fn prints_version(words: &[Word]) -> bool {
    versions::version_pins(words).is_some()
}

/// Checks that a word that may name a file is certain, inside the workspace, and names no secret.
fn check_word(
    name: &str,
    word: &Word,
    paths: &ReadPaths,
    cwds: &[String],
    folders: &Folders,
) -> Result<(), String> {
    let text = word.text.as_str();
    let unknown = [Marks::EXPANDS, Marks::NUMBER, Marks::BRACE, Marks::HOME, Marks::TILDE];
    if unknown.iter().any(|mark| word.marks.has_any(*mark)) {
        return Err(format!("{text} is known only at run time"));
    }
    if text.starts_with('-') && may_become_an_option(word) {
        return Err(format!("{text} may become an option"));
    }
    let shows_content = paths.shows == FileOutput::Content;
    let is_glob = word.marks.has_any(Marks::GLOB);
    let is_plain_name = shows_content || !is_harmless_with_any_option(name);
    if is_glob && is_plain_name && text.split('/').any(may_be_folder_above) {
        return Err(format!("{text} may name the folder above"));
    }
    // git expands path patterns itself, quoted or not, also in the history.
    let is_pathspec = paths.of_repository && paths.search.is_none();
    let is_pattern = is_glob || text.contains(['*', '?', '[']) && !text.starts_with('-');
    if is_pathspec && (is_pattern && shows_content && !is_harmless_glob(text))
        || paths.of_repository && text.starts_with(if is_pathspec { ":(" } else { ":" })
    {
        return Err(format!("{text} may name a file that likely holds secrets"));
    }
    // This includes `git show HEAD:.env`.
    for (path, home) in resolve::candidates(word).iter().filter(|(path, _)| !path.is_empty()) {
        let leaves_workspace = path.starts_with('/') || path.split('/').any(|part| part == "..");
        if *home || leaves_workspace && (is_outside(path, cwds, folders) || is_output(path)) {
            return Err(format!("{text} lies outside the workspace"));
        }
        if shows_content && folders.may_name_secret(path, cwds) {
            return Err(format!("it may read {text}, which likely holds secrets"));
        }
    }
    Ok(())
}
