//! S13: the effect of one noisy session on the others, compared with a healthy session.
//!
//! One daemon with a constant load: twenty sessions that stream without end. One more session, the neighbour, runs in
//! parallel for a short window. The neighbours take turns in an order that changes from cycle to cycle, so that a
//! disturbance of the machine affects all of them. The baseline neighbour runs twice in every cycle; the difference of
//! its halves is the noise of the measurement.
//!
//! Every cycle gives one ratio: the p99 next to the noisy neighbour over the p99 next to the baseline. The figure is
//! the median of all cycles. The ratio of all windows pooled is printed too; a few stalls of the machine change it.

use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::client::{BackgroundClient, Client};
use super::compare::Pool;
use super::daemon::{Daemon, DaemonSetup};
use super::figures::{Figure, Target};
use super::model::{ModelServer, Script};
use super::wire::{Chunks, create_answer, create_bash_call, create_tool_call, now_micros};

/// Enough to detect that a p99 changed by a tenth.
const CYCLES: usize = 120;
const WINDOW: Duration = Duration::from_secs(1);
/// Time between the start of a neighbour and its window, and after its end.
const SETTLE_TIME: Duration = Duration::from_millis(100);
const HEALTHY_SESSIONS: usize = 20;
const DELTA_INTERVAL: Duration = Duration::from_millis(25);
/// More deltas than the model sends during the measurement.
const ENDLESS_DELTAS: usize = 1_000_000;
const FOLLOWERS: usize = 10;
/// Time until the daemon has sent as much as may wait for a subscriber that does not read.
const FILL_TIME: Duration = Duration::from_secs(3);
/// Maximum ratio of the p99 next to a noisy neighbour and next to the baseline.
const MAX_P99_RATIO: f64 = 1.1;
const P99: f64 = 0.99;

/// The session that runs next to the healthy ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    Healthy,
    SilentModel,
    HangingTool,
    FloodingTool,
    /// A tool call about every 25 ms.
    CallingTool,
    /// The same, but the job of each call panics.
    PanickingJob,
    /// A model that writes as fast as the daemon reads.
    FloodingModel,
    /// Much text for ten subscribers that read it.
    Readers,
    /// Much text for ten subscribers that do not read.
    StuckReaders,
}

impl Neighbour {
    fn model(self) -> &'static str {
        match self {
            Neighbour::Healthy => "model",
            Neighbour::SilentModel => "silent",
            Neighbour::HangingTool => "hanging",
            Neighbour::FloodingTool => "flooding",
            Neighbour::CallingTool => "calling",
            Neighbour::PanickingJob => "panicking",
            Neighbour::FloodingModel => "torrent",
            Neighbour::Readers | Neighbour::StuckReaders => "wordy",
        }
    }

    /// The event that shows that its work has started.
    fn start_event(self) -> &'static str {
        match self {
            Neighbour::SilentModel => "turn.started",
            Neighbour::HangingTool
            | Neighbour::FloodingTool
            | Neighbour::CallingTool
            | Neighbour::PanickingJob => "tool.started",
            _ => "message.text_delta",
        }
    }
}

pub fn run() -> Outcome<()> {
    if cfg!(debug_assertions) {
        return run_panicking_job();
    }
    compare_neighbours(Neighbour::Healthy, &[Neighbour::SilentModel, Neighbour::HangingTool], CYCLES)?;
    compare_neighbours(Neighbour::Readers, &[Neighbour::StuckReaders], CYCLES)
}

/// A part of its own, because it takes long.
pub fn run_flooding_model() -> Outcome<()> {
    if cfg!(debug_assertions) {
        return Ok(());
    }
    compare_neighbours(Neighbour::Healthy, &[Neighbour::FloodingModel], CYCLES)
}

/// A part of its own, because it takes long.
pub fn run_flooding_tool() -> Outcome<()> {
    if cfg!(debug_assertions) {
        return Ok(());
    }
    compare_neighbours(Neighbour::Healthy, &[Neighbour::FloodingTool], CYCLES)
}

/// Only a build with crash points can make a job panic, so this part needs one. Such a build is slower for all
/// neighbours alike. Run: `AGENTD_CRASH=tool.Glob:0:panic cargo bench --config
/// profile.release.debug-assertions=true --config profile.bench.debug-assertions=true --bench load -- s13`.
fn run_panicking_job() -> Outcome<()> {
    if std::env::var("AGENTD_CRASH").is_err() {
        return Err(
            "a build with crash points measures jobs that panic: set AGENTD_CRASH=tool.Glob:0:panic".into()
        );
    }
    compare_neighbours(Neighbour::CallingTool, &[Neighbour::PanickingJob], CYCLES)
}

fn compare_neighbours(baseline: Neighbour, noisy: &[Neighbour], cycles: usize) -> Outcome<()> {
    let model = ModelServer::start()?;
    model.set_script(Script::Stamped { deltas: ENDLESS_DELTAS, every: DELTA_INTERVAL, padding: 0 });
    model.set_script_for("silent", Script::Hang);
    model.set_script_for("hanging", Script::Immediate(create_bash_call("sleep 1000")));
    model.set_script_for("flooding", Script::Immediate(create_bash_call("yes")));
    model.set_script_for(
        "calling",
        Script::Delayed(DELTA_INTERVAL, create_tool_call("LS", &json!({"path": "."}))),
    );
    // As much work as a call of the baseline, except the panic. A Bash call would also need a verdict and a sandbox.
    model.set_script_for(
        "panicking",
        Script::Delayed(DELTA_INTERVAL, create_tool_call("Glob", &json!({"pattern": "*"}))),
    );
    // About 100 MB, less than the limit of an answer.
    model.set_script_for("torrent", Script::Immediate(create_answer(800_000, Chunks::Large)));
    // About 1.6 MB per second. Before the first window that is more than may wait for one client.
    let wordy = Script::Stamped { deltas: ENDLESS_DELTAS, every: Duration::from_millis(5), padding: 8_000 };
    model.set_script_for("wordy", wordy);
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;

    let (sender, deltas) = channel();
    let healthy = start_healthy_sessions(&daemon, &setup, sender)?;
    let mut neighbours = vec![baseline, baseline];
    neighbours.extend(noisy);
    let mut fixtures = Vec::new();
    for neighbour in &neighbours {
        fixtures.push(NeighbourFixture::new(&daemon, &setup, *neighbour)?);
    }
    let mut pools = vec![Pool::default(); neighbours.len()];
    let mut used = vec![0.0; neighbours.len()];
    for cycle in 0..cycles {
        // Start with another neighbour in each cycle. Every second cycle runs backwards.
        for turn in 0..neighbours.len() {
            let turn = if cycle % 2 == 0 { turn } else { neighbours.len() - 1 - turn };
            let nth = (turn + cycle / 2) % neighbours.len();
            let (window, cpu) = fixtures[nth].measure_window(&model, &daemon, &setup, &deltas)?;
            pools[nth].push(window);
            used[nth] += cpu / cycles as f64;
        }
    }
    drop(healthy);
    drop(fixtures);
    daemon.stop()?;
    print_figures(&neighbours, &pools, &used, cycles);
    Ok(())
}

fn print_figures(neighbours: &[Neighbour], pools: &[Pool], used: &[f64], cycles: usize) {
    let baseline = neighbours[0];
    let both = pools[0].merge(&pools[1]);
    let noise = pools[1].median_ratio(&pools[0], P99);
    println!("# S13: {} deltas next to each neighbour, in {cycles} windows of {WINDOW:?}", pools[0].len());
    Figure::from_number(&format!("S13 p99 of 20 sessions next to {baseline:?}"), "ms", both.quantile(P99))
        .print();
    Figure::from_ratio(&format!("S13 {baseline:?} over itself: the noise"), "x", noise).print();
    Figure::from_number(&format!("S13 daemon CPU, {baseline:?}"), "%", (used[0] + used[1]) / 2.0).print();
    for (nth, neighbour) in neighbours.iter().enumerate().skip(2) {
        let (ratio, pooled) =
            (pools[nth].median_ratio_between(&pools[0], &pools[1], P99), pools[nth].pooled_ratio(&both, P99));
        Figure::from_number(
            &format!("S13 p99 of 20 sessions next to {neighbour:?}"),
            "ms",
            pools[nth].quantile(P99),
        )
        .with_reference(&format!("ms next to {baseline:?}"), both.quantile(P99))
        .print();
        Figure::from_ratio(&format!("S13 {neighbour:?} over {baseline:?}"), "x", ratio)
            .with_target(Target::IntervalAtMost(MAX_P99_RATIO))
            .print();
        Figure::from_ratio(&format!("S13 {neighbour:?} over {baseline:?}, pooled"), "x", pooled).print();
        Figure::from_number(&format!("S13 median next to {neighbour:?}"), "ms", pools[nth].quantile(0.5))
            .with_reference(&format!("ms next to {baseline:?}"), both.quantile(0.5))
            .print();
        Figure::from_number(&format!("S13 daemon CPU, {neighbour:?}"), "%", used[nth]).print();
    }
}

/// Starts the healthy sessions. Each of their deltas is reported to `sender`: when it was sent, and how long it
/// took, in microseconds.
fn start_healthy_sessions(
    daemon: &Daemon,
    setup: &DaemonSetup,
    sender: Sender<(u64, u64)>,
) -> Outcome<UnixStream> {
    let mut client = daemon.connect()?;
    let mut sessions = Vec::new();
    for _ in 0..HEALTHY_SESSIONS {
        sessions.push(client.create_session(&setup.workspace())?);
    }
    client.submit_all(&sessions)?;
    let (socket, mut client) = client.share_socket()?;
    // The thread ends with the daemon.
    std::thread::spawn(move || client.report_deltas(&sender));
    Ok(socket)
}

/// A neighbour's session with its subscribers.
struct NeighbourFixture {
    neighbour: Neighbour,
    client: BackgroundClient,
    session: String,
    _stuck_readers: Vec<UnixStream>,
}

impl NeighbourFixture {
    fn new(daemon: &Daemon, setup: &DaemonSetup, neighbour: Neighbour) -> Outcome<Self> {
        let mut client = daemon.connect()?;
        let session = client.create_session_with_model(&setup.workspace(), neighbour.model())?;
        let mut stuck = Vec::new();
        for _ in 0..FOLLOWERS {
            let mut follower: Client = daemon.connect()?;
            if matches!(neighbour, Neighbour::Readers | Neighbour::StuckReaders) {
                follower.call("session.subscribe", &json!({"session_id": session}))?;
            }
            match neighbour {
                Neighbour::StuckReaders => stuck.push(follower.into_socket()),
                // The thread ends with the daemon.
                Neighbour::Readers => drop(std::thread::spawn(move || while follower.read_line().is_ok() {})),
                _ => {}
            }
        }
        let mut fixture =
            Self { neighbour, client: client.into_background()?, session, _stuck_readers: stuck };
        if neighbour == Neighbour::StuckReaders {
            fixture.start_turn()?;
            std::thread::park_timeout(FILL_TIME);
            fixture.abort_turn()?;
        }
        Ok(fixture)
    }

    fn start_turn(&mut self) -> Outcome<()> {
        self.client.discard_events();
        self.client.send("session.submit", &json!({"session_id": self.session, "input": "go on"}))?;
        self.client.wait_for_event(self.neighbour.start_event())
    }

    fn abort_turn(&mut self) -> Outcome<()> {
        self.client.send("session.abort", &json!({"session_id": self.session}))?;
        self.client.wait_for_event("turn.completed")
    }

    /// Returns the healthy sessions' latencies in milliseconds while the neighbour works, and the daemon's CPU in
    /// per cent of a core.
    fn measure_window(
        &mut self,
        model: &ModelServer,
        daemon: &Daemon,
        setup: &DaemonSetup,
        deltas: &Receiver<(u64, u64)>,
    ) -> Outcome<(Vec<f64>, f64)> {
        // Use a new session for each window. Each request contains the whole conversation, so thousands of calls would
        // dominate the measurement; a failed call has a longer result than a successful one.
        if matches!(self.neighbour, Neighbour::CallingTool | Neighbour::PanickingJob) {
            *self = Self::new(daemon, setup, self.neighbour)?;
        }
        self.start_turn()?;
        model.pause(SETTLE_TIME);
        let (from, before) = (now_micros(), daemon.cpu_time()?);
        model.pause(WINDOW);
        let (to, after) = (now_micros(), daemon.cpu_time()?);
        self.abort_turn()?;
        model.pause(SETTLE_TIME);
        let is_inside = |(sent, _): &(u64, u64)| (from..to).contains(sent);
        let window: Vec<f64> = deltas.try_iter().filter(is_inside).map(|(_, us)| us as f64 / 1e3).collect();
        let expected = (to - from) as f64 / DELTA_INTERVAL.as_micros() as f64 * HEALTHY_SESSIONS as f64;
        if (window.len() as f64) < expected * 0.9 {
            return Err(format!("{} of {expected:.0} deltas arrived", window.len()).into());
        }
        let cpu = after.saturating_sub(before).as_secs_f64() * 1e8 / (to - from) as f64;
        Ok((window, cpu))
    }
}
