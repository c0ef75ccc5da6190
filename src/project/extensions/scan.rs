//! Finds Markdown files below a folder, with limits on number, size and depth. A link may not leave the folder.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::Diagnostic;

/// Maximum bytes of one file.
const MAX_FILE_BYTES: u64 = 128 * 1024;
/// Maximum bytes of all files of one folder.
const MAX_ALL_BYTES: u64 = 4 << 20;
/// Maximum number of files and folders below one folder.
const MAX_ENTRIES: usize = 1_000;
/// Maximum depth of sub-folders.
const MAX_DEPTH: usize = 5;

/// One Markdown file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownFile {
    /// Its path, for users.
    pub path: PathBuf,
    /// Its path below the scanned folder, without the ending: sub-folders and the file's name.
    pub name: Vec<String>,
    /// Its content.
    pub text: String,
}

/// The Markdown files below a folder in the order of their names. A missing folder has none. Blocking.
#[must_use]
pub fn scan(folder: &Path) -> (Vec<MarkdownFile>, Vec<Diagnostic>) {
    let Ok(root) = folder.canonicalize() else { return (Vec::new(), Vec::new()) };
    let mut walk = FileWalk { root, files: Vec::new(), diagnostics: Vec::new(), entries: 0, bytes: 0 };
    walk.scan_folder(folder, &mut Vec::new());
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
            let text = String::from_utf8(bytes).map_err(|_| "the content is not UTF-8")?;
            Ok(MarkdownFile { path: path.clone(), name, text })
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

struct FileWalk {
    /// The scanned folder without links.
    root: PathBuf,
    files: Vec<MarkdownFile>,
    diagnostics: Vec<Diagnostic>,
    entries: usize,
    bytes: u64,
}

impl FileWalk {
    fn report_problem(&mut self, path: &Path, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic { path: path.to_owned(), message: message.into() });
    }

    fn scan_folder(&mut self, folder: &Path, above: &mut Vec<String>) {
        if above.len() > MAX_DEPTH {
            self.report_problem(folder, format!("only {MAX_DEPTH} levels of folders are read"));
            return;
        }
        let listed = match fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(error) => return self.report_problem(folder, format!("could not read the folder: {error}")),
        };
        let left = MAX_ENTRIES - self.entries;
        let mut names: Vec<_> = listed.flatten().take(left + 1).map(|entry| entry.file_name()).collect();
        self.entries += names.len().min(left);
        if names.len() > left {
            names.truncate(left);
            self.report_problem(folder, format!("only {MAX_ENTRIES} files and folders are read"));
        }
        names.sort_unstable();
        for name in names {
            let path = folder.join(&name);
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let Ok(resolved) = path.canonicalize() else { continue };
            if !resolved.starts_with(&self.root) {
                self.report_problem(&path, "the link leaves the folder and is not followed");
                continue;
            }
            // A link to a folder could lead in a circle.
            if path.is_symlink() && resolved.is_dir() {
                self.report_problem(&path, "a link to a folder is not followed");
            } else if resolved.is_dir() {
                above.push(name.to_owned());
                self.scan_folder(&path, above);
                above.pop();
            } else if let Some(stem) = name.strip_suffix(".md") {
                match self.read(&resolved) {
                    Ok(text) => {
                        let name = above.iter().cloned().chain([stem.to_owned()]).collect();
                        self.files.push(MarkdownFile { path, name, text });
                    }
                    Err(message) => self.report_problem(&path, message),
                }
            }
        }
    }

    fn read(&mut self, resolved: &Path) -> Result<String, String> {
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let open = File::options().read(true).custom_flags(flags).open(resolved);
        let could_not = |error: std::io::Error| format!("could not read the file: {error}");
        let file = open.map_err(could_not)?;
        if !file.metadata().map_err(could_not)?.is_file() {
            return Err("it is not a file".into());
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(could_not)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(too_long_message());
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_ALL_BYTES {
            return Err(format!("the files of this folder have more than {MAX_ALL_BYTES} bytes together"));
        }
        String::from_utf8(bytes).map_err(|_| "the content is not UTF-8".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_reads_nested_files_and_refuses_links_that_leave() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("commands");
        fs::create_dir_all(root.join("team")).expect("made");
        fs::write(dir.path().join("secret.md"), "secret").expect("written");
        fs::write(root.join("team/review.md"), "Review.").expect("written");
        fs::write(root.join("notes.txt"), "no").expect("written");
        fs::write(root.join("long.md"), "x".repeat(200_000)).expect("written");
        fs::write(root.join("bytes.md"), [0xff, 0xfe]).expect("written");
        std::os::unix::fs::symlink("../secret.md", root.join("leak.md")).expect("linked");
        std::os::unix::fs::symlink("team/review.md", root.join("inside.md")).expect("linked");
        std::os::unix::fs::symlink("..", root.join("team/up")).expect("linked");
        let (files, diagnostics) = scan(&root);
        let names: Vec<String> = files.iter().map(|file| file.name.join(":")).collect();
        assert_eq!(names, ["inside", "team:review"]);
        let reported_names: Vec<String> =
            diagnostics.iter().map(|it| it.path.file_name().unwrap().to_string_lossy().into()).collect();
        assert_eq!(reported_names, ["bytes.md", "leak.md", "long.md", "up"], "{diagnostics:?}");
        assert!(files.iter().all(|file| !file.text.contains("secret")));
    }

    #[test]
    fn scan_of_huge_folder_is_bounded() {
        let dir = tempfile::tempdir().expect("a folder");
        for n in 0..1_100 {
            fs::write(dir.path().join(format!("c{n}.md")), "x").expect("written");
        }
        let (files, diagnostics) = scan(dir.path());
        assert_eq!((files.len(), diagnostics.len()), (MAX_ENTRIES, 1));
        assert_eq!(scan(&dir.path().join("missing")), (Vec::new(), Vec::new()));
    }
}
