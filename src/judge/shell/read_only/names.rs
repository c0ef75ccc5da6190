//! What the text of a path or pattern says about its files.

#[cfg(test)]
use crate::file_facts::{FileRead, NameRule, Obstacle, ObstacleKind, ReadKind, Selection};
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::Folders;

/// Programs whose options all only read files in the workspace without secrets: a file may have the
/// name of an option.
pub(super) fn is_harmless_with_any_option(name: &str) -> bool {
    matches!(name, "ls" | "cat" | "tac" | "head" | "rev" | "nl" | "stat")
}

/// Whether a component is a pattern that may match `..`.
pub(super) fn may_be_folder_above(part: &str) -> bool {
    part.starts_with('.') && part.contains(['*', '?', '[']) && resolve::can_be(part, "..", true)
}

/// Devices for output, which never end when they are read.
pub(super) fn is_output(path: &str) -> bool {
    matches!(path, "/dev/stdout" | "/dev/stderr")
}

/// Whether a format requests an excessive number of blanks: `%999999s`.
pub(super) fn has_excessive_width(text: &str) -> bool {
    text.match_indices('%').any(|(index, _)| {
        let width = text[index + 1..].trim_start_matches(|c: char| "-+ #'0^_<>|(,.".contains(c));
        width.bytes().take_while(u8::is_ascii_digit).count() > 3
    })
}

/// Whether a text names something outside the workspace, from any of the possible folders.
pub(crate) fn is_outside(text: &str, cwds: &[String], folders: &Folders) -> bool {
    if text.is_empty() || text == "-" {
        return false;
    }
    if text.starts_with('~') || text.contains("://") || text.contains('$') {
        return true;
    }
    if matches!(text, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr") {
        return false;
    }
    cwds.iter().any(|cwd| !folders.contains_path(&resolve::resolve_in(text, cwd, folders)))
}

/// Whether a path has an extension that folders rarely have.
pub(super) fn names_a_file(path: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "txt", "json", "jsonl", "toml", "yaml", "yml", "lock", "csv", "tsv", "xml", "sh", "diff", "patch",
        "ini", "cfg", "svg",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, ending)| ending);
    CODE.contains(&ending) || ENDINGS.contains(&ending)
}

/// Extensions of files with code or prose, whatever their name.
const CODE: &[&str] = &[
    "rs", "py", "go", "ts", "js", "md", "c", "h", "cc", "cpp", "cxx", "hpp", "java", "kt", "rb", "php", "cs",
    "swift", "scala", "tsx", "jsx", "mjs", "cjs", "vue", "svelte", "html", "css", "scss", "sql", "proto",
];

/// Files that exist in most projects and never contain secrets.
const MANIFESTS: &[&str] = &["Cargo.toml", "package.json", "tsconfig.json", "pyproject.toml", "Makefile"];

/// A glob with an extension that determines the kind of file, and that matches no secret file.
pub(super) fn is_harmless_glob(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    if text.split('/').any(|part| part.starts_with('.') && part.len() > 1 && part != "..") {
        return false;
    }
    if MANIFESTS.contains(&name) {
        return true;
    }
    let Some((_, ending)) = name.rsplit_once('.') else { return false };
    !ending.is_empty()
        && ending.bytes().all(|c| c.is_ascii_alphanumeric())
        && !resolve::is_secret(&format!("x.{ending}"))
        && (CODE.contains(&ending) || !text.split('/').any(resolve::may_be_secret))
}

/// A disk on which each pattern matches a secret unless its ending says otherwise, and each searched
/// folder holds one, which git does not track.
#[cfg(test)]
pub(crate) fn worst_disk(read: &FileRead) -> Option<Obstacle> {
    let path = read.path.as_str();
    let kind = match &read.kind {
        _ if read.is_pattern && read.names != NameRule::Any => ObstacleKind::OddName,
        ReadKind::File if read.is_pattern && !is_harmless_glob(path) => ObstacleKind::Secret,
        ReadKind::Tree(search) if search.selection == Selection::Patches => return None,
        ReadKind::Tree(_) if read.is_pattern || !names_a_file(path) => ObstacleKind::Secret,
        ReadKind::Absent(_) => ObstacleKind::ChoosesProgram,
        ReadKind::Names | ReadKind::File | ReadKind::Tree(_) => return None,
    };
    Some(Obstacle { path: read.path.clone(), kind })
}
