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
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::{Chunks, create_answer, create_calls_in_pieces};

const ROUNDS: usize = 7;
/// Time for which the model writes one part of its answer.
const PART_TIME: Duration = Duration::from_millis(400);
/// Run time of one command, in seconds.
const COMMAND_SECONDS: f64 = 0.4;

pub fn run() -> Outcome<()> {
    let model = ModelServer::start()?;
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    // The commands differ, so that none counts as a repetition.
    let calls = [1, 2, 3].map(|number| {
        ("Bash", json!({"command": format!("sleep {}{number}", COMMAND_SECONDS), "timeout_ms": 60_000}))
    });
    let pieces: Arc<[Arc<[u8]>]> = create_calls_in_pieces(&calls).into();
    let set_script = |remaining: u32| {
        model.set_script(Script::Pieces {
            remaining: Arc::new(AtomicU32::new(remaining)),
            pieces: Arc::clone(&pieces),
            pause: PART_TIME,
            last: create_answer(1, Chunks::Large),
        });
    };
    let (mut with, mut without, mut ratios) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        let mut both = [0.0; 2];
        for (took, is_off) in both.iter_mut().zip([false, true]) {
            let session = create_session(&mut client, &setup.workspace(), is_off)?;
            // The first turn reads the folder's state.
            set_script(0);
            client.run_turn(&session)?;
            set_script(1);
            let began = Instant::now();
            client.run_turn(&session)?;
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
    Figure::from_number("streaming execution, time saved", "ms", without.median() - with.median()).print();
    Figure::new("streaming execution, ratio", "", &ratios).with_target(Target::AtMost(0.9)).print();
    println!(
        "# streaming execution: the model writes for {:.1} s",
        PART_TIME.as_secs_f64() * pieces.len() as f64
    );
    Ok(())
}

/// Creates a session and subscribes to it.
fn create_session(client: &mut Client, folder: &Path, is_off: bool) -> Outcome<String> {
    let params = json!({"cwd": folder, "model": "load/model", "ablation": {"streaming_execution": is_off}});
    let created = client.call("session.create", &params)?;
    let id = created["session"]["session_id"].as_str().ok_or("no session id")?.to_owned();
    client.call("session.subscribe", &json!({"session_id": id}))?;
    Ok(id)
}
