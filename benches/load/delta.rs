//! B4: from the model's byte to the client's event, at a pace people read at.

use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::bare;
use super::daemon::Place;
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::DIGITS;

const ROUNDS: usize = 5;
const DELTAS: usize = 100;
const EVERY: Duration = Duration::from_millis(10);

pub fn run() -> Outcome<()> {
    let model = Model::start()?;
    let place = Place::new(Some(model.address))?;
    let daemon = place.start()?;
    let mut client = daemon.client()?;
    let session = client.session(&place.workspace())?;
    client.turn(&session)?;
    model.play(Script::Paced { deltas: DELTAS, every: EVERY });

    let (mut events, mut reads, mut cpu) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        let seen = bare::read_deltas(model.address, DELTAS)?;
        for (seen, sent) in seen.iter().zip(model.sent()) {
            reads.push_ms(seen.duration_since(sent));
        }
        let before = daemon.cpu()?;
        client.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        let mut seen = Vec::with_capacity(DELTAS);
        client.until_completed(|event| {
            let now = std::time::Instant::now();
            if event.kind == "message.text_delta" {
                seen.extend((0..event.text.len() / DIGITS).map(|_| now));
            }
        })?;
        if seen.len() != DELTAS {
            return Err(format!("{} of {DELTAS} deltas came", seen.len()).into());
        }
        for (seen, sent) in seen.iter().zip(model.sent()) {
            events.push_ms(seen.duration_since(sent));
        }
        cpu.push(daemon.cpu()?.saturating_sub(before).as_secs_f64() * 1e6 / DELTAS as f64);
    }
    daemon.stop()?;
    Figure::new(&format!("B4 model byte to event, {} at 100/s", events.len()), "ms", &events)
        .with_reference("ms bare TCP read", reads.median())
        .target(Target::AtMost(0.3))
        .print();
    Figure::number("B4 model byte to event, p99", "ms", events.quantile(0.99))
        .with_reference("ms bare TCP read, p99", reads.quantile(0.99))
        .target(Target::AtMost(1.0))
        .print();
    Figure::new("B4 daemon CPU per delta at 100/s", "us", &cpu).print();
    Ok(())
}
