use super::*;

/// A worktree with a changed `a.txt`, and a commit of the main folder that changes another file.
async fn diverged(place: &Place) -> NewWorktree {
    let made = place.create("job_1").await;
    write(&made.cwd.join("a.txt"), "ours\n");
    place.write("sub/b.txt", "theirs\n");
    place.commit_all("theirs");
    made
}

#[tokio::test]
async fn fast_forward_moves_branch_and_folder() {
    let Some(place) = Place::new() else { return };
    let made = place.create("job_1").await;
    write(&made.cwd.join("a.txt"), "ours\n");
    place.write("untracked.txt", "of the user");
    let unmerged = merge(&made.own, MergeHow::FastForward, None).await.expect("nothing to merge");
    assert_eq!((unmerged.is_changed, unmerged.uncommitted), (false, 1));
    let merged = merge(&made.own, MergeHow::FastForward, Some("work")).await.expect("merged");
    assert_eq!((merged.into.as_str(), merged.is_changed, merged.uncommitted), ("trunk", true, 0));
    assert_eq!(place.git(&["rev-parse", "trunk"]), merged.commit);
    assert_eq!(fs::read_to_string(place.top().join("a.txt")).expect("read"), "ours\n");
    assert_eq!(place.git(&["status", "--porcelain"]), "?? untracked.txt");
    let again = merge(&made.own, MergeHow::Commit, Some("work")).await.expect("nothing to do");
    assert!(!again.is_changed);
    place.assert_no_lock_file();
}

#[tokio::test]
async fn merge_commit_needs_request_if_target_has_other_commits() {
    let Some(place) = Place::new() else { return };
    let made = diverged(&place).await;
    let refused = merge(&made.own, MergeHow::FastForward, Some("work")).await;
    assert_eq!(refused, Err(MergeProblem::Diverged));
    let merged = merge(&made.own, MergeHow::Commit, Some("work")).await.expect("merged");
    assert_eq!(place.git(&["rev-list", "--count", "--merges", "trunk"]), "1");
    assert_eq!(place.git(&["rev-parse", "HEAD"]), merged.commit);
    assert_eq!(place.git(&["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(place.top().join("a.txt")).expect("read"), "ours\n");
}

#[tokio::test]
async fn conflicting_merge_changes_nothing() {
    let Some(place) = Place::new() else { return };
    let made = diverged(&place).await;
    place.write("a.txt", "theirs\n");
    place.commit_all("in the way");
    let before = place.git(&["rev-parse", "HEAD"]);
    let refused = merge(&made.own, MergeHow::Commit, Some("work")).await;
    assert_eq!(refused, Err(MergeProblem::Conflicts(vec!["a.txt".into()])));
    assert_eq!(
        (place.git(&["rev-parse", "HEAD"]), place.git(&["status", "--porcelain"])),
        (before, String::new())
    );
    place.assert_no_lock_file();
}

#[tokio::test]
async fn changes_of_target_folder_in_the_way_refuse_the_merge() {
    let Some(place) = Place::new() else { return };
    let made = diverged(&place).await;
    write(&made.cwd.join("new.txt"), "ours\n");
    place.write("a.txt", "not committed\n");
    let refused = merge(&made.own, MergeHow::Commit, Some("work")).await.expect_err("refused");
    assert!(matches!(&refused, MergeProblem::TargetChanged(text) if text.contains("a.txt")), "{refused:?}");
    place.git(&["checkout", "-q", "a.txt"]);
    place.write("new.txt", "of the user\n");
    let refused = merge(&made.own, MergeHow::Commit, Some("work")).await.expect_err("refused");
    assert!(matches!(&refused, MergeProblem::TargetChanged(text) if text.contains("new.txt")), "{refused:?}");
    assert_eq!(fs::read_to_string(place.top().join("new.txt")).expect("read"), "of the user\n");
    place.git(&["checkout", "-q", "--detach"]);
    assert_eq!(merge(&made.own, MergeHow::Commit, None).await, Err(MergeProblem::NoTarget));
    place.assert_no_lock_file();
}

#[tokio::test]
async fn bare_repository_is_merged_without_a_folder() {
    let Some(place) = Place::new() else { return };
    git(&place.root(), &["clone", "-q", "--bare", "repository", "bare.git"]);
    let bare = place.root().join("bare.git");
    let choice = WorktreeChoice { base: Some("trunk".into()), ..WorktreeChoice::with_defaults() };
    let made =
        create(&bare, &choice, "job_1", &place.worktrees(), &CancellationToken::new()).await.expect("made");
    write(&made.cwd.join("a.txt"), "ours\n");
    let merged = merge(&made.own, MergeHow::FastForward, Some("work")).await.expect("merged");
    assert_eq!(git(&bare, &["show", "trunk:a.txt"]), "ours");
    assert_eq!(git(&bare, &["rev-parse", "trunk"]), merged.commit);
}
