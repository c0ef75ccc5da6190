//! The words of a command that name files to be written.

use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::braces;
use crate::shell::programs::call::WorkBudget;
use crate::shell::programs::lookup::{ProgramRows, stem};
use crate::shell::programs::option_spec::OptionSpec;
use crate::shell::programs::table::FileEffect;

/// A program that copies, with the options that do not change what is written. With options that create
/// links, both names are one file.
struct CopyProgram {
    names: &'static str,
    options: OptionSpec,
    /// Options whose value is the target folder.
    targets: &'static [&'static str],
    /// Options that make it create all its operands as folders.
    makes_all: &'static [&'static str],
}

/// Options that set the target folder of copying, moving or linking.
const TARGET_OPTIONS: &[&str] = &["t", "--target-directory"];

const COPY_PROGRAMS: &[CopyProgram] = &[
    CopyProgram {
        names: "cp|gcp",
        options: OptionSpec {
            letters: "abdfHiLnPpRrS~t:TuvxZ",
            long: [
                "--archive --attributes-only --backup? --copy-contents --force --interactive --dereference --no-clobber --no-dereference --preserve? --no-preserve= --parents --recursive --reflink? --remove-destination --sparse= --strip-trailing-slashes --suffix~ --no-target-directory --update? --verbose --one-file-system",
                "--target-directory:",
            ],
        },
        targets: TARGET_OPTIONS,
        makes_all: &[],
    },
    CopyProgram {
        names: "install|ginstall",
        options: OptionSpec {
            letters: "bcCdDg~m~o~psS~t:TvZ",
            long: [
                "--backup? --compare --directory --group~ --mode~ --owner~ --preserve-timestamps --strip --suffix~ --no-target-directory --verbose",
                "--target-directory:",
            ],
        },
        targets: TARGET_OPTIONS,
        makes_all: &["d", "--directory"],
    },
    CopyProgram {
        names: "mv|gmv",
        options: OptionSpec {
            letters: "bfinS~t:TuvZ",
            long: [
                "--backup? --debug --exchange --force --interactive --no-clobber --no-copy --strip-trailing-slashes --suffix~ --no-target-directory --update? --verbose",
                "--target-directory:",
            ],
        },
        targets: TARGET_OPTIONS,
        makes_all: &[],
    },
    CopyProgram {
        names: "ln|gln",
        options: OptionSpec {
            letters: "bdfFiLnPrsS~t:Tv",
            long: [
                "--backup? --directory --force --interactive --logical --no-dereference --physical --relative --symbolic --suffix~ --no-target-directory --verbose",
                "--target-directory:",
            ],
        },
        targets: TARGET_OPTIONS,
        makes_all: &[],
    },
    CopyProgram {
        names: "rsync",
        options: OptionSpec {
            letters: "046AaB#bCcDdEFgHhIiJKkLlmNnOoPpqRrSstUuvWXxyz",
            long: [
                "--archive --verbose --recursive --compress --dry-run --partial --progress --human-readable --times --perms --owner --group --devices --specials --links --copy-links --hard-links --acls --xattrs --checksum --update --whole-file --no-whole-file --one-file-system --sparse --quiet --itemize-changes --stats --inplace --existing --ignore-existing --size-only --ignore-times --relative --no-relative --mkpath --prune-empty-dirs --numeric-ids --append --append-verify --force --omit-dir-times --fuzzy --safe-links --copy-unsafe-links --munge-links --cvs-exclude --dirs --keep-dirlinks --list-only --executability --no-perms --no-owner --no-group --no-times",
                "--delete --delete-before --delete-during --delete-delay --delay-updates --delete-after --delete-excluded --exclude~ --include~ --info= --suffix~ --max-size~ --min-size~ --bwlimit~ --timeout# --chmod~ --chown~ --modify-window# --out-format~ --port#",
            ],
        },
        targets: &[],
        makes_all: &[],
    },
];

/// The words of a command that name files to be written.
pub(crate) enum WriteTargets {
    None,
    All,
    These(Vec<usize>),
}

impl WriteTargets {
    pub(crate) fn from_rows(rows: ProgramRows, words: &[Word]) -> Self {
        match rows.kind() {
            FileEffect::Reads => Self::None,
            FileEffect::Writes | FileEffect::Tool => Self::All,
            FileEffect::Copies => {
                let name = words.first().map_or("", |first| stem(&first.text));
                match COPY_PROGRAMS.iter().find(|row| row.names.split('|').any(|own| own == name)) {
                    Some(row) => row.written(words).map_or(Self::All, Self::These),
                    None => Self::These(trailing_words(words)),
                }
            }
        }
    }

    pub(crate) fn is(&self, at: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::These(written) => written.contains(&at),
        }
    }
}

/// The paths that a copying, moving or linking command creates in its target folder: each source with
/// its own name, and the word that it comes from. Once the budget is spent, the rest is left out and
/// nothing allows the line.
pub(crate) fn created_paths<'w>(
    rows: ProgramRows,
    words: &'w [Word],
    work_budget: &WorkBudget,
) -> Vec<(Word, &'w Word)> {
    let name = words.first().map_or("", |first| stem(&first.text));
    let row = COPY_PROGRAMS.iter().find(|row| row.names.split('|').any(|own| own == name));
    if row.is_none() && rows.kind() != FileEffect::Copies {
        return Vec::new();
    }
    let is_whole = words.iter().any(|word| {
        let text = word.text.as_str();
        let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        text.len() >= "--pa".len() && "--parents".starts_with(text)
            || name == "rsync" && (text == "--relative" || letters.contains('R'))
    });
    let (sources, targets, suffix) = ends(row, words, work_budget);
    let suffix = suffix.filter(|suffix| suffix.len() <= MAX_NAME_BYTES && !suffix.contains('/'));
    let mut all = Vec::new();
    // With a backup suffix, the program stores the old content under this name.
    let backup =
        |text: String, word: &'w Word| (Word { text, marks: Marks::default(), ..word.clone() }, word);
    if let (Some(suffix), Some(last)) = (suffix, words.last()) {
        all.extend(targets.iter().map(|target| backup(format!("{target}{suffix}"), last)));
    }
    for (text, word) in sources {
        let own = match is_whole {
            true => text.rsplit("/./").next().unwrap_or(&text),
            // The content of the folder is copied, without the folder's name.
            false if name == "rsync" && text.ends_with('/') => continue,
            false => text.trim_end_matches('/').rsplit('/').next().unwrap_or_default(),
        };
        for target in &targets {
            if !work_budget.spend(16 + (target.len() + own.len() + suffix.map_or(0, str::len)) / 4) {
                return all;
            }
            let mut marks = Marks::default();
            if own.contains(['*', '?', '[']) {
                marks.add(Marks::GLOB);
            }
            if target.starts_with("~/") {
                marks.add(Marks::HOME);
            }
            let text = format!("{target}/{own}");
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
fn ends<'w>(
    row: Option<&CopyProgram>,
    words: &'w [Word],
    work_budget: &WorkBudget,
) -> (Vec<ExpandedWord<'w>>, Vec<String>, Option<&'w str>) {
    let texts = |word: &'w Word| {
        let all = match word.marks.has(Marks::BRACE) && work_budget.spend(64 + 16 * word.text.len()) {
            // One of too many expansions may be protected, so `.git` represents them.
            true => braces::choices(&word.text).unwrap_or_else(|| vec![".git".to_owned()]),
            false => vec![word.text.clone()],
        };
        all.into_iter().map(move |text| (text, word))
    };
    if let Some((row, parts)) = row.and_then(|row| Some((row, row.options.parts(words)?))) {
        let mut operands: Vec<ExpandedWord<'_>> =
            parts.operands.iter().flat_map(|at| texts(&words[*at])).collect();
        let target_option = parts.options.iter().find(|option| row.targets.contains(&option.name));
        let suffix = parts.options.iter().find(|option| matches!(option.name, "S" | "--suffix"));
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
    let has_target = row.is_none_or(|row| !row.targets.is_empty());
    for (at, word) in words.iter().enumerate().skip(1).filter(|_| has_target) {
        let value = match word.text.strip_prefix('-') {
            Some(long) if long.starts_with("-t") => long.split_once('=').map(|(_, value)| value),
            Some(letters) if !letters.starts_with('-') && letters.contains('t') => {
                letters.split_once('t').map(|(_, value)| value).filter(|value| !value.is_empty())
            }
            _ => continue,
        };
        let value = value.or_else(|| words.get(at + 1).map(|next| next.text.as_str()));
        targets.extend(value.map(str::to_owned));
    }
    // The programs reject more than one target. Further ones are values of unknown options, perhaps to
    // hide a target.
    if targets.len() > MAX_TARGETS {
        targets = vec![".git".to_owned(), ".agentd".to_owned()];
    }
    let at = words.iter().position(|word| word.text.starts_with("--su"));
    let suffix = at.map(|at| {
        let next = words.get(at + 1).map_or("", |next| next.text.as_str());
        words[at].text.split_once('=').map_or(next, |(_, value)| value)
    });
    (operands, targets, suffix)
}

/// NAME_MAX of Linux.
const MAX_NAME_BYTES: usize = 255;

/// Maximum number of words that may be the target folder.
const MAX_TARGETS: usize = 4;

impl CopyProgram {
    /// The written words, if every option is known and every word is literal.
    fn written(&self, words: &[Word]) -> Option<Vec<usize>> {
        if words[1..].iter().any(may_be_nothing) {
            return None;
        }
        let parts = self.options.parts(words)?;
        if parts.has(self.makes_all) {
            return Some(parts.operands);
        }
        let targets = parts.options.iter().filter(|option| self.targets.contains(&option.name));
        let targets: Vec<usize> = targets.filter_map(|option| option.value_at).collect();
        if targets.is_empty() {
            Some(parts.operands.last().copied().into_iter().collect())
        } else {
            Some(targets)
        }
    }
}

/// For a program with unknown options: the last word that is neither an option nor an option's value,
/// and all words after it.
fn trailing_words(words: &[Word]) -> Vec<usize> {
    let is_option = |at: usize| words[at].text.starts_with(['-', '+']) && words[at].text.len() > 1;
    let is_certain =
        |at: usize| !is_option(at) && (at == 1 || !is_option(at - 1)) && !may_be_nothing(&words[at]);
    let from = (1..words.len()).rev().find(|at| is_certain(*at)).unwrap_or(1);
    // An option may contain a file name as well.
    (1..words.len()).filter(|at| *at >= from || is_option(*at)).collect()
}

/// Whether a word may expand to nothing: no part of it is literal.
fn may_be_nothing(word: &Word) -> bool {
    let expands = word.marks.has(Marks::EXPANDS) || word.marks.has(Marks::NUMBER);
    let is_of_names = |c: char| c.is_ascii_alphanumeric() || "_$!?#@*-{}:+=".contains(c);
    expands && (word.text.is_empty() || word.text.starts_with('$') && word.text.chars().all(is_of_names))
}
