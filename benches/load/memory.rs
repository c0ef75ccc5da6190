//! B2: memory and CPU of an idle daemon.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::client::Client;
use super::daemon::{Daemon, DaemonSetup};
use super::figures::{Figure, Sample, Target};
use super::model::ModelServer;

const RUNS: usize = 5;
const SESSIONS: usize = 1_000;
const LOADED_SESSIONS: usize = 200;
/// The daemon returns the memory of unloaded sessions within this time.
const RELEASE_TIME: Duration = Duration::from_secs(12);
/// Sessions that one connection follows.
const SESSIONS_PER_CLIENT: usize = 50;
const IDLE_TIME: Duration = Duration::from_secs(2);
/// The daemon releases the memory of its start within this time.
const START_TIME: Duration = Duration::from_millis(1_500);
/// Time between two requests for the number of loaded sessions.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub fn run() -> Outcome<()> {
    let model = ModelServer::start()?;
    let setup = DaemonSetup::new(Some(model.address))?;
    let (mut fresh, mut private) = (Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let daemon = setup.start_daemon()?;
        std::thread::park_timeout(START_TIME);
        fresh.push(daemon.resident_mb()?);
        private.push(daemon.private_mb()?);
        daemon.stop()?;
    }
    Figure::new("B2 resident, 1.5 s after the start", "MB", &fresh).with_target(Target::AtMost(15.0)).print();
    Figure::new("B2 of that private", "MB", &private).print();

    let daemon = setup.start_daemon()?;
    Figure::from_number("B2 CPU while idle", "%", measure_idle_cpu(&daemon)?)
        .with_target(Target::AtMost(0.05))
        .print();
    let mut client = daemon.connect()?;
    for _ in 0..SESSIONS {
        client.call("session.create", &json!({"cwd": setup.workspace()}))?;
    }
    Figure::from_number("B2 resident with 1,000 new sessions, all loaded", "MB", daemon.resident_mb()?)
        .with_reference("MB at start", fresh.median())
        .print();
    let before = daemon.resident_mb()?;
    for _ in 0..LOADED_SESSIONS {
        // Use a new connection for each session, because a connection can follow a limited number of sessions.
        let mut client = daemon.connect()?;
        let session = client.create_session(&setup.workspace())?;
        client.run_turn(&session)?;
    }
    let each = (daemon.resident_mb()? - before) * 1e3 / LOADED_SESSIONS as f64;
    Figure::from_number("B2 a loaded session that had one turn", "kB", each)
        .with_target(Target::AtMost(100.0))
        .print();
    daemon.stop()?;
    measure_unloaded(&model)
}

/// Measures the memory after the same number of sessions, each with one turn, were unloaded.
fn measure_unloaded(model: &ModelServer) -> Outcome<()> {
    let setup = DaemonSetup::new(Some(model.address))?;
    setup.append_config("[limits]\nidle_unload = \"1s\"\n")?;
    let daemon = setup.start_daemon()?;
    for _ in 0..SESSIONS / SESSIONS_PER_CLIENT {
        let mut client = daemon.connect()?;
        for _ in 0..SESSIONS_PER_CLIENT {
            let session = client.create_session(&setup.workspace())?;
            client.run_turn(&session)?;
        }
    }
    let mut client = daemon.connect()?;
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
        std::thread::park_timeout(POLL_INTERVAL);
    }
    std::thread::park_timeout(RELEASE_TIME);
    Figure::from_number("B2 resident with 1,000 parked sessions", "MB", daemon.resident_mb()?)
        .with_target(Target::AtMost(40.0))
        .print();
    Figure::from_number("B2 of that private, parked", "MB", daemon.private_mb()?).print();
    daemon.stop()
}

/// Returns the share of one core in per cent.
fn measure_idle_cpu(daemon: &Daemon) -> Outcome<f64> {
    // The channel stays empty, so `recv_timeout` only waits.
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(START_TIME);
    let before = daemon.cpu_time()?;
    let _ = receiver.recv_timeout(IDLE_TIME);
    Ok(daemon.cpu_time()?.saturating_sub(before).as_secs_f64() / IDLE_TIME.as_secs_f64() * 100.0)
}
