//! The record of a program, and the format of the files in `data`.
//!
//! Each file of `data` holds the programs of one family ([`Family`]). A record says what the arguments of its programs
//! do. A new program is one more record. Lists are words with blanks or line ends between them:
//!
//! ```toml
//! [[program]]
//! names = "sort gsort"
//! effect = "reads"
//! asks = "-o --output --compress-program"
//! takes_value = "-k -t --key --field-separator"
//! ```
//!
//! `general.toml` has words with a meaning in programs of every family, and `versions.toml` has calls that only print
//! a version.
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

pub(crate) mod check;
pub(crate) mod options;
pub(crate) mod read_only;
pub(crate) mod rules;
pub(crate) mod runs;
pub(crate) mod words;

use std::collections::HashMap;

use check::Check;
use options::Options;
use read_only::{ReadOnly, SearchSpec};
use rules::{Exception, TextRule};
use runs::{RunsCommand, Transparent, VerbList};
use words::{Letters, RecordLetters, Words};

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
    pub(crate) only_for: Words,
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
    /// An operand may be `REVISION:PATH`, from the top of a repository.
    pub(crate) paths_in_revisions: bool,
    /// Verbs whose operands are names and texts, not paths.
    pub(crate) text_verbs: Words,
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
    /// Fills in the fields that are not in the file.
    fn complete(&mut self, works_on: WorksOn, options_ignore_case: bool, groups: &HashMap<String, Options>) {
        self.letters = RecordLetters {
            asks: Letters::from_options(&self.asks),
            asks_outside: Letters::from_options(&self.asks_outside),
            takes_value: Letters::from_options(&self.takes_value),
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
