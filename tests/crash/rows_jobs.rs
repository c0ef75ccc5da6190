//! JC1, JC2, JC4 and JC7: a job's creation, claim, end, cancel and retry.

use serde_json::{Value, json};

use super::matrix_ways;
use crate::support::client::Client;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::Step;

matrix_ways! {
    jc1_creation_makes_no_job_or_one => jc1,
    jc2_claim_makes_one_session_with_one_turn => jc2,
    jc4_completed_turn_completes_its_job_without_model_call => jc4,
    jc7_committed_cancel_wins => jc7_cancel,
    jc7_committed_retry_makes_one_attempt => jc7_retry,
}

/// A daemon that crashes at this point.
async fn daemon(point: &str, way: CrashMode) -> TestDaemon {
    let config = "[permissions]\nallow = [\"Bash\"]";
    let mut daemon = TestDaemon::builder().config(config).build().await;
    daemon.crash_at(point, way);
    daemon.launch().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    daemon
}

fn content(daemon: &TestDaemon) -> Value {
    json!({"prompt": "Do it.", "cwd": daemon.workspace(), "idempotency_key": "k"})
}

/// Starts the daemon again, without a crash point.
async fn restart(daemon: &mut TestDaemon) -> Client {
    daemon.wait_crashed().await;
    daemon.clear_crash_point();
    daemon.launch().await;
    daemon.client("bob").await
}

async fn jobs(client: &Client) -> Vec<Value> {
    client.call("job.list", json!({})).await["jobs"].as_array().expect("jobs").clone()
}

async fn wait(client: &Client, job: &Value) -> Value {
    client.call("job.wait", json!({"job_id": job["job_id"], "timeout_ms": 20_000})).await["job"].clone()
}

/// The sessions of jobs, with the number of their turns.
async fn turns_of_attempts(client: &Client) -> Vec<usize> {
    let sessions =
        client.call("session.list", json!({})).await["sessions"].as_array().expect("sessions").clone();
    let mut turns = Vec::new();
    for session in sessions.iter().filter(|session| session["job_id"].is_string()) {
        let events = client.call("session.events", json!({"session_id": session["session_id"]})).await;
        let events = events["events"].as_array().expect("events").clone();
        turns.push(events.iter().filter(|event| event["type"] == "turn.started").count());
    }
    turns
}

async fn jc1(way: CrashMode) {
    for (point, count) in [("JC1.checked", 0), ("JC1.written", 1)] {
        let mut daemon = daemon(point, way).await;
        let client = daemon.client("alice").await;
        let reply = client.call_or_none("job.create", content(&daemon)).await;
        assert!(reply.is_none(), "{point}: nothing is acknowledged");
        let client = restart(&mut daemon).await;
        assert_eq!(jobs(&client).await.len(), count, "{point}");
        let job = client.call("job.create", content(&daemon)).await["job"].clone();
        assert_eq!(jobs(&client).await.len(), 1, "{point}: the key returns the job");
        assert_eq!(wait(&client, &job).await["state"], "succeeded");
    }
}

async fn jc2(way: CrashMode) {
    for point in ["JC2.chosen", "JC2.claimed", "JC2.session"] {
        let mut daemon = daemon(point, way).await;
        let client = daemon.client("alice").await;
        let _ = client.call_or_none("job.create", content(&daemon)).await;
        let client = restart(&mut daemon).await;
        let job = jobs(&client).await.remove(0);
        let done = wait(&client, &job).await;
        assert_eq!((&done["state"], &done["attempt"]), (&json!("succeeded"), &json!(1)), "{point}");
        assert_eq!(turns_of_attempts(&client).await, [1], "{point}");
        assert_eq!(daemon.models.requests().len(), 1, "{point}");
    }
}

async fn jc4(way: CrashMode) {
    let mut daemon = daemon("JC4.ended", way).await;
    let client = daemon.client("alice").await;
    let _ = client.call_or_none("job.create", content(&daemon)).await;
    let client = restart(&mut daemon).await;
    let job = jobs(&client).await.remove(0);
    let done = wait(&client, &job).await;
    assert_eq!((&done["state"], &done["result"]["text"]), (&json!("succeeded"), &json!("Done.")));
    assert_eq!(turns_of_attempts(&client).await, [1]);
    assert_eq!(daemon.models.requests().len(), 1, "no further model call");
}

async fn jc7_cancel(way: CrashMode) {
    for point in ["JC7.cancelled", "JC7.stopped"] {
        let mut daemon = daemon(point, way).await;
        daemon.models.push(Step::calls([("Bash", json!({"command": "sleep 600"}))]));
        let client = daemon.client("alice").await;
        let job = client.call("job.create", content(&daemon)).await["job"].clone();
        daemon.tool_processes_reach(|count| count > 0).await;
        let cancel = json!({"job_id": job["job_id"], "idempotency_key": "c"});
        assert!(client.call_or_none("job.cancel", cancel.clone()).await.is_none(), "{point}");
        let client = restart(&mut daemon).await;
        let done = wait(&client, &job).await;
        assert_eq!((&done["state"], &done["attempt"]), (&json!("cancelled"), &json!(1)), "{point}");
        daemon.tool_processes_reach(|count| count == 0).await;
        assert_eq!(client.call("job.cancel", cancel).await["job"]["state"], "cancelled", "{point}");
        assert_eq!(daemon.models.requests().len(), 1, "{point}: the work did not go on");
    }
}

async fn jc7_retry(way: CrashMode) {
    let mut daemon = daemon("JC7.retried", way).await;
    daemon.models.push(Step::error(400, "invalid_request_error", "no"));
    let client = daemon.client("alice").await;
    let job = client.call("job.create", content(&daemon)).await["job"].clone();
    assert_eq!(wait(&client, &job).await["state"], "failed");
    let retry = json!({"job_id": job["job_id"], "idempotency_key": "r"});
    assert!(client.call_or_none("job.retry", retry.clone()).await.is_none());
    let client = restart(&mut daemon).await;
    assert_eq!(
        client.call("job.retry", retry).await["job"]["job_id"],
        job["job_id"],
        "the key returns the job"
    );
    let done = wait(&client, &job).await;
    assert_eq!((&done["state"], &done["attempt"]), (&json!("succeeded"), &json!(2)));
    assert_eq!(turns_of_attempts(&client).await, [1, 1]);
}
