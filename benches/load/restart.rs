//! B11: restart of a daemon that was killed while a thousand turns were open.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Outcome;
use super::bare;
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::create_bash_call;

const RUNS: usize = 7;
const SESSIONS: usize = 1_000;
const CLIENTS: usize = 20;
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

pub fn run() -> Outcome<()> {
    let model = ModelServer::start()?;
    model.set_script_for("silent", Script::Hang);
    // No rule allows this command, so the call waits for a user.
    model.set_script_for("asking", Script::Immediate(create_bash_call("touch made")));
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let name = if number % 2 == 0 { "silent" } else { "asking" };
        let mut client = daemon.connect()?;
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS / CLIENTS {
            sessions.push(client.create_session_with_model(&setup.workspace(), name)?);
        }
        client.submit_all(&sessions)?;
        // Each of these sessions must have its permission request before the daemon is killed.
        if name == "asking" {
            for _ in 0..sessions.len() {
                client.wait_for_event("permission.requested")?;
            }
        }
        // Stay connected: the daemon may not read what a client sent before it disconnected.
        clients.push(client);
    }
    for _ in 0..SESSIONS {
        model.wait_for_request()?;
    }
    daemon.kill()?;
    let backup = setup.path("backup");
    copy_files(&setup.data(), &backup)?;

    let (mut ready, mut recovered, mut cpu, mut spawns) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        std::fs::remove_dir_all(setup.data())?;
        copy_files(&backup, &setup.data())?;
        model.discard_arrivals();
        spawns.push_ms(bare::spawn_process()?);
        let began = Instant::now();
        let daemon = setup.start_daemon()?;
        ready.push_ms(daemon.start_duration);
        // The daemon logs this when the last session is recovered. Its model request follows immediately.
        let deadline = began + RECOVERY_TIMEOUT;
        while !std::fs::read_to_string(setup.log())?.contains("resumed unfinished sessions") {
            if Instant::now() > deadline {
                return Err("the sessions were not resumed".into());
            }
            model.pause(Duration::from_millis(1));
        }
        recovered.push_ms(began.elapsed());
        for _ in 0..SESSIONS / 2 {
            model.wait_for_request()?;
        }
        cpu.push_ms(daemon.cpu_time()?);
        daemon.kill()?;
    }
    Figure::new("B11 restart after kill -9, 1,000 open: ready", "ms", &ready)
        .with_reference("ms spawn of true", spawns.median())
        .with_target(Target::AtMost(300.0))
        .print();
    Figure::new("B11 until all 1,000 are resumed", "ms", &recovered).print();
    Figure::new("B11 daemon CPU until 500 repeated requests", "ms", &cpu).print();
    println!("# B11: open means 500 turns that wait for a silent model, 500 that wait for a permission");
    Ok(())
}

fn copy_files(from: &Path, to: &Path) -> Outcome<()> {
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
