//! Sessions in git worktrees that the daemon makes.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::{Client, Session};
use crate::support::daemon::{CrashMode, TestDaemon, TestDaemonBuilder};
use crate::support::model_server::Step;

/// Runs git as a user would, and returns its output.
pub(super) fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(args).output().expect("started");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// Makes the workspace a repository with one commit.
fn make_repository(daemon: &TestDaemon) {
    let top = daemon.workspace();
    git(&top, &["init", "-q", "-b", "trunk"]);
    git(&top, &["config", "user.name", "Ann"]);
    git(&top, &["config", "user.email", "ann@example.org"]);
    daemon.write("a.txt", "one\n");
    daemon.write("sub/b.txt", "two\n");
    git(&top, &["add", "-A"]);
    git(&top, &["commit", "-q", "-m", "first"]);
}

pub(super) async fn start(builder: TestDaemonBuilder) -> Option<TestDaemon> {
    if Command::new("git").arg("--version").output().is_err() {
        base::skip_test!("there is no git");
        return None;
    }
    let daemon = builder.start().await;
    make_repository(&daemon);
    Some(daemon)
}

pub(super) fn worktrees(daemon: &TestDaemon) -> PathBuf {
    daemon.path("data").canonicalize().expect("a folder").join("agentd/worktrees")
}

pub(super) fn path_of(daemon: &TestDaemon, session: &Session) -> PathBuf {
    worktrees(daemon).join(&session.id)
}

pub(super) fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("Write", json!({"file_path": path, "content": content}))
}

/// Lets the model make these calls in one turn, and returns the results.
pub(super) async fn run_calls(
    daemon: &TestDaemon,
    session: &Session,
    calls: Vec<(&'static str, Value)>,
) -> Vec<Value> {
    let mut seen = session.follow_after(session.view().await["last_seq"].as_u64().expect("a number")).await;
    daemon.models.push(Step::calls(calls));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    seen.events_of("tool.completed")
}

pub(super) async fn create_apart(daemon: &TestDaemon, client: &Client, more: Value) -> Session {
    let mut params = json!({"worktree": true, "mode": "accept_edits"});
    params.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    client.create_with(daemon, params).await
}

pub(super) async fn list(client: &Client) -> Vec<Value> {
    let reply = client.call("worktree.list", json!({})).await;
    reply["worktrees"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn session_works_in_its_worktree_and_its_branch_is_merged() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let session = create_apart(&daemon, &alice, json!({})).await;
    let path = path_of(&daemon, &session);
    let view = session.view().await;
    assert_eq!(view["cwd"], json!(path));
    assert_eq!(view["worktree"]["branch"], json!(format!("agentd/{}", session.id)));
    assert_eq!(view["worktree"]["base_folder"], json!(daemon.workspace()));

    let done = run_calls(&daemon, &session, vec![write("new.txt", "new\n")]).await;
    assert_eq!(done[0]["status"], "completed", "{done:?}");
    assert_eq!(std::fs::read_to_string(path.join("new.txt")).expect("written"), "new\n");
    assert!(!daemon.workspace().join("new.txt").exists());
    let by_tools = session.call("diff", json!({})).await;
    assert_eq!(by_tools["files"][0]["path"], json!(path.join("new.txt")));
    let diff = alice.call("worktree.diff", json!({"session_id": session.id})).await;
    assert_eq!(diff["files"], json!([{"path": "new.txt", "insertions": 1, "deletions": 0}]));
    assert!(diff["diff"].as_str().expect("a text").contains("+new"), "{diff}");
    let listed = list(&alice).await;
    assert_eq!(
        (listed.len(), &listed[0]["uncommitted"], &listed[0]["in_use"]),
        (1, &json!(true), &json!(true))
    );

    let merge = json!({"session_id": session.id, "idempotency_key": "m1"});
    let merged = alice.call("worktree.merge", merge.clone()).await;
    assert_eq!((&merged["into"], &merged["merged"]), (&json!("trunk"), &json!(true)));
    assert_eq!(daemon.read("new.txt"), "new\n");
    assert_eq!(alice.call("worktree.merge", merge).await, merged, "by its key");
    let in_use = alice.refused("worktree.remove", json!({"session_id": session.id, "force": true})).await;
    assert_eq!(in_use.kind, "busy", "{in_use:?}");
    session.call("kill", json!({})).await;
    let remove = json!({"session_id": session.id, "idempotency_key": "r1"});
    let removed = alice.call("worktree.remove", remove.clone()).await;
    assert_eq!(alice.call("worktree.remove", remove).await, removed, "by its key");
    assert!(!path.exists() && list(&alice).await.is_empty());
    assert!(!git(&daemon.workspace(), &["branch", "--list", "agentd/*"]).is_empty(), "it has a commit");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn conflict_is_reported_and_changes_nothing() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let session = create_apart(&daemon, &alice, json!({})).await;
    run_calls(&daemon, &session, vec![("Read", json!({"file_path": "a.txt"}))]).await;
    run_calls(&daemon, &session, vec![write("a.txt", "ours\n")]).await;
    daemon.write("a.txt", "theirs\n");
    git(&daemon.workspace(), &["commit", "-qam", "theirs"]);
    let diverged = alice.refused("worktree.merge", json!({"session_id": session.id})).await;
    assert_eq!((diverged.code, &diverged.data["reason"]), (-32010, &json!("diverged")), "{diverged:?}");
    let refused = alice.refused("worktree.merge", json!({"session_id": session.id, "how": "commit"})).await;
    assert_eq!((&refused.data["reason"], &refused.data["files"]), (&json!("conflicts"), &json!(["a.txt"])));
    assert_eq!(git(&daemon.workspace(), &["status", "--porcelain"]), "");
    assert_eq!(daemon.read("a.txt"), "theirs\n");
}

#[tokio::test]
async fn wrong_choice_is_refused_with_path_of_field() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let refused = async |worktree: Value, cwd: &Path| {
        let refused = alice.refused("session.create", json!({"cwd": cwd, "worktree": worktree})).await;
        assert_eq!(refused.code, -32602, "{refused:?}");
        refused.data["path"].as_str().unwrap_or_default().to_owned()
    };
    let work = daemon.workspace();
    assert_eq!(refused(json!({"base": "nowhere"}), &work).await, "worktree.base");
    assert_eq!(refused(json!({"branch": "trunk"}), &work).await, "worktree.branch");
    assert_eq!(refused(json!({"include": ["../x"]}), &work).await, "worktree.include");
    assert_eq!(refused(json!(true), daemon.path("home").as_path()).await, "worktree");
    let unknown = alice.refused("session.create", json!({"cwd": work, "worktree": {"bse": "x"}})).await;
    assert_eq!(unknown.code, -32602);
    assert!(list(&alice).await.is_empty());
    assert_eq!(git(&work, &["worktree", "list"]).lines().count(), 1);
    let sessions = alice.call("session.list", json!({})).await;
    assert_eq!(sessions["sessions"], json!([]));
}

#[tokio::test]
async fn repeated_creation_returns_same_session_and_worktree() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let params = json!({"cwd": daemon.workspace(), "worktree": true, "idempotency_key": "k"});
    let first = alice.call("session.create", params.clone()).await;
    let again = alice.call("session.create", params).await;
    assert_eq!(first["session"]["session_id"], again["session"]["session_id"]);
    let id = &first["session"]["session_id"];
    let params = json!({"cwd": daemon.workspace(), "worktree": true, "session_id": id});
    assert_eq!(&alice.call("session.create", params).await["session"]["session_id"], id);
    let other = json!({"cwd": daemon.workspace(), "worktree": {"keep": "always"}, "session_id": id});
    assert_eq!(alice.refused("session.create", other).await.code, -32010);
    assert_eq!(list(&alice).await.len(), 1);
}

#[tokio::test]
async fn eight_sessions_get_worktrees_at_once() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let sessions =
        futures_util::future::join_all((0..8).map(|_| create_apart(&daemon, &alice, json!({})))).await;
    for session in &sessions {
        assert!(path_of(&daemon, session).join("a.txt").exists());
    }
    assert_eq!(list(&alice).await.len(), 8);
}

#[tokio::test]
async fn worktree_is_closed_for_other_sessions() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let session = create_apart(&daemon, &alice, json!({})).await;
    let path = path_of(&daemon, &session);
    let file = path.join("a.txt");
    let other = create_apart(&daemon, &alice, json!({})).await;
    let calls = vec![
        ("Read", json!({"file_path": file})),
        ("Write", json!({"file_path": path.join("planted"), "content": "x"})),
        ("Read", json!({"file_path": "a.txt"})),
    ];
    let mut seen = other.follow().await;
    daemon.models.push(Step::calls(calls));
    daemon.models.push(Step::text("Done."));
    other.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(asked["tool"], "Read", "only a person can open a file of another session's worktree: {asked}");
    other.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    let done = seen.events_of("tool.completed");
    let status: Vec<&Value> = done.iter().map(|event| &event["status"]).collect();
    assert_eq!(status.iter().filter(|status| **status == "completed").count(), 1, "{status:?}");
    assert!(!path.join("planted").exists());
    let refused = alice.refused("session.create", json!({"cwd": path})).await;
    assert_eq!((refused.code, &refused.data["path"]), (-32602, &json!("cwd")));
    let params = json!({"cwd": daemon.workspace(), "additional_dirs": [path]});
    assert_eq!(alice.refused("session.create", params).await.code, -32602);
}

#[tokio::test]
async fn commands_commit_in_sandbox_and_leave_configuration_alone() {
    for level in ["landlock", "bubblewrap"] {
        let probe = TestDaemon::start().await;
        let works = probe.client("eve").await.sandbox().await[level].clone();
        if works != "works" {
            base::skip_test!("{level} does not work here: {works}");
            continue;
        }
        let config = format!(
            "[permissions]\nallow = [\"Bash\"]\n[sandbox]\nlevel = \"{level}\"\noffer_unsandboxed_retry = false"
        );
        let Some(daemon) = start(TestDaemon::builder().config(&config)).await else { return };
        let alice = daemon.client("alice").await;
        let other = create_apart(&daemon, &alice, json!({})).await;
        // In a folder of the worktree: its top belongs to the session as well.
        let cwd = daemon.workspace().join("sub");
        let params = json!({"cwd": cwd, "worktree": true, "mode": "accept_edits"});
        let reply = alice.call("session.create", params).await;
        let id = reply["session"]["session_id"].as_str().expect("an id").to_owned();
        let session = Session { client: alice.clone(), id };
        let path = path_of(&daemon, &session);
        assert_eq!(reply["session"]["cwd"], json!(path.join("sub")));
        let before = std::fs::read_to_string(daemon.workspace().join(".git/config")).expect("read");
        let commit = "echo more >> b.txt && git commit -qam 'by the model' && git log -1 --format=%s && pwd";
        let plant = "c=$(git rev-parse --git-common-dir); echo x >> $c/config; echo x > $c/hooks/pre-commit; \
                     echo x > $(git rev-parse --git-dir)/commondir; true";
        let look = format!("cat {}", path_of(&daemon, &other).join("a.txt").display());
        let done = run_calls(&daemon, &session, vec![bash(commit), bash(plant), bash(&look)]).await;
        let output = |n: usize| done[n]["output"].as_str().unwrap_or_default().to_owned();
        assert!(output(0).starts_with("by the model\n"), "{level}: {done:?}");
        assert!(!output(2).starts_with("one\n"), "{level}: {done:?}");
        assert_eq!(std::fs::read_to_string(daemon.workspace().join(".git/config")).expect("read"), before);
        assert!(!daemon.workspace().join(".git/hooks/pre-commit").exists(), "{level}");
        let tip = git(&daemon.workspace(), &["log", "-1", "--format=%s", &format!("agentd/{}", session.id)]);
        assert_eq!(tip, "by the model", "{level}");
    }
}

#[tokio::test]
async fn rules_of_base_folder_hold_in_worktree() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    // Not committed, so the worktree itself does not have it.
    daemon.write(".agentd/config.toml", "[permissions]\ndeny = [\"Edit(sub/**)\"]\n");
    let workspace = daemon.workspace();
    let rule = format!("Edit({}/by-path.txt)", workspace.display());
    let by_user = json!({"kind": "deny", "rule": rule, "scope": "user"});
    alice.call("permission.add_rule", by_user).await;
    let by_folder =
        json!({"kind": "deny", "rule": "Edit(by-folder.txt)", "scope": "project", "workspace": workspace});
    alice.call("permission.add_rule", by_folder).await;
    let session = create_apart(&daemon, &alice, json!({})).await;
    let path = path_of(&daemon, &session);
    let mut seen = session.follow().await;
    let names = ["sub/x.txt", "by-path.txt", "by-folder.txt", "free.txt"];
    daemon.models.push(Step::calls(names.map(|name| write(name, "x"))));
    daemon.models.set_fallback(|_| Step::text("Done."));
    session.submit("go").await;
    seen.wait_for("turn.completed").await;
    for name in names {
        assert_eq!(path.join(name).exists(), name == "free.txt", "{name}");
    }
    // The same files of the base folder, which the session reaches by their paths. A call that asks would never end.
    let of_base = ["sub/x.txt", "by-path.txt", "by-folder.txt"].map(|name| workspace.join(name));
    let calls = of_base.iter().map(|file| write(&file.display().to_string(), "x"));
    run_calls(&daemon, &session, calls.collect()).await;
    for file in of_base {
        assert!(!file.exists(), "{}", file.display());
    }
}

#[tokio::test]
async fn trust_of_base_folder_counts_only_for_equal_files() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    daemon.write(".mcp.json", "{\"mcpServers\": {}}");
    daemon.write(".agentd/commands/hello.md", "Say hello.");
    git(&daemon.workspace(), &["add", "-A"]);
    git(&daemon.workspace(), &["commit", "-qm", "extensions"]);
    daemon.trust().await;
    let session = create_apart(&daemon, &alice, json!({})).await;
    let path = path_of(&daemon, &session);
    let status = async || alice.call("workspace.status", json!({"cwd": path})).await;
    let found = status().await;
    assert_eq!((&found["trusted"], &found["project_root"]), (&json!(true), &json!(path)), "{found}");
    std::fs::write(path.join(".agentd/commands/hello.md"), "Say goodbye.").expect("written");
    assert_eq!(status().await["trusted"], false);
    let base = alice.call("workspace.status", json!({"cwd": daemon.workspace()})).await;
    assert_eq!(base["trusted"], true);
}

#[tokio::test]
async fn ended_session_keeps_changed_worktree_and_removes_unchanged_one() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let unchanged = create_apart(&daemon, &alice, json!({})).await;
    let changed = create_apart(&daemon, &alice, json!({})).await;
    let untouched = create_apart(&daemon, &alice, json!({"worktree": {"commit": false}})).await;
    run_calls(&daemon, &changed, vec![write("new.txt", "new\n")]).await;
    run_calls(&daemon, &untouched, vec![write("new.txt", "new\n")]).await;
    unchanged.call("kill", json!({})).await;
    changed.call("delete", json!({})).await;
    untouched.call("kill", json!({})).await;
    assert!(!path_of(&daemon, &unchanged).exists());
    let branches = git(&daemon.workspace(), &["branch", "--list", "agentd/*"]);
    assert!(!branches.contains(&unchanged.id) && branches.contains(&changed.id), "{branches}");
    let subject = git(&daemon.workspace(), &["log", "-1", "--format=%s", &format!("agentd/{}", changed.id)]);
    assert_eq!(subject, format!("agentd: work of session {}", changed.id));
    let kept = alice.refused("worktree.remove", json!({"session_id": untouched.id})).await;
    assert_eq!((kept.code, &kept.data["uncommitted"]), (-32010, &json!(1)), "{kept:?}");
    alice.call("worktree.remove", json!({"session_id": untouched.id, "force": true})).await;
    alice.call("worktree.remove", json!({"session_id": changed.id})).await;
    assert!(list(&alice).await.is_empty());
    assert_eq!(std::fs::read_dir(worktrees(&daemon)).expect("read").count(), 0);
    let unknown = alice.refused("worktree.merge", json!({"session_id": unchanged.id})).await;
    assert!(unknown.code == -32603 || unknown.code == -32002, "{unknown:?}");
}

/// No lock file and no unfinished worktree is left in the repository.
fn assert_no_lock_file(daemon: &TestDaemon) {
    let mut folders = vec![daemon.workspace().join(".git")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("read").flatten() {
            let path = entry.path();
            assert!(path.extension().is_none_or(|it| it != "lock"), "{}", path.display());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
}

#[tokio::test]
async fn crash_while_worktree_is_made_leaves_none_or_whole_one() {
    for point in ["JC3.add", "JC3.added", "JC3.branch", "JC3.complete"] {
        let Some(mut daemon) = start(TestDaemon::builder()).await else { return };
        daemon.kill().await;
        daemon.crash_at(point, CrashMode::Kill);
        daemon.launch().await;
        let params = json!({"cwd": daemon.workspace(), "worktree": true, "idempotency_key": "k"});
        let alice = daemon.client("alice").await;
        alice.send("session.create", params.clone()).await;
        daemon.wait_crashed().await;
        daemon.clear_crash_point();
        daemon.launch().await;
        let alice = daemon.client("alice").await;
        let reply = alice.call("session.create", params).await;
        let session = Session {
            client: alice.clone(),
            id: reply["session"]["session_id"].as_str().expect("an id").into(),
        };
        assert!(path_of(&daemon, &session).join("a.txt").exists(), "{point}");
        swept(&daemon, &session).await;
        session.call("kill", json!({})).await;
        assert!(list(&alice).await.is_empty(), "{point}");
        assert_eq!(git(&daemon.workspace(), &["branch", "--list", "agentd/*"]), "", "{point}");
        assert_no_lock_file(&daemon);
    }
}

#[tokio::test]
async fn crash_while_worktree_is_removed_is_completed() {
    for point in ["JC3.commit", "JC3.remove", "JC3.moved", "JC3.removed", "JC3.forgotten"] {
        let Some(mut daemon) = start(TestDaemon::builder()).await else { return };
        daemon.kill().await;
        daemon.crash_at(point, CrashMode::Kill);
        daemon.launch().await;
        let alice = daemon.client("alice").await;
        let session = create_apart(&daemon, &alice, json!({})).await;
        let is_changed = point == "JC3.commit";
        if is_changed {
            run_calls(&daemon, &session, vec![write("new.txt", "new\n")]).await;
        }
        session.send("kill", json!({})).await;
        daemon.wait_crashed().await;
        daemon.clear_crash_point();
        daemon.launch().await;
        // The start completes it; nothing else has to be done.
        let done = async {
            loop {
                let branches = git(&daemon.workspace(), &["log", "--all", "--format=%s"]);
                let is_gone = !path_of(&daemon, &session).exists()
                    && git(&daemon.workspace(), &["worktree", "list"]).lines().count() == 1
                    && git(&daemon.workspace(), &["branch", "--list", "agentd/*"]).is_empty();
                let is_committed = branches.contains("agentd: work of");
                if (is_changed && is_committed) || (!is_changed && is_gone) {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        crate::support::wait::with_deadline(point, || daemon.log(), done).await;
        assert_eq!(path_of(&daemon, &session).exists(), is_changed, "{point}");
        let private = worktrees(&daemon).with_file_name("worktree-git");
        let names = std::fs::read_dir(private).expect("a folder").flatten().map(|entry| entry.file_name());
        let removed: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(".removed")).collect();
        assert!(removed.is_empty(), "{point}: {removed:?}");
        assert_no_lock_file(&daemon);
    }
}

/// Waits until the start has removed the unfinished worktrees, of which at most that of this session is left.
async fn swept(daemon: &TestDaemon, session: &Session) {
    let only = async {
        loop {
            let names = std::fs::read_dir(worktrees(daemon)).expect("read").flatten();
            let others = names.filter(|entry| entry.file_name().to_str() != Some(&session.id)).count();
            let known = git(&daemon.workspace(), &["worktree", "list"]).lines().count();
            if others == 0 && known == 2 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    crate::support::wait::with_deadline("the sweep of worktrees", || daemon.log(), only).await;
}

#[tokio::test]
async fn agentctl_runs_in_worktree_shows_and_merges_it() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let work = daemon.workspace().display().to_string();
    daemon.models.push(Step::calls([write("new.txt", "new\n")]));
    daemon.models.push(Step::text("Done."));
    let done = ctl(&daemon, &["run", "--worktree=fix/it", "-w", &work, "-a", "accept_edits", "go"]).await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("agentctl merge ses_"), "{}", done.err);
    let listed = ctl(&daemon, &["worktrees", "--json"]).await.json();
    let id = listed[0]["session_id"].as_str().expect("an id").to_owned();
    assert_eq!(listed[0]["branch"], "fix/it");
    let shown = ctl(&daemon, &["diff", &id]).await;
    assert!(shown.out.contains("new.txt +1") && shown.out.contains("+new"), "{}", shown.out);
    assert!(ctl(&daemon, &["worktrees"]).await.out.contains("in use"));
    assert_eq!(ctl(&daemon, &["merge", &id]).await.code, 0);
    assert_eq!(daemon.read("new.txt"), "new\n");
    assert_ne!(ctl(&daemon, &["worktrees", "rm", &id]).await.code, 0, "the session uses it");
    assert_eq!(ctl(&daemon, &["kill", &id]).await.code, 0);
    assert_eq!(ctl(&daemon, &["worktrees", "rm", &id]).await.code, 0);
    assert!(ctl(&daemon, &["worktrees"]).await.out.is_empty());
}

#[tokio::test]
async fn worktree_shared_with_a_fork_stays_until_both_have_ended() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let session = create_apart(&daemon, &alice, json!({})).await;
    run_calls(&daemon, &session, vec![("LS", json!({"path": "."}))]).await;
    let fork = alice.call("session.fork", json!({"session_id": session.id})).await["session"].clone();
    assert_eq!(fork["worktree"]["shared_with"], json!(session.id), "{fork}");
    let path = path_of(&daemon, &session);
    session.call("kill", json!({})).await;
    assert!(path.exists(), "the fork works in it");
    let refused = alice.refused("worktree.remove", json!({"session_id": session.id, "force": true})).await;
    assert!(refused.message.contains(fork["session_id"].as_str().expect("an id")), "{refused:?}");
    alice.call("session.kill", json!({"session_id": fork["session_id"]})).await;
    assert!(!path.exists(), "it has no change, so it goes with the last session");
}
