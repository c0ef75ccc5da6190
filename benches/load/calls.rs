//! B8: a turn of a hundred commands that do nothing, at each level of the sandbox.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use super::Outcome;
use super::bare;
use super::daemon::Place;
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::{Chunks, answer, bash};

const CALLS: u32 = 100;
const ROUNDS: usize = 5;
/// Of each call: the model's message with the wish, the intent, the result.
const SYNCS: f64 = 3.0;
/// What a call may take beside the process and the syncs.
const OURS_MS: f64 = 3.0;

/// What a shell is started behind to see what a level itself takes. Landlock and limits are set by the
/// process that becomes the command: their reference is the bare shell.
const LEVELS: [(&str, &[&str]); 4] = [
    ("off", &[]),
    ("rlimits", &[]),
    ("landlock", &[]),
    (
        "bubblewrap",
        &[
            "bwrap",
            "--unshare-all",
            "--die-with-parent",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
        ],
    ),
];

pub fn run() -> Outcome<()> {
    for (level, behind) in LEVELS {
        // What this machine cannot hold is said and left out.
        if let Err(error) = measure(level, behind) {
            println!("# B8 {level}: not measured: {error}");
        }
    }
    Ok(())
}

fn measure(level: &str, behind: &[&str]) -> Outcome<()> {
    let model = Model::start()?;
    let place = Place::new(Some(model.address))?;
    place.hold(level)?;
    let mut file = File::create(place.path("synced"))?;
    let daemon = place.start()?;
    let mut client = daemon.client()?;
    let session = client.session(&place.workspace())?;
    client.turn(&session)?;
    let (mut calls, mut cpu) = (Sample::default(), Sample::default());
    let (mut spawns, mut syncs) = (Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        for _ in 0..CALLS / 5 {
            spawns.push_ms(bare::shell(behind)?);
            syncs.push_ms(bare::append(&mut file)?);
        }
        let left = Arc::new(AtomicU32::new(CALLS));
        model.play(Script::Rounds { left, again: bash("true"), last: answer(1, Chunks::Large) });
        let (before, began) = (daemon.cpu()?, Instant::now());
        client.turn(&session)?;
        calls.push(began.elapsed().as_secs_f64() * 1e3 / f64::from(CALLS));
        cpu.push(daemon.cpu()?.saturating_sub(before).as_secs_f64() * 1e3 / f64::from(CALLS));
    }
    daemon.stop()?;
    let machine = spawns.median() + SYNCS * syncs.median();
    Figure::of(&format!("B8 a call, level {level}"), "ms", &calls)
        .beside("ms spawn + 3 fdatasyncs", machine)
        .target(Target::AtMost(machine + OURS_MS))
        .print();
    Figure::number(&format!("B8 ours in it, level {level}"), "ms", calls.median() - machine)
        .target(Target::AtMost(OURS_MS))
        .print();
    Figure::of(&format!("B8 daemon CPU a call, level {level}"), "ms", &cpu).print();
    Ok(())
}
