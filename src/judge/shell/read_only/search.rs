//! Programs that show the content of the files below folders: by their options, which files they read.

use crate::file_facts::{LinkUse, Selection, TreeSearch};
use crate::shell::programs::option_spec::ParsedOptions;

/// The options of a program that decide which files below a folder it reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchSpec {
    /// It searches folders only with one of these options; always if there are none.
    pub(super) recurses: &'static [&'static str],
    pub(super) selection: Selection,
    /// What it does with links, and the options with which it follows all of them.
    pub(super) links: LinkUse,
    pub(super) follows: &'static [&'static str],
    /// Without one of `recurses` it reads the files of the folder itself.
    pub(super) is_flat: bool,
    /// Whether it reads hidden files, and the options with which it does.
    pub(super) hidden: bool,
    pub(super) unhides: &'static [&'static str],
    /// Options that turn its ignore files off.
    pub(super) unignores: &'static [&'static str],
    /// Options with patterns of names, names of folders that are left out, globs, and types.
    pub(super) includes: &'static [&'static str],
    pub(super) skips: &'static [&'static str],
    pub(super) globs: &'static [&'static str],
    pub(super) types: &'static [&'static str],
}

const ALL_FILES: SearchSpec = SearchSpec {
    recurses: &[],
    selection: Selection::All,
    links: LinkUse::Skipped,
    follows: &[],
    is_flat: false,
    hidden: true,
    unhides: &[],
    unignores: &[],
    includes: &[],
    skips: &[],
    globs: &[],
    types: &[],
};

pub(super) const GREP: SearchSpec = SearchSpec {
    recurses: &["r", "R", "--recursive", "--dereference-recursive"],
    follows: &["R", "--dereference-recursive"],
    includes: &["--include"],
    skips: &["--exclude-dir"],
    ..ALL_FILES
};

pub(super) const RIPGREP: SearchSpec = SearchSpec {
    selection: Selection::Unignored,
    hidden: false,
    follows: &["L", "--follow"],
    unhides: &["u", "--unrestricted", "--hidden"],
    unignores: &[
        "u",
        "--unrestricted",
        "--no-ignore",
        "--no-ignore-vcs",
        "--no-ignore-parent",
        "--no-ignore-dot",
        "--no-ignore-global",
        "--no-ignore-exclude",
        "--no-ignore-files",
    ],
    globs: &["g", "--glob"],
    types: &["t", "--type"],
    ..ALL_FILES
};

pub(super) const FD: SearchSpec = SearchSpec {
    // It has ignore files of its own.
    selection: Selection::All,
    unhides: &["u", "H", "--unrestricted", "--hidden"],
    globs: &[],
    types: &[],
    ..RIPGREP
};

/// It compares the files of two folders, and follows links.
pub(super) const DIFF: SearchSpec =
    SearchSpec { recurses: &["r", "--recursive"], is_flat: true, links: LinkUse::Followed, ..ALL_FILES };

impl SearchSpec {
    /// The search that a call does below its folders, if it does one.
    pub(super) fn search(&self, parts: &ParsedOptions<'_>) -> Option<TreeSearch> {
        let recurses = self.recurses.is_empty() || parts.has(self.recurses);
        if !recurses && !self.is_flat {
            return None;
        }
        let values = |names: &[&str]| -> Vec<String> {
            let named = parts.options.iter().filter(|option| names.contains(&option.name));
            named.filter_map(|option| option.value.map(str::to_owned)).collect()
        };
        let selection = if parts.has(self.unignores) { Selection::All } else { self.selection };
        Some(TreeSearch {
            selection,
            hidden: self.hidden || parts.has(self.unhides),
            links: if parts.has(self.follows) { LinkUse::Followed } else { self.links },
            max_depth: (!recurses).then_some(1),
            includes: values(self.includes),
            skipped_folders: values(self.skips),
            globs: values(self.globs),
            types: values(self.types),
        })
    }
}
