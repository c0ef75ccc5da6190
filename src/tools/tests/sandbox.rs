//! Tests each sandbox level from the inside: operations that commands cannot do, and operations that still
//! work.

use std::fs;

use super::*;
use crate::settings::{LevelSetting, NetworkSetting};
use crate::shell::AvailableLevels;

/// A fixture whose commands run at this level. Prints a note and returns `None` if the level does not work
/// here.
pub(super) async fn fixture_with_sandbox(
    level: LevelSetting,
    network: NetworkSetting,
) -> Option<ToolFixture> {
    let here = AvailableLevels::probe_once().await;
    let works = match level {
        LevelSetting::Landlock => here.landlock(),
        LevelSetting::Bubblewrap => here.bubblewrap(),
        _ => Ok(()),
    };
    if let Err(why) = works {
        base::skip_test!("{} does not work here: {why}", level.name());
        return None;
    }
    // Not in the folder for temporary files: the sandbox mounts another folder there.
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut fixture = ToolFixture::in_folder(dir, |settings| {
        let root = settings.home.parent().unwrap().to_owned();
        settings.sandbox.level = level;
        settings.sandbox.network = network;
        // A file in a hidden folder that is hidden itself, like the configuration.
        settings.sandbox.hidden = vec![root.join("data"), root.join("data/db")];
        settings.sandbox.temp = root.join("temp");
    });
    fs::create_dir(fixture.root.join("home/.ssh")).unwrap();
    fs::write(fixture.root.join("home/.ssh/id"), "secret").unwrap();
    fs::write(fixture.root.join("home/notes"), "to be read").unwrap();
    fs::write(fixture.root.join("data/db"), "secret").unwrap();
    git(&mut fixture);
    Some(fixture)
}

/// Creates a repository with a hook and a configuration.
pub(super) fn git(fixture: &mut ToolFixture) {
    fixture.write_file(".git/HEAD", "ref: refs/heads/main\n");
    fixture.write_file(".git/config", "[core]\n\trepositoryformatversion = 0\n");
    fixture.write_file(".git/hooks/pre-commit.sample", "#!/bin/sh\n");
    for folder in ["objects", "refs/heads"] {
        fs::create_dir_all(fixture.path(".git").join(folder)).unwrap();
    }
}

pub(super) fn bash(command: &str) -> Value {
    json!({"command": command})
}

pub(super) const SANDBOX_LEVELS: [LevelSetting; 2] = [LevelSetting::Landlock, LevelSetting::Bubblewrap];

#[tokio::test]
async fn sandbox_denies_outside_writes_and_secret_reads() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        let root = fixture.root.display().to_string();
        fs::write(fixture.root.join("mine"), "mine").unwrap();
        for command in [
            "echo x > {R}/made",
            "echo x > {R}/home/.bashrc",
            "echo x >> /etc/made-by-a-test",
            "echo x > {R}/mine",
            ": > {R}/mine",
            "truncate -s 0 {R}/mine",
            "mkdir {R}/folder",
            "ln -s /x {R}/link",
            "mv {R}/mine {R}/ws/",
            "ln {R}/mine hard && echo x >> hard",
            "rm {R}/mine",
            "cat {R}/home/.ssh/id",
            "cat {R}/data/db",
            "ln -s {R}/data/db link2 && cat link2",
            "cat /proc/self/root{R}/data/db",
            "cat /etc/shadow | grep -q .",
            "mknod disk b 8 0 || mknod {R}/ws/zero c 1 5",
            "head -c 1 /dev/vda || head -c 1 /dev/sda || head -c 1 /dev/mem",
            "mount -t tmpfs x {R}/ws",
            "unshare -U true || unshare -m true || unshare -n true",
            "chroot . true",
            "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
        ] {
            let command = command.replace("{R}", &root);
            let outcome = fixture.run("Bash", bash(&command)).await;
            failed(&outcome, "exit_code");
            let sandbox_detail = outcome.detail.unwrap()["sandbox"].clone();
            assert_eq!(
                sandbox_detail["level"],
                if level == LevelSetting::Landlock { 2 } else { 3 },
                "{command}"
            );
        }
        assert_eq!(fs::read(fixture.root.join("mine")).unwrap(), b"mine");
        assert_eq!(fs::read(fixture.root.join("home/.ssh/id")).unwrap(), b"secret");
        for name in ["made", "home/.bashrc", "folder", "link"] {
            assert!(fs::symlink_metadata(fixture.root.join(name)).is_err(), "{name}");
        }
    }
}

#[tokio::test]
async fn sandbox_allows_ordinary_commands_in_workspace() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        for command in [
            "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && ln a/d a/e && rm -r a",
            "f=$(mktemp) && echo hi > $f && cat $f && rm $f",
            "cat ~/notes /etc/passwd /proc/self/status > /dev/null",
            "echo x | tee /dev/null /dev/stderr > /dev/stdout",
            "cat <<< here <(echo there) > /dev/null",
            "exec 3<> /dev/null; head -c 4 /dev/urandom > r; echo > /dev/full && exit 1; rm r",
            "sleep 0 & wait; (trap : TERM; kill -TERM $BASHPID); kill -0 $$",
            "touch x; chmod 755 x; rm x; ps > /dev/null || true",
            "python3 -c 'import multiprocessing as m; m.Lock(); import socket; socket.socketpair()' 2>/dev/null \
             || ! command -v python3",
        ] {
            let outcome = fixture.run("Bash", bash(command)).await;
            assert_eq!(outcome.status, ToolStatus::Completed, "{level:?} {command}: {outcome:?}");
        }
        // Files in the folder for temporary files are kept for the next command.
        completed(&fixture.run("Bash", bash("echo kept > $TMPDIR/left")).await);
        assert_eq!(
            completed(&fixture.run("Bash", bash("cat $TMPDIR/left; mkdir sub; cd sub")).await),
            "kept\n"
        );
        assert_eq!(fixture.session_context.cwd, fixture.path("sub"));
        completed(&fixture.run("Bash", bash("cd ..; rmdir sub")).await);
        failed(&fixture.run("Bash", bash("exit 3")).await, "exit_code");
        let killed = fixture.run("Bash", bash("kill -9 $$")).await;
        assert_eq!(killed.detail.unwrap()["exit_code"], 137);
        fixture.end_turn();
        let quiet = fs::read_dir(&fixture.session_context.workspace).unwrap().count();
        assert_eq!(quiet, 1, "only .git is left: {level:?}");
    }
}

#[tokio::test]
async fn git_works_but_hooks_and_config_are_read_only() {
    for level in SANDBOX_LEVELS {
        if level == LevelSetting::Landlock
            && let Err(why) = AvailableLevels::probe_once().await.guards()
        {
            base::skip_test!("level 2 cannot guard here: {why}");
            continue;
        }
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::Off).await else { continue };
        // The names of submodules are the paths of their folders.
        fixture.write_file(".git/modules/libs/deep/HEAD", "ref: refs/heads/main\n");
        fixture.write_file(".git/modules/libs/deep/config", "[core]\n");
        let commit = "git -c user.name=a -c user.email=a@b commit -q";
        let work =
            format!("echo 1 > f && git add f && {commit} -m one && git branch other && git log --oneline");
        let outcome = fixture.run("Bash", bash(&work)).await;
        assert!(completed(&outcome).contains("one"), "{outcome:?}");
        if level == LevelSetting::Landlock {
            let stash = "git -c user.name=a -c user.email=a@b stash";
            let work = format!("touch new && {stash} push -q -u && {stash} pop -q && rm new");
            completed(&fixture.run("Bash", bash(&work)).await);
        }
        for command in [
            "echo x > .git/hooks/pre-commit",
            "git config a.b c",
            "mv .git gone",
            "rm -rf .git/hooks",
            "mv .git/hooks .git/old",
            "mv .git/config .git/old && echo x > .git/config",
            "ln .git/config linked && echo x >> linked",
            "chmod 777 .git/hooks",
            "umount .git/hooks; echo x > .git/hooks/pre-commit",
            "mv .git/modules .git/m; test -e .git/m",
            "echo x > .git/modules/libs/deep/hooks/post-checkout",
            "echo x > .git/modules/libs/deep/config",
            "mkdir -p evil/hooks && echo ../evil > .git/commondir",
            "echo ../evil | tee .git/x && mv -f .git/x .git/commondir",
            "rm -f .git/commondir; test ! -e .git/commondir",
            "rm .git/modules/libs/deep/HEAD; echo x > .git/modules/libs/deep/config",
            "echo x > .git/modules/libs/deep/config",
            "echo x > .git/modules/libs/deep/commondir",
            "rm -rf .git; test ! -e .git/config",
        ] {
            let outcome = fixture.run("Bash", bash(command)).await;
            assert_eq!(outcome.status, ToolStatus::Failed, "{level:?} {command}: {outcome:?}");
        }
        assert_eq!(fixture.bytes(".git/hooks/pre-commit.sample"), b"#!/bin/sh\n");
        // In an attended session, a placeholder would block such commands.
        let made = ["mkdir .agentd", "ln -sfn /tmp .agentd && test -L .agentd"];
        for command in made.iter().filter(|_| level == LevelSetting::Bubblewrap) {
            failed(&fixture.run("Bash", bash(command)).await, "exit_code");
        }
        fixture.end_turn();
        for name in [".agentd", ".git/commondir", ".git/config.worktree"] {
            assert!(!fixture.path(name).exists(), "{name}: nothing is left of what stood in its place");
        }

        // The hook is also protected for a command that starts inside the folder.
        completed(&fixture.run("Bash", bash("cd .git/hooks")).await);
        failed(&fixture.run("Bash", bash("echo x > pre-commit")).await, "exit_code");
        completed(&fixture.run("Bash", bash("cd ../..")).await);
        assert_eq!(fs::read_dir(fixture.path(".git/hooks")).unwrap().count(), 1, "{level:?}");

        // Existing files are guarded as well; missing hooks are not created.
        fixture.write_file(".agentd/policy.toml", "allow = []\n");
        fs::remove_dir_all(fixture.path(".git/hooks")).unwrap();
        for command in
            ["echo x >> .agentd/policy.toml", "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit"]
        {
            failed(&fixture.run("Bash", bash(command)).await, "exit_code");
        }
        fixture.end_turn();
        assert!(!fixture.path(".git/hooks").exists());
        git(&mut fixture);
        let asks = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n";
        fixture.write_file(".git/config", asks);
        failed(&fixture.run("Bash", bash("git config --worktree core.fsmonitor x")).await, "exit_code");
        failed(&fixture.run("Bash", bash("echo '[core]' > .git/config.worktree")).await, "exit_code");
        completed(&fixture.run("Bash", bash("git status && git rev-parse --git-path hooks")).await);

        // A pipe in place of a file, without a writer, blocks no later command.
        let pipes = "mkdir -p .git/worktrees/f && mkfifo .git/worktrees/f/gitdir .git/worktrees/f/commondir";
        completed(&fixture.run("Bash", bash(pipes)).await);
        completed(&fixture.run("Bash", bash("true")).await);
    }
}

#[tokio::test]
async fn ended_background_process_is_reported_at_each_level() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::Off).await else { continue };
        let outcome = fixture.run("Bash", bash("cd .git; sleep 1000 >/dev/null 2>&1 & echo started")).await;
        let text = completed(&outcome);
        assert!(
            text.starts_with("started\nA background process of the command still ran"),
            "{level:?}: {text}"
        );
        let outcome = fixture.run("Bash", bash("echo a; echo b >&2; sleep 0 & wait")).await;
        assert_eq!(completed(&outcome), "a\nb\n", "{level:?}");
        assert_eq!(
            fixture.session_context.cwd,
            fixture.path(".git"),
            "{level:?}: the folder is reported as well"
        );
    }
}

#[tokio::test]
async fn parent_of_protected_path_cannot_be_moved() {
    for level in SANDBOX_LEVELS {
        let Some(fixture) = fixture_with_sandbox(level, NetworkSetting::Off).await else { continue };
        if level == LevelSetting::Landlock && AvailableLevels::probe_once().await.guards().is_err() {
            base::skip_test!("level 2 cannot guard here");
            continue;
        }
        drop(fixture);
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut fixture = ToolFixture::in_folder(dir, |settings| {
            let root = settings.home.parent().unwrap().to_owned();
            settings.sandbox.level = level;
            settings.sandbox.hidden = vec![root.join("ws/conf/keys/k"), root.join("ws/.config/agentd")];
            settings.sandbox.temp = root.join("temp");
        });
        assert!(fixture.path("").ends_with("ws"), "the hidden file lies in the workspace");
        fixture.write_file("conf/keys/k", "secret");
        fixture.write_file("deep/in/repo/.git/HEAD", "ref: refs/heads/main\n");
        fixture.write_file("deep/in/repo/.git/config", "[core]\n");
        fixture.session_context.additional = vec![fixture.path("deep/in/repo")];
        for command in [
            "mv conf conf2; cat conf2/keys/k",
            "mv conf/keys conf/k2; cat conf/k2/k",
            "mv deep d2 && mkdir deep",
            "mv deep/in deep/x",
            "mkdir -p .config/agentd && echo x > .config/agentd/config.toml",
        ] {
            failed(&fixture.run("Bash", bash(command)).await, "exit_code");
        }
        completed(
            &fixture
                .run("Bash", bash("echo x > deep/other && mv deep/other deep/in/ && rm deep/in/other"))
                .await,
        );
        fixture.end_turn();
        assert!(!fixture.path(".config").exists(), "{level:?}");
    }
}

#[tokio::test]
async fn command_is_refused_in_replaced_workspace() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a", "mine");
    completed(&fixture.run("Bash", bash("cat a")).await);
    let (ws, away) = (fixture.path("."), fixture.root.join("away"));
    let ws = ws.canonicalize().unwrap();
    fs::rename(&ws, &away).unwrap();
    fs::create_dir(&ws).unwrap();
    failed(&fixture.run("Bash", bash("touch made")).await, "workspace_replaced");
    fs::remove_dir(&ws).unwrap();
    std::os::unix::fs::symlink(fixture.root.join("home"), &ws).unwrap();
    failed(&fixture.run("Bash", bash("touch made")).await, "workspace_replaced");
    assert!(!fixture.root.join("home/made").exists());
    fs::remove_file(&ws).unwrap();
    fs::rename(&away, &ws).unwrap();
    completed(&fixture.run("Bash", bash("cat a")).await);
}

#[tokio::test]
async fn workspace_in_writable_folder_cannot_be_moved() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::Off).await else { continue };
        if level == LevelSetting::Landlock && AvailableLevels::probe_once().await.guards().is_err() {
            base::skip_test!("level 2 cannot guard here");
            continue;
        }
        let outer = fixture.root.join("outer");
        fs::create_dir_all(outer.join("inner/.git")).unwrap();
        (fixture.session_context.workspace, fixture.session_context.cwd) =
            (outer.join("inner"), outer.join("inner"));
        fixture.session_context.additional = vec![outer.clone()];
        completed(&fixture.run("Bash", bash("touch ../free")).await);
        failed(&fixture.run("Bash", bash("mv ../inner ../gone")).await, "exit_code");
        assert!(outer.join("inner/.git").exists(), "{level:?}");
    }
}

#[tokio::test]
async fn protected_files_of_folders_above_workspace_are_read_only() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::Off).await else { continue };
        if level == LevelSetting::Landlock && AvailableLevels::probe_once().await.guards().is_err() {
            base::skip_test!("level 2 cannot guard here");
            continue;
        }
        let outer = fixture.root.join("outer");
        for folder in ["mid/inner", "mid/.agentd", ".agentd", "mid/.git/hooks"] {
            fs::create_dir_all(outer.join(folder)).unwrap();
        }
        fs::write(outer.join("mid/.git/config"), "[core]\n").unwrap();
        (fixture.session_context.workspace, fixture.session_context.cwd) =
            (outer.join("mid/inner"), outer.join("mid/inner"));
        fixture.session_context.additional = vec![outer.clone()];
        completed(&fixture.run("Bash", bash("touch ../free ../../free")).await);
        for place in ["../.agentd/x", "../../.agentd/x", "../.git/hooks/x", "../.git/config"] {
            failed(&fixture.run("Bash", bash(&format!("echo x >> {place}"))).await, "exit_code");
        }
        fixture.end_turn();
    }
}

#[tokio::test]
async fn command_cannot_create_repository_in_workspace() {
    let Some(mut fixture) = fixture_with_sandbox(LevelSetting::Bubblewrap, NetworkSetting::Off).await else {
        return;
    };
    fs::remove_dir_all(fixture.path(".git")).unwrap();
    failed(&fixture.run("Bash", bash("git init -q . || exit 5")).await, "exit_code");
    failed(
        &fixture.run("Bash", bash("mkdir -p .git/hooks && echo x > .git/hooks/pre-commit")).await,
        "exit_code",
    );
    // The placeholder is kept for the next command and blocks no other program.
    assert!(fixture.path(".git").exists());
    assert!(!completed(&fixture.run("LS", json!({"path": "."})).await).contains(".git"));
    assert!(!fixture.path(".git").exists());
    // At level 2, the user judges the command, and it may create a repository.
    let Some(mut fixture) = fixture_with_sandbox(LevelSetting::Landlock, NetworkSetting::Off).await else {
        return;
    };
    fs::remove_dir_all(fixture.path(".git")).unwrap();
    completed(&fixture.run("Bash", bash("git init -q .")).await);
    assert!(fixture.path(".git/config").exists());
}

#[tokio::test]
async fn network_setting_controls_connections_of_command() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("exec 3<> /dev/tcp/127.0.0.1/{}", server.local_addr().unwrap().port());
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        completed(&fixture.run("Bash", bash(&connect)).await);
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::Off).await else { continue };
        let outcome = fixture.run("Bash", bash(&connect)).await;
        failed(&outcome, "exit_code");
        let sandbox_detail = &outcome.detail.unwrap()["sandbox"];
        assert_eq!(sandbox_detail["network"], false);
    }
}

#[tokio::test]
async fn command_cannot_access_other_processes() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        let me = std::process::id();
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = other.id();
        for command in [
            format!("kill -0 {pid}"),
            format!("kill -KILL {pid}"),
            format!("kill -0 {me}"),
            format!("cat /proc/{pid}/environ | grep -q ."),
            format!("ls /proc/{pid}/root/etc"),
            format!("head -c 1 /proc/{me}/mem"),
        ] {
            let outcome = fixture.run("Bash", bash(&command)).await;
            assert_eq!(outcome.status, ToolStatus::Failed, "{level:?} {command}: {outcome:?}");
        }
        assert!(other.try_wait().unwrap().is_none(), "it lives");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

#[tokio::test]
async fn bubblewrap_kills_all_processes_with_call() {
    let Some(mut fixture) = fixture_with_sandbox(LevelSetting::Bubblewrap, NetworkSetting::On).await else {
        return;
    };
    // A command could write to the memory of the first process, so that process needs the same filter.
    completed(&fixture.run("Bash", bash("grep -q '^Seccomp:.*2$' /proc/1/status")).await);
    // A process without parents, session and marks of its call.
    let command = "env -i setsid bash -c 'trap : TERM HUP; (sleep 1000.25 & echo $! > there; wait) & disown' \
                   >/dev/null 2>&1 </dev/null & while [ ! -s there ]; do :; done";
    completed(&fixture.run("Bash", bash(command)).await);
    let left = base::proc::list_processes().into_iter().filter(|process| {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        line.windows(7).any(|part| part == b"1000.25") && !process.is_dead
    });
    assert_eq!(left.map(|process| process.pid).collect::<Vec<i32>>(), Vec::<i32>::new());
}

#[tokio::test]
async fn failure_caused_by_sandbox_is_reported() {
    for level in SANDBOX_LEVELS {
        let Some(mut fixture) = fixture_with_sandbox(level, NetworkSetting::On).await else { continue };
        let outcome = fixture.run("Bash", bash("echo x > /etc/made-by-a-test")).await;
        failed(&outcome, "exit_code");
        assert!(outcome.output.contains("this was probably the sandbox"), "{}", outcome.output);
        assert_eq!(outcome.detail.unwrap()["sandbox"]["blocked"], "files");
        let outcome = fixture.run("Bash", bash("echo no; false")).await;
        assert!(!outcome.output.contains("sandbox"), "{}", outcome.output);
    }
}

#[tokio::test]
async fn command_is_refused_when_sandbox_is_unavailable() {
    let mut fixture = ToolFixture::with_settings(|settings| {
        settings.sandbox.level = LevelSetting::Rlimits;
        settings.sandbox.network = NetworkSetting::Off;
    });
    let refused = fixture.prepare("Bash", bash("touch made")).await.unwrap_err();
    failed(&refused, "sandbox_unavailable");
    // The command is judged with a sandbox, and then the settings change.
    let Some(mut fixture) = fixture_with_sandbox(LevelSetting::Landlock, NetworkSetting::On).await else {
        return;
    };
    let call = fixture.call("Bash", bash("touch made"));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    assert_eq!(prepared.sandbox.unwrap().level, 2);
    fixture.tools = Toolbox::new(Settings::new(fixture.root.join("home")));
    failed(&fixture.run_prepared(&call, &prepared).await, "target_changed");
    assert!(!fixture.path("made").exists());
}

#[tokio::test]
async fn foreign_temp_folder_prevents_command_start() {
    let Some(mut fixture) = fixture_with_sandbox(LevelSetting::Landlock, NetworkSetting::On).await else {
        return;
    };
    fs::create_dir(fixture.root.join("temp")).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::os::unix::fs::symlink("/", fixture.root.join("temp/nothing")).unwrap();
    fs::set_permissions(fixture.root.join("temp"), fs::Permissions::from_mode(0o777)).unwrap();
    for _ in 0..2 {
        failed(&fixture.run("Bash", bash("touch made")).await, "sandbox_failed");
    }
    assert!(!fixture.path("made").exists());
}
