use crate::sensitivity::*;
use PathSensitivity::{AutoExecuted, Ordinary, Protected, Secret};

#[test]
fn own_worktree_is_judged_like_any_workspace() {
    let data = "/home/u/.local/share/agentd";
    let places = SensitivePaths::new(Path::new("/home/u"), &[data.into()])
        .in_worktree(format!("{data}/worktrees/ses_1").into());
    for (path, read, edit) in [
        ("worktrees/ses_1/src/a.rs", Ordinary, Ordinary),
        ("worktrees/ses_1/etc/agentd/x", Ordinary, Ordinary),
        ("worktrees/ses_1/.git", Ordinary, Protected),
        ("worktrees/ses_1/.agentd/config.toml", Ordinary, Protected),
        ("worktrees/ses_1/.env", Secret, Secret),
        ("worktrees/ses_12/a.rs", Secret, Protected),
        ("worktrees", Secret, Protected),
        ("agentd.db", Secret, Protected),
    ] {
        let path = Path::new(data).join(path);
        let found = [Access::Read, Access::Edit].map(|access| sensitivity(&path, access, &places));
        assert_eq!(found, [read, edit], "{}", path.display());
        let is_secret = SecretNames::new(&places).contain_path(&path);
        assert_eq!(is_secret, read == Secret, "{}", path.display());
    }
}

fn check(path: &str, read: PathSensitivity, edit: PathSensitivity) {
    let places = SensitivePaths::new(Path::new("/home/u"), &["/run/x/agentd".into()]);
    assert_eq!(sensitivity(Path::new(path), Access::Read, &places), read, "reading {path}");
    assert_eq!(sensitivity(Path::new(path), Access::Edit, &places), edit, "editing {path}");
}

#[test]
fn relocated_and_linked_secret_paths_are_sensitive() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["moved/gh", "home/dots", "moved/other"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join("home/dots/netrc"), "").unwrap();
    std::os::unix::fs::symlink("dots/netrc", root.join("home/.netrc")).unwrap();
    let home = root.join("home");
    let variable = |name: &str| match name {
        "XDG_CONFIG_HOME" => Some(root.join("moved")),
        "GNUPGHOME" => Some(home.clone()),
        _ => None,
    };
    assert!(relocated_folders(&variable).contains(&root.join("moved/gh")));
    let places = SensitivePaths::new(&root.join("home"), &[]).with_links();
    for (path, expected) in [("home/dots/netrc", Secret), ("home/dots/other", Ordinary)] {
        assert_eq!(sensitivity(&root.join(path), Access::Read, &places), expected, "{path}");
    }
    // A link below a link.
    std::fs::create_dir_all(root.join("elsewhere")).unwrap();
    std::fs::create_dir_all(root.join("home/dots/config")).unwrap();
    std::os::unix::fs::symlink("../../../elsewhere", root.join("home/dots/config/gh")).unwrap();
    std::os::unix::fs::symlink("dots/config", root.join("home/.config")).unwrap();
    let places = SensitivePaths::new(&root.join("home"), &[]).with_links();
    let hosts = root.join("elsewhere/hosts.yml");
    assert_eq!(sensitivity(&hosts, Access::Read, &places), Secret);
    std::fs::remove_file(root.join("home/.config")).unwrap();
    // An auto-executed file is recognised by each of its names.
    for (to, link) in [("dots/bashrc", ".bashrc"), ("dots/config", ".config"), (".", "self")] {
        std::os::unix::fs::symlink(root.join("home").join(to), root.join("home").join(link)).unwrap();
    }
    std::fs::create_dir_all(root.join("home/dots/config/agentd")).unwrap();
    std::fs::write(root.join("home/dots/bashrc"), "").unwrap();
    let places = SensitivePaths::new(&root.join("home"), &[]).with_links();
    for (path, expected) in [
        ("dots/bashrc", AutoExecuted),
        ("dots/config/systemd/user/x.service", AutoExecuted),
        ("dots/config/agentd/new.toml", Protected),
        ("dots/config/other", Ordinary),
        ("dots/other", Ordinary),
    ] {
        assert_eq!(sensitivity(&root.join("home").join(path), Access::Edit, &places), expected, "{path}");
    }
}

#[test]
fn target_of_link_in_folder_of_agents_is_auto_executed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["home/.claude/skills", "home/.agents/skills", "proj/skills/x", "proj/more", "proj/src"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (target, link) in [
        ("proj/skills/x", ".claude/skills/x"),
        ("proj/more", ".agents/skills/more"),
        ("proj/c.md", ".claude/c.md"),
    ] {
        std::fs::write(root.join("proj/c.md"), "x").unwrap();
        std::os::unix::fs::symlink(root.join(target), root.join("home").join(link)).unwrap();
    }
    let places = SensitivePaths::new(&root.join("home"), &[]).with_links();
    for (path, expected) in [
        ("proj/skills/x/SKILL.md", AutoExecuted),
        ("proj/more/new.md", AutoExecuted),
        ("proj/c.md", AutoExecuted),
        ("proj/skills/y/notes.md", Ordinary),
        ("proj/src/main.rs", Ordinary),
    ] {
        assert_eq!(sensitivity(&root.join(path), Access::Edit, &places), expected, "{path}");
        assert_eq!(sensitivity(&root.join(path), Access::Read, &places), Ordinary, "{path}");
    }
}

#[test]
fn listing_denies_only_names_that_do_not_exist() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("dots/gh")).unwrap();
    std::fs::write(home.path().join(".netrc"), "").unwrap();
    std::os::unix::fs::symlink("dots", home.path().join(".config")).unwrap();
    let mut listings = FolderListings::default();
    let mut may_have = |name: &str| listings.may_have(home.path(), Path::new(name));
    for name in [".netrc", ".NETRC", ".config", ".config/gh", ".netrc/below"] {
        assert!(may_have(name), "{name}");
    }
    for name in [".npmrc", ".config/git", ".aws/credentials"] {
        assert!(!may_have(name), "{name}");
    }
}

#[test]
fn paths_are_classified_by_sensitivity() {
    for (path, read, edit) in [
        ("/w/src/main.rs", Ordinary, Ordinary),
        ("/w/..config/x", Ordinary, Ordinary),
        ("/w/Makefile", Ordinary, Ordinary),
        ("/w/secrets.rs", Ordinary, Ordinary),
        ("/w/.env.example", Ordinary, Ordinary),
        ("/w/environment", Ordinary, Ordinary),
        ("/w/git/hooks/x", Ordinary, Ordinary),
        // The daemon's own files.
        ("/run/x/agentd/agentd.sock", Secret, Protected),
        ("/run/x/agentd2/a", Ordinary, Ordinary),
        ("/home/u/.config/agentd/config.toml", Secret, Protected),
        ("/home/u/.local/share/agentd/x.db", Secret, Protected),
        ("/run/user/1000/agentd/agentd.sock", Secret, Protected),
        ("/w/.agentd", Ordinary, Protected),
        ("/w/.agentd/policy.toml", Ordinary, Protected),
        ("/w/.agentd\u{301}/policy.toml", Ordinary, Protected),
        ("/w/.AgentD/Policy.toml", Ordinary, Protected),
        ("/w/.agentd/agents/a.md", Ordinary, AutoExecuted),
        ("/w/.agentd/skills/a/SKILL.md", Ordinary, AutoExecuted),
        ("/w/.agentd. /policy.toml", Ordinary, Protected),
        ("/w/AGENTD~1/policy.toml", Ordinary, Protected),
        ("/w/.agent\u{ff44}/x", Ordinary, Protected),
        ("/w/.agentd/SKILLS/x", Ordinary, AutoExecuted),
        ("/srv/x/agentd.sock", Secret, Protected),
        // Files of git.
        ("/w/GIT~1/config", Ordinary, Protected),
        ("/w/.git::$INDEX_ALLOCATION/config", Ordinary, Protected),
        ("/w/.g\u{131}t/hooks/x", Ordinary, Protected),
        ("/w/sub/.git", Ordinary, Protected),
        ("/w/.git/modules/a/b/config", Ordinary, Protected),
        ("/srv/proj.git/hooks/post-receive", Ordinary, Protected),
        ("/srv/proj.git/config", Ordinary, Protected),
        ("/srv/proj.git/src/config", Ordinary, Ordinary),
        ("/w/config", Ordinary, Ordinary),
        ("/w/.gitignore", Ordinary, Ordinary),
        ("/w/.gitattributes", Ordinary, AutoExecuted),
        ("/w/.git", Ordinary, Protected),
        ("/w/.git/config", Ordinary, Protected),
        ("/w/.GIT/hooks/pre-commit", Ordinary, Protected),
        ("/w/.git/modules/x/hooks/post-checkout", Ordinary, Protected),
        ("/w/.git/worktrees/a/config.worktree", Ordinary, Protected),
        ("/w/.git/HEAD", Ordinary, AutoExecuted),
        // Auto-executed files.
        ("/home/u/.bashrc", Ordinary, AutoExecuted),
        ("/w/.envrc", Secret, AutoExecuted),
        ("/w/AGENTS.md", Ordinary, AutoExecuted),
        ("/w/sub/CLAUDE.md", Ordinary, AutoExecuted),
        ("/w/conftest.py", Ordinary, AutoExecuted),
        ("/w/.Agent/Policy.toml", Ordinary, AutoExecuted),
        ("/w/.claude/agents/x.md", Ordinary, AutoExecuted),
        ("/w/.vscode/tasks.json", Ordinary, AutoExecuted),
        ("/w/.github/workflows/ci.yml", Ordinary, AutoExecuted),
        ("/home/u/.config/systemd/user/x.service", Ordinary, AutoExecuted),
        ("/home/u/bin/ls", Ordinary, AutoExecuted),
        ("/w/bin/ls", Ordinary, Ordinary),
        ("/etc/passwd", Ordinary, AutoExecuted),
        ("/w/package.json", Ordinary, Ordinary),
        ("/w/build.rs", Ordinary, Ordinary),
        ("/w/.editorconfig", Ordinary, Ordinary),
        ("/w/.github/ISSUE_TEMPLATE.md", Ordinary, Ordinary),
        ("/w/.docker/Dockerfile", Ordinary, Ordinary),
        ("/w/src/tokens.rs", Ordinary, Ordinary),
        ("/w/monkey.txt", Ordinary, Ordinary),
        ("/sys/kernel/x", Ordinary, AutoExecuted),
        // Secrets.
        ("/home/u/.docker/config.json", Secret, Secret),
        ("/w/id_rsa.bak", Secret, Secret),
        ("/w/.ENV", Secret, Secret),
        ("/home/u/.config/gh/hosts.yml", Secret, Secret),
        ("/w/.env", Secret, Secret),
        ("/w/.env.production", Secret, Secret),
        ("/w/server.pem", Secret, Secret),
        ("/w/secrets.json", Secret, Secret),
        ("/w/id_rsa", Secret, Secret),
        ("/w/id_rsa.pub", Ordinary, Ordinary),
        ("/home/u/.ssh/id_rsa", Secret, AutoExecuted),
        ("/home/u/.ssh/config", Secret, AutoExecuted),
        ("/home/u/.aws/credentials", Secret, Secret),
        ("/home/u/.npmrc", Secret, AutoExecuted),
        ("/etc/shadow", Secret, AutoExecuted),
    ] {
        check(path, read, edit);
    }
}
