//! B5: one stream at full speed, from the arrival of the request at the model to the completed turn at the client.

use serde_json::json;

use super::Outcome;
use super::bare;
use super::daemon::{Daemon, DaemonSetup};
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::{Chunks, OTHER_EVENTS, answer_text, create_answer};

const RUNS: usize = 5;
const DELTA_COUNTS: [usize; 3] = [2_000, 20_000, 200_000];
const MIN_DELTAS_PER_SECOND: f64 = 150_000.0;
const MAX_CPU_US: f64 = 5.0;

pub fn run() -> Outcome<()> {
    let model = ModelServer::start()?;
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let mut seconds = Vec::new();
    for deltas in DELTA_COUNTS {
        let took = measure(&model, &setup, &daemon, deltas, Chunks::Large)?;
        seconds.push((deltas as f64, took));
    }
    // The time of one more delta must not grow with the number of deltas.
    let added_us = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0) * 1e6;
    if let [small, middle, large] = seconds[..] {
        Figure::from_number("B5 time of one more delta, 20,000 to 200,000", "us", added_us(middle, large))
            .with_reference("us 2,000 to 20,000", added_us(small, middle))
            .with_target(Target::AtMost(added_us(small, middle) * 1.5))
            .print();
    }
    measure(&model, &setup, &daemon, 20_000, Chunks::Single)?;
    daemon.stop()
}

/// Prints speed and CPU. Returns the median time in seconds.
fn measure(
    model: &ModelServer,
    setup: &DaemonSetup,
    daemon: &Daemon,
    deltas: usize,
    chunks: Chunks,
) -> Outcome<f64> {
    let expected = answer_text(deltas);
    model.set_script(Script::Immediate(create_answer(deltas, chunks)));
    let (mut speeds, mut bare, mut cpu, mut seconds) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let (events, took) = bare::count_events(model.address)?;
        if events != deltas + OTHER_EVENTS {
            return Err(format!("the bare reader counted {events} events").into());
        }
        bare.push(deltas as f64 / took.as_secs_f64());

        let mut client = daemon.connect()?;
        let session = client.create_session(&setup.workspace())?;
        model.discard_arrivals();
        let before = daemon.cpu_time()?;
        client.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        let mut shown = String::with_capacity(expected.len());
        client.wait_for_turn_end(|event| {
            if event.kind == "message.text_delta" {
                shown.push_str(&event.text);
            }
        })?;
        let took = model.wait_for_request()?.elapsed();
        cpu.push(daemon.cpu_time()?.saturating_sub(before).as_secs_f64() * 1e6 / deltas as f64);
        if shown != expected {
            return Err(format!(
                "{} of {} bytes of text arrived, or different ones",
                shown.len(),
                expected.len()
            )
            .into());
        }
        speeds.push(deltas as f64 / took.as_secs_f64());
        seconds.push(took.as_secs_f64());
    }
    let suffix = if chunks == Chunks::Single { ", a chunk each" } else { "" };
    // In shorter answers the syncs of the turn take most of the time.
    let is_judged = deltas >= 20_000;
    Figure::new(&format!("B5 one stream, {deltas} deltas{suffix}"), "deltas/s", &speeds)
        .with_reference("bare reader", bare.median())
        .with_target(if is_judged { Target::AtLeast(MIN_DELTAS_PER_SECOND) } else { Target::None })
        .print();
    Figure::new(&format!("B5 daemon CPU per delta, {deltas}{suffix}"), "us", &cpu)
        .with_target(if is_judged { Target::AtMost(MAX_CPU_US) } else { Target::None })
        .print();
    Ok(seconds.median())
}
