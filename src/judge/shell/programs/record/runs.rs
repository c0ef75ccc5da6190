//! Parts of a record for programs that run a command given by their arguments.

use crate::shell::programs::record::words::Words;

/// Verbs of some names of a record.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VerbList {
    /// Only for these names; for all if empty.
    pub(crate) only_for: Words,
    pub(crate) verbs: Words,
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

/// The verbs of a list for a name.
pub(crate) fn verbs_of<'r>(lists: &'r [VerbList], name: &str) -> Option<&'r Words> {
    lists.iter().find(|list| list.only_for.is_empty_or_has(name)).map(|list| &list.verbs)
}
