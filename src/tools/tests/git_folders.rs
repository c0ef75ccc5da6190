//! Tests of the git folder that commands of a workspace may write, for every layout of repositories.

use std::fs;

use super::sandbox::{SANDBOX_LEVELS, bash, fixture_with_sandbox};
use super::*;
use crate::settings::{LevelSetting, NetworkSetting};
use crate::shell::AvailableLevels;

/// Runs git as the user does, outside any sandbox.
fn user_git(folder: &Path, args: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]);
    command
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = command.output().expect("git runs");
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository with two packages, a submodule, and a work tree of it with its own copy of the submodule.
fn repository_with_all_layouts(root: &Path) {
    let (library, main) = (root.join("library"), root.join("main"));
    for folder in [&library, &main] {
        fs::create_dir_all(folder.join("packages/a")).unwrap();
        fs::write(folder.join("packages/a/f"), "1").unwrap();
        user_git(folder, &["init", "-q"]);
        user_git(folder, &["add", "."]);
        user_git(folder, &["commit", "-qm", "one"]);
    }
    let from = library.to_str().unwrap();
    user_git(&main, &["submodule", "add", "-q", from, "sub"]);
    user_git(&main, &["commit", "-qm", "two"]);
    user_git(&main, &["worktree", "add", "-q", "../tree"]);
    user_git(&root.join("tree"), &["submodule", "update", "-q", "--init"]);
    user_git(&main.join("sub"), &["worktree", "add", "-q", "../../subtree"]);
    user_git(root, &["init", "-q", "--separate-git-dir", "foreign.git", "foreign"]);
    fs::create_dir(root.join("forged")).unwrap();
    fs::write(root.join("forged/.git"), "gitdir: ../main/.git/modules/sub\n").unwrap();
    fs::write(root.join("foreign/.git"), "gitdir: ../library/.git\n").unwrap();
}

#[tokio::test]
async fn command_commits_in_any_layout_but_protected_git_files_stay_closed() {
    for level in SANDBOX_LEVELS {
        if level == LevelSetting::Landlock && AvailableLevels::probe_once().await.guards().is_err() {
            base::skip_test!("level 2 cannot guard here");
            continue;
        }
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::Off).await else { continue };
        let root = fixture.root.clone();
        repository_with_all_layouts(&root);
        let commit =
            "git add new && git -c user.name=a -c user.email=a@b commit -qm new && git log -1 --format=%s";
        for workspace in [
            "main",
            "main/packages/a",
            "main/sub",
            "main/sub/packages",
            "tree/packages",
            "tree/sub",
            "subtree/packages/a",
        ] {
            let folder = root.join(workspace);
            (fixture.session_context.workspace, fixture.session_context.cwd) =
                (folder.clone(), folder.clone());
            let outcome = fixture.run("Bash", bash(&format!("echo 1 > new && {commit}"))).await;
            assert_eq!(completed(&outcome), "new\n", "{level:?} {workspace}");
            for write in [
                "echo x >> $(git rev-parse --git-path config)",
                "git config core.fsmonitor x",
                "echo x > $(git rev-parse --git-dir)/config.worktree",
                "mkdir -p $(git rev-parse --git-path hooks) && echo x > $(git rev-parse --git-path hooks)/pre-commit",
                "echo ../evil > $(git rev-parse --git-dir)/commondir",
                "echo ../evil > $(git rev-parse --git-common-dir)/commondir",
                "echo '* filter=x' > $(git rev-parse --git-path info/attributes)",
                "mv $(git rev-parse --git-common-dir)/info $(git rev-parse --git-common-dir)/i",
            ] {
                let outcome = fixture.run("Bash", bash(write)).await;
                assert_eq!(code(&outcome), "exit_code", "{level:?} {workspace} {write}: {outcome:?}");
            }
            if workspace != "main" {
                let outside =
                    "touch $(git rev-parse --show-toplevel)/../made $(git rev-parse --show-cdup)made";
                assert!(
                    workspace.ends_with("sub")
                        || code(&fixture.run("Bash", bash(outside)).await) == "exit_code"
                );
            }
            fixture.end_turn();
            user_git(&folder, &["status"]);
        }
        // A file alone opens no folder, and neither does one that is written for another work tree.
        for workspace in ["forged", "foreign"] {
            let folder = root.join(workspace);
            (fixture.session_context.workspace, fixture.session_context.cwd) =
                (folder.clone(), folder.clone());
            let outcome = fixture.run("Bash", bash(&format!("echo 1 > new && {commit}"))).await;
            assert_eq!(code(&outcome), "exit_code", "{level:?} {workspace}: {outcome:?}");
            fixture.end_turn();
        }
    }
}
