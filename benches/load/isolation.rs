//! S13: what one bad session does to the others, against a healthy session in its place.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::client::{Client, Seen};
use super::daemon::{Daemon, Place};
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::bash;

const ROUNDS: usize = 7;
const HEALTHY: usize = 20;
const EVERY: Duration = Duration::from_millis(50);
const DELTAS: usize = 60;
const FOLLOWERS: usize = 10;
/// By how much the others' p99 may move.
const MOVED: f64 = 1.1;

/// What stands in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guest {
    Healthy,
    SilentModel,
    HangingTool,
    FloodingTool,
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
            Guest::Followed | Guest::Stuck => "wordy",
        }
    }
}

pub fn run() -> Outcome<()> {
    let model = Model::start()?;
    model.play(Script::Stamped { deltas: DELTAS, every: EVERY, padding: 0 });
    model.play_for("silent", Script::Hang);
    model.play_for("hanging", Script::AtOnce(bash("sleep 1000")));
    model.play_for("flooding", Script::AtOnce(bash("yes")));
    // Some 1.6 MB a second: more than may wait for one client, long before the round is over.
    let wordy = Script::Stamped { deltas: 1_000, every: Duration::from_millis(5), padding: 8_000 };
    model.play_for("wordy", wordy);
    let pairs = [
        (Guest::Healthy, vec![Guest::SilentModel, Guest::HangingTool, Guest::FloodingTool]),
        (Guest::Followed, vec![Guest::Stuck]),
    ];
    for (sound, bad) in pairs {
        let mut base = Sample::default();
        let mut moved: Vec<(Guest, Sample, Sample)> =
            bad.iter().map(|guest| (*guest, Sample::default(), Sample::default())).collect();
        // In turns, so that what changes on the machine meets all of them.
        for _ in 0..ROUNDS {
            base.push(round(&model, sound)?.0);
            for (guest, p99, cpu) in &mut moved {
                let (one, used) = round(&model, *guest)?;
                p99.push(one);
                cpu.push(used);
            }
        }
        for (guest, p99, cpu) in &moved {
            Figure::of(&format!("S13 p99 of 20 sessions beside {guest:?}"), "ms", p99)
                .beside(&format!("ms beside {sound:?}"), base.median())
                .target(Target::AtMost(base.median() * MOVED))
                .print();
            Figure::of(&format!("S13 daemon CPU, {guest:?}"), "%", cpu).print();
        }
    }
    Ok(())
}

/// One daemon, one round: the p99 of the healthy sessions in milliseconds, and the daemon's share of
/// a core in per cent.
fn round(model: &Model, guest: Guest) -> Outcome<(f64, f64)> {
    let place = Place::new(Some(model.address))?;
    let daemon = place.start()?;
    let mut client = daemon.client()?;
    let mut sessions = Vec::new();
    for _ in 0..HEALTHY {
        sessions.push(client.session(&place.workspace())?);
    }
    let mut host = daemon.client()?;
    let visitor = host.session_with(&place.workspace(), guest.model())?;
    let company = company(&daemon, guest, &visitor)?;
    host.submit_all(&[visitor])?;
    // Only what happens beside the guest's work counts.
    match guest {
        Guest::SilentModel => {
            host.until_kind("turn.started")?;
        }
        Guest::HangingTool | Guest::FloodingTool => host.until_kind("tool.started")?,
        _ => host.until_kind("message.text_delta")?,
    }
    let began = std::time::Instant::now();
    let before = daemon.cpu()?;
    client.submit_all(&sessions)?;
    let Seen { deltas, .. } = client.watch(HEALTHY)?;
    let used = daemon.cpu()?.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    if deltas.len() != HEALTHY * DELTAS {
        return Err(format!("{} of {} deltas came", deltas.len(), HEALTHY * DELTAS).into());
    }
    let mut sample = Sample::default();
    deltas.iter().for_each(|(_, us)| sample.push(*us as f64 / 1e3));
    drop(company);
    drop(host);
    daemon.stop()?;
    Ok((sample.quantile(0.99), used))
}

/// Who follows the guest beside its host; kept until the round is over.
fn company(daemon: &Daemon, guest: Guest, session: &str) -> Outcome<Vec<UnixStream>> {
    let mut stuck = Vec::new();
    for _ in 0..FOLLOWERS {
        let mut client: Client = daemon.client()?;
        match guest {
            Guest::Followed => {
                client.call("session.subscribe", &json!({"session_id": session}))?;
                // Ends with the daemon.
                std::thread::spawn(move || while client.raw().is_ok() {});
            }
            Guest::Stuck => {
                client.call("session.subscribe", &json!({"session_id": session}))?;
                stuck.push(client.into_socket());
            }
            _ => {}
        }
    }
    Ok(stuck)
}
