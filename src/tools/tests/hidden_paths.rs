//! Paths that the sandbox hides, and those that stay visible.

use std::fs;

use super::sandbox::{SANDBOX_LEVELS, bash, fixture_with_sandbox};
use super::*;
use crate::settings::{LevelSetting, NetworkSetting};

#[tokio::test]
async fn hidden_folder_shows_only_its_writable_part() {
    for level in SANDBOX_LEVELS {
        let Some(ToolFixture { _root: dir, .. }) = fixture_with_sandbox(level, NetworkSetting::On).await
        else {
            continue;
        };
        let root = dir.path().canonicalize().unwrap();
        let inner = tempfile::tempdir_in(&root).unwrap();
        let root = inner.path().to_owned();
        let mut fixture = ToolFixture::in_folder(inner, |settings| {
            settings.sandbox.level = level;
            settings.sandbox.hidden = vec![root.join("data")];
            // Landlock gives no right to create files in a folder that contains a hidden path.
            if level == LevelSetting::Bubblewrap {
                settings.sandbox.hidden.push(root.join("data/open/deep/key"));
            }
            settings.sandbox.writable = vec![root.join("data/open")];
            settings.sandbox.temp = root.join("temp");
        });
        fs::create_dir_all(root.join("data/open/deep")).unwrap();
        fs::write(root.join("data/db"), "secret").unwrap();
        fs::write(root.join("data/open/deep/key"), "secret").unwrap();
        let outcome = fixture.run("Bash", bash(&format!("touch {}/data/open/made", root.display()))).await;
        completed(&outcome);
        assert!(root.join("data/open/made").exists(), "{level:?}");
        for path in ["data/db", "data/open/deep/key"] {
            if level == LevelSetting::Landlock && path.ends_with("key") {
                continue;
            }
            let outcome = fixture.run("Bash", bash(&format!("cat {}/{path}", root.display()))).await;
            assert!(!outcome.output.contains("secret"), "{level:?} {path}");
        }
        let outcome = fixture.run("Bash", bash(&format!("touch {}/data/made", root.display()))).await;
        failed(&outcome, "exit_code");
        assert!(!root.join("data/made").exists());
    }
}

#[tokio::test]
async fn hidden_path_stays_hidden_through_symlink() {
    for level in SANDBOX_LEVELS {
        let Some(ToolFixture { _root: dir, .. }) = fixture_with_sandbox(level, NetworkSetting::On).await
        else {
            continue;
        };
        let inner = tempfile::tempdir_in(dir.path().canonicalize().unwrap()).unwrap();
        let root = inner.path().to_owned();
        let mut fixture = ToolFixture::in_folder(inner, |settings| {
            settings.sandbox.level = level;
            settings.sandbox.hidden = vec![root.join("link/key"), root.join("key-link")];
            // Folders for temporary files lie in a writable folder.
            settings.sandbox.writable = vec![root.join("open")];
            settings.sandbox.temp = root.join("open/temp");
        });
        for folder in ["keys", "open"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        for name in ["key", "other"] {
            fs::write(root.join("keys").join(name), "secret").unwrap();
        }
        std::os::unix::fs::symlink("keys", root.join("link")).unwrap();
        std::os::unix::fs::symlink("keys/other", root.join("key-link")).unwrap();
        for name in ["keys/key", "link/key", "keys/other", "key-link"] {
            let outcome = fixture.run("Bash", bash(&format!("cat {}/{name}", root.display()))).await;
            assert!(!outcome.output.contains("secret"), "{level:?} {name}: {outcome:?}");
        }
        let temp = root.join("open/temp");
        let change = format!(
            "cd {}; touch free; mv nothing x; mv empty x; mv stages x; mv placeholders x; rm -rf nothing empty stages placeholders",
            temp.display()
        );
        fixture.run("Bash", bash(&change)).await;
        assert!(temp.join("free").exists(), "{level:?}: it may write there");
        for name in ["nothing", "empty", "stages"] {
            assert!(temp.join(name).exists(), "{level:?} {name}");
        }
        completed(&fixture.run("Bash", bash("echo $$ > $TMPDIR/x && cat $TMPDIR/x")).await);
    }
}

#[tokio::test]
async fn foreign_terminals_and_shared_memory_are_unreachable() {
    use std::os::fd::AsRawFd as _;
    let opened = nix::pty::openpty(None, None).unwrap();
    let terminal = fs::read_link(format!("/proc/self/fd/{}", opened.slave.as_raw_fd())).unwrap();
    let shared = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    fs::write(shared.path(), "theirs").unwrap();
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        let name = shared.path().display();
        for command in [
            format!("echo x > {}", terminal.display()),
            format!("head -c 1 {}", terminal.display()),
            format!("cat {name}"),
            format!("echo x > {name}; ! grep -q theirs {name}"),
        ] {
            let command = if command.contains("grep") { format!("{command} && false") } else { command };
            failed(&fixture.run("Bash", bash(&command)).await, "exit_code");
        }
        assert_eq!(fs::read_to_string(shared.path()).unwrap(), "theirs", "{level:?}");
        let own = "echo x > /dev/shm/own && python3 -c 'import os; a, b = os.openpty(); os.write(b, b\"hi\"); \
                   assert os.read(a, 2) == b\"hi\"; os.close(os.open(os.ttyname(b), os.O_RDWR))'";
        let outcome = fixture.run("Bash", bash(own)).await;
        assert_eq!(outcome.status, ToolStatus::Completed, "{level:?} {outcome:?}");
        assert!(!Path::new("/dev/shm/own").exists());
    }
}

#[tokio::test]
async fn workspace_in_shared_memory_or_tmp_is_usable() {
    for (level, place) in SANDBOX_LEVELS.into_iter().flat_map(|level| [(level, "/dev/shm"), (level, "/tmp")])
    {
        if fixture_with_sandbox(level, NetworkSetting::On).await.is_none() {
            continue;
        }
        let mut fixture = ToolFixture::in_folder(tempfile::tempdir_in(place).unwrap(), |settings| {
            settings.sandbox.level = level;
            settings.sandbox.temp = settings.home.parent().unwrap().join("temp");
        });
        completed(
            &fixture
                .run("Bash", bash("touch made && mkdir -p $TMPDIR/a && touch $TMPDIR/a/b && mktemp"))
                .await,
        );
        assert!(fixture.path("made").exists(), "{level:?} {place}");
        // At level 2, all shared memory of the machine is writable then.
        if (level, place) != (LevelSetting::Landlock, "/dev/shm") {
            fixture.run("Bash", bash(&format!("touch {}/free", fixture.root.display()))).await;
            assert!(!fixture.root.join("free").exists(), "{level:?} {place}");
        }
    }
}

#[tokio::test]
async fn writable_path_in_hidden_folder_works_from_home() {
    for level in SANDBOX_LEVELS {
        if fixture_with_sandbox(level, NetworkSetting::On).await.is_none() {
            continue;
        }
        let mut fixture = ToolFixture::in_folder(tempfile::tempdir_in("/var/tmp").unwrap(), |settings| {
            settings.sandbox.level = level;
            settings.sandbox.writable =
                ["work/deep", "list"].map(|name| settings.home.join(".ssh").join(name)).to_vec();
            settings.sandbox.temp = settings.home.parent().unwrap().join("temp");
        });
        let home = fixture.root.join("home");
        fixture.session_context.workspace.clone_from(&home);
        fixture.session_context.cwd.clone_from(&home);
        fs::create_dir_all(home.join(".ssh/work/deep")).unwrap();
        fs::write(home.join(".ssh/id"), "secret").unwrap();
        fs::write(home.join(".ssh/list"), "").unwrap();
        for _ in 0..2 {
            completed(&fixture.run("Bash", bash("echo x > .ssh/work/deep/new && echo y >> .ssh/list")).await);
            failed(&fixture.run("Bash", bash("cat .ssh/id")).await, "exit_code");
            failed(&fixture.run("Bash", bash("echo x > .ssh/work/free")).await, "exit_code");
            failed(&fixture.run("Bash", bash("mv .ssh keys")).await, "exit_code");
        }
        assert_eq!(fs::read_to_string(home.join(".ssh/list")).unwrap(), "y\ny\n");
        assert!(home.join(".ssh/work/deep/new").exists());
        assert!(!home.join(".ssh/work/free").exists());
    }
}
