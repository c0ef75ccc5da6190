//! Arguments that look as if they needed a request but are harmless, by their value or by the words around
//! them. Also options of any program with a suspicious name.

use std::sync::LazyLock;

use crate::shell::lex::word::Word;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::argument_record;
use crate::shell::programs::record::Record;
use crate::shell::programs::record::rules::Exception;
use crate::shell::programs::record::runs::verbs_of;
use crate::shell::programs::record::words::Words;

/// Words with a meaning in programs of every family; the file says which.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct General {
    suspicious_options: Words,
    no_path_options: Words,
    object_kinds: Words,
    object_lookups: Words,
    pub(crate) harmless_variables: Words,
}

pub(crate) static GENERAL: LazyLock<General> =
    LazyLock::new(|| toml::from_str(include_str!("data/general.toml")).expect("a file of records"));

/// Whether the value of an option is not a path, even if it looks like one: `--base=/app`, `--exclude
/// /x/`.
pub(crate) fn is_no_path(option: &str) -> bool {
    option.len() > 2 && {
        let lower = option.to_ascii_lowercase();
        GENERAL.no_path_options.iter().any(|part| lower.contains(part))
    }
}

/// Whether the name of an option, without dashes, suggests that it runs, loads or writes something.
pub(crate) fn is_suspicious(name: &str) -> bool {
    name.len() > 2
        && !name.starts_with("no-")
        && name.split(['-', '_', '.']).any(is_suspicious_part)
        && !name.ends_with("format")
        && !name.ends_with("color")
        && !name.ends_with("version")
}

/// Whether a part of an option's name is suspicious, or an inner part such as `output` in `outputFile`.
fn is_suspicious_part(part: &str) -> bool {
    let is_listed =
        |text: &str| GENERAL.suspicious_options.iter().any(|part| part.eq_ignore_ascii_case(text));
    let mut begin = 0;
    for (index, _) in part.char_indices().filter(|(_, c)| c.is_ascii_uppercase()) {
        if is_listed(&part[begin..index]) {
            return true;
        }
        begin = index;
    }
    is_listed(&part[begin..]) || is_listed(part)
}

impl Exception {
    /// Whether the exception has a condition for the option's value.
    fn depends_on_value(&self) -> bool {
        !self.values.is_empty()
            || !self.value_begins.is_empty()
            || self.unless_value_begins.is_some()
            || self.without_value
    }

    /// Whether the option passes with this value.
    fn is_harmless_value(&self, value: &str) -> bool {
        self.values.has(value)
            || self.value_begins.has_prefix_of(value) && !value.contains('/')
            || self.unless_value_begins.as_ref().is_some_and(|begin| !value.starts_with(begin.as_str()))
            || self.without_value && (value.is_empty() || value.starts_with('-'))
    }
}

/// Whether an option that usually needs a request has no effect with this value: no file is written, or
/// the value is a component that the program contains.
pub(crate) fn has_no_effect(record: &Record, option: &str, value: &str) -> bool {
    let mut exceptions = record.exceptions.iter().filter(|exception| exception.depends_on_value());
    exceptions.any(|exception| exception.options.has(option) && exception.is_harmless_value(value))
}

/// Whether an option needs a request only in another program of the record, or only with another verb.
pub(crate) fn passes_in_this_program(record: &Record, call: &CommandCall<'_>, text: &str) -> bool {
    record.exceptions.iter().any(|exception| {
        let second = call.words.get(1).map_or("", |word| word.text.as_str());
        let has_word = |wanted: &String| call.words.iter().any(|word| word.text == *wanted);
        !exception.depends_on_value()
            && exception.options.has(text)
            && exception.only_for.is_empty_or_has(&call.words[0].text)
            && exception.verbs.is_empty_or_has(second)
            && exception.with_word.as_ref().is_none_or(has_word)
    })
}

/// Whether the word at `at` follows a verb that only names follow. There a word such as `exec` is a name
/// and not a verb.
pub(crate) fn names_follow(words: &[Word], index: usize) -> bool {
    let (Some(program), Some(verb)) = (words.first(), words.get(1)) else { return false };
    let verbs = argument_record(&program.text).and_then(|record| verbs_of(&record.name_verbs, &program.text));
    index > 1 && verb.is_literal() && verbs.is_some_and(|verbs| verbs.has(&verb.text))
}

/// Whether a word for a kind of object is followed by a read-only verb: `docker volume ls`.
pub(crate) fn is_read_only_verb(words: &[Word], index: usize) -> bool {
    let is_one_of = |index: Option<usize>, texts: &[&str]| {
        index.and_then(|index| words.get(index)).is_some_and(|word| texts.contains(&word.text.as_str()))
    };
    let (program, text) = (words[0].text.as_str(), words[index].text.as_str());
    let reads = |word: &Word| word.text.starts_with("list-") || word.text.starts_with("get-");
    match (program, text) {
        ("bundle", "install" | "update") if index == 1 => true,
        ("aws", "iam") if words.get(index + 1).is_some_and(reads) => true,
        // It upgrades dependencies; in the other programs of the record it upgrades the program itself.
        ("yarn", "upgrade") => true,
        (_, "config") if is_one_of(Some(1), &["compose"]) => true,
        _ => {
            GENERAL.object_kinds.has(text)
                && (is_one_of(index.checked_add(1), &GENERAL.object_lookups)
                    || is_one_of(index.checked_sub(1), &["search"]))
        }
    }
}

/// The verbs of a program that accepts abbreviated ones, even if one is a prefix of a dangerous one.
pub(crate) fn short_verbs(program: &str) -> Option<&'static Words> {
    verbs_of(&argument_record(program)?.short_verbs, program)
}

/// Whether a verb is an abbreviation of one that needs a request.
pub(crate) fn is_short_for(text: &str, known: &Words, asks_for: &[&str]) -> bool {
    !known.has(text) && asks_for.iter().any(|verb| verb.starts_with(text))
}
