//! JC5: a message about a job is owed, or was sent and is not noted yet.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::daemon::CrashMode;
use crate::support::inbox::{Inbox, Post};
use crate::support::model_server::Step;
use crate::support::wait::DEADLINE;

/// One test for each crash mode. The inbox blocks, so they need several threads.
mod daemon_aborts_itself {
    #[tokio::test(flavor = "multi_thread")]
    async fn jc5_message_arrives_with_the_same_id() {
        super::jc5(crate::support::daemon::CrashMode::Abort).await;
    }
}
mod daemon_is_killed {
    #[tokio::test(flavor = "multi_thread")]
    async fn jc5_message_arrives_with_the_same_id() {
        super::jc5(crate::support::daemon::CrashMode::Kill).await;
    }
}

async fn jc5(way: CrashMode) {
    for (point, posts_before) in [("JC5.owed", 0), ("JC5.sent", 1)] {
        let inbox = Inbox::start(&[200]);
        let mut daemon = inbox.daemon("").build().await;
        daemon.models.set_fallback(|_| Step::text("Done."));
        daemon.crash_at(point, way);
        daemon.launch().await;
        let client = daemon.client("alice").await;
        let content =
            json!({"prompt": "Do it.", "cwd": daemon.workspace(), "on_complete": [{"webhook": "hook"}]});
        let job = client.call("job.create", content).await["job"].clone();
        daemon.wait_crashed().await;
        let before: Vec<Post> = (0..posts_before).map(|_| inbox.next()).collect();
        daemon.clear_crash_point();
        daemon.launch().await;
        let client = daemon.client("bob").await;
        let again = inbox.next();
        let done = delivered(&client, &job).await;
        assert_eq!(done["state"], "succeeded", "{point}");
        let deliveries = done["deliveries"].as_array().expect("messages");
        assert_eq!(deliveries.len(), 1, "{point}: {deliveries:?}");
        assert_eq!(again.header("webhook-id"), deliveries[0]["webhook_id"], "{point}");
        for post in before {
            let (first, second) = (post.header("webhook-id"), again.header("webhook-id"));
            assert_eq!((first, &post.body), (second, &again.body), "{point}");
        }
        assert_eq!(daemon.models.requests().len(), 1, "{point}: the turn ran once");
    }
}

/// The job once its message is delivered.
async fn delivered(client: &Client, job: &Value) -> Value {
    let deadline = std::time::Instant::now() + DEADLINE;
    loop {
        let now = client.call("job.get", json!({"job_id": job["job_id"]})).await["job"].clone();
        if now["deliveries"][0]["status"] == "delivered" {
            return now;
        }
        assert!(std::time::Instant::now() < deadline, "not delivered: {now}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
