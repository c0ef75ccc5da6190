//! B7: one session that a hundred clients follow.

use std::time::Instant;

use super::Outcome;
use super::bare;
use super::client::Client;
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::create_block_answer;
use serde_json::json;

const RUNS: usize = 5;
const CLIENTS: usize = 100;
/// Each block gives three events that cannot be merged.
const BLOCKS: usize = 4_000;
const MIN_EVENTS_PER_SECOND: f64 = 500_000.0;

pub fn run() -> Outcome<()> {
    let model = ModelServer::start()?;
    model.set_script(Script::Immediate(create_block_answer(BLOCKS)));
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let (mut speeds, mut raw, mut cpu, mut alone) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default());
    let mut line_bytes = 0;
    for _ in 0..RUNS {
        // Use new sessions in each run, so that the history does not grow from run to run.
        let mut owner = daemon.connect()?;
        let session = owner.create_session(&setup.workspace())?;
        let began = Instant::now();
        owner.submit_all(std::slice::from_ref(&session))?;
        let events = owner.count_lines_until_idle()?;
        alone.push(events as f64 / began.elapsed().as_secs_f64());
        line_bytes = owner.bytes_read() / events.max(1);

        let session = owner.create_session(&setup.workspace())?;
        let mut followers = Vec::new();
        for _ in 0..CLIENTS {
            let mut client = daemon.connect()?;
            client.call("session.subscribe", &json!({"session_id": session}))?;
            followers.push(client);
        }
        model.discard_arrivals();
        let before = daemon.cpu_time()?;
        let counting: Vec<_> = followers
            .into_iter()
            .map(|mut client: Client| {
                std::thread::spawn(move || {
                    // Return the client so that it stays attached: detaching would be an event.
                    client
                        .count_lines_until_idle()
                        .map(|lines| (lines, client))
                        .map_err(|error| error.to_string())
                })
            })
            .collect();
        owner.submit_all(&[session])?;
        let began = model.wait_for_request()?;
        let (mut lines, mut done) = (0, Vec::new());
        for counter in counting {
            let (counted, client) = counter.join().map_err(|_| "a client panicked")??;
            lines += counted;
            done.push(client);
        }
        let took = began.elapsed();
        owner.count_lines_until_idle()?;
        drop(done);
        if lines < CLIENTS * BLOCKS * 2 {
            return Err(format!("only {lines} events arrived").into());
        }
        speeds.push(lines as f64 / took.as_secs_f64());
        cpu.push(daemon.cpu_time()?.saturating_sub(before).as_secs_f64() * 1e6 / lines as f64);
        raw.push(bare::fan_out_lines(CLIENTS, BLOCKS * 3, line_bytes)?);
    }
    daemon.stop()?;
    Figure::new("B7 fan-out to 100 clients, events in all", "events/s", &speeds)
        .with_reference("lines/s over bare sockets", raw.median())
        .with_target(Target::AtLeast(MIN_EVENTS_PER_SECOND))
        .print();
    Figure::new("B7 daemon CPU per event and client", "us", &cpu).print();
    Figure::new("B7 the same session with one client", "events/s", &alone).print();
    println!("# B7: a line has {line_bytes} bytes");
    Ok(())
}
