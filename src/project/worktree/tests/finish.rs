use super::*;

use types::worktree::KeepWorktree;

#[tokio::test]
async fn worktree_without_change_is_removed_with_its_branch() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    write(&made.cwd.join("build/out.o"), "ignored");
    for call in ["first", "repeated after the removal"] {
        let finished = finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect(call);
        assert!(finished.is_removed && finished.git.commit.is_none(), "{call}: {finished:?}");
        place.assert_nothing_left();
    }
}

#[tokio::test]
async fn uncommitted_changes_are_committed_with_message_and_counted() {
    let Some(place) = Place::new() else { return };
    place.write("folder/old.txt", "x\n");
    place.write("linked/old.txt", "x\n");
    place.write("gone.txt", "1\n2\n");
    place.commit_all("more");
    let made = place.create("job_1").await;
    let path = &made.own.path;
    write(&path.join("a.txt"), "one\nmore\n");
    write(&path.join("new folder/ü\n.txt"), "x\n");
    fs::remove_file(path.join("gone.txt")).expect("removed");
    fs::remove_dir_all(path.join("folder")).expect("removed");
    write(&path.join("folder"), "now a file\n");
    fs::remove_dir_all(path.join("linked")).expect("removed");
    std::os::unix::fs::symlink("/nonexistent", path.join("linked")).expect("linked");
    write(&path.join("build/x.o"), "ignored");
    let finished =
        finish(&made.own, &WorktreeChoice::with_defaults(), "work of job_1").await.expect("finished");
    assert_eq!((finished.is_removed, finished.uncommitted), (false, 0));
    let tip = place.git(&["rev-parse", "agentd/job_1"]);
    assert_eq!(finished.git.commit.as_deref(), Some(tip.as_str()));
    assert_eq!((finished.git.files_changed, finished.git.insertions, finished.git.deletions), (7, 4, 4));
    assert_eq!(place.git(&["log", "-1", "--format=%s %an %ae", &tip]), "work of job_1 Ann ann@example.org");
    assert_eq!(git(path, &["status", "--porcelain"]), "");
    assert_eq!(place.git(&["status", "--porcelain"]), "", "the main folder did not change");
    let again = finish(&made.own, &WorktreeChoice::with_defaults(), "again").await.expect("finished");
    assert_eq!(again, finished);
    place.assert_no_lock_file();
}

#[tokio::test]
async fn keep_and_commit_decide_what_stays() {
    let Some(place) = Place::new() else { return };
    let defaults = WorktreeChoice::with_defaults();
    let always = WorktreeChoice { keep: KeepWorktree::Always, ..defaults.clone() };
    let never = WorktreeChoice { keep: KeepWorktree::Never, ..defaults.clone() };
    let not_committed = WorktreeChoice { keep: KeepWorktree::Never, commit: false, ..defaults.clone() };
    for (name, choice, is_edited, is_kept, has_branch) in [
        ("job_1", &always, false, true, true),
        ("job_2", &never, true, false, true),
        ("job_3", &not_committed, true, true, true),
        ("job_4", &not_committed, false, false, false),
    ] {
        let made = place.create(name).await;
        if is_edited {
            write(&made.cwd.join("a.txt"), "changed");
        }
        let finished = finish(&made.own, choice, "work").await.expect("finished");
        assert_eq!(made.own.path.exists(), is_kept, "{name}");
        assert_eq!(finished.is_removed, !is_kept, "{name}");
        assert_eq!(!place.git(&["branch", "--list", &made.own.branch]).is_empty(), has_branch, "{name}");
    }
}

#[tokio::test]
async fn work_that_a_commit_would_disturb_is_left_as_it_is() {
    let Some(place) = Place::new() else { return };
    let never = WorktreeChoice { keep: KeepWorktree::Never, ..WorktreeChoice::with_defaults() };
    // A conflict in progress.
    let made = place.create("job_1").await;
    place.write("a.txt", "theirs\n");
    place.commit_all("theirs");
    write(&made.cwd.join("a.txt"), "ours\n");
    git(&made.cwd, &["commit", "-q", "-am", "ours"]);
    let merge = Command::new("git").arg("-C").arg(&made.cwd).args(["merge", "trunk"]).output().expect("run");
    assert!(!merge.status.success(), "a conflict");
    let finished = finish(&made.own, &never, "work").await.expect("finished");
    assert_eq!((finished.is_removed, finished.uncommitted), (false, 1));
    assert_eq!(remove(&made.own, Force::Careful).await, Ok(Removal::Kept(1)));
    // Commits that no branch has.
    let made = place.create("job_2").await;
    git(&made.cwd, &["checkout", "-q", "--detach"]);
    git(&made.cwd, &["commit", "-q", "--allow-empty", "-m", "lost otherwise"]);
    assert!(!finish(&made.own, &never, "work").await.expect("finished").is_removed);
    // A new repository inside.
    let made = place.create("job_3").await;
    fs::create_dir(made.cwd.join("inner")).expect("made");
    git(&made.cwd.join("inner"), &["init", "-q"]);
    write(&made.cwd.join("inner/x"), "x");
    let finished = finish(&made.own, &never, "work").await.expect("finished");
    assert_eq!((finished.is_removed, finished.uncommitted), (false, 1));
    // By force it goes, with folders that nothing may write.
    let closed = made.cwd.join("build/closed");
    write(&closed.join("x"), "x");
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o500)).expect("set");
    assert_eq!(remove(&made.own, Force::LoseChanges).await, Ok(Removal::Removed));
    assert!(!made.own.path.exists());
}

#[tokio::test]
async fn lock_file_of_killed_git_does_not_prevent_the_commit() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    write(&made.cwd.join("a.txt"), "changed\n");
    write(&place.top().join(".git/worktrees/job_1/index.lock"), "");
    let finished = finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect("finished");
    assert_eq!(finished.git.files_changed, 1);
    place.assert_no_lock_file();
}

#[tokio::test]
async fn diff_shows_committed_and_uncommitted_changes_without_writing_the_index() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    write(&made.cwd.join("a.txt"), "changed\n");
    git(&made.cwd, &["commit", "-q", "-am", "one"]);
    write(&made.cwd.join("new.txt"), "new\n");
    let before = git(&made.cwd, &["status", "--porcelain"]);
    let shown = diff(&made.own, 1 << 20).await.expect("compared");
    assert!(shown.text.contains("+changed") && shown.text.contains("+new"), "{}", shown.text);
    assert_eq!(shown.files, [("a.txt".to_owned(), 1, 1), ("new.txt".to_owned(), 1, 0)]);
    assert_eq!(git(&made.cwd, &["status", "--porcelain"]), before);
    let status = status(&made.own).await.expect("read");
    assert_eq!((status.uncommitted, status.commits), (1, 1));
    let cut = diff(&made.own, 100).await.expect("compared");
    assert!(cut.is_cut && cut.text.len() <= 100 && cut.text.ends_with('\n'), "{cut:?}");
    finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect("finished");
    assert_eq!(remove(&made.own, Force::Careful).await, Ok(Removal::Removed));
    assert_eq!(diff(&made.own, 1 << 20).await.expect("by the branch").files, shown.files);
}
