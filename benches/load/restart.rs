//! B11: a daemon that was killed while a thousand turns were open.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Outcome;
use super::bare;
use super::daemon::Place;
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::bash;

const RUNS: usize = 7;
const SESSIONS: usize = 1_000;
const CLIENTS: usize = 20;
const SOON: Duration = Duration::from_secs(60);

pub fn run() -> Outcome<()> {
    let model = Model::start()?;
    model.play_for("silent", Script::Hang);
    // Nothing allows this: a person has to.
    model.play_for("asking", Script::AtOnce(bash("touch made")));
    let place = Place::new(Some(model.address))?;
    let daemon = place.start()?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let name = if number % 2 == 0 { "silent" } else { "asking" };
        let mut client = daemon.client()?;
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS / CLIENTS {
            sessions.push(client.session_with(&place.workspace(), name)?);
        }
        client.submit_all(&sessions)?;
        // All that ask have asked, and all the others have reached the model.
        if name == "asking" {
            for _ in 0..sessions.len() {
                client.until_kind("permission.requested")?;
            }
        }
        // What a client sent before it left may not be read any more.
        clients.push(client);
    }
    for _ in 0..SESSIONS {
        model.arrival()?;
    }
    daemon.kill()?;
    let kept = place.path("kept");
    copy(&place.data(), &kept)?;

    let (mut ready, mut recovered, mut cpu, mut spawns) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        std::fs::remove_dir_all(place.data())?;
        copy(&kept, &place.data())?;
        model.forget_arrivals();
        spawns.push_ms(bare::spawn()?);
        let began = Instant::now();
        let daemon = place.start()?;
        ready.push_ms(daemon.took);
        // The last session is recovered when the daemon says so; its request follows at once.
        let until = began + SOON;
        while !std::fs::read_to_string(place.log())?.contains("resumed unfinished sessions") {
            if Instant::now() > until {
                return Err("the sessions were not picked up".into());
            }
            model.pause(Duration::from_millis(1));
        }
        recovered.push_ms(began.elapsed());
        for _ in 0..SESSIONS / 2 {
            model.arrival()?;
        }
        cpu.push_ms(daemon.cpu()?);
        daemon.kill()?;
    }
    Figure::new("B11 restart after kill -9, 1,000 open: ready", "ms", &ready)
        .with_reference("ms spawn of true", spawns.median())
        .target(Target::AtMost(300.0))
        .print();
    Figure::new("B11 until all 1,000 are picked up", "ms", &recovered).print();
    Figure::new("B11 daemon CPU until 500 asked the model again", "ms", &cpu).print();
    println!("# B11: open means 500 turns that wait for a silent model, 500 that wait for a permission");
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
