//! Read-only uses of builtins: `command -v`, `echo`, `printf`, `test`.

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::operands::has_word;
use crate::shell::programs::record::read_only::FileOutput;
use crate::shell::read_only::ReadPaths;

/// Whether the builtin has its own check here.
pub(super) fn is_builtin(name: &str) -> bool {
    matches!(name, "command" | "echo" | "printf" | "test" | "[")
}

/// The paths that a builtin reads.
pub(super) fn read_paths(words: &[Word]) -> Option<ReadPaths> {
    match words[0].text.as_str() {
        "command" => command_lookup_paths(words),
        "echo" => words[1..].iter().all(is_printable).then_some(ReadPaths::READS_NOTHING),
        "printf" => printf_paths(words),
        _ => test_paths(words),
    }
}

/// Whether a word is literal, a number, or holds the name of a file that a loop found.
fn is_printable(word: &Word) -> bool {
    let is_name = word.marks.has_any(Marks::LOOPED) || word.marks.has_any(Marks::SPLIT);
    ![Marks::EXPANDS, Marks::BRACE, Marks::HOME, Marks::TILDE].iter().any(|mark| word.marks.has_any(*mark))
        && (is_name || !word.marks.has_any(Marks::GLOB))
}

/// `command -v git`.
fn command_lookup_paths(words: &[Word]) -> Option<ReadPaths> {
    let is_plain = words.len() == 3 && words.iter().all(Word::is_literal);
    (is_plain && matches!(words[1].text.as_str(), "-v" | "-V")).then_some(ReadPaths::READS_NOTHING)
}

/// `printf FORMAT …`: only format directives that print. `%n` assigns.
fn printf_paths(words: &[Word]) -> Option<ReadPaths> {
    let index = if words.get(1)?.text == "--" { 2 } else { 1 };
    let format = words.get(index)?;
    // A width with many digits floods the output.
    let prints = |rest: &str| {
        let kind = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #'.".contains(c));
        rest.len() - kind.len() <= 4 && kind.starts_with(|c: char| "sbqdiuxXofeEgGc%".contains(c))
    };
    let kinds = format.text.replace("%%", "");
    let is_harmless =
        format.is_literal() && !format.text.starts_with('-') && kinds.split('%').skip(1).all(prints);
    (is_harmless && words[index..].iter().all(is_printable)).then_some(ReadPaths::READS_NOTHING)
}

/// `test …` and `[ … ]`: operators that read files, numbers and texts. `-v` and `-R` evaluate
/// subscripts.
fn test_paths(words: &[Word]) -> Option<ReadPaths> {
    const OPERATORS: &str = "-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S -z -n -o -nt -ot -ef -eq -ne -lt -le -gt -ge";
    let is_fine = |word: &Word| {
        let text = word.text.as_str();
        let letters = text.strip_prefix('-').unwrap_or_default();
        let is_option = !letters.is_empty() && !letters.bytes().all(|c| c.is_ascii_digit());
        is_printable(word)
            && (!text.contains('[') || text == "[")
            && (!is_option || has_word(OPERATORS, text))
    };
    let is_path =
        |index: &usize| !words[*index].text.starts_with('-') && !words[*index].marks.has_any(Marks::NUMBER);
    let paths = (1..words.len()).filter(is_path).collect();
    words.iter().all(is_fine).then_some(ReadPaths::new(FileOutput::Names, paths))
}
