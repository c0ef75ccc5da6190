//! B4: time from the model's byte to the client's event, at 100 deltas per second.

use std::time::Duration;

use serde_json::json;

use super::Outcome;
use super::bare;
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::DELTA_DIGITS;

const ROUNDS: usize = 5;
const DELTAS: usize = 100;
const DELTA_INTERVAL: Duration = Duration::from_millis(10);

pub fn run() -> Outcome<()> {
    let model = ModelServer::start()?;
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    let session = client.create_session(&setup.workspace())?;
    client.run_turn(&session)?;
    model.set_script(Script::Paced { deltas: DELTAS, every: DELTA_INTERVAL });

    let (mut events, mut reads, mut cpu) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        let seen = bare::read_deltas(model.address, DELTAS)?;
        for (seen, sent) in seen.iter().zip(model.sent_times()) {
            reads.push_ms(seen.duration_since(sent));
        }
        let before = daemon.cpu_time()?;
        client.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        let mut seen = Vec::with_capacity(DELTAS);
        client.wait_for_turn_end(|event| {
            let now = std::time::Instant::now();
            if event.kind == "message.text_delta" {
                seen.extend((0..event.text.len() / DELTA_DIGITS).map(|_| now));
            }
        })?;
        if seen.len() != DELTAS {
            return Err(format!("{} of {DELTAS} deltas arrived", seen.len()).into());
        }
        for (seen, sent) in seen.iter().zip(model.sent_times()) {
            events.push_ms(seen.duration_since(sent));
        }
        cpu.push(daemon.cpu_time()?.saturating_sub(before).as_secs_f64() * 1e6 / DELTAS as f64);
    }
    daemon.stop()?;
    Figure::new(&format!("B4 model byte to event, {} at 100/s", events.len()), "ms", &events)
        .with_reference("ms bare TCP read", reads.median())
        .with_target(Target::AtMost(0.3))
        .print();
    Figure::from_number("B4 model byte to event, p99", "ms", events.quantile(0.99))
        .with_reference("ms bare TCP read, p99", reads.quantile(0.99))
        .with_target(Target::AtMost(1.0))
        .print();
    Figure::new("B4 daemon CPU per delta at 100/s", "us", &cpu).print();
    Ok(())
}
