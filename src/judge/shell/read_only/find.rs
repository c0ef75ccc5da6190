//! `find` with only read-only tests and actions.

use crate::shell::lex::word::Word;
use crate::shell::programs::record::read_only::FileOutput;
use crate::shell::read_only::ReadPaths;

/// Tests and actions without an argument.
const FLAGS: &str = "-not ! ( ) -a -and -o -or , -depth -d -mount -xdev -empty -executable -readable -writable -true -false -print -print0 -ls -prune -quit -daystart -nouser -nogroup -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race";

/// Tests with an argument that names no file.
const VALUES: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -size -amin -atime -cmin -ctime -mmin -mtime -used -newermt -newerat -newerct -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -fstype -printf";

/// Tests with an argument that names a file.
const FILES: &str = "-newer -anewer -cnewer -samefile";

/// Tests that join others in another way than all together, and actions with other output than names.
const NOT_PLAIN: &str = "-not ! ( ) -o -or , -prune -ls -printf -quit";

/// The paths that it reads: first folders, then the tests for the files in them. It treats any word
/// after an option as its value.
pub(super) fn read_paths(words: &[Word]) -> Option<ReadPaths> {
    Some(ReadPaths::new(FileOutput::Names, parse(words)?.paths))
}

/// The meaning of the words of `find`.
pub(super) struct FindWords {
    /// Words that name files.
    paths: Vec<usize>,
    /// Words that name the folders to search.
    pub(super) folders: std::ops::Range<usize>,
    /// If the output is a list of names: patterns, one of which each name matches; empty for all names.
    pub(super) names: Option<Vec<String>>,
}

/// The meaning of the words of a `find`; `None` if it has a test or an action that is not known to be harmless.
pub(super) fn parse(words: &[Word]) -> Option<FindWords> {
    if !words.iter().all(Word::is_literal) {
        return None;
    }
    let is_in = |list: &str, text: &str| list.split(' ').any(|listed| listed == text);
    let begins =
        |word: &Word| word.text.starts_with('-') || matches!(word.text.as_str(), "!" | "(" | ")" | ",");
    let from = words.iter().position(begins).unwrap_or(words.len());
    let mut paths: Vec<usize> = (1..from).collect();
    let (mut index, mut is_plain, mut prints) = (from, true, true);
    let mut name = None;
    while let Some(word) = words.get(index) {
        let text = word.text.as_str();
        is_plain &= !is_in(NOT_PLAIN, text);
        prints &= !is_in("-ls -printf", text);
        if text == "-name" {
            name = words.get(index + 1).map(|value| value.text.clone());
        }
        index += match text {
            _ if is_in(FLAGS, text) => 1,
            _ if words.len() == index + 1 => return None,
            _ if is_in(VALUES, text) => 2,
            _ if is_in(FILES, text) => {
                paths.push(index + 1);
                2
            }
            _ => return None,
        };
    }
    let names = prints.then(|| name.filter(|_| is_plain).into_iter().collect());
    Some(FindWords { paths, folders: 1..from, names })
}
