//! Trivial calls on one connection: the cost of the socket, the framing and the dispatch of a method.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use super::Outcome;
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};

const RUNS: usize = 5;
const CALLS: usize = 200_000;
/// Calls that a client writes at a time. It does not wait for their answers.
const BATCH: usize = 250;
const MIN_CALLS_PER_SECOND: f64 = 40_000.0;

/// Ends a subscription that does not exist: the daemon answers `false` and touches no session.
const CALL: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.unsubscribe\",\"params\":{\"subscription\":\"none\"}}\n";
const ANSWER: &str = "\"result\":false";

pub fn run() -> Outcome<()> {
    let setup = DaemonSetup::new(None)?;
    let daemon = setup.start_daemon()?;
    let (mut speeds, mut bare, mut cpu) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        bare.push(echo_speed()?);
        let (stream, _client) = daemon.connect()?.share_socket()?;
        let before = daemon.cpu_time()?;
        speeds.push(call_speed(stream, ANSWER)?);
        cpu.push(daemon.cpu_time()?.saturating_sub(before).as_secs_f64() * 1e6 / CALLS as f64);
    }
    daemon.stop()?;
    Figure::new("trivial calls on one NDJSON connection", "calls/s", &speeds)
        .with_reference("lines/s bare socket echo", bare.median())
        .with_target(Target::AtLeast(MIN_CALLS_PER_SECOND))
        .print();
    Figure::new("trivial call, daemon CPU", "us", &cpu).print();
    Ok(())
}

/// Sends all calls and reads their answers; each must contain `answer`.
fn call_speed(stream: UnixStream, answer: &str) -> Outcome<f64> {
    let mut write = stream.try_clone()?;
    let began = Instant::now();
    let sender = thread::spawn(move || {
        let batch = CALL.repeat(BATCH);
        (0..CALLS / BATCH).try_for_each(|_| write.write_all(batch.as_bytes()))
    });
    let mut read = BufReader::with_capacity(256 << 10, stream);
    let mut line = String::new();
    for _ in 0..CALLS {
        line.clear();
        if read.read_line(&mut line)? == 0 || !line.contains(answer) {
            return Err(format!("not the answer of the call: {line:?}").into());
        }
    }
    let time = began.elapsed();
    sender.join().map_err(|_| "the sender panicked")??;
    Ok(CALLS as f64 / time.as_secs_f64())
}

/// The same calls through a socket whose other end returns every byte.
fn echo_speed() -> Outcome<f64> {
    let (near, far) = UnixStream::pair()?;
    let echo = thread::spawn(move || std::io::copy(&mut far.try_clone()?, &mut &far));
    let speed = call_speed(near.try_clone()?, "session.unsubscribe");
    // Ends the copy.
    near.shutdown(std::net::Shutdown::Both)?;
    echo.join().map_err(|_| "the echo panicked")??;
    speed
}
