//! Finds the records of a command.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::shell::lex::word::Word;
use crate::shell::programs::record::options::Options;
use crate::shell::programs::record::runs::{HowItRuns, RunsCommand, Transparent, verbs_of};
use crate::shell::programs::record::words::Words;
use crate::shell::programs::record::{Family, Record};

/// The records of all programs, by family.
const FAMILIES: &[&str] = &[
    include_str!("data/archives.toml"),
    include_str!("data/build.toml"),
    include_str!("data/cloud.toml"),
    include_str!("data/databases.toml"),
    include_str!("data/documents.toml"),
    include_str!("data/files.toml"),
    include_str!("data/forges.toml"),
    include_str!("data/git.toml"),
    include_str!("data/git_read_only.toml"),
    include_str!("data/interpreters.toml"),
    include_str!("data/languages.toml"),
    include_str!("data/machine.toml"),
    include_str!("data/network.toml"),
    include_str!("data/node.toml"),
    include_str!("data/python.toml"),
    include_str!("data/runners.toml"),
    include_str!("data/rust.toml"),
    include_str!("data/search.toml"),
    include_str!("data/shells.toml"),
    include_str!("data/system.toml"),
    include_str!("data/text.toml"),
    include_str!("data/version_control.toml"),
];

static RECORDS: LazyLock<Vec<Record>> = LazyLock::new(|| {
    let parse = |text: &&str| toml::from_str::<Family>(text).expect("a file of records").complete();
    FAMILIES.iter().flat_map(parse).collect()
});

/// The records of a name.
#[derive(Default)]
struct Entry {
    arguments: Option<&'static Record>,
    read_only: Option<&'static Record>,
    runs: Option<&'static RunsCommand>,
    runs_with: Option<&'static Words>,
    transparent: Option<&'static Transparent>,
    verbs: FxHashMap<&'static str, &'static Record>,
    read_only_verbs: Vec<&'static Record>,
}

static INDEX: LazyLock<FxHashMap<&'static str, Entry>> = LazyLock::new(|| {
    let mut index: FxHashMap<&'static str, Entry> = FxHashMap::default();
    for record in RECORDS.iter() {
        for name in record.names.iter() {
            index.entry(name).or_default().add(name, record);
        }
    }
    index
});

impl Entry {
    /// Adds what a record says about a name. The first record with a field decides it.
    fn add(&mut self, name: &str, record: &'static Record) {
        if record.effect.is_some() {
            self.arguments = self.arguments.or(Some(record));
        }
        if record.read_only.as_ref().is_some_and(|use_| use_.only_for.is_empty_or_has(name)) {
            self.read_only = self.read_only.or(Some(record));
        }
        self.runs = self.runs.or(record.runs.as_ref());
        self.transparent = self.transparent.or(record.transparent.as_ref());
        self.runs_with = self.runs_with.or_else(|| verbs_of(&record.runs_with, name));
        for verb in record.verb.iter().filter(|verb| verb.only_for.is_empty_or_has(name)) {
            if verb.read_only.is_some() {
                self.read_only_verbs.push(verb);
            }
            for name in verb.names.iter().filter(|_| verb.effect.is_some()) {
                self.verbs.entry(name).or_insert(verb);
            }
        }
    }
}

/// The records for the arguments of a command: of its program, and of its verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandRecords {
    pub(crate) program: Option<&'static Record>,
    pub(crate) verb: Option<&'static Record>,
}

/// Finds the records of a command. Versions are removed from the name: `python3.11` is `python`.
pub(crate) fn find_records(words: &[Word]) -> CommandRecords {
    let none = CommandRecords { program: None, verb: None };
    let Some(entry) = words.first().and_then(|first| INDEX.get(stem(&first.text))) else { return none };
    let verb = find_verb(words, entry.arguments)
        .and_then(|index| entry.verbs.get(words[index].text.as_str()).copied());
    CommandRecords { program: entry.arguments, verb }
}

/// The record for the arguments of a program.
pub(crate) fn argument_record(name: &str) -> Option<&'static Record> {
    INDEX.get(name)?.arguments
}

/// All options of a program before its verb, if they are known.
pub(crate) fn own_options(name: &str) -> Option<&'static Options> {
    argument_record(name)?.own_options.as_ref()
}

/// Whether a program itself has this verb.
pub(crate) fn is_known_verb(name: &str, verb: &str) -> bool {
    let verbs = argument_record(name).and_then(|record| verbs_of(&record.known_verbs, name));
    verbs.is_some_and(|verbs| verbs.has(verb))
}

/// The record of a program with a read-only use.
pub(crate) fn read_only_record(name: &str) -> Option<&'static Record> {
    INDEX.get(name)?.read_only
}

/// Whether verbs of a program have a read-only use.
pub(crate) fn has_read_only_verbs(name: &str) -> bool {
    INDEX.get(name).is_some_and(|entry| !entry.read_only_verbs.is_empty())
}

/// The record of a verb with a read-only use, and whether the verb has two words: `stash list`.
pub(crate) fn read_only_verb(
    name: &str,
    verb: &str,
    next_word: Option<&str>,
) -> Option<(&'static Record, bool)> {
    let verbs = &INDEX.get(name)?.read_only_verbs;
    let of_two = |record: &&&Record| {
        record.after.as_deref() == Some(verb) && next_word.is_some_and(|word| record.names.has(word))
    };
    let of_one = |record: &&&Record| record.after.is_none() && record.names.has(verb);
    let in_two = verbs.iter().find(of_two).map(|record| (*record, true));
    in_two.or_else(|| verbs.iter().find(of_one).map(|record| (*record, false)))
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
    // A recorded name with digits keeps them: `7z`, `md5sum`.
    if !stem.is_empty() && stem.len() < name.len() && argument_record(name).is_none() { stem } else { name }
}

/// Position of the verb: the first word that is neither an option nor an option's value.
pub(crate) fn find_verb(words: &[Word], program: Option<&Record>) -> Option<usize> {
    let takes_value = |text: &str| program.is_some_and(|record| record.takes_value.has(text));
    let mut index = 1;
    while let Some(word) = words.get(index) {
        if !word.text.starts_with('-') && !word.text.starts_with('+') {
            return Some(index);
        }
        index += if takes_value(&word.text) { 2 } else { 1 };
    }
    None
}

/// Same as [`verb`], with the program's own record.
pub(crate) fn find_own_verb(words: &[Word]) -> Option<usize> {
    find_verb(words, words.first().and_then(|first| argument_record(stem(&first.text))))
}

/// The record of a transparent wrapper, by its name as written.
pub(crate) fn transparent_wrapper(name: &str) -> Option<&'static Transparent> {
    INDEX.get(name)?.transparent
}

/// How a program runs other commands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runner {
    /// Options that take the next word, and the number of words before the command.
    pub(crate) takes_value: &'static [&'static str],
    pub(crate) words_before: usize,
    /// It only runs the command that follows these.
    pub(crate) runs_command: bool,
    pub(crate) is_shell: bool,
    /// It runs something; only the name is known.
    pub(crate) is_unknown: bool,
    /// A builtin that takes names of commands and does not run them.
    pub(crate) never_runs: bool,
    /// Verbs with which it runs a command.
    pub(crate) verbs: &'static [&'static str],
}

/// Finds a program by its name without folders. If only the name counts, a version at its end is
/// ignored: `bash5` is a shell.
pub(crate) fn find_runner(name: &str) -> Runner {
    let entry = |name: &str| {
        let entry = INDEX.get(name).filter(|entry| entry.runs.is_some() || entry.runs_with.is_some())?;
        let how = entry.runs.map(|runs| runs.how);
        Some(Runner {
            takes_value: entry.runs.map_or(&[], |runs| &*runs.takes_value),
            words_before: entry.runs.map_or(0, |runs| runs.words_before),
            runs_command: how == Some(HowItRuns::Command),
            is_shell: how == Some(HowItRuns::Script),
            is_unknown: how == Some(HowItRuns::Unknown),
            never_runs: how == Some(HowItRuns::Never),
            verbs: entry.runs_with.map_or(&[], |verbs| &**verbs),
        })
    };
    let mut runner = entry(name).unwrap_or_default();
    let plain = stem(name);
    if let Some(plain) = entry(plain).filter(|_| plain != name) {
        runner.is_shell = plain.is_shell;
        runner.is_unknown |= plain.is_unknown;
        if runner.verbs.is_empty() {
            runner.verbs = plain.verbs;
        }
    }
    runner.is_unknown |= ["s6-", "qemu-", "ld-linux", "ld-musl"].iter().any(|begin| name.starts_with(begin));
    runner
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_name_has_one_record_for_its_arguments_and_one_for_its_reads() {
        let twice = |names: Vec<&'static str>| -> Vec<&'static str> {
            let mut seen = HashSet::new();
            names.into_iter().filter(|name| !seen.insert(*name)).collect()
        };
        let names = |is_meant: &dyn Fn(&Record) -> bool| -> Vec<&'static str> {
            RECORDS
                .iter()
                .filter(|record| is_meant(record))
                .flat_map(|record| record.names.to_vec())
                .collect()
        };
        assert_eq!(twice(names(&|record| record.effect.is_some())), [""; 0]);
        assert_eq!(twice(names(&|record| record.runs.is_some())), [""; 0]);
        for record in RECORDS.iter() {
            let all_names = |verb: &Record| {
                verb.only_for.iter().chain(record.names.iter()).copied().collect::<HashSet<_>>()
            };
            assert!(
                record.verb.iter().all(|verb| all_names(verb).len() == record.names.len()),
                "{:?}",
                record.names
            );
        }
    }

    #[test]
    fn listed_words_have_the_form_that_their_field_expects() {
        let all = RECORDS.iter().flat_map(|record| std::iter::once(record).chain(&record.verb));
        for record in all {
            let options = [&record.asks, &record.asks_outside, &record.takes_value, &record.target_options];
            for option in options.into_iter().flat_map(|list| list.iter()) {
                assert!(option.len() > 1 && option.starts_with(['-', '/']), "{option} of {:?}", record.names);
            }
            assert!(record.asks_for.iter().all(|word| !word.starts_with('-')), "{:?}", record.names);
        }
    }
}
