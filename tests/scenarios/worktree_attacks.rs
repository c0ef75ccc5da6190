//! Commands that leave links and pipes in git's folders, sessions in the daemon's folder, and damaged worktrees.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::bash;
use super::worktrees::{create_apart, git, list, path_of, run_calls, start, worktrees, write};
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{POLL_INTERVAL, poll_until, with_deadline};

const ALLOW_BASH: &str = "[permissions]\nallow = [\"Bash\"]";

async fn start_allowing() -> Option<TestDaemon> {
    start(TestDaemon::builder().config(ALLOW_BASH)).await
}

/// Lets a job in a worktree run one command, and returns the job when it is over.
async fn run_job(daemon: &TestDaemon, client: &Client, command: &str) -> Value {
    daemon.models.push(Step::calls(vec![bash(command)]));
    daemon.models.push(Step::text("Done."));
    let params = json!({"prompt": "Do it.", "cwd": daemon.workspace(), "worktree": true});
    let job = client.call("job.create", params).await["job"].clone();
    let params = json!({"job_id": job["job_id"], "timeout_ms": 20_000});
    let reply = client.call("job.wait", params).await;
    assert_eq!(reply["timed_out"], json!(false), "{reply}");
    reply["job"].clone()
}

#[tokio::test]
async fn end_of_job_follows_no_link_of_its_commands() {
    let Some(daemon) = start_allowing().await else { return };
    let alice = daemon.client("alice").await;
    let profile = daemon.path("profile");
    std::fs::write(&profile, "echo hello\n").expect("written");
    let missing = daemon.path("missing");
    let command = format!(
        "G=$(sed 's/gitdir: //' .git); C=$(git rev-parse --git-common-dir); B=$(git branch --show-current); \
         echo new > new.txt; rm -f $G/index; ln -s {missing} $G/index; \
         mkdir -p $C/logs/refs/heads/agentd; rm -f $C/logs/refs/heads/$B; ln -s {profile} $C/logs/refs/heads/$B; \
         for n in 1 2 3; do ln -s {profile} $G/agentd-index-$n-0; done; test -L $G/index && echo planted",
        missing = missing.display(),
        profile = profile.display(),
    );
    let done = run_job(&daemon, &alice, &command).await;
    assert_eq!(done["state"], "succeeded", "{done}");
    assert_eq!(done["result"]["git"]["files_changed"], 1, "{done}");
    let shown = alice.call("worktree.diff", json!({"job_id": done["job_id"]})).await;
    assert!(shown["diff"].as_str().is_some_and(|diff| diff.contains("+new")), "{shown}");
    assert_eq!(std::fs::read_to_string(&profile).expect("read"), "echo hello\n");
    assert!(!missing.exists(), "git made the target of the link");
}

#[tokio::test]
async fn pipe_in_place_of_index_holds_neither_job_nor_diff() {
    let Some(daemon) = start_allowing().await else { return };
    let alice = daemon.client("alice").await;
    let command = "G=$(sed 's/gitdir: //' .git); echo new > new.txt; rm $G/index; mkfifo $G/index; echo done";
    let done = run_job(&daemon, &alice, command).await;
    assert_eq!((&done["state"], &done["result"]["git"]["files_changed"]), (&json!("succeeded"), &json!(1)));
    let session = create_apart(&daemon, &alice, json!({})).await;
    run_calls(&daemon, &session, vec![bash(command)]).await;
    let shown = alice.call("worktree.diff", json!({"session_id": session.id})).await;
    assert_eq!(shown["files"][0]["path"], "new.txt", "{shown}");
}

#[tokio::test]
async fn lock_of_command_on_repository_holds_no_job() {
    let Some(daemon) = start_allowing().await else { return };
    let alice = daemon.client("alice").await;
    let folder = std::fs::File::open(daemon.workspace().join(".git")).expect("open");
    folder.lock().expect("locked");
    let done = run_job(&daemon, &alice, "echo new > new.txt").await;
    assert_eq!(done["state"], "succeeded", "{done}");
}

/// Locks the only repository with worktrees, as if another worktree of it were being made.
fn lock_repository(daemon: &TestDaemon) -> std::fs::File {
    let state = worktrees(daemon).with_file_name("worktree-git");
    let files = std::fs::read_dir(&state).expect("read").flatten().map(|entry| entry.path());
    let locks: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|it| it == "lock")).collect();
    assert_eq!(locks.len(), 1, "{locks:?}");
    let lock = std::fs::File::open(&locks[0]).expect("open");
    lock.lock().expect("locked");
    lock
}

#[tokio::test]
async fn cancel_ends_job_whose_end_waits_for_its_repository() {
    let Some(daemon) = start_allowing().await else { return };
    let alice = daemon.client("alice").await;
    let gate = Gate::new();
    daemon.models.push(Step::calls(vec![bash("echo new > new.txt")]));
    daemon.models.push(Step::text("Done.").hold(&gate));
    let params = json!({"prompt": "Do it.", "cwd": daemon.workspace(), "worktree": true});
    let job = alice.call("job.create", params).await["job"].clone();
    gate.wait_reached().await;
    let lock = lock_repository(&daemon);
    gate.open();
    let id = json!({"job_id": job["job_id"]});
    let ending = async {
        loop {
            let session = alice.call("job.get", id.clone()).await["job"]["session_id"].clone();
            let session = alice.call("session.get", json!({"session_id": session})).await;
            if session["session"]["state"] == "archived" {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("the end of the work", || daemon.log(), ending).await;
    let cancelled = alice.call("job.cancel", id).await;
    assert_eq!(cancelled["job"]["state"], "cancelled", "{cancelled}");
    drop(lock);
    let path = worktrees(&daemon).join(job["job_id"].as_str().expect("an id"));
    assert!(path.join("new.txt").exists(), "the worktree is kept");
}

#[tokio::test]
async fn cancel_ends_job_that_waits_for_its_repository() {
    let Some(daemon) = start_allowing().await else { return };
    let alice = daemon.client("alice").await;
    assert_eq!(run_job(&daemon, &alice, "true").await["state"], "succeeded");
    let lock = lock_repository(&daemon);
    let params = json!({"prompt": "Do it.", "cwd": daemon.workspace(), "worktree": true});
    let job = alice.call("job.create", params).await["job"].clone();
    let id = json!({"job_id": job["job_id"]});
    let running = async {
        while alice.call("job.get", id.clone()).await["job"]["state"] != "running" {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("the start of the job", || daemon.log(), running).await;
    let cancelled = alice.call("job.cancel", id.clone()).await;
    assert_eq!(cancelled["job"]["state"], "cancelled", "{cancelled}");
    drop(lock);
    assert_eq!(git(&daemon.workspace(), &["branch", "--list", "agentd/*"]), "");
}

#[tokio::test]
async fn worktree_that_git_does_not_know_is_kept_until_force() {
    let Some(daemon) = start_allowing().await else { return };
    let alice = daemon.client("alice").await;
    let session = create_apart(&daemon, &alice, json!({})).await;
    let path = path_of(&daemon, &session);
    run_calls(&daemon, &session, vec![write("work.txt", "work\n")]).await;
    let own = daemon.workspace().join(".git/worktrees").join(&session.id);
    std::fs::write(own.join("gitdir"), "\n").expect("written");
    let listed = list(&alice).await;
    assert_eq!(
        (&listed[0]["uncommitted"], &listed[0]["commits"]),
        (&Value::Null, &Value::Null),
        "{listed:?}"
    );
    session.call("kill", json!({})).await;
    assert_eq!(std::fs::read_to_string(path.join("work.txt")).expect("kept"), "work\n");
    let refused = alice.refused("worktree.remove", json!({"session_id": session.id})).await;
    assert!(refused.message.contains("force"), "{refused:?}");
    assert!(path.join("work.txt").exists());
    alice.call("worktree.remove", json!({"session_id": session.id, "force": true})).await;
    assert!(!path.exists());
    let branch = format!("agentd/{}", session.id);
    assert!(!git(&daemon.workspace(), &["branch", "--list", &branch]).is_empty(), "the branch stays");
}

#[tokio::test]
async fn worktree_of_retried_job_is_kept_from_its_last_end_on() {
    let clock = tempfile::tempdir().expect("a folder");
    let offset = clock.path().join("offset");
    let set_hours = |hours: u64| {
        std::fs::write(clock.path().join("new"), (hours * 3_600_000).to_string()).expect("written");
        std::fs::rename(clock.path().join("new"), &offset).expect("renamed");
    };
    set_hours(0);
    let config = format!("[jobs]\nkeep_worktrees = \"4h\"\n{ALLOW_BASH}");
    let builder = TestDaemon::builder().config(&config);
    let builder = builder.environment("AGENTD_TEST_CLOCK", offset.to_str().expect("text"));
    let Some(mut daemon) = start(builder).await else { return };
    let alice = daemon.client("alice").await;
    let mut jobs = Vec::new();
    for _ in 0..2 {
        daemon.models.push(Step::calls(vec![bash("echo new > new.txt")]));
        daemon.models.push(Step::error(400, "invalid_request_error", "no"));
        let params = json!({"prompt": "Do it.", "cwd": daemon.workspace(), "worktree": true});
        let job = alice.call("job.create", params).await["job"]["job_id"].clone();
        let done = alice.call("job.wait", json!({"job_id": job, "timeout_ms": 20_000})).await;
        assert_eq!(done["job"]["state"], "failed", "{done}");
        jobs.push(job);
    }
    set_hours(3);
    daemon.models.push(Step::text("Done."));
    alice.call("job.retry", json!({"job_id": jobs[0], "mode": "continue"})).await;
    let done = alice.call("job.wait", json!({"job_id": jobs[0], "timeout_ms": 20_000})).await;
    assert_eq!(done["job"]["state"], "succeeded", "{done}");
    set_hours(5);
    daemon.stop().await;
    daemon.launch().await;
    // The worktrees are removed in the order of their creation.
    let path = |job: &Value| worktrees(&daemon).join(job.as_str().expect("an id"));
    poll_until("the removal", || daemon.log(), || (!path(&jobs[1]).exists()).then_some(())).await;
    assert!(path(&jobs[0]).exists(), "it ended two hours ago");
}

#[tokio::test]
async fn folders_of_daemon_are_no_workspace() {
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let alice = daemon.client("alice").await;
    let session = create_apart(&daemon, &alice, json!({})).await;
    let all = worktrees(&daemon);
    let data = all.parent().expect("a folder");
    for folder in [data, &all, &data.join("worktree-git")] {
        let cwd = json!({"cwd": folder});
        let job = json!({"prompt": "Do it.", "cwd": folder});
        let schedule = json!({"name": "nightly", "cron": "0 3 * * *", "job": job});
        for (method, params, field) in [
            ("session.create", cwd, "cwd"),
            ("job.create", job.clone(), "cwd"),
            ("schedule.create", schedule, "cwd"),
        ] {
            let refused = alice.refused(method, params).await;
            assert_eq!(refused.code, -32602, "{method} {}: {refused:?}", folder.display());
            let path = refused.data["path"].as_str().unwrap_or_default();
            assert!(path.ends_with(field), "{method}: {refused:?}");
        }
        let more = json!({"session_id": session.id, "additional_dirs": [folder]});
        assert_eq!(alice.refused("session.update", more).await.code, -32602);
    }
}

#[tokio::test]
async fn rules_of_base_folder_protect_base_folder() {
    let Some(daemon) = start_allowing().await else { return };
    let alice = daemon.client("alice").await;
    let workspace = daemon.workspace();
    for path in ["hidden.txt", "by-file.txt", "by-user.txt", "sub/deep.txt", "free.txt"] {
        daemon.write(path, &format!("content of {path}\n"));
    }
    daemon.write(".agentd/config.toml", "[permissions]\ndeny = [\"Read(by-file.txt)\"]\n");
    for (scope, rule) in
        [("project", "Read(hidden.txt)"), ("project", "Read(sub/deep.txt)"), ("user", "Read(by-user.txt)")]
    {
        let rule = json!({"kind": "deny", "rule": rule, "scope": scope, "workspace": workspace});
        alice.call("permission.add_rule", rule).await;
    }
    let session = create_apart(&daemon, &alice, json!({})).await;
    for path in ["hidden.txt", "by-file.txt", "by-user.txt", "sub/deep.txt"] {
        let done =
            run_calls(&daemon, &session, vec![("Read", json!({"file_path": workspace.join(path)}))]).await;
        assert_eq!(done[0]["status"], "denied", "{path}: {done:?}");
    }
    // A command that names such a file asks, also if all commands are allowed.
    let mut seen = session.follow_after(session.view().await["last_seq"].as_u64().expect("a number")).await;
    daemon.models.push(Step::calls(vec![bash(&format!("cat {}", workspace.join("hidden.txt").display()))]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    assert!(asked["reason"].as_str().is_some_and(|why| why.contains("Read(hidden.txt)")), "{asked}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    let free = bash(&format!("cat {}", workspace.join("free.txt").display()));
    let done = run_calls(&daemon, &session, vec![free]).await;
    assert!(done[0].to_string().contains("content of free.txt"), "{done:?}");
}
