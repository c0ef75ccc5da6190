//! B3: time from the submit to the request at the model, from the second turn of a session on.

use std::fs::File;
use std::time::Instant;

use serde_json::json;

use super::Outcome;
use super::bare;
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::{Chunks, create_answer};

const TURNS: usize = 100;

pub fn run() -> Outcome<()> {
    let model = ModelServer::start()?;
    model.set_script(Script::Immediate(create_answer(3, Chunks::Large)));
    let setup = DaemonSetup::new(Some(model.address))?;
    let mut file = File::create(setup.path("synced"))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    let session = client.create_session(&setup.workspace())?;
    // The first turn reads the folder's state and opens the connection to the model.
    client.run_turn(&session)?;
    model.discard_arrivals();

    let (mut submits, mut syncs, mut over) = (Sample::default(), Sample::default(), Sample::default());
    let (mut answered, mut cpu) = (Sample::default(), Sample::default());
    for _ in 0..TURNS {
        let sync = bare::append_page(&mut file)?;
        syncs.push_ms(sync);
        let params = json!({"session_id": session, "input": "go on"});
        let before = daemon.cpu_time()?;
        let began = Instant::now();
        client.send("session.submit", &params)?;
        client.wait_for_turn_end(|_| {})?;
        answered.push_ms(began.elapsed());
        cpu.push_ms(daemon.cpu_time()?.saturating_sub(before));
        let took = model.wait_for_request()?.duration_since(began);
        submits.push_ms(took);
        over.push(took.as_secs_f64() * 1e3 - sync.as_secs_f64() * 1e3);
    }
    daemon.stop()?;
    Figure::new(&format!("B3 submit to model, warm, {} turns", submits.len()), "ms", &submits)
        .with_reference("ms fdatasync of 4 KiB", syncs.median())
        .with_target(Target::AtMost(syncs.median() + 0.7))
        .print();
    Figure::from_number("B3 median less the fdatasync's median", "ms", submits.median() - syncs.median())
        .with_target(Target::AtMost(0.7))
        .print();
    Figure::from_number("B3 minimum less the fdatasync's minimum", "ms", submits.min() - syncs.min()).print();
    Figure::new("B3 submit to turn.completed, 3 deltas", "ms", &answered)
        .with_reference("ms fdatasync of 4 KiB", syncs.median())
        .print();
    Figure::new("B3 daemon CPU of such a turn", "ms", &cpu).print();
    Ok(())
}
