//! Kills the daemon with SIGKILL at random moments in many rounds on one state folder. Several sessions
//! do mixed work for several clients. Each client resumes at its cursor and repeats every
//! unacknowledged request with the same idempotency key. Nothing is lost and nothing is done twice.
//!
//! The moments are random by design; a seed repeats the choices, but not the machine's timing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::client_log::StreamCursor;
use super::invariants::{Journals, appended_once};
use super::scenario::{CrashScenario, bash};
use super::tolerant_client::{AnswerPolicy, CrashTolerantClient};
use crate::support::client::Session;
use crate::support::daemon::{MESSAGE_APIS, TestDaemon};
use crate::support::model_server::{Request, Step};
use crate::support::wait::with_deadline;

/// Number of sessions that work at the same time.
const LANE_COUNT: usize = 4;
/// Number of rounds until the loop starts a new state folder, so that it tests both long and short
/// journals.
const ROUNDS_PER_DAEMON: u32 = 50;
/// Number of rounds between two complete checks of the files.
const FULL_CHECK_ROUNDS: u32 = 10;

/// Counters of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub rounds: u32,
    pub events: u64,
    pub turns: u64,
    pub calls: u64,
    pub unknown: u64,
    pub resumed: u64,
    pub took: Duration,
}

/// Runs this number of rounds.
pub async fn run(rounds: u32, seed: u64) -> Figures {
    println!("kill loop: {rounds} rounds, AGENTD_SEED={seed}");
    let began = Instant::now();
    let mut random = Random(seed);
    let mut figures = Figures::default();
    while figures.rounds < rounds {
        let of_this_daemon = ROUNDS_PER_DAEMON.min(rounds - figures.rounds);
        let api = MESSAGE_APIS[random.below(2) as usize];
        // Every second folder checkpoints continuously, so that many kills hit a checkpoint.
        let has_small_checkpoints = (figures.rounds / ROUNDS_PER_DAEMON).is_multiple_of(2);
        let plan = TestDaemon::builder().api(api).config(CONFIG);
        let plan =
            if has_small_checkpoints { plan.environment("AGENTD_CHECKPOINT_PAGES", "12") } else { plan };
        let mut folder = StateFolder::new(CrashScenario::start_idle(plan).await, random.next()).await;
        for round in 1..=of_this_daemon {
            folder.round(round).await;
            figures.rounds += 1;
        }
        count(&mut figures, &folder.finish_turns().await);
    }
    figures.took = began.elapsed();
    figures
}

const CONFIG: &str = "[permissions]\nallow = [\"Bash\"]\n[retry]\nbase_ms = 1\nresume_base_ms = 1";

fn count(figures: &mut Figures, journals: &Journals) {
    for event in journals.values().flat_map(BTreeMap::values) {
        figures.events += 1;
        match event["type"].as_str() {
            Some("turn.completed") => figures.turns += 1,
            Some("turn.resumed") => figures.resumed += 1,
            Some("tool.completed") => {
                figures.calls += 1;
                figures.unknown += u64::from(event["status"] == "unknown");
            }
            _ => {}
        }
    }
}

/// Pseudo-random numbers that a seed repeats (SplitMix64, Steele, Lea and Flood 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// One state folder with its daemon and its sessions.
struct StateFolder {
    scenario: CrashScenario,
    random: Random,
    lanes: Vec<Lane>,
    next_key: u64,
}

/// One session with its clients.
struct Lane {
    session: String,
    reading: StreamCursor,
    /// Submits by idempotency key, with the turn id if acknowledged. Finished turns are removed.
    submits: BTreeMap<String, (String, Option<String>)>,
}

/// The results that a lane's clients return after a round.
struct LaneResult {
    reading: StreamCursor,
    submits: BTreeMap<String, (String, Option<String>)>,
}

impl StateFolder {
    async fn new(scenario: CrashScenario, seed: u64) -> Self {
        let lines = Arc::new(AtomicU64::new(0));
        scenario.daemon.models.set_fallback(move |request| work(request, &lines));
        let mut folder = Self { scenario, random: Random(seed), lanes: Vec::new(), next_key: 0 };
        for _ in 0..LANE_COUNT {
            let lane = folder.fresh_lane().await;
            folder.lanes.push(lane);
        }
        folder
    }

    async fn fresh_lane(&self) -> Lane {
        let session = self.scenario.session().await.session;
        Lane { session, reading: StreamCursor::default(), submits: BTreeMap::new() }
    }

    /// The daemon is running at the beginning and at the end.
    async fn round(&mut self, round: u32) {
        let (news, heard) = watch::channel(0_u64);
        let news = Arc::new(news);
        let mut flights: Vec<JoinHandle<LaneResult>> = Vec::new();
        for at in 0..self.lanes.len() {
            if self.random.one_in(20) {
                self.lanes[at] = self.fresh_lane().await;
            }
            let lane = std::mem::replace(
                &mut self.lanes[at],
                Lane { session: String::new(), reading: StreamCursor::default(), submits: BTreeMap::new() },
            );
            self.lanes[at].session.clone_from(&lane.session);
            flights.push(self.run_lane(lane, Arc::clone(&news)).await);
        }
        self.wait_kill_moment(heard).await;
        self.scenario.daemon.kill().await;
        for (lane, flight) in self.lanes.iter_mut().zip(flights) {
            let back = with_deadline("the clients to notice", || self.scenario.daemon.log(), flight).await;
            let back = back.expect("no client saw anything wrong");
            (lane.reading, lane.submits) = (back.reading, back.submits);
        }
        self.scenario.note_orphans();
        if round.is_multiple_of(FULL_CHECK_ROUNDS) {
            self.check_files().await;
        }
        self.scenario.restart().await;
        self.scenario.daemon.models.assert_no_breach();
    }

    /// Waits for some events after the start, for a short time, or for both.
    async fn wait_kill_moment(&mut self, mut heard: watch::Receiver<u64>) {
        let events = if self.random.one_in(4) { 0 } else { self.random.below(60) };
        let wait = Duration::from_micros(self.random.below(30_000));
        // The daemon may never send this number of events, so the timeout ends the round.
        let enough = tokio::time::timeout(Duration::from_millis(300), heard.wait_for(|n| *n >= events));
        let _ = enough.await;
        tokio::time::sleep(wait).await;
    }

    /// Runs the clients of one lane until the daemon is dead.
    async fn run_lane(&mut self, mut lane: Lane, news: Arc<watch::Sender<u64>>) -> JoinHandle<LaneResult> {
        let session =
            Session { client: self.scenario.daemon.anonymous_client().await, id: lane.session.clone() };
        let tolerant = self.scenario.tolerant_client(session);
        let other =
            CrashTolerantClient { client: self.scenario.daemon.anonymous_client().await, ..tolerant.clone() };
        let answers = !self.random.one_in(4);
        let races = self.random.one_in(3);
        let aborts = self.random.one_in(5).then(|| Duration::from_micros(self.random.below(20_000)));
        for _ in 0..1 + self.random.below(2) {
            if lane.submits.values().filter(|(_, turn)| turn.is_none()).count() < 4 {
                self.next_key += 1;
                let job = ["speak", "run", "write", "linger", "look"][self.random.below(5) as usize];
                lane.submits.insert(format!("key {}", self.next_key), (format!("Please {job}."), None));
            }
        }
        tokio::spawn(async move {
            let manner = if answers { AnswerPolicy::Answers } else { AnswerPolicy::Watches };
            let flight = tolerant.run_with(std::mem::take(&mut lane.reading), manner, move |_| {
                news.send_modify(|count| *count += 1);
            });
            let racing = races.then(|| other.run(StreamCursor::default(), AnswerPolicy::Answers));
            let aborting = aborts.map(|wait| {
                let other = other.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    other.abort().await;
                })
            });
            for (key, (input, turn)) in &mut lane.submits {
                let Some(reply) = tolerant.submit(input, key).await else { break };
                let reply = reply.expect("a submit is accepted");
                let now = reply["turn_id"].as_str().expect("an id");
                let known = turn.get_or_insert_with(|| now.to_owned());
                assert_eq!(known, now, "the same key, another turn");
            }
            // Keep only a few acknowledged turns for repeated submits; more would not test anything
            // new.
            while lane.submits.len() > 4 {
                let done = lane.submits.iter().find(|(_, (_, turn))| turn.is_some());
                let Some(key) = done.map(|(key, _)| key.clone()) else { break };
                lane.submits.remove(&key);
            }
            let reading = flight.await.expect("the reader saw nothing wrong");
            if let Some(racing) = racing {
                racing.await.expect("the other reader saw nothing wrong");
            }
            if let Some(aborting) = aborting {
                aborting.await.expect("no panic");
            }
            LaneResult { reading, submits: lane.submits }
        })
    }

    /// Checks all files (I1–I5).
    async fn check_files(&self) -> Journals {
        let journals = self.scenario.check().await;
        let mut done: Vec<String> = Vec::new();
        for journal in journals.values() {
            for event in journal.values().filter(|event| event["type"] == "tool.requested") {
                let Some(line) = event["input"]["command"].as_str().and_then(line_of) else { continue };
                let ended = |other: &&Value| {
                    other["type"] == "tool.completed" && other["call_id"] == event["call_id"]
                };
                let status = journal.values().find(ended).map(|ended| ended["status"].clone());
                if status == Some(json!("completed")) {
                    done.push(line.to_owned());
                }
            }
        }
        appended_once(&self.scenario.daemon.read("log.txt"), done.iter().map(String::as_str));
        journals
    }

    /// Finishes all turns, runs one more turn in every session (I6) and checks all files once more.
    async fn finish_turns(mut self) -> Journals {
        let sessions: Vec<String> = self.scenario.client_log.notes().sessions.keys().cloned().collect();
        for id in sessions {
            let session = Session { client: self.scenario.daemon.client("dora").await, id };
            loop {
                let stopped = session.call("abort", json!({})).await["stopped"].clone();
                if stopped == json!([]) {
                    break;
                }
            }
            let mut log = session.follow().await;
            let turn = session.submit("Please speak.").await;
            let ended = log.find("the last turn's end", |event| {
                event["type"] == "turn.completed" && event["turn_id"] == turn.as_str()
            });
            assert_eq!(ended.await["result"]["subtype"], "success", "I6: the session is usable");
        }
        self.scenario.daemon.models.assert_no_breach();
        self.scenario.daemon.kill().await;
        self.check_files().await
    }
}

/// The line that a command of `work` appends to the file.
fn line_of(command: &str) -> Option<&str> {
    command.strip_prefix("echo ")?.split(" >>").next()
}

/// The model's answer to a request. Every command appends its own line.
fn work(request: &Request, lines: &AtomicU64) -> Step {
    let append = |more: &str| {
        let n = lines.fetch_add(1, Ordering::Relaxed);
        bash(&format!("echo line{n} >> log.txt; echo said{n}{more}"))
    };
    if !request.tool_results().is_empty() {
        return Step::text("That is done. What is next?");
    }
    let last = request.messages().last().map(|message| message["content"].to_string()).unwrap_or_default();
    let asked = last.rsplit("Please ").next().unwrap_or_default();
    match asked.split('.').next().unwrap_or_default() {
        "run" => Step::calls([append(""), ("LS", json!({"path": "."})), append("")]).say("I run two."),
        "write" => {
            let n = lines.fetch_add(1, Ordering::Relaxed);
            let write = json!({"file_path": format!("made{n}.txt"), "content": format!("made {n}\n")});
            Step::calls([("Write", write)])
        }
        "linger" => Step::calls([append("; (setsid -f sleep 300); sleep 300")]),
        "look" => {
            let look = || ("LS", json!({"path": "."}));
            Step::calls([look(), look(), look()]).thinking("Let me look around.")
        }
        _ => Step::text("one two three four five six seven eight nine ten eleven twelve")
            .thinking("Well well."),
    }
    .drip(200)
}

#[tokio::test]
async fn two_hundred_random_kills_lose_and_repeat_nothing() {
    let seed = std::env::var("AGENTD_SEED").ok().and_then(|seed| seed.parse().ok());
    let figures = run(200, seed.unwrap_or_else(|| u64::from(std::process::id()))).await;
    println!("{figures:?}");
    assert!(figures.turns > 200 && figures.calls > 100, "the clients did too little work: {figures:?}");
}
