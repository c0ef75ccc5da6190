//! Programs that show the content of the files below folders: by their options, which files they read.

use crate::file_facts::{LinkUse, Selection, TreeSearch};
use crate::shell::programs::options::ParsedOptions;
use crate::shell::programs::record::Words;

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

impl SearchSpec {
    /// The search that a call does below its folders, if it does one.
    pub(super) fn search(&self, parsed: &ParsedOptions<'_>) -> Option<TreeSearch> {
        let recurses = self.recurses.is_empty() || parsed.has(&self.recurses);
        if !recurses && !self.is_flat {
            return None;
        }
        let values = |names: &[&str]| -> Vec<String> {
            let named = parsed.options.iter().filter(|option| names.contains(&option.name));
            named.filter_map(|option| option.value.map(str::to_owned)).collect()
        };
        let skips_ignored = self.skips_ignored && !parsed.has(&self.unignores);
        let follows = self.follows_all || parsed.has(&self.follows);
        Some(TreeSearch {
            selection: if skips_ignored { Selection::Unignored } else { Selection::All },
            hidden: self.hidden || parsed.has(&self.unhides),
            links: if follows { LinkUse::Followed } else { LinkUse::Skipped },
            max_depth: (!recurses).then_some(1),
            includes: values(&self.includes),
            skipped_folders: values(&self.skips),
            globs: values(&self.globs),
            types: values(&self.types),
        })
    }
}
