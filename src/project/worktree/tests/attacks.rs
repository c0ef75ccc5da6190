//! What tools may leave in git's folders neither leads the daemon elsewhere nor holds it.

use super::*;

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// Makes a pipe that no process writes.
fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).expect("made");
}

fn link(target: &Path, path: &Path) {
    let _ = fs::remove_file(path);
    symlink(target, path).expect("linked");
}

/// Waits for work that a pipe would hold for ever, or for a time limit of git.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("nothing waits for the pipe")
}

#[tokio::test]
async fn links_in_place_of_index_lead_nowhere() {
    let Some(place) = Place::new() else { return };
    let secret = place.root().join("secret");
    fs::write(&secret, "DIRC secret").expect("written");
    let made = place.create("job_1").await;
    let folder = place.git_folder("job_1");
    write(&made.cwd.join("a.txt"), "ours\n");
    for target in [&secret, &place.root().join("missing"), Path::new("/dev/zero")] {
        link(target, &folder.join("index"));
        // The names that an earlier version used for its copy.
        for number in 0..64 {
            link(&secret, &folder.join(format!("agentd-index-{}-{number}", std::process::id())));
        }
        let shown = soon(diff(&made.own, 1 << 20)).await.expect("compared");
        assert_eq!(shown.files, [("a.txt".to_owned(), 1, 1)], "{}", target.display());
        assert_eq!(soon(status(&made.own)).await.expect("read").uncommitted, 1);
    }
    link(&place.root().join("missing"), &folder.join("index"));
    let finished = soon(finish(&made.own, &WorktreeChoice::with_defaults(), "work")).await;
    assert_eq!(finished.expect("finished").git.files_changed, 1);
    assert_eq!(fs::read_to_string(&secret).expect("there"), "DIRC secret");
    assert!(!place.root().join("missing").exists(), "git made the target of the link");
    let index = folder.join("index").symlink_metadata().expect("there");
    assert!(index.is_file(), "the link was replaced by an index");
    assert_eq!(git(&made.own.path, &["status", "--porcelain", "-uno"]), "");
    place.assert_no_lock_file();
}

#[tokio::test]
async fn pipes_in_git_folders_hold_nothing() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    let folder = place.git_folder("job_1");
    write(&made.cwd.join("a.txt"), "ours\n");
    pipe(&folder.join("index"));
    soon(diff(&made.own, 1 << 20)).await.expect("compared");
    let finished = soon(finish(&made.own, &WorktreeChoice::with_defaults(), "work")).await;
    assert_eq!(finished.expect("finished").git.files_changed, 1);
    for (path, is_repaired_by) in [
        (folder.join("HEAD"), "ref: refs/heads/agentd/job_1\n"),
        (folder.join("gitdir"), &*format!("{}/.git\n", made.own.path.display())),
        (place.top().join(".git/packed-refs"), ""),
        (place.top().join(".git/info/exclude"), ""),
        (place.top().join(".git/HEAD"), "ref: refs/heads/trunk\n"),
    ] {
        pipe(&path);
        let name = path.display();
        assert!(soon(status(&made.own)).await.is_err(), "{name}");
        assert!(soon(finish(&made.own, &WorktreeChoice::with_defaults(), "work")).await.is_err(), "{name}");
        assert!(soon(remove(&made.own, Force::Careful)).await.is_err(), "{name}");
        let other = soon(place.create_with("job_2", &WorktreeChoice::with_defaults())).await;
        assert!(other.is_err(), "{name}: {other:?}");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, is_repaired_by).expect("written");
        assert!(made.own.path.join("a.txt").exists());
    }
    pipe(&place.top().join(".git/index"));
    let refused = soon(place.create_with("job_2", &WorktreeChoice::with_defaults())).await;
    assert!(refused.expect_err("refused").why.contains("is not a file"));
    fs::remove_file(place.top().join(".git/index")).expect("removed");
    place.git(&["reset", "-q"]);
    pipe(&place.top().join(".git/refs/heads/agentd/job_1"));
    assert!(soon(status(&made.own)).await.is_err(), "a pipe in place of the branch");
    let refused = soon(place.create_with("job_3", &WorktreeChoice::with_defaults())).await;
    assert!(refused.is_err(), "git reads the branch of each worktree");
    fs::remove_file(place.top().join(".git/refs/heads/agentd/job_1")).expect("removed");
    let other = soon(place.create("job_3")).await;
    pipe(&place.top().join(".git/refs/heads/pipe"));
    fs::write(place.git_folder("job_3").join("HEAD"), "ref: refs/heads/pipe\n").expect("written");
    assert!(soon(status(&other.own)).await.is_err(), "a pipe in place of the branch that HEAD names");
}

#[tokio::test]
async fn logs_of_references_are_not_written_through_links() {
    let Some(place) = Place::new() else { return };
    let profile = place.root().join("profile");
    fs::write(&profile, "echo hello\n").expect("written");
    let logs = place.top().join(".git/logs");
    fs::create_dir_all(logs.join("refs/heads/agentd")).expect("made");
    // Before the branch is made, before it is moved, before it is removed.
    link(&profile, &logs.join("refs/heads/agentd/job_1"));
    let made = place.create("job_1").await;
    write(&made.cwd.join("a.txt"), "ours\n");
    link(&profile, &logs.join("refs/heads/agentd/job_1"));
    link(&profile, &place.git_folder("job_1").join("logs"));
    let finished = finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect("finished");
    assert_eq!(finished.git.files_changed, 1);
    // The user's own branch has a log that git continues.
    let log = fs::read_to_string(logs.join("HEAD")).expect("read");
    link(&profile, &logs.join("refs/heads/trunk"));
    let refused = merge(&made.own, MergeHow::FastForward, None).await.expect_err("refused");
    assert!(refused.to_string().contains("logs/refs/heads/trunk"), "{refused}");
    fs::remove_file(logs.join("refs/heads/trunk")).expect("removed");
    let index = place.top().join(".git/index");
    let real = fs::read(&index).expect("read");
    link(&place.root().join("missing"), &index);
    assert!(merge(&made.own, MergeHow::FastForward, None).await.is_err());
    fs::remove_file(&index).expect("removed");
    fs::write(&index, real).expect("written");
    merge(&made.own, MergeHow::FastForward, None).await.expect("merged");
    assert!(fs::read_to_string(logs.join("HEAD")).expect("read").len() > log.len(), "the user's log goes on");
    assert_eq!(fs::read_to_string(&profile).expect("read"), "echo hello\n");
    assert!(!place.root().join("missing").exists());
}

#[tokio::test]
async fn branch_is_not_written_through_link() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    write(&made.cwd.join("a.txt"), "ours\n");
    let (branches, outside) = (place.top().join(".git/refs/heads/agentd"), place.root().join("outside"));
    fs::rename(&branches, &outside).expect("moved");
    symlink(&outside, &branches).expect("linked");
    let before = fs::read_to_string(outside.join("job_1")).expect("read");
    let refused = finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect_err("refused");
    assert!(refused.why.contains("refs/heads/agentd"), "{refused}");
    assert_eq!(fs::read_to_string(outside.join("job_1")).expect("read"), before);
    assert!(made.cwd.join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_appear_in_new_git_folder_are_not_followed() {
    let Some(place) = Place::new() else { return };
    let profile = place.root().join("profile");
    fs::write(&profile, "echo hello\n").expect("written");
    // A command of another session watches the folder.
    let (folder, target) = (place.git_folder("job_1"), profile.clone());
    let watcher = std::thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !folder.exists() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        for name in ["agentd.json.new", "agentd.json"] {
            symlink(&target, folder.join(name)).expect("linked");
        }
    });
    let made = place.create("job_1").await;
    watcher.join().expect("the links were made");
    assert!(made.cwd.join("a.txt").exists());
    assert_eq!(place.create("job_1").await.own, made.own);
    assert_eq!(fs::read_to_string(&profile).expect("read"), "echo hello\n");
}

#[tokio::test]
async fn worktree_that_git_does_not_know_is_kept() {
    let Some(place) = Place::new() else { return };
    for name in ["job_1", "job_2", "job_3"] {
        let made = place.create(name).await;
        write(&made.cwd.join("work.txt"), "work\n");
        let folder = place.git_folder(name);
        match name {
            "job_1" => write(&folder.join("gitdir"), "/elsewhere/.git\n"),
            "job_2" => fs::rename(folder, place.root().join("moved")).expect("moved"),
            _ => fs::remove_file(folder.join("gitdir")).expect("removed"),
        }
        assert!(status(&made.own).await.is_err(), "{name}: its state is not known");
        assert!(diff(&made.own, 1 << 20).await.is_err(), "{name}");
        let never =
            WorktreeChoice { keep: types::worktree::KeepWorktree::Never, ..WorktreeChoice::with_defaults() };
        assert!(finish(&made.own, &never, "work").await.is_err(), "{name}");
        let refused = remove(&made.own, Force::Careful).await.expect_err("refused");
        assert!(refused.why.contains("does not know"), "{refused}");
        assert_eq!(fs::read_to_string(made.cwd.join("work.txt")).expect("kept"), "work\n");
        assert_eq!(remove(&made.own, Force::LoseChanges).await, Ok(Removal::Removed), "{name}");
        assert!(!made.own.path.exists());
        assert!(!place.git(&["branch", "--list", &made.own.branch]).is_empty(), "{name}: the branch stays");
    }
}

#[tokio::test]
async fn lock_of_tool_holds_nothing_and_waiting_can_be_cancelled() {
    let Some(place) = Place::new() else { return };
    let folder = fs::File::open(place.top().join(".git")).expect("open");
    folder.lock().expect("locked");
    soon(place.create("job_1")).await;
    // Another change of the repository is in progress.
    let locks = fs::read_dir(place.state()).expect("read").flatten().map(|entry| entry.path());
    let lock = locks.into_iter().find(|path| is_lock(path)).expect("a lock");
    let lock = fs::File::open(lock).expect("open");
    lock.lock().expect("locked");
    let (choice, cancel) = (WorktreeChoice::with_defaults(), CancellationToken::new());
    let (top, worktrees) = (place.top(), place.worktrees());
    let making = create(&top, &choice, "job_2", &worktrees, &cancel);
    let cancelling = async { cancel.cancel() };
    let (made, ()) = soon(futures_util::future::join(making, cancelling)).await;
    assert!(made.is_err(), "{made:?}");
    drop(lock);
    assert!(!place.worktrees().join("job_2").exists());
    assert_eq!(place.git(&["branch", "--list", "agentd/job_2"]), "");
}

#[tokio::test]
async fn cancel_ends_git_and_its_programs() {
    let Some(place) = Place::new() else { return };
    // The user's own filter is slow.
    place.write(".gitattributes", "a.txt filter=slow\n");
    place.commit_all("attributes");
    let started = place.root().join("started");
    let slow = format!("touch {}; sleep 600", started.display());
    let global = place.root().join("gitconfig");
    fs::write(&global, format!("[filter \"slow\"]\n\tsmudge = {slow:?}\n")).expect("written");
    let repository = place.top();
    let call = crate::git::GitCall::in_folder(&repository, Duration::from_secs(600));
    let cancel = CancellationToken::new();
    let call = call.env("GIT_CONFIG_GLOBAL", &global).cancel(&cancel);
    let tree = place.root().join("tree");
    let calling = call.args(["worktree", "add", "--detach", "--"]).args([&tree]).output();
    let waiting = async {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !started.exists() {
            assert!(Instant::now() < deadline, "the filter was not started");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (answer, ()) = soon(futures_util::future::join(calling, waiting)).await;
    assert!(answer.expect_err("stopped").0.contains("cancelled"));
}

#[tokio::test]
async fn long_diff_is_cut() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    // More than the answer that is read of any other call.
    write(&made.cwd.join("long.txt"), &"0123456789abcde\n".repeat(5 << 20));
    let shown = diff(&made.own, 1 << 20).await.expect("cut");
    assert!(shown.is_cut && shown.text.len() <= 1 << 20 && shown.text.ends_with('\n'));
    assert_eq!(shown.files, [("long.txt".to_owned(), 5 << 20, 0)]);
}

#[tokio::test]
async fn staged_and_split_indexes_are_used() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    write(&made.cwd.join("build/wanted.o"), "ignored, but added\n");
    git(&made.cwd, &["update-index", "--split-index"]);
    git(&made.cwd, &["add", "-f", "build/wanted.o"]);
    assert_eq!(status(&made.own).await.expect("read").uncommitted, 1);
    let finished = finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect("finished");
    assert_eq!((finished.git.files_changed, finished.uncommitted), (1, 0));
    assert_eq!(git(&made.cwd, &["status", "--porcelain"]), "");
}
