//! The record of a program, and the format of the files in `data`.
//!
//! Each file of `data` holds the programs of one family. A record says what the arguments of its programs do. A new
//! program is one more record. Lists are words with blanks or line ends between them.
//!
//! Two questions use a record. Without a rule, a command passes only if it has a [`ReadOnly`] use and each of its
//! options is in [`Options`]. With a rule for the program, an argument needs a request if the record lists it as one
//! that does more than the program's name says. Such an argument does one of these things:
//!
//! - it runs another program
//! - it loads code or settings named on the command line
//! - it writes or removes files in an otherwise read-only program
//! - it sends a local file away
//! - it changes the system
//! - it works on a project outside the workspace

use std::collections::HashMap;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::shell::programs::options::Options;
use crate::shell::programs::special::Check;
use crate::shell::read_only::record::ReadOnly;
use crate::shell::read_only::search::SearchSpec;

/// One file of `data`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    pub(crate) works_on: WorksOn,
    /// Long options are case-insensitive and may have dashes between their parts.
    #[serde(default)]
    pub(crate) options_ignore_case: bool,
    /// Options that several records of the family have: [`Options::groups`].
    #[serde(default)]
    pub(crate) option_group: HashMap<String, Options>,
    pub(crate) program: Vec<Record>,
}

/// What the programs of a family work on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorksOn {
    /// Files of any folder.
    #[default]
    Files,
    /// A project: a path outside the workspace is another project, or an output path.
    Project,
    /// Machines and services: an operand is not a local file.
    Services,
}

/// What is known about programs with the same arguments, or about verbs of a program.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Record {
    /// The names of the programs, or of the verbs.
    pub(crate) names: Words,
    /// For a verb: only with these names of the program.
    pub(crate) of: Words,
    /// For a verb of two words: the first one.
    pub(crate) after: Option<String>,
    /// What it does with its operands as files. Without it, the other arguments of the program are not known.
    pub(crate) effect: Option<FileEffect>,
    /// What any argument means.
    pub(crate) arguments: Arguments,

    /// Options that need a request: `-x` also within a cluster of letters, `--word` also abbreviated and with `=`,
    /// `-word`.
    pub(crate) asks: Words,
    /// Options that need a request if their value is outside the workspace.
    pub(crate) asks_outside: Words,
    /// Operands that need a request, mostly verbs.
    pub(crate) asks_for: Words,
    /// More arguments that need a request.
    pub(crate) asks_if: Vec<TextRule>,
    /// Options whose value is the next word.
    pub(crate) takes_value: Words,
    /// Words that pass although they look like an argument that needs a request.
    pub(crate) harmless: Words,
    /// First words after which all plain words pass: `apt show NAME`.
    pub(crate) lookups: Words,
    /// Options that pass with some values or verbs.
    pub(crate) exceptions: Vec<Exception>,
    /// A part of the check that needs more than this record.
    pub(crate) check: Option<Check>,

    /// An operand outside the workspace needs a request.
    pub(crate) operands_inside: bool,
    /// The second operand is written.
    pub(crate) second_operand_written: bool,
    /// Without arguments it executes its input.
    pub(crate) runs_input: bool,
    /// It has options that are not recorded, so a pattern or `xargs` must not supply a word that may be one.
    pub(crate) unlisted_options: bool,
    /// It loads the settings of the project that it reads.
    pub(crate) reads_project_settings: bool,
    /// The words after `--` are for another program.
    pub(crate) passes_words_on: bool,
    /// Beginnings of options with a folder to search, which may be outside the project.
    pub(crate) search_paths: Words,
    /// Names with which options after code on the command line still belong to the interpreter.
    pub(crate) options_after_code: Words,

    /// The verbs of the program itself: another one may be a plugin or an alias, with any effect.
    pub(crate) known_verbs: Vec<VerbList>,
    /// Verbs after which a word is a name and never a verb.
    pub(crate) name_verbs: Vec<VerbList>,
    /// For a program that accepts abbreviated verbs: verbs that are no abbreviation.
    pub(crate) short_verbs: Vec<VerbList>,
    /// Verbs with which it runs a command: `docker exec`.
    pub(crate) runs_with: Vec<VerbList>,
    /// How it runs the command that its arguments give.
    pub(crate) runs: Option<RunsCommand>,
    /// A grant applies to the command inside it.
    pub(crate) transparent: Option<Transparent>,

    /// For a program with verbs: all options before the verb.
    pub(crate) own_options: Option<Options>,
    /// The options that neither write nor run anything, with their values.
    pub(crate) options: Option<Options>,
    /// The read-only use, which passes without a rule.
    pub(crate) read_only: Option<ReadOnly>,
    /// The options that decide which files below a folder it reads.
    pub(crate) search: Option<SearchSpec>,
    /// For a program that copies, among `options`: those whose value is the target folder.
    pub(crate) target_options: Words,
    /// For a program that copies, among `options`: those with which it creates all its operands.
    pub(crate) all_written_with: Words,

    /// Its verbs.
    pub(crate) verb: Vec<Record>,

    #[serde(skip)]
    pub(crate) letters: RecordLetters,
    /// Whether a path outside the workspace is another project.
    #[serde(skip)]
    pub(crate) in_project: bool,
    #[serde(skip)]
    pub(crate) options_ignore_case: bool,
    /// Whether operands are local files.
    #[serde(skip)]
    pub(crate) is_local: bool,
    #[serde(skip)]
    pub(crate) is_verb: bool,
}

/// Effect of a program on its file arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileEffect {
    /// Reads them; no argument has another effect than the record says.
    Reads,
    /// Writes, changes or removes them.
    Writes,
    /// Reads all but the last, which it writes.
    Copies,
    /// Any effect: an option with a suspicious name needs a request even if the record does not list it.
    Any,
}

/// What the arguments of a program mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Arguments {
    /// As the other fields say.
    #[default]
    Listed,
    /// Each one needs a request, unless it is harmless.
    Ask,
    /// The same, and a call without arguments needs one as well.
    AskAlsoAlone,
    /// The same, but the words after code that is part of the grant belong to the code.
    Code,
}

/// Verbs of some names of a record.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VerbList {
    /// Only for these names; for all if empty.
    pub(crate) of: Words,
    pub(crate) verbs: Words,
}

/// Words that need a request by their text.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TextRule {
    /// Only for these names; for all if empty.
    pub(crate) of: Words,
    /// Only if the call has this word.
    pub(crate) with_word: Option<String>,
    pub(crate) why: String,
    /// The words that it applies to.
    pub(crate) words: RuleWords,
    /// Every such word.
    pub(crate) any: bool,
    pub(crate) is: Vec<String>,
    pub(crate) begins: Vec<String>,
    pub(crate) ends: Vec<String>,
    pub(crate) contains: Vec<String>,
    /// A word outside the workspace.
    pub(crate) outside: Option<OutsideText>,
    /// Besides, the word must contain this, or must not.
    pub(crate) and_contains: Option<String>,
    pub(crate) unless_contains: Option<String>,
    pub(crate) ignore_case: bool,
}

/// The words that a [`TextRule`] applies to. Words of the grant are always left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleWords {
    #[default]
    All,
    /// Words with a leading `-`.
    Options,
    /// Words without a leading `-`, also values of options.
    Operands,
    /// The verb.
    Verb,
    /// The words after `--`, which are for another program.
    AfterDashes,
    OperandsAfterDashes,
    /// `NAME=value`, unless the variable is known and its value is a plain word.
    Variables,
}

/// Which texts count as paths outside the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutsideText {
    Any,
    /// Only an absolute path, one in a home folder, or one with `..`.
    Path,
}

/// Options that pass. With a condition for the value they have no effect then; without one they belong to another
/// program of the record.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Exception {
    /// Only for these names, as written; for all if empty.
    pub(crate) of: Words,
    pub(crate) options: Words,
    /// Only if the second word is one of these.
    pub(crate) verbs: Words,
    /// Only if the call has this word.
    pub(crate) with_word: Option<String>,
    pub(crate) values: Words,
    /// Beginnings of values without a `/`.
    pub(crate) value_begins: Words,
    pub(crate) unless_value_begins: Option<String>,
    /// The value is missing.
    pub(crate) without_value: bool,
}

/// How a program runs the command that its arguments give.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsCommand {
    pub(crate) how: HowItRuns,
    /// Options whose value is the next word.
    #[serde(default)]
    pub(crate) takes_value: Words,
    /// The number of words between the options and the command.
    #[serde(default)]
    pub(crate) words_before: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HowItRuns {
    /// The command follows the options and `words_before`.
    #[default]
    Command,
    /// A shell: it executes a script, or a text.
    Script,
    /// It runs something, and only its name is known.
    Unknown,
    /// A builtin that takes names of commands and does not run them.
    Never,
}

/// A wrapper whose command is judged as if it stood alone, with the options that have no other effect.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Transparent {
    pub(crate) flags: Words,
    pub(crate) takes_value: Words,
    /// The number of durations between the options and the command.
    pub(crate) durations_before: usize,
}

/// A list of words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Vec<&'static str>);

impl Words {
    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.iter().any(|word| *word == text)
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub(crate) fn is_empty_or_has(&self, text: &str) -> bool {
        self.0.is_empty() || self.has(text)
    }

    pub(crate) fn any_begins(&self, text: &str) -> bool {
        self.0.iter().any(|word| text.starts_with(word))
    }
}

impl Deref for Words {
    type Target = [&'static str];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.trim().is_empty() {
            return Err(D::Error::custom("an empty list"));
        }
        // The records are read once and kept.
        let text: &'static str = Box::leak(text.into_boxed_str());
        Ok(Self(text.split_whitespace().collect()))
    }
}

/// Options of one letter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordLetters {
    pub(crate) asks: Letters,
    pub(crate) asks_outside: Letters,
    pub(crate) takes_value: Letters,
}

impl RecordLetters {
    pub(crate) fn is_empty(self) -> bool {
        self.asks.0 | self.asks_outside.0 | self.takes_value.0 == 0
    }
}

/// A set of ASCII letters, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Letters(u128);

impl Letters {
    fn of_options(options: &Words) -> Self {
        let letter = |option: &&str| match option.as_bytes() {
            [b'-', letter] if letter.is_ascii() => Some(u32::from(*letter)),
            _ => None,
        };
        Self(options.iter().filter_map(letter).fold(0, |all, letter| all | 1 << letter))
    }

    pub(crate) fn has(self, letter: char) -> bool {
        letter.is_ascii() && self.0 & (1 << u32::from(letter)) != 0
    }
}

impl Family {
    /// Completes the records from the fields of the family.
    pub(crate) fn complete(mut self) -> Vec<Record> {
        let (works_on, options_ignore_case) = (self.works_on, self.options_ignore_case);
        for program in &mut self.program {
            for verb in &mut program.verb {
                verb.is_verb = true;
                verb.complete(works_on, options_ignore_case, &self.option_group);
            }
            program.complete(works_on, options_ignore_case, &self.option_group);
        }
        self.program
    }
}

impl Record {
    fn complete(&mut self, works_on: WorksOn, options_ignore_case: bool, groups: &HashMap<String, Options>) {
        self.letters = RecordLetters {
            asks: Letters::of_options(&self.asks),
            asks_outside: Letters::of_options(&self.asks_outside),
            takes_value: Letters::of_options(&self.takes_value),
        };
        self.in_project = works_on == WorksOn::Project
            && (self.effect != Some(FileEffect::Reads) || self.reads_project_settings);
        self.options_ignore_case = options_ignore_case;
        self.is_local = works_on != WorksOn::Services;
        if let Some(options) = &mut self.options {
            options.add_groups(groups);
        }
    }

    /// Whether the record lists an argument that may need a request.
    pub(crate) fn lists_arguments(&self) -> bool {
        !self.asks.is_empty()
            || !self.asks_outside.is_empty()
            || !self.asks_for.is_empty()
            || self.arguments != Arguments::Listed
            || self.operands_inside
            || self.runs_input
    }

    /// Whether a part of the check looks at more than options and verbs.
    pub(crate) fn has_more_checks(&self) -> bool {
        self.check.is_some()
            || !self.asks_if.is_empty()
            || !self.known_verbs.is_empty()
            || self.second_operand_written
            || self.unlisted_options
    }

    /// Whether even a call without arguments needs a request.
    pub(crate) fn asks_alone(&self) -> bool {
        matches!(self.arguments, Arguments::AskAlsoAlone | Arguments::Code)
    }
}

/// The verbs of a list for a name.
pub(crate) fn verbs_of<'r>(lists: &'r [VerbList], name: &str) -> Option<&'r Words> {
    lists.iter().find(|list| list.of.is_empty_or_has(name)).map(|list| &list.verbs)
}
