//! The terminal client: its start, lists of ten thousand sessions, a conversation of ten thousand items, and typing
//! while text streams.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use serde_json::json;

use super::daemon::{Daemon, DaemonSetup};
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::{Chunks, create_answer};
use super::{Outcome, bare, cold, resume};

const STARTS: usize = 15;
const RUNS: usize = 7;
/// Number of keys that are typed in one run.
const KEYS: usize = 40;
const KEY_INTERVAL: Duration = Duration::from_millis(60);
const DELTAS_PER_SECOND: usize = 5_000;
/// Maximum wait for output.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(20);
/// The last input of the long conversation.
const LAST_INPUT: &str = "the-very-last-input";

pub fn run() -> Outcome<()> {
    measure_version()?;
    measure_lists()?;
    measure_attach()?;
    measure_typing()
}

fn measure_version() -> Outcome<()> {
    let (mut took, mut spawn) = (Sample::default(), Sample::default());
    for _ in 0..STARTS {
        spawn.push_ms(bare::spawn_process()?);
        let began = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_agentctl")).arg("--version").output()?;
        took.push_ms(began.elapsed());
        if !output.status.success() {
            return Err("agentctl --version failed".into());
        }
    }
    Figure::new("agentctl --version", "ms", &took)
        .with_reference("ms spawn of true", spawn.median())
        .with_target(Target::AtMost(5.0))
        .print();
    Ok(())
}

fn measure_lists() -> Outcome<()> {
    let setup = DaemonSetup::new(None)?;
    // Create the database, and one session that is then copied.
    let first = setup.start_daemon()?;
    first.connect()?.call("session.create", &json!({"cwd": setup.workspace()}))?;
    first.stop()?;
    cold::copy_sessions(&setup)?;
    let daemon = setup.start_daemon()?;
    let (mut screen, mut pipe, mut page) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let mut client = daemon.connect()?;
        let began = Instant::now();
        client.call("session.list", &json!({"limit": 200}))?;
        page.push_ms(began.elapsed());
        let began = Instant::now();
        let mut terminal = Terminal::start(&setup, &daemon, &["ps", "-A"], (80, 24))?;
        terminal.wait_until(|seen| seen.contains("--limit or a pipe lists more"))?;
        screen.push_ms(began.elapsed());
        let began = Instant::now();
        let output = agentctl_command(&setup, &daemon, &["ps", "-A"]).output()?;
        pipe.push_ms(began.elapsed());
        let rows = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        if rows < 10_000 {
            return Err(format!("ps listed {rows} rows").into());
        }
    }
    Figure::new("ps -A of 10,000 sessions, on a terminal", "ms", &screen)
        .with_reference("ms page of 200, bare", page.median())
        .with_target(Target::AtMost(100.0))
        .print();
    Figure::new("ps -A of 10,000 sessions, all into a pipe", "ms", &pipe)
        .with_reference("ms page of 200, bare", page.median())
        .print();
    daemon.stop()
}

fn measure_attach() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model = ModelServer::start()?;
    model.set_script(Script::Immediate(create_answer(3, Chunks::Large)));
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    let session = client.create_session(&setup.workspace())?;
    client.run_turn(&session)?;
    drop(client);
    daemon.stop()?;
    let (_, last) = runtime.block_on(resume::copy_turns(&setup))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    client.call("session.subscribe", &json!({"session_id": session, "after_seq": last}))?;
    client.send("session.submit", &json!({"session_id": session, "input": LAST_INPUT}))?;
    client.wait_for_turn_end(|_| {})?;
    drop(client);
    let (mut whole, mut events) = (Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let mut client = daemon.connect()?;
        let began = Instant::now();
        client.call("session.items", &json!({"session_id": session, "newest_first": true, "limit": 100}))?;
        events.push_ms(began.elapsed());
        let began = Instant::now();
        let mut terminal = Terminal::start(&setup, &daemon, &["attach", "1"], (120, 40))?;
        // The last input is on the screen, and the end of its turn below it.
        terminal
            .wait_until(|seen| seen.rsplit_once(LAST_INPUT).is_some_and(|(_, rest)| rest.contains("done")))?;
        whole.push_ms(began.elapsed());
    }
    Figure::new("attach to 10,000 items, last screen", "ms", &whole)
        .with_reference("ms page of 100 items, bare", events.median())
        .with_target(Target::AtMost(100.0))
        .print();
    daemon.stop()
}

fn measure_typing() -> Outcome<()> {
    let model = ModelServer::start()?;
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let (mut start, mut spawn) = (Sample::default(), Sample::default());
    for _ in 0..STARTS {
        spawn.push_ms(bare::spawn_process()?);
        let began = Instant::now();
        let mut terminal = Terminal::start(&setup, &daemon, &[], (120, 40))?;
        let at = terminal.wait_until(|seen| seen.contains("? keys"))?;
        start.push_ms(at.duration_since(began));
    }
    Figure::new("start of a conversation, first screen", "ms", &start)
        .with_reference("ms spawn of true", spawn.median())
        .with_target(Target::AtMost(50.0))
        .print();
    let (mut idle, mut busy, mut worst) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let mut client = daemon.connect()?;
        let session = client.create_session(&setup.workspace())?;
        let mut terminal = Terminal::start(&setup, &daemon, &["attach", &session], (120, 40))?;
        terminal.wait_until(|seen| seen.contains("? keys"))?;
        let idle_times = terminal.type_keys(KEYS)?;
        idle.push(idle_times.median());
        // Long enough for all keys.
        let seconds = (KEY_INTERVAL * u32::try_from(KEYS)?).as_secs() as usize + 4;
        let every = Duration::from_secs(1) / u32::try_from(DELTAS_PER_SECOND)?;
        model.set_script(Script::Paced { deltas: DELTAS_PER_SECOND * seconds, every });
        client.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        terminal.wait_until(|seen| seen.contains("writing"))?;
        let busy_times = terminal.type_keys(KEYS)?;
        busy.push(busy_times.median());
        worst.push(busy_times.max());
        drop(terminal);
        client.call("session.abort", &json!({"session_id": session})).ok();
    }
    Figure::new("key to screen, 5,000 deltas/s arrive", "ms", &busy)
        .with_reference("ms key to screen, idle", idle.median())
        .with_target(Target::AtMost(16.0))
        .print();
    Figure::new("key to screen, worst of 40, 5,000 deltas/s", "ms", &worst).print();
    daemon.stop()
}

fn agentctl_command(setup: &DaemonSetup, daemon: &Daemon, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
    command
        .arg("--socket")
        .arg(daemon.socket())
        .arg("--no-start")
        .args(arguments)
        .env_clear()
        .env("HOME", setup.home())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("TERM", "xterm-256color")
        .current_dir(setup.workspace())
        .stdin(Stdio::null());
    command
}

/// `agentctl` in a terminal of its own; killed when dropped.
struct Terminal {
    child: Child,
    keyboard: File,
    read: Receiver<(Instant, Vec<u8>)>,
    seen: String,
}

impl Terminal {
    fn start(setup: &DaemonSetup, daemon: &Daemon, arguments: &[&str], size: (u16, u16)) -> Outcome<Self> {
        let size = Winsize { ws_row: size.1, ws_col: size.0, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None)?;
        let mut command = agentctl_command(setup, daemon, arguments);
        command
            .stdin(Stdio::from(pty.slave.try_clone()?))
            .stdout(Stdio::from(pty.slave.try_clone()?))
            .stderr(Stdio::from(pty.slave));
        let child = command.spawn()?;
        drop(command);
        let keyboard = File::from(pty.master);
        let mut screen = keyboard.try_clone()?;
        let (sender, read) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 64 << 10];
            // Reading fails when the program has ended.
            while let Ok(count) = screen.read(&mut bytes) {
                if count == 0 || sender.send((Instant::now(), bytes[..count].to_vec())).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, keyboard, read, seen: String::new() })
    }

    /// Reads the next output. Answers the question for the position of the cursor.
    fn read_output(&mut self) -> Outcome<Instant> {
        let (at, bytes) = self.read.recv_timeout(SCREEN_TIMEOUT)?;
        let text = String::from_utf8_lossy(&bytes);
        if text.contains("\u{1b}[6n") {
            self.keyboard.write_all(b"\x1b[1;1R")?;
        }
        self.seen.push_str(&text);
        Ok(at)
    }

    /// Waits until the output meets a condition.
    fn wait_until(&mut self, is_shown: impl Fn(&str) -> bool) -> Outcome<Instant> {
        loop {
            let at = self.read_output().map_err(|error| {
                let from = self.seen.len().saturating_sub(400);
                format!("{error}; seen: {:?}", self.seen.get(from..).unwrap_or_default())
            })?;
            if is_shown(&self.seen) {
                return Ok(at);
            }
        }
    }

    /// Types keys one by one. Returns how long each takes to appear on the screen.
    fn type_keys(&mut self, count: usize) -> Outcome<Sample> {
        let mut times = Sample::default();
        for nth in 0..count {
            let pause = Instant::now() + KEY_INTERVAL;
            // Output during the pause does not belong to the next key.
            while let Some(left) = pause.checked_duration_since(Instant::now()) {
                if self.read.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
                    return Err("agentctl has ended".into());
                }
            }
            self.seen.clear();
            // Neither the model nor the program writes Greek.
            let key = char::from_u32(0x3b1 + u32::try_from(nth % 17)?).ok_or("no letter")?;
            let began = Instant::now();
            self.keyboard.write_all(key.encode_utf8(&mut [0; 4]).as_bytes())?;
            let at = self.wait_until(|seen| seen.contains(key))?;
            times.push_ms(at.duration_since(began));
        }
        Ok(times)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
