//! B2: what the daemon takes while it does nothing.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::client::Client;
use super::daemon::{Daemon, Place};
use super::figures::{Figure, Sample, Target};
use super::model::Model;

const RUNS: usize = 5;
const SESSIONS: usize = 1_000;
const LOADED: usize = 200;
/// The daemon returns the memory of unloaded sessions within this time.
const RELEASE: Duration = Duration::from_secs(12);
/// Sessions that one connection follows.
const PER_CLIENT: usize = 50;
const IDLE: Duration = Duration::from_secs(2);
/// The daemon releases the memory of its start within this time.
const START: Duration = Duration::from_millis(1_500);
/// What the start set going has ended by then.
const SETTLE: Duration = Duration::from_millis(500);

pub fn run() -> Outcome<()> {
    let model = Model::start()?;
    let place = Place::new(Some(model.address))?;
    let (mut fresh, mut private) = (Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let daemon = place.start()?;
        std::thread::park_timeout(START);
        fresh.push(daemon.resident_mb()?);
        private.push(daemon.private_mb()?);
        daemon.stop()?;
    }
    Figure::new("B2 resident, 1.5 s after the start", "MB", &fresh).target(Target::AtMost(15.0)).print();
    Figure::new("B2 of that no page of a file", "MB", &private).print();

    let daemon = place.start()?;
    Figure::number("B2 CPU while idle", "%", idle(&daemon)?).target(Target::AtMost(0.05)).print();
    let mut client = daemon.client()?;
    for _ in 0..SESSIONS {
        client.call("session.create", &json!({"cwd": place.workspace()}))?;
    }
    Figure::number("B2 resident with 1,000 new sessions, all loaded", "MB", daemon.resident_mb()?)
        .with_reference("MB at start", fresh.median())
        .print();
    let before = daemon.resident_mb()?;
    for _ in 0..LOADED {
        // A connection of its own: one may follow only so many, and this one leaves again.
        let mut client = daemon.client()?;
        let session = client.session(&place.workspace())?;
        client.turn(&session)?;
    }
    let each = (daemon.resident_mb()? - before) * 1e3 / LOADED as f64;
    Figure::number("B2 a loaded session that had one turn", "kB", each).target(Target::AtMost(100.0)).print();
    daemon.stop()?;
    unloaded(&model)
}

/// The same number of sessions, each with one turn, after all of them were unloaded.
fn unloaded(model: &Model) -> Outcome<()> {
    let place = Place::new(Some(model.address))?;
    place.configure("[limits]\nidle_unload = \"1s\"\n")?;
    let daemon = place.start()?;
    for _ in 0..SESSIONS / PER_CLIENT {
        let mut client = daemon.client()?;
        for _ in 0..PER_CLIENT {
            let session = client.session(&place.workspace())?;
            client.turn(&session)?;
        }
    }
    let mut client = daemon.client()?;
    let loaded = |client: &mut Client| -> Outcome<u64> {
        let status = client.call("daemon.status", &json!({}))?;
        status["loaded_sessions"]
            .as_u64()
            .ok_or_else(|| format!("no number of loaded sessions: {status}").into())
    };
    for _ in 0..60 {
        if loaded(&mut client)? == 0 {
            break;
        }
        std::thread::park_timeout(SETTLE);
    }
    std::thread::park_timeout(RELEASE);
    Figure::number("B2 resident with 1,000 parked sessions", "MB", daemon.resident_mb()?)
        .target(Target::AtMost(40.0))
        .print();
    Figure::number("B2 of that no page of a file, parked", "MB", daemon.private_mb()?).print();
    daemon.stop()
}

/// Share of one core in per cent.
fn idle(daemon: &Daemon) -> Outcome<f64> {
    // Nobody sends: this waits for the time to pass.
    let (_nobody, silence) = mpsc::channel::<()>();
    let _ = silence.recv_timeout(START);
    let before = daemon.cpu()?;
    let _ = silence.recv_timeout(IDLE);
    Ok(daemon.cpu()?.saturating_sub(before).as_secs_f64() / IDLE.as_secs_f64() * 100.0)
}
