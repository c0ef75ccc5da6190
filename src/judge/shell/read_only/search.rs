//! Programs that show the content of the files below folders: by their options, which files they read.

use crate::file_facts::{LinkUse, Selection, TreeSearch};
use crate::shell::programs::record::options::ParsedOptions;
use crate::shell::programs::record::read_only::SearchSpec;

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
