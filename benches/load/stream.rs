//! B5: one stream as fast as it goes, from the model's first byte to the completed turn at the client.

use serde_json::json;

use super::Outcome;
use super::bare;
use super::daemon::{Daemon, Place};
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::{Chunks, OTHER_EVENTS, answer, text};

const RUNS: usize = 5;
const SIZES: [usize; 3] = [2_000, 20_000, 200_000];
const SPEED: f64 = 150_000.0;
const CPU_US: f64 = 5.0;

pub fn run() -> Outcome<()> {
    let model = Model::start()?;
    let place = Place::new(Some(model.address))?;
    let daemon = place.start()?;
    let mut seconds = Vec::new();
    for deltas in SIZES {
        let took = measure(&model, &place, &daemon, deltas, Chunks::Large)?;
        seconds.push((deltas as f64, took));
    }
    // What one more delta costs must not grow with the number of deltas there are.
    let more = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0) * 1e6;
    if let [small, middle, large] = seconds[..] {
        Figure::number("B5 time of one more delta, 20,000 to 200,000", "us", more(middle, large))
            .with_reference("us 2,000 to 20,000", more(small, middle))
            .target(Target::AtMost(more(small, middle) * 1.5))
            .print();
    }
    measure(&model, &place, &daemon, 20_000, Chunks::Single)?;
    daemon.stop()
}

/// Prints speed and CPU, returns the median time in seconds.
fn measure(model: &Model, place: &Place, daemon: &Daemon, deltas: usize, chunks: Chunks) -> Outcome<f64> {
    let expected = text(deltas);
    model.play(Script::AtOnce(answer(deltas, chunks)));
    let (mut speeds, mut bare, mut cpu, mut seconds) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let (events, took) = bare::count_events(model.address)?;
        if events != deltas + OTHER_EVENTS {
            return Err(format!("the bare reader counted {events} events").into());
        }
        bare.push(deltas as f64 / took.as_secs_f64());

        let mut client = daemon.client()?;
        let session = client.session(&place.workspace())?;
        model.forget_arrivals();
        let before = daemon.cpu()?;
        client.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        let mut shown = String::with_capacity(expected.len());
        client.until_completed(|event| {
            if event.kind == "message.text_delta" {
                shown.push_str(&event.text);
            }
        })?;
        let took = model.arrival()?.elapsed();
        cpu.push(daemon.cpu()?.saturating_sub(before).as_secs_f64() * 1e6 / deltas as f64);
        if shown != expected {
            return Err(format!("{} of {} bytes of text came, or others", shown.len(), expected.len()).into());
        }
        speeds.push(deltas as f64 / took.as_secs_f64());
        seconds.push(took.as_secs_f64());
    }
    let how = if chunks == Chunks::Single { ", a chunk each" } else { "" };
    // Below this many the turn's own syncs are most of the time.
    let counts = deltas >= 20_000;
    Figure::new(&format!("B5 one stream, {deltas} deltas{how}"), "deltas/s", &speeds)
        .with_reference("bare reader", bare.median())
        .target(if counts { Target::AtLeast(SPEED) } else { Target::Open })
        .print();
    Figure::new(&format!("B5 daemon CPU per delta, {deltas}{how}"), "us", &cpu)
        .target(if counts { Target::AtMost(CPU_US) } else { Target::Open })
        .print();
    Ok(seconds.median())
}
