//! Attempts of jobs: when they are repeated after an unknown outcome, what their sessions see, and what happens to a
//! worktree whose work could not be ended.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::bash;
use super::jobs::{create, wait};
use super::subagents::begins_with;
use super::worktrees::{git, start};
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{DEADLINE, POLL_INTERVAL, poll_until};

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

/// Asks until the answer satisfies a condition.
async fn poll<T>(client: &Client, method: &str, params: Value, find: impl Fn(&Value) -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let answer = client.try_call(method, params.clone()).await.unwrap_or_default();
        if let Some(found) = find(&answer) {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {method} says {answer}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The first event of the newest attempt's session with this type.
async fn event(client: &Client, job: &Value, kind: &'static str) -> Value {
    let find = move |logs: &Value| {
        let events = logs["events"].as_array()?;
        events.iter().find(|event| event["type"] == kind).cloned()
    };
    poll(client, "job.logs", json!({"job_id": job["job_id"], "limit": 500}), find).await
}

#[tokio::test]
async fn lost_command_stops_retries_only_if_it_could_reach_outside_of_the_worktree() {
    // The sandbox that the journal names decides, and whether the job has a worktree.
    for (network, in_worktree) in [("off", true), ("on", true), ("off", false)] {
        let config = format!(
            "{BASH_ALLOWED}\n[sandbox]\nnetwork = \"{network}\"\n[permissions.unattended]\non_timeout = \"fail\"\n"
        );
        let Some(mut daemon) = start(TestDaemon::builder().config(&config)).await else { return };
        let client = daemon.client("alice").await;
        daemon.models.push(Step::calls([bash("echo begun; sleep 1000")]));
        daemon.models.set_fallback(|_| Step::text("Done."));
        let retry = json!({"attempts": 2, "backoff": "10ms", "max_backoff": "10ms"});
        let job = create(&client, &daemon, json!({"worktree": in_worktree, "retry": retry})).await;
        let started = event(&client, &job, "tool.started").await;
        daemon.crash_and_restart().await;
        let client = daemon.client("alice").await;
        let done = wait(&client, &job).await;
        let sandbox = &started["sandbox"];
        let is_confined = sandbox["level"].as_u64() >= Some(2) && sandbox["network"] == json!(false);
        if network == "off" && !is_confined {
            base::skip_test!("no sandbox works here without network: {sandbox}");
        }
        match is_confined && in_worktree {
            true => {
                assert_eq!((&done["state"], &done["attempt"]), (&json!("succeeded"), &json!(2)), "{done}")
            }
            false => {
                assert_eq!((&done["state"], &done["attempt"]), (&json!("failed"), &json!(1)), "{done}");
                assert_eq!(done["error"]["kind"], "unknown_outcome");
                assert_eq!(done["error"]["call_id"], started["call_id"]);
            }
        }
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn session_of_an_attempt_sees_the_events_of_its_job() {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    daemon.models.push(Step::error(400, "invalid_request_error", "no"));
    daemon.models.push(Step::calls([bash("touch made")]));
    let retry = json!({"attempts": 2, "backoff": "10ms", "max_backoff": "10ms"});
    let job = create(&client, &daemon, json!({"retry": retry})).await;
    let is_waiting = |got: &Value| (got["job"]["state"] == "waiting").then(|| got["job"].clone());
    let waiting = poll(&client, "job.get", json!({"job_id": job["job_id"]}), is_waiting).await;
    assert_eq!(waiting["attempt"], 2);
    // A restart tells the session nothing twice.
    daemon.crash_and_restart().await;
    let client = daemon.client("alice").await;
    let pending = json!({"session_id": waiting["session_id"]});
    let request = |listed: &Value| listed["requests"].get(0).cloned();
    let request = poll(&client, "permission.list", pending, request).await;
    daemon.models.push(Step::text("Made."));
    client.call("session.approve", json!({"request_id": request["request_id"], "decision": "allow"})).await;
    let done = wait(&client, &job).await;
    let attempts = done["result"]["attempts"].as_array().expect("attempts").clone();
    let expected: [&[&str]; 2] =
        [&["job.started", "job.retrying"], &["job.started", "job.waiting", "job.resumed", "job.completed"]];
    for (attempt, expected) in attempts.iter().zip(expected) {
        let last = *expected.last().expect("one");
        let of_job = move |read: &Value| -> Option<Vec<Value>> {
            let events = read["events"].as_array()?.iter().filter(|event| event["type"] == "job.event");
            let events: Vec<Value> = events.map(|event| event["event"].clone()).collect();
            events.last().is_some_and(|event| event["type"] == last).then_some(events)
        };
        let read = json!({"session_id": attempt["session_id"], "limit": 500});
        let events = poll(&client, "session.events", read, of_job).await;
        let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
        assert_eq!(kinds, expected, "{attempt}");
        assert!(events.iter().all(|event| event["job_id"] == job["job_id"]), "{events:?}");
        assert!(events.iter().all(|event| event.get("result").is_none()), "the result is in the job");
    }
}

#[tokio::test]
async fn worktree_whose_end_failed_is_ended_by_the_next_start() {
    let builder = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\", \"Edit\"]");
    let Some(mut daemon) = start(builder).await else { return };
    let client = daemon.client("alice").await;
    let gate = Gate::new();
    daemon.models.push(Step::calls([("Write", json!({"file_path": "new.txt", "content": "new\n"}))]));
    daemon.models.push(Step::text("Done.").hold(&gate));
    let job = create(&client, &daemon, json!({"worktree": true, "mode": "accept_edits"})).await;
    gate.wait_reached().await;
    // Git cannot work until the repository is back.
    let (repository, away) = (daemon.workspace().join(".git"), daemon.workspace().join(".git-away"));
    std::fs::rename(&repository, &away).expect("renamed");
    gate.open();
    let failed = wait(&client, &job).await;
    assert_eq!(
        (&failed["state"], &failed["error"]["kind"]),
        (&json!("failed"), &json!("worktree")),
        "{failed}"
    );
    std::fs::rename(&away, &repository).expect("renamed");
    let branch = format!("agentd/{}", job["job_id"].as_str().expect("an id"));
    let folder = daemon.workspace();
    let tip = || git(&folder, &["rev-parse", &branch]);
    let base = tip();
    daemon.stop().await;
    daemon.launch().await;
    poll_until("the commit of the changes", || daemon.log(), || (tip() != base).then_some(())).await;
    assert_eq!(git(&daemon.workspace(), &["show", &format!("{branch}:new.txt")]), "new");
    let listed = daemon.client("alice").await.call("worktree.list", json!({})).await;
    let path = PathBuf::from(listed["worktrees"][0]["path"].as_str().expect("a path"));
    assert!(path.join("new.txt").exists(), "it has changes, so it is kept");
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn background_command_ends_with_the_attempt_that_began_it() {
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let client = daemon.client("alice").await;
    let command = json!({"command": "sleep 600", "run_in_background": true});
    daemon.models.push(Step::calls([("Bash", command)]));
    daemon.models.push(Step::text("It runs."));
    let job = create(&client, &daemon, json!({})).await;
    let done = wait(&client, &job).await;
    assert_eq!(done["state"], "succeeded", "{done}");
    assert!(daemon.tool_processes().is_empty(), "the work has stopped");
    let session = client.call("session.get", json!({"session_id": done["session_id"]})).await;
    assert_eq!(session["session"]["state"], "archived", "{session}");
}

#[tokio::test]
async fn background_subagent_ends_with_the_attempt_that_began_it() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let gate = Gate::new();
    let held = gate.clone();
    daemon.models.set_fallback(move |request| match request.tool_results().len() {
        _ if !begins_with(request).contains("Do it.") => Step::text("Found it.").hold(&held),
        0 => {
            let input = json!({"description": "d", "prompt": "look", "subagent_type": "explore",
                               "run_in_background": true});
            Step::calls([("Task", input)])
        }
        _ => Step::text("It runs."),
    });
    let job = create(&client, &daemon, json!({})).await;
    let done = wait(&client, &job).await;
    assert_eq!(done["state"], "succeeded", "{done}");
    let parent = done["session_id"].clone();
    // The sub-agent would wait for its answer for ever.
    let params = json!({"session_id": parent, "limit": 500});
    let completed = |read: &Value| {
        let events = read["events"].as_array()?;
        events.iter().find(|event| event["type"] == "subagent.completed").cloned()
    };
    let completed = poll(&client, "session.events", params, completed).await;
    assert_eq!(completed["result"]["subtype"], "aborted", "{completed}");
    let session = client.call("session.get", json!({"session_id": parent})).await;
    assert_eq!(session["session"]["state"], "archived", "{session}");
}

/// A client with the name under which the daemon acts for jobs restores a session: that is the state in which a daemon
/// that dies at the end of a continued attempt leaves it.
#[tokio::test]
async fn session_that_the_daemon_left_unarchived_is_archived_by_the_next_start() {
    let mut daemon = TestDaemon::start().await;
    let (client, runner) = (daemon.client("alice").await, daemon.client("agentd jobs").await);
    let mut sessions = Vec::new();
    for restoring in [&runner, &client] {
        daemon.models.push(Step::text("Done."));
        let job = create(&client, &daemon, json!({})).await;
        let done = wait(&client, &job).await;
        assert_eq!(done["state"], "succeeded", "{done}");
        let restore = json!({"session_id": done["session_id"], "archived": false});
        restoring.call("session.archive", restore).await;
        sessions.push(done["session_id"].clone());
    }
    daemon.crash_and_restart().await;
    let client = daemon.client("alice").await;
    let state = async |session: &Value| {
        client.call("session.get", json!({"session_id": session})).await["session"]["state"].clone()
    };
    let id = json!({"session_id": sessions[0]});
    let is_archived = |got: &Value| (got["session"]["state"] == "archived").then_some(());
    poll(&client, "session.get", id, is_archived).await;
    assert_eq!(state(&sessions[1]).await, "idle", "a user restored it");
}

/// Questions keep the task that owns jobs busy, so that it reads changes of sessions late.
#[tokio::test]
async fn continued_attempts_end_with_their_own_results_while_the_daemon_is_busy() {
    const JOBS: usize = 12;
    let config = "[jobs]\nconcurrent = 12\nusd_per_day = 1000.0";
    let daemon = TestDaemon::builder().config(config).start().await;
    let client = daemon.client("alice").await;
    let later = create(&client, &daemon, json!({"delay": "1h"})).await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..6 {
        let client = daemon.client(&format!("asker {number}")).await;
        let id = json!({"job_id": later["job_id"]});
        asking.spawn(async move { while client.call_or_none("job.get", id.clone()).await.is_some() {} });
    }
    daemon.models.set_fallback(|request| {
        let prompts = json!(request.messages()).to_string().matches("Do it.").count();
        match prompts {
            1 => Step::error(400, "invalid_request_error", "no"),
            _ => Step::text("one two three four five six").drip(20),
        }
    });
    let retry = json!({"attempts": 2, "backoff": "10ms", "max_backoff": "10ms", "mode": "continue"});
    let mut jobs = Vec::new();
    for number in 0..JOBS {
        let key = json!({"key": number.to_string(), "limit": 1});
        jobs.push(create(&client, &daemon, json!({"retry": retry, "concurrency": key})).await);
    }
    for job in &jobs {
        let done = wait(&client, job).await;
        assert_eq!((&done["state"], &done["attempt"]), (&json!("succeeded"), &json!(2)), "{done}");
        let session = client.call("session.get", json!({"session_id": done["session_id"]})).await;
        assert_eq!(session["session"]["state"], "archived", "{session}");
    }
}
