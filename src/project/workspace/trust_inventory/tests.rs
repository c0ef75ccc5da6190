//! Inventories of folders as people have them, and of hostile ones.

use crate::workspace::trust_inventory::*;
use std::os::unix::fs::{PermissionsExt as _, symlink};

struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().expect("resolved")
    }

    fn write_file(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn folders(&self) -> ProjectFolders {
        ProjectFolders::find(&self.path(), Path::new("/nonexistent"))
    }

    fn scan(&self) -> TrustInventory {
        scan(&self.folders())
    }

    fn digest(&self) -> String {
        self.scan().digest
    }
}

#[test]
fn change_of_trusted_file_changes_digest() {
    let folder = TestFolder::new();
    let mut seen = vec![folder.digest()];
    let mut changed = |what: &str| {
        let digest = folder.digest();
        assert!(!seen.contains(&digest), "{what} is not noticed");
        seen.push(digest);
    };
    folder.write_file(".agentd/config.toml", "[permissions]\nallow = [\"Bash(make)\"]\n");
    changed("a new file");
    folder.write_file(".agentd/config.toml", "[permissions]\nallow = [\"Bash(make:*)\"]\n");
    changed("another rule");
    folder.write_file(".agentd/hooks/a", "x");
    changed("a file in a folder");
    folder.write_file(".agentd/hooks/b", "");
    changed("an empty file");
    fs::rename(folder.path().join(".agentd/hooks/b"), folder.path().join(".agentd/hooks/c")).expect("moved");
    changed("a name");
    let hook = folder.path().join(".agentd/hooks/a");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("set");
    changed("that it may run");
    symlink("/etc/passwd", folder.path().join(".mcp.json")).expect("linked");
    changed("a link");
    fs::remove_file(folder.path().join(".mcp.json")).expect("removed");
    symlink("/etc/group", folder.path().join(".mcp.json")).expect("linked");
    changed("where a link leads");
    folder.write_file(".git/config", "[core]\n\tbare = false\n");
    changed("a repository");
    folder.write_file(".git/config", "[core]\n\tbare = false\n[filter \"x\"]\n\tclean = touch pwned\n");
    changed("a program of git's");
    folder.write_file(".git/config.worktree", "[core]\n\tfsmonitor = touch pwned\n");
    changed("a program of the work tree's");
    folder.write_file("other/config", "[core]\n\tfsmonitor = touch pwned\n");
    folder.write_file(".git/commondir", "../other\n");
    changed("another repository's configuration");
}

#[test]
fn ordinary_changes_keep_trust_digest() {
    let folder = TestFolder::new();
    folder.write_file(".git/config", "[core]\n\tbare = false\n[branch \"main\"]\n\tremote = origin\n");
    let before = folder.digest();
    folder.write_file(".git/config", "[core]\n\tbare = false\n[branch \"other\"]\n\tremote = elsewhere\n");
    folder.write_file("src/main.rs", "fn main() {}");
    folder.write_file("AGENTS.md", "text");
    assert_eq!(folder.digest(), before);
    // Placeholders of the sandbox do not change the digest.
    folder.write_file(".git/commondir", "./\n");
    folder.write_file(".git/config.worktree", "");
    assert_eq!(folder.digest(), before);
    // Text on the same line after the head of such a section does count.
    folder.write_file(".git/config", "[core]\n\tbare = false\n[branch \"x\"] y = 1\n\tfsmonitor = pwned\n");
    assert_ne!(folder.digest(), before);
}

#[test]
fn scanned_markdown_files_are_those_of_the_digest() {
    let folder = TestFolder::new();
    folder.write_file(".claude/commands/a.md", "one");
    folder.write_file(".claude/commands/team/b.md", "two");
    folder.write_file(".claude/settings.md", "no");
    folder.write_file(".agentd/commands/c.txt", "no");
    symlink("/etc/passwd", folder.path().join(".claude/commands/leak.md")).expect("linked");
    let (inventory, files) = scan_with_files(&folder.folders(), &[".agentd/commands", ".claude/commands"]);
    let files = files.into_iter().next().expect("files").files;
    assert_eq!(inventory.digest, folder.digest());
    let names: Vec<_> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(names, [".claude/commands/a.md", ".claude/commands/leak.md", ".claude/commands/team/b.md"]);
    assert_eq!(files[0].1, Ok(b"one".to_vec()));
    assert!(files[1].1.is_err());
}

#[test]
fn trust_scan_does_not_hang_or_exhaust_memory() {
    let folder = TestFolder::new();
    let pipe = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        nix::unistd::mkfifo(&path, Mode::from_bits_truncate(0o600)).expect("a pipe");
    };
    pipe(".agentd/config.toml");
    pipe(".mcp.json");
    pipe(".claude/pipe");
    folder.write_file(".git", "gitdir: elsewhere");
    // This is a sparse file of ten gigabytes.
    let huge = File::create(folder.path().join(".mcprc")).expect("made");
    huge.set_len(10 << 30).expect("a hole");
    for n in 0..=MAX_ENTRIES {
        folder.write_file(&format!(".kode/{n}"), "x");
    }
    folder.write_file(".agents/skills/pdf/SKILL.md", "x");
    let deep = (0..40).map(|_| "d").collect::<Vec<_>>().join("/");
    folder.write_file(&format!(".agentd/skills/{deep}/x"), "x");
    let inventory = folder.scan();
    let parts_text = inventory.parts.join("\n");
    let settings = ".agentd/config.toml (not understood, so every call asks: it is not a file)";
    assert!(parts_text.contains(settings), "{parts_text}");
    for (name, usage) in
        BOUND_FILES.into_iter().filter(|(name, _)| [".mcprc", ".kode", ".agentd/skills"].contains(name))
    {
        assert!(parts_text.contains(&format!("{name} ({usage}, and too large")), "{name}: {parts_text}");
    }
    assert!(inventory.settings[0].project.is_closed && !inventory.has_git, "{parts_text}");
    assert!(parts_text.contains(".agents/skills (skills)"), "the others are not affected: {parts_text}");
}

#[test]
fn links_in_the_project_are_followed_and_bound() {
    let folder = TestFolder::new();
    for name in [".git/HEAD", ".git/objects/x", ".git/refs/x"] {
        folder.write_file(name, "ref: refs/heads/main\n");
    }
    folder.write_file(".agents/skills/a/SKILL.md", "one");
    folder.write_file("shared/b/SKILL.md", "two");
    folder.write_file("shared/review.md", "three");
    folder.write_file("config/secrets.yaml", "key");
    folder.write_file("config/.env", "key");
    let link = |target: &str, at: &str| {
        fs::create_dir_all(folder.path().join(at).parent().expect("a folder")).expect("made");
        symlink(target, folder.path().join(at)).expect("linked");
    };
    link("../.agents/skills", ".claude/skills");
    link("../../shared/b", ".kode/skills/b");
    link("../../shared/review.md", ".claude/commands/review.md");
    link("../../config/secrets.yaml", ".claude/commands/secret.md");
    link("../../config/.env", ".claude/commands/env.md");
    link("../../.git/HEAD", ".claude/commands/head.md");
    link("/etc/passwd", ".claude/commands/out.md");
    link("missing.md", ".claude/commands/gone.md");
    link("..", ".claude/commands/up");
    link("self.md", ".claude/commands/self.md");
    link("..", "shared/b/again");
    let wanted = [".claude/commands", ".claude/skills", ".kode/skills", ".agents/skills"];
    let read = || {
        let (inventory, found) = scan_with_files(&folder.folders(), &wanted);
        (inventory.digest, found.into_iter().next().expect("files").files)
    };
    let (digest, files) = read();
    let content = |name: &str| {
        let file = files.iter().find(|(path, _)| path == Path::new(name));
        file.unwrap_or_else(|| panic!("{name}: {files:?}")).1.clone()
    };
    for (name, expected) in [
        (".claude/skills/a/SKILL.md", "one"),
        (".agents/skills/a/SKILL.md", "one"),
        (".kode/skills/b/SKILL.md", "two"),
        (".claude/commands/review.md", "three"),
    ] {
        assert_eq!(content(name), Ok(expected.as_bytes().to_vec()), "{name}");
    }
    for (name, why) in [
        (".claude/commands/secret.md", "secret"),
        (".claude/commands/env.md", "secret"),
        (".claude/commands/head.md", "repository"),
        (".claude/commands/out.md", "leaves the project"),
        (".claude/commands/gone.md", "could not follow"),
        (".claude/commands/up", "circle"),
        (".claude/commands/self.md", "circle"),
        (".kode/skills/b/again", "circle"),
    ] {
        assert!(content(name).is_err_and(|it| it.contains(why)), "{name}: {:?}", content(name));
    }
    // The bytes behind a link are bound.
    folder.write_file("shared/b/SKILL.md", "other");
    let changed = read().0;
    assert_ne!(changed, digest);
    folder.write_file("shared/b/SKILL.md", "two");
    assert_eq!(read().0, digest);
    folder.write_file("shared/other.md", "not linked");
    assert_eq!(read().0, digest);
}

#[test]
fn change_of_large_script_changes_digest() {
    let folder = TestFolder::new();
    let script =
        |end: &str| format!("{}{end}", "#".repeat(usize::try_from(MAX_FILE_BYTES).expect("small") + 10));
    folder.write_file(".claude/hooks/a.sh", &script("good"));
    let before = folder.scan();
    assert!(!before.parts.join("\n").contains("too large"), "{:?}", before.parts);
    folder.write_file(".claude/hooks/a.sh", &script("evil"));
    assert_ne!(folder.scan().digest, before.digest);
}

#[test]
fn folder_that_trust_cannot_cover_gives_no_file() {
    let folder = TestFolder::new();
    folder.write_file(".claude/agents/a.md", "x");
    for n in 0..=MAX_ENTRIES {
        folder.write_file(&format!(".claude/hooks/{n}"), "x");
    }
    let (inventory, files) = scan_with_files(&folder.folders(), &[".claude/agents"]);
    let files = files.into_iter().next().expect("files").files;
    assert!(inventory.parts.join("\n").contains("too large"), "{:?}", inventory.parts);
    assert!(files.iter().all(|(_, content)| content.is_err()) && !files.is_empty(), "{files:?}");
}

/// The inventory of a folder in a repository that lies two folders deep.
fn scan_deep(folder: &TestFolder) -> TrustInventory {
    scan(&ProjectFolders::find(&folder.path().join("sub/deep"), Path::new("/nonexistent")))
}

#[test]
fn folders_above_without_bound_files_keep_old_digest() {
    let folder = TestFolder::new();
    folder.write_file(".git/config", "[core]\n");
    folder.write_file("sub/deep/.mcp.json", "{}");
    folder.write_file("sub/deep/.agentd/config.toml", "[permissions]\nallow = [\"Bash(make)\"]\n");
    let alone = scan_deep(&folder);
    folder.write_file(".git/HEAD", "ref: refs/heads/main\n");
    folder.write_file(".git/objects/x", "");
    folder.write_file(".git/refs/x", "");
    folder.write_file("AGENTS.md", "text");
    folder.write_file(".agentd/notes.txt", "not bound");
    let in_project = scan_deep(&folder);
    assert_eq!(in_project, alone, "trust given to the folder alone stays valid");
    folder.write_file(".mcp.json", "{}");
    assert_ne!(scan_deep(&folder).digest, alone.digest, "a file more asks again");
}

#[test]
fn each_file_on_the_way_is_named_and_bound() {
    let folder = TestFolder::new();
    for name in [".git/HEAD", ".git/objects/x", ".git/refs/x", ".git/config", "sub/deep/x"] {
        folder.write_file(name, "ref: refs/heads/main\n");
    }
    let mut seen = vec![scan_deep(&folder).digest];
    for level in ["", "sub/", "sub/deep/"] {
        for (name, _) in BOUND_FILES.into_iter().chain([(SETTINGS_FILE, "")]) {
            let file = match name.ends_with(".json") || name.ends_with("rc") || name.ends_with(".toml") {
                true => format!("{level}{name}"),
                false => format!("{level}{name}/x.md"),
            };
            folder.write_file(&file, "[session]\nmode = \"plan\"\n");
            let inventory = scan_deep(&folder);
            assert!(!seen.contains(&inventory.digest), "{file} is not noticed");
            let shown = match level {
                "sub/deep/" => name.to_owned(),
                _ => folder.path().join(level).join(name).display().to_string(),
            };
            let is_named = |part: &String| {
                part.starts_with(&format!("{shown} (")) || part.starts_with(&format!("{shown}: "))
            };
            assert!(inventory.parts.iter().any(is_named), "{shown}: {:?}", inventory.parts);
            seen.push(inventory.digest);
        }
    }
    let project = ProjectFolders::find(&folder.path().join("sub/deep"), Path::new("/nonexistent"));
    let (inventory, files) = scan_with_files(&project, &[".mcp.json", ".claude"]);
    let folders =
        ["sub/deep", "sub", ""].map(|name| folder.path().join(name).components().collect::<PathBuf>());
    assert_eq!(
        files.iter().map(|of| of.folder.clone()).collect::<Vec<_>>(),
        folders,
        "the nearest comes first"
    );
    assert_eq!(inventory.settings.iter().map(|of| of.folder.clone()).collect::<Vec<_>>(), folders);
    let names: Vec<_> = files[2].files.iter().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(names, [".mcp.json", ".claude/x.md"]);
    // The same files in another folder of the project are another content.
    fs::rename(folder.path().join("sub/.mcp.json"), folder.path().join("mcp")).expect("moved");
    let one = scan_deep(&folder).digest;
    fs::rename(folder.path().join("mcp"), folder.path().join("sub/.mcp.json")).expect("moved");
    fs::remove_file(folder.path().join(".mcp.json")).expect("removed");
    assert_ne!(scan_deep(&folder).digest, one);
}

#[test]
fn unreadable_settings_above_and_too_deep_folders_close_project() {
    let folder = TestFolder::new();
    for name in [".git/HEAD", ".git/objects/x", ".git/refs/x", "sub/deep/x"] {
        folder.write_file(name, "ref: refs/heads/main\n");
    }
    let is_closed = |inventory: &TrustInventory| inventory.settings.iter().any(|of| of.project.is_closed);
    assert!(!is_closed(&scan_deep(&folder)));
    symlink("/etc", folder.path().join("sub/.agentd")).expect("linked");
    assert!(!is_closed(&scan_deep(&folder)), "no such file is there");
    fs::remove_file(folder.path().join("sub/.agentd")).expect("removed");
    folder.write_file("sub/.agentd/config.toml/x", "a folder");
    let inventory = scan_deep(&folder);
    assert!(is_closed(&inventory), "{inventory:?}");
    assert!(inventory.settings[0].name.ends_with("/sub/.agentd/config.toml"), "{inventory:?}");
    fs::remove_dir_all(folder.path().join("sub/.agentd")).expect("removed");
    let deep = folder.path().join("d/".repeat(300));
    assert!(is_closed(&scan(&ProjectFolders::find(&deep, Path::new("/nonexistent")))));
}

#[test]
fn trust_scan_does_not_follow_symlinks() {
    let outside = TestFolder::new();
    outside.write_file("config.toml", "[permissions]\nallow = [\"Bash\"]\n");
    for link in [".agentd", ".agentd/config.toml"] {
        let folder = TestFolder::new();
        let path = folder.path().join(link);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let target = if link == ".agentd" { outside.path() } else { outside.path().join("config.toml") };
        symlink(target, path).expect("linked");
        let inventory = folder.scan();
        let none = project::project_of_unreadable("a link is not followed".into());
        assert_eq!(inventory.settings[0].project, none, "{link}");
    }
}
