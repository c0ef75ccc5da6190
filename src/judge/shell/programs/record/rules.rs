//! Parts of a record for single arguments: words that need a request by their text, and options that pass.

use crate::shell::programs::record::words::Words;

/// Words that need a request by their text.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TextRule {
    /// Only for these names; for all if empty.
    pub(crate) only_for: Words,
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
    pub(crate) only_for: Words,
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
