//! Known ways out of the sandbox, and ways to block it for all commands.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::sandbox::{SANDBOX_LEVELS, bash, fixture_with_sandbox, git};
use super::{ToolFixture, completed, failed};
use crate::Settings;
use crate::settings::{LevelSetting, NetworkSetting};

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A fixture outside `/tmp` at a sandbox level, with further settings from `set`. `None` if the level does not
/// work here.
async fn fixture_at_level(
    level: LevelSetting,
    set: impl FnOnce(&mut Settings, &Path),
) -> Option<ToolFixture> {
    fixture_with_sandbox(level, NetworkSetting::On).await?;
    Some(ToolFixture::in_folder(tempfile::tempdir_in("/var/tmp").unwrap(), |settings| {
        let root = settings.home.parent().unwrap().to_owned();
        settings.sandbox.level = level;
        settings.sandbox.temp = root.join("temp");
        set(settings, &root);
    }))
}

/// Protection of submodules and work trees at every nesting depth.
#[tokio::test]
async fn nested_submodules_and_work_trees_are_protected() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        create_outside_work_tree(&fixture);
        let repository = |name: &str| {
            let folder = fixture.path(name);
            fs::create_dir_all(folder.join("hooks")).unwrap();
            fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(folder.join("config"), "[extensions]\n\tworktreeConfig = true\n").unwrap();
        };
        for name in [".git/worktrees/w1/modules/sub", ".git/worktrees/in/modules/sub", ".git/modules/sub"] {
            repository(name);
        }
        // A submodule that looks as if it were inside another submodule.
        repository(".git/modules/libs/foo");
        // A submodule that is named like a part of a repository.
        repository(".git/modules/hooks/common");
        fs::write(fixture.path(".git/modules/libs/HEAD"), "ref: refs/heads/main\n").unwrap();
        // Work trees: in the workspace; on a disk that is not mounted; of a submodule; removed; and created
        // here.
        fs::create_dir(fixture.path("in")).unwrap();
        fs::write(
            fixture.path("in/.git"),
            format!("gitdir: {}\n", fixture.path(".git/worktrees/in").display()),
        )
        .unwrap();
        fs::write(
            fixture.path(".git/worktrees/in/gitdir"),
            format!("{}\n", fixture.path("in/.git").display()),
        )
        .unwrap();
        for own in [".git/worktrees/away", ".git/modules/sub/worktrees/t"] {
            fs::create_dir_all(fixture.path(own)).unwrap();
            fs::write(fixture.path(own).join("gitdir"), "/nonexistent/disk/.git\n").unwrap();
            fs::write(fixture.path(own).join("locked"), "").unwrap();
        }
        // Another repository in place of an old one; one that the command made itself, at level 3 in its
        // private `/tmp`.
        fs::create_dir_all(fixture.root.join("other/.git")).unwrap();
        for (own, tree) in [
            ("gone", "/nonexistent/gone/.git".into()),
            ("other", fixture.root.join("other/.git")),
            ("pruned", fixture.path("no/such/.git")),
            ("temp", "/tmp/no-such-tree-of-agentd/.git".into()),
        ] {
            let own = fixture.path(".git/worktrees").join(own);
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("gitdir"), format!("{}\n", tree.display())).unwrap();
        }
        for name in [
            ".git/worktrees/gone/commondir",
            ".git/worktrees/gone/gitdir",
            ".git/worktrees/other/commondir",
            ".git/modules/hooks/common/config",
            ".git/modules/libs/foo/config",
            ".git/modules/libs/foo/hooks/post-checkout",
            ".git/worktrees/w1/modules/sub/config",
            ".git/worktrees/w1/modules/sub/hooks/post-checkout",
            ".git/worktrees/in/modules/sub/config",
            ".git/worktrees/away/commondir",
            ".git/modules/sub/worktrees/t/commondir",
            ".git/modules/sub/config.worktree",
        ] {
            let outcome = fixture.run("Bash", bash(&format!("echo x >> {name}"))).await;
            assert_eq!(outcome.code.as_deref(), Some("exit_code"), "{level:?} {name} {outcome:?}");
        }
        completed(&fixture.run("Bash", bash("echo x > .git/worktrees/in/ORIG_HEAD")).await);
        completed(&fixture.run("Bash", bash("rm -r .git/worktrees/pruned .git/worktrees/temp")).await);
        // More files than are inspected, before the folder that matters.
        let modules = fixture.path(".git/modules");
        (0..4_100).for_each(|n| fs::write(modules.join(format!("{n}")), "").unwrap());
        for name in ["sub/config", "libs/foo/config"] {
            let outcome = fixture.run("Bash", bash(&format!("echo x >> .git/modules/{name}"))).await;
            assert_eq!(outcome.code.as_deref(), Some("exit_code"), "{level:?} {name} {outcome:?}");
        }
    }
}

/// A command may temporarily remove the files by which a repository is recognised.
#[tokio::test]
async fn command_cannot_remove_repository_marker_files() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        fs::remove_dir_all(fixture.path(".git")).unwrap();
        for folder in ["objects", "refs", "hooks"] {
            fs::create_dir(fixture.path(folder)).unwrap();
        }
        fs::write(fixture.path("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(fixture.path("config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
        fixture.run("Bash", bash("mv HEAD H; mv objects o; mv refs r; mv config c; mv hooks h")).await;
        assert!(!fixture.path("HEAD").exists(), "{level:?}");
        for name in ["config", "hooks/pre-receive"] {
            let outcome = fixture.run("Bash", bash(&format!("echo x >> {name}"))).await;
            assert_eq!(outcome.code.as_deref(), Some("exit_code"), "{level:?} {name} {outcome:?}");
        }
        completed(
            &fixture.run("Bash", bash("mv H HEAD; mv o objects; mv r refs; touch objects/x refs/y")).await,
        );

        // A repository that was created by hand without the files that git writes first, and one that cannot
        // be read.
        fs::write(fixture.path("config"), "[core]\n\tbare = true\n").unwrap();
        completed(&fixture.run("Bash", bash("mv HEAD H; mv refs r")).await);
        failed(&fixture.run("Bash", bash("echo x >> config")).await, "exit_code");
        fs::set_permissions(fixture.path("config"), fs::Permissions::from_mode(0o000)).unwrap();
        failed(&fixture.run("Bash", bash("chmod 644 config; echo x >> config")).await, "exit_code");

        // A folder with the same names is not a repository, and a link among them blocks no command.
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        completed(&fixture.run("Bash", bash("mkdir refs o; ln -s o objects; echo x > config")).await);
        completed(&fixture.run("Bash", bash("echo y >> config; mkdir hooks; rm objects; mv refs r")).await);

        // Sessions in other folders know its own work tree by its `gitdir`.
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        let own = fixture.root.join("main/.git/worktrees/w");
        fs::create_dir_all(&own).unwrap();
        fs::remove_dir_all(fixture.path(".git")).unwrap();
        fs::write(fixture.root.join("main/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(own.join("gitdir"), format!("{}\n", fixture.path(".git").display())).unwrap();
        fs::write(fixture.path(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        let gitdir = own.join("gitdir");
        let outcome = fixture.run("Bash", bash(&format!("echo x > {}", gitdir.display()))).await;
        assert_eq!(outcome.code.as_deref(), Some("exit_code"), "{level:?} {outcome:?}");
        completed(&fixture.run("Bash", bash(&format!("echo x > {}", own.join("ORIG_HEAD").display()))).await);
    }
}

/// A work tree that commands cannot write.
fn create_outside_work_tree(fixture: &ToolFixture) {
    let own = fixture.path(".git/worktrees/w1");
    fs::create_dir_all(&own).unwrap();
    fs::create_dir(fixture.root.join("w1")).unwrap();
    let git = fixture.root.join("w1/.git");
    fs::write(&git, format!("gitdir: {}\n", own.display())).unwrap();
    fs::write(own.join("gitdir"), format!("{}\n", git.display())).unwrap();
    fs::write(own.join("commondir"), "../..\n").unwrap();
}

#[tokio::test]
async fn hidden_sockets_except_daemon_socket_are_unreachable() {
    for level in SANDBOX_LEVELS {
        let made = fixture_at_level(level, |settings, root| {
            fs::create_dir_all(root.join("run/user/agentd")).unwrap();
            fs::create_dir(root.join("run/user/other")).unwrap();
            settings.sandbox.hidden = vec![root.join("run"), root.join("run/user/agentd")];
            // An entry of a hidden folder that is not hidden itself.
            fs::create_dir(root.join("run/user/build")).unwrap();
            settings.sandbox.writable = vec![root.join("run/user/build")];
            settings.socket = Some(root.join("run/user/agentd/own"));
        });
        let Some(mut fixture) = made.await else { continue };
        let sockets =
            ["open", "run/socket", "run/user/other/socket", "run/user/agentd/own", "run/user/agentd/agent"];
        let sockets = sockets.map(|name| fixture.root.join(name));
        let _listening = sockets.each_ref().map(|socket| UnixListener::bind(socket).unwrap());
        for (socket, is_reached) in
            sockets.iter().zip([true, false, false, level == LevelSetting::Landlock, false])
        {
            let connect =
                format!("import socket; socket.socket(socket.AF_UNIX).connect('{}')", socket.display());
            let outcome = fixture.run("Bash", bash(&format!("python3 -c \"{connect}\""))).await;
            assert_eq!(outcome.code.is_none(), is_reached, "{level:?} {} {outcome:?}", socket.display());
        }
    }
}

#[tokio::test]
async fn file_lease_or_unreadable_folder_does_not_prevent_protection() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        create_outside_work_tree(&fixture);
        let own = fixture.path(".git/worktrees/w1");
        fs::create_dir_all(fixture.path(".git/modules/sub/hooks")).unwrap();
        fs::write(fixture.path(".git/modules/sub/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(fixture.path(".git/modules/sub/config"), "").unwrap();
        let lease =
            "python3 -c 'import fcntl; f = open(\".git/worktrees/w1/gitdir\"); fcntl.fcntl(f, 1024, 1)'";
        failed(&fixture.run("Bash", bash(lease)).await, "exit_code");
        let closed = [".git/worktrees", ".git/worktrees/w1", ".git/modules", ".git/modules/sub"];
        for (folder, mode) in
            closed.iter().flat_map(|folder| [0o400, 0o000, 0o300].map(|mode| (folder, mode)))
        {
            let mode_of =
                |mode| fs::set_permissions(fixture.path(folder), fs::Permissions::from_mode(mode)).unwrap();
            mode_of(mode);
            let again = format!(
                "chmod 700 {folder}; echo x > .git/worktrees/w1/commondir; echo x > .git/worktrees/w1/config.worktree; \
                 echo x > .git/modules/sub/config; echo x > .git/modules/sub/hooks/post-commit; true"
            );
            let outcome = fixture.run("Bash", bash(&again)).await;
            let mode_of =
                |mode| fs::set_permissions(fixture.path(folder), fs::Permissions::from_mode(mode)).unwrap();
            mode_of(0o700);
            assert_eq!(
                fs::read_to_string(own.join("commondir")).unwrap(),
                "../..\n",
                "{folder} {mode:o} {outcome:?}"
            );
            // A placeholder may exist, which is empty.
            let worktree_config = fs::read_to_string(own.join("config.worktree")).unwrap_or_default();
            assert_eq!(worktree_config, "", "{level:?} {folder} {mode:o} {outcome:?}");
            let module = fixture.path(".git/modules/sub");
            assert_eq!(fs::read_to_string(module.join("config")).unwrap(), "", "{level:?} {folder} {mode:o}");
            assert!(!module.join("hooks/post-commit").exists(), "{level:?} {folder} {mode:o}");
        }
        if !is_root() {
            fs::set_permissions(fixture.path(""), fs::Permissions::from_mode(0o400)).unwrap();
            let outcome = fixture.run("Bash", bash("true")).await;
            fs::set_permissions(fixture.path(""), fs::Permissions::from_mode(0o700)).unwrap();
            failed(&outcome, "sandbox_failed");
        }
    }
}

#[tokio::test]
async fn linked_repository_files_are_protected_from_work_tree() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        create_outside_work_tree(&fixture);
        for (name, real) in [("hooks", "lib/hooks"), ("config", "lib/config")] {
            fs::create_dir_all(fixture.path(".git/lib")).unwrap();
            fs::rename(fixture.path(".git").join(name), fixture.path(".git").join(real)).unwrap();
            symlink(real, fixture.path(".git").join(name)).unwrap();
        }
        let common = fixture.path(".git");
        let tree = fixture.root.join("w1");
        fixture.session_context.workspace.clone_from(&tree);
        fixture.session_context.cwd.clone_from(&tree);
        let common = common.display();
        for write in
            [format!("echo x > {common}/lib/config"), format!("echo x > {common}/lib/hooks/post-commit")]
        {
            failed(&fixture.run("Bash", bash(&write)).await, "exit_code");
        }
        completed(&fixture.run("Bash", bash(&format!("echo x > {common}/objects/x && touch made"))).await);
    }
}

#[tokio::test]
async fn planted_repository_files_do_not_block_next_command() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        let plant = "mkdir -p wt .git/worktrees && echo /etc/passwd > wt/gitdir && ln -s ../../wt .git/worktrees/evil";
        completed(&fixture.run("Bash", bash(plant)).await);
        completed(&fixture.run("Bash", bash("touch one")).await);
        completed(&fixture.run("Bash", bash("rm -r .git/worktrees && ln -s ../wt .git/worktrees")).await);
        completed(&fixture.run("Bash", bash("touch two")).await);
        completed(&fixture.run("Bash", bash("mkdir -p .git/.agentd-$PPID/x .git/.agentd-1/x")).await);
        fixture.end_turn();
        completed(&fixture.run("Bash", bash("touch three")).await);
        // A link to a hidden path, in a folder that commands may write.
        let cache = fixture.root.join("home/.cache/huggingface");
        fs::create_dir_all(&cache).unwrap();
        completed(&fixture.run("Bash", bash(&format!("ln -s /usr {}/token", cache.display()))).await);
        completed(&fixture.run("Bash", bash("ls /usr/bin/env")).await);
    }
}

#[tokio::test]
async fn hidden_link_target_stays_hidden_after_link_removal() {
    let level = LevelSetting::Bubblewrap;
    if fixture_with_sandbox(level, NetworkSetting::On).await.is_none() {
        return;
    }
    let mut fixture = ToolFixture::in_folder(tempfile::tempdir_in("/var/tmp").unwrap(), |settings| {
        settings.sandbox.level = level;
        settings.sandbox.hidden = vec![settings.home.join(".keys/key")];
        settings.sandbox.temp = settings.home.parent().unwrap().join("temp");
    });
    let home = fixture.root.join("home");
    fixture.session_context.workspace.clone_from(&home);
    fixture.session_context.cwd.clone_from(&home);
    for folder in ["vault", "keys"] {
        fs::create_dir(fixture.root.join(folder)).unwrap();
    }
    fs::write(fixture.root.join("vault/id"), "secret").unwrap();
    fs::write(fixture.root.join("keys/key"), "secret").unwrap();
    symlink("../vault", home.join(".ssh")).unwrap();
    symlink("../keys", home.join(".keys")).unwrap();
    let read = bash("cat ../vault/id; cat ../keys/key");
    for _ in 0..2 {
        let outcome = fixture.run("Bash", read.clone()).await;
        assert!(!outcome.output.contains("secret"), "{outcome:?}");
        fixture.run("Bash", bash("rm -f .ssh .keys")).await;
    }
    // A link cannot hide folders that every command needs.
    completed(&fixture.run("Bash", bash("ln -s /usr .oci; ln -s ../home .aws")).await);
    completed(&fixture.run("Bash", bash("ls /usr/bin/env . > /dev/null")).await);
}

#[tokio::test]
async fn session_temp_folder_cannot_be_moved_by_command() {
    for level in SANDBOX_LEVELS {
        if fixture_with_sandbox(level, NetworkSetting::On).await.is_none() {
            continue;
        }
        let mut fixture = ToolFixture::in_folder(tempfile::tempdir_in("/var/tmp").unwrap(), |settings| {
            let open = settings.home.parent().unwrap().join("open");
            fs::create_dir(&open).unwrap();
            settings.sandbox.level = level;
            settings.sandbox.temp = open.join("temp");
            settings.sandbox.writable = vec![open];
        });
        git(&mut fixture);
        let open = fixture.root.join("open").display().to_string();
        completed(&fixture.run("Bash", bash("touch $TMPDIR/x")).await);
        let swap = format!("ls -d {open}/temp/[0-9a-f]*[0-9] | head -1");
        let mv = format!("d=$({swap}); mv $d $d-x");
        failed(&fixture.run("Bash", bash(&mv)).await, "exit_code");
        completed(&fixture.run("Bash", bash("touch $TMPDIR/y")).await);
    }
}

/// A folder with a hidden path stays writable: a command can create new files in it.
#[tokio::test]
async fn folder_with_hidden_path_stays_writable_for_command() {
    for level in SANDBOX_LEVELS {
        let made = fixture_at_level(level, |settings, root| {
            settings.sandbox.hidden = vec![root.join("ws/in/secret"), root.join("ws/keys")];
        });
        let Some(mut fixture) = made.await else { continue };
        fs::create_dir_all(fixture.path("in")).unwrap();
        fs::create_dir(fixture.path("keys")).unwrap();
        fs::write(fixture.path("in/secret"), "KEY\n").unwrap();
        fs::write(fixture.path("keys/key"), "KEY\n").unwrap();
        completed(
            &fixture.run("Bash", bash("touch new in/new && mkdir -p in/folder && mv in/new in/newer")).await,
        );
        for command in [
            "grep -r KEY .",
            "mv in other",
            "mv in/secret in/other",
            "rm in/secret",
            "echo x > in/secret",
            "mv keys other",
            "touch keys/new",
            "ln in/secret in/hard",
        ] {
            let outcome = fixture.run("Bash", bash(command)).await;
            assert_eq!(outcome.code.as_deref(), Some("exit_code"), "{level:?} {command} {outcome:?}");
        }
        assert_eq!(fs::read_to_string(fixture.path("in/secret")).unwrap(), "KEY\n");
        // Removing it meanwhile blocks no command.
        fs::remove_dir_all(fixture.path("keys")).unwrap();
        completed(&fixture.run("Bash", bash("true")).await);
    }
}

/// A guarded path within a hidden folder does not exist for commands and blocks none.
#[tokio::test]
async fn protected_path_inside_hidden_folder_does_not_block_command() {
    for level in SANDBOX_LEVELS {
        let made = fixture_at_level(level, |settings, root| {
            settings.home = root.join("ws");
        });
        let Some(mut fixture) = made.await else { continue };
        fs::create_dir_all(fixture.path(".secrets/hooks")).unwrap();
        fs::create_dir_all(fixture.path(".ssh")).unwrap();
        fs::create_dir_all(fixture.path("dots/aws")).unwrap();
        fs::write(fixture.path("dots/aws/key"), "WORDS\n").unwrap();
        fs::write(fixture.path(".ssh/known_hosts"), "").unwrap();
        fs::create_dir(fixture.path(".git")).unwrap();
        symlink("../.secrets/hooks", fixture.path(".git/hooks")).unwrap();
        symlink("dots/aws", fixture.path(".aws")).unwrap();
        symlink(".ssh/known_hosts", fixture.path(".agentd")).unwrap();
        completed(&fixture.run("Bash", bash("echo fine; rm .agentd")).await);
        // A link target in this home folder stays hidden after the link is removed.
        for _ in 0..2 {
            failed(&fixture.run("Bash", bash("grep -r WORDS dots")).await, "exit_code");
            fixture.run("Bash", bash("rm -f .aws")).await;
        }
        assert!(!fixture.path(".aws").exists());
    }
}

/// Link targets stay hidden as at the first check, also after a reload of the configuration. The target of a
/// newer link is hidden as long as the link exists.
#[tokio::test]
async fn hidden_link_targets_follow_first_check_after_reload() {
    for level in SANDBOX_LEVELS {
        let made = fixture_at_level(level, |settings, root| {
            settings.home = root.join("user");
            let home = settings.home.clone();
            for folder in ["", "vault", "tools"] {
                fs::create_dir_all(home.join(folder)).unwrap();
                fs::write(home.join(folder).join("file"), "WORDS\n").unwrap();
            }
            symlink(root.join("ws/kube"), home.join(".kube")).unwrap();
        });
        let Some(mut fixture) = made.await else { continue };
        let home = fixture.root.join("user");
        symlink(home.join("vault"), fixture.path("kube")).unwrap();
        let seen = |name: &str| bash(&format!("grep -r WORDS {}", home.join(name).display()));
        failed(&fixture.run("Bash", seen("vault")).await, "exit_code");
        completed(&fixture.run("Bash", bash("rm kube")).await);
        failed(&fixture.run("Bash", seen("vault")).await, "exit_code");
        completed(&fixture.run("Bash", bash(&format!("ln -s {} kube", home.join("tools").display()))).await);
        failed(&fixture.run("Bash", seen("tools")).await, "exit_code");
        completed(&fixture.run("Bash", bash("rm kube")).await);
        completed(&fixture.run("Bash", seen("tools")).await);
        fixture.tools = fixture.tools.clone().inherit_from(&fixture.tools);
        failed(&fixture.run("Bash", seen("vault")).await, "exit_code");
    }
}
