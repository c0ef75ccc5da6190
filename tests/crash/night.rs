//! Many nights in a few minutes: a daemon whose clock moves in steps over weeks, across the change to summer time, with
//! three schedules, failing jobs, and SIGKILLs after which it stays dead for hours. Prints what happened.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::job_files::JobFiles;
use super::job_kill_loop::{is_final, jobs_by_id};
use super::kill_loop::Random;
use super::scenario::CrashScenario;
use super::test_clock::TestClock;
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;
use crate::support::wait::{POLL_INTERVAL, with_deadline};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// One step of the clock.
const STEP_MS: i64 = 30 * MINUTE_MS;
/// 2027-03-28T01:00Z: clocks in Berlin go from 02:00 to 03:00.
const CHANGE_MS: i64 = 1_806_195_600_000;
/// For how long the daemon stays dead after each kill.
const DOWN_MS: [i64; 5] = [0, 7 * HOUR_MS, 13 * HOUR_MS, 2 * DAY_MS, 20 * MINUTE_MS];

/// What happened to one schedule.
#[derive(Debug, Default)]
pub struct ScheduleRow {
    pub name: &'static str,
    /// Slots in the time of the run, counted without the daemon's code.
    pub slots: usize,
    pub jobs: usize,
    pub succeeded: usize,
    pub failed: usize,
    /// Jobs that an earlier job of the schedule kept from starting.
    pub skipped: usize,
    /// Attempts beyond the first of each job.
    pub repeated: u64,
    /// Slots without a job, as the jobs after them tell.
    pub missed: i64,
    /// Jobs with the slot of another job.
    pub duplicates: usize,
}

/// Runs a number of days with a number of kills, at most five.
pub async fn run(days: i64, kills: usize, seed: u64) -> Vec<ScheduleRow> {
    println!("{days} days in steps of 30 minutes with {kills} kills, AGENTD_SEED={seed}");
    let mut night = Night::start(days, seed).await;
    let steps = days * DAY_MS / STEP_MS;
    // The kills are spread over the run, the last one in its last third.
    let every = steps / (kills as i64 + 1);
    let mut killed = 0;
    for step in 1..=steps {
        if night.clock.now_ms() >= night.end_ms {
            break;
        }
        night.clock.advance(STEP_MS);
        if killed < kills && step >= every * (killed as i64 + 1) {
            night.kill(DOWN_MS[killed]).await;
            killed += 1;
        }
        night.settle().await;
    }
    assert_eq!(killed, kills, "the run was too short for its kills");
    night.finish().await
}

struct Night {
    scenario: CrashScenario,
    clock: TestClock,
    random: Random,
    client: Client,
    /// Name, id and time of creation of the schedules.
    schedules: Vec<(&'static str, String, i64)>,
    end_ms: i64,
}

impl Night {
    async fn start(days: i64, seed: u64) -> Self {
        let mut clock = TestClock::new();
        let start_ms = CHANGE_MS - (days / 2) * DAY_MS - 13 * HOUR_MS;
        clock.set(start_ms);
        let config = "[jobs]\nconcurrent = 3\n[retry]\nbase_ms = 1\nresume_base_ms = 1";
        let plan = clock.attach(TestDaemon::builder().config(config)).environment("TZ", "UTC");
        let scenario = CrashScenario::start_idle(plan).await;
        let asked = AtomicU64::new(0);
        scenario.daemon.models.set_fallback(move |_| match asked.fetch_add(1, Ordering::Relaxed) % 7 {
            6 => Step::error(400, "invalid_request_error", "this request fails"),
            _ => Step::text("The work of this slot is done."),
        });
        let client = scenario.daemon.client("alice").await;
        let mut schedules = Vec::new();
        let times = [
            ("nightly", json!({"cron": "30 2 * * *", "timezone": "Europe/Berlin"})),
            ("six-hourly", json!({"every": "6h"})),
            ("weekly", json!({"cron": "0 9 * * 1", "timezone": "Europe/Berlin"})),
        ];
        for (name, mut content) in times {
            content["name"] = json!(name);
            content["max_failures"] = json!(0);
            content["job"] = json!({
                "prompt": format!("Do the {name} work."), "cwd": scenario.daemon.workspace(),
                "retry": {"attempts": 2, "backoff": "1m"}, "concurrency": {"key": name},
            });
            let schedule = client.call("schedule.create", content).await["schedule"].clone();
            let id = schedule["schedule_id"].as_str().expect("an id").to_owned();
            schedules.push((name, id, schedule["created_at_ms"].as_i64().expect("a time")));
        }
        let end_ms = start_ms + days * DAY_MS;
        Self { scenario, clock, random: Random(seed), client, schedules, end_ms }
    }

    /// Waits until all slots up to now are handled and their jobs have ended or wait for a retry.
    async fn settle(&self) {
        let work = async {
            loop {
                // A question to the schedules, or about a job that waits, also makes them look at the clock.
                let listed = self.client.call("schedule.list", json!({})).await;
                let schedules = listed["schedules"].as_array().expect("schedules");
                let now_ms = self.clock.now_ms();
                let is_waiting = |it: &Value| it["next_fire_ms"].as_i64().is_some_and(|at| at > now_ms);
                let states = json!({"states": ["queued", "running", "waiting", "retrying"]});
                let open = self.client.call("job.list", states).await;
                let is_later = |job: &Value| {
                    job["state"] == "retrying" && job["run_at_ms"].as_i64().is_some_and(|at| at > now_ms)
                };
                let are_later = open["jobs"].as_array().expect("jobs").iter().all(is_later);
                if schedules.iter().all(is_waiting) && are_later {
                    return;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        with_deadline("the slots to be handled", || self.scenario.daemon.log(), work).await;
    }

    /// Kills the daemon while it may be working on a slot, and starts it some time later.
    async fn kill(&mut self, down_ms: i64) {
        let poke = self.client.send("schedule.list", json!({})).await;
        tokio::time::sleep(Duration::from_micros(self.random.below(30_000))).await;
        self.scenario.daemon.kill().await;
        let _ = poke;
        let day = (self.clock.now_ms() - self.schedules[0].2) / DAY_MS;
        println!("day {day}: killed, and started again {:.1} h later", down_ms as f64 / HOUR_MS as f64);
        self.clock.advance(down_ms);
        self.scenario.restart().await;
        self.client = self.scenario.daemon.client("alice").await;
    }

    async fn finish(mut self) -> Vec<ScheduleRow> {
        let until_ms = self.clock.now_ms();
        for (_, id, _) in &self.schedules {
            let off = json!({"schedule_id": id, "enabled": false});
            self.client.call("schedule.update", off).await;
        }
        // The last jobs that retry become due.
        self.clock.advance(HOUR_MS);
        let client = self.client.clone();
        let over = async {
            loop {
                let all = jobs_by_id(&client).await;
                if all.values().all(|job| is_final(&job["state"])) {
                    return all;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let all = with_deadline("all jobs to be over", || self.scenario.daemon.log(), over).await;
        self.scenario.daemon.models.assert_no_breach();
        let mut rows = Vec::new();
        for (name, id, created_ms) in &self.schedules {
            let jobs: Vec<&Value> = all.values().filter(|job| job["schedule_id"] == id.as_str()).collect();
            rows.push(describe(name, &jobs, &expected_slots(name, *created_ms, until_ms)));
        }
        print_table(&rows);
        self.scenario.daemon.kill().await;
        let journals = self.scenario.check().await;
        JobFiles::read(&self.scenario.database()).await.check(&journals);
        rows
    }
}

fn describe(name: &'static str, jobs: &[&Value], expected: &BTreeSet<i64>) -> ScheduleRow {
    let mut row = ScheduleRow { name, slots: expected.len(), jobs: jobs.len(), ..ScheduleRow::default() };
    let mut slots = BTreeSet::new();
    for job in jobs {
        let slot = job["slot_ms"].as_i64().expect("a slot");
        assert!(expected.contains(&slot), "{name}: no slot is at {slot}");
        row.duplicates += usize::from(!slots.insert(slot));
        row.succeeded += usize::from(job["state"] == "succeeded");
        row.failed += usize::from(job["state"] == "failed");
        row.skipped += usize::from(job["state"] == "skipped");
        row.repeated += job["attempt"].as_u64().unwrap_or(0).saturating_sub(1);
        row.missed += job["missed_slots"].as_i64().unwrap_or(0);
    }
    let last = slots.last().copied().unwrap_or(0);
    let without_job = expected.iter().filter(|slot| **slot < last && !slots.contains(slot)).count();
    assert_eq!(row.missed, without_job as i64, "{name}: missed slots are not told");
    let after_last = expected.iter().filter(|slot| **slot > last).count();
    assert_eq!(after_last, 0, "{name}: the last slots were not handled");
    row
}

/// The slots of a schedule, by hand: Berlin is one hour before UTC until the change and two hours from then on. On the
/// day of the change 02:30 does not exist, so the slot is at the first moment after it.
fn expected_slots(name: &str, created_ms: i64, until_ms: i64) -> BTreeSet<i64> {
    let mut slots = BTreeSet::new();
    if name == "six-hourly" {
        slots.extend((1..).map(|number| created_ms + number * 6 * HOUR_MS).take_while(|at| *at <= until_ms));
        return slots;
    }
    for day in created_ms / DAY_MS..=until_ms / DAY_MS {
        let midnight_ms = day * DAY_MS;
        let is_summer = midnight_ms > CHANGE_MS;
        let is_change = midnight_ms == CHANGE_MS - HOUR_MS;
        let at = match name {
            "nightly" if is_change => midnight_ms + HOUR_MS,
            "nightly" if is_summer => midnight_ms + 30 * MINUTE_MS,
            "nightly" => midnight_ms + 90 * MINUTE_MS,
            // 1970-01-01 was a Thursday.
            _ if (day + 3) % 7 != 0 => continue,
            _ if is_summer => midnight_ms + 7 * HOUR_MS,
            _ => midnight_ms + 8 * HOUR_MS,
        };
        if at > created_ms && at <= until_ms {
            slots.insert(at);
        }
    }
    slots
}

fn print_table(rows: &[ScheduleRow]) {
    println!("schedule   | slots | jobs | succeeded | failed | skipped | repeated | missed | duplicates");
    for row in rows {
        println!(
            "{:<10} | {:>5} | {:>4} | {:>9} | {:>6} | {:>7} | {:>8} | {:>6} | {:>10}",
            row.name,
            row.slots,
            row.jobs,
            row.succeeded,
            row.failed,
            row.skipped,
            row.repeated,
            row.missed,
            row.duplicates
        );
    }
}

#[tokio::test]
async fn four_days_with_two_kills_fire_each_slot_once() {
    let rows = run(4, 2, 1).await;
    assert!(rows.iter().all(|row| row.duplicates == 0 && row.jobs > 0), "{rows:?}");
}
