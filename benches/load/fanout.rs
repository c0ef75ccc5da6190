//! B7: one session that a hundred clients follow.

use std::time::Instant;

use super::Outcome;
use super::bare;
use super::client::Client;
use super::daemon::Place;
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::blocks;
use serde_json::json;

const RUNS: usize = 5;
const CLIENTS: usize = 100;
/// Each makes three events that cannot be joined.
const BLOCKS: usize = 4_000;
const SPEED: f64 = 500_000.0;

pub fn run() -> Outcome<()> {
    let model = Model::start()?;
    model.play(Script::AtOnce(blocks(BLOCKS)));
    let place = Place::new(Some(model.address))?;
    let daemon = place.start()?;
    let (mut speeds, mut raw, mut cpu, mut alone) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default());
    let mut line_bytes = 0;
    for _ in 0..RUNS {
        // Each run has a session of its own: histories must not grow from run to run.
        let mut owner = daemon.client()?;
        let session = owner.session(&place.workspace())?;
        let began = Instant::now();
        owner.submit_all(std::slice::from_ref(&session))?;
        let events = owner.count_until_idle()?;
        alone.push(events as f64 / began.elapsed().as_secs_f64());
        line_bytes = owner.bytes() / events.max(1);

        let session = owner.session(&place.workspace())?;
        let mut followers = Vec::new();
        for _ in 0..CLIENTS {
            let mut client = daemon.client()?;
            client.call("session.subscribe", &json!({"session_id": session}))?;
            followers.push(client);
        }
        model.forget_arrivals();
        let before = daemon.cpu()?;
        let counting: Vec<_> = followers
            .into_iter()
            .map(|mut client: Client| {
                std::thread::spawn(move || {
                    // It stays until all have counted: that it leaves would be an event.
                    client.count_until_idle().map(|lines| (lines, client)).map_err(|error| error.to_string())
                })
            })
            .collect();
        owner.submit_all(&[session])?;
        let began = model.arrival()?;
        let (mut lines, mut done) = (0, Vec::new());
        for counter in counting {
            let (counted, client) = counter.join().map_err(|_| "a client panicked")??;
            lines += counted;
            done.push(client);
        }
        let took = began.elapsed();
        owner.count_until_idle()?;
        drop(done);
        if lines < CLIENTS * BLOCKS * 2 {
            return Err(format!("only {lines} events came").into());
        }
        speeds.push(lines as f64 / took.as_secs_f64());
        cpu.push(daemon.cpu()?.saturating_sub(before).as_secs_f64() * 1e6 / lines as f64);
        raw.push(bare::fan_out(CLIENTS, BLOCKS * 3, line_bytes)?);
    }
    daemon.stop()?;
    Figure::new("B7 fan-out to 100 clients, events in all", "events/s", &speeds)
        .with_reference("lines/s over bare sockets", raw.median())
        .target(Target::AtLeast(SPEED))
        .print();
    Figure::new("B7 daemon CPU per event and client", "us", &cpu).print();
    Figure::new("B7 the same session with one client", "events/s", &alone).print();
    println!("# B7: a line has {line_bytes} bytes");
    Ok(())
}
