//! Read-only commands inside the workspace, which pass without a rule.
//!
//! Only listed programs pass, with listed options and listed kinds of words. Paths must not be outside
//! the workspace, and a command that shows content must not name a file that likely contains secrets.

mod find;
mod git;
mod programs;

use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::Folders;
use crate::shell::paths::resolve::Repository;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::escape_options::may_become_an_option;
use crate::shell::programs::lookup::rows;
use crate::shell::programs::option_spec::{OptionValue, ParsedOptions};
use programs::{FileOutput, Operands, ReadOnlyProgram};

/// The paths to check for a command whose options are all known.
struct ReadPaths {
    shows: FileOutput,
    /// The words that may name files.
    paths: Vec<usize>,
}

impl ReadPaths {
    /// The command reads no files at all.
    const READS_NOTHING: Self = Self { shows: FileOutput::Names, paths: Vec::new() };
}

/// Whether a simple command must not run without a rule.
pub(crate) fn refuses(words: &[Word], cwds: &[String], folders: &Folders) -> bool {
    let name = words[0].text.as_str();
    let look = match name {
        "command" => command_lookup_paths(words),
        "echo" => words[1..].iter().all(is_literal_or_number).then_some(ReadPaths::READS_NOTHING),
        "printf" => printf_paths(words),
        "test" | "[" => test_paths(words),
        "find" => find::read_paths(words),
        "git" => git::read_paths(words, cwds, folders),
        _ => programs::program(name).and_then(|row| table_paths(words, row)),
    };
    let Some(look) = look else { return true };
    if !matches!(name, "echo" | "grep" | "sed") && words.iter().any(|word| has_excessive_width(&word.text)) {
        return true;
    }
    // The repository also contains files above the workspace, so git must name the files that it shows.
    let is_more = name == "git" && folders.repository == Repository::Above;
    let is_kept = || {
        (folders.has_file_rules || is_more)
            && look.shows == FileOutput::Content
            && !spells_out_what_it_shows(words)
    };
    let outside = |text: &str| is_outside(text, cwds, folders);
    let granted = if name == "git" { git::verb_at(words) + 1 } else { 1 };
    let call = CommandCall { words, granted, outside: &outside, work_budget: &folders.work_budget };
    let leaves = |at: &usize| is_refused_word(name, &words[*at], look.shows, cwds, folders);
    is_kept() || rows(words).request_reason(&call).is_some() || look.paths.iter().any(leaves)
}

/// Whether a format requests an excessive number of blanks: `%999999s`.
fn has_excessive_width(text: &str) -> bool {
    text.match_indices('%').any(|(at, _)| {
        let width = text[at + 1..].trim_start_matches(|c: char| "-+ #'0^_<>|(,.".contains(c));
        width.bytes().take_while(u8::is_ascii_digit).count() > 3
    })
}

/// Whether a word is literal or a number.
fn is_literal_or_number(word: &Word) -> bool {
    ![Marks::EXPANDS, Marks::GLOB, Marks::BRACE, Marks::HOME, Marks::TILDE]
        .iter()
        .any(|mark| word.marks.has(*mark))
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
    (is_tame && words[at..].iter().all(is_literal_or_number)).then_some(ReadPaths::READS_NOTHING)
}

/// `test …` and `[ … ]`: operators that read files, numbers and texts. `-v` and `-R` evaluate
/// subscripts.
fn test_paths(words: &[Word]) -> Option<ReadPaths> {
    const OPERATORS: &str = "-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S -z -n -o -nt -ot -ef -eq -ne -lt -le -gt -ge";
    let is_fine = |word: &Word| {
        let text = word.text.as_str();
        let behind = text.strip_prefix('-').unwrap_or_default();
        let is_option = !behind.is_empty() && !behind.bytes().all(|c| c.is_ascii_digit());
        is_literal_or_number(word)
            && (!text.contains('[') || text == "[")
            && (!is_option || OPERATORS.split(' ').any(|own| own == text))
    };
    let is_path = |at: &usize| !words[*at].text.starts_with('-') && !words[*at].marks.has(Marks::NUMBER);
    let paths = (1..words.len()).filter(is_path).collect();
    words.iter().all(is_fine).then_some(ReadPaths { shows: FileOutput::Names, paths })
}

/// The paths to check for a program of the table.
fn table_paths(words: &[Word], row: &ReadOnlyProgram) -> Option<ReadPaths> {
    let asks_for_help =
        |word: &Word| word.is_literal() && matches!(word.text.as_str(), "--help" | "--version");
    if words.len() == 2 && asks_for_help(&words[1]) {
        return Some(ReadPaths::READS_NOTHING);
    }
    let parts = row.options.parts(words)?;
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
        Operands::Files => {
            operands.iter().map(word).all(|word| names_a_file(&word.text)).then_some(operands)?
        }
        Operands::PatternThenPaths if parts.has(&["e", "--expression", "--regexp"]) => operands,
        Operands::PatternThenPaths => {
            let (pattern, paths) = operands.split_first()?;
            word(pattern).is_literal().then_some(paths)?
        }
    };
    let mut paths = values_that_may_be_paths(&parts);
    paths.extend(of_operands);
    Some(ReadPaths { shows: row.shows, paths })
}

/// The values that may name files. If options end at the first operand, all later words are files.
fn values_that_may_be_paths(parts: &ParsedOptions<'_>) -> Vec<usize> {
    let first = parts.operands.first().copied().unwrap_or(usize::MAX);
    let is_path =
        |value_kind| !matches!(value_kind, OptionValue::Nothing | OptionValue::Number | OptionValue::Pattern);
    let of_options = parts.options.iter().filter(|option| is_path(option.value_kind) || option.at > first);
    of_options.filter_map(|option| option.value_at).collect()
}

/// Whether a word that may name a file is outside the workspace, may show secrets, or is unknown.
fn is_refused_word(name: &str, word: &Word, shows: FileOutput, cwds: &[String], folders: &Folders) -> bool {
    let text = word.text.as_str();
    let unknown = [Marks::EXPANDS, Marks::NUMBER, Marks::BRACE, Marks::HOME, Marks::TILDE];
    if unknown.iter().any(|mark| word.marks.has(*mark)) || text.starts_with('-') && may_become_an_option(word)
    {
        return true;
    }
    let is_glob = word.marks.has(Marks::GLOB);
    // git expands path patterns itself, quoted or not.
    let is_pattern = is_glob || name == "git" && text.contains(['*', '?', '[']) && !text.starts_with('-');
    // `wc` prints only counts for its files, also for a source file.
    let is_harmless =
        is_harmless_with_any_option(name) || name == "wc" && !text.contains('/') && is_tame_glob(text);
    if is_glob && text.starts_with(['.', '*', '?', '[']) && !is_harmless
        || is_pattern && shows == FileOutput::Content && !is_tame_glob(text)
        || name == "git" && text.starts_with(":(")
    {
        return true;
    }
    // This includes `git show HEAD:.env`.
    resolve::candidates(word, false).iter().filter(|(path, _)| !path.is_empty()).any(|(path, home)| {
        *home
            || (path.starts_with('/') || path.split('/').any(|part| part == ".."))
                && (is_outside(path, cwds, folders) || is_output(path))
            || shows == FileOutput::Content && folders.may_name_secret(path, cwds)
    })
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
