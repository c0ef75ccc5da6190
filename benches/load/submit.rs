//! B3: from the submit to the request at the model, from the second turn of a session on.

use std::fs::File;
use std::time::Instant;

use serde_json::json;

use super::Outcome;
use super::bare;
use super::daemon::Place;
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::{Chunks, answer};

const TURNS: usize = 100;

pub fn run() -> Outcome<()> {
    let model = Model::start()?;
    model.play(Script::AtOnce(answer(3, Chunks::Large)));
    let place = Place::new(Some(model.address))?;
    let mut file = File::create(place.path("synced"))?;
    let daemon = place.start()?;
    let mut client = daemon.client()?;
    let session = client.session(&place.workspace())?;
    // The first turn gathers the folder's facts and connects.
    client.turn(&session)?;
    model.forget_arrivals();

    let (mut submits, mut syncs, mut over) = (Sample::default(), Sample::default(), Sample::default());
    let (mut answered, mut cpu) = (Sample::default(), Sample::default());
    for _ in 0..TURNS {
        let sync = bare::append(&mut file)?;
        syncs.push_ms(sync);
        let params = json!({"session_id": session, "input": "go on"});
        let before = daemon.cpu()?;
        let began = Instant::now();
        client.send("session.submit", &params)?;
        client.until_completed(|_| {})?;
        answered.push_ms(began.elapsed());
        cpu.push_ms(daemon.cpu()?.saturating_sub(before));
        let took = model.arrival()?.duration_since(began);
        submits.push_ms(took);
        over.push(took.as_secs_f64() * 1e3 - sync.as_secs_f64() * 1e3);
    }
    daemon.stop()?;
    Figure::new(&format!("B3 submit to model, warm, {} turns", submits.len()), "ms", &submits)
        .with_reference("ms fdatasync of 4 KiB", syncs.median())
        .target(Target::AtMost(syncs.median() + 0.7))
        .print();
    Figure::number("B3 median less the fdatasync's median", "ms", submits.median() - syncs.median())
        .target(Target::AtMost(0.7))
        .print();
    Figure::number("B3 least less the fdatasync's least", "ms", submits.least() - syncs.least()).print();
    Figure::new("B3 submit to turn.completed, 3 deltas", "ms", &answered)
        .with_reference("ms fdatasync of 4 KiB", syncs.median())
        .print();
    Figure::new("B3 daemon CPU of such a turn", "ms", &cpu).print();
    Ok(())
}
