//! Suggestions for a model after a failed match: the most similar path, the most similar text.

use std::fs;
use std::path::{Path, PathBuf};

/// Entries that are inspected to find a file with the same name elsewhere.
const MAX_ENTRIES: usize = 20_000;
/// Lines of a file that are compared, and characters of a line.
const MAX_LINES: usize = 20_000;
const MAX_LINE_CHARS: usize = 200;
/// Lines up to this number of characters are also compared by edit distance.
const MAX_EDIT_DISTANCE_CHARS: usize = 16;
/// Minimal similarity of a suggestion; a less similar one would be misleading.
const MIN_SIMILARITY: f64 = 0.6;

/// The existing path most similar to `path` (resolved, missing): a sibling with a similar name, otherwise a
/// file with the same name elsewhere in the workspace. Paths that are `hidden` are never suggested.
pub(crate) fn similar_path(path: &Path, workspace: &Path, hidden: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    if !path.starts_with(workspace) {
        return None;
    }
    let mut wanted = path;
    while let Some(parent) = wanted.parent().filter(|parent| !parent.is_dir()) {
        wanted = parent;
    }
    let name = wanted.file_name()?.to_str()?.to_lowercase();
    let neighbour = fs::read_dir(wanted.parent()?)
        .ok()?
        .take(MAX_ENTRIES)
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let entry_name = entry.file_name().to_str()?.to_lowercase();
            // The extension may be wrong: `main.ts` for `main.tsx`.
            let stem = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
            let mut score = strsim::normalized_damerau_levenshtein(&name, &entry_name);
            if stem(&name) == stem(&entry_name) && !stem(&name).is_empty() {
                score = score.max(0.9);
            }
            Some((score, entry.path()))
        })
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        // For equal similarity, use the first name, so that the result is deterministic.
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)))
        .map(|(_, found)| match path.strip_prefix(wanted) {
            Ok(rest) if rest.as_os_str().is_empty() => found,
            Ok(rest) => found.join(rest),
            Err(_) => found,
        })
        .filter(|found| found.exists() && !hidden(found));
    neighbour.or_else(|| find_same_name(path, workspace, hidden))
}

fn find_same_name(path: &Path, workspace: &Path, hidden: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let name = path.file_name()?;
    ignore::WalkBuilder::new(workspace)
        .require_git(false)
        .sort_by_file_name(Ord::cmp)
        .build()
        .take(MAX_ENTRIES)
        .filter_map(Result::ok)
        .find(|entry| {
            entry.file_name() == name
                && entry.file_type().is_some_and(|kind| kind.is_file())
                && !hidden(entry.path())
        })
        .map(ignore::DirEntry::into_path)
}

/// The lines of a text most similar to the wanted ones.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Nearest {
    /// Number of the first line, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// Whether only whitespace differs.
    pub(crate) only_whitespace: bool,
}

/// Finds the place that `wanted` probably means. Its longest line is the anchor; the best places of the anchor
/// are then compared completely.
pub(crate) fn find_nearest(text: &str, wanted: &str) -> Option<Nearest> {
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let wanted: Vec<&str> = wanted.trim_matches('\n').lines().take(40).collect();
    let (anchor, anchor_line) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    if anchor_line.trim().is_empty() {
        return None;
    }
    let mut places: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (line_similarity(line, anchor_line), at))
        .filter(|(score, at)| *score >= MIN_SIMILARITY && *at >= anchor)
        .collect();
    places.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    places
        .iter()
        .take(8)
        .map(|(_, at)| {
            let start = at - anchor;
            let found = &lines[start..(start + wanted.len()).min(lines.len())];
            let score: f64 = found.iter().zip(&wanted).map(|(a, b)| line_similarity(a, b)).sum();
            (score / wanted.len() as f64, start, found)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
        .filter(|(score, ..)| *score >= MIN_SIMILARITY)
        .map(|(_, start, found)| {
            let squeeze = |lines: &[&str]| -> String { lines.concat().split_whitespace().collect() };
            Nearest {
                line: start + 1,
                text: found.join("\n"),
                only_whitespace: squeeze(found) == squeeze(&wanted),
            }
        })
}

/// 1 for equal lines, slightly less if only surrounding blanks differ, otherwise by letter pairs.
fn line_similarity(a: &str, b: &str) -> f64 {
    if a == b {
        return 1.0;
    }
    let (a, b) = (a.trim(), b.trim());
    if a == b {
        return 0.98;
    }
    let (short, long) = if a.len() < b.len() { (a.len(), b.len()) } else { (b.len(), a.len()) };
    if short * 3 < long {
        return 0.0;
    }
    let cut = |text: &str| -> String { text.chars().take(MAX_LINE_CHARS).collect() };
    let by_pairs = pair_similarity(&cut(a), &cut(b));
    // A letter of a short line is part of most of its pairs.
    let is_short = a.chars().count().max(b.chars().count()) <= MAX_EDIT_DISTANCE_CHARS;
    let by_letters = if is_short { strsim::normalized_damerau_levenshtein(a, b) } else { 0.0 };
    0.95 * by_pairs.max(by_letters)
}

/// Similarity by pairs of letters (Sørensen and Dice). strsim counts pairs of letters but divides by bytes,
/// which makes non-Latin scripts seem dissimilar.
fn pair_similarity(a: &str, b: &str) -> f64 {
    let strip = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace()).collect() };
    let (a, b) = (strip(a), strip(b));
    let letters = (a.chars().count() + b.chars().count()).saturating_sub(2);
    let bytes = (a.len() + b.len()).saturating_sub(2);
    let scale = if letters == 0 { 1.0 } else { bytes as f64 / letters as f64 };
    (strsim::sorensen_dice(&a, &b) * scale).min(1.0)
}

#[cfg(test)]
mod tests {
    use crate::files::did_you_mean::*;

    #[test]
    fn nearest_text_is_found_with_line_number() {
        let text = "fn a() {\n    let x = 1;\n}\n\nfn beta(n: u32) {\n\tlet y = n + 2;\n\ty\n}\n";
        let found = find_nearest(text, "fn beta(n: u32) {\n    let y = n + 2;\n    y").unwrap();
        assert_eq!((found.line, found.only_whitespace), (5, true));
        assert_eq!(found.text, "fn beta(n: u32) {\n\tlet y = n + 2;\n\ty");
        let found = find_nearest(text, "let y = m + 2;").unwrap();
        assert_eq!((found.line, found.only_whitespace), (6, false));
        assert_eq!(find_nearest(text, "completely different words here"), None);
        for (text, wanted) in [("x = 1;", "x = 2;"), ("abc\n", "abd"), ("abc abc\nabc\n", "abd abc")] {
            assert_eq!(find_nearest(text, wanted).map(|found| found.line), Some(1), "{wanted}");
        }
        for (text, wanted) in [
            ("привет мир!", "привет мир"),
            ("привет большой и широкий мир", "превет большой и широкий мир"),
            ("设置文件的默认路径和编码方式", "设置文件的默认路经和编码方式"),
            ("café déjà vu français été", "café deja vu francais été"),
        ] {
            assert_eq!(find_nearest(text, wanted).map(|found| found.line), Some(1), "{wanted}");
        }
        assert_eq!(find_nearest("привет большой и широкий мир", "совсем другие слова здесь"), None);
        assert_eq!(find_nearest("a\nb\n", "c"), None);
        assert_eq!(find_nearest("", "x"), None);
        assert_eq!(find_nearest(text, "\n\n"), None);
    }

    #[test]
    fn missing_path_suggests_most_similar_path() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for file in ["src/main.rs", "src/config.ts", "lib/deep/only_here.py", "README.md", "lib/hidden.md"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        for (missing, expected) in [
            ("src/mian.rs", Some("src/main.rs")),
            ("src/config.tsx", Some("src/config.ts")),
            ("srcs/main.rs", Some("src/main.rs")),
            ("only_here.py", Some("lib/deep/only_here.py")),
            ("readme.md", Some("README.md")),
            ("hidden.md", None),
            ("lib/hiden.md", None),
            ("nothing/like/it.zzz", None),
        ] {
            let got = similar_path(&root.join(missing), root, &|path| path.ends_with("hidden.md"));
            assert_eq!(got, expected.map(|path| root.join(path)), "{missing}");
        }
        assert_eq!(similar_path(Path::new("/etc/hostz"), root, &|_| false), None);
    }
}
