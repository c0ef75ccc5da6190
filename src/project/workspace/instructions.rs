//! Reads `AGENTS.md` and `CLAUDE.md` from the project's root down to the folder, with `@path` includes. Text
//! only: nothing is run, and nothing outside the root is read.

use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use crate::folders::ProjectFolders;

/// Bytes of one file that are read.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Bytes of all files.
const MAX_TOTAL_BYTES: usize = 192 * 1024;
/// Depth of nested includes.
const MAX_DEPTH: usize = 4;
/// Number of skipped includes that are described; further ones are counted.
const MAX_SKIPPED: usize = 10;
/// Maximum characters of a name in a description. The name comes from the folder and may be of any length.
const MAX_NAME_CHARS: usize = 120;

const FILE_NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Endings of texts. Any other `@path` that does not exist is more likely a package, a folder or a decorator
/// than an include.
const TEXT_ENDINGS: [&str; 4] = ["md", "mdc", "markdown", "txt"];

/// One file of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub path: PathBuf,
    pub text: String,
}

/// The files of instructions, and the omitted parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InstructionFiles {
    pub files: Vec<Instruction>,
    /// For users: each include or file that is missing in whole or in part, with the reason.
    pub skipped: Vec<String>,
}

/// Collects the user's own file, then the files of each folder from the project's root down to the session's folder, then
/// the files of each additional folder and its project in the same way.
pub(super) fn collect(
    project: &ProjectFolders,
    additional: &[PathBuf],
    user_dir: Option<&Path>,
) -> InstructionFiles {
    let mut reader = InstructionReader {
        seen: HashSet::new(),
        including: Vec::new(),
        bytes: 0,
        files: Vec::new(),
        skipped: Vec::new(),
    };
    if let Some(dir) = user_dir.and_then(|dir| dir.canonicalize().ok()) {
        reader.read_top_level(&dir.join(FILE_NAMES[0]), &dir);
    }
    reader.read_from_root(project);
    for folder in additional {
        reader.read_from_root(&project.find_other(folder));
    }
    let InstructionReader { files, seen, skipped, .. } = reader;
    // Do not report an include that was nested too deep if another file has included the same file.
    let is_missing =
        |skip: &SkippedInclude| !(skip.is_too_deep && skip.path.as_ref().is_some_and(|it| seen.contains(it)));
    let missing: Vec<String> = skipped.into_iter().filter(is_missing).map(|skip| skip.text).collect();
    let more = missing.len().saturating_sub(MAX_SKIPPED);
    let further = (more > 0).then(|| format!("and {more} more"));
    InstructionFiles { files, skipped: missing.into_iter().take(MAX_SKIPPED).chain(further).collect() }
}

/// An include or file that is missing in whole or in part.
struct SkippedInclude {
    path: Option<PathBuf>,
    is_too_deep: bool,
    text: String,
}

struct InstructionReader {
    seen: HashSet<PathBuf>,
    /// The file that is being read and the files that include it, outermost first.
    including: Vec<PathBuf>,
    bytes: usize,
    files: Vec<Instruction>,
    skipped: Vec<SkippedInclude>,
}

impl InstructionReader {
    fn read_from_root(&mut self, project: &ProjectFolders) {
        let mut folders: Vec<&Path> = project.nearest_first().collect();
        folders.reverse();
        for folder in folders {
            for name in FILE_NAMES {
                self.read_top_level(&folder.join(name), project.root());
            }
        }
    }

    /// Reads a file that no other file includes, if it exists.
    fn read_top_level(&mut self, path: &Path, root: &Path) {
        if path.symlink_metadata().is_ok() {
            let read = self.read(path, root);
            self.record_skip(read, path, || shorten(&path.to_string_lossy()));
        }
    }

    /// Reads a file and its includes. `Err` says why a part or all of it is missing.
    fn read(&mut self, path: &Path, root: &Path) -> Result<(), String> {
        // Resolve the path first: a link must not lead out of the root.
        let resolved = path.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => NOT_FOUND.to_owned(),
            _ => format!("could not be opened ({error})"),
        })?;
        if !resolved.starts_with(root) {
            return Err(format!("is outside {}", root.display()));
        }
        if self.including.contains(&resolved) {
            return Err("includes itself in a loop".into());
        }
        // A second include of the same text adds nothing, and no text is missing.
        if self.seen.contains(&resolved) {
            return Ok(());
        }
        if self.including.len() > MAX_DEPTH {
            return Err(TOO_DEEP.into());
        }
        self.seen.insert(resolved.clone());
        let (mut text, is_cut) = read_text(&resolved)?;
        if is_cut {
            text.push_str("\n[cut: the file is longer]");
        }
        // Count the path as well, because it is a heading in the prompt.
        let bytes = text.len() + resolved.as_os_str().len();
        if self.bytes + bytes > MAX_TOTAL_BYTES {
            return Err(format!(
                "does not fit: all instructions have at most {} KiB",
                MAX_TOTAL_BYTES / 1024
            ));
        }
        self.bytes += bytes;
        let includes = includes(&text);
        self.files.push(Instruction { path: resolved.clone(), text });
        let folder = resolved.parent().unwrap_or(root).to_path_buf();
        self.including.push(resolved.clone());
        for include in includes {
            let path = folder.join(&include);
            let read = self.read(&path, root);
            let is_no_file = read.as_ref().is_err_and(|why| [NOT_FOUND, NOT_A_FILE].contains(&why.as_str()));
            if is_no_file && !is_text(&include) {
                continue;
            }
            self.record_skip(read, &path, || {
                format!("@{} in {}", shorten(&include), shorten(&resolved.to_string_lossy()))
            });
        }
        self.including.pop();
        if is_cut {
            return Err(format!("is cut after {} KiB", MAX_FILE_BYTES / 1024));
        }
        Ok(())
    }

    fn record_skip(&mut self, read: Result<(), String>, path: &Path, name: impl FnOnce() -> String) {
        if let Err(why) = read {
            let (path, is_too_deep) = (path.canonicalize().ok(), why == TOO_DEEP);
            self.skipped.push(SkippedInclude { path, is_too_deep, text: format!("{} {why}", name()) });
        }
    }
}

const TOO_DEEP: &str = "is nested deeper than 4 includes";
const NOT_FOUND: &str = "does not exist";
const NOT_A_FILE: &str = "is not a file";

fn is_text(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|it| TEXT_ENDINGS.iter().any(|ending| it == *ending))
}

/// The text of a file without links on its path, and whether it is longer.
fn read_text(resolved: &Path) -> Result<(String, bool), String> {
    let failed = |error: &dyn std::fmt::Display| format!("could not be read ({error})");
    // A path that has become a link or a pipe since then is an attack.
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    let file = openat2(AT_FDCWD, resolved, how).map(File::from).map_err(|error| failed(&error))?;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(NOT_A_FILE.into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    let is_cut = bytes.len() as u64 > MAX_FILE_BYTES;
    bytes.truncate(MAX_FILE_BYTES as usize);
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_cut))
}

fn shorten(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

/// Paths named by `@path` words outside code fences.
fn includes(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut paths = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let named = line.split_whitespace().filter_map(|word| word.strip_prefix('@'));
            paths.extend(
                named
                    .map(|path| path.trim_end_matches([',', '.', ';', ')']))
                    .filter(|path| path.contains(['/', '.']))
                    .map(String::from),
            );
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(cwd: &Path, additional: &[PathBuf], user_dir: Option<&Path>) -> InstructionFiles {
        let project = ProjectFolders::find(cwd, Path::new("/nonexistent"));
        super::collect(&project, additional, user_dir)
    }

    fn make_repository(folder: &Path) {
        for name in [".git/objects", ".git/refs"] {
            std::fs::create_dir_all(folder.join(name)).expect("made");
        }
        std::fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").expect("written");
    }

    fn texts(cwd: &Path) -> Vec<String> {
        collect(cwd, &[], None).files.into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn instructions_are_read_from_root_with_includes() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("resolved");
        make_repository(&root);
        std::fs::create_dir_all(root.join("a/b")).expect("made");
        std::fs::write(root.join("AGENTS.md"), "root, see @docs.md.").expect("written");
        std::fs::write(root.join("docs.md"), "docs @AGENTS.md").expect("written");
        std::fs::write(root.join("a/CLAUDE.md"), "below").expect("written");
        assert_eq!(texts(&root.join("a/b")), ["root, see @docs.md.", "docs @AGENTS.md", "below"]);
    }

    #[test]
    fn instructions_outside_root_are_not_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("resolved");
        make_repository(&base.join("ws"));
        std::fs::write(base.join("secret.md"), "secret").expect("written");
        std::fs::write(base.join("ws/AGENTS.md"), "@../secret.md @link.md").expect("written");
        std::os::unix::fs::symlink(base.join("secret.md"), base.join("ws/link.md")).expect("linked");
        assert_eq!(texts(&base.join("ws")), ["@../secret.md @link.md"]);
    }

    #[test]
    fn paths_of_instructions_count_towards_their_limit() {
        let dir = tempfile::tempdir().expect("a folder");
        let ws = dir.path().canonicalize().expect("resolved").join("x".repeat(200)).join("y".repeat(200));
        make_repository(&ws);
        let names: Vec<String> = (0..600).map(|n| format!("{n}.md")).collect();
        names.iter().for_each(|name| std::fs::write(ws.join(name), "").expect("written"));
        let list: Vec<String> = names.iter().map(|name| format!("@{name}")).collect();
        std::fs::write(ws.join("AGENTS.md"), list.join(" ")).expect("written");
        let collected = collect(&ws, &[], None);
        let bytes: usize = collected.files.iter().map(|file| file.path.as_os_str().len()).sum();
        assert!(bytes <= MAX_TOTAL_BYTES && collected.skipped[0].contains("does not fit"), "{bytes}");
    }

    #[test]
    fn skipped_includes_are_named_with_reason() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("resolved");
        let ws = base.join("ws");
        make_repository(&ws);
        let write = |path: &str, text: &str| std::fs::write(ws.join(path), text).expect("written");
        std::fs::write(base.join("secret.md"), "secret").expect("written");
        write(
            "AGENTS.md",
            "@../secret.md @gone.md @types/node @loop.md @loop.md @a.md @long.txt @.git/objects \n```\n@no.md\n```\n",
        );
        write("loop.md", "@AGENTS.md");
        for (name, next) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "e")] {
            write(&format!("{name}.md"), &format!("@{next}.md"));
        }
        write("long.txt", &"x".repeat(MAX_FILE_BYTES as usize + 1));
        let skipped = collect(&ws, &[], None).skipped;
        let at = |name: &str, of: &str, why: &str| format!("@{name} in {}/{of} {why}", ws.display());
        assert_eq!(
            skipped,
            [
                at("../secret.md", "AGENTS.md", &format!("is outside {}", ws.display())),
                at("gone.md", "AGENTS.md", "does not exist"),
                at("AGENTS.md", "loop.md", "includes itself in a loop"),
                at("e.md", "d.md", "is nested deeper than 4 includes"),
                at("long.txt", "AGENTS.md", "is cut after 64 KiB"),
            ]
        );
        // `AGENTS.md` now also includes the file that was nested too deep, so it is not reported.
        write("AGENTS.md", "@a.md @e.md");
        assert_eq!(collect(&ws, &[], None).skipped, [at("e.md", "e.md", "includes itself in a loop")]);
        write("AGENTS.md", &"@gone.md ".repeat(30));
        let skipped = collect(&ws, &[], None).skipped;
        assert_eq!((skipped.len(), skipped.last().map(String::as_str)), (11, Some("and 20 more")));
        std::fs::remove_file(ws.join("AGENTS.md")).expect("removed");
        std::os::unix::fs::symlink(base.join("secret.md"), ws.join("AGENTS.md")).expect("linked");
        let collected = collect(&ws, &[], None);
        assert!(collected.files.is_empty() && collected.skipped[0].contains("is outside"), "{collected:?}");
    }
}
