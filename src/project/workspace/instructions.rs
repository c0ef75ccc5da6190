//! Reads `AGENTS.md` and `CLAUDE.md` from the project's root down to the folder, with `@path` includes. Text
//! only: nothing is run. Of what lies outside the root, a project's file gets only the user's files for agents.

use std::collections::HashSet;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use crate::folders::{ProjectFolders, refuse_secret, user_target};
use crate::markdown::{FenceLine, Fences, without_code};
use base::charset::{self, Extent};
use base::open::open_resolved;

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

/// The user's own file in the configuration folder.
const USER_FILE: &str = "AGENTS.md";
/// The user's own file for another program, in the home folder.
const CLAUDE_USER_FILE: &str = ".claude/CLAUDE.md";
/// The files of each folder of a project.
const FILE_NAMES: [&str; 4] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"];
/// Folders in the home folder from which a project's file may include the user's texts for agents.
const USER_FOLDERS: [&str; 4] = [".claude", ".kode", ".agents", ".config/agentd"];
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
        home: project.home().to_owned(),
    };
    if let Some(dir) = user_dir {
        reader.read_top_level(&dir.join(USER_FILE), &Scope::User);
    }
    reader.read_top_level(&project.home().join(CLAUDE_USER_FILE), &Scope::User);
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

/// Whose text it is, which decides what it may include.
#[derive(Clone, Debug)]
enum Scope {
    /// The user's own.
    User,
    /// Of a project with this root.
    Project(PathBuf),
}

struct InstructionReader {
    home: PathBuf,
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
        let scope = Scope::Project(project.root().to_owned());
        for folder in folders {
            for name in FILE_NAMES {
                self.read_top_level(&folder.join(name), &scope);
            }
        }
    }

    /// Reads a file that no other file includes, if it exists.
    fn read_top_level(&mut self, path: &Path, scope: &Scope) {
        if path.symlink_metadata().is_ok() {
            let read = self.read(path, scope);
            self.record_skip(read, path, || shorten(&path.to_string_lossy()));
        }
    }

    /// Reads a file and its includes. `Err` says why a part or all of it is missing.
    fn read(&mut self, path: &Path, scope: &Scope) -> Result<(), String> {
        // Resolve the path first: a link must not lead out of the root.
        let resolved = path.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => NOT_FOUND.to_owned(),
            _ => format!("could not be opened ({error})"),
        })?;
        self.check_scope(&resolved, scope)?;
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
        let folder = resolved.parent().unwrap_or(&resolved).to_path_buf();
        self.including.push(resolved.clone());
        for include in includes {
            let path = match include.strip_prefix("~/") {
                Some(below) => self.home.join(below),
                None => folder.join(&include),
            };
            let read = self.read(&path, scope);
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

    /// Whether a text of this scope may include a file, by its path without links.
    fn check_scope(&self, resolved: &Path, scope: &Scope) -> Result<(), String> {
        let refused = |_| SECRET.to_owned();
        let root = match scope {
            Scope::User => {
                return user_target(resolved, &self.home).map(|_| ()).map_err(|_| NOT_OF_USER.to_owned());
            }
            Scope::Project(root) => root,
        };
        let is_text_of_user = || {
            let mut folders = USER_FOLDERS.iter().filter_map(|name| self.home.join(name).canonicalize().ok());
            let is_owned = user_target(resolved, &self.home).is_ok();
            is_owned && is_text(&resolved.to_string_lossy()) && folders.any(|it| resolved.starts_with(it))
        };
        if !resolved.starts_with(root) && !is_text_of_user() {
            return Err(format!("is outside {}", root.display()));
        }
        refuse_secret(resolved, &self.home).map_err(refused)
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
const SECRET: &str = "looks like a secret";
const NOT_OF_USER: &str = "belongs to another user or looks like a secret";

fn is_text(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|it| TEXT_ENDINGS.iter().any(|ending| it == *ending))
}

/// The text of a file without links on its path, and whether it is longer.
fn read_text(resolved: &Path) -> Result<(String, bool), String> {
    let failed = |error: &dyn std::fmt::Display| format!("could not be read ({error})");
    if !resolved.is_file() {
        return Err(NOT_A_FILE.into());
    }
    let file = open_resolved(resolved).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    let is_cut = bytes.len() as u64 > MAX_FILE_BYTES;
    bytes.truncate(MAX_FILE_BYTES as usize);
    if let Some(kind) = charset::binary_kind(&bytes) {
        return Err(format!("is {kind} and no text"));
    }
    let found = charset::detect(&bytes, if is_cut { Extent::Beginning } else { Extent::Whole });
    let (text, _) = found.encoding.decode_without_bom_handling(&bytes[found.bom.min(bytes.len())..]);
    // The cut may have halved a character.
    let text = if is_cut { text.trim_end_matches('\u{fffd}') } else { &text };
    Ok((text.to_owned(), is_cut))
}

fn shorten(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

/// Paths named by `@path` words outside code.
fn includes(text: &str) -> Vec<String> {
    let mut fences = Fences::default();
    let prose = text.lines().filter(|line| fences.next_line(line) == FenceLine::Text);
    let paths = prose.flat_map(|line| {
        let words = without_code(line);
        let paths = words.split_whitespace().filter_map(path_of_word).map(str::to_owned);
        paths.collect::<Vec<_>>()
    });
    paths.collect()
}

/// The path of an `@path` word. Brackets, quotes and punctuation around it are text.
fn path_of_word(word: &str) -> Option<&str> {
    let word = word.trim_start_matches(['(', '[', '{', '"', '\'', '*', '_', '<']);
    let path = word.strip_prefix('@')?;
    let path = path.trim_end_matches([
        ',', '.', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '*', '>', '，', '。', '：', '；', '）',
    ]);
    path.contains(['/', '.']).then_some(path)
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
    fn files_of_other_programs_and_of_the_user_are_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("resolved");
        let (home, ws) = (base.join("home"), base.join("home/ws"));
        for folder in [".config/agentd", ".claude", "notes", "dots", "ws/.claude", "ws/sub/.claude"] {
            std::fs::create_dir_all(home.join(folder)).expect("made");
        }
        make_repository(&ws);
        let write = |name: &str, text: &str| std::fs::write(home.join(name), text).expect("written");
        write(".config/agentd/AGENTS.md", "user @~/notes/mine.md @~/.netrc @~/.claude/.credentials.json");
        write("dots/CLAUDE.md", "linked");
        std::os::unix::fs::symlink("../dots/CLAUDE.md", home.join(".claude/CLAUDE.md")).expect("linked");
        write(".claude/style.md", "style");
        write(".claude/.credentials.json", "secret");
        write(".netrc", "secret");
        write("notes/mine.md", "mine");
        write("ws/CLAUDE.md", "project @~/.claude/style.md @~/notes/more.md @~/notes/other.md @.env");
        write("ws/.env", "secret");
        write("notes/other.md", "private");
        write("notes/more.md", "private");
        write("ws/.claude/CLAUDE.md", "inner");
        write("ws/CLAUDE.local.md", "local");
        write("ws/sub/.claude/CLAUDE.md", "sub");
        let project = ProjectFolders::find(&ws.join("sub"), &home);
        let collected = super::collect(&project, &[], Some(&home.join(".config/agentd")));
        let texts: Vec<&str> =
            collected.files.iter().map(|it| it.text.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(texts, ["user", "mine", "linked", "project", "style", "inner", "local", "sub"]);
        let reasons =
            ["looks like a secret", "looks like a secret", "is outside", "is outside", "looks like a secret"];
        assert_eq!(collected.skipped.len(), reasons.len(), "{:?}", collected.skipped);
        for (skipped, why) in collected.skipped.iter().zip(reasons) {
            assert!(skipped.contains(why), "{skipped}");
        }
    }

    #[test]
    fn paths_are_found_in_prose_and_not_in_code() {
        for (text, expected) in [
            ("See @docs/a.md: it", vec!["docs/a.md"]),
            ("(@a.md), \"@b.md\"! **@c.md** [@d.md]", vec!["a.md", "b.md", "c.md", "d.md"]),
            ("读 @文档/a.md。", vec!["文档/a.md"]),
            ("@~/x.md @./y.md @../z.md @/abs.md", vec!["~/x.md", "./y.md", "../z.md", "/abs.md"]),
            ("me@x.org @name `@a.md` `see @b.md`", Vec::new()),
            ("````\n```\n@a.md\n```\n@b.md\n````\n@c.md", vec!["c.md"]),
            ("~~~\n@a.md\n```\n~~~\n@b.md", vec!["b.md"]),
            ("```\n@a.md\n~~~\n@b.md\n```\n@c.md", vec!["c.md"]),
            ("- @a.md\n> @b.md", vec!["a.md", "b.md"]),
        ] {
            assert_eq!(includes(text), expected, "{text}");
        }
    }

    #[test]
    fn instructions_in_other_encodings_are_decoded() {
        let dir = tempfile::tempdir().expect("a folder");
        let ws = dir.path().canonicalize().expect("resolved");
        let chinese = "第一行：你好，世界。这是一个测试文件。";
        let utf16 = |text: &str| -> Vec<u8> {
            [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
        };
        let latin = b"caf\xe9 cr\xe8me na\xefve fa\xe7ade".to_vec();
        for (bytes, expected) in [
            (utf16(chinese), chinese),
            (encoding_rs::GBK.encode(chinese).0.into_owned(), chinese),
            (latin, "café crème naïve façade"),
            ([b"\xEF\xBB\xBF", chinese.as_bytes()].concat(), chinese),
        ] {
            std::fs::write(ws.join("AGENTS.md"), bytes).expect("written");
            assert_eq!(texts(&ws), [expected]);
        }
        // A long text is cut between characters.
        let long = "ü".repeat(MAX_FILE_BYTES as usize);
        std::fs::write(ws.join("AGENTS.md"), format!("a{long}")).expect("written");
        assert!(texts(&ws)[0].starts_with("aüü") && !texts(&ws)[0].contains('\u{fffd}'));
        std::fs::write(ws.join("AGENTS.md"), b"\x89PNG\r\n\x1a\n\0\0").expect("written");
        let collected = collect(&ws, &[], None);
        assert!(collected.files.is_empty() && collected.skipped[0].contains("an image (PNG)"));
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
