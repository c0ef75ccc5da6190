//! Read-only commands inside the workspace, which pass without a rule.
//!
//! Only listed programs pass, with listed options and listed kinds of words. Paths must not be outside
//! the workspace, and a command that shows content must not name a file that likely contains secrets.
//! What the text does not show, such as the targets of links and the files that a search finds, is
//! returned as [`FileRead`]s: the disk decides.

mod find;
mod git;
mod lists;
mod programs;
mod search;

use crate::file_facts::{FileRead, NameRule, ReadKind, Selection, TreeSearch};
use crate::shell::lex::syntax::{RedirKind, SimpleCommand};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::Folders;
use crate::shell::paths::resolve::Repository;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::escape_options::may_become_an_option;
use crate::shell::programs::lookup::rows;
use crate::shell::programs::option_spec::{OptionValue, ParsedOptions};
pub(crate) use lists::{fed_reads, listed_files, passes_lines};
use programs::{FileOutput, Operands, ReadOnlyProgram};

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
}

impl ReadPaths {
    /// The command reads no files at all.
    const READS_NOTHING: Self = Self::new(FileOutput::Names, Vec::new());

    const fn new(shows: FileOutput, operands: Vec<usize>) -> Self {
        Self { shows, values: Vec::new(), operands, search: None, searches_here: false, patches: None }
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
    if let Some(pins) = programs::version_pins(words) {
        let mut reads = Vec::new();
        push_reads(&mut reads, ".", &ReadKind::Absent(pins), NameRule::Any, cwds);
        return Ok(reads);
    }
    let look = read_paths(words, piped, cwds, folders);
    let Some(look) = look else {
        let is_known = is_special(name) || programs::program(name).is_some();
        return Err(format!("no rule allows {}{name}", if is_known { "this use of " } else { "" }));
    };
    let has_script = matches!(name, "echo" | "grep" | "egrep" | "fgrep" | "rg" | "sed" | "jq");
    if !has_script && words.iter().any(|word| has_excessive_width(&word.text)) {
        return Err("the output may have too many blanks".into());
    }
    // The repository also contains files above the workspace, so git must name the files that it shows.
    let is_more = name == "git" && folders.repository == Repository::Above;
    let is_search = look.search.is_some();
    if (folders.has_file_rules || is_more && !is_search)
        && look.shows == FileOutput::Content
        && (is_search || !spells_out_what_it_shows(words))
    {
        return Err(match is_more {
            true => "the repository also contains files outside the workspace".into(),
            false => format!("{name} does not name each file that it shows, and a rule restricts reading"),
        });
    }
    let outside = |text: &str| is_outside(text, cwds, folders);
    let granted = if name == "git" { git::verb_at(words) + 1 } else { 1 };
    let call = CommandCall { words, granted, outside: &outside, work_budget: &folders.work_budget };
    if let Some(reason) = rows(words).request_reason(&call) {
        return Err(reason);
    }
    for at in look.values.iter().chain(&look.operands) {
        check_word(name, &words[*at], &look, cwds, folders)?;
    }
    Ok(reads_of(words, &look, cwds, folders))
}

/// The meaning of the words of a read-only command.
fn read_paths(words: &[Word], piped: bool, cwds: &[String], folders: &Folders) -> Option<ReadPaths> {
    let name = words[0].text.as_str();
    match name {
        "command" => command_lookup_paths(words),
        "echo" => words[1..].iter().all(is_printable).then_some(ReadPaths::READS_NOTHING),
        "printf" => printf_paths(words),
        "test" | "[" => test_paths(words),
        "find" => find::read_paths(words),
        "git" => git::read_paths(words, cwds, folders),
        _ => programs::program(name).and_then(|row| table_paths(words, row, piped)),
    }
}

/// Programs that have no row in the table.
fn is_special(name: &str) -> bool {
    matches!(name, "command" | "echo" | "printf" | "test" | "[" | "find" | "git")
}

/// Whether the command only prints the version of its program.
pub(crate) fn prints_version(words: &[Word]) -> bool {
    programs::version_pins(words).is_some()
}

/// The reads of the words, to be checked on the disk.
fn reads_of(words: &[Word], look: &ReadPaths, cwds: &[String], folders: &Folders) -> Vec<FileRead> {
    let name = words[0].text.as_str();
    let mut reads = Vec::new();
    let kind = match look.shows {
        FileOutput::Names => ReadKind::Names,
        FileOutput::Content => ReadKind::File,
    };
    // git does not follow links.
    let is_git = name == "git";
    let (values, operands) = match (is_git, &look.patches) {
        (true, Some(limits)) => (&[][..], limits.as_slice()),
        (true, None) => (&[][..], if look.search.is_some() { look.operands.as_slice() } else { &[] }),
        (false, _) => (look.values.as_slice(), look.operands.as_slice()),
    };
    let search = match &look.patches {
        Some(_) => Some(TreeSearch { selection: Selection::Patches, hidden: true, ..TreeSearch::default() }),
        None => look.search.clone(),
    };
    let searches_here = look.searches_here || look.patches.as_ref().is_some_and(Vec::is_empty);
    for at in values {
        for (path, _) in resolve::candidates(&words[*at], false) {
            push_reads(&mut reads, path, &kind, NameRule::Any, cwds);
        }
    }
    for at in operands {
        let word = &words[*at];
        let kind = search.clone().map_or_else(|| kind.clone(), ReadKind::Tree);
        let is_glob = word.marks.has(Marks::GLOB);
        let is_pattern = is_glob || is_git && word.text.contains(['*', '?', '[']);
        if let (true, true, ReadKind::Tree(search)) = (is_git, is_pattern, &kind) {
            // `*` in a pattern of git matches slashes, too.
            let ending = word.text.strip_prefix("*.").filter(|rest| !rest.contains('/'));
            let includes = ending.map(|_| word.text.clone()).into_iter().collect();
            let search = TreeSearch { includes, ..search.clone() };
            push_reads(&mut reads, ".", &ReadKind::Tree(search), NameRule::Any, cwds);
            continue;
        }
        let from = reads.len();
        push_reads(&mut reads, &word.text, &kind, name_rule(name, word), cwds);
        reads[from..].iter_mut().for_each(|read| read.is_pattern = is_glob);
    }
    if let Some(search) = search.filter(|_| searches_here) {
        push_reads(&mut reads, ".", &ReadKind::Tree(search), NameRule::Any, cwds);
    }
    // A `cd` may have followed a link.
    for cwd in cwds.iter().filter(|cwd| **cwd != folders.workspace) {
        push_reads(&mut reads, ".", &ReadKind::Names, NameRule::Any, std::slice::from_ref(cwd));
    }
    reads
}

/// Adds the reads of a path from each possible folder.
fn push_reads(reads: &mut Vec<FileRead>, path: &str, kind: &ReadKind, names: NameRule, cwds: &[String]) {
    if matches!(path, "" | "-" | "/dev/null" | "/dev/stdin") {
        return;
    }
    let mut add = |path: String| {
        reads.push(FileRead { path, is_pattern: false, kind: kind.clone(), names });
    };
    match (path.starts_with('/'), path) {
        (true, _) => add(path.to_owned()),
        (false, ".") => cwds.iter().for_each(|cwd| add(cwd.clone())),
        (false, _) => cwds.iter().for_each(|cwd| add(format!("{}/{path}", cwd.trim_end_matches('/')))),
    }
}

/// The condition for the names that a pattern finds.
fn name_rule(name: &str, word: &Word) -> NameRule {
    let text = word.text.as_str();
    // `wc` prints only counts for its files, also for a source file.
    let is_harmless =
        is_harmless_with_any_option(name) || name == "wc" && !text.contains('/') && is_tame_glob(text);
    if !word.marks.has(Marks::GLOB) {
        NameRule::Any
    } else if word.marks.has(Marks::SPLIT) || matches!(name, "test" | "[") {
        NameRule::Plain
    } else if text.starts_with(['*', '?', '[']) && !is_harmless {
        NameRule::NoOption
    } else {
        NameRule::Any
    }
}

/// The files that input redirections read.
pub(crate) fn redirected_reads(
    command: &SimpleCommand,
    cwds: &[String],
    folders: &Folders,
) -> Result<Vec<FileRead>, String> {
    let mut reads = Vec::new();
    for redir in command.redirs.iter().filter(|redir| redir.kind == RedirKind::Input) {
        let text = redir.target.text.as_str();
        if folders.may_name_secret(text, cwds) {
            return Err(format!("{text} may hold a secret"));
        }
        push_reads(&mut reads, text, &ReadKind::File, NameRule::Any, cwds);
    }
    Ok(reads)
}

/// Whether a format requests an excessive number of blanks: `%999999s`.
fn has_excessive_width(text: &str) -> bool {
    text.match_indices('%').any(|(at, _)| {
        let width = text[at + 1..].trim_start_matches(|c: char| "-+ #'0^_<>|(,.".contains(c));
        width.bytes().take_while(u8::is_ascii_digit).count() > 3
    })
}

/// Whether a word is literal, a number, or holds the name of a file that a loop found.
fn is_printable(word: &Word) -> bool {
    let is_name = word.marks.has(Marks::LOOPED) || word.marks.has(Marks::SPLIT);
    ![Marks::EXPANDS, Marks::BRACE, Marks::HOME, Marks::TILDE].iter().any(|mark| word.marks.has(*mark))
        && (is_name || !word.marks.has(Marks::GLOB))
}

/// `command -v git`.
fn command_lookup_paths(words: &[Word]) -> Option<ReadPaths> {
    let is_plain = words.len() == 3 && words.iter().all(Word::is_literal);
    (is_plain && matches!(words[1].text.as_str(), "-v" | "-V")).then_some(ReadPaths::READS_NOTHING)
}

/// `printf FORMAT …`: only format directives that print. `%n` assigns.
fn printf_paths(words: &[Word]) -> Option<ReadPaths> {
    let at = if words.get(1)?.text == "--" { 2 } else { 1 };
    let format = words.get(at)?;
    // A width with many digits floods the output.
    let prints = |rest: &str| {
        let kind = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #'.".contains(c));
        rest.len() - kind.len() <= 4 && kind.starts_with(|c: char| "sbqdiuxXofeEgGc%".contains(c))
    };
    let kinds = format.text.replace("%%", "");
    let is_tame =
        format.is_literal() && !format.text.starts_with('-') && kinds.split('%').skip(1).all(prints);
    (is_tame && words[at..].iter().all(is_printable)).then_some(ReadPaths::READS_NOTHING)
}

/// `test …` and `[ … ]`: operators that read files, numbers and texts. `-v` and `-R` evaluate
/// subscripts.
fn test_paths(words: &[Word]) -> Option<ReadPaths> {
    const OPERATORS: &str = "-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S -z -n -o -nt -ot -ef -eq -ne -lt -le -gt -ge";
    let is_fine = |word: &Word| {
        let text = word.text.as_str();
        let behind = text.strip_prefix('-').unwrap_or_default();
        let is_option = !behind.is_empty() && !behind.bytes().all(|c| c.is_ascii_digit());
        is_printable(word)
            && (!text.contains('[') || text == "[")
            && (!is_option || OPERATORS.split(' ').any(|own| own == text))
    };
    let is_path = |at: &usize| !words[*at].text.starts_with('-') && !words[*at].marks.has(Marks::NUMBER);
    let paths = (1..words.len()).filter(is_path).collect();
    words.iter().all(is_fine).then_some(ReadPaths::new(FileOutput::Names, paths))
}

/// The paths to check for a program of the table.
fn table_paths(words: &[Word], row: &ReadOnlyProgram, piped: bool) -> Option<ReadPaths> {
    let asks_for_help =
        |word: &Word| word.is_literal() && matches!(word.text.as_str(), "--help" | "--version");
    if words.len() == 2 && asks_for_help(&words[1]) {
        return Some(ReadPaths::READS_NOTHING);
    }
    let dashed = row.with_dash(words);
    let words = dashed.as_deref().unwrap_or(words);
    let parts = row.options.parts(words)?;
    if row.refuses_text(words) || !(row.needs.is_empty() || parts.has(row.needs)) {
        return None;
    }
    let word = |at: &usize| &words[*at];
    let operands = parts.operands.as_slice();
    let is_literal = operands.iter().map(word).all(Word::is_literal);
    // In old syntax `+5f` is an option of some programs.
    if row.operands != Operands::Format && operands.iter().any(|at| word(at).text.starts_with('+')) {
        return None;
    }
    let of_operands = match row.operands {
        Operands::Paths => operands,
        // A very large number takes practically for ever.
        Operands::Numbers => {
            let is_small = |word: &Word| {
                word.is_literal() && word.text.len() <= 7 && word.text.bytes().all(|c| c.is_ascii_digit())
            };
            operands.iter().map(word).all(is_small).then_some(&[][..])?
        }
        Operands::Texts => is_literal.then_some(&[][..])?,
        Operands::Nothing => operands.is_empty().then_some(&[][..])?,
        Operands::Format => {
            let is_format = |word: &Word| word.is_literal() && word.text.starts_with('+');
            operands.iter().map(word).all(is_format).then_some(&[][..])?
        }
        // In other implementations a word after a file is not an option.
        Operands::One => {
            let last = parts.options.last().map_or(0, |option| option.at);
            let is_behind = operands.first().is_none_or(|first| last < *first);
            (operands.len() <= 1 && is_literal && is_behind).then_some(operands)?
        }
        Operands::PatternThenPaths if parts.has(&["e", "--expression", "--regexp", "--files"]) => operands,
        Operands::PatternThenPaths => match operands.split_first() {
            Some((pattern, paths)) => word(pattern).is_literal().then_some(paths)?,
            None => row.needs_no_pattern.then_some(&[][..])?,
        },
    };
    let search = row.search.and_then(|spec| spec.search(&parts));
    let shows = if row.lists_names(&parts) { FileOutput::Names } else { row.shows };
    Some(ReadPaths {
        shows,
        values: values_that_may_be_paths(&parts),
        operands: of_operands.to_vec(),
        searches_here: search.is_some() && of_operands.is_empty() && !(piped && row.reads_pipe),
        search: search.filter(|_| shows == FileOutput::Content),
        patches: None,
    })
}

/// The values that may name files. If options end at the first operand, all later words are files.
fn values_that_may_be_paths(parts: &ParsedOptions<'_>) -> Vec<usize> {
    let first = parts.operands.first().copied().unwrap_or(usize::MAX);
    let is_path =
        |value_kind| !matches!(value_kind, OptionValue::Nothing | OptionValue::Number | OptionValue::Pattern);
    let of_options = parts.options.iter().filter(|option| is_path(option.value_kind) || option.at > first);
    of_options.filter_map(|option| option.value_at).collect()
}

/// Checks that a word that may name a file is certain, inside the workspace, and names no secret.
fn check_word(
    name: &str,
    word: &Word,
    look: &ReadPaths,
    cwds: &[String],
    folders: &Folders,
) -> Result<(), String> {
    let text = word.text.as_str();
    let unknown = [Marks::EXPANDS, Marks::NUMBER, Marks::BRACE, Marks::HOME, Marks::TILDE];
    if unknown.iter().any(|mark| word.marks.has(*mark)) {
        return Err(format!("{text} is known only at run time"));
    }
    if text.starts_with('-') && may_become_an_option(word) {
        return Err(format!("{text} may become an option"));
    }
    let shows_content = look.shows == FileOutput::Content;
    let is_glob = word.marks.has(Marks::GLOB);
    let is_plain_name = shows_content || !is_harmless_with_any_option(name);
    if is_glob && is_plain_name && text.split('/').any(may_be_folder_above) {
        return Err(format!("{text} may name the folder above"));
    }
    // git expands path patterns itself, quoted or not, also in the history.
    let is_git = name == "git" && look.search.is_none();
    let is_pattern = is_glob || text.contains(['*', '?', '[']) && !text.starts_with('-');
    if is_git && (is_pattern && shows_content && !is_tame_glob(text))
        || name == "git" && text.starts_with(if is_git { ":(" } else { ":" })
    {
        return Err(format!("{text} may name a file that likely holds secrets"));
    }
    // This includes `git show HEAD:.env`.
    for (path, home) in resolve::candidates(word, false).iter().filter(|(path, _)| !path.is_empty()) {
        let leaves = path.starts_with('/') || path.split('/').any(|part| part == "..");
        if *home || leaves && (is_outside(path, cwds, folders) || is_output(path)) {
            return Err(format!("{text} lies outside the workspace"));
        }
        if shows_content && folders.may_name_secret(path, cwds) {
            return Err(format!("it may read {text}, which likely holds secrets"));
        }
    }
    Ok(())
}

/// Whether a component is a pattern that may match `..`.
fn may_be_folder_above(part: &str) -> bool {
    part.starts_with('.') && part.contains(['*', '?', '[']) && resolve::can_be(part, "..", true)
}

/// Devices for output, which never end when they are read.
fn is_output(path: &str) -> bool {
    matches!(path, "/dev/stdout" | "/dev/stderr")
}

/// Programs whose options all only read files in the workspace without secrets: a file may have the
/// name of an option.
fn is_harmless_with_any_option(name: &str) -> bool {
    matches!(name, "ls" | "cat" | "tac" | "head" | "rev" | "nl" | "stat")
}

/// Whether a command names all files whose content it shows. Otherwise it may show a file that a rule
/// protects.
fn spells_out_what_it_shows(words: &[Word]) -> bool {
    let name = words[0].text.as_str();
    let from = if name == "git" { git::verb_at(words) } else { 0 };
    let (verb, rest) = (words[from].text.as_str(), &words[from + 1..]);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let tells_names = |word: &Word| {
        let text = word.text.as_str();
        !text.starts_with('-')
            || matches!(text, "--oneline" | "--graph" | "--stat" | "--all" | "--decorate" | "-n")
            || text.strip_prefix('-').is_some_and(is_number)
    };
    match (name, verb) {
        // With `-v` it shows the changes.
        ("git", "status") => {
            let is_verbose = |text: &str| {
                text.starts_with("--v")
                    || !text.starts_with("--") && text.starts_with('-') && text.contains('v')
            };
            !rest.iter().any(|word| is_verbose(&word.text))
        }
        (
            "git",
            "rev-parse" | "ls-files" | "describe" | "merge-base" | "branch" | "tag" | "remote" | "shortlog",
        ) => true,
        ("git", "log") => rest.iter().all(tells_names),
        ("git", _) => false,
        _ => !rest.iter().any(|word| word.marks.has(Marks::GLOB)),
    }
}

/// A disk on which each pattern matches a secret unless its ending says otherwise, and each searched
/// folder holds one, which git does not track.
#[cfg(test)]
pub(crate) fn worst_disk(read: &FileRead) -> Option<crate::file_facts::Obstacle> {
    use crate::file_facts::{Obstacle, ObstacleKind};
    let path = read.path.as_str();
    let kind = match &read.kind {
        _ if read.is_pattern && read.names != NameRule::Any => ObstacleKind::OddName,
        ReadKind::File if read.is_pattern && !is_tame_glob(path) => ObstacleKind::Secret,
        ReadKind::Tree(search) if search.selection == Selection::Patches => return None,
        ReadKind::Tree(_) if read.is_pattern || !names_a_file(path) => ObstacleKind::Secret,
        ReadKind::Absent(_) => ObstacleKind::ChoosesProgram,
        ReadKind::Names | ReadKind::File | ReadKind::Tree(_) => return None,
    };
    Some(Obstacle { path: read.path.clone(), kind })
}

/// Whether a path has an extension that folders rarely have.
fn names_a_file(path: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "txt", "json", "jsonl", "toml", "yaml", "yml", "lock", "csv", "tsv", "xml", "sh", "diff", "patch",
        "ini", "cfg", "svg",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, ending)| ending);
    CODE.contains(&ending) || ENDINGS.contains(&ending)
}

/// Extensions of files with code or prose, whatever their name.
const CODE: &[&str] = &[
    "rs", "py", "go", "ts", "js", "md", "c", "h", "cc", "cpp", "cxx", "hpp", "java", "kt", "rb", "php", "cs",
    "swift", "scala", "tsx", "jsx", "mjs", "cjs", "vue", "svelte", "html", "css", "scss", "sql", "proto",
];

/// Files that exist in most projects and never contain secrets.
const MANIFESTS: &[&str] = &["Cargo.toml", "package.json", "tsconfig.json", "pyproject.toml", "Makefile"];

/// A glob with an extension that determines the kind of file, and that matches no secret file.
fn is_tame_glob(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    if text.split('/').any(|part| part.starts_with('.') && part.len() > 1 && part != "..") {
        return false;
    }
    if MANIFESTS.contains(&name) {
        return true;
    }
    let Some((_, ending)) = name.rsplit_once('.') else { return false };
    !ending.is_empty()
        && ending.bytes().all(|c| c.is_ascii_alphanumeric())
        && !resolve::is_secret(&format!("x.{ending}"))
        && (CODE.contains(&ending) || !text.split('/').any(resolve::may_be_secret))
}

/// Whether a text names something outside the workspace, from any of the possible folders.
pub(crate) fn is_outside(text: &str, cwds: &[String], folders: &Folders) -> bool {
    if text.is_empty() || text == "-" {
        return false;
    }
    if text.starts_with('~') || text.contains("://") || text.contains('$') {
        return true;
    }
    if matches!(text, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr") {
        return false;
    }
    cwds.iter().any(|cwd| !folders.contains_path(&resolve::resolve(text, false, cwd, folders)))
}
