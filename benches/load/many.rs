//! B6: a thousand sessions that stream in parallel.

use std::time::Duration;

use super::Outcome;
use super::bare;
use super::client::{Client, DeltaTimes};
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::now_micros;

const ROUNDS: usize = 5;
const SESSIONS: usize = 1_000;
/// Several, because one connection can follow a limited number of sessions.
const CLIENTS: usize = 20;
const DELTA_INTERVAL: Duration = Duration::from_millis(50);
const DELTAS: usize = 120;
/// Time in which all sessions stream; it starts with the last model request.
const WINDOW: Duration = Duration::from_secs(3);

pub fn run() -> Outcome<()> {
    let model = ModelServer::start()?;
    model.set_script(Script::Stamped { deltas: DELTAS, every: DELTA_INTERVAL, padding: 0 });
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = daemon.connect()?;
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS / CLIENTS {
            sessions.push(client.create_session(&setup.workspace())?);
        }
        clients.push((client, sessions));
    }
    let bare = Sample::new(&bare::read_many_answers(model.address, SESSIONS, Duration::from_secs(3))?);

    let (mut p99, mut median, mut slowest) = (Sample::default(), Sample::default(), Sample::default());
    let (mut cpu, mut memory) = (Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        model.discard_arrivals();
        let before = daemon.cpu_time()?;
        let mut watching = Vec::new();
        for (mut client, sessions) in clients.drain(..) {
            client.submit_all(&sessions)?;
            watching.push(std::thread::spawn(
                move || -> Result<(Client, Vec<String>, DeltaTimes), String> {
                    let seen = client.collect_deltas(sessions.len()).map_err(|error| error.to_string())?;
                    Ok((client, sessions, seen))
                },
            ));
        }
        for _ in 0..SESSIONS {
            model.wait_for_request()?;
        }
        let from = now_micros();
        let to = from + u64::try_from(WINDOW.as_micros())?;
        let (mut all, mut counted) = (0, Sample::default());
        for watcher in watching {
            let (client, sessions, seen) = watcher.join().map_err(|_| "a client panicked")??;
            all += seen.deltas.len();
            for (sent, us) in seen.deltas {
                if (from..to).contains(&sent) {
                    counted.push(us as f64 / 1e3);
                }
            }
            clients.push((client, sessions));
        }
        if all != SESSIONS * DELTAS {
            return Err(format!("{all} of {} deltas arrived", SESSIONS * DELTAS).into());
        }
        let full = WINDOW.as_secs_f64() / DELTA_INTERVAL.as_secs_f64() * SESSIONS as f64;
        if (counted.len() as f64) < full * 0.9 {
            return Err(
                format!("only {} of {full} deltas were sent while all streamed", counted.len()).into()
            );
        }
        p99.push(counted.quantile(0.99));
        median.push(counted.median());
        slowest.push(counted.max());
        cpu.push(daemon.cpu_time()?.saturating_sub(before).as_secs_f64() * 1e6 / all as f64);
        memory.push(daemon.resident_mb()?);
    }
    daemon.stop()?;
    Figure::new("B6 1,000 sessions at 20/s: p99 of a delta", "ms", &p99)
        .with_reference("ms bare TCP readers, p99", bare.quantile(0.99))
        .with_target(Target::AtMost(50.0))
        .print();
    Figure::new("B6 median of a delta", "ms", &median)
        .with_reference("ms bare TCP readers", bare.median())
        .print();
    Figure::new("B6 slowest delta of a round", "ms", &slowest).print();
    Figure::new("B6 resident memory", "MB", &memory).with_target(Target::AtMost(300.0)).print();
    Figure::new("B6 daemon CPU per delta", "us", &cpu).print();
    Ok(())
}
