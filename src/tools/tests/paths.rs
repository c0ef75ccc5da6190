//! Resolving and opening of paths: the jail's two phases, with changes on the disk between them.

mod in_place;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;

use crate::file_identity::FileStamp;
use crate::{Access, Jail, PinnedPath};
use types::ids::{CallId, Mint, Seed};
use types::tool::PathSensitivity;

struct PathFixture {
    _root: tempfile::TempDir,
    root: PathBuf,
}

/// `ws/src/main.rs`, `ws/real/x.txt`, `home/.bashrc`, `out/secret.txt`, and links in `ws`.
fn fixture() -> PathFixture {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for file in
        ["ws/src/main.rs", "ws/real/x.txt", "home/.bashrc", "out/secret.txt", "ws/.agentd/policy.toml"]
    {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), "x").unwrap();
    }
    let ws = root.join("ws");
    symlink("real", ws.join("lib")).unwrap();
    symlink("b", ws.join("a")).unwrap();
    symlink("c", ws.join("b")).unwrap();
    symlink(root.join("out/secret.txt"), ws.join("c")).unwrap();
    symlink(".agentd/policy.toml", ws.join("notes.txt")).unwrap();
    symlink("loop", ws.join("loop")).unwrap();
    symlink(root.join("out/new.txt"), ws.join("dangling")).unwrap();
    symlink(root.join("out"), ws.join("outdir")).unwrap();
    fs::create_dir_all(ws.join("link/to")).unwrap();
    symlink("a\u{202e}b", ws.join("link/to/bidi")).unwrap();
    // Names that are not valid text: errors about them must not fail themselves.
    for (link, bytes) in [("no-text", vec![0xff; 3]), ("no-text-too-long", vec![0xff; 300])] {
        symlink(OsString::from_vec(bytes), ws.join(link)).unwrap();
    }
    PathFixture { _root: dir, root }
}

fn check(fixture: &PathFixture, text: &str, expected: Result<(&str, bool, PathSensitivity), &str>) {
    let (ws, home) = (fixture.root.join("ws"), fixture.root.join("home"));
    let text = text.replace("{R}", fixture.root.to_str().unwrap());
    let got = Jail::open(std::slice::from_ref(&ws), &home, &[]).decide(&text, &ws, Access::Edit);
    let got = match &got {
        Ok(path) => Ok((path.path.clone(), path.in_workspace, path.sensitivity)),
        Err(refusal) => Err(refusal.code),
    };
    let expected = expected.map(|(path, inside, care)| {
        let path = if path.starts_with('/') { PathBuf::from(path) } else { fixture.root.join(path) };
        (path, inside, care)
    });
    assert_eq!(got, expected, "{text}");
}

#[test]
fn paths_resolve_like_kernel_path_lookup() {
    use PathSensitivity::{AutoExecuted, Ordinary, Protected};
    let fixture = fixture();
    for (text, expected) in [
        ("src/main.rs", Ok(("ws/src/main.rs", true, Ordinary))),
        ("./src/../src//main.rs", Ok(("ws/src/main.rs", true, Ordinary))),
        ("{R}/ws/src/main.rs", Ok(("ws/src/main.rs", true, Ordinary))),
        ("lib/x.txt", Ok(("ws/real/x.txt", true, Ordinary))),
        ("new/deep/file", Ok(("ws/new/deep/file", true, Ordinary))),
        ("new/../a", Ok(("out/secret.txt", false, PathSensitivity::Secret))),
        ("..", Ok(("", false, Ordinary))),
        ("../out/secret.txt", Ok(("out/secret.txt", false, PathSensitivity::Secret))),
        ("src/../../out/secret.txt", Ok(("out/secret.txt", false, PathSensitivity::Secret))),
        ("a", Ok(("out/secret.txt", false, PathSensitivity::Secret))),
        ("dangling", Ok(("out/new.txt", false, Ordinary))),
        ("outdir/../x", Ok(("x", false, Ordinary))),
        ("outdir/secret.txt", Ok(("out/secret.txt", false, PathSensitivity::Secret))),
        ("notes.txt", Ok(("ws/.agentd/policy.toml", true, Protected))),
        ("~/.bashrc", Ok(("home/.bashrc", false, AutoExecuted))),
        ("$HOME/x", Ok(("ws/$HOME/x", true, Ordinary))),
        ("a~/x", Ok(("ws/a~/x", true, Ordinary))),
        ("...", Ok(("ws/...", true, Ordinary))),
        ("/proc/cpuinfo", Ok(("/proc/cpuinfo", false, AutoExecuted))),
        ("loop", Err("too_many_links")),
        ("src/main.rs/x", Err("not_a_directory")),
        ("src/main.rs\0.png", Err("bad_path")),
        ("src/\u{202e}x", Err("bad_path")),
        ("a\nb", Err("bad_path")),
        ("", Err("bad_path")),
        ("/proc/self/environ", Err("magic_path")),
        ("/proc/1/environ", Err("magic_path")),
        ("/proc/self/fd/3", Err("magic_path")),
        ("/dev/fd/0", Err("magic_path")),
        ("/dev/stdin", Err("magic_path")),
        ("/dev/zero", Err("not_a_regular_file")),
        ("src/main.rs/", Err("not_a_directory")),
        ("src/new/", Err("is_a_directory")),
        ("src/", Ok(("ws/src", true, Ordinary))),
        ("~root/x", Ok(("ws/~root/x", false, Ordinary))),
        ("~+/x", Ok(("ws/~+/x", false, Ordinary))),
        ("~-", Ok(("ws/~-", false, Ordinary))),
        ("./~root/x", Ok(("ws/~root/x", true, Ordinary))),
        ("~$doc.docx", Ok(("ws/~$doc.docx", true, Ordinary))),
        ("%2e%2e/x", Ok(("ws/%2e%2e/x", true, Ordinary))),
        ("file:///etc/passwd", Ok(("ws/file:/etc/passwd", true, Ordinary))),
        ("link/to/bidi", Err("bad_path")),
        ("no-text", Err("bad_path")),
        ("no-text/x", Err("bad_path")),
        ("no-text-too-long", Err("io_error")),
    ] {
        check(&fixture, text, expected);
    }
}

#[test]
fn workspace_replaced_by_symlink_is_outside_workspace() {
    let fixture = fixture();
    fs::rename(fixture.root.join("ws"), fixture.root.join("ws.old")).unwrap();
    symlink(fixture.root.join("out"), fixture.root.join("ws")).unwrap();
    check(&fixture, "secret.txt", Ok(("out/secret.txt", false, PathSensitivity::Secret)));
}

impl PathFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["ws", "home", "out"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        PathFixture { _root: dir, root }
    }

    fn ws(&self) -> PathBuf {
        self.root.join("ws")
    }

    fn write_file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    fn jail(&self) -> Jail {
        Jail::open(&[self.ws()], &self.root.join("home"), &[])
    }

    fn edit(&self, path: &str) -> PinnedPath {
        self.jail().decide(path, &self.ws(), Access::Edit).unwrap()
    }

    fn sensitivity_at(&self, path: &str, access: Access) -> PathSensitivity {
        self.jail().decide(path, &self.ws(), access).unwrap().sensitivity
    }
}

fn call() -> CallId {
    Mint::new(1, Seed(7)).call()
}

fn code<T: std::fmt::Debug>(result: Result<T, crate::ToolError>) -> &'static str {
    result.unwrap_err().code
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn remove_temp_removes_file_of_killed_call_only() {
    let fixture = PathFixture::new();
    let (mine, theirs) = (format!(".agentd-tmp-{}", call()), ".agentd-tmp-other");
    fixture.write_file(&format!("ws/{mine}"), "half");
    fixture.write_file(&format!("ws/{theirs}"), "theirs");
    fixture.edit("a").remove_temp(call());
    assert_eq!(names(&fixture.ws()), [theirs]);
    fixture.edit("no/such/folder").remove_temp(call());
}

#[test]
fn replaced_file_keeps_mode_and_leaves_no_temporary() {
    let fixture = PathFixture::new();
    let path = fixture.write_file("ws/a.sh", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let held = fixture.edit("a.sh");
    let before = held.load().unwrap().unwrap();
    let stamp = held.replace(call(), Some(&before), b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.mode() & 0o7777, FileStamp::from_metadata(&meta)), (0o751, stamp));
    assert_eq!(names(&fixture.ws()), ["a.sh"]);
}

#[test]
fn symlink_is_kept_and_target_replaced() {
    let fixture = PathFixture::new();
    fixture.write_file("ws/real/a", "old");
    symlink("real/a", fixture.ws().join("a")).unwrap();
    let held = fixture.edit("a");
    let before = held.load().unwrap().unwrap();
    held.replace(call(), Some(&before), b"new").unwrap();
    assert!(fixture.ws().join("a").is_symlink());
    assert_eq!(fixture.read("ws/real/a"), "new");
}

#[test]
fn new_file_creates_folders_and_never_overwrites() {
    let fixture = PathFixture::new();
    let (first, second) = (fixture.edit("x/y/z.txt"), fixture.edit("x/y/z.txt"));
    first.replace(call(), None, b"1").unwrap();
    assert_eq!(fixture.read("ws/x/y/z.txt"), "1");
    assert_eq!(code(second.replace(call(), None, b"2")), "file_changed");
    assert_eq!(fixture.read("ws/x/y/z.txt"), "1");
    assert_eq!(names(&fixture.ws().join("x/y")), ["z.txt"]);
}

#[test]
fn changed_content_is_not_overwritten_or_removed() {
    let fixture = PathFixture::new();
    fixture.write_file("ws/a", "one");
    let held = fixture.edit("a");
    let before = held.load().unwrap().unwrap();
    fixture.write_file("ws/a", "two");
    assert_eq!(code(held.replace(call(), Some(&before), b"mine")), "file_changed");
    assert_eq!(code(held.remove(&before)), "file_changed");
    assert_eq!((fixture.read("ws/a").as_str(), names(&fixture.ws())), ("two", vec!["a".to_owned()]));
    let held = fixture.edit("a");
    held.remove(&held.load().unwrap().unwrap()).unwrap();
    assert!(names(&fixture.ws()).is_empty());
}

#[test]
fn read_only_file_is_not_replaced() {
    if nix::unistd::geteuid().is_root() {
        base::skip_test!("root may write every file");
        return;
    }
    let fixture = PathFixture::new();
    let path = fixture.write_file("ws/a", "one");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let held = fixture.edit("a");
    let before = held.load().unwrap().unwrap();
    assert_eq!(code(held.replace(call(), Some(&before), b"mine")), "permission_denied");
    assert_eq!(fixture.read("ws/a"), "one");
}

/// A change on the disk with its name.
type NamedChange = (&'static str, fn(&PathFixture));

/// Changes that another process may make to `ws/d/f` between judging and opening.
const CHANGES: &[NamedChange] = &[
    ("the file becomes a link", |fixture| {
        fs::remove_file(fixture.root.join("ws/d/f")).unwrap();
        symlink(fixture.root.join("out/d/f"), fixture.root.join("ws/d/f")).unwrap();
    }),
    ("another file takes its place", |fixture| {
        fs::rename(fixture.root.join("out/d/f"), fixture.root.join("ws/d/f")).unwrap();
        fixture.write_file("out/d/f", "theirs");
    }),
    ("a hard link takes its place", |fixture| {
        fs::remove_file(fixture.root.join("ws/d/f")).unwrap();
        fs::hard_link(fixture.root.join("out/d/f"), fixture.root.join("ws/d/f")).unwrap();
    }),
    ("the folder becomes a link", |fixture| {
        fs::rename(fixture.root.join("ws/d"), fixture.root.join("ws/old")).unwrap();
        symlink(fixture.root.join("out/d"), fixture.root.join("ws/d")).unwrap();
    }),
    ("the folder moves out", |fixture| {
        fs::rename(fixture.root.join("ws/d"), fixture.root.join("out/moved")).unwrap();
    }),
    ("another folder takes its place", |fixture| {
        fs::rename(fixture.root.join("ws/d"), fixture.root.join("ws/old")).unwrap();
        fs::rename(fixture.root.join("out/d"), fixture.root.join("ws/d")).unwrap();
        fs::create_dir(fixture.root.join("out/d")).unwrap();
        fixture.write_file("out/d/f", "theirs");
    }),
    ("the workspace becomes a link", |fixture| {
        fs::rename(fixture.root.join("ws"), fixture.root.join("old")).unwrap();
        symlink(fixture.root.join("out"), fixture.root.join("ws")).unwrap();
    }),
    ("another folder becomes the workspace", |fixture| {
        fs::rename(fixture.root.join("ws"), fixture.root.join("old")).unwrap();
        fs::rename(fixture.root.join("out"), fixture.root.join("ws")).unwrap();
        fixture.write_file("out/d/f", "theirs");
    }),
    ("a new workspace holds a link", |fixture| {
        fs::rename(fixture.root.join("ws"), fixture.root.join("old")).unwrap();
        fs::create_dir(fixture.root.join("ws")).unwrap();
        symlink(fixture.root.join("out/d"), fixture.root.join("ws/d")).unwrap();
    }),
    ("the file becomes a pipe", |fixture| {
        fs::remove_file(fixture.root.join("ws/d/f")).unwrap();
        nix::unistd::mkfifo(&fixture.root.join("ws/d/f"), Mode::S_IRWXU).unwrap();
    }),
    ("the file goes", |fixture| fs::remove_file(fixture.root.join("ws/d/f")).unwrap()),
];

fn race_fixture() -> PathFixture {
    let fixture = PathFixture::new();
    fixture.write_file("ws/d/f", "mine");
    fixture.write_file("out/d/f", "theirs");
    fixture
}

#[test]
fn read_opens_judged_file_or_fails() {
    use std::io::Read as _;
    for (name, change) in CHANGES {
        let fixture = race_fixture();
        let held = fixture.jail().decide("d/f", &fixture.ws(), Access::Read).unwrap();
        change(&fixture);
        if let Ok((mut file, _)) = held.open() {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "mine", "{name}");
        }
    }
}

#[test]
fn write_reaches_judged_path_or_fails() {
    for (name, change) in CHANGES {
        for new in [false, true] {
            let fixture = race_fixture();
            let held = fixture.edit(if new { "d/new" } else { "d/f" });
            let before = held.load().unwrap();
            change(&fixture);
            let result = held.replace(call(), before.as_ref(), b"written");
            assert_eq!(fixture.read("out/d/f"), "theirs", "{name}");
            assert!(!fixture.root.join("out/d/new").exists(), "{name}");
            // A change of the file alone does not affect its neighbour.
            let may_pass = new && name.contains("file") || name.contains("hard link");
            assert!(result.is_err() || (new && may_pass), "{name}: {result:?}");
            if let Err(refusal) = &result {
                assert!(
                    ["target_changed", "file_changed", "not_a_regular_file"].contains(&refusal.code),
                    "{name}: {refusal:?}"
                );
            }
            for folder in ["ws/d", "ws/old", "out/moved", "out/d", "old/d"] {
                let Ok(entries) = fs::read_dir(fixture.root.join(folder)) else { continue };
                let left =
                    entries.flatten().any(|e| e.file_name().to_string_lossy().starts_with(".agentd-tmp"));
                assert!(!left, "{name}: a temporary file is left in {folder}");
            }
        }
    }
}

#[test]
fn remove_deletes_judged_file_or_fails() {
    for (name, change) in CHANGES {
        let fixture = race_fixture();
        let held = fixture.edit("d/f");
        let before = held.load().unwrap().unwrap();
        change(&fixture);
        assert!(held.remove(&before).is_err(), "{name}");
        assert_eq!(fixture.read("out/d/f"), "theirs", "{name}");
    }
}

#[test]
fn workspace_stays_folder_of_session_start() {
    // A link, or another folder, in its place.
    for (name, change) in &CHANGES[6..9] {
        let fixture = race_fixture();
        let jail = fixture.jail();
        change(&fixture);
        match jail.decide("d/f", &fixture.ws(), Access::Read) {
            Ok(held) => assert!(!held.in_workspace, "{name}"),
            Err(refusal) => assert_eq!(refusal.code, "workspace_replaced", "{name}"),
        }
    }
    // Removed and created again: the session continues and opens it again.
    let fixture = race_fixture();
    let jail = fixture.jail();
    fs::remove_dir_all(fixture.ws()).unwrap();
    fixture.write_file("ws/d/f", "new");
    assert!(!jail.is_current());
    assert!(fixture.jail().decide("d/f", &fixture.ws(), Access::Read).unwrap().in_workspace);
}

#[test]
fn missing_folders_are_created_at_judged_path() {
    let fixture = PathFixture::new();
    let held = fixture.edit("new/deep/file");
    symlink(fixture.root.join("out"), fixture.ws().join("new")).unwrap();
    assert_eq!(code(held.replace(call(), None, b"x")), "target_changed");
    let held = fixture.edit("other/deep/file");
    fs::create_dir(fixture.ws().join("other")).unwrap();
    held.replace(call(), None, b"x").unwrap();
    assert_eq!(fixture.read("ws/other/deep/file"), "x");
    assert!(names(&fixture.root.join("out")).is_empty());
}

#[test]
fn special_files_are_refused_without_opening() {
    let fixture = PathFixture::new();
    nix::unistd::mkfifo(&fixture.ws().join("pipe"), Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.ws().join("sock")).unwrap();
    symlink("pipe", fixture.ws().join("link")).unwrap();
    for path in ["pipe", "sock", "link", "/dev/zero", "/dev/null", "/dev/tty"] {
        for access in [Access::Read, Access::Edit] {
            let decided = fixture.jail().decide(path, &fixture.ws(), access);
            assert_eq!(code(decided), "not_a_regular_file", "{path}");
        }
    }
    let jail = fixture.jail();
    let decide = |path: &str| jail.decide(path, &fixture.ws(), Access::Read).unwrap();
    assert_eq!(code(decide(".").open()), "is_a_directory");
    assert_eq!(code(decide("none").open()), "file_not_found");
}

#[test]
fn hard_linked_file_has_strictest_sensitivity() {
    let fixture = PathFixture::new();
    for (file, access, expected) in [
        ("home/.ssh/id_rsa", Access::Read, PathSensitivity::Secret),
        ("home/.bashrc", Access::Edit, PathSensitivity::AutoExecuted),
        ("home/.config/agentd/config.toml", Access::Edit, PathSensitivity::Protected),
        ("ws/.git/config", Access::Edit, PathSensitivity::Protected),
        ("ws/.git/hooks/pre-commit", Access::Edit, PathSensitivity::Protected),
        ("ws/.agentd/policy.toml", Access::Edit, PathSensitivity::Protected),
        (".agentd/config.toml", Access::Edit, PathSensitivity::Protected),
        (".git/hooks/pre-commit", Access::Edit, PathSensitivity::Protected),
        ("ws/deep/er/.env", Access::Read, PathSensitivity::Secret),
        ("ws/src/main.rs", Access::Read, PathSensitivity::Ordinary),
        ("ws/src/lib.rs", Access::Edit, PathSensitivity::Ordinary),
        ("out/anything", Access::Read, PathSensitivity::HardLinked),
        ("out/something", Access::Edit, PathSensitivity::HardLinked),
    ] {
        let path = fixture.write_file(file, "x");
        let link = fixture.ws().join("innocent.txt");
        fs::hard_link(&path, &link).unwrap();
        assert_eq!(fixture.sensitivity_at("innocent.txt", access), expected, "{file}");
        fs::remove_file(link).unwrap();
    }
    // In a folder that package managers fill with links, names in the workspace still count.
    fs::create_dir_all(fixture.ws().join("target")).unwrap();
    fs::hard_link(fixture.write_file("ws/.env", "x"), fixture.ws().join("target/made")).unwrap();
    assert_eq!(fixture.sensitivity_at("target/made", Access::Read), PathSensitivity::Secret);
    // A hard link from a package manager's store alone requires no permission request, but one to credentials does.
    let (stored, key) = (fixture.write_file("out/store/x.js", "x"), fixture.write_file("home/.netrc", "x"));
    fs::create_dir_all(fixture.ws().join("node_modules/a")).unwrap();
    fs::hard_link(stored, fixture.ws().join("node_modules/a/x.js")).unwrap();
    fs::hard_link(key, fixture.ws().join("node_modules/a/y.js")).unwrap();
    assert_eq!(fixture.sensitivity_at("node_modules/a/x.js", Access::Read), PathSensitivity::Ordinary);
    assert_eq!(fixture.sensitivity_at("node_modules/a/y.js", Access::Read), PathSensitivity::Secret);
}

#[test]
fn replacing_hard_linked_file_keeps_other_names_unchanged() {
    let fixture = PathFixture::new();
    let outside = fixture.write_file("out/theirs", "theirs");
    fs::hard_link(&outside, fixture.ws().join("mine")).unwrap();
    let held = fixture.edit("mine");
    let before = held.load().unwrap().unwrap();
    held.replace(call(), Some(&before), b"new").unwrap();
    assert_eq!((fixture.read("ws/mine").as_str(), fixture.read("out/theirs").as_str()), ("new", "theirs"));
}

#[test]
fn git_repository_is_detected_under_any_name() {
    let fixture = PathFixture::new();
    fixture.write_file("ws/.git", "gitdir: ../out/store\n");
    fixture.write_file("out/store/config", "");
    for path in
        ["evil/HEAD", "evil/objects/x", "evil/refs/x", "evil/config", "plain/config", "hooks/pre-commit"]
    {
        fixture.write_file(&format!("ws/{path}"), "");
    }
    for (path, expected) in [
        (".git", PathSensitivity::Protected),
        ("../out/store/config", PathSensitivity::Protected),
        ("../out/store/hooks/post-checkout", PathSensitivity::Protected),
        ("evil/config", PathSensitivity::Protected),
        ("evil/hooks/pre-commit", PathSensitivity::Protected),
        ("plain/config", PathSensitivity::Ordinary),
        ("hooks/pre-commit", PathSensitivity::Ordinary),
    ] {
        assert_eq!(fixture.sensitivity_at(path, Access::Edit), expected, "{path}");
    }
}
