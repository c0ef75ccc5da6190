use super::*;

/// A repository whose hooks, attributes and configuration run a program wherever git allows that.
fn set_traps(place: &Place, folder: &Path) -> PathBuf {
    let pwned = place.root().join("pwned");
    let touch = format!("touch {}; cat", pwned.display());
    let hooks = folder.join(".git/hooks");
    for hook in [
        "post-checkout",
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "post-merge",
        "pre-merge-commit",
        "reference-transaction",
        "post-index-change",
        "post-rewrite",
    ] {
        write(&hooks.join(hook), &format!("#!/bin/sh\n{touch}\n"));
        fs::set_permissions(hooks.join(hook), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("set");
    }
    for (key, value) in [
        ("core.fsmonitor", touch.as_str()),
        ("core.hooksPath", hooks.to_str().expect("text")),
        ("core.pager", &touch),
        ("core.editor", &touch),
        ("core.sshCommand", &touch),
        ("core.alternateRefsCommand", &touch),
        ("diff.external", &touch),
        ("diff.trap.textconv", &touch),
        ("diff.trap.command", &touch),
        ("filter.trap.clean", &touch),
        ("filter.trap.smudge", &touch),
        ("filter.trap.process", &touch),
        ("filter.trap.required", "true"),
        ("merge.trap.driver", &touch),
        ("commit.gpgSign", "true"),
        ("gpg.program", &touch),
        ("merge.verifySignatures", "true"),
        ("log.showSignature", "true"),
    ] {
        git(folder, &["config", key, value]);
    }
    pwned
}

#[tokio::test]
async fn nothing_of_hostile_repository_runs_during_whole_life_of_worktree() {
    let Some(place) = Place::new() else { return };
    place.write(".gitattributes", "*.txt filter=trap diff=trap merge=trap\n");
    place.commit_all("attributes");
    let pwned = set_traps(&place, &place.top());
    let made = place.create("job_1").await;
    write(&made.cwd.join("a.txt"), "ours\n");
    let shown = diff(&made.own, 1 << 20).await.expect("compared");
    assert_eq!(shown.files, [("a.txt".to_owned(), 1, 1)]);
    assert_eq!(status(&made.own).await.expect("read").uncommitted, 1);
    let finished = finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect("finished");
    assert_eq!(finished.git.files_changed, 1);
    merge(&made.own, MergeHow::FastForward, None).await.expect("merged");
    assert_eq!(remove(&made.own, Force::LoseChanges).await, Ok(Removal::Removed));
    // Both sides change a file whose merge driver is a trap.
    let made = place.create("job_2").await;
    write(&made.cwd.join("a.txt"), "ours again\n");
    write(&place.top().join("a.txt"), "theirs\n");
    let quiet =
        ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "filter.trap.required=false"];
    let quiet = [&quiet[..], &["-c", "filter.trap.clean=", "-c", "filter.trap.process="]].concat();
    place.git(&[&quiet[..], &["commit", "-q", "--no-gpg-sign", "-am", "theirs"]].concat());
    let refused = merge(&made.own, MergeHow::Commit, Some("work")).await;
    assert!(matches!(refused, Err(MergeProblem::Conflicts(_))), "{refused:?}");
    assert!(!pwned.exists(), "something of the repository ran");
}

#[tokio::test]
async fn nothing_of_repository_that_tools_planted_in_worktree_runs() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    let inner = made.cwd.join("inner");
    fs::create_dir(&inner).expect("made");
    git(&inner, &["init", "-q"]);
    git(&inner, &["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "x"]);
    git(&made.cwd, &["add", "inner"]);
    git(&made.cwd, &["commit", "-q", "-m", "with a nested repository"]);
    write(&inner.join(".gitattributes"), "* filter=trap\n");
    write(&inner.join("x"), "x");
    let pwned = set_traps(&place, &inner);
    // A `.git` of the worktree that leads elsewhere is not used either.
    let other = place.root().join("other");
    git(&place.root(), &["init", "-q", "other"]);
    assert_eq!(set_traps(&place, &other), pwned);
    write(&made.cwd.join(".git"), &format!("gitdir: {}\n", other.join(".git").display()));
    write(&made.cwd.join("a.txt"), "ours\n");
    diff(&made.own, 1 << 20).await.expect("compared");
    status(&made.own).await.expect("read");
    let finished = finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect("finished");
    assert_eq!(
        (finished.git.files_changed, finished.uncommitted),
        (2, 0),
        "the commit of the model and the change"
    );
    merge(&made.own, MergeHow::FastForward, None).await.expect("merged");
    assert!(!pwned.exists(), "something of a planted repository ran");
}

#[tokio::test]
async fn missing_identity_has_fallback() {
    let Some(place) = Place::new() else { return };
    place.git(&["config", "--unset", "user.name"]);
    place.git(&["config", "--unset", "user.email"]);
    place.git(&["config", "user.useConfigOnly", "true"]);
    let made = place.create("job_1").await;
    write(&made.cwd.join("a.txt"), "ours\n");
    finish(&made.own, &WorktreeChoice::with_defaults(), "work").await.expect("finished");
    let author = place.git(&["log", "-1", "--format=%an <%ae>", "agentd/job_1"]);
    assert!(author.contains('<') && !author.contains("<>"), "{author}");
}
