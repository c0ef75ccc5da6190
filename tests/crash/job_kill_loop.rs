//! Kills the daemon with SIGKILL at random moments while it works on jobs: with retries, schedules, worktrees and
//! cancels. Clients repeat every unacknowledged request with its idempotency key. No job is lost, none has two living
//! attempts, no call runs twice, no slot fires twice, and no worktree is left over.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::invariants::{Journals, appended_once};
use super::job_files::{JobFiles, make_repository};
use super::kill_loop::Random;
use super::scenario::{CrashScenario, bash};
use super::test_clock::TestClock;
use super::tolerant_client::Outcome;
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Request, Step};
use crate::support::wait::{POLL_INTERVAL, with_deadline};

/// Number of jobs of clients that are not over; more are created when some are.
const OPEN_JOBS: usize = 12;
/// Number of rounds until the loop starts a new state folder.
const ROUNDS_PER_DAEMON: u32 = 100;
/// Number of rounds between two checks of the files.
const FILE_CHECK_ROUNDS: u32 = 10;
/// Longest time in which all jobs are over after the last kill.
const DRAIN_TIME: Duration = Duration::from_secs(120);
/// Time between two slots of the schedules.
pub const PERIOD_MS: i64 = 60_000;

/// Counters of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub rounds: u32,
    pub jobs: u64,
    pub jobs_of_schedules: u64,
    pub missed_slots: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub skipped: u64,
    pub attempts: u64,
    pub worktrees: u64,
    pub kept_worktrees: u64,
    pub calls: u64,
    pub unknown: u64,
    pub resumed: u64,
    pub took: Duration,
}

/// Runs this number of rounds.
pub async fn run(rounds: u32, seed: u64) -> Figures {
    println!("kill loop over jobs: {rounds} rounds, AGENTD_SEED={seed}");
    let began = Instant::now();
    let mut random = Random(seed);
    let mut figures = Figures::default();
    while figures.rounds < rounds {
        let of_this_daemon = ROUNDS_PER_DAEMON.min(rounds - figures.rounds);
        let mut folder = JobFolder::start(random.next()).await;
        for round in 1..=of_this_daemon {
            folder.round(round).await;
            figures.rounds += 1;
        }
        folder.finish(&mut figures).await;
        println!("{figures:?}");
    }
    figures.took = began.elapsed();
    figures
}

/// A request that changes something: how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sent {
    #[default]
    No,
    Unanswered,
    Acknowledged,
    /// The job was over.
    Refused,
}

/// A job that a client creates.
struct ClientJob {
    content: Value,
    /// Known when the creation is acknowledged.
    id: Option<String>,
    cancel: Sent,
    retry: Sent,
}

/// A request for one of the jobs.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Create(usize),
    Cancel(usize),
    Retry(usize),
}

/// One state folder with its daemon and its jobs.
struct JobFolder {
    scenario: CrashScenario,
    random: Random,
    clock: TestClock,
    /// Outside of the workspace, so that a line of a removed worktree stays.
    lines: tempfile::TempDir,
    jobs: Vec<ClientJob>,
    schedules: Vec<String>,
}

impl JobFolder {
    async fn start(seed: u64) -> Self {
        let lines = tempfile::tempdir().expect("a folder");
        let clock = TestClock::new();
        let config = format!(
            "[permissions]\nallow = [\"Bash\", \"Write\"]\n[retry]\nbase_ms = 1\nresume_base_ms = 1\n\
             [sandbox]\nwritable = [{:?}]\n[jobs]\nconcurrent = 4",
            lines.path()
        );
        let daemon = clock.attach(TestDaemon::builder().config(&config));
        let scenario = CrashScenario::start_idle(daemon).await;
        make_repository(&scenario.daemon.workspace());
        let (file, count) = (lines.path().join("log.txt"), AtomicU64::new(0));
        scenario.daemon.models.set_fallback(move |request| work(request, &file, &count));
        let mut folder =
            Self { scenario, random: Random(seed), clock, lines, jobs: Vec::new(), schedules: Vec::new() };
        for (name, overlap, prompt) in [("a", "skip", "Please run."), ("b", "queue", "Please flake.")] {
            folder.add_schedule(name, overlap, prompt).await;
        }
        folder
    }

    async fn add_schedule(&mut self, name: &str, overlap: &str, prompt: &str) {
        let content = json!({
            "name": name, "every": "1m", "overlap": overlap, "catch_up": "all", "max_failures": 0,
            "job": {
                "prompt": prompt, "cwd": self.scenario.daemon.workspace(),
                "worktree": name == "b", "concurrency": {"key": format!("schedule {name}")},
            },
        });
        let client = self.scenario.daemon.client("alice").await;
        let created = client.call("schedule.create", content).await;
        self.schedules.push(created["schedule"]["schedule_id"].as_str().expect("an id").to_owned());
    }

    fn fresh_job(&mut self) -> ClientJob {
        let number = self.jobs.len();
        let work = ["speak", "run", "linger", "write", "flake", "break"][self.random.below(6) as usize];
        let mut content = json!({
            "prompt": format!("Please {work}."),
            "title": format!("job {number}"),
            "cwd": self.scenario.daemon.workspace(),
            "idempotency_key": format!("create {number}"),
            "priority": self.random.below(3),
            "concurrency": {"key": format!("key {}", self.random.below(3)), "limit": 2},
        });
        if !self.random.one_in(3) {
            let mode = if self.random.one_in(3) { "continue" } else { "fresh" };
            content["retry"] = json!({"attempts": 3, "backoff": "10ms", "max_backoff": "20ms", "mode": mode});
        }
        if !self.random.one_in(3) {
            let keep = ["changed", "changed", "never", "always"][self.random.below(4) as usize];
            content["worktree"] = json!({ "keep": keep });
        }
        if self.random.one_in(6) {
            content["delay"] = json!("20s");
        }
        ClientJob { content, id: None, cancel: Sent::No, retry: Sent::No }
    }

    /// The daemon is running at the beginning and at the end.
    async fn round(&mut self, round: u32) {
        let client = self.scenario.daemon.anonymous_client().await;
        let asks = self.plan(&jobs_by_id(&client).await);
        let (news, heard) = watch::channel(0_u64);
        let watching = tokio::spawn(count_events(client.clone(), news));
        let requests: Vec<_> = asks.iter().map(|ask| self.request(*ask)).collect();
        let flight = tokio::spawn(async move {
            let sent = requests.into_iter().map(|(method, params)| client.call_or_none(method, params));
            join_all(sent).await
        });
        if self.random.one_in(3) {
            self.clock.advance(PERIOD_MS / 2);
        }
        self.wait_kill_moment(heard).await;
        self.scenario.daemon.kill().await;
        let replies = with_deadline("the clients to notice", || self.scenario.daemon.log(), flight).await;
        for (ask, reply) in asks.into_iter().zip(replies.expect("no client saw anything wrong")) {
            self.note(ask, reply);
        }
        watching.await.expect("no panic");
        self.scenario.note_orphans();
        if round.is_multiple_of(FILE_CHECK_ROUNDS) {
            self.check_files().await;
        }
        if self.random.one_in(3) {
            // Slots pass while the daemon is dead.
            self.clock.advance(PERIOD_MS * (1 + self.random.below(2) as i64));
        }
        self.scenario.restart().await;
        self.scenario.daemon.models.assert_no_breach();
    }

    /// Chooses the requests of a round: all unanswered ones, and some new ones.
    fn plan(&mut self, known: &BTreeMap<String, Value>) -> Vec<Ask> {
        let state = |job: &ClientJob| {
            let id = job.id.as_ref()?;
            Some(known.get(id).unwrap_or_else(|| panic!("{id} is lost"))["state"].clone())
        };
        let is_open = |job: &ClientJob| !state(job).is_some_and(|state| is_final(&state));
        let open: Vec<usize> = (0..self.jobs.len()).filter(|at| is_open(&self.jobs[*at])).collect();
        let failed: Vec<usize> =
            (0..self.jobs.len()).filter(|at| state(&self.jobs[*at]) == Some(json!("failed"))).collect();
        for _ in 0..OPEN_JOBS.saturating_sub(open.len()).min(4) {
            let job = self.fresh_job();
            self.jobs.push(job);
        }
        if !open.is_empty() && self.random.one_in(3) {
            let job = &mut self.jobs[open[self.random.below(open.len() as u64) as usize]];
            if job.cancel == Sent::No && job.id.is_some() {
                job.cancel = Sent::Unanswered;
            }
        }
        if !failed.is_empty() && self.random.one_in(4) {
            let job = &mut self.jobs[failed[self.random.below(failed.len() as u64) as usize]];
            if (job.retry, job.cancel) == (Sent::No, Sent::No) {
                job.retry = Sent::Unanswered;
            }
        }
        let mut asks = Vec::new();
        for (at, job) in self.jobs.iter().enumerate() {
            // An acknowledged creation is repeated now and then; its key returns the same job.
            if job.id.is_none() || self.random.one_in(40) {
                asks.push(Ask::Create(at));
            }
            if job.cancel == Sent::Unanswered {
                asks.push(Ask::Cancel(at));
            }
            if job.retry == Sent::Unanswered {
                asks.push(Ask::Retry(at));
            }
        }
        asks
    }

    fn request(&self, ask: Ask) -> (&'static str, Value) {
        let of = |at: usize, what: &str| json!({"job_id": self.jobs[at].id, "idempotency_key": format!("{what} {at}")});
        match ask {
            Ask::Create(at) => ("job.create", self.jobs[at].content.clone()),
            Ask::Cancel(at) => ("job.cancel", of(at, "cancel")),
            Ask::Retry(at) => ("job.retry", of(at, "retry")),
        }
    }

    /// Notes the answer to a request; none if the daemon died first.
    fn note(&mut self, ask: Ask, reply: Outcome) {
        let Some(reply) = reply else { return };
        let is_late = reply.as_ref().is_err_and(|refusal| refusal.code == -32014);
        match ask {
            Ask::Create(at) => {
                let reply = reply.expect("a job is accepted");
                let id = reply["job"]["job_id"].as_str().expect("an id").to_owned();
                let known = self.jobs[at].id.get_or_insert_with(|| id.clone());
                assert_eq!(*known, id, "the same key, another job");
            }
            Ask::Cancel(at) | Ask::Retry(at) if is_late => {
                let job = &mut self.jobs[at];
                let sent = if matches!(ask, Ask::Cancel(_)) { &mut job.cancel } else { &mut job.retry };
                *sent = Sent::Refused;
            }
            Ask::Cancel(at) => {
                let reply = reply.expect("a cancel is accepted");
                assert_eq!(
                    reply["job"]["state"], "cancelled",
                    "it returns when the work has stopped: {reply}"
                );
                self.jobs[at].cancel = Sent::Acknowledged;
            }
            Ask::Retry(at) => {
                reply.expect("a retry is accepted");
                self.jobs[at].retry = Sent::Acknowledged;
            }
        }
    }

    /// Waits for some events after the start, for a short time, or for both.
    async fn wait_kill_moment(&mut self, mut heard: watch::Receiver<u64>) {
        let events = if self.random.one_in(4) { 0 } else { self.random.below(25) };
        let wait = Duration::from_micros(self.random.below(60_000));
        // The daemon may never send this number of events, so the timeout ends the round.
        let enough = tokio::time::timeout(Duration::from_millis(800), heard.wait_for(|n| *n >= events));
        let _ = enough.await;
        tokio::time::sleep(wait).await;
    }

    /// Checks the files of the dead daemon, as after every crash.
    async fn check_files(&self) -> (JobFiles, Journals) {
        let journals = self.scenario.check().await;
        let mut done: Vec<String> = Vec::new();
        for journal in journals.values() {
            for event in journal.values().filter(|event| event["type"] == "tool.requested") {
                let Some(line) = event["input"]["command"].as_str().and_then(line_of) else { continue };
                let is_completed = |other: &&Value| {
                    let is_end = other["type"] == "tool.completed" && other["call_id"] == event["call_id"];
                    is_end && other["status"] == "completed"
                };
                done.extend(journal.values().find(is_completed).map(|_| line.to_owned()));
            }
        }
        let lines = std::fs::read_to_string(self.lines.path().join("log.txt")).unwrap_or_default();
        appended_once(&lines, done.iter().map(String::as_str));
        let files = JobFiles::read(&self.scenario.database()).await;
        files.check(&journals);
        (files, journals)
    }

    /// Waits until all jobs are over, then checks everything.
    async fn finish(mut self, figures: &mut Figures) {
        let client = self.scenario.daemon.client("dora").await;
        for id in &self.schedules {
            client.call("schedule.update", json!({"schedule_id": id, "enabled": false})).await;
        }
        // Those that are delayed become due.
        self.clock.advance(PERIOD_MS);
        let mut asks = Vec::new();
        for (at, job) in self.jobs.iter().enumerate() {
            asks.push(Ask::Create(at));
            asks.extend((job.cancel == Sent::Unanswered).then_some(Ask::Cancel(at)));
            asks.extend((job.retry == Sent::Unanswered).then_some(Ask::Retry(at)));
        }
        for ask in asks {
            let (method, params) = self.request(ask);
            self.note(ask, client.call_or_none(method, params).await);
        }
        let until = Instant::now() + DRAIN_TIME;
        let all = loop {
            let all = jobs_by_id(&client).await;
            let open: Vec<&Value> = all.values().filter(|job| !is_final(&job["state"])).collect();
            if open.is_empty() {
                break all;
            }
            assert!(Instant::now() < until, "not over: {open:#?}\n{}", self.scenario.daemon.log());
            tokio::time::sleep(POLL_INTERVAL * 20).await;
        };
        for job in &self.jobs {
            let id = job.id.as_ref().expect("every creation was answered");
            let now = all.get(id).unwrap_or_else(|| panic!("{id} is lost"));
            if job.cancel == Sent::Acknowledged {
                assert_eq!(now["state"], "cancelled", "an acknowledged cancel wins: {now}");
            }
            // A cancel may come before the attempt.
            let is_repeated = now["attempt"].as_u64() > Some(1) || now["state"] == "cancelled";
            assert!(job.retry != Sent::Acknowledged || is_repeated, "no attempt follows: {now}");
        }
        let by_clients = all.values().filter(|job| job["schedule_id"].is_null()).count();
        assert_eq!(by_clients, self.jobs.len(), "a key made two jobs");
        self.scenario.daemon.models.assert_no_breach();
        self.scenario.daemon.kill().await;
        let (files, journals) = self.check_files().await;
        files.check_slots(&self.schedules, PERIOD_MS);
        let data = self.scenario.daemon.path("data").canonicalize().expect("a folder").join("agentd");
        let kept = files.check_worktrees(&data.join("worktrees"), &self.scenario.daemon.workspace());
        figures.kept_worktrees += kept;
        count(figures, &all, &files, &journals);
    }
}

fn count(figures: &mut Figures, all: &BTreeMap<String, Value>, files: &JobFiles, journals: &Journals) {
    for job in all.values() {
        figures.jobs += 1;
        figures.jobs_of_schedules += u64::from(job["schedule_id"].is_string());
        figures.missed_slots += job["missed_slots"].as_u64().unwrap_or(0);
        figures.attempts += job["attempt"].as_u64().unwrap_or(0);
        let of_state = match job["state"].as_str() {
            Some("succeeded") => &mut figures.succeeded,
            Some("failed") => &mut figures.failed,
            Some("cancelled") => &mut figures.cancelled,
            _ => &mut figures.skipped,
        };
        *of_state += 1;
    }
    figures.worktrees += files.worktrees.len() as u64;
    for event in journals.values().flat_map(BTreeMap::values) {
        match event["type"].as_str() {
            Some("turn.resumed") => figures.resumed += 1,
            Some("tool.completed") => {
                figures.calls += 1;
                figures.unknown += u64::from(event["status"] == "unknown");
            }
            _ => {}
        }
    }
}

/// Whether a state is a final one.
pub fn is_final(state: &Value) -> bool {
    ["succeeded", "failed", "cancelled", "expired", "skipped"].iter().any(|name| state == *name)
}

/// All jobs, by id.
pub async fn jobs_by_id(client: &Client) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut page = json!({"limit": 500});
    loop {
        let reply = client.call("job.list", page.clone()).await;
        for job in reply["jobs"].as_array().expect("jobs") {
            all.insert(job["job_id"].as_str().expect("an id").to_owned(), job.clone());
        }
        match reply.get("next_cursor") {
            Some(cursor) => page["cursor"] = cursor.clone(),
            None => return all,
        }
    }
}

/// Counts the changes of jobs until the daemon dies.
async fn count_events(client: Client, news: watch::Sender<u64>) {
    let Some(Ok(subscription)) = client.call_or_none("daemon.subscribe", json!({})).await else { return };
    let mut log = Log::new(client, subscription.as_str().expect("an id").to_owned());
    while log.next_or_end().await.is_some() {
        news.send_modify(|count| *count += 1);
    }
}

/// The line that a command of `work` appends to the file.
fn line_of(command: &str) -> Option<&str> {
    command.strip_prefix("echo ")?.split(" >>").next()
}

/// The model's answer to a request. Every command appends its own line.
fn work(request: &Request, file: &Path, lines: &AtomicU64) -> Step {
    let number = lines.fetch_add(1, Ordering::Relaxed);
    let append = |which: &str, more: &str| {
        bash(&format!("echo line{number}{which} >> {}; echo said{number}{more}", file.display()))
    };
    if !request.tool_results().is_empty() {
        return Step::text("That is done.");
    }
    let refused = || Step::error(400, "invalid_request_error", "this request fails");
    let last = request.messages().last().map(|message| message["content"].to_string()).unwrap_or_default();
    let asked = last.rsplit("Please ").next().unwrap_or_default();
    match asked.split('.').next().unwrap_or_default() {
        "run" => Step::calls([append("a", ""), ("LS", json!({"path": "."})), append("b", "")]).say("I run."),
        "write" => {
            let write = json!({"file_path": format!("made{number}.txt"), "content": format!("{number}\n")});
            Step::calls([("Write", write), append("", "")])
        }
        "linger" => Step::calls([append("", "; sleep 0.4")]),
        "flake" if number.is_multiple_of(2) => refused(),
        "break" => refused(),
        _ => Step::text("one two three four five six seven eight").thinking("Well well."),
    }
    .drip(400)
}

#[tokio::test]
async fn random_kills_lose_no_job_and_repeat_nothing() {
    let seed = std::env::var("AGENTD_SEED").ok().and_then(|seed| seed.parse().ok());
    let figures = run(12, seed.unwrap_or_else(|| u64::from(std::process::id()))).await;
    println!("{figures:?}");
    assert!(figures.jobs > 15 && figures.attempts > 15, "the daemon did too little work: {figures:?}");
}
