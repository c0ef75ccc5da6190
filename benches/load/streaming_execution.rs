//! The time that streaming execution saves: tools start while the answer that requests them is still written.
//!
//! One answer requests three slow commands and ends with text. The model writes each part for as long as a command
//! runs. The same turn is measured with the switch `streaming_execution` of `[session.ablation]`, in alternation.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Outcome;
use super::client::Client;
use super::daemon::Place;
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::{Chunks, answer, calls_in_pieces};

const ROUNDS: usize = 7;
/// Time for which the model writes one part of its answer.
const PAUSE: Duration = Duration::from_millis(400);
/// Run time of one command, in seconds.
const COMMAND_SECONDS: f64 = 0.4;

pub fn run() -> Outcome<()> {
    let model = Model::start()?;
    let place = Place::new(Some(model.address))?;
    let daemon = place.start()?;
    let mut client = daemon.client()?;
    // The commands differ, so that none counts as a repetition.
    let calls = [1, 2, 3].map(|number| {
        ("Bash", json!({"command": format!("sleep {}{number}", COMMAND_SECONDS), "timeout_ms": 60_000}))
    });
    let pieces: Arc<[Arc<[u8]>]> = calls_in_pieces(&calls).into();
    let play = |left: u32| {
        model.play(Script::Pieces {
            left: Arc::new(AtomicU32::new(left)),
            pieces: Arc::clone(&pieces),
            pause: PAUSE,
            last: answer(1, Chunks::Large),
        });
    };
    let (mut with, mut without, mut ratios) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        let mut both = [0.0; 2];
        for (took, is_off) in both.iter_mut().zip([false, true]) {
            let session = session(&mut client, &place.workspace(), is_off)?;
            // The first turn gathers the folder's facts.
            play(0);
            client.turn(&session)?;
            play(1);
            let began = Instant::now();
            client.turn(&session)?;
            *took = began.elapsed().as_secs_f64() * 1e3;
        }
        with.push(both[0]);
        without.push(both[1]);
        ratios.push(both[0] / both[1]);
    }
    daemon.stop()?;
    Figure::new("streaming execution, a turn with 3 slow calls", "ms", &with)
        .with_reference("ms switched off", without.median())
        .print();
    Figure::number("streaming execution, time saved", "ms", without.median() - with.median()).print();
    Figure::new("streaming execution, ratio", "", &ratios).target(Target::AtMost(0.9)).print();
    println!(
        "# streaming execution: the model writes for {:.1} s",
        PAUSE.as_secs_f64() * pieces.len() as f64
    );
    Ok(())
}

/// A new session that this client follows.
fn session(client: &mut Client, folder: &Path, is_off: bool) -> Outcome<String> {
    let params = json!({"cwd": folder, "model": "load/model", "ablation": {"streaming_execution": is_off}});
    let created = client.call("session.create", &params)?;
    let id = created["session"]["session_id"].as_str().ok_or("no session id")?.to_owned();
    client.call("session.subscribe", &json!({"session_id": id}))?;
    Ok(id)
}
