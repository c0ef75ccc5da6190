//! The read-only use of a program or of a verb, which passes without a rule.
//!
//! The recorded options are those of the manuals of GNU coreutils 9, grep 3, sed 4, diffutils 3, util-linux 2, tree
//! 2, file 5, git 2, ripgrep 14, fd 10, jq 1.7, tar 1.35, binutils 2 and the awks. An option is not recorded if it
//! writes, runs something, reads names from a file, never ends, or takes a value in only some versions.

use crate::shell::programs::record::words::Words;

/// The part `read_only` of a record.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadOnly {
    /// Only for these names of the record; for all if empty.
    #[serde(default)]
    pub(crate) only_for: Words,
    pub(crate) shows: FileOutput,
    pub(crate) operands: Operands,
    /// It only reads with one of these options.
    #[serde(default)]
    pub(crate) needs: Words,
    /// With one of these options it prints names instead of content.
    #[serde(default)]
    pub(crate) names_with: Words,
    /// For [`Operands::Listed`]: the options with which it lists. Before git 2.19 `branch -l` created a branch.
    #[serde(default)]
    pub(crate) lists_with: Words,
    /// Its output is a list of names.
    #[serde(default)]
    pub(crate) prints_names: bool,
    /// It needs no pattern.
    #[serde(default)]
    pub(crate) needs_no_pattern: bool,
    /// Without files it reads its input, if that is a pipe.
    #[serde(default)]
    pub(crate) reads_pipe: bool,
    /// The dash before its first word may be missing: `tar tf x`.
    #[serde(default)]
    pub(crate) optional_dash: bool,
    /// Names and signs that no word may contain, because a script with them reaches more than its input.
    #[serde(default)]
    pub(crate) refused: Words,
    /// A refused name is harmless after a dot.
    #[serde(default)]
    pub(crate) fields_pass: bool,
}

/// Output of a program about its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileOutput {
    /// Nothing about their content, or the program reads no files.
    Names,
    /// Their content: files that likely contain secrets need a request.
    Content,
}

/// Kinds of operands after the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operands {
    /// Files and folders.
    Paths,
    /// One file; a second would be written.
    OnePath,
    None,
    /// A pattern or a script, unless an option gives it, and files.
    PatternThenPaths,
    /// Texts that name no file.
    Texts,
    /// Numbers of a few digits.
    Numbers,
    /// `+FORMAT`.
    Format,
    /// Revisions and paths of a repository.
    Shown,
    /// A pattern, then revisions and paths.
    Searched,
    /// Names and patterns of names, together with an option of `lists_with`; without one, the verb creates
    /// something.
    Listed,
}

/// The options of a program that decide which files below a folder it reads.
#[derive(Debug, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SearchSpec {
    /// It searches folders only with one of these options; always if there are none.
    pub(crate) recurses: Words,
    /// It leaves out files that the ignore files of a repository name.
    pub(crate) skips_ignored: bool,
    /// It follows links; otherwise it follows them with one of `follows`.
    pub(crate) follows_all: bool,
    pub(crate) follows: Words,
    /// Without one of `recurses` it reads the files of the folder itself.
    pub(crate) is_flat: bool,
    /// Whether it reads hidden files, and the options with which it does.
    pub(crate) hidden: bool,
    pub(crate) unhides: Words,
    /// Options that turn its ignore files off.
    pub(crate) unignores: Words,
    /// Options with patterns of names, names of folders that are left out, globs, and types.
    pub(crate) includes: Words,
    pub(crate) skips: Words,
    pub(crate) globs: Words,
    pub(crate) types: Words,
}

impl Default for SearchSpec {
    fn default() -> Self {
        Self {
            hidden: true,
            recurses: Words::default(),
            skips_ignored: false,
            follows_all: false,
            follows: Words::default(),
            is_flat: false,
            unhides: Words::default(),
            unignores: Words::default(),
            includes: Words::default(),
            skips: Words::default(),
            globs: Words::default(),
            types: Words::default(),
        }
    }
}
