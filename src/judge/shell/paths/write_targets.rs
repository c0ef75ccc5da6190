//! The words of a command that name files to be written.

use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::braces;
use crate::shell::programs::call::WorkBudget;
use crate::shell::programs::lookup::{CommandRecords, argument_record, stem};
use crate::shell::programs::record::{FileEffect, Record};

/// The words of a command that name files to be written.
pub(crate) enum WriteTargets {
    None,
    All,
    These(Vec<usize>),
}

impl WriteTargets {
    /// The words that a command with these records writes.
    pub(crate) fn new(records: CommandRecords, words: &[Word]) -> Self {
        match records.effect() {
            FileEffect::Reads => Self::None,
            FileEffect::Writes | FileEffect::Any => Self::All,
            FileEffect::Copies => match copy_record(words) {
                Some(record) => written_words(record, words).map_or(Self::All, Self::These),
                None => Self::These(trailing_words(words)),
            },
        }
    }

    /// Whether the word at this index is written.
    pub(crate) fn is(&self, index: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::These(written) => written.contains(&index),
        }
    }
}

/// The paths that a copying, moving or linking command creates in its target folder: each source with
/// its own name, and the word that it comes from. Once the budget is spent, the rest is left out and
/// nothing allows the line.
pub(crate) fn created_paths<'w>(
    records: CommandRecords,
    words: &'w [Word],
    work_budget: &WorkBudget,
) -> Vec<(Word, &'w Word)> {
    let name = words.first().map_or("", |first| stem(&first.text));
    let record = copy_record(words);
    if record.is_none() && records.effect() != FileEffect::Copies {
        return Vec::new();
    }
    let is_whole = words.iter().any(|word| {
        let text = word.text.as_str();
        let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        text.len() >= "--pa".len() && "--parents".starts_with(text)
            || name == "rsync" && (text == "--relative" || letters.contains('R'))
    });
    let (sources, targets, suffix) = sources_and_targets(record, words, work_budget);
    let suffix = suffix.filter(|suffix| suffix.len() <= MAX_NAME_BYTES && !suffix.contains('/'));
    let mut all = Vec::new();
    // With a backup suffix, the program stores the old content under this name.
    let backup =
        |text: String, word: &'w Word| (Word { text, marks: Marks::default(), ..word.clone() }, word);
    if let (Some(suffix), Some(last)) = (suffix, words.last()) {
        all.extend(targets.iter().map(|target| backup(format!("{target}{suffix}"), last)));
    }
    for (text, word) in sources {
        let created_name = match is_whole {
            true => text.rsplit("/./").next().unwrap_or(&text),
            // The content of the folder is copied, without the folder's name.
            false if name == "rsync" && text.ends_with('/') => continue,
            false => text.trim_end_matches('/').rsplit('/').next().unwrap_or_default(),
        };
        for target in &targets {
            if !work_budget.spend(16 + (target.len() + created_name.len() + suffix.map_or(0, str::len)) / 4) {
                return all;
            }
            let mut marks = Marks::default();
            if created_name.contains(['*', '?', '[']) {
                marks.add(Marks::GLOB);
            }
            if target.starts_with("~/") {
                marks.add(Marks::HOME);
            }
            let text = format!("{target}/{created_name}");
            if let Some(suffix) = suffix {
                all.push(backup(format!("{text}{suffix}"), word));
            }
            let (start, end) = (word.start, word.end);
            all.push((Word { text, marks, start, end, equals: None, variables: Vec::new() }, word));
        }
    }
    all
}

/// An expansion of a word.
type ExpandedWord<'w> = (String, &'w Word);

/// The sources, the possible targets, and the possible endings of backup names.
fn sources_and_targets<'w>(
    record: Option<&Record>,
    words: &'w [Word],
    work_budget: &WorkBudget,
) -> (Vec<ExpandedWord<'w>>, Vec<String>, Option<&'w str>) {
    let texts = |word: &'w Word| {
        let all = match word.marks.has_any(Marks::BRACE) && work_budget.spend(64 + 16 * word.text.len()) {
            // One of too many expansions may be protected, so `.git` represents them.
            true => braces::choices(&word.text).unwrap_or_else(|| vec![".git".to_owned()]),
            false => vec![word.text.clone()],
        };
        all.into_iter().map(move |text| (text, word))
    };
    let parsed = record.and_then(|record| Some((record, record.options.as_ref()?.parse(words)?)));
    if let Some((record, parsed)) = parsed {
        let mut operands: Vec<ExpandedWord<'_>> =
            parsed.operands.iter().flat_map(|index| texts(&words[*index])).collect();
        let target_option = parsed.options.iter().find(|option| record.target_options.has(option.name));
        let suffix = parsed.options.iter().find(|option| matches!(option.name, "-S" | "--suffix"));
        let target = match target_option.and_then(|option| option.value) {
            Some(target) => Some(target.to_owned()),
            // `ln -s x/y` creates y in the current folder.
            None if operands.len() == 1 => Some(".".to_owned()),
            None => operands.pop().map(|(text, _)| text),
        };
        return (operands, target.into_iter().collect(), suffix.and_then(|option| option.value));
    }
    // With an unknown option the last word may have any meaning, and so may a word that looks like the
    // value of `-t`.
    let is_option = |word: &&Word| word.text.starts_with('-');
    let operands: Vec<ExpandedWord<'_>> =
        words[1..].iter().filter(|word| !is_option(word)).flat_map(texts).collect();
    let mut targets: Vec<String> = operands.last().map(|(text, _)| text.clone()).into_iter().collect();
    // For rsync, `-t` is not a folder.
    let has_target = record.is_none_or(|record| !record.target_options.is_empty());
    for (index, word) in words.iter().enumerate().skip(1).filter(|_| has_target) {
        let value = match word.text.strip_prefix('-') {
            Some(long) if long.starts_with("-t") => long.split_once('=').map(|(_, value)| value),
            Some(letters) if !letters.starts_with('-') && letters.contains('t') => {
                letters.split_once('t').map(|(_, value)| value).filter(|value| !value.is_empty())
            }
            _ => continue,
        };
        let value = value.or_else(|| words.get(index + 1).map(|next| next.text.as_str()));
        targets.extend(value.map(str::to_owned));
    }
    // The programs reject more than one target. Further ones are values of unknown options, perhaps to
    // hide a target.
    if targets.len() > MAX_TARGETS {
        targets = vec![".git".to_owned(), ".agentd".to_owned()];
    }
    let index = words.iter().position(|word| word.text.starts_with("--su"));
    let suffix = index.map(|index| {
        let next = words.get(index + 1).map_or("", |next| next.text.as_str());
        words[index].text.split_once('=').map_or(next, |(_, value)| value)
    });
    (operands, targets, suffix)
}

/// NAME_MAX of Linux.
const MAX_NAME_BYTES: usize = 255;

/// Maximum number of words that may be the target folder.
const MAX_TARGETS: usize = 4;

/// The record of a program that copies, moves or links, whose options are known.
fn copy_record(words: &[Word]) -> Option<&'static Record> {
    let record = argument_record(stem(&words.first()?.text))?;
    let copies = record.effect == Some(FileEffect::Copies) || !record.target_options.is_empty();
    (copies && record.options.is_some()).then_some(record)
}

/// The written words, if every option is known and every word is literal.
fn written_words(record: &Record, words: &[Word]) -> Option<Vec<usize>> {
    if words[1..].iter().any(may_be_nothing) {
        return None;
    }
    let parsed = record.options.as_ref()?.parse(words)?;
    if parsed.has(&record.all_written_with) {
        return Some(parsed.operands);
    }
    let targets = parsed.options.iter().filter(|option| record.target_options.has(option.name));
    let targets: Vec<usize> = targets.filter_map(|option| option.value_at).collect();
    if targets.is_empty() {
        Some(parsed.operands.last().copied().into_iter().collect())
    } else {
        Some(targets)
    }
}

/// For a program with unknown options: the last word that is neither an option nor an option's value,
/// and all words after it.
fn trailing_words(words: &[Word]) -> Vec<usize> {
    let is_option = |index: usize| words[index].text.starts_with(['-', '+']) && words[index].text.len() > 1;
    let is_certain = |index: usize| {
        !is_option(index) && (index == 1 || !is_option(index - 1)) && !may_be_nothing(&words[index])
    };
    let from = (1..words.len()).rev().find(|index| is_certain(*index)).unwrap_or(1);
    // An option may contain a file name as well.
    (1..words.len()).filter(|index| *index >= from || is_option(*index)).collect()
}

/// Whether a word may expand to nothing: no part of it is literal.
fn may_be_nothing(word: &Word) -> bool {
    let expands = word.marks.has_any(Marks::EXPANDS) || word.marks.has_any(Marks::NUMBER);
    let is_of_names = |c: char| c.is_ascii_alphanumeric() || "_$!?#@*-{}:+=".contains(c);
    expands && (word.text.is_empty() || word.text.starts_with('$') && word.text.chars().all(is_of_names))
}
