//! Jobs under limits and faults: the day's money, damaged rows, hanging repositories, repeated calls.

use std::time::Duration;

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use super::jobs::{content, create, get, reaches, wait};
use super::worktrees::{git, start, worktrees};
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{POLL_INTERVAL, with_deadline};

/// Members of a job with a key of its own.
fn keyed(key: &str, more: Value) -> Value {
    let mut job = json!({"concurrency": {"key": key, "limit": 1}});
    job.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
    job
}

#[tokio::test]
async fn money_of_a_job_that_retries_counts_for_the_day() {
    // One input token costs a millionth of a dollar.
    let config = "[model.\"scripted/model\"]\nprice = { input = 1.0, output = 0.0 }\n\
                  [permissions]\nallow = [\"Bash\"]\n[jobs]\nusd_per_day = 0.0001";
    let daemon = TestDaemon::builder().config(config).start().await;
    let client = daemon.client("alice").await;
    daemon.models.push(Step::calls([bash("true")]).usage(45, 0));
    daemon.models.push(Step::error(400, "invalid_request_error", "no"));
    let retry = json!({"attempts": 2, "backoff": "1h", "max_backoff": "1h"});
    let first = keyed("a", json!({"budgets": {"usd_micros": 90}, "retry": retry}));
    let first = create(&client, &daemon, first).await;
    assert_eq!(reaches(&client, &first, "retrying").await["cost_usd_micros"], 45);
    // 45 are spent and 45 are reserved.
    let large = create(&client, &daemon, keyed("b", json!({"budgets": {"usd_micros": 11}}))).await;
    daemon.models.push(Step::text("Small.").usage(9, 0));
    let small = create(&client, &daemon, keyed("c", json!({"budgets": {"usd_micros": 10}}))).await;
    assert_eq!(wait(&client, &small).await["state"], "succeeded");
    let large = get(&client, &large).await;
    assert_eq!((&large["state"], &large["reason"]), (&json!("queued"), &json!("budget")), "{large}");
    // What a cancelled job did not spend is free again; what a deleted session spent is not.
    daemon.models.push(Step::text("Large.").usage(10, 0));
    let done = client.call("job.cancel", json!({"job_id": first["job_id"]})).await["job"].clone();
    client.call("session.delete", json!({"session_id": done["session_id"]})).await;
    assert_eq!(wait(&client, &large).await["state"], "succeeded");
    let too_much = create(&client, &daemon, keyed("d", json!({"budgets": {"usd_micros": 37}}))).await;
    assert_eq!(get(&client, &too_much).await["reason"], "budget");
}

#[tokio::test]
async fn raised_limit_of_a_running_job_stays_within_the_money_of_the_day() {
    let config =
        "[model.\"scripted/model\"]\nprice = { input = 1.0, output = 0.0 }\n[jobs]\nusd_per_day = 0.0001";
    let daemon = TestDaemon::builder().config(config).start().await;
    let client = daemon.client("alice").await;
    let gate = Gate::new();
    for _ in 0..2 {
        daemon.models.push(Step::text("Done.").usage(5, 0).hold(&gate));
    }
    let one = create(&client, &daemon, keyed("a", json!({"budgets": {"usd_micros": 50}}))).await;
    let other = create(&client, &daemon, keyed("b", json!({"budgets": {"usd_micros": 40}}))).await;
    reaches(&client, &one, "running").await;
    reaches(&client, &other, "running").await;
    let raised = |usd: u64| json!({"job_id": one["job_id"], "budgets": {"usd_micros": usd}});
    let refusal = client.refused("job.update", raised(61)).await;
    assert_eq!((refusal.code, refusal.data["path"].as_str()), (-32602, Some("budgets.usd_micros")));
    client.call("job.update", raised(60)).await;
    gate.open();
    assert_eq!(wait(&client, &one).await["state"], "succeeded");
    assert_eq!(wait(&client, &other).await["state"], "succeeded");
}

#[tokio::test]
async fn damaged_job_is_left_out_and_stops_no_other_one() {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    client.call("job.pause", json!({})).await;
    let label = json!({"labels": {"team": "red"}, "priority": 5});
    let damaged = create(&client, &daemon, keyed("a", label.clone())).await;
    let good = create(&client, &daemon, keyed("b", label)).await;
    let database = rusqlite::Connection::open(daemon.path("data/agentd/agentd.db")).expect("opened");
    let id = damaged["job_id"].as_str().expect("an id");
    let changed = database.execute("update job set record = '{\"job\":' where job_id = ?", [id]);
    assert_eq!(changed.expect("changed"), 1);
    drop(database);
    for filter in [json!({}), json!({"label": "team=red"})] {
        let listed = client.call("job.list", filter).await["jobs"].clone();
        assert_eq!((listed.as_array().map(Vec::len), &listed[0]["job_id"]), (Some(1), &good["job_id"]));
    }
    daemon.models.set_fallback(|_| Step::text("Done."));
    client.call("job.resume", json!({})).await;
    assert_eq!(wait(&client, &good).await["state"], "succeeded");
    client.refused("job.get", json!({"job_id": id})).await;
    daemon.crash_and_restart().await;
    let client = daemon.client("alice").await;
    let later = create(&client, &daemon, json!({})).await;
    assert_eq!(wait(&client, &later).await["state"], "succeeded");
    assert!(daemon.log().contains("a job is left out until the next start"), "{}", daemon.log());
}

#[tokio::test]
async fn hanging_repository_holds_up_no_schedule() {
    if std::process::Command::new("git").arg("--version").output().is_err() {
        base::skip_test!("there is no git");
        return;
    }
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    daemon.write("a.txt", "one\n");
    let script = "git init -q && git config user.name Ann && git config user.email ann@example.org && \
                  git add -A && git commit -q -m first";
    let in_workspace = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-ec", script]).current_dir(daemon.workspace()).status().expect("a shell")
    };
    assert!(in_workspace(script).success());
    let job = json!({"prompt": "Do it.", "cwd": daemon.workspace(), "worktree": true});
    let schedule = json!({"name": "apart", "every": "1h", "job": job});
    let schedule = client.call("schedule.create", schedule).await["schedule"].clone();
    assert!(in_workspace("rm .git/index && mkfifo .git/index").success());
    let calls = async {
        client.call("schedule.trigger", json!({"schedule_id": schedule["schedule_id"]})).await;
        client.call("schedule.list", json!({})).await
    };
    let listed = tokio::time::timeout(Duration::from_secs(10), calls).await.expect("in time");
    assert!(listed["schedules"][0]["last_job_id"].is_string(), "{listed}");
}

#[tokio::test]
async fn early_due_time_is_no_waiting() {
    let daemon = TestDaemon::builder().config("[jobs]\nconcurrent = 1").start().await;
    let client = daemon.client("alice").await;
    client.call("job.pause", json!({})).await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let early = keyed("a", json!({"prompt": "early", "run_at_ms": 0, "priority": -100}));
    let early = create(&client, &daemon, early).await;
    let urgent = create(&client, &daemon, keyed("b", json!({"prompt": "urgent", "priority": 100}))).await;
    client.call("job.resume", json!({})).await;
    for job in [&early, &urgent] {
        assert_eq!(wait(&client, job).await["state"], "succeeded");
    }
    let first = daemon.models.requests().remove(0).messages()[0].to_string();
    assert!(first.contains("urgent"), "{first}");
}

#[tokio::test]
async fn repeated_cancel_answers_although_the_job_was_retried() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let client = daemon.client("alice").await;
    daemon.models.push(Step::calls([bash("sleep 600")]));
    let job = create(&client, &daemon, json!({})).await;
    reaches(&client, &job, "running").await;
    let cancel = json!({"job_id": job["job_id"], "idempotency_key": "k"});
    let first = client.call("job.cancel", cancel.clone()).await;
    assert_eq!((&first["job"]["state"], &first["stopped"]), (&json!("cancelled"), &json!(true)));
    client.call("job.pause", json!({})).await;
    client.call("job.retry", json!({"job_id": job["job_id"]})).await;
    let again = with_deadline("the reply", || daemon.log(), client.call("job.cancel", cancel)).await;
    assert_eq!((&again["job"]["state"], &again["stopped"]), (&json!("queued"), &json!(true)));
    assert_eq!(get(&client, &job).await["state"], "queued", "it is not cancelled again");
}

#[tokio::test]
async fn crash_during_a_replacement_keeps_the_earlier_job() {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    client.call("job.pause", json!({})).await;
    let unique = json!({"unique": {"key": "nightly", "on_conflict": "replace"}});
    let first = create(&client, &daemon, unique.clone()).await;
    daemon.stop().await;
    daemon.crash_at("JC1.checked", CrashMode::Kill);
    daemon.launch().await;
    let client = daemon.client("alice").await;
    client.send("job.create", content(&daemon, unique.clone())).await;
    daemon.wait_crashed().await;
    daemon.clear_crash_point();
    daemon.launch().await;
    let client = daemon.client("alice").await;
    assert_eq!(get(&client, &first).await["state"], "queued");
    let second = create(&client, &daemon, unique).await;
    let replaced = get(&client, &first).await;
    let reason = format!("replaced by {}", second["job_id"].as_str().expect("an id"));
    assert_eq!((&replaced["state"], &replaced["error"]["message"]), (&json!("cancelled"), &json!(reason)));
}

#[tokio::test]
async fn ambiguous_title_and_empty_name_change_no_job() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    client.call("job.pause", json!({})).await;
    let mut ids = Vec::new();
    for key in ["a", "b"] {
        ids.push(create(&client, &daemon, keyed(key, json!({"title": "nightly"}))).await);
    }
    let refused = ctl(&daemon, &["jobs", "cancel", "nightly"]).await;
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(
        ids.iter().all(|job| refused.err.contains(job["job_id"].as_str().expect("an id"))),
        "{refused:?}"
    );
    let refused = ctl(&daemon, &["jobs", "cancel", ""]).await;
    assert!(refused.code == 64 && refused.err.contains("name a job"), "{refused:?}");
    for job in &ids {
        assert_eq!(get(&client, job).await["state"], "queued");
    }
}

#[tokio::test]
async fn crontab_keeps_its_zone_and_names_patterns_that_cannot_be_taken_over() {
    let daemon = TestDaemon::start().await;
    let crontab = "CRON_TZ=Asia/Tokyo\n0 3 * * * claude -p tidy\n0 3 * * 1#2 claude -p second\n\
                   TZ=Mars/Olympus\nCRON_TZ=\n0 4 * * * claude -p third";
    let printed = ctl(&daemon, &["jobs", "add", "--from-crontab", crontab]).await;
    assert!(printed.out.contains("--cron '0 3 * * *' --timezone Asia/Tokyo "), "{printed:?}");
    assert_eq!(printed.out.lines().count(), 1, "{printed:?}");
    let told: Vec<&str> = printed.err.lines().filter(|line| line.contains("cannot be translated")).collect();
    assert!(
        matches!(told[..], [pattern, zone] if pattern.contains("1#2") && zone.contains("timezone")),
        "{printed:?}"
    );
}

#[tokio::test]
async fn rate_limit_is_the_reason_of_the_attempt_that_waits_and_of_queued_jobs() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let limited = Step::error(429, "rate_limit_error", "slow down").header("retry-after", "4");
    daemon.models.push(limited);
    daemon.models.set_fallback(|_| Step::text("Done."));
    let first = create(&client, &daemon, keyed("a", json!({"prompt": "first"}))).await;
    let waits = async {
        while get(&client, &first).await["reason"] != "rate_limited" {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("the wait of the attempt", || daemon.log(), waits).await;
    let second = create(&client, &daemon, keyed("b", json!({"prompt": "second"}))).await;
    let queued = get(&client, &second).await;
    assert_eq!((&queued["state"], &queued["reason"]), (&json!("queued"), &json!("rate_limited")));
    for job in [&first, &second] {
        let done = wait(&client, job).await;
        assert_eq!((&done["state"], done.get("reason")), (&json!("succeeded"), None));
    }
}

/// A limit on the size of files stops git as a disk without space does: in the middle of a file.
#[tokio::test]
async fn disk_that_fills_in_git_worktree_add_fails_the_job_and_leaves_nothing() {
    const LIMIT_BYTES: usize = 12 << 20;
    let Some(daemon) = start(TestDaemon::builder()).await else { return };
    let client = daemon.client("alice").await;
    let folder = daemon.workspace();
    std::fs::write(folder.join("big.bin"), vec![b'x'; 2 * LIMIT_BYTES]).expect("written");
    git(&folder, &["add", "big.bin"]);
    git(&folder, &["commit", "-q", "-m", "big"]);
    let limit = |bytes: &str| {
        let fsize = format!("--fsize={bytes}:unlimited");
        std::process::Command::new("prlimit").args(["--pid", &daemon.pid().to_string(), &fsize]).status()
    };
    if !limit(&LIMIT_BYTES.to_string()).is_ok_and(|status| status.success()) {
        base::skip_test!("prlimit cannot limit the daemon");
        return;
    }
    let job = create(&client, &daemon, json!({"worktree": true})).await;
    let failed = wait(&client, &job).await;
    assert_eq!((&failed["state"], &failed["error"]["kind"]), (&json!("failed"), &json!("worktree")));
    assert!(daemon.models.requests().is_empty(), "no session starts");
    let entries = std::fs::read_dir(worktrees(&daemon)).map(Iterator::count).unwrap_or(0);
    assert_eq!(entries, 0, "the partial worktree is removed");
    assert_eq!(git(&folder, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&folder, &["branch", "--list", "agentd/*"]), "");
    assert!(limit("unlimited").is_ok_and(|status| status.success()));
    daemon.models.push(Step::text("Done."));
    client.call("job.retry", json!({"job_id": job["job_id"]})).await;
    assert_eq!(wait(&client, &job).await["state"], "succeeded");
}

#[tokio::test]
async fn job_beyond_the_length_of_the_queue_is_refused_until_there_is_room() {
    let daemon = TestDaemon::builder().config("[jobs]\nmax_queued = 2\npaused = true").start().await;
    let client = daemon.client("alice").await;
    let first = create(&client, &daemon, json!({})).await;
    create(&client, &daemon, json!({"delay": "1h"})).await;
    let refusal = client.refused("job.create", content(&daemon, json!({}))).await;
    assert_eq!(refusal.code, -32001, "{refusal:?}");
    client.call("job.cancel", json!({"job_id": first["job_id"]})).await;
    create(&client, &daemon, json!({})).await;
}
