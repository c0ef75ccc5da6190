use super::*;

#[tokio::test]
async fn worktree_starts_at_head_on_own_branch_without_uncommitted_changes() {
    let Some(place) = Place::new() else { return };
    place.write("a.txt", "changed\n");
    place.write("new.txt", "new\n");
    let (choice, cancel) = (WorktreeChoice::with_defaults(), CancellationToken::new());
    let (cwd, worktrees) = (place.top().join("sub"), place.worktrees());
    let made = create(&cwd, &choice, "job_1", &worktrees, &cancel).await.expect("made");
    assert_eq!(made.own.path, place.worktrees().join("job_1"));
    assert_eq!(made.cwd, made.own.path.join("sub"));
    assert_eq!((made.own.branch.as_str(), made.own.is_new_branch), ("agentd/job_1", true));
    assert_eq!(made.own.base, place.git(&["rev-parse", "HEAD"]));
    assert_eq!(made.uncommitted_in_base, 2);
    assert_eq!(fs::read_to_string(made.own.path.join("a.txt")).expect("read"), "one\n");
    assert_eq!(git(&made.own.path, &["symbolic-ref", "HEAD"]), "refs/heads/agentd/job_1");
    assert!(
        place.git(&["worktree", "list", "--porcelain"]).contains("locked agentd"),
        "a user sees the lock"
    );
    let again = place.create("job_1").await;
    assert_eq!(again.own, made.own, "a complete worktree is returned as it is");
    place.assert_no_lock_file();
}

#[tokio::test]
async fn eight_worktrees_of_one_repository_start_together() {
    let Some(place) = Place::new() else { return };
    let names: Vec<String> = (0..8).map(|n| format!("job_{n}")).collect();
    let made = futures_util::future::join_all(names.iter().map(|name| place.create(name))).await;
    for made in &made {
        assert!(made.cwd.join("a.txt").exists(), "{made:?}");
    }
    assert_eq!(place.git(&["branch", "--list", "agentd/*"]).lines().count(), 8);
    place.assert_no_lock_file();
}

#[tokio::test]
async fn ignored_files_are_copied_if_named() {
    let Some(place) = Place::new() else { return };
    for path in ["key.secret", "sub/deep/key.secret", "build/out/x.o", "other.secret"] {
        place.write(path, path);
    }
    let include = ["key.secret", "sub/**", "build", "none*"].map(str::to_owned).to_vec();
    let choice = WorktreeChoice { include, ..WorktreeChoice::with_defaults() };
    let made = place.create_with("job_1", &choice).await.expect("made");
    for path in ["key.secret", "sub/deep/key.secret", "build/out/x.o"] {
        assert_eq!(fs::read_to_string(made.own.path.join(path)).expect(path), path);
    }
    assert!(!made.own.path.join("other.secret").exists());
    assert_eq!(status(&made.own).await.expect("read").uncommitted, 0, "ignored files are no change");
}

#[tokio::test]
async fn wrong_choices_are_refused_with_their_field() {
    let Some(place) = Place::new() else { return };
    place.git(&["branch", "free"]);
    place.git(&["branch", "group/one"]);
    place.write("later.txt", "");
    place.commit_all("second");
    let with = |base: Option<&str>, branch: Option<&str>, include: &[&str]| WorktreeChoice {
        base: base.map(str::to_owned),
        branch: branch.map(str::to_owned),
        include: include.iter().map(|path| (*path).to_owned()).collect(),
        ..WorktreeChoice::with_defaults()
    };
    for (choice, field) in [
        (with(Some("nowhere"), None, &[]), "worktree.base"),
        (with(Some("--help"), None, &[]), "worktree.base"),
        (with(Some("HEAD:a.txt"), None, &[]), "worktree.base"),
        (with(None, Some("trunk"), &[]), "worktree.branch"),
        (with(None, Some("-x"), &[]), "worktree.branch"),
        (with(None, Some("a b"), &[]), "worktree.branch"),
        (with(None, Some("@{-1}"), &[]), "worktree.branch"),
        (with(None, Some("group"), &[]), "worktree.branch"),
        (with(None, Some("free/below"), &[]), "worktree.branch"),
        (with(Some("HEAD"), Some("free"), &[]), "worktree.branch"),
        (with(None, None, &["../x"]), "worktree.include"),
        (with(None, None, &["/etc/passwd"]), "worktree.include"),
        (with(None, None, &["sub/.git/config"]), "worktree.include"),
    ] {
        let problem = check(&place.top(), &choice).await.expect_err("refused");
        assert_eq!(problem.field, field, "{choice:?}: {problem}");
        assert!(place.create_with("job_1", &choice).await.is_err());
    }
    let outside = check(&place.root(), &WorktreeChoice::with_defaults()).await.expect_err("refused");
    assert_eq!(outside.field, "worktree");
    place.write("untracked/x", "");
    let untracked = check(&place.top().join("untracked"), &WorktreeChoice::with_defaults()).await;
    assert_eq!(untracked.expect_err("refused").field, "worktree.base");
    place.assert_nothing_left();
}

#[tokio::test]
async fn repository_without_commit_and_bare_one_without_base_are_refused() {
    let Some(place) = Place::new() else { return };
    let (empty, bare) = (place.root().join("empty"), place.root().join("bare.git"));
    git(&place.root(), &["init", "-q", "empty"]);
    git(&place.root(), &["clone", "-q", "--bare", "repository", "bare.git"]);
    let choice = WorktreeChoice::with_defaults();
    assert_eq!(check(&empty, &choice).await.expect_err("refused").field, "worktree");
    assert_eq!(check(&bare, &choice).await.expect_err("refused").field, "worktree.base");
    let choice = WorktreeChoice { base: Some("trunk".into()), ..choice };
    let made =
        create(&bare, &choice, "job_1", &place.worktrees(), &CancellationToken::new()).await.expect("made");
    assert_eq!((made.own.repository, made.cwd.join("a.txt").exists()), (bare, true));
}

#[tokio::test]
async fn repository_with_reftable_is_refused() {
    let Some(place) = Place::new() else { return };
    let top = place.root().join("reftable");
    let made = Command::new("git").args(["init", "-q", "--ref-format=reftable"]).arg(&top).output();
    if !made.expect("started").status.success() {
        base::skip_test!("this git has no reftable");
        return;
    }
    let refused = check(&top, &WorktreeChoice::with_defaults()).await.expect_err("refused");
    assert!(refused.why.contains("reftable"), "{refused}");
}

#[tokio::test]
async fn odd_and_existing_branch_names_are_used_as_they_are() {
    let Some(place) = Place::new() else { return };
    place.git(&["branch", "old=ü'\"$x"]);
    for (name, branch, is_new) in
        [("job_1", "fix/ä \u{1f600}&;(x)".replace(' ', "_"), true), ("job_2", "old=ü'\"$x".into(), false)]
    {
        let choice = WorktreeChoice { branch: Some(branch.clone()), ..WorktreeChoice::with_defaults() };
        let made = place.create_with(name, &choice).await.expect("made");
        assert_eq!((&made.own.branch, made.own.is_new_branch), (&branch, is_new));
        assert_eq!(git(&made.own.path, &["symbolic-ref", "HEAD"]), format!("refs/heads/{branch}"));
        let removed = finish(&made.own, &choice, "work").await.expect("finished").is_removed;
        assert!(removed);
        assert_eq!(place.git(&["branch", "--list", "--", &branch]).is_empty(), is_new, "{branch}");
    }
}

#[tokio::test]
async fn unfinished_worktree_is_made_again_after_crash_at_each_step() {
    let Some(place) = Place::new() else { return };
    let whole = place.create("job_1").await;
    let folder = place.git_folder("job_1");
    let unfinish = || {
        let note = fs::read_to_string(place.note("job_1")).expect("read");
        write(&place.note("job_1"), &note.replace("\"is_complete\":true", "\"is_complete\":false"));
    };
    let undo: [(&str, &dyn Fn()); 5] = [
        ("the note is not complete", &unfinish),
        ("git was not called yet", &|| {
            unfinish();
            fs::remove_dir_all(&whole.own.path).expect("removed");
            fs::remove_dir_all(&folder).expect("removed");
        }),
        ("git was killed in the checkout", &|| {
            unfinish();
            write(&folder.join("index.lock"), "");
            write(&place.top().join(".git/refs/heads/agentd/job_1.lock"), "");
            fs::remove_file(whole.own.path.join("a.txt")).expect("removed");
        }),
        ("git was killed before it noted the path", &|| {
            unfinish();
            fs::remove_dir_all(&whole.own.path).expect("removed");
            fs::remove_file(folder.join("gitdir")).expect("removed");
        }),
        ("there is only the note", &|| {
            unfinish();
            fs::remove_dir_all(&whole.own.path).expect("removed");
            fs::remove_dir_all(&folder).expect("removed");
            place.git(&["update-ref", "-d", "refs/heads/agentd/job_1"]);
        }),
    ];
    for (step, undo) in undo {
        undo();
        let again = place.create("job_1").await;
        assert_eq!(again.own, whole.own, "{step}");
        assert!(again.cwd.join("a.txt").exists(), "{step}");
        assert_eq!(git(&again.own.path, &["status", "--porcelain"]), "", "{step}");
        place.assert_no_lock_file();
        undo();
        discard(&place.top(), &whole.own.path).await.expect("discarded");
        place.assert_nothing_left();
        assert_eq!(place.create("job_1").await.own, whole.own, "{step}");
    }
}

#[tokio::test]
async fn discard_leaves_complete_worktree_alone() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    write(&made.cwd.join("work.txt"), "work");
    discard(&place.top(), &made.own.path).await.expect("nothing to do");
    assert!(made.cwd.join("work.txt").exists());
}

#[tokio::test]
async fn repository_with_submodule_gets_worktree_that_can_be_removed() {
    let Some(place) = Place::new() else { return };
    let other = place.root().join("other");
    git(&place.root(), &["clone", "-q", "repository", "other"]);
    let url = other.display().to_string();
    place.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "module"]);
    place.commit_all("module");
    let made = place.create("job_1").await;
    git(&made.own.path, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
    assert!(made.own.path.join("module/a.txt").exists());
    write(&made.own.path.join("a.txt"), "changed\n");
    let choice = WorktreeChoice::with_defaults();
    let finished = finish(&made.own, &choice, "work").await.expect("finished");
    assert_eq!((finished.git.files_changed, finished.is_removed), (1, false));
    assert_eq!(remove(&made.own, Force::Careful).await, Ok(Removal::Removed));
    assert!(!made.own.path.exists());
    assert!(!place.git(&["branch", "--list", "agentd/job_1"]).is_empty(), "the branch has a commit");
}
