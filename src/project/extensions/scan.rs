//! Finds Markdown files below a folder of the user, with limits on number, size and depth. A link may lead anywhere that the
//! user owns, except to what looks like a secret; a workspace that it leads into must be trusted.

use std::fs;
use std::path::{Path, PathBuf};

use super::Diagnostic;
use crate::folders::{read_up_to, user_target};
use base::charset;
use base::open::open_resolved;

/// Maximum bytes of one file.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Maximum bytes of all files of one folder.
const MAX_ALL_BYTES: u64 = 32 << 20;
/// Maximum number of files and folders below one folder.
const MAX_ENTRIES: usize = 20_000;
/// Maximum depth of sub-folders.
const MAX_DEPTH: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownFile {
    /// Its path, for users.
    pub path: PathBuf,
    /// Its path below the scanned folder, without the ending: sub-folders and the file's name.
    pub name: Vec<String>,
    /// Its content.
    pub text: String,
}

/// What links in the user's folders may lead to.
#[derive(Clone, Copy)]
pub struct UserLinks<'c> {
    /// The user's home folder.
    pub home: &'c Path,
    /// Refuses the target of a link, for example in a workspace that is not trusted. May block.
    pub check: &'c dyn Fn(&Path) -> Result<(), String>,
}

impl UserLinks<'_> {
    /// The target of a link, if it may be followed.
    fn target(&self, link: &Path) -> Result<PathBuf, String> {
        let target = user_target(link, self.home)?;
        (self.check)(&target)?;
        Ok(target)
    }

    /// A folder of the user without links. It may be a link itself, and so may the folder that holds it.
    pub(super) fn folder(&self, folder: &Path) -> Result<PathBuf, String> {
        let is_linked = folder.is_symlink() || folder.parent().is_some_and(Path::is_symlink);
        match is_linked {
            true => self.target(folder),
            false => folder.canonicalize().map_err(|error| format!("could not read the folder: {error}")),
        }
    }

    /// The path of an entry of a folder without links.
    pub(super) fn entry(&self, path: &Path) -> Result<PathBuf, String> {
        if path.is_symlink() { self.target(path) } else { Ok(path.to_owned()) }
    }
}

/// The Markdown files below a folder in the order of their names. A missing folder has none. Blocking.
#[must_use]
pub fn scan(folder: &Path, links: UserLinks<'_>) -> (Vec<MarkdownFile>, Vec<Diagnostic>) {
    let mut walk = FileWalk {
        links,
        files: Vec::new(),
        diagnostics: Vec::new(),
        entries: 0,
        bytes: 0,
        above: Vec::new(),
    };
    if folder.exists() {
        match links.folder(folder) {
            Ok(real) => walk.scan_folder(folder, &real, &mut Vec::new()),
            Err(message) => walk.report_problem(folder, message),
        }
    }
    (walk.files, walk.diagnostics)
}

/// The Markdown files among contents that were read before. Each has its path below `folder`, and its content or
/// the reason why it could not be read.
#[must_use]
pub fn files_from_contents(
    folder: &Path,
    contents: Vec<(PathBuf, Result<Vec<u8>, String>)>,
) -> (Vec<MarkdownFile>, Vec<Diagnostic>) {
    let (mut files, mut diagnostics) = (Vec::new(), Vec::new());
    for (below, content) in contents {
        let path = folder.join(&below);
        let parsed = content.and_then(|bytes| {
            if bytes.len() as u64 > MAX_FILE_BYTES {
                return Err(too_long_message());
            }
            let name = name_parts(&below).ok_or("the name is not UTF-8")?;
            Ok(MarkdownFile { path: path.clone(), name, text: decode(&bytes)? })
        });
        match parsed {
            Ok(file) => files.push(file),
            Err(message) => diagnostics.push(Diagnostic { path, message }),
        }
    }
    (files, diagnostics)
}

fn too_long_message() -> String {
    format!("the file is too long; at most {MAX_FILE_BYTES} bytes are read")
}

fn name_parts(below: &Path) -> Option<Vec<String>> {
    below.with_extension("").iter().map(|part| part.to_str().map(str::to_owned)).collect()
}

/// The text of a file in any encoding that can be recognised.
///
/// # Errors
/// It is no text; the reason, for users.
pub(super) fn decode(bytes: &[u8]) -> Result<String, String> {
    if let Some(kind) = charset::binary_kind(bytes) {
        return Err(format!("the content is {kind} and no text"));
    }
    let text = charset::text_of(bytes).1.ok_or("the content is no text in a known encoding")?;
    Ok(text.into_owned())
}

/// Reads a file by its path without links.
pub(super) fn read(real: &Path) -> Result<Vec<u8>, String> {
    let could_not = |error: std::io::Error| format!("could not read the file: {error}");
    let file = open_resolved(real).map_err(could_not)?;
    read_up_to(file, MAX_FILE_BYTES).map_err(could_not)?.ok_or_else(too_long_message)
}

struct FileWalk<'c> {
    links: UserLinks<'c>,
    files: Vec<MarkdownFile>,
    diagnostics: Vec<Diagnostic>,
    entries: usize,
    bytes: u64,
    /// The folders without links that are being scanned, the outermost first.
    above: Vec<PathBuf>,
}

impl FileWalk<'_> {
    fn report_problem(&mut self, path: &Path, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic { path: path.to_owned(), message: message.into() });
    }

    /// `real` is the folder without links.
    fn scan_folder(&mut self, folder: &Path, real: &Path, names_above: &mut Vec<String>) {
        if names_above.len() > MAX_DEPTH {
            return self.report_problem(folder, format!("the folder is more than {MAX_DEPTH} levels deep"));
        }
        let listed = match fs::read_dir(real) {
            Ok(listed) => listed,
            Err(error) => return self.report_problem(folder, format!("could not read the folder: {error}")),
        };
        let left = MAX_ENTRIES - self.entries;
        let mut names: Vec<_> = listed.flatten().take(left + 1).map(|entry| entry.file_name()).collect();
        self.entries += names.len().min(left);
        names.sort_unstable();
        if names.len() > left {
            names.truncate(left);
            self.report_problem(folder, format!("only {MAX_ENTRIES} files and folders are read"));
        }
        self.above.push(real.to_owned());
        for name in names {
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let path = folder.join(name);
            let stem = name.strip_suffix(".md");
            let real = match self.links.entry(&real.join(name)) {
                Ok(real) => real,
                // Links to other things than Markdown are of no interest.
                Err(message) => {
                    if stem.is_some() || !name.contains('.') {
                        self.report_problem(&path, message);
                    }
                    continue;
                }
            };
            if real.is_dir() {
                if self.above.iter().any(|above| above.starts_with(&real)) {
                    self.report_problem(&path, "the link leads in a circle and is not followed");
                    continue;
                }
                names_above.push(name.to_owned());
                self.scan_folder(&path, &real, names_above);
                names_above.pop();
            } else if let Some(stem) = stem {
                match self.read(&real) {
                    Ok(text) => {
                        let name = names_above.iter().cloned().chain([stem.to_owned()]).collect();
                        self.files.push(MarkdownFile { path, name, text });
                    }
                    Err(message) => self.report_problem(&path, message),
                }
            }
        }
        self.above.pop();
    }

    fn read(&mut self, real: &Path) -> Result<String, String> {
        let bytes = read(real)?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_ALL_BYTES {
            return Err(format!("the files of this folder have more than {MAX_ALL_BYTES} bytes together"));
        }
        decode(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Scans with links to anything but `refused`.
    fn scan(folder: &Path) -> (Vec<MarkdownFile>, Vec<Diagnostic>) {
        let check = |target: &Path| match target.iter().any(|part| part == "refused") {
            true => Err("the workspace is not trusted".to_owned()),
            false => Ok(()),
        };
        super::scan(folder, UserLinks { home: Path::new("/nonexistent"), check: &check })
    }

    fn names(files: &[MarkdownFile]) -> Vec<String> {
        files.iter().map(|file| file.name.join(":")).collect()
    }

    #[test]
    fn scan_reads_nested_files_and_follows_links_of_the_user() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("commands");
        for folder in ["commands/team", "dots/more", "refused"] {
            fs::create_dir_all(dir.path().join(folder)).expect("made");
        }
        let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).expect("written");
        write("dots/shared.md", b"Shared.");
        write("dots/more/deep.md", b"Deep.");
        write("dots/credentials.json", b"secret");
        write("refused/x.md", b"secret");
        write("commands/team/review.md", b"Review.");
        write("commands/notes.txt", b"no");
        write("commands/long.md", "x".repeat(300_000).as_bytes());
        write("commands/bytes.md", &[0, 1, 2, 3]);
        write("commands/gbk.md", &encoding_rs::GBK.encode("第一行：你好，世界。这是一个测试文件。").0);
        for (target, link) in [
            ("../dots/shared.md", "linked.md"),
            ("../dots/more", "more"),
            ("../dots/credentials.json", "leak.md"),
            ("../refused/x.md", "foreign.md"),
            ("../gone.md", "gone.md"),
            ("/etc/hostname", "system.txt"),
            ("team/review.md", "inside.md"),
        ] {
            symlink(target, root.join(link)).expect("linked");
        }
        symlink("..", root.join("team/up")).expect("linked");
        symlink("../../dots", dir.path().join("dots/more/round")).expect("linked");
        let (files, diagnostics) = scan(&root);
        assert_eq!(names(&files), ["gbk", "inside", "linked", "more:deep", "team:review"], "{diagnostics:?}");
        assert!(files[0].text.starts_with("第一行"), "{files:?}");
        let reported: Vec<String> =
            diagnostics.iter().map(|it| it.path.file_name().unwrap().to_string_lossy().into()).collect();
        let expected = ["bytes.md", "foreign.md", "gone.md", "leak.md", "long.md", "round", "up"];
        assert_eq!(reported, expected, "{diagnostics:?}");
        assert!(files.iter().all(|file| !file.text.contains("secret")));
    }

    #[test]
    fn folder_that_is_a_link_is_checked_and_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        for (target, names_expected) in [("dots", vec!["a"]), ("refused", Vec::new())] {
            let folder = dir.path().join(target).join("commands");
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join("a.md"), "x").expect("written");
            let link = dir.path().join(format!("link-{target}"));
            symlink(dir.path().join(target), &link).expect("linked");
            let (files, diagnostics) = scan(&link.join("commands"));
            assert_eq!(names(&files), names_expected, "{diagnostics:?}");
            assert_eq!(diagnostics.len(), usize::from(names_expected.is_empty()));
        }
    }

    #[test]
    fn scan_of_huge_folder_is_bounded() {
        let dir = tempfile::tempdir().expect("a folder");
        for n in 0..MAX_ENTRIES + 100 {
            fs::write(dir.path().join(format!("c{n}.md")), "x").expect("written");
        }
        let (files, diagnostics) = scan(dir.path());
        assert_eq!((files.len(), diagnostics.len()), (MAX_ENTRIES, 1));
        assert_eq!(scan(&dir.path().join("missing")), (Vec::new(), Vec::new()));
    }
}
