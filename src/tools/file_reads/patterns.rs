//! Patterns of the shell, expanded to at least the files that the shell would find.

use std::path::{Component, Path, PathBuf};

use super::Inspection;
use judge::Obstacle;

impl Inspection<'_> {
    /// The paths that a pattern may match. Wildcards also match hidden files, and quotes around a wildcard
    /// are unknown here, so that the result may hold more than the shell finds.
    pub(super) fn expand(&mut self, pattern: &Path) -> Result<Vec<PathBuf>, Obstacle> {
        let mut found = vec![PathBuf::from("/")];
        for component in pattern.components() {
            let name = match component {
                Component::Normal(name) => name.to_string_lossy(),
                Component::ParentDir => "..".into(),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            };
            if !name.contains(['*', '?', '[']) {
                found.iter_mut().for_each(|path| path.push(&*name));
                continue;
            }
            let mut next = Vec::new();
            for folder in found {
                for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                    self.count(&folder)?;
                    if may_match(&name, &entry.file_name().to_string_lossy()) {
                        next.push(entry.path());
                    }
                }
            }
            found = next;
        }
        Ok(found)
    }
}

/// Whether a name may match a pattern. `?` and everything between brackets may match any text, because a
/// bracket may be quoted.
pub(super) fn may_match(pattern: &str, name: &str) -> bool {
    let is_wildcard = |c: char| matches!(c, '*' | '?' | '[' | ']');
    let Some(first) = pattern.find(is_wildcard) else { return pattern == name };
    let last = pattern.rfind(is_wildcard).unwrap_or(first);
    let (begin, end) = (&pattern[..first], &pattern[last + 1..]);
    let middle = pattern[first..last].split(is_wildcard);
    let Some(rest) = name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end)) else { return false };
    // Text between brackets may be a class instead.
    let mut rest = rest;
    if pattern.contains('[') {
        return true;
    }
    middle.filter(|part| !part.is_empty()).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::may_match;

    #[test]
    fn pattern_matches_at_least_names_that_shell_finds() {
        for (pattern, names) in [
            ("*.rs", &["a.rs", ".rs", "a.b.rs"][..]),
            ("a*b*c", &["abc", "axbyc"]),
            ("[ab]x", &["ax", "[ab]x"]),
            ("a?c", &["abc", "aéc"]),
            ("x[!]]y", &["xay", "x[!]]y"]),
            ("**", &["a", ""]),
            ("a[", &["a["]),
        ] {
            for name in names {
                assert!(may_match(pattern, name), "{pattern} {name}");
            }
        }
        for (pattern, name) in [("*.rs", "a.py"), ("a*b*c", "acb"), ("a*", "ba"), ("aa*aa", "aaa")] {
            assert!(!may_match(pattern, name), "{pattern} {name}");
        }
    }
}
