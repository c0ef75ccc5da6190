//! Schedules over the socket, with a clock that the tests set.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{POLL_INTERVAL, poll_until, with_deadline};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A daemon with a clock that a test can set, in the zone Europe/Berlin.
struct Scene {
    daemon: TestDaemon,
    clock: PathBuf,
    offset_ms: i64,
}

impl Scene {
    async fn start() -> Self {
        Self::with_config("").await
    }

    async fn with_config(config: &str) -> Self {
        let clock = tempfile::tempdir().expect("a folder").keep().join("offset");
        std::fs::write(&clock, "0").expect("written");
        let path = clock.to_str().expect("text").to_owned();
        let builder = TestDaemon::builder().config(config).environment("AGENTD_TEST_CLOCK", &path);
        let daemon = builder.environment("TZ", "Europe/Berlin").start().await;
        Self { daemon, clock, offset_ms: 0 }
    }

    /// Sets the clock.
    fn advance(&mut self, by_ms: i64) {
        self.offset_ms += by_ms;
        // A reader must never see a part of the number.
        let new = self.clock.with_extension("new");
        std::fs::write(&new, self.offset_ms.to_string()).expect("written");
        std::fs::rename(&new, &self.clock).expect("renamed");
    }

    fn content(&self, more: &Value) -> Value {
        let mut schedule = json!({
            "name": "tidy",
            "every": "1h",
            "job": {"prompt": "Tidy up.", "cwd": self.daemon.workspace()},
        });
        let members = schedule.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("members").clone());
        members.retain(|_, value| !value.is_null());
        schedule
    }

    async fn create(&self, client: &Client, more: Value) -> Value {
        client.call("schedule.create", self.content(&more)).await["schedule"].clone()
    }
}

async fn get(client: &Client, schedule: &Value) -> Value {
    client.call("schedule.get", json!({"schedule_id": schedule["schedule_id"]})).await["schedule"].clone()
}

/// The jobs of a schedule, oldest first.
async fn jobs(client: &Client, schedule: &Value) -> Vec<Value> {
    let listed = client.call("job.list", json!({"schedule_id": schedule["schedule_id"]})).await;
    listed["jobs"].as_array().expect("jobs").iter().rev().cloned().collect()
}

/// Waits until the schedule has jobs in these states.
async fn jobs_reach(scene: &Scene, client: &Client, schedule: &Value, states: &[&str]) -> Vec<Value> {
    let work = async {
        loop {
            let jobs = jobs(client, schedule).await;
            if jobs.iter().map(|job| &job["state"]).eq(states) {
                return jobs;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline(&format!("jobs in the states {states:?}"), || scene.daemon.log(), work).await
}

/// Waits until all slots up to this one are handled, and returns the schedule.
async fn handled(scene: &Scene, client: &Client, schedule: &Value, next_fire_ms: i64) -> Value {
    let work = async {
        loop {
            let now = get(client, schedule).await;
            if now["next_fire_ms"] == next_fire_ms {
                return now;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline(&format!("the next slot {next_fire_ms}"), || scene.daemon.log(), work).await
}

fn slots(jobs: &[Value]) -> Vec<i64> {
    jobs.iter().map(|job| job["slot_ms"].as_i64().expect("a slot")).collect()
}

fn created(schedule: &Value) -> i64 {
    schedule["created_at_ms"].as_i64().expect("a time")
}

async fn events(watcher: &Client) -> Log {
    let subscription = watcher.call("daemon.subscribe", json!({})).await;
    Log::new(watcher.clone(), subscription.as_str().expect("an id").to_owned())
}

/// Waits for the event of a schedule.
async fn event(log: &mut Log, kind: &str, schedule: &Value) -> Value {
    let id = &schedule["schedule_id"];
    log.find(kind, |event| event["kind"] == kind && event["schedule"]["schedule_id"] == *id).await
}

#[tokio::test]
async fn slot_makes_one_job_over_restarts() {
    let mut scene = Scene::start().await;
    let client = scene.daemon.client("alice").await;
    let mut log = events(&scene.daemon.client("bob").await).await;
    scene.daemon.models.set_fallback(|_| Step::text("Tidy."));
    let schedule = scene.create(&client, json!({})).await;
    let start = created(&schedule);
    assert_eq!(schedule["next_fire_ms"], start + HOUR_MS, "{schedule}");
    assert_eq!((&schedule["enabled"], &schedule["timezone"]), (&json!(true), &json!("Europe/Berlin")));
    event(&mut log, "schedule.created", &schedule).await;
    scene.advance(HOUR_MS);
    let fired = event(&mut log, "schedule.fired", &schedule).await;
    let jobs = jobs_reach(&scene, &client, &schedule, &["succeeded"]).await;
    assert_eq!(slots(&jobs), [start + HOUR_MS]);
    assert_eq!((&fired["slot_ms"], &fired["job_id"]), (&json!(start + HOUR_MS), &jobs[0]["job_id"]));
    assert!(fired["schedule"]["job"].get("prompt").is_none(), "events leave out texts: {fired}");
    let now = get(&client, &schedule).await;
    let told = (&now["last_slot_ms"], &now["last_job_id"], &now["next_fire_ms"], &now["failures"]);
    assert_eq!(told, (&json!(start + HOUR_MS), &jobs[0]["job_id"], &json!(start + 2 * HOUR_MS), &json!(0)));
    assert_eq!(now["job"]["prompt"], "Tidy up.");
    scene.daemon.crash_and_restart().await;
    let client = scene.daemon.client("alice").await;
    handled(&scene, &client, &schedule, start + 2 * HOUR_MS).await;
    assert_eq!(jobs_reach(&scene, &client, &schedule, &["succeeded"]).await.len(), 1);
    scene.daemon.stop().await;
    scene.advance(HOUR_MS);
    scene.daemon.launch().await;
    let client = scene.daemon.client("alice").await;
    let jobs = jobs_reach(&scene, &client, &schedule, &["succeeded"; 2]).await;
    assert_eq!(slots(&jobs), [start + HOUR_MS, start + 2 * HOUR_MS]);
    assert!(jobs[1].get("missed_slots").is_none(), "{}", jobs[1]);
}

#[tokio::test]
async fn slots_of_three_days_asleep_are_caught_up_as_each_schedule_says() {
    let mut scene = Scene::start().await;
    let client = scene.daemon.client("alice").await;
    scene.daemon.models.set_fallback(|_| Step::text("Tidy."));
    let last = scene.create(&client, json!({})).await;
    let none = scene.create(&client, json!({"catch_up": "none"})).await;
    let all = scene.create(&client, json!({"catch_up": "all"})).await;
    let short = scene.create(&client, json!({"every": "1d", "catch_up_window": "1h"})).await;
    scene.advance(3 * DAY_MS + 30 * MINUTE_MS);
    let caught = jobs_reach(&scene, &client, &last, &["succeeded"]).await;
    assert_eq!(slots(&caught), [created(&last) + 72 * HOUR_MS]);
    assert_eq!(caught[0]["missed_slots"], 71);
    let caught = jobs_reach(&scene, &client, &all, &["succeeded"; 10]).await;
    let expected: Vec<i64> = (63..=72).map(|hour| created(&all) + hour * HOUR_MS).collect();
    assert_eq!(slots(&caught), expected);
    let missed: Vec<&Value> = caught.iter().map(|job| &job["missed_slots"]).collect();
    assert_eq!((missed[0], missed[1]), (&json!(62), &Value::Null));
    // The newest slot of the daily schedule is half an hour old.
    assert_eq!(
        slots(&jobs_reach(&scene, &client, &short, &["succeeded"]).await),
        [created(&short) + 3 * DAY_MS]
    );
    handled(&scene, &client, &none, created(&none) + 73 * HOUR_MS).await;
    assert_eq!(jobs(&client, &none).await, Vec::<Value>::new());
    scene.advance(30 * MINUTE_MS);
    let next = jobs_reach(&scene, &client, &none, &["succeeded"]).await;
    assert_eq!((slots(&next), &next[0]["missed_slots"]), (vec![created(&none) + 73 * HOUR_MS], &json!(72)));
}

#[tokio::test]
async fn clock_that_is_set_fires_each_slot_once_and_in_order() {
    let mut scene = Scene::start().await;
    let client = scene.daemon.client("alice").await;
    scene.daemon.models.set_fallback(|_| Step::text("Tidy."));
    let schedule = scene.create(&client, json!({"every": "30m"})).await;
    let start = created(&schedule);
    let slot = |number: i64| start + number * 30 * MINUTE_MS;
    scene.advance(HOUR_MS);
    jobs_reach(&scene, &client, &schedule, &["succeeded"]).await;
    // One hour back: the slots that were handled do not come again.
    scene.advance(-HOUR_MS);
    scene.daemon.crash_and_restart().await;
    let client = scene.daemon.client("alice").await;
    handled(&scene, &client, &schedule, slot(3)).await;
    scene.advance(HOUR_MS + 30 * MINUTE_MS);
    let jobs = jobs_reach(&scene, &client, &schedule, &["succeeded"; 2]).await;
    assert_eq!(slots(&jobs), [slot(2), slot(3)]);
    assert_eq!(jobs[0]["missed_slots"], 1);
}

#[tokio::test]
async fn local_times_fire_once_when_clocks_change() {
    let mut scene = Scene::start().await;
    let client = scene.daemon.client("alice").await;
    scene.daemon.models.set_fallback(|_| Step::text("Tidy."));
    let now = created(&scene.create(&client, json!({"enabled": false})).await);
    // 2027-03-28T00:30Z: clocks in Berlin go from 02:00 to 03:00 half an hour later.
    let summer = 1_806_193_800_000;
    scene.advance(summer - now);
    let nightly = scene.create(&client, json!({"every": null, "cron": "30 2 * * *"})).await;
    assert_eq!(nightly["next_fire_ms"], summer + 30 * MINUTE_MS, "the first moment after a missing time");
    scene.advance(35 * MINUTE_MS);
    jobs_reach(&scene, &client, &nightly, &["succeeded"]).await;
    // 2027-10-30T23:00Z: clocks go from 03:00 to 02:00 two hours later.
    let winter = 1_824_937_200_000;
    let spent = summer + 35 * MINUTE_MS;
    scene.advance(winter - spent);
    let hourly = scene.create(&client, json!({"every": null, "cron": "0 * * * *"})).await;
    for hours in 1..=3 {
        scene.advance(HOUR_MS);
        jobs_reach(&scene, &client, &hourly, &vec!["succeeded"; hours]).await;
    }
    let first = slots(&jobs(&client, &hourly).await)[0];
    assert_eq!(slots(&jobs(&client, &hourly).await), [first, first + HOUR_MS, first + 2 * HOUR_MS]);
    let of_night: Vec<i64> =
        slots(&jobs(&client, &nightly).await).into_iter().filter(|slot| *slot > winter).collect();
    assert_eq!(of_night, [winter + 90 * MINUTE_MS], "02:30 occurs twice");
}

#[tokio::test]
async fn unfinished_job_skips_queues_or_cancels() {
    let mut scene = Scene::with_config("[jobs]\nconcurrent = 5").await;
    let client = scene.daemon.client("alice").await;
    let mut log = events(&scene.daemon.client("bob").await).await;
    let gate = Gate::new();
    let held = gate.clone();
    scene.daemon.models.set_fallback(move |_| Step::text("Slow.").hold(&held));
    let own_key = |key: &str| json!({"prompt": "Tidy up.", "cwd": scene.daemon.workspace(), "concurrency": {"key": key}});
    let (skip_job, queue_job, cancel_job) = (own_key("s"), own_key("q"), own_key("c"));
    let skip = scene.create(&client, json!({"job": skip_job})).await;
    let queue = scene.create(&client, json!({"overlap": "queue", "job": queue_job})).await;
    let cancel = scene.create(&client, json!({"overlap": "cancel", "job": cancel_job})).await;
    scene.advance(HOUR_MS);
    for schedule in [&skip, &queue, &cancel] {
        jobs_reach(&scene, &client, schedule, &["running"]).await;
    }
    scene.advance(HOUR_MS);
    let skipped = jobs_reach(&scene, &client, &skip, &["running", "skipped"]).await;
    let told = event(&mut log, "schedule.skipped", &skip).await;
    assert_eq!((&told["job_id"], &told["slot_ms"]), (&skipped[1]["job_id"], &skipped[1]["slot_ms"]));
    jobs_reach(&scene, &client, &queue, &["running", "queued"]).await;
    jobs_reach(&scene, &client, &cancel, &["cancelled", "running"]).await;
    scene.advance(HOUR_MS);
    jobs_reach(&scene, &client, &queue, &["running", "queued", "skipped"]).await;
    jobs_reach(&scene, &client, &cancel, &["cancelled", "cancelled", "running"]).await;
    gate.open();
    jobs_reach(&scene, &client, &queue, &["succeeded", "succeeded", "skipped"]).await;
}

#[tokio::test]
async fn schedule_is_disabled_after_failures_in_a_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = folder.path().join("said");
    let command = format!("cat > {0}.new && mv {0}.new {0}", said.display());
    let config = format!("[permissions.unattended]\nnotify_command = [\"sh\", \"-c\", {command:?}]");
    let mut scene = Scene::with_config(&config).await;
    let client = scene.daemon.client("alice").await;
    let mut log = events(&scene.daemon.client("bob").await).await;
    let refused = || Step::error(400, "invalid_request_error", "no");
    let schedule = scene.create(&client, json!({"max_failures": 2})).await;
    scene.daemon.models.push(refused());
    scene.daemon.models.push(Step::text("Well."));
    scene.daemon.models.push(refused());
    scene.daemon.models.push(refused());
    let mut states = Vec::new();
    for (state, failures) in [("failed", 1), ("succeeded", 0), ("failed", 1), ("failed", 2)] {
        scene.advance(HOUR_MS);
        states.push(state);
        jobs_reach(&scene, &client, &schedule, &states).await;
        assert_eq!(get(&client, &schedule).await["failures"], failures, "{states:?}");
    }
    let told = event(&mut log, "schedule.disabled", &schedule).await;
    assert_eq!((&told["schedule"]["enabled"], &told["schedule"]["failures"]), (&json!(false), &json!(2)));
    let text =
        poll_until("the notification", || scene.daemon.log(), || std::fs::read_to_string(&said).ok()).await;
    let notification: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (&notification["type"], &notification["schedule_id"], &notification["last_job_id"]),
        (&json!("schedule.disabled"), &schedule["schedule_id"], &told["schedule"]["last_job_id"])
    );
    assert!(notification["text"].as_str().is_some_and(|text| text.contains("2 failures")), "{notification}");
    let disabled = get(&client, &schedule).await;
    assert!(disabled.get("next_fire_ms").is_none(), "{disabled}");
    assert!(disabled["error"].as_str().is_some_and(|error| error.contains("2 failures")), "{disabled}");
    // A user enables it again. What was due meanwhile is not caught up.
    scene.advance(5 * HOUR_MS);
    let update = json!({"schedule_id": schedule["schedule_id"], "enabled": true});
    let enabled = client.call("schedule.update", update).await["schedule"].clone();
    assert_eq!((&enabled["failures"], enabled.get("error")), (&json!(0), None), "{enabled}");
    assert_eq!(enabled["next_fire_ms"], created(&schedule) + 10 * HOUR_MS);
    scene.daemon.models.push(Step::text("Well."));
    scene.advance(HOUR_MS);
    states.push("succeeded");
    jobs_reach(&scene, &client, &schedule, &states).await;
}

#[tokio::test]
async fn slot_whose_job_is_refused_counts_as_a_failure_and_stops_no_other_schedule() {
    let mut scene = Scene::start().await;
    let client = scene.daemon.client("alice").await;
    let mut log = events(&scene.daemon.client("bob").await).await;
    scene.daemon.models.set_fallback(|_| Step::text("Tidy."));
    std::fs::create_dir(scene.daemon.path("gone")).expect("a folder");
    let job = json!({"prompt": "Tidy up.", "cwd": scene.daemon.path("gone")});
    let bad = scene.create(&client, json!({"job": job, "max_failures": 2})).await;
    let good = scene.create(&client, json!({})).await;
    std::fs::remove_dir(scene.daemon.path("gone")).expect("removed");
    scene.advance(HOUR_MS);
    let told = event(&mut log, "schedule.failed", &bad).await;
    assert!(told["schedule"]["error"].as_str().is_some_and(|error| error.contains("cwd")), "{told}");
    jobs_reach(&scene, &client, &good, &["succeeded"]).await;
    scene.advance(HOUR_MS);
    event(&mut log, "schedule.disabled", &bad).await;
    assert_eq!(get(&client, &bad).await["failures"], 2);
    jobs_reach(&scene, &client, &good, &["succeeded"; 2]).await;
}

#[tokio::test]
async fn bad_content_is_refused_with_the_path_of_the_field() {
    let scene = Scene::start().await;
    let client = scene.daemon.client("alice").await;
    let job = |more: Value| {
        let mut job = json!({"prompt": "a", "cwd": scene.daemon.workspace()});
        job.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
        job
    };
    let cases = [
        (json!({"name": " "}), "name"),
        (json!({"name": null}), "name"),
        (json!({"job": null}), "job"),
        (json!({"job": job(json!({"prompt": " "}))}), "job.prompt"),
        (json!({"job": job(json!({"cwd": "relative"}))}), "job.cwd"),
        (json!({"job": job(json!({"nonsense": 1}))}), "job.nonsense"),
        (json!({"job": job(json!({"run_at_ms": 1_900_000_000_000_i64}))}), "job.run_at_ms"),
        (json!({"job": job(json!({"idempotency_key": "a"}))}), "job.idempotency_key"),
        (json!({"until_ms": i64::MAX}), "until_ms"),
        (json!({"until_ms": i64::MIN}), "until_ms"),
        (json!({"job": job(json!({"model": "unknown/model"}))}), "job.model"),
        (json!({"every": null}), "cron"),
        (json!({"cron": "* * * * *"}), "every"),
        (json!({"every": null, "cron": "* * * *"}), "cron"),
        (json!({"every": null, "cron": "61 * * * *"}), "cron"),
        (json!({"every": null, "cron": "0 0 30 2 *"}), "cron"),
        (json!({"every": null, "cron": "@yearly"}), "cron"),
        (json!({"every": null, "cron": "@daily", "timezone": "Mars/Olympus"}), "timezone"),
        (json!({"timezone": "Europe/Berlin"}), "timezone"),
        (json!({"every": "59s"}), "every"),
        (json!({"every": "often"}), "every"),
        (json!({"jitter": "2h"}), "jitter"),
        (json!({"overlap": "maybe"}), "overlap"),
        (json!({"catch_up": "some"}), "catch_up"),
        (json!({"catch_up_window": "32d"}), "catch_up_window"),
        (json!({"until_ms": 1}), "until_ms"),
        (json!({"max_failures": 1_001}), "max_failures"),
        (json!({"nonsense": 1}), "nonsense"),
    ];
    for (more, path) in cases {
        let refusal = client.refused("schedule.create", scene.content(&more)).await;
        let seen = (refusal.code, refusal.data["path"].as_str());
        assert_eq!(seen, (-32602, Some(path)), "{more}: {refusal:?}");
    }
    let next = [
        (json!({"cron": "* * * *", "count": 1}), "cron"),
        (json!({"cron": "0 0 31 2 *", "count": 1}), "cron"),
        (json!({"cron": "@daily", "timezone": "nowhere", "count": 1}), "timezone"),
        (json!({"cron": "@daily", "count": 0}), "count"),
        (json!({"cron": "@daily", "count": 1_001}), "count"),
    ];
    for (params, path) in next {
        let refusal = client.refused("schedule.next", params.clone()).await;
        assert_eq!(
            (refusal.code, refusal.data["path"].as_str()),
            (-32602, Some(path)),
            "{params}: {refusal:?}"
        );
    }
    let unknown = json!({"schedule_id": "sched_0190f2a4-0000-7000-8000-000000000001"});
    for method in ["schedule.get", "schedule.update", "schedule.delete", "schedule.trigger"] {
        assert_eq!(client.refused(method, unknown.clone()).await.code, -32002, "{method}");
    }
    assert_eq!(client.call("schedule.list", json!({})).await["schedules"], json!([]));
}

#[tokio::test]
async fn schedule_is_changed_triggered_and_deleted_once_per_key() {
    let mut scene = Scene::start().await;
    let client = scene.daemon.client("alice").await;
    scene.daemon.models.set_fallback(|_| Step::text("Tidy."));
    let first = scene.create(&client, json!({"idempotency_key": "k"})).await;
    let again = scene.create(&client, json!({"idempotency_key": "k"})).await;
    assert_eq!(first["schedule_id"], again["schedule_id"]);
    let other =
        client.refused("schedule.create", scene.content(&json!({"idempotency_key": "k", "name": "b"}))).await;
    assert_eq!(other.code, -32010);
    let id = &first["schedule_id"];
    let update =
        json!({"schedule_id": id, "cron": "0 4 * * MON-FRI", "timezone": "asia/kathmandu", "name": "new"});
    let updated = client.call("schedule.update", update).await["schedule"].clone();
    assert_eq!((&updated["cron"], updated.get("every")), (&json!("0 4 * * MON-FRI"), None));
    assert_eq!((&updated["timezone"], &updated["name"]), (&json!("Asia/Kathmandu"), &json!("new")));
    let next = json!({"cron": "0 4 * * MON-FRI", "timezone": "Asia/Kathmandu", "count": 3});
    let times = client.call("schedule.next", next).await["times_ms"].clone();
    assert_eq!(times[0], updated["next_fire_ms"]);
    assert_eq!(times.as_array().map(Vec::len), Some(3));
    let bad = client.refused("schedule.update", json!({"schedule_id": id, "every": "1s"})).await;
    assert_eq!((bad.code, bad.data["path"].as_str()), (-32602, Some("every")));
    assert_eq!(get(&client, &first).await["cron"], "0 4 * * MON-FRI", "a refused change changes nothing");
    for _ in 0..2 {
        client.call("schedule.trigger", json!({"schedule_id": id, "idempotency_key": "t"})).await;
    }
    let jobs = jobs_reach(&scene, &client, &first, &["succeeded"]).await;
    assert!(jobs[0].get("slot_ms").is_none(), "{}", jobs[0]);
    assert_eq!(get(&client, &first).await["last_job_id"], jobs[0]["job_id"]);
    scene.daemon.crash_and_restart().await;
    let client = scene.daemon.client("alice").await;
    let listed = client.call("schedule.list", json!({})).await["schedules"].clone();
    assert_eq!((&listed[0]["name"], listed.as_array().map(Vec::len)), (&json!("new"), Some(1)));
    for _ in 0..2 {
        let params = json!({"schedule_id": id, "idempotency_key": "d"});
        assert_eq!(client.call("schedule.delete", params).await["schedule"]["schedule_id"], *id);
    }
    assert_eq!(client.refused("schedule.get", json!({"schedule_id": id})).await.code, -32002);
    scene.advance(7 * DAY_MS);
    assert_eq!(jobs_reach(&scene, &client, &first, &["succeeded"]).await.len(), 1, "jobs stay");
    let audit = client.call("permission.audit", json!({})).await.to_string();
    for verdict in ["schedule_created", "schedule_updated", "schedule_deleted"] {
        assert!(audit.contains(verdict), "{verdict}: {audit}");
    }
}

/// A crash before and after the row of a slot.
async fn crashed_slot_has_one_job(point: &str, way: CrashMode) {
    let mut scene = Scene::start().await;
    let client = scene.daemon.client("alice").await;
    scene.daemon.models.set_fallback(|_| Step::text("Tidy."));
    let schedule = scene.create(&client, json!({})).await;
    scene.daemon.stop().await;
    scene.advance(HOUR_MS);
    scene.daemon.crash_at(point, way);
    scene.daemon.launch_to_crash();
    scene.daemon.wait_crashed().await;
    scene.daemon.clear_crash_point();
    scene.daemon.launch().await;
    let client = scene.daemon.client("alice").await;
    let jobs = jobs_reach(&scene, &client, &schedule, &["succeeded"]).await;
    assert_eq!(slots(&jobs), [created(&schedule) + HOUR_MS]);
    handled(&scene, &client, &schedule, created(&schedule) + 2 * HOUR_MS).await;
    assert_eq!(jobs_reach(&scene, &client, &schedule, &["succeeded"]).await.len(), 1);
}

#[tokio::test]
async fn slot_that_was_due_at_a_crash_makes_one_job() {
    for way in [CrashMode::Abort, CrashMode::Kill] {
        crashed_slot_has_one_job("JC6.due", way).await;
    }
}

#[tokio::test]
async fn slot_that_was_written_at_a_crash_makes_one_job() {
    for way in [CrashMode::Abort, CrashMode::Kill] {
        crashed_slot_has_one_job("JC6.written", way).await;
    }
}
