//! S13: what one bad session does to the others, against a healthy session in its place.
//!
//! One daemon, one load: twenty sessions that stream without end. Beside them stands one guest at a
//! time, each for a short window, in an order that turns from cycle to cycle, so that whatever the
//! machine does meets all of them. The sound guest comes twice in every cycle: what its two halves
//! differ by is what this measure cannot tell.
//!
//! Every cycle is a run: its p99 beside the bad guest over its p99 beside the sound one. The figure is the
//! median of all runs. The same of all windows pooled is printed, too; a few stalls of the machine make it.

use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::client::{Client, Host};
use super::compare::Pool;
use super::daemon::{Daemon, Place};
use super::figures::{Figure, Target};
use super::model::{Model, Script};
use super::wire::{Chunks, answer, bash, call, micros};

/// Enough to tell a p99 that moved by a tenth from one that did not.
const CYCLES: usize = 120;
const WINDOW: Duration = Duration::from_secs(1);
/// Between a guest's start and its window, and behind its end.
const SETTLE: Duration = Duration::from_millis(100);
const HEALTHY: usize = 20;
const EVERY: Duration = Duration::from_millis(25);
/// More than are sent while this runs.
const ENDLESS: usize = 1_000_000;
const FOLLOWERS: usize = 10;
/// By then a follower that does not read has got all that may wait for it.
const FILLED: Duration = Duration::from_secs(3);
/// By how much the others' p99 may move.
const MOVED: f64 = 1.1;
const SHARE: f64 = 0.99;

/// What stands in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guest {
    Healthy,
    SilentModel,
    HangingTool,
    FloodingTool,
    /// A call every 25 ms or so.
    Calling,
    /// The same, but each call's job panics.
    PanickingJob,
    /// A model that says all at once, as fast as it is read.
    FloodingModel,
    /// A lot of text that ten clients read.
    Followed,
    /// The same, but they do not read.
    Stuck,
}

impl Guest {
    fn model(self) -> &'static str {
        match self {
            Guest::Healthy => "model",
            Guest::SilentModel => "silent",
            Guest::HangingTool => "hanging",
            Guest::FloodingTool => "flooding",
            Guest::Calling => "calling",
            Guest::PanickingJob => "panicking",
            Guest::FloodingModel => "torrent",
            Guest::Followed | Guest::Stuck => "wordy",
        }
    }

    /// The event by which its work has begun.
    fn begun(self) -> &'static str {
        match self {
            Guest::SilentModel => "turn.started",
            Guest::HangingTool | Guest::FloodingTool | Guest::Calling | Guest::PanickingJob => "tool.started",
            _ => "message.text_delta",
        }
    }
}

pub fn run() -> Outcome<()> {
    if cfg!(feature = "failpoints") {
        return panics();
    }
    compare(Guest::Healthy, &[Guest::SilentModel, Guest::HangingTool], CYCLES)?;
    compare(Guest::Followed, &[Guest::Stuck], CYCLES)
}

/// A part of its own: it takes long.
pub fn torrent() -> Outcome<()> {
    if cfg!(feature = "failpoints") {
        return Ok(());
    }
    compare(Guest::Healthy, &[Guest::FloodingModel], CYCLES)
}

/// Another.
pub fn flood() -> Outcome<()> {
    if cfg!(feature = "failpoints") {
        return Ok(());
    }
    compare(Guest::Healthy, &[Guest::FloodingTool], CYCLES)
}

/// A release has no way to make a job panic, so this part alone runs on a build with crash points, all of it
/// slower in the same way: `AGENTD_CRASH=tool.Glob:0:panic cargo bench --features failpoints,fuzzing --config
/// profile.release.package.agentd.debug-assertions=true --config profile.bench.package.agentd.debug-assertions=true
/// --bench load -- s13`.
fn panics() -> Outcome<()> {
    if std::env::var("AGENTD_CRASH").is_err() {
        return Err("this build is to measure jobs that panic: set AGENTD_CRASH=tool.Glob:0:panic".into());
    }
    compare(Guest::Calling, &[Guest::PanickingJob], CYCLES)
}

fn compare(sound: Guest, bad: &[Guest], cycles: usize) -> Outcome<()> {
    let model = Model::start()?;
    model.play(Script::Stamped { deltas: ENDLESS, every: EVERY, padding: 0 });
    model.play_for("silent", Script::Hang);
    model.play_for("hanging", Script::AtOnce(bash("sleep 1000")));
    model.play_for("flooding", Script::AtOnce(bash("yes")));
    model.play_for("calling", Script::Later(EVERY, call("LS", &json!({"path": "."}))));
    // As much work as the sound guest's call, but for the panic. A Bash would also be judged, and its sandbox made.
    model.play_for("panicking", Script::Later(EVERY, call("Glob", &json!({"pattern": "*"}))));
    // Some 100 MB: less than an answer may have.
    model.play_for("torrent", Script::AtOnce(answer(800_000, Chunks::Large)));
    // Some 1.6 MB a second: more than may wait for one client, before the first window.
    let wordy = Script::Stamped { deltas: ENDLESS, every: Duration::from_millis(5), padding: 8_000 };
    model.play_for("wordy", wordy);
    let place = Place::new(Some(model.address))?;
    let daemon = place.start()?;

    let (tell, told) = channel();
    let healthy = watch(&daemon, &place, tell)?;
    let mut guests = vec![sound, sound];
    guests.extend(bad);
    let mut stands = Vec::new();
    for guest in &guests {
        stands.push(Stand::new(&daemon, &place, *guest)?);
    }
    let mut pools = vec![Pool::default(); guests.len()];
    let mut used = vec![0.0; guests.len()];
    for cycle in 0..cycles {
        // Forwards from another place each time, and every second cycle backwards.
        for turn in 0..guests.len() {
            let turn = if cycle % 2 == 0 { turn } else { guests.len() - 1 - turn };
            let nth = (turn + cycle / 2) % guests.len();
            let (window, cpu) = stands[nth].window(&model, &daemon, &place, &told)?;
            pools[nth].push(window);
            used[nth] += cpu / cycles as f64;
        }
    }
    drop(healthy);
    drop(stands);
    daemon.stop()?;
    tell_of(&guests, &pools, &used, cycles);
    Ok(())
}

fn tell_of(guests: &[Guest], pools: &[Pool], used: &[f64], cycles: usize) {
    let sound = guests[0];
    let both = pools[0].with(&pools[1]);
    let noise = pools[1].typically_over(&pools[0], SHARE);
    println!("# S13: {} deltas beside each guest, in {cycles} windows of {WINDOW:?}", pools[0].len());
    Figure::number(&format!("S13 p99 of 20 sessions beside {sound:?}"), "ms", both.quantile(SHARE)).print();
    Figure::ranged(&format!("S13 {sound:?} over itself: the noise"), "x", noise).print();
    Figure::number(&format!("S13 daemon CPU, {sound:?}"), "%", (used[0] + used[1]) / 2.0).print();
    for (nth, guest) in guests.iter().enumerate().skip(2) {
        let (ratio, pooled) =
            (pools[nth].typically_between(&pools[0], &pools[1], SHARE), pools[nth].over(&both, SHARE));
        Figure::number(&format!("S13 p99 of 20 sessions beside {guest:?}"), "ms", pools[nth].quantile(SHARE))
            .with_reference(&format!("ms beside {sound:?}"), both.quantile(SHARE))
            .print();
        Figure::ranged(&format!("S13 {guest:?} over {sound:?}"), "x", ratio)
            .target(Target::SurelyAtMost(MOVED))
            .print();
        Figure::ranged(&format!("S13 {guest:?} over {sound:?}, pooled"), "x", pooled).print();
        Figure::number(&format!("S13 median beside {guest:?}"), "ms", pools[nth].quantile(0.5))
            .with_reference(&format!("ms beside {sound:?}"), both.quantile(0.5))
            .print();
        Figure::number(&format!("S13 daemon CPU, {guest:?}"), "%", used[nth]).print();
    }
}

/// Starts the healthy sessions. What they stream is told as it comes: when each delta was sent, and how
/// long it took, in microseconds.
fn watch(daemon: &Daemon, place: &Place, tell: Sender<(u64, u64)>) -> Outcome<UnixStream> {
    let mut client = daemon.client()?;
    let mut sessions = Vec::new();
    for _ in 0..HEALTHY {
        sessions.push(client.session(&place.workspace())?);
    }
    client.submit_all(&sessions)?;
    let (socket, mut client) = client.shared()?;
    // Ends with the daemon.
    std::thread::spawn(move || client.tell_stamps(&tell));
    Ok(socket)
}

/// A guest's session and who follows it.
struct Stand {
    guest: Guest,
    host: Host,
    session: String,
    _stuck: Vec<UnixStream>,
}

impl Stand {
    fn new(daemon: &Daemon, place: &Place, guest: Guest) -> Outcome<Self> {
        let mut client = daemon.client()?;
        let session = client.session_with(&place.workspace(), guest.model())?;
        let mut stuck = Vec::new();
        for _ in 0..FOLLOWERS {
            let mut follower: Client = daemon.client()?;
            if matches!(guest, Guest::Followed | Guest::Stuck) {
                follower.call("session.subscribe", &json!({"session_id": session}))?;
            }
            match guest {
                Guest::Stuck => stuck.push(follower.into_socket()),
                // Ends with the daemon.
                Guest::Followed => drop(std::thread::spawn(move || while follower.raw().is_ok() {})),
                _ => {}
            }
        }
        let mut stand = Self { guest, host: client.host()?, session, _stuck: stuck };
        if guest == Guest::Stuck {
            stand.begin()?;
            std::thread::park_timeout(FILLED);
            stand.end()?;
        }
        Ok(stand)
    }

    fn begin(&mut self) -> Outcome<()> {
        self.host.forget();
        self.host.send("session.submit", &json!({"session_id": self.session, "input": "go on"}))?;
        self.host.until(self.guest.begun())
    }

    fn end(&mut self) -> Outcome<()> {
        self.host.send("session.abort", &json!({"session_id": self.session}))?;
        self.host.until("turn.completed")
    }

    /// The healthy sessions' latencies in milliseconds while the guest is at it, and the daemon's share
    /// of a core in per cent.
    fn window(
        &mut self,
        model: &Model,
        daemon: &Daemon,
        place: &Place,
        told: &Receiver<(u64, u64)>,
    ) -> Outcome<(Vec<f64>, f64)> {
        // A conversation of thousands of calls would be what is measured: each request holds all of it, and
        // a failure is longer than a result.
        if matches!(self.guest, Guest::Calling | Guest::PanickingJob) {
            *self = Self::new(daemon, place, self.guest)?;
        }
        self.begin()?;
        model.pause(SETTLE);
        let (from, before) = (micros(), daemon.cpu()?);
        model.pause(WINDOW);
        let (to, after) = (micros(), daemon.cpu()?);
        self.end()?;
        model.pause(SETTLE);
        let is_inside = |(sent, _): &(u64, u64)| (from..to).contains(sent);
        let window: Vec<f64> = told.try_iter().filter(is_inside).map(|(_, us)| us as f64 / 1e3).collect();
        let expected = (to - from) as f64 / EVERY.as_micros() as f64 * HEALTHY as f64;
        if (window.len() as f64) < expected * 0.9 {
            return Err(format!("{} of {expected:.0} deltas came", window.len()).into());
        }
        let cpu = after.saturating_sub(before).as_secs_f64() * 1e8 / (to - from) as f64;
        Ok((window, cpu))
    }
}
