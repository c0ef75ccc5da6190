//! `find` with only read-only tests and actions.

use crate::shell::lex::word::Word;
use crate::shell::read_only::ReadPaths;
use crate::shell::read_only::programs::FileOutput;

/// Tests and actions without an argument.
const FLAGS: &str = "-not ! ( ) -a -and -o -or , -depth -d -mount -xdev -empty -executable -readable -writable -true -false -print -print0 -ls -prune -quit -daystart -nouser -nogroup -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race";

/// Tests with an argument that names no file.
const VALUES: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -size -amin -atime -cmin -ctime -mmin -mtime -used -newermt -newerat -newerct -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -fstype -printf";

/// Tests with an argument that names a file.
const FILES: &str = "-newer -anewer -cnewer -samefile";

/// The paths that it reads: first folders, then the tests for the files in them. It treats any word
/// after an option as its value.
pub(super) fn read_paths(words: &[Word]) -> Option<ReadPaths> {
    if !words.iter().all(Word::is_literal) {
        return None;
    }
    let is_in = |list: &str, text: &str| list.split(' ').any(|own| own == text);
    let begins =
        |word: &Word| word.text.starts_with('-') || matches!(word.text.as_str(), "!" | "(" | ")" | ",");
    let from = words.iter().position(begins).unwrap_or(words.len());
    let mut paths: Vec<usize> = (1..from).collect();
    let mut at = from;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        at += match text {
            _ if is_in(FLAGS, text) => 1,
            _ if words.len() == at + 1 => return None,
            _ if is_in(VALUES, text) => 2,
            _ if is_in(FILES, text) => {
                paths.push(at + 1);
                2
            }
            _ => return None,
        };
    }
    Some(ReadPaths { shows: FileOutput::Names, paths })
}
