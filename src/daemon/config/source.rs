//! The position of each key in its file, so that a later error can name the line.

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::ConfigError;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) file: PathBuf,
    pub(super) text: String,
}

impl Source {
    /// The line of the deepest part of `path` in this file, from 1, and the number of path parts that were
    /// found.
    pub(super) fn find(&self, path: &[&str]) -> Option<(usize, usize)> {
        let root = DeTable::parse(&self.text).ok()?;
        let mut table: Option<&DeTable<'_>> = Some(root.get_ref());
        let mut found = None;
        for (depth, name) in path.iter().enumerate() {
            let Some((key, value)) =
                table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == name))
            else {
                break;
            };
            found = Some((depth + 1, line_at(&self.text, key.span().start)));
            table = value.get_ref().as_table();
        }
        found
    }
}

/// The line of a byte offset in a text, from 1.
pub(super) fn line_at(text: &str, place: usize) -> usize {
    let before = &text.as_bytes()[..place.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// An error about the key at `path`. It names the last of the files that contain the longest part of
/// the path, because that file's value is effective. It names no file if no file contains any part.
pub(super) fn key_error(sources: &[Source], path: &[&str], message: String) -> ConfigError {
    let best = sources
        .iter()
        .filter_map(|source| source.find(path).map(|found| (found, source.file.as_path())))
        .max_by_key(|((depth, _), _)| *depth);
    let (file, line) = match best {
        Some(((_, line), file)) => (Some(Path::to_path_buf(file)), Some(line)),
        None => (None, None),
    };
    ConfigError { file, line, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &[&str], expected: Option<(&str, usize)>) {
        let source = |file: &str, text: &str| Source { file: file.into(), text: text.into() };
        let sources = [
            source("a", "[models]\nmain = \"x/y\"\n\n[providers.x]\nkind = \"replay\"\ncassette = \"f\"\n"),
            source("b", "models.main = \"x/z\"\n[providers]\n# a word\nx = { kind = \"replay\" }\n"),
        ];
        let got = key_error(&sources, path, "no".into());
        let got = got.file.as_deref().and_then(Path::to_str).zip(got.line);
        assert_eq!(got, expected, "{path:?}");
    }

    #[test]
    fn configuration_key_is_located_in_deciding_file() {
        check(&["models", "main"], Some(("b", 1)));
        check(&["providers", "x", "kind"], Some(("b", 4)));
        check(&["providers", "x", "cassette"], Some(("a", 6)));
        check(&["providers", "x", "base_url"], Some(("b", 4)));
        check(&["providers", "y"], Some(("b", 2)));
        check(&["session"], None);
    }
}
