//! Messages about jobs to webhooks and commands: signed, tried again, and without secrets.

use base64::Engine as _;
use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::inbox::{Inbox, SECRET};
use crate::support::model_server::Step;
use crate::support::wait::{DEADLINE, poll_until};

async fn create(client: &Client, daemon: &TestDaemon, on_complete: Value) -> Value {
    let content = json!({"prompt": "Geheim prompt.", "cwd": daemon.workspace(), "on_complete": on_complete});
    client.call("job.create", content).await["job"].clone()
}

async fn wait(client: &Client, job: &Value) -> Value {
    let reply = client.call("job.wait", json!({"job_id": job["job_id"], "timeout_ms": 20_000})).await;
    assert_eq!(reply["timed_out"], json!(false), "{reply}");
    reply["job"].clone()
}

/// Waits until all messages about a job have this status. Returns them.
async fn deliveries(client: &Client, job: &Value, status: &str) -> Vec<Value> {
    let deadline = std::time::Instant::now() + DEADLINE;
    loop {
        let found =
            client.call("job.get", json!({"job_id": job["job_id"]})).await["job"]["deliveries"].clone();
        let found = found.as_array().cloned().unwrap_or_default();
        if !found.is_empty() && found.iter().all(|it| it["status"] == status && it["tries"] != 0) {
            return found;
        }
        assert!(std::time::Instant::now() < deadline, "not {status}: {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

async fn events(client: &Client, job: &Value) -> Vec<Value> {
    let reply = client.call("job.events", json!({"job_id": job["job_id"]})).await;
    let events = reply["events"].as_array().expect("events").clone();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], json!(index + 1), "{event}");
    }
    events
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_gets_signed_message_again_until_it_accepts() {
    let inbox = Inbox::start(&[503, 204]);
    let daemon = inbox.daemon("").start().await;
    daemon.models.push(Step::text("Geheim answer."));
    let client = daemon.client("alice").await;
    let job = create(&client, &daemon, json!([{"webhook": "hook"}])).await;
    assert_eq!(wait(&client, &job).await["state"], "succeeded");
    let first = inbox.next();
    let pending = deliveries(&client, &job, "pending").await;
    assert_eq!((&pending[0]["tries"], &pending[0]["error"]), (&json!(1), &json!("it answered 503")));
    let status = client.call("daemon.status", json!({})).await;
    assert_eq!(status["failed_delivery"]["delivery"]["error"], "it answered 503", "{status}");
    let doctor = ctl(&daemon, &["doctor"]).await.stdout();
    assert!(doctor.contains("[jobs.notify.hook]") && doctor.contains("it answered 503"), "{doctor}");
    // The second try follows after five seconds.
    let second = inbox.next();
    let delivered = deliveries(&client, &job, "delivered").await;
    let metrics = client.call("daemon.metrics", json!({})).await;
    assert_eq!(metrics["jobs"]["completed"], json!({"succeeded": 1}), "a try is no end of the job");
    assert_eq!((&delivered[0]["tries"], delivered[0].get("error")), (&json!(2), None));
    assert_eq!(client.call("daemon.status", json!({})).await.get("failed_delivery"), None);

    assert_eq!((first.header("webhook-id"), &first.body), (second.header("webhook-id"), &second.body));
    assert_eq!(first.header("webhook-id"), delivered[0]["webhook_id"]);
    for post in [&first, &second] {
        let text =
            format!("{}.{}.{}", post.header("webhook-id"), post.header("webhook-timestamp"), post.body);
        assert_eq!(post.header("webhook-signature"), format!("v1,{}", signature(&text)), "{}", post.head);
    }
    let message = first.json();
    assert_eq!(message["type"], "job.succeeded");
    assert!(
        message["timestamp"].as_str().is_some_and(|it| it.ends_with('Z') && it.contains('T')),
        "{message}"
    );
    assert_eq!(
        (&message["data"]["job"]["job_id"], &message["data"]["job"]["state"]),
        (&job["job_id"], &json!("succeeded"))
    );
    assert!(!first.body.to_lowercase().contains("geheim"), "{message}");
    let kinds: Vec<Value> = events(&client, &job)
        .await
        .into_iter()
        .filter(|event| event["type"] == "job.delivery")
        .map(|event| json!([event["target"], event["status"], event["tries"]]))
        .collect();
    assert_eq!(kinds, [json!(["hook", "pending", 1]), json!(["hook", "delivered", 2])]);
    let written = daemon.all_written_bytes();
    for secret in [SECRET, "geheim-path", "geheim-secret"] {
        assert!(!contains(&written, secret), "{secret} was written");
    }
}

/// HMAC-SHA256 by hand (RFC 2104), so that the test shares no code with the daemon.
fn signature(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let key = b"geheim-secret-of-a-hook";
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key).for_each(|(one, other)| *one ^= other);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
    base64::engine::general_purpose::STANDARD.encode(outer)
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_and_failed_jobs_tell_those_who_asked_for_it() {
    let inbox = Inbox::start(&[200]);
    let daemon = inbox
        .daemon("include = [\"result\", \"prompt\"]\n[permissions.unattended]\non_timeout = \"pause\"")
        .start()
        .await;
    daemon.models.push(Step::calls([bash("touch it")]));
    daemon.models.push(Step::text("Geheim answer."));
    let client = daemon.client("alice").await;
    let wanted = json!([{"webhook": "hook", "on": ["waiting", "succeeded"]}]);
    let job = create(&client, &daemon, wanted).await;
    let waiting = inbox.next().json();
    assert_eq!(
        (&waiting["type"], &waiting["data"]["job"]["waiting_for"]),
        (&json!("job.waiting"), &json!("permission"))
    );
    assert_eq!(waiting["data"]["prompt"], "Geheim prompt.");
    let listed = client.call("permission.list", json!({})).await;
    let request_id = listed["requests"][0]["request_id"].clone();
    assert!(request_id.is_string(), "{listed}");
    client.call("session.approve", json!({"request_id": request_id, "decision": "allow"})).await;
    assert_eq!(wait(&client, &job).await["state"], "succeeded");
    let done = inbox.next().json();
    assert_eq!(
        (&done["type"], &done["data"]["job"]["result"]["text"]),
        (&json!("job.succeeded"), &json!("Geheim answer."))
    );
    assert_eq!(deliveries(&client, &job, "delivered").await.len(), 2);

    // A cancel is not among the states that this job tells.
    let wanted = json!([{"webhook": "hook", "on": ["failed"]}]);
    let content = json!({"prompt": "x", "cwd": daemon.workspace(), "on_complete": wanted, "delay": "1h"});
    let silent = client.call("job.create", content).await["job"].clone();
    client.call("job.cancel", json!({"job_id": silent["job_id"]})).await;
    let stored = client.call("job.get", json!({"job_id": silent["job_id"]})).await["job"].clone();
    assert_eq!((&stored["state"], stored.get("deliveries")), (&json!("cancelled"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn command_gets_message_on_standard_input_without_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let (message, variables) = (folder.path().join("message"), folder.path().join("variables"));
    let script =
        format!("cat > {0}.new && env > {1} && mv {0}.new {0}", message.display(), variables.display());
    let config = format!("[jobs.notify.desk]\ncommand = [\"sh\", \"-c\", {script:?}]");
    let daemon = TestDaemon::builder().config(&config).environment("MY_API_KEY", "geheim-key").start().await;
    daemon.models.push(Step::text("Done."));
    let client = daemon.client("alice").await;
    let job = create(&client, &daemon, json!([{"command": "desk"}])).await;
    let text = poll_until("the command", || daemon.log(), || std::fs::read_to_string(&message).ok()).await;
    let got: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&got["type"], &got["data"]["job"]["job_id"]), (&json!("job.succeeded"), &job["job_id"]));
    let variables = std::fs::read_to_string(&variables).expect("written");
    assert!(variables.contains("PATH=") && !variables.contains("geheim-key"), "{variables}");
    deliveries(&client, &job, "delivered").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reloaded_table_applies_to_the_next_try() {
    let inbox = Inbox::start(&[200]);
    let daemon = TestDaemon::builder().config("[jobs.notify.hook]\ncommand = [\"false\"]").start().await;
    daemon.models.push(Step::text("Done."));
    let client = daemon.client("alice").await;
    let job = create(&client, &daemon, json!([{"command": "hook"}])).await;
    let pending = deliveries(&client, &job, "pending").await;
    assert!(pending[0]["error"].as_str().is_some_and(|why| why.contains("exit status: 1")), "{pending:?}");
    let secret = daemon.path("hook-secret");
    std::fs::write(&secret, SECRET).expect("written");
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
    let config = std::fs::read_to_string(daemon.path("config.toml")).expect("read");
    let table = format!("url = {:?}\nsecret_file = \"hook-secret\"", inbox.url);
    std::fs::write(daemon.path("config.toml"), config.replace("command = [\"false\"]", &table))
        .expect("written");
    let reloaded = client.call("daemon.reload", json!({})).await;
    assert!(reloaded["changed"].to_string().contains("jobs.notify.hook.url"), "{reloaded}");
    assert_eq!(inbox.next().json()["type"], "job.succeeded");
    deliveries(&client, &job, "delivered").await;
    let listed = client.call("daemon.config", json!({})).await.to_string();
    assert!(listed.contains("jobs.notify.hook.url") && !listed.contains("geheim"), "{listed}");
}
