//! The system's clock is set during a turn: durations and limits are those of the time that passed.

use serde_json::json;

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::poll_until;

const HOUR_MS: i64 = 3_600_000;

/// A daemon whose clock a test can set.
async fn daemon_with_clock(config: &str) -> (TestDaemon, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let file = folder.join("offset");
    std::fs::write(&file, "0").expect("written");
    let path = file.to_str().expect("text").to_owned();
    let daemon = TestDaemon::builder().config(config).environment("AGENTD_TEST_CLOCK", &path).start().await;
    (daemon, file)
}

#[tokio::test]
async fn clock_that_jumps_ends_no_turn_and_counts_in_no_duration() {
    let config = "[permissions]\nallow = [\"Bash\"]\n[session.budgets]\nwall_time = \"1h\"";
    for by_ms in [2 * HOUR_MS, -3 * HOUR_MS] {
        let (daemon, clock) = daemon_with_clock(config).await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        let gate = Gate::new();
        let command = "until test -e go; do sleep 0.01; done; echo done";
        daemon.models.push(Step::calls([bash(command)]).say("I wait.").hold_after(1, &gate));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        gate.wait_reached().await;
        gate.open();
        poll_until("the command", || daemon.log(), || seen_running(&daemon)).await;
        std::fs::write(&clock, by_ms.to_string()).expect("written");
        daemon.write("go", "");
        let result = seen.turn_ends("success").await;
        let changed = seen.events_of("clock.changed");
        assert_eq!(changed.len(), 1, "{changed:?}");
        let told = changed[0]["by_ms"].as_i64().expect("a number");
        assert!((told - by_ms).abs() < 60_000, "{told}");
        for duration in ["duration_ms", "model_ms", "tools_ms", "permission_ms"] {
            let ms = result[duration].as_i64().expect("a number");
            assert!((0..HOUR_MS / 2).contains(&ms), "{by_ms}: {duration} is {ms}");
        }
        let of_call = seen.events_of("tool.completed")[0]["duration_ms"].as_i64().expect("a number");
        assert!((0..HOUR_MS / 2).contains(&of_call), "{of_call}");
        assert_eq!(session.view().await["last_turn"]["subtype"], json!("success"));
    }
}

fn seen_running(daemon: &TestDaemon) -> Option<()> {
    (!daemon.tool_processes().is_empty()).then_some(())
}

#[tokio::test]
async fn request_of_unattended_session_outlasts_jump_of_clock() {
    let config = "[permissions.unattended]\ndeadline = \"1h\"\non_timeout = \"fail\"";
    let (daemon, clock) = daemon_with_clock(config).await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"background": true})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch made.txt")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    std::fs::write(&clock, (2 * HOUR_MS).to_string()).expect("written");
    session.allow(&asked).await;
    let result = seen.turn_ends("success").await;
    assert!(result["permission_ms"].as_i64().is_some_and(|ms| ms < HOUR_MS / 2), "{result}");
    assert!(seen.events_of("permission.expired").is_empty());
}
