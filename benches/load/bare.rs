//! References: what the machine itself takes for the thing below what we measure.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Outcome;
use super::model::DIGITS;

/// Starts a process that does nothing and waits for its end.
pub fn spawn() -> Outcome<Duration> {
    let began = Instant::now();
    let status = Command::new("true").status()?;
    let took = began.elapsed();
    if status.success() { Ok(took) } else { Err("`true` failed".into()) }
}

/// Appends 4 KiB and waits until they are on disk.
pub fn append(file: &mut File) -> Outcome<Duration> {
    let page = [7; 4096];
    let began = Instant::now();
    file.write_all(&page)?;
    file.sync_data()?;
    Ok(began.elapsed())
}

/// Asks the model server over a connection of its own.
fn ask(address: SocketAddr) -> Outcome<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    socket.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: load\r\ncontent-length: 2\r\n\r\n{}")?;
    Ok(socket)
}

/// Reads one answer to its end and counts the events in it.
pub fn count_events(address: SocketAddr) -> Outcome<(usize, Duration)> {
    let mut socket = ask(address)?;
    let began = Instant::now();
    let mut buffer = vec![0; 256 << 10];
    let (mut events, mut last, mut tail) = (0, 0, [0; 5]);
    loop {
        let read = socket.read(&mut buffer)?;
        if read == 0 {
            return Err("the answer was cut".into());
        }
        let bytes = &buffer[..read];
        // An event ends with an empty line.
        for &byte in bytes {
            events += usize::from(byte == b'\n' && last == b'\n');
            last = byte;
        }
        let kept = read.min(tail.len());
        tail.rotate_left(kept);
        let start = tail.len() - kept;
        tail[start..].copy_from_slice(&bytes[read - kept..]);
        if &tail == b"0\r\n\r\n" {
            return Ok((events, began.elapsed()));
        }
    }
}

/// Reads one paced answer and notes when each delta had been read.
pub fn read_deltas(address: SocketAddr, deltas: usize) -> Outcome<Vec<Instant>> {
    const MARK: &[u8] = b"\"text\":\"";
    let mut socket = ask(address)?;
    let mut buffer = [0; 16 << 10];
    let mut seen = Vec::with_capacity(deltas);
    while seen.len() < deltas {
        let read = socket.read(&mut buffer)?;
        let now = Instant::now();
        if read == 0 {
            return Err("the answer was cut".into());
        }
        // A chunk is written at once and is far smaller than a read: a mark is never cut.
        let words = buffer[..read].windows(MARK.len() + DIGITS);
        let found =
            words.filter(|at| at.starts_with(MARK) && at[MARK.len()..].iter().all(u8::is_ascii_digit));
        seen.extend(found.map(|_| now));
    }
    Ok(seen)
}
