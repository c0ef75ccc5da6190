//! Finds the records of a command.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::shell::lex::word::Word;
use crate::shell::programs::records::PROGRAMS;
use crate::shell::programs::table::Row;

/// The rows for a command: one for the program, one for its verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramRows {
    pub(super) program: Option<&'static Row>,
    pub(super) verb: Option<&'static Row>,
}

/// Finds the rows of a command. Versions are removed from the name: `python3.11` is `python`.
pub(crate) fn rows(words: &[Word]) -> ProgramRows {
    let Some(first) = words.first() else { return ProgramRows { program: None, verb: None } };
    let name = stem(&first.text);
    let program = row(name);
    let verb = verb(words, program).and_then(|at| row(&format!("{name} {}", words[at].text)));
    ProgramRows { program, verb }
}

/// The name without folder and version.
pub(crate) fn stem(text: &str) -> &str {
    let folder = text.bytes().rposition(|byte| byte == b'/').map_or(0, |slash| slash + 1);
    let name = &text[folder..];
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let hyphens = name.bytes().filter(|byte| *byte == b'-').count();
    // `x86_64-linux-gnu-gcc`
    let name =
        if hyphens >= 3 { name.split_once("-linux-gnu-").map_or(name, |(_, tool)| tool) } else { name };
    // `arm-none-eabi-gcc`
    const CROSS: &[&str] = &[
        "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "ar", "nm", "objcopy", "objdump", "strip",
        "gdb",
    ];
    let name = match name.rsplit_once('-').filter(|_| hyphens > 1) {
        Some((_, tool)) if name.matches('-').count() > 1 && CROSS.contains(&tool) => tool,
        _ => name,
    };
    let version = name.bytes().rev().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let stem = &name[..name.len() - version];
    let stem = stem.strip_suffix('-').filter(|_| stem.len() < name.len()).unwrap_or(stem);
    // A name that is in the table with its digits keeps them: `7z`, `md5sum`.
    if !stem.is_empty() && stem.len() < name.len() && row(name).is_none() { stem } else { name }
}

/// Position of the verb: the first word that is neither an option nor an option's value.
pub(crate) fn verb(words: &[Word], program: Option<&Row>) -> Option<usize> {
    let values = program.map_or(&[][..], |row| &row.values);
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if !word.text.starts_with('-') && !word.text.starts_with('+') {
            return Some(at);
        }
        at += if values.contains(&word.text.as_str()) { 2 } else { 1 };
    }
    None
}

/// Same as [`verb`], with the program's own row.
pub(crate) fn own_verb(words: &[Word]) -> Option<usize> {
    verb(words, words.first().and_then(|first| row(stem(&first.text))))
}

/// The row of a name, or of a name and a verb with a blank between.
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    static INDEX: OnceLock<FxHashMap<&'static str, &'static Row>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let programs =
            PROGRAMS.iter().flat_map(|table| table.rows.iter().map(move |row| Row::from_program(row, table)));
        let rows = ROWS.get_or_init(|| programs.collect());
        let mut index = FxHashMap::default();
        for row in rows {
            for name in row.names.split('|') {
                index.entry(name).or_insert(row);
            }
        }
        index
    });
    index.get(name).copied()
}
